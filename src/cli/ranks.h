/*
 * ranks.h - a job's other processes, as the verbs see them: found in the environment, joined when
 * the context is opened. Rank 0 prints and writes what is one.
 */
#ifndef TUTTI_CLI_RANKS_H
#define TUTTI_CLI_RANKS_H

#include "cli/job.h"

typedef struct cli_cluster {
    tt_cluster *found; // NULL: no variable is set
    tt_tasks *tasks;   // NULL: this process trains alone
} cli_cluster;

/*
 * Finds the processes of the job and meets those whose addresses are not told; errors are in the
 * job's reader. *is_beside: this one does not train, which was told; the job knows if it evaluates.
 */
int cli_join(cli_job *j, const cli_args *args, cli_cluster *out, bool *is_beside);
void cli_join_free(cli_job *j, cli_cluster *c);

// All ranks call it: an error that names a line if they are not about to do the same.
tt_status cli_compare_jobs(cli_job *j, const cli_args *args);

// Of a context: alone it is the first of one.
bool cli_is_first(const tt_ctx *ctx);
int cli_rank(const tt_ctx *ctx);
int cli_ranks(const tt_ctx *ctx);

// All ranks call it; the first prints who they are and how they reach each other, in that form.
tt_status cli_tell_ranks(tt_ctx *ctx, const cli_args *args);
/*
 * All ranks call it: the first tells the others a path, or why there is none: then st is not TT_OK
 * and message says it.
 */
tt_status cli_share_path(tt_ctx *ctx, tt_status st, const char *message, char path[TTI_RUN_PATH]);

// Takes the secret that tutti run gives on standard input, if it does, and begins to listen to it.
tt_status cli_take_secret(tt_ctx *ctx);
// A rank of a job that tutti run started ends when that says so on standard input, or is gone.
void cli_follow_launcher(void);

#endif
