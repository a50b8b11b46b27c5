/*
 * world_links.c - links that are slow, stall or break while a job runs. Both ranks reach each other
 * through a proxy of the test, at another loopback address: it delays what it forwards, holds it
 * back, or cuts connections. Sums that come out are compared each time.
 */
#include "world_test.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define COUNT 200001
#define PAIRS 64
#define ROOM  ((size_t)1 << 18) // bytes under way in one direction
#define MARKS 256

// ---- the proxy -------------------------------------------------------------------------------

typedef struct way { // one direction of a connection: bytes, and when they may go on
    char bytes[ROOM];
    size_t begin, end; // counted up
    struct {
        size_t end;
        double due;
    } mark[MARKS];
    unsigned first, last;
    bool is_over; // no more comes in
} way;

typedef struct carried {
    int fd[2], door;
    way way[2]; // from fd[i] to the other
} carried;

typedef struct proxy {
    int listener[4], port[4], n; // of control and data of two ranks
    carried *pair[PAIRS];
    _Atomic double delay;   // seconds
    _Atomic bool is_lossy;  // now and then something waits for 200 ms, as after a lost packet
    _Atomic bool is_frozen; // nothing goes on
    _Atomic bool is_shut;   // nobody connects
    _Atomic bool forgets;   // of a connection that was closed nothing more goes on
    _Atomic int cuts;       // wanted: one more cuts all connections
    _Atomic int flips;      // wanted: one more changes a bit of data
    _Atomic int n_flips;
    int n_cuts;
    char heard[1 << 16]; // what went to rank 0's data first
    _Atomic size_t n_heard;
    _Atomic bool stop;
} proxy;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct sockaddr_in at(const char *host, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}

static void open_door(proxy *p, int port)
{
    struct sockaddr_in a = at("127.0.0.2", port);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    CHECK(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 16) == 0);
    p->port[p->n] = port;
    p->listener[p->n++] = fd;
}

static void hang_up(proxy *p, int i)
{
    struct linger hard = {1, 0};
    for (int k = 0; k < 2; k++) {
        setsockopt(p->pair[i]->fd[k], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
        close(p->pair[i]->fd[k]);
    }
    free(p->pair[i]);
    p->pair[i] = NULL;
}

static void answer(proxy *p, int k)
{
    int client = accept4(p->listener[k], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), i = 0;
    if (client < 0)
        return;
    while (i < PAIRS && p->pair[i] != NULL)
        i++;
    struct sockaddr_in a = at("127.0.0.1", p->port[k]);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->is_shut || i == PAIRS || connect(server, (struct sockaddr *)&a, sizeof(a)) != 0) {
        close(client);
        close(server);
        return;
    }
    p->pair[i] = calloc(1, sizeof(carried));
    p->pair[i]->door = k;
    p->pair[i]->fd[0] = client;
    p->pair[i]->fd[1] = server;
}

// Takes what has come and gives what is due; false: one side is gone.
static bool carry(proxy *p, carried *c, int side)
{
    way *w = &c->way[side];
    int from = c->fd[side], to = c->fd[1 - side];
    bool is_data = c->door % 2 == 1 && side == 0;
    double t = now();
    while (w->end - w->begin < ROOM && w->last - w->first < MARKS) {
        size_t place = w->end % ROOM, n = ROOM - (w->end - w->begin);
        n = n < ROOM - place ? n : ROOM - place;
        ssize_t got = recv(from, w->bytes + place, n, MSG_DONTWAIT);
        w->is_over |= got == 0 || (got < 0 && errno == ECONNRESET && p->forgets);
        if (got <= 0)
            break;
        if (is_data && got > 4096 && p->n_flips < p->flips) {
            w->bytes[place + (size_t)got / 2] ^= 4;
            p->n_flips++;
        }
        if (is_data && c->door == 1 && w->end == p->n_heard &&
            w->end + (size_t)got <= sizeof(p->heard)) {
            memcpy(p->heard + w->end, w->bytes + place, (size_t)got);
            p->n_heard += (size_t)got;
        }
        w->end += (size_t)got;
        w->mark[w->last % MARKS].end = w->end;
        w->mark[w->last++ % MARKS].due = t + p->delay + (p->is_lossy && rand() % 20 == 0 ? 0.2 : 0);
    }
    while (w->first != w->last && w->mark[w->first % MARKS].due <= t) {
        size_t place = w->begin % ROOM, n = w->mark[w->first % MARKS].end - w->begin;
        n = n < ROOM - place ? n : ROOM - place;
        ssize_t put = send(to, w->bytes + place, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno != EAGAIN)
            return false;
        if (put <= 0)
            break;
        w->begin += (size_t)put;
        w->first += w->begin == w->mark[w->first % MARKS].end;
    }
    return !w->is_over || (w->begin != w->end && !p->forgets);
}

