/*
 * gpu.c - training on a GPU beside PyTorch, in one run and as one table: GPT-2 124M, ResNet-50
 * and a small MLP; rates, memory, time to the first step, what sums by lanes cost, and what the
 * guard against gradients that are not finite costs.
 *
 *   gpu [--only WORK] [--steps N] [--rounds N] [--tiny] [--no-peer] [--no-lanes] [--no-first]
 *       [--no-guard]
 *   gpu --profile --only WORK [--steps N] [--tiny] [--lanes N] [--fast]
 *
 * --only takes a work of gpu_works.h. --tiny takes sizes for the emulation. --profile prints where
 * the time of a step goes, by op and shapes. Sides are processes (gpu_side.h), timed in turn;
 * where the memory does not allow it, one after the other, and the table says so. --device names
 * another GPU; PYTHON the interpreter that has PyTorch. A side prints what it did with --serve.
 */
#include "gpu_profile.h"
#include "gpu_side.h"
#include "gpu_works.h"
#include <getopt.h>

typedef struct settings {
    const char *only, *device, *serve;
    int steps, rounds, lanes;
    bool tiny, fast, no_peer, no_lanes, no_first, profile;
    bool no_guard; // of a side: as with nan: continue; of the table: its cost is not measured
    const char *self;
} settings;

// ---- our side --------------------------------------------------------------------------------

typedef struct trainer {
    tt_ctx *ctx;
    tt_model *model;
    tt_batch_data batches[GPU_BATCHES];
    int64_t step;
} trainer;

static void ignore(void *user, const tt_event *ev)
{
    (void)user;
    if (strcmp(ev->kind, "log") == 0)
        fprintf(stderr, "%s\n", ev->text);
}

static bool step(trainer *t)
{
    tt_progress progress;
    return tt_train_step(t->model, &t->batches[t->step++ % GPU_BATCHES], &progress) == TT_OK;
}

static bool trainer_open(trainer *t, const gpu_work *w, const settings *set)
{
    tt_spread *spread = tt_spread(.reduce = set->fast ? TT_REDUCE_FAST : TT_REDUCE_EXACT);
    t->ctx = tt_open(.devices = set->device, .lanes = set->lanes, .spread = spread,
                     .on_event = ignore, .seed = 1, .soft = TT_SOFT_OFF);
    t->model = gpu_model(t->ctx, w);
    gpu_make_batches(w, t->batches);
    return gpu_compile(t->model, w) == TT_OK &&
           (!set->no_guard || tti_compile_again(t->model, false, false, false) == TT_OK) && step(t);
}

static int trainer_close(trainer *t)
{
    if (tt_status_of(t->ctx) != TT_OK)
        printf("failed %s\n", tt_last_error(t->ctx).message);
    batches_free(t->batches, GPU_BATCHES);
    return tt_close(t->ctx) == TT_OK ? 0 : 1;
}

static void answer_steps(trainer *t, int n)
{
    printf("times");
    for (int i = 0; i < n; i++) {
        double start = bench_now();
        if (!step(t)) {
            printf("\n");
            return;
        }
        printf(" %.5f", 1e3 * (bench_now() - start));
    }
    printf("\n");
}

static int serve(const gpu_work *w, const settings *set)
{
    static trainer t;
    const char *since = getenv("BENCH_SINCE");
    double start = since != NULL ? atof(since) : bench_now();
    char line[64];
    bool ok = trainer_open(&t, w, set);
    if (ok)
        printf("ready %.4f\n", bench_now() - start);
    fflush(stdout);
    while (ok && tt_status_of(t.ctx) == TT_OK && fgets(line, sizeof(line), stdin) != NULL) {
        tt_device_info info = {.name = ""};
        tt_device_get(t.ctx, 0, &info);
        if (strncmp(line, "steps ", 6) == 0)
            answer_steps(&t, atoi(line + 6));
        else
            printf("memory %zu %lld\n", info.variables + info.arena,
                   (long long)tt_model_parameters(t.model));
        fflush(stdout);
    }
    return trainer_close(&t);
}

