/*
 * optimizer.c - whole updates: ten steps against plain C, clipping, groups, averages, guards.
 */
#include "train/optimizer.h"
#include "graph/graph.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    N = 37,
    W = 3,
    STEPS = 10
};
static const char *const names[W] = {"b.weight", "a.weight", "a.bias"};

typedef struct trial {
    tt_ctx *ctx;
    tt_graph *g;
    tt_session *s;
    tt_tensor *vars[W], *grads[W], *in[3], *updates[2 * W];
    tti_updates_request r;
    const tt_optimizer *o;
} trial;

// As tt_compile() reads it; the last one.
static const tt_optimizer *filled(tt_ctx *ctx, const tt_optimizer *given)
{
    static tti_rule rule;
    CHECK_OK(tti_rule_read(ctx, given, &rule));
    CHECK_OK(tti_rule_fill(ctx, &rule));
    return &rule.o;
}

static trial open_trial(const tt_optimizer *o, bool guard)
{
    trial t = {.ctx = test_ctx()};
    t.g = tt_graph_new(t.ctx);
    t.o = filled(t.ctx, o);
    for (int i = 0; i < W; i++) {
        t.vars[i] = tt_variable(t.g, .shape = TT_SHAPE(N), .init = {TT_INIT_UNIFORM, -1, 1},
                                .name = names[i]);
        t.grads[i] = tt_feed(t.g, .shape = TT_SHAPE(N));
        t.in[i] = tt_feed(t.g, .shape = TT_SCALAR);
    }
    t.s = tt_session_new(t.g);
    t.r = (tti_updates_request){.n = W,
                                .names = names,
                                .loss_sum = t.in[0],
                                .count = t.in[1],
                                .p = t.in[2],
                                .guard = guard};
    return t;
}

static void build(trial *t)
{
    t->r.optimizer = t->o;
    t->r.vars = t->vars;
    t->r.grads = t->grads;
    t->r.updates = t->updates;
    CHECK_OK(tt_name_push(t->g, "somewhere"));
    CHECK_OK(tti_updates_build(t->g, &t->r));
    CHECK_OK(tt_name_pop(t->g));
}

static void gradients(float g[W][N], int step, double size)
{
    for (int i = 0; i < W; i++)
        test_fill(g[i], N, (uint64_t)(100 * step + i), -size, size);
}

typedef struct outcome {
    float applied, norm;
} outcome;

static outcome run_step(const trial *t, int step, float g[W][N], float loss, float count, float p)
{
    float scalars[3] = {loss, count, p};
    tt_feed_value feeds[2 * W];
    for (int i = 0; i < W; i++) {
        feeds[i] = (tt_feed_value){t->grads[i], g[i], TT_SHAPE(N), TT_F32};
        feeds[W + i] = (tt_feed_value){t->in[i], &scalars[i], TT_SCALAR, TT_F32};
    }
    outcome y = {0};
    tt_fetch fetch[] = {{t->r.applied, &y.applied, 4}, {t->r.norm, &y.norm, 4}};
    CHECK_OK(tt_run(t->s, .feeds = feeds, .n_feeds = 2 * W, .fetches = fetch,
                    .n_fetches = t->r.norm == NULL ? 1 : 2, .targets = t->updates,
                    .n_targets = t->r.n_updates, .step = step,
                    .lr = tti_learning_rate(t->o, step, STEPS, 1)));
    return y;
}

static void read_var(const trial *t, const char *name, float out[N])
{
    tt_tensor *v = tt_graph_find(t->g, name);
    ck_assert_msg(v != NULL, "there is no '%s'", name);
    CHECK_OK(tt_get_variable(t->s, v, out, sizeof(float) * N));
}

// ---- plain C ---------------------------------------------------------------------------------

typedef struct plain {
    double w[W][N], s[W][N], b[W][N];
} plain;

static double norm_of(double g[W][N], int first, int n)
{
    double sum = 0;
    for (int i = first; i < first + n; i++)
        for (int j = 0; j < N; j++)
            sum += g[i][j] * g[i][j];
    return sqrt(sum);
}

static double smaller(double norm, double clip)
{
    return clip > 0 && norm > clip ? clip / norm : 1;
}

static void clip(const tt_optimizer *o, double g[W][N])
{
    double all = smaller(norm_of(g, 0, W), o->clip_global);
    for (int i = 0; i < W; i++) {
        double one = smaller(norm_of(g, i, 1), o->clip_norm);
        for (int j = 0; j < N; j++) {
            g[i][j] *= all * one;
            if (o->clip_value > 0)
                g[i][j] = fmin(fmax(g[i][j], -o->clip_value), o->clip_value);
        }
    }
}

