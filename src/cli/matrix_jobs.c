/*
 * matrix_jobs.c - ways of the matrix over processes of this machine: forked, connected, trained,
 * and what each of them ends with held against the others.
 */
#include "cli/matrix.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 120 // for a job; then it is killed

int matrix_share(const matrix_way *way, int n, int task)
{
    return way->devices * (task + 1) / n - way->devices * task / n;
}

// Ports that nobody has, below those that connections get.
static bool find_ports(int n, char out[MATRIX_MOST_TASKS][32])
{
    static unsigned next;
    int held[MATRIX_MOST_TASKS], found = 0;
    for (int tries = 0; found < n && tries < 1000; tries++) {
        unsigned port = 10000 + ((unsigned)getpid() * 61 + 7 * next++) % 22000;
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
            snprintf(out[found], 32, "127.0.0.1:%u", port);
            held[found++] = fd;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    for (int i = 0; i < found; i++)
        close(held[i]);
    return found == n;
}

static void wait_for_all(const pid_t *pids, int n, matrix_result *results)
{
    struct timespec pause = {.tv_nsec = 1000000};
    time_t end = time(NULL) + SECONDS;
    for (int i = 0; i < n; i++) {
        int status = 0;
        pid_t got;
        while ((got = waitpid(pids[i], &status, WNOHANG)) == 0 && time(NULL) < end)
            nanosleep(&pause, NULL);
        if (got == 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], &status, 0);
        }
        if (got == 0 || !WIFEXITED(status)) {
            results[i].status = TT_EPEER;
            snprintf(results[i].message, sizeof(results[i].message), "process %d %s", i,
                     got == 0 ? "did not end" : "was killed");
        }
    }
}

static void run_task(const matrix_model *model, const matrix_way *way, tt_tasks *t, int self,
                     matrix_result *out)
{
    matrix_way own = *way;
    t->self = self;
    own.tasks = t;
    matrix_run(model, &own, NULL, out);
    _exit(0);
}

void matrix_run_job(const matrix_model *model, const matrix_way *way, int n, const char *transport,
                    matrix_result *out)
{
    char address[MATRIX_MOST_TASKS][32];
    const char *addresses[MATRIX_MOST_TASKS];
    unsigned char secret[TT_SECRET_BYTES];
    pid_t pids[MATRIX_MOST_TASKS];
    size_t bytes = sizeof(matrix_result) * MATRIX_MOST_TASKS;
    *out = (matrix_result){.status = TT_EIO, .message = "no port, memory or process for it"};
    matrix_result *results =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED || n > MATRIX_MOST_TASKS || !find_ports(n, address))
        return;
    for (int i = 0; i < TT_SECRET_BYTES; i++)
        secret[i] = (unsigned char)(31 * i + getpid());
    for (int i = 0; i < n; i++)
        addresses[i] = address[i];
    tt_tasks t = {.opts_size = sizeof(t),
                  .n = n,
                  .addresses = addresses,
                  .secret = secret,
                  .transport = transport};
    int started = 0;
    for (; started < n; started++) {
        pids[started] = fork();
        if (pids[started] == 0)
            run_task(model, way, &t, started, &results[started]);
        if (pids[started] < 0)
            break;
    }
    wait_for_all(pids, started, results);
    if (started == n) {
        *out = results[0];
        for (int i = 1; i < n && out->status == TT_OK; i++) {
            if (results[i].status != TT_OK)
                *out = results[i];
            else if (!matrix_same(&results[i], &results[0]))
                *out = (matrix_result){.status = TT_EPEER, .message = "its processes differ"};
        }
    }
    munmap(results, bytes);
}
