/*
 * input.h - a file of --input as the test data of a job.
 */
#ifndef TUTTI_CLI_INPUT_H
#define TUTTI_CLI_INPUT_H

#include "cli/job.h"

// The --set that makes the file the job's data.test; free with tti_free(NULL, ...).
tt_status cli_input_setting(cli_job *j, const char *file, char **out) TTI_CHECKED;
// Errors about that data name the file alone, not the --set that nobody has typed.
void cli_input_blame(cli_job *j);

#endif
