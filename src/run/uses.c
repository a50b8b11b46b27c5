/*
 * uses.c - which shards a plan's runs read and write; those are fresh when a run begins, and the
 * written ones are the variables' newest when it has ended.
 *
 * What a run does not write of a variable that it updates becomes old, and is filled again when the
 * next plan uses it: weights that only validation reads are not copied after every step.
 */
#include "net/world.h"
#include "run/store.h"
#include <stdlib.h>
#include <string.h>

bool tti_variable_home(tti_variable *v, tt_ctx *ctx, char out[32])
{
    tti_hold h;
    if (tti_store_hold(v->store, ctx, false, &h) != TT_OK)
        return false;
    const tti_shard *s = v->shards;
    while (s != NULL && !s->is_bound)
        s = s->next;
    if (s != NULL)
        memcpy(out, s->device, sizeof(s->device));
    tti_store_let_go(v->store, &h);
    return s != NULL;
}

// ---- when a plan is made ---------------------------------------------------------------------

typedef struct seen {
    tti_variable *v;
    tti_shard *shard;
    int64_t node;
    bool is_written;
} seen;

static bool is_variable(const tti_pnode *pn)
{
    return !pn->is_dropped && pn->kind == TTI_OP && pn->node->op == &tti_op_variable;
}

// By plan node of a variable: does the plan write it?
static tt_status mark_written(const tti_plan *p, tt_ctx *ctx, uint8_t *written)
{
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        bool writes = !pn->is_dropped && (pn->kind == TTI_OP || pn->kind == TTI_NARROW);
        for (int k = 0; writes && k < pn->n_in; k++) {
            if (!tti_writes_input(p, pn, k))
                continue;
            const tti_value *root = &p->values[tti_root(p, pn->in[k])];
            if (root->memory != TTI_VARIABLE)
                return TT_FAIL(ctx, TT_EINVAL,
                               "%s '%s' on %s would write to a received copy of '%s', which would "
                               "be lost: this is a bug in the plan",
                               pn->node->op->name, pn->node->name,
                               p->top->devices[pn->device]->name, root->tensor->node->name);
            written[root->node] = 1;
        }
    }
    return TT_OK;
}

// In the same order in all processes.
static int by_name(const void *a, const void *b)
{
    const seen *x = a, *y = b;
    return x->v != y->v ? strcmp(x->v->name, y->v->name) : x->node < y->node ? -1 : 1;
}

static int64_t list_seen(tt_store *s, const tti_plan *p, const uint8_t *written, seen *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        if (!is_variable(&p->nodes[i]))
            continue;
        tti_want w = tti_plan_want(p, &p->nodes[i]);
        tti_variable *v = tti_store_find(s, w.var->name);
        tti_shard *shard = v == NULL ? NULL : tti_shard_find(v, &w);
        if (shard != NULL) // else a plan to look at
            out[n++] = (seen){v, shard, i, written[i] != 0};
    }
    qsort(out, (size_t)n, sizeof(*out), by_name);
    return n;
}

static tt_status keep(tti_plan *p, const seen *list, int64_t n)
{
    p->exe.uses = tti_plan_alloc(p, sizeof(*p->exe.uses) * (size_t)(n + 1));
    p->exe.shards = tti_plan_alloc(p, sizeof(*p->exe.shards) * (size_t)(n + 1));
    p->exe.is_written = tti_plan_alloc(p, (size_t)(n + 1));
    if (p->exe.uses == NULL || p->exe.shards == NULL || p->exe.is_written == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || list[i].v != list[i - 1].v)
            p->exe.uses[p->exe.n_uses++] =
                (tti_variable_use){.variable = list[i].v, .first = (int)i, .version = -1};
        tti_variable_use *u = &p->exe.uses[p->exe.n_uses - 1];
        u->n++;
        u->n_written += list[i].is_written;
        p->exe.shards[i] = list[i].shard;
        p->exe.is_written[i] = list[i].is_written;
        p->exe.writes_variables |= list[i].is_written;
    }
    return TT_OK;
}

tt_status tti_store_note_uses(tt_store *s, tt_ctx *ctx, tti_plan *p)
{
    uint8_t *written = tti_calloc(ctx, (size_t)p->n_nodes + 1, 1);
    seen *list = tti_calloc(ctx, (size_t)p->n_nodes + 1, sizeof(*list));
    tt_status st = written == NULL || list == NULL ? TT_ENOMEM : mark_written(p, ctx, written);
    tti_hold h;
    if (st == TT_OK)
        st = tti_store_hold(s, ctx, false, &h);
    if (st == TT_OK) {
        int64_t n = list_seen(s, p, written, list);
        tti_store_let_go(s, &h);
        st = keep(p, list, n);
    }
    tti_free(ctx, written);
    tti_free(ctx, list);
    return st;
}

// ---- runs ------------------------------------------------------------------------------------

static bool is_stale(tti_plan *p, tti_variable_use *u)
{
    const tti_variable *v = u->variable;
    int64_t version = atomic_load(&v->version);
    for (int i = 0; u->version != version && i < u->n; i++)
        if (!tti_shard_is_fresh(v, p->exe.shards[u->first + i]))
            return true;
    u->version = version;
    return false;
}

static bool any_stale(tti_plan *p)
{
    bool any = false;
    for (int i = 0; i < p->exe.n_uses && !any; i++)
        any = is_stale(p, &p->exe.uses[i]);
    return any;
}

static tt_status freshen(tt_ctx *ctx, tti_plan *p)
{
    if (!any_stale(p))
        return TT_OK;
    if (ctx->top.n_tasks > 1) // others may be in a run that reads this process's
        TT_TRY(tti_world_exchange(ctx->world, "variables are copied", NULL, 0, NULL, 0));
    for (int i = 0; i < p->exe.n_uses; i++) {
        tti_variable_use *u = &p->exe.uses[i];
        if (!is_stale(p, u))
            continue;
        TT_TRY(tti_shards_fill(u->variable, ctx, &p->exe.shards[u->first], u->n));
        u->version = atomic_load(&u->variable->version);
    }
    return TT_OK;
}

tt_status tti_store_ready(tt_store *s, tt_ctx *ctx, tti_plan *p, tti_hold *h)
{
    bool alone = p->exe.writes_variables;
    TT_TRY(tti_store_publish(s, ctx));
    TT_TRY(tti_store_hold(s, ctx, alone, h));
    if (!any_stale(p))
        return TT_OK;
    if (!alone) {
        tti_store_let_go(s, h);
        TT_TRY(tti_store_hold(s, ctx, true, h));
    }
    tt_status st = freshen(ctx, p);
    if (st != TT_OK)
        tti_store_let_go(s, h);
    else if (!alone)
        tti_store_share(s, h);
    return st;
}

tt_status tti_store_written(tt_store *s, tt_ctx *ctx, tti_plan *p)
{
    for (int i = 0; i < p->exe.n_uses && p->exe.writes_variables; i++) {
        tti_variable_use *u = &p->exe.uses[i];
        tti_variable *v = u->variable;
        if (u->n_written == 0)
            continue;
        int64_t version = atomic_load(&v->version) + 1;
        for (int k = u->first; k < u->first + u->n; k++)
            if (p->exe.is_written[k])
                p->exe.shards[k]->version = version;
        atomic_store(&v->version, version);
        u->version = u->n_written == u->n ? version : -1;
    }
    return p->exe.writes_variables ? tti_store_publish(s, ctx) : TT_OK;
}
