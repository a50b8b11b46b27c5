/*
 * golden.c - ten training steps of three models against PyTorch. tests/golden/make.py wrote the
 * files: losses of every step and the weights after the last. Initial weights and batches are made
 * here by the same formula from names, so nothing else is stored.
 */
#include "../test.h"
#include "save/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS       10
#define MAX_WEIGHTS 64

typedef struct golden {
    const char *name;                // of model: names of batches begin with it
    tt_model *(*build)(tt_ctx *ctx); //
    int64_t rows;
    int64_t x_size, y_size; // elements of a row
    int32_t x_below;        // x has classes below it; 0: numbers
    int32_t y_below;
} golden;

// ---- the models, as make.py has them ---------------------------------------------------------

static tt_model *build_mlp(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {64});
    tt_layer_dense(m, .units = 48, .act = TT_RELU, .name = "hidden");
    tt_layer_dense(m, .units = 10, .name = "out");
    return m;
}

static tt_model *build_cnn(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {12, 10, 3});
    tt_layer_conv2d(m, .filters = 8, .padding = TT_SAME, .act = TT_RELU, .name = "first");
    tt_layer_conv2d(m, .filters = 16, .act = TT_RELU, .name = "second");
    tt_layer_max_pool2d(m);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10, .name = "out");
    return m;
}

static tt_model *build_gpt(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {16}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 2, .heads = 2, .width = 32, .vocab = 23);
    return m;
}

static const golden mlp = {"mlp", build_mlp, 20, 64, 1, 0, 10};
static const golden cnn = {"cnn", build_cnn, 12, 12 * 10 * 3, 1, 0, 10};
static const golden gpt = {"gpt", build_gpt, 6, 16, 16, 23, 23};

// ---- numbers from names ----------------------------------------------------------------------

static uint64_t fnv1a(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static void fill_weight(const tt_weight_info *w, float *out)
{
    int64_t n = tt_shape_count(&w->shape);
    size_t length = strlen(w->name);
    double low = 0.9, high = 1.1;
    if (w->shape.rank > 1) {
        high = 1 / sqrt((double)(n / w->shape.dim[w->shape.rank - 1]));
        low = -high;
    } else if (length > 5 && strcmp(w->name + length - 5, ".bias") == 0) {
        low = -0.1, high = 0.1;
    }
    test_fill(out, n, fnv1a(w->name), low, high);
}

// Field x or y of a step's batch, n numbers: f32, or classes as i32.
static void *make_field(const golden *g, char field, int step, int64_t n, int32_t below)
{
    char name[32];
    float *u = malloc(sizeof(*u) * (size_t)n);
    int32_t *classes = malloc(sizeof(*classes) * (size_t)n);
    snprintf(name, sizeof(name), "%s.%c.%d", g->name, field, step);
    test_fill(u, n, fnv1a(name), below == 0 ? -1 : 0, below == 0 ? 1 : below);
    for (int64_t i = 0; below > 0 && i < n; i++)
        classes[i] = u[i] < (float)below ? (int32_t)u[i] : below - 1;
    free(below == 0 ? (void *)classes : (void *)u);
    return below == 0 ? (void *)u : (void *)classes;
}

// ---- training and comparing ------------------------------------------------------------------

static size_t weight_bytes(const tt_weight_info *w)
{
    return (size_t)tt_shape_count(&w->shape) * sizeof(float);
}

static tt_tensor *variable_of(tt_model *m, const tt_weight_info *w)
{
    tt_tensor *var = tt_graph_find(tt_model_get_train_graph(m), w->name);
    ck_assert_msg(var != NULL, "the training graph has no variable '%s'", w->name);
    return var;
}

static void set_weights(tt_model *m, const tt_weight_info *weights, int n)
{
    for (int i = 0; i < n; i++) {
        float *value = malloc(weight_bytes(&weights[i]));
        fill_weight(&weights[i], value);
        CHECK_OK(tt_set_variable(tt_model_get_session(m), variable_of(m, &weights[i]), value,
                                 weight_bytes(&weights[i])));
        free(value);
    }
}

static void check_losses(tt_model *m, const golden *g, const char *expected)
{
    void *x[2], *y[2];
    for (int i = 0; i < 2; i++) { // two batches, seen in turn
        x[i] = make_field(g, 'x', i, g->rows * g->x_size, g->x_below);
        y[i] = make_field(g, 'y', i, g->rows * g->y_size, g->y_below);
    }
    for (int step = 0; step < STEPS; step++) {
        char *end;
        double loss = strtod(expected, &end);
        ck_assert_msg(end != expected, "the file has only %d losses", step);
        expected = end;
        tt_batch_data batch = {.rows = g->rows, .fields = {x[step % 2], y[step % 2]}};
        tt_progress p;
        CHECK_OK(tt_train_step(m, &batch, &p));
        ck_assert_msg(fabs(p.step_loss - loss) <= 1e-5 * loss, "step %d: loss %.9g, PyTorch %.9g",
                      step, p.step_loss, loss);
    }
    for (int i = 0; i < 2; i++)
        free(x[i]), free(y[i]);
}

// The norm of the difference over the norm of what PyTorch has.
static double distance(const float *a, const float *b, int64_t n)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(difference / norm);
}

