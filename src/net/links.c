/*
 * links.c - what connects each pair of ranks: shared memory where it can be mapped both ways, else
 * the wire; and the self-test of every link. Pairs are tested in rounds, each rank in one pair of a
 * round, so that no link's figures suffer from another's.
 */
#include "device/device.h"
#include "net/world_own.h"
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OF_LINKS   (UINT64_C(1) << 63 | 2)
#define TEST_MS    5000
#define TEST_BYTES ((size_t)1 << 20)
#define PINGS      8

// A rank's probe: what shows that a mapping is of the process that said hello, then memory to read.
typedef struct probe {
    uint64_t incarnation;
    tti_flag ping[TT_MAX_TASKS]; // by who pings
    _Alignas(64) char data[TEST_BYTES];
} probe;

size_t tti_probe_bytes(void)
{
    return sizeof(probe);
}

void tti_probe_init(tti_world *w)
{
    probe *p = w->probe.at;
    for (int i = 0; i < w->n; i++)
        tti_flag_init_shared(&p->ping[i]);
    memset(p->data, w->self + 1, sizeof(p->data));
}

// ---- who shares memory -----------------------------------------------------------------------

static bool reach(tti_world *w, int rank, tti_segment *out)
{
    tti_peer *p = &w->peers[rank];
    if (strcmp(p->hello.boot, w->peers[w->self].hello.boot) != 0 ||
        p->hello.probe.bytes != sizeof(probe) || !tti_segment_try(&p->hello.probe, out))
        return false;
    if (((probe *)out->at)->incarnation == p->hello.incarnation)
        return true;
    tti_segment_free(out); // a process of another machine, or namespace, has that number here
    return false;
}

static tt_status decide(tti_world *w, const uint8_t *can)
{
    bool is_wire = strcmp(w->transport, "wire") == 0, is_shm = strcmp(w->transport, "shm") == 0;
    for (int i = 0; i < w->n; i++) {
        for (int k = 0; k < i; k++) {
            bool shares = can[i * w->n + k] != 0 && can[k * w->n + i] != 0;
            if (is_shm && !shares)
                return TT_FAIL(w->ctx, TT_EUNSUPPORTED,
                               "transport shm: rank %d (%s, host %s) and rank %d (%s, host %s) "
                               "cannot share memory",
                               k, w->peers[k].rank.name, w->peers[k].rank.host, i,
                               w->peers[i].rank.name, w->peers[i].rank.host);
            if (i == w->self || k == w->self)
                w->peers[i == w->self ? k : i].rank.shares_memory = shares && !is_wire;
        }
    }
    return TT_OK;
}

tt_status tti_links_shm(tti_world *w, tti_segment *probes)
{
    size_t n = (size_t)w->n;
    uint8_t *mine = tti_calloc(w->ctx, n * (n + 1), 1), *all = mine + n;
    if (mine == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < w->n; i++) {
        tti_peer *p = &w->peers[i];
        if (i == w->self || !reach(w, i, &probes[i]))
            continue;
        mine[i] = 1;
        p->pid_fd = (int)syscall(SYS_pidfd_open, p->hello.pid, 0); // -1: it is watched by its beats
    }
    w->peers[w->self].rank.shares_memory = true;
    tt_status st =
        tti_world_exchange(w, "which ranks share a host", mine, n, all, w->rendezvous_ms);
    if (st == TT_OK)
        st = decide(w, all);
    tti_free(w->ctx, mine);
    return st;
}

// ---- the self-test ---------------------------------------------------------------------------

// Whom a rank is with in a round when each of m, an even number, meets each other once.
static int partner(int i, int round, int m)
{
    int k = m - 1;
    if (i == k) {
        for (int j = 0; j < k; j++)
            if (2 * j % k == round)
                return j;
        return 0;
    }
    int j = (round + k - i) % k;
    return j == i ? k : j;
}

static tt_status ping(tti_world *w, int rank, uint32_t number, size_t bytes, char *data,
                      int64_t wait_ms)
{
    tti_message l = {OF_LINKS, 0, number, bytes};
    if (w->self < rank)
        TT_TRY(tti_world_send(w, rank, &l, data, wait_ms));
    TT_TRY(tti_world_receive(w, rank, &l, data, wait_ms));
    if (w->self > rank)
        TT_TRY(tti_world_send(w, rank, &l, data, wait_ms));
    return TT_OK;
}

