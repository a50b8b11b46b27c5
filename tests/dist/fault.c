/*
 * fault.c - a device that fails or hangs in the middle of a step: one error that names it, soon,
 * and nothing is left behind. Faults are asked for as fault.c of run/ says.
 */
#include "test.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// Every strategy that spreads rows over devices.
static const char *const strategies[] = {"mirrored", "central", "pipeline"};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A sanitizer starts a thread of its own with the first of ours.
static void start_one_thread(void)
{
    tt_ctx *ctx = test_ctx_on("cpu:0*2", NULL, 2);
    CHECK_OK(tt_close(ctx));
}

static int threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

// A thread that has been joined may be listed for a moment longer.
static void check_threads(int want, const char *what)
{
    double begin = now();
    while (threads_now() > want && now() - begin < 5)
        usleep(1000);
    ck_assert_msg(threads_now() == want, "%s: %d threads are left", what, threads_now() - want);
}

static void set_fault(const char *how, const char *device, const char *op, int run)
{
    char text[32];
    snprintf(text, sizeof(text), "%d", run);
    setenv("TUTTI_FAULT_HOW", how, 1);
    setenv("TUTTI_FAULT_DEVICE", device, 1);
    setenv("TUTTI_FAULT_OP", op, 1);
    setenv("TUTTI_FAULT_RUN", text, 1);
}

typedef struct heard {
    int errors;
    double at; // of the first
} heard;

static void hear(void *user, const tt_event *ev)
{
    heard *h = user;
    if (strcmp(ev->kind, "log") == 0 && ev->level == TT_ERROR && h->errors++ == 0)
        h->at = now();
}

// A fit on n devices in which one fails in the third step.
static void fail_on(const char *strategy, int n, int device)
{
    char devices[32], name[32], what[96];
    heard h = {0};
    int before = threads_now();
    snprintf(devices, sizeof(devices), "cpu:0*%d", n);
    snprintf(name, sizeof(name), "cpu:%d", device);
    snprintf(what, sizeof(what), "%s on %s, %s fails", strategy, devices, name);
    set_fault("fail", name, "matmul", 3);
    tt_ctx *ctx = tt_open(.devices = devices, .threads = 2, .strategy = strategy, .on_event = hear,
                          .user = &h);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_max_pool2d(m, .size = {4, 4});
    tt_layer_flatten(m);
    for (int i = 0; i < 24; i++) // of equal cost, so that every stage of a pipeline has some
        tt_layer_dense(m, .units = 48, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam());
    tt_data *data = tt_digits(ctx, .count = 640, .batch = 64);
    tt_status st = tt_fit(m, data, .checkpoints = test_folder());
    double took = now() - h.at;
    ck_assert_msg(st == TT_EDEVICE, "%s: %s", what, tt_last_error(ctx).message);
    char want[64];
    snprintf(want, sizeof(want), "failed on %s in step 3", name);
    CHECK_MESSAGE(ctx, want);
    CHECK_MESSAGE(ctx, "matmul 'dense");
    ck_assert_msg(h.errors == 1, "%s: %d errors were told", what, h.errors);
    ck_assert_msg(took < 5, "%s: the fit ended %g s after the error", what, took);
    CHECK(tt_fit(m, data) == TT_EDEVICE); // nothing goes on
    tt_clear_error(ctx);                  // so that close can tell of what was not freed
    ck_assert_msg(tt_close(ctx) == TT_OK, "%s: memory is left", what);
    check_threads(before, what);
}

TEST(a_failing_device_ends_the_job_and_leaves_nothing)
{
    static const int counts[] = {2, 3, 8};
    start_one_thread();
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            fail_on(strategies[s], counts[i], 0);
            fail_on(strategies[s], counts[i], counts[i] - 1);
            if (counts[i] > 2)
                fail_on(strategies[s], counts[i], 1);
        }
}

// After the error is cleared the same session runs again.
TEST(a_session_runs_again_after_a_fault)
{
    set_fault("fail", "cpu:1", "exp", 2);
    tt_ctx *ctx = tt_open(.devices = "cpu:0*3", .threads = 2, .strategy = "mirrored",
                          .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3), .name = "x");
    tt_tensor *sum = tt_sum(g, tt_exp(g, x), .axis = TT_FIRST);
    tt_session *s = tt_session_new(g, .no_fuse = true);
    float in[16 * 3], out[3][3];
    test_fill(in, 16 * 3, 1, -1, 1);
    for (int i = 0; i < 3; i++) {
        tt_feed_value feed = {x, in, TT_SHAPE(16, 3), TT_F32};
        tt_fetch fetch = {sum, out[i], sizeof(out[i])};
        tt_status st = tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
        CHECK(st == (i == 1 ? TT_EDEVICE : TT_OK));
        tt_clear_error(ctx);
    }
    CHECK(memcmp(out[0], out[2], sizeof(out[0])) == 0);
    CHECK_OK(tt_close(ctx));
}

