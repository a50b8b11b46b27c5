/*
 * update.c - assign and the optimizers' updates, step by step against the formulas in f64.
 */
#include "op_test.h"
#include <math.h>

OP_TESTED(update, "assign", "update_sgd", "update_adam", "update_adamw", "update_rmsprop",
          "update_adagrad", "update_lion", "update_ema")

enum {
    N = 1003,
    STEPS = 7
};

typedef tt_tensor *update_fn(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                             const tt_update_opts *opts);

// New w and state from old ones; t counts from 1. Returns the size of the step: what it would be if
// nothing in it cancelled.
typedef double rule_fn(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                       double *b);

/*
 * The gradient with weight decay, rounded once to f32 as the ops do: where the two nearly cancel,
 * adam's direction depends on that rounding.
 */
static double decayed(const tt_update_opts *o, double g, double w)
{
    return o->weight_decay == 0 ? g : fmaf((float)o->weight_decay, (float)w, (float)g);
}

static double sgd(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                  double *b)
{
    (void)t;
    (void)b;
    g = decayed(o, g, *w);
    double size = fabs(g);
    if (o->momentum != 0) {
        size += o->momentum * fabs(*s) + (o->nesterov ? fabs(g) : 0);
        *s = o->momentum * *s + g;
        g = o->nesterov ? g + o->momentum * *s : *s;
    }
    *w -= lr * g;
    return lr * size;
}

static double adam_rule(double lr, int t, double g, double *w, double *s, double *b)
{
    double size = 0.9 * fabs(*s) + 0.1 * fabs(g);
    *s = 0.9 * *s + 0.1 * g;
    *b = 0.999 * *b + 0.001 * g * g;
    double fix = 1 - pow(0.9, t), root = sqrt(*b / (1 - pow(0.999, t))) + 1e-8;
    *w -= lr * *s / fix / root;
    return lr * size / fix / root;
}

static double adam(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                   double *b)
{
    return adam_rule(lr, t, decayed(o, g, *w), w, s, b);
}

// Where the decay is apart the weight is rounded once more, and so is the factor.
static double shrunk(const tt_update_opts *o, double lr, double *w)
{
    double size = o->weight_decay == 0 ? 0 : fabs(*w) / 5;
    *w *= 1 - lr * o->weight_decay;
    return size;
}

static double adamw(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                    double *b)
{
    double size = shrunk(o, lr, w);
    return size + adam_rule(lr, t, g, w, s, b);
}

static double rmsprop(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                      double *b)
{
    (void)t;
    g = decayed(o, g, *w);
    *s = 0.9 * *s + 0.1 * g * g;
    double d = g / (sqrt(*s) + 1e-7), size = fabs(d);
    if (o->momentum != 0) {
        size += o->momentum * fabs(*b);
        d = *b = o->momentum * *b + d;
    }
    *w -= lr * d;
    return lr * size;
}

static double adagrad(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                      double *b)
{
    (void)t;
    (void)b;
    g = decayed(o, g, *w);
    *s += g * g;
    double d = g / (sqrt(*s) + 1e-7);
    *w -= lr * d;
    return lr * fabs(d);
}

static double lion(const tt_update_opts *o, double lr, int t, double g, double *w, double *s,
                   double *b)
{
    (void)t;
    (void)b;
    double d = 0.9 * *s + 0.1 * g, size = shrunk(o, lr, w);
    *w -= lr * (double)((d > 0) - (d < 0));
    *s = 0.99 * *s + 0.01 * g;
    return size + lr;
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
    {"lion", tt_update_lion_with, lion, {"w/lion_m"}, {.weight_decay = 0.1}},
};

typedef struct values {
    float w[N], s[N], b[N];
} values;

typedef struct trial {
    tt_ctx *ctx;
    tt_session *session;
    tt_tensor *w, *s, *b, *grad, *scale, *next;
} trial;

