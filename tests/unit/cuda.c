/*
 * cuda.c - the module for GPUs and its backend, on the emulation: devices, memory, copies, the
 * order of streams, captures, what is told when something is missing or lost.
 */
#include "../test.h"
#include "base/ctx.h"
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>

static tt_ctx *open_on(const char *devices)
{
    if (!test_gpu_is_emulated())
        test_skip("the emulation is not built: make emu");
    tt_ctx *ctx = tt_open(.devices = devices, .on_event = test_ignore_event);
    ck_assert_msg(tt_status_of(ctx) == TT_OK, "%s", tt_last_error(ctx).message);
    return ctx;
}

static void check_refused(const char *devices, tt_status st, const char *words)
{
    tt_ctx *ctx = tt_open(.devices = devices, .on_event = test_ignore_event);
    CHECK_INT(tt_status_of(ctx), st);
    CHECK_MESSAGE(ctx, words);
    CHECK_INT(tt_device_count(ctx), 0);
    CHECK_INT(tt_close(ctx), st);
}

static const tti_streams *streams(const tti_device *d)
{
    return d->backend->streams;
}

TEST(gpus_are_opened_by_kind_and_part)
{
    setenv("TUTTI_EMU_CARDS", "2", 1);
    setenv("TUTTI_EMU_MEMORY", "1000000", 1);
    tt_ctx *ctx = open_on("cpu:0,gpu:1*2@40%,gpu:0@3KiB");
    const char *const names[] = {"cpu:0", "gpu:0", "gpu:1", "gpu:2"};
    const char *const physical[] = {"cpu:0", "gpu:1", "gpu:1", "gpu:0"};
    const size_t limit[] = {0, 400000, 400000, 3072};
    CHECK_INT(tt_device_count(ctx), 4);
    for (int i = 0; i < 4; i++) {
        tt_device_info d;
        CHECK_OK(tt_device_get(ctx, i, &d));
        CHECK_STR(d.name, names[i]);
        CHECK_STR(d.physical, physical[i]);
        CHECK(d.limit == limit[i]);
        CHECK_INT(ctx->top.devices[i]->index, i);
    }
    tt_device_name second;
    CHECK_OK(tt_device_parse(ctx, "gpu:1", &second));
    CHECK(tti_device_match(&ctx->top, &second) == ctx->top.devices[2]);
    CHECK(tti_device_can_read(ctx->top.devices[1], ctx->top.devices[2]));
    CHECK(tti_device_can_read(ctx->top.devices[1], ctx->top.devices[3]));
    CHECK(!tti_device_can_read(ctx->top.devices[1], ctx->top.devices[0]));
    CHECK_OK(tt_close(ctx));

    ctx = open_on("all");
    CHECK_INT(tt_device_count(ctx), 2);
    CHECK_STR(ctx->top.devices[1]->name, "gpu:1");
    CHECK_OK(tt_close(ctx));
}

TEST(all_gpus_are_opened_by_one_name)
{
    setenv("TUTTI_EMU_CARDS", "3", 1);
    tt_ctx *ctx = open_on("gpu:all");
    CHECK_INT(tt_device_count(ctx), 3);
    CHECK_STR(ctx->top.devices[2]->name, "gpu:2");
    CHECK_OK(tt_close(ctx));
}

