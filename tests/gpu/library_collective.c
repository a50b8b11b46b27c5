/*
 * library_collective.c - work that GPUs do together by NCCL: of one GPU wherever there is one, of
 * several on the emulation, which has an NCCL of its own.
 */
#include "base/ctx.h"
#include "device/device.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

#define MAX_CARDS 4
#define VERSION   "22803"

typedef struct team {
    tt_ctx *ctx;
    int n;
    tti_device *d[MAX_CARDS];
    const tti_streams *st;
    void *communicator, *data[MAX_CARDS], *marks[MAX_CARDS];
    size_t bytes;
    int64_t begin[MAX_CARDS + 1];
} team;

static void need_emulated_cards(const char *cards)
{
    if (!test_gpu_is_emulated())
        test_skip("needs several GPUs, which only the emulation has");
    setenv("TUTTI_EMU_CARDS", cards, 1);
    setenv("TUTTI_EMU_NCCL", VERSION, 1);
}

static void open_devices(team *t, int n)
{
    char devices[64] = "gpu:0";
    for (int i = 1; i < n; i++)
        snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices), ",gpu:%d", i);
    *t = (team){.n = n};
    t->ctx = tt_open(.devices = devices, .on_event = test_ignore_event);
    ck_assert_msg(tt_status_of(t->ctx) == TT_OK, "%s", tt_last_error(t->ctx).message);
    for (int i = 0; i < n; i++)
        t->d[i] = t->ctx->top.devices[i];
    t->st = t->d[0]->backend->streams;
}

static void open_team(team *t, int n, size_t bytes)
{
    open_devices(t, n);
    ck_assert_msg(t->st->communicator(t->d, n, &t->communicator) == TT_OK, "%s",
                  tt_last_error(t->ctx).message);
    t->bytes = bytes;
    for (int i = 0; i < n; i++)
        CHECK_OK(tti_device_alloc(t->d[i], bytes, &t->data[i]));
}

static tt_status close_team(team *t)
{
    for (int i = 0; i < t->n; i++) {
        t->st->drop_event(t->d[i], t->marks[i]);
        tti_device_free(t->d[i], t->data[i], t->bytes);
    }
    return tt_close(t->ctx);
}

static tti_library_call call_of(team *t, tti_collective_kind kind, tt_dtype dtype)
{
    return (tti_library_call){.what = {.kind = kind, .dtype = dtype, .begin = t->begin},
                              .data = t->data};
}

// What is enqueued on the devices from here on comes after the collectives so far.
static void wait_all(team *t)
{
    for (int i = 0; i < t->n; i++) {
        CHECK_OK(t->st->mark(t->d[i], &t->marks[i]));
        CHECK_OK(t->st->wait(t->d[i], t->marks[i]));
    }
}

// ---- one GPU ---------------------------------------------------------------------------------

TEST(gpu_joint_work_of_one_gpu)
{
    if (test_gpu_is_emulated())
        setenv("TUTTI_EMU_NCCL", VERSION, 1);
    test_need_gpu();
    team t;
    char words[200];
    open_devices(&t, 1);
    bool usable = t.st->has_communicator(t.d, 1, words, sizeof(words));
    CHECK_OK(tt_close(t.ctx));
    if (!usable)
        test_skip(words);
    CHECK(strncmp(words, "NCCL 2.", 7) == 0);

    enum {
        COUNT = 5000
    };
    open_team(&t, 1, COUNT * sizeof(float));
    float *host = t.st->pinned(t.d[0], t.bytes), *back = t.st->pinned(t.d[0], t.bytes);
    void *exec = NULL, *again = NULL;
    t.begin[1] = COUNT;
    tti_library_call list[] = {call_of(&t, TTI_ALL_REDUCE, TT_F32),
                               call_of(&t, TTI_REDUCE_SCATTER, TT_F32),
                               call_of(&t, TTI_ALL_GATHER, TT_F32)};
    CHECK_OK(t.st->communicator(t.d, 1, &again));
    CHECK(again == t.communicator);
    for (int run = 0; run < 5; run++) {
        for (int i = 0; i < COUNT; i++) {
            host[i] = (float)(run * 10000 + i);
            back[i] = -1;
        }
        if (run == 2)
            CHECK_OK(t.st->capture_begin(t.d, 1));
        if (run <= 2) { // twice as it comes, then captured
            CHECK_OK(t.st->copy(t.d[0], t.data[0], NULL, host, t.bytes));
            CHECK_OK(t.st->run_collectives(t.communicator, list, 3));
            wait_all(&t);
            CHECK_OK(t.st->copy(t.d[0], back, t.d[0], t.data[0], t.bytes));
        }
        if (run == 2)
            CHECK_OK(t.st->capture_end(t.d, 1, true, &exec));
        if (run >= 2)
            CHECK_OK(t.st->launch(t.d[0], exec));
        CHECK_OK(t.st->sync(t.d[0], tti_deadline(20000)));
        CHECK(memcmp(host, back, t.bytes) == 0);
    }
    t.st->drop_exec(t.d[0], exec);
    t.st->unpin(t.d[0], host);
    t.st->unpin(t.d[0], back);
    CHECK_OK(close_team(&t));
}

