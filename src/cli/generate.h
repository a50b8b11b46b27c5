/*
 * generate.h - text that a trained model writes.
 */
#ifndef TUTTI_CLI_GENERATE_H
#define TUTTI_CLI_GENERATE_H

#include "cli/model.h"

bool cli_is_text(const cli_model *m); // was it trained on text?
// Writes --length symbols after --prompt, drawn by --temperature and --seed.
tt_status cli_generate(cli_model *m, const cli_args *args);

#endif
