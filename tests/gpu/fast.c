/*
 * fast.c - reduce: fast between GPUs, whose sums NCCL carries: the emulation's, over several cards.
 *
 * Two numbers have one sum, so over two cards the weights are those that two parts of one card end
 * with, to the bit, where our own kernels add. Over more they are near, the same on every card, the
 * same in every run, captured or not.
 */
#include "base/ctx.h"
#include "cli/matrix.h"
#include "run/run.h"
#include "test.h"
#include "train/compile.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SGD_MLP  0 // clips by the global norm
#define ADAM_MLP 1
#define SGD_NORM 6
#define SGD_LANE 8
#define BF16_GPT 10

static void need_nccl(const char *cards)
{
    if (!test_gpu_is_emulated())
        test_skip("needs several GPUs, which only the emulation has");
    setenv("TUTTI_EMU_CARDS", cards, 1);
    setenv("TUTTI_EMU_NCCL", "22803", 1);
}

static matrix_way fast_way(const char *strategy, const char *devices)
{
    return (matrix_way){
        .strategy = strategy,
        .devices = 1,
        .device = devices,
        .spread = {.reduce = TT_REDUCE_FAST, .bucket = 3000},
    };
}

static int64_t records = 121; // three batches, and one of 13 rows

typedef struct outcome {
    matrix_result r;
    int units, groups; // of the newest plan
} outcome;

