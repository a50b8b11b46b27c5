/*
 * device.c - the devices a context opens: reading "cpu:0*2@512MiB", sharing the cores, matching
 * names, counting memory against limits. Names count the devices of each kind: "cpu:0,gpu:1*2"
 * gives cpu:0, gpu:0 and gpu:1.
 */
#include "device/device.h"
#include "base/ctx.h"
#include "base/value.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const tti_backend *const tti_backends[] = {&tti_backend_cpu, &tti_backend_cuda, NULL};

// One item of the list: a physical device, how many parts, the limit of each.
typedef struct spec {
    const tti_backend *backend;
    int physical;
    int parts;
    size_t limit;
} spec;

static const tti_backend *backend_of(const char *type)
{
    for (int i = 0; tti_backends[i] != NULL; i++)
        if (strcmp(tti_backends[i]->name, type) == 0)
            return tti_backends[i];
    return NULL;
}

// "*2": how many parts.
static tt_status parse_parts(tt_ctx *ctx, const char *list, const char *text, int *out)
{
    char *end;
    long parts = strtol(text, &end, 10);
    if (text[0] == 0 || *end != 0 || parts < 1 || parts > TTI_MOST_DEVICES)
        return TT_FAIL(ctx, TT_EPARSE, "devices '%s': '*%s' is not a number from 1 to %d", list,
                       text, TTI_MOST_DEVICES);
    *out = (int)parts;
    return TT_OK;
}

// "@512MiB", or "@40%" of the physical device's memory.
static tt_status parse_limit(tt_ctx *ctx, const char *list, const char *text, spec *out)
{
    size_t n = strlen(text);
    if (n == 0 || text[n - 1] != '%') {
        TT_TRY(tti_parse_size(ctx, text, &out->limit));
    } else {
        char number[32] = "";
        double percent;
        memcpy(number, text, TTI_MIN(n - 1, sizeof(number) - 1));
        if (n > sizeof(number) || !tti_double_parse(number, &percent) ||
            !(percent > 0 && percent <= 100))
            return TT_FAIL(ctx, TT_EPARSE, "devices '%s': '@%s' must be above 0 and at most 100 %%",
                           list, text);
        tti_facts facts;
        out->backend->facts(out->physical, &facts);
        if (facts.memory == 0)
            return TT_FAIL(
                ctx, TT_EUNSUPPORTED,
                "devices '%s': the memory of %s:%d is unknown; give a size instead of a percentage",
                list, out->backend->name, out->physical);
        out->limit = (size_t)((double)facts.memory * percent / 100);
    }
    if (out->limit == 0)
        return TT_FAIL(ctx, TT_EINVAL, "devices '%s': the limit is zero", list);
    return TT_OK;
}

static tt_status parse_name(tt_ctx *ctx, const char *list, const char *item, spec *out)
{
    tt_device_name name;
    TT_TRY(tt_device_parse(ctx, item, &name));
    if (name.job[0] != 0 || name.task >= 0 || name.replica >= 0)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "devices '%s': '%s' names a task; give devices of this process only", list,
                       item);
    out->backend = backend_of(name.type);
    if (out->backend == NULL)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "devices '%s': there are no '%s' devices, only cpu and gpu", list,
                       name.type);
    out->physical = name.index < 0 ? 0 : name.index;
    char why[256] = "", last[32] = "";
    int n = out->backend->count(why, sizeof(why));
    if (n == 0)
        return TT_FAIL(ctx, TT_EUNSUPPORTED, "devices '%s': no %s can be used: %s", list, name.type,
                       why);
    if (n > 1)
        snprintf(last, sizeof(last), " to %s:%d", name.type, n - 1);
    if (out->physical >= n)
        return TT_FAIL(ctx, TT_EINVAL,
                       "devices '%s': %s:%d does not exist; this machine has %d (%s:0%s)%s%s%s",
                       list, name.type, out->physical, n, name.type, last,
                       why[0] != '\0' ? " that can be used (" : "", why, why[0] != '\0' ? ")" : "");
    return TT_OK;
}

// Reads one item such as "cpu:0*2@512MiB" of the list.
static tt_status parse_item(tt_ctx *ctx, const char *list, char *item, spec *out)
{
    char *at = strchr(item, '@'), *star;
    out->limit = 0;
    out->parts = 1;
    if (at != NULL)
        *at = 0;
    star = strchr(item, '*');
    if (star != NULL) {
        *star = 0;
        TT_TRY(parse_parts(ctx, list, star + 1, &out->parts));
    }
    TT_TRY(parse_name(ctx, list, item, out));
    return at == NULL ? TT_OK : parse_limit(ctx, list, at + 1, out);
}

bool tti_devices_are_all(const char *list)
{
    return list != NULL && (strcmp(list, "all") == 0 || strcmp(list, "gpu:all") == 0);
}

