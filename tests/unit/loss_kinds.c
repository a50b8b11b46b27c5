/*
 * loss_kinds.c - every further kind of loss against its formula in double and finite differences;
 * weights of records and classes; the same bits on one device and on several.
 */
#include "graph/graph.h"
#include "test.h"
#include "train/loss.h"
#include <math.h>

enum {
    ROWS = 9,
    WIDE = 5
};

static const tt_loss kinds[] = {{.kind = TT_KL_DIVERGENCE},
                                {.kind = TT_COSINE_SIMILARITY},
                                {.kind = TT_HINGE},
                                {.kind = TT_SQUARED_HINGE},
                                {.kind = TT_CATEGORICAL_HINGE},
                                {.kind = TT_POISSON},
                                {.kind = TT_POISSON, .no_log = true},
                                {.kind = TT_LOG_COSH},
                                {.kind = TT_FOCAL},
                                {.kind = TT_FOCAL, .gamma = 0.5},
                                {.kind = TT_FOCAL, .gamma = TT_ZERO},
                                {.kind = TT_BINARY_FOCAL},
                                {.kind = TT_BINARY_FOCAL, .gamma = 3, .alpha = 0.25},
                                {.kind = TT_DICE},
                                {.kind = TT_MAPE},
                                {.kind = TT_MSLE}};
#define N_KINDS TTI_COUNT(kinds)

typedef struct trial {
    tt_ctx *ctx;
    tt_graph *g;
    tt_session *s;
    tt_tensor *x, *t, *w;
    tti_loss_terms terms;
} trial;

static trial open_trial(const tt_loss *l, tt_dtype dtype, bool weights, bool dense)
{
    trial r = {.ctx = test_ctx()};
    tt_shape shape;
    tt_dtype type;
    r.g = tt_graph_new(r.ctx);
    r.x = tt_feed(r.g, .shape = TT_SHAPE(TT_BATCH, WIDE), .dtype = dtype, .name = "x");
    CHECK_OK(tti_loss_target(r.ctx, l, r.x, dense, &shape, &type));
    r.t = tt_feed(r.g, .shape = shape, .dtype = type, .name = "t");
    r.w = weights ? tt_feed(r.g, .shape = TT_SHAPE(TT_BATCH), .name = "w") : NULL;
    CHECK_OK(tti_loss_build_weighted(r.g, l, r.x, r.t, r.w, &r.terms));
    r.s = tt_session_new(r.g);
    return r;
}

static void run(const trial *r, const void *x, const void *t, const float *w, tt_tensor *what,
                void *out, size_t bytes)
{
    tt_shape s = tt_tensor_shape(r->t);
    s.dim[0] = ROWS;
    tt_feed_value feeds[] = {{r->x, x, TT_SHAPE(ROWS, WIDE), tt_tensor_dtype(r->x)},
                             {r->t, t, s, tt_tensor_dtype(r->t)},
                             {r->w, w, TT_SHAPE(ROWS), TT_F32}};
    tt_fetch fetch = {what, out, bytes};
    CHECK_OK(tt_run(r->s, .feeds = feeds, .n_feeds = r->w != NULL ? 3 : 2, .fetches = &fetch,
                    .n_fetches = 1));
}

// ---- formulas --------------------------------------------------------------------------------

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double log_softmax(const double *x, int k)
{
    double sum = 0;
    for (int i = 0; i < WIDE; i++)
        sum += exp(x[i] - x[k]);
    return -log(sum);
}