static int profile(const gpu_work *w, const settings *set)
{
    static trainer t;
    double times[BENCH_MAX];
    int n = set->steps > 0 ? set->steps : 5, timed = TTI_MIN(n + 2, BENCH_MAX);
    bool ok = trainer_open(&t, w, set);
    for (int i = 0; ok && i < timed; i++) {
        double start = bench_now();
        ok = step(&t);
        times[i] = bench_now() - start;
    }
    if (ok)
        printf("%s on %s, %d lanes%s\n", w->name, set->device, set->lanes,
               set->fast ? ", fast" : "");
    if (ok)
        ok = profile_model(t.model, t.batches, GPU_BATCHES, n,
                           bench_stat_of(times + 2, timed - 2).median) == TT_OK;
    return trainer_close(&t);
}

// ---- sides -----------------------------------------------------------------------------------

static void make_ours(gpu_side *s, const char *name, const gpu_work *w, const settings *set,
                      bool fast, bool guard)
{
    int n = 0;
    *s = (gpu_side){.name = name};
    s->argv[n++] = set->self;
    s->argv[n++] = "--serve";
    s->argv[n++] = w->name;
    s->argv[n++] = "--device";
    s->argv[n++] = set->device;
    s->argv[n++] = "--lanes";
    s->argv[n++] = fast ? "1" : "8";
    if (fast)
        s->argv[n++] = "--fast";
    if (!guard)
        s->argv[n++] = "--no-guard";
    if (set->tiny)
        s->argv[n++] = "--tiny";
}

static void make_peer(gpu_side *s, const gpu_work *w, const char *mode)
{
    static char numbers[9][16];
    const int64_t values[] = {w->rows,  w->layers,  w->heads,
                              w->width, w->context, w->vocab,
                              w->side,  w->classes, w->precision == TT_PRECISION_BF16};
    static const char *const flags[] = {"--rows",  "--layers", "--heads",   "--width", "--context",
                                        "--vocab", "--side",   "--classes", "--half"};
    const char *python = getenv("PYTHON");
    int n = 0;
    *s = (gpu_side){.name = strcmp(mode, "eager") == 0   ? "PyTorch, eager"
                            : strcmp(mode, "graph") == 0 ? "PyTorch, CUDA graph"
                                                         : "PyTorch, compiled"};
    s->argv[n++] = python != NULL ? python : "python3";
    s->argv[n++] = "bench/peers/torch_gpu.py";
    s->argv[n++] = w->kind;
    s->argv[n++] = mode;
    for (int i = 0; i < 9; i++) {
        snprintf(numbers[i], sizeof(numbers[i]), "%lld", (long long)values[i]);
        s->argv[n++] = flags[i];
        s->argv[n++] = numbers[i];
    }
}

// Both in turn; false if there is no room for both at once or one fails.
static bool time_in_turn(gpu_side *a, gpu_side *b, int steps, int rounds)
{
    bool ok = side_start(a) && side_start(b) && side_steps(a, steps, false) &&
              side_steps(b, steps, false);
    for (int r = 0; ok && r < rounds; r++) {
        gpu_side *first = r % 2 == 0 ? a : b;
        ok = side_steps(first, steps, true) && side_steps(first == a ? b : a, steps, true);
    }
    side_close(a);
    side_close(b);
    return ok;
}

static bool time_alone(gpu_side *s, int steps, int rounds)
{
    bool ok = side_start(s) && side_steps(s, steps, false);
    for (int r = 0; ok && r < rounds; r++)
        ok = side_steps(s, steps, true);
    side_close(s);
    return ok;
}

static bool time_pair(gpu_side *a, gpu_side *b, int steps, int rounds, bool *apart)
{
    *apart = !time_in_turn(a, b, steps, rounds);
    if (!*apart)
        return true;
    bool other = strcasestr(b->why, "memory") != NULL || b->why[0] == '\0';
    bool ok = time_alone(a, steps, rounds);
    return other && time_alone(b, steps, rounds) && ok;
}

