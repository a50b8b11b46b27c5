/*
 * processes.c - mirrored over two processes against two devices of one process: a training step of
 * some models, with shared memory and by wire; how long four processes take from their start to the
 * end of the first step; and what four processes on two hosts send each other in a step, by link.
 *
 * All sides are there at once and take turns, round by round; a ratio is the median of the rounds'
 * ratios, with quartiles.
 */
#include "base/ctx.h"
#include "bench.h"
#include "net/world.h"
#include "works.h"
#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDES  3
#define ROUNDS 9
#define MOST   4

typedef struct stage {
    _Atomic int go[SIDES + 1]; // the round a side may do; -1: it ends
    _Atomic int done[SIDES + 1];
    double seconds[SIDES + 1];                       // of its last round's step, median
    bool counts;                                     // what is sent in a step
    int64_t messages[MOST][MOST], bytes[MOST][MOST]; // of a step, from rank to rank
} stage;

static void find_ports(char address[MOST][32], const char **addresses)
{
    static unsigned next;
    int held[MOST];
    for (int i = 0; i < MOST;) {
        unsigned port = 10000 + ((unsigned)getpid() * 61 + 7 * next++) % 22000;
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        held[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(held[i], (struct sockaddr *)&a, sizeof(a)) != 0) {
            close(held[i]);
            continue;
        }
        snprintf(address[i], 32, "127.0.0.1:%u", port);
        addresses[i] = address[i];
        i++;
    }
    for (int i = 0; i < MOST; i++)
        close(held[i]);
}

// What this process sends the others in a step, after those that make plans.
static void count_step(stage *st, tt_ctx *ctx, tt_model *m, const tt_batch_data *batch)
{
    tt_progress progress;
    int self = tti_world_self(ctx->world), n = tti_world_size(ctx->world);
    for (int step = 0; step < 3; step++) {
        tt_train_step(m, batch, &progress);
        for (int r = 0; r < n && step > 0; r++) {
            int64_t messages, bytes;
            tti_world_sent(ctx->world, r, &messages, &bytes);
            st->messages[self][r] = messages - (step == 1 ? 0 : st->messages[self][r]);
            st->bytes[self][r] = bytes - (step == 1 ? 0 : st->bytes[self][r]);
        }
    }
}

// One process of a side: a step, then rounds of steps as it is told.
static void run_side(stage *st, int number, const work *w, const tt_tasks *t, int steps)
{
    tt_batch_data batches[MAX_BATCHES];
    prctl(PR_SET_PDEATHSIG, SIGKILL); // with the bench
    int n = make_batches(w, batches), round = 0;
    tt_ctx *ctx = tt_open(.devices = t == NULL ? "cpu:0*2" : "cpu:0", .strategy = "mirrored",
                          .threads = t == NULL ? 2 : 1, .tasks = t);
    tt_model *m = make_model(ctx, w);
    tt_progress progress;
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .optimizer = &(tt_optimizer[]){make_optimizer(w)}[0]);
    tt_train_step(m, &batches[0], &progress);
    if (st->counts)
        count_step(st, ctx, m, &batches[0]);
    bool first = t == NULL || t->self == 0;
    double *times = malloc(sizeof(*times) * (size_t)steps);
    if (first)
        atomic_store(&st->done[number], 1);
    for (round = 1; tt_status_of(ctx) == TT_OK; round++) {
        int go;
        while ((go = atomic_load(&st->go[number])) >= 0 && go < round)
            usleep(300);
        if (go < 0)
            break;
        for (int i = -3; i < steps; i++) {
            double start = bench_now();
            tt_train_step(m, &batches[(i + 3) % n], &progress);
            if (i >= 0)
                times[i] = bench_now() - start;
        }
        qsort(times, (size_t)steps, sizeof(*times), bench_by_value);
        if (!first)
            continue;
        st->seconds[number] = times[steps / 2];
        atomic_store(&st->done[number], round + 1);
    }
    if (tt_status_of(ctx) != TT_OK)
        fprintf(stderr, "%s\n", tt_last_error(ctx).message);
    free(times);
    tt_status closed = tt_close(ctx);
    batches_free(batches, n);
    _exit(closed == TT_OK ? 0 : 1);
}

static void start_side(stage *st, int number, const work *w, const char *transport, int n,
                       int steps, const char *const *hosts)
{
    static char address[SIDES + 1][MOST][32];
    const char *addresses[MOST];
    unsigned char secret[TT_SECRET_BYTES] = {1, 2, 3};
    if (transport == NULL && fork() == 0)
        run_side(st, number, w, NULL, steps);
    if (transport == NULL)
        return;
    find_ports(address[number], addresses);
    for (int i = 0; i < n; i++) {
        tt_tasks t = {.opts_size = sizeof(t),
                      .n = n,
                      .self = i,
                      .addresses = addresses,
                      .secret = secret,
                      .transport = transport,
                      .host = hosts != NULL ? hosts[i] : NULL};
        if (fork() == 0)
            run_side(st, number, w, &t, steps);
    }
}

