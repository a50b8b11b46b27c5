/*
 * job.h - a job as the verbs use it: read from a file or from a run's folder, then built in a
 * context of its own.
 */
#ifndef TUTTI_CLI_JOB_H
#define TUTTI_CLI_JOB_H

#include "base/ctx.h"
#include "cli/cli.h"
#include "record/record.h"

typedef struct cli_job {
    tt_ctx *reader; // keeps the job and errors in it
    tt_job *job;
    tt_ctx *ctx;    // what the job runs in; NULL before cli_job_build()
    bool is_beside; // of the job's processes this one does not train
    bool evaluates; // but evaluates what the others train
    bool no_init;   // the weights that init names are not loaded
    tt_job_parts parts;
    tt_fit_opts own_fit; // what parts.fit points to for a model without a job
    const char *runs;    // where run folders are
    bool tensorboard;    // event files are wanted
    bool trial;          // a spread may be compared with one device
    char file[TTI_PATH_MAX];
    char run[TTI_RUN_PATH]; // the folder, if a run was named; ""
} cli_job;

bool cli_is_job_file(const char *word); // by its name: .yaml, .yml
/*
 * Reads the job that a word of the command line names: a job file, or a run's folder or name.
 * need: see cli_run_find(). Gives an exit code; cli_job_close() is called in any case, and tells
 * the error.
 */
int cli_job_read(const cli_args *args, const char *word, cli_need need, cli_job *out);
// Opens the context and joins the job's other processes; it stays NULL in one that does nothing.
int cli_job_open(cli_job *j, const cli_args *args, tt_event_fn on_event, void *user);
// Opens the context, joins the job's other processes and builds data and model. on_event NULL: log
// lines only.
int cli_job_build(cli_job *j, const cli_args *args, tt_event_fn on_event, void *user);
// Tells what the contexts have recorded and closes them; gives rc if that tells of a failure.
int cli_job_close(cli_job *j, int rc);
// The folder of the run that was named, or else of the job's newest run.
tt_status cli_job_find_run(cli_job *j);
// The path of --checkpoint, or else of the newest of the run.
tt_status cli_job_weights(cli_job *j, const cli_args *args, char path[TTI_PATH_MAX]);

// Fails where a step of the job, with its validation, does not fit a device; says what would.
// is_dry: it will not be trained.
tt_status cli_job_check_memory(cli_job *j, bool is_dry);
// Bytes on each device that validation needs beside a step; all 0: there is none.
tt_status cli_job_validation(cli_job *j, size_t *bytes);

// summary.c: what training would do.
tt_status cli_dry_run(cli_job *j, const cli_args *args);

#endif