// x on the last device, used by the one before, and so on: each waits for the next.
static tt_status run_chain(tt_ctx *ctx, int n)
{
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(4), .name = "x"), *y = tt_exp(g, x);
    tt_pin(x, "cpu:0");
    float in[4] = {0}, out[4];
    for (int d = n - 1; d >= 0; d--) {
        char pin[32];
        snprintf(pin, sizeof(pin), "cpu:%d", d);
        tt_pin(y, pin);
        y = d > 0 ? tt_sqrt(g, y) : y;
    }
    tt_feed_value feed = {x, in, TT_SHAPE(4), TT_F32};
    tt_fetch fetch = {y, out, sizeof(out)};
    return tt_run(tt_session_new(g, .no_fuse = true), .feeds = &feed, .n_feeds = 1,
                  .fetches = &fetch, .n_fetches = 1);
}

TEST(a_hanging_device_is_named_by_who_waits_for_it)
{
    start_one_thread();
    int before = threads_now();
    set_fault("hang", "cpu:2", "exp", 1);
    setenv("TUTTI_FAULT_MS", "1500", 1);
    tt_ctx *ctx = tt_open(.devices = "cpu:0*3", .threads = 2, .deadline_ms = 300,
                          .on_event = test_ignore_event);
    CHECK(run_chain(ctx, 3) == TT_ETIMEOUT);
    CHECK_MESSAGE(ctx, "no progress for 0.3 s (deadline_ms)");
    CHECK_MESSAGE(ctx, "cpu:2, which is in 'exp' (exp)"); // by whichever of the two was first
    CHECK_MESSAGE(ctx, "in step 1");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
    check_threads(before, "hang");
}

// Nobody waits for its value: the run does.
TEST(a_hanging_device_is_named_by_the_run)
{
    set_fault("hang", "cpu:1", "exp", 1);
    setenv("TUTTI_FAULT_MS", "1200", 1);
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .threads = 2, .deadline_ms = 300,
                          .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    float in[4] = {0}, out[2][4];
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(4), .name = "x");
    tt_tensor *a = tt_sqrt(g, x), *b = tt_exp(g, x);
    tt_pin(a, "cpu:0");
    tt_pin(b, "cpu:1");
    tt_feed_value feed = {x, in, TT_SHAPE(4), TT_F32};
    tt_fetch fetches[] = {{a, out[0], sizeof(out[0])}, {b, out[1], sizeof(out[1])}};
    CHECK(tt_run(tt_session_new(g, .no_fuse = true), .feeds = &feed, .n_feeds = 1,
                 .fetches = fetches, .n_fetches = 2) == TT_ETIMEOUT);
    CHECK_MESSAGE(ctx, "cpu:1, which is in 'exp' (exp), has not finished step 1 within ");
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(a_fault_that_makes_no_sense_is_refused)
{
    setenv("TUTTI_FAULT_HOW", "explode", 1);
    tt_ctx *ctx = tt_open(.on_event = test_ignore_event);
    CHECK_MESSAGE(ctx, "TUTTI_FAULT_HOW");
    CHECK_MESSAGE(ctx, "explode");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// The slowed device has most to do, and the others wait for it.
TEST(the_slowest_device_is_named)
{
    set_fault("slow", "cpu:1", "", 0);
    setenv("TUTTI_FAULT_TIMES", "20", 1);
    tt_ctx *ctx = tt_open(.devices = "cpu:0*3", .threads = 3, .strategy = "mirrored",
                          .on_event = test_ignore_event);
    tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 64, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    tt_compile(m, .loss = TT_CROSS_ENTROPY);
    CHECK_OK(tt_fit(m, tt_digits(ctx, .count = 600, .batch = 60)));
    tt_fit_report r;
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_INT(r.slowest, 1);
    tt_device_times t;
    CHECK_OK(tt_fit_device_times(m, 0, &t));
    CHECK(t.waiting_for[1] > t.waiting_for[2]);
    CHECK_OK(tt_close(ctx));
}
