/*
 * metric.c - metrics on cases worked out by hand: ties, empty classes, ignored targets, parts.
 */
#include "test.h"
#include "train/loss.h"
#include <math.h>

typedef struct batch {
    int rows, wide; // wide 0: one number a row
    const float *x;
    const void *t;
    tt_dtype type;
    bool dense; // t has the shape of x
} batch;

typedef struct trial {
    tt_ctx *ctx;
    tt_session *s;
    tt_tensor *x, *t, *states[TTI_MAX_STATES];
    int n_states;
} trial;

static trial open_trial(const char *metric, const tt_loss *l, const batch *b, int top_k)
{
    trial r = {.ctx = test_ctx()};
    tt_graph *g = tt_graph_new(r.ctx);
    tt_shape shape = b->wide > 0 ? TT_SHAPE(TT_BATCH, b->wide) : TT_SHAPE(TT_BATCH);
    r.x = tt_feed(g, .shape = shape);
    r.t = tt_feed(g, .shape = b->dense ? shape : TT_SHAPE(TT_BATCH), .dtype = b->type);
    tti_metric_inputs in = {.target = r.t, .loss = l, .top_k = top_k};
    CHECK_OK(tti_loss_build(g, l, r.x, r.t, &in.terms));
    in.logits = in.terms.logits;
    CHECK_OK(tti_metric_find(metric)->build(g, &in, r.states, &r.n_states));
    CHECK(r.n_states >= 1 && r.n_states <= TTI_MAX_STATES);
    for (int i = 0; i < r.n_states; i++)
        CHECK(r.states[i]->layout.kind == TT_LAYOUT_PARTIAL);
    r.s = tt_session_new(g);
    return r;
}

// Adds the sums of rows [first, first + n) to sums.
static void add_rows(const trial *r, const batch *b, int first, int n, int global,
                     double sums[TTI_MAX_STATES][64])
{
    int wide = b->wide > 0 ? b->wide : 1;
    size_t per = tt_dtype_bytes(b->type) * (size_t)(b->dense ? wide : 1);
    tt_shape x = tt_tensor_shape(r->x), t = tt_tensor_shape(r->t);
    x.dim[0] = t.dim[0] = n;
    tt_feed_value feeds[] = {{r->x, b->x + first * wide, x, TT_F32},
                             {r->t, (const char *)b->t + (size_t)first * per, t, b->type}};
    float out[TTI_MAX_STATES][64];
    tt_fetch fetch[TTI_MAX_STATES];
    for (int i = 0; i < r->n_states; i++) {
        tt_shape s = tt_tensor_shape(r->states[i]);
        fetch[i] = (tt_fetch){r->states[i], out[i], sizeof(float) * (size_t)tt_shape_count(&s)};
    }
    CHECK_OK(tt_run(
        r->s, .feeds = feeds, .n_feeds = 2, .fetches = fetch, .n_fetches = r->n_states,
        .batch = {.first_row = n == global ? 0 : first, .global_rows = n == global ? 0 : global}));
    for (int i = 0; i < r->n_states; i++)
        for (size_t j = 0; j < fetch[i].bytes / sizeof(float); j++)
            sums[i][j] += out[i][j];
}

static double finish(const char *metric, const trial *r, double sums[TTI_MAX_STATES][64])
{
    const double *at[TTI_MAX_STATES];
    int64_t sizes[TTI_MAX_STATES];
    for (int i = 0; i < r->n_states; i++) {
        tt_shape s = tt_tensor_shape(r->states[i]);
        at[i] = sums[i];
        sizes[i] = tt_shape_count(&s);
    }
    return tti_metric_find(metric)->finish(at, sizes, r->n_states);
}

// The metric of a batch: whole; and, which must agree, from two steps, and from two parts.
static double value_of(const char *metric, tt_loss l, batch b, int top_k)
{
    trial r = open_trial(metric, &l, &b, top_k);
    double whole[TTI_MAX_STATES][64] = {{0}}, steps[TTI_MAX_STATES][64] = {{0}};
    add_rows(&r, &b, 0, b.rows, b.rows, whole);
    double y = finish(metric, &r, whole);
    add_rows(&r, &b, 0, 1, 1, steps);
    if (b.rows > 1)
        add_rows(&r, &b, 1, b.rows - 1, b.rows - 1, steps);
    CHECK_NEAR(finish(metric, &r, steps), y, 1e-6);
    if (b.rows == 8) { // one row a lane
        double parts[TTI_MAX_STATES][64] = {{0}};
        add_rows(&r, &b, 0, 4, 8, parts);
        add_rows(&r, &b, 4, 4, 8, parts);
        CHECK_NEAR(finish(metric, &r, parts), y, 1e-6);
    }
    CHECK_OK(tt_close(r.ctx));
    return y;
}

// ---- classes ---------------------------------------------------------------------------------

static const tt_loss ce = {.kind = TT_CROSS_ENTROPY};
static const tt_loss bce = {.kind = TT_BINARY_CROSS_ENTROPY};

