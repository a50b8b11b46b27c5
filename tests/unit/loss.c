/*
 * loss.c - losses: values against formulas in double, gradients against finite differences, counts,
 * what is passed by, what is refused.
 */
#include "train/loss.h"
#include "graph/graph.h"
#include "test.h"
#include <math.h>

enum {
    ROWS = 7,
    WIDE = 5
};

typedef struct trial {
    tt_ctx *ctx;
    tt_graph *g;
    tt_session *s;
    tt_tensor *x, *t;
    tti_loss_terms terms;
} trial;

// An output [batch, WIDE] that is fed, and its target.
static trial open_trial(const tt_loss *l, tt_dtype dtype, bool dense)
{
    trial r = {.ctx = test_ctx()};
    r.g = tt_graph_new(r.ctx);
    r.x = tt_feed(r.g, .shape = TT_SHAPE(TT_BATCH, WIDE), .dtype = dtype, .name = "x");
    tt_shape shape;
    tt_dtype type;
    CHECK_OK(tti_loss_target(r.ctx, l, r.x, dense, &shape, &type));
    r.t = tt_feed(r.g, .shape = shape, .dtype = type, .name = "t");
    CHECK_OK(tti_loss_build(r.g, l, r.x, r.t, &r.terms));
    r.s = tt_session_new(r.g);
    return r;
}

static void run_trial(const trial *r, const void *x, const void *t, tt_tensor *what, void *out,
                      size_t bytes)
{
    tt_shape s = tt_tensor_shape(r->t);
    s.dim[0] = ROWS;
    tt_feed_value feeds[] = {{r->x, x, TT_SHAPE(ROWS, WIDE), tt_tensor_dtype(r->x)},
                             {r->t, t, s, tt_tensor_dtype(r->t)}};
    tt_fetch fetch = {what, out, bytes};
    CHECK_OK(tt_run(r->s, .feeds = feeds, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1));
}

static double number(int i, double low, double high)
{
    return low + (high - low) * (0.5 + 0.5 * sin(12.9898 * (i + 1)));
}

// ---- values and gradients --------------------------------------------------------------------

// Term i of the loss, in double.
static double term_of(const tt_loss *l, double x, double t)
{
    double d = x - t, delta = l->delta != 0 ? l->delta : 1;
    switch (l->kind) {
    case TT_BINARY_CROSS_ENTROPY:
        return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
    case TT_MSE:
        return d * d;
    case TT_MAE:
        return fabs(d);
    default:
        return fabs(d) <= delta ? d * d / 2 : delta * (fabs(d) - delta / 2);
    }
}

static const tt_loss element_losses[] = {{.kind = TT_BINARY_CROSS_ENTROPY},
                                         {.kind = TT_MSE},
                                         {.kind = TT_MAE},
                                         {.kind = TT_HUBER},
                                         {.kind = TT_HUBER, .delta = 0.25}};
#define N_ELEMENT (int)(sizeof(element_losses) / sizeof(element_losses[0]))

TEST(losses_of_elements_have_their_values)
{
    for (int k = 0; k < N_ELEMENT; k++) {
        const tt_loss *l = &element_losses[k];
        trial r = open_trial(l, TT_F32, false);
        float x[ROWS * WIDE], t[ROWS * WIDE], sum;
        double want = 0;
        for (int i = 0; i < ROWS * WIDE; i++) {
            x[i] = (float)number(i, -4, 4);
            t[i] = (float)(l->kind == TT_BINARY_CROSS_ENTROPY ? number(i + 99, 0, 1)
                                                              : number(i + 99, -2, 2));
            want += term_of(l, x[i], t[i]);
        }
        run_trial(&r, x, t, r.terms.sum, &sum, sizeof(sum));
        CHECK_NEAR(sum / want, 1, 1e-6);
        CHECK(r.terms.count == NULL && r.terms.per_row == WIDE && r.terms.logits == r.x);
        CHECK(r.terms.sum->layout.kind == TT_LAYOUT_PARTIAL);
        CHECK_OK(tt_close(r.ctx));
    }
}

