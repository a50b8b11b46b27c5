/*
 * window.h - a long row of symbols as records of context symbols each, and the same one later.
 */
#ifndef TUTTI_DATA_WINDOW_H
#define TUTTI_DATA_WINDOW_H

#include "data/bytes.h"
#include <tutti/data.h>

typedef struct tti_window {
    int64_t first; // of the symbols that are used
    int64_t context, stride;
    int64_t count; // records
} tti_window;

// The part [from, to) of total symbols; fails when it has no record.
tt_status tti_window_init(tt_ctx *ctx, const char *who, int64_t total, double from, double to,
                          int64_t context, int64_t stride, tti_window *out) TTI_CHECKED;
// A source with fields x and y of i32, [context], all below classes.
tt_source tti_window_source(const tti_window *w, int64_t classes);

static inline int64_t tti_window_at(const tti_window *w, int64_t i)
{
    return w->first + i * w->stride;
}

// Symbol j of a record, 0 to context: where it goes.
static inline void tti_window_put(const tti_window *w, void *const *out, int64_t j, int32_t v)
{
    if (j < w->context)
        ((int32_t *)out[0])[j] = v;
    if (j > 0)
        ((int32_t *)out[1])[j - 1] = v;
}

// Rows of the options that say which records there are, and which part of the "what" is used.
// clang-format off
#define TTI_WINDOW_ROWS(type)                                                                      \
    {"context", TT_OPT_INT32, NULL, "number of tokens per record", offsetof(type, context), 1,     \
     INT32_MAX / 2, NULL},                                                                         \
    {"stride", TT_OPT_INT32, "0",                                                                  \
     "number of tokens from the start of one record to the start of the next; default: context",   \
     offsetof(type, stride), 0, INT32_MAX, NULL}
#define TTI_WINDOW_PART_ROWS(type, what)                                                           \
    {"from", TT_OPT_FLOAT, "0", "start of the part of the " what " to use, as a fraction",         \
     offsetof(type, from), 0, 1, NULL},                                                            \
    {"to", TT_OPT_FLOAT, "1", "end of the part of the " what " to use, as a fraction",             \
     offsetof(type, to), 0, 1, NULL}
// clang-format on

#endif
