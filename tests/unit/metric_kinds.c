/*
 * metric_kinds.c - further metrics against their definitions in double over a thousand records with
 * ties and edges, their tables, and the same numbers on one device and on several.
 */
#include "test.h"
#include "train/compile.h"
#include <math.h>
#include <stdlib.h>

enum {
    COUNT = 1000,
    CLASSES = 4
};

typedef struct records {
    float x[COUNT * CLASSES], y[COUNT * CLASSES];
    int32_t label[COUNT];
} records;

static void fill(records *r)
{
    test_fill(r->x, COUNT * CLASSES, 7, -4, 4);
    test_fill(r->y, COUNT * CLASSES, 8, -2, 3);
    for (int i = 0; i < COUNT; i++) {
        float v[1];
        test_fill(v, 1, (uint64_t)(i + 50), 0, 1);
        r->label[i] = (int32_t)(v[0] * CLASSES) % CLASSES;
        for (int c = 0; c < CLASSES; c++) // learnt a little; some equal
            r->x[i * CLASSES + c] = roundf(4 * (r->x[i * CLASSES + c] + (c == r->label[i]))) / 4;
    }
}

// A model that gives its input, compiled with a loss and metrics; the values of all.
typedef struct trial {
    tt_ctx *ctx;
    tt_model *m;
    tt_data *d;
    tt_evaluation e;
} trial;

static trial evaluate(const char *strategy, const char *devices, const tt_compile_opts *o, float *x,
                      const void *y, int width, bool labels)
{
    static float one[CLASSES * CLASSES];
    trial t = {.ctx = tt_open(.strategy = strategy, .devices = devices, .threads = 2)};
    CHECK(t.ctx != NULL);
    t.d = tt_memory(t.ctx, .x = x, .y = y, .x_shape = TT_SHAPE(width),
                    .y_shape = labels ? TT_SCALAR : TT_SHAPE(width),
                    .y_dtype = labels ? TT_I32 : TT_F32, .count = COUNT, .batch = 128);
    t.m = tt_sequential(t.ctx, .input = {width});
    tt_layer_dense(t.m, .units = width, .no_bias = true, .name = "out");
    CHECK_OK(tt_compile_with(t.m, o));
    for (int i = 0; i < width * width; i++)
        one[i] = i % (width + 1) == 0;
    tt_session *s = tt_model_get_session(t.m);
    tt_tensor *v = tt_graph_find(tt_model_get_train_graph(t.m), "out.weight");
    CHECK_OK(tt_set_variable(s, v, one, sizeof(float) * (size_t)(width * width)));
    CHECK_OK(tt_evaluate(t.m, t.d, &t.e));
    return t;
}

static double value_of(const trial *t, const char *name)
{
    for (int i = 0; i < t->e.n_metrics; i++)
        if (strcmp(t->e.names[i], name) == 0)
            return t->e.metrics[i];
    ck_abort_msg("there is no %s", name);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// ---- areas -----------------------------------------------------------------------------------

// Pair by pair.
static double exact_auc(const double *p, const bool *is_true)
{
    double pairs = 0, right = 0;
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; is_true[i] && k < COUNT; k++)
            if (!is_true[k]) {
                pairs++;
                right += p[i] > p[k] ? 1 : p[i] == p[k] ? 0.5 : 0;
            }
    return right / pairs;
}

// As scikit-learn's average_precision_score: one point of the curve per distinct score.
static double exact_precision(const double *p, const bool *is_true)
{
    double sum = 0, all_true = 0;
    for (int i = 0; i < COUNT; i++)
        all_true += is_true[i];
    for (int i = 0; i < COUNT; i++) {
        double above = 0, right = 0;
        for (int k = 0; is_true[i] && k < COUNT; k++) {
            above += p[k] >= p[i];
            right += p[k] >= p[i] && is_true[k];
        }
        sum += is_true[i] ? right / above / all_true : 0;
    }
    return sum;
}

