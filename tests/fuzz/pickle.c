/*
 * pickle.c - fuzzes the reader of torch.save()'s pickles. Whatever the bytes are, reading ends,
 * leaks nothing, and what it gives has names.
 */
#include "save/pickle.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tti_pickle p;
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    tt_status st = tti_pickle_read(ctx, "fuzz", data, size, &p);
    expect(st == tt_status_of(ctx));
    if (st == TT_OK) {
        expect(p.n > 0);
        for (int64_t i = 0; i < p.n; i++)
            expect(p.tensors[i].name != NULL && p.tensors[i].key != NULL &&
                   p.tensors[i].type != NULL);
        tti_pickle_free(ctx, &p);
    } else {
        expect(tt_last_error(ctx).message[0] != '\0');
        tt_clear_error(ctx);
    }
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
