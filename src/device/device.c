/*
 * device.c - the devices a context opens: reading "cpu:0*2@512MiB", sharing the cores, matching
 * names, counting memory against limits.
 */
#include "device/device.h"
#include "base/ctx.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tti_backend *const backends[] = {&tti_backend_cpu};

// One item of the list: a physical device, how many parts, the limit of each.
typedef struct spec {
    const tti_backend *backend;
    int physical;
    int parts;
    size_t limit;
} spec;

static const tti_backend *backend_of(const char *type)
{
    for (int i = 0; i < TTI_COUNT(backends); i++)
        if (strcmp(backends[i]->name, type) == 0)
            return backends[i];
    return NULL;
}

// Reads one item such as "cpu:0*2@512MiB" of the list.
static tt_status parse_item(tt_ctx *ctx, const char *list, char *item, spec *out)
{
    char *at = strchr(item, '@'), *star;
    out->limit = 0;
    out->parts = 1;
    if (at != NULL) {
        *at = 0;
        TT_TRY(tti_parse_size(ctx, at + 1, &out->limit));
        if (out->limit == 0)
            return TT_FAIL(ctx, TT_EINVAL, "devices '%s': the limit is zero", list);
    }
    star = strchr(item, '*');
    if (star != NULL) {
        char *end;
        *star = 0;
        long parts = strtol(star + 1, &end, 10);
        if (star[1] == 0 || *end != 0 || parts < 1 || parts > TTI_MAX_DEVICES)
            return TT_FAIL(ctx, TT_EPARSE, "devices '%s': '*%s' is not a number from 1 to %d", list,
                           star + 1, TTI_MAX_DEVICES);
        out->parts = (int)parts;
    }
    tt_device_name name;
    TT_TRY(tt_device_parse(ctx, item, &name));
    if (name.job[0] != 0 || name.task >= 0 || name.replica >= 0)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "devices '%s': '%s' names a task; devices of this process are meant", list,
                       item);
    out->backend = backend_of(name.type);
    if (out->backend == NULL)
        return TT_FAIL(ctx, TT_EUNSUPPORTED, "devices '%s': this build has no '%s' devices", list,
                       name.type);
    out->physical = name.index < 0 ? 0 : name.index;
    int n = out->backend->count();
    if (out->physical >= n)
        return TT_FAIL(ctx, TT_EINVAL,
                       "devices '%s': %s:%d does not exist; this machine has %d (%s:0%s)", list,
                       name.type, out->physical, n, name.type, n > 1 ? " and up" : "");
    return TT_OK;
}

static tt_status parse_list(tt_ctx *ctx, const char *list, spec *specs, int *n)
{
    char copy[512];
    if (strlen(list) >= sizeof(copy))
        return TT_FAIL(ctx, TT_EINVAL, "devices '%.40s...' is too long", list);
    strcpy(copy, strcmp(list, "all") == 0 ? "cpu:0" : list);
    *n = 0;
    int parts = 0;
    for (char *s = copy, *next; s != NULL; s = next) {
        next = strchr(s, ',');
        if (next != NULL)
            *next++ = 0;
        while (*s == ' ')
            s++;
        TT_TRY(parse_item(ctx, list, s, &specs[*n]));
        parts += specs[*n].parts;
        for (int i = 0; i < *n; i++)
            if (specs[i].backend == specs[*n].backend && specs[i].physical == specs[*n].physical)
                return TT_FAIL(ctx, TT_EINVAL, "devices '%s': %s:%d is named twice; use %s:%d*2",
                               list, specs[i].backend->name, specs[i].physical,
                               specs[i].backend->name, specs[i].physical);
        if (parts > TTI_MAX_DEVICES)
            return TT_FAIL(ctx, TT_EINVAL, "devices '%s': more than %d", list, TTI_MAX_DEVICES);
        (*n)++;
    }
    return TT_OK;
}

static tt_status device_open(tt_ctx *ctx, const spec *s, int index, int n_threads, bool crowded)
{
    tti_device *d = tti_calloc(ctx, 1, sizeof(*d));
    if (d == NULL)
        return TT_ENOMEM;
    d->ctx = ctx;
    d->backend = s->backend;
    d->index = index;
    d->limit = s->limit;
    d->n_threads = n_threads;
    d->is_crowded = crowded;
    snprintf(d->name, sizeof(d->name), "%s:%d", s->backend->name, index);
    snprintf(d->physical, sizeof(d->physical), "%s:%d", s->backend->name, s->physical);
    d->full = (tt_device_name){.job = "localhost", .replica = 0, .task = 0, .index = index};
    snprintf(d->full.type, sizeof(d->full.type), "%s", s->backend->name);
    // Spinning only pays while every thread has a core of its own.
    tt_status st = tti_team_open(ctx, d->name, n_threads, crowded ? 0 : 20000, &d->team);
    if (st != TT_OK)
        goto free_device;
    st = s->backend->open(d);
    if (st != TT_OK)
        goto close_team;
    ctx->devices[ctx->n_devices++] = d;
    return TT_OK;

close_team:
    tti_team_close(d->team);
free_device:
    tti_free(ctx, d);
    return st;
}