// ---- several ---------------------------------------------------------------------------------

// Element i of rank r; sums of them are exact in f32.
static double number(int r, int64_t i)
{
    return (double)((i * 7 + r * 13) % 101);
}

static void put(tt_dtype t, void *at, int64_t i, double x)
{
    if (t == TT_F32)
        ((float *)at)[i] = (float)x;
    else if (t == TT_I64)
        ((int64_t *)at)[i] = (int64_t)x;
    else
        ((int32_t *)at)[i] = (int32_t)x;
}

// Elements that rank r has afterwards are those of want; what else a scatter leaves is undefined.
static void check_result(team *t, tti_collective_kind kind, tt_dtype dtype)
{
    size_t item = tt_dtype_bytes(dtype);
    char *got = malloc(t->bytes), *want = malloc(t->bytes);
    for (int r = 0; r < t->n; r++) {
        CHECK_OK(tti_device_copy(NULL, got, t->d[r], t->data[r], t->bytes));
        for (int q = 0; q < t->n; q++) {
            for (int64_t i = t->begin[q]; i < t->begin[q + 1]; i++) {
                double x = 0;
                for (int k = 0; k < t->n; k++)
                    x += number(k, i);
                put(dtype, want, i, kind == TTI_ALL_GATHER ? number(q, i) : x);
            }
            size_t from = (size_t)t->begin[q] * item, bytes = (size_t)t->begin[q + 1] * item - from;
            if (kind != TTI_REDUCE_SCATTER || q == r)
                ck_assert_msg(memcmp(got + from, want + from, bytes) == 0,
                              "kind %d, type %d, %d devices: device %d differs in piece %d", kind,
                              dtype, t->n, r, q);
        }
    }
    free(got);
    free(want);
}

static void fill_all(team *t, tt_dtype dtype)
{
    char *x = malloc(t->bytes);
    for (int r = 0; r < t->n; r++) {
        for (int64_t i = 0; i < t->begin[t->n]; i++)
            put(dtype, x, i, number(r, i));
        CHECK_OK(tti_device_copy(t->d[r], t->data[r], NULL, x, t->bytes));
    }
    free(x);
}

TEST(gpu_joint_work_of_several)
{
    static const tt_dtype types[] = {TT_F32, TT_I32, TT_I64};
    need_emulated_cards("4");
    for (int n = 2; n <= MAX_CARDS; n++) {
        for (int even = 0; even < 2; even++) {
            for (int k = 0; k < 3; k++) {
                team t;
                open_team(&t, n, 4096 * 8);
                for (int r = 0; r <= n; r++) // uneven: some have nothing
                    t.begin[r] = even ? 100 * r : r <= 1 ? 0 : 150 * r - 7;
                for (int kind = 0; kind < 3; kind++) {
                    tti_library_call j = call_of(&t, (tti_collective_kind)kind, types[k]);
                    fill_all(&t, types[k]);
                    CHECK_OK(t.st->run_collectives(t.communicator, &j, 1));
                    wait_all(&t);
                    check_result(&t, (tti_collective_kind)kind, types[k]);
                }
                CHECK_OK(close_team(&t));
            }
        }
    }
}

