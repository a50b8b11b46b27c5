/*
 * comm.c - groups and the collectives as calls.
 *
 * A call is checked in full before a byte is written: options, that all members mean the same call,
 * lanes, and every member's memory (check.c). What is left cannot fail but for devices and peers.
 */
#include "comm/comm.h"
#include "comm/world.h"
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
    if (c->transport != NULL && c->transport->close != NULL)
        c->transport->close(c);
    tti_blocks_free(c);
    tti_free(c->ctx, c->all);
    tti_free(c->ctx, c->prints);
    tti_free(c->ctx, c->offsets);
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
    c->prints = tti_calloc(ctx, (size_t)c->n_members, sizeof(*c->prints));
    c->offsets = tti_calloc(ctx, (size_t)c->total + 1, sizeof(*c->offsets));
    c->all = tti_calloc(ctx, (size_t)c->total, sizeof(*c->all));
    return c->prints == NULL || c->offsets == NULL || c->all == NULL ? TT_ENOMEM : TT_OK;
}

tt_comm *tt_comm_open_with(tt_ctx *ctx, const tt_comm_open_opts *opts)
{
    if (tti_is_stuck(ctx))
        return NULL;
    if (opts == NULL) {
        (void)TT_FAIL(ctx, TT_EINVAL, "comm: the options are NULL");
        return NULL;
    }
    tt_comm_open_opts o = {0};
    memcpy(&o, opts, TTI_MIN(opts->opts_size, sizeof(o)));
    tt_comm *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->ctx = ctx;
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

// ---- what members must agree on --------------------------------------------------------------

static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                    "all_to_all", "barrier",        "sum_lanes"};

const char *tti_call_name(int kind)
{
    return kind >= 0 && kind < TTI_COUNT(names) ? names[kind] : "?";
}

tt_status tti_fingerprint_check(tt_ctx *ctx, const char *name, int first, const tti_fingerprint *a,
                                int member, const tti_fingerprint *b)
{
    if (a->kind != b->kind || a->sequence != b->sequence)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d is in %s, call %llu, but member %d is in %s, call %llu", name,
                       member, tti_call_name(b->kind), (unsigned long long)b->sequence, first,
                       tti_call_name(a->kind), (unsigned long long)a->sequence);
    if (a->count != b->count || a->dtype != b->dtype)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d has %lld elements of %s, but member %d has %lld of %s", name,
                       member, (long long)b->count, tt_dtype_name((tt_dtype)b->dtype), first,
                       (long long)a->count, tt_dtype_name((tt_dtype)a->dtype));
    if (a->combine != b->combine || a->lanes != b->lanes || a->root != b->root)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: member %d has combine %d, lanes %d, root %d, but member %d has combine "
                       "%d, lanes %d, root %d",
                       name, member, b->combine, b->lanes, b->root, first, a->combine, a->lanes,
                       a->root);
    return TT_OK;
}

static tt_status agree(tt_comm *c, tti_comm_call *call)
{
    for (int i = 0; i < call->n; i++)
        c->prints[i] =
            (tti_fingerprint){.sequence = c->sequence,
                              .count = call->kind == TTI_ALL_GATHER ? -1 : call->members[i].count,
                              .kind = (int32_t)call->kind,
                              .dtype = (int32_t)call->opts.dtype,
                              .combine = (int32_t)call->opts.combine,
                              .lanes = call->opts.lanes,
                              .root = call->opts.root};
    c->sequence++;
    return c->transport->agree(c, call, c->prints);
}

// ---- calls -----------------------------------------------------------------------------------

// An error of one process is everybody's: the others would wait for it.
static tt_status end(tt_comm *c, tt_status st)
{
    if (st != TT_OK && c->transport != &tti_transport_local)
        tti_world_fail_with(c->ctx, st);
    return st;
}

static tt_status try_reduce(tt_comm *c, tti_call_kind kind, const tt_member *members,
                            const tt_comm_opts *opts)
{
    tti_comm_call call;
    tti_reduction r;
    TT_TRY(tti_call_begin(c->ctx, kind, members, c->n_members, c->total, opts, &call));
    TT_TRY(agree(c, &call));
    TT_TRY(tti_reduction_make(c->ctx, &call, &r));
    TT_TRY(tti_call_check_memory(c->ctx, &call));
    return c->transport->reduce(c, &call, &r);
}

static tt_status reduce(tt_comm *c, tti_call_kind kind, const tt_member *members,
                        const tt_comm_opts *opts)
{
    if (c == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(c->ctx))
        return tt_status_of(c->ctx);
    return end(c, try_reduce(c, kind, members, opts));
}

static tt_status try_move(tt_comm *c, tti_call_kind kind, const tt_member *members,
                          const tt_comm_opts *opts)
{
    tti_comm_call call;
    TT_TRY(tti_call_begin(c->ctx, kind, members, c->n_members, c->total, opts, &call));
    TT_TRY(agree(c, &call));
    for (int i = 0; i < call.n; i++)
        c->offsets[i + 1] = c->offsets[i] + call.members[i].count;
    call.offset = c->offsets;
    TT_TRY(tti_call_check_memory(c->ctx, &call));
    return c->transport->move(c, &call);
}

static tt_status move(tt_comm *c, tti_call_kind kind, const tt_member *members,
                      const tt_comm_opts *opts)
{
    if (c == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(c->ctx))
        return tt_status_of(c->ctx);
    return end(c, try_move(c, kind, members, opts));
}

tt_status tt_all_reduce_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts)
{
    return reduce(c, TTI_ALL_REDUCE, members, opts);
}

tt_status tt_reduce_scatter_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts)
{
    return reduce(c, TTI_REDUCE_SCATTER, members, opts);
}

tt_status tt_all_gather_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts)
{
    return move(c, TTI_ALL_GATHER, members, opts);
}

tt_status tt_broadcast_from_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts)
{
    return move(c, TTI_BROADCAST, members, opts);
}

tt_status tt_all_to_all_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts)
{
    return move(c, TTI_ALL_TO_ALL, members, opts);
}

tt_status tt_barrier(tt_comm *c)
{
    if (c == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(c->ctx))
        return tt_status_of(c->ctx);
    return end(c, c->transport->barrier(c));
}