// The GPUs there are, or this process's share of them; without any, what stands for them. NULL:
// recorded.
static char *all_gpus(tt_ctx *ctx, const char *without)
{
    char why[256];
    int n = tti_backend_cuda.count(why, sizeof(why)), turns = TTI_MAX(1, ctx->n_gpu_sharers);
    if (n > 0 && n < turns) {
        (void)TT_FAIL(ctx, TT_EINVAL,
                      "%d processes of the job are on a host with %d GPU%s: start one process per "
                      "GPU or fewer, or let them share one with --devices gpu:0",
                      turns, n, n == 1 ? "" : "s");
        return NULL;
    }
    int first = ctx->gpu_turn * n / turns, end = (ctx->gpu_turn + 1) * n / turns;
    tti_text t = {.ctx = ctx};
    if (n == 0)
        tti_text_add(&t, "%s", without);
    for (int i = first; i < end; i++)
        tti_text_add(&t, "%sgpu:%d", i == first ? "" : ",", i);
    return tti_text_take(&t);
}

// The items of a list, which is cut at its commas; specs has room for them.
static tt_status parse_items(tt_ctx *ctx, const char *list, char *items, spec *specs, int *n)
{
    int64_t parts = 0;
    *n = 0;
    for (char *s = items, *next; s != NULL; s = next) {
        next = strchr(s, ',');
        if (next != NULL)
            *next++ = 0;
        while (*s == ' ')
            s++;
        TT_TRY(parse_item(ctx, list, s, &specs[*n]));
        parts += specs[*n].parts;
        for (int i = 0; i < *n; i++)
            if (specs[i].backend == specs[*n].backend && specs[i].physical == specs[*n].physical)
                return TT_FAIL(ctx, TT_EINVAL, "devices '%s': %s:%d is given twice; use %s:%d*2",
                               list, specs[i].backend->name, specs[i].physical,
                               specs[i].backend->name, specs[i].physical);
        if (parts > TTI_MOST_DEVICES)
            return TT_FAIL(ctx, TT_EINVAL, "devices '%s': more than %d", list, TTI_MOST_DEVICES);
        (*n)++;
    }
    return TT_OK;
}

// What a list asks for; free *specs with tti_free(), after a failure too.
static tt_status parse_list(tt_ctx *ctx, const char *list, spec **specs, int *n)
{
    char *items;
    if (strcmp(list, "all") == 0)
        items = all_gpus(ctx, "cpu:0");
    else if (strcmp(list, "gpu:all") == 0)
        items = all_gpus(ctx, "gpu:0"); // which fails, and says why there are none
    else
        items = tti_strdup(ctx, list);
    if (items == NULL)
        return tt_status_of(ctx) != TT_OK ? tt_status_of(ctx) : TT_ENOMEM;
    size_t most = 1;
    for (const char *c = items; *c != '\0'; c++)
        most += *c == ',';
    *specs = tti_calloc(ctx, most, sizeof(**specs));
    tt_status st = *specs == NULL ? TT_ENOMEM : parse_items(ctx, list, items, *specs, n);
    tti_free(ctx, items);
    return st;
}

// index counts the devices of this kind.
static tt_status device_open(tt_ctx *ctx, const spec *s, int index, int n_threads, bool crowded)
{
    tti_device *d = tti_calloc(ctx, 1, sizeof(*d));
    if (d == NULL)
        return TT_ENOMEM;
    d->ctx = ctx;
    d->backend = s->backend;
    d->index = ctx->top.n_devices;
    d->card = s->physical;
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
    ctx->top.devices[ctx->top.n_devices++] = d;
    return TT_OK;

close_team:
    tti_team_close(d->team);
free_device:
    tti_free(ctx, d);
    return st;
}

static tt_status open_all(tt_ctx *ctx, const spec *specs, int n)
{
    int parts = 0, all = 0, count[TT_N_BACKENDS] = {0};
    for (int i = 0; i < n; i++) { // those that compute on the cores share them
        parts += specs[i].backend->host_memory ? specs[i].parts : 0;
        all += specs[i].parts;
    }
    TT_TRY(tti_topology_room(ctx, &ctx->top, all));
    ctx->top.n_devices = 0; // so far
    int threads = ctx->n_threads;
    bool crowded = TTI_MAX(parts, threads) + ctx->n_beside > tti_cores();
    for (int i = 0, k = 0; i < n; i++) {
        for (int p = 0; p < specs[i].parts; p++) {
            int share = 1;
            if (specs[i].backend->host_memory) {
                int64_t t = threads;
                share = (int)TTI_MAX(1, (k + 1) * t / parts - k * t / parts);
                k++;
            }
            int *index = &count[specs[i].backend->id];
            tt_status st = device_open(ctx, &specs[i], (*index)++, share, crowded);
            if (st != TT_OK) {
                tti_devices_close(ctx);
                return st;
            }
        }
    }
    return TT_OK;
}