// ---- the table -------------------------------------------------------------------------------

static void print_side(const gpu_work *w, const gpu_side *s)
{
    if (s->n_times == 0) {
        printf("  %-10s %-22s %s\n", w->name, s->name, s->why);
        return;
    }
    bench_stat t = side_stat(s);
    bool is_steps = strcmp(w->unit, "steps") == 0;
    double rate = (is_steps ? 1 : (double)w->rows * (double)w->per_row) / t.median;
    double flops = gpu_flops(w, s->parameters);
    printf("  %-10s %-22s %9.3f [%8.3f, %8.3f] %12.0f %-8s %7.1f %8.2f %9.1f\n", w->name, s->name,
           1e3 * t.median, 1e3 * t.low, 1e3 * t.high, rate, w->unit, 1e-12 * flops / t.median,
           s->memory / (1 << 30), s->ready);
    fflush(stdout);
}

static bool print_ratio(const char *what, const gpu_side *a, const gpu_side *b, double goal,
                        bool apart)
{
    if (a->n_rounds == 0 || b->n_rounds == 0)
        return false;
    bench_stat r = side_ratio(a, b);
    printf("  %-33s %9.3f [%8.3f, %8.3f]", what, r.median, r.low, r.high);
    if (goal > 0)
        printf("   goal %.2f%s", goal, r.median >= goal ? "" : "  below");
    printf("%s\n", apart ? "   (one after the other: no room for both)" : "");
    fflush(stdout);
    return goal <= 0 || r.median >= goal;
}

// Seconds from the start of a process to its first step, without caches and with those it left.
static void print_first(const gpu_work *w, const settings *set)
{
    char folder[] = "/tmp/tutti-bench-XXXXXX";
    double seconds[2] = {0, 0};
    gpu_side s;
    if (mkdtemp(folder) == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        make_ours(&s, "ours", w, set, false, true);
        s.cache = folder;
        if (side_start(&s))
            seconds[i] = s.ready;
        side_close(&s);
    }
    printf("  %-33s %9.2f s without caches, %.2f s with\n", "start to first step", seconds[0],
           seconds[1]);
    fflush(stdout);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        fprintf(stderr, "gpu: cannot remove %s\n", folder);
}

static bool run_work(const gpu_work *w, const settings *set)
{
    static gpu_side exact, peer, again, fast, bare;
    int steps = set->steps > 0 ? set->steps : w->steps;
    int rounds = TTI_MIN(set->rounds > 0 ? set->rounds : w->rounds, SIDE_ROUNDS);
    bool apart = false, ok = true;
    make_ours(&exact, "exact, 8 lanes", w, set, false, true);
    make_peer(&peer, w, w->peer_mode);
    if (set->no_peer)
        ok = time_alone(&exact, steps, rounds);
    else
        time_pair(&exact, &peer, steps, rounds, &apart);
    print_side(w, &exact);
    if (!set->no_peer) {
        print_side(w, &peer);
        print_ratio("times the peer's rate", &exact, &peer, w->goal, apart);
    }
    if (!set->no_peer && w->graph_goal > 0) {
        make_ours(&again, "exact, 8 lanes", w, set, false, true);
        make_peer(&peer, w, "graph");
        time_pair(&again, &peer, steps, rounds, &apart);
        print_side(w, &peer);
        print_ratio("times the rate of its graph", &again, &peer, w->graph_goal, apart);
    }
    if (!set->no_lanes) {
        make_ours(&again, "exact, 8 lanes", w, set, false, true);
        make_ours(&fast, "fast, 1 lane", w, set, true, true);
        ok = time_pair(&again, &fast, steps, rounds, &apart) && ok;
        print_side(w, &fast);
        print_ratio("exact against fast", &again, &fast, w->lanes_cost > 0 ? 1 - w->lanes_cost : 0,
                    apart);
    }
    if (!set->no_guard) {
        make_ours(&again, "exact, 8 lanes", w, set, false, true);
        make_ours(&bare, "without guard", w, set, false, false);
        ok = time_pair(&again, &bare, steps, rounds, &apart) && ok;
        print_side(w, &bare);
        print_ratio("with guard against without", &again, &bare, 0.99, apart);
    }
    if (!set->no_first)
        print_first(w, set);
    printf("\n");
    return ok && exact.n_times > 0;
}

