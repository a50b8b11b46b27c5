/*
 * wire.c - the rate of messages between two processes over loopback, authenticated only and
 * encrypted, against a plain TCP stream. Rounds alternate; a ratio is the median over rounds.
 */
#include "bench.h"
#include "net/world.h"
#include <arpa/inet.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tutti/tutti.h>
#include <unistd.h>

#define BYTES  ((size_t)32 << 20)
#define REPS   8
#define ROUNDS 5

static char *data_new(void)
{
    char *data = malloc(BYTES);
    memset(data, 1, BYTES);
    return data;
}

// ---- plain TCP -------------------------------------------------------------------------------

// The ends of the stream are on cores of their own; -1: on any again.
static void keep_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (core < 0 || i == core)
            CPU_SET(i, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static void tcp_send(struct sockaddr_in a)
{
    keep_to(0);
    char *data = data_new();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        _exit(1);
    for (int r = 0; r < REPS + 1; r++)
        for (size_t at = 0; at < BYTES;) {
            size_t n = BYTES - at < 262144 ? BYTES - at : 262144;
            ssize_t sent = send(fd, data + at, n, 0);
            if (sent <= 0)
                _exit(1);
            at += (size_t)sent;
        }
    _exit(0);
}

static double tcp_round(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&a, &n) != 0)
        return 0;
    pid_t pid = fork();
    if (pid == 0)
        tcp_send(a);
    keep_to(1);
    int fd = accept(listener, NULL, NULL);
    char *data = data_new();
    double start = 0;
    for (int r = 0; r < REPS + 1; r++) {
        for (size_t at = 0; at < BYTES;) {
            ssize_t got = recv(fd, data + at, BYTES - at < 262144 ? BYTES - at : 262144, 0);
            if (got <= 0)
                return 0;
            at += (size_t)got;
        }
        start = r == 0 ? bench_now() : start; // the first warms up
    }
    double seconds = (bench_now() - start) / REPS;
    close(fd);
    close(listener);
    free(data);
    waitpid(pid, NULL, 0);
    keep_to(-1);
    return seconds;
}

// ---- messages ---------------------------------------------------------------------------------

static int wire_rank(int rank, const char *const *addresses, bool plain, double *out)
{
    unsigned char secret[TT_SECRET_BYTES] = {1, 2, 3};
    tt_tasks tasks = {
        .opts_size = sizeof(tasks), .n = 2, .self = rank, .addresses = addresses, .secret = secret};
    tasks.transport = "wire";
    tasks.no_encryption = plain;
    tt_ctx *ctx = tt_open(.threads = 1, .tasks = &tasks);
    char *data = data_new();
    double start = 0;
    for (uint32_t r = 0; tt_status_of(ctx) == TT_OK && r < REPS + 1; r++) {
        tti_message l = {1, r, 0, BYTES};
        int64_t wait_ms = 20000;
        tt_status st = rank == 0 ? tti_world_send(ctx->world, 1, &l, data, wait_ms)
                                 : tti_world_receive(ctx->world, 0, &l, data, wait_ms);
        if (st != TT_OK)
            _exit(1);
        start = r == 0 ? bench_now() : start;
    }
    if (rank == 1)
        *out = (bench_now() - start) / REPS;
    return tt_close(ctx) == TT_OK ? 0 : 1;
}

static double wire_round(bool plain, double *shared)
{
    static int next;
    char a[32], b[32];
    const char *addresses[] = {a, b};
    int port = 12000 + ((int)getpid() * 37 + 2 * next++) % 18000;
    snprintf(a, sizeof(a), "127.0.0.1:%d", port);
    snprintf(b, sizeof(b), "127.0.0.1:%d", port + 1);
    pid_t pid[2];
    for (int r = 0; r < 2; r++) {
        pid[r] = fork();
        if (pid[r] == 0)
            _exit(wire_rank(r, addresses, plain, shared));
    }
    int bad = 0, status;
    for (int r = 0; r < 2; r++)
        bad |= waitpid(pid[r], &status, 0) < 0 || status != 0;
    return bad ? 0 : *shared;
}

int main(void)
{
    if (strstr(tt_version_text(), "zeromq: yes") == NULL) {
        printf("several processes: this build has no ZeroMQ\n");
        return 0;
    }
    double *shared =
        mmap(NULL, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench_side tcp = {.name = "tcp"}, plain = {.name = "plain"}, safe = {.name = "encrypted"};
    for (int r = 0; r < bench_n_rounds(ROUNDS); r++) {
        tcp.times[tcp.n++] = tcp_round();
        plain.times[plain.n++] = wire_round(true, shared);
        safe.times[safe.n++] = wire_round(false, shared);
        if (plain.times[r] <= 0 || safe.times[r] <= 0 || tcp.times[r] <= 0) {
            fprintf(stderr, "a process of round %d failed\n", r);
            return 1;
        }
    }
    bench_title("messages of 32 MiB between 2 processes, against a plain TCP stream over loopback");
    bench_row("authenticated", &plain, &tcp, 0.6);
    bench_row("encrypted", &safe, &tcp, 0.25);
    return 0;
}