tt_status tti_devices_open(tt_ctx *ctx, const char *list)
{
    spec *specs = NULL;
    int n = 0;
    tt_status st = parse_list(ctx, list == NULL || list[0] == 0 ? "cpu:0" : list, &specs, &n);
    if (st == TT_OK)
        st = open_all(ctx, specs, n);
    tti_free(ctx, specs);
    return st;
}

void tti_devices_close(tt_ctx *ctx)
{
    while (ctx->top.n_devices > 0) {
        tti_device *d = ctx->top.devices[--ctx->top.n_devices];
        if (!d->is_away) {
            d->backend->close(d);
            tti_team_close(d->team);
        }
        tti_free(ctx, d);
    }
    tti_free(ctx, ctx->top.devices);
    ctx->top.devices = NULL;
}

tti_device *tti_device_match(const tti_topology *top, const tt_device_name *name)
{
    if (strcmp(name->type, "local") == 0) {
        int i = TTI_MAX(name->index, 0);
        return i < top->n_devices ? top->devices[i] : NULL;
    }
    for (int i = 0; i < top->n_devices; i++) {
        const tt_device_name *d = &top->devices[i]->full;
        if ((name->job[0] == 0 || strcmp(name->job, d->job) == 0) &&
            (name->replica < 0 || name->replica == d->replica) &&
            (name->task < 0 || name->task == d->task) &&
            (name->type[0] == 0 || strcmp(name->type, d->type) == 0) &&
            (name->index < 0 || name->index == d->index))
            return top->devices[i];
    }
    return NULL;
}

// Whether it can be had without what could be given back; then *out has it.
static bool can_spare(tti_device *d, size_t bytes, void **out)
{
    size_t used = atomic_load(&d->used) + bytes;
    if ((d->limit > 0 && used > d->limit) || !d->backend->streams->try_alloc(d, bytes, out))
        return false;
    atomic_fetch_add(&d->used, bytes);
    return true;
}

tt_status tti_device_alloc(tti_device *d, size_t bytes, void **out)
{
    while (d->spares != NULL) {
        if (can_spare(d, bytes, out))
            return TT_OK;
        tti_spare *s = d->spares;
        d->spares = s->next;
        s->drop(s);
    }
    size_t used = atomic_fetch_add(&d->used, bytes) + bytes;
    tt_status st = TT_OK;
    if (d->limit > 0 && used > d->limit)
        st = TT_FAIL(d->ctx, TT_ELIMIT,
                     "%s: %zu more bytes would make %zu, more than its limit of %zu", d->name,
                     bytes, used, d->limit);
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

tt_status tti_device_alloc_fixed(tti_device *d, size_t bytes, void **out)
{
    TT_TRY(tti_device_alloc(d, bytes, out));
    atomic_fetch_add(&d->arena, bytes);
    atomic_fetch_add(&d->fixed, bytes);
    return TT_OK;
}

void tti_device_free_fixed(tti_device *d, void *p, size_t bytes)
{
    if (p == NULL)
        return;
    tti_device_free(d, p, bytes);
    atomic_fetch_sub(&d->arena, bytes);
    atomic_fetch_sub(&d->fixed, bytes);
}

int tt_device_count(const tt_ctx *ctx)
{
    return ctx == NULL ? 0 : ctx->top.n_devices;
}

tt_status tt_device_get_sized(tt_ctx *ctx, int i, tt_device_info *out, size_t size)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "device: the room for its description is NULL");
    if (i < 0 || i >= ctx->top.n_devices)
        return TT_FAIL(ctx, TT_EINVAL, "there is no device %d: the context has %d devices", i,
                       ctx->top.n_devices);
    tti_device *d = ctx->top.devices[i];
    tt_device_info info = {.threads = d->n_threads,
                           .limit = d->limit,
                           .variables = atomic_load(&d->variables),
                           .arena = atomic_load(&d->arena),
                           .overhead = d->backend->overhead == NULL ? 0 : d->backend->overhead(d)};
    memcpy(info.name, d->name, sizeof(info.name));
    memcpy(info.physical, d->physical, sizeof(info.physical));
    tti_facts facts;
    d->backend->facts(d->card, &facts);
    memcpy(info.model, facts.model, sizeof(info.model));
    tti_out_copy(out, size, &info, sizeof(info));
    return TT_OK;
}

const char *tti_device_list(const tti_topology *top, char out[TTI_DEVICE_LIST])
{
    int n = 0;
    out[0] = '\0';
    for (int d = 0; d < top->n_devices; d++) {
        if (n > TTI_DEVICE_LIST - 40) {
            snprintf(out + n, (size_t)(TTI_DEVICE_LIST - n), ", ...");
            break;
        }
        n += snprintf(out + n, (size_t)(TTI_DEVICE_LIST - n), "%s%s", d > 0 ? ", " : "",
                      top->devices[d]->name);
    }
    return out;
}