static void element(const tt_optimizer *o, double lr, int t, double decay, double g, double *w,
                    double *s, double *b)
{
    bool apart = o->kind == TT_ADAMW || o->kind == TT_LION;
    if (apart)
        *w *= 1 - lr * decay;
    else
        g += decay * *w;
    double d = g;
    switch (o->kind) {
    case TT_SGD:
        *s = o->momentum * *s + g;
        d = o->nesterov ? g + o->momentum * *s : *s;
        break;
    case TT_ADAM:
    case TT_ADAMW:
        *s = o->beta1 * *s + (1 - o->beta1) * g;
        *b = o->beta2 * *b + (1 - o->beta2) * g * g;
        d = *s / (1 - pow(o->beta1, t)) / (sqrt(*b / (1 - pow(o->beta2, t))) + o->eps);
        break;
    case TT_RMSPROP:
        *s = o->beta1 * *s + (1 - o->beta1) * g * g;
        d = *b = o->momentum * *b + g / (sqrt(*s) + o->eps);
        break;
    case TT_ADAGRAD:
        *s += g * g;
        d = g / (sqrt(*s) + o->eps);
        break;
    case TT_LION:
    default: // the others: optimizer_kinds.c
        d = o->beta1 * *s + (1 - o->beta1) * g;
        d = (d > 0) - (d < 0);
        *s = o->beta2 * *s + (1 - o->beta2) * g;
        break;
    }
    *w -= lr * d;
}

static void plain_step(const trial *t, plain *p, int step, float g[W][N], double factor,
                       const double lr_scale[W], const double decay[W])
{
    double d[W][N], lr = (double)tti_learning_rate(t->o, step, STEPS, 1);
    for (int i = 0; i < W; i++)
        for (int j = 0; j < N; j++)
            d[i][j] = g[i][j] * factor;
    clip(t->o, d);
    for (int i = 0; i < W; i++)
        for (int j = 0; j < N; j++)
            element(t->o, lr * lr_scale[i], step + 1, decay[i], d[i][j], &p->w[i][j], &p->s[i][j],
                    &p->b[i][j]);
}

static void plain_start(const trial *t, plain *p)
{
    memset(p, 0, sizeof(*p));
    for (int i = 0; i < W; i++) {
        float w[N];
        CHECK_OK(tt_get_variable(t->s, t->vars[i], w, sizeof(w)));
        for (int j = 0; j < N; j++) {
            p->w[i][j] = w[j];
            p->s[i][j] = t->o->kind == TT_ADAGRAD ? t->o->initial : 0;
        }
    }
}

// Ten steps with P = 64 and a count of 48; weights within room of plain C's.
static void check_against_plain(const tt_optimizer *o, const double lr_scale[W],
                                const double decay[W], double room)
{
    static plain p;
    trial t = open_trial(o, true);
    build(&t);
    plain_start(&t, &p);
    for (int n = 0; n < STEPS; n++) {
        float g[W][N], w[N];
        gradients(g, n, 0.5);
        CHECK(run_step(&t, n, g, 1, 48, 64).applied == 1);
        plain_step(&t, &p, n, g, 64.0 / 48, lr_scale, decay);
        for (int i = 0; i < W; i++) {
            CHECK_OK(tt_get_variable(t.s, t.vars[i], w, sizeof(w)));
            for (int j = 0; j < N; j++)
                ck_assert_msg(fabs(w[j] - p.w[i][j]) <= room, "%d: step %d %s[%d] %.9g, not %.9g",
                              (int)o->kind, n, names[i], j, (double)w[j], p.w[i][j]);
        }
    }
    CHECK_OK(tt_close(t.ctx));
}

static const double ones[W] = {1, 1, 1}, zeros[W] = {0, 0, 0};

