/*
 * pt.h - files of torch.save(): tensors alone, whatever else is in them is refused.
 */
#ifndef TUTTI_SAVE_PT_H
#define TUTTI_SAVE_PT_H

#include "save/safetensors.h"

// Does a file begin as torch.save() begins one, now or before version 1.6?
bool tti_is_pt(const void *head, size_t bytes);
/*
 * The tensors of a file as a table in memory, sorted by name, with metadata format: pt; closed as
 * one of safetensors. *data is their elements, free with tti_free().
 */
tt_status tti_pt_read(tt_ctx *ctx, const char *path, tti_safetensors *out, char **data) TTI_CHECKED;

#endif
