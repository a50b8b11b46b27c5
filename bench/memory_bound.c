/*
 * memory_bound.c - ops that should run at the speed of memory, against copying with memcpy by as
 * many threads in the same rounds. Bytes are counted the same way on both sides: each byte that
 * must be read and each that must be written, once.
 */
#include "bench.h"
#include <tutti/tutti.h>

typedef struct work {
    tt_session *s;
    tt_tensor *target;
} work;

static void run(void *arg)
{
    work *w = arg;
    tt_run(w->s, .targets = &w->target, .n_targets = 1, .lr = 1e-3f);
}

static tt_tensor *variable(tt_graph *g, tt_shape shape, double a, double b)
{
    return tt_variable(g, .shape = shape, .init = {TT_INIT_UNIFORM, a, b});
}

#define ROWS 16384
#define COLS 1024
#define N    ((int64_t)ROWS * COLS)

typedef struct entry {
    const char *label;
    tt_tensor *(*build)(tt_graph *g);
    double bytes; // read and written
} entry;

static tt_tensor *add(tt_graph *g)
{
    return tt_add(g, variable(g, TT_SHAPE(N), -1, 1), variable(g, TT_SHAPE(N), -1, 1));
}

static tt_tensor *gelu(tt_graph *g)
{
    return tt_gelu(g, variable(g, TT_SHAPE(N), -2, 2));
}

static tt_tensor *chain(tt_graph *g)
{
    tt_tensor *x = variable(g, TT_SHAPE(N), -1, 1), *y = variable(g, TT_SHAPE(N), -1, 1);
    return tt_relu(g, tt_scale(g, tt_add(g, tt_mul(g, x, y), y), 0.5, 0.25));
}

static tt_tensor *layer_norm(tt_graph *g)
{
    return tt_layer_norm(g, variable(g, TT_SHAPE(ROWS, COLS), -1, 1),
                         variable(g, TT_SHAPE(COLS), 0.5, 1.5), variable(g, TT_SHAPE(COLS), -1, 1));
}

static tt_tensor *softmax(tt_graph *g)
{
    return tt_softmax(g, variable(g, TT_SHAPE(ROWS, COLS), -1, 1));
}

static tt_tensor *labels(tt_graph *g)
{
    static int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++)
        y[i] = i % COLS;
    return tt_const(g, TT_I32, TT_SHAPE(ROWS), y);
}

static tt_tensor *cross_entropy(tt_graph *g)
{
    return tt_cross_entropy(g, variable(g, TT_SHAPE(ROWS, COLS), -1, 1), labels(g));
}

// Loss and gradient by the logits: they are read twice and written once.
static tt_tensor *cross_entropy_grad(tt_graph *g)
{
    tt_tensor *x = variable(g, TT_SHAPE(ROWS, COLS), -1, 1), *dx = NULL;
    tt_grad(g, tt_mean(g, tt_cross_entropy(g, x, labels(g))), NULL, 1, &x, &dx);
    return dx;
}

static tt_tensor *adam(tt_graph *g)
{
    return tt_update_adam(g, variable(g, TT_SHAPE(N), -1, 1), variable(g, TT_SHAPE(N), -1, 1));
}

static void bench_all(int threads)
{
    static const entry entries[] = {
        {"add", add, 3},
        {"gelu", gelu, 2},
        {"mul add scale relu, fused", chain, 3},
        {"layer norm", layer_norm, 2},
        {"softmax", softmax, 2},
        {"cross entropy", cross_entropy, 1},
        {"cross entropy and gradient", cross_entropy_grad, 3},
        {"adam", adam, 7}, // reads w g m v, writes w m v
    };
    printf("memory-bound ops, %d thread%s, %d x %d f32: share of the copy rate\n", threads,
           threads == 1 ? "" : "s", ROWS, COLS);
    printf("  %-32s %9s %9s %9s  %6s %15s %6s\n", "", "us", "GB/s", "copy GB/s", "ratio",
           "quartiles", "goal");
    bench_copy copy;
    bench_copy_open(&copy, threads, (size_t)N * 4);
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        tt_ctx *ctx = tt_open(.devices = "cpu:0", .threads = threads);
        tt_graph *g = tt_graph_new(ctx);
        work w = {.target = entries[i].build(g)};
        w.s = tt_session_new(g);
        bench_side sides[] = {{.name = entries[i].label, .fn = run, .arg = &w},
                              {.name = "copy", .fn = bench_copy_run, .arg = &copy}};
        bench_rounds(sides, 2, BENCH_ROUNDS, 1);
        // Per byte: a call of ours moves bytes * N, a copy 2 * N numbers.
        for (int r = 0; r < sides[0].n; r++) {
            sides[0].times[r] /= entries[i].bytes * (double)N * 4;
            sides[1].times[r] /= 2.0 * (double)N * 4;
        }
        bench_stat ratio = bench_ratio(&sides[0], &sides[1]);
        double ours = bench_time(&sides[0]).median;
        printf("  %-32s %9.0f %9.1f %9.1f  %6.2f   [%5.2f, %5.2f] %6.2f%s\n", entries[i].label,
               1e6 * ours * entries[i].bytes * (double)N * 4, 1e-9 / ours,
               1e-9 / bench_time(&sides[1]).median, ratio.median, ratio.low, ratio.high, 0.8,
               ratio.median < 0.8 ? "  below" : "");
        fflush(stdout);
        if (tt_status_of(ctx) != TT_OK)
            fprintf(stderr, "%s: %s\n", entries[i].label, tt_last_error(ctx).message);
        tt_close(ctx);
    }
    bench_copy_close(&copy);
}

int main(void)
{
    bench_all(1);
    bench_all(2);
    return 0;
}
