/*
 * hello.c - what a rank says of itself, and what must be equal in all. Ranks are compared with rank
 * 0 in their order, so that every rank finds the same culprit.
 */
#include "device/device.h"
#include "net/world_own.h"
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define CROWDED 4.0 // processes for a core

// ---- the options -----------------------------------------------------------------------------

int64_t tti_timeout_ms(int64_t ms, int processes, bool is_start)
{
    double load = 0, cores = tti_cores();
    if (!is_start || getloadavg(&load, 1) != 1)
        load = 0;
    double per_core = TTI_MIN(load / cores, 2 * CROWDED) + processes / cores;
    return per_core <= CROWDED ? ms : (int64_t)((double)ms * per_core / CROWDED);
}

// Processes of the host that has most of them, by their addresses.
static int n_on_host(const tt_tasks *t)
{
    int most = 1;
    for (int i = 0; t->addresses != NULL && i < t->n; i++) {
        const char *own = t->addresses[i], *colon = own != NULL ? strrchr(own, ':') : NULL;
        int n = 0;
        for (int k = 0; colon != NULL && k < t->n; k++)
            n += t->addresses[k] != NULL &&
                 strncmp(t->addresses[k], own, (size_t)(colon - own) + 1) == 0;
        most = TTI_MAX(most, n);
    }
    return most;
}

static tt_status read_numbers(tti_world *w, const tt_tasks *t)
{
    w->rendezvous_ms = t->rendezvous_ms != 0
                           ? t->rendezvous_ms
                           : tti_timeout_ms(TTI_RENDEZVOUS_MS, n_on_host(t), true);
    w->heartbeat_ms = t->heartbeat_ms == 0 ? 250 : t->heartbeat_ms;
    w->loss_ms = t->loss_ms != 0 ? t->loss_ms : tti_timeout_ms(2000, n_on_host(t), false);
    if (w->rendezvous_ms < 1 || w->heartbeat_ms < 1)
        return TT_FAIL(w->ctx, TT_EINVAL,
                       "tasks: rendezvous_ms %lld, heartbeat_ms %lld; they must be above 0",
                       (long long)w->rendezvous_ms, (long long)w->heartbeat_ms);
    if (w->loss_ms < 3 * w->heartbeat_ms)
        return TT_FAIL(w->ctx, TT_EINVAL,
                       "tasks: loss_ms %lld is below three heartbeats of %lld ms",
                       (long long)w->loss_ms, (long long)w->heartbeat_ms);
    const char *transport = t->transport == NULL ? "auto" : t->transport;
    if (strcmp(transport, "auto") != 0 && strcmp(transport, "shm") != 0 &&
        strcmp(transport, "wire") != 0)
        return TT_FAIL(w->ctx, TT_EINVAL, "tasks: there is no transport '%.32s'; auto, shm, wire",
                       transport);
    snprintf(w->transport, sizeof(w->transport), "%s", transport);
    return TT_OK;
}

// "host:port" in two; the host of "[::1]:7" is "::1".
static tt_status split(tti_world *w, int rank, const char *address, char host[128], char port[8])
{
    const char *colon = address != NULL ? strrchr(address, ':') : NULL;
    size_t n = colon != NULL ? (size_t)(colon - address) : 0;
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
    if (n == 0 || n > 127 || digits == 0 || digits > 5 || colon[1 + digits] != '\0')
        return TT_FAIL(w->ctx, TT_EINVAL, "tasks: the address of rank %d is '%.128s'; host:port is",
                       rank, address != NULL ? address : "");
    bool bracket = address[0] == '[' && address[n - 1] == ']';
    snprintf(host, 128, "%.*s", (int)(bracket ? n - 2 : n), address + bracket);
    snprintf(port, 8, "%s", colon + 1);
    return TT_OK;
}