// Small terms of sure outputs are not lost, and the gradient at 0 is 1/2 - t.
TEST(binary_cross_entropy_at_its_edges)
{
    tt_loss l = {.kind = TT_BINARY_CROSS_ENTROPY};
    trial r = open_trial(&l, TT_F32, false);
    tt_tensor *dx;
    CHECK_OK(tt_grad(r.g, r.terms.sum, NULL, 1, &r.x, &dx));
    float x[ROWS * WIDE] = {0}, t[ROWS * WIDE] = {0}, sum, slope[ROWS * WIDE];
    for (int i = 0; i < ROWS * WIDE; i++)
        t[i] = i % 2 == 0;
    run_trial(&r, x, t, dx, slope, sizeof(slope));
    for (int i = 0; i < ROWS * WIDE; i++)
        CHECK(slope[i] == (i % 2 == 0 ? -0.5f : 0.5f));
    for (int i = 0; i < ROWS * WIDE; i++)
        x[i] = i % 2 == 0 ? 20 : -20;
    run_trial(&r, x, t, r.terms.sum, &sum, sizeof(sum));
    CHECK_NEAR(sum / (ROWS * WIDE * log1p(exp(-20))), 1, 1e-5);
    run_trial(&r, x, t, dx, slope, sizeof(slope));
    CHECK_NEAR(slope[0] / -exp(-20), 1, 1e-5);
    for (int i = 0; i < ROWS * WIDE; i++)
        x[i] = i % 2 == 0 ? -200 : 200;
    run_trial(&r, x, t, r.terms.sum, &sum, sizeof(sum));
    CHECK_NEAR(sum / (ROWS * WIDE * 200.0), 1, 1e-6);
    CHECK_OK(tt_close(r.ctx));
}

static void check_slopes(const tt_loss *l, bool dense)
{
    trial r = open_trial(l, TT_F64, dense);
    double x[ROWS * WIDE], t[ROWS * WIDE], slope[ROWS * WIDE], up, down;
    int32_t label[ROWS];
    tt_tensor *dx;
    CHECK_OK(tt_grad(r.g, r.terms.sum, NULL, 1, &r.x, &dx));
    for (int i = 0; i < ROWS * WIDE; i++) {
        x[i] = number(i, -3, 3);
        t[i] = number(i + 50, 0, 1);
    }
    for (int i = 0; i < ROWS; i++)
        label[i] = i % WIDE;
    const void *target = tt_tensor_dtype(r.t) == TT_I32 ? (const void *)label : t;
    run_trial(&r, x, target, dx, slope, sizeof(slope));
    for (int i = 0; i < ROWS * WIDE; i++) {
        double at = x[i], h = 1e-6;
        x[i] = at + h;
        run_trial(&r, x, target, r.terms.sum, &up, sizeof(up));
        x[i] = at - h;
        run_trial(&r, x, target, r.terms.sum, &down, sizeof(down));
        x[i] = at;
        ck_assert_msg(fabs(slope[i] - (up - down) / (2 * h)) < 1e-7, "%s: slope %d is %g, not %g",
                      tti_loss_name(l->kind), i, slope[i], (up - down) / (2 * h));
    }
    CHECK_OK(tt_close(r.ctx));
}

TEST(losses_have_the_slopes_of_finite_differences)
{
    for (int k = 0; k < N_ELEMENT; k++)
        check_slopes(&element_losses[k], false);
    tt_loss l = {.kind = TT_CROSS_ENTROPY};
    check_slopes(&l, false);
    check_slopes(&l, true);
    l.smoothing = 0.1;
    check_slopes(&l, false);
    check_slopes(&l, true);
    l = (tt_loss){.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = 2};
    check_slopes(&l, false);
}

// ---- cross entropy and what is ignored -------------------------------------------------------

static double nll(const float *x, int label)
{
    double sum = 0;
    for (int j = 0; j < WIDE; j++)
        sum += exp(x[j]);
    return log(sum) - x[label];
}