// ---- the command -----------------------------------------------------------------------------

static bool read_settings(int argc, char **argv, settings *s)
{
    static const struct option flags[] = {
        {"only", required_argument, NULL, 'o'},   {"steps", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'}, {"device", required_argument, NULL, 'd'},
        {"serve", required_argument, NULL, 'S'},  {"lanes", required_argument, NULL, 'l'},
        {"tiny", no_argument, NULL, 't'},         {"fast", no_argument, NULL, 'f'},
        {"no-peer", no_argument, NULL, 'P'},      {"no-lanes", no_argument, NULL, 'L'},
        {"no-first", no_argument, NULL, 'F'},     {"no-guard", no_argument, NULL, 'G'},
        {"profile", no_argument, NULL, 'p'},      {NULL, 0, NULL, 0},
    };
    *s = (settings){.device = "gpu:0", .lanes = 8, .self = argv[0]};
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        s->only = c == 'o' ? optarg : s->only;
        s->serve = c == 'S' ? optarg : s->serve;
        s->device = c == 'd' ? optarg : s->device;
        s->steps = c == 's' ? atoi(optarg) : s->steps;
        s->rounds = c == 'r' ? atoi(optarg) : s->rounds;
        s->lanes = c == 'l' ? atoi(optarg) : s->lanes;
        s->tiny |= c == 't';
        s->fast |= c == 'f';
        s->no_peer |= c == 'P';
        s->no_lanes |= c == 'L';
        s->no_first |= c == 'F';
        s->no_guard |= c == 'G';
        s->profile |= c == 'p';
        if (c == '?')
            return false;
    }
    return optind == argc && s->steps >= 0 && s->steps <= SIDE_TIMES && s->lanes > 0;
}

int main(int argc, char **argv)
{
    settings set;
    int failed = 0, found = 0;
    if (!read_settings(argc, argv, &set)) {
        fprintf(stderr, "usage: gpu [--only WORK] [--steps N] [--rounds N] [--tiny] "
                        "[--no-peer] [--no-lanes] [--no-first] [--no-guard] [--device gpu:0]\n"
                        "       gpu --profile --only WORK [--steps N] [--lanes N] [--fast]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    const gpu_work *works = set.tiny ? gpu_tiny_works : gpu_works;
    const char *name = set.serve != NULL ? set.serve : set.only;
    bool table = set.serve == NULL && !set.profile;
    if (table)
        printf("training on %s\n  %-10s %-22s %9s  %18s %12s %-8s %7s %8s %9s\n", set.device, "",
               "", "ms", "quartiles", "a second", "", "TFLOP/s", "GiB", "first s");
    for (int i = 0; i < GPU_N_WORKS; i++) {
        if (name != NULL && strcmp(name, works[i].name) != 0)
            continue;
        found++;
        if (set.serve != NULL)
            failed += serve(&works[i], &set) != 0;
        else if (set.profile)
            failed += profile(&works[i], &set) != 0;
        else
            failed += !run_work(&works[i], &set);
    }
    if (found == 0) {
        fprintf(stderr, "gpu: no work is called '%s'; there are", name);
        for (int i = 0; i < GPU_N_WORKS; i++)
            fprintf(stderr, " %s", works[i].name);
        fprintf(stderr, "\n");
    }
    return found == 0 ? 2 : failed > 0;
}
