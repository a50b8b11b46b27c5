/*
 * source.h - what the fuzzers of data files share: whatever the bytes are, opening ends and gives a
 * source or an error; a source's records can be read; nothing leaks.
 */
#ifndef TUTTI_FUZZ_SOURCE_H
#define TUTTI_FUZZ_SOURCE_H

#include "data/bytes.h"
#include "fuzz.h"

typedef tt_status fuzz_open_fn(tt_ctx *ctx, tti_bytes *b, int choice, tt_source *out);

// Reads a record; what cannot be known before may still be wrong in it.
static void fuzz_record(tt_ctx *ctx, const tt_source *s, int64_t i, void *const *out)
{
    if (s->read(ctx, s->self, i, out) == TT_OK)
        return;
    expect(tt_last_error(ctx).message[0] != '\0');
    tt_clear_error(ctx);
}

// A few records, each field to a block of its own size.
static void fuzz_read(tt_ctx *ctx, const tt_source *s)
{
    void *out[TT_MAX_FIELDS] = {NULL};
    for (int f = 0; f < s->n_fields; f++) {
        size_t n = (size_t)tt_shape_count(&s->fields[f].shape);
        out[f] = malloc(n * tt_dtype_bytes(s->fields[f].dtype));
        expect(out[f] != NULL);
    }
    for (int64_t i = 0; i < s->count && i < 8; i++)
        fuzz_record(ctx, s, i, out);
    if (s->count > 8)
        fuzz_record(ctx, s, s->count - 1, out);
    for (int f = 0; f < s->n_fields; f++)
        free(out[f]);
}

static void fuzz_source(const uint8_t *data, size_t size, int choice, fuzz_open_fn *open)
{
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    tti_bytes b;
    tt_source s = {0};
    expect(tti_bytes_memory(ctx, "fuzz", data, size, &b) == TT_OK);
    if (open(ctx, &b, choice, &s) == TT_OK) {
        fuzz_read(ctx, &s);
        s.close(ctx, s.self);
    } else {
        expect(tt_last_error(ctx).message[0] != '\0');
        tt_clear_error(ctx);
    }
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
}

#endif
