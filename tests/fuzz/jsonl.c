/*
 * jsonl.c - fuzzes the reader of jsonl files, in two ways to open one.
 */
#include "data/shards.h"
#include "source.h"

static tt_status open_file(tt_ctx *ctx, tti_bytes *b, int choice, tt_source *out)
{
    static const tt_jsonl_opts ways[] = {
        {.file = "", .y = "y", .x = "", .words = ""},
        {.file = "", .y = "k", .x = "", .words = "", .classes = true}};
    return tti_jsonl_source(ctx, b, &ways[choice], out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int choice = 0; choice < 2; choice++)
        fuzz_source(data, size, choice, open_file);
    return 0;
}
