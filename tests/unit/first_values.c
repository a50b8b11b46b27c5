/*
 * first_values.c - how wide the first weights of every layer are drawn: the fans of docs/models.md,
 * what is taken where no numbers are given, and what is refused.
 */
#include "../jobs.h"
#include "../layer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct spread {
    double mean, deviation, most; // most: greatest magnitude
} spread;

static spread spread_of(tt_model *m, const char *name)
{
    tti_weight *w = test_weight_find(m, name);
    int64_t n = tt_shape_count(&w->var->shape);
    float *f = test_zeros((size_t)n, sizeof(*f));
    CHECK_OK(tt_get_variable(tti_model_session(m), w->var, f, (size_t)n * sizeof(*f)));
    spread s = {0};
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        s.mean += (double)f[i] / (double)n;
        squares += (double)f[i] * (double)f[i] / (double)n;
        s.most = fmax(s.most, fabs((double)f[i]));
    }
    s.deviation = sqrt(fmax(squares - s.mean * s.mean, 0));
    return s;
}

// ---- fans ------------------------------------------------------------------------------------

#define C 48 // channels that come in

typedef struct row {
    const char *layer, *weight, *fan_in, *fan_out; // as docs/models.md writes them
    double in, out;
} row;

static const row rows[] = {
    {"dense", "weight", "in", "units", C, 96},
    {"conv2d", "weight", "h w in", "h w filters", 15 * C, 15 * 24},
    {"depthwise_conv2d", "weight", "h w", "h w filters", 15, 15 * 4},
    {"embedding", "weight", "vocab", "width", 100, 60},
    {"positional", "weight", "time", "width", 12, C},
    {"attention", "qkv.weight", "width", "width + 2 kv width", C, 2 * C},
    {"attention", "proj.weight", "width", "width", C, C},
};

// The layer named, with weights drawn by init where it takes one.
static tt_model *model_of(tt_ctx *ctx, const row *r, tt_init init)
{
    tt_model *m;
    if (strcmp(r->layer, "embedding") == 0) {
        m = tt_sequential(ctx, .input = {12}, .dtype = TT_I32);
        tt_layer_embedding(m, .vocab = 100, .width = 60, .init = init, .name = "l");
        return m;
    }
    if (strstr(r->layer, "conv2d") != NULL) {
        m = tt_sequential(ctx, .input = {8, 8, C});
        if (strcmp(r->layer, "conv2d") == 0)
            tt_layer_conv2d(m, .filters = 24, .kernel = {3, 5}, .init = init, .name = "l");
        else
            tt_layer_depthwise_conv2d(m, .filters = 4, .kernel = {3, 5}, .init = init, .name = "l");
        return m;
    }
    m = tt_sequential(ctx, .input = {12, C});
    if (strcmp(r->layer, "dense") == 0)
        tt_layer_dense(m, .units = 96, .init = init, .name = "l");
    else if (strcmp(r->layer, "positional") == 0)
        tt_layer_positional(m, .init = init, .name = "l");
    else
        tt_layer_attention(m, .heads = 4, .kv_heads = 2, .name = "l");
    return m;
}

TEST(first_values_have_the_fans_of_their_layer)
{
    for (int i = 0; i < TTI_COUNT(rows); i++) {
        for (int kind = TT_INIT_GLOROT_UNIFORM; kind <= TT_INIT_LECUN_NORMAL; kind++) {
            const row *r = &rows[i];
            bool is_he = kind >= TT_INIT_HE_UNIFORM, has_init = r->layer[0] != 'a';
            if (!has_init && kind != TT_INIT_GLOROT_UNIFORM)
                continue;
            bool is_uniform = kind == TT_INIT_GLOROT_UNIFORM || kind == TT_INIT_HE_UNIFORM ||
                              kind == TT_INIT_LECUN_UNIFORM;
            tt_ctx *ctx = test_ctx();
            tt_model *m = model_of(ctx, r, (tt_init){(tt_init_kind)kind, 0, 0});
            char name[64];
            snprintf(name, sizeof(name), "l.%s", r->weight);
            spread s = spread_of(m, name);
            double part = kind >= TT_INIT_LECUN_UNIFORM ? 1 : 2;
            double want = sqrt(part / (is_he ? r->in : r->in + r->out));
            double bound = is_uniform ? want * sqrt(3.0) : want * 6;
            ck_assert_msg(fabs(s.deviation - want) < 0.06 * want && s.most < bound * 1.000001,
                          "%s %s, initializer %d: deviation %.4f, up to %.4f; fans %g and %g give "
                          "%.4f",
                          r->layer, r->weight, kind, s.deviation, s.most, r->in, r->out, want);
            CHECK_OK(tt_close(ctx));
        }
    }
}

TEST(docs_list_the_fans)
{
    static char text[1 << 16];
    FILE *f = fopen("docs/models.md", "r");
    if (f == NULL)
        test_skip("docs/ is not here");
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    for (int i = 0; i < TTI_COUNT(rows); i++) {
        char line[200];
        snprintf(line, sizeof(line), "| `%s` `%s` | %s | %s |", rows[i].layer, rows[i].weight,
                 rows[i].fan_in, rows[i].fan_out);
        ck_assert_msg(strstr(text, line) != NULL, "docs/models.md lacks: %s", line);
    }
}

