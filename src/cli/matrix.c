/*
 * matrix.c - builds and trains one model in one way.
 *
 * The models are small, but no sum in them is trivial: products have more than 500 terms, batches
 * are of 36 rows and the last of 13, so that lanes are of unequal size and some are short. Layers
 * are built one by one, so that pins can lie between any two of them.
 */
#include "cli/matrix.h"
#include <stdio.h>
#include <string.h>

#define ROWS    36 // of a batch; divisible by the accumulations in the table
#define RECORDS (3 * ROWS + 13)
#define CONTEXT 12 // symbols of a record
#define VOCAB   29

// ---- models ----------------------------------------------------------------------------------

// Where the next layers lie: layer i of n on device i * pins / n.
typedef struct placer {
    tt_model *m;
    const matrix_way *way;
    int at, n;
} placer;

static tt_model *next(placer *p)
{
    char device[64];
    tt_graph *g = tt_model_get_graph(p->m);
    if (p->way->pins == 0)
        return p->m;
    if (p->at > 0)
        tt_device_pop(g);
    int d = p->at++ * p->way->pins / p->n;
    const char *type = p->way->is_local ? "local" : p->way->device;
    int n = type == NULL ? 0 : (int)strcspn(type, ":"), task = 0;
    if (p->way->tasks != NULL && !p->way->is_local) {
        for (; d >= matrix_share(p->way, p->way->tasks->n, task); task++)
            d -= matrix_share(p->way, p->way->tasks->n, task);
        snprintf(device, sizeof(device), "/job:worker/task:%d/%.*s:%d", task, type == NULL ? 3 : n,
                 type == NULL ? "cpu" : type, d);
    } else {
        snprintf(device, sizeof(device), "%.*s:%d", type == NULL ? 3 : n,
                 type == NULL ? "cpu" : type, d);
    }
    tt_device_push(g, device);
    return p->m;
}

static tt_model *end(placer *p)
{
    if (p->at > 0)
        tt_device_pop(tt_model_get_graph(p->m));
    return p->m;
}

/*
 * x plus a hundredth of the sign of a sum that vanishes. Its terms are tiny and below zero, so that
 * it would be -0 but for the rule that sums end with + 0.
 */
static tt_tensor *vanish(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)user;
    (void)n_in;
    tt_graph *g = tt_build_graph(b);
    tt_tensor *tiny = tt_mul(g, tt_abs(g, in[0]), tt_fill(g, TT_F32, TT_SCALAR, 1e-30));
    tt_tensor *sum = tt_matmul(g, tiny, tt_fill(g, TT_F32, TT_SHAPE(784, 1), -1e-30));
    tt_tensor *sign = tt_clip(g, tt_div(g, tt_fill(g, TT_F32, TT_SCALAR, 1), sum), -0.01, 0.01);
    return tt_add(g, in[0], tt_stop_gradient(g, sign));
}

static tt_model *mlp(tt_ctx *ctx, const matrix_way *way)
{
    placer p = {tt_sequential(ctx, .input = {28, 28, 1}), way, 0, 8};
    tt_layer_flatten(next(&p));
    tt_layer_custom(next(&p), .fn = vanish);
    tt_layer_dense(next(&p), .units = 37, .act = TT_RELU);
    tt_layer_dropout(next(&p), .rate = 0.2);
    tt_layer_dense(next(&p), .units = 31, .act = TT_TANH);
    tt_layer_dense(next(&p), .units = 23, .act = TT_RELU);
    tt_layer_dropout(next(&p), .rate = 0.1);
    tt_layer_dense(next(&p), .units = 10);
    return end(&p);
}

static tt_model *cnn(tt_ctx *ctx, const matrix_way *way)
{
    placer p = {tt_sequential(ctx, .input = {28, 28, 1}), way, 0, 5};
    tt_layer_conv2d(next(&p), .filters = 5, .kernel = {3, 3}, .act = TT_RELU);
    tt_layer_max_pool2d(next(&p));
    tt_layer_conv2d(next(&p), .filters = 9, .kernel = {3, 3}, .act = TT_GELU);
    tt_layer_flatten(next(&p));
    tt_layer_dense(next(&p), .units = 10);
    return end(&p);
}

