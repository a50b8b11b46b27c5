/*
 * membership.c - from a cluster to what tt_open() takes: an address for each process, names, the
 * secret.
 */
#include "base/secure.h"
#include "cluster/cluster.h"
#include "net/world.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

// All of it in one piece of memory, which the caller sees as tt_tasks.
typedef struct membership {
    tt_tasks tasks;
    const char *names[TT_MAX_TASKS], *addresses[TT_MAX_TASKS];
    char name[TT_MAX_TASKS][64], address[TT_MAX_TASKS][TTI_ADDRESS];
    char bind[128], transport[16];
    unsigned char secret[TT_SECRET_BYTES];
    tti_loopback_key key; // of a job without a secret
    int held;             // keeps rank 0's port until it listens there; -1: nothing is held
    char *job;
} membership;

static const char *get_env(const void *user, const char *name)
{
    (void)user;
    return tti_env(name);
}

bool tti_is_loopback(const char *address)
{
    char host[64];
    struct in_addr v4;
    struct in6_addr v6;
    bool bracket = address[0] == '[';
    size_t n = bracket                                         ? strcspn(++address, "]")
               : strchr(address, ':') == strrchr(address, ':') ? strcspn(address, ":")
                                                               : strlen(address);
    if (n >= sizeof(host)) // no name that only looks like one: 127.0.0.1.example.org
        return false;
    memcpy(host, address, n);
    host[n] = '\0';
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

static bool is_text(const char *s)
{
    return s != NULL && s[0] != '\0';
}

// The k-th process of a task; "" where it is not told.
static tt_status address_of(tt_ctx *ctx, const tt_task *t, int k, char out[TTI_ADDRESS])
{
    const char *a = t->address, *end = a[0] == '[' ? strchr(a, ']') : NULL;
    const char *colon = strchr(end != NULL ? end : a, ':');
    int port = TTI_PORT, n = (int)strlen(a);
    out[0] = '\0';
    if (a[0] == '\0')
        return TT_OK;
    if (colon != NULL) {
        n = (int)(colon - a);
        (void)!tti_cluster_number(colon + 1, 65535, &port); // was checked
    }
    if (port + k > 65535)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s has %d processes, whose ports from %d on go beyond 65535", a,
                       t->n_processes, port);
    if (snprintf(out, TTI_ADDRESS, "%.*s:%d", n, a, port + k) >= TTI_ADDRESS)
        return TT_FAIL(ctx, TT_EINVAL, "'%s': the host has more than %d characters", a,
                       TTI_ADDRESS - 8);
    return TT_OK;
}

static tt_status list_tasks(tt_ctx *ctx, const tt_cluster *c, membership *m)
{
    for (int i = 0; i < c->n_tasks; i++) {
        const tt_task *t = &c->tasks[i];
        for (int k = 0; t->first_rank >= 0 && k < t->n_processes; k++) {
            int rank = t->first_rank + k;
            TT_TRY(address_of(ctx, t, k, m->address[rank]));
            snprintf(m->name[rank], sizeof(m->name[rank]), "/job:%s/task:%d", t->job,
                     c->source == TT_CLUSTER_TF_CONFIG ? t->index : rank);
        }
    }
    return TT_OK;
}

// torchrun's own process listens at MASTER_PORT while it says that it has the store there.
static void next_to_store(const tt_cluster *c, membership *m)
{
    const char *store = tti_env("TORCHELASTIC_USE_AGENT_STORE");
    char *colon = strrchr(m->address[0], ':');
    int port;
    if (c->source != TT_CLUSTER_TORCHRUN || store == NULL || strcmp(store, "True") != 0 ||
        colon == NULL || !tti_cluster_number(colon + 1, 65534, &port))
        return;
    snprintf(colon, (size_t)(m->address[0] + TTI_ADDRESS - colon), ":%d", port + 1);
}

static tt_status get_ms(tt_ctx *ctx, const char *name, int64_t *out)
{
    const char *text = tti_env(name);
    char found[TTI_EXCERPT];
    int ms;
    if (text == NULL || text[0] == '\0')
        return TT_OK;
    if (!tti_cluster_number(text, 86400000, &ms) || ms < 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s=%s is not a number of milliseconds from 1 to 86400000",
                       name, tti_excerpt(found, text));
    *out = ms;
    return TT_OK;
}

