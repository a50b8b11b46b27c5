/*
 * spread.c - what spreading costs and gains on this machine: mirrored against one device, exact
 * sums against any order, and the idle share of a pipeline.
 *
 *   spread [--only NAME] [--seconds S]
 *
 * The sides of a row take turns, round by round; a ratio is the median of the rounds' ratios, with
 * quartiles. Threads of devices are pinned to cores of their own, the same for every side.
 */
#include "bench.h"
#include "run/run.h"
#include "works.h"
#include <dirent.h>
#include <getopt.h>
#include <unistd.h>

#define ROUNDS 11

typedef struct side {
    const char *name, *devices, *strategy;
    int threads, lanes;
    const tt_spread *spread;
    // out:
    tt_ctx *ctx;
    tt_model *model;
    int64_t step;
    double by_round[ROUNDS]; // seconds of a step, median
    size_t activations;      // of all devices
} side;

// Threads of this context's devices, and the caller, one to a core in the order of their devices.
static void pin_threads(const side *s)
{
    DIR *d = opendir("/proc/self/task");
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[300], name[64] = "";
        int device = 0, helper = 0;
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        bool got = f != NULL && fgets(name, sizeof(name), f) != NULL;
        if (f != NULL)
            fclose(f);
        if (!got || sscanf(name, "cpu:%d/%d", &device, &helper) < 1)
            continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((device * (s->threads / tt_device_count(s->ctx)) + helper) % cores, &set);
        sched_setaffinity(atoi(e->d_name), sizeof(set), &set);
    }
    if (d != NULL)
        closedir(d);
}

static double one_step(side *s, const tt_batch_data *batches, int n)
{
    tt_progress progress;
    double start = bench_now();
    tt_train_step(s->model, &batches[s->step++ % n], &progress);
    return bench_now() - start;
}

static bool open_side(side *s, const work *w, const tt_batch_data *batches, int n)
{
    s->ctx = tt_open(.devices = s->devices, .strategy = s->strategy, .threads = s->threads,
                     .lanes = s->lanes, .spread = s->spread);
    s->model = make_model(s->ctx, w);
    tt_compile(s->model, .loss = TT_CROSS_ENTROPY,
               .optimizer = &(tt_optimizer[]){make_optimizer(w)}[0]);
    one_step(s, batches, n);
    if (tt_status_of(s->ctx) != TT_OK) {
        fprintf(stderr, "%s: %s\n", s->name, tt_last_error(s->ctx).message);
        return false;
    }
    pin_threads(s);
    for (int d = 0; d < tt_device_count(s->ctx); d++) {
        tt_plan_memory mem;
        if (tt_plan_memory_get(tt_model_get_session(s->model), d, &mem) == TT_OK)
            s->activations += mem.activations;
    }
    return true;
}

static void pin_caller(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static int time_sides(side *sides, int n_sides, double seconds, const tt_batch_data *batches, int n)
{
    double slowest = 0;
    for (int i = 0; i < n_sides; i++) {
        double once = one_step(&sides[i], batches, n);
        slowest = once > slowest ? once : slowest;
    }
    int rounds = (int)(seconds / (3 * slowest * n_sides));
    rounds = rounds < 3 ? 3 : rounds > ROUNDS ? ROUNDS : rounds;
    int steps = (int)(seconds / (rounds * n_sides * slowest));
    steps = steps < 2 ? 2 : steps > 400 ? 400 : steps;
    double *times = malloc(sizeof(*times) * (size_t)steps);
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < n_sides; i++) {
            side *s = &sides[(i + r) % n_sides];
            nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL); // the others' threads rest
            for (int k = 0; k < 3; k++)
                one_step(s, batches, n);
            for (int k = 0; k < steps; k++)
                times[k] = one_step(s, batches, n);
            qsort(times, (size_t)steps, sizeof(*times), bench_by_value);
            s->by_round[r] = times[steps / 2];
        }
    }
    free(times);
    return rounds;
}

// Speed of ours over that of base, by round.
static bench_stat speed(const side *ours, const side *base, int rounds)
{
    double r[ROUNDS];
    for (int i = 0; i < rounds; i++)
        r[i] = base->by_round[i] / ours->by_round[i];
    return bench_stat_of(r, rounds);
}

static void print_side(const side *s, const side *base, int rounds)
{
    bench_stat t = bench_stat_of(s->by_round, rounds), r = speed(s, base, rounds);
    printf("    %-34s %10.3f ms  %6.3fx  [%.3f, %.3f]  %8.2f MiB\n", s->name, 1e3 * t.median,
           r.median, r.low, r.high, (double)s->activations / 1048576.0);
}

static bool run_row(const char *work_name, side *sides, int n_sides, double seconds)
{
    const work *w = find_work(work_name);
    tt_batch_data batches[MAX_BATCHES];
    int n = make_batches(w, batches);
    bool ok = true;
    for (int i = 0; ok && i < n_sides; i++)
        ok = open_side(&sides[i], w, batches, n);
    if (ok) {
        int rounds = time_sides(sides, n_sides, seconds, batches, n);
        printf("  %s\n", work_name);
        for (int i = 0; i < n_sides; i++)
            print_side(&sides[i], &sides[0], rounds);
        if (n_sides > 2) {
            bench_stat r = speed(&sides[2], &sides[1], rounds);
            printf("    mirrored against one core %26.3fx  [%.3f, %.3f]\n", r.median, r.low,
                   r.high);
        }
        fflush(stdout);
    }
    for (int i = 0; i < n_sides && sides[i].ctx != NULL; i++)
        ok = tt_close(sides[i].ctx) == TT_OK && ok;
    batches_free(batches, n);
    return ok;
}

