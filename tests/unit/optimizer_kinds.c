/*
 * optimizer_kinds.c - further optimizers in a fit: lamb and lars against their formulas, penalties
 * and constraints of groups, the same bits on any spread, state that is saved and resumed.
 */
#include "graph/graph.h"
#include "test.h"
#include "train/optimizer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- one weight, step by step ----------------------------------------------------------------

enum {
    ROWS = 6,
    UNITS = 7,
    N = ROWS * UNITS
};

typedef struct trial {
    tt_ctx *ctx;
    tt_graph *g;
    tt_session *s;
    tt_tensor *var, *grad, *in[3], *updates[3];
    tti_rule rule;
    tti_updates_request r;
} trial;

static trial open_trial(const tt_optimizer *o)
{
    static const char *const name = "w";
    static tti_rule rule;
    trial t = {.ctx = test_ctx()};
    t.g = tt_graph_new(t.ctx);
    CHECK_OK(tti_rule_read(t.ctx, o, &rule));
    CHECK_OK(tti_rule_fill(t.ctx, &rule));
    t.var = tt_variable(t.g, .shape = TT_SHAPE(ROWS, UNITS), .init = {TT_INIT_UNIFORM, -1, 1},
                        .name = "w");
    t.grad = tt_feed(t.g, .shape = TT_SHAPE(ROWS, UNITS));
    for (int i = 0; i < 3; i++)
        t.in[i] = tt_feed(t.g, .shape = TT_SCALAR);
    t.s = tt_session_new(t.g);
    t.r = (tti_updates_request){.optimizer = &rule.o,
                                .n = 1,
                                .names = &name,
                                .vars = &t.var,
                                .grads = &t.grad,
                                .loss_sum = t.in[0],
                                .count = t.in[1],
                                .p = t.in[2],
                                .guard = true,
                                .updates = t.updates};
    CHECK_OK(tti_updates_build(t.g, &t.r));
    return t;
}

// P / count is 1/2.
static void run_step(trial *t, int step, const float *grad, float loss)
{
    float scalars[3] = {loss, 4, 2};
    tt_feed_value feeds[4] = {{t->grad, grad, TT_SHAPE(ROWS, UNITS), TT_F32}};
    for (int i = 0; i < 3; i++)
        feeds[1 + i] = (tt_feed_value){t->in[i], &scalars[i], TT_SCALAR, TT_F32};
    CHECK_OK(tt_run(t->s, .feeds = feeds, .n_feeds = 4, .targets = t->updates,
                    .n_targets = t->r.n_updates, .step = step,
                    .lr = tti_learning_rate(t->r.optimizer, step, 10, 1)));
}

static void read_weight(const trial *t, float w[N])
{
    CHECK_OK(tt_get_variable(t->s, t->var, w, sizeof(float) * N));
}

static double norm(const double *x)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void check_all(const float *got, const double *want, double room, const char *what, int step)
{
    for (int i = 0; i < N; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= room, "%s step %d: w[%d] is %.9g, not %.9g",
                      what, step, i, (double)got[i], want[i]);
}

TEST(lars_scales_its_steps_to_the_weight)
{
    trial t = open_trial(tt_lars(.lr = 0.5, .trust = 0.02, .weight_decay = 0.1));
    float got[N], grad[N];
    double w[N], b[N] = {0}, g[N];
    read_weight(&t, got);
    for (int i = 0; i < N; i++)
        w[i] = (double)got[i];
    for (int step = 0; step < 8; step++) {
        test_fill(grad, N, (uint64_t)step, -1, 1);
        for (int i = 0; i < N; i++)
            g[i] = (double)grad[i] * 0.5;
        double ratio = 0.02 * norm(w) / (norm(g) + 0.1 * norm(w));
        for (int i = 0; i < N; i++) {
            b[i] = 0.9 * b[i] + ratio * (g[i] + 0.1 * w[i]);
            w[i] -= 0.5 * b[i];
        }
        run_step(&t, step, grad, 1);
        read_weight(&t, got);
        check_all(got, w, 2e-6, "lars", step);
    }
    CHECK_OK(tt_close(t.ctx));
}