TEST(ignored_labels_count_for_nothing)
{
    tt_loss l = {.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = -100};
    trial r = open_trial(&l, TT_F32, false);
    float x[ROWS * WIDE], sum, count, slope[ROWS * WIDE];
    int32_t t[ROWS];
    double want = 0;
    tt_tensor *dx;
    CHECK_OK(tt_grad(r.g, r.terms.sum, NULL, 1, &r.x, &dx));
    test_fill(x, ROWS * WIDE, 3, -2, 2);
    for (int i = 0; i < ROWS; i++) {
        t[i] = i % 3 == 0 ? -100 : i % WIDE;
        want += i % 3 == 0 ? 0 : nll(x + i * WIDE, t[i]);
    }
    run_trial(&r, x, t, r.terms.sum, &sum, sizeof(sum));
    CHECK_NEAR(sum, want, 1e-5);
    run_trial(&r, x, t, r.terms.count, &count, sizeof(count));
    CHECK(count == 4 && r.terms.per_row == 1);
    CHECK(r.terms.count->layout.kind == TT_LAYOUT_PARTIAL);
    run_trial(&r, x, t, dx, slope, sizeof(slope));
    for (int i = 0; i < ROWS * WIDE; i++)
        CHECK((slope[i] == 0) == (i / WIDE % 3 == 0));
    for (int i = 0; i < ROWS; i++)
        t[i] = -100;
    run_trial(&r, x, t, r.terms.count, &count, sizeof(count));
    run_trial(&r, x, t, r.terms.sum, &sum, sizeof(sum));
    CHECK(count == 0 && sum == 0);
    CHECK_OK(tt_close(r.ctx));
}

// A batch in two parts of the lanes: sums and counts combine to those of the whole.
TEST(sums_and_counts_are_lane_sums)
{
    tt_loss l = {.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = 0};
    trial r = open_trial(&l, TT_F32, false);
    float x[8 * WIDE], whole[2], part[2][2];
    int32_t t[8] = {0, 1, 2, 0, 3, 4, 1, 0};
    test_fill(x, 8 * WIDE, 9, -1, 1);
    for (int k = 0; k < 3; k++) {
        int first = k == 2 ? 4 : 0, n = k == 0 ? 8 : 4;
        float *to = k == 0 ? whole : part[k - 1];
        tt_feed_value feeds[] = {{r.x, x + first * WIDE, TT_SHAPE(n, WIDE), TT_F32},
                                 {r.t, t + first, TT_SHAPE(n), TT_I32}};
        tt_fetch out[] = {{r.terms.sum, to, 4}, {r.terms.count, to + 1, 4}};
        CHECK_OK(tt_run(r.s, .feeds = feeds, .n_feeds = 2, .fetches = out, .n_fetches = 2,
                        .batch = {.first_row = first, .global_rows = 8}));
    }
    CHECK(whole[0] == part[0][0] + part[1][0] && whole[1] == part[0][1] + part[1][1]);
    CHECK(whole[1] == 5);
    CHECK_OK(tt_close(r.ctx));
}

// ---- softmax and sigmoid are passed by -------------------------------------------------------

