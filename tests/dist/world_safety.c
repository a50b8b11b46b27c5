/*
 * world_safety.c - strangers of a job: no key, a wrong key, recorded bytes, too many
 * bytes, too slow, too many. Nothing is admitted, memory stays bounded and the job goes on.
 */
#include "world_test.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_in address_of(const char *text)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)atoi(strchr(text, ':') + 1));
    return a;
}

static int knock(const char *address)
{
    struct sockaddr_in a = address_of(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0);
    (void)!connect(fd, (struct sockaddr *)&a, sizeof(a));
    return fd;
}

// Exchanges until the test raises rank 0's stage to 100.
static void go_on(world_job *j, int rank, tt_ctx *ctx)
{
    int all[WORLD_MOST], mine = 0;
    for (int i = 0; mine == 0; i++) {
        int stop = j->ranks[0].stage >= 100;
        if (tti_world_exchange(ctx->world, "going on", &stop, sizeof(stop), all, 0) != TT_OK)
            return;
        mine = all[0];
        j->ranks[rank].hash = (uint64_t)i;
        if (j->ranks[rank].stage == 0)
            j->ranks[rank].stage = 1;
        usleep(1000);
    }
}

static void start_going(world_job *j)
{
    world_start(j);
    for (int i = 0; i < j->n; i++)
        world_await_stage(j, i, 1);
}

// Waits for another exchange, which the threads of both ranks take part in; false: none in 5 s.
static bool goes_on(const world_job *j)
{
    uint64_t before = j->ranks[0].hash;
    for (int i = 0; i < 5000 && j->ranks[0].hash == before; i++)
        usleep(1000);
    return j->ranks[0].hash > before;
}

// The job is not harmed: it still goes on, and ends well.
static void end_going(world_job *j)
{
    ck_assert_msg(goes_on(j), "rank 0: %s; rank 1: %s", j->ranks[0].message, j->ranks[1].message);
    j->ranks[0].stage = 100;
    world_join(j, 10);
    for (int i = 0; i < j->n; i++)
        ck_assert_msg(j->ranks[i].status == TT_OK, "rank %d: %s", i, j->ranks[i].message);
}

// ---- keys ------------------------------------------------------------------------------------

static void other_secret(world_job *j, int rank, tt_tasks *t)
{
    static unsigned char other[TT_SECRET_BYTES];
    memcpy(other, j->secret, sizeof(other));
    other[31] ^= 1;
    t->secret = rank == 1 ? other : j->secret;
}

TEST(world_wrong_key_is_named_on_both_sides)
{
    world_job j = {.n = 2, .tasks = {.rendezvous_ms = 1500}, .change = other_secret};
    world_run(&j);
    for (int i = 0; i < 2; i++) {
        CHECK(j.ranks[i].status == TT_EPEER);
        ck_assert_msg(strstr(j.ranks[i].message, "it has another secret") != NULL, "rank %d: %s", i,
                      j.ranks[i].message);
        CHECK(j.ranks[i].seconds < 5);
    }
}

// ---- a rank that starts twice ----------------------------------------------------------------

static void at_another_port(world_job *j, int rank, tt_tasks *t)
{
    static const char *addresses[WORLD_MOST];
    if (j->arg == NULL || rank != 1)
        return;
    memcpy(addresses, j->addresses, sizeof(addresses));
    addresses[1] = j->arg;
    t->addresses = addresses;
    t->rendezvous_ms = 3000;
}

