/*
 * rendezvous.c - ranks that know only where the first one is. Each takes a free port, holds it, and
 * tells its address to rank 0 again and again; rank 0 answers with what it has, and with the whole
 * list once all have come. The connection is the one of wire.h, so who tells is known by its key.
 */
#include "base/ctx.h"
#include "cluster/cluster.h"
#include "net/wire.h"
#include "net/world.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC    0x54544d32u // "TTM2"
#define PAGE     64          // ranks of a message
#define TOLD     56          // "[ffff:...]:65535"
#define AGAIN_MS 50
#define TWICE    (-1) // instead of the number of processes: another one has this rank

// What a rank tells (rank, its own address), and what it is answered (all that are known), of ranks
// from first on.
typedef struct note {
    uint32_t magic;
    int32_t n, first;
    int32_t has_list; // this rank has all and needs no more answers
    char address[PAGE][TOLD];
} note;

typedef struct rendezvous {
    tti_wire *wire;
    int n, self;
    char address[TT_MAX_TASKS][TOLD]; // those that are known here
    bool has_list[TT_MAX_TASKS];
    int other_n, other_rank; // a rank that counts another number of processes
} rendezvous;

// ---- addresses -------------------------------------------------------------------------------

// The names of pods come with the pods.
static bool waits_for_names(void)
{
    const char *pod = tti_env("KUBERNETES_SERVICE_HOST");
    return pod != NULL && pod[0] != '\0';
}

// An address as the system has it; the host of "[::1]:7" is "::1".
static tt_status resolve(tt_ctx *ctx, const char *address, int64_t deadline,
                         struct sockaddr_storage *out, socklen_t *bytes)
{
    char host[TTI_ADDRESS];
    const char *colon = strrchr(address, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    bool bracket = address[0] == '[';
    snprintf(host, sizeof(host), "%.*s", (int)(colon - address) - 2 * bracket, address + bracket);
    int rc = getaddrinfo(host, colon + 1, &hints, &found);
    while ((rc == EAI_NONAME || rc == EAI_AGAIN) && waits_for_names() && tti_now_ns() < deadline &&
           atomic_load(&ctx->stop) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 200 * 1000000}, NULL);
        rc = getaddrinfo(host, colon + 1, &hints, &found);
    }
    if (rc != 0)
        return TT_FAIL(ctx, TT_EIO, "rank 0 is at %s, but host '%s' does not resolve: %s", address,
                       host, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return TT_OK;
}

static void print(const struct sockaddr_storage *a, socklen_t bytes, char host[64], char *out)
{
    char port[16] = "";
    host[0] = '\0';
    (void)getnameinfo((const struct sockaddr *)a, bytes, host, 64, port, sizeof(port),
                      NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, TOLD, a->ss_family == AF_INET6 ? "[%.46s]:%.6s" : "%.46s:%.6s", host, port);
}

// The address that this machine shows to rank 0's: no packet is sent for that.
static bool find_own(const struct sockaddr_storage *leader, socklen_t bytes,
                     struct sockaddr_storage *own, socklen_t *own_bytes)
{
    int s = socket(leader->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *own_bytes = sizeof(*own);
    bool ok = s >= 0 && connect(s, (const struct sockaddr *)leader, bytes) == 0 &&
              getsockname(s, (struct sockaddr *)own, own_bytes) == 0;
    if (s >= 0)
        close(s);
    return ok;
}

int tti_port_hold(const char *host, int *fd)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    bool is_v6 = inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
    if (!is_v6 && inet_pton(AF_INET, host, &v4.sin_addr) != 1)
        return 0;
    *fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int i = 0; *fd >= 0 && i < 1000; i++) {
        uint32_t random = 0; // below the ports that connections get
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
            break;
        int port = 10000 + (int)(random % 22000);
        v4.sin_port = v6.sin6_port = htons((uint16_t)port);
        if (bind(*fd, is_v6 ? (void *)&v6 : (void *)&v4, is_v6 ? sizeof(v6) : sizeof(v4)) == 0)
            return port;
    }
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return 0;
}

// ---- telling ---------------------------------------------------------------------------------

static bool is_whole(const rendezvous *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->address[i][0] == '\0')
            return false;
    return true;
}