tt_status tti_devices_open(tt_ctx *ctx, const char *list)
{
    spec specs[TTI_MAX_DEVICES];
    int n = 0, parts = 0;
    TT_TRY(parse_list(ctx, list == NULL || list[0] == 0 ? "cpu:0" : list, specs, &n));
    for (int i = 0; i < n; i++)
        parts += specs[i].parts;
    int threads = ctx->n_threads;
    bool crowded = TTI_MAX(parts, threads) > tti_cores();
    for (int i = 0, k = 0; i < n; i++) {
        for (int p = 0; p < specs[i].parts; p++, k++) {
            int share = TTI_MAX(1, (k + 1) * threads / parts - k * threads / parts);
            tt_status st = device_open(ctx, &specs[i], k, share, crowded);
            if (st != TT_OK) {
                tti_devices_close(ctx);
                return st;
            }
        }
    }
    return TT_OK;
}

void tti_devices_close(tt_ctx *ctx)
{
    while (ctx->n_devices > 0) {
        tti_device *d = ctx->devices[--ctx->n_devices];
        d->backend->close(d);
        tti_team_close(d->team);
        tti_free(ctx, d);
        ctx->devices[ctx->n_devices] = NULL;
    }
}

tti_device *tti_device_match(tt_ctx *ctx, const tt_device_name *name)
{
    if (strcmp(name->type, "local") == 0) {
        int i = TTI_MAX(name->index, 0);
        return i < ctx->n_devices ? ctx->devices[i] : NULL;
    }
    for (int i = 0; i < ctx->n_devices; i++) {
        const tt_device_name *d = &ctx->devices[i]->full;
        if ((name->job[0] == 0 || strcmp(name->job, d->job) == 0) &&
            (name->replica < 0 || name->replica == d->replica) &&
            (name->task < 0 || name->task == d->task) &&
            (name->type[0] == 0 || strcmp(name->type, d->type) == 0) &&
            (name->index < 0 || name->index == d->index))
            return ctx->devices[i];
    }
    return NULL;
}

tt_status tti_device_alloc(tti_device *d, size_t bytes, void **out)
{
    size_t used = atomic_fetch_add(&d->used, bytes) + bytes;
    tt_status st = TT_OK;
    if (d->limit > 0 && used > d->limit)
        st = TT_FAIL(d->ctx, TT_ELIMIT, "%s: %zu bytes more would make %zu, above its limit of %zu",
                     d->name, bytes, used, d->limit);
    else
        st = d->backend->alloc(d, bytes, out);
    if (st != TT_OK)
        atomic_fetch_sub(&d->used, bytes);
    return st;
}

void tti_device_free(tti_device *d, void *p, size_t bytes)
{
    if (p == NULL)
        return;
    d->backend->free(d, p, bytes);
    atomic_fetch_sub(&d->used, bytes);
}

int tt_device_count(const tt_ctx *ctx)
{
    return ctx == NULL ? 0 : ctx->n_devices;
}

tt_status tt_device_get(tt_ctx *ctx, int i, tt_device_info *out)
{
    if (ctx == NULL || out == NULL)
        return TT_EINVAL;
    if (i < 0 || i >= ctx->n_devices)
        return TT_FAIL(ctx, TT_EINVAL, "device %d: the context has %d", i, ctx->n_devices);
    tti_device *d = ctx->devices[i];
    tt_device_info info = {.threads = d->n_threads,
                           .limit = d->limit,
                           .variables = atomic_load(&d->variables),
                           .arena = atomic_load(&d->arena)};
    memcpy(info.name, d->name, sizeof(info.name));
    memcpy(info.physical, d->physical, sizeof(info.physical));
    d->backend->model(0, info.model, sizeof(info.model));
    *out = info;
    return TT_OK;
}

const char *tti_device_list(const tt_ctx *ctx, char out[TTI_DEVICE_LIST])
{
    int n = 0;
    out[0] = '\0';
    for (int d = 0; d < ctx->n_devices; d++) {
        if (n > TTI_DEVICE_LIST - 40) {
            snprintf(out + n, (size_t)(TTI_DEVICE_LIST - n), ", ...");
            break;
        }
        n += snprintf(out + n, (size_t)(TTI_DEVICE_LIST - n), "%s%s", d > 0 ? ", " : "",
                      ctx->devices[d]->name);
    }
    return out;
}