static void loss_of(tt_ctx *ctx, const tt_loss *l, int form, float *sum, float slope[WIDE * 3])
{
    tt_graph *g = tt_graph_new(ctx);
    float data[4 * 3], target[4 * WIDE], w[3 * WIDE];
    int32_t label[4] = {0, 4, 2, 1};
    bool ce = l->kind == TT_CROSS_ENTROPY;
    test_fill(data, 4 * 3, 1, -2, 2);
    test_fill(target, 4 * WIDE, 2, 0, 1);
    test_fill(w, 3 * WIDE, 3, -1, 1);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3));
    tt_tensor *v = tt_variable(g, .shape = TT_SHAPE(3, WIDE), .name = "w");
    tt_tensor *b = tt_fill(g, TT_F32, TT_SHAPE(WIDE), 0.25);
    tt_tensor *y = tt_matmul(g, x, v, .bias = b, .act = form == 2 ? TT_SIGMOID : TT_LINEAR);
    if (form == 1)
        y = ce ? tt_softmax(g, y) : tt_sigmoid(g, y);
    tt_tensor *t = ce ? tt_feed(g, .shape = TT_SHAPE(TT_BATCH), .dtype = TT_I32)
                      : tt_feed(g, .shape = TT_SHAPE(TT_BATCH, WIDE));
    tti_loss_terms terms;
    tt_tensor *dw;
    CHECK_OK(tti_loss_build(g, l, y, t, &terms));
    CHECK_OK(tt_grad(g, terms.sum, NULL, 1, &v, &dw));
    CHECK((terms.logits == y) == (form == 0));
    tt_session *s = tt_session_new(g);
    CHECK_OK(tt_set_variable(s, v, w, sizeof(w)));
    tt_feed_value feeds[] = {{x, data, TT_SHAPE(4, 3), TT_F32},
                             {t, ce ? (void *)label : target, ce ? TT_SHAPE(4) : TT_SHAPE(4, WIDE),
                              ce ? TT_I32 : TT_F32}};
    tt_fetch out[] = {{terms.sum, sum, sizeof(float)}, {dw, slope, sizeof(w)}};
    CHECK_OK(tt_run(s, .feeds = feeds, .n_feeds = 2, .fetches = out, .n_fetches = 2));
    tt_graph_free(g);
}

TEST(a_last_softmax_or_sigmoid_is_passed_by)
{
    tt_ctx *ctx = test_ctx();
    for (int kind = TT_CROSS_ENTROPY; kind <= TT_BINARY_CROSS_ENTROPY; kind++) {
        tt_loss l = {.kind = (tt_loss_kind)kind};
        float sum[3], slope[3][WIDE * 3];
        for (int form = 0; form < (kind == TT_CROSS_ENTROPY ? 2 : 3); form++) {
            loss_of(ctx, &l, form, &sum[form], slope[form]);
            CHECK(memcmp(&sum[0], &sum[form], sizeof(float)) == 0);
            CHECK(memcmp(slope[0], slope[form], sizeof(slope[0])) == 0);
        }
    }
    CHECK_OK(tt_close(ctx));
}

// ---- targets, custom losses, refusals --------------------------------------------------------

static tt_tensor *cubes(void *user, tt_graph *g, tt_tensor *output, tt_tensor *target)
{
    ++*(int *)user;
    tt_tensor *d = tt_sub(g, output, target);
    return tt_mul(g, d, tt_square(g, d));
}

static tt_tensor *nothing(void *user, tt_graph *g, tt_tensor *output, tt_tensor *target)
{
    (void)user;
    (void)target;
    return g == NULL ? output : NULL;
}

static tt_tensor *one_number(void *user, tt_graph *g, tt_tensor *output, tt_tensor *target)
{
    (void)user;
    return tt_sum(g, tt_sub(g, output, target));
}

TEST(a_loss_of_the_users_own)
{
    int calls = 0;
    tt_loss l = {.kind = TT_CUSTOM_LOSS, .fn = cubes, .user = &calls};
    trial r = open_trial(&l, TT_F32, false);
    float x[ROWS * WIDE], t[ROWS * WIDE] = {0}, sum;
    double want = 0;
    for (int i = 0; i < ROWS * WIDE; i++) {
        x[i] = (float)number(i, 0, 2);
        want += pow(x[i], 3);
    }
    run_trial(&r, x, t, r.terms.sum, &sum, sizeof(sum));
    CHECK_NEAR(sum / want, 1, 1e-6);
    CHECK(calls == 1 && r.terms.per_row == WIDE);
    l.fn = nothing;
    CHECK(tti_loss_build(r.g, &l, r.x, r.t, &r.terms) == TT_EINVAL);
    CHECK_MESSAGE(r.ctx, "fn returned no terms");
    tt_clear_error(r.ctx);
    l.fn = one_number;
    int64_t before = r.g->n_nodes;
    CHECK(tti_loss_build(r.g, &l, r.x, r.t, &r.terms) == TT_ESHAPE);
    CHECK_MESSAGE(r.ctx, "must be floats with a batch axis");
    CHECK(r.g->n_nodes == before); // what was built is gone
    CHECK(tt_close(r.ctx) == TT_ESHAPE);
}