static void *run_proxy(void *arg)
{
    proxy *p = arg;
    while (!p->stop) {
        struct pollfd f[4 + 2 * PAIRS];
        int n = 0;
        for (int k = 0; k < p->n; k++)
            f[n++] = (struct pollfd){.fd = p->listener[k], .events = POLLIN};
        for (int i = 0; i < PAIRS && !p->is_frozen; i++)
            for (int k = 0; k < 2 && p->pair[i] != NULL; k++)
                f[n++] = (struct pollfd){.fd = p->pair[i]->fd[k], .events = POLLIN};
        (void)poll(f, (nfds_t)n, 1);
        bool cuts = p->n_cuts < p->cuts;
        p->n_cuts += cuts;
        for (int k = 0; k < p->n; k++)
            answer(p, k);
        for (int i = 0; i < PAIRS; i++) {
            carried *c = p->pair[i];
            if (c != NULL && !p->is_frozen && (cuts || !carry(p, c, 0) || !carry(p, c, 1)))
                hang_up(p, i);
        }
    }
    for (int i = 0; i < PAIRS; i++)
        if (p->pair[i] != NULL)
            hang_up(p, i);
    for (int k = 0; k < p->n; k++)
        close(p->listener[k]);
    return NULL;
}

// ---- a job behind it -------------------------------------------------------------------------

static bool has_socket(pid_t pid, unsigned long inode)
{
    char path[64], name[64], want[64];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    snprintf(want, sizeof(want), "socket:[%lu]", inode);
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
        char full[400];
        snprintf(full, sizeof(full), "%s/%s", path, e->d_name);
        ssize_t n = readlink(full, name, sizeof(name) - 1);
        name[n > 0 ? n : 0] = '\0';
        found = strcmp(name, want) == 0;
    }
    if (d != NULL)
        closedir(d);
    return found;
}

// The port that a process listens at besides the one that is known; 0: none yet.
static int find_port(pid_t pid, int known)
{
    char line[512];
    int found = 0;
    FILE *f = fopen("/proc/net/tcp", "re");
    while (f != NULL && found == 0 && fgets(line, sizeof(line), f) != NULL) {
        unsigned port, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*d %*d %lu", &port, &state,
                   &inode) == 3 &&
            state == 10 && (int)port != known && has_socket(pid, inode))
            found = (int)port;
    }
    if (f != NULL)
        (void)fclose(f);
    return found;
}

static void by_proxy(world_job *j, int rank, tt_tasks *t)
{
    static char other[32];
    static const char *addresses[2];
    memcpy(addresses, j->addresses, sizeof(addresses));
    snprintf(other, sizeof(other), "127.0.0.2%s", strchr(j->address[1 - rank], ':'));
    addresses[1 - rank] = other;
    t->addresses = addresses;
    t->transport = "wire";
    t->host = rank == 0 ? "a" : "b"; // no other way to see that a process has ended
}

static float value(int rank, int i, int turn)
{
    return 0.5f * (float)((i + 31 * turn) % 1009) + (float)rank;
}

// Sums until the test raises rank 0's stage to 100; both stop after the same one.
static void sum_on(world_job *j, int rank, tt_ctx *ctx)
{
    static float x[COUNT], y[COUNT];
    tt_comm *c = tt_comm_open(ctx, .members = 1);
    bool stops = false;
    for (int turn = 0; !stops && tt_status_of(ctx) == TT_OK; turn++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = value(rank, i, turn);
        x[COUNT - 1] = rank == 0 && j->ranks[0].stage >= 100;
        tt_member m = {x, y, COUNT, rank, 1};
        if (tt_all_reduce(c, &m, .lanes = 2) != TT_OK)
            return;
        for (int i = 0; i < COUNT - 1; i++)
            if (y[i] != value(0, i, turn) + value(1, i, turn)) {
                (void)TT_FAIL(ctx, TT_EINVAL, "turn %d: element %d is wrong", turn, i);
                return;
            }
        stops = y[COUNT - 1] != 0;
        j->ranks[rank].hash = (uint64_t)turn + 1;
        if (j->ranks[rank].stage == 0)
            j->ranks[rank].stage = 1;
    }
}

typedef struct behind {
    world_job j;
    proxy p;
    pthread_t thread;
} behind;

static void start(behind *b, void (*run)(world_job *, int, tt_ctx *))
{
    b->j.n = 2;
    b->j.change = by_proxy;
    b->j.run = run;
    world_prepare(&b->j);
    for (int r = 0; r < 2; r++)
        world_fork(&b->j, r);
    int port[4];
    for (int r = 0; r < 2; r++) {
        port[2 * r] = atoi(strchr(b->j.address[r], ':') + 1);
        double deadline = now() + 20;
        while ((port[2 * r + 1] = find_port(b->j.ranks[r].pid, port[2 * r])) == 0 &&
               now() < deadline)
            usleep(2000);
        CHECK(port[2 * r + 1] != 0);
    }
    for (int k = 0; k < 4; k++)
        open_door(&b->p, port[k]);
    CHECK(pthread_create(&b->thread, NULL, run_proxy, &b->p) == 0);
    for (int r = 0; r < 2; r++)
        world_await_stage(&b->j, r, 1);
}