TEST(lamb_scales_its_steps_to_the_weight)
{
    trial t = open_trial(tt_lamb(.lr = 0.1));
    float got[N], grad[N];
    double w[N], m[N] = {0}, v[N] = {0}, r[N];
    read_weight(&t, got);
    for (int i = 0; i < N; i++)
        w[i] = (double)got[i];
    for (int step = 0; step < 8; step++) {
        test_fill(grad, N, (uint64_t)step, -1, 1);
        for (int i = 0; i < N; i++) {
            double g = (double)grad[i] * 0.5;
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            r[i] =
                m[i] / (1 - pow(0.9, step + 1)) / (sqrt(v[i] / (1 - pow(0.999, step + 1))) + 1e-6) +
                0.01 * w[i];
        }
        double ratio = norm(w) / norm(r);
        for (int i = 0; i < N; i++)
            w[i] -= 0.1 * ratio * r[i];
        run_step(&t, step, grad, 1);
        read_weight(&t, got);
        check_all(got, w, 1e-5, "lamb", step);
    }
    CHECK_OK(tt_close(t.ctx));
}

// A weight of zeros has no norm to scale to: the ratio is 1.
TEST(steps_by_norm_leave_zero_and_stay_where_they_are_not_applied)
{
    static const tt_optimizer *list[2];
    list[0] = tt_lars(.lr = 0.5, .momentum = TT_ZERO);
    list[1] = tt_lamb(.lr = 0.5);
    for (int k = 0; k < 2; k++) {
        trial t = open_trial(list[k]);
        float got[N] = {0}, grad[N], before[N];
        CHECK_OK(tt_set_variable(t.s, t.var, got, sizeof(got)));
        test_fill(grad, N, 9, 0.5, 1);
        run_step(&t, 0, grad, 1);
        read_weight(&t, got);
        for (int i = 0; i < N; i++)
            CHECK_NEAR(got[i], k == 0 ? -0.25 * (double)grad[i] : -0.5, 1e-4);
        read_weight(&t, before);
        run_step(&t, 1, grad, NAN);
        read_weight(&t, got);
        CHECK(memcmp(before, got, sizeof(got)) == 0);
        CHECK_OK(tt_close(t.ctx));
    }
}

// ---- groups ----------------------------------------------------------------------------------

TEST(groups_penalise_and_constrain)
{
    trial t = open_trial(
        tt_sgd(.lr = 0.5, .groups = {tt_group(.match = "w", .l1 = 0.1, .max_norm = 0.75)}));
    float got[N], grad[N];
    double w[N];
    read_weight(&t, got);
    for (int i = 0; i < N; i++)
        w[i] = (double)got[i];
    for (int step = 0; step < 5; step++) {
        test_fill(grad, N, (uint64_t)step, -1, 1);
        for (int i = 0; i < N; i++)
            w[i] -= 0.5 * ((double)grad[i] * 0.5 + 0.1 * ((w[i] > 0) - (w[i] < 0)));
        for (int u = 0; u < UNITS; u++) {
            double sum = 0;
            for (int i = 0; i < ROWS; i++)
                sum += w[i * UNITS + u] * w[i * UNITS + u];
            for (int i = 0; i < ROWS; i++)
                w[i * UNITS + u] *= 0.75 / fmax(0.75, sqrt(sum));
        }
        run_step(&t, step, grad, 1);
        read_weight(&t, got);
        check_all(got, w, 1e-6, "group", step);
    }
    CHECK_OK(tt_close(t.ctx));
}

TEST(weights_stay_non_negative)
{
    trial t =
        open_trial(tt_adam(.lr = 0.25, .groups = {tt_group(.match = "*", .non_negative = true)}));
    float got[N], grad[N];
    int zeros = 0;
    for (int step = 0; step < 4; step++) {
        test_fill(grad, N, (uint64_t)step, -1, 1);
        run_step(&t, step, grad, 1);
        read_weight(&t, got);
        for (int i = 0; i < N; i++) {
            CHECK(got[i] >= 0);
            zeros += got[i] == 0;
        }
    }
    CHECK(zeros > 0 && zeros < 4 * N);
    CHECK_OK(tt_close(t.ctx));
}

