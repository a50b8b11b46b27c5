/*
 * serve.c - servers of this process: one task, or a whole cluster on loopback.
 */
#include "serve/serve.h"
#include "base/ctx.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

typedef struct task {
    tti_host host;
    tti_listening *listening;
    char target[TTI_ADDRESS + 16];
} task;

struct tt_server {
    tt_ctx *ctx;
    struct tti_hooks owned;
    task *tasks;
    int n;
};

static void server_release(void *owner)
{
    tt_server *s = owner;
    for (int i = 0; i < s->n; i++)
        tti_listening_close(s->tasks[i].listening);
    for (int i = 0; i < s->n; i++)
        tti_host_deinit(s->ctx, &s->tasks[i].host);
    tti_free(s->ctx, s->tasks);
    tti_free(s->ctx, s);
}

void tt_server_free(tt_server *s)
{
    if (s == NULL || s->ctx == NULL)
        return;
    tti_disown(s->ctx, &s->owned);
    server_release(s);
}

static tt_status fill_bounds(tt_ctx *ctx, const tt_limits *l, tti_bounds *out)
{
    if (l->clients < 0 || l->clients > 10000 || l->queues < 0 || l->run_ms < 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "limits: clients %d (0 to 10000), queues %d and run_ms %lld (0 or more)",
                       l->clients, l->queues, (long long)l->run_ms);
    bool is_group;
    size_t machine = tti_machine_memory(&is_group);
    *out = (tti_bounds){.variables = l->variables > 0 ? l->variables
                                     : machine > 0    ? machine / 2
                                                      : SIZE_MAX / 4,
                        .clients = l->clients > 0 ? l->clients : 64,
                        .queues = l->queues > 0 ? l->queues : 1024,
                        .memory = l->memory > 0 ? l->memory : (size_t)4 << 30,
                        .graph = l->graph > 0 ? l->graph : (size_t)64 << 20,
                        .run_ms = l->run_ms > 0 ? l->run_ms : 600000};
    return TT_OK;
}

// What all tasks of a server are made with.
typedef struct made {
    tt_ctx *ctx;
    const char *devices, *key;
    int threads;
    tti_bounds bounds;
    const char *session_devices;
} made;

static tt_status set_host(const made *m, tti_host *h, int self)
{
    const tti_spec_task *t = &h->spec.tasks[self];
    const char *devices = m->session_devices != NULL ? m->session_devices
                          : m->devices != NULL       ? m->devices
                          : t->devices[0] != '\0'    ? t->devices
                                                     : "cpu:0";
    h->self = self;
    h->threads = m->threads;
    h->bounds = m->bounds;
    snprintf(h->task, sizeof(h->task), "/job:%s/task:%d", t->job, t->index);
    if (strlen(devices) >= sizeof(h->devices))
        return TT_FAIL(m->ctx, TT_EINVAL, "%s: the list of devices is longer than %zu characters",
                       h->task, sizeof(h->devices) - 1);
    snprintf(h->devices, sizeof(h->devices), "%s", devices);
    // A mistake in the list is told now, not to the first client.
    tt_ctx *probe = tt_open(.devices = devices, .threads = 1, .level = TT_ERROR,
                            .on_event = m->ctx->on_event, .user = m->ctx->user);
    tt_status st = probe == NULL ? TT_ENOMEM : tt_status_of(probe);
    if (st != TT_OK)
        (void)TT_FAIL(m->ctx, st, "%s: %s", h->task,
                      probe == NULL ? "out of memory" : tt_last_error(probe).message);
    if (probe != NULL)
        (void)tt_close(probe);
    return st;
}

static tt_server *server_new(tt_ctx *ctx, int n)
{
    tt_server *s = tti_calloc(ctx, 1, sizeof(*s));
    task *tasks = s == NULL ? NULL : tti_calloc(ctx, (size_t)n, sizeof(*tasks));
    if (tasks == NULL) {
        tti_free(ctx, s);
        return NULL;
    }
    *s = (tt_server){.ctx = ctx, .tasks = tasks};
    return s;
}