// Rank 1 once more; what it ends with.
static void start_again(world_job *j, char *message, size_t room)
{
    int pipes[2], status;
    CHECK(pipe(pipes) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        tt_tasks t = {.opts_size = sizeof(t),
                      .n = 2,
                      .self = 1,
                      .addresses = j->addresses,
                      .secret = j->secret};
        at_another_port(j, 1, &t);
        tt_ctx *ctx = tt_open(.on_event = test_ignore_event, .tasks = &t);
        const char *text = tt_last_error(ctx).message;
        (void)!write(pipes[1], text, strlen(text) + 1);
        (void)tt_close(ctx);
        _exit(0);
    }
    CHECK(read(pipes[0], message, room) > 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    close(pipes[0]);
    close(pipes[1]);
}

TEST(world_rank_that_starts_twice_is_refused)
{
    world_job j = {.n = 2, .run = go_on, .change = at_another_port};
    char message[2048], port[32];
    start_going(&j);
    start_again(&j, message, sizeof(message));
    ck_assert_msg(strstr(message, "cannot listen at 127.0.0.1:") != NULL &&
                      strstr(message, "started twice") != NULL,
                  "%s", message);
    snprintf(port, sizeof(port), "127.0.0.1:%d", 9000 + getpid() % 900);
    j.arg = port;
    start_again(&j, message, sizeof(message));
    ck_assert_msg(
        strstr(message,
               "rank 1 (/job:worker/task:1) was started twice: rank 0 is connected to process ") !=
            NULL,
        "%s", message);
    end_going(&j);
}

// ---- strangers -------------------------------------------------------------------------------

static void write_all(int fd, const void *data, size_t n)
{
    struct pollfd f = {.fd = fd, .events = POLLOUT};
    (void)poll(&f, 1, 1000);
    (void)!send(fd, data, n, MSG_NOSIGNAL);
}

// A greeting of the protocol, with the mechanism's name.
static void greet(int fd, const char *mechanism)
{
    char g[64] = {(char)0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0};
    memcpy(g + 12, mechanism, strlen(mechanism));
    write_all(fd, g, sizeof(g));
}

// True once the other side has closed.
static bool is_closed(int fd, int ms)
{
    char room[512];
    struct pollfd f = {.fd = fd, .events = POLLIN};
    while (poll(&f, 1, ms) == 1) {
        ssize_t n = recv(fd, room, sizeof(room), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && (f.revents & (POLLERR | POLLHUP)) != 0))
            return true;
    }
    return false;
}

TEST(world_strangers_without_a_key_are_shown_out)
{
    world_job j = {.n = 2, .run = go_on};
    start_going(&j);
    int null = knock(j.address[0]), garbage = knock(j.address[0]), huge = knock(j.address[0]);
    int slow = knock(j.address[0]);
    greet(null, "NULL");
    write_all(null,
              "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x06"
              "DEALER",
              27);
    char junk[4096];
    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = (char)(i * 31 + 7);
    write_all(garbage, junk, sizeof(junk));
    greet(huge, "CURVE"); // then a command of 2^56 bytes
    write_all(huge, "\x06\x01\0\0\0\0\0\0\0\x05HELLO", 15);
    write_all(slow, "\xff", 1); // and nothing more
    CHECK(is_closed(null, 2000));
    CHECK(is_closed(garbage, 2000));
    CHECK(is_closed(huge, 2000));
    CHECK(is_closed(slow, 5000)); // by the handshake's deadline
    close(null);
    close(garbage);
    close(huge);
    close(slow);
    end_going(&j);
}

static int count_fds(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    int n = 0;
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

static long resident_pages(pid_t pid)
{
    char path[64];
    long total = 0, resident = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL || fscanf(f, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (f != NULL)
        (void)fclose(f);
    return resident;
}

TEST(world_thousand_strangers_do_no_harm)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_max < 1100)
        test_skip("this machine lets a process open too few files");
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    world_job j = {.n = 2, .run = go_on};
    start_going(&j);
    static int fds[1000];
    long before = resident_pages(j.ranks[0].pid), most = before;
    int most_fds = 0;
    for (int i = 0; i < 1000; i++) {
        fds[i] = knock(j.address[0]);
        (void)!send(fds[i], "\xff\0\0\0", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (i % 20 == 0) { // the rank's thread has its turn, however busy the machine is
            CHECK(goes_on(&j));
            most = resident_pages(j.ranks[0].pid) > most ? resident_pages(j.ranks[0].pid) : most;
            int n = count_fds(j.ranks[0].pid);
            most_fds = n > most_fds ? n : most_fds;
        }
    }
    ck_assert_msg((most - before) * 4096 < 64 << 20, "%ld more pages", most - before);
    ck_assert_msg(most_fds < 500, "%d open files", most_fds);
    CHECK(j.ranks[0].status == TT_OK && j.ranks[1].status == TT_OK);
    for (int i = 0; i < 1000; i++)
        close(fds[i]);
    end_going(&j);
}

#define CROWD 200

// From the ranks' own address, or each from another.
static int knock_from(const char *address, int i)
{
    struct sockaddr_in a = address_of(address), from = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (i > 0 ? 256 + (uint32_t)i : 0));
    CHECK(bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0);
    (void)!connect(fd, (struct sockaddr *)&a, sizeof(a));
    return fd;
}

