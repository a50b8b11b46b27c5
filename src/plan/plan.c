/*
 * plan.c - a plan's memory and its way through the stages.
 */
#include "plan/plan.h"
#include "plan/verify/verify.h"
#include <string.h>

#define BLOCK 131072

struct tti_plan_block {
    struct tti_plan_block *next;
    size_t used, size;
    _Alignas(64) char data[];
};

void *tti_plan_alloc(tti_plan *p, size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    struct tti_plan_block *b = p->blocks;
    if (b == NULL || b->size - b->used < bytes) {
        size_t size = TTI_MAX(bytes, (size_t)BLOCK);
        b = tti_host_alloc(p->ctx, sizeof(*b) + size);
        if (b == NULL)
            return NULL;
        memset(b, 0, sizeof(*b) + size);
        b->size = size;
        b->next = p->blocks;
        p->blocks = b;
    }
    void *at = b->data + b->used;
    b->used += bytes;
    return at;
}

int tti_plan_value(tti_plan *p, tti_value v)
{
    if (!tti_grow(p->ctx, &p->values, &p->cap_values, p->n_values + 1, sizeof(v)))
        return -1;
    if (v.root < 0)
        v.root = (int)p->n_values;
    p->values[p->n_values] = v;
    return (int)p->n_values++;
}

int tti_plan_node(tti_plan *p, tti_pnode n)
{
    if (!tti_grow(p->ctx, &p->nodes, &p->cap_nodes, p->n_nodes + 1, sizeof(n)))
        return -1;
    n.group = -1;
    if (n.lanes == NULL)
        n.lanes = &p->lanes;
    p->nodes[p->n_nodes] = n;
    return (int)p->n_nodes++;
}

int tti_root(const tti_plan *p, int value)
{
    while (p->values[value].root != value)
        value = p->values[value].root;
    return value;
}

const tti_pnode *tti_maker(const tti_plan *p, int value)
{
    const tti_pnode *pn = &p->nodes[p->values[value].node];
    return pn->kind == TTI_RECV ? &p->nodes[pn->maker] : pn;
}

bool tti_reads(const tti_pnode *pn, int k)
{
    return pn->kind != TTI_OP || k >= 32 || (pn->node->op->shape_only >> k & 1u) == 0;
}

// ---- the stages ------------------------------------------------------------------------------

static tt_status cut(tti_plan *p, const tti_plan_request *req)
{
    (void)req;
    TT_TRY(tti_plan_cut(p));
    for (int64_t i = 0; i < p->n_values; i++) // from here on a value's root is one look away
        p->values[i].root = tti_root(p, (int)i);
    return TT_OK;
}

static tt_status chain(tti_plan *p, const tti_plan_request *req)
{
    return req->no_fuse ? TT_OK : tti_plan_chain(p);
}

static tt_status fuse(tti_plan *p, const tti_plan_request *req)
{
    return req->no_fuse ? TT_OK : tti_plan_fuse(p);
}

static tt_status order(tti_plan *p, const tti_plan_request *req)
{
    (void)req;
    return tti_plan_order(p);
}

static const struct {
    tti_stage stage;
    tt_status (*run)(tti_plan *p, const tti_plan_request *req);
} stages[] = {
    {TTI_STAGE_BUILD, tti_plan_build},
    {TTI_STAGE_RECOMPUTE, tti_plan_recompute},
    {TTI_STAGE_SPREAD, tti_plan_spread},
    {TTI_STAGE_PLACE, tti_plan_place},
    {TTI_STAGE_CUT, cut},
    {TTI_STAGE_CHAIN, chain},
    {TTI_STAGE_FUSE, fuse},
    {TTI_STAGE_ORDER, order},
    {TTI_STAGE_EMIT, tti_plan_emit}, // and memory, between its two halves
};

tt_status tti_stage_done(tti_plan *p, const tti_plan_request *req, tti_stage stage)
{
#ifdef TUTTI_DEBUG
    TT_TRY(tti_plan_verify(p, stage));
#endif
    if (req->watch == NULL || req->is_trial)
        return TT_OK;
    tti_stage_watch_see(req->watch, p, stage, tti_now_ns() - p->began_ns);
    p->began_ns = tti_now_ns();
    return tt_status_of(p->ctx);
}