// Predicted: 0, 1, 2, 0 (a tie), 1, 2 (a tie of 2 and 3), 0, 1.
static const float x8[8][4] = {{3, 1, 2, 0}, {0, 5, 1, 1}, {0, 1, 9, 8}, {2, 2, 1, 0},
                               {0, 3, 2, 1}, {0, 1, 4, 4}, {7, 1, 2, 3}, {1, 2, 0, 0}};
static const int32_t t8[8] = {0, 1, 3, 1, 2, 2, 3, 0};

TEST(accuracy_takes_the_lowest_of_equals)
{
    batch b = {8, 4, x8[0], t8, TT_I32, false};
    CHECK_NEAR(value_of("accuracy", ce, b, 0), 3.0 / 8, 1e-12); // rows 0, 1, 5
    CHECK_NEAR(value_of("top_k", ce, b, 1), 3.0 / 8, 1e-12);
    CHECK_NEAR(value_of("top_k", ce, b, 2), 8.0 / 8, 1e-12);
    CHECK_NEAR(value_of("top_k", ce, b, 9), 1, 1e-12);
    uint8_t t[8];
    int64_t wide[8];
    for (int i = 0; i < 8; i++)
        wide[i] = t[i] = (uint8_t)t8[i];
    CHECK_NEAR(value_of("accuracy", ce, (batch){8, 4, x8[0], t, TT_U8, false}, 0), 0.375, 1e-12);
    CHECK_NEAR(value_of("accuracy", ce, (batch){8, 4, x8[0], wide, TT_I64, false}, 0), 0.375,
               1e-12);
    float p[8][4] = {{0}};
    for (int i = 0; i < 8; i++)
        p[i][t8[i]] = 0.6f, p[i][0] += 0.4f;
    CHECK_NEAR(value_of("accuracy", ce, (batch){8, 4, x8[0], p, TT_F32, true}, 0), 0.375, 1e-12);
}

TEST(ignored_targets_are_in_no_metric)
{
    tt_loss l = {.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = -1};
    int32_t t[8];
    for (int i = 0; i < 8; i++)
        t[i] = i < 2 ? -1 : t8[i]; // the first two were right
    batch b = {8, 4, x8[0], t, TT_I32, false};
    CHECK_NEAR(value_of("accuracy", l, b, 0), 1.0 / 6, 1e-12);
    CHECK_NEAR(value_of("top_k", l, b, 2), 1, 1e-12);
    // right 0 0 1 0, predicted 2 2 2 0, actual 1 1 2 2 of rows 2 to 7
    CHECK_NEAR(value_of("precision", l, b, 0), 0.5 / 4, 1e-12);
    CHECK_NEAR(value_of("recall", l, b, 0), 0.5 / 4, 1e-12);
    for (int i = 0; i < 8; i++)
        t[i] = -1;
    CHECK(value_of("accuracy", l, b, 0) == 0);
    CHECK(value_of("f1", l, b, 0) == 0);
    CHECK(value_of("perplexity", l, b, 0) == 1);
}

// right 1 1 1 0, predicted 3 3 2 0, actual 2 2 2 2
TEST(precision_recall_and_f1_are_means_over_classes)
{
    batch b = {8, 4, x8[0], t8, TT_I32, false};
    CHECK_NEAR(value_of("precision", ce, b, 0), (1.0 / 3 + 1.0 / 3 + 1.0 / 2 + 0) / 4, 1e-12);
    CHECK_NEAR(value_of("recall", ce, b, 0), 1.5 / 4, 1e-12);
    CHECK_NEAR(value_of("f1", ce, b, 0), (2.0 / 5 + 2.0 / 5 + 2.0 / 4 + 0) / 4, 1e-12);
    int32_t t[8] = {0, 1, 2, 0, 1, 2, 0, 1}; // all right; class 3 does not occur and is left out
    b.t = t;
    CHECK_NEAR(value_of("precision", ce, b, 0), 1, 1e-12);
    CHECK_NEAR(value_of("recall", ce, b, 0), 1, 1e-12);
    CHECK_NEAR(value_of("f1", ce, b, 0), 1, 1e-12);
}