// Trains; copies of a variable must be the same on every device that has one.
static outcome train(int model, const matrix_way *way)
{
    outcome out = {.units = 0};
    tt_ctx *ctx = matrix_open(way);
    tt_model *m = matrix_build(ctx, &matrix_models[model], way);
    int64_t parts = way->accumulate > 0 ? way->accumulate : 1;
    tt_fit_report r;
    ck_assert_msg(m != NULL && tt_fit(m, matrix_data(ctx, &matrix_models[model], records),
                                      .batch = 36 / parts, .accumulate = parts) == TT_OK,
                  "%s on %s: %s", way->strategy, way->device, tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    out.r =
        (matrix_result){.weights = r.weights, .loss = r.last->loss, .metric = r.last->metrics[0]};
    tt_session *s = tt_model_get_session(m);
    ck_assert_msg(tti_replicas_check(s, 4) == TT_OK, "%s", tt_last_error(ctx).message);
    for (const tti_plan *p = s->plans; p != NULL; p = p->next) {
        out.units = TTI_MAX(out.units, (int)p->n_collectives);
        out.groups = TTI_MAX(out.groups, p->exe.n_groups);
    }
    CHECK_OK(tt_close(ctx));
    return out;
}

static void check_near(const matrix_result *got, const matrix_result *want, double tol)
{
    ck_assert_msg(fabs(got->loss - want->loss) <= tol * want->loss, "loss %.9g, one GPU has %.9g",
                  got->loss, want->loss);
}

// Over two cards by NCCL, over two parts of a card by our own kernels: the same bits.
static outcome check_two(int model, matrix_way way)
{
    outcome by_nccl = train(model, &way);
    way.device = "gpu:0";
    way.devices = 2;
    outcome by_us = train(model, &way);
    CHECK(by_nccl.units > 0 && by_us.units == 0);
    ck_assert_msg(matrix_same(&by_nccl.r, &by_us.r), "%s: other bits than our own kernels",
                  matrix_models[model].name);
    return by_nccl;
}

TEST(gpu_fast_over_two_cards_has_the_bits_of_our_own_sums)
{
    need_nccl("2");
    outcome o = check_two(ADAM_MLP, fast_way("mirrored", "gpu:0,gpu:1"));
    CHECK(o.groups > 4 && o.units > o.groups); // buckets, each with several sums
    check_two(SGD_MLP, fast_way("mirrored", "gpu:0,gpu:1"));
}

TEST(gpu_fast_sums_of_statistics_and_norms)
{
    need_nccl("2");
    check_two(SGD_NORM, fast_way("mirrored", "gpu:0,gpu:1"));
    check_two(SGD_LANE, fast_way("mirrored", "gpu:1,gpu:0"));
}

TEST(gpu_fast_trains_a_transformer)
{
    need_nccl("2");
    check_two(BF16_GPT, fast_way("mirrored", "gpu:0,gpu:1"));
}

TEST(gpu_fast_with_whole_updates_and_with_pieces)
{
    need_nccl("2");
    for (int update = TT_UPDATE_AUTO; update <= TT_UPDATE_SHARD; update++) {
        matrix_way way = fast_way("mirrored", "gpu:0,gpu:1");
        way.spread.update = update;
        check_two(ADAM_MLP, way);
    }
}

// Replicas of two devices, by pins and as pipelines: a gang for each of the two places.
TEST(gpu_fast_between_replicas_of_several_devices)
{
    need_nccl("4");
    matrix_way way = fast_way("mirrored", "gpu:0,gpu:1,gpu:2,gpu:3");
    matrix_way one = fast_way("single", "gpu:0");
    way.pins = 2;
    way.is_local = true;
    outcome want = train(ADAM_MLP, &one), o = train(ADAM_MLP, &way);
    CHECK(o.units > 0);
    check_near(&o.r, &want.r, 1e-4);
    way = fast_way("pipeline", "gpu:0,gpu:1,gpu:2,gpu:3");
    way.spread.replicas = 2;
    o = train(ADAM_MLP, &way);
    CHECK(o.units > 0);
    check_near(&o.r, &want.r, 1e-4);
}

static void check_many(int model, const char *devices, int accumulate)
{
    matrix_way one = fast_way("single", "gpu:0"), way = fast_way("mirrored", devices);
    way.accumulate = accumulate;
    way.lanes = accumulate == 3 ? 12 : 0;
    outcome want = train(model, &one), o = train(model, &way), again = train(model, &way);
    CHECK(o.units > 0);
    check_near(&o.r, &want.r, 1e-4);
    CHECK(matrix_same(&o.r, &again.r));
    setenv("TUTTI_CAPTURE", "off", 1);
    again = train(model, &way);
    unsetenv("TUTTI_CAPTURE");
    ck_assert_msg(matrix_same(&o.r, &again.r), "captured steps have other bits");
}

TEST(gpu_fast_over_three_cards_is_near_and_the_same_again)
{
    need_nccl("3");
    check_many(ADAM_MLP, "gpu:2,gpu:0,gpu:1", 0);
}

// Streams that run at once, and cards that do not reach each other, change nothing.
TEST(gpu_fast_over_four_cards_out_of_reach)
{
    need_nccl("4");
    setenv("TUTTI_EMU_PEERS", "0", 1);
    check_many(SGD_MLP, "gpu:0,gpu:1,gpu:2,gpu:3", 0);
    matrix_way way = fast_way("mirrored", "gpu:0,gpu:1,gpu:2,gpu:3");
    outcome want = train(ADAM_MLP, &way);
    setenv("TUTTI_EMU_NOW", "1", 1);
    outcome got = train(ADAM_MLP, &way);
    CHECK(matrix_same(&got.r, &want.r));
}

// A last batch of one row: the other replicas have no sums, but get the updated weights.
TEST(gpu_fast_with_replicas_that_have_no_rows)
{
    need_nccl("3");
    records = 73;
    check_two(ADAM_MLP, fast_way("mirrored", "gpu:0,gpu:1"));
    check_many(SGD_MLP, "gpu:0,gpu:1,gpu:2", 0);
}

// Three micro-batches are no whole sub-tree: what a replica has of them is added first.
TEST(gpu_fast_accumulates)
{
    need_nccl("3");
    check_many(ADAM_MLP, "gpu:0,gpu:1,gpu:2", 3);
    matrix_way way = fast_way("mirrored", "gpu:0,gpu:1");
    way.accumulate = 4;
    check_two(ADAM_MLP, way);
}

// ---- rows that are looked at -----------------------------------------------------------------

TEST(gpu_fast_can_be_hashed_and_traced)
{
    need_nccl("2");
    char path[512];
    matrix_way way = fast_way("mirrored", "gpu:0,gpu:1");
    matrix_result got;
    outcome want = train(ADAM_MLP, &way);
    snprintf(path, sizeof(path), "%s/hashes", test_folder());
    matrix_run(&matrix_models[ADAM_MLP], &way, path, &got);
    ck_assert_msg(matrix_same(&got, &want.r), "hashed: %s", got.message);

    tt_ctx *ctx = matrix_open(&way);
    tt_model *m = matrix_build(ctx, &matrix_models[ADAM_MLP], &way);
    snprintf(path, sizeof(path), "%s/trace.json", test_folder());
    CHECK_OK(
        tt_fit(m, matrix_data(ctx, &matrix_models[ADAM_MLP], 121), .batch = 36, .trace = true));
    CHECK_OK(tt_trace_write(tt_model_get_session(m), path));
    tt_fit_report r;
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK(r.weights.low == want.r.weights.low && r.weights.high == want.r.weights.high);
    CHECK_OK(tt_close(ctx));
    // Both cards have spans that take time, of joint work too.
    json_t *root = json_load_file(path, 0, NULL), *e;
    size_t i;
    double took[2] = {0, 0}, joint = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
    {
        int64_t tid = json_integer_value(json_object_get(e, "tid"));
        double us = json_number_value(json_object_get(e, "dur"));
        if (strcmp(json_string_value(json_object_get(e, "ph")), "X") != 0 || tid > 1)
            continue;
        char *one = json_dumps(e, 0);
        joint += strstr(one, "reduce_scatter") != NULL ? us : 0;
        free(one);
        took[tid] += us;
    }
    CHECK(took[0] > 0 && took[1] > 0 && joint > 0);
    json_decref(root);
}

// Allocations of the host fail, early and late: told, nothing leaks, nothing crashes.
TEST(gpu_fast_out_of_memory)
{
    need_nccl("2");
    matrix_way way = fast_way("mirrored", "gpu:0,gpu:1");
    tt_status st = TT_ENOMEM;
    for (int64_t n = 1; st != TT_OK; n += n / 8 + 1) {
        tt_ctx *ctx = matrix_open(&way);
        tt_model *m = matrix_build(ctx, &matrix_models[SGD_LANE], &way);
        tt_data *data = matrix_data(ctx, &matrix_models[SGD_LANE], 72);
        tti_fail_alloc_at(ctx, n);
        st = tt_fit(m, data, .batch = 36);
        tti_fail_alloc_at(ctx, 0);
        ck_assert_msg(st == TT_OK || st == TT_ENOMEM, "allocation %lld: %s", (long long)n,
                      tt_last_error(ctx).message);
        CHECK_INT(tt_close(ctx), st);
    }
}

// ---- plans -----------------------------------------------------------------------------------

static void check_plan(const char *devices, int of_last, const char *words)
{
    matrix_way way = fast_way("mirrored", devices);
    way.devices = of_last;
    tt_ctx *ctx = matrix_open(&way);
    tt_model *m = matrix_build(ctx, &matrix_models[ADAM_MLP], &way);
    char *text = tti_step_plan(m, 36, 1, TT_PLAN_TEXT);
    ck_assert_msg(text != NULL && strstr(text, words) != NULL, "%s: %s", devices,
                  text == NULL ? tt_last_error(ctx).message : text);
    tti_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

TEST(gpu_fast_plans_tell_who_carries_sums)
{
    need_nccl("2");
    check_plan("gpu:0,gpu:1", 1, "gradient sums: by NCCL 2.28.3, in any order: ");
    check_plan("gpu:1,gpu:0", 2,
               "by Tutti's own kernels, in any order: gpu:1 and gpu:2 are parts of one GPU");
    check_plan("gpu:0,cpu:0", 1, "by Tutti's own kernels, in any order: cpu:0 is not a GPU");
}

TEST(gpu_fast_without_nccl)
{
    need_nccl("2");
    unsetenv("TUTTI_EMU_NCCL");
    check_plan("gpu:0,gpu:1", 1, "by Tutti's own kernels, in any order: libnccl.so.2: not found");
    matrix_way two = fast_way("mirrored", "gpu:0,gpu:1"), parts = fast_way("mirrored", "gpu:0");
    parts.devices = 2;
    outcome a = train(ADAM_MLP, &two), b = train(ADAM_MLP, &parts);
    CHECK(a.units == 0 && matrix_same(&a.r, &b.r));
}

// ---- what goes wrong -------------------------------------------------------------------------

static void check_failure(const char *fault, tt_status want, const char *words, int64_t deadline)
{
    need_nccl("2");
    setenv("TUTTI_EMU_NCCL_FAIL", fault, 1);
    matrix_way way = fast_way("mirrored", "gpu:0,gpu:1");
    way.spread.opts_size = sizeof(way.spread);
    tt_ctx *ctx = tt_open(.devices = "gpu:0,gpu:1", .strategy = "mirrored", .spread = &way.spread,
                          .deadline_ms = deadline, .on_event = test_ignore_event);
    tt_model *m = matrix_build(ctx, &matrix_models[ADAM_MLP], &way);
    CHECK_INT(tt_fit(m, matrix_data(ctx, &matrix_models[ADAM_MLP], 121), .batch = 36), want);
    CHECK_MESSAGE(ctx, words);
    CHECK_INT(tt_close(ctx), want);
}

TEST(gpu_fast_tells_a_communicator_that_cannot_be_made)
{
    check_failure("CommInitAll 1", TT_EDEVICE, "gpu:0 to gpu:1: no communicator: NCCL: ", 60000);
}

TEST(gpu_fast_tells_a_call_that_fails)
{
    check_failure("Reduce 2", TT_EDEVICE, "gpu:0: reduce_scatter of matmul 'matmul", 60000);
}

// A weight whose pieces are of one size is reduced and gathered by one call each.
static void check_even(const char *fault, const char *words)
{
    need_nccl("2");
    setenv("TUTTI_EMU_NCCL_FAIL", fault, 1);
    tt_ctx *ctx =
        tt_open(.devices = "gpu:0,gpu:1", .strategy = "mirrored",
                .spread = tt_spread(.reduce = TT_REDUCE_FAST), .on_event = test_ignore_event);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 128, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    CHECK_OK(tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 0.1f)));
    CHECK_INT(tt_fit(m, tt_digits(ctx, .count = 64, .batch = 32)), TT_EDEVICE);
    CHECK_MESSAGE(ctx, words);
    CHECK_INT(tt_close(ctx), TT_EDEVICE);
}

