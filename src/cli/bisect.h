/*
 * bisect.h - the search for the first change after which a result is another one: changes are
 * numbered, trial k has the first k of them.
 */
#ifndef TUTTI_CLI_BISECT_H
#define TUTTI_CLI_BISECT_H

#include "cli/cli.h"

typedef struct cli_outcome {
    bool ran;      // false: this trial cannot be trained or built
    char hash[33]; // of the weights
    double metric; // --metric; NaN: there is none
    char why[256]; // why it did not run
} cli_outcome;

typedef struct cli_bisect_work {
    tt_ctx *ctx;
    const cli_args *args;
    char folder[TTI_RUN_PATH]; // of the trials
    int64_t n;                 // changes
    // Makes trial k and fills out; false: an error is recorded.
    bool (*trial)(struct cli_bisect_work *w, int64_t k, cli_outcome *out);
    void *user;
    int n_trials;
    cli_outcome good, bad;
    int64_t first, last; // the change, or the range in which it is
} cli_bisect_work;

// Fills good, bad, first and last. Fails if both ends give the same, or one of them nothing.
tt_status cli_bisect_search(cli_bisect_work *w) TTI_CHECKED;
// Trains a job file with a program in a folder of the trials; what came of it.
tt_status cli_bisect_train(cli_bisect_work *w, const char *program, const char *job,
                           const char *name, cli_outcome *out) TTI_CHECKED;
// "weights 31db8d5dbbfd9388" or "accuracy 0.93"
void cli_outcome_text(const cli_bisect_work *w, const cli_outcome *o, char out[96]);

// bisect_jobs.c, bisect_commits.c
tt_status cli_bisect_jobs(cli_bisect_work *w) TTI_CHECKED;
tt_status cli_bisect_commits(cli_bisect_work *w) TTI_CHECKED;

#endif