static double element(const tt_loss *l, double x, double t)
{
    double d = x - t, s = t > 0 ? 1 : -1, p = sigmoid(x), gamma = l->gamma == 0 ? 2 : l->gamma;
    double a = l->alpha > 0 ? l->alpha : 1, b = l->alpha > 0 ? 1 - l->alpha : 1;
    switch (l->kind) {
    case TT_HINGE:
        return fmax(0, 1 - s * x);
    case TT_SQUARED_HINGE:
        return pow(fmax(0, 1 - s * x), 2);
    case TT_POISSON:
        return l->no_log ? x - t * log(fmax(x, 1e-7)) : exp(x) - t * x;
    case TT_LOG_COSH:
        return log(cosh(d));
    case TT_BINARY_FOCAL:
        return -a * t * pow(1 - p, gamma) * log(p) - b * (1 - t) * pow(p, gamma) * log(1 - p);
    case TT_MAPE:
        return 100 * fabs(d) / fmax(fabs(t), 1e-7);
    default:
        return pow(log1p(fmax(x, 0)) - log1p(fmax(t, 0)), 2);
    }
}

static double cosine(const double *x, const double *t)
{
    double xt = 0, xx = 0, tt = 0;
    for (int i = 0; i < WIDE; i++) {
        xt += x[i] * t[i];
        xx += x[i] * x[i];
        tt += t[i] * t[i];
    }
    return xt / sqrt(fmax(xx, 1e-12)) / sqrt(fmax(tt, 1e-12));
}

static double hinge_of_classes(const double *x, int label)
{
    double best = 0;
    for (int i = 0; i < WIDE; i++)
        best = i != label && x[i] > best ? x[i] : best;
    return fmax(0, 1 + best - x[label]);
}

// One row; *terms: how many it has.
static double row_of(const tt_loss *l, const double *x, const double *t, int label, int *terms)
{
    double sum = 0, both = 0, all = 1e-7, p = exp(log_softmax(x, label));
    *terms = 1;
    if (l->kind == TT_COSINE_SIMILARITY)
        return 1 - cosine(x, t);
    if (l->kind == TT_CATEGORICAL_HINGE)
        return hinge_of_classes(x, label);
    if (l->kind == TT_FOCAL) // TT_ZERO is no number but 0
        return -pow(1 - p, l->gamma == 0 ? (signbit(l->gamma) ? 0 : 2) : l->gamma) * log(p);
    for (int i = 0; l->kind == TT_KL_DIVERGENCE && i < WIDE; i++)
        sum += t[i] > 0 ? t[i] * (log(t[i]) - log_softmax(x, i)) : 0;
    if (l->kind == TT_KL_DIVERGENCE)
        return sum;
    for (int i = 0; i < WIDE; i++) {
        both += sigmoid(x[i]) * t[i];
        all += sigmoid(x[i]) + t[i];
        sum += element(l, x[i], t[i]);
    }
    if (l->kind == TT_DICE)
        return 1 - 2 * both / all;
    *terms = WIDE;
    return sum;
}

// ---- values ----------------------------------------------------------------------------------

typedef struct numbers {
    double x[ROWS * WIDE], t[ROWS * WIDE];
    int32_t label[ROWS];
    float w[ROWS];
} numbers;

static numbers fill(const tt_loss *l)
{
    numbers n;
    bool binary = l->kind == TT_HINGE || l->kind == TT_SQUARED_HINGE ||
                  l->kind == TT_BINARY_FOCAL || l->kind == TT_DICE;
    bool positive = l->no_log || l->kind == TT_MSLE;
    float x[ROWS * WIDE], t[ROWS * WIDE];
    test_fill(x, ROWS * WIDE, 3, positive ? 0.1 : -3, 3);
    test_fill(t, ROWS * WIDE, 4, 0.05, 1);
    test_fill(n.w, ROWS, 5, 0, 2);
    n.w[2] = 0;
    for (int i = 0; i < ROWS * WIDE; i++) {
        n.x[i] = (double)x[i];
        n.t[i] = binary ? i % 3 == 0 : (double)t[i];
    }
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        n.label[r] = (r * 3 + 1) % WIDE;
        if (l->kind == TT_KL_DIVERGENCE)
            n.t[r * WIDE] = 0; // 0 log 0
        for (int i = 0; i < WIDE; i++)
            sum += n.t[r * WIDE + i];
        for (int i = 0; l->kind == TT_KL_DIVERGENCE && i < WIDE; i++)
            n.t[r * WIDE + i] /= sum;
    }
    return n;
}

