/*
 * topology_file.c - a topology from a file:
 *
 *   hosts:
 *     - {count: 8, processes: 1, devices: {kind: h200, count: 8, limit: 130GiB}}
 *     - {devices: [{kind: cpu, count: 2, speed: 0.5}]}
 *   links: {same_host: 450GB/s, cross_host: 400Gbit/s}
 *
 * A list of one item may be that item.
 */
#include "job/topology_file.h"
#include "base/ctx.h"
#include "base/file.h"
#include "base/hints.h"
#include "base/value.h"
#include "device/gpu_profile.h"
#include "job/tree.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 256 // of hosts, and of devices

typedef struct reader {
    tt_ctx *ctx;
    tti_made_host hosts[MAX_ROWS];
    tti_made_devices devices[MAX_ROWS];
    int n_hosts, n_devices;
    double same_host, cross_host;
} reader;

bool tti_is_topology_file(const char *text)
{
    const char *dot = strrchr(text, '.');
    return dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

// ---- values ----------------------------------------------------------------------------------

// Every key of a map is one of names, NULL at the end.
static tt_status check_keys(tt_ctx *ctx, const tti_item *map, const char *path,
                            const char *const *names)
{
    if (map->kind != TTI_MAP)
        return tti_fail_at(ctx, TT_EPARSE, map->at, path, "is %s; use a map", tti_item_word(map));
    for (const tti_item *i = map->first; i != NULL; i = i->next) {
        bool known = false;
        char list[256] = "";
        for (int k = 0; names[k] != NULL; k++) {
            known |= strcmp(names[k], i->key) == 0;
            size_t n = strlen(list);
            snprintf(list + n, sizeof(list) - n, "%s%s", k > 0 ? ", " : "", names[k]);
        }
        if (known)
            continue;
        const char *near = tti_meant(i->key, names);
        return near != NULL ? tti_fail_at(ctx, TT_EPARSE, i->key_at, path,
                                          "unknown key '%.64s'; did you mean '%s'?", i->key, near)
                            : tti_fail_at(ctx, TT_EPARSE, i->key_at, path,
                                          "unknown key '%.64s'; the keys are %s", i->key, list);
    }
    return TT_OK;
}

static tt_status not_scalar(tt_ctx *ctx, const tti_item *i, const char *path, const char *wanted)
{
    return tti_fail_at(ctx, TT_EPARSE, i->at, path, "%s is %s; use %s", i->key, tti_item_word(i),
                       wanted);
}

static tt_status read_count(tt_ctx *ctx, const tti_item *map, const char *path, const char *key,
                            int *out)
{
    const tti_item *i = tti_item_get(map, key);
    if (i == NULL)
        return TT_OK;
    char *end = NULL;
    long n = i->kind == TTI_SCALAR ? strtol(i->text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || n < 1 || n > TTI_MOST_DEVICES)
        return tti_fail_at(ctx, TT_EPARSE, i->at, path, "%s is %s; use a number from 1 to %d", key,
                           i->kind == TTI_SCALAR ? i->text : tti_item_word(i), TTI_MOST_DEVICES);
    *out = (int)n;
    return TT_OK;
}

static tt_status read_size(tt_ctx *ctx, const tti_item *map, const char *path, const char *key,
                           size_t *out)
{
    const tti_item *i = tti_item_get(map, key);
    if (i == NULL)
        return TT_OK;
    if (i->kind != TTI_SCALAR)
        return not_scalar(ctx, i, path, "a size such as 80GiB");
    char place[TTI_PLACE_MAX], where[TTI_PLACE_MAX + 64];
    snprintf(where, sizeof(where), "%s: %s%s%s: ", tti_place_text(i->at, place), path,
             path[0] != '\0' ? "." : "", key);
    tti_fail_where(ctx, where);
    tt_status st = tti_parse_size(ctx, i->text, out);
    tti_fail_where(ctx, NULL);
    return st;
}

static tt_status read_speed(tt_ctx *ctx, const tti_item *map, const char *path, double *out)
{
    const tti_item *i = tti_item_get(map, "speed");
    if (i == NULL)
        return TT_OK;
    if (i->kind != TTI_SCALAR || !tti_double_parse(i->text, out) || !(*out > 0))
        return tti_fail_at(ctx, TT_EPARSE, i->at, path,
                           "speed must be above 0: what the device gets done, compared to others");
    return TT_OK;
}

// "450GB/s", "400Gbit/s": bytes a second.
static tt_status read_rate(tt_ctx *ctx, const tti_item *map, const char *key, double *out)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"Gbit/s", 0.125e9},
                 {"Mbit/s", 0.125e6},
                 {"GB/s", 1e9},
                 {"MB/s", 1e6},
                 {"GiB/s", 1073741824.0}};
    const tti_item *i = tti_item_get(map, key);
    if (i == NULL)
        return TT_OK;
    for (int k = 0; i->kind == TTI_SCALAR && k < TTI_COUNT(units); k++) {
        size_t n = strlen(i->text), unit = strlen(units[k].unit);
        char number[32];
        double x;
        if (n <= unit || n - unit >= sizeof(number) ||
            strcmp(i->text + n - unit, units[k].unit) != 0)
            continue;
        snprintf(number, sizeof(number), "%.*s", (int)(n - unit), i->text);
        if (tti_double_parse(number, &x) && x > 0) {
            *out = x * units[k].bytes;
            return TT_OK;
        }
    }
    return tti_fail_at(ctx, TT_EPARSE, i->at, "links",
                       "%s is '%.64s'; use a rate such as 50GB/s or 400Gbit/s", key,
                       i->kind == TTI_SCALAR ? i->text : tti_item_word(i));
}

