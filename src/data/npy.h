/*
 * npy.h - NumPy's array files, and archives of them.
 */
#ifndef TUTTI_DATA_NPY_H
#define TUTTI_DATA_NPY_H

#include "data/bytes.h"
#include <tutti/data.h>

typedef enum tti_npy_type {
    TTI_NPY_F4,
    TTI_NPY_F8,
    TTI_NPY_I4,
    TTI_NPY_I8,
    TTI_NPY_U1,
    TTI_NPY_U2,
    TTI_NPY_B1,
} tti_npy_type;

typedef struct tti_npy {
    tti_bytes bytes;
    tti_npy_type type;
    int64_t element; // bytes of one
    int64_t count;   // records: the first axis
    tt_shape shape;  // of one record
    int64_t n;       // elements of one record
    int64_t header;  // bytes before the first record
} tti_npy;

// Takes b over: checks the header and that the file has the size it says.
tt_status tti_npy_parse(tt_ctx *ctx, tti_bytes *b, tti_npy *out) TTI_CHECKED;
// A tti_promise: bytes of a file that begins so.
tt_status tti_npy_promise(tt_ctx *ctx, const tti_bytes *head, int64_t *size) TTI_CHECKED;

// The first entry of an archive whose name ends so.
tt_status tti_npz_ending(tt_ctx *ctx, const tti_bytes *zip, const char *ending, bool *found,
                         char name[256]) TTI_CHECKED;
// Whether an archive has an array called name.
tt_status tti_npz_has(tt_ctx *ctx, const tti_bytes *zip, const char *name, bool *out) TTI_CHECKED;
// The array called name in an archive: a part of it, or inflated. Its checksum is looked at.
tt_status tti_npz_find(tt_ctx *ctx, const tti_bytes *zip, const char *name,
                       tti_bytes *out) TTI_CHECKED;

/*
 * A source of arrays x and, if it is not NULL, y; takes them and the archive they lie in (NULL:
 * none) over.
 */
tt_status tti_npy_source(tt_ctx *ctx, tti_bytes *x, tti_bytes *y, tti_bytes *zip,
                         tt_source *out) TTI_CHECKED;
// The archive's arrays called x and y; "" is "x", and "y" if there is one.
tt_status tti_npz_source(tt_ctx *ctx, tti_bytes *zip, const char *x, const char *y,
                         tt_source *out) TTI_CHECKED;

// A source of arrays by name, inputs first, then targets.
tt_status tti_npz_fields(tt_ctx *ctx, const char *path, const char *const *names, int n_inputs,
                         int n, tt_source *out) TTI_CHECKED;

#endif
