/*
 * npy.c - fuzzes the readers of NumPy's arrays and archives.
 */
#include "data/npy.h"
#include "source.h"

static tt_status open_npy(tt_ctx *ctx, tti_bytes *b, int choice, tt_source *out)
{
    tti_bytes y;
    if (choice == 2)
        return tti_npz_source(ctx, b, "", "", out);
    if (choice == 0)
        return tti_npy_source(ctx, b, NULL, NULL, out);
    if (tti_bytes_part(ctx, b, "target", 0, b->n, &y) != TT_OK)
        return TT_ENOMEM;
    return tti_npy_source(ctx, b, &y, NULL, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int choice = 0; choice < 3; choice++)
        fuzz_source(data, size, choice, open_npy);
    return 0;
}
