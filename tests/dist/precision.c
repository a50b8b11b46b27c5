/*
 * precision.c - bf16 and f16 under every strategy: the weights of one device, and with f16 the same
 * steps skipped.
 */
#include "../test.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct way {
    const char *strategy, *devices;
    const tt_spread *spread;
    int64_t accumulate;
    const char *recompute;
} way;

static const way ways[] = {
    {"mirrored", "cpu:0*2", .spread = tt_spread(.update = TT_UPDATE_SHARD)},
    {"mirrored", "cpu:0*3", .spread = tt_spread(.update = TT_UPDATE_EACH, .bucket = 512)},
    {"mirrored", "cpu:0*3", .accumulate = 2},
    {"mirrored", "cpu:0*8", .recompute = "all"},
    {.strategy = "central", .devices = "cpu:0*3"},
    {.strategy = "pipeline", .devices = "cpu:0*2"},
    {"pipeline", "cpu:0*3", .spread = tt_spread(.schedule = TT_PIPE_GPIPE), .recompute = "all"},
    {"pipeline", "cpu:0*2", .spread = tt_spread(.schedule = TT_PIPE_INTERLEAVED)},
    {"pipeline", "cpu:0*4", .spread = tt_spread(.replicas = 2)},
    {"single", "cpu:0", .accumulate = 4, .recompute = "block*"},
};

static tt_status read_text(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx, (void)self;
    int32_t at = (int32_t)(i * 7 % 31);
    for (int t = 0; t < 9; t++) {
        ((int32_t *)out[0])[t] = at;
        ((int32_t *)out[1])[t] = at = (at * 5 + 3 + (int32_t)(i >> t & 1)) % 31;
    }
    return TT_OK;
}

static tt_hash train(const way *w, tt_precision p, int64_t *skipped)
{
    tt_ctx *ctx = tt_open(.strategy = w->strategy, .devices = w->devices, .spread = w->spread,
                          .threads = 2, .seed = 3, .on_event = test_ignore_event);
    tt_model *m = tt_sequential(ctx, .input = {9}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 2, .heads = 2, .width = 20, .vocab = 31, .dropout = 0.1);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .precision = p, .recompute = w->recompute,
               .metrics = TT_ACCURACY, .optimizer = tt_adam(.lr = 3e-3, .clip_global = 1));
    tt_source s = {.count = 61, .n_fields = 2, .read = read_text};
    for (int i = 0; i < 2; i++) {
        s.fields[i] = (tt_field){.dtype = TT_I32, .shape = TT_SHAPE(9), .classes = 31};
        strcpy(s.fields[i].name, i == 0 ? "x" : "y");
    }
    tt_data *d = tt_data_new(ctx, &s, .batch = 20);
    ck_assert_msg(tt_status_of(ctx) == TT_OK, "%s", tt_last_error(ctx).message);
    if (p == TT_PRECISION_F16) {
        float scale = 0x1p26f; // too large for the first steps
        tt_tensor *var = tt_graph_find(tt_model_get_train_graph(m), "train/loss_scale");
        CHECK_OK(tt_set_variable(tt_model_get_session(m), var, &scale, sizeof(scale)));
    }
    int64_t k = w->accumulate == 0 ? 1 : w->accumulate;
    tt_fit_report r = {0};
    ck_assert_msg(tt_fit(m, d, .steps = 10, .batch = 20 / k, .accumulate = k) == TT_OK, "%s: %s",
                  w->strategy, tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    *skipped = r.skipped;
    CHECK_OK(tt_close(ctx));
    return r.weights;
}

static void check_ways(tt_precision p)
{
    const way one = {.strategy = "single", .devices = "cpu:0"};
    int64_t want_skipped, skipped;
    tt_hash want = train(&one, p, &want_skipped), h;
    CHECK_INT(want_skipped > 0, p == TT_PRECISION_F16);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        h = train(&ways[i], p, &skipped);
        ck_assert_msg(h.low == want.low && h.high == want.high && skipped == want_skipped,
                      "way %zu, %s on %s: %d steps skipped, on one device %d", i, ways[i].strategy,
                      ways[i].devices, (int)skipped, (int)want_skipped);
    }
}

TEST(every_strategy_has_the_bits_of_one_device_in_bf16)
{
    check_ways(TT_PRECISION_BF16);
}

TEST(every_strategy_has_the_bits_of_one_device_in_f16_and_skips_the_same_steps)
{
    check_ways(TT_PRECISION_F16);
}
