/*
 * manifest.c - fuzzes the reader of manifests, past their checksum. Whatever the bytes are, reading
 * ends and leaks nothing; and what was read prints to a text that reads back to itself.
 */
#include "save/manifest.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tti_manifest m, again;
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;

    tt_status st = tti_manifest_parse(ctx, "fuzz", (const char *)data, size, &m);
    expect(st == tt_status_of(ctx));
    if (st == TT_OK) {
        char *text = tti_manifest_print(ctx, &m);
        expect(text != NULL);
        expect(tti_manifest_read(ctx, "fuzz", text, strlen(text), &again) == TT_OK);
        char *same = tti_manifest_print(ctx, &again);
        expect(same != NULL && strcmp(text, same) == 0);
        tti_free(ctx, text);
        tti_free(ctx, same);
        tti_free(ctx, m.state.job);
        tti_free(ctx, again.state.job);
    } else {
        expect(tt_last_error(ctx).message[0] != '\0');
        tt_clear_error(ctx);
    }
    // A changed text never passes the checksum.
    expect(tti_manifest_read(ctx, "fuzz", (const char *)data, size, &m) != TT_OK || st == TT_OK);
    if (tt_status_of(ctx) == TT_OK)
        tti_free(ctx, m.state.job);
    tt_clear_error(ctx);
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
