/*
 * fit_resume.c - going on from a checkpoint gives the bits of a run that never stopped; equal runs
 * write equal bytes, whatever the spread.
 */
#include "base/file.h"
#include "fit_models.h"
#include "save/checkpoint.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static tt_ctx *open_on(const char *devices, int threads)
{
    return tt_open(.devices = devices, .threads = threads, .seed = 7,
                   .strategy = devices == NULL ? NULL : "mirrored", .on_event = test_ignore_event);
}

typedef struct run {
    const char *devices, *folder;
    int threads;
    int64_t batch, accumulate, save_every;
    int64_t stop_at; // ends on request after this step; 0: never
    bool resume;
} run;

static tt_status end_at(void *user, tt_model *m, const tt_progress *p)
{
    if (p->step == *(int64_t *)user)
        tt_request_end(tt_graph_get_ctx(tt_model_get_graph(m)));
    return TT_OK;
}

static tt_hash fit(fit_kind kind, run r)
{
    tt_ctx *ctx = open_on(r.devices, r.threads);
    tt_model *m = fit_model(ctx, kind);
    tt_data *d = fit_data(ctx, kind, 130), *v = fit_data(ctx, kind, 31);
    tt_hash h = {0, 0};
    ck_assert_msg(m != NULL && d != NULL, "%s", tt_last_error(ctx).message);
    tt_status st = tt_fit(m, d, .epochs = 3, .batch = r.batch, .accumulate = r.accumulate,
                          .validate = v, .checkpoints = r.folder, .save_every = r.save_every,
                          .resume = r.resume, .plateau = tt_watch(.patience = 1, .factor = 0.5),
                          .callbacks = {tt_callback(TT_AT_STEP, 1, end_at, &r.stop_at)});
    ck_assert_msg(st == (r.stop_at > 0 ? TT_ESTOP : TT_OK), "%s", tt_last_error(ctx).message);
    tt_clear_error(ctx);
    CHECK_OK(tt_model_hash(m, &h));
    CHECK_OK(tt_close(ctx));
    return h;
}

TEST(a_resumed_fit_has_the_bits_of_one_that_never_stopped)
{
    for (int kind = 0; kind < FIT_N_KINDS; kind++) {
        run whole = {.threads = 2, .batch = 24};
        tt_hash want = fit((fit_kind)kind, whole);
        static const int64_t stops[] = {1, 5, 6, 7, 17}; // 6 updates an epoch: on its border too
        for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
            char folder[512];
            snprintf(folder, sizeof(folder), "%s/%d-%zu", test_folder(), kind, i);
            run first = {.threads = 1, .batch = 24, .folder = folder, .stop_at = stops[i]};
            (void)fit((fit_kind)kind, first);
            run rest = {.devices = i % 2 == 0 ? "cpu:0*3" : NULL,
                        .threads = 3,
                        .batch = i == 1 ? 6 : 24,
                        .accumulate = i == 1 ? 4 : 1,
                        .folder = folder,
                        .resume = true};
            tt_hash got = fit((fit_kind)kind, rest);
            ck_assert_msg(got.low == want.low && got.high == want.high,
                          "%s: stopped after step %lld and gone on: other weights",
                          fit_name((fit_kind)kind), (long long)stops[i]);
        }
    }
}

static void keep_warning(void *user, const tt_event *ev)
{
    if (strcmp(ev->kind, "log") == 0 && ev->level == TT_WARN)
        snprintf(user, 1000, "%s", ev->text);
}

// Arithmetic 1 had other sums and another order of the records.
TEST(going_on_from_an_earlier_arithmetic_warns)
{
    char folder[512], path[600], warning[1000] = "";
    snprintf(folder, sizeof(folder), "%s/run", test_folder());
    run first = {.threads = 1, .batch = 24, .folder = folder, .stop_at = 8};
    (void)fit(FIT_MLP, first);

    tt_ctx *ctx = tt_open(.threads = 1, .seed = 7, .on_event = keep_warning, .user = warning);
    static tti_snapshot s;
    snprintf(path, sizeof(path), "%s/step-8", folder);
    CHECK_OK(tti_checkpoint_read(ctx, path, &s));
    s.state.arithmetic = 1;
    CHECK_OK(tti_checkpoint_write(ctx, path, &s));
    tti_snapshot_free(ctx, &s);
    tt_model *m = fit_model(ctx, FIT_MLP);
    CHECK_OK(tt_fit(m, fit_data(ctx, FIT_MLP, 130), .epochs = 3, .batch = 24, .resume = true,
                    .checkpoints = folder));
    ck_assert_msg(strstr(warning, "made with arithmetic version 1, this is version 2: the bits "
                                  "will differ; the order of the records differs too") != NULL,
                  "warning: '%s'", warning);
    CHECK_OK(tt_close(ctx));
}

