/*
 * made_topology.c - topologies of devices that are not there, to ask what a plan would need on
 * them.
 */
#include "base/ctx.h"
#include "device/device.h"
#include "device/gpu_profile.h"
#include <stdio.h>
#include <string.h>

// ---- devices ---------------------------------------------------------------------------------

// The first device of from that is of this kind; NULL: it has none.
static const tti_device *first_of(const tti_topology *from, bool is_gpu)
{
    for (int d = 0; d < from->n_devices; d++)
        if (tti_has_streams(from->devices[d]) == is_gpu)
            return from->devices[d];
    return NULL;
}

// Kernels and threads: of the device that is here, or else of a profile.
static tt_status make_up(tt_ctx *ctx, const tti_made_devices *of, const tti_device *like,
                         tti_device *out)
{
    const tti_gpu_profile *profile = tti_gpu_profile_find(of->profile);
    out->ctx = ctx;
    out->n_threads = 1;
    if (like != NULL && of->profile == NULL) {
        out->backend = like->backend;
        out->full = like->full;
        out->state = like->state;
        out->card = like->card;
        memcpy(out->physical, like->physical, sizeof(out->physical));
        return TT_OK;
    }
    out->full = (tt_device_name){.job = "localhost"};
    snprintf(out->full.type, sizeof(out->full.type), "%s", of->is_gpu ? "gpu" : "cpu");
    out->backend = of->is_gpu ? &tti_backend_gpu_profile : &tti_backend_cpu;
    out->state = of->is_gpu ? (void *)profile : NULL;
    snprintf(out->physical, sizeof(out->physical), "%s", of->is_gpu ? "gpu:0" : "cpu:0");
    if (profile == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "there is no recorded profile '%.64s' of a GPU",
                       of->profile);
    return TT_OK;
}

static size_t memory_of(const tti_made_devices *of, const tti_device *d)
{
    if (of->limit > 0 || of->memory > 0)
        return of->limit > 0 ? of->limit : of->memory;
    return d->backend == &tti_backend_gpu_profile ? ((const tti_gpu_profile *)d->state)->memory : 0;
}

typedef struct maker {
    tt_ctx *ctx;
    const tti_topology *from;
    tti_topology *out;
    tti_device *made;
    uint64_t *near; // words of each host's processes
    int n, task;    // devices, processes so far
} maker;

// "task:1/cpu:0"; of one process "cpu:0".
static void name_device(tti_device *d, int n_tasks)
{
    char task[32] = "";
    if (n_tasks > 1)
        snprintf(task, sizeof(task), "task:%d/", d->task);
    snprintf(d->name, sizeof(d->name), "%.14s%.8s:%u", task, d->backend->name,
             (unsigned)d->full.index % 100000u);
}

// One host's devices; total of them, count[kind] in its processes so far.
static tt_status make_host(maker *m, const tti_made_host *h, int total, tti_set near)
{
    int in_process = total / h->n_processes, done = 0, count[2] = {0, 0};
    int threads = m->ctx->n_threads;
    for (int p = 0; p < h->n_processes; p++)
        tti_set_add(&near, m->task + p);
    for (int i = 0; i < h->n_devices; i++) {
        const tti_made_devices *of = &h->devices[i];
        for (int k = 0; k < of->count; k++, done++) {
            tti_device *d = &m->made[m->n];
            if (done % in_process == 0)
                count[0] = count[1] = 0; // of the next process
            TT_TRY(make_up(m->ctx, of, first_of(m->from, of->is_gpu), d));
            d->index = m->n;
            d->task = d->full.task = m->task + done / in_process;
            d->full.index = count[of->is_gpu]++;
            d->is_away = d->task > 0;
            d->near = near;
            if (d->backend->host_memory)
                d->n_threads = TTI_MAX(1, (done + 1) * threads / total - done * threads / total);
            d->limit = memory_of(of, d);
            name_device(d, m->out->n_tasks);
            m->out->devices[m->n] = d;
            m->out->limit[m->n] = d->limit;
            m->out->speed[m->n++] = of->speed > 0 ? of->speed : 1;
        }
    }
    m->task += h->n_processes;
    return TT_OK;
}

// ---- hosts -----------------------------------------------------------------------------------

static int64_t devices_of(const tti_made_host *h)
{
    int64_t n = 0;
    for (int i = 0; i < h->n_devices; i++)
        n += h->devices[i].count;
    return n;
}

