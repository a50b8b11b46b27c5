/*
 * away.c - devices of the job's other processes. They stand in the context's list, in the order of
 * the ranks, so that all processes make the same plans; only their own process runs anything there.
 */
#include "device/device.h"
#include <stdio.h>
#include <string.h>

void tti_devices_describe(const tt_ctx *ctx, tti_device_desc *out)
{
    for (int i = 0; i < ctx->top.n_devices; i++) {
        const tti_device *d = ctx->top.devices[i];
        out[i] = (tti_device_desc){.index = d->full.index,
                                   .card = d->card,
                                   .n_threads = d->n_threads,
                                   .is_crowded = d->is_crowded,
                                   .limit = d->limit};
        memcpy(out[i].type, d->full.type, sizeof(d->full.type));
        if (d->backend->bits != NULL)
            d->backend->bits(d->card, out[i].bits, sizeof(out[i].bits));
        memcpy(out[i].physical, d->physical, sizeof(d->physical));
    }
}

// "task:1/cpu:0"; where jobs have several names, "chief:0/cpu:0".
static void name_device(tti_device *d, bool has_jobs)
{
    int n = has_jobs ? snprintf(d->name, sizeof(d->name), "%.10s:%d/", d->full.job, d->full.task)
                     : snprintf(d->name, sizeof(d->name), "task:%d/", d->full.task);
    snprintf(d->name + n, sizeof(d->name) - (size_t)n, "%.4s:%d", d->full.type, d->full.index);
}

static bool is_gpu(const tti_device_desc *t)
{
    return strncmp(t->type, "gpu", sizeof(t->type)) == 0;
}

// Plans for GPUs of others are made with a GPU of this process, which is of the same kind.
static tti_device *make_away(tt_ctx *ctx, const tti_device_desc *t)
{
    tti_device *d = tti_calloc(ctx, 1, sizeof(*d)), *like = is_gpu(t) ? tti_first_gpu(ctx) : NULL;
    if (d == NULL)
        return NULL;
    *d = (tti_device){.ctx = ctx,
                      .state = like != NULL ? like->state : NULL,
                      .backend = like != NULL ? like->backend : &tti_backend_cpu,
                      .is_away = true,
                      .card = t->card,
                      .n_threads = t->n_threads,
                      .is_crowded = t->is_crowded,
                      .limit = (size_t)t->limit};
    snprintf(d->physical, sizeof(d->physical), "%.31s", t->physical);
    return d;
}

tt_status tti_processes_check(tt_ctx *ctx, const tti_process_info *of, int *most)
{
    int64_t total = 0;
    *most = 0;
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        int n = of[r].n_devices;
        if (n < 1 || n > TTI_MOST_DEVICES)
            return TT_FAIL(ctx, TT_EPEER, "%s reports %d devices", of[r].name, n);
        total += n;
        *most = TTI_MAX(*most, n);
    }
    if (total > TTI_MOST_DEVICES)
        return TT_FAIL(ctx, TT_EINVAL,
                       "the job's %d processes have %lld devices; at most %d are allowed",
                       ctx->top.n_tasks, (long long)total, TTI_MOST_DEVICES);
    return TT_OK;
}

// The first GPU of rank r; NULL: it has none.
static const tti_device_desc *gpu_of(const tti_process_info *of, const tti_device_desc *d)
{
    for (int i = 0; i < of->n_devices; i++)
        if (is_gpu(&d[i]))
            return &d[i];
    return NULL;
}

/*
 * All devices are CPUs, or all are GPUs of one kind: each process makes the plans of all, and the
 * bits depend on model and libraries. All processes find the same here.
 */
static tt_status check_gpus(tt_ctx *ctx, const tti_process_info *of, const tti_device_desc *devices,
                            int stride)
{
    const tti_device_desc *first = gpu_of(&of[0], devices);
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        const tti_device_desc *d = &devices[(size_t)r * (size_t)stride], *gpu = gpu_of(&of[r], d);
        if ((gpu == NULL) != (first == NULL))
            return TT_FAIL(ctx, TT_EINVAL,
                           "%s has GPUs and %s has none: give all processes of the job GPUs, or "
                           "all CPUs only",
                           of[gpu == NULL ? 0 : r].name, of[gpu == NULL ? r : 0].name);
        for (int i = 0; first != NULL && i < of[r].n_devices; i++) {
            if (!is_gpu(&d[i]))
                return TT_FAIL(ctx, TT_EUNSUPPORTED,
                               "%s has CPUs and GPUs: the processes of a job use GPUs only, or "
                               "CPUs only; one process can use both",
                               of[r].name);
            if (strcmp(d[i].bits, first->bits) != 0)
                return TT_FAIL(ctx, TT_EINVAL,
                               "the GPUs of the job differ: %s has %.200s, %s has %.200s; use GPUs "
                               "of one model, with the same driver libraries",
                               of[0].name, first->bits, of[r].name, d[i].bits);
        }
    }
    return TT_OK;
}

