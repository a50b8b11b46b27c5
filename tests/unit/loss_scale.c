/*
 * loss_scale.c - training in f16: a step whose gradients overflow is skipped on all devices, the
 * scale is halved, the run recovers, and a checkpoint has the state of it.
 */
#include "fit_models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tt_ctx *open_on(const char *devices, tt_event_fn fn, void *user)
{
    return tt_open(.devices = devices, .threads = 2, .seed = 7,
                   .strategy = devices == NULL ? NULL : "mirrored", .on_event = fn, .user = user);
}

static void set_state(tt_model *m, const char *name, float value)
{
    tt_tensor *t = tt_graph_find(tt_model_get_train_graph(m), name);
    CHECK(t != NULL);
    CHECK_OK(tt_set_variable(tt_model_get_session(m), t, &value, sizeof(value)));
}

static float get_state(tt_model *m, const char *name)
{
    float value = -1;
    tt_tensor *t = tt_graph_find(tt_model_get_train_graph(m), name);
    CHECK(t != NULL);
    CHECK_OK(tt_get_variable(tt_model_get_session(m), t, &value, sizeof(value)));
    return value;
}

// ---- overflow --------------------------------------------------------------------------------

#define STEPS 12
typedef struct watch {
    int64_t n, skipped;
    double scale[STEPS];
    bool is_skipped[STEPS];
    tt_hash weights[STEPS];
    int64_t end_at;
} watch;

static tt_status see(void *user, tt_model *m, const tt_progress *p)
{
    watch *w = user;
    CHECK(isfinite(p->step_loss)); // the loss is fine: it is the gradients that are not
    w->scale[w->n] = p->loss_scale;
    w->is_skipped[w->n] = p->is_skipped;
    CHECK_OK(tt_model_hash(m, &w->weights[w->n++]));
    w->skipped += p->is_skipped;
    if (p->step == w->end_at)
        tt_request_end(tt_graph_get_ctx(tt_model_get_graph(m)));
    return TT_OK;
}

static bool same(tt_hash a, tt_hash b)
{
    return a.low == b.low && a.high == b.high;
}

typedef struct run {
    const char *devices, *folder;
    int64_t accumulate, end_at;
    bool resume;
    float scale; // set before the first step; 0: as it is
} run;

static void fit(fit_kind kind, run r, watch *w)
{
    tt_ctx *ctx = open_on(r.devices, test_ignore_event, NULL);
    tt_model *m = fit_model_in(ctx, kind, TT_PRECISION_F16);
    tt_hash first;
    tt_fit_report report;
    ck_assert_msg(m != NULL, "%s", tt_last_error(ctx).message);
    CHECK(get_state(m, "train/loss_scale") == 0x1p15f);
    if (r.scale > 0)
        set_state(m, "train/loss_scale", r.scale);
    CHECK_OK(tt_model_hash(m, &first));
    *w = (watch){.end_at = r.end_at};
    int64_t k = r.accumulate == 0 ? 1 : r.accumulate;
    tt_status st = tt_fit(m, fit_data(ctx, kind, 130), .steps = STEPS, .batch = 28 / k,
                          .accumulate = k, .checkpoints = r.folder, .resume = r.resume,
                          .callbacks = {tt_callback(TT_AT_STEP, 1, see, w)});
    ck_assert_msg(st == (r.end_at > 0 ? TT_ESTOP : TT_OK), "%s", tt_last_error(ctx).message);
    tt_clear_error(ctx);
    for (int64_t i = 0; i < w->n; i++) {
        bool moved = !same(w->weights[i], i > 0 ? w->weights[i - 1] : first);
        if (i > 0 || !r.resume)
            CHECK_INT(moved, !w->is_skipped[i]);
        if (i > 0)
            CHECK(w->scale[i] == w->scale[i - 1] * (w->is_skipped[i - 1] ? 0.5 : 1));
    }
    if (r.end_at == 0 && !r.resume) {
        CHECK_OK(tt_fit_report_get(m, &report));
        CHECK_INT(report.skipped, w->skipped);
        int64_t good = 0;
        while (good < STEPS && !w->is_skipped[STEPS - 1 - good])
            good++;
        CHECK(get_state(m, "train/good_steps") == (float)good);
    }
    CHECK_OK(tt_close(ctx));
}

// 2^24 times a gradient near 1 is too large for f16; at some smaller scale it is not.
TEST(an_overflow_skips_the_step_on_all_devices_and_halves_the_scale)
{
    static const char *const devices[] = {"cpu:0*2", "cpu:0*3", "cpu:0*8"};
    for (fit_kind kind = 0; kind < FIT_N_KINDS; kind++) {
        watch want, got;
        fit(kind, (run){.scale = 0x1p26f}, &want);
        ck_assert_msg(want.skipped >= 2 && want.skipped < STEPS - 2, "%s skips %d", fit_name(kind),
                      (int)want.skipped);
        for (int i = 0; i < 3; i++) {
            fit(kind, (run){.scale = 0x1p26f, .devices = devices[i]}, &got);
            ck_assert_msg(memcmp(got.weights, want.weights, sizeof(want.weights)) == 0 &&
                              memcmp(got.scale, want.scale, sizeof(want.scale)) == 0,
                          "%s on %s: other steps are skipped, or other bits", fit_name(kind),
                          devices[i]);
        }
        fit(kind, (run){.scale = 0x1p26f, .accumulate = 4}, &got);
        CHECK(same(got.weights[STEPS - 1], want.weights[STEPS - 1]));
    }
}