static trial start_scaled(const update_case *c, const char *isa, int threads, bool scaled)
{
    trial t = {.ctx = test_ctx_on("cpu:0", isa, threads)};
    tt_graph *g = tt_graph_new(t.ctx);
    if (scaled)
        t.scale = tt_feed(g, .shape = TT_SCALAR);
    t.w = tt_variable(g, .shape = TT_SHAPE(N), .init = {TT_INIT_UNIFORM, -1, 1}, .name = "w");
    t.grad = tt_feed(g, .shape = TT_SHAPE(N));
    tt_update_opts opts = c->opts;
    opts.opts_size = sizeof(opts);
    opts.scale = t.scale;
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

static trial start(const update_case *c, const char *isa, int threads)
{
    return start_scaled(c, isa, threads, false);
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

// One step with gradients that differ from step to step.
static void step_scaled(const trial *t, int number, float *grad, float *fetched, float grad_scale,
                        float scale)
{
    test_fill(grad, N, 100 + (uint64_t)number, -2, 2);
    tt_feed_value feeds[] = {{t->grad, grad, TT_SHAPE(N), TT_F32},
                             {t->scale, &scale, TT_SCALAR, TT_F32}};
    tt_fetch out = {t->next, fetched, sizeof(float) * N};
    CHECK_OK(tt_run(t->session, .feeds = feeds, .n_feeds = t->scale == NULL ? 1 : 2,
                    .fetches = &out, .n_fetches = 1, .step = number, .lr = 0.01f,
                    .grad_scale = grad_scale));
}

// grad_scale is 1/2 and exact.
static void step(const trial *t, int number, float *grad, float *fetched)
{
    step_scaled(t, number, grad, fetched, 0.5f, 1);
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

/*
 * What is claimed of a new weight, for any weight and gradient: it is within half a unit of its
 * last place and 10 * 2^-24 of the step's size of the formula in f64 on the same f32 weight,
 * gradient and state.
 */
TEST_BOTH(updates_follow_their_formulas)
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
                double size = c->rule(&c->opts, (double)0.01f * scale, n + 1, g, &w, &s, &b);
                double half = ulp(fmax(fabs(w), fabs((double)after.w[i]))) / 2;
                check_close(c->label, "w", after.w[i], w, half + 10 * 0x1p-24 * size);
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

// Powers of two are exact: 2 and 1/4 as grad_scale and scale are 1/2 as grad_scale alone.
TEST_BOTH(updates_multiply_by_their_scale)
{
    static values want, got;
    static float grad[N], fetched[N];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        trial a = start(&cases[k], NULL, 2), b = start_scaled(&cases[k], NULL, 2, true);
        for (int n = 0; n < 3; n++) {
            step(&a, n, grad, fetched);
            step_scaled(&b, n, grad, fetched, 2, 0.25f);
        }
        read_values(&a, &want);
        read_values(&b, &got);
        ck_assert_msg(memcmp(&want, &got, sizeof(want)) == 0, "%s differs", cases[k].label);
        CHECK_OK(tt_close(a.ctx));
        CHECK_OK(tt_close(b.ctx));
    }
}

TEST_BOTH(a_scale_that_is_not_finite_changes_nothing)
{
    static values want, got;
    static float grad[N], fetched[N];
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        for (int set = 0; test_isa(set) != NULL; set++) {
            trial t = start_scaled(&cases[k], test_isa(set), 2, true);
            step_scaled(&t, 0, grad, fetched, 1, 1);
            read_values(&t, &want);
            for (int i = 0; i < 4; i++) {
                step_scaled(&t, 1 + i, grad, fetched, 1, bad[i]);
                read_values(&t, &got);
                ck_assert_msg(memcmp(&want, &got, sizeof(want)) == 0, "%s changed", cases[k].label);
                CHECK(memcmp(fetched, want.w, sizeof(fetched)) == 0);
            }
            step_scaled(&t, 5, grad, fetched, 1, 1);
            read_values(&t, &got);
            CHECK(memcmp(want.w, got.w, sizeof(want.w)) != 0);
            CHECK_OK(tt_close(t.ctx));
        }
    }
}

// The average follows what sgd leaves in w, from the first value on; NaN leaves both alone.
TEST_BOTH(moving_averages_follow_updates)
{
    static float w[N], a[N], next_w[N], next_a[N], grad[N];
    for (int set = 0; test_isa(set) != NULL; set++) {
        tt_ctx *ctx = test_ctx_on("cpu:0", test_isa(set), 2);
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *vw =
            tt_variable(g, .shape = TT_SHAPE(N), .init = {TT_INIT_UNIFORM, -1, 1}, .name = "w");
        tt_tensor *va = tt_variable(g, .shape = TT_SHAPE(N), .no_train = true, .name = "w/ema");
        tt_tensor *scale = tt_feed(g, .shape = TT_SCALAR), *dw = tt_feed(g, .shape = TT_SHAPE(N));
        tt_tensor *moved = tt_update_sgd(g, vw, dw, .scale = scale);
        tt_tensor *mean = tt_update_ema(g, va, moved, .decay = 0.9, .scale = scale);
        tt_session *s = tt_session_new(g);
        test_fill(grad, N, 5, -1, 1);
        for (int n = 0; n < 6; n++) {
            float factor = n == 3 ? NAN : 1;
            tt_feed_value feeds[] = {{scale, &factor, TT_SCALAR, TT_F32},
                                     {dw, grad, TT_SHAPE(N), TT_F32}};
            CHECK_OK(tt_run(s, .feeds = feeds, .n_feeds = 2, .targets = &mean, .n_targets = 1,
                            .step = n, .lr = 0.125f));
            CHECK_OK(tt_get_variable(s, vw, next_w, sizeof(w)));
            CHECK_OK(tt_get_variable(s, va, next_a, sizeof(a)));
            if (n == 3) {
                CHECK(memcmp(w, next_w, sizeof(w)) == 0 && memcmp(a, next_a, sizeof(a)) == 0);
                continue;
            }
            CHECK(n == 0 || memcmp(w, next_w, sizeof(w)) != 0);
            for (int i = 0; i < N; i++)
                CHECK(next_a[i] ==
                      (n == 0 ? next_w[i] : fmaf(0.9f, a[i], (float)(1 - 0.9) * next_w[i])));
            memcpy(w, next_w, sizeof(w));
            memcpy(a, next_a, sizeof(a));
        }
        CHECK_OK(tt_close(ctx));
    }
}

TEST(state_is_named_after_the_variable_in_any_scope)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK_OK(tt_name_push(g, "model"));
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(2), .name = "w");
    CHECK_OK(tt_name_push(g, "train"));
    CHECK(tt_update_adam(g, w, tt_fill(g, TT_F32, TT_SHAPE(2), 1)) != NULL);
    CHECK(tt_graph_find(g, "model/w/adam_m") != NULL);
    CHECK(tt_graph_find(g, "model/w/adam_v") != NULL);
    CHECK_STR(tt_tensor_name(tt_identity(g, w)), "model/train/identity");
    CHECK_OK(tt_close(ctx));
}