TEST(missing_gpus_are_told_with_the_reason)
{
    if (!test_gpu_is_emulated())
        test_skip("the emulation is not built: make emu");
    check_refused("gpu:1", TT_EINVAL, "gpu:1 does not exist; this machine has 1 (gpu:0)");
    check_refused("gpu:0,gpu:0", TT_EINVAL, "gpu:0 is given twice");
    setenv("TUTTI_EMU_CARDS", "3", 1);
    check_refused("gpu:3", TT_EINVAL, "this machine has 3 (gpu:0 to gpu:2)");
    setenv("TUTTI_EMU_CAPABILITY", "7.5", 1);
    check_refused("gpu:0", TT_EUNSUPPORTED,
                  "emulated GPU has compute capability 7.5; 8.0 or newer is needed");
    setenv("TUTTI_EMU_CAPABILITY", "9.0,7.0", 1); // only the first can be used
    check_refused("gpu:1", TT_EINVAL,
                  "gpu:1 does not exist; this machine has 1 (gpu:0) that can be used (emulated GPU "
                  "has compute capability 7.0; 8.0 or newer is needed, ");
    setenv("TUTTI_EMU_CARDS", "0", 1);
    check_refused("gpu:0", TT_EUNSUPPORTED, "the NVIDIA driver (CUDA 13.0) sees no GPU");
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    check_refused("gpu:0", TT_EUNSUPPORTED, "sees no GPU (CUDA_VISIBLE_DEVICES is '7')");
    setenv("TUTTI_EMU_DRIVER", "12040", 1);
    check_refused("gpu:0", TT_EUNSUPPORTED,
                  "the NVIDIA driver supports CUDA 12.4, but this build needs CUDA 13.0; install a "
                  "newer driver");
    setenv("TUTTI_EMU_DRIVER", "0", 1);
    check_refused("gpu:0", TT_EUNSUPPORTED, "no NVIDIA driver is installed");
    check_refused("gpu:all", TT_EUNSUPPORTED, "no NVIDIA driver is installed");
    tt_ctx *ctx = tt_open(.devices = "all", .on_event = test_ignore_event);
    CHECK_STR(ctx->top.devices[0]->name, "cpu:0");
    CHECK_OK(tt_close(ctx));
}

TEST(a_module_that_is_not_there)
{
    setenv("TUTTI_CUDA_MODULE", "/nowhere/libtutti-cuda.so", 1);
    check_refused("gpu:0", TT_EUNSUPPORTED, "no gpu can be used: TUTTI_CUDA_MODULE: /nowhere/");
    check_refused("gpu:all", TT_EUNSUPPORTED, "no gpu can be used: TUTTI_CUDA_MODULE: /nowhere/");
    setenv("TUTTI_CUDA_MODULE", "libm.so.6", 1);
    check_refused("gpu:0", TT_EUNSUPPORTED, "/libm.so.6 is not a Tutti module");
}

TEST(gpu_memory_has_its_limit_and_the_cards)
{
    setenv("TUTTI_EMU_MEMORY", "100000", 1);
    tt_ctx *ctx = open_on("gpu:0*2@60000");
    tti_device *a = ctx->top.devices[0], *b = ctx->top.devices[1];
    void *p, *q;
    CHECK_OK(tti_device_alloc(a, 50000, &p));
    CHECK_INT(tti_device_alloc(a, 20000, &q), TT_ELIMIT);
    CHECK_MESSAGE(ctx, "gpu:0: 20000 more bytes would make 70000, more than its limit of 60000");
    tt_clear_error(ctx);
    CHECK_INT(tti_device_alloc(b, 60000, &q), TT_ENOMEM);
    CHECK_MESSAGE(ctx, "gpu:1: cannot allocate 60000 bytes: 50000 bytes of the card's 100000 bytes "
                       "are free; this process's tensors use 50000 bytes, other processes used 0 "
                       "bytes when it started, and CUDA or others have taken 0 bytes since");
    tt_clear_error(ctx);
    CHECK_OK(tti_device_alloc(b, 50000, &q));
    tti_device_free(b, q, 50000);
    tti_device_free(a, p, 50000);
    CHECK_OK(tti_device_alloc(b, 60000, &q));
    tti_device_free(b, q, 60000);
    CHECK_OK(tt_close(ctx));
}

