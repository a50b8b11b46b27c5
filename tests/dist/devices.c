/*
 * devices.c - one graph on several logical devices: the same bits, in parallel, failing as one.
 */
#include "model.h"
#include "own_op.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- the same bits ---------------------------------------------------------------------------

static tt_hash train(const char *devices, int threads, const char *dense, const char *conv,
                     const char *join, double *loss)
{
    tt_ctx *ctx = test_ctx_on(devices, NULL, threads);
    test_model m;
    tt_hash hash = {0, 0};
    ck_assert_msg(test_model_build(&m, ctx, dense, conv, join), "%s", tt_last_error(ctx).message);
    tt_session *s = tt_session_new(m.g);
    static const int64_t rows[] = {17, 64, 1, 17, 5};
    for (int step = 0; step < 5; step++) {
        *loss = test_model_step(&m, s, step, rows[step]);
        ck_assert_msg(!isnan(*loss), "%s: %s", devices, tt_last_error(ctx).message);
    }
    CHECK_OK(tt_weight_hash(s, &hash));
    CHECK_OK(tt_close(ctx));
    return hash;
}

TEST(branches_on_three_devices_have_the_bits_of_one)
{
    static const struct {
        const char *devices;
        int threads;
        const char *dense, *conv, *join;
    } spreads[] = {
        {"cpu:0", 3, NULL, NULL, NULL},
        {"cpu:0*2", 2, "cpu:0", "cpu:1", NULL},
        {"cpu:0*3", 3, "cpu:0", "cpu:1", "cpu:2"},
        {"cpu:0*3", 6, "cpu:2", "cpu:0", "cpu:1"},
        {"cpu:0*3", 1, "cpu:1", "cpu:1", "cpu:0"},
    };
    double want_loss, loss;
    tt_hash want = train("cpu:0", 1, NULL, NULL, NULL, &want_loss);
    for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++) {
        tt_hash got = train(spreads[i].devices, spreads[i].threads, spreads[i].dense,
                            spreads[i].conv, spreads[i].join, &loss);
        ck_assert_msg(got.low == want.low && got.high == want.high && loss == want_loss,
                      "%s with %d threads: loss %a, on one device %a", spreads[i].devices,
                      spreads[i].threads, loss, want_loss);
    }
}

TEST(every_instruction_set_trains_to_one_hash)
{
    double loss;
    tt_hash want = {0, 0};
    for (int i = 0; test_isa(i) != NULL; i++) {
        tt_ctx *ctx = test_ctx_on("cpu:0*2", test_isa(i), 2);
        test_model m;
        tt_hash got;
        CHECK(test_model_build(&m, ctx, "cpu:0", "cpu:1", NULL));
        tt_session *s = tt_session_new(m.g);
        for (int step = 0; step < 4; step++) {
            loss = test_model_step(&m, s, step, 29);
            CHECK(!isnan(loss));
        }
        CHECK_OK(tt_weight_hash(s, &got));
        if (i == 0)
            want = got;
        ck_assert_msg(got.low == want.low && got.high == want.high, "%s has other weights than %s",
                      test_isa(i), test_isa(0));
        CHECK_OK(tt_close(ctx));
    }
}

// ---- ops of our own, to fail and to be slow --------------------------------------------------

static tt_status fails(const tt_launch *l)
{
    return TT_FAIL(l->ctx, TT_EINVAL, "%s: this kernel always fails", l->node->name);
}

static void sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static tt_status is_slow(const tt_launch *l)
{
    sleep_ms(40);
    memcpy(l->out[0].data, l->in[0].data, (size_t)l->in[0].count * sizeof(float));
    return TT_OK;
}

static tt_status hangs(const tt_launch *l)
{
    sleep_ms(1500);
    memcpy(l->out[0].data, l->in[0].data, (size_t)l->in[0].count * sizeof(float));
    return TT_OK;
}

#define USER_OP(name_, kernel_)                                                                  \
    static const tt_op name_ = {                                                                 \
        .name = #name_,                                                                          \
        .inputs = 1,                                                                             \
        .flags = TT_OP_ROW_FREE | TT_OP_EFFECT,                                                  \
        .infer = own_op_as_input,                                                                \
        .split = own_op_split_as_input,                                                          \
        .kernel = {[TT_CPU] = {own_op_one_unit, {kernel_, kernel_, kernel_, kernel_, kernel_}}}, \
    }
USER_OP(test_failing, fails);
USER_OP(test_slow, is_slow);
USER_OP(test_hanging, hangs);

static tt_tensor *apply(tt_graph *g, const tt_op *op, tt_tensor *x, const char *device)
{
    tt_device_push(g, device);
    tt_tensor *y = tt_node_out(g, op, 1, &x, NULL);
    tt_device_pop(g);
    return y;
}

// ---- in parallel -----------------------------------------------------------------------------

typedef struct span {
    double begin, end;
    int row;
} span;

