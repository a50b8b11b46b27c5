/*
 * recompute.c - what recomputation saves and costs: steps of a GPT of 12 blocks that keep all
 * activations, and that compute them again in one way or another, all in turn.
 */
#include "bench.h"
#include "works.h"

#define ROWS 12

typedef struct way {
    const char *recompute;
    tt_ctx *ctx;
    tt_model *model;
    tt_hash hash;
    size_t activations;
} way;

static work gpt;
static tt_batch_data batches[MAX_BATCHES];

static void step(void *arg)
{
    way *w = arg;
    tt_train_step(w->model, &batches[0], NULL);
}

static bool open_way(way *w)
{
    w->ctx = tt_open(.devices = "cpu:0");
    w->model = make_model(w->ctx, &gpt);
    tt_compile(w->model, .loss = TT_CROSS_ENTROPY,
               .optimizer = &(tt_optimizer[]){make_optimizer(&gpt)}[0], .recompute = w->recompute);
    step(w);
    tt_plan_memory m = {0};
    tt_plan_memory_get(tt_model_get_session(w->model), 0, &m);
    w->activations = m.activations;
    if (tt_status_of(w->ctx) != TT_OK)
        fprintf(stderr, "recompute %s: %s\n", w->recompute, tt_last_error(w->ctx).message);
    return tt_status_of(w->ctx) == TT_OK;
}

int main(void)
{
    way ways[] = {{.recompute = "none"},
                  {.recompute = "all"},
                  {.recompute = "block.*"},
                  {.recompute = "budget 20MiB"},
                  {.recompute = "budget 40MiB"}};
    enum {
        N = sizeof(ways) / sizeof(ways[0])
    };
    bench_side sides[N];
    gpt = *find_work("gpt-12x128-b8");
    gpt.rows = ROWS;
    gpt.batches = make_batches(&gpt, batches);
    for (int i = 0; i < N; i++) {
        if (!open_way(&ways[i]))
            return 1;
        sides[i] = (bench_side){.name = ways[i].recompute, .fn = step, .arg = &ways[i]};
    }
    bench_rounds(sides, N, bench_n_rounds(BENCH_ROUNDS), 1);
    printf("recomputation in a GPT: 12 blocks, width 128, %d rows of %d (goal for all: 1/3 of the "
           "memory, 1.35 of the time)\n",
           ROWS, gpt.context);
    printf("  %-14s %9s %7s %9s %7s [quartiles]\n", "recompute", "MiB", "of none", "ms/step",
           "of none");
    for (int i = 0; i < N; i++) {
        bench_stat t = bench_time(&sides[i]), r = bench_ratio(&sides[0], &sides[i]);
        tt_model_hash(ways[i].model, &ways[i].hash);
        bool same = ways[i].hash.low == ways[0].hash.low && ways[i].hash.high == ways[0].hash.high;
        printf("  %-14s %9.1f %7.2f %9.1f %7.2f [%.2f, %.2f]%s\n", ways[i].recompute,
               (double)ways[i].activations / 1048576,
               (double)ways[i].activations / (double)ways[0].activations, 1e3 * t.median, r.median,
               r.low, r.high, same ? "" : "  other bits");
    }
    for (int i = 0; i < N; i++)
        tt_close(ways[i].ctx);
    batches_free(batches, gpt.batches);
    return 0;
}