static tt_status count_all(tt_ctx *ctx, const tti_made_host *hosts, int n, int64_t *devices,
                           int64_t *tasks)
{
    *devices = *tasks = 0;
    for (int i = 0; i < n; i++) {
        int64_t own = devices_of(&hosts[i]);
        if (hosts[i].n_processes < 1 || own < hosts[i].n_processes ||
            own % hosts[i].n_processes != 0)
            return TT_FAIL(ctx, TT_EINVAL,
                           "a host with %d processes and %lld devices: its processes must have "
                           "equal parts of its devices",
                           hosts[i].n_processes, (long long)own);
        *devices += own * hosts[i].count;
        *tasks += (int64_t)hosts[i].n_processes * hosts[i].count;
        if (*devices > TTI_MOST_DEVICES)
            return TT_FAIL(ctx, TT_EINVAL,
                           "%d hosts of %lld devices; at most %d devices are allowed",
                           hosts[i].count, (long long)own, TTI_MOST_DEVICES);
    }
    return TT_OK;
}

tt_status tti_topology_of_hosts(tt_ctx *ctx, const tti_topology *from, const tti_made_host *hosts,
                                int n, tti_topology *out)
{
    int64_t devices, tasks;
    TT_TRY(count_all(ctx, hosts, n, &devices, &tasks));
    size_t words = (size_t)TTI_SET_WORDS((int)tasks), sets = 0;
    for (int i = 0; i < n; i++)
        sets += (size_t)hosts[i].count;
    maker m = {.ctx = ctx, .from = from, .out = out};
    m.made =
        tti_calloc(ctx, 1, (size_t)devices * sizeof(*m.made) + sets * words * sizeof(uint64_t));
    if (m.made == NULL)
        return TT_ENOMEM;
    m.near = (uint64_t *)(void *)(m.made + devices);
    *out = *from;
    out->made = NULL;
    tt_status st = tti_topology_room(ctx, out, (int)devices);
    if (st != TT_OK) {
        tti_free(ctx, m.made);
        return st;
    }
    out->made = m.made;
    out->n_tasks = tasks > 1 ? (int)tasks : 0;
    out->task = 0;
    out->host_memory = 0; // of this machine
    for (int i = 0; st == TT_OK && i < n; i++)
        for (int k = 0; st == TT_OK && k < hosts[i].count; k++, m.near += words)
            st =
                make_host(&m, &hosts[i], (int)devices_of(&hosts[i]), (tti_set){m.near, (int)tasks});
    if (st != TT_OK)
        tti_topology_free(ctx, out);
    return st;
}

// ---- as text ---------------------------------------------------------------------------------

tt_status tti_topology_make(tt_ctx *ctx, const tti_topology *from, int hosts, int n,
                            tti_topology *out)
{
    const tti_made_devices all = {.is_gpu = tti_has_streams(from->devices[0]),
                                  .count = n,
                                  .limit = from->limit[0],
                                  .speed = from->speed[0]};
    if (hosts < 1 || n < 1)
        return TT_FAIL(ctx, TT_EINVAL, "%d hosts of %d devices", hosts, n);
    tti_made_host host = {.count = hosts, .n_processes = 1, .devices = &all, .n_devices = 1};
    size_t host_memory = from->host_memory;
    TT_TRY(tti_topology_of_hosts(ctx, from, &host, 1, out));
    out->host_memory = host_memory;
    return TT_OK;
}

// A number at *s, which goes behind it; 0: there is none, or it is too large.
static int number_at(const char **s)
{
    int n = 0;
    while (**s >= '0' && **s <= '9' && n < 1000000)
        n = 10 * n + *(*s)++ - '0';
    return n;
}

tt_status tti_topology_parse(tt_ctx *ctx, const tti_topology *from, const char *text,
                             tti_topology *out)
{
    const char *s = text;
    int hosts = 1, n = number_at(&s);
    if (n > 0 && *s == 'x') {
        s++;
        hosts = n;
        n = number_at(&s);
    }
    bool is_gpu = strcmp(s, "gpu") == 0 || (*s == '\0' && tti_has_streams(from->devices[0]));
    if (n == 0 || hosts == 0 || (*s != '\0' && strcmp(s, "cpu") != 0 && strcmp(s, "gpu") != 0))
        return TT_FAIL(ctx, TT_EINVAL,
                       "topology '%.64s': use hosts x devices and their kind, such as 8x4cpu, 4, "
                       "or a file such as cluster.yaml",
                       text);
    if (is_gpu == tti_has_streams(from->devices[0]))
        return tti_topology_make(ctx, from, hosts, n, out);
    const tti_made_devices all = {.is_gpu = is_gpu, .count = n};
    tti_made_host host = {.count = hosts, .n_processes = 1, .devices = &all, .n_devices = 1};
    return tti_topology_of_hosts(ctx, from, &host, 1, out);
}
