/*
 * update_more.c - further optimizers' updates, step by step against their formulas in f64: what
 * PyTorch has, and for ftrl Keras.
 */
#include "graph/graph.h"
#include "op/update.h"
#include "op_test.h"
#include <math.h>

OP_TESTED(update_more, "update_adadelta", "update_adamax", "update_nadam", "update_amsgrad",
          "update_ftrl", "update_moment", "lamb_direction")

enum {
    N = 1003,
    STEPS = 6
};

typedef tt_tensor *update_fn(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                             const tt_update_opts *opts);
typedef void rule_fn(const tt_update_opts *o, double lr, int t, double g, double *w, double s[3]);

static void adadelta(const tt_update_opts *o, double lr, int t, double g, double *w, double s[3])
{
    (void)o;
    (void)t;
    s[0] = 0.9 * s[0] + 0.1 * g * g;
    double d = sqrt(s[1] + 1e-6) / sqrt(s[0] + 1e-6) * g;
    s[1] = 0.9 * s[1] + 0.1 * d * d;
    *w -= lr * d;
}

static void adamax(const tt_update_opts *o, double lr, int t, double g, double *w, double s[3])
{
    (void)o;
    s[0] = 0.9 * s[0] + 0.1 * g;
    s[1] = fmax(0.999 * s[1], fabs(g) + 1e-8);
    *w -= lr / (1 - pow(0.9, t)) * s[0] / s[1];
}

static double momentum_of(double i)
{
    return 0.9 * (1 - 0.5 * pow(0.96, 0.004 * i));
}

static void nadam(const tt_update_opts *o, double lr, int t, double g, double *w, double s[3])
{
    (void)o;
    double product = 1, next = momentum_of(t + 1);
    for (int i = 1; i <= t; i++)
        product *= momentum_of(i);
    s[0] = 0.9 * s[0] + 0.1 * g;
    s[1] = 0.999 * s[1] + 0.001 * g * g;
    double root = sqrt(s[1] / (1 - pow(0.999, t))) + 1e-8;
    *w -= lr * (1 - momentum_of(t)) / (1 - product) * g / root;
    *w -= lr * next / (1 - product * next) * s[0] / root;
}

static void amsgrad(const tt_update_opts *o, double lr, int t, double g, double *w, double s[3])
{
    (void)o;
    s[0] = 0.9 * s[0] + 0.1 * g;
    s[1] = 0.999 * s[1] + 0.001 * g * g;
    s[2] = fmax(s[2], s[1]);
    *w -= lr / (1 - pow(0.9, t)) * s[0] / (sqrt(s[2] / (1 - pow(0.999, t))) + 1e-8);
}

static void ftrl(const tt_update_opts *o, double lr, int t, double g, double *w, double s[3])
{
    (void)t;
    double n = s[0] + g * g;
    s[1] += g - (sqrt(n) - sqrt(s[0])) / lr * *w;
    s[0] = n;
    double clipped = fmin(fmax(s[1], -o->l1), o->l1);
    *w = (clipped - s[1]) / ((o->eps + sqrt(n)) / lr + 2 * o->l2);
}

typedef struct update_case {
    const char *label;
    update_fn *build;
    rule_fn *rule;
    const char *state[3];
    tt_update_opts opts;
} update_case;

static const update_case cases[] = {
    {"adadelta", tt_update_adadelta_with, adadelta, {"w/adadelta_square", "w/adadelta_step"}, {0}},
    {"adamax", tt_update_adamax_with, adamax, {"w/adamax_m", "w/adamax_u"}, {.weight_decay = 0.1}},
    {"nadam", tt_update_nadam_with, nadam, {"w/nadam_m", "w/nadam_v"}, {.lr_scale = 0.5}},
    {"amsgrad",
     tt_update_amsgrad_with,
     amsgrad,
     {"w/amsgrad_m", "w/amsgrad_v", "w/amsgrad_max"},
     {.weight_decay = 0.01}},
    {"ftrl", tt_update_ftrl_with, ftrl, {"w/ftrl_n", "w/ftrl_z"}, {.initial = 0.5}},
    {"ftrl_sparse",
     tt_update_ftrl_with,
     ftrl,
     {"w/ftrl_n", "w/ftrl_z"},
     {.l1 = 0.8, .l2 = 0.1, .eps = 1}},
};

typedef struct trial {
    tt_ctx *ctx;
    tt_session *session;
    tt_tensor *w, *s[3], *grad, *scale, *next;
} trial;

static trial start(const update_case *c, const char *isa, int threads, bool scaled)
{
    trial t = {.ctx = test_ctx_on("cpu:0", isa, threads)};
    tt_graph *g = tt_graph_new(t.ctx);
    t.scale = scaled ? tt_feed(g, .shape = TT_SCALAR) : NULL;
    t.w = tt_variable(g, .shape = TT_SHAPE(N), .init = {TT_INIT_UNIFORM, -1, 1}, .name = "w");
    t.grad = tt_feed(g, .shape = TT_SHAPE(N));
    tt_update_opts opts = c->opts;
    opts.opts_size = sizeof(opts);
    opts.scale = t.scale;
    t.next = c->build(g, t.w, t.grad, &opts);
    CHECK(t.next != NULL);
    for (int i = 0; i < 3 && c->state[i] != NULL; i++) {
        t.s[i] = tt_graph_find(g, c->state[i]);
        CHECK(t.s[i] != NULL);
    }
    t.session = tt_session_new(g);
    return t;
}

static void step(const trial *t, int number, float *grad, float scale)
{
    test_fill(grad, N, 100 + (uint64_t)number, -2, 2);
    tt_feed_value feeds[] = {{t->grad, grad, TT_SHAPE(N), TT_F32},
                             {t->scale, &scale, TT_SCALAR, TT_F32}};
    CHECK_OK(tt_run(t->session, .feeds = feeds, .n_feeds = t->scale == NULL ? 1 : 2,
                    .targets = &t->next, .n_targets = 1, .step = number, .lr = 0.0625f,
                    .grad_scale = 0.5f));
}

