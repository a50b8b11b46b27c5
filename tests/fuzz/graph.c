/*
 * graph.c - fuzzes the reader of graph texts. Whatever the bytes are, reading ends, gives a graph
 * or an error, and leaks nothing; and what was read prints to a text that reads back to itself.
 */
#include "fuzz.h"
#include "graph/text.h"

// A short text may ask for a large constant; a fuzzer would only wait for it.
#define DATA_LIMIT ((size_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;

    tt_graph *g = tti_graph_parse(ctx, (const char *)data, size, DATA_LIMIT);
    expect((g != NULL) == (tt_status_of(ctx) == TT_OK));
    if (g != NULL) {
        char *text = tt_graph_print(g);
        expect(text != NULL);
        tt_graph *again = tt_graph_parse(ctx, text, strlen(text));
        expect(again != NULL);
        char *same = tt_graph_print(again);
        expect(same != NULL && strcmp(text, same) == 0);
        tt_string_free(ctx, text);
        tt_string_free(ctx, same);
        tt_graph_free(again);
        tt_graph_free(g);
    } else {
        expect(tt_last_error(ctx).message[0] != '\0');
        tt_clear_error(ctx);
    }
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