// A scale is a power of two and nothing is near the ends of f16: other scales, same bits.
TEST(good_steps_do_not_depend_on_the_scale)
{
    watch a, b;
    fit(FIT_MLP, (run){.scale = 0x1p15f}, &a);
    fit(FIT_MLP, (run){.scale = 0x1p14f}, &b);
    CHECK_INT(a.skipped + b.skipped, 0);
    CHECK(same(a.weights[0], b.weights[0]));
}

TEST(a_resumed_fit_in_f16_goes_on_with_the_scale)
{
    watch want, got;
    fit(FIT_GPT, (run){.scale = 0x1p26f}, &want);
    for (int64_t end = 1; end < STEPS; end += 3) {
        char folder[512];
        snprintf(folder, sizeof(folder), "%s/%d", test_folder(), (int)end);
        fit(FIT_GPT, (run){.scale = 0x1p26f, .folder = folder, .end_at = end}, &got);
        fit(FIT_GPT, (run){.folder = folder, .resume = true, .devices = "cpu:0*3"}, &got);
        CHECK_INT(got.n, STEPS - end);
        CHECK(same(got.weights[got.n - 1], want.weights[STEPS - 1]));
        CHECK(memcmp(got.scale, want.scale + end, sizeof(double) * (size_t)got.n) == 0);
    }
}

TEST(two_thousand_good_steps_double_the_scale)
{
    tt_ctx *ctx = open_on(NULL, test_ignore_event, NULL);
    tt_model *m = fit_model_in(ctx, FIT_MLP, TT_PRECISION_F16);
    set_state(m, "train/good_steps", 1998);
    CHECK_OK(tt_fit(m, fit_data(ctx, FIT_MLP, 130), .steps = 1));
    CHECK(get_state(m, "train/loss_scale") == 0x1p15f);
    CHECK_OK(tt_fit(m, fit_data(ctx, FIT_MLP, 130), .steps = 1));
    CHECK(get_state(m, "train/loss_scale") == 0x1p16f);
    CHECK(get_state(m, "train/good_steps") == 0);
    CHECK_OK(tt_close(ctx));
}

// ---- a model that overflows whatever the scale -----------------------------------------------

static tt_status read_huge(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx, (void)self;
    for (int k = 0; k < 5; k++)
        ((float *)out[0])[k] = i % 2 == 0 ? 1e30f : 1.0f;
    *(int32_t *)out[1] = (int32_t)(i % 3);
    return TT_OK;
}

static tt_data *huge(tt_ctx *ctx)
{
    tt_source s = {.count = 40, .n_fields = 2, .read = read_huge};
    s.fields[0] = (tt_field){.name = "x", .dtype = TT_F32, .shape = TT_SHAPE(5)};
    s.fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .shape = TT_SCALAR, .classes = 3};
    return tt_data_new(ctx, &s, .batch = 20);
}

static tt_model *small(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {5});
    tt_layer_dense(m, .units = 4, .act = TT_RELU, .name = "first");
    tt_layer_dense(m, .units = 3);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 1e-3),
               .precision = TT_PRECISION_F16);
    return m;
}

static void count_overflows(void *user, const tt_event *ev)
{
    *(int *)user += strcmp(ev->kind, "overflow") == 0;
}

TEST(an_overflow_that_no_scale_helps_fails_and_names_the_layer)
{
    int told = 0;
    tt_ctx *ctx = open_on("cpu:0*2", count_overflows, &told);
    tt_model *m = small(ctx);
    tt_hash before, after;
    CHECK_OK(tt_model_hash(m, &before));
    CHECK(tt_fit(m, huge(ctx), .steps = 100) == TT_ENAN);
    CHECK_MESSAGE(ctx, "step 16: the loss or the gradients overflow f16 even with a loss scale of "
                       "1; the first layer whose output overflows is 'first'");
    tt_clear_error(ctx);
    CHECK_INT(told, 1);
    CHECK_OK(tt_model_hash(m, &after));
    CHECK(same(before, after));
    CHECK_OK(tt_close(ctx));
}

TEST(overflows_are_told_once_and_each_hundredth)
{
    int told = 0;
    tt_ctx *ctx = open_on(NULL, count_overflows, &told);
    tt_model *m = small(ctx);
    tt_fit_report r;
    CHECK_OK(tt_fit(m, huge(ctx), .steps = 205, .nan = TT_NAN_SKIP));
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_INT(r.skipped, 205);
    CHECK_INT(told, 3);
    CHECK(get_state(m, "train/loss_scale") == 1);
    CHECK_OK(tt_close(ctx));
}

// ---- several losses, clipping, batch norm ----------------------------------------------------

