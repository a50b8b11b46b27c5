/*
 * own_metric.c - metrics that a program defines: written once more as the built-in ones are, by
 * other ops, they have the bits of those on any devices; in progress, events, validation, watches
 * and resumed fits; and what is refused.
 */
#include "fit_models.h"
#include <math.h>
#include <stdio.h>

// ---- metrics as a program writes them --------------------------------------------------------

static tt_tensor *ones_like(tt_graph *g, tt_tensor *t)
{
    return tt_broadcast(g, tt_scalar(g, 1), t);
}

static tt_status hits_build(void *user, tt_graph *g, const tt_metric_inputs *in, tt_tensor **states)
{
    (void)user;
    tt_tensor *hit = tt_equal(g, tt_argmax(g, in->logits, -1), in->target);
    tt_tensor *right = tt_cast(g, hit, TT_F32);
    if (in->mask != NULL)
        right = tt_mul(g, right, in->mask);
    states[0] = tt_sum(g, right);
    states[1] = tt_sum(g, in->mask != NULL ? in->mask : ones_like(g, right));
    return TT_OK;
}

static tt_status squares_build(void *user, tt_graph *g, const tt_metric_inputs *in,
                               tt_tensor **states)
{
    (void)user;
    tt_tensor *d = tt_sub(g, in->target, in->output);
    states[0] = tt_sum(g, tt_mul(g, d, d));
    states[1] = tt_sum(g, ones_like(g, d));
    return TT_OK;
}

static double mean_value(void *user, const double *const *sums, const int64_t *sizes)
{
    (void)user;
    CHECK(sizes[0] == 1 && sizes[1] == 1);
    return sums[1][0] == 0 ? 0 : sums[0][0] / sums[1][0];
}

// Recall of each class: how often it was there, and right.
static tt_status recall_build(void *user, tt_graph *g, const tt_metric_inputs *in,
                              tt_tensor **states)
{
    int classes = *(const int *)user;
    tt_tensor *hit = tt_equal(g, in->target, tt_argmax(g, in->logits, -1));
    states[0] = tt_scatter_add(g, tt_cast(g, hit, TT_F32), in->target, classes);
    states[1] = tt_scatter_add(g, ones_like(g, tt_cast(g, hit, TT_F32)), in->target, classes);
    return TT_OK;
}

static double recall_value(void *user, const double *const *sums, const int64_t *sizes)
{
    double sum = 0, n = 0;
    CHECK_INT(sizes[0], *(const int *)user);
    for (int64_t i = 0; i < sizes[0]; i++) {
        sum += sums[1][i] > 0 ? sums[0][i] / sums[1][i] : 0;
        n += sums[1][i] > 0;
    }
    return n > 0 ? sum / n : 0;
}

static int ten = 10;
static const tt_metric hits = {
    .opts_size = sizeof(hits), .name = "hits", .build = hits_build, .value = mean_value};
static const tt_metric squares = {.opts_size = sizeof(squares),
                                  .name = "squares",
                                  .build = squares_build,
                                  .value = mean_value,
                                  .lower_is_better = true};
static const tt_metric class_recall = {.opts_size = sizeof(class_recall),
                                       .name = "class_recall",
                                       .build = recall_build,
                                       .value = recall_value,
                                       .user = &ten};

static double metric_of(const tt_progress *p, const double *values, const char *name)
{
    for (int i = 0; i < p->n_metrics; i++)
        if (strcmp(p->names[i], name) == 0)
            return values[i];
    ck_abort_msg("no metric '%s'", name);
    return 0;
}

// ---- the bits of the built-in ones -----------------------------------------------------------

#define MOST 64
typedef struct seen {
    double epoch[MOST], step[MOST], validation[MOST];
    int n;
    const char *own, *built_in;
} seen;