tt_status tti_plan_new(tt_graph *g, const tti_plan_request *req, tti_plan **out)
{
    size_t budget = 0;
    tt_status st;
    if (!tti_recompute_budget(g->ctx, req->recompute, &budget, &st))
        return tti_plan_make(g, req, out);
    return st != TT_OK ? st : tti_plan_in_budget(g, req, budget, out);
}

// A copy of the topology, and what a plan has for each of its devices.
static tt_status by_device(tti_plan *p, const tti_topology *top)
{
    size_t n = (size_t)top->n_devices;
    p->top = tti_plan_alloc(p, sizeof(*p->top));
    void *arrays = tti_plan_alloc(p, tti_topology_bytes(top->n_devices));
    p->devices = tti_plan_alloc(p, sizeof(*p->devices) * n);
    p->exe.lists = tti_plan_alloc(p, sizeof(*p->exe.lists) * n);
    p->exe.staging = tti_plan_alloc(p, sizeof(*p->exe.staging) * n);
    p->exe.arena_at = tti_plan_alloc(p, sizeof(*p->exe.arena_at) * 2 * n);
    if (p->top == NULL || arrays == NULL || p->devices == NULL || p->exe.lists == NULL ||
        p->exe.staging == NULL || p->exe.arena_at == NULL)
        return TT_ENOMEM;
    tti_topology_copy_to(top, p->top, arrays);
    if (p->mesh.speed != NULL)
        p->mesh.speed = p->top->speed;
    return TT_OK;
}

tt_status tti_plan_make(tt_graph *g, const tti_plan_request *req, tti_plan **out)
{
    tt_ctx *ctx = g->ctx;
    tti_plan *p = tti_calloc(ctx, 1, sizeof(*p));
    if (p == NULL)
        return TT_ENOMEM;
    p->ctx = ctx;
    p->graph = g;
    p->rows = req->rows;
    p->is_dry_run = req->dry_run;
    p->mesh = req->mesh != NULL ? *req->mesh : (tti_mesh){.n_micro = 1};
    p->step = tti_plan_alloc(p, sizeof(*p->step));
    tt_status st = p->step == NULL ? TT_ENOMEM : by_device(p, req->top);
    if (st == TT_OK)
        st = tti_mesh_check(ctx, &p->mesh, p->top->n_devices);
    if (st == TT_OK)
        st = tti_lanes_make(p, req, &p->lanes);
    p->began_ns = tti_now_ns();
    for (int i = 0; st == TT_OK && i < TTI_COUNT(stages); i++) {
        st = stages[i].run(p, req);
        bool ended = req->is_trial && stages[i].stage == TTI_STAGE_EMIT; // with memory
        if (st == TT_OK && !ended)
            st = tti_stage_done(p, req, stages[i].stage);
    }
    if (st != TT_OK) {
        tti_plan_free(p);
        return st;
    }
    *out = p;
    return TT_OK;
}

void tti_plan_free(tti_plan *p)
{
    if (p == NULL)
        return;
    tti_plan_drop_streams(p);
    tti_plan_drop_shared(p);
    for (int64_t i = 0; i < p->exe.n_constants; i++)
        tti_device_free_fixed(p->top->devices[p->exe.constants[i].device], p->exe.constants[i].data,
                              p->exe.constants[i].bytes);
    tti_free(p->ctx, p->exe.constants);
    for (struct tti_plan_block *b = p->blocks, *next; b != NULL; b = next) {
        next = b->next;
        tti_host_free(p->ctx, b);
    }
    tti_free(p->ctx, p->values);
    tti_free(p->ctx, p->nodes);
    tti_free(p->ctx, p->exe.patches);
    tti_free(p->ctx, p->collectives);
    tti_free(p->ctx, p->communicators);
    tti_free(p->ctx, p);
}

void tti_plan_bind(tti_plan *p, char *const *arenas)
{
    bool same = true;
    int n_arenas = 2 * p->top->n_devices;
    for (int a = 0; a < n_arenas; a++)
        same &= p->exe.arena_at[a] == arenas[a];
    if (same)
        return;
    tti_plan_drop_exec(p); // it has the old addresses
    for (int64_t i = 0; i < p->exe.n_patches; i++) {
        if (arenas[p->exe.patches[i].arena] == NULL)
            continue; // of a process that is far away, which has its own
        char *address = arenas[p->exe.patches[i].arena] + p->exe.patches[i].offset;
        memcpy(p->exe.patches[i].at, &address, sizeof(address));
    }
    memcpy(p->exe.arena_at, arenas, sizeof(*arenas) * (size_t)n_arenas);
}
