/*
 * split.c - models that are too big for one device: refused there, trained within the limits by
 * pins, as a pipeline and by computing again, with the weights of a device without a limit. And
 * who holds the variables under which strategy.
 */
#include "model.h"
#include <stdio.h>

typedef struct job {
    const char *devices, *strategy, *recompute;
    const tt_spread *spread;
    int pins; // layers lie on so many devices in turn
} job;

// Activations of 64 images are 11 MiB, weights next to nothing.
static tt_model *deep(tt_ctx *ctx, int pins)
{
    return test_deep_model(ctx, 8, pins);
}

// Four dense layers of one size: weights and moments are 18 MiB.
static tt_model *wide(tt_ctx *ctx, int pins)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    for (int i = 0; i < 4; i++) {
        char device[32];
        snprintf(device, sizeof(device), "local:%d", i * pins / 4);
        if (pins > 0)
            tt_device_push(tt_model_get_graph(m), device);
        tt_layer_dense(m, .units = i % 2 == 0 ? 512 : 784, .act = TT_RELU);
        if (pins > 0)
            tt_device_pop(tt_model_get_graph(m));
    }
    tt_layer_dense(m, .units = 10);
    return m;
}

// Four steps; the hash, and the fullest device's bytes. False: refused for its limit.
static bool train(tt_model *(*build)(tt_ctx *, int), const job *j, int64_t rows, tt_hash *hash,
                  size_t variables[8])
{
    tt_ctx *ctx = tt_open(.devices = j->devices, .strategy = j->strategy, .spread = j->spread,
                          .threads = 2, .on_event = test_ignore_event);
    tt_model *m = build(ctx, j->pins);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(), .recompute = j->recompute);
    tt_status st = tt_fit(m, tt_digits(ctx, .count = 2 * rows - 3), .epochs = 2, .batch = rows);
    for (int i = 0; st == TT_OK && i < tt_device_count(ctx); i++) {
        tt_device_info d;
        CHECK_OK(tt_device_get(ctx, i, &d));
        ck_assert_msg(d.limit == 0 || d.variables + d.arena <= d.limit, "%s uses %zu of %zu",
                      d.name, d.variables + d.arena, d.limit);
        variables[i] = d.variables;
    }
    ck_assert_msg(st == TT_OK || st == TT_ELIMIT, "%s: %s", j->devices, tt_last_error(ctx).message);
    if (st == TT_OK)
        CHECK_OK(tt_model_hash(m, hash));
    CHECK(tt_close(ctx) == st);
    return st == TT_OK;
}

static void check_fits(tt_model *(*build)(tt_ctx *, int), int64_t rows, const job *jobs, int n)
{
    job free_of_limits = {.devices = "cpu:0"};
    tt_hash want, got;
    size_t variables[8];
    CHECK(train(build, &free_of_limits, rows, &want, variables));
    for (int i = 0; i < n; i++) {
        ck_assert_msg(train(build, &jobs[i], rows, &got, variables), "%s, job %d does not fit",
                      jobs[i].devices, i);
        ck_assert_msg(got.low == want.low && got.high == want.high, "job %d has other weights", i);
    }
}
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

TEST(activations_too_big_for_one_device)
{
    static const job jobs[] = {
        {.devices = "cpu:0@9MiB", .recompute = "all"},
        {.devices = "cpu:0*3@9MiB", .pins = 3},
        {.devices = "cpu:0*2@9MiB", .strategy = "pipeline"},
        {.devices = "cpu:0*2@9MiB", .strategy = "mirrored"},
        {.devices = "cpu:0*4@6MiB", .strategy = "mirrored", .pins = 2},
        {.devices = "cpu:0*2@9MiB", .pins = 2, .recompute = "all"},
    };
    job one = {.devices = "cpu:0@9MiB"};
    tt_hash hash;
    size_t variables[8];
    CHECK(!train(deep, &one, 64, &hash, variables));
    check_fits(deep, 64, jobs, COUNT(jobs));
}

TEST(weights_too_big_for_one_device)
{
    const job jobs[] = {
        {.devices = "cpu:0*2@16MiB", .pins = 2},
        {.devices = "cpu:0*4@16MiB", .strategy = "pipeline"},
        {.devices = "cpu:0*2@16MiB",
         .strategy = "pipeline",
         .pins = 2,
         .spread = tt_spread(.micro = 2)},
        {.devices = "cpu:0*4@16MiB", .strategy = "mirrored", .pins = 2},
    };
    static const job too_big[] = {
        {.devices = "cpu:0@16MiB"},
        {.devices = "cpu:0@16MiB", .recompute = "all"},
        {.devices = "cpu:0*2@16MiB", .strategy = "pipeline", .pins = 2}, // eight micro-batches
    };
    tt_hash hash;
    size_t variables[8];
    for (int i = 0; i < COUNT(too_big); i++)
        CHECK(!train(wide, &too_big[i], 32, &hash, variables));
    check_fits(wide, 32, jobs, COUNT(jobs));
}

// Weights and moments: on one device, on each, on the first alone, in parts.
TEST(variables_lie_where_the_strategy_says)
{
    job one = {.devices = "cpu:0"};
    job mirrored = {.devices = "cpu:0*3",
                    .strategy = "mirrored",
                    .spread = tt_spread(.update = TT_UPDATE_EACH)};
    job central = {.devices = "cpu:0*3", .strategy = "central"};
    job pipeline = {.devices = "cpu:0*2", .strategy = "pipeline"};
    tt_hash hash;
    size_t all[8], v[8];
    CHECK(train(wide, &one, 8, &hash, all));
    size_t weights = all[0] / 3; // Adam has two moments of each
    CHECK(train(wide, &mirrored, 8, &hash, v));
    for (int i = 0; i < 3; i++)
        ck_assert_msg(v[i] >= weights, "mirrored: device %d holds %zu of %zu", i, v[i], weights);
    CHECK(train(wide, &central, 8, &hash, v));
    ck_assert_msg(v[0] >= all[0] && v[1] == 0 && v[2] == 0, "central: %zu, %zu, %zu bytes", v[0],
                  v[1], v[2]);
    CHECK(train(wide, &pipeline, 8, &hash, v));
    ck_assert_msg(v[0] + v[1] < all[0] + all[0] / 8 && v[0] > all[0] / 4 && v[1] > all[0] / 4,
                  "pipeline: %zu and %zu of %zu bytes", v[0], v[1], all[0]);
}