static tt_status get_settings(tt_ctx *ctx, int n_here, membership *m)
{
    tt_tasks *t = &m->tasks;
    const char *bind = tti_env("TUTTI_BIND"), *transport = tti_env("TUTTI_TRANSPORT");
    const char *encryption = tti_env("TUTTI_ENCRYPTION");
    char found[TTI_EXCERPT];
    t->rendezvous_ms = tti_timeout_ms(TTI_RENDEZVOUS_MS, n_here, true);
    TT_TRY(get_ms(ctx, "TUTTI_RENDEZVOUS_MS", &t->rendezvous_ms));
    TT_TRY(get_ms(ctx, "TUTTI_HEARTBEAT_MS", &t->heartbeat_ms));
    TT_TRY(get_ms(ctx, "TUTTI_LOSS_MS", &t->loss_ms));
    if (encryption != NULL && encryption[0] != '\0' && strcmp(encryption, "off") != 0 &&
        strcmp(encryption, "on") != 0)
        return TT_FAIL(ctx, TT_EINVAL, "TUTTI_ENCRYPTION=%s: use on or off",
                       tti_excerpt(found, encryption));
    t->no_encryption = encryption != NULL && strcmp(encryption, "off") == 0;
    if (bind != NULL && bind[0] != '\0') {
        snprintf(m->bind, sizeof(m->bind), "%s", bind);
        t->bind = m->bind;
    }
    if (transport != NULL && transport[0] != '\0') {
        snprintf(m->transport, sizeof(m->transport), "%s", transport);
        t->transport = m->transport;
    }
    return TT_OK;
}

// Does TUTTI_BIND, if it is set, keep to this machine?
static bool is_bound_here(const char *bind)
{
    char at[128];
    return bind == NULL || tti_is_loopback(bind) ||
           (tti_interface_address(bind, at) && tti_is_loopback(at));
}

// Beyond this machine every listener needs a secret that was given to all processes.
static tt_status check_local(tt_ctx *ctx, const tt_cluster *c, const membership *m)
{
    char found[TTI_EXCERPT];
    for (int i = 0; i < m->tasks.n; i++)
        if (m->address[i][0] != '\0' && !tti_is_loopback(m->address[i]))
            return TT_FAIL(ctx, TT_EINVAL,
                           "%d processes (%s), rank %d at %s, but no secret: across machines each "
                           "needs the job's; 'tutti key new FILE' makes one, every machine gets a "
                           "copy, and TUTTI_SECRET_FILE=FILE tells where it is; or TUTTI_KEY_DIR "
                           "is a folder that all machines share",
                           m->tasks.n, c->found_in, i, m->address[i]);
    const char *bind = m->tasks.bind;
    if (is_bound_here(bind))
        return TT_OK;
    return TT_FAIL(ctx, TT_EINVAL,
                   "TUTTI_BIND=%s would listen beyond this machine, but no secret is set: 'tutti "
                   "key new FILE' makes one, and TUTTI_SECRET_FILE=FILE gives it to every process; "
                   "or unset TUTTI_BIND",
                   tti_excerpt(found, bind));
}

// A port of an address at which the others can reach this machine; rank 0's part.
static tt_status choose_address(tt_ctx *ctx, const membership *m, bool is_near, int *held,
                                char out[TTI_ADDRESS])
{
    char host[128];
    for (int i = 0; i < 8; i++) {
        if (is_near && i == 0)
            snprintf(host, sizeof(host), "127.0.0.1");
        else if (is_near || !tti_own_host(m->tasks.bind, i, host))
            break;
        int port = tti_port_hold(host, held);
        if (port == 0)
            continue;
        snprintf(out, TTI_ADDRESS, strchr(host, ':') != NULL ? "[%s]:%d" : "%s:%d", host, port);
        return TT_OK;
    }
    return TT_FAIL(ctx, TT_EIO, "this machine has no address with a free port for rank 0: %s",
                   strerror(errno));
}

// By a file that rank 0 makes: the job's key, and where rank 0 is.
static tt_status get_from_file(tt_ctx *ctx, const tt_cluster *c, const char *id, membership *m,
                               unsigned char *key)
{
    bool is_told = m->address[0][0] != '\0' && !c->leader_derived;
    bool is_near = is_told ? tti_is_loopback(m->address[0])
                           : c->n_local == c->n_processes && is_bound_here(m->tasks.bind);
    if (!is_told)
        m->address[0][0] = '\0';
    if (m->tasks.self == 0 && !is_told)
        TT_TRY(choose_address(ctx, m, is_near, &m->held, m->address[0]));
    if (is_near) {
        return tti_loopback_key_get(ctx,
                                    &(tti_loopback_opts){.rank = m->tasks.self,
                                                         .rank_0 = m->name[0],
                                                         .address = m->address[0],
                                                         .runtime = tti_env("XDG_RUNTIME_DIR"),
                                                         .wait_ms = m->tasks.rendezvous_ms,
                                                         .id = id,
                                                         .told = m->address[0]},
                                    &m->key, key);
    }
    const char *folder = tti_env("TUTTI_KEY_DIR");
    return tti_shared_key_get(
        ctx,
        &(tti_shared_key_opts){.rank = m->tasks.self,
                               .rank_0 = m->name[0],
                               .id = id,
                               .folder = folder != NULL && folder[0] != '\0' ? folder : NULL,
                               .home = tti_env("HOME"),
                               .wait_ms = m->tasks.rendezvous_ms,
                               .by = is_text(c->launcher) ? c->launcher : c->found_in,
                               .told = m->address[0]},
        &m->key, key);
}

