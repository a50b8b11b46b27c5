/*
 * update.c - assign and the optimizers' updates, step by step against the formulas in f64.
 */
#include "op_test.h"
#include <math.h>

OP_TESTED(update, "assign", "update_sgd", "update_adam", "update_adamw", "update_rmsprop",
          "update_adagrad")

enum {
    N = 1003,
    STEPS = 7
};

typedef tt_tensor *update_fn(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                             const tt_update_opts *opts);

// New w and state from old ones; t counts from 1.
typedef void rule_fn(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                     double *b);

/*
 * The gradient with weight decay, rounded once to f32 as the ops do: where the two nearly cancel,
 * adam's direction depends on that rounding.
 */
static double decayed(const tt_update_opts *o, double g, double w)
{
    return o->weight_decay == 0 ? g : fmaf((float)o->weight_decay, (float)w, (float)g);
}

static void sgd(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                double *b)
{
    (void)t;
    (void)b;
    g = decayed(o, g, *w);
    if (o->momentum != 0) {
        *s = o->momentum * *s + g;
        g = o->nesterov ? g + o->momentum * *s : *s;
    }
    *w -= lr * g;
}

static void adam_rule(double lr, int t, double g, double *w, double *s, double *b)
{
    *s = 0.9 * *s + 0.1 * g;
    *b = 0.999 * *b + 0.001 * g * g;
    double m = *s / (1 - pow(0.9, t)), v = *b / (1 - pow(0.999, t));
    *w -= lr * m / (sqrt(v) + 1e-8);
}

static void adam(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                 double *b)
{
    adam_rule(lr, t, decayed(o, g, *w), w, s, b);
}

static void adamw(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                  double *b)
{
    *w *= 1 - lr * o->weight_decay;
    adam_rule(lr, t, g, w, s, b);
}

static void rmsprop(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                    double *b)
{
    (void)t;
    g = decayed(o, g, *w);
    *s = 0.9 * *s + 0.1 * g * g;
    double d = g / (sqrt(*s) + 1e-7);
    if (o->momentum != 0)
        d = *b = o->momentum * *b + d;
    *w -= lr * d;
}

static void adagrad(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                    double *b)
{
    (void)t;
    (void)b;
    g = decayed(o, g, *w);
    *s += g * g;
    *w -= lr * g / (sqrt(*s) + 1e-7);
}

typedef struct update_case {
    const char *label;
    update_fn *build;
    rule_fn *rule;
    const char *state[2];
    tt_update_opts opts;
} update_case;

static const update_case cases[] = {
    {"sgd", tt_update_sgd_with, sgd, {NULL}, {0}},
    {"sgd_decay", tt_update_sgd_with, sgd, {NULL}, {.weight_decay = 0.01, .lr_scale = 0.5}},
    {"sgd_momentum", tt_update_sgd_with, sgd, {"w/sgd_momentum"}, {.momentum = 0.9}},
    {"sgd_nesterov",
     tt_update_sgd_with,
     sgd,
     {"w/sgd_momentum"},
     {.momentum = 0.9, .nesterov = true, .weight_decay = 0.01}},
    {"adam", tt_update_adam_with, adam, {"w/adam_m", "w/adam_v"}, {0}},
    {"adam_decay", tt_update_adam_with, adam, {"w/adam_m", "w/adam_v"}, {.weight_decay = 0.01}},
    {"adamw", tt_update_adamw_with, adamw, {"w/adam_m", "w/adam_v"}, {.weight_decay = 0.1}},
    {"rmsprop", tt_update_rmsprop_with, rmsprop, {"w/rmsprop_square"}, {0}},
    {"rmsprop_momentum",
     tt_update_rmsprop_with,
     rmsprop,
     {"w/rmsprop_square", "w/rmsprop_momentum"},
     {.momentum = 0.9}},
    {"adagrad", tt_update_adagrad_with, adagrad, {"w/adagrad_sum"}, {.weight_decay = 0.01}},
};

typedef struct values {
    float w[N], s[N], b[N];
} values;

typedef struct trial {
    tt_ctx *ctx;
    tt_session *session;
    tt_tensor *w, *s, *b, *grad, *next;
} trial;

// Weights are far from zero: two ulps of w then are above the error of a step.
static trial start(const update_case *c, const char *isa, int threads)
{
    trial t = {.ctx = test_ctx_on("cpu:0", isa, threads)};
    tt_graph *g = tt_graph_new(t.ctx);
    t.w = tt_variable(g, .shape = TT_SHAPE(N), .init = {TT_INIT_UNIFORM, 2, 4}, .name = "w");
    t.grad = tt_feed(g, .shape = TT_SHAPE(N));
    tt_update_opts opts = c->opts;
    opts.opts_size = sizeof(opts);
    t.next = c->build(g, t.w, t.grad, &opts);
    CHECK(t.next != NULL);
    for (int i = 0; i < 2; i++) {
        tt_tensor *s = c->state[i] == NULL ? NULL : tt_graph_find(g, c->state[i]);
        CHECK(c->state[i] == NULL || s != NULL);
        *(i == 0 ? &t.s : &t.b) = s;
    }
    t.session = tt_session_new(g);
    return t;
}

static void read_values(const trial *t, values *v)
{
    memset(v, 0, sizeof(*v));
    CHECK_OK(tt_get_variable(t->session, t->w, v->w, sizeof(v->w)));
    if (t->s != NULL)
        CHECK_OK(tt_get_variable(t->session, t->s, v->s, sizeof(v->s)));
    if (t->b != NULL)
        CHECK_OK(tt_get_variable(t->session, t->b, v->b, sizeof(v->b)));
}

