/*
 * assign_devices.c - what strategies with several replicas have in common: devices are assigned to
 * replicas in order, and each replica has a share of the lanes.
 */
#include "base/value.h"
#include "device/device.h"
#include "strategy/strategy.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *tti_most_text(const tti_topology *top, const tt_graph *g, char out[TTI_MOST_TEXT])
{
    const tt_ctx *ctx = g->ctx;
    int n_local = TTI_MAX(tti_local_pins(g, NULL), 1), n;
    tti_mesh m;
    if (tt_status_of(ctx) == TT_OK && top->strategy->mesh(top, g, &m) == TT_OK && m.n_axes > 0)
        n_local = tti_mesh_size(&m, TTI_AXIS_PIPE);
    n = snprintf(out, TTI_MOST_TEXT, "up to %d replica%s", top->lanes, top->lanes == 1 ? "" : "s");
    if (n_local > 1)
        n += snprintf(out + n, (size_t)(TTI_MOST_TEXT - n), " of %d devices each", n_local);
    snprintf(out + n, (size_t)(TTI_MOST_TEXT - n), " (lanes: %d)", top->lanes);
    return out;
}

// ---- shares ----------------------------------------------------------------------------------

static tt_status check_shares(tt_ctx *ctx, const char *name, const char *text, int *n)
{
    *n = 0;
    for (const char *s = text;; s++) {
        char word[32];
        size_t length = strcspn(s, ",");
        snprintf(word, sizeof(word), "%.*s", (int)TTI_MIN(length, sizeof(word) - 1), s);
        const char *begin = word + strspn(word, " ");
        double x;
        if (length >= sizeof(word) || !tti_double_parse(begin, &x) || !isfinite(x))
            return TT_FAIL(ctx, TT_EINVAL,
                           "strategy %s: share '%.64s': '%s' is not a number; use equal, auto or "
                           "numbers such as 2,1",
                           name, text, begin);
        if (x <= 0)
            return TT_FAIL(ctx, TT_EINVAL, "strategy %s: share '%.64s': %s must be above 0", name,
                           text, begin);
        (*n)++;
        s += length;
        if (*s == '\0')
            return TT_OK;
    }
}

tt_status tti_assign_shares(const tti_topology *top, tt_ctx *ctx, const tti_strategy *s,
                            const char *text, tti_mesh *m)
{
    int replicas = tti_mesh_size(m, TTI_AXIS_DATA), n;
    m->speed = NULL;
    m->share = NULL;
    if (text == NULL || strcmp(text, "equal") == 0)
        return TT_OK;
    if (strcmp(text, "auto") == 0) {
        if (replicas > 1 && top->speed[0] > 0)
            m->speed = top->speed;
        return TT_OK;
    }
    TT_TRY(check_shares(ctx, s->name, text, &n));
    int want = replicas - m->n_without_lanes;
    if (m->n_axes > 0 && n != want)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy %s: share '%.64s' has %d number%s, but there %s %d"
                       " replica%s",
                       s->name, text, n, n == 1 ? "" : "s", want == 1 ? "is" : "are", want,
                       want == 1 ? "" : "s");
    m->share = text;
    return TT_OK;
}

// ---- devices ---------------------------------------------------------------------------------

// Devices that are no whole number of replicas with n_local each; or not the number asked for.
static tt_status cannot_assign(const tti_topology *top, tt_ctx *ctx, int n, int replicas,
                               int n_local, const char *why)
{
    int whole = n / n_local;
    const char *name = top->strategy->name;
    char list[TTI_DEVICE_LIST];
    if (whole == 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy %s: a replica needs %d devices (%s), but there is only %s", name,
                       n_local, why, tti_device_list(top, list));
    if (replicas == 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy %s: %d devices cannot be divided into replicas of %d devices each "
                       "(%s); use %d or %d devices",
                       name, n, n_local, why, whole * n_local, (whole + 1) * n_local);
    char other[48] = "";
    if (n % n_local == 0)
        snprintf(other, sizeof(other), "replicas: %d or ", whole);
    return TT_FAIL(ctx, TT_EINVAL,
                   "strategy %s: replicas is %d, of %d device%s each (%s), but there are %d "
                   "devices%s; use %s%d device%s",
                   name, replicas, n_local, n_local == 1 ? "" : "s", why, n,
                   n < top->n_devices ? " beside the one that holds the variables" : "", other,
                   replicas * n_local, replicas * n_local == 1 ? "" : "s");
}

tt_status tti_assign_devices(const tti_topology *top, const tt_graph *g, const tti_assignment *ask,
                             tti_mesh *out)
{
    tt_ctx *ctx = g->ctx;
    int n = top->n_devices - ask->n_without_lanes, each = ask->n_pipe, replicas = ask->replicas;
    if (n % each != 0 || n < each || (replicas > 0 && replicas * each != n))
        return cannot_assign(top, ctx, n, replicas, each, ask->why);
    replicas = n / each;
    if (replicas > top->lanes)
        return TT_FAIL(ctx, TT_EINVAL,
                       "strategy %s: %d replicas, but %d lane%s, and a replica needs at least one; "
                       "use lanes: %d (which changes the bits), or %d device%s",
                       top->strategy->name, replicas, top->lanes, top->lanes == 1 ? "" : "s",
                       replicas, top->lanes * each, top->lanes * each == 1 ? "" : "s");
    *out = tti_mesh_make(replicas + ask->n_without_lanes, each);
    out->n_without_lanes = ask->n_without_lanes;
    return tti_assign_shares(top, ctx, top->strategy, top->spread.share, out);
}
