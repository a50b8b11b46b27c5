/*
 * comm.c - groups: opening and closing them, and the transports that there are.
 */
#include "comm/comm.h"
#include "device/device.h"
#include <string.h>

// ---- groups ----------------------------------------------------------------------------------

static const tti_transport *const transports[] = {&tti_transport_local, &tti_transport_auto,
                                                  &tti_transport_shm, &tti_transport_wire};

static const tti_transport *find_transport(tt_ctx *ctx, const char *name)
{
    if (name == NULL)
        name = ctx->world != NULL ? "auto" : "local";
    for (int i = 0; i < TTI_COUNT(transports); i++)
        if (strcmp(name, transports[i]->name) == 0)
            return transports[i];
    (void)TT_FAIL(ctx, TT_EUNSUPPORTED,
                  "comm: there is no transport '%.64s'; use local, auto, shm or wire", name);
    return NULL;
}

static void free_comm(void *owner)
{
    tt_comm *c = owner;
    tti_handles_close(c);
    if (c->transport != NULL && c->transport->close != NULL)
        c->transport->close(c);
    tti_blocks_free(c);
    pthread_mutex_destroy(&c->mu);
    pthread_cond_destroy(&c->changed);
    tti_free(c->ctx, c->all);
    tti_free(c->ctx, c->offsets);
    tti_free(c->ctx, c->row);
    tti_free(c->ctx, c->counts.count);
    tti_free(c->ctx, c);
}

static tt_status open_comm(tt_comm *c, const tt_comm_open_opts *o)
{
    tt_ctx *ctx = c->ctx;
    c->n_members = o->members;
    for (int d = 0; o->members == 0 && d < ctx->top.n_devices; d++)
        c->n_members += !ctx->top.devices[d]->is_away;
    c->deadline_ms = o->deadline_ms != 0 ? o->deadline_ms : ctx->deadline_ms;
    if (c->n_members < 1 || c->n_members > TT_MAX_MEMBERS)
        return TT_FAIL(ctx, TT_EINVAL, "comm: %d members; 1 to %d are allowed", c->n_members,
                       TT_MAX_MEMBERS);
    if (o->n_ranks < 0 || (o->ranks == NULL) != (o->n_ranks == 0))
        return TT_FAIL(ctx, TT_EINVAL, "comm: n_ranks is %d, and ranks is %s", o->n_ranks,
                       o->ranks == NULL ? "NULL" : "not");
    if (c->deadline_ms < 0)
        return TT_FAIL(ctx, TT_EINVAL, "comm: deadline_ms is %lld; it must be above 0",
                       (long long)c->deadline_ms);
    const tti_transport *t = find_transport(ctx, o->transport);
    if (t == NULL)
        return TT_EUNSUPPORTED;
    c->total = c->n_members;
    c->transport = t;
    TT_TRY(t->open(c, o->ranks, o->n_ranks));
    c->row = tti_calloc(ctx, (size_t)c->total, sizeof(*c->row));
    c->offsets = tti_calloc(ctx, (size_t)c->total + 1, sizeof(*c->offsets));
    c->all = tti_calloc(ctx, (size_t)c->total, sizeof(*c->all));
    if (c->row == NULL || c->offsets == NULL || c->all == NULL)
        return TT_ENOMEM;
    return tti_handles_open(c);
}

tt_comm *tt_comm_open_with(tt_ctx *ctx, const tt_comm_open_opts *opts)
{
    if (tti_is_stuck(ctx))
        return NULL;
    tt_comm_open_opts o;
    if (TTI_OPTS_COPY(ctx, "comm", opts, &o) != TT_OK)
        return NULL;
    tt_comm *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->ctx = ctx;
    pthread_mutex_init(&c->mu, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (open_comm(c, &o) != TT_OK) {
        free_comm(c);
        return NULL;
    }
    tti_own(ctx, &c->owned, c, free_comm);
    return c;
}

void tt_comm_free(tt_comm *c)
{
    if (c == NULL)
        return;
    tti_disown(c->ctx, &c->owned);
    free_comm(c);
}

int tt_comm_members(const tt_comm *c)
{
    return c == NULL ? 0 : c->total;
}

int tt_comm_first(const tt_comm *c)
{
    return c == NULL ? 0 : c->first;
}
