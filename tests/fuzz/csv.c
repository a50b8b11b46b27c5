/*
 * csv.c - fuzzes the reader of CSV files, in several ways to open one.
 */
#include "data/csv.h"
#include "source.h"

static tt_status open_csv(tt_ctx *ctx, tti_bytes *b, int choice, tt_source *out)
{
    static const tt_csv_opts ways[] = {
        {.x = "", .y = "", .words = "", .comma = ","},
        {.x = "", .y = "", .words = "", .comma = ",", .no_header = true},
        {.x = "", .y = "", .words = "", .comma = ",", .classes = true},
        {.x = "a, b", .y = "-", .words = "", .comma = ",", .first = 1, .count = 2},
        {.x = "a", .y = "b", .words = "cat, dog", .comma = ";"},
        {.x = "",
         .y = "-",
         .words = "",
         .comma = ",",
         .categories = "a",
         .missing = TT_MISSING_NAN,
         .decimal = ",",
         .quote = "'"},
        {.x = "a",
         .y = "b",
         .words = "",
         .comma = ",",
         .dates = "a",
         .window = 2,
         .horizon = 1,
         .stride = 1},
    };
    return tti_csv_source(ctx, b, &ways[choice], out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int choice = 0; choice < 7; choice++)
        fuzz_source(data, size, choice, open_csv);
    return 0;
}
