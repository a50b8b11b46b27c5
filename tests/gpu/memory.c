/*
 * memory.c - memory of GPUs: models over a limit, refusals that name the numbers, and all of it
 * given back at the end.
 */
#include "base/ctx.h"
#include "cuda/load.h"
#include "device/device.h"
#include "model.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct job {
    int devices;
    const char *strategy, *recompute;
    int pins; // layers lie on so many devices in turn
} job;

// One step. TT_ELIMIT: refused; used is what the fullest device holds.
static tt_status train(const job *j, size_t limit, tt_hash *hash, size_t *used)
{
    char devices[64] = "gpu:0";
    snprintf(devices + 5, sizeof(devices) - 5, "*%d", j->devices);
    if (limit > 0)
        snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices), "@%zu", limit);
    tt_ctx *ctx = tt_open(.devices = devices, .strategy = j->strategy, .lanes = 4,
                          .on_event = test_ignore_event);
    tt_model *m = test_deep_model(ctx, 4, j->pins);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(), .recompute = j->recompute);
    tt_status st = tt_fit(m, tt_digits(ctx, .count = 8), .batch = 8);
    *used = 0;
    for (int i = 0; st == TT_OK && i < tt_device_count(ctx); i++) {
        tt_device_info d;
        CHECK_OK(tt_device_get(ctx, i, &d));
        *used = d.variables + d.arena > *used ? d.variables + d.arena : *used;
        ck_assert_msg(limit == 0 || *used <= limit, "%s uses %zu of %zu", d.name, *used, limit);
    }
    ck_assert_msg(st == TT_OK || st == TT_ELIMIT, "%s: %s", devices, tt_last_error(ctx).message);
    if (st == TT_OK)
        CHECK_OK(tt_model_hash(m, hash));
    else
        CHECK_MESSAGE(ctx, "more than its limit");
    CHECK(tt_close(ctx) == st);
    return st;
}

TEST(gpu_model_too_big_for_one_trains_on_two_or_again)
{
    static const job one = {.devices = 1}, jobs[] = {
                                               {.devices = 2, .pins = 2},
                                               {.devices = 2, .strategy = "pipeline"},
                                               {.devices = 1, .recompute = "all"},
                                               {.devices = 2, .strategy = "mirrored"},
                                           };
    tt_hash want, got;
    size_t needs, used;
    test_need_gpu();
    CHECK_OK(train(&one, 0, &want, &needs));
    size_t limit = needs - needs / 4;
    CHECK(train(&one, limit, &got, &used) == TT_ELIMIT);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        ck_assert_msg(train(&jobs[i], limit, &got, &used) == TT_OK, "job %zu needs more than %zu",
                      i, limit);
        ck_assert_msg(got.low == want.low && got.high == want.high, "job %zu: other weights", i);
    }
}

static void count_steps(void *user, const tt_event *ev)
{
    *(int *)user += strcmp(ev->kind, "step") == 0;
}

static tt_model *small(tt_ctx *ctx)
{
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 16, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(), .metrics = TT_ACCURACY);
    return m;
}

// Batches of 96, 96 and 8 rows, and validation of fewer: four plans; 96 images are a feed by
// themselves, for which memory is taken ahead, others go in a parcel.
static tt_status fit_small(tt_ctx *ctx)
{
    tt_model *m = small(ctx);
    return tt_fit(m, tt_digits(ctx, .count = 200), .batch = 96, .epochs = 2,
                  .validate = tt_digits(ctx, .count = 60, .seed = 2));
}

static tt_status fit_within(size_t limit, int *steps, size_t *used)
{
    char devices[64];
    tt_device_info d;
    snprintf(devices, sizeof(devices), limit > 0 ? "gpu:0@%zu" : "gpu:0", limit);
    *steps = 0;
    tt_ctx *ctx = tt_open(.devices = devices, .on_event = count_steps, .user = steps);
    tt_status st = fit_small(ctx);
    *used = tt_device_get(ctx, 0, &d) == TT_OK ? d.variables + d.arena : 0;
    ck_assert_msg(limit == 0 || *used <= limit, "%zu bytes of %zu", *used, limit);
    CHECK_INT(tt_close(ctx), st);
    return st;
}

// A limit that is too small is refused at once: what begins also ends.
TEST(gpu_limits_are_refused_at_once_or_hold)
{
    int steps, fits = 0, refused = 0;
    size_t all, used;
    test_need_gpu();
    CHECK_OK(fit_within(0, &steps, &all));
    for (size_t part = 10; part <= 20; part++) {
        size_t limit = all * part / 20;
        tt_status st = fit_within(limit, &steps, &used);
        ck_assert_msg(st == TT_OK || (st == TT_ELIMIT && steps == 0),
                      "%s after %d steps within %zu", tt_status_name(st), steps, limit);
        *(st == TT_OK ? &fits : &refused) += 1;
    }
    CHECK(fits > 1 && refused > 1); // also without what is taken ahead
}

