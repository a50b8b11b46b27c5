/*
 * sparse_rows.h - a sum over rows of the batch that touches few rows of a table, kept as those.
 *
 * The gradient of an embedding is zero but for the rows that ids name. A partial sum can be
 * the list of them: in memory `most` rows of `width` numbers, then `most` tti_sparse_row, of which
 * the first n are used, then n. Row i belongs to touch i. They ascend by id, and within an id by
 * part, the maximal sub-tree of lanes whose sum the row is. Every position of ids is in
 * one part, so there are never more than ids. What is not listed is zero.
 */
#ifndef TUTTI_OP_SPARSE_ROWS_H
#define TUTTI_OP_SPARSE_ROWS_H

#include <tutti/extend.h>

typedef struct tti_sparse_row {
    int32_t id, part;
} tti_sparse_row;

static inline size_t tti_sparse_rows_list_at(int64_t most, int64_t width, size_t item)
{
    return ((size_t)(most * width) * item + 7) & ~(size_t)7;
}

// Of the whole value; item is 4 or 8.
static inline size_t tti_sparse_rows_bytes(int64_t most, int64_t width, size_t item)
{
    return tti_sparse_rows_list_at(most, width, item) + (size_t)most * sizeof(tti_sparse_row) + 8;
}

static inline tti_sparse_row *tti_sparse_rows_list(const void *data, int64_t most, int64_t width,
                                                   size_t item)
{
    return (tti_sparse_row *)((char *)data + tti_sparse_rows_list_at(most, width, item));
}

static inline int32_t *tti_sparse_rows_n(const void *data, int64_t most, int64_t width, size_t item)
{
    return (int32_t *)(tti_sparse_rows_list(data, most, width, item) + most);
}

// The kernel that makes output 0 of n in this form, most being the number of ids (input 1) and the
// table [places, ...]; NULL: it has none there.
const tt_kernel *tti_sparse_rows_kernel(const tt_node *n, tt_backend_id backend);

#endif
