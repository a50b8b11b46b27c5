/*
 * report.h - how a run went: a table for people, an object for programs.
 */
#ifndef TUTTI_CLI_REPORT_H
#define TUTTI_CLI_REPORT_H

#include "cli/cli.h"

typedef struct cli_report {
    tt_model *model;
    tt_fit_report fit;
    double spread_ms, one_ms; // a step as the job says, and on one device; 0: not measured
    bool has_test;
    tt_evaluation test;
    const char *run; // folder
} cli_report;

void cli_report_text(tt_ctx *ctx, const cli_report *r);
void cli_report_json(tt_ctx *ctx, const cli_report *r);

// Parts as whole percentages that add up to 100; all 0 if their sum is.
void cli_percentages(const double *parts, int n, int *out);
void cli_hash_text(const tt_hash *h, char out[33]);
// "loss 0.0812  accuracy 0.9754", or as members of an object: "loss": 0.0812, ...
void cli_evaluation_text(tti_text *t, const tt_evaluation *e);
void cli_evaluation_json(tti_text *t, const tt_evaluation *e);
void cli_json_number(tti_text *t, double v); // null where it is not finite

#endif
