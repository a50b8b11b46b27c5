// use_model.c - a trained model in another program: loaded whole, asked what it takes and gives,
// and run on new records. A path names the model (a run's folder, a model.tutti); without one a
// small one is trained first.
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

#define N 5

// What some other program does, once: no part of it is needed below but the file it writes.
static void train(const char *path)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0");
    tt_data *data = tt_digits(ctx, .count = 2000, .batch = 50);
    tt_transform(data, "normalise", .mean = 0.2, .scale = 0.3);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 32, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 1e-2));
    tt_fit(m, data, .epochs = 2);
    tt_export(m, path);
    tt_close(ctx);
}

static void show(const char *what, const tt_port *p)
{
    char shape[TT_SHAPE_TEXT];
    printf("%-7s %s: %s %s\n", what, p->name, tt_dtype_name(p->dtype),
           tt_shape_text(&p->shape, shape));
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "use_model.tutti";
    if (argc < 2)
        train(path);

    tt_ctx *ctx = tt_open(.devices = "cpu:0");
    tt_model *m = tt_model_load(ctx, path);
    tt_port in, out;
    if (tt_model_input(m, 0, &in) != TT_OK || tt_model_output(m, 0, &out) != TT_OK) {
        tt_close(ctx); // says why
        return 1;
    }
    show("takes", &in);
    show("gives", &out);

    // Records as the training data had them, of any numbers: the model prepares them itself.
    int64_t values = tt_shape_count(&in.raw_shape), classes = tt_shape_count(&out.shape);
    float *x = calloc((size_t)(N * values), sizeof(float));
    float *y = calloc((size_t)(N * classes), sizeof(float));
    for (int64_t i = 0; x != NULL && i < N * values; i++)
        x[i] = (float)(i % 28 > 12 && i % 28 < 16); // a stroke
    if (in.raw_dtype == TT_F32 && out.dtype == TT_F32)
        tt_predict(m, x, N, y, .raw = true);
    for (int i = 0; y != NULL && i < N && tt_status_of(ctx) == TT_OK; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            if (y[i * classes + k] > y[i * classes + best])
                best = k;
        const char *name = tt_model_class(m, 0, best);
        printf("record %d: %s %lld, %.3f\n", i, name != NULL ? name : "class", (long long)best,
               (double)y[i * classes + best]);
    }
    free(x);
    free(y);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