TEST(kinds_of_losses_have_their_values)
{
    for (int k = 0; k < N_KINDS; k++) {
        for (int weights = 0; weights < 2; weights++) {
            const tt_loss *l = &kinds[k];
            trial r = open_trial(l, TT_F64, weights != 0, false);
            numbers n = fill(l);
            bool labels = tti_loss_has_labels(l->kind);
            const void *target = labels ? (const void *)n.label : n.t;
            double want = 0, count = 0, sum, weight;
            int terms = 0;
            for (int i = 0; i < ROWS; i++) {
                double w = weights != 0 ? (double)n.w[i] : 1;
                want += w * row_of(l, n.x + i * WIDE, n.t + i * WIDE, n.label[i], &terms);
                count += w * terms;
            }
            run(&r, n.x, target, n.w, r.terms.sum, &sum, sizeof(sum));
            ck_assert_msg(fabs(sum / want - 1) < 1e-6, "%s: %g, not %g", tti_loss_name(l->kind),
                          sum, want);
            CHECK(r.terms.per_row == terms && (r.terms.count != NULL) == (weights != 0));
            if (weights != 0) {
                run(&r, n.x, target, n.w, r.terms.count, &weight, sizeof(weight));
                CHECK_NEAR(weight, count, 1e-6);
            }
            CHECK(r.terms.sum->layout.kind == TT_LAYOUT_PARTIAL);
            CHECK_OK(tt_close(r.ctx));
        }
    }
}

TEST(kinds_of_losses_have_the_slopes_of_finite_differences)
{
    for (int k = 0; k < N_KINDS; k++) {
        const tt_loss *l = &kinds[k];
        trial r = open_trial(l, TT_F64, true, false);
        numbers n = fill(l);
        double slope[ROWS * WIDE], up, down, h = 1e-6;
        const void *target = tti_loss_has_labels(l->kind) ? (const void *)n.label : n.t;
        tt_tensor *dx;
        CHECK_OK(tt_grad(r.g, r.terms.sum, NULL, 1, &r.x, &dx));
        run(&r, n.x, target, n.w, dx, slope, sizeof(slope));
        for (int i = 0; i < ROWS * WIDE; i += 3) {
            double at = n.x[i];
            n.x[i] = at + h;
            run(&r, n.x, target, n.w, r.terms.sum, &up, sizeof(up));
            n.x[i] = at - h;
            run(&r, n.x, target, n.w, r.terms.sum, &down, sizeof(down));
            n.x[i] = at;
            double want = (up - down) / (2 * h);
            ck_assert_msg(fabs(slope[i] - want) < 1e-6 * fmax(1, fabs(want)),
                          "%s: slope %d is %g, not %g", tti_loss_name(l->kind), i, slope[i], want);
        }
        CHECK_OK(tt_close(r.ctx));
    }
}

// Zeros, ones and large numbers: every term and slope is finite.
TEST(kinds_of_losses_stay_finite_at_their_edges)
{
    for (int k = 0; k < N_KINDS; k++) {
        const tt_loss *l = &kinds[k];
        trial r = open_trial(l, TT_F32, false, false);
        float x[ROWS * WIDE], t[ROWS * WIDE], sum, slope[ROWS * WIDE];
        int32_t label[ROWS];
        tt_tensor *dx;
        CHECK_OK(tt_grad(r.g, r.terms.sum, NULL, 1, &r.x, &dx));
        static const float values[] = {0, 50, -50, 1, -1, 1e-20f, 30};
        for (int i = 0; i < ROWS * WIDE; i++) {
            x[i] = i < WIDE ? 0 : values[i % TTI_COUNT(values)];
            t[i] = i < 2 * WIDE ? 0 : (float)(i % 2);
        }
        for (int i = 0; i < ROWS; i++)
            label[i] = i % WIDE;
        const void *target = tti_loss_has_labels(l->kind) ? (const void *)label : t;
        run(&r, x, target, NULL, r.terms.sum, &sum, sizeof(sum));
        run(&r, x, target, NULL, dx, slope, sizeof(slope));
        ck_assert_msg(isfinite(sum), "%s: %g", tti_loss_name(l->kind), (double)sum);
        for (int i = 0; i < ROWS * WIDE; i++)
            ck_assert_msg(isfinite(slope[i]), "%s: slope %d is %g", tti_loss_name(l->kind), i,
                          (double)slope[i]);
        CHECK_OK(tt_close(r.ctx));
    }
}