// The host as a number, so that connecting asks no name server. One that is not up yet is asked
// again up to the deadline.
static tt_status resolve(tti_world *w, int rank, const char *host, const char *port, char *out,
                         size_t room, int64_t deadline)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc;
    while ((rc = getaddrinfo(host, port, &hints, &found)) == EAI_AGAIN && tti_now_ns() < deadline &&
           !tti_world_is_asked(w))
        usleep(100000);
    if (rc != 0)
        return TT_FAIL(w->ctx, TT_EIO, "rank %d (%s): host '%s' does not resolve: %s", rank,
                       w->peers[rank].rank.name, host,
                       rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    char number[128] = "";
    bool is_v6 = found->ai_family == AF_INET6;
    rc = getnameinfo(found->ai_addr, found->ai_addrlen, number, sizeof(number), NULL, 0,
                     NI_NUMERICHOST);
    freeaddrinfo(found);
    if (rc != 0)
        return TT_FAIL(w->ctx, TT_EIO, "rank %d: host '%s': %s", rank, host, gai_strerror(rc));
    snprintf(out, room, is_v6 ? "[%s]:%s" : "%s:%s", number, port);
    return TT_OK;
}

bool tti_interface_address(const char *interface, char out[128])
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next)
        found = i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET &&
                strcmp(i->ifa_name, interface) == 0 &&
                getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in), out, 128, NULL, 0,
                            NI_NUMERICHOST) == 0;
    freeifaddrs(all);
    return found;
}

tt_status tti_tasks_read(tti_world *w, const tt_tasks *t, char *bind, size_t room)
{
    if (t->n < 1 || t->n > TT_MAX_TASKS || t->self < 0 || t->self >= t->n)
        return TT_FAIL(w->ctx, TT_EINVAL, "tasks: rank %d of %d; 1 to %d tasks are allowed",
                       t->self, t->n, TT_MAX_TASKS);
    w->n = t->n;
    w->self = t->self;
    w->all = (tti_subgroup){.id = 1, .n = t->n};
    for (int i = 0; i < t->n; i++)
        w->all.ranks[i] = i;
    w->no_encryption = t->no_encryption;
    w->stop = t->stop;
    TT_TRY(read_numbers(w, t));
    if (t->secret == NULL && t->n > 1)
        return TT_FAIL(w->ctx, TT_EINVAL,
                       "tasks: no secret: every task of a job needs the job's key");
    int64_t deadline = tti_deadline(w->rendezvous_ms);
    for (int i = 0; i < t->n; i++) {
        tti_peer *p = &w->peers[i];
        if (t->names != NULL && t->names[i] != NULL)
            snprintf(p->rank.name, sizeof(p->rank.name), "%s", t->names[i]);
        else
            snprintf(p->rank.name, sizeof(p->rank.name), "/job:worker/task:%d", i);
        if (t->n == 1)
            break;
        char host[128], port[8];
        TT_TRY(split(w, i, t->addresses != NULL ? t->addresses[i] : NULL, host, port));
        for (int k = 0; k < i; k++)
            if (strcmp(t->addresses[i], t->addresses[k]) == 0)
                return TT_FAIL(w->ctx, TT_EINVAL, "tasks: ranks %d and %d have the address %s", k,
                               i, t->addresses[i]);
        TT_TRY(resolve(w, i, host, port, p->address, sizeof(p->address), deadline));
        if (i == w->self && t->bind != NULL) {
            if (!tti_interface_address(t->bind, host))
                snprintf(host, sizeof(host), "%s", t->bind);
            snprintf(bind, room, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
        }
        if (i == w->self && t->bind == NULL)
            snprintf(bind, room, "%s", p->address);
    }
    return TT_OK;
}

// ---- hello -----------------------------------------------------------------------------------

static void read_boot_id(char *out, size_t room)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    out[0] = '\0';
    if (f == NULL)
        return;
    if (fgets(out, (int)room, f) == NULL)
        out[0] = '\0';
    (void)fclose(f);
}