typedef struct values {
    float w[N], s[3][N];
} values;

static void read_values(const trial *t, values *v)
{
    memset(v, 0, sizeof(*v));
    CHECK_OK(tt_get_variable(t->session, t->w, v->w, sizeof(v->w)));
    for (int i = 0; i < 3 && t->s[i] != NULL; i++)
        CHECK_OK(tt_get_variable(t->session, t->s[i], v->s[i], sizeof(v->s[i])));
}

TEST_BOTH(further_updates_follow_their_formulas)
{
    static values before, after;
    static float grad[N];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const update_case *c = &cases[k];
        trial t = start(c, NULL, 0, false);
        double lr = 0.0625 * (c->opts.lr_scale != 0 ? c->opts.lr_scale : 1);
        for (int n = 0; n < STEPS; n++) {
            read_values(&t, &before);
            step(&t, n, grad, 1);
            read_values(&t, &after);
            for (int i = 0; i < N; i++) {
                double w = before.w[i], s[3] = {before.s[0][i], before.s[1][i], before.s[2][i]};
                double g = grad[i] * 0.5 + c->opts.weight_decay * w;
                c->rule(&c->opts, lr, n + 1, g, &w, s);
                ck_assert_msg(fabs(after.w[i] - w) <= 3e-6 * (1 + fabs(w)),
                              "%s step %d: w[%d] is %.9g, not %.9g", c->label, n, i,
                              (double)after.w[i], w);
                for (int q = 0; q < 3; q++)
                    ck_assert_msg(fabs(after.s[q][i] - s[q]) <= 3e-6 * (1 + fabs(s[q])),
                                  "%s step %d: state %d", c->label, n, q);
            }
        }
        CHECK_OK(tt_close(t.ctx));
    }
}

TEST(ftrl_makes_weights_zero)
{
    static values v;
    static float grad[N];
    trial t = start(&cases[5], NULL, 1, false);
    int zeros = 0;
    for (int n = 0; n < STEPS; n++)
        step(&t, n, grad, 1);
    read_values(&t, &v);
    for (int i = 0; i < N; i++)
        zeros += v.w[i] == 0;
    CHECK(zeros > 20 && zeros < N - 100);
    CHECK_OK(tt_close(t.ctx));
}

TEST(further_updates_have_the_same_bits_with_any_instructions)
{
    static values want, got;
    static float grad[N];
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        for (int set = 0; test_isa(set) != NULL; set++) {
            trial t = start(&cases[k], test_isa(set), 1 + set % 3, true);
            for (int n = 0; n < 3; n++)
                step(&t, n, grad, n == 1 ? 0.25f : 1);
            read_values(&t, set == 0 ? &want : &got);
            CHECK(set == 0 || memcmp(&want, &got, sizeof(want)) == 0);
            step(&t, 3, grad, NAN); // nothing changes
            read_values(&t, &got);
            ck_assert_msg(memcmp(&want, &got, sizeof(want)) == 0, "%s changed", cases[k].label);
            CHECK_OK(tt_close(t.ctx));
        }
    }
}

TEST_BOTH(lamb_has_its_direction)
{
    static float grad[N], w[N], r[N];
    static double m[N], v[N];
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *var =
        tt_variable(g, .shape = TT_SHAPE(N), .init = {TT_INIT_UNIFORM, -1, 1}, .name = "w");
    tt_tensor *d = tt_feed(g, .shape = TT_SHAPE(N));
    tt_tensor *scale = tt_scalar(g, 0.5);
    tt_update_opts o = {.opts_size = sizeof(o), .weight_decay = 0.1, .scale = scale};
    tt_tensor *out = tti_lamb_direction(g, var, d, &o);
    tt_session *s = tt_session_new(g);
    CHECK(out != NULL && tt_graph_find(g, "w/lamb_m") != NULL);
    for (int n = 0; n < 3; n++) {
        test_fill(grad, N, (uint64_t)n, -1, 1);
        tt_feed_value feed = {d, grad, TT_SHAPE(N), TT_F32};
        tt_fetch fetch = {out, r, sizeof(r)};
        CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1,
                        .step = n, .lr = 1));
        CHECK_OK(tt_get_variable(s, var, w, sizeof(w)));
        for (int i = 0; i < N; i++) {
            double x = grad[i] * 0.5;
            m[i] = 0.9 * m[i] + 0.1 * x;
            v[i] = 0.999 * v[i] + 0.001 * x * x;
            double root = sqrt(v[i] / (1 - pow(0.999, n + 1))) + 1e-6;
            CHECK_NEAR(r[i], m[i] / (1 - pow(0.9, n + 1)) / root + 0.1 * (double)w[i], 1e-5);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(further_updates_refuse_bad_options)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(2), .name = "w");
    tt_tensor *d = tt_fill(g, TT_F32, TT_SHAPE(2), 1);
    CHECK(tt_update_adamax(g, w, d, .beta1 = 1) == NULL);
    CHECK_MESSAGE(ctx, "update_adamax: beta1 is 1 and beta2 0.999; they must be at least 0");
    tt_clear_error(ctx);
    CHECK(tt_update_ftrl(g, w, d, .l1 = -1) == NULL);
    CHECK_MESSAGE(ctx, "update_ftrl: eps 0, weight_decay 0, l1 -1 and l2 0 must not be below 0");
    tt_clear_error(ctx);
    CHECK(tt_update_nadam(g, d, d) == NULL);
    CHECK_MESSAGE(ctx, "is not a variable");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