TEST(areas_are_those_of_probabilities_at_thresholds)
{
    static records r;
    static float x[COUNT], y[COUNT];
    static double p[COUNT], down[COUNT];
    static bool is_true[COUNT];
    fill(&r);
    for (int i = 0; i < COUNT; i++) {
        x[i] = r.x[i * CLASSES];
        y[i] = r.label[i] == 0;
        is_true[i] = y[i] > 0;
        p[i] = sigmoid((double)x[i]);
        down[i] = floor(p[i] * 50) / 50;
    }
    trial t = evaluate("single", "cpu:0",
                       &(tt_compile_opts){.opts_size = sizeof(tt_compile_opts),
                                          .loss = TT_BINARY_CROSS_ENTROPY,
                                          .metrics = TT_AUC | TT_AUC_PR,
                                          .thresholds = 50},
                       x, y, 1, false);
    CHECK_NEAR(value_of(&t, "auc"), exact_auc(down, is_true), 1e-12);
    CHECK_NEAR(value_of(&t, "auc_pr"), exact_precision(down, is_true), 1e-12);
    double within = 0, pairs = 0; // the bound that is stated
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; is_true[i] && k < COUNT; k++) {
            pairs += !is_true[k];
            within += !is_true[k] && down[i] == down[k] && p[i] != p[k];
        }
    CHECK(fabs(value_of(&t, "auc") - exact_auc(p, is_true)) <= within / pairs / 2);
    CHECK(value_of(&t, "auc") > 0.5);

    static double curve[200];
    CHECK_INT(tt_evaluate_table(t.m, "auc", curve, 100), 100);
    CHECK(curve[0] == 1 && curve[1] == 1); // from threshold 0 on all are guessed
    double area = 0;                       // by trapezoids
    for (int k = 0; k < 50; k++) {
        double fx = k < 49 ? curve[2 * k + 2] : 0, ty = k < 49 ? curve[2 * k + 3] : 0;
        area += (curve[2 * k] - fx) * (curve[2 * k + 1] + ty) / 2;
    }
    CHECK_NEAR(area, value_of(&t, "auc"), 1e-12);
    CHECK_INT(tt_evaluate_table(t.m, "auc_pr", curve, 3), 100);
    CHECK_INT(tt_evaluate_table(t.m, "auc_pr", NULL, 0), 100);
    CHECK(curve[0] == 1);
    CHECK_OK(tt_close(t.ctx));
}

// ---- classes ---------------------------------------------------------------------------------

static void softmax(const float *x, double out[CLASSES])
{
    double sum = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += out[c] = exp((double)x[c]);
    for (int c = 0; c < CLASSES; c++)
        out[c] /= sum;
}

TEST(metrics_of_classes)
{
    static records r;
    static double down[CLASSES][COUNT], table[CLASSES][CLASSES], want[CLASSES][CLASSES];
    static bool is_true[CLASSES][COUNT];
    double auc = 0, error = 0, bits = 0, conf[15] = {0}, right[15] = {0}, wrong = 0, iou = 0;
    fill(&r);
    for (int i = 0; i < COUNT; i++) {
        double p[CLASSES];
        int best = 0;
        softmax(r.x + i * CLASSES, p);
        for (int c = 0; c < CLASSES; c++) {
            down[c][i] = fmin(floor((double)((float)p[c] * 200)), 199);
            is_true[c][i] = r.label[i] == c;
            best = r.x[i * CLASSES + c] > r.x[i * CLASSES + best] ? c : best;
        }
        int bin = (int)fmin(p[best] * 15, 14);
        conf[bin] += p[best];
        right[bin] += best == r.label[i];
        want[r.label[i]][best]++;
        wrong += best != r.label[i];
        bits -= log2(p[r.label[i]]);
    }
    for (int c = 0; c < CLASSES; c++) {
        double predicted = 0, actual = 0;
        auc += exact_auc(down[c], is_true[c]) / CLASSES;
        for (int k = 0; k < CLASSES; k++) {
            predicted += want[k][c];
            actual += want[c][k];
        }
        iou += want[c][c] / (predicted + actual - want[c][c]) / CLASSES;
    }
    for (int b = 0; b < 15; b++)
        error += fabs(conf[b] - right[b]) / COUNT;
    tt_compile_opts o = {.opts_size = sizeof(o),
                         .loss = TT_CROSS_ENTROPY,
                         .metrics = TT_AUC | TT_IOU | TT_CALIBRATION_ERROR | TT_CONFUSION |
                                    TT_BITS_PER_BYTE | TT_RECALL};
    trial t = evaluate("single", "cpu:0", &o, r.x, r.label, CLASSES, true);
    CHECK_NEAR(value_of(&t, "auc"), auc, 1e-4); // a probability may round to another threshold
    CHECK_NEAR(value_of(&t, "iou"), iou, 1e-12);
    CHECK_NEAR(value_of(&t, "calibration_error"), error, 1e-5);
    CHECK_NEAR(value_of(&t, "confusion"), wrong / COUNT, 1e-12);
    CHECK_NEAR(value_of(&t, "bits_per_byte"), bits / COUNT, 1e-5);
    CHECK_INT(tt_evaluate_table(t.m, "confusion", &table[0][0], CLASSES * CLASSES), 16);
    CHECK(memcmp(table, want, sizeof(want)) == 0);
    double recall[CLASSES];
    CHECK_INT(tt_evaluate_table(t.m, "recall", recall, CLASSES), CLASSES);
    CHECK_NEAR(recall[1], want[1][1] / (want[1][0] + want[1][1] + want[1][2] + want[1][3]), 1e-12);
    CHECK_INT(tt_evaluate_table(t.m, "bits_per_byte", recall, 4), 0);
    CHECK_INT(tt_evaluate_table(t.m, "f1", recall, 4), 0);
    CHECK_INT(tt_evaluate_table(NULL, "f1", recall, 4), 0);
    CHECK_OK(tt_close(t.ctx));
}