// Joint work comes after what was enqueued before it; what comes after it waits for the mark.
TEST(gpu_joint_work_has_its_place_in_the_order)
{
    need_emulated_cards("2");
    for (int waits = 0; waits < 2; waits++) {
        team t;
        open_team(&t, 2, sizeof(float));
        float one[2] = {1, 2}, got[2] = {0, 0};
        t.begin[1] = 0;
        t.begin[2] = 1;
        tti_library_call j = call_of(&t, TTI_ALL_REDUCE, TT_F32);
        for (int i = 0; i < 2; i++)
            CHECK_OK(t.st->copy(t.d[i], t.data[i], NULL, &one[i], sizeof(float)));
        CHECK_OK(t.st->run_collectives(t.communicator, &j, 1));
        if (waits)
            wait_all(&t);
        for (int i = 0; i < 2; i++)
            CHECK_OK(t.st->copy(t.d[i], &got[i], t.d[i], t.data[i], sizeof(float)));
        for (int i = 0; i < 2; i++)
            CHECK_OK(t.st->sync(t.d[i], tti_deadline(1000)));
        CHECK(waits ? got[0] == 3 && got[1] == 3 : got[0] == 1);
        CHECK_OK(close_team(&t));
    }
}

TEST(gpu_joint_work_is_captured)
{
    enum {
        N = 3,
        COUNT = 77
    };
    need_emulated_cards("3");
    team t;
    open_team(&t, N, COUNT * sizeof(float));
    float *host = t.st->pinned(t.d[0], 2 * N * t.bytes);
    void *exec = NULL;
    for (int r = 0; r < N; r++)
        t.begin[r + 1] = r < 1 ? 20 : COUNT;
    CHECK_OK(t.st->capture_begin(t.d, N));
    for (int r = 0; r < N; r++)
        CHECK_OK(t.st->copy(t.d[r], t.data[r], NULL, host + r * COUNT, t.bytes));
    tti_library_call j = call_of(&t, TTI_REDUCE_SCATTER, TT_F32);
    CHECK_OK(t.st->run_collectives(t.communicator, &j, 1));
    j.what.kind = TTI_ALL_GATHER;
    CHECK_OK(t.st->run_collectives(t.communicator, &j, 1));
    wait_all(&t);
    for (int r = 0; r < N; r++)
        CHECK_OK(t.st->copy(t.d[r], host + (N + r) * COUNT, t.d[r], t.data[r], t.bytes));
    CHECK_OK(t.st->capture_end(t.d, N, true, &exec));
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < N * COUNT; i++)
            host[i] = (float)((i / COUNT + 1) * (run + 1) + i % COUNT);
        CHECK_OK(t.st->launch(t.d[0], exec));
        for (int r = 0; r < N; r++)
            CHECK_OK(t.st->sync(t.d[r], tti_deadline(1000)));
        for (int i = 0; i < N * COUNT; i++)
            CHECK(host[N * COUNT + i] == (float)(6 * (run + 1) + 3 * (i % COUNT)));
    }
    t.st->drop_exec(t.d[0], exec);
    t.st->unpin(t.d[0], host);
    CHECK_OK(close_team(&t));
}

// What the library takes on a card is told as its own share.
TEST(gpu_joint_work_takes_memory_of_the_libraries_share)
{
    need_emulated_cards("2");
    team t;
    open_devices(&t, 2);
    size_t before = t.d[1]->backend->overhead(t.d[1]);
    CHECK_OK(t.st->communicator(t.d, 2, &t.communicator));
    CHECK(t.d[1]->backend->overhead(t.d[1]) == before + 100000);
    CHECK_OK(tt_close(t.ctx));
}

// ---- what cannot be --------------------------------------------------------------------------