static tt_status test_wire(tti_world *w, int rank, char *data, int64_t wait_ms)
{
    tti_rank *r = &w->peers[rank].rank;
    int64_t best = INT64_MAX, start;
    for (uint32_t i = 0; i < PINGS; i++) {
        start = tti_now_ns();
        TT_TRY(ping(w, rank, i, 8, data, wait_ms));
        if (i > 0) // who answers may have had the first one lying there
            best = TTI_MIN(best, tti_now_ns() - start);
    }
    r->latency_us = 1e-3 * (double)best / 2;
    memset(data, TTI_MIN(w->self, rank) + 1, TEST_BYTES);
    start = tti_now_ns();
    TT_TRY(ping(w, rank, PINGS, TEST_BYTES, data, wait_ms));
    r->bytes_per_second = 2e9 * (double)TEST_BYTES / (double)(tti_now_ns() - start);
    for (size_t i = 0; i < TEST_BYTES; i++)
        if (data[i] != TTI_MIN(w->self, rank) + 1)
            return TT_FAIL(w->ctx, TT_EPEER, "the link to rank %d (%s) corrupts data", rank,
                           r->name);
    return TT_OK;
}

// In slices, as the world may fail meanwhile.
static tt_status await_ping(tti_world *w, tti_flag *f, uint32_t value, int64_t deadline)
{
    int spin = w->n > tti_cores() ? 0 : 2000; // on a core that the other one needs
    for (;;) {
        tt_status st = tti_flag_wait(f, value, spin, TTI_MIN(deadline, tti_deadline(100)));
        if (st != TT_ETIMEOUT)
            return st;
        if (atomic_load(&w->has_failed))
            return TT_EPEER;
        if (tti_now_ns() >= deadline)
            return TT_ETIMEOUT;
    }
}

static tt_status test_shm(tti_world *w, int rank, const tti_segment *theirs, char *data,
                          int64_t deadline)
{
    tti_rank *r = &w->peers[rank].rank;
    probe *mine = w->probe.at, *other = theirs->at;
    int64_t start = tti_now_ns();
    for (uint32_t i = 1; i <= PINGS; i++) {
        if (w->self < rank)
            tti_flag_set(&other->ping[w->self], i);
        TT_TRY(await_ping(w, &mine->ping[rank], i, deadline));
        if (w->self > rank)
            tti_flag_set(&other->ping[w->self], i);
    }
    r->latency_us = 1e-3 * (double)(tti_now_ns() - start) / (2 * PINGS);
    start = tti_now_ns();
    memcpy(data, other->data, TEST_BYTES);
    r->bytes_per_second = 1e9 * (double)TEST_BYTES / (double)(tti_now_ns() - start);
    for (size_t i = 0; i < TEST_BYTES; i++)
        if (data[i] != rank + 1)
            return TT_FAIL(w->ctx, TT_EPEER,
                           "the shared memory of rank %d (%s) does not hold what it wrote", rank,
                           r->name);
    return TT_OK;
}

static int n_on_host(const tti_world *w)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        n += strcmp(w->peers[i].hello.boot, w->peers[w->self].hello.boot) == 0;
    return n;
}

tt_status tti_links_test(tti_world *w, const tti_segment *probes)
{
    int m = w->n + w->n % 2;
    int64_t ms = tti_timeout_ms(TEST_MS, n_on_host(w), true); // for each, as all share the cores
    char *data = tti_calloc(w->ctx, 1, TEST_BYTES);
    tt_status st = data == NULL ? TT_ENOMEM : TT_OK;
    for (int round = 0; st == TT_OK && round < m - 1; round++) {
        int rank = partner(w->self, round, m);
        if (rank >= w->n)
            continue;
        tti_rank *r = &w->peers[rank].rank;
        int64_t deadline = tti_deadline(ms);
        st = r->shares_memory ? test_shm(w, rank, &probes[rank], data, deadline)
                              : test_wire(w, rank, data, ms);
        if (st == TT_ETIMEOUT)
            st = tti_world_late(
                w, rank, r->shares_memory ? "the self-test over shm" : "the self-test over wire",
                ms);
        if (st == TT_OK)
            TT_LOG(w->ctx, TT_INFO, "link to rank %d (%s, host %s): %s, %.1f us, %.2f GB/s", rank,
                   r->name, r->host, r->shares_memory ? "shm" : "wire", r->latency_us,
                   1e-9 * r->bytes_per_second);
    }
    tti_free(w->ctx, data);
    return st;
}
