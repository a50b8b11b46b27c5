/*
 * world_test.c - jobs of several processes (world_test.h).
 */
#include "world_test.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A port that nobody has while the socket is open.
static int hold_port(int *fd)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static unsigned next; // below the ports that connections get, which may connect to themselves
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(*fd >= 0);
    for (int i = 0; i < 1000; i++) {
        unsigned port = 10000 + ((unsigned)getpid() * 61 + 7 * next++) % 22000;
        a.sin_port = htons((uint16_t)port);
        if (bind(*fd, (struct sockaddr *)&a, sizeof(a)) == 0)
            return (int)port;
    }
    ck_abort_msg("no free port");
    return 0;
}

void world_prepare(world_job *j)
{
    if (strstr(tt_version_text(), "zeromq: yes") == NULL)
        test_skip("this build has no ZeroMQ");
    j->ranks = mmap(NULL, sizeof(world_rank) * WORLD_MOST, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(j->ranks != MAP_FAILED);
    for (int i = 0; i < TT_SECRET_BYTES; i++)
        j->secret[i] = (unsigned char)(17 * i + getpid());
    int held[WORLD_MOST];
    for (int i = 0; i < j->n; i++) {
        snprintf(j->address[i], sizeof(j->address[i]), "127.0.0.1:%d", hold_port(&held[i]));
        j->addresses[i] = j->address[i];
    }
    for (int i = 0; i < j->n; i++)
        close(held[i]);
}

// The first error, also one that comes while the context closes.
static void keep_error(void *user, const tt_event *ev)
{
    world_rank *r = user;
    if (strcmp(ev->kind, "log") == 0 && ev->level == TT_ERROR && r->message[0] == '\0')
        snprintf(r->message, sizeof(r->message), "%s", ev->text);
}

static void run_rank(world_job *j, int rank)
{
    double start = now();
    world_rank *r = &j->ranks[rank];
    tt_tasks t = j->tasks;
    t.opts_size = sizeof(t);
    t.n = j->n;
    t.self = rank;
    t.addresses = j->addresses;
    t.secret = j->secret;
    if (j->change != NULL)
        j->change(j, rank, &t);
    tt_ctx *ctx = tt_open(.devices = j->devices_of != NULL ? j->devices_of(rank) : j->devices,
                          .threads = 1, .lanes = j->lanes, .strategy = j->strategy,
                          .spread = j->spread, .on_event = keep_error, .user = r, .tasks = &t);
    if (tt_status_of(ctx) == TT_OK && j->run != NULL)
        j->run(j, rank, ctx);
    r->status = tt_close(ctx);
    r->seconds = now() - start;
    _exit(0);
}

void world_fork(world_job *j, int rank)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0); // Check's own group stays its
        run_rank(j, rank);
    }
    j->ranks[rank].pid = pid;
}

void world_start(world_job *j)
{
    world_prepare(j);
    for (int i = 0; i < j->n; i++)
        world_fork(j, i);
}

static int count_in(const char *folder, const char *word)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += strstr(e->d_name, word) != NULL;
    if (d != NULL)
        closedir(d);
    return n;
}

void world_join(world_job *j, double seconds)
{
    double deadline = now() + seconds;
    int left = 0;
    for (int i = 0; i < j->n; i++) {
        pid_t got = 0;
        int status;
        while ((got = waitpid(j->ranks[i].pid, &status, WNOHANG)) == 0 && now() < deadline)
            usleep(2000);
        if (got == 0) {
            left++;
            kill(j->ranks[i].pid, SIGKILL);
            waitpid(j->ranks[i].pid, &status, 0);
            fprintf(stderr, "rank %d at stage %d did not end\n", i, j->ranks[i].stage);
        }
    }
    CHECK_INT(left, 0);
    CHECK_INT(count_in("/dev/shm", "tutti"), 0);
    int status; // nobody has left children
    CHECK(waitpid(-1, &status, WNOHANG) <= 0);
}

void world_run(world_job *j)
{
    world_start(j);
    world_join(j, 20);
}

void world_await_stage(world_job *j, int rank, int stage)
{
    double deadline = now() + 25;
    while (j->ranks[rank].stage < stage && now() < deadline)
        usleep(1000);
    ck_assert_msg(j->ranks[rank].stage >= stage, "rank %d is at stage %d: %s", rank,
                  j->ranks[rank].stage, j->ranks[rank].message);
}

void world_fill(char *to, size_t bytes, tt_dtype t, int member)
{
    uint64_t x = 88172645463325252u + (uint64_t)member * 977;
    size_t item = tt_dtype_bytes(t);
    for (size_t i = 0; i < bytes / item; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double v = (double)(int64_t)(x >> 11) / 9007199254740992.0 - 0.25;
        float f = (float)v;
        uint32_t half;
        memcpy(&half, &f, 4);
        half >>= 16;
        memcpy(to + i * item,
               t == TT_F64    ? (void *)&v
               : t == TT_F32  ? (void *)&f
               : t == TT_BF16 ? (void *)&half
                              : (void *)&x,
               item);
    }
}