// Labels [batch] fit an output [batch, 1]; half-precision outputs are compared in f32.
TEST(targets_are_fitted)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *z = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 1), .dtype = TT_BF16);
    tt_tensor *t = tt_feed(g, .shape = TT_SHAPE(TT_BATCH), .dtype = TT_U8);
    tt_loss l = {.kind = TT_BINARY_CROSS_ENTROPY};
    tti_loss_terms terms;
    CHECK_OK(tti_loss_build(g, &l, z, t, &terms));
    uint16_t x[3] = {0, 0x4000, 0xc000}; // 0, 2, -2
    uint8_t label[3] = {1, 1, 0};
    float sum;
    tt_feed_value feeds[] = {{z, x, TT_SHAPE(3, 1), TT_BF16}, {t, label, TT_SHAPE(3), TT_U8}};
    tt_fetch out = {terms.sum, &sum, sizeof(sum)};
    tt_session *s = tt_session_new(g);
    CHECK_OK(tt_run(s, .feeds = feeds, .n_feeds = 2, .fetches = &out, .n_fetches = 1));
    CHECK_NEAR(sum, log(2) + 2 * log1p(exp(-2)), 1e-6);
    CHECK(tt_tensor_dtype(terms.sum) == TT_F32 && terms.per_row == 1);
    CHECK_OK(tt_close(ctx));
}

static void check_refused(tt_ctx *ctx, tt_graph *g, tt_loss l, tt_tensor *x, tt_tensor *t,
                          const char *words)
{
    tti_loss_terms terms;
    CHECK(tti_loss_build(g, &l, x, t, &terms) != TT_OK);
    CHECK_MESSAGE(ctx, words);
    tt_clear_error(ctx);
}

TEST(losses_refuse_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4), .name = "x");
    tt_tensor *rows = tt_feed(g, .shape = TT_SHAPE(TT_BATCH), .name = "r");
    tt_tensor *k = tt_feed(g, .shape = TT_SHAPE(TT_BATCH), .dtype = TT_U8, .name = "k");
    tt_tensor *y = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3), .name = "y");
    tt_tensor *closed = tt_fill(g, TT_F32, TT_SHAPE(4, 4), 0);
    check_refused(ctx, g, (tt_loss){0}, x, x, "there is no kind 0");
    check_refused(ctx, g, (tt_loss){.kind = (tt_loss_kind)99}, x, x, "there is no kind 99");
    check_refused(ctx, g, (tt_loss){.kind = TT_MSE}, NULL, x, "mse: the output is missing");
    check_refused(ctx, g, (tt_loss){.kind = TT_MSE}, x, NULL, "mse: the target is missing");
    check_refused(ctx, g, (tt_loss){.kind = TT_MSE}, x, y,
                  "mse: the output is [b, 4] but the target is [b, 3]");
    check_refused(ctx, g, (tt_loss){.kind = TT_MSE}, k, k, "must be floats with a batch axis");
    check_refused(ctx, g, (tt_loss){.kind = TT_MAE}, closed, x, "must be floats with a batch axis");
    check_refused(ctx, g, (tt_loss){.kind = TT_CROSS_ENTROPY}, rows, k, "an axis of classes");
    check_refused(ctx, g, (tt_loss){.kind = TT_MSE, .smoothing = 0.1}, x, x,
                  "smoothing and ignore are options of cross_entropy");
    check_refused(ctx, g, (tt_loss){.kind = TT_HUBER, .delta = -1}, x, x, "delta is -1");
    check_refused(ctx, g, (tt_loss){.kind = TT_CUSTOM_LOSS}, x, x, "fn is missing");
    check_refused(ctx, g, (tt_loss){.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = -100},
                  x, k, "ignore -100 does not fit targets of u8");
    check_refused(ctx, g, (tt_loss){.kind = TT_CROSS_ENTROPY, .has_ignore = true}, x, x,
                  "ignore wants integer labels");
    check_refused(ctx, g, (tt_loss){.kind = TT_CROSS_ENTROPY}, y, x, "labels");
    CHECK_OK(tt_close(ctx));
}

