/*
 * convert_torch.h - a model's weights as PyTorch has them.
 */
#ifndef TUTTI_CLI_CONVERT_TORCH_H
#define TUTTI_CLI_CONVERT_TORCH_H

#include "cli/cli.h"

// Writes the weights of the model at path to the second word; *n tensors.
tt_status cli_convert_to_torch(tt_ctx *ctx, const cli_args *args, const char *path, int64_t *n,
                               tt_hash *hash);

#endif