// What is known of the page of ranks from first on.
static note note_of(const rendezvous *m, int first)
{
    note t = {.magic = MAGIC, .n = m->n, .first = first};
    memcpy(t.address, m->address[first], sizeof(*t.address) * (size_t)TTI_MIN(PAGE, m->n - first));
    return t;
}

static void keep(rendezvous *m, int rank, const char *address)
{
    memcpy(m->address[rank], address, TOLD);
    m->address[rank][TOLD - 1] = '\0';
}

// At rank 0: what a rank tells.
static void take_own(rendezvous *m, int from, const note *t)
{
    const char *known = m->address[from], *own = t->address[from % PAGE];
    if (known[0] != '\0' && strncmp(known, own, TOLD) != 0) {
        note no = {.magic = MAGIC, .n = TWICE}; // the first one stays
        tti_wire_answer(m->wire, &no, sizeof(no));
        return;
    }
    if (t->n != m->n) {
        m->other_n = t->n;
        m->other_rank = from;
    }
    keep(m, from, own);
    m->has_list[from] = t->has_list != 0;
    for (int first = 0; first < m->n; first += PAGE) {
        note answer = note_of(m, first);
        tti_wire_answer(m->wire, &answer, sizeof(answer));
    }
}

// At the others: what rank 0 answers.
static void take(void *user, int from, const void *message, size_t bytes)
{
    rendezvous *m = user;
    note t;
    if (bytes != sizeof(t) || (m->self != 0 && from != 0))
        return;
    memcpy(&t, message, sizeof(t));
    if (t.magic != MAGIC)
        return;
    if (m->self == 0) {
        take_own(m, from, &t);
        return;
    }
    if (t.n != m->n) {
        m->other_n = t.n;
        m->other_rank = from;
    }
    for (int k = 0; t.first >= 0 && t.first < m->n && k < TTI_MIN(PAGE, m->n - t.first); k++)
        if (t.address[k][0] != '\0')
            keep(m, t.first + k, t.address[k]);
}

static void ignore(void *user, int from, const void *message, size_t bytes)
{
    (void)user, (void)from, (void)message, (void)bytes;
}

static bool is_over(const rendezvous *m)
{
    if (m->other_n != 0)
        return true;
    if (m->self != 0)
        return is_whole(m);
    for (int i = 1; i < m->n; i++)
        if (!m->has_list[i])
            return false;
    return true;
}

static tt_status incomplete(tt_ctx *ctx, const rendezvous *m, const char *leader, int64_t ms)
{
    char list[256] = "";
    size_t at = 0;
    bool heard = m->address[0][0] != '\0';
    if (m->self != 0 && !heard)
        return TT_FAIL(
            ctx, TT_EPEER,
            tti_wire_state_of(m->wire, 0) == TTI_WIRE_SILENT
                ? "rank 0 does not answer at %s within %lld ms: it was not started, listens "
                  "elsewhere, or all ranks have already connected and this rank was started twice"
            : tti_wire_state_of(m->wire, 0) == TTI_WIRE_ANSWERS
                ? "rank 0 listens at %s, but has not answered within %lld ms: it hangs, is "
                  "stopped, or is another program"
                : "the program that answers at %s does not accept this process (waited %lld ms): "
                  "it has another secret, is another program, or this rank was started twice",
            leader, (long long)ms);
    for (int i = 0; i < m->n && at + 32 < sizeof(list); i++)
        if (m->address[i][0] == '\0')
            at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%d", at > 0 ? ", " : "", i);
    if (at == 0) // the last of them has gone since
        snprintf(list, sizeof(list), "of those that had connected");
    int refused = tti_wire_refused(m->wire);
    char more[96] = "";
    if (refused > 0)
        snprintf(more, sizeof(more), "; %d connections without a key of this job were refused",
                 refused);
    return TT_FAIL(ctx, TT_EPEER,
                   "of %d processes, rank %s did not connect to rank 0 at %s within %lld ms; start "
                   "every process with the same variables except the rank%s",
                   m->n, list, leader, (long long)ms, more);
}

