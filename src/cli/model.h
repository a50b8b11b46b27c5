/*
 * model.h - a trained model as the verbs use it: found by a word of the command line and built of
 * its card, so that neither the training data nor the file of init is needed, nor, for a
 * checkpoint or one file, a job.
 */
#ifndef TUTTI_CLI_MODEL_H
#define TUTTI_CLI_MODEL_H

#include "cli/job.h"
#include "train/use.h"

typedef struct cli_model {
    cli_job j;       // job NULL: the word is a checkpoint or a file
    bool is_of_job;  // built as the job says, of its data: the weights say nothing of their model
    tt_model *model; // with its weights
    char weights[TTI_PATH_MAX]; // where they are from
} cli_model;

/*
 * Opens the model that word names: a job file or a run (--checkpoint, or the newest checkpoint), a
 * checkpoint, a file. compile: with its losses and metrics, for tt_evaluate(). Gives an exit code;
 * cli_model_close() is called in any case, and tells the error. model NULL without an error: this
 * process does nothing.
 */
// Is word a run with a checkpoint, a checkpoint or a file of weights?
bool cli_model_is_trained(const cli_args *args, const char *word);
int cli_model_open(const cli_args *args, const char *word, bool compile, cli_model *out);
int cli_model_close(cli_model *m, int rc);
// The job's data.test or else data.validate; *what names it. *out NULL: there is none.
tt_status cli_model_test_data(cli_model *m, const char **what, tt_data **out);

#endif