// One step with gradients that differ from step to step; grad_scale is 1/2 and exact.
static void step(const trial *t, int number, float *grad, float *fetched)
{
    test_fill(grad, N, 100 + (uint64_t)number, -2, 2);
    tt_feed_value feed = {t->grad, grad, TT_SHAPE(N), TT_F32};
    tt_fetch out = {t->next, fetched, sizeof(float) * N};
    CHECK_OK(tt_run(t->session, .feeds = &feed, .n_feeds = 1, .fetches = &out, .n_fetches = 1,
                    .step = number, .lr = 0.01f, .grad_scale = 0.5f));
}

static double ulp(double x)
{
    float f = fabsf((float)x);
    return (double)nextafterf(f, INFINITY) - (double)f;
}

static void check_close(const char *label, const char *what, double got, double want, double room)
{
    ck_assert_msg(fabs(got - want) <= room, "%s: %s is %.9g, not %.9g", label, what, got, want);
}

TEST(updates_follow_their_formulas)
{
    static values before, after;
    static float grad[N], fetched[N];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const update_case *c = &cases[k];
        trial t = start(c, NULL, 0);
        double scale = c->opts.lr_scale != 0 ? c->opts.lr_scale : 1;
        for (int n = 0; n < STEPS; n++) {
            read_values(&t, &before);
            step(&t, n, grad, fetched);
            read_values(&t, &after);
            CHECK(memcmp(fetched, after.w, sizeof(fetched)) == 0);
            for (int i = 0; i < N; i++) {
                double w = before.w[i], s = before.s[i], b = before.b[i], g = grad[i] * 0.5;
                c->rule(&c->opts, (double)0.01f * scale, n + 1, g, &w, &s, &b);
                check_close(c->label, "w", after.w[i], w, 2 * ulp(w));
                double largest = fabs(s) + fabs(before.s[i]) + fabs(g);
                check_close(c->label, "state", after.s[i], s, 2 * ulp(largest));
                largest = fabs(b) + fabs(before.b[i]); // four roundings, 1 - beta's among them
                check_close(c->label, "state", after.b[i], b, 4 * ulp(largest));
            }
        }
        CHECK_OK(tt_close(t.ctx));
    }
}

TEST(updates_have_the_same_bits_everywhere)
{
    static values want, got;
    static float grad[N], fetched[N];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        for (int set = 0; test_isa(set) != NULL; set++) {
            for (int threads = 1; threads <= 3; threads++) {
                trial t = start(&cases[k], test_isa(set), threads);
                for (int n = 0; n < 3; n++)
                    step(&t, n, grad, fetched);
                bool is_first = set == 0 && threads == 1;
                read_values(&t, is_first ? &want : &got);
                CHECK(is_first || memcmp(&want, &got, sizeof(want)) == 0);
                CHECK_OK(tt_close(t.ctx));
            }
        }
    }
}

// In f64 the formulas are met to f64's precision.
TEST(adam_in_f64)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    double w[3] = {1, -2, 0.5}, grad[3] = {0.1, -3, 1e-3}, got[3], s[3] = {0}, b[3] = {0};
    tt_tensor *var = tt_variable(g, .dtype = TT_F64, .shape = TT_SHAPE(3), .name = "w");
    tt_tensor *next = tt_update_adam(g, var, tt_const(g, TT_F64, TT_SHAPE(3), grad));
    tt_session *session = tt_session_new(g);

    CHECK_OK(tt_set_variable(session, var, w, sizeof(w)));
    for (int n = 0; n < 5; n++) {
        CHECK_OK(tt_run(session, .targets = &next, .n_targets = 1, .step = n, .lr = 0.25f));
        CHECK_OK(tt_get_variable(session, var, got, sizeof(got)));
        for (int i = 0; i < 3; i++) {
            adam_rule(0.25, n + 1, grad[i], &w[i], &s[i], &b[i]);
            CHECK_NEAR(got[i], w[i], 1e-13);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(assign_writes_any_type)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *var = tt_variable(g, .dtype = TT_I64, .shape = TT_SHAPE(3));
    int64_t data[3] = {1, -2, INT64_MAX}, got[3];
    tt_tensor *next = tt_assign(g, var, tt_const(g, TT_I64, TT_SHAPE(3), data));
    tt_session *s = tt_session_new(g);

    CHECK_OK(tt_run(s, .targets = &next, .n_targets = 1));
    CHECK_OK(tt_get_variable(s, var, got, sizeof(got)));
    CHECK(memcmp(data, got, sizeof(data)) == 0);
    CHECK_OK(tt_close(ctx));
}

TEST(updates_refuse_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(3), .name = "w");
    tt_tensor *half = tt_variable(g, .shape = TT_SHAPE(3), .dtype = TT_BF16, .name = "h");
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(3), 1), *y = tt_fill(g, TT_F32, TT_SHAPE(4), 1);

    CHECK(tt_update_sgd(g, x, x) == NULL);
    CHECK_MESSAGE(ctx, "is not a variable");
    tt_clear_error(ctx);
    CHECK(tt_update_adam(g, w, y) == NULL);
    CHECK_MESSAGE(ctx, "variable 'w' is [3] but");
    tt_clear_error(ctx);
    CHECK(tt_update_sgd(g, half, half) == NULL);
    CHECK_MESSAGE(ctx, "variable 'h' is bf16, not f32 or f64");
    tt_clear_error(ctx);
    CHECK(tt_update_adam(g, w, x, .beta1 = 1) == NULL);
    CHECK_MESSAGE(ctx, "beta1 1 is not from 0 to below 1");
    tt_clear_error(ctx);
    CHECK(tt_update_sgd(g, w, x, .nesterov = true) == NULL);
    CHECK_MESSAGE(ctx, "nesterov needs a momentum");
    tt_clear_error(ctx);
    CHECK(tt_update_sgd(g, w, NULL) == NULL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}
