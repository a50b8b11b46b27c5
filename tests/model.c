/*
 * model.c - builds and steps the graphs of model.h.
 */
#include "model.h"
#include <math.h>
#include <stdio.h>

static tt_tensor *weight(test_model *m, tt_init_kind init, tt_shape shape)
{
    tt_tensor *w = tt_variable(m->g, .shape = shape, .init = {.kind = init});
    m->weights[m->n++] = w;
    return w;
}

bool test_model_build(test_model *m, tt_ctx *ctx, const char *dense, const char *conv,
                      const char *join)
{
    tt_graph *g = tt_graph_new(ctx);
    *m = (test_model){.g = g};
    m->x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, MODEL_IN), .name = "x");
    m->labels = tt_feed(g, .dtype = TT_I32, .shape = TT_SHAPE(TT_BATCH), .name = "labels");

    tt_device_push(g, dense);
    tt_tensor *w1 = weight(m, TT_INIT_GLOROT_UNIFORM, TT_SHAPE(MODEL_IN, 24));
    tt_tensor *a =
        tt_matmul(g, m->x, w1, .bias = weight(m, TT_INIT_ZEROS, TT_SHAPE(24)), .act = TT_RELU);
    tt_device_pop(g);

    tt_device_push(g, conv);
    tt_tensor *image = tt_reshape(g, m->x, TT_SHAPE(TT_BATCH, MODEL_SIDE, MODEL_SIDE, 1));
    tt_tensor *w2 = weight(m, TT_INIT_HE_NORMAL, TT_SHAPE(3, 3, 1, 4));
    tt_tensor *c = tt_conv2d(g, image, w2, .padding = TT_SAME, .act = TT_RELU);
    c = tt_flatten(g, tt_max_pool2d(g, c, .size = {2, 2}));
    tt_device_pop(g);

    tt_device_push(g, join);
    tt_tensor *both = tt_concat(g, (tt_tensor *[]){a, c}, 2, -1);
    tt_tensor *w3 = weight(m, TT_INIT_GLOROT_NORMAL, TT_SHAPE(24 + MODEL_IN, MODEL_CLASSES));
    tt_tensor *logits = tt_matmul(g, both, w3);
    m->loss = tt_mean(g, tt_cross_entropy(g, logits, m->labels));
    tt_device_pop(g);

    if (tt_grad(g, m->loss, NULL, m->n, m->weights, m->grads) != TT_OK)
        return false;
    for (int i = 0; i < m->n; i++)
        m->updates[i] = tt_update_adam(g, m->weights[i], m->grads[i]);
    return tt_status_of(ctx) == TT_OK;
}

double test_model_step(const test_model *m, tt_session *s, int64_t step, int64_t rows)
{
    float x[64 * MODEL_IN], loss = NAN;
    int32_t labels[64];
    test_fill(x, rows * MODEL_IN, (uint64_t)step + 1, -1, 1);
    for (int64_t i = 0; i < rows; i++)
        labels[i] = (int32_t)((i * 7 + step) % MODEL_CLASSES);
    tt_feed_value feeds[] = {
        {m->x, x, TT_SHAPE(rows, MODEL_IN), TT_F32},
        {m->labels, labels, TT_SHAPE(rows), TT_I32},
    };
    tt_fetch fetch = {m->loss, &loss, sizeof(loss)};
    tt_status st = tt_run(s, .feeds = feeds, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1,
                          .targets = m->updates, .n_targets = m->n, .step = step, .lr = 0.01f);
    return st == TT_OK ? loss : NAN;
}

tt_model *test_deep_model(tt_ctx *ctx, int filters, int pins)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    for (int i = 0; i < 8; i++) {
        char device[32];
        snprintf(device, sizeof(device), "local:%d", i * pins / 8);
        if (pins > 0)
            tt_device_push(tt_model_get_graph(m), device);
        tt_layer_conv2d(m, .filters = filters, .kernel = {3, 3}, .padding = TT_SAME,
                        .act = TT_RELU);
        if (pins > 0)
            tt_device_pop(tt_model_get_graph(m));
    }
    tt_layer_max_pool2d(m, .size = {4, 4});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    return m;
}
