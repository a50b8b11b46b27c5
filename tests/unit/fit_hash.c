/*
 * fit_hash.c - the promise: one job, one hash. The hashes below are part of the interface: every
 * x86-64 processor with fused multiply-add, every number of threads and devices must reach them.
 * They change only together with TT_ARITHMETIC.
 */
#include "fit_models.h"
#include <stdio.h>
#include <stdlib.h>

static const struct {
    int arithmetic;
    const char *hash[FIT_N_KINDS];
} golden = {2,
            {"36cf1e1bd601b8f0f640a1549d0066ba", "25eb6f7fb9d68449dc3a5e09d936afd6",
             "6189ee2ee74b78ebffde393a8e3da68c"}};

static void train(fit_kind kind, const char *devices, int threads, const char *isa, char out[40])
{
    tt_ctx *ctx =
        tt_open(.devices = devices, .threads = threads, .isa = isa, .seed = 7,
                .strategy = devices == NULL ? NULL : "mirrored", .on_event = test_ignore_event);
    tt_model *m = fit_model(ctx, kind);
    tt_hash h;
    ck_assert_msg(m != NULL &&
                      tt_fit(m, fit_data(ctx, kind, 130), .epochs = 2, .batch = 27) == TT_OK,
                  "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_model_hash(m, &h));
    snprintf(out, 40, "%016llx%016llx", (unsigned long long)h.high, (unsigned long long)h.low);
    CHECK_OK(tt_close(ctx));
}

static void check_hash(fit_kind kind)
{
    char hash[40];
    CHECK_INT(TT_ARITHMETIC, golden.arithmetic);
    for (int i = 0; test_isa(i) != NULL; i++) {
        for (int threads = 1; threads <= 3; threads++) {
            train(kind, NULL, threads, test_isa(i), hash);
            ck_assert_msg(strcmp(hash, golden.hash[kind]) == 0, "%s, %s, %d threads: %s",
                          fit_name(kind), test_isa(i), threads, hash);
        }
    }
    static const char *const devices[] = {"cpu:0*2", "cpu:0*3", "cpu:0*8"};
    for (int i = 0; i < 3; i++) {
        train(kind, devices[i], 2, NULL, hash);
        ck_assert_msg(strcmp(hash, golden.hash[kind]) == 0, "%s on %s: %s", fit_name(kind),
                      devices[i], hash);
    }
}

TEST(an_mlp_trains_to_its_hash_on_any_threads_sets_and_devices)
{
    check_hash(FIT_MLP);
}

TEST(a_cnn_trains_to_its_hash_on_any_threads_sets_and_devices)
{
    check_hash(FIT_CNN);
}

TEST(a_gpt_trains_to_its_hash_on_any_threads_sets_and_devices)
{
    check_hash(FIT_GPT);
}
