/*
 * idx.c - fuzzes the reader of IDX files.
 */
#include "data/idx.h"
#include "source.h"

static tt_status open_idx(tt_ctx *ctx, tti_bytes *b, int choice, tt_source *out)
{
    (void)choice;
    return tti_idx_source(ctx, b, NULL, 0, out);
}

// The same file as records and as labels.
static tt_status open_both(tt_ctx *ctx, tti_bytes *b, int choice, tt_source *out)
{
    tti_bytes y;
    if (tti_bytes_part(ctx, b, "labels", 0, b->n, &y) != TT_OK)
        return TT_ENOMEM;
    return tti_idx_source(ctx, b, &y, choice, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_source(data, size, 0, open_idx);
    fuzz_source(data, size, 0, open_both);
    fuzz_source(data, size, 10, open_both);
    return 0;
}