// ---- classes ---------------------------------------------------------------------------------

TEST(classes_have_weights)
{
    static const double weight[WIDE] = {1, 0.5, 1, 3, 0};
    tt_loss l = {.kind = TT_CROSS_ENTROPY, .class_weight = "1=0.5, 3 = 3,4=0"};
    for (int dense = 0; dense < 2; dense++) {
        trial r = open_trial(&l, TT_F64, false, dense != 0);
        numbers n = fill(&(tt_loss){.kind = TT_KL_DIVERGENCE});
        double want = 0, count = 0, sum, weights;
        for (int i = 0; i < ROWS; i++) {
            double w = 0, term = 0;
            for (int c = 0; c < WIDE; c++) {
                double p = dense != 0 ? n.t[i * WIDE + c] : c == n.label[i];
                w += p * weight[c];
                term -= p * log_softmax(n.x + i * WIDE, c);
            }
            want += w * term;
            count += w;
        }
        const void *target = dense != 0 ? (const void *)n.t : n.label;
        run(&r, n.x, target, NULL, r.terms.sum, &sum, sizeof(sum));
        run(&r, n.x, target, NULL, r.terms.count, &weights, sizeof(weights));
        CHECK_NEAR(sum, want, 1e-6);
        CHECK_NEAR(weights, count, 1e-6);
        CHECK_OK(tt_close(r.ctx));
    }
}

// PyTorch: cross_entropy(x, t, weight=w, ignore_index=-100) divides by the weights that count.
TEST(class_weights_leave_ignored_labels_out)
{
    tt_loss l = {
        .kind = TT_CROSS_ENTROPY, .class_weight = "0=2", .has_ignore = true, .ignore = -100};
    trial r = open_trial(&l, TT_F32, true, false);
    float x[ROWS * WIDE] = {0}, w[ROWS], sum, count;
    int32_t label[ROWS];
    for (int i = 0; i < ROWS; i++) {
        label[i] = i % 3 == 0 ? -100 : i % 3 == 1 ? 0 : 4;
        w[i] = 0.5f;
    }
    run(&r, x, label, w, r.terms.count, &count, sizeof(count));
    run(&r, x, label, w, r.terms.sum, &sum, sizeof(sum));
    CHECK_NEAR(count, 3 * 2 * 0.5 + 3 * 0.5, 1e-6);
    CHECK_NEAR(sum / count, log(5), 1e-6);
    CHECK_OK(tt_close(r.ctx));
}

TEST(binary_targets_have_class_weights)
{
    tt_loss l = {.kind = TT_BINARY_CROSS_ENTROPY, .class_weight = "1=4, 0=0.5"};
    trial r = open_trial(&l, TT_F32, false, false);
    float x[ROWS * WIDE] = {0}, t[ROWS * WIDE] = {0}, sum, count;
    t[3] = t[7] = 1;
    run(&r, x, t, NULL, r.terms.count, &count, sizeof(count));
    run(&r, x, t, NULL, r.terms.sum, &sum, sizeof(sum));
    CHECK_NEAR(count, 2 * 4 + (ROWS * WIDE - 2) * 0.5, 1e-5);
    CHECK_NEAR(sum, (2 * 4 + (ROWS * WIDE - 2) * 0.5) * log(2), 1e-5);
    CHECK_OK(tt_close(r.ctx));
}

static void check_refused(tt_loss l, const char *message)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {3});
    tt_layer_dense(m, .units = l.kind == TT_BINARY_CROSS_ENTROPY ? 1 : 4, .name = "out");
    l.opts_size = sizeof(l);
    CHECK(tt_compile(m, .losses = {&l}) != TT_OK);
    CHECK_MESSAGE(ctx, message);
    CHECK(tt_close(ctx) != TT_OK);
}

