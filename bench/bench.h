/*
 * bench.h - timing by alternating rounds: every round times each side once, so that a slow moment
 * of the machine hits all of them; a ratio is the median over rounds of the ratio within one round,
 * printed with its quartiles.
 *
 *   bench_side sides[] = {{.name = "ours", .fn = run_ours, .arg = &a},
 *                         {.name = "oneDNN", .fn = run_peer, .arg = &b}};
 *   bench_rounds(sides, 2, BENCH_ROUNDS, 20);
 *   bench_row("512 x 512 x 512", &sides[0], &sides[1], 0.95);
 *
 * BENCH_ROUNDS in the environment overrides the number of rounds (at least 3).
 */
#ifndef TUTTI_BENCH_H
#define TUTTI_BENCH_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_ROUNDS 15
#define BENCH_MAX    101

typedef void (*bench_fn)(void *arg);

typedef struct bench_side {
    const char *name;
    bench_fn fn; // one call
    void *arg;
    // out:
    int calls;               // per round
    int n;                   // rounds
    double times[BENCH_MAX]; // seconds per call, by round
} bench_side;

// Median and quartiles.
typedef struct bench_stat {
    double median, low, high;
} bench_stat;

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline bench_stat bench_stat_of(const double *x, int n)
{
    double v[BENCH_MAX];
    memcpy(v, x, sizeof(double) * (size_t)n);
    qsort(v, (size_t)n, sizeof(double), bench_by_value);
    return (bench_stat){v[n / 2], v[n / 4], v[n - 1 - n / 4]};
}

static inline bench_stat bench_time(const bench_side *s)
{
    return bench_stat_of(s->times, s->n);
}

// How many times as fast as peer: rate of ours over rate of peer, round by round.
static inline bench_stat bench_ratio(const bench_side *ours, const bench_side *peer)
{
    double r[BENCH_MAX];
    for (int i = 0; i < ours->n; i++)
        r[i] = peer->times[i] / ours->times[i];
    return bench_stat_of(r, ours->n);
}

static inline int bench_n_rounds(int rounds)
{
    const char *text = getenv("BENCH_ROUNDS");
    int n = text != NULL ? atoi(text) : rounds;
    return n < 3 ? 3 : n > BENCH_MAX ? BENCH_MAX : n;
}

// Idle threads of the side before (OpenMP's spin for milliseconds) come to rest; then one call.
static inline void bench_settle(const bench_side *s)
{
    nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
    s->fn(s->arg);
}

// Warms every side up, then times each once a round, as many calls as take min_ms.
static inline void bench_rounds(bench_side *sides, int n, int rounds, double min_ms)
{
    rounds = bench_n_rounds(rounds);
    for (int i = 0; i < n; i++) {
        sides[i].fn(sides[i].arg);
        double start = bench_now();
        sides[i].fn(sides[i].arg);
        double once = bench_now() - start;
        sides[i].calls = once > 0 ? (int)(1e-3 * min_ms / once) + 1 : 1000;
        if (sides[i].calls > 1000000)
            sides[i].calls = 1000000;
        sides[i].n = rounds;
    }
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < n; k++) {
            bench_side *s = &sides[(k + r) % n]; // nobody is always first
            bench_settle(s);
            double start = bench_now();
            for (int c = 0; c < s->calls; c++)
                s->fn(s->arg);
            s->times[r] = (bench_now() - start) / s->calls;
        }
}

static inline void bench_title(const char *title)
{
    printf("%s\n", title);
    printf("  %-40s %10s %10s  %6s %15s %6s\n", "", "ours us", "peer us", "ratio", "quartiles",
           "goal");
}

// One line; goal 0: none.
static inline bool bench_row(const char *label, const bench_side *ours, const bench_side *peer,
                             double goal)
{
    bench_stat r = bench_ratio(ours, peer);
    bool met = goal <= 0 || r.median >= goal;
    printf("  %-40s %10.1f %10.1f  %6.2f   [%5.2f, %5.2f]", label, 1e6 * bench_time(ours).median,
           1e6 * bench_time(peer).median, r.median, r.low, r.high);
    if (goal > 0)
        printf(" %6.2f%s", goal, met ? "" : "  below");
    printf("\n");
    fflush(stdout);
    return met;
}

// ---- the copy rate: memcpy by a number of threads --------------------------------------------