// ---- rows ------------------------------------------------------------------------------------

// "cpu", "gpu", or a profile that was recorded.
static tt_status read_kind(tt_ctx *ctx, const tti_item *map, const char *path,
                           tti_made_devices *out)
{
    const tti_item *i = tti_item_get(map, "kind");
    const char *names[16] = {"cpu", "gpu"};
    char list[256] = "cpu, gpu";
    for (int k = 0; tti_gpu_profile_at(k) != NULL && k < 12; k++) {
        names[2 + k] = tti_gpu_profile_at(k)->name;
        size_t n = strlen(list);
        snprintf(list + n, sizeof(list) - n, ", %s", names[2 + k]);
    }
    if (i == NULL)
        return tti_fail_at(ctx, TT_EPARSE, map->at, path, "kind is missing; use %s", list);
    if (i->kind != TTI_SCALAR)
        return not_scalar(ctx, i, path, list);
    const tti_gpu_profile *profile = tti_gpu_profile_find(i->text);
    out->is_gpu = strcmp(i->text, "gpu") == 0 || profile != NULL;
    out->profile = profile != NULL ? profile->name : NULL;
    if (out->is_gpu || strcmp(i->text, "cpu") == 0)
        return TT_OK;
    const char *near = tti_meant(i->text, names);
    return near != NULL ? tti_fail_at(ctx, TT_EPARSE, i->at, path,
                                      "kind '%.64s'; did you mean '%s'? (%s)", i->text, near, list)
                        : tti_fail_at(ctx, TT_EPARSE, i->at, path, "kind '%.64s' is not one of %s",
                                      i->text, list);
}

static tt_status read_devices(reader *r, const tti_item *map)
{
    static const char *const keys[] = {"kind", "count", "memory", "limit", "speed", NULL};
    const char *path = "hosts.devices";
    TT_TRY(check_keys(r->ctx, map, path, keys));
    if (r->n_devices == MAX_ROWS)
        return tti_fail_at(r->ctx, TT_EPARSE, map->at, path, "more than %d rows", MAX_ROWS);
    tti_made_devices *d = &r->devices[r->n_devices++];
    *d = (tti_made_devices){.count = 1};
    TT_TRY(read_kind(r->ctx, map, path, d));
    TT_TRY(read_count(r->ctx, map, path, "count", &d->count));
    TT_TRY(read_size(r->ctx, map, path, "memory", &d->memory));
    TT_TRY(read_size(r->ctx, map, path, "limit", &d->limit));
    if (d->limit > d->memory && d->memory > 0)
        return tti_fail_at(r->ctx, TT_EPARSE, tti_item_get(map, "limit")->at, path,
                           "the limit is above the memory of the device");
    return read_speed(r->ctx, map, path, &d->speed);
}