static tt_status compare(void *user, tt_model *m, const tt_progress *p)
{
    seen *s = user;
    (void)m;
    CHECK(s->n < MOST);
    s->epoch[s->n] = metric_of(p, p->metrics, s->own);
    s->step[s->n] = metric_of(p, p->step_metrics, s->own);
    CHECK(s->epoch[s->n] == metric_of(p, p->metrics, s->built_in));
    CHECK(s->step[s->n] == metric_of(p, p->step_metrics, s->built_in));
    if (p->has_validation) {
        s->validation[s->n] = metric_of(p, p->validation, s->own);
        CHECK(s->validation[s->n] == metric_of(p, p->validation, s->built_in));
    }
    s->n++;
    return TT_OK;
}

typedef struct spread {
    const char *devices, *strategy;
    int64_t batch, accumulate;
} spread;
static const spread spreads[] = {{"cpu:0", "single", 24, 1},     {"cpu:0*2", "mirrored", 24, 1},
                                 {"cpu:0*4", "mirrored", 24, 1}, {"cpu:0", "single", 6, 4},
                                 {"cpu:0*2", "pipeline", 24, 1}, {"cpu:0*4", "mirrored", 12, 2}};
#define N_SPREADS ((int)(sizeof(spreads) / sizeof(spreads[0])))

static tt_model *classifier(tt_ctx *ctx, const tt_loss *loss, tt_metric_kind kind,
                            const tt_metric *own)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 16, .act = TT_TANH);
    tt_layer_dense(m, .units = 10, .act = TT_SOFTMAX);
    tt_compile(m, .losses = {loss}, .optimizer = tt_adam(.lr = 1e-2), .metrics = (int)kind,
               .own_metrics = {own});
    return m;
}

static tt_ctx *open_on(const spread *s)
{
    return tt_open(.devices = s->devices, .strategy = s->strategy, .threads = 2, .seed = 3,
                   .on_event = test_ignore_event);
}

static seen digits_on(const spread *s, const tt_loss *loss, tt_metric_kind kind,
                      const tt_metric *own)
{
    tt_ctx *ctx = open_on(s);
    seen r = {.own = own->name, .built_in = tt_metric_name(kind)};
    tt_model *m = classifier(ctx, loss, kind, own);
    tt_data *d = tt_digits(ctx, .count = 131, .batch = 24), *v = tt_digits(ctx, .count = 37);
    tt_evaluation e;
    tt_status st = tt_fit(m, d, .epochs = 2, .batch = s->batch, .accumulate = s->accumulate,
                          .validate = v, .callbacks = {tt_callback(TT_AT_STEP, 1, compare, &r)});
    ck_assert_msg(st == TT_OK, "%s: %s", s->devices, tt_last_error(ctx).message);
    CHECK_OK(tt_evaluate(m, v, &e));
    CHECK(e.n_metrics == 2 && e.metrics[0] == e.metrics[1] && e.metrics[0] > 0);
    CHECK_STR(e.names[1], own->name);
    r.validation[0] = e.metrics[1];
    CHECK_OK(tt_close(ctx));
    CHECK_INT(r.n, 12);
    return r;
}

static void same_everywhere(const tt_loss *loss, tt_metric_kind kind, const tt_metric *own)
{
    seen one = digits_on(&spreads[0], loss, kind, own);
    int changes = 0;
    for (int i = 1; i < one.n; i++)
        changes += one.step[i] != one.step[i - 1];
    CHECK(changes > 3);
    for (int k = 1; k < N_SPREADS; k++) {
        seen other = digits_on(&spreads[k], loss, kind, own);
        bool same = memcmp(one.epoch, other.epoch, sizeof(one.epoch)) == 0 &&
                    memcmp(one.step, other.step, sizeof(one.step)) == 0 &&
                    memcmp(one.validation, other.validation, sizeof(one.validation)) == 0;
        ck_assert_msg(same, "%s on %s, accumulate %lld: other bits", spreads[k].strategy,
                      spreads[k].devices, (long long)spreads[k].accumulate);
    }
}

TEST(an_own_accuracy_has_the_bits_of_the_built_in_one_on_any_devices)
{
    same_everywhere(tt_loss(.kind = TT_CROSS_ENTROPY), TT_ACCURACY, &hits);
}

