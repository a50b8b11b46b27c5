/*
 * launch.h - starting the processes of a job and seeing them to their end.
 */
#ifndef TUTTI_CLI_LAUNCH_H
#define TUTTI_CLI_LAUNCH_H

#include "cli/cli.h"

// One process to be: words is what is run, NULL at the end, env what is set for it.
typedef struct cli_process {
    char **words;
    char **sets; // "NAME=value", NULL at the end; set after all variables of a cluster are gone
    const char *host; // NULL: this machine; else for messages: words reach it
} cli_process;

// remote.c: fills in p->words, for a process that ssh (NULL: the default) starts on another host.
typedef struct cli_remote {
    int rank;
    const char *host, *ssh, *dir, *command;
    const char *const *words; // behind the command
    int n_words;
} cli_remote;
tt_status cli_remote_words(tt_ctx *ctx, const cli_remote *r, cli_process *p);

// A job whose processes may change. Zero means default.
typedef struct cli_elastic_opts {
    int min, max;             // processes; the first ones are within that
    int64_t replace;          // how many that are lost may be replaced by new ones
    int64_t loss_ms, wait_s;  // until one that is silent is out; below min, until all save and end
    const char *const *hosts; // by process: by which the others reach it
    char machine[256];        // name of this one, for messages
} cli_elastic_opts;

// workers.c: of a job with n processes to begin with; max is 0 where it is not elastic.
tt_status cli_workers_find(tt_ctx *ctx, const cli_args *a, int n, bool is_program,
                           cli_elastic_opts *out);

typedef struct cli_launch {
    const cli_process *processes; // of an elastic job max of them; n are started
    int n;
    const char *secret; // as text; the first line of each one's standard input
    int64_t grace_s;
    const cli_elastic_opts *elastic; // NULL: the processes are the same to the end
} cli_launch;

/*
 * Runs them all and gives the exit code of the job: 0, or that of the first one that failed; 76
 * where that was killed. One that failed because it lost another counts only if no other failed of
 * a cause of its own. Standard output is the first one's. Of standard error, the first one's is
 * shown as it comes, the others' at the end, if the job failed and the first one did not say it.
 */
int cli_launch_run(const cli_launch *l);

#endif