// From here on the server has it, also after a failure.
static tt_status add_host(tt_server *s, const tti_spec *spec)
{
    tti_host *h = &s->tasks[s->n].host;
    h->key.file.fd = -1;
    TT_TRY(tti_host_init(s->ctx, h));
    s->n++;
    h->spec = *spec;
    h->spec.cap = 0;
    h->spec.tasks = tti_calloc(s->ctx, (size_t)spec->n + 1, sizeof(*spec->tasks));
    if (h->spec.tasks == NULL)
        return TT_ENOMEM;
    memcpy(h->spec.tasks, spec->tasks, (size_t)spec->n * sizeof(*spec->tasks));
    return TT_OK;
}

static tt_server *finish(tt_server *s, tt_status st)
{
    if (s == NULL)
        return NULL;
    if (st != TT_OK) {
        server_release(s);
        return NULL;
    }
    tti_own(s->ctx, &s->owned, s, server_release);
    return s;
}

static tt_status start(task *t, const made *m, const char *bind, int port)
{
    tti_host *h = &t->host;
    const char *key = m->key != NULL ? m->key : h->spec.key;
    char address[TTI_ADDRESS];
    const char *colon = strrchr(bind, ':');
    snprintf(address, sizeof(address), "%.*s:%d", (int)TTI_MIN(colon - bind, 160), bind, port);
    snprintf(t->target, sizeof(t->target), "tutti://%s", address);
    TT_TRY(tti_key_of_server(m->ctx, key, address, &h->key));
    return tti_listening_start(t->listening, h);
}

static tt_status choose(tt_ctx *ctx, const tti_spec *spec, const char *word, int *self)
{
    *self = spec->self;
    if (word != NULL)
        return tti_spec_find(ctx, spec, word, self);
    if (spec->self >= 0 || spec->n == 1) {
        *self = TTI_MAX(spec->self, 0);
        return TT_OK;
    }
    return TT_FAIL(ctx, TT_EINVAL,
                   "the cluster has %d tasks; say which one this server is: --task %s:%d",
                   (int)spec->n, spec->tasks[0].job, spec->tasks[0].index);
}

tt_server *tt_serve_with(tt_ctx *ctx, const tt_serve_opts *opts)
{
    if (ctx == NULL || tti_is_stuck(ctx))
        return NULL;
    TTI_OPTS_OWN(ctx, "serve", tt_serve_opts, opts);
    if (opts == NULL)
        return NULL;
    tt_limits limits;
    tti_spec spec = {.self = -1};
    made m = {.ctx = ctx, .devices = opts->devices, .key = opts->key, .threads = opts->threads};
    int self = 0, port = 0;
    tt_server *s = NULL;
    tt_status st = TTI_OPTS_PART(ctx, "serve: limits", opts->limits, &limits);
    st = st == TT_OK ? fill_bounds(ctx, &limits, &m.bounds) : st;
    m.session_devices = st == TT_OK ? limits.devices : NULL;
    st = st == TT_OK ? tti_spec_read(ctx, opts->cluster, &spec) : st;
    st = st == TT_OK ? choose(ctx, &spec, opts->task, &self) : st;
    if (st == TT_OK) {
        s = server_new(ctx, 1);
        st = s == NULL ? TT_ENOMEM : add_host(s, &spec);
    }
    const char *bind = st != TT_OK          ? ""
                       : opts->bind != NULL ? opts->bind
                                            : spec.tasks[self].address;
    st = st == TT_OK ? set_host(&m, &s->tasks[0].host, self) : st;
    st = st == TT_OK ? tti_listening_open(ctx, bind, &s->tasks[0].listening, &port) : st;
    st = st == TT_OK ? start(&s->tasks[0], &m, bind, port) : st;
    tti_spec_free(ctx, &spec);
    return finish(s, st);
}

// ---- a cluster in this process ---------------------------------------------------------------

// "ps:1, worker:2"
static tt_status read_jobs(tt_ctx *ctx, const char *jobs, int n, tti_spec *spec)
{
    for (const char *at = jobs; *at != '\0';) {
        char word[64], *colon;
        at += strspn(at, " ,");
        size_t length = strcspn(at, " ,");
        int count = 1;
        if (length == 0)
            break;
        snprintf(word, sizeof(word), "%.*s", (int)TTI_MIN(length, 63), at);
        at += length;
        colon = strchr(word, ':');
        if (colon != NULL)
            *colon = '\0';
        if (length > 63 || (colon != NULL && !tti_cluster_number(colon + 1, TTI_MAX_PEERS, &count)))
            return TT_FAIL(ctx, TT_EINVAL, "local cluster: jobs '%.64s': use \"ps:1, worker:2\"",
                           jobs);
        for (int i = 0; i < count; i++)
            TT_TRY(tti_spec_add(ctx, spec, word, ""));
    }
    if (spec->n != n)
        return TT_FAIL(ctx, TT_EINVAL, "local cluster: %d tasks, but jobs '%.64s' have %d", n, jobs,
                       (int)spec->n);
    return TT_OK;
}

