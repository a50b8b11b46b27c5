/*
 * made_topology.c - topologies of devices that are not there: to ask what a plan would need on them.
 */
#include "base/ctx.h"
#include "device/device.h"
#include <stdio.h>
#include <string.h>

// Device i of n on its host, with the threads that it would have. Kernels of GPUs prepare with the
// state of the one that it is like.
static void make_up(const tti_device *like, int host, int i, int n, tti_device *out)
{
    int threads = like->ctx->n_threads;
    out->ctx = like->ctx;
    out->backend = like->backend;
    out->full = like->full;
    out->full.index = i;
    out->full.task = host;
    out->task = host;
    out->is_away = host > 0;
    out->n_threads = TTI_MAX(1, (i + 1) * threads / n - i * threads / n);
    out->limit = like->limit;
    out->state = like->state;
    snprintf(out->physical, sizeof(out->physical), "%s", like->physical);
}

tt_status tti_topology_make(tt_ctx *ctx, const tti_topology *from, int hosts, int n,
                            tti_topology *out)
{
    if (hosts < 1 || n < 1 || hosts > TTI_MOST_DEVICES || n > TTI_MOST_DEVICES / hosts)
        return TT_FAIL(ctx, TT_EINVAL, "%d hosts of %d devices; at most %d devices are allowed",
                       hosts, n, TTI_MOST_DEVICES);
    size_t devices = (size_t)hosts * (size_t)n, words = (size_t)TTI_SET_WORDS(hosts);
    tti_device *made =
        tti_calloc(ctx, 1, devices * sizeof(*made) + (size_t)hosts * words * sizeof(uint64_t));
    if (made == NULL)
        return TT_ENOMEM;
    uint64_t *near = (uint64_t *)(void *)(made + devices); // of each host: itself
    *out = *from;
    out->made = NULL;
    tt_status st = tti_topology_room(ctx, out, hosts * n);
    if (st != TT_OK) {
        tti_free(ctx, made);
        return st;
    }
    out->made = made;
    out->n_tasks = hosts > 1 ? hosts : 0;
    out->task = 0;
    for (int d = 0; d < hosts * n; d++) {
        char task[32] = "";
        if (hosts > 1)
            snprintf(task, sizeof(task), "task:%d/", d / n);
        make_up(from->devices[0], d / n, d % n, n, &made[d]);
        made[d].index = d;
        made[d].near = (tti_set){near + (size_t)(d / n) * words, hosts};
        tti_set_add(&made[d].near, d / n);
        snprintf(made[d].name, sizeof(made[d].name), "%.14s%.8s:%u", task,
                 from->devices[0]->backend->name, (unsigned)(d % n) % 100000u);
        out->devices[d] = &made[d];
        out->speed[d] = from->speed[0];
        out->limit[d] = from->limit[0];
    }
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
    const char *s = text, *kind = from->devices[0]->backend->name;
    int hosts = 1, n = number_at(&s);
    if (n > 0 && *s == 'x') {
        s++;
        hosts = n;
        n = number_at(&s);
    }
    if (n == 0 || hosts == 0 || (*s != '\0' && strcmp(s, "cpu") != 0 && strcmp(s, "gpu") != 0))
        return TT_FAIL(ctx, TT_EINVAL,
                       "topology '%.64s': use hosts x devices and their kind, such as 8x4cpu, or 4",
                       text);
    if (*s != '\0' && strcmp(s, kind) != 0)
        return TT_FAIL(
            ctx, TT_EUNSUPPORTED,
            "topology '%.64s': plans use the kernels of this machine's %s; use --devices "
            "%s:0 where there is one",
            text, from->devices[0]->name, s);
    if (hosts > 1 && tti_has_streams(from->devices[0]))
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "topology '%.64s': GPUs can be used in one process only, so far", text);
    return tti_topology_make(ctx, from, hosts, n, out);
}
