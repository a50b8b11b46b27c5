/*
 * recompute.c - activations computed again: the bits of a run that keeps them, in less memory.
 */
#include "fit_models.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct result {
    tt_hash hash;
    size_t activations; // of all devices
    size_t most;        // of one
} result;

static tt_model *mlp(tt_ctx *ctx, const char *recompute)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    for (int i = 0; i < 14; i++) {
        tt_layer_dense(m, .units = 61, .act = TT_RELU);
        tt_layer_dropout(m, .rate = 0.2);
    }
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 1e-3),
               .metrics = TT_ACCURACY, .recompute = recompute);
    return m;
}

static tt_model *cnn(tt_ctx *ctx, const char *recompute)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    for (int i = 0; i < 4; i++) {
        tt_layer_conv2d(m, .filters = 7, .kernel = {3, 3}, .stride = {i == 0 ? 2 : 1, 1},
                        .padding = TT_SAME, .no_bias = true);
        tt_layer_batch_norm(m, .act = i == 2 ? TT_GELU : TT_RELU);
        tt_layer_dropout(m, .rate = 0.1);
    }
    tt_layer_max_pool2d(m);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY,
               .optimizer = tt_sgd(.lr = 0.05, .momentum = 0.9, .clip_global = 1.0),
               .recompute = recompute);
    return m;
}

static tt_model *gpt(tt_ctx *ctx, const char *recompute)
{
    tt_model *m = tt_sequential(ctx, .input = {12}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 5, .heads = 2, .width = 24, .vocab = 29, .dropout = 0.1);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adamw(.lr = 3e-3, .ema = 0.9),
               .recompute = recompute);
    return m;
}

static tt_model *half_gpt(tt_ctx *ctx, const char *recompute)
{
    tt_model *m = tt_sequential(ctx, .input = {12}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 5, .heads = 2, .width = 24, .vocab = 29, .dropout = 0.1);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adamw(.lr = 3e-3),
               .precision = TT_PRECISION_BF16, .recompute = recompute);
    return m;
}

static tt_model *(*const builders[])(tt_ctx *, const char *) = {mlp, cnn, gpt, half_gpt};

// devices: "cpu:0*3", which are mirrored, or "pipeline cpu:0*2".
static result train(fit_kind kind, const char *recompute, const char *devices, int64_t accumulate)
{
    bool pipeline = strncmp(devices, "pipeline ", 9) == 0;
    tt_ctx *ctx =
        tt_open(.devices = devices + (pipeline ? 9 : 0), .threads = 2, .seed = 7,
                .strategy = pipeline ? "pipeline" : "mirrored", .on_event = test_ignore_event);
    tt_model *m = builders[kind](ctx, recompute);
    result r = {.activations = 0};
    int64_t rows = kind == FIT_MLP ? 729 : 27; // so that activations outweigh gradients
    tt_data *data = fit_data(ctx, kind < FIT_GPT ? kind : FIT_GPT, 3 * rows);
    tt_status st = tt_fit(m, data, .epochs = 2, .batch = rows, .accumulate = accumulate);
    ck_assert_msg(st == TT_OK, "%s, %s on %s: %s", fit_name(kind % FIT_N_KINDS), recompute, devices,
                  tt_last_error(ctx).message);
    for (int d = 0; d < tt_device_count(ctx); d++) {
        tt_plan_memory mem;
        CHECK_OK(tt_plan_memory_get(tt_model_get_session(m), d, &mem));
        r.activations += mem.activations;
        if (mem.activations > r.most)
            r.most = mem.activations;
    }
    CHECK_OK(tt_model_hash(m, &r.hash));
    CHECK_OK(tt_close(ctx));
    return r;
}

static void check_same(fit_kind kind, const result *want, const char *recompute,
                       const char *devices, int64_t accumulate, result *got)
{
    *got = train(kind, recompute, devices, accumulate);
    ck_assert_msg(got->hash.low == want->hash.low && got->hash.high == want->hash.high,
                  "%s, recompute %s on %s: other bits", fit_name(kind % FIT_N_KINDS), recompute,
                  devices);
}

static void check_kind(fit_kind kind, const char *patterns)
{
    static const char *const devices[] = {"cpu:0", "cpu:0*3", "pipeline cpu:0*2"};
    int n = kind == FIT_CNN ? 2 : 3; // statistics of the whole batch do not go with a pipeline
    for (int i = 0; i < n; i++) {
        result plain = train(kind, NULL, devices[i], 1), all, some, within;
        char budget[64];
        check_same(kind, &plain, "all", devices[i], 1, &all);
        check_same(kind, &plain, patterns, devices[i], 1, &some);
        ck_assert_msg(all.activations < plain.activations && some.activations < plain.activations,
                      "%s on %s: %zu bytes, all %zu, %s %zu", fit_name(kind), devices[i],
                      plain.activations, all.activations, patterns, some.activations);
        snprintf(budget, sizeof(budget), "budget %zu", (plain.most + all.most) / 2);
        check_same(kind, &plain, budget, devices[i], 1, &within);
        CHECK(within.most <= (plain.most + all.most) / 2);
    }
}