static bool await(stage *st, int number, int round)
{
    double end = bench_now() + 60;
    while (atomic_load(&st->done[number]) < round && bench_now() < end)
        usleep(200);
    return atomic_load(&st->done[number]) >= round;
}

static void end_side(stage *st, int number)
{
    atomic_store(&st->go[number], -1);
    while (wait(NULL) > 0)
        continue;
}

static int compare(const work *w, stage *st)
{
    static const char *const transports[SIDES] = {NULL, "shm", "wire"};
    bench_side sides[SIDES] = {{.name = "2 threads"}, {.name = "shm"}, {.name = "wire"}};
    int steps = w->rows > 100 ? 4 : 20;
    memset((void *)st, 0, sizeof(*st));
    bool good = true;
    for (int i = 0; i < SIDES; i++)
        start_side(st, i, w, transports[i], 2, steps, NULL);
    for (int i = 0; i < SIDES; i++)
        good &= await(st, i, 1);
    for (int r = 1; good && r <= ROUNDS; r++)
        for (int k = 0; good && k < SIDES; k++) {
            int i = (k + r) % SIDES;
            atomic_store(&st->go[i], r);
            good = await(st, i, r + 1);
            sides[i].times[sides[i].n++] = st->seconds[i];
        }
    for (int i = 0; i < SIDES; i++)
        atomic_store(&st->go[i], -1);
    end_side(st, 0);
    if (!good)
        return 1;
    bench_stat shm = bench_ratio(&sides[1], &sides[0]), wire = bench_ratio(&sides[2], &sides[0]);
    printf("%-16s %9.3f %9.3f  %5.2fx (%.2f to %.2f) %9.3f  %5.2fx (%.2f to %.2f)\n", w->name,
           1e3 * bench_time(&sides[0]).median, 1e3 * bench_time(&sides[1]).median, shm.median,
           shm.low, shm.high, 1e3 * bench_time(&sides[2]).median, wire.median, wire.low, wire.high);
    fflush(stdout);
    return 0;
}

// Messages and bytes of a step from ranks [from, from + n) to [to, to + n).
static void print_link(const stage *st, const char *name, int from, int to, int n)
{
    int64_t messages = 0, bytes = 0;
    for (int i = from; i < from + n; i++)
        for (int k = to; k < to + n; k++) {
            messages += st->messages[i][k];
            bytes += st->bytes[i][k];
        }
    printf("  %-12s %8lld messages %10.1f KiB\n", name, (long long)messages, (double)bytes / 1024);
}

// Four processes: on two hosts of two, or each on one of its own.
static int links(const work *w, stage *st, bool by_host)
{
    static const char *const hosts[] = {"a", "a", "b", "b"};
    memset((void *)st, 0, sizeof(*st));
    st->counts = true;
    start_side(st, SIDES, w, by_host ? "auto" : "wire", 4, 1, by_host ? hosts : NULL);
    bool good = await(st, SIDES, 1);
    end_side(st, SIDES);
    printf("%s, a step of 4 processes, %s\n", w->name,
           by_host ? "2 on each of 2 hosts" : "each on a host of its own");
    print_link(st, "a -> b", 0, 2, 2);
    print_link(st, "b -> a", 2, 0, 2);
    print_link(st, "within a", 0, 0, 2);
    return !good;
}

int main(void)
{
    stage *st = mmap(NULL, sizeof(*st), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0;
    if (strstr(tt_version_text(), "zeromq: yes") == NULL) {
        printf("processes: this build has no ZeroMQ\n");
        return 0;
    }
    printf("mirrored, a step in ms: two devices of one process, two processes by shared memory and "
           "by wire\n%-16s %9s %9s %29s\n",
           "", "threads", "shm", "wire");
    fflush(stdout);
    for (int i = 0; i < N_WORKS; i++)
        if (strcmp(works[i].name, "cnn-b32") == 0 || strcmp(works[i].name, "cnn-b256") == 0 ||
            strcmp(works[i].name, "mlp-b256") == 0)
            failed |= compare(&works[i], st);
    memset((void *)st, 0, sizeof(*st));
    double start = bench_now();
    start_side(st, SIDES, &works[2], "shm", 4, 1, NULL);
    bool good = await(st, SIDES, 1);
    printf("4 processes from their start to the end of the first step: %.2f s\n",
           bench_now() - start);
    end_side(st, SIDES);
    for (int i = 0; i < N_WORKS; i++)
        for (int by_host = 0; by_host < 2 && strcmp(works[i].name, "cnn-b32") == 0; by_host++)
            failed |= links(&works[i], st, by_host != 0);
    return failed || !good;
}