// ---- the tables ------------------------------------------------------------------------------

static bool mirrored(double seconds)
{
    static const char *const names[] = {"mlp-b32", "mlp-b256", "cnn-b32", "chargpt-b12"};
    bool ok = true;
    printf("mirrored on two devices of one core each; speed against one device with both cores\n");
    for (int i = 0; i < 4; i++) {
        side s[] = {{.name = "one device, 2 cores", .devices = "cpu:0", .threads = 2},
                    {.name = "one device, 1 core", .devices = "cpu:0", .threads = 1},
                    {.name = "mirrored, 2 devices",
                     .devices = "cpu:0*2",
                     .threads = 2,
                     .strategy = "mirrored"},
                    {.name = "central, 2 devices",
                     .devices = "cpu:0*2",
                     .threads = 2,
                     .strategy = "central"}};
        ok = run_row(names[i], s, 4, seconds) && ok;
    }
    return ok;
}

static bool exact(double seconds)
{
    static const char *const names[] = {"mlp-b32", "cnn-b32", "chargpt-b12"};
    bool ok = true;
    printf("exact sums over 8 lanes; speed against reduce fast with one lane a device\n");
    for (int i = 0; i < 3; i++) {
        tt_spread *fast = tt_spread(.reduce = TT_REDUCE_FAST);
        side one[] = {{.name = "fast, 1 device", .devices = "cpu:0", .threads = 2, .spread = fast},
                      {.name = "exact, 1 device", .devices = "cpu:0", .threads = 2}};
        side two[] = {{.name = "fast, mirrored on 2",
                       .devices = "cpu:0*2",
                       .threads = 2,
                       .strategy = "mirrored",
                       .spread = fast},
                      {.name = "exact, mirrored on 2",
                       .devices = "cpu:0*2",
                       .threads = 2,
                       .strategy = "mirrored"}};
        ok = run_row(names[i], one, 2, seconds) && ok;
        ok = run_row(names[i], two, 2, seconds) && ok;
    }
    return ok;
}

// Shares of the devices' time that they wait, and the share the schedule says.
static bool pipeline(double seconds)
{
    static const char *const names[] = {"1f1b", "gpipe"};
    const work *w = find_work("gpt-12x128-b8");
    tt_batch_data batches[MAX_BATCHES];
    int n = make_batches(w, batches);
    bool ok = true;
    printf("pipeline of two stages, 8 lanes, one core each: idle share of the devices' time\n");
    for (int i = 0; ok && i < 2; i++) {
        side s = {.name = names[i],
                  .devices = "cpu:0*2",
                  .threads = 2,
                  .strategy = "pipeline",
                  .spread = tt_spread(.schedule = (tt_pipe)i)};
        ok = open_side(&s, w, batches, n);
        double idle[ROUNDS], busy[2];
        int rounds = 0;
        for (double end = bench_now() + seconds; ok && rounds < ROUNDS && bench_now() < end;) {
            tt_session *session = tt_model_get_session(s.model);
            for (int k = 0; k < 2; k++)
                one_step(&s, batches, n);
            tti_clocks_clear(session);
            double start = bench_now();
            for (int k = 0; k < 4; k++)
                one_step(&s, batches, n);
            double all = bench_now() - start;
            for (int d = 0; d < 2; d++) {
                tti_spent t = tti_clock_read(session, d, (int64_t)(1e9 * all));
                busy[d] = 1e-9 * (double)(t.compute + t.communication);
            }
            idle[rounds++] = 1 - (busy[0] + busy[1]) / (2 * all);
        }
        if (ok) {
            bench_stat t = bench_stat_of(idle, rounds);
            printf("    %-34s %6.1f %%  [%.1f, %.1f]; (p - 1) / (m + p - 1) is %.1f %%\n", names[i],
                   100 * t.median, 100 * t.low, 100 * t.high, 100.0 / 9);
        }
        ok = tt_close(s.ctx) == TT_OK && ok;
    }
    batches_free(batches, n);
    return ok;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(double seconds);
    } tables[] = {{"mirrored", mirrored}, {"exact", exact}, {"pipeline", pipeline}};
    static const struct option flags[] = {{"only", required_argument, NULL, 'o'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {NULL, 0, NULL, 0}};
    const char *only = NULL;
    double seconds = 6;
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        if (c == 'o')
            only = optarg;
        else if (c == 's')
            seconds = atof(optarg);
        else
            return 2;
    }
    pin_caller();
    bool ok = true;
    for (int i = 0; i < 3; i++)
        if (only == NULL || strcmp(only, tables[i].name) == 0)
            ok = tables[i].run(seconds) && ok;
    return ok ? 0 : 1;
}
