/*
 * trial.c - plans on trial: what memory a run would need with other rows, settings or devices.
 * Nothing is kept, allocated on a device, or computed.
 *
 * For a trial with more devices than the context has, devices are made up for the time of the
 * planning, all like the first; plans look only at their backend, threads and limit. A context
 * belongs to one thread, and none of its own threads looks at the list of devices, so nobody else
 * sees them.
 */
#include "run/run.h"
#include "strategy/strategy.h"
#include <stdio.h>
#include <string.h>

// Device i of n, with the threads that it would have.
static void make_up(const tti_device *like, int i, int n, tti_device *out)
{
    int threads = like->ctx->n_threads;
    out->ctx = like->ctx;
    out->backend = like->backend;
    out->index = i;
    out->full = like->full;
    out->full.index = i;
    out->n_threads = TTI_MAX(1, (i + 1) * threads / n - i * threads / n);
    out->limit = like->limit;
    out->state = like->state; // kernels of GPUs prepare with it
    snprintf(out->name, sizeof(out->name), "%s:%d", like->backend->name, i);
    snprintf(out->physical, sizeof(out->physical), "%s", like->physical);
}

static bool has_home(const tti_homes *h, const char *name, int device)
{
    for (int i = 0; i < h->n; i++)
        if (h->v[i].device == device && strcmp(h->v[i].name, name) == 0)
            return true;
    return false;
}

// Bytes on each device: the plan's variables and arena, and variables that are none of it.
static void add_needs(tt_session *s, const tti_plan *p, const tti_homes *before, tti_need *out)
{
    tt_ctx *ctx = s->ctx;
    for (int d = 0; d < ctx->n_devices; d++) {
        out[d].limit = ctx->devices[d]->limit;
        out[d].variables = p->devices[d].variable_bytes;
        out[d].arena = p->devices[d].arena_bytes + p->devices[d].fixed_bytes;
        out[d].fixed = p->devices[d].fixed_bytes;
        out[d].others = atomic_load(&ctx->devices[d]->variables);
    }
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (pn->is_dropped || pn->kind != TTI_OP || pn->node->op != &tti_op_variable)
            continue;
        tti_want w = tti_plan_want(p, pn);
        if (before != NULL && !has_home(before, pn->node->name, pn->device))
            out[pn->device].added += w.bytes;
        size_t present = w.bytes - TTI_MIN(w.bytes, tti_session_needs(s, &w));
        out[pn->device].others -= TTI_MIN(present, out[pn->device].others);
    }
}

static tt_status keep_homes(tt_ctx *ctx, const tti_plan *p, tti_homes *out)
{
    *out = (tti_homes){.v = tti_calloc(ctx, (size_t)p->n_nodes + 1, sizeof(*out->v))};
    if (out->v == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        if (!pn->is_dropped && pn->kind == TTI_OP && pn->node->op == &tti_op_variable)
            out->v[out->n++] = (tti_home){pn->node->name, pn->device};
    }
    return TT_OK;
}

typedef struct follower {
    tt_ctx *ctx;
    const tti_homes *homes;
} follower;

// As the store would have it after the run before.
static tti_device *followed_home(void *user, const tt_node *var)
{
    const follower *f = user;
    for (int i = 0; i < f->homes->n; i++)
        if (strcmp(f->homes->v[i].name, var->name) == 0)
            return f->ctx->devices[f->homes->v[i].device];
    return NULL;
}

static tt_status plan_once(tt_session *s, const tti_trial *t, tti_need *out)
{
    tti_mesh mesh;
    tti_plan *p;
    follower f = {s->ctx, t->follow};
    TT_TRY(s->ctx->strategy->mesh(s->graph, &mesh));
    tti_plan_request r = {.targets = t->targets,
                          .n_targets = t->n_targets,
                          .n_fetched = t->n_fetched,
                          .rows = t->rows,
                          .micro = t->micro,
                          .mesh = &mesh,
                          .recompute = t->recompute,
                          .is_trial = true,
                          .variable_home = t->follow != NULL ? followed_home : NULL,
                          .user = &f,
                          .no_fuse = s->no_fuse,
                          .no_fold = s->no_fold,
                          .no_pieces = s->hashes};
    TT_TRY(tti_plan_new(s->graph, &r, &p));
    add_needs(s, p, t->follow, out);
    tt_status st = t->homes != NULL ? keep_homes(s->ctx, p, t->homes) : TT_OK;
    tti_plan_free(p);
    return st;
}

tt_status tti_session_try(tt_session *s, const tti_trial *t, tti_need out[TTI_MAX_DEVICES])
{
    tt_ctx *ctx = s->ctx;
    memset(out, 0, sizeof(*out) * TTI_MAX_DEVICES);
    if (t->n_devices <= ctx->n_devices && t->strategy == NULL)
        return plan_once(s, t, out);
    tti_device *real[TTI_MAX_DEVICES];
    int n = ctx->n_devices, wanted = TTI_MAX(t->n_devices, n);
    const tti_strategy *strategy = ctx->strategy;
    tti_device *made = tti_calloc(ctx, (size_t)wanted, sizeof(*made));
    if (made == NULL)
        return TT_ENOMEM;
    memcpy(real, ctx->devices, sizeof(real));
    for (int d = 0; d < wanted && wanted > n; d++) {
        make_up(real[0], d, wanted, &made[d]);
        ctx->devices[d] = &made[d];
    }
    ctx->n_devices = wanted;
    ctx->strategy = t->strategy != NULL ? t->strategy : strategy;
    tt_status st = plan_once(s, t, out);
    ctx->strategy = strategy;
    ctx->n_devices = n;
    memcpy(ctx->devices, real, sizeof(real));
    tti_free(ctx, made);
    return st;
}