// Another process has most of the card; its share grows while this one runs.
TEST(gpu_memory_that_others_hold_is_told_apart)
{
    setenv("TUTTI_EMU_MEMORY", "8000000000", 1);
    setenv("TUTTI_EMU_TAKEN", "7000000000", 1);
    tt_ctx *ctx = open_on("gpu:0");
    void *p, *q;
    CHECK_OK(tti_device_alloc(ctx->top.devices[0], 500000, &p));
    setenv("TUTTI_EMU_TAKEN", "7600000000", 1);
    CHECK_INT(tti_device_alloc(ctx->top.devices[0], 700000000, &q), TT_ENOMEM);
    CHECK_MESSAGE(ctx, "gpu:0: cannot allocate 667.6 MiB: 381.0 MiB of the card's 7.45 GiB are "
                       "free; this process's tensors use 500000 bytes, other processes used 6.52 "
                       "GiB when it started, and CUDA or others have taken 572.2 MiB since");
    tt_clear_error(ctx);
    tti_device_free(ctx->top.devices[0], p, 500000);
    CHECK_OK(tt_close(ctx));
}

static void check_copies(const char *devices)
{
    tt_ctx *ctx = open_on(devices);
    tti_device *a = ctx->top.devices[0], *b = ctx->top.devices[1];
    size_t n = (size_t)5 << 20; // more than one piece of the way through the host
    unsigned char *x = tti_alloc(ctx, n), *y = tti_calloc(ctx, 1, n);
    void *p, *q;
    for (size_t i = 0; i < n; i++)
        x[i] = (unsigned char)(i * 7 + i / 1000);
    CHECK_OK(tti_device_alloc(a, n, &p));
    CHECK_OK(tti_device_alloc(b, n, &q));
    CHECK_OK(tti_device_copy(a, p, NULL, x, n));
    CHECK_OK(tti_device_copy(b, q, a, p, n));
    CHECK_OK(tti_device_copy(NULL, y, b, q, n));
    CHECK(memcmp(x, y, n) == 0);
    CHECK_OK(tti_device_copy(b, (char *)q + 3, a, (char *)p + 1, 5)); // odd, and nothing else
    CHECK_OK(tti_device_copy(NULL, y, b, q, n));
    CHECK(memcmp(y + 3, x + 1, 5) == 0 && memcmp(y + 8, x + 8, n - 8) == 0);
    CHECK(tti_device_copy(NULL, y, b, (char *)q + 1, n) != TT_OK); // beyond the block
    tt_clear_error(ctx);
    tti_device_free(a, p, n);
    tti_device_free(b, q, n);
    tti_free(ctx, x);
    tti_free(ctx, y);
    CHECK_OK(tt_close(ctx));
}

TEST(copies_between_the_host_and_gpus)
{
    setenv("TUTTI_EMU_CARDS", "2", 1);
    check_copies("gpu:0*2");
    check_copies("gpu:0,gpu:1");
}

TEST(copies_of_cards_that_do_not_reach_each_other)
{
    setenv("TUTTI_EMU_CARDS", "2", 1);
    setenv("TUTTI_EMU_PEERS", "0", 1);
    check_copies("gpu:0,gpu:1");
}

// Streams of the emulation run as late as they may: without the wait y is read too early.
TEST(events_order_streams)
{
    for (int waits = 0; waits < 2; waits++) {
        tt_ctx *ctx = open_on("gpu:0*2");
        tti_device *a = ctx->top.devices[0], *b = ctx->top.devices[1];
        int one[2] = {1, 2}, got[2] = {0, 0};
        void *p, *q, *event = NULL;
        CHECK_OK(tti_device_alloc(a, 8, &p));
        CHECK_OK(tti_device_alloc(b, 8, &q));
        CHECK_OK(streams(a)->copy(a, p, NULL, one, 8));
        CHECK_OK(streams(a)->record(a, &event));
        if (waits)
            CHECK_OK(streams(b)->wait(b, event));
        CHECK_OK(streams(b)->copy(b, q, a, p, 8));
        CHECK_OK(streams(b)->copy(b, got, b, q, 8));
        CHECK_OK(streams(b)->sync(b, tti_deadline(1000)));
        CHECK_INT(got[1] == 2, waits);
        tti_flag flag = {0};
        CHECK_OK(streams(b)->notify(b, &flag, 7));
        CHECK_OK(tti_flag_wait(&flag, 7, 0, tti_deadline(1000)));
        CHECK_OK(streams(a)->sync(a, TTI_FOREVER));
        streams(a)->drop_event(a, event);
        tti_device_free(a, p, 8);
        tti_device_free(b, q, 8);
        CHECK_OK(tt_close(ctx));
    }
}