static tt_model *normed(tt_ctx *ctx, const matrix_way *way, tt_over over)
{
    placer p = {tt_sequential(ctx, .input = {28, 28, 1}), way, 0, 6};
    tt_layer_conv2d(next(&p), .filters = 5, .kernel = {3, 3}, .stride = {2, 2}, .no_bias = true);
    tt_layer_batch_norm(next(&p), .act = TT_RELU, .over = over);
    tt_layer_conv2d(next(&p), .filters = 9, .kernel = {3, 3}, .no_bias = true);
    tt_layer_batch_norm(next(&p), .act = TT_GELU, .over = over);
    tt_layer_flatten(next(&p));
    tt_layer_dense(next(&p), .units = 10);
    return end(&p);
}

static tt_model *norm(tt_ctx *ctx, const matrix_way *way)
{
    return normed(ctx, way, TT_OVER_BATCH);
}

static tt_model *lane(tt_ctx *ctx, const matrix_way *way)
{
    return normed(ctx, way, TT_OVER_LANE);
}

// The output's weights are the embedding's, so the first and the last device both use them.
static tt_tensor *tied(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)user;
    (void)n_in;
    tt_tensor *w = tt_layer_weight(b, "weight", TT_SHAPE(VOCAB, 24), (tt_init){0});
    return tt_matmul(tt_build_graph(b), in[0], w, .transpose_b = true);
}

static tt_model *gpt(tt_ctx *ctx, const matrix_way *way)
{
    placer p = {tt_sequential(ctx, .input = {CONTEXT}, .dtype = TT_I32), way, 0, 7};
    tt_tensor *embed = tt_layer_embedding(next(&p), .vocab = VOCAB, .width = 24, .name = "embed");
    tt_layer_positional(next(&p));
    tt_layer_dropout(next(&p), .rate = 0.1);
    for (int i = 0; i < 2; i++)
        tt_layer_transformer_block(next(&p), .heads = 2, .hidden = 520, .dropout = 0.1, .depth = 2);
    tt_layer_layer_norm(next(&p));
    tt_layer_custom(next(&p), .fn = tied, .share = embed, .name = "head");
    return end(&p);
}

#define SGD  "sgd", tt_sgd(.lr = 0.05, .momentum = 0.9, .clip_global = 1.0)
#define ADAM "adam", tt_adam(.lr = 2e-3)
#define F32  TT_PRECISION_F32
#define BF16 TT_PRECISION_BF16
#define F16  TT_PRECISION_F16
const matrix_model matrix_models[] = {
    {"mlp", SGD, mlp, false, false, F32, "a4c7b89227dff53297967a034066d786"},
    {"mlp", ADAM, mlp, false, false, F32, "473169130f24f98c556a531ecafa9740"},
    {"cnn", SGD, cnn, false, false, F32, "15e864a2c5e0f74079d3eca2f8d2b374"},
    {"cnn", ADAM, cnn, false, false, F32, "e1600c3b0dae7366f1f53bbc75a2f1ce"},
    {"gpt", SGD, gpt, true, false, F32, "cce4db095cd34e4ecb4eac61b5b360ad"},
    {"gpt", ADAM, gpt, true, false, F32, "6e942334574a84c6425a35e4cafa30b6"},
    {"norm", SGD, norm, false, true, F32, "ad49ba175f8d5e27e19fd6a0049dcf4a"},
    {"norm", ADAM, norm, false, true, F32, "c05e97f19208d72787de2636743efbff"},
    {"lane", SGD, lane, false, false, F32, "102a34f3f3269bc9293658cb82902165"},
    {"lane", ADAM, lane, false, false, F32, "ee7813054bb4e1ec2deda3108f3fa4c7"},
    {"bf16", ADAM, gpt, true, false, BF16, "808713ef56dfa7100c38d4d73b6e7b2a"},
    {"f16", SGD, cnn, false, false, F16, "69cd1f8596fa816024d21801b94b3651"},
};

int matrix_n_models(void)
{
    return TTI_COUNT(matrix_models);
}

// ---- data ------------------------------------------------------------------------------------

// Record i of the symbols: a walk over the vocabulary that depends on the symbol before.
static tt_status read_walk(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx;
    (void)self;
    int32_t *x = out[0], *y = out[1];
    int32_t at = (int32_t)(i * 7 % VOCAB);
    for (int t = 0; t < CONTEXT; t++) {
        x[t] = at;
        at = (at * 5 + 3 + (int32_t)((i >> t) & 1)) % VOCAB;
        y[t] = at;
    }
    return TT_OK;
}

