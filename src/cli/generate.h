/*
 * generate.h - text that a trained model writes.
 */
#ifndef TUTTI_CLI_GENERATE_H
#define TUTTI_CLI_GENERATE_H

#include "cli/job.h"

bool cli_is_text(const cli_job *j); // is the training data text?
// Writes --length symbols after --prompt, drawn by --temperature and --seed.
tt_status cli_generate(cli_job *j, const cli_args *args);

#endif