static tt_status wait_for_all(tt_ctx *ctx, rendezvous *m, const char *leader, int64_t ms)
{
    int64_t deadline = tti_now_ns() + ms * 1000000, told_ns = 0;
    tti_wire_calls calls = {take, ignore, m};
    note mine = note_of(m, m->self / PAGE * PAGE); // of the others nothing is known yet
    while (!is_over(m)) {
        int64_t now = tti_now_ns();
        if (atomic_load(&ctx->stop) != 0)
            return TT_FAIL(ctx, TT_ESTOP, "stopped on request while waiting for other processes");
        if (now > deadline)
            return incomplete(ctx, m, leader, ms);
        if (m->self != 0 && now - told_ns > AGAIN_MS * INT64_C(1000000)) {
            tti_wire_tell(m->wire, 0, &mine, sizeof(mine));
            told_ns = now;
        }
        tti_wire_serve(m->wire, 10, &calls);
    }
    if (m->other_n == TWICE)
        return TT_FAIL(ctx, TT_EINVAL,
                       "rank %d was started twice: another process of this rank has already "
                       "connected to rank 0 at %s",
                       m->self, leader);
    if (m->other_n != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "rank %d was started with %d processes, but rank %d with %d; start all with "
                       "the same number",
                       m->other_rank, m->other_n, m->self, m->n);
    mine.has_list = 1; // rank 0 waits for that; again, as there is nobody to say it has arrived
    for (int i = 0; m->self != 0 && i < 3; i++)
        tti_wire_tell(m->wire, 0, &mine, sizeof(mine));
    return TT_OK;
}

// ---- the rendezvous --------------------------------------------------------------------------

static tt_status open_and_wait(tt_ctx *ctx, rendezvous *m, const tt_tasks *t, const char *leader)
{
    int64_t ms = t->rendezvous_ms > 0 ? t->rendezvous_ms : TTI_RENDEZVOUS_MS;
    struct sockaddr_storage at, own;
    socklen_t at_bytes = 0, own_bytes = 0;
    char number[TOLD], bind[TOLD], host[64];
    int held = -1;
    TT_TRY(resolve(ctx, leader, tti_deadline(ms), &at, &at_bytes));
    print(&at, at_bytes, host, number);
    if (m->self != 0) {
        if (!find_own(&at, at_bytes, &own, &own_bytes))
            return TT_FAIL(ctx, TT_EIO, "rank 0 is at %s, which this machine cannot reach: %s",
                           leader, strerror(errno));
        print(&own, own_bytes, host, bind);
    }
    int port = tti_port_hold(t->bind != NULL && m->self == 0 ? "0.0.0.0" : host, &held);
    if (port == 0)
        return TT_FAIL(ctx, TT_EIO, "%s has no free port: %s", host, strerror(errno));
    snprintf(m->address[m->self], TOLD, strchr(host, ':') != NULL ? "[%.46s]:%d" : "%.46s:%d", host,
             port);
    snprintf(bind, sizeof(bind), strchr(host, ':') != NULL ? "[%.46s]:0" : "%.46s:0", host);
    if (m->self == 0 && t->bind != NULL)
        snprintf(bind, sizeof(bind), "%.40s%s", t->bind, strrchr(number, ':'));
    else if (m->self == 0)
        memcpy(bind, number, sizeof(bind));
    tt_status st =
        tti_wire_open(ctx, &(tti_wire_opts){m->n, m->self, bind, t->secret, false}, &m->wire);
    if (st == TT_OK && m->self != 0)
        st = tti_wire_connect(m->wire, 0, number);
    if (st == TT_OK)
        st = wait_for_all(ctx, m, leader, ms);
    if (m->wire != NULL)
        tti_wire_close(m->wire, 500);
    close(held);
    return st;
}

tt_status tti_rendezvous(tt_ctx *ctx, const tt_tasks *t, char (*addresses)[TTI_ADDRESS])
{
    rendezvous *m = tti_calloc(ctx, 1, sizeof(*m));
    if (m == NULL)
        return TT_ENOMEM;
    m->n = t->n;
    m->self = t->self;
    tt_status st = open_and_wait(ctx, m, t, addresses[0]);
    for (int i = 0; st == TT_OK && i < t->n; i++)
        snprintf(addresses[i], TTI_ADDRESS, "%s", m->address[i]);
    tti_free(ctx, m);
    return st;
}
