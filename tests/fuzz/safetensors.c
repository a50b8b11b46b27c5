/*
 * safetensors.c - fuzzes the reader of safetensors headers. Whatever the bytes are, reading ends,
 * gives a table or an error, and leaks nothing; a table that is given is sorted, without holes, and
 * within the file.
 */
#include "save/safetensors.h"
#include "fuzz.h"

static void look(const tti_safetensors *f)
{
    uint64_t bytes = 0, first = f->file_bytes;
    for (int64_t i = 0; i < f->n; i++) {
        const tti_named *t = &f->tensors[i];
        expect(i == 0 || strcmp(f->tensors[i - 1].name, t->name) < 0);
        expect(tti_safetensors_find(f, t->name) == i);
        expect(f->offsets[i] <= f->file_bytes && t->bytes <= f->file_bytes - f->offsets[i]);
        expect((int)t->dtype == TT_N_DTYPES || tt_shape_count(&t->shape) >= 0);
        bytes += t->bytes;
        first = TTI_MIN(first, f->offsets[i]);
    }
    expect(f->n == 0 || first + bytes == f->file_bytes);
    for (char **m = f->metadata; *m != NULL; m += 2)
        expect(m[1] != NULL);
}

static void try(tt_ctx *ctx, const char *data, size_t size, uint64_t file_bytes)
{
    tti_safetensors f;
    tt_status st = tti_safetensors_parse(ctx, "fuzz", data, size, file_bytes, &f);
    expect(st == tt_status_of(ctx));
    if (st == TT_OK) {
        look(&f);
        tti_safetensors_close(&f);
    } else {
        expect(tt_last_error(ctx).message[0] != '\0');
        tt_clear_error(ctx);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    try(ctx, (const char *)data, size, size);

    // Again with a length that fits the bytes, which a changed file seldom has.
    char *whole = malloc(size + 8);
    size_t skip = size < 8 ? size : 8;
    memcpy(whole + 8, data + skip, size - skip);
    for (int i = 0; i < 8; i++)
        whole[i] = (char)((uint64_t)(size - skip) >> 8 * i);
    for (uint64_t more = 0; more <= 16; more += 4)
        try(ctx, whole, 8 + size - skip, 8 + size - skip + more);
    free(whole);
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