tt_status tti_hello_make(tti_world *w, const tt_tasks *tasks, const char *devices)
{
    tti_hello *h = &w->peers[w->self].hello;
    const char *job = tasks->job != NULL ? tasks->job : "";
    if (getrandom(&w->incarnation, sizeof(w->incarnation), 0) != sizeof(w->incarnation))
        return TT_FAIL(w->ctx, TT_EIO, "the system gives no random numbers");
    *h = (tti_hello){.magic = TTI_WIRE_MAGIC,
                     .kind = TTI_HELLO,
                     .incarnation = w->incarnation,
                     .version = TT_VERSION,
                     .arithmetic = TT_ARITHMETIC,
                     .n = w->n,
                     .rank = w->self,
                     .pid = getpid(),
                     .data_port = tti_wire_data_port(w->wire),
                     .no_encryption = w->no_encryption,
                     .job = tti_hash128(job, strlen(job)),
                     .probe = tti_segment_name_of(&w->probe)};
    memcpy(h->name, w->peers[w->self].rank.name, sizeof(h->name));
    if (gethostname(h->host, sizeof(h->host) - 1) != 0)
        snprintf(h->host, sizeof(h->host), "?");
    const char *id = tasks->host != NULL ? tasks->host : tti_env("TUTTI_HOST_ID");
    if (id != NULL)
        snprintf(h->boot, sizeof(h->boot), "%s", id);
    else
        read_boot_id(h->boot, sizeof(h->boot));
    snprintf(h->devices, sizeof(h->devices), "%s", devices != NULL ? devices : "cpu:0");
    memcpy(h->transport, w->transport, sizeof(h->transport));
    snprintf(h->job_text, sizeof(h->job_text), "%s", job);
    if (tti_wire_data_key(w->wire) != NULL)
        memcpy(h->data_key, tti_wire_data_key(w->wire), sizeof(h->data_key));
    memcpy(w->probe.at, &w->incarnation, sizeof(w->incarnation));
    return TT_OK;
}

static tt_status differs(tti_world *w, int rank, const char *what, const char *theirs,
                         const char *first)
{
    const tti_rank *r = &w->peers[rank].rank;
    return TT_FAIL(w->ctx, TT_EINVAL,
                   "rank %d (%s, host %s, pid %d) has %s %s, but rank 0 (%s, host %s) has %s", rank,
                   r->name, r->host, r->pid, what, theirs, w->peers[0].rank.name,
                   w->peers[0].rank.host, first);
}

static tt_status differs_number(tti_world *w, int rank, const char *what, int theirs, int first)
{
    char a[16], b[16];
    snprintf(a, sizeof(a), "%d", theirs);
    snprintf(b, sizeof(b), "%d", first);
    return differs(w, rank, what, a, b);
}

// The job's texts from where they differ on.
static tt_status differs_job(tti_world *w, int rank, const tti_hello *h, const tti_hello *first)
{
    size_t at = 0;
    while (h->job_text[at] != '\0' && h->job_text[at] == first->job_text[at])
        at++;
    at -= TTI_MIN(at, (size_t)16);
    char a[80], b[80];
    snprintf(a, sizeof(a), "'%.60s'", h->job_text + at);
    snprintf(b, sizeof(b), "'%.60s'", first->job_text + at);
    return differs(w, rank, "another job:", a, b);
}

static tt_status check(tti_world *w, int rank)
{
    const tti_hello *h = &w->peers[rank].hello, *first = &w->peers[0].hello;
    if (h->magic != first->magic)
        return differs_number(w, rank, "messages of version", (int)(h->magic & 0xffff),
                              (int)(first->magic & 0xffff));
    if (strcmp(h->version, first->version) != 0)
        return differs(w, rank, "version", h->version, first->version);
    if (h->arithmetic != first->arithmetic)
        return differs_number(w, rank, "arithmetic", h->arithmetic, first->arithmetic);
    if (h->n != first->n)
        return differs_number(w, rank, "a number of tasks of", h->n, first->n);
    if (strcmp(h->name, w->peers[rank].rank.name) != 0)
        return differs(w, rank, "the name", h->name, w->peers[rank].rank.name);
    if (strcmp(h->transport, first->transport) != 0)
        return differs(w, rank, "transport", h->transport, first->transport);
    if (h->no_encryption != first->no_encryption)
        return differs(w, rank, "data", h->no_encryption ? "not encrypted" : "encrypted",
                       first->no_encryption ? "not encrypted" : "encrypted");
    if (h->job.low != first->job.low || h->job.high != first->job.high)
        return differs_job(w, rank, h, first);
    return TT_OK;
}

tt_status tti_hello_check_all(tti_world *w)
{
    for (int i = 0; i < w->n; i++) {
        tti_rank *r = &w->peers[i].rank;
        const tti_hello *h = &w->peers[i].hello;
        memcpy(r->host, h->host, sizeof(r->host));
        memcpy(r->devices, h->devices, sizeof(r->devices));
        r->pid = h->pid;
    }
    for (int i = 1; i < w->n; i++)
        TT_TRY(check(w, i));
    return TT_OK;
}
