/*
 * side.h - one side of a comparison: a job built in a context of its own, whose step runs on the
 * first batch of the data again and again. Nothing of it reaches the job that trains.
 */
#ifndef TUTTI_CLI_SIDE_H
#define TUTTI_CLI_SIDE_H

#include "cli/cli.h"
#include "train/compile.h"

typedef struct cli_side {
    tt_ctx *ctx;
    tt_job_parts parts;
    tt_batch_data batch;
    const void *fields[TTI_MAX_FEEDS];
} cli_side;

// Builds the job with these settings; TT_OK or the error, which stays in out->ctx (may be NULL).
// cli_side_close() is called in any case.
tt_status cli_side_open(tt_job *job, const tt_open_opts *opts, cli_side *out) TTI_CHECKED;
tt_status cli_side_step(cli_side *s) TTI_CHECKED;
// Runs n steps, at most CLI_SIDE_STEPS; *ms is their median.
#define CLI_SIDE_STEPS 256
tt_status cli_side_time(cli_side *s, int64_t n, double *ms) TTI_CHECKED;
void cli_side_close(cli_side *s);

// The settings of a job on one device with all cores.
tt_open_opts cli_one_device(const tt_job *job);

#endif
