/*
 * cards.c - several physical GPUs, as the emulation has them: training spread over them, whether
 * they reach each other's memory or not. The emulation ends a test whose kernel touches memory of a
 * card that it does not reach.
 */
#include "cli/matrix.h"
#include "run/run.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

static void need_cards(const char *n, const char *peers)
{
    if (!test_gpu_is_emulated())
        test_skip("needs several GPUs, which only the emulation has");
    setenv("TUTTI_EMU_CARDS", n, 1);
    setenv("TUTTI_EMU_PEERS", peers, 1);
}

// A way over these devices, each of them one.
static matrix_way way_over(const char *strategy, const char *devices)
{
    return (matrix_way){.strategy = strategy, .devices = 1, .device = devices};
}

static void check_same(int model, const matrix_way *way, const matrix_result *want)
{
    const matrix_model *m = &matrix_models[model];
    matrix_result got;
    matrix_run(m, way, NULL, &got);
    ck_assert_msg(matrix_same(&got, want), "%s.%s, %s on %s: %s", m->name, m->optimizer,
                  way->strategy, way->device,
                  got.status == TT_OK ? "other weights than one GPU" : got.message);
}

static void check_ways(int model)
{
    matrix_way one = way_over("single", "gpu:0");
    matrix_result want;
    matrix_run(&matrix_models[model], &one, NULL, &want);
    CHECK_INT(want.status, TT_OK);
    matrix_way ways[] = {
        way_over("mirrored", "gpu:0,gpu:1"), way_over("mirrored", "gpu:2,gpu:0*2,gpu:1"),
        way_over("central", "gpu:0,gpu:1,gpu:2"), way_over("pipeline", "gpu:0,gpu:1,gpu:2")};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (matrix_has(&matrix_models[model], &ways[i]))
            check_same(model, &ways[i], &want);
}

TEST(gpu_cards_train_to_the_same_bits)
{
    need_cards("3", "1");
    check_ways(1);
}

TEST(gpu_cards_that_do_not_reach_each_other_train_to_the_same_bits)
{
    need_cards("3", "0");
    check_ways(1);
}

// Bytes that a plan has devices receive, all together.
static size_t received(const matrix_way *way)
{
    tt_ctx *ctx = matrix_open(way);
    tt_model *m = matrix_build(ctx, &matrix_models[1], way);
    ck_assert_msg(tt_fit(m, matrix_data(ctx, &matrix_models[1], 36), .batch = 36) == TT_OK, "%s",
                  tt_last_error(ctx).message);
    const tti_plan *p = tt_model_get_session(m)->plans;
    size_t bytes = 0;
    for (int d = 0; d < ctx->top.n_devices; d++)
        bytes += p->devices[d].received_bytes;
    CHECK_OK(tt_close(ctx));
    return bytes;
}

// What is added in pieces is received in pieces, whether it is read where it is or copied.
TEST(gpu_cards_out_of_reach_receive_no_more)
{
    size_t bytes[2];
    for (int peers = 0; peers < 2; peers++) {
        need_cards("4", peers ? "1" : "0");
        matrix_way way = way_over("mirrored", peers ? "gpu:0,gpu:1" : "gpu:2,gpu:3");
        bytes[peers] = received(&way);
    }
    ck_assert_msg(bytes[0] <= bytes[1] + bytes[1] / 8, "out of reach %zu bytes, in reach %zu",
                  bytes[0], bytes[1]);
}

// Three replicas have sums in several parts; what is narrowed is sent as it is.
TEST(gpu_cards_that_do_not_reach_each_other_send_parts_and_narrow_sums)
{
    need_cards("3", "0");
    matrix_way one = way_over("single", "gpu:0"), three = way_over("mirrored", "gpu:2,gpu:0,gpu:1");
    matrix_result want;
    matrix_run(&matrix_models[1], &one, NULL, &want);
    check_same(1, &three, &want);
    matrix_way parts = {.strategy = "mirrored", .devices = 2, .device = "gpu:0"};
    matrix_way cards = way_over("mirrored", "gpu:0,gpu:1");
    parts.spread.wire = cards.spread.wire = TT_BF16;
    matrix_run(&matrix_models[1], &parts, NULL, &want);
    check_same(1, &cards, &want);
}

// Statistics of the whole batch, too.
TEST(gpu_cards_that_do_not_reach_each_other_share_statistics)
{
    need_cards("2", "0");
    matrix_way one = way_over("single", "gpu:0"), two = way_over("mirrored", "gpu:0,gpu:1");
    matrix_result want;
    matrix_run(&matrix_models[6], &one, NULL, &want);
    check_same(6, &two, &want);
}