tt_data *matrix_data(tt_ctx *ctx, const matrix_model *model, int64_t count)
{
    if (!model->is_text)
        return tt_digits(ctx, .count = count, .batch = ROWS);
    tt_source s = {.count = count, .n_fields = 2, .read = read_walk};
    for (int i = 0; i < 2; i++) {
        s.fields[i] = (tt_field){.dtype = TT_I32, .shape = TT_SHAPE(CONTEXT), .classes = VOCAB};
        strcpy(s.fields[i].name, i == 0 ? "x" : "y");
    }
    return tt_data_new(ctx, &s, .batch = ROWS);
}

// ---- one combination -------------------------------------------------------------------------

static void ignore(void *user, const tt_event *ev)
{
    (void)user;
    (void)ev;
}

tt_ctx *matrix_open(const matrix_way *way)
{
    char devices[64];
    const tt_tasks *t = way->tasks;
    tt_spread spread = way->spread;
    spread.opts_size = sizeof(spread);
    snprintf(devices, sizeof(devices), "%.40s*%d", way->device == NULL ? "cpu:0" : way->device,
             t == NULL ? way->devices : matrix_share(way, t->n, t->self));
    return tt_open(.devices = devices, .strategy = way->strategy, .lanes = way->lanes, .seed = 7,
                   .threads = way->threads > 0 ? way->threads
                              : t == NULL      ? 2
                                               : 1,
                   .isa = way->isa, .spread = &spread, .on_event = ignore, .tasks = t);
}

tt_model *matrix_build(tt_ctx *ctx, const matrix_model *model, const matrix_way *way)
{
    tt_model *m = model->build(ctx, way);
    tt_status st =
        tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = model->rule, .metrics = TT_ACCURACY,
                   .recompute = way->recompute, .precision = model->precision);
    return st == TT_OK ? m : NULL;
}

static int count_working(tt_ctx *ctx)
{
    int n = 0;
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        n += tt_device_get(ctx, i, &d) == TT_OK && d.arena > 0;
    }
    return n;
}

void matrix_run(const matrix_model *model, const matrix_way *way, const char *hashes,
                matrix_result *out)
{
    *out = (matrix_result){.loss = 0};
    tt_ctx *ctx = matrix_open(way);
    tt_model *m = matrix_build(ctx, model, way);
    int64_t parts = TTI_MAX(way->accumulate, 1);
    tt_fit_report r;
    if (m != NULL &&
        tt_fit(m, matrix_data(ctx, model, RECORDS), .batch = ROWS / parts, .accumulate = parts,
               .hashes = hashes != NULL) == TT_OK &&
        tt_fit_report_get(m, &r) == TT_OK) {
        *out = (matrix_result){.weights = r.weights,
                               .loss = r.last->loss,
                               .metric = r.last->metrics[0],
                               .ms = r.step_ms_median,
                               .working = count_working(ctx)};
        if (hashes != NULL)
            tt_hashes_write(tt_model_get_session(m), hashes);
    }
    out->status = tt_status_of(ctx);
    snprintf(out->message, sizeof(out->message), "%s", tt_last_error(ctx).message);
    int expected = way->pins == 0 && strcmp(way->strategy, "single") == 0 ? 1 : way->devices;
    if (out->status == TT_OK && out->working < expected) {
        out->status = TT_EUNSUPPORTED;
        snprintf(out->message, sizeof(out->message), "%d of %d devices had no work",
                 expected - out->working, expected);
    }
    tt_status closed = tt_close(ctx);
    if (out->status == TT_OK && closed != TT_OK) {
        out->status = closed;
        snprintf(out->message, sizeof(out->message), "closing it: %s", tt_status_text(closed));
    }
}

bool matrix_has_golden(const matrix_way *way)
{
    return way->lanes == 0 && (way->device == NULL || strncmp(way->device, "cpu", 3) == 0);
}

bool matrix_is_golden(const matrix_model *model, const matrix_result *r)
{
    char hash[33];
    snprintf(hash, sizeof(hash), "%016llx%016llx", (unsigned long long)r->weights.high,
             (unsigned long long)r->weights.low);
    return strcmp(hash, model->hash) == 0;
}

bool matrix_same(const matrix_result *a, const matrix_result *b)
{
    return a->status == TT_OK && b->status == TT_OK && a->weights.low == b->weights.low &&
           a->weights.high == b->weights.high && memcmp(&a->loss, &b->loss, sizeof(a->loss)) == 0 &&
           memcmp(&a->metric, &b->metric, sizeof(a->metric)) == 0;
}