static void check_words(const char *devices, const char *want)
{
    tt_ctx *ctx = tt_open(.devices = devices, .on_event = test_ignore_event);
    const tti_streams *st = ctx->top.devices[0]->backend->streams;
    char words[200];
    void *communicator;
    CHECK(!st->has_communicator(ctx->top.devices, ctx->top.n_devices, words, sizeof(words)));
    CHECK_STR(words, want);
    if (strstr(want, "not a GPU") == NULL) {
        CHECK_INT(st->communicator(ctx->top.devices, ctx->top.n_devices, &communicator),
                  TT_EUNSUPPORTED);
        CHECK_MESSAGE(ctx, want);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(gpu_joint_work_is_not_for_all)
{
    need_emulated_cards("2");
    check_words("gpu:1,gpu:0*2", "gpu:1 and gpu:2 are parts of one GPU");
    check_words("gpu:1,cpu:0", "cpu:0 is not a GPU of this process");
}

TEST(gpu_joint_work_without_nccl)
{
    need_emulated_cards("2");
    unsetenv("TUTTI_EMU_NCCL");
    check_words("gpu:0,gpu:1", "libnccl.so.2: not found");
}

TEST(gpu_joint_work_with_an_old_nccl)
{
    need_emulated_cards("2");
    setenv("TUTTI_EMU_NCCL", "21703", 1);
    check_words("gpu:0,gpu:1", "NCCL 2.17.3 is older than 2.18");
}

TEST(gpu_joint_work_switched_off)
{
    need_emulated_cards("2");
    setenv("TUTTI_NCCL", "off", 1);
    check_words("gpu:0,gpu:1", "TUTTI_NCCL=off");
}

TEST(gpu_joint_work_without_communicators)
{
    need_emulated_cards("2");
    setenv("TUTTI_EMU_NCCL_FAIL", "CommInitAll 1", 1);
    team t;
    open_devices(&t, 2);
    CHECK_INT(t.st->communicator(t.d, 2, &t.communicator), TT_EDEVICE);
    CHECK_MESSAGE(
        t.ctx, "gpu:0 to gpu:1: no communicator: NCCL: unhandled system error (ncclSystemError): "
               "socketStartConnect: connection refused (set TUTTI_NCCL=off to run without NCCL)");
    CHECK_INT(tt_close(t.ctx), TT_EDEVICE);
}

// ---- what goes wrong -------------------------------------------------------------------------

// One call after another until one fails, there or when it is waited for; then all do.
static void check_failure(const char *fault, const char *words, tt_status want, int at)
{
    need_emulated_cards("2");
    setenv("TUTTI_EMU_NCCL_FAIL", fault, 1);
    team t;
    open_team(&t, 2, 64);
    tt_op op = {.name = "matmul_dw"};
    tt_node node = {.op = &op, .name = "dense_1.weight"};
    t.begin[1] = 4;
    t.begin[2] = 16;
    for (int i = 1; i <= 3; i++) {
        tti_library_call list[2] = {call_of(&t, TTI_ALL_REDUCE, TT_F32),
                                    call_of(&t, TTI_ALL_REDUCE, TT_F32)};
        list[0].node = list[1].node = &node;
        tt_status st = t.st->run_collectives(t.communicator, list, 2);
        for (int r = 0; st == TT_OK && r < 2; r++)
            st = t.st->sync(t.d[r], tti_deadline(50));
        CHECK_INT(st, i < at ? TT_OK : i == at ? want : TT_EDEVICE);
        if (i == at)
            CHECK_MESSAGE(t.ctx, words);
        if (i > at)
            CHECK_MESSAGE(t.ctx, "lost before: gpu:");
        if (i == at)
            tt_clear_error(t.ctx);
    }
    CHECK_INT(close_team(&t), TT_EDEVICE);
}

TEST(gpu_joint_call_that_fails)
{
    check_failure("AllReduce 7",
                  "gpu:0: all_reduce of matmul_dw 'dense_1.weight': NCCL: unhandled system error "
                  "(ncclSystemError) (set TUTTI_NCCL=off to run without NCCL)",
                  TT_EDEVICE, 2);
}

TEST(gpu_joint_group_that_fails)
{
    check_failure("Group 2",
                  "gpu:0: all_reduce of matmul_dw 'dense_1.weight' and 1 more: NCCL: unhandled "
                  "system error (ncclSystemError): ncclShmOpen: no space left on device (set TUTTI",
                  TT_EDEVICE, 2);
}

TEST(gpu_joint_error_that_comes_later)
{
    check_failure("Async 2",
                  "gpu:0: NCCL: remote process exited or there was a network error "
                  "(ncclRemoteError)",
                  TT_EDEVICE, 2);
}

// Work that never ends is let go, so that the context can be closed.
TEST(gpu_joint_work_that_hangs)
{
    check_failure("Hang 2", "gpu:0: its work has not finished after 0.", TT_ETIMEOUT, 2);
}
