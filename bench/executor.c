/*
 * executor.c - what the executor itself costs: a chain of 1,000 tiny ops on one device, and an edge
 * between two logical devices, passed back and forth.
 */
#include "bench.h"
#include <tutti/tutti.h>

typedef struct chain {
    tt_ctx *ctx;
    tt_session *s;
    tt_tensor *end;
    int n;
} chain;

static void run(void *arg)
{
    chain *c = arg;
    tt_run(c->s, .targets = &c->end, .n_targets = 1);
}

/*
 * n additions of 16 numbers, one after the other; node i is on device i mod n_devices. Not fused,
 * so that each is an entry of its own.
 */
static void open_chain(chain *c, const char *devices, int n_devices, int n)
{
    c->ctx = tt_open(.devices = devices);
    c->n = n;
    tt_graph *g = tt_graph_new(c->ctx);
    tt_tensor *one = tt_variable(g, .shape = TT_SHAPE(16), .init = {TT_INIT_CONSTANT, 1, 0});
    tt_tensor *x = one;
    for (int i = 0; i < n; i++) {
        char device[16];
        snprintf(device, sizeof(device), "cpu:%d", i % n_devices);
        x = tt_add(g, x, one);
        tt_pin(x, device);
    }
    c->end = x;
    c->s = tt_session_new(g, .no_fuse = true);
}

static void close_chain(chain *c)
{
    if (tt_status_of(c->ctx) != TT_OK)
        fprintf(stderr, "executor: %s\n", tt_last_error(c->ctx).message);
    tt_close(c->ctx);
}

static void row(const char *label, bench_side *side, double per, double less, double goal)
{
    for (int i = 0; i < side->n; i++)
        side->times[i] = 1e9 * (side->times[i] - less) / per;
    bench_stat t = bench_time(side);
    printf("  %-44s %8.0f ns   [%6.0f, %6.0f]", label, t.median, t.low, t.high);
    if (goal > 0)
        printf("   goal %5.0f ns%s", goal, t.median > goal ? "  above" : "");
    printf("\n");
    fflush(stdout);
}

int main(void)
{
    chain one, thousand, hops;
    open_chain(&one, "cpu:0", 1, 1);
    open_chain(&thousand, "cpu:0", 1, 1000);
    open_chain(&hops, "cpu:0*2", 2, 200);
    bench_side sides[] = {{.name = "one", .fn = run, .arg = &one},
                          {.name = "thousand", .fn = run, .arg = &thousand},
                          {.name = "hops", .fn = run, .arg = &hops}};
    bench_rounds(sides, 3, BENCH_ROUNDS, 10);
    printf("executor\n");
    double start = bench_time(&sides[0]).median;
    row("a node, in a chain of 1,000 on one device", &sides[1], 1000, 0, 300);
    row("an edge between two devices, 199 in a chain", &sides[2], 199, start, 2000);
    row("a run of one node", &sides[0], 1, 0, 0);
    close_chain(&one);
    close_chain(&thousand);
    close_chain(&hops);
    return 0;
}