TEST(optimizers_follow_plain_c_for_ten_steps)
{
    const double hundredth[W] = {0.01, 0.01, 0.01};
    double room = 6e-7; // ten roundings of weights up to 1
    check_against_plain(tt_sgd(.lr = 0.1), ones, zeros, room);
    check_against_plain(tt_sgd(.lr = 0.1, .momentum = 0.9), ones, zeros, room);
    check_against_plain(tt_sgd(.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01),
                        ones, hundredth, 2 * room);
    check_against_plain(tt_adam(.lr = 0.01), ones, zeros, room);
    check_against_plain(tt_adamw(.lr = 0.01), ones, hundredth, room);
    check_against_plain(tt_rmsprop(.lr = 0.01), ones, zeros, room);
    check_against_plain(tt_rmsprop(.lr = 0.01, .momentum = 0.5), ones, zeros, room);
    check_against_plain(tt_adagrad(.lr = 0.1), ones, zeros, room);
    check_against_plain(tt_lion(.lr = 0.01, .weight_decay = 0.01), ones, hundredth, room);
    check_against_plain(tt_adam(.lr = 0.01, .schedule = tt_cosine(.warmup = 3)), ones, zeros, room);
}

TEST(gradients_are_clipped_after_they_are_scaled)
{
    double room = 6e-7;
    check_against_plain(tt_sgd(.lr = 0.1, .clip_value = 0.25), ones, zeros, room);
    check_against_plain(tt_sgd(.lr = 0.1, .clip_norm = 1), ones, zeros, room);
    check_against_plain(tt_sgd(.lr = 0.1, .clip_norm = 1e6), ones, zeros, room);
    check_against_plain(tt_sgd(.lr = 0.1, .clip_global = 2), ones, zeros, room);
    check_against_plain(tt_adam(.lr = 0.01, .clip_global = 2), ones, zeros, room);
    check_against_plain(tt_lion(.lr = 0.01, .clip_norm = 1), ones, zeros, room);
}

TEST(groups_scale_and_exclude)
{
    const double scale[W] = {1, 0.5, 0.25}, decay[W] = {0.1, 0.2, 0};
    tt_optimizer *o =
        tt_sgd(.lr = 0.1, .weight_decay = 0.1,
               .groups = {tt_group(.match = "*.bias", .lr_scale = 0.25, .no_decay = true),
                          tt_group(.match = "a.*", .lr_scale = 0.5, .weight_decay = 0.2)});
    check_against_plain(o, scale, decay, 6e-7);
    const double but_bias[W] = {0.1, 0.1, 0};
    check_against_plain(tt_adamw(.lr = 0.01, .weight_decay = 0.1, .no_decay = "*.bias"), ones,
                        but_bias, 6e-7);
}

// ---- norms, to the bit -----------------------------------------------------------------------

// The global norm adds squares in order of names: a.bias, a.weight, b.weight.
TEST(the_global_norm_is_exact)
{
    trial t = open_trial(tt_sgd(.lr = 1, .clip_global = 1), true);
    build(&t);
    float g[W][N], w[W][N], after[N];
    double square[W];
    gradients(g, 3, 4);
    for (int i = 0; i < W; i++) {
        double part[16] = {0};
        for (int j = 0; j < N; j++)
            part[j % 16] += (double)g[i][j] * (double)g[i][j];
        for (int d = 8; d > 0; d /= 2)
            for (int j = 0; j < d; j++)
                part[j] += part[j + d];
        square[i] = part[0];
        CHECK_OK(tt_get_variable(t.s, t.vars[i], w[i], sizeof(w[i])));
    }
    double s = 16.0 / 11, norm = sqrt((square[2] + square[1]) + square[0]) * s;
    outcome y = run_step(&t, 0, g, 5, 11, 16);
    CHECK(norm > 1 && y.norm == (float)norm && y.applied == 1);
    float factor = (float)(s * (1 / norm));
    for (int i = 0; i < W; i++) {
        CHECK_OK(tt_get_variable(t.s, t.vars[i], after, sizeof(after)));
        for (int j = 0; j < N; j++)
            CHECK(after[j] == fmaf(-1, g[i][j] * factor, w[i][j]));
    }
    CHECK_OK(tt_close(t.ctx));
}

// ---- guards and averages ---------------------------------------------------------------------

static void all_bytes(const trial *t, float out[64][N], int *n)
{
    tt_graph *g = t->g;
    *n = 0;
    for (int64_t i = 0; i < g->n_nodes; i++)
        if (tti_is_variable(g->nodes[i]->out))
            CHECK_OK(tt_get_variable(t->s, g->nodes[i]->out, out[(*n)++], sizeof(out[0])));
}

