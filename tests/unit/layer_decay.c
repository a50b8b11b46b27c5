/*
 * layer_decay.c - the learning rate of each layer: a step of SGD subtracts the gradient times the
 * layer's factor.
 */
#include "layer.h"

// Weights after one step, all side by side.
static double *step(double layer_decay, const char *freeze)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    for (int i = 0; i < 3; i++)
        tt_layer_dense(m, .units = 4);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .freeze = freeze,
                        .optimizer = tt_sgd(.lr = 0.5, .layer_decay = layer_decay)));
    float *x = test_input(4 * ROWS);
    tt_batch_data batch = {.rows = ROWS, .fields = {x, x}};
    tt_progress p;
    double *out = test_zeros(60, sizeof(*out));
    for (int i = 0, at = 0; i < 6; i++) {
        float after[16];
        int n = i % 2 == 0 ? 16 : 4;
        tt_tensor *var = m->weights[i].train_var;
        size_t bytes = (size_t)n * sizeof(*after);
        if (i == 0)
            CHECK_OK(tt_train_step(m, &batch, &p));
        CHECK_OK(tt_get_variable(tt_model_get_session(m), var, after, bytes));
        for (int k = 0; k < n; k++)
            out[at++] = (double)after[k];
    }
    CHECK_OK(tt_close(ctx));
    return out;
}

TEST(layer_decay_scales_the_rate_of_earlier_layers)
{
    // A rate of zero (all frozen but the last bias) leaves the first weights.
    const double *first = step(0, "dense_1.*, dense_2.*, dense_3.weight");
    const double *full = step(0, NULL), *half = step(0.5, NULL);
    for (int i = 0; i < 56; i++) {
        double factor = i < 20 ? 0.25 : i < 40 ? 0.5 : 1;
        CHECK_NEAR(half[i] - first[i], factor * (full[i] - first[i]), 1e-6);
    }
    CHECK(full[0] != first[0] && full[20] != first[20]);
    // Layers that are frozen do not count.
    const double *part = step(0.5, "dense_2.*");
    for (int i = 0; i < 20; i++)
        CHECK_NEAR(part[i] - first[i], 0.5 * (full[i] - first[i]), 1e-6);
}