// Ignored labels are in no sum, whatever they are.
TEST(ignored_labels_are_in_no_metric)
{
    static records r, rest;
    tt_compile_opts o = {
        .opts_size = sizeof(o),
        .losses = {tt_loss(.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = -7)},
        .metrics =
            TT_AUC | TT_AUC_PR | TT_IOU | TT_CALIBRATION_ERROR | TT_CONFUSION | TT_BITS_PER_BYTE};
    fill(&r);
    rest = r;
    for (int i = 0; i < COUNT; i += 2) { // the others twice
        r.label[i] = -7;
        rest.label[i] = rest.label[i + 1];
        memcpy(rest.x + i * CLASSES, rest.x + (i + 1) * CLASSES, sizeof(float) * CLASSES);
    }
    trial a = evaluate("single", "cpu:0", &o, r.x, r.label, CLASSES, true);
    trial b = evaluate("single", "cpu:0", &o, rest.x, rest.label, CLASSES, true);
    for (int i = 0; i < a.e.n_metrics; i++)
        ck_assert_msg(fabs(a.e.metrics[i] - b.e.metrics[i]) < 1e-6, "%s: %g, not %g", a.e.names[i],
                      a.e.metrics[i], b.e.metrics[i]);
    CHECK_OK(tt_close(a.ctx));
    CHECK_OK(tt_close(b.ctx));
}

TEST(binary_guesses_have_a_threshold)
{
    static float x[COUNT], y[COUNT];
    double right = 0, guessed = 0, actual = 0;
    test_fill(x, COUNT, 1, -4, 4);
    for (int i = 0; i < COUNT; i++) {
        y[i] = (float)(i % 3 == 0);
        bool yes = sigmoid((double)x[i]) > 0.8;
        guessed += yes;
        actual += (double)y[i];
        right += yes && y[i] > 0;
    }
    tt_compile_opts o = {.opts_size = sizeof(o),
                         .loss = TT_BINARY_CROSS_ENTROPY,
                         .metrics = TT_PRECISION | TT_RECALL | TT_CONFUSION,
                         .threshold = 0.8};
    trial t = evaluate("single", "cpu:0", &o, x, y, 1, false);
    double table[4];
    CHECK_NEAR(value_of(&t, "precision"), right / guessed, 1e-12);
    CHECK_NEAR(value_of(&t, "recall"), right / actual, 1e-12);
    CHECK_INT(tt_evaluate_table(t.m, "confusion", table, 4), 4);
    CHECK(table[3] == right && table[1] == guessed - right && table[2] == actual - right);
    CHECK_OK(tt_close(t.ctx));
}

// ---- numbers ---------------------------------------------------------------------------------