TEST(an_own_metric_leaves_ignored_targets_out)
{
    same_everywhere(tt_loss(.kind = TT_CROSS_ENTROPY, .has_ignore = true, .ignore = 3), TT_ACCURACY,
                    &hits);
}

TEST(an_own_metric_may_have_a_number_for_each_class)
{
    tt_loss *loss = tt_loss(.kind = TT_CROSS_ENTROPY);
    spread last = spreads[2];
    tt_ctx *ctx = open_on(&last);
    tt_model *m = classifier(ctx, loss, TT_ACCURACY, &class_recall);
    tt_data *d = tt_digits(ctx, .count = 200, .batch = 50);
    tt_evaluation e;
    CHECK_OK(tt_fit(m, d, .epochs = 2));
    CHECK_OK(tt_evaluate(m, d, &e));
    // Ten classes, each as often as the others up to one: so the mean is near the accuracy.
    CHECK_NEAR(e.metrics[1], e.metrics[0], 0.05);
    CHECK(e.metrics[1] > 0.1);
    CHECK_OK(tt_close(ctx));
}

TEST(an_own_mse_has_the_bits_of_the_built_in_one_on_any_devices)
{
    enum {
        COUNT = 90
    };
    static float x[COUNT * 5], y[COUNT * 3];
    double want[2] = {0, 0};
    test_fill(x, COUNT * 5, 4, -1, 1);
    test_fill(y, COUNT * 3, 5, -1, 1);
    for (int k = 0; k < N_SPREADS; k++) {
        const spread *s = &spreads[k];
        tt_ctx *ctx = open_on(s);
        seen r = {.own = "squares", .built_in = "mse"};
        tt_model *m = tt_sequential(ctx, .input = {5});
        tt_layer_dense(m, .units = 7, .act = TT_TANH);
        tt_layer_dense(m, .units = 3);
        tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.1), .metrics = TT_METRIC_MSE,
                   .own_metrics = {&squares});
        tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(5), .y_shape = TT_SHAPE(3),
                               .count = COUNT, .batch = 24);
        tt_status st = tt_fit(m, d, .epochs = 3, .batch = s->batch, .accumulate = s->accumulate,
                              .callbacks = {tt_callback(TT_AT_STEP, 1, compare, &r)});
        ck_assert_msg(st == TT_OK, "%s: %s", s->devices, tt_last_error(ctx).message);
        if (k == 0) {
            want[0] = r.epoch[r.n - 1];
            want[1] = r.step[r.n - 1];
        }
        CHECK(want[0] == r.epoch[r.n - 1] && want[1] == r.step[r.n - 1] && want[0] > 0);
        CHECK_OK(tt_close(ctx));
    }
}

// ---- where it shows --------------------------------------------------------------------------

typedef struct story {
    int steps, epochs;
    double epoch[8], validation[8];
    bool is_in_text;
} story;

static void listen(void *user, const tt_event *ev)
{
    story *s = user;
    double value = NAN, validation = NAN;
    for (int i = 0; i < ev->n_pairs; i++) {
        if (strcmp(ev->pairs[i].name, "hits") == 0)
            value = ev->pairs[i].number;
        if (strcmp(ev->pairs[i].name, "validation_hits") == 0)
            validation = ev->pairs[i].number;
    }
    s->steps += strcmp(ev->kind, "step") == 0 && !isnan(value);
    if (strcmp(ev->kind, "epoch") != 0)
        return;
    s->epoch[s->epochs] = value;
    s->validation[s->epochs++] = validation;
    s->is_in_text = strstr(ev->text, "\"hits\": ") != NULL;
}

