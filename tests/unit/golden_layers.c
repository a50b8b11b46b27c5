/*
 * golden_layers.c - a dense layer and one more, four steps, against PyTorch: each layer as a job
 * file writes it. tests/golden/layers.py wrote golden_layers.inc.
 */
#include "layer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 4

static const struct row {
    const char *text; // kind key=value ...
    int64_t input[4]; // of a record
    double bound;     // of its numbers
    double losses[STEPS];
} rows[] = {
#include "golden_layers.inc"
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

static uint64_t fnv1a(const char *text, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

static tt_tensor *append(tt_model *m, const char *text)
{
    char opts[1024] = {0}, copy[256], *rest = NULL;
    snprintf(copy, sizeof(copy), "%s", text);
    const char *kind = strtok_r(copy, " ", &rest);
    const tti_layer_def *def = tti_layer_find(kind);
    ck_assert_msg(def != NULL, "there is no layer '%s'", kind);
    CHECK_OK(tti_options_default(m->ctx, def->options, opts));
    for (char *pair; (pair = strtok_r(NULL, " ", &rest)) != NULL;) {
        char *value = strchr(pair, '=');
        *value++ = '\0';
        CHECK_OK(tti_option_set(m->ctx, def->options, opts, kind, pair, value));
    }
    return tti_layer_add(m, def, opts);
}

static void set_weights(tt_model *m)
{
    tt_weight_info all[32];
    int n_all = tt_model_weights(m, all, 32);
    for (int i = 0; i < n_all; i++) {
        int64_t n = tt_shape_count(&all[i].shape);
        size_t length = strlen(all[i].name);
        double low = 0.9, high = 1.1;
        if (all[i].shape.rank > 1) {
            high = 1 / sqrt((double)(n / all[i].shape.dim[all[i].shape.rank - 1]));
            low = -high;
        } else if (length > 5 && strcmp(all[i].name + length - 5, ".bias") == 0) {
            low = -0.1, high = 0.1;
        }
        float *w = test_zeros((size_t)n, sizeof(*w));
        test_fill(w, n, fnv1a(all[i].name, length), low, high);
        tt_tensor *var = tt_graph_find(tt_model_get_train_graph(m), all[i].name);
        CHECK_OK(tt_set_variable(tt_model_get_session(m), var, w, (size_t)n * sizeof(*w)));
    }
}

static void train(const struct row *row)
{
    tt_ctx *ctx = tt_open(.devices = test_device(), .on_event = test_ignore_event);
    tt_sequential_opts o = {.opts_size = sizeof(o)};
    memcpy(o.input, row->input, sizeof(row->input));
    tt_model *m = tt_sequential_with(ctx, &o);
    tt_layer_dense(m, .units = 6);
    tt_tensor *y = append(m, row->text);
    ck_assert_msg(y != NULL, "%s: %s", row->text, tt_last_error(ctx).message);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.1)));
    set_weights(m);
    int64_t nx = 8, ny = -8 * tt_shape_count(&y->shape);
    for (int i = 0; i < 4 && row->input[i] > 0; i++)
        nx *= row->input[i];
    float *x = test_zeros((size_t)nx, sizeof(*x)), *t = test_zeros((size_t)ny, sizeof(*t));
    test_fill(x, nx, fnv1a(row->text, strlen(row->text)), -row->bound, row->bound);
    test_fill(t, ny, fnv1a(row->text, strcspn(row->text, " ")), -1, 1);
    for (int step = 0; step < STEPS; step++) {
        tt_batch_data batch = {.rows = 8, .fields = {x, t}};
        tt_progress p;
        ck_assert_msg(tt_train_step(m, &batch, &p) == TT_OK, "%s: %s", row->text,
                      tt_last_error(ctx).message);
        ck_assert_msg(fabs(p.step_loss - row->losses[step]) <= 1e-5 * row->losses[step],
                      "%s: step %d: loss %.9g, PyTorch %.9g", row->text, step, p.step_loss,
                      row->losses[step]);
    }
    CHECK_OK(tt_close(ctx));
}

// In three tests, so that none is long where GPUs are emulated.
static void train_third(int which)
{
    for (int i = N_ROWS * which / 3; i < N_ROWS * (which + 1) / 3; i++)
        train(&rows[i]);
}
TEST_BOTH(golden_layers_first)
{
    train_third(0);
}
TEST_BOTH(golden_layers_second)
{
    train_third(1);
}
TEST_BOTH(golden_layers_third)
{
    train_third(2);
}