typedef struct bench_copy {
    int n_threads;
    size_t bytes; // copied by all threads together in one call
    char *from, *to;
    pthread_t threads[64];
    pthread_barrier_t start, end;
    bool stop;
} bench_copy;

typedef struct bench_copy_thread {
    bench_copy *c;
    int i;
} bench_copy_thread;

static inline void bench_copy_part(bench_copy *c, int i)
{
    size_t begin = c->bytes * (size_t)i / (size_t)c->n_threads;
    size_t end = c->bytes * (size_t)(i + 1) / (size_t)c->n_threads;
    memcpy(c->to + begin, c->from + begin, end - begin);
}

static inline void *bench_copy_main(void *arg)
{
    bench_copy_thread t = *(bench_copy_thread *)arg;
    free(arg);
    for (;;) {
        pthread_barrier_wait(&t.c->start);
        if (t.c->stop)
            return NULL;
        bench_copy_part(t.c, t.i);
        pthread_barrier_wait(&t.c->end);
    }
}

// Copies of bytes, so that bytes are read and bytes are written. Ended by bench_copy_close().
static inline void bench_copy_open(bench_copy *c, int n_threads, size_t bytes)
{
    *c = (bench_copy){.n_threads = n_threads, .bytes = bytes};
    c->from = aligned_alloc(64, (bytes + 63) / 64 * 64);
    c->to = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(c->from, 1, bytes);
    memset(c->to, 2, bytes);
    pthread_barrier_init(&c->start, NULL, (unsigned)n_threads);
    pthread_barrier_init(&c->end, NULL, (unsigned)n_threads);
    for (int i = 1; i < n_threads; i++) {
        bench_copy_thread *t = malloc(sizeof(*t));
        *t = (bench_copy_thread){c, i};
        pthread_create(&c->threads[i], NULL, bench_copy_main, t);
    }
}

static inline void bench_copy_run(void *arg)
{
    bench_copy *c = arg;
    pthread_barrier_wait(&c->start);
    bench_copy_part(c, 0);
    pthread_barrier_wait(&c->end);
}

static inline void bench_copy_close(bench_copy *c)
{
    c->stop = true;
    pthread_barrier_wait(&c->start);
    for (int i = 1; i < c->n_threads; i++)
        pthread_join(c->threads[i], NULL);
    pthread_barrier_destroy(&c->start);
    pthread_barrier_destroy(&c->end);
    free(c->from);
    free(c->to);
}

// ---- the hop: a cache line to another thread and back ----------------------------------------

#define BENCH_HOPS 50 // of a batch

typedef struct bench_ball {
    _Alignas(64) _Atomic int at; // even: with the caller
    _Atomic bool stop;
} bench_ball;

static inline void *bench_hop_main(void *arg)
{
    bench_ball *b = arg;
    while (!atomic_load(&b->stop))
        if (atomic_load(&b->at) % 2 == 1)
            atomic_fetch_add(&b->at, 1);
    return NULL;
}

/*
 * Nanoseconds of a round trip, the best of many batches within 20 ms. Cores that share a cache take
 * about 60; several hundred mean that threads share data through memory or another socket, and then
 * everything small is slower on two threads. A virtual machine can change from one to the other. 0:
 * there is one core.
 */
static inline double bench_hop(void)
{
    bench_ball ball = {.at = 0};
    pthread_t other;
    cpu_set_t cores;
    double best = 1, start = bench_now();
    // Two spinning threads on one core would wait for each other's time slice to end.
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
        return 0;
    CPU_CLR((size_t)sched_getcpu(), &cores);
    if (CPU_COUNT(&cores) == 0 || pthread_create(&other, NULL, bench_hop_main, &ball) != 0)
        return 0;
    (void)pthread_setaffinity_np(other, sizeof(cores), &cores);
    while (bench_now() < start + 0.02) {
        double begin = bench_now();
        for (int i = 0; i < BENCH_HOPS; i++) {
            atomic_fetch_add(&ball.at, 1);
            while (atomic_load(&ball.at) % 2 == 1)
                ;
        }
        double took = (bench_now() - begin) / BENCH_HOPS;
        best = took < best ? took : best;
    }
    atomic_store(&ball.stop, true);
    pthread_join(other, NULL);
    return 1e9 * best;
}

#endif