TEST(bad_options_of_losses_are_named)
{
    check_refused((tt_loss){.kind = TT_CROSS_ENTROPY, .class_weight = "0=1, 4=2"},
                  "cross_entropy: class_weight: '4=2': there is no class 4; output 'out' has the "
                  "classes 0 to 3");
    check_refused((tt_loss){.kind = TT_CROSS_ENTROPY, .class_weight = "-1=1"},
                  "has the classes 0 to 3");
    check_refused((tt_loss){.kind = TT_BINARY_CROSS_ENTROPY, .class_weight = "2=1"},
                  "there is no class 2");
    check_refused((tt_loss){.kind = TT_FOCAL, .class_weight = "cat=1"},
                  "focal: class_weight: 'cat=1' is not a class and its weight, as in 3=2.5");
    check_refused((tt_loss){.kind = TT_FOCAL, .class_weight = "1=2x"}, "'1=2x' is not a class");
    check_refused((tt_loss){.kind = TT_FOCAL, .class_weight = "1=-2"},
                  "class_weight: '1=-2': a weight must be 0 to 1e30");
    check_refused((tt_loss){.kind = TT_MSE, .class_weight = "1=2"},
                  "mse: class_weight is an option of losses of classes; use sample_weight");
    check_refused((tt_loss){.kind = TT_FOCAL, .gamma = -1}, "focal: gamma is -1");
    check_refused((tt_loss){.kind = TT_BINARY_FOCAL, .alpha = 2}, "alpha 2");
    check_refused((tt_loss){.kind = TT_HINGE, .smoothing = 0.1}, "options of cross_entropy");
}

// ---- in a fit --------------------------------------------------------------------------------

typedef struct result {
    tt_hash weights;
    double loss, accuracy;
} result;

static result fit_on(const char *strategy, const char *devices, const tt_loss *l,
                     int64_t accumulate)
{
    enum {
        COUNT = 40
    };
    static float x[COUNT * 6], y[COUNT * 3], w[COUNT];
    static int32_t label[COUNT];
    tt_ctx *ctx = tt_open(.strategy = strategy, .devices = devices, .threads = 2);
    CHECK(ctx != NULL);
    test_fill(x, COUNT * 6, 1, -1, 1);
    test_fill(y, COUNT * 3, 2, 0.1, 1);
    test_fill(w, COUNT, 3, 0, 2);
    for (int i = 0; i < COUNT; i++)
        label[i] = i % 3;
    bool labels = tti_loss_has_labels(l->kind);
    tt_data *d =
        tt_memory(ctx, .count = COUNT, .batch = 16,
                  .fields = {tt_array(.name = "x", .data = x, .shape = TT_SHAPE(6)),
                             labels ? tt_array(.name = "y", .data = label, .dtype = TT_I32)
                                    : tt_array(.name = "y", .data = y, .shape = TT_SHAPE(3)),
                             tt_array(.name = "importance", .data = w)});
    tt_model *m = tt_sequential(ctx, .input = {6});
    tt_layer_dense(m, .units = 8, .act = TT_TANH);
    tt_layer_dense(m, .units = 3);
    tt_loss own = *l;
    own.opts_size = sizeof(own);
    own.sample_weight = "importance";
    CHECK_OK(tt_compile(m, .losses = {&own}, .optimizer = tt_sgd(.lr = 0.05),
                        .metrics = labels ? TT_ACCURACY : 0));
    CHECK_OK(tt_fit(m, d, .epochs = 2, .accumulate = accumulate));
    result r = {.loss = 0};
    tt_evaluation e;
    CHECK_OK(tt_evaluate(m, d, &e));
    r.loss = e.loss;
    r.accuracy = labels ? e.metrics[0] : 0;
    CHECK_OK(tt_model_hash(m, &r.weights));
    CHECK_OK(tt_close(ctx));
    return r;
}