TEST(losses_have_names_and_options)
{
    tt_ctx *ctx = test_ctx();
    tt_loss l = {.kind = TT_CROSS_ENTROPY};
    CHECK_INT(tti_loss_find("cross_entropy"), TT_CROSS_ENTROPY);
    CHECK_INT(tti_loss_find("huber"), TT_HUBER);
    CHECK_INT(tti_loss_find("custom"), -1);
    CHECK_INT(tti_loss_find("none"), -1);
    CHECK_STR(tti_loss_name(TT_MAE), "mae");
    CHECK_OK(tti_options_default(ctx, tti_loss_options, &l));
    CHECK(l.weight == 1 && l.delta == 1 && !l.has_ignore);
    CHECK_OK(tti_loss_set(ctx, &l, "loss", "ignore", "-100"));
    CHECK(l.has_ignore && l.ignore == -100);
    CHECK(tti_loss_set(ctx, &l, "loss", "smooting", "0.1") == TT_EINVAL);
    CHECK_MESSAGE(ctx, "did you mean 'smoothing'?");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(losses_survive_missing_memory)
{
    for (int64_t n = 1; n < 400; n++) {
        tt_ctx *ctx = test_ctx();
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4));
        tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(4, 3));
        tt_tensor *y = tt_matmul(g, x, w, .act = TT_SIGMOID);
        tt_tensor *t = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3));
        tti_loss_terms terms;
        tt_loss l = {.kind = TT_BINARY_CROSS_ENTROPY};
        int64_t before = g->n_nodes;
        tti_fail_alloc_at(ctx, n);
        tt_status st = tti_loss_build(g, &l, y, t, &terms);
        tti_fail_alloc_at(ctx, 0);
        CHECK(st == TT_OK || (st == TT_ENOMEM && g->n_nodes == before));
        CHECK(tt_close(ctx) == st);
        if (st == TT_OK)
            return;
    }
    ck_abort_msg("the loss never got its memory");
}

static tt_tensor *entropy_of_labels(void *user, tt_graph *g, tt_tensor *output, tt_tensor *target)
{
    (void)user;
    return tt_cross_entropy(g, output, target);
}

// A loss of the program that compares classes: the same bits, and the same accuracy.
TEST(a_custom_loss_takes_a_target_of_its_own_shape)
{
    double accuracy[2];
    tt_hash hash[2];
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = test_ctx();
        tt_data *d = tt_digits(ctx, .count = 256, .batch = 64);
        tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
        tt_layer_flatten(m);
        tt_layer_dense(m, .units = 10);
        tt_loss *own = tt_loss(.kind = TT_CUSTOM_LOSS, .fn = entropy_of_labels, .has_target = true,
                               .target_dtype = TT_I32);
        tt_loss *ours = tt_loss(.kind = TT_CROSS_ENTROPY);
        CHECK_OK(tt_compile(m, .losses = {i == 0 ? ours : own}, .metrics = TT_ACCURACY,
                            .optimizer = tt_adam(.lr = 0.01)));
        CHECK_OK(tt_fit(m, d, .epochs = 2));
        tt_evaluation e = {0};
        CHECK_OK(tt_evaluate(m, d, &e));
        accuracy[i] = e.metrics[0];
        CHECK_OK(tt_model_hash(m, &hash[i]));
        CHECK_OK(tt_close(ctx));
    }
    CHECK(accuracy[0] == accuracy[1] && accuracy[0] > 0);
    CHECK(hash[0].low == hash[1].low && hash[0].high == hash[1].high);
}
