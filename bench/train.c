/*
 * train.c - training steps of known models through the public interface, on ready batches, with one
 * lane and with eight, and with eight without the guard against gradients that are not finite: what
 * a user waits for, what lanes cost and what the guard costs. bench/peers/run sets the same works
 * beside other frameworks.
 *
 *   train [--only NAME] [--all] [--seconds S] [--lanes N] [--threads N] [--lines]
 *
 * Each work is timed for S seconds, all of these in turn. --only takes a work by name,
 * --all adds the long ones, --lines prints for programs: side, work, median, quartiles, minimum
 * (us), steps, first step (ms), apart by tabs. The hop is how far two cores are apart, before or
 * after the work, whichever is more (bench.h): steps of small models depend on it.
 */
#include "bench.h"
#include "train/compile.h"
#include "works.h"
#include <getopt.h>

#define MAX_STEPS 65536
#define ROUNDS    11

typedef struct settings {
    const char *only;
    bool all, lines;
    double seconds;
    int lanes, threads;
} settings;

// One number of lanes, training one work.
typedef struct side {
    int lanes;
    bool no_guard; // as with nan: continue
    tt_ctx *ctx;
    tt_model *model;
    int64_t step;            // how many were made
    double first;            // seconds from tt_compile() to the end of the first step
    double *times;           // of single steps
    int n;                   //
    double by_round[ROUNDS]; // median
} side;

// ---- timing ----------------------------------------------------------------------------------

static double step(side *s, const tt_batch_data *batches, int n)
{
    tt_progress progress;
    double start = bench_now();
    tt_train_step(s->model, &batches[s->step++ % n], &progress);
    return bench_now() - start;
}

static void open_side(side *s, const work *w, const settings *set, const tt_batch_data *batches,
                      int n)
{
    s->ctx = tt_open(.lanes = s->lanes, .threads = set->threads);
    s->times = malloc(sizeof(double) * MAX_STEPS);
    s->model = make_model(s->ctx, w);
    double start = bench_now();
    tt_compile(s->model, .loss = TT_CROSS_ENTROPY,
               .optimizer = &(tt_optimizer[]){make_optimizer(w)}[0]);
    if (s->no_guard && tti_compile_again(s->model, false, false, false) != TT_OK)
        fprintf(stderr, "train: %s\n", tt_last_error(s->ctx).message);
    step(s, batches, n);
    s->first = bench_now() - start;
}

static bool close_side(side *s)
{
    if (tt_status_of(s->ctx) != TT_OK)
        fprintf(stderr, "train: %s\n", tt_last_error(s->ctx).message);
    free(s->times);
    return tt_close(s->ctx) == TT_OK;
}

static bench_stat stat_of(double *x, int n)
{
    qsort(x, (size_t)n, sizeof(double), bench_by_value);
    return (bench_stat){x[n / 2], x[n / 4], x[n - 1 - n / 4]};
}

static void time_round(side *s, int round, const tt_batch_data *batches, int n, double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL); // the other side's threads rest
    step(s, batches, n);
    int first = s->n;
    double end = bench_now() + seconds;
    do
        s->times[s->n++] = step(s, batches, n);
    while (bench_now() < end && s->n - first < MAX_STEPS / ROUNDS);
    double *own = s->times + first; // sorting a round's times leaves the whole as it is
    s->by_round[round] = stat_of(own, s->n - first).median;
}

// Both sides in turn; as many rounds as the slower one's steps allow, three at least.
static int time_sides(side *sides, int n_sides, const settings *set, const tt_batch_data *batches,
                      int n)
{
    double once = 0;
    for (int i = 0; i < n_sides; i++)
        once += step(&sides[i], batches, n);
    int rounds = once > 0 ? (int)(set->seconds / (2 * once)) : ROUNDS;
    rounds = rounds < 3 ? 3 : rounds > ROUNDS ? ROUNDS : rounds;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < n_sides; i++)
            time_round(&sides[(i + r) % n_sides], r, batches, n, set->seconds / (rounds * n_sides));
    return rounds;
}

// ---- printing --------------------------------------------------------------------------------

static void print_side(const work *w, side *s, const settings *set, double hop)
{
    bench_stat t = stat_of(s->times, s->n);
    if (set->lines)
        printf("tutti-%d\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%.1f\n", s->lanes, w->name,
               1e6 * t.median, 1e6 * t.low, 1e6 * t.high, 1e6 * s->times[0], s->n, 1e3 * s->first);
    else
        printf("  %-16s %5d %12.1f   [%10.1f, %10.1f] %12.1f %8d %10.1f %8.0f%s\n", w->name,
               s->lanes, 1e6 * t.median, 1e6 * t.low, 1e6 * t.high, 1e6 * s->times[0], s->n,
               1e3 * s->first, hop, s->no_guard ? "  no guard" : "");
    fflush(stdout);
}

