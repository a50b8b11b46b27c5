/*
 * frozen.c - a process that freezes while the job starts: the others name it, whatever they were
 * about, and take it for no one else.
 */
#include "../world_test.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// As a process does that was stopped after it began to listen: the system accepts for it.
static pid_t listen_and_hang(const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    at.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 16) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        sleep(30);
        _exit(0);
    }
    close(fd);
    return pid;
}

TEST(world_who_listens_but_hangs_has_no_other_secret)
{
    world_job j = {.n = 2, .tasks = {.rendezvous_ms = 4000}}; // longer than a handshake may take
    world_prepare(&j);
    j.ranks[1].pid = listen_and_hang(j.address[1]);
    world_fork(&j, 0);
    int status;
    CHECK(waitpid(j.ranks[0].pid, &status, 0) == j.ranks[0].pid);
    kill(j.ranks[1].pid, SIGKILL);
    CHECK(waitpid(j.ranks[1].pid, &status, 0) == j.ranks[1].pid);
    CHECK(j.ranks[0].status == TT_EPEER);
    ck_assert_msg(strstr(j.ranks[0].message, "rank 1 (/job:worker/task:1) listens at ") != NULL &&
                      strstr(j.ranks[0].message, "another secret") == NULL,
                  "%s", j.ranks[0].message);
}

// Enough to do that it is stopped at the latest here.
static void meet_again(world_job *j, int rank, tt_ctx *ctx)
{
    for (int i = 0; i < 2000 && tt_status_of(ctx) == TT_OK; i++) {
        IGNORED(tti_world_exchange(ctx->world, "again", NULL, 0, NULL, 0));
        usleep(2000);
        j->ranks[rank].stage = i;
    }
}

static void freeze(int victim, unsigned delay_us, const char *transport)
{
    world_job j = {
        .n = 3, .tasks = {.rendezvous_ms = 3000, .transport = transport}, .run = meet_again};
    char name[32];
    int status;
    world_start(&j);
    usleep(delay_us);
    CHECK(kill(j.ranks[victim].pid, SIGSTOP) == 0);
    for (int i = 0; i < 3; i++)
        if (i != victim)
            CHECK(waitpid(j.ranks[i].pid, &status, 0) == j.ranks[i].pid);
    kill(j.ranks[victim].pid, SIGKILL);
    CHECK(waitpid(j.ranks[victim].pid, &status, 0) == j.ranks[victim].pid);
    snprintf(name, sizeof(name), "rank %d (", victim);
    for (int i = 0; i < 3; i++) {
        const char *m = j.ranks[i].message, *first = strstr(m, "rank ");
        if (i == victim)
            continue;
        ck_assert_msg(j.ranks[i].status == TT_EPEER || j.ranks[i].status == TT_ETIMEOUT,
                      "rank %d frozen after %u us, rank %d: %s", victim, delay_us, i, m);
        ck_assert_msg(first != NULL && strncmp(first, name, strlen(name)) == 0 &&
                          strstr(m, "another secret") == NULL,
                      "rank %d frozen after %u us, rank %d: %s", victim, delay_us, i, m);
    }
}

// Ranks meet within the first 30 ms: who freezes there has met some of the others, but not all.
static const unsigned most_us[] = {30000, 30000, 120000};

#define FREEZES(name_, transport_)                                                       \
    TEST(name_)                                                                          \
    {                                                                                    \
        unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid();                       \
        for (int i = 0; i < 3; i++)                                                      \
            freeze(rand_r(&seed) % 3, (unsigned)rand_r(&seed) % most_us[i], transport_); \
    }
FREEZES(world_who_freezes_at_the_start_is_named_shm, "shm")
FREEZES(world_who_freezes_at_the_start_is_named_wire, "wire")
