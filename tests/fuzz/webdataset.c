/*
 * webdataset.c - fuzzes the reader of webdataset files, in two ways to open one.
 */
#include "data/shards.h"
#include "source.h"

static tt_status open_file(tt_ctx *ctx, tti_bytes *b, int choice, tt_source *out)
{
    static const tt_webdataset_opts ways[] = {
        {.file = "", .x = "jpg, png", .y = "cls", .words = "", .size = {6, 7}, .channels = 3},
        {.file = "", .x = "jpg, png", .y = "-", .words = "", .size = {6, 7}, .channels = 1}};
    return tti_webdataset_source(ctx, b, &ways[choice], out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int choice = 0; choice < 2; choice++)
        fuzz_source(data, size, choice, open_file);
    return 0;
}