TEST(gpu_fast_scatters_even_pieces)
{
    check_even("ReduceScatter 2", "gpu:1: reduce_scatter of matmul 'matmul");
}

TEST(gpu_fast_gathers_even_pieces)
{
    check_even("AllGather 2", "gpu:1: all_gather of update_sgd 'update_sgd");
}

TEST(gpu_fast_tells_a_group_that_fails)
{
    check_failure("Group 3", TT_EDEVICE, "NCCL: unhandled system error (ncclSystemError)", 60000);
}

TEST(gpu_fast_tells_an_error_that_comes_later)
{
    check_failure("Async 2", TT_EDEVICE, "NCCL: remote process exited", 60000);
}

// Nothing is known of the first step yet: it has ten deadlines.
TEST(gpu_fast_lets_go_what_hangs)
{
    check_failure("Hang 2", TT_ETIMEOUT, "its work has not finished after 2.", 200);
}

// The second step is captured: its groups come after those of the first.
static void check_captured(const char *kind, tt_status want, const char *words)
{
    char fault[32];
    need_nccl("2");
    matrix_way way = fast_way("mirrored", "gpu:0,gpu:1");
    snprintf(fault, sizeof(fault), "%s %d", kind, train(ADAM_MLP, &way).groups + 2);
    check_failure(fault, want, words, 200);
}

TEST(gpu_fast_tells_a_captured_group_that_fails)
{
    check_captured("Group", TT_EDEVICE, "NCCL: unhandled system error (ncclSystemError)");
}

TEST(gpu_fast_lets_go_a_captured_step_that_hangs)
{
    check_captured("Hang", TT_ETIMEOUT, "its work has not finished after 0.");
}