TEST(an_own_metric_is_in_events_and_the_name_is_copied)
{
    char name[8] = "hits";
    story s = {.steps = 0};
    tt_ctx *ctx = tt_open(.on_event = listen, .user = &s);
    tt_metric own = hits;
    own.name = name;
    tt_model *m = classifier(ctx, tt_loss(.kind = TT_CROSS_ENTROPY), TT_ACCURACY, &own);
    memcpy(name, "misses", 7); // the program's text may change after the call
    tt_data *d = tt_digits(ctx, .count = 96, .batch = 24), *v = tt_digits(ctx, .count = 24);
    CHECK_OK(tt_fit(m, d, .epochs = 3, .validate = v, .nan = TT_NAN_CONTINUE)); // compiled again
    CHECK(s.steps >= 1 && s.epochs == 3 && s.is_in_text);
    for (int i = 0; i < 3; i++)
        CHECK(s.epoch[i] > 0 && s.validation[i] >= 0);
    CHECK_OK(tt_close(ctx));
}

// The losses' texts too, when a fit compiles the model again.
TEST(texts_of_losses_are_copied_for_fits_that_compile_again)
{
    static float x[12], y[4];
    char output[8] = "size", target[8] = "y";
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_output(m, tt_layer_dense(m, .units = 1, .from = {tt_input(m, .shape = {3})}), "size");
    tt_compile(m, .losses = {tt_loss(.kind = TT_MSE, .output = output, .target = target)});
    memcpy(output, "gone", 5);
    memcpy(target, "gone", 5);
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(3), .y_shape = TT_SHAPE(1),
                           .count = 4, .batch = 4);
    tt_status st = tt_fit(m, d, .nan = TT_NAN_CONTINUE);
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_close(ctx));
}

TEST(early_stopping_knows_whether_lower_is_better)
{
    for (int lower = 0; lower < 2; lower++) {
        tt_ctx *ctx = test_ctx();
        tt_metric own = squares;
        own.lower_is_better = lower == 1;
        float x[16], y[16];
        test_fill(x, 16, 1, -1, 1);
        for (int i = 0; i < 16; i++)
            y[i] = 2 * x[i];
        tt_model *m = tt_sequential(ctx, .input = {1});
        tt_layer_dense(m, .units = 1);
        tt_compile(m, .loss = TT_MSE, .optimizer = tt_sgd(.lr = 0.05), .own_metrics = {&own});
        tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(1), .y_shape = TT_SHAPE(1),
                               .count = 16, .batch = 16);
        tt_fit_report r;
        CHECK_OK(
            tt_fit(m, d, .epochs = 12, .early_stop = tt_watch(.value = "squares", .patience = 2)));
        CHECK_OK(tt_fit_report_get(m, &r));
        CHECK_INT(r.epochs, lower ? 12 : 3); // it falls all the time
        CHECK_OK(tt_close(ctx));
    }
}

static tt_status end_at_three(void *user, tt_model *m, const tt_progress *p)
{
    if (*(const bool *)user && p->step == 3)
        tt_request_end(tt_graph_get_ctx(tt_model_get_graph(m)));
    return TT_OK;
}

// Four steps per epoch: the sums of the epoch are in the checkpoint.
TEST(a_resumed_fit_has_the_own_metric_of_the_whole_epoch)
{
    double value[2];
    char folder[600];
    snprintf(folder, sizeof(folder), "%s/run", test_folder());
    for (int k = 0; k < 3; k++) { // whole; stopped; resumed
        tt_ctx *ctx = open_on(&spreads[k == 2]);
        tt_model *m = classifier(ctx, tt_loss(.kind = TT_CROSS_ENTROPY), TT_ACCURACY, &hits);
        tt_data *d = tt_digits(ctx, .count = 96, .batch = 24);
        tt_fit_report r;
        bool stops = k == 1;
        tt_status st = tt_fit(m, d, .epochs = 1, .checkpoints = k > 0 ? folder : NULL,
                              .resume = k == 2, .save_every = k > 0 ? 1 : 0,
                              .callbacks = {tt_callback(TT_AT_STEP, 1, end_at_three, &stops)});
        CHECK(st == (stops ? TT_ESTOP : TT_OK));
        tt_clear_error(ctx);
        CHECK_OK(tt_fit_report_get(m, &r));
        if (k != 1)
            value[k / 2] = metric_of(r.last, r.last->metrics, "hits");
        CHECK_OK(tt_close(ctx));
    }
    ck_assert_msg(value[0] == value[1] && value[0] > 0, "%g, resumed %g", value[0], value[1]);
}

