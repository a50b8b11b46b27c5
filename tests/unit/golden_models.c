/*
 * golden_models.c - ten training steps of whole models against those of other projects: losses and
 * numbers of parameters, from weights that depend on their names. tests/golden/models.py wrote
 * golden_models.inc.
 */
#include "layer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/use.h>

#define STEPS 10

typedef struct field {
    int64_t shape[4]; // of a record
    int rank;
    int32_t below, least; // whole numbers from least; below 0: numbers from -1 to 1
} field;

static const struct row {
    const char *name, *text; // kind key=value ...
    double rate;
    int64_t rows;
    field inputs[3], target;
    int64_t parameters;
    double losses[STEPS];
} models[] = {
#include "golden_models.inc"
};

static uint64_t fnv1a(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static bool is_there(const field *f)
{
    return f->rank > 0 || f->below > 0;
}

static tt_tensor *append(tt_model *m, const struct row *row, tt_tensor *const *in)
{
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof(copy), "%s", row->text);
    const char *kind = strtok_r(copy, " ", &rest);
    const tti_layer_def *def = tti_layer_find(kind);
    ck_assert_msg(def != NULL, "there is no layer '%s'", kind);
    char *opts = test_zeros(1, def->size);
    CHECK_OK(tti_options_default(m->ctx, def->options, opts));
    for (char *pair; (pair = strtok_r(NULL, " ", &rest)) != NULL;) {
        char *value = strchr(pair, '=');
        *value++ = '\0';
        CHECK_OK(tti_option_set(m->ctx, def->options, opts, kind, pair, value));
    }
    tti_layer_common *c = (tti_layer_common *)(void *)(opts + def->common);
    for (int i = 0; i < 3; i++)
        c->from[i] = in[i];
    return tti_layer_add(m, def, opts);
}

// Numbers by formula, as models.py has them.
static void *make_field(const struct row *row, const char *key, const field *f)
{
    char name[64];
    int64_t n = row->rows, columns = 1;
    for (int i = 0; i < f->rank; i++)
        columns *= f->shape[i];
    n *= columns;
    float *u = test_zeros((size_t)n, sizeof(*u));
    snprintf(name, sizeof(name), "%s.%s", row->name, key);
    double low = f->below > 0 ? f->least : -1, high = f->below > 0 ? f->least + f->below : 1;
    test_fill(u, n, fnv1a(name), low, high);
    int32_t *whole = (int32_t *)(void *)u;
    for (int64_t i = 0; f->below > 0 && i < n; i++)
        whole[i] = u[i] < (float)high ? (int32_t)u[i] : (int32_t)high - 1;
    for (int64_t i = 0; strcmp(name, "tabular.x0") == 0 && i < n; i += columns) {
        u[i] = floorf(fminf((u[i] + 1) * 1.5f, 2));
        u[i + 1] = floorf(fminf((u[i + 1] + 1) * 3.5f, 6));
    }
    return u;
}

static void set_weights(tt_model *m, int64_t parameters)
{
    static tt_weight_info all[400];
    int n_all = tt_model_weights(m, all, 400);
    for (int i = 0; i < n_all; i++) {
        int64_t n = tt_shape_count(&all[i].shape);
        size_t length = strlen(all[i].name);
        double low = 0.9, high = 1.1;
        if (!all[i].trains)
            continue;
        if (all[i].shape.rank > 1) {
            high = 1 / sqrt((double)(n / all[i].shape.dim[all[i].shape.rank - 1]));
            low = -high;
        } else if (length > 5 && strcmp(all[i].name + length - 5, ".bias") == 0) {
            low = -0.1, high = 0.1;
        }
        float *w = test_zeros((size_t)n, sizeof(*w));
        test_fill(w, n, fnv1a(all[i].name), low, high);
        bool is_shift = all[i].shape.rank == 1 && strncmp(all[i].name, "features", 8) == 0 &&
                        low < 0; // see models.py
        for (int64_t k = 0; is_shift && k < n; k++)
            w[k] += 1.5f;
        tt_tensor *var = tt_graph_find(tt_model_get_train_graph(m), all[i].name);
        CHECK_OK(tt_set_variable(tt_model_get_session(m), var, w, (size_t)n * sizeof(*w)));
        parameters -= n;
    }
    CHECK_INT(parameters, 0);
}

// A saved model is read back without its job: the same layers and weights.
static void check_saved(tt_model *m, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.tutti", test_folder(), name);
    CHECK_OK(tt_save(m, path));
    tt_model *back = tt_model_load(m->ctx, path);
    ck_assert_msg(back != NULL, "%s: %s", name, tt_last_error(m->ctx).message);
    CHECK_INT(back->n_layers, m->n_layers);
    CHECK_INT(tt_model_parameters(back), tt_model_parameters(m));
}

static void train(const struct row *row)
{
    tt_ctx *ctx = tt_open(.devices = test_device(), .on_event = test_ignore_event);
    tt_model *m = tt_model_new(ctx);
    tt_tensor *in[3] = {NULL};
    tt_batch_data batch = {.rows = row->rows};
    int n = 0;
    for (; n < 3 && is_there(&row->inputs[n]); n++) {
        const field *f = &row->inputs[n];
        char key[8];
        snprintf(key, sizeof(key), "x%d", n);
        tt_input_opts o = {
            .opts_size = sizeof(o), .name = key, .dtype = f->below > 0 ? TT_I32 : TT_F32};
        memcpy(o.shape, f->shape, sizeof(f->shape));
        if (f->rank == 0)
            o.shape[0] = 1;
        in[n] = tt_input_with(m, &o);
        batch.fields[n] = make_field(row, key, f);
    }
    batch.fields[n] = make_field(row, "y", &row->target);
    ck_assert_msg(append(m, row, in) != NULL, "%s: %s", row->name, tt_last_error(ctx).message);
    ck_assert_msg(tt_compile(m, .loss = row->target.below > 0 ? TT_CROSS_ENTROPY : TT_MSE,
                             .optimizer = tt_sgd(.lr = row->rate)) == TT_OK,
                  "%s: %s", row->name, tt_last_error(ctx).message);
    set_weights(m, row->parameters);
    for (int step = 0; step < STEPS; step++) {
        tt_progress p;
        ck_assert_msg(tt_train_step(m, &batch, &p) == TT_OK, "%s: %s", row->name,
                      tt_last_error(ctx).message);
        ck_assert_msg(fabs(p.step_loss - row->losses[step]) <= 1e-5 * row->losses[step],
                      "%s: step %d: loss %.9g, PyTorch %.9g", row->name, step, p.step_loss,
                      row->losses[step]);
    }
    check_saved(m, row->name);
    CHECK_OK(tt_close(ctx));
}

static void train_named(const char *name)
{
    size_t n = strlen(name);
    int seen = 0;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (strncmp(models[i].name, name, n) == 0) {
            train(&models[i]);
            seen++;
        }
    CHECK(seen > 0);
}

TEST_BOTH(golden_llama)
{
    train_named("llama");
}
TEST_BOTH(golden_bert)
{
    train_named("bert");
}
TEST_BOTH(golden_vit)
{
    train_named("vit");
}
TEST(golden_mobilenet_v2) // 53 convolutions: a minute and more where GPUs are emulated
{
    train_named("mobilenet_v2");
}
TEST_BOTH(golden_unet)
{
    train_named("unet");
}
TEST_BOTH(golden_lstm_lm)
{
    train_named("lstm_lm");
}
TEST_BOTH(golden_tabular)
{
    train_named("tabular");
}
TEST_BOTH(golden_autoencoder)
{
    train_named("autoencoder");
}
