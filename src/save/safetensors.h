/*
 * safetensors.h - named tensors in one file: a length, a JSON header, the bytes.
 *
 * Files are data from anywhere: the reader accepts only what the format allows (docs/checkpoints.md
 * lists the checks) and bounds every number before it is used.
 */
#ifndef TUTTI_SAVE_SAFETENSORS_H
#define TUTTI_SAVE_SAFETENSORS_H

#include "base/base.h"
#include "base/file.h"

#define TTI_HEADER_MAX 100000000 // bytes of a header; what the format allows

typedef struct tti_named {
    const char *name;
    tt_dtype dtype;
    tt_shape shape;
    const void *data;
    size_t bytes;
} tti_named;

/*
 * Writes tensors durably, replacing what is there; metadata is pairs of texts, NULL at the end, or
 * NULL. The header is sorted by name; elements follow by size, the largest first, then by name, so
 * that all are aligned. The bytes depend on nothing else. *hash is that of the whole file.
 */
tt_status tti_safetensors_write(tt_ctx *ctx, const char *path, const tti_named *tensors, int64_t n,
                                const char *const *metadata, tt_hash *hash) TTI_CHECKED;
// The same into a writer that is open.
tt_status tti_safetensors_put(tti_writer *w, const tti_named *tensors, int64_t n,
                              const char *const *metadata) TTI_CHECKED;

/*
 * An open file: its table in memory, elements read on demand. A file may hold element types and
 * ranks that Tutti does not have: such a tensor has the type TT_N_DTYPES and no shape here, and
 * cannot be read.
 */
typedef struct tti_safetensors {
    tt_ctx *ctx;
    char *path;
    int fd; // -1: parsed from memory
    int64_t n;
    tti_named *tensors; // sorted by name; data is NULL
    uint64_t *offsets;  // of the elements, in the file
    const char **types; // as the file says: "F32", "F8_E4M3"
    int64_t *dims;      // of all tensors: those of i from first_dim[i] up to first_dim[i + 1]
    int64_t *first_dim;
    char **metadata; // name, text, name, text, ..., NULL; sorted by name
    uint64_t file_bytes;
    char *names; // what the texts above point into
} tti_safetensors;
tt_status tti_safetensors_open(tt_ctx *ctx, const char *path, tti_safetensors *out) TTI_CHECKED;
void tti_safetensors_close(tti_safetensors *f);
// Index of a tensor by name; -1 if there is none.
int64_t tti_safetensors_find(const tti_safetensors *f, const char *name);
// Fails, naming the tensor, if it is of a type or rank that Tutti does not have.
tt_status tti_safetensors_usable(const tti_safetensors *f, int64_t i) TTI_CHECKED;
// Reads all bytes of tensor i; out has room for them.
tt_status tti_safetensors_read(tti_safetensors *f, int64_t i, void *out) TTI_CHECKED;
// The table of a file of which at least the header is in memory; closed as an open one.
tt_status tti_safetensors_parse(tt_ctx *ctx, const char *path, const char *data, size_t bytes,
                                uint64_t file_bytes, tti_safetensors *out) TTI_CHECKED;

// The format's name of an element type.
const char *tti_safetensors_type(tt_dtype t);

#endif