static tt_status read_pair(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx, (void)self;
    for (int k = 0; k < 20 * 20; k++)
        ((float *)out[0])[k] = (float)((i * 31 + k * (i % 7 + 1)) % 17) / 17;
    *(int32_t *)out[1] = (int32_t)(i % 7);
    *(int32_t *)out[2] = (int32_t)(i % 5);
    return TT_OK;
}

static tt_data *pairs(tt_ctx *ctx)
{
    tt_source s = {.count = 101, .n_fields = 3, .read = read_pair};
    s.fields[0] = (tt_field){.name = "x", .dtype = TT_F32, .shape = TT_SHAPE(20, 20, 1)};
    s.fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .shape = TT_SCALAR, .classes = 7};
    s.fields[2] = (tt_field){.name = "z", .dtype = TT_I32, .shape = TT_SCALAR, .classes = 5};
    return tt_data_new(ctx, &s, .batch = 25);
}

static tt_hash train_two(const char *devices, tt_precision precision, double *loss)
{
    tt_ctx *ctx = open_on(devices, test_ignore_event, NULL);
    tt_model *m = tt_model_new(ctx);
    tt_tensor *x = tt_input(m, .shape = {20, 20, 1}, .name = "x");
    tt_tensor *y =
        tt_layer_conv2d(m, .filters = 5, .kernel = {3, 3}, .stride = {3, 3}, .from = {x});
    y = tt_layer_batch_norm(m, .act = TT_GELU, .from = {y});
    y = tt_layer_depthwise_conv2d(m, .filters = 2, .kernel = {3, 3}, .act = TT_SILU, .from = {y});
    y = tt_layer_global_avg_pool2d(m, .from = {y});
    CHECK_OK(tt_output(m, tt_layer_dense(m, .units = 7, .from = {y}), "a"));
    CHECK_OK(tt_output(m, tt_layer_dense(m, .units = 5, .act = TT_SOFTMAX, .from = {y}), "b"));
    tt_compile(m,
               .losses = {tt_loss(.kind = TT_CROSS_ENTROPY, .output = "a", .target = "y"),
                          tt_loss(.kind = TT_CROSS_ENTROPY, .output = "b", .target = "z",
                                  .weight = 0.5, .has_ignore = true, .ignore = 3)},
               .metrics = TT_ACCURACY | TT_F1, .precision = precision,
               .optimizer = tt_rmsprop(.clip_norm = 0.5));
    tt_fit_report r = {0};
    ck_assert_msg(tt_fit(m, pairs(ctx), .epochs = 2) == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_INT(r.skipped, 0);
    *loss = r.last->loss;
    CHECK_OK(tt_close(ctx));
    return r.weights;
}

TEST(two_losses_clipped_with_batch_norm_train_in_half_precision)
{
    double f32, loss, again;
    train_two(NULL, TT_PRECISION_F32, &f32);
    for (tt_precision p = TT_PRECISION_BF16; p <= TT_PRECISION_F16; p++) {
        tt_hash one = train_two(NULL, p, &loss), three = train_two("cpu:0*3", p, &again);
        CHECK(same(one, three) && loss == again);
        ck_assert_msg(fabs(loss - f32) < 0.05, "precision %d: %g, in f32 %g", (int)p, loss, f32);
    }
}

// ---- memory ----------------------------------------------------------------------------------

TEST(a_step_in_f16_allocates_nothing_whether_it_is_skipped_or_not)
{
    tt_ctx *ctx = open_on("cpu:0*2", test_ignore_event, NULL);
    tt_model *m = small(ctx);
    float x[3 * 5] = {1, 2, 3};
    int32_t y[3] = {0, 1, 2};
    tt_batch_data batch = {.rows = 3, .fields = {x, y}};
    tt_progress p;
    CHECK_OK(tt_train_step(m, &batch, &p));
    CHECK(!p.is_skipped && p.loss_scale == 0x1p15);
    int64_t calls = tt_alloc_stats_get(ctx).calls;
    for (int i = 0; i < 4; i++) {
        x[4] = i % 2 == 0 ? 1e30f : 0;
        CHECK_OK(tt_train_step(m, &batch, &p));
        CHECK_INT(p.is_skipped, i % 2 == 0);
    }
    CHECK(p.loss_scale == 0x1p13);
    CHECK_INT(tt_alloc_stats_get(ctx).calls, calls);
    CHECK_OK(tt_close(ctx));
}

TEST(compiling_in_f16_survives_failing_allocations)
{
    int k = 1;
    for (bool done = false; !done && k < 20000; k++) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {6, 6, 1});
        tt_layer_conv2d(m, .filters = 2, .kernel = {3, 3}, .act = TT_RELU);
        tt_layer_batch_norm(m);
        tt_layer_flatten(m);
        tt_layer_dense(m, .units = 3);
        tti_fail_alloc_at(ctx, k);
        tt_status st = tt_compile(m, .loss = TT_CROSS_ENTROPY, .precision = TT_PRECISION_F16);
        tti_fail_alloc_at(ctx, 0);
        CHECK(st == TT_OK || st == TT_ENOMEM);
        done = st == TT_OK;
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
    CHECK(k > 50 && k < 20000);
}
