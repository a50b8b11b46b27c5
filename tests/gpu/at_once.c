/*
 * at_once.c - calls of one kernel that follow each other on a device are made at once: those of a
 * list, wherever other devices' entries stand between them, each with scratch of its own.
 */
#include "op/batched_calls.h"
#include "run/run.h"
#include "test.h"
#include <stdio.h>
#include <string.h>

#define N 12

static tt_kernel_fn really; // the kernel that takes several calls
static int n_calls, most;

static tt_status counting(const tt_launch *l)
{
    const tti_batched_calls *calls = l->tune;
    n_calls++;
    most = TTI_MAX(most, calls->n);
    return really(l);
}

// From now on such calls are counted.
static void count_calls(tt_session *s)
{
    for (int d = 0; d < s->ctx->top.n_devices; d++)
        for (int i = 0; i < s->plans->exe.lists[d].n_entries; i++) {
            tti_call *c = s->plans->exe.lists[d].entries[i].calls;
            if (s->plans->exe.lists[d].entries[i].n_calls != 1 || c->batched == NULL)
                continue;
            really = c->batched;
            c->batched = counting;
        }
    n_calls = most = 0;
}

// Sums of squares of variables that lie on the devices in turn, by two runs.
static void squares(const char *devices, int n_devices, double *to)
{
    tt_ctx *ctx = tt_open(.devices = devices, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *y[N];
    tt_fetch fetches[N];
    for (int i = 0; i < N; i++) {
        char device[16];
        snprintf(device, sizeof(device), "%.3s:%d", devices, i % n_devices);
        CHECK_OK(tt_device_push(g, device));
        tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(i % 3 == 1 ? 40000 + i : 10 + i),
                                   .init = {TT_INIT_UNIFORM, -1, 1});
        y[i] = tt_square_sum(g, w);
        CHECK_OK(tt_device_pop(g));
        fetches[i] = (tt_fetch){.tensor = y[i], .data = &to[i], .bytes = sizeof(to[i])};
    }
    tt_session *s = tt_session_new(g);
    for (int run = 0; run < 2; run++) {
        memset(to, 0, sizeof(*to) * N);
        ck_assert_msg(tt_run(s, .fetches = fetches, .n_fetches = N) == TT_OK, "%s: %s", devices,
                      tt_last_error(ctx).message);
        if (run == 0)
            count_calls(s);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(gpu_calls_are_made_at_once)
{
    static const char *const devices[] = {"gpu:0", "gpu:0*2", "gpu:0*3"};
    double want[N], got[N];
    test_need_gpu();
    squares("cpu:0", 1, want);
    CHECK(n_calls == 0);
    for (int n = 1; n <= 3; n++) {
        squares(devices[n - 1], n, got);
        CHECK(memcmp(want, got, sizeof(want)) == 0);
        CHECK_INT(n_calls, n); // one of each device, with all of its sums
        CHECK_INT(most, N / n);
    }
}