TEST(a_guarded_step_that_is_not_finite_changes_nothing)
{
    static float before[64][N], after[64][N];
    const tt_optimizer *kinds[] = {tt_sgd(.lr = 0.1, .momentum = 0.9, .ema = 0.9),
                                   tt_adamw(.ema = 0.9, .clip_global = 1),
                                   tt_rmsprop(.clip_norm = 1, .ema = 0.5),
                                   tt_lion(.clip_value = 1, .ema = 0.5), tt_adagrad(.ema = 0.5)};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        trial t = open_trial(kinds[k], true);
        t.r.guard_gradients = true;
        build(&t);
        CHECK_INT(t.r.n_updates, 2 * W);
        float g[W][N];
        int n, m;
        gradients(g, 0, 1);
        CHECK(run_step(&t, 0, g, 1, 8, 8).applied == 1);
        all_bytes(&t, before, &n);
        CHECK(isnan(run_step(&t, 1, g, NAN, 8, 8).applied));
        CHECK(isnan(run_step(&t, 2, g, INFINITY, 8, 8).applied));
        g[1][7] = NAN; // one element of one gradient
        CHECK(isnan(run_step(&t, 3, g, 1, 8, 8).applied));
        g[1][7] = INFINITY;
        CHECK(isnan(run_step(&t, 4, g, 1, 8, 8).applied));
        all_bytes(&t, after, &m);
        CHECK(m == n && memcmp(before, after, sizeof(before[0]) * (size_t)n) == 0);
        gradients(g, 5, 1);
        CHECK(run_step(&t, 5, g, 1, 8, 8).applied == 1);
        all_bytes(&t, after, &m);
        for (int i = 0; i < W; i++)
            CHECK(memcmp(before[i], after[i], sizeof(before[i])) != 0);
        CHECK_OK(tt_close(t.ctx));
    }
}

TEST(without_a_guard_nan_goes_on)
{
    trial t = open_trial(tt_sgd(.lr = 0.1, .clip_global = 1), false);
    build(&t);
    float g[W][N], w[N];
    gradients(g, 0, 1);
    g[0][0] = NAN;
    CHECK(run_step(&t, 0, g, NAN, 8, 8).applied == 1);
    CHECK_OK(tt_get_variable(t.s, t.vars[0], w, sizeof(w)));
    CHECK(isnan(w[0]) && !isnan(w[1]));
    CHECK_OK(tt_close(t.ctx));
}

TEST(averages_are_named_after_weights)
{
    trial t = open_trial(tt_sgd(.lr = 0.5, .ema = 0.75), true);
    t.grads[1] = NULL; // a weight that is not used
    build(&t);
    CHECK_INT(t.r.n_updates, 4);
    CHECK(tt_graph_find(t.g, "a.weight/ema") == NULL);
    t.grads[1] = tt_feed(t.g, .shape = TT_SHAPE(N));
    float g[W][N], w[N], want[N] = {0}, got[N];
    for (int n = 0; n < 4; n++) {
        gradients(g, n, 1);
        run_step(&t, n, g, 1, 8, 8);
        read_var(&t, "b.weight", w);
        read_var(&t, "b.weight/ema", got);
        for (int j = 0; j < N; j++) {
            want[j] = n == 0 ? w[j] : fmaf(0.75f, want[j], 0.25f * w[j]);
            CHECK(got[j] == want[j]);
        }
    }
    tt_tensor *trainable[8];
    CHECK_INT(tt_trainable(t.g, trainable, 8), W);
    CHECK_OK(tt_close(t.ctx));
}

// No terms that count: no gradient, but momentum goes on.
TEST(a_step_without_terms)
{
    trial t = open_trial(tt_sgd(.lr = 0.1), true);
    build(&t);
    float g[W][N], before[N], after[N];
    gradients(g, 0, 1);
    read_var(&t, "a.bias", before);
    CHECK(run_step(&t, 0, g, 0, 0, 8).applied == 1);
    read_var(&t, "a.bias", after);
    CHECK(memcmp(before, after, sizeof(before)) == 0);
    CHECK_OK(tt_close(t.ctx));
}

// ---- plans -----------------------------------------------------------------------------------

enum {
    LAYERS = 12,
    WIDE = 128
};

