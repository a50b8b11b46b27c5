/*
 * compare_runs.h - tutti runs show and compare.
 */
#ifndef TUTTI_CLI_COMPARE_RUNS_H
#define TUTTI_CLI_COMPARE_RUNS_H

#include "cli/run_facts.h"

// All facts of a run, or what differs between two: job, place, metrics, curves, weights.
tt_status cli_runs_show(tt_ctx *ctx, const cli_args *args, const char *folder) TTI_CHECKED;
tt_status cli_runs_compare(tt_ctx *ctx, const cli_args *args, const char *a,
                           const char *b) TTI_CHECKED;

#endif