TEST(a_capture_over_two_gpus_runs_again)
{
    setenv("TUTTI_EMU_CARDS", "2", 1);
    tt_ctx *ctx = open_on("gpu:0,gpu:1");
    tti_device *d[2] = {ctx->top.devices[0], ctx->top.devices[1]};
    const tti_streams *st = streams(d[0]);
    int *host = st->pinned(d[0], 16);
    CHECK(host != NULL);
    void *p, *q, *event = NULL, *back = NULL, *exec = NULL;
    tti_flag flag = {0};
    CHECK_OK(tti_device_alloc(d[0], 16, &p));
    CHECK_OK(tti_device_alloc(d[1], 16, &q));
    CHECK_OK(st->capture_begin(d, 2));
    CHECK_OK(st->copy(d[0], p, NULL, host, 8));
    CHECK_OK(st->record(d[0], &event));
    CHECK_OK(st->wait(d[1], event));
    CHECK_OK(st->copy(d[1], q, d[0], p, 8));
    CHECK_OK(st->record(d[1], &back));
    CHECK_OK(st->wait(d[0], back));
    CHECK_OK(st->copy(d[0], host + 2, d[1], q, 8));
    CHECK_OK(st->notify(d[0], &flag, 1));
    host[0] = host[1] = host[2] = host[3] = 5;
    CHECK_OK(st->capture_end(d, 2, true, &exec));
    CHECK(atomic_load(&flag.value) == 0 && host[2] == 5); // nothing has run
    for (int i = 0; i < 3; i++) {
        host[0] = 10 * i;
        host[1] = 10 * i + 1;
        flag = (tti_flag){0};
        CHECK_OK(st->launch(d[0], exec));
        CHECK_OK(st->sync(d[1], tti_deadline(1000))); // the launch is in the order of both
        CHECK_INT(host[2], 10 * i);
        CHECK_INT(host[3], 10 * i + 1);
        CHECK(tti_flag_is_set(&flag, 1));
    }
    // A capture that is given up leaves the streams as they were.
    void *none = NULL;
    CHECK_OK(st->capture_begin(d, 2));
    CHECK_OK(st->copy(d[1], q, NULL, host, 8));
    CHECK_OK(st->capture_end(d, 2, false, &none));
    CHECK(none == NULL);
    CHECK_OK(st->copy(d[1], q, NULL, host, 8));
    CHECK_OK(st->sync(d[1], TTI_FOREVER));
    st->drop_exec(d[0], exec);
    st->drop_event(d[0], event);
    st->drop_event(d[1], back);
    st->unpin(d[0], host);
    tti_device_free(d[0], p, 16);
    tti_device_free(d[1], q, 16);
    CHECK_OK(tt_close(ctx));
}

// What may wait is refused while a capture is on, and the capture is then void.
TEST(memory_cannot_be_taken_during_a_capture)
{
    tt_ctx *ctx = open_on("gpu:0");
    tti_device *d = ctx->top.devices[0];
    void *p = NULL, *exec = NULL;
    CHECK_OK(streams(d)->capture_begin(&d, 1));
    CHECK_INT(tti_device_alloc(d, 16, &p), TT_EDEVICE);
    CHECK_MESSAGE(ctx, "gpu:0: cudaMalloc: not permitted during a capture");
    CHECK(streams(d)->capture_end(&d, 1, true, &exec) == TT_EDEVICE);
    CHECK(exec == NULL);
    tt_clear_error(ctx);
    CHECK_OK(tti_device_alloc(d, 16, &p));
    tti_device_free(d, p, 16);
    CHECK_OK(tt_close(ctx));
}