// The complete events ("ph":"X") of a trace file that contain the word, in order.
static int read_spans(const char *path, const char *word, span *out, int max)
{
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "no trace at %s", path);
    static char text[1 << 20];
    size_t size = fread(text, 1, sizeof(text) - 1, f);
    text[size] = '\0';
    fclose(f);
    int n = 0;
    for (char *at = text; (at = strchr(at, '{')) != NULL && n < max; at++) {
        size_t len = strcspn(at + 1, "{}") + 1;
        char event[1024];
        snprintf(event, sizeof(event), "%.*s", (int)len, at);
        char *ts = strstr(event, "\"ts\":"), *dur = strstr(event, "\"dur\":");
        char *tid = strstr(event, "\"tid\":");
        if (strstr(event, "\"ph\":\"X\"") == NULL || strstr(event, word) == NULL)
            continue;
        ck_assert_msg(ts && dur && tid, "an event without time or row: %s", event);
        double begin = atof(ts + 5);
        out[n++] = (span){begin, begin + atof(dur + 6), atoi(tid + 6)};
    }
    return n;
}

TEST(branches_on_three_devices_overlap_in_time)
{
    tt_ctx *ctx = test_ctx_on("cpu:0*3", NULL, 3);
    tt_graph *g = tt_graph_new(ctx);
    CHECK_OK(tt_op_register(ctx, &test_slow));
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4)), *y[3];
    for (int i = 0; i < 3; i++) {
        char device[8];
        snprintf(device, sizeof(device), "cpu:%d", i);
        y[i] = apply(g, &test_slow, x, device);
    }
    tt_tensor *sum = tt_add(g, tt_add(g, y[0], y[1]), y[2]);
    tt_session *s = tt_session_new(g, .trace = true);
    float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    tt_feed_value feed = {x, in, TT_SHAPE(2, 4), TT_F32};
    tt_fetch fetch = {sum, out, sizeof(out)};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1));
        CHECK(out[7] == 24);
    }
    char path[400];
    snprintf(path, sizeof(path), "%s/trace.json", test_folder());
    CHECK_OK(tt_trace_write(s, path));
    CHECK_OK(tt_close(ctx));

    span spans[64];
    int n = read_spans(path, "\"name\":\"test_slow", spans, 64);
    ck_assert_msg(n >= 3, "the trace has %d of the slow nodes", n);
    // The last three: of the last run.
    const span *last = spans + n - 3;
    double from = fmax(last[0].begin, fmax(last[1].begin, last[2].begin));
    double to = fmin(last[0].end, fmin(last[1].end, last[2].end));
    ck_assert_msg(from < to, "no moment at which all three run");
    CHECK(last[0].row != last[1].row && last[1].row != last[2].row && last[0].row != last[2].row);
}

// ---- failing as one --------------------------------------------------------------------------

typedef struct told {
    int errors;
    char first[512];
} told;

static void listen(void *user, const tt_event *ev)
{
    told *t = user;
    if (strcmp(ev->kind, "log") == 0 && ev->level == TT_ERROR && t->errors++ == 0)
        snprintf(t->first, sizeof(t->first), "%s", ev->text);
}

TEST(a_failing_kernel_stops_all_devices_and_is_reported_once)
{
    told log = {0};
    tt_ctx *ctx = tt_open(.devices = "cpu:0*3", .on_event = listen, .user = &log, .threads = 3);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4));
    tt_tensor *a = apply(g, &test_slow, x, "cpu:0");
    tt_tensor *b = apply(g, &test_failing, x, "cpu:1");
    tt_tensor *sum = tt_add(g, tt_neg(g, a), tt_neg(g, b));
    tt_pin(sum, "cpu:2");
    tt_session *s = tt_session_new(g);
    float in[4] = {1, 2, 3, 4}, out[4];
    tt_feed_value feed = {x, in, TT_SHAPE(1, 4), TT_F32};
    tt_fetch fetch = {sum, out, sizeof(out)};
    for (int round = 0; round < 3; round++) {
        double start = now();
        CHECK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1) ==
              TT_EINVAL);
        CHECK(now() - start < 5);
        CHECK_MESSAGE(ctx, "this kernel always fails");
        CHECK_MESSAGE(ctx, "test_failing");
        ck_assert_msg(log.errors == round + 1, "%d errors were told for %d failures", log.errors,
                      round + 1);
        // Sticky until it is cleared.
        CHECK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1) ==
              TT_EINVAL);
        tt_clear_error(ctx);
        // The other branch still runs.
        tt_fetch good = {a, out, sizeof(out)};
        CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &good, .n_fetches = 1));
        CHECK(out[3] == 4);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(a_passed_deadline_names_who_waited_for_whom)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .on_event = test_ignore_event, .threads = 2,
                          .deadline_ms = 200);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4));
    tt_tensor *b = apply(g, &test_hanging, x, "cpu:1");
    tt_tensor *y = tt_add(g, x, b);
    tt_pin(y, "cpu:0");
    tt_session *s = tt_session_new(g);
    float in[4] = {1, 2, 3, 4}, out[4];
    tt_feed_value feed = {x, in, TT_SHAPE(1, 4), TT_F32};
    tt_fetch fetch = {y, out, sizeof(out)};
    tt_status st = tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
    ck_assert_msg(st == TT_ETIMEOUT, "%s: %s", tt_status_name(st), tt_last_error(ctx).message);
    CHECK_MESSAGE(ctx, "cpu:0");
    CHECK_MESSAGE(ctx, "cpu:1");
    CHECK_MESSAGE(ctx, "test_hanging");
    CHECK(tt_close(ctx) == TT_ETIMEOUT);
}
