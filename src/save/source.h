/*
 * source.h - tensors by name from what a user points at: a checkpoint, a folder of checkpoints, a
 * run, or one safetensors or .pt file. All of it is in memory and, for a checkpoint, checked.
 */
#ifndef TUTTI_SAVE_SOURCE_H
#define TUTTI_SAVE_SOURCE_H

#include "save/checkpoint.h"

typedef struct tti_source {
    char file[TTI_PATH_MAX]; // the file that the weights are in, for messages
    bool is_checkpoint;
    tti_origin origin;
    const tti_named *tensors; // the weights
    int64_t n;
    tti_snapshot snapshot; // of a checkpoint: its state, and the optimizer's tensors too
    tti_safetensors table; // of a single file: it may hold what Tutti cannot
} tti_source;

tt_status tti_source_open(tt_ctx *ctx, const char *path, tti_source *out) TTI_CHECKED;
// Fails, naming it, if tensor i is of a type or rank that Tutti does not have.
tt_status tti_source_usable(const tti_source *s, int64_t i) TTI_CHECKED;
void tti_source_close(tt_ctx *ctx, tti_source *s);

#endif