// The devices of rank r.
static tt_status check_devices(tt_ctx *ctx, const tti_process_info *of, tti_device_desc *d)
{
    for (int i = 0; i < of->n_devices; i++) {
        d[i].bits[sizeof(d[i].bits) - 1] = '\0';
        if (!is_gpu(&d[i]) && strncmp(d[i].type, "cpu", sizeof(d[i].type)) != 0)
            return TT_FAIL(ctx, TT_EPEER, "%s has a device of unknown kind %.15s", of->name,
                           d[i].type);
    }
    return TT_OK;
}

// Two processes read each other's memory where both see it so.
static void see_near(tti_device *d, const tti_process_info *of, int r, int n_tasks)
{
    d->near = (tti_set){d->near_words, n_tasks};
    for (int o = 0; o < n_tasks; o++) {
        const tti_set mine = {(uint64_t *)of[r].near, n_tasks};
        const tti_set its = {(uint64_t *)of[o].near, n_tasks};
        if (tti_set_has(&mine, o) && tti_set_has(&its, r))
            tti_set_add(&d->near, o);
    }
}

// Who the processes are; names has room for them.
static tt_status read_names(tt_ctx *ctx, const tti_process_info *of, tt_device_name *names,
                            bool *has_jobs)
{
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        TT_TRY(tt_device_parse(ctx, of[r].name, &names[r]));
        *has_jobs |= strcmp(names[r].job, names[0].job) != 0;
        if (of[r].isa < ctx->top.isa)
            ctx->top.isa = of[r].isa; // kernels are prepared alike everywhere
    }
    return TT_OK;
}

// The devices of rank r, at n of joined, which has room; those of others are made.
static tt_status list_devices(tt_ctx *ctx, const tti_process_info *of, int r,
                              const tti_device_desc *devices, const tt_device_name *name,
                              bool has_jobs, tti_topology *joined, int *n)
{
    for (int i = 0; i < of[r].n_devices; i++) {
        tti_device *d = r == ctx->top.task ? ctx->top.devices[i] : make_away(ctx, &devices[i]);
        if (d == NULL)
            return TT_ENOMEM;
        d->index = *n;
        d->task = r;
        see_near(d, of, r, ctx->top.n_tasks);
        d->full = *name;
        d->full.replica = 0;
        d->full.index = devices[i].index;
        snprintf(d->full.type, sizeof(d->full.type), "%s", is_gpu(&devices[i]) ? "gpu" : "cpu");
        name_device(d, has_jobs);
        joined->devices[(*n)++] = d;
    }
    return TT_OK;
}

// The devices of all in place of this process's; names has room for one per process.
static tt_status list_all(tt_ctx *ctx, const tti_process_info *of, tti_device_desc *devices,
                          int stride, tt_device_name *names)
{
    bool has_jobs = false;
    int total = 0, n = 0;
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        TT_TRY(check_devices(ctx, &of[r], &devices[(size_t)r * (size_t)stride]));
        total += of[r].n_devices;
    }
    TT_TRY(check_gpus(ctx, of, devices, stride));
    TT_TRY(read_names(ctx, of, names, &has_jobs));
    tti_topology joined = ctx->top;
    TT_TRY(tti_topology_room(ctx, &joined, total));
    tt_status st = TT_OK;
    for (int r = 0; r < ctx->top.n_tasks && st == TT_OK; r++)
        st = list_devices(ctx, of, r, &devices[(size_t)r * (size_t)stride], &names[r], has_jobs,
                          &joined, &n);
    for (int k = 0; k < n && st != TT_OK; k++)
        if (joined.devices[k]->is_away)
            tti_free(ctx, joined.devices[k]);
    tti_free(ctx, st == TT_OK ? ctx->top.devices : joined.devices);
    if (st == TT_OK)
        ctx->top = joined;
    return st;
}

tt_status tti_devices_join(tt_ctx *ctx, const tti_process_info *of, tti_device_desc *devices,
                           int stride)
{
    TTI_ASSERT(ctx->top.n_devices == of[ctx->top.task].n_devices);
    tt_device_name *names = tti_calloc(ctx, (size_t)ctx->top.n_tasks, sizeof(*names));
    if (names == NULL)
        return TT_ENOMEM;
    tt_status st = list_all(ctx, of, devices, stride, names);
    tti_free(ctx, names);
    return st;
}