static void check_same_file(const char *a, const char *b, const char *name)
{
    char path[2][1024], *text[2];
    size_t bytes[2];
    tt_ctx *ctx = test_ctx();
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/step-18/%s", i == 0 ? a : b, name);
        ck_assert_msg(tti_file_read(ctx, path[i], 0, &text[i], &bytes[i]) == TT_OK, "%s",
                      tt_last_error(ctx).message);
    }
    ck_assert_msg(bytes[0] == bytes[1] && memcmp(text[0], text[1], bytes[0]) == 0,
                  "%s differs between equal runs", name);
    for (int i = 0; i < 2; i++)
        tt_string_free(ctx, text[i]);
    CHECK_OK(tt_close(ctx));
}

TEST(checkpoints_of_equal_runs_are_byte_identical)
{
    for (int kind = 0; kind < FIT_N_KINDS; kind++) {
        char folder[2][512];
        for (int i = 0; i < 2; i++) {
            snprintf(folder[i], sizeof(folder[i]), "%s/%d-%d", test_folder(), kind, i);
            run r = {.devices = i == 0 ? NULL : "cpu:0*3",
                     .threads = 1 + i,
                     .batch = 24,
                     .folder = folder[i],
                     .save_every = i == 0 ? 0 : 2};
            (void)fit((fit_kind)kind, r);
        }
        check_same_file(folder[0], folder[1], "weights.safetensors");
        check_same_file(folder[0], folder[1], "optimizer.safetensors");
        check_same_file(folder[0], folder[1], "manifest.json");
    }
}

static tt_hash stopped_early(const char *folder, int64_t stop_at, bool resume)
{
    tt_ctx *ctx = open_on(NULL, 1);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 30)); // gets worse soon
    tt_data *d = fit_data(ctx, FIT_MLP, 48), *v = fit_data(ctx, FIT_MLP, 40);
    tt_hash h = {0, 0};
    tt_status st = tt_fit(m, d, .epochs = 50, .validate = v, .checkpoints = folder,
                          .resume = resume, .early_stop = tt_watch(.patience = 3, .restore = true),
                          .callbacks = {tt_callback(TT_AT_STEP, 1, end_at, &stop_at)});
    ck_assert_msg(st == (stop_at > 0 ? TT_ESTOP : TT_OK), "%s", tt_last_error(ctx).message);
    tt_clear_error(ctx);
    CHECK_OK(tt_model_hash(m, &h));
    CHECK_OK(tt_close(ctx));
    return h;
}

// The best weights may be from before the stop: they come from the best checkpoint then.
TEST(early_stopping_restores_the_best_after_a_stop_too)
{
    char folder[2][512];
    for (int i = 0; i < 2; i++)
        snprintf(folder[i], sizeof(folder[i]), "%s/%d", test_folder(), i);
    tt_hash want = stopped_early(folder[0], 0, false);
    (void)stopped_early(folder[1], 5, false);
    tt_hash got = stopped_early(folder[1], 0, true);
    CHECK(got.low == want.low && got.high == want.high);
    got = stopped_early(folder[1], 0, true); // nothing is left to do
    CHECK(got.low == want.low && got.high == want.high);
}

TEST(resuming_with_other_lanes_or_rows_is_refused)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s/c", test_folder());
    (void)fit(FIT_MLP, (run){.threads = 1, .batch = 24, .folder = folder, .stop_at = 2});
    tt_ctx *ctx = open_on(NULL, 1);
    tt_model *m = fit_model(ctx, FIT_MLP);
    tt_data *d = fit_data(ctx, FIT_MLP, 130);
    CHECK(tt_fit(m, d, .epochs = 3, .batch = 12, .checkpoints = folder, .resume = true) ==
          TT_EINVAL);
    CHECK_MESSAGE(ctx, "was made with updates of 24 x 1 rows, this fit has 12 x 1");
    CHECK(tt_close(ctx) == TT_EINVAL);
    ctx = tt_open(.lanes = 4, .seed = 7, .on_event = test_ignore_event);
    m = fit_model(ctx, FIT_MLP);
    d = fit_data(ctx, FIT_MLP, 130);
    CHECK(tt_fit(m, d, .epochs = 3, .batch = 24, .checkpoints = folder, .resume = true) ==
          TT_EINVAL);
    CHECK_MESSAGE(ctx, "was made with 8 lanes, this fit has 4");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
