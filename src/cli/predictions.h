/*
 * predictions.h - predictions as lines or arrays: for people, as JSON lines, CSV or .npy.
 */
#ifndef TUTTI_CLI_PREDICTIONS_H
#define TUTTI_CLI_PREDICTIONS_H

#include "cli/cli.h"
#include <stdio.h>
#include <tutti/use.h>

typedef enum cli_shown {
    CLI_AS_TEXT,
    CLI_AS_JSON,
    CLI_AS_CSV,
    CLI_AS_NPY,
} cli_shown;

typedef struct cli_predictions {
    tt_ctx *ctx;
    tt_model *model;
    const cli_args *args;
    cli_shown form;
    FILE *out;                 // standard output, or a file beside the one that is asked for
    char tmp[4096];            // its name; "": standard output
    int n_outputs;             //
    tt_port outputs[8];        // all f32
    int64_t width[8], shown;   // values of a record; classes that are shown
    int class_width;           // columns of a class's name
    bool has_files, has_label; // several files; a column of labels
    int64_t n;                 // records so far
} cli_predictions;

// The form that --output and --json ask for; CLI_USAGE, told, if there is none of that name.
int cli_predictions_form(const cli_args *args, cli_shown *out);
tt_status cli_predictions_begin(cli_predictions *p, bool has_files, bool has_label);
/*
 * One record: values are its finished outputs, one array for each. label NULL: it has none. file:
 * where it is from, where there are several.
 */
void cli_predictions_add(cli_predictions *p, const char *file, int64_t record,
                         const float *const *values, const int64_t *label);
tt_status cli_predictions_end(cli_predictions *p, tt_status st); // with an error nothing is left

#endif
