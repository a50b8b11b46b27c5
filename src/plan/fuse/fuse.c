/*
 * fuse.c - chains of pointwise ops become one node that works in tiles.
 *
 * A value that one pointwise node makes and only one other pointwise node reads never needs to be
 * in memory as a whole. Such nodes are joined; the joined node walks its elements in tiles and
 * calls each member's own kernel on the tile, intermediates staying in the cache. Same kernels,
 * same roundings: same bits. A kernel without a bf16 or f16 form has its tiles widened before and
 * rounded after, by the cast op's kernel, so such a node works in tiles even alone.
 */
#include "op/op.h"
#include "plan/plan.h"
#include <string.h>

typedef tti_fused_member member;
#define TILE   TTI_FUSE_OF
#define MAX_IN TTI_FUSE_IN

static bool is_pointwise(const tti_plan *p, const tti_pnode *pn, int64_t *count)
{
    if (pn->kind != TTI_OP || pn->is_dropped || (pn->node->op->flags & TT_OP_POINTWISE) == 0 ||
        (pn->node->op->flags & (TT_OP_RANDOM | TT_OP_EFFECT | TT_OP_UPDATE)) != 0 ||
        pn->n_out != 1 || pn->n_in > MAX_IN)
        return false;
    const tti_device *d = p->top->devices[pn->device];
    if (tti_has_streams(d) && pn->node->op->kernel[d->backend->id].fn[0] != NULL)
        return false; // a user's kernel: the backend's joined one knows only its own
    *count = p->values[pn->out].count;
    for (int i = 0; i < pn->n_in; i++) {
        int64_t n = p->values[pn->in[i]].count;
        if (n != 1 && n != *count)
            return false;
    }
    return *count > 1;
}

/*
 * Nodes that must not be computed later than they stand: others run after them by a control edge,
 * or by the update of a variable they read.
 */
static bool find_fixed(tti_plan *p, uint8_t *fixed)
{
    uint8_t *written = tti_calloc(p->ctx, (size_t)p->n_values + 1, 1);
    if (written == NULL)
        return false;
    for (int64_t i = 0; i < p->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        for (int k = 0; k < pn->n_after; k++)
            fixed[pn->after[k]] = 1;
        if (pn->is_dropped || pn->kind != TTI_OP)
            continue;
        for (int k = 0; k < pn->n_in; k++)
            if (tti_writes(pn->node, k))
                written[tti_root(p, pn->in[k])] = 1;
    }
    for (int64_t i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_in; k++)
            fixed[i] |= written[tti_root(p, p->nodes[i].in[k])];
    tti_free(p->ctx, written);
    return true;
}

// Joins the maker of each input of node i that nobody else reads.
static void join(tti_plan *p, int i, int64_t count, int *group_size, const uint8_t *fixed)
{
    for (int k = 0; k < p->nodes[i].n_in; k++) {
        const tti_value *v = &p->values[p->nodes[i].in[k]];
        int maker = v->node;
        int64_t n;
        if (v->n_users != 1 || v->keep || v->count != count || v->memory != TTI_ARENA ||
            p->nodes[maker].device != p->nodes[i].device || fixed[maker] ||
            p->nodes[maker].lanes != p->nodes[i].lanes || !is_pointwise(p, &p->nodes[maker], &n) ||
            p->nodes[maker].group >= 0 || group_size[maker] + group_size[i] > TTI_FUSE_MAX)
            continue;
        p->nodes[maker].group = i;
        group_size[i] += group_size[maker];
    }
}

static int leader_of(const tti_plan *p, int i)
{
    while (p->nodes[i].group >= 0)
        i = p->nodes[i].group;
    return i;
}

