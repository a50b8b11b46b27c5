/*
 * job.c - fuzzes the reader of jobs. Whatever the bytes are, reading ends, gives a job or an error,
 * and leaks nothing; and what was read prints to a text that reads back to itself.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;

    tt_job *j = tt_job_parse(ctx, (const char *)data, size, "fuzz.yaml");
    expect((j != NULL) == (tt_status_of(ctx) == TT_OK));
    if (j != NULL) {
        char *text = tt_job_print(j);
        expect(text != NULL);
        tt_job *again = tt_job_parse(ctx, text, strlen(text), "again.yaml");
        expect(again != NULL);
        char *same = tt_job_print(again);
        expect(same != NULL && strcmp(text, same) == 0);
        tt_string_free(ctx, text);
        tt_string_free(ctx, same);
        tt_job_free(again);
        tt_job_free(j);
    } else {
        expect(tt_last_error(ctx).message[0] != '\0');
        tt_clear_error(ctx);
    }
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
