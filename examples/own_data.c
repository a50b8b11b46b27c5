/*
 * own_data.c - a source of one's own: records come from a function, and everything else, order,
 * batches, reading ahead, transforms, training, is as with the library's sources.
 */
#include <stdio.h>
#include <tutti/tutti.h>

// Record i: two numbers, and whether their sum is above one.
static tt_status read_pair(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    float *x = out[0];
    (void)ctx, (void)self;
    x[0] = (float)(i * 7919 % 1000) / 1000;
    x[1] = (float)(i * 104729 % 997) / 997;
    *(int32_t *)out[1] = x[0] + x[1] > 1;
    return TT_OK;
}

int main(void)
{
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_source pairs = {
        .count = 4000,
        .n_fields = 2,
        .fields = {{.name = "x", .dtype = TT_F32, .shape = TT_SHAPE(2)},
                   {.name = "y", .dtype = TT_I32, .classes = 2}},
        .read = read_pair,
    };
    tt_data *data = tt_data_new(ctx, &pairs, .batch = 100, .workers = 2);
    tt_transform(data, "normalise", .mean = 0.5, .scale = 0.29);
    tt_transform(data, "one_hot", .field = "y");

    int64_t rows = 0, above = 0;
    tt_batch_data batch;
    tt_data_start(data, 0, 0);
    while (rows < tt_data_count(data) && tt_data_next(data, &batch) == TT_OK) {
        const float *y = batch.fields[1]; // [rows, 2]
        for (int64_t i = 0; i < batch.rows; i++)
            above += y[2 * i + 1] == 1;
        rows += batch.rows;
    }
    tt_data_stop(data);
    printf("one epoch: %lld records, %lld of them above one\n", (long long)rows, (long long)above);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
