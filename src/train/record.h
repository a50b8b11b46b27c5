/*
 * record.h - the run folder: runs/NAME-NNN with job.yaml, events.jsonl, tensorboard/, checkpoints/.
 *
 * A recorder listens to a context's events and writes them down; nothing else knows of it.
 */
#ifndef TUTTI_TRAIN_RECORD_H
#define TUTTI_TRAIN_RECORD_H

#include "base/base.h"

// Makes "<root>/<name>-<nnn>" with the first free number; path has room for 256.
tt_status tti_run_folder_new(tt_ctx *ctx, const char *root, const char *name,
                             char path[256]) TTI_CHECKED;

typedef struct tti_recorder tti_recorder;
// Appends to the folder's events.jsonl and writes a TensorBoard event file of its own.
tt_status tti_recorder_open(tt_ctx *ctx, const char *folder, tti_recorder **out) TTI_CHECKED;
void tti_recorder_close(tti_recorder *r); // NULL is fine

#endif