static tt_status read_host(reader *r, const tti_item *map)
{
    static const char *const keys[] = {"count", "processes", "devices", NULL};
    TT_TRY(check_keys(r->ctx, map, "hosts", keys));
    if (r->n_hosts == MAX_ROWS)
        return tti_fail_at(r->ctx, TT_EPARSE, map->at, "hosts", "more than %d rows", MAX_ROWS);
    tti_made_host *h = &r->hosts[r->n_hosts++];
    *h = (tti_made_host){.count = 1, .n_processes = 1, .devices = &r->devices[r->n_devices]};
    TT_TRY(read_count(r->ctx, map, "hosts", "count", &h->count));
    TT_TRY(read_count(r->ctx, map, "hosts", "processes", &h->n_processes));
    const tti_item *devices = tti_item_get(map, "devices");
    int before = r->n_devices;
    if (devices == NULL)
        return tti_fail_at(r->ctx, TT_EPARSE, map->at, "hosts", "devices is missing");
    if (devices->kind == TTI_LIST)
        for (const tti_item *i = devices->first; i != NULL; i = i->next)
            TT_TRY(read_devices(r, i));
    else
        TT_TRY(read_devices(r, devices));
    h->n_devices = r->n_devices - before;
    int64_t n = 0;
    for (int i = before; i < r->n_devices; i++)
        n += r->devices[i].count;
    if (n == 0 || n % h->n_processes != 0)
        return tti_fail_at(r->ctx, TT_EPARSE, map->at, "hosts",
                           "%lld devices cannot be divided evenly among %d processes", (long long)n,
                           h->n_processes);
    return TT_OK;
}

static tt_status read_root(reader *r, const tti_item *root)
{
    static const char *const keys[] = {"hosts", "links", NULL};
    static const char *const rates[] = {"same_host", "cross_host", NULL};
    TT_TRY(check_keys(r->ctx, root, "", keys));
    const tti_item *hosts = tti_item_get(root, "hosts"), *links = tti_item_get(root, "links");
    if (hosts == NULL)
        return tti_fail_at(r->ctx, TT_EPARSE, root->at, "", "hosts is missing");
    if (hosts->kind == TTI_LIST)
        for (const tti_item *i = hosts->first; i != NULL; i = i->next)
            TT_TRY(read_host(r, i));
    else
        TT_TRY(read_host(r, hosts));
    if (r->n_hosts == 0)
        return tti_fail_at(r->ctx, TT_EPARSE, hosts->at, "hosts", "the list is empty");
    if (links == NULL)
        return TT_OK;
    TT_TRY(check_keys(r->ctx, links, "links", rates));
    TT_TRY(read_rate(r->ctx, links, "same_host", &r->same_host));
    return read_rate(r->ctx, links, "cross_host", &r->cross_host);
}

tt_status tti_topology_read(tt_ctx *ctx, const tti_topology *from, const char *path,
                            tti_topology *out)
{
    char *text;
    size_t bytes;
    tti_item *root;
    tti_tree tree = {.ctx = ctx};
    TT_TRY(tti_file_read(ctx, path, TTI_MAX_JOB_BYTES, &text, &bytes));
    reader *r = tti_calloc(ctx, 1, sizeof(*r));
    tt_status st = r == NULL ? TT_ENOMEM : tti_yaml_read(&tree, path, text, bytes, &root);
    if (st == TT_OK) {
        r->ctx = ctx;
        st = read_root(r, root);
    }
    if (st == TT_OK)
        st = tti_topology_of_hosts(ctx, from, r->hosts, r->n_hosts, out);
    if (st == TT_OK) {
        out->same_host = r->same_host;
        out->cross_host = r->cross_host;
    }
    tti_tree_free(&tree);
    tti_free(ctx, r);
    tti_free(ctx, text);
    return st;
}