TEST(weighted_losses_have_the_same_bits_on_several_devices)
{
    static const tt_loss some[] = {{.kind = TT_CROSS_ENTROPY, .class_weight = "1=3"},
                                   {.kind = TT_FOCAL, .class_weight = "0=0.25"},
                                   {.kind = TT_KL_DIVERGENCE},
                                   {.kind = TT_DICE},
                                   {.kind = TT_COSINE_SIMILARITY},
                                   {.kind = TT_POISSON}};
    for (int i = 0; i < TTI_COUNT(some); i++) {
        result a = fit_on("single", "cpu:0", &some[i], 1);
        result b = fit_on("mirrored", "cpu:0*3", &some[i], 1);
        CHECK(memcmp(&a, &b, sizeof(a)) == 0 && isfinite(a.loss));
    }
    result a = fit_on("single", "cpu:0", &some[0], 2),
           b = fit_on("pipeline", "cpu:0*2", &some[0], 2);
    CHECK(memcmp(&a, &b, sizeof(a)) == 0);
}

TEST(sample_weights_that_are_not_there_are_named)
{
    static float x[4] = {0}, two[8] = {0};
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_memory(ctx, .count = 4, .batch = 4,
                           .fields = {tt_array(.name = "x", .data = x, .shape = TT_SHAPE(1)),
                                      tt_array(.name = "y", .data = x, .shape = TT_SHAPE(1)),
                                      tt_array(.name = "pair", .data = two, .shape = TT_SHAPE(2))});
    tt_model *m = tt_sequential(ctx, .input = {1});
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .losses = {tt_loss(.kind = TT_MSE, .sample_weight = "importance")}));
    CHECK(tt_fit(m, d, .epochs = 1) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "has no field 'importance', which a loss needs");
    tt_clear_error(ctx);
    CHECK_OK(tt_compile(m, .losses = {tt_loss(.kind = TT_MSE, .sample_weight = "pair")}));
    CHECK(tt_fit(m, d, .epochs = 1) == TT_ESHAPE);
    CHECK_MESSAGE(ctx, "sample weight 'pair' has shape []; a sample weight is one f32 number");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}

// Two weighted losses: each is divided by its own weights.
TEST(several_losses_share_a_weight)
{
    static float x[4] = {1, 2, 3, 4}, y[4] = {0, 0, 0, 0}, w[4] = {0.25f, 0, 0, 0.25f};
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_memory(ctx, .count = 4, .batch = 4,
                           .fields = {tt_array(.name = "x", .data = x, .shape = TT_SHAPE(1)),
                                      tt_array(.name = "y", .data = y, .shape = TT_SHAPE(1)),
                                      tt_array(.name = "w", .data = w)});
    tt_model *m = tt_sequential(ctx, .input = {1});
    tt_layer_dense(m, .units = 1, .init = {TT_INIT_CONSTANT, 1, 0}, .name = "out");
    CHECK_OK(tt_compile(
        m, .optimizer = tt_sgd(.lr = 0.125),
        .losses = {tt_loss(.kind = TT_MSE, .output = "out", .target = "y", .sample_weight = "w"),
                   tt_loss(.kind = TT_MAE, .output = "out", .target = "y", .sample_weight = "w",
                           .weight = 2)}));
    tt_evaluation e;
    CHECK_OK(tt_evaluate(m, d, &e));
    CHECK_NEAR(e.loss, (1 + 16) / 2.0 + 2 * (1 + 4) / 2.0, 1e-6);
    CHECK_OK(tt_fit(m, d, .steps = 1));
    float kernel;
    tt_tensor *v = tt_graph_find(tt_model_get_train_graph(m), "out.weight");
    ck_assert(v != NULL);
    CHECK_OK(tt_get_variable(tt_model_get_session(m), v, &kernel, sizeof(kernel)));
    CHECK_NEAR(kernel, 1 - 0.125 * ((1 + 16) + 2 * (1 + 4) / 2.0), 1e-5); // 2 x^2 and 2 x
    CHECK_OK(tt_close(ctx));
}