// Makes node i the joined node of all its members; its inputs are those from outside.
static tt_status make_fused(tti_plan *p, int i, int n_members, int *members)
{
    tti_pnode *lead = &p->nodes[i];
    int n_in = 0, n_after = 0;
    for (int m = 0; m < n_members; m++) {
        n_in += p->nodes[members[m]].n_in;
        n_after += p->nodes[members[m]].n_after;
    }
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(n_in + 1));
    int *after = tti_plan_alloc(p, sizeof(int) * (size_t)(n_after + 1));
    int *list = tti_plan_alloc(p, sizeof(int) * (size_t)n_members);
    tti_fused *f = tti_plan_alloc(p, sizeof(*f));
    if (in == NULL || after == NULL || list == NULL || f == NULL)
        return TT_ENOMEM;
    n_in = n_after = 0;
    f->n = n_members;
    f->cast = tt_op_find(p->ctx, "cast")->kernel[TT_CPU].fn[p->top->isa];
    for (int m = 0; m < n_members; m++) {
        tti_pnode *pn = &p->nodes[members[m]];
        member *mb = &f->members[m];
        mb->node = pn->node;
        mb->fn = pn->node->op->kernel[TT_CPU].fn[tti_isa_for(p->top, pn->node)];
        mb->n_in = pn->n_in;
        mb->is_last = members[m] == i;
        mb->is_wide = tti_needs_widening(pn->node);
        f->has_wide |= mb->is_wide;
        tti_arg_fill(&mb->out, &p->values[pn->out]);
        for (int k = 0; k < pn->n_in; k++) {
            int inside = -1, known = -1;
            for (int o = 0; o < m; o++)
                if (p->nodes[members[o]].out == pn->in[k])
                    inside = o;
            for (int o = 0; o < n_in; o++)
                if (in[o] == pn->in[k])
                    known = o;
            if (inside < 0 && known < 0) {
                known = n_in;
                in[n_in++] = pn->in[k];
            }
            mb->in[k] = inside >= 0 ? TILE + inside : known;
        }
        for (int k = 0; k < pn->n_after; k++)
            after[n_after++] = pn->after[k];
        list[m] = members[m];
        if (members[m] != i)
            pn->is_dropped = true;
    }
    lead->kind = TTI_FUSED;
    lead->in = in;
    lead->n_in = n_in;
    lead->after = after;
    lead->n_after = n_after;
    lead->members = list;
    lead->n_members = n_members;
    lead->fused = f;
    return TT_OK;
}

tt_status tti_plan_fuse(tti_plan *p)
{
    for (int64_t i = 0; i < p->n_values; i++)
        p->values[i].n_users = 0;
    for (int64_t i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++)
            p->values[p->nodes[i].in[k]].n_users++;
    int *size = tti_calloc(p->ctx, (size_t)p->n_nodes + 1, sizeof(*size));
    int *members = tti_calloc(p->ctx, (size_t)p->n_nodes + 1, sizeof(int));
    int *start = tti_calloc(p->ctx, (size_t)p->n_nodes + 2, sizeof(int));
    uint8_t *fixed = tti_calloc(p->ctx, (size_t)p->n_nodes + 1, 1);
    tt_status st =
        size == NULL || members == NULL || start == NULL || fixed == NULL || !find_fixed(p, fixed)
            ? TT_ENOMEM
            : TT_OK;
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        size[i] = 1;
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++) {
        int64_t count;
        if (is_pointwise(p, &p->nodes[i], &count))
            join(p, (int)i, count, size, fixed);
    }
    // Members by leader, in order of creation (which is an order of computation).
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        start[leader_of(p, (int)i) + 1]++;
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        start[i + 1] += start[i];
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        members[start[leader_of(p, (int)i)]++] = (int)i;
    for (int64_t i = p->n_nodes - 1; st == TT_OK && i >= 0; i--) {
        int first = i == 0 ? 0 : start[i - 1];
        int64_t count;
        bool alone = start[i] - first == 1 && is_pointwise(p, &p->nodes[i], &count) &&
                     tti_needs_widening(p->nodes[i].node) &&
                     !tti_has_streams(p->top->devices[p->nodes[i].device]);
        if (start[i] - first > 1 || alone)
            st = make_fused(p, (int)i, start[i] - first, members + first);
    }
    // Control edges to a member lead to its joined node.
    for (int64_t i = 0; st == TT_OK && i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_after; k++)
            p->nodes[i].after[k] = leader_of(p, p->nodes[i].after[k]);
    tti_free(p->ctx, size);
    tti_free(p->ctx, members);
    tti_free(p->ctx, start);
    tti_free(p->ctx, fixed);
    return st;
}