// Bytes of activations of a training step of a deep model.
static size_t arena_of(const tt_optimizer *given, bool by_hand)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    const tt_optimizer *o = filled(ctx, given);
    tt_tensor *w[LAYERS], *dw[LAYERS], *updates[2 * LAYERS];
    char text[LAYERS][16];
    const char *name[LAYERS];
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, WIDE)), *y = x;
    for (int i = 0; i < LAYERS; i++) {
        snprintf(text[i], sizeof(text[i]), "w%d", i);
        name[i] = text[i];
        w[i] = tt_variable(g, .shape = TT_SHAPE(WIDE, WIDE), .name = name[i]);
        y = tt_matmul(g, y, w[i], .act = TT_RELU);
    }
    tt_tensor *sum = tt_sum(g, y);
    CHECK_OK(tt_grad(g, sum, NULL, LAYERS, w, dw));
    tti_updates_request r = {.optimizer = o,
                             .n = LAYERS,
                             .names = name,
                             .vars = w,
                             .grads = dw,
                             .loss_sum = sum,
                             .count = tt_scalar(g, 8),
                             .p = tt_scalar(g, 8),
                             .guard = true,
                             .updates = updates};
    if (!by_hand)
        CHECK_OK(tti_updates_build(g, &r));
    for (int i = 0; by_hand && i < LAYERS; i++)
        updates[r.n_updates++] = tt_update_adam(g, w[i], dw[i]);
    tt_session *s = tt_session_new(g);
    float *data = calloc(8 * WIDE, sizeof(float));
    tt_feed_value feed = {x, data, TT_SHAPE(8, WIDE), TT_F32};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = updates, .n_targets = r.n_updates));
    tt_plan_memory m;
    CHECK_OK(tt_plan_memory_get(s, 0, &m));
    free(data);
    CHECK_OK(tt_close(ctx));
    return m.activations;
}

// The factor is known before the gradients are, so each is used and freed at once; a global norm
// needs them all.
TEST(a_scale_does_not_keep_gradients_alive)
{
    tt_optimizer *usual = tt_adam(.lr = 0), *clipped = tt_adam(.clip_global = 1);
    size_t bare = arena_of(usual, true), scaled = arena_of(usual, false);
    size_t one = sizeof(float) * WIDE * WIDE;
    ck_assert_msg(scaled < bare + 1024, "%zu bytes, and %zu with a scale", bare, scaled);
    CHECK(bare < 4 * one);
    CHECK(arena_of(clipped, false) >= LAYERS * one);
}

// Averages live where their weights do; two devices give the bits of one.
TEST(updates_on_two_devices)
{
    tt_hash hash[2];
    for (int k = 0; k < 2; k++) {
        tt_ctx *ctx = test_ctx_on(k == 0 ? "cpu:0" : "cpu:0*2", NULL, 2);
        tt_graph *g = tt_graph_new(ctx);
        const tt_optimizer *o = filled(ctx, tt_adamw(.clip_global = 0.5, .ema = 0.9));
        tt_tensor *w[W], *dw[W], *updates[2 * W], *sum = tt_scalar(g, 1);
        for (int i = 0; i < W; i++) {
            if (k == 1)
                CHECK_OK(tt_device_push(g, i == 1 ? "cpu:1" : "cpu:0"));
            w[i] = tt_variable(g, .shape = TT_SHAPE(N), .init = {TT_INIT_UNIFORM, -1, 1},
                               .name = names[i]);
            if (k == 1)
                CHECK_OK(tt_device_pop(g));
            dw[i] = tt_square(g, w[i]);
        }
        tti_updates_request r = {.optimizer = o,
                                 .n = W,
                                 .names = names,
                                 .vars = w,
                                 .grads = dw,
                                 .loss_sum = sum,
                                 .count = sum,
                                 .p = sum,
                                 .updates = updates};
        CHECK_OK(tti_updates_build(g, &r));
        tt_session *s = tt_session_new(g);
        for (int n = 0; n < 3; n++)
            CHECK_OK(
                tt_run(s, .targets = updates, .n_targets = r.n_updates, .step = n, .lr = 0.01f));
        CHECK_OK(tt_weight_hash(s, &hash[k]));
        if (k == 1) {
            char *plan = tt_plan_print(s, .targets = updates, .n_targets = r.n_updates);
            ck_assert_msg(strstr(plan, "a.weight/ema") != NULL, "%s", plan);
            tt_string_free(ctx, plan);
        }
        CHECK_OK(tt_close(ctx));
    }
    CHECK(hash[0].low == hash[1].low && hash[0].high == hash[1].high);
}

// ---- options ---------------------------------------------------------------------------------