TEST(an_own_metric_may_be_of_any_output_with_a_loss)
{
    float x[3 * 8], z[8];
    int32_t y[8];
    test_fill(x, 24, 9, -1, 1);
    test_fill(z, 8, 11, -1, 1);
    for (int i = 0; i < 8; i++)
        y[i] = i % 4;
    tt_metric own = squares;
    own.output = "size";
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *in = tt_input(m, .shape = {3});
    tt_output(m, tt_layer_dense(m, .units = 4, .from = {in}), "class");
    tt_output(m, tt_layer_dense(m, .units = 1, .from = {in}), "size");
    const tt_loss *losses[2] = {tt_loss(.kind = TT_CROSS_ENTROPY, .target = "y"),
                                tt_loss(.kind = TT_MSE, .target = "z")};
    CHECK_OK(tt_compile(m, .losses = {losses[0], losses[1]}, .own_metrics = {&own, &hits},
                        .optimizer = tt_sgd(.lr = TT_ZERO)));
    float out[8];
    double want = 0;
    CHECK_OK(tt_predict(m, x, 8, NULL, .outputs = {NULL, out}));
    for (int i = 0; i < 8; i++)
        want += (double)(z[i] - out[i]) * (double)(z[i] - out[i]) / 8;
    tt_batch_data batch = {.rows = 8, .fields = {x, y, z}};
    tt_progress p;
    CHECK_OK(tt_train_step(m, &batch, &p));
    CHECK(p.n_metrics == 2);
    CHECK_NEAR(metric_of(&p, p.metrics, "squares"), want, 1e-6);
    own.output = "shape";
    CHECK(tt_compile(m, .losses = {losses[0], losses[1]}, .own_metrics = {&own}) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "metric 'squares': no loss is computed from an output 'shape'");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

static void keep_warning(void *user, const tt_event *ev)
{
    if (strcmp(ev->kind, "log") == 0 && ev->level == TT_WARN)
        snprintf(user, 400, "%s", ev->text);
}

TEST(a_loaded_model_has_no_own_metrics_until_it_is_given_them)
{
    char path[600], warning[400] = "";
    snprintf(path, sizeof(path), "%s/model.tutti", test_folder());
    tt_ctx *ctx = tt_open(.on_event = keep_warning, .user = warning);
    tt_model *m = classifier(ctx, tt_loss(.kind = TT_CROSS_ENTROPY), TT_ACCURACY, &hits);
    tt_data *d = tt_digits(ctx, .count = 64, .batch = 16);
    tt_evaluation first, second, third;
    CHECK_OK(tt_fit(m, d));
    CHECK_OK(tt_evaluate(m, d, &first));
    CHECK_OK(tt_export(m, path));
    tt_model *loaded = tt_model_load(ctx, path);
    CHECK_OK(tt_model_compile(loaded));
    CHECK(strstr(warning, "the metric 'hits' was defined by the program") != NULL);
    CHECK_OK(tt_evaluate(loaded, d, &second));
    CHECK(second.n_metrics == 1 && second.metrics[0] == first.metrics[0]);
    CHECK_OK(tt_compile(loaded, .loss = TT_CROSS_ENTROPY, .own_metrics = {&hits}));
    CHECK_OK(tt_evaluate(loaded, d, &third));
    CHECK(third.n_metrics == 1 && third.metrics[0] == first.metrics[1]);
    CHECK_OK(tt_close(ctx));
}

// ---- refused ---------------------------------------------------------------------------------

typedef enum fault {
    NO_STATE,
    A_GAP,
    A_MEAN,
    ROWS,
    DOUBLES,
    FAILS,
    ANOTHER_GRAPH,
    CHANGES,
    TOO_LARGE,
    N_FAULTS
} fault;

static tt_status faulty_build(void *user, tt_graph *g, const tt_metric_inputs *in,
                              tt_tensor **states)
{
    static int calls;
    tt_tensor *sum = tt_sum(g, in->output);
    switch (*(const fault *)user) {
    case A_GAP:
        states[1] = sum;
        break;
    case A_MEAN:
        states[0] = tt_mean(g, in->output);
        break;
    case ROWS:
        states[0] = in->output;
        break;
    case DOUBLES:
        states[0] = tt_sum(g, tt_cast(g, in->output, TT_F64));
        break;
    case FAILS:
        return TT_EIO;
    case ANOTHER_GRAPH:
        g = tt_graph_new(tt_graph_get_ctx(g));
        states[0] = tt_sum(g, tt_feed(g, .shape = TT_SHAPE(TT_BATCH)));
        break;
    case CHANGES:
        states[calls++] = sum;
        states[0] = sum;
        break;
    case TOO_LARGE:
        states[0] = tt_scatter_add(
            g, tt_reshape(g, in->output, TT_SHAPE(TT_BATCH)),
            tt_cast(g, tt_reshape(g, in->output, TT_SHAPE(TT_BATCH)), TT_I32), 10000);
        break;
    default:
        break;
    }
    return TT_OK;
}

static tt_status compile_with(tt_ctx *ctx, const tt_metric *a, const tt_metric *b)
{
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 1);
    return tt_compile(m, .loss = TT_MSE, .own_metrics = {a, b});
}