TEST(binary_metrics_cut_at_zero)
{
    float z[8] = {1, -1, 0, 0.5f, -3, 2, -0.1f, 4}; // predicted 1: rows 0, 3, 5, 7
    float t[8] = {1, 1, 0, 0, 0, 1, 1, 1};          // right: 0, 5, 7
    batch b = {8, 1, z, t, TT_F32, true};
    CHECK_NEAR(value_of("accuracy", bce, b, 0), 5.0 / 8, 1e-12);
    CHECK_NEAR(value_of("precision", bce, b, 0), 3.0 / 4, 1e-12);
    CHECK_NEAR(value_of("recall", bce, b, 0), 3.0 / 5, 1e-12);
    CHECK_NEAR(value_of("f1", bce, b, 0), 6.0 / 9, 1e-12);
    b.wide = 0;
    CHECK_NEAR(value_of("precision", bce, b, 0), 3.0 / 4, 1e-12);
    uint8_t labels[8];
    for (int i = 0; i < 8; i++)
        labels[i] = (uint8_t)t[i];
    b = (batch){8, 1, z, labels, TT_U8, false}; // [batch] against [batch, 1]
    CHECK_NEAR(value_of("accuracy", bce, b, 0), 5.0 / 8, 1e-12);
    CHECK_NEAR(value_of("recall", bce, b, 0), 3.0 / 5, 1e-12);
    float none[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, zeros[8] = {0};
    b = (batch){8, 1, none, zeros, TT_F32, true};
    CHECK(value_of("precision", bce, b, 0) == 0 && value_of("recall", bce, b, 0) == 0);
    CHECK(value_of("f1", bce, b, 0) == 0 && value_of("accuracy", bce, b, 0) == 1);
    // Two labels a row: the mean over both.
    b = (batch){4, 2, z, t, TT_F32, true};
    CHECK_NEAR(value_of("precision", bce, b, 0), (1.0 / 1 + 2.0 / 3) / 2, 1e-12);
}

TEST(a_nan_is_never_right)
{
    float x[2][3] = {{NAN, NAN, NAN}, {1, NAN, 0}};
    int32_t t[2] = {0, 0};
    CHECK(value_of("accuracy", ce, (batch){2, 3, x[0], t, TT_I32, false}, 0) == 0);
}

// ---- numbers ---------------------------------------------------------------------------------

TEST(distances_and_perplexity)
{
    float x[4][2] = {{1, 2}, {0, 0}, {-1, 3}, {5, 5}}, t[4][2] = {{0, 2}, {1, 1}, {1, 1}, {5, 4}};
    batch b = {4, 2, x[0], t, TT_F32, true};
    tt_loss mse = {.kind = TT_MSE}, huber = {.kind = TT_HUBER};
    CHECK_NEAR(value_of("mse", mse, b, 0), (1 + 0 + 1 + 1 + 4 + 4 + 0 + 1) / 8.0, 1e-7);
    CHECK_NEAR(value_of("mae", huber, b, 0), (1 + 0 + 1 + 1 + 2 + 2 + 0 + 1) / 8.0, 1e-7);
    float z[2] = {0, 0}, one[2] = {1, 0};
    CHECK_NEAR(value_of("mse", bce, (batch){2, 1, z, one, TT_F32, true}, 0), 0.25, 1e-7);
    float even[3][4] = {{0}};
    int32_t k[3] = {0, 3, 1};
    CHECK_NEAR(value_of("perplexity", ce, (batch){3, 4, even[0], k, TT_I32, false}, 0), 4, 1e-5);
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        double e = 0;
        for (int j = 0; j < 4; j++)
            e += exp(x8[i][j]);
        sum += log(e) - x8[i][t8[i]];
    }
    CHECK_NEAR(value_of("perplexity", ce, (batch){8, 4, x8[0], t8, TT_I32, false}, 0), exp(sum / 8),
               1e-4);
}

// ---- the list --------------------------------------------------------------------------------

TEST(metrics_have_bits_and_names)
{
    int bits = 0, n = 0;
    for (; tti_metric_at(n) != NULL; n++) {
        const tti_metric_def *d = tti_metric_at(n);
        bits |= (int)d->bit;
        CHECK(tti_metric_find(d->name) == d);
        CHECK_STR(tt_metric_name(d->bit), d->name);
    }
    CHECK_INT(n, TT_N_METRICS);
    CHECK_INT(bits, ((1 << TT_N_METRICS) - 1) << 8);
    CHECK(tti_metric_find("area") == NULL && tti_metric_at(-1) == NULL);
    CHECK_STR(tt_metric_name((tt_metric_kind)3), "?");
}

TEST(metrics_refuse_losses_they_do_not_fit)
{
    static const struct {
        const char *metric;
        tt_loss_kind loss;
        const char *words;
    } bad[] = {
        {"accuracy", TT_MSE, "the metric accuracy cannot be used with the loss mse"},
        {"top_k", TT_BINARY_CROSS_ENTROPY, "the metric top_k cannot be used"},
        {"f1", TT_MAE, "cannot be used with the loss mae"},
        {"mse", TT_CROSS_ENTROPY, "the metric mse cannot be used with the loss cross_entropy"},
        {"perplexity", TT_HUBER, "the metric perplexity cannot be used"}};
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3)), *states[TTI_MAX_STATES];
    int n;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_loss l = {.kind = bad[i].loss};
        tti_metric_inputs in = {.logits = x, .target = x, .loss = &l, .top_k = 5};
        CHECK(tti_metric_find(bad[i].metric)->build(g, &in, states, &n) == TT_EINVAL);
        CHECK_MESSAGE(ctx, bad[i].words);
        tt_clear_error(ctx);
    }
    tti_metric_inputs in = {.logits = x, .target = x, .loss = &ce};
    CHECK(tti_metric_find("top_k")->build(g, &in, states, &n) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "k is 0; it must be at least 1");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