// ---- numbers that are left out ---------------------------------------------------------------

#define SQRT3 1.7320508

static void check_spread(const char *what, spread s, double mean, double deviation, double most)
{
    double near = 0.1 * deviation + 1e-7;
    ck_assert_msg(fabs(s.mean - mean) <= near && fabs(s.deviation - deviation) <= near &&
                      s.most <= most + 1e-7,
                  "%s: mean %g, deviation %g, up to %g; not %g, %g, %g", what, s.mean, s.deviation,
                  s.most, mean, deviation, most);
}

TEST(first_values_without_numbers)
{
    static const struct {
        const char *yaml; // after the word init
        tt_init init;
        double mean, deviation, most;
    } cases[] = {
        {"zeros", {TT_INIT_CONSTANT, 0, 0}, 0, 0, 0},
        {"constant", {TT_INIT_CONSTANT, 0, 0}, 0, 0, 0},
        {"constant, init_a: 0.5", {TT_INIT_CONSTANT, 0.5, 0}, 0.5, 0, 0.5},
        {"uniform", {TT_INIT_UNIFORM, 0, 0}, 0, 0.05 / SQRT3, 0.05},
        {"uniform, init_b: 0.2", {TT_INIT_UNIFORM, 0, 0.2}, 0.1, 0.1 / SQRT3, 0.2},
        {"uniform, init_a: -0.2", {TT_INIT_UNIFORM, -0.2, 0}, -0.1, 0.1 / SQRT3, 0.2},
        {"normal", {TT_INIT_NORMAL, 0, 0}, 0, 0.02, 0.12},
        {"normal, init_a: 1", {TT_INIT_NORMAL, 1, 0}, 1, 0.02, 1.12},
        {"normal, init_b: 0.3", {TT_INIT_NORMAL, 0, 0.3}, 0, 0.3, 1.8},
        {"truncated_normal", {TT_INIT_TRUNCATED_NORMAL, 0, 0}, 0, 0.02 * 0.8796, 0.04},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {784});
        tt_layer_dense(m, .units = 10, .init = cases[i].init, .name = "l");
        check_spread(cases[i].yaml, spread_of(m, "l.weight"), cases[i].mean, cases[i].deviation,
                     cases[i].most);
        static float x[4000];
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *v = tt_variable(g, .shape = TT_SHAPE(4000), .init = cases[i].init);
        CHECK_OK(tt_eval(g, v, x, 4000));
        double most = 0;
        for (int k = 0; k < 4000; k++)
            most = fmax(most, fabs((double)x[k]));
        CHECK(most <= cases[i].most + 1e-7 && most >= 0.5 * cases[i].most);
        CHECK_OK(tt_close(ctx));
        char yaml[600];
        snprintf(yaml, sizeof(yaml),
                 "data:\n  train: {digits: {count: 64}}\nmodel:\n  - flatten\n"
                 "  - dense: {units: 10, name: l, init: %s}\n"
                 "train: {epochs: 1, batch: 16, loss: cross_entropy, optimizer: sgd}\n",
                 cases[i].yaml);
        job_built b = job_build_ok(yaml);
        check_spread(cases[i].yaml, spread_of(b.parts.model, "l.weight"), cases[i].mean,
                     cases[i].deviation, cases[i].most);
        job_close(&b);
    }
}

TEST(first_values_that_cannot_be_meant)
{
    static const struct {
        tt_init init;
        const char *message;
    } cases[] = {
        {{TT_INIT_UNIFORM, 0.1, 0}, "uniform from 0.1 to 0 is empty"},
        {{TT_INIT_UNIFORM, 0.1, 0.1}, "uniform from 0.1 to 0.1 is empty"},
        {{TT_INIT_UNIFORM, 0, NAN}, "uniform from 0 to nan is empty"},
        {{TT_INIT_UNIFORM, 0, INFINITY}, "both must be finite"},
        {{TT_INIT_NORMAL, 0, -1}, "init normal has standard deviation -1"},
        {{TT_INIT_NORMAL, INFINITY, 1}, "both must be finite"},
        {{TT_INIT_TRUNCATED_NORMAL, 0, NAN}, "init truncated_normal has standard deviation nan"},
        {{TT_INIT_CONSTANT, 0, 1}, "init constant takes one number, and got 0 and 1"},
        {{TT_INIT_HE_NORMAL, 0.1, 0}, "init he_normal takes no numbers, and got 0.1 and 0"},
        {{(tt_init_kind)99, 0, 0}, "is unknown"},
        {{(tt_init_kind)-1, 0, 0}, "is unknown"},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        tt_ctx *ctx = test_ctx();
        tt_graph *g = tt_graph_new(ctx);
        CHECK(tt_variable(g, .shape = TT_SHAPE(3), .init = cases[i].init) == NULL);
        CHECK_MESSAGE(ctx, cases[i].message);
        CHECK(tt_close(ctx) == TT_EINVAL);
    }
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {8, 8, 2});
    CHECK(tt_layer_depthwise_conv2d(m, .init = {.a = 0.1}, .name = "d") == NULL);
    CHECK_MESSAGE(ctx, "d: ");
    CHECK_MESSAGE(ctx, "init glorot_uniform takes no numbers");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