// A card that another process has most of is a limit by itself, told before the first step.
TEST(gpu_that_is_full_is_refused_with_advice)
{
    int steps;
    size_t all, used;
    char taken[32];
    test_need_gpu();
    if (!test_gpu_is_emulated())
        test_skip("fills the card of the emulation");
    CHECK_OK(fit_within(0, &steps, &all));
    setenv("TUTTI_EMU_MEMORY", "100000000", 1);
    snprintf(taken, sizeof(taken), "%zu", 100000000 - all * 2 / 5);
    setenv("TUTTI_EMU_TAKEN", taken, 1);
    tt_ctx *ctx = tt_open(.devices = "gpu:0", .on_event = test_ignore_event);
    CHECK_INT(fit_small(ctx), TT_ELIMIT);
    CHECK_MESSAGE(ctx, "gpu:0: this plan needs ");
    CHECK_MESSAGE(ctx, "(without a limit of its own, a GPU is limited to its free memory)");
    CHECK_MESSAGE(ctx, "  batch: ");
    CHECK(strstr(tt_last_error(ctx).message, "gpu:0*") == NULL); // would not help
    CHECK_INT(tt_close(ctx), TT_ELIMIT);
    snprintf(taken, sizeof(taken), "%zu", 100000000 - all);
    setenv("TUTTI_EMU_TAKEN", taken, 1);
    CHECK_OK(fit_within(0, &steps, &used));
}

TEST(gpu_limits_are_sizes_and_percents)
{
    tt_device_info d;
    test_need_gpu();
    tt_ctx *ctx = tt_open(.devices = "gpu:0*2@64MiB", .on_event = test_ignore_event);
    CHECK_INT(tt_device_count(ctx), 2);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tt_device_get(ctx, i, &d));
        CHECK(d.limit == 64 << 20);
        CHECK_STR(d.physical, "gpu:0");
    }
    CHECK_STR(d.name, "gpu:1");
    CHECK_OK(tt_close(ctx));
    tt_ctx *half = tt_open(.devices = "gpu:0@50%", .on_event = test_ignore_event);
    CHECK_OK(tt_device_get(half, 0, &d));
    CHECK(d.limit > 0);
    CHECK_OK(tt_close(half));
}