TEST(metrics_of_numbers)
{
    static records r;
    double square = 0, percent = 0, cosine = 0, r2 = 0;
    fill(&r);
    for (int i = 0; i < COUNT; i++) {
        double xt = 0, xx = 0, tt = 0;
        for (int c = 0; c < CLASSES; c++) {
            double x = (double)r.x[i * CLASSES + c], t = (double)r.y[i * CLASSES + c];
            square += (x - t) * (x - t);
            percent += 100 * fabs(x - t) / fmax(fabs(t), 1e-7);
            xt += x * t;
            xx += x * x;
            tt += t * t;
        }
        cosine += xt / sqrt(xx * tt);
    }
    for (int c = 0; c < CLASSES; c++) {
        double mean = 0, all = 0, left = 0;
        for (int i = 0; i < COUNT; i++)
            mean += (double)r.y[i * CLASSES + c] / COUNT;
        for (int i = 0; i < COUNT; i++) {
            double t = (double)r.y[i * CLASSES + c], x = (double)r.x[i * CLASSES + c];
            all += (t - mean) * (t - mean);
            left += (t - x) * (t - x);
        }
        r2 += (1 - left / all) / CLASSES;
    }
    tt_compile_opts o = {.opts_size = sizeof(o),
                         .loss = TT_MSE,
                         .metrics = TT_RMSE | TT_R2 | TT_METRIC_MAPE | TT_METRIC_COSINE};
    trial t = evaluate("single", "cpu:0", &o, r.x, r.y, CLASSES, false);
    CHECK_NEAR(value_of(&t, "rmse"), sqrt(square / (COUNT * CLASSES)), 1e-6);
    CHECK_NEAR(value_of(&t, "mape") / (percent / (COUNT * CLASSES)), 1, 1e-5);
    CHECK_NEAR(value_of(&t, "cosine"), cosine / COUNT, 1e-5);
    CHECK_NEAR(value_of(&t, "r2"), r2, 1e-5);
    CHECK_OK(tt_close(t.ctx));
}

// ---- several devices, limits -----------------------------------------------------------------

TEST(further_metrics_have_the_same_bits_on_several_devices)
{
    static records r;
    fill(&r);
    tt_compile_opts o[2] = {{.opts_size = sizeof(o[0]),
                             .loss = TT_CROSS_ENTROPY,
                             .metrics = TT_AUC | TT_AUC_PR | TT_IOU | TT_CALIBRATION_ERROR |
                                        TT_CONFUSION | TT_BITS_PER_BYTE},
                            {.opts_size = sizeof(o[0]),
                             .loss = TT_LOG_COSH,
                             .metrics = TT_RMSE | TT_R2 | TT_METRIC_MAPE | TT_METRIC_COSINE}};
    for (int k = 0; k < 2; k++) {
        const void *y = k == 0 ? (const void *)r.label : r.y;
        trial a = evaluate("single", "cpu:0", &o[k], r.x, y, CLASSES, k == 0);
        trial b = evaluate("mirrored", "cpu:0*3", &o[k], r.x, y, CLASSES, k == 0);
        CHECK(memcmp(a.e.metrics, b.e.metrics, sizeof(double) * (size_t)a.e.n_metrics) == 0);
        CHECK_OK(tt_fit(b.m, b.d, .epochs = 1, .divergence = TT_ZERO)); // and in training
        CHECK_OK(tt_close(a.ctx));
        CHECK_OK(tt_close(b.ctx));
    }
}

static void check_refused(tt_compile_opts o, int width, const char *message)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {3});
    tt_layer_dense(m, .units = width);
    o.opts_size = sizeof(o);
    CHECK(tt_compile_with(m, &o) == TT_EINVAL);
    CHECK_MESSAGE(ctx, message);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(metrics_that_do_not_fit_are_named)
{
    check_refused((tt_compile_opts){.loss = TT_MSE, .metrics = TT_AUC}, 2,
                  "the metric auc cannot be used with the loss mse");
    check_refused((tt_compile_opts){.loss = TT_CROSS_ENTROPY, .metrics = TT_R2}, 2,
                  "the metric r2 cannot be used with the loss cross_entropy");
    check_refused((tt_compile_opts){.loss = TT_CROSS_ENTROPY, .metrics = TT_CONFUSION}, 100,
                  "metric 'confusion': the sums of losses and metrics have 10001 elements");
    check_refused((tt_compile_opts){.loss = TT_CROSS_ENTROPY, .metrics = TT_AUC}, 40,
                  "give fewer thresholds, or leave it out");
    check_refused((tt_compile_opts){.loss = TT_MSE, .thresholds = 1}, 2, "thresholds is 1");
    check_refused((tt_compile_opts){.loss = TT_MSE, .threshold = 1}, 2, "threshold is 1;");
}

TEST(the_better_direction_of_a_metric_is_known)
{
    static const char *const lower[] = {"rmse",      "mape", "bits_per_byte", "calibration_error",
                                        "confusion", "mse"};
    static const char *const higher[] = {"auc", "auc_pr", "iou", "r2", "cosine", "accuracy"};
    for (int i = 0; i < TTI_COUNT(lower); i++)
        CHECK(!tti_metric_rises(NULL, 0, lower[i]) && tti_metric_rises(NULL, 0, higher[i]));
}
