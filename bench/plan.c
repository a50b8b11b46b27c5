/*
 * plan.c - how long it takes from a graph to a plan, and how much memory the plan needs against the
 * most bytes that are alive at once, which no plan can go below.
 */
#include "base/ctx.h"
#include "bench.h"
#include "device/device.h"
#include "models.h"
#include "plan/verify/verify.h"
#include "run/run.h"

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

// A layout of GPT-2 on devices that need not be there.
typedef struct layout {
    const char *label, *strategy;
    int hosts, devices, replicas;
    double goal_ms; // 0: none
} layout;

static const layout layouts[] = {
    {"mirrored, 1 device", "mirrored", 1, 1, 0, 200},
    {"mirrored, 8 devices", "mirrored", 1, 8, 0, 200},
    {"mirrored, 64 devices", "mirrored", 1, 64, 0, 1000},
    {"mirrored, 8 hosts x 8", "mirrored", 8, 8, 0, 1000},
    {"pipeline, 8 devices", "pipeline", 1, 8, 1, 200},
    {"pipeline x 8 replicas, 64", "pipeline", 1, 64, 8, 1000},
    {"pipeline x 8 replicas, 8 x 8", "pipeline", 8, 8, 8, 1000},
    {"mirrored, 1,024 devices", "mirrored", 1, 1024, 0, 0},
    {"mirrored, 128 hosts x 8", "mirrored", 128, 8, 0, 0},
    {"pipeline x 128, 128 x 8", "pipeline", 128, 8, 128, 0},
};

typedef struct measured {
    double plan, cpu, check, print; // seconds; cpu: of plan, what it computed
    int64_t nodes, bytes, text;
} measured;

// Seconds that this process has computed: what others do on the machine does not count.
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Makes, checks and prints a plan. Lanes are 64, or as many as there are devices.
static tt_status measure(tt_ctx *ctx, model *m, const tti_topology *top, measured *out)
{
    tt_session *s = tt_session_new(m->g);
    tt_plan_opts opts = {.opts_size = sizeof(opts),
                         .targets = m->targets,
                         .n_targets = m->n_targets,
                         .n_fetched = m->n_targets,
                         .rows = top->lanes};
    tti_plan *p = NULL;
    int64_t before = atomic_load(&ctx->alloc_bytes);
    double start = bench_now(), cpu = cpu_now();
    tt_status st = tti_session_look(s, &opts, top, NULL, &p);
    out->plan = bench_now() - start;
    out->cpu = cpu_now() - cpu;
    if (st == TT_OK) {
        out->bytes = atomic_load(&ctx->alloc_bytes) - before;
        out->nodes = p->n_order;
        start = bench_now();
        st = tti_plan_verify(p, TTI_STAGE_EMIT);
        out->check = bench_now() - start;
        start = bench_now();
        char *text = tti_plan_text(p, TT_PLAN_TEXT);
        out->print = bench_now() - start;
        out->text = text == NULL ? 0 : (int64_t)strlen(text);
        tt_string_free(ctx, text);
    }
    tti_plan_free(p);
    tt_session_free(s);
    return st;
}

static void run_layout(const layout *l)
{
    gpt_size gpt2 = {12, 12, 768, 50257, 1024};
    int n = l->hosts * l->devices;
    tt_ctx *ctx = tt_open(.strategy = l->strategy, .lanes = n > 64 ? n : 64,
                          .spread = tt_spread(.replicas = l->replicas));
    model m;
    tti_topology top = {.made = NULL};
    double times[BENCH_MAX], cpu[BENCH_MAX];
    measured one = {0};
    int rounds = n > 64 ? 3 : bench_n_rounds(BENCH_ROUNDS), done = 0;
    gpt_build(&m, ctx, gpt2);
    tt_status st = tti_topology_make(ctx, &ctx->top, l->hosts, l->devices, &top);
    top.host_memory = 0;
    for (int r = 0; r <= rounds && st == TT_OK; r++) {
        st = measure(ctx, &m, &top, &one);
        if (st == TT_OK && r > 0) { // the first warms up
            cpu[done] = one.cpu;
            times[done++] = one.plan;
        }
    }
    if (st != TT_OK) {
        fprintf(stderr, "%s: %s\n", l->label, tt_last_error(ctx).message);
    } else {
        bench_stat t = bench_stat_of(times, done), c = bench_stat_of(cpu, done);
        bool late = l->goal_ms > 0 && 1e3 * t.median > l->goal_ms;
        printf("  %-28s %8.1f [%7.1f, %7.1f] %8.1f %9.1f %9.1f %9lld %9.1f%s\n", l->label,
               1e3 * t.median, 1e3 * t.low, 1e3 * t.high, 1e3 * c.median, 1e3 * one.check,
               1e3 * one.print, (long long)one.nodes, (double)one.bytes / 1048576,
               late ? "  above its goal" : "");
    }
    fflush(stdout);
    tti_topology_free(ctx, &top);
    tt_close(ctx);
}

// With a word: the layouts that have it in their names alone.
int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    gpt_size gpt2 = {12, 12, 768, 50257, 1024};
    static job jobs[2];
    jobs[0] =
        (job){.label = "GPT-2 124M, 4 x 1024 tokens", .is_gpt = true, .size = gpt2, .rows = 4};
    jobs[1] = (job){.label = "ResNet-50, 32 images", .rows = 32};
    printf("from graph to plan of a training step (goal for GPT-2: 200 ms), and its memory in MiB "
           "(goal: 1.05 of the lower bound)\n");
    printf("  %-28s %7s %8s %16s %9s %9s %9s %7s\n", "", "build", "plan ms", "quartiles",
           "variables", "arena", "bound", "ratio");
    for (int i = 0; i < 2 && argc < 2; i++)
        run(&jobs[i]);
    printf(
        "\nplans of GPT-2 for devices that need not be there, 64 lanes, or one per device (goals: "
        "8 devices in 200 ms, 64 in 1 s)\n");
    printf("  %-28s %8s %18s %8s %9s %9s %9s %9s\n", "", "plan ms", "quartiles", "cpu ms",
           "check ms", "print ms", "nodes", "MiB");
    for (int i = 0; i < (int)(sizeof(layouts) / sizeof(layouts[0])); i++)
        if (strstr(layouts[i].label, word) != NULL)
            run_layout(&layouts[i]);
    return 0;
}