TEST(states_that_are_not_sums_over_the_batch_are_refused)
{
    static const char *const words[N_FAULTS] = {
        [NO_STATE] = "metric 'odd': its build function wrote no state to states[0]",
        [A_GAP] = "metric 'odd': states[0] is NULL",
        [A_MEAN] = "is not a sum over the batch; make each state by tt_sum()",
        [ROWS] = "of shape [b, 1], is not a sum over the batch",
        [DOUBLES] = "is f64; a state is f32: use tt_cast(g, x, TT_F32) before the sum",
        [FAILS] = "metric 'odd': its build function failed",
        [ANOTHER_GRAPH] = "is not of the graph given to build()",
        [CHANGES] = "metric 'odd' has 1 states for training, but 2 for evaluation",
        [TOO_LARGE] = "checkpoints keep at most 8191"};
    for (fault f = 0; f < N_FAULTS; f++) {
        tt_ctx *ctx = test_ctx();
        tt_metric *odd =
            tt_metric(.name = "odd", .build = faulty_build, .value = mean_value, .user = &f);
        CHECK(compile_with(ctx, odd, NULL) != TT_OK);
        CHECK_MESSAGE(ctx, words[f]);
        tt_clear_error(ctx);
        CHECK_OK(compile_with(ctx, &squares, NULL)); // nothing is left of it
        CHECK_OK(tt_close(ctx));
    }
}

TEST(own_metrics_need_functions_and_names_of_their_own)
{
#define NAMED(name_) tt_metric(.name = name_, .build = squares_build, .value = mean_value)
    const struct {
        const tt_metric *a, *b;
        const char *words;
    } bad[] = {
        {NAMED(NULL), NULL, "own metric 0 has no name"},
        {NAMED("a b"), NULL, "called 'a b'"},
        {NAMED("1st"), NULL, "called '1st'"},
        {NAMED("a_name_that_is_longer_than_31_bytes"), NULL, "up to 31 letters"},
        {NAMED("accuracy"), NULL, "'accuracy', which is the name of a built-in metric"},
        {NAMED("loss"), NULL, "name of a loss"},
        {NAMED("lr"), NULL, "another value"},
        {NAMED("twice"), NAMED("twice"), "name of another own metric"},
        {tt_metric(.name = "x", .build = squares_build), NULL, "metric 'x' has no value function"},
        {tt_metric(.name = "x", .value = mean_value), NULL, "metric 'x' has no build function"},
        {&(tt_metric){.name = "x"}, NULL, "compile: own metric 0: opts_size is 0"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tt_ctx *ctx = test_ctx();
        CHECK(compile_with(ctx, bad[i].a, bad[i].b) == TT_EINVAL);
        CHECK_MESSAGE(ctx, bad[i].words);
        CHECK(tt_close(ctx) == TT_EINVAL);
    }
}