// An optional input does not change what the text form says of the others.
TEST(scaled_updates_survive_the_text_form)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(2), .name = "w");
    tt_tensor *d = tt_feed(g, .shape = TT_SHAPE(2)), *s = tt_feed(g, .shape = TT_SCALAR);
    CHECK(tt_update_sgd(g, w, d, .scale = s) != NULL);
    CHECK(tt_update_sgd(g, w, d, .momentum = 0.5, .scale = s) != NULL);
    CHECK(tt_update_sgd(g, w, d, .momentum = 0.5) != NULL);
    char *text = tt_graph_print(g);
    tt_graph *again = tt_graph_parse(ctx, text, strlen(text));
    CHECK(again != NULL);
    char *copy = tt_graph_print(again);
    CHECK_STR(text, copy);
    // Without the attribute of the second the scale would be one state too many.
    char *at = strstr(text, ", has_scale=1");
    ck_assert_msg(at != NULL, "%s", text);
    memmove(at, at + strlen(", has_scale=1"), strlen(at + strlen(", has_scale=1")) + 1);
    CHECK(tt_graph_parse(ctx, text, strlen(text)) == NULL);
    CHECK_MESSAGE(ctx, "update_sgd: has 4 inputs without a scale, not 2 to 3");
    tt_string_free(ctx, text);
    tt_string_free(ctx, copy);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// In f64 the formulas are met to f64's precision.
TEST(adam_in_f64)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    double w[3] = {1, -2, 0.5}, grad[3] = {0.1, -3, 1e-3}, got[3], s[3] = {0}, b[3] = {0};
    tt_tensor *var = tt_variable(g, .dtype = TT_F64, .shape = TT_SHAPE(3), .name = "w");
    tt_tensor *next =
        tt_update_adam(g, var, tt_const(g, TT_F64, TT_SHAPE(3), grad), .scale = tt_scalar(g, 0.5));
    tt_session *session = tt_session_new(g);

    CHECK_OK(tt_set_variable(session, var, w, sizeof(w)));
    for (int n = 0; n < 5; n++) {
        CHECK_OK(tt_run(session, .targets = &next, .n_targets = 1, .step = n, .lr = 0.25f,
                        .grad_scale = 2));
        CHECK_OK(tt_get_variable(session, var, got, sizeof(got)));
        for (int i = 0; i < 3; i++) {
            adam_rule(0.25, n + 1, grad[i], &w[i], &s[i], &b[i]);
            CHECK_NEAR(got[i], w[i], 1e-13);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST_BOTH(assign_writes_any_type)
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
    CHECK_MESSAGE(ctx, "beta1 is 1; it must be at least 0 and below 1");
    tt_clear_error(ctx);
    CHECK(tt_update_sgd(g, w, x, .nesterov = true) == NULL);
    CHECK_MESSAGE(ctx, "nesterov needs a momentum");
    tt_clear_error(ctx);
    CHECK(tt_update_sgd(g, w, x, .scale = x) == NULL);
    CHECK_MESSAGE(ctx, "not an f32 scalar");
    tt_clear_error(ctx);
    tt_tensor *v = tt_variable(g, .shape = TT_SCALAR, .name = "v");
    CHECK(tt_update_sgd(g, w, x, .scale = v) == NULL);
    CHECK_MESSAGE(ctx, "scale 'v' is a variable");
    tt_clear_error(ctx);
    CHECK(tt_update_ema(g, w, x, .decay = 1) == NULL);
    CHECK_MESSAGE(ctx, "decay 1 is not between 0 and 1");
    tt_clear_error(ctx);
    CHECK(tt_update_ema(g, x, x) == NULL);
    CHECK_MESSAGE(ctx, "is not a variable");
    tt_clear_error(ctx);
    CHECK(tt_update_sgd(g, w, NULL) == NULL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}