static void check_weights(tt_model *m, tti_safetensors *file, const tt_weight_info *weights, int n,
                          double limit)
{
    CHECK_INT(file->n, n);
    for (int i = 0; i < n; i++) {
        const tt_weight_info *w = &weights[i];
        int64_t at = tti_safetensors_find(file, w->name);
        ck_assert_msg(at >= 0, "the file has no '%s'", w->name);
        const tt_shape *shape = &file->tensors[at].shape;
        CHECK_INT(shape->rank, w->shape.rank);
        for (int k = 0; k < shape->rank; k++)
            CHECK_INT(shape->dim[k], w->shape.dim[k]);
        float *ours = malloc(weight_bytes(w)), *theirs = malloc(weight_bytes(w));
        CHECK_OK(
            tt_get_variable(tt_model_get_session(m), variable_of(m, w), ours, weight_bytes(w)));
        CHECK_OK(tti_safetensors_read(file, at, theirs));
        double d = distance(ours, theirs, tt_shape_count(&w->shape));
        ck_assert_msg(d <= limit, "%s: differs by %.2e of its norm, allowed %.0e", w->name, d,
                      limit);
        free(ours), free(theirs);
    }
}

static const char *metadata_of(const tti_safetensors *file, const char *name)
{
    for (char **pair = file->metadata; pair != NULL && pair[0] != NULL; pair += 2)
        if (strcmp(pair[0], name) == 0)
            return pair[1];
    ck_abort_msg("%s has no metadata '%s'", file->path, name);
    return NULL;
}

static void train(const golden *g, const char *kind, const tt_optimizer *optimizer, double limit,
                  int lanes)
{
    tt_ctx *ctx = tt_open(.devices = test_device(), .lanes = lanes, .on_event = test_ignore_event);
    char path[64];
    snprintf(path, sizeof(path), "tests/golden/%s-%s.safetensors", g->name, kind);
    tti_safetensors file;
    CHECK_OK(tti_safetensors_open(ctx, path, &file));

    tt_model *m = g->build(ctx);
    CHECK_OK(tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = optimizer));
    tt_weight_info weights[MAX_WEIGHTS];
    int n = tt_model_weights(m, weights, MAX_WEIGHTS);
    CHECK(n > 0 && n <= MAX_WEIGHTS);
    set_weights(m, weights, n);
    check_losses(m, g, metadata_of(&file, "losses"));
    check_weights(m, &file, weights, n, limit);

    tti_safetensors_close(&file);
    CHECK_OK(tt_close(ctx));
}

// Every number of lanes sums in another order; all must stay as near.
static void golden_test(const golden *g, const char *kind, const tt_optimizer *optimizer,
                        double limit)
{
    train(g, kind, optimizer, limit, 8);
    train(g, kind, optimizer, limit, 1);
}

TEST_BOTH(golden_mlp_sgd)
{
    golden_test(&mlp, "sgd", tt_sgd(.lr = 0.1, .momentum = 0.9), 1e-5);
}

TEST_BOTH(golden_mlp_adam)
{
    golden_test(&mlp, "adam", tt_adam(.lr = 2e-3), 1e-3);
}

TEST_BOTH(golden_cnn_sgd)
{
    golden_test(&cnn, "sgd", tt_sgd(.lr = 0.1, .momentum = 0.9), 1e-5);
}

TEST_BOTH(golden_cnn_adam)
{
    golden_test(&cnn, "adam", tt_adam(.lr = 2e-3), 1e-3);
}

TEST_BOTH(golden_gpt_sgd)
{
    golden_test(&gpt, "sgd", tt_sgd(.lr = 0.1, .momentum = 0.9), 1e-5);
}

TEST_BOTH(golden_gpt_adam)
{
    golden_test(&gpt, "adam", tt_adam(.lr = 2e-3, .eps = 1e-6), 1e-3);
}

TEST_BOTH(golden_gpt_adamw)
{
    golden_test(
        &gpt, "adamw",
        tt_adamw(.lr = 5e-3, .eps = 1e-6, .weight_decay = 0.5, .no_decay = "*.bias, *norm*"), 1e-3);
}