size_t tti_fused_local(const tti_fused *f)
{
    size_t tiles = (size_t)f->n * 8 + (f->has_wide ? (MAX_IN + 1) * sizeof(float) : 0);
    return tiles * TTI_FUSE_TILE;
}

// One line of n elements.
static void shape_tile(tt_arg *a, int64_t n)
{
    a->count = a->cols = n;
    a->rows = 1;
    a->shape = (tt_shape){1, {n}};
}

static char *tile_of(const tt_launch *l, int m)
{
    return l->local + (size_t)m * TTI_FUSE_TILE * 8;
}

static tt_status cast_tile(const tti_fused *f, const tt_launch *part, const tt_arg *from,
                           const tt_arg *to)
{
    tt_launch c = *part;
    c.in = from;
    c.out = to;
    c.n_in = c.n_out = 1;
    c.begin = 0;
    c.end = from->count;
    return f->cast(&c);
}

// A member whose kernel has no half form: its tiles as f32 behind those of all members.
static tt_status run_wide(const tti_fused *f, const member *mb, tt_launch *part, tt_arg *in,
                          tt_arg *out)
{
    float *room = (float *)(void *)tile_of(part, f->n);
    for (int k = 0; k < mb->n_in; k++) {
        if (!tti_is_half(in[k].dtype))
            continue;
        tt_arg wide = in[k];
        wide.dtype = TT_F32;
        wide.data = room + (size_t)k * TTI_FUSE_TILE;
        TT_TRY(cast_tile(f, part, &in[k], &wide));
        in[k] = wide;
    }
    tt_arg half = *out;
    if (tti_is_half(half.dtype)) {
        out->dtype = TT_F32;
        out->data = room + (size_t)MAX_IN * TTI_FUSE_TILE;
    }
    TT_TRY(mb->fn(part));
    return tti_is_half(half.dtype) ? cast_tile(f, part, out, &half) : TT_OK;
}

// Member m on the n elements from at on.
static tt_status run_member(const tt_launch *l, int m, int64_t at, int64_t n)
{
    const tti_fused *f = l->tune;
    const member *mb = &f->members[m];
    tt_arg in[MAX_IN], out = mb->out;
    for (int k = 0; k < mb->n_in; k++) {
        if (mb->in[k] >= TILE) {
            in[k] = f->members[mb->in[k] - TILE].out;
            in[k].data = tile_of(l, mb->in[k] - TILE);
            in[k].count = n;
        } else {
            in[k] = l->in[mb->in[k]];
            if (in[k].count != 1) {
                in[k].data = (char *)in[k].data + (size_t)at * tt_dtype_bytes(in[k].dtype);
                in[k].count = n;
            }
        }
        shape_tile(&in[k], in[k].count);
    }
    out.data = mb->is_last ? (char *)l->out[0].data + (size_t)at * tt_dtype_bytes(out.dtype)
                           : tile_of(l, m);
    shape_tile(&out, n);
    tt_launch part = *l;
    part.node = mb->node;
    part.attr = mb->node->attr;
    part.in = in;
    part.out = &out;
    part.n_in = mb->n_in;
    part.n_out = 1;
    part.tune = NULL;
    part.begin = 0;
    part.end = n;
    return mb->is_wide ? run_wide(f, mb, &part, in, &out) : mb->fn(&part);
}

tt_status tti_fused_kernel(const tt_launch *l)
{
    const tti_fused *f = l->tune;
    for (int64_t at = l->begin; at < l->end; at += TTI_FUSE_TILE)
        for (int m = 0; m < f->n; m++)
            TT_TRY(run_member(l, m, at, TTI_MIN((int64_t)TTI_FUSE_TILE, l->end - at)));
    return TT_OK;
}