// Keeps so many connections without a key open at rank 0's door; one that is closed comes again.
static void stay(const world_job *j)
{
    static int fds[CROWD];
    for (int i = 0; i < CROWD; i++)
        fds[i] = -1;
    for (int i = 0;; i = (i + 1) % CROWD) {
        char room[64];
        ssize_t n = fds[i] < 0 ? 0 : recv(fds[i], room, sizeof(room), MSG_DONTWAIT);
        if (i == 0)
            usleep(2000);
        if (n > 0 || (n < 0 && errno == EAGAIN))
            continue;
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = knock_from(j->address[0], i % 3 == 0 ? 0 : i);
    }
}

TEST(world_strangers_cannot_keep_a_job_from_starting)
{
    int status;
    world_job j = {.n = 2, .run = go_on};
    world_prepare(&j);
    pid_t crowd = fork();
    CHECK(crowd >= 0);
    if (crowd == 0)
        stay(&j);
    world_fork(&j, 0);
    usleep(700000); // they are there before rank 1
    world_fork(&j, 1);
    world_await_stage(&j, 0, 1);
    world_await_stage(&j, 1, 1);
    kill(crowd, SIGKILL);
    CHECK(waitpid(crowd, &status, 0) == crowd);
    end_going(&j);
}

// ---- recorded bytes --------------------------------------------------------------------------

typedef struct proxy {
    int listener, to_fd;
    struct sockaddr_in to;
    char bytes[1 << 16]; // what the client has sent
    _Atomic size_t n;
    _Atomic bool stop;
} proxy;

// Carries one connection, and keeps what goes in.
static void *carry(void *arg)
{
    proxy *p = arg;
    int client = accept(p->listener, NULL, NULL);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (connect(server, (struct sockaddr *)&p->to, sizeof(p->to)) != 0 && !p->stop) {
        close(server);
        usleep(10000);
        server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }
    struct pollfd f[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    char room[4096];
    while (!p->stop && poll(f, 2, 50) >= 0) {
        for (int i = 0; i < 2; i++) {
            ssize_t n = (f[i].revents & POLLIN) != 0 ? recv(f[i].fd, room, sizeof(room), 0) : 0;
            if (n > 0)
                (void)!send(f[1 - i].fd, room, (size_t)n, MSG_NOSIGNAL);
            if (n > 0 && i == 0 && p->n + (size_t)n <= sizeof(p->bytes)) {
                memcpy(p->bytes + p->n, room, (size_t)n);
                p->n += (size_t)n;
            }
        }
    }
    close(client);
    close(server);
    return NULL;
}

// Rank 1 reaches rank 0 through the proxy.
static void by_proxy(world_job *j, int rank, tt_tasks *t)
{
    static const char *addresses[WORLD_MOST];
    if (rank != 1)
        return;
    memcpy(addresses, j->addresses, sizeof(addresses));
    addresses[0] = j->arg;
    t->addresses = addresses;
}

TEST(world_recorded_bytes_admit_nobody)
{
    static proxy p;
    struct sockaddr_in a = address_of("127.0.0.1:0");
    socklen_t n = sizeof(a);
    char address[32];
    pthread_t thread;
    p.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(p.listener, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(p.listener, 1) == 0);
    CHECK(getsockname(p.listener, (struct sockaddr *)&a, &n) == 0);
    snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(a.sin_port));
    world_job j = {.n = 2, .run = go_on, .change = by_proxy, .arg = address};
    world_prepare(&j);
    p.to = address_of(j.address[0]);
    world_fork(&j, 0);
    world_fork(&j, 1);
    CHECK(pthread_create(&thread, NULL, carry, &p) == 0);
    world_await_stage(&j, 0, 1);
    world_await_stage(&j, 1, 1);
    CHECK(p.n > 500); // greeting, handshake, a hello at least
    int again = knock(j.address[0]);
    write_all(again, p.bytes, p.n);
    CHECK(is_closed(again, 5000));
    close(again);
    end_going(&j);
    p.stop = true;
    pthread_join(thread, NULL);
    close(p.listener);
}