static tt_status open_local(tt_server *s, tti_spec *spec, const made *m)
{
    int port[TTI_MAX_PEERS];
    for (int i = 0; i < (int)spec->n; i++) {
        TT_TRY(add_host(s, spec));
        TT_TRY(tti_listening_open(s->ctx, "127.0.0.1:0", &s->tasks[i].listening, &port[i]));
    }
    for (int i = 0; i < s->n; i++) // now all addresses are known
        for (int k = 0; k < s->n; k++)
            snprintf(s->tasks[i].host.spec.tasks[k].address, TTI_ADDRESS, "127.0.0.1:%d", port[k]);
    for (int i = 0; i < s->n; i++) {
        TT_TRY(set_host(m, &s->tasks[i].host, i));
        TT_TRY(start(&s->tasks[i], m, "127.0.0.1:0", port[i]));
    }
    return TT_OK;
}

tt_server *tt_cluster_local_with(tt_ctx *ctx, int n, const tt_cluster_local_opts *opts)
{
    if (ctx == NULL || tti_is_stuck(ctx))
        return NULL;
    TTI_OPTS_OWN(ctx, "cluster_local", tt_cluster_local_opts, opts);
    if (opts == NULL)
        return NULL;
    if (n < 1 || n > TTI_MAX_PEERS) {
        (void)TT_FAIL(ctx, TT_EINVAL, "local cluster: %d tasks; use 1 to %d", n, TTI_MAX_PEERS);
        return NULL;
    }
    tt_limits limits;
    tti_spec spec = {.self = -1};
    made m = {.ctx = ctx, .devices = opts->devices, .threads = opts->threads};
    tt_status st = TTI_OPTS_PART(ctx, "cluster_local: limits", opts->limits, &limits);
    st = st == TT_OK ? fill_bounds(ctx, &limits, &m.bounds) : st;
    m.session_devices = st == TT_OK ? limits.devices : NULL;
    if (st == TT_OK && opts->jobs != NULL)
        st = read_jobs(ctx, opts->jobs, n, &spec);
    for (int i = 0; st == TT_OK && opts->jobs == NULL && i < n; i++)
        st = tti_spec_add(ctx, &spec, "worker", "");
    tt_server *s = st == TT_OK ? server_new(ctx, n) : NULL;
    st = st != TT_OK ? st : s == NULL ? TT_ENOMEM : open_local(s, &spec, &m);
    tti_spec_free(ctx, &spec);
    return finish(s, st);
}

// ---- what is asked of it ---------------------------------------------------------------------

int tt_server_count(const tt_server *s)
{
    return s == NULL ? 0 : s->n;
}

const char *tt_server_target(const tt_server *s, int i)
{
    return s == NULL || i < 0 || i >= s->n ? "" : s->tasks[i].target;
}

const char *tt_server_task(const tt_server *s, int i)
{
    return s == NULL || i < 0 || i >= s->n ? "" : s->tasks[i].host.task;
}

tt_status tt_server_stop(tt_server *s, int64_t drain_ms)
{
    if (s == NULL || s->ctx == NULL)
        return TT_EINVAL;
    int64_t deadline = tti_deadline(TTI_MAX(drain_ms, 0));
    bool all = true;
    for (int i = 0; i < s->n; i++) // all refuse before any is waited for
        atomic_store(&s->tasks[i].host.is_draining, 1);
    for (int i = 0; i < s->n; i++) {
        int64_t left = (deadline - tti_now_ns()) / 1000000;
        all &= s->tasks[i].listening == NULL ||
               tti_listening_drain(s->tasks[i].listening, TTI_MAX(left, 0));
    }
    for (int i = 0; i < s->n; i++) {
        tti_listening_close(s->tasks[i].listening);
        s->tasks[i].listening = NULL;
    }
    if (!all)
        return TT_FAIL(s->ctx, TT_ETIMEOUT,
                       "server: requests under way did not end in %lld ms and were cancelled",
                       (long long)drain_ms);
    return TT_OK;
}