// More sums come out after this moment.
static void expect_sums(behind *b, uint64_t more)
{
    uint64_t before = b->j.ranks[0].hash;
    double deadline = now() + 20;
    while (b->j.ranks[0].hash < before + more && b->j.ranks[0].status == TT_OK && now() < deadline)
        usleep(2000);
    ck_assert_msg(b->j.ranks[0].hash >= before + more, "rank 0: %s; rank 1: %s",
                  b->j.ranks[0].message, b->j.ranks[1].message);
}

static void end(behind *b, tt_status st)
{
    b->j.ranks[0].stage = st == TT_OK ? 100 : 1;
    world_join(&b->j, 20);
    b->p.stop = true;
    pthread_join(b->thread, NULL);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(b->j.ranks[i].status == st, "rank %d: %s", i, b->j.ranks[i].message);
}

TEST(world_links_that_break_for_a_moment_lose_nothing)
{
    static behind b;
    b.j.tasks.loss_ms = 10000; // it is not about how long a busy machine may take
    start(&b, sum_on);
    for (int i = 0; i < 12; i++) {
        b.p.cuts++;
        usleep(30000 + 17000 * (useconds_t)i); // also while connections are being made
        if (i % 3 == 2)
            expect_sums(&b, 2);
    }
    b.p.is_shut = true; // away for a second
    b.p.cuts++;
    usleep(1000000);
    b.p.is_shut = false;
    expect_sums(&b, 3);
    b.p.is_frozen = true;
    usleep(1000000);
    b.p.is_frozen = false;
    expect_sums(&b, 3);
    end(&b, TT_OK);
}

TEST(world_links_that_stay_broken_are_lost)
{
    static behind b;
    start(&b, sum_on);
    b.p.is_shut = true;
    b.p.cuts++;
    end(&b, TT_EPEER);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(strstr(b.j.ranks[i].message, "no heartbeat") != NULL, "rank %d: %s", i,
                      b.j.ranks[i].message);
        CHECK(b.j.ranks[i].seconds < 8);
    }
}

TEST(world_links_with_delay_and_loss_are_only_slow)
{
    static behind b;
    b.p.delay = 0.05; // each way
    b.j.tasks.loss_ms = 10000;
    start(&b, sum_on);
    b.p.is_lossy = true;
    expect_sums(&b, 2);
    end(&b, TT_OK);
}

// One rank leaves, the other stays for longer than the silence that is taken for a loss.
static void sum_and_stay(world_job *j, int rank, tt_ctx *ctx)
{
    sum_on(j, rank, ctx);
    if (rank == 0)
        usleep((useconds_t)(2000 * j->tasks.loss_ms));
    j->ranks[rank].stage = 200;
}

TEST(world_goodbyes_arrive_before_their_links_are_closed)
{
    static behind b;
    b.p.forgets = true;
    b.j.tasks.loss_ms = 1500;
    start(&b, sum_and_stay);
    b.p.delay = 0.1;
    end(&b, TT_OK);
    CHECK_INT(b.j.ranks[0].stage, 200);
}

// ---- somebody who reads and changes what is not encrypted -------------------------------------

TEST(world_links_without_encryption_take_nothing_that_was_changed)
{
    static behind b;
    b.j.tasks.no_encryption = true;
    b.j.tasks.loss_ms = 10000;
    start(&b, sum_on);
    for (int i = 0; i < 6; i++) {
        b.p.flips++;
        double deadline = now() + 20;
        while (b.p.n_flips < b.p.flips && now() < deadline)
            usleep(1000);
        CHECK_INT(b.p.n_flips, b.p.flips);
        expect_sums(&b, 3); // each of them is compared
    }
    end(&b, TT_OK);
}

// Sends what another has sent, to the same place.
static int repeat(const proxy *p)
{
    struct sockaddr_in a = at("127.0.0.1", p->port[1]);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    for (size_t sent = 0; sent < p->n_heard;) {
        size_t n = sent == 0 ? 64 : p->n_heard - sent; // the greeting, then all else
        ssize_t put = send(fd, p->heard + sent, n, MSG_NOSIGNAL);
        if (put <= 0)
            break;
        sent += (size_t)put;
        usleep(20000);
    }
    return fd;
}

TEST(world_links_without_encryption_take_nothing_twice_or_forged)
{
    static behind b;
    int fds[3];
    b.j.tasks.no_encryption = true;
    b.j.tasks.loss_ms = 10000;
    start(&b, sum_on);
    CHECK(b.p.n_heard > 1000);
    fds[0] = repeat(&b.p); // as it was: of the past
    expect_sums(&b, 3);
    for (int i = 1; i < 3; i++) { // with other data in it, and with another number
        b.p.heard[b.p.n_heard - (i == 1 ? 500 : 1)] ^= 1;
        for (size_t k = 128; i == 2 && k < b.p.n_heard; k += 97)
            b.p.heard[k] ^= 1;
        fds[i] = repeat(&b.p);
        expect_sums(&b, 3);
    }
    end(&b, TT_OK);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}
