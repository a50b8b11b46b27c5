/*
 * allreduce.c - exact all-reduce between two processes of this machine by shared memory, against
 * OpenMPI's (bench/peers/mpi_all_reduce.c, built and run from here where mpicc and mpirun are).
 * Values are new in every call. Rounds of both alternate; a ratio is the median over rounds. What
 * can be had depends on where the two processes run: the first line tells how long a flag takes
 * from one to the other, which is well below 100 ns where their cores share a cache.
 */
#include "bench.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tutti/tutti.h>
#include <unistd.h>

#define SIZES  3
#define CASES  (2 * SIZES)
#define FLAG   CASES // where the time of a flag is
#define ROUNDS 9

static const size_t sizes[SIZES] = {1 << 12, 1 << 20, 1 << 26}; // bytes
static const char *const labels[CASES] = {"4 KiB",
                                          "1 MiB",
                                          "64 MiB",
                                          "4 KiB in the group's memory",
                                          "1 MiB in the group's memory",
                                          "64 MiB in the group's memory"};
static const double goals[SIZES] = {1, 2, 4};

static double median(double *t, int n)
{
    qsort(t, (size_t)n, sizeof(double), bench_by_value);
    return t[n / 2];
}

static double measure(tt_comm *c, int rank, size_t bytes, bool shared)
{
    static double t[2000];
    size_t n = bytes / sizeof(float);
    int reps = n < 1e5 ? 2000 : n < 2e6 ? 200 : 5;
    float *x = shared ? tt_comm_memory(c, bytes) : malloc(bytes);
    float *y = shared ? tt_comm_memory(c, bytes) : malloc(bytes);
    if (x == NULL || y == NULL)
        _exit(1);
    memset(y, 0, bytes);
    tt_member m = {x, y, (int64_t)n, rank, 1};
    for (int i = -3; i < reps; i++) {
        for (size_t k = 0; k < n; k++)
            x[k] = (float)((int)(k & 7) + i);
        if (tt_barrier(c) != TT_OK)
            break;
        double start = bench_now();
        if (tt_all_reduce(c, &m, .lanes = 2) != TT_OK)
            break;
        if (i >= 0)
            t[i] = bench_now() - start;
    }
    for (size_t i = 0; i < n; i++)
        if (y[i] != 2 * (float)((int)(i & 7) + reps - 1)) {
            fprintf(stderr, "element %zu is wrong\n", i);
            _exit(1);
        }
    free(shared ? NULL : x);
    free(shared ? NULL : y);
    return median(t, reps);
}

// One way, by a place that both write by turns.
static double measure_flag(int rank, double *out)
{
    _Atomic int *turn = (void *)(out + FLAG + 1);
    double start = bench_now();
    for (int i = 0; i < 2000; i++) {
        while (atomic_load(turn) != 2 * i + rank && bench_now() < start + 1)
            continue;
        atomic_store(turn, 2 * i + rank + 1);
    }
    return (bench_now() - start) / 4000;
}

static int run_rank(int rank, const char *const *addresses, double *out)
{
    unsigned char secret[TT_SECRET_BYTES] = {1, 2, 3};
    tt_tasks tasks = {
        .opts_size = sizeof(tasks), .n = 2, .self = rank, .addresses = addresses, .secret = secret};
    tt_ctx *ctx = tt_open(.threads = 1, .tasks = &tasks);
    tt_comm *c = tt_comm_open(ctx, .transport = "shm");
    double flag = measure_flag(rank, out);
    if (rank == 0)
        out[FLAG] = flag;
    for (int s = 0; c != NULL && s < CASES; s++) {
        double t = measure(c, rank, sizes[s % SIZES], s >= SIZES);
        if (rank == 0)
            out[s] = t;
    }
    return tt_close(ctx) == TT_OK ? 0 : 1;
}

static bool run_ours(double *out)
{
    char a[32], b[32];
    const char *addresses[] = {a, b};
    snprintf(a, sizeof(a), "127.0.0.1:%d", 20000 + (int)getpid() % 5000);
    snprintf(b, sizeof(b), "127.0.0.1:%d", 25000 + (int)getpid() % 5000);
    fflush(stdout);
    memset(out, 0, sizeof(double) * (FLAG + 2));
    pid_t pid[2];
    for (int r = 0; r < 2; r++) {
        pid[r] = fork();
        if (pid[r] == 0)
            _exit(run_rank(r, addresses, out));
    }
    int bad = 0, status;
    for (int r = 0; r < 2; r++)
        bad |= waitpid(pid[r], &status, 0) < 0 || status != 0;
    return bad == 0;
}

static bool run_peer(const char *program, double *out)
{
    char command[512];
    snprintf(command, sizeof(command),
             "mpirun --allow-run-as-root --oversubscribe -n 2 %s 2>/dev/null", program);
    FILE *f = popen(command, "r");
    int n = 0;
    size_t bytes;
    while (f != NULL && n < SIZES && fscanf(f, "%zu %lf", &bytes, &out[n]) == 2)
        n++;
    return f != NULL && pclose(f) == 0 && n == SIZES;
}

int main(void)
{
    if (strstr(tt_version_text(), "zeromq: yes") == NULL) {
        printf("several processes: this build has no ZeroMQ\n");
        return 0;
    }
    char program[] = "/tmp/tutti-bench-XXXXXX", command[512];
    double *shared = mmap(NULL, (FLAG + 2) * sizeof(double), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench_side ours[CASES] = {{.name = "ours"}}, peer[CASES] = {{.name = "OpenMPI"}};
    int fd = mkstemp(program);
    if (fd >= 0)
        close(fd);
    snprintf(command, sizeof(command), "mpicc -O3 -o %s bench/peers/mpi_all_reduce.c 2>/dev/null",
             program);
    bool has_peer = fd >= 0 && system(command) == 0;
    bool ok = true;
    double flags[BENCH_MAX];
    int rounds = bench_n_rounds(ROUNDS);
    for (int r = 0; ok && r < rounds; r++) {
        double theirs[SIZES] = {0};
        ok = run_ours(shared);
        flags[r] = shared[FLAG];
        has_peer = has_peer && run_peer(program, theirs);
        for (int s = 0; s < CASES; s++) {
            ours[s].times[ours[s].n++] = shared[s];
            peer[s].times[peer[s].n++] = has_peer ? theirs[s % SIZES] : shared[s];
        }
    }
    unlink(program);
    if (!ok) {
        fprintf(stderr, "all-reduce between two processes failed\n");
        return 1;
    }
    bench_title(has_peer ? "exact all-reduce, 2 processes, shared memory, against OpenMPI"
                         : "exact all-reduce, 2 processes, shared memory (no mpicc: no peer)");
    qsort(flags, (size_t)rounds, sizeof(double), bench_by_value);
    printf("  a flag: %.0f ns (%.0f to %.0f)\n", 1e9 * flags[rounds / 2], 1e9 * flags[0],
           1e9 * flags[rounds - 1]);
    for (int s = 0; s < CASES; s++)
        bench_row(labels[s], &ours[s], &peer[s], has_peer ? goals[s % SIZES] : 0);
    return 0;
}
