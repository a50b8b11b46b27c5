/*
 * trial.c - plans on trial: what memory a run would need with other rows, settings or devices.
 * Nothing is kept, allocated on a device, or computed.
 */
#include "run/run.h"
#include "strategy/strategy.h"
#include <stdio.h>
#include <string.h>

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
    for (int d = 0; d < p->top->n_devices; d++) {
        out[d].limit = p->top->limit[d];
        out[d].variables = p->devices[d].variable_bytes;
        out[d].arena = p->devices[d].arena_bytes + p->devices[d].fixed_bytes;
        out[d].fixed = p->devices[d].fixed_bytes;
        out[d].others = atomic_load(&p->top->devices[d]->variables);
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
    const tti_topology *top;
    const tti_homes *homes;
} follower;

// As the store would have it after the run before.
static tti_device *followed_home(void *user, const tt_node *var)
{
    const follower *f = user;
    for (int i = 0; i < f->homes->n; i++)
        if (strcmp(f->homes->v[i].name, var->name) == 0)
            return f->top->devices[f->homes->v[i].device];
    return NULL;
}

tt_status tti_session_try(tt_session *s, const tti_trial *t, tti_need *out)
{
    const tti_topology *top = t->top != NULL ? t->top : s->top;
    tti_mesh mesh;
    tti_plan *p;
    follower f = {top, t->follow};
    memset(out, 0, sizeof(*out) * (size_t)top->n_devices);
    TT_TRY(top->strategy->mesh(top, s->graph, &mesh));
    tti_plan_request r = {.targets = t->targets,
                          .n_targets = t->n_targets,
                          .n_fetched = t->n_fetched,
                          .rows = t->rows,
                          .micro = t->micro,
                          .top = top,
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
