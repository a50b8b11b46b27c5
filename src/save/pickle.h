/*
 * pickle.h - the part of Python's pickles that torch.save() writes for a dictionary of tensors.
 *
 * Pickles are programs for a small machine that can call anything. This one knows a list of
 * operations and of names, builds values out of its own memory, and calls nothing: whatever else a
 * file asks for is refused by its name.
 */
#ifndef TUTTI_SAVE_PICKLE_H
#define TUTTI_SAVE_PICKLE_H

#include "base/base.h"

// A tensor as a pickle tells it; its elements are in a storage of another entry of the archive.
typedef struct tti_pickled {
    char *name;
    const char *type; // of the storage: "FloatStorage"
    char *key;        // of the storage: "0"
    int64_t numel;    // elements of the storage
    int64_t offset;   // of the first element
    int rank;
    int64_t shape[TT_MAX_RANK], stride[TT_MAX_RANK];
} tti_pickled;

typedef struct tti_pickle {
    tti_pickled *tensors; // in the order of the file
    int64_t n;
    int64_t others; // entries of the dictionary that are no tensors
} tti_pickle;

/*
 * Reads a pickle: a dictionary with tensors, or one that has such a dictionary by a usual name
 * ("state_dict", "model_state_dict", "model"). file is for messages.
 */
tt_status tti_pickle_read(tt_ctx *ctx, const char *file, const void *data, size_t bytes,
                          tti_pickle *out) TTI_CHECKED;
void tti_pickle_free(tt_ctx *ctx, tti_pickle *p);

#endif