// Times one work: the time with eight lanes over that with one, and over that without the guard.
static bool run_work(const work *w, const settings *set, bench_stat *lanes, bench_stat *guard)
{
    tt_batch_data batches[MAX_BATCHES];
    int n = make_batches(w, batches), n_sides = set->lanes > 0 ? 1 : set->lines ? 2 : 3;
    side sides[3] = {
        {.lanes = set->lanes > 0 ? set->lanes : 1}, {.lanes = 8}, {.lanes = 8, .no_guard = true}};
    bool ok = true;
    for (int i = 0; i < n_sides; i++)
        open_side(&sides[i], w, set, batches, n);
    double hop = bench_hop();
    int rounds = time_sides(sides, n_sides, set, batches, n);
    double hop_after = bench_hop();
    for (int i = 0; i < n_sides; i++)
        print_side(w, &sides[i], set, hop > hop_after ? hop : hop_after);
    double ratios[ROUNDS];
    for (int k = 0; k < 2 && n_sides == 3; k++) {
        for (int r = 0; r < rounds; r++)
            ratios[r] = sides[1].by_round[r] / sides[k == 0 ? 0 : 2].by_round[r];
        *(k == 0 ? lanes : guard) = stat_of(ratios, rounds);
    }
    for (int i = 0; i < n_sides; i++)
        ok = close_side(&sides[i]) && ok;
    batches_free(batches, n);
    return ok;
}

static bool read_settings(int argc, char **argv, settings *s)
{
    static const struct option flags[] = {
        {"only", required_argument, NULL, 'o'},
        {"all", no_argument, NULL, 'a'},
        {"seconds", required_argument, NULL, 's'},
        {"lanes", required_argument, NULL, 'l'},
        {"threads", required_argument, NULL, 't'},
        {"lines", no_argument, NULL, 'p'},
        {NULL, 0, NULL, 0},
    };
    *s = (settings){.seconds = 3, .threads = 2};
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        switch (c) {
        case 'o':
            s->only = optarg;
            break;
        case 'a':
            s->all = true;
            break;
        case 's':
            s->seconds = atof(optarg);
            break;
        case 'l':
            s->lanes = atoi(optarg);
            break;
        case 't':
            s->threads = atoi(optarg);
            break;
        case 'p':
            s->lines = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc && s->seconds > 0 && s->lanes >= 0 && s->threads > 0;
}

static bool is_wanted(const work *w, const settings *s)
{
    return s->only != NULL ? strcmp(s->only, w->name) == 0 : s->all || !w->is_long;
}

int main(int argc, char **argv)
{
    settings set;
    bench_stat ratios[N_WORKS], guards[N_WORKS];
    int found = 0, failed = 0;
    if (!read_settings(argc, argv, &set)) {
        fprintf(stderr, "usage: train [--only NAME] [--all] [--seconds S] [--lanes N] "
                        "[--threads N] [--lines]\n");
        return 2;
    }
    if (!set.lines)
        printf("training, us per step, %d threads\n  %-16s %5s %12s   %24s %12s %8s %10s %8s\n",
               set.threads, "", "lanes", "median", "quartiles", "min", "steps", "first ms",
               "hop ns");
    for (int i = 0; i < N_WORKS; i++) {
        if (!is_wanted(&works[i], &set))
            continue;
        found++;
        if (!run_work(&works[i], &set, &ratios[i], &guards[i]))
            failed = 1;
    }
    if (found == 0) {
        fprintf(stderr, "train: no work is called %s\n", set.only);
        return 2;
    }
    if (set.lines || set.lanes > 0)
        return failed;
    for (int k = 0; k < 2; k++) {
        const bench_stat *r = k == 0 ? ratios : guards;
        printf("%s: time of a step\n",
               k == 0 ? "8 lanes over 1 lane" : "8 lanes with the guard over those without");
        for (int i = 0; i < N_WORKS; i++)
            if (is_wanted(&works[i], &set))
                printf("  %-16s %7.3f   [%6.3f, %6.3f]\n", works[i].name, r[i].median, r[i].low,
                       r[i].high);
    }
    return failed;
}