TEST(recomputing_an_mlp_with_dropout_keeps_its_bits)
{
    check_kind(FIT_MLP, "dropout*");
}

TEST(recomputing_a_cnn_with_batch_norm_keeps_its_bits)
{
    check_kind(FIT_CNN, "conv2d*"); // what batch norms take; what they give is not kept
}

TEST(recomputing_a_gpt_keeps_its_bits)
{
    check_kind(FIT_GPT, "block.*");
}

TEST(recomputing_in_bf16_keeps_its_bits)
{
    fit_kind kind = FIT_N_KINDS; // half_gpt
    result plain = train(kind, NULL, "cpu:0", 1), all;
    check_same(kind, &plain, "all", "cpu:0", 1, &all);
    CHECK(all.activations < plain.activations);
    check_same(kind, &plain, "all", "cpu:0*3", 1, &all);
}

TEST(recomputing_goes_with_accumulation)
{
    for (int i = 0; i < 2; i++) {
        fit_kind kind = i == 0 ? FIT_MLP : FIT_GPT;
        result plain = train(kind, NULL, "cpu:0", 4), all;
        check_same(kind, &plain, "all", "cpu:0", 4, &all);
        CHECK(all.activations < plain.activations);
    }
}

// ---- a deep chain ----------------------------------------------------------------------------

static void step_gpt(tt_ctx *ctx, const char *recompute, tt_plan_memory *mem)
{
    static int32_t x[4 * 32], y[4 * 32];
    tt_model *m = tt_sequential(ctx, .input = {32}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 12, .heads = 2, .width = 32, .vocab = 29);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 0.1), .recompute = recompute);
    tt_batch_data b = {.rows = 4, .fields = {x, y}};
    ck_assert_msg(tt_train_step(m, &b, NULL) == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_plan_memory_get(tt_model_get_session(m), 0, mem));
    tt_model_free(m);
}

TEST(twelve_blocks_need_a_third_of_the_activations)
{
    tt_ctx *ctx = test_ctx();
    tt_plan_memory plain, all;
    step_gpt(ctx, "none", &plain);
    step_gpt(ctx, "all", &all);
    ck_assert_msg(3 * all.activations <= plain.activations, "%zu of %zu bytes", all.activations,
                  plain.activations);
    CHECK_OK(tt_close(ctx));
}

// ---- bad input -------------------------------------------------------------------------------

TEST(a_pattern_that_matches_no_layer_is_named)
{
    tt_ctx *ctx = test_ctx();
    CHECK(mlp(ctx, "dense_1, dropuot*") != NULL);
    CHECK_MESSAGE(ctx, "recompute: no layer matches 'dropuot*'");
    CHECK_MESSAGE(ctx, "(flatten_1, dense_1, dropout_1, ");
    tt_clear_error(ctx);
    mlp(ctx, "*.weight, dense_1"); // the scope of an optimizer's state is no layer
    CHECK_MESSAGE(ctx, "recompute: no layer matches '*.weight'");
    tt_clear_error(ctx);
    mlp(ctx, "all, dense_1");
    CHECK_MESSAGE(ctx, "recompute: no layer matches 'all'");
    tt_clear_error(ctx);
    mlp(ctx, "budget 3 parsecs");
    CHECK_MESSAGE(ctx, "'3 parsecs' is not a size");
    CHECK(tt_close(ctx) == TT_EPARSE);
}

TEST(a_budget_below_what_is_possible_says_what_is)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = gpt(ctx, "budget 20KiB");
    CHECK(tt_fit(m, fit_data(ctx, FIT_GPT, 27), .epochs = 1, .batch = 27) == TT_ELIMIT);
    CHECK_MESSAGE(ctx, "if all of them are recomputed, more than the budget of 20480");
    CHECK(tt_close(ctx) == TT_ELIMIT);
}

// Allocations fail one after another while the plan is looked for: nothing leaks or crashes.
TEST(recomputing_survives_failing_allocations)
{
    static float x[243 * 784];
    static int32_t y[243];
    tt_batch_data b = {.rows = 243, .fields = {x, y}};
    tt_status st = TT_ENOMEM;
    for (int k = 1; st != TT_OK; k += 3) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = mlp(ctx, "budget 2MiB");
        tti_fail_alloc_at(ctx, k);
        st = tt_train_step(m, &b, NULL);
        tti_fail_alloc_at(ctx, 0);
        CHECK(st == TT_OK || st == TT_ENOMEM);
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
}
