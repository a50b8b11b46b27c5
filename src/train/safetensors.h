/*
 * safetensors.h - named tensors in one file: a length, a JSON header, the bytes.
 *
 * Files are data from anywhere: the reader accepts only what the format allows (docs/checkpoints.md
 * lists the checks) and bounds every number before it is used.
 */
#ifndef TUTTI_TRAIN_SAFETENSORS_H
#define TUTTI_TRAIN_SAFETENSORS_H

#include "base/base.h"

typedef struct tti_named {
    const char *name;
    tt_dtype dtype;
    tt_shape shape;
    const void *data;
    size_t bytes;
} tti_named;

// Writes tensors sorted by name, durably; metadata is pairs of texts, NULL at the end, or NULL.
// The bytes of the file depend on nothing else. *hash is that of the whole file.
tt_status tti_safetensors_write(tt_ctx *ctx, const char *path, const tti_named *tensors, int64_t n,
                                const char *const *metadata, tt_hash *hash) TTI_CHECKED;

// An open file: its table in memory, elements read on demand.
typedef struct tti_safetensors {
    tt_ctx *ctx;
    char *path;
    int fd;
    int64_t n;
    tti_named *tensors; // sorted by name; data is NULL
    uint64_t *offsets;  // of the elements, in the file
    char **metadata;    // name, text, name, text, ..., NULL
    size_t file_bytes;
} tti_safetensors;
tt_status tti_safetensors_open(tt_ctx *ctx, const char *path, tti_safetensors *out) TTI_CHECKED;
void tti_safetensors_close(tti_safetensors *f);
// Index of a tensor by name; -1 if there is none.
int64_t tti_safetensors_find(const tti_safetensors *f, const char *name);
// Reads all bytes of tensor i; out has room for them.
tt_status tti_safetensors_read(tti_safetensors *f, int64_t i, void *out) TTI_CHECKED;
// The header alone, from memory: what the fuzzer calls. file_bytes is the size of the whole file.
tt_status tti_safetensors_parse(tt_ctx *ctx, const char *path, const char *data, size_t bytes,
                                size_t file_bytes, tti_safetensors *out) TTI_CHECKED;

#endif
