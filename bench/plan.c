/*
 * plan.c - how long it takes from a graph to a plan, and how much memory the plan needs against the
 * most bytes that are alive at once, which no plan can go below.
 */
#include "bench.h"
#include "models.h"

typedef struct job {
    const char *label;
    bool is_gpt;
    gpt_size size;
    int64_t rows;
    model m;
} job;

static double make_plan(job *j, tt_plan_memory *memory)
{
    double start = bench_now();
    tt_session *s = tt_session_new(j->m.g);
    char *text =
        tt_plan_print(s, .targets = j->m.targets, .n_targets = j->m.n_targets, .rows = j->rows);
    double seconds = bench_now() - start;
    tt_plan_memory_get(s, 0, memory);
    tt_string_free(tt_graph_get_ctx(j->m.g), text);
    tt_session_free(s);
    return seconds;
}

static void run(job *j)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0");
    double start = bench_now();
    if (j->is_gpt)
        gpt_build(&j->m, ctx, j->size);
    else
        resnet50_build(&j->m, ctx);
    double built = bench_now() - start;
    tt_plan_memory memory = {0};
    double times[BENCH_MAX];
    int rounds = bench_n_rounds(BENCH_ROUNDS);
    make_plan(j, &memory);
    for (int r = 0; r < rounds && tt_status_of(ctx) == TT_OK; r++)
        times[r] = make_plan(j, &memory);
    if (tt_status_of(ctx) != TT_OK) {
        fprintf(stderr, "%s: %s\n", j->label, tt_last_error(ctx).message);
    } else {
        bench_stat t = bench_stat_of(times, rounds);
        printf(
            "  %-28s %7.1f %8.1f [%6.1f, %6.1f] %9.1f %9.1f %9.1f %7.3f%s\n", j->label, 1e3 * built,
            1e3 * t.median, 1e3 * t.low, 1e3 * t.high, (double)memory.variables / 1048576,
            (double)memory.activations / 1048576, (double)memory.lower_bound / 1048576,
            (double)memory.activations / (double)memory.lower_bound,
            (double)memory.activations > 1.05 * (double)memory.lower_bound ? "  above 1.05" : "");
    }
    fflush(stdout);
    tt_close(ctx);
}

int main(void)
{
    gpt_size gpt2 = {12, 12, 768, 50257, 1024};
    static job jobs[2];
    jobs[0] =
        (job){.label = "GPT-2 124M, 4 x 1024 tokens", .is_gpt = true, .size = gpt2, .rows = 4};
    jobs[1] = (job){.label = "ResNet-50, 32 images", .rows = 32};
    printf("from graph to plan of a training step (goal for GPT-2: 200 ms), and its memory in MiB "
           "(goal: 1.05 of the lower bound)\n");
    printf("  %-28s %7s %8s %16s %9s %9s %9s %7s\n", "", "build", "plan ms", "quartiles",
           "variables", "arena", "bound", "ratio");
    for (int i = 0; i < 2; i++)
        run(&jobs[i]);
    return 0;
}
