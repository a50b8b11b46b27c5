/*
 * tokenizer.c - fuzzes the reader of tokenizer.json. Whatever the bytes are, reading ends and leaks
 * nothing; what was read gives tokens that it knows, for any text.
 */
#include "data/bpe.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    tti_bpe t;
    tt_status st = tti_bpe_parse(ctx, "fuzz", (const char *)data, size, &t);
    expect(st == tt_status_of(ctx));
    if (st == TT_OK) {
        int32_t *ids = NULL;
        int64_t n = 0, cap = 0;
        size_t text = size < 2000 ? size : 2000;
        tti_text back = {.ctx = ctx};
        expect(tti_bpe_encode(&t, (const char *)data, text, &ids, &n, &cap) == TT_OK);
        for (int64_t i = 0; i < n; i++)
            expect(ids[i] >= 0 && ids[i] < t.n);
        tti_bpe_decode(&t, ids, n, &back);
        tti_text_free(&back);
        tti_free(ctx, ids);
        tti_bpe_free(&t);
    } else {
        expect(tt_last_error(ctx).message[0] != '\0');
        tt_clear_error(ctx);
    }
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