TEST(bad_groups_are_named)
{
    tt_ctx *ctx = test_ctx();
    tti_rule rule;
    CHECK_OK(tti_rule_read(ctx, tt_sgd(.groups = {tt_group(.match = "*.bias", .l1 = -1)}), &rule));
    CHECK(tti_rule_fill(ctx, &rule) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "sgd: group '*.bias': l1 is -1 and max_norm is 0; neither may be negative");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- in a fit --------------------------------------------------------------------------------

static const tt_optimizer *kind_at(int i, tt_optimizer *o)
{
    static const tt_optimizer_kind kinds[] = {TT_ADADELTA, TT_ADAMAX, TT_NADAM, TT_AMSGRAD,
                                              TT_FTRL,     TT_LAMB,   TT_LARS,  TT_SGD};
    static const tt_group limits = {
        .opts_size = sizeof(limits), .match = "*.weight", .max_norm = 1, .l1 = 1e-3};
    if (i >= TTI_COUNT(kinds))
        return NULL;
    *o = *tt_optimizer(.kind = kinds[i], .ema = i % 2 == 0 ? 0.5 : 0);
    if (kinds[i] == TT_SGD) // constraints of groups
        o->groups[0] = &limits;
    return o;
}

typedef struct result {
    tt_hash hash;
    double loss;
} result;

// save: the folder of checkpoints; steps: where to stop.
static result fit_on(const char *strategy, const char *devices, tt_update_where update, int kind,
                     const char *save, int64_t steps)
{
    enum {
        COUNT = 32,
        IN = 40,
        HIDDEN = 33
    };
    static float x[COUNT * IN], y[COUNT];
    tt_optimizer o;
    tt_ctx *ctx = tt_open(.strategy = strategy, .devices = devices, .threads = 2,
                          .spread = tt_spread(.update = update));
    CHECK(ctx != NULL);
    test_fill(x, COUNT * IN, 1, -1, 1);
    test_fill(y, COUNT, 2, -1, 1);
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(IN), .y_shape = TT_SHAPE(1),
                           .count = COUNT, .batch = 16);
    tt_model *m = tt_sequential(ctx, .input = {IN});
    tt_layer_dense(m, .units = HIDDEN, .act = TT_TANH);
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .optimizer = kind_at(kind, &o)));
    CHECK_OK(
        tt_fit(m, d, .steps = steps, .checkpoints = save, .save_every = 3, .resume = save != NULL));
    result r = {.loss = 0};
    tt_evaluation e;
    CHECK_OK(tt_evaluate(m, d, &e, .ema = o.ema > 0));
    r.loss = e.loss;
    CHECK_OK(tt_model_hash(m, &r.hash));
    CHECK_OK(tt_close(ctx));
    return r;
}

TEST(further_optimizers_have_the_same_bits_on_any_spread)
{
    tt_optimizer o;
    for (int k = 0; kind_at(k, &o) != NULL; k++) {
        result a = fit_on("single", "cpu:0", TT_UPDATE_AUTO, k, NULL, 4);
        result b = fit_on("mirrored", "cpu:0*2", TT_UPDATE_SHARD, k, NULL, 4);
        result c = fit_on("mirrored", "cpu:0*3", TT_UPDATE_EACH, k, NULL, 4);
        ck_assert_msg(memcmp(&a, &b, sizeof(a)) == 0 && memcmp(&a, &c, sizeof(a)) == 0,
                      "kind %d differs", k);
        CHECK(isfinite(a.loss));
    }
}

TEST(further_optimizers_are_resumed)
{
    tt_optimizer o;
    for (int k = 0; kind_at(k, &o) != NULL; k++) {
        char folder[256];
        snprintf(folder, sizeof(folder), "%s/kind_%d", test_folder(), k);
        result whole = fit_on("single", "cpu:0", TT_UPDATE_AUTO, k, NULL, 6);
        (void)fit_on("mirrored", "cpu:0*2", TT_UPDATE_SHARD, k, folder, 3);
        result rest = fit_on("single", "cpu:0", TT_UPDATE_AUTO, k, folder, 6);
        ck_assert_msg(memcmp(&whole, &rest, sizeof(rest)) == 0, "kind %d differs", k);
    }
}
