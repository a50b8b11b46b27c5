/*
 * idx.h - IDX files: two zero bytes, a type, the number of axes, the axes as 32-bit numbers, then
 * the elements; everything big-endian.
 */
#ifndef TUTTI_DATA_IDX_H
#define TUTTI_DATA_IDX_H

#include "data/bytes.h"
#include <tutti/data.h>

typedef struct tti_idx {
    tti_bytes bytes;
    int type;        // the third byte: 8 is u8
    size_t element;  // bytes of one
    int64_t count;   // records
    tt_shape shape;  // of one record
    int64_t n;       // elements of one record
    int64_t header;  // bytes before the first record
    float unit[256]; // u8 as numbers in [0, 1]: a look-up is quicker than a division
} tti_idx;

// Takes b over: checks the header and that the file has the size it says.
tt_status tti_idx_parse(tt_ctx *ctx, tti_bytes *b, tti_idx *out) TTI_CHECKED;
// The elements of record i as numbers; u8 in [0, 1].
tt_status tti_idx_floats(tt_ctx *ctx, const tti_idx *f, int64_t i, float *out) TTI_CHECKED;
// The one element of record i of a file of integers.
tt_status tti_idx_label(tt_ctx *ctx, const tti_idx *f, int64_t i, int32_t *out) TTI_CHECKED;
bool tti_idx_has_labels(const tti_idx *f); // one integer a record
// One more than the largest label, 0 if some are negative; above most, if that is not 0: an error.
tt_status tti_idx_classes(tt_ctx *ctx, const tti_idx *f, int64_t most, int64_t *out) TTI_CHECKED;
/*
 * A source of two files, y may be NULL. Takes both over. classes: labels must be below it; 0:
 * whatever they are.
 */
tt_status tti_idx_source(tt_ctx *ctx, tti_bytes *x, tti_bytes *y, int64_t classes,
                         tt_source *out) TTI_CHECKED;
// The same of files by name.
tt_status tti_idx_open(tt_ctx *ctx, const char *x, const char *y, int64_t classes,
                       tt_source *out) TTI_CHECKED;

#endif