TEST(gpu_that_does_not_exist_is_named)
{
    test_need_gpu();
    tt_ctx *ctx = tt_open(.devices = "gpu:97", .on_event = test_ignore_event);
    CHECK(tt_status_of(ctx) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "gpu:97 does not exist");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

static size_t free_bytes(void)
{
    tti_facts facts = {.memory = 0};
    tti_backend_cuda.facts(0, &facts);
    return facts.memory_free;
}

// More than the card has: refused with what is asked for and what there is.
TEST(gpu_out_of_memory_has_the_numbers)
{
    tti_facts facts = {.memory = 0};
    test_need_gpu();
    tti_backend_cuda.facts(0, &facts);
    CHECK(facts.memory > 0);
    tt_ctx *ctx = tt_open(.devices = "gpu:0", .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(1, 1024), .name = "x");
    int64_t n = (int64_t)(facts.memory / sizeof(float)) / 1024 + 1;
    tt_tensor *big = tt_tile(g, x, TT_FIRST, n);
    tt_tensor *y = tt_sum(g, tt_transpose(g, big, TT_AXES(1, 0)));
    tt_session *s = tt_session_new(g);
    static float data[1024];
    float out;
    tt_status st =
        tt_run(s, .feeds = &(tt_feed_value){x, data, TT_SHAPE(1, 1024), TT_F32}, .n_feeds = 1,
               .fetches = &(tt_fetch){y, &out, sizeof(out)}, .n_fetches = 1);
    ck_assert_msg(st == TT_ENOMEM || st == TT_ELIMIT, "%s: %s", tt_status_name(st),
                  tt_last_error(ctx).message);
    CHECK_MESSAGE(ctx, "gpu:0");
    CHECK(tt_close(ctx) == st);
}

// What contexts took they give back: a second and a third one leave as much as the first.
TEST(gpu_memory_is_given_back)
{
    static const job jobs[] = {
        {.devices = 1}, {.devices = 2, .strategy = "mirrored"}, {.devices = 2, .pins = 2}};
    tt_hash hash;
    size_t used;
    test_need_gpu();
    if (!test_gpu_is_emulated() && getenv("TEST_ALONE") == NULL)
        test_skip("others use the GPU meanwhile; tools/test-gpu runs it alone");
    CHECK_OK(train(&jobs[0], 0, &hash, &used)); // libraries and kernels are loaded once
    size_t before = free_bytes();
    for (int round = 0; round < (test_gpu_is_emulated() ? 1 : 3); round++)
        for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
            CHECK_OK(train(&jobs[i], 0, &hash, &used));
    size_t after = free_bytes();
    // A library may keep a little more after its second use of a real GPU.
    size_t room = test_gpu_is_emulated() ? 0 : 64 << 20;
    ck_assert_msg(after + room >= before, "%zu bytes were free, now %zu", before, after);
}

// ---- steps allocate nothing ------------------------------------------------------------------

#define LOOKS 8
typedef struct counts {
    int64_t calls[LOOKS];
    size_t used[LOOKS];
    int n;
} counts;

static tt_status count_at_step(void *user, tt_model *m, const tt_progress *p)
{
    counts *c = user;
    tt_ctx *ctx = tt_graph_get_ctx(tt_model_get_graph(m));
    (void)p;
    c->calls[c->n] = atomic_load(&ctx->alloc_calls);
    for (int d = 0; d < tt_device_count(ctx); d++)
        c->used[c->n] += atomic_load(&ctx->top.devices[d]->used);
    c->n++;
    return TT_OK;
}

// The first step makes the plan, the second captures it; the others find everything there.
TEST(gpu_steps_allocate_nothing)
{
    static const char *const ways[][2] = {{"gpu:0", "single"},
                                          {"gpu:0*2", "mirrored"},
                                          {"gpu:0*2", "pipeline"},
                                          {"cpu:0,gpu:0", "central"},
                                          {"cpu:0,gpu:0", "mirrored"}};
    test_need_gpu();
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        counts c = {.n = 0};
        tt_ctx *ctx =
            tt_open(.devices = ways[i][0], .strategy = ways[i][1], .on_event = test_ignore_event);
        tt_model *m = small(ctx);
        tt_status st = tt_fit(m, tt_digits(ctx, .count = LOOKS * 96), .batch = 96,
                              .callbacks = {tt_callback(TT_AT_STEP, 1, count_at_step, &c)});
        ck_assert_msg(st == TT_OK && c.n == LOOKS, "%s: %s", ways[i][0],
                      tt_last_error(ctx).message);
        for (int k = 3; k < LOOKS; k++)
            ck_assert_msg(c.calls[k] == c.calls[2] && c.used[k] == c.used[2],
                          "%s, %s: step %d makes %lld allocations, %lld bytes", ways[i][0],
                          ways[i][1], k + 1, (long long)(c.calls[k] - c.calls[2]),
                          (long long)(c.used[k] - c.used[2]));
        CHECK_OK(tt_close(ctx));
    }
}

// What is fed next may be read late: memory for it is there from the first run on.
TEST(gpu_feeds_that_come_late_allocate_nothing)
{
    enum {
        ROWS = 512,
        WIDTH = 512
    };
    static float x[2][ROWS * WIDTH];
    test_need_gpu();
    tt_ctx *ctx = tt_open(.devices = "gpu:0", .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *in = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, WIDTH), .name = "x");
    tt_tensor *y = tt_sum(g, tt_square(g, in), .axis = 1);
    tt_session *s = tt_session_new(g);
    float out[ROWS];
    tt_fetch fetch = {y, out, sizeof(out)};
    int64_t calls = 0;
    size_t used = 0;
    for (int i = 0; i < 6; i++) {
        tt_feed_value now = {in, x[i % 2], {2, {ROWS, WIDTH}}, TT_F32};
        tt_feed_value next = {in, i < 3 ? NULL : x[(i + 1) % 2], {2, {ROWS, WIDTH}}, TT_F32};
        x[i % 2][0] = i < 3 ? (float)i : x[i % 2][0]; // not what is on its way already
        CHECK_OK(tt_run(s, .feeds = &now, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1,
                        .next = &next, .n_next = 1));
        CHECK(out[0] == x[i % 2][0] * x[i % 2][0]);
        if (i == 2) {
            calls = atomic_load(&ctx->alloc_calls);
            used = atomic_load(&ctx->top.devices[0]->used);
        }
    }
    CHECK_INT(atomic_load(&ctx->alloc_calls), calls);
    CHECK(atomic_load(&ctx->top.devices[0]->used) == used);
    CHECK_OK(tt_close(ctx));
}