TEST(optimizers_have_defaults)
{
    tt_ctx *ctx = test_ctx();
    static const double lr[] = {1e-2, 1e-3, 1e-3, 1e-3, 1e-2, 1e-4, 1,
                                2e-3, 2e-3, 1e-3, 1e-3, 1e-3, 0.1};
    for (int i = 0; tti_optimizer_at(i) != NULL; i++) {
        const tti_optimizer_def *d = tti_optimizer_at(i);
        tt_optimizer from_rows = {.kind = d->kind};
        CHECK(tti_optimizer_find(d->name) == d && (int)d->kind == i);
        const tt_optimizer *o = filled(ctx, tt_optimizer(.kind = d->kind));
        CHECK(o->lr == lr[i]);
        CHECK(o->weight_decay == (d->kind == TT_ADAMW || d->kind == TT_LAMB ? 0.01 : 0));
        CHECK_OK(tti_options_default(ctx, d->options, &from_rows));
        CHECK(o->lr == from_rows.lr && o->beta1 == from_rows.beta1 && o->eps == from_rows.eps);
        CHECK(o->beta2 == from_rows.beta2 && o->initial == from_rows.initial);
    }
    CHECK(tti_optimizer_find("adamin") == NULL && tti_optimizer_at(-1) == NULL);
    CHECK(filled(ctx, NULL)->kind == TT_SGD && filled(ctx, NULL)->schedule->kind == TT_LR_CONSTANT);
    const tt_optimizer *o = filled(
        ctx, tt_lion(.schedule = tt_one_cycle(.warmup = 3), .groups = {tt_group(.match = "*")}));
    CHECK(o->beta1 == 0.9 && o->beta2 == 0.99);
    CHECK(o->schedule->peak == 0.3 && o->schedule->final == 1e-4);
    CHECK(o->groups[0]->lr_scale == 1 && o->groups[1] == NULL);
    CHECK_OK(tt_close(ctx));
}

static void check_refused(const tt_optimizer *o, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tti_rule rule;
    tt_status st = tti_rule_read(ctx, o, &rule);
    CHECK((st == TT_OK ? tti_rule_fill(ctx, &rule) : st) == TT_EINVAL);
    CHECK_MESSAGE(ctx, words);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(optimizers_refuse_what_cannot_be)
{
    check_refused(tt_optimizer(.kind = (tt_optimizer_kind)99), "there is no kind 99");
    check_refused(tt_sgd(.lr = -1), "sgd: lr -1 is below 0");
    check_refused(tt_adam(.beta1 = 1), "adam: beta1 1 is above");
    check_refused(tt_adam(.lr = NAN), "lr nan is not a number");
    check_refused(tt_sgd(.nesterov = true), "nesterov needs a momentum");
    check_refused(tt_sgd(.clip_norm = 1, .clip_global = 2), "only one may be given");
    check_refused(tt_sgd(.ema = 1), "ema 1 is above");
    check_refused(tt_sgd(.schedule = tt_cosine(.final = 2)), "cosine: final 2 is above 1");
    check_refused(tt_sgd(.schedule = tt_schedule(.kind = (tt_schedule_kind)17)),
                  "there is no kind 17");
    check_refused(tt_sgd(.schedule = tt_step_decay(.every = -1)), "step: every -1 is below 1");
    check_refused(tt_sgd(.groups = {tt_group()}), "group 0 has no match");
    check_refused(&(tt_optimizer){.lr = 1}, "optimizer: opts_size is 0");
    check_refused(tt_sgd(.schedule = &(tt_schedule){.steps = 4}), "schedule: opts_size is 0");
    check_refused(tt_sgd(.groups = {tt_group(.match = "*"), &(tt_group){.match = "*"}}),
                  "optimizer: group 1: opts_size is 0");
    check_refused(tt_sgd(.groups = {tt_group(.match = "*", .lr_scale = -1)}),
                  "group '*': lr_scale is -1");
}

TEST(updates_survive_missing_memory)
{
    for (int64_t k = 1; k < 2000; k += k < 40 ? 1 : 7) {
        trial t = open_trial(tt_adam(.clip_norm = 1, .ema = 0.9), true);
        t.r.optimizer = t.o;
        t.r.vars = t.vars;
        t.r.grads = t.grads;
        t.r.updates = t.updates;
        int64_t before = t.g->n_nodes;
        tti_fail_alloc_at(t.ctx, k);
        tt_status st = tti_updates_build(t.g, &t.r);
        tti_fail_alloc_at(t.ctx, 0);
        CHECK(st == TT_OK || (st == TT_ENOMEM && t.g->n_nodes == before));
        CHECK(tt_close(t.ctx) == st);
        if (st == TT_OK)
            return;
    }
    ck_abort_msg("the updates never got their memory");
}