static tt_status no_leader(tt_ctx *ctx, const tt_cluster *c)
{
    return TT_FAIL(ctx, TT_EINVAL,
                   "%s has started %d processes (%s), but nothing says where rank 0 is: set "
                   "TUTTI_LEADER=host:port of rank 0 for all of them; or TUTTI_JOB_ID to a text "
                   "that is new for every start, so that they find each other by a file in "
                   "TUTTI_KEY_DIR, a folder that all machines share; --alone runs the whole job in "
                   "every process",
                   is_text(c->launcher) ? c->launcher : c->found_in, c->n_processes, c->text);
}

// Given, or made by rank 0: for processes of one user on one machine, or in a shared folder.
static tt_status get_secret(tt_ctx *ctx, const tt_cluster *c, membership *m)
{
    bool has;
    const char *folder = tti_env("TUTTI_KEY_DIR");
    TT_TRY(tti_secret_find(ctx, &(tti_cluster_env){.get = get_env}, m->secret, &has));
    if (has && m->address[0][0] != '\0')
        return TT_OK;
    if (is_text(c->id)) {
        unsigned char
            unused[TT_SECRET_BYTES]; // where the secret was given, only the address counts
        return get_from_file(ctx, c, c->id, m, has ? unused : m->secret);
    }
    if (m->address[0][0] == '\0')
        return no_leader(ctx, c);
    if (folder != NULL && folder[0] != '\0' && !tti_is_loopback(m->address[0]))
        return get_from_file(ctx, c, m->address[0], m, m->secret);
    TT_TRY(check_local(ctx, c, m));
    return tti_loopback_key_get(ctx,
                                &(tti_loopback_opts){.rank = m->tasks.self,
                                                     .rank_0 = m->name[0],
                                                     .address = m->address[0],
                                                     .runtime = tti_env("XDG_RUNTIME_DIR"),
                                                     .wait_ms = m->tasks.rendezvous_ms},
                                &m->key, m->secret);
}

// Processes of this machine: as told, or those whose addresses have this one's host.
static int count_here(const tt_cluster *c, const membership *m)
{
    const char *own = m->address[m->tasks.self], *colon = strrchr(own, ':');
    int n = 0;
    for (int i = 0; colon != NULL && i < m->tasks.n; i++)
        n += strncmp(m->address[i], own, (size_t)(colon - own) + 1) == 0;
    return TTI_MAX(n, c->n_local);
}

static tt_status fill(tt_ctx *ctx, const tt_cluster *c, membership *m)
{
    tt_tasks *t = &m->tasks;
    *t = *tt_tasks();
    t->n = c->n_processes;
    t->self = c->rank;
    t->secret = m->secret;
    t->job = m->job;
    t->names = m->names;
    t->addresses = m->addresses;
    for (int i = 0; i < t->n; i++) {
        m->names[i] = m->name[i];
        m->addresses[i] = m->address[i];
    }
    TT_TRY(list_tasks(ctx, c, m));
    next_to_store(c, m);
    TT_TRY(get_settings(ctx, count_here(c, m), m));
    TT_TRY(get_secret(ctx, c, m));
    if (m->held >= 0)
        close(m->held);
    m->held = -1;
    for (int i = 0; i < t->n; i++)
        if (m->address[i][0] == '\0')
            return tti_rendezvous(ctx, t, m->address);
    return TT_OK;
}

tt_status tt_cluster_tasks(tt_ctx *ctx, const tt_cluster *c, const char *job, tt_tasks **out)
{
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    if (c == NULL || out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "tt_cluster_tasks: %s is NULL", c == NULL ? "c" : "out");
    *out = NULL;
    if (c->rank < 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s %d (%s) does not train, so it cannot join the others",
                       c->tasks[c->task].job, c->tasks[c->task].index, c->found_in);
    if (c->n_processes == 1)
        return TT_OK;
    if (c->n_processes > TT_MAX_TASKS)
        return TT_FAIL(ctx, TT_EINVAL, "%d processes (%s); at most %d are allowed", c->n_processes,
                       c->found_in, TT_MAX_TASKS);
    membership *m = tti_secure_new(ctx, sizeof(*m));
    if (m == NULL)
        return TT_ENOMEM;
    m->key.fd = m->held = -1;
    m->job = tti_strdup(ctx, job != NULL ? job : "");
    tt_status st = m->job == NULL ? TT_ENOMEM : fill(ctx, c, m);
    if (st == TT_OK)
        *out = &m->tasks;
    else
        tt_tasks_free(ctx, &m->tasks);
    return st;
}

void tt_tasks_free(tt_ctx *ctx, tt_tasks *t)
{
    membership *m = (membership *)t; // its first member
    if (m == NULL)
        return;
    tti_loopback_key_end(&m->key); // all have met, or never will
    if (m->held >= 0)
        close(m->held);
    tti_free(ctx, m->job);
    tti_secure_free(m, sizeof(*m));
}
