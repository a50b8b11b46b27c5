/*
 * many_devices.c - more devices than a machine word has bits: in one process, in two, in collective
 * calls and in what a fit tells of them.
 */
#include "../world_test.h"
#include "base/file.h"
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>

#define MANY  100
#define LANES 128

static tt_model *tiny_model(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 4, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY);
    return m;
}

// 0: it failed.
static uint64_t train(tt_ctx *ctx, tt_model *m, bool trace)
{
    tt_fit_report r;
    tt_data *d = tt_digits(ctx, .count = 256, .batch = 128);
    return tt_fit(m, d, .trace = trace) == TT_OK && tt_fit_report_get(m, &r) == TT_OK
               ? r.weights.low
               : 0;
}

static uint64_t hash_of_one(void)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .lanes = LANES, .on_event = test_ignore_event);
    uint64_t hash = train(ctx, tiny_model(ctx), false);
    CHECK_OK(tt_close(ctx));
    return hash;
}

static void hear(void *user, const tt_event *ev)
{
    bool *is_listed = user;
    for (int i = 0; i < ev->n_pairs && strcmp(ev->kind, "begin") == 0; i++)
        if (strcmp(ev->pairs[i].name, "devices") == 0)
            *is_listed = strstr(ev->pairs[i].text, "cpu:98, cpu:99") != NULL;
}

// A sum reads what all replicas have: its span names each of them once.
static void check_trace(tt_model *m)
{
    tt_ctx *ctx = tt_graph_get_ctx(tt_model_get_graph(m));
    char path[512], *text, *from;
    size_t bytes;
    snprintf(path, sizeof(path), "%s/trace.json", test_folder());
    CHECK_OK(tt_trace_write(tt_model_get_session(m), path));
    CHECK_OK(tti_file_read(ctx, path, 0, &text, &bytes));
    from = strstr(text, "\"from\":\"cpu:0, cpu:1, cpu:2,");
    CHECK(from != NULL);
    char *last = strstr(from, "cpu:98, cpu:99\""), *end = strchr(from + 8, '"');
    CHECK(last != NULL && last < end);
    tti_free(ctx, text);
}

TEST(hundred_devices_have_the_bits_of_one)
{
    bool is_listed = false;
    tt_ctx *ctx = tt_open(.devices = "cpu:0*100", .threads = 2, .lanes = LANES,
                          .strategy = "mirrored", .on_event = hear, .user = &is_listed);
    CHECK_INT(tt_device_count(ctx), MANY);
    tt_model *m = tiny_model(ctx);
    uint64_t hash = train(ctx, m, true);
    ck_assert_msg(hash != 0 && hash == hash_of_one(), "%s", tt_last_error(ctx).message);
    CHECK(is_listed);
    for (int i = 0; i < MANY; i++) {
        tt_device_times t;
        double by_device = 0;
        CHECK_OK(tt_fit_device_times(m, i, &t));
        for (int k = 0; k < MANY; k++)
            by_device += t.waiting_for[k];
        CHECK(t.compute > 0 && t.waiting_for[i] == 0);
        CHECK_NEAR(by_device, t.waiting, 1e-9);
    }
    check_trace(m);
    CHECK_OK(tt_close(ctx));
}

// Large enough that all devices add.
TEST(hundred_members_are_added_by_as_many_devices)
{
    enum {
        COUNT = 4096
    };
    static float in[MANY][COUNT], out[MANY][COUNT];
    tt_member members[MANY];
    tt_ctx *ctx = tt_open(.devices = "cpu:0*100", .on_event = test_ignore_event);
    tt_comm *c = tt_comm_open(ctx);
    for (int i = 0; i < MANY; i++) {
        members[i] = (tt_member){in[i], out[i], COUNT, 0, 0};
        for (int k = 0; k < COUNT; k++)
            in[i][k] = (float)(i + k % 7);
    }
    CHECK_OK(tt_all_reduce(c, members));
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < COUNT; k++)
            if (out[i][k] != (float)(MANY * (MANY - 1) / 2 + MANY * (k % 7)))
                ck_abort_msg("member %d has %g at %d", i, (double)out[i][k], k);
    CHECK_OK(tt_close(ctx));
}

static void run(world_job *j, int rank, tt_ctx *ctx)
{
    tt_model *m = tiny_model(ctx);
    tt_device_times t;
    j->ranks[rank].hash = train(ctx, m, false);
    if (tt_fit_device_times(m, 79, &t) == TT_OK)
        snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%d %s %d", tt_device_count(ctx),
                 t.name, t.compute > 0 && t.waiting_for[79] == 0);
}

// Ranks have different numbers of devices, together more than 64.
static const char *unequal(int rank)
{
    return rank == 0 ? "cpu:0*33" : "cpu:0*47";
}

TEST(processes_with_eighty_devices_have_the_bits_of_one)
{
    world_job j = {
        .n = 2, .strategy = "mirrored", .devices_of = unequal, .lanes = LANES, .run = run};
    world_run(&j);
    uint64_t want = hash_of_one();
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(j.ranks[i].status == TT_OK, "rank %d: %s", i, j.ranks[i].message);
        CHECK_STR(j.ranks[i].note, "80 task:1/cpu:46 1");
        CHECK(j.ranks[i].hash == want);
    }
}

TEST(mistyped_numbers_of_devices_are_refused)
{
    static const struct {
        const char *devices, *message;
    } cases[] = {
        {"cpu:0*65537", "devices 'cpu:0*65537': '*65537' is not a number from 1 to 65536"},
        {"cpu:0*0", "'*0' is not a number from 1 to 65536"},
        {"cpu:0*1e3", "'*1e3' is not a number"},
        {"cpu:0*65,cpu:0", "cpu:0 is given twice; use cpu:0*2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_ctx *ctx = tt_open(.devices = cases[i].devices, .on_event = test_ignore_event);
        CHECK_MESSAGE(ctx, cases[i].message);
        CHECK(tt_close(ctx) != TT_OK);
    }
}
