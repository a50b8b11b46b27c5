/*
 * gpu_side.h - one side of bench/gpu.c: a process that trains a work when told to. Ours and the
 * peer's speak the same lines, so that sides are timed in turn and each has memory of its own:
 *
 *   ready SECONDS        once, after the first step; since BENCH_SINCE, the start of the process
 *   steps N              answered by: times MS MS ... (of single steps)
 *   memory               answered by: memory BYTES (most it had allocated) PARAMETERS
 *   failed REASON        instead of any answer; the process ends
 */
#ifndef TUTTI_BENCH_GPU_SIDE_H
#define TUTTI_BENCH_GPU_SIDE_H

#include "bench.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE_LINE    65536
#define SIDE_ROUNDS  15
#define SIDE_TIMES   20000
#define SIDE_TIMEOUT 400 // seconds for an answer: compiling a model is part of the first

typedef struct gpu_side {
    const char *name;
    const char *argv[24];
    const char *cache; // folder for caches; NULL: as they are
    // out:
    pid_t pid;
    int to, from;
    char line[SIDE_LINE], why[256]; // why: it failed; "" if not
    size_t n_line;
    double ready; // seconds from its start to the end of its first step
    double by_round[SIDE_ROUNDS];
    int n_rounds;
    double times[SIDE_TIMES];
    int n_times;
    double memory;
    int64_t parameters;
} gpu_side;

static inline bool side_fail(gpu_side *s, const char *why)
{
    if (s->why[0] == '\0')
        snprintf(s->why, sizeof(s->why), "%s", why);
    return false;
}

// Reads a line into s->line; what its process says of a failure becomes s->why.
static inline bool side_read(gpu_side *s)
{
    double end = bench_now() + SIDE_TIMEOUT;
    s->n_line = 0;
    for (;;) {
        struct pollfd p = {.fd = s->from, .events = POLLIN};
        double left = end - bench_now();
        char c;
        if (left <= 0 || poll(&p, 1, (int)(1000 * left)) == 0)
            return side_fail(s, "no answer in time");
        ssize_t n = read(s->from, &c, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return side_fail(s, "it ended");
        if (c != '\n') {
            if (s->n_line < SIDE_LINE - 1)
                s->line[s->n_line++] = c;
            continue;
        }
        s->line[s->n_line] = '\0';
        if (strncmp(s->line, "failed ", 7) == 0)
            return side_fail(s, s->line + 7);
        for (const char *word = "ready \0times \0memory \0"; *word != '\0';
             word += strlen(word) + 1)
            if (strncmp(s->line, word, strlen(word)) == 0)
                return true;
        s->n_line = 0; // a library's chatter
    }
}

static inline void side_child(gpu_side *s, const int in[2], const int out[2])
{
    char since[32];
    snprintf(since, sizeof(since), "%.6f", bench_now());
    setenv("BENCH_SINCE", since, 1);
    if (s->cache != NULL) {
        setenv("XDG_CACHE_HOME", s->cache, 1);
        setenv("CUDA_CACHE_PATH", s->cache, 1);
        setenv("TORCHINDUCTOR_CACHE_DIR", s->cache, 1);
    }
    dup2(in[0], 0);
    dup2(out[1], 1);
    execvp(s->argv[0], (char *const *)s->argv);
    printf("failed %s: %s\n", s->argv[0], strerror(errno));
    fflush(stdout);
    _exit(127);
}

// Starts the process and waits for its first step.
static inline bool side_start(gpu_side *s)
{
    int in[2], out[2];
    s->why[0] = '\0';
    s->n_rounds = s->n_times = 0;
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return side_fail(s, strerror(errno));
    fflush(stdout);
    s->pid = fork();
    if (s->pid == 0)
        side_child(s, in, out);
    close(in[0]);
    close(out[1]);
    s->to = in[1];
    s->from = out[0];
    if (s->pid < 0 || !side_read(s))
        return side_fail(s, "cannot be started");
    s->ready = atof(s->line + strlen("ready "));
    return true;
}

static inline bool side_ask(gpu_side *s, const char *question)
{
    size_t n = strlen(question);
    if (s->why[0] != '\0')
        return false;
    if (write(s->to, question, n) != (ssize_t)n)
        return side_fail(s, "it ended");
    return side_read(s);
}

// One round of steps; its median is kept as the round's.
static inline bool side_steps(gpu_side *s, int steps, bool keep)
{
    char text[32];
    snprintf(text, sizeof(text), "steps %d\n", steps);
    if (!side_ask(s, text))
        return false;
    double round[SIDE_TIMES];
    int n = 0;
    for (char *at = s->line + strlen("times"), *next; n < SIDE_TIMES; at = next) {
        double ms = strtod(at, &next);
        if (next == at)
            break;
        round[n++] = 1e-3 * ms;
    }
    if (n == 0)
        return side_fail(s, "no times in its answer");
    if (!keep)
        return true;
    for (int i = 0; i < n && s->n_times < SIDE_TIMES; i++)
        s->times[s->n_times++] = round[i];
    qsort(round, (size_t)n, sizeof(double), bench_by_value);
    if (s->n_rounds < SIDE_ROUNDS)
        s->by_round[s->n_rounds++] = round[n / 2];
    return true;
}

static inline void side_close(gpu_side *s)
{
    if (s->pid <= 0)
        return;
    if (s->why[0] == '\0' && side_ask(s, "memory\n")) {
        char *next;
        s->memory = strtod(s->line + strlen("memory "), &next);
        s->parameters = (int64_t)strtod(next, NULL);
    }
    close(s->to);
    close(s->from);
    for (int i = 0; i < 100 && waitpid(s->pid, NULL, WNOHANG) == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        if (i == 98) {
            kill(s->pid, SIGKILL);
            waitpid(s->pid, NULL, 0);
            break;
        }
    }
    s->pid = 0;
}

static inline bench_stat side_stat(const gpu_side *s)
{
    double v[SIDE_TIMES];
    int n = s->n_times;
    memcpy(v, s->times, sizeof(double) * (size_t)n);
    qsort(v, (size_t)n, sizeof(double), bench_by_value);
    return (bench_stat){v[n / 2], v[n / 4], v[n - 1 - n / 4]};
}

// How many times as fast as the other, round by round.
static inline bench_stat side_ratio(const gpu_side *s, const gpu_side *other)
{
    double r[SIDE_ROUNDS];
    int n = s->n_rounds < other->n_rounds ? s->n_rounds : other->n_rounds;
    for (int i = 0; i < n; i++)
        r[i] = other->by_round[i] / s->by_round[i];
    return bench_stat_of(r, n);
}

#endif
