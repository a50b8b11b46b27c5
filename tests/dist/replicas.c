/*
 * replicas.c - copies of variables are compared: none differs in a healthy run, and one that was
 * spoilt is named by device and variable before anything of it is saved.
 */
#include "run/run.h"
#include "test.h"
#include <stdio.h>
#include <unistd.h>

static tt_model *small_model(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 33, .act = TT_RELU);
    tt_layer_batch_norm(m, .over = TT_OVER_LANE);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam());
    return m;
}

TEST(replicas_stay_equal)
{
    const struct {
        const char *strategy, *devices;
        const tt_spread *spread;
    } ways[] = {
        {"mirrored", "cpu:0*2", NULL},
        {"mirrored", "cpu:0*3", tt_spread(.update = TT_UPDATE_EACH)},
        {"mirrored", "cpu:0*8", tt_spread(.update = TT_UPDATE_SHARD)},
        {"central", "cpu:0*3", NULL},
        {"pipeline", "cpu:0*4", tt_spread(.replicas = 2)},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        tt_ctx *ctx =
            tt_open(.strategy = ways[i].strategy, .devices = ways[i].devices, .threads = 2,
                    .spread = ways[i].spread, .on_event = test_ignore_event);
        tt_model *m = small_model(ctx);
        tt_data *d = tt_digits(ctx, .count = 90, .batch = 30);
        ck_assert_msg(tt_fit(m, d, .epochs = 2, .validate = tt_digits(ctx, .count = 7),
                             .check_every = 1) == TT_OK,
                      "%s on %s: %s", ways[i].strategy, ways[i].devices,
                      tt_last_error(ctx).message);
        CHECK_OK(tt_close(ctx));
    }
}

typedef struct spoiler {
    const char *device, *name;
    int64_t step;
    int element;
} spoiler;

// One bit of one copy.
static tt_status spoil(void *user, tt_model *m, const tt_progress *p)
{
    const spoiler *s = user;
    if (p->step != s->step)
        return TT_OK;
    tti_variable *v = tti_store_find(tt_model_get_session(m)->store, s->name);
    CHECK(v != NULL && v->shards->next != NULL);
    for (tti_shard *one = v->shards; one != NULL; one = one->next)
        if (strcmp(one->device, s->device) == 0)
            ((uint32_t *)one->data)[s->element] ^= 1;
    return TT_OK;
}

static tt_status fit_spoilt(tt_ctx *ctx, spoiler *s, const char *folder, int64_t check_every)
{
    tt_data *d = tt_digits(ctx, .count = 300, .batch = 30);
    return tt_fit(small_model(ctx), d, .save_every = 5, .checkpoints = folder,
                  .check_every = check_every, .callbacks = {tt_callback(TT_AT_STEP, 1, spoil, s)});
}

TEST(a_replica_that_differs_is_named)
{
    static const char *const devices[] = {"cpu:0", "cpu:1", "cpu:2"};
    for (int i = 0; i < 3; i++) {
        char want[96];
        spoiler s = {devices[i], "dense_1.weight", 4, 1234};
        tt_ctx *ctx = tt_open(.strategy = "mirrored", .devices = "cpu:0*3", .threads = 2,
                              .on_event = test_ignore_event);
        CHECK(fit_spoilt(ctx, &s, NULL, 2) == TT_EDEVICE);
        snprintf(want, sizeof(want), "replica on %s differs in 'dense_1.weight'", devices[i]);
        CHECK_MESSAGE(ctx, want);
        CHECK_MESSAGE(ctx, "after step 4: element 1234 is the first of 25872");
        tt_clear_error(ctx);
        CHECK_OK(tt_close(ctx));
    }
}

// Without check_every: at checkpoints, and the spoilt one is not written.
TEST(replicas_are_compared_at_checkpoints)
{
    char path[600];
    spoiler s = {"cpu:1", "dense_2.bias", 10, 3};
    tt_ctx *ctx = tt_open(.strategy = "mirrored", .devices = "cpu:0*2", .threads = 2,
                          .on_event = test_ignore_event);
    CHECK(fit_spoilt(ctx, &s, test_folder(), 0) == TT_EDEVICE);
    CHECK_MESSAGE(ctx, "replica on cpu:1 differs in 'dense_2.bias' from the one on cpu:0");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    snprintf(path, sizeof(path), "%s/step-5", test_folder());
    CHECK(access(path, F_OK) == 0);
    snprintf(path, sizeof(path), "%s/step-10", test_folder());
    CHECK(access(path, F_OK) != 0);
}
