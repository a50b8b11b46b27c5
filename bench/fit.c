/*
 * fit.c - tt_fit() on arrays in memory: how long a fit takes, for bench/python_fit, which runs the
 * same from Python. fit WORK ROWS BATCH EPOCHS [threads] prints the seconds of the fit, its steps
 * and the hash of the weights. Works: tiny (one dense layer of 1 x 1), mlp (784-128-10), cnn (two
 * convolutions, two dense layers).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

static void build(tt_model *m, const char *work)
{
    if (strcmp(work, "tiny") == 0) {
        tt_layer_dense(m, .units = 1);
        return;
    }
    if (strcmp(work, "cnn") == 0) {
        tt_layer_conv2d(m, .filters = 8, .act = TT_RELU);
        tt_layer_conv2d(m, .filters = 16, .act = TT_RELU);
        tt_layer_max_pool2d(m);
    }
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 128, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
}

// The same numbers as in bench/python_fit: (i * 7919 mod 256) / 256, labels i mod 10.
int main(int argc, char **argv)
{
    const char *work = argc > 1 ? argv[1] : "mlp";
    int64_t rows = argc > 2 ? atoll(argv[2]) : 4096, batch = argc > 3 ? atoll(argv[3]) : 32;
    int64_t epochs = argc > 4 ? atoll(argv[4]) : 1;
    bool tiny = strcmp(work, "tiny") == 0;
    int64_t width = tiny ? 1 : 784;
    float *x = malloc((size_t)(rows * width) * sizeof(*x)), *y = malloc((size_t)rows * sizeof(*y));
    int32_t *label = malloc((size_t)rows * sizeof(*label));
    if (x == NULL || y == NULL || label == NULL)
        return 1;
    for (int64_t i = 0; i < rows * width; i++)
        x[i] = (float)(i * 7919 % 256) / 256.0F;
    for (int64_t i = 0; i < rows; i++) {
        y[i] = 0.5F;
        label[i] = (int32_t)(i % 10);
    }
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .threads = argc > 5 ? atoi(argv[5]) : 0);
    tt_model *m =
        tiny ? tt_sequential(ctx, .input = {1}) : tt_sequential(ctx, .input = {28, 28, 1});
    build(m, work);
    tt_data *d = tiny ? tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(1),
                                  .y_shape = TT_SHAPE(1), .count = rows, .batch = batch)
                      : tt_memory(ctx, .x = x, .y = label, .x_shape = TT_SHAPE(28, 28, 1),
                                  .y_dtype = TT_I32, .count = rows, .batch = batch);
    tt_compile(m, .loss = tiny ? TT_MSE : TT_CROSS_ENTROPY,
               .optimizer = tiny ? tt_sgd(.lr = 0.01F) : tt_adam(.lr = 1e-3F));
    tt_fit(m, d, .epochs = epochs);
    tt_fit_report r;
    if (tt_fit_report_get(m, &r) == TT_OK)
        printf("%.6f %lld %016llx%016llx\n", r.seconds, (long long)r.steps,
               (unsigned long long)r.weights.high, (unsigned long long)r.weights.low);
    tt_status st = tt_close(ctx);
    free(x);
    free(y);
    free(label);
    return st == TT_OK ? 0 : 1;
}