TEST(elapsed_time_is_that_of_events)
{
    tt_ctx *ctx = open_on("gpu:0");
    tti_device *d = ctx->top.devices[0];
    void *first = NULL, *last = NULL;
    CHECK_OK(streams(d)->record(d, &first));
    CHECK_OK(streams(d)->record(d, &last));
    CHECK_OK(streams(d)->sync(d, TTI_FOREVER));
    CHECK(streams(d)->elapsed(d, first, last) >= 0);
    streams(d)->drop_event(d, first);
    streams(d)->drop_event(d, last);
    CHECK_OK(tt_close(ctx));
}

// Every allocation of the host fails once on the way; nothing leaks, nothing crashes.
TEST(a_gpu_opens_or_fails_whole)
{
    if (!test_gpu_is_emulated())
        test_skip("the emulation is not built: make emu");
    for (int64_t n = 1;; n++) {
        tt_ctx *ctx = tti_open_failing(
            TT_OPTS(tt_open_opts, .devices = "gpu:0*2", .on_event = test_ignore_event), n);
        if (tt_status_of(ctx) == TT_OK) {
            CHECK(n > 4);
            tti_fail_alloc_at(ctx, 0);
            CHECK_OK(tt_close(ctx));
            break;
        }
        CHECK_INT(tt_status_of(ctx), TT_ENOMEM);
        CHECK_INT(tt_device_count(ctx), 0);
        CHECK_INT(tt_close(ctx), TT_ENOMEM);
    }
}

// A transpose on the first of two devices of a card, so many times; the last is to lose the card.
static tt_ctx *lose(int runs, tt_status *st)
{
    char n[16];
    snprintf(n, sizeof(n), "%d", runs);
    setenv("TUTTI_EMU_LOSE", n, 1);
    tt_ctx *ctx = open_on("gpu:0*2");
    tt_graph *g = tt_graph_new(ctx);
    float in[6] = {1, 2, 3, 4, 5, 6}, out[6];
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(2, 3), .name = "x");
    tt_tensor *y = tt_transpose(g, x, (tt_axes){0});
    tt_session *s = tt_session_new(g);
    tt_feed_value feed = {.tensor = x, .data = in, .shape = TT_SHAPE(2, 3), .dtype = TT_F32};
    tt_fetch fetch = {y, out, sizeof(out)};
    for (int i = 0; i < runs; i++) {
        *st = tt_run(s, .feeds = &feed, .n_feeds = 1, .n_fetches = 1, .fetches = &fetch);
        CHECK(i == runs - 1 || *st == TT_OK);
    }
    return ctx;
}

// All later calls tell the first cause, closing is clean.
TEST(a_lost_card_tells_its_first_cause)
{
    tt_status st;
    tt_ctx *ctx = lose(1, &st);
    CHECK_INT(st, TT_EDEVICE);
    CHECK_MESSAGE(ctx, "gpu:0: work of its stream (TUTTI_CUDA_CHECK=1 names the op): an illegal "
                       "memory access was encountered (cudaErrorIllegalAddress)");
    tt_clear_error(ctx);
    void *p;
    CHECK_INT(tti_device_alloc(ctx->top.devices[1], 16, &p), TT_EDEVICE);
    CHECK_MESSAGE(ctx, "gpu:1: its GPU failed and cannot be used until this process is restarted");
    CHECK_MESSAGE(ctx, "cudaErrorIllegalAddress");
    CHECK_INT(tt_close(ctx), TT_EDEVICE);
}

// In the fourth run, which would be a captured one.
TEST(checks_name_the_op_that_lost_the_card)
{
    tt_status st;
    setenv("TUTTI_CUDA_CHECK", "1", 1);
    tt_ctx *ctx = lose(4, &st);
    CHECK_INT(st, TT_EDEVICE);
    CHECK_MESSAGE(ctx, "gpu:0: transpose 'transpose': ");
    CHECK_MESSAGE(ctx, "cudaErrorIllegalAddress");
    CHECK_INT(tt_close(ctx), TT_EDEVICE);
}
