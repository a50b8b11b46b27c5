/*
 * hook_group.c - a session's hook on buckets of gradients: whether the context can have one, and
 * the group of all replicas that its calls go to. The hook itself is called by plans
 * (plan/spread/bucket_hook.c).
 */
#include "comm/comm.h"
#include "run/run.h"

tt_status tti_hook_check(tt_ctx *ctx)
{
    const tt_spread *spread = &ctx->top.spread;
    if (spread->reduce != TT_REDUCE_FAST)
        return TT_FAIL(ctx, TT_EINVAL,
                       "bucket_hook: gradients are summed exactly here (reduce: exact), which no "
                       "hook can promise; open the context with .spread = tt_spread(.reduce = "
                       "TT_REDUCE_FAST)");
    if (spread->wire != TT_F32)
        return TT_FAIL(ctx, TT_EINVAL,
                       "bucket_hook: gradients are already sent as %s (wire); use one of the two",
                       tt_dtype_name(spread->wire));
    for (int i = 0; i < ctx->top.n_devices; i++)
        if (!ctx->top.devices[i]->backend->host_memory)
            return TT_FAIL(ctx, TT_EUNSUPPORTED,
                           "bucket_hook: %s has its own memory, but a hook gets gradients in host "
                           "memory; use CPUs",
                           ctx->top.devices[i]->name);
    return TT_OK;
}

tt_status tti_hook_open(tt_session *s, const tti_plan *p)
{
    int members = 0;
    if (p->n_buckets == 0 || s->hook.comm != NULL)
        return TT_OK;
    for (int r = 0; r < tti_mesh_size(&p->mesh, TTI_AXIS_DATA); r++)
        members += !s->ctx->top.devices[tti_mesh_device(&p->mesh, r, 0)]->is_away;
    tt_comm *c = tt_comm_open(s->ctx, .members = members);
    if (c == NULL)
        return tt_status_of(s->ctx);
    tti_disown(s->ctx, &c->owned); // it goes with the session
    c->is_nested = true;
    s->hook.comm = c;
    return TT_OK;
}
