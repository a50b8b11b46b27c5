/*
 * combine.c - values that are no row's on a mesh: sums put together by trees, whole copies, pieces.
 *
 * The exact all-reduce of a large gradient is: replica r adds range r of everybody's partials along
 * the lane tree, right where they were made; updates that range of the variable; and takes the
 * other ranges from the others. Each replica reads its peers' memory; nothing is copied twice.
 * modes.c decides what is done in pieces.
 */
#include "op/square_sum.h"
#include "plan/spread/host_sums.h"
#include "plan/spread/spread.h"
#include <string.h>

bool tti_is_split(const tti_value *v)
{
    return v->memory != TTI_CONSTANT && v->tensor->layout.kind == TT_LAYOUT_SPLIT;
}

bool tti_is_sum(const tti_value *v)
{
    return v->memory != TTI_CONSTANT && v->tensor->layout.kind == TT_LAYOUT_PARTIAL;
}

static bool is_moments(const tti_pnode *pn)
{
    return pn->kind == TTI_OP && pn->n_out > 0 && pn->node->out->layout.kind == TT_LAYOUT_MOMENTS;
}

// Pieces never cut a block of the global norm.
void tti_piece_range(int64_t count, int r, int n, int64_t *begin, int64_t *end)
{
    int64_t blocks = (count + TTI_SQUARE_BLOCK - 1) / TTI_SQUARE_BLOCK;
    *begin = blocks * r / n * TTI_SQUARE_BLOCK;
    *end = TTI_MIN(blocks * (r + 1) / n * TTI_SQUARE_BLOCK, count);
}

const tti_collective *tti_spread_collective(tti_spreader *s, tti_collective_kind kind, int root,
                                            tt_dtype dtype, int64_t count)
{
    tti_plan *p = s->p;
    int n = s->n_replicas;
    tti_collective *c = tti_plan_alloc(p, sizeof(*c));
    int64_t *begin = tti_plan_alloc(p, sizeof(*begin) * (size_t)(n + 1));
    if (c == NULL || begin == NULL)
        return NULL;
    for (int r = 0; r < n; r++)
        tti_piece_range(count, r, n, &begin[r], &begin[r + 1]);
    *c = (tti_collective){.kind = kind,
                          .dtype = dtype,
                          .is_fast = p->top->spread.reduce == TT_REDUCE_FAST,
                          .n = n,
                          .root = root,
                          .begin = begin};
    return c;
}

// ---- nodes that put together -----------------------------------------------------------------

static const char *const reasons[] = {
    [TTI_TREE] = "sums of all lanes",          [TTI_GATHER] = "rows of all lanes",
    [TTI_MOMENTS] = "statistics of all lanes", [TTI_COLLECT] = "parts of all replicas",
    [TTI_NARROW] = "rounded for sending",      [TTI_LIBRARY_COLLECTIVE] = NULL,
    [TTI_HOOKED] = "by the bucket's hook",
};

int tti_add_combining(tti_spreader *s, int old, int r, const int *values, int n_in,
                      tti_node_kind kind)
{
    tti_plan *p = s->p;
    int maker = s->values[old].node, n_out = kind == TTI_MOMENTS ? 3 : 1;
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(n_in + 1));
    if (in == NULL)
        return -1;
    memcpy(in, values, sizeof(int) * (size_t)n_in);
    bool late = kind == TTI_TREE || kind == TTI_COLLECT;
    tti_order_key key =
        kind == TTI_TREE ? s->tree_key[old] : tti_key_shift(s->nodes[maker].key, TTI_SHIFT_TREE);
    tti_pnode pn = {.kind = kind,
                    .node = s->values[old].tensor->node,
                    .n_in = n_in,
                    .n_out = n_out,
                    .in = in,
                    .out = (int)p->n_values,
                    .device = tti_spread_device(s, maker, r),
                    .reason = reasons[kind],
                    .lanes = &p->lanes,
                    .is_copy = r > 0,
                    .piece = -1,
                    .key = tti_key_slots(key, late ? s->late : 0)};
    int id = tti_plan_node(p, pn), first = -1;
    for (int k = 0; id >= 0 && k < n_out; k++) {
        tti_value joined = s->values[old + k];
        joined.node = id;
        joined.root = -1;
        joined.skip = 0;
        joined.device = pn.device;
        joined.memory = TTI_ARENA;
        joined.fixed = NULL;
        joined.keep = false;
        joined.layout = (tti_layout){0};
        joined.layout.on[TTI_AXIS_PIPE] = tti_spread_pipe(s, maker);
        int made = tti_plan_value(p, joined);
        if (made >= 0 && kind == TTI_NARROW)
            tti_set_data(p, made, TT_LAYOUT_PARTIAL, TTI_DIM_FLAT, r);
        else if (made >= 0 && (kind == TTI_GATHER || s->mesh->state == TT_LAYOUT_ONE))
            tti_set_data(p, made, TT_LAYOUT_ONE, TTI_DIM_FLAT, r);
        first = k == 0 ? made : first;
        if (made < 0)
            return -1;
    }
    return first;
}

void tti_make_piece(tti_plan *p, int value, int64_t begin, int64_t end)
{
    tti_value *v = &p->values[value];
    v->shape = (tt_shape){1, {end - begin}};
    v->count = end - begin;
    v->bytes = (size_t)(end - begin) * tt_dtype_bytes(v->dtype);
    v->is_piece = true;
}

void tti_make_range(tti_plan *p, int value, int64_t parts, int64_t begin, int64_t end)
{
    tti_value *v = &p->values[value];
    v->is_range = true;
    v->range_begin = begin;
    v->count = parts * (end - begin);
    v->bytes = (size_t)v->count * tt_dtype_bytes(v->dtype);
    v->shape = parts > 1 ? (tt_shape){2, {parts, end - begin}} : (tt_shape){1, {end - begin}};
}

int tti_spread_whole(tti_spreader *s, int old, int r)
{
    int *at = &s->whole[(int64_t)old * s->n_replicas + r];
    if (*at >= 0)
        return *at;
    const int *pieces = &s->piece[(int64_t)old * s->n_replicas];
    *at = tti_add_combining(s, old, r, pieces, s->n_replicas, TTI_COLLECT);
    if (*at >= 0 && s->in_pieces[old] == 2) { // all that the replicas made
        int64_t count = 0;
        for (int k = 0; k < s->n_replicas; k++)
            count += s->p->values[pieces[k]].count;
        tti_make_piece(s->p, *at, 0, count);
        s->p->values[*at].is_piece = false;
    }
    return *at;
}

int tti_spread_piece(tti_spreader *s, int old, int r)
{
    tti_plan *p = s->p;
    int *at = &s->piece[(int64_t)old * s->n_replicas + r];
    if (*at >= 0)
        return *at;
    int whole = tti_spread_whole(s, old, r);
    if (whole < 0)
        return -1;
    int64_t begin, end;
    tti_value v = p->values[whole];
    tti_piece_range(v.count, r, s->n_replicas, &begin, &end);
    v.root = whole;
    v.skip += (size_t)begin * tt_dtype_bytes(v.dtype);
    v.keep = false;
    v.device = tti_spread_device(s, s->values[old].node, r);
    *at = tti_plan_value(p, v);
    if (*at >= 0) {
        tti_make_piece(p, *at, begin, end);
        tti_set_data(p, *at, TT_LAYOUT_SPLIT, TTI_DIM_FLAT, r);
    }
    return *at;
}

tt_status tti_spread_collect(tti_spreader *s, int old)
{
    tti_plan *p = s->p;
    int n = s->n_replicas;
    if (tti_is_by_library(s, s->values[old].node))
        return tti_spread_library_collect(s, old);
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)n);
    if (in == NULL)
        return TT_ENOMEM;
    const int *pieces = &s->piece[(int64_t)old * n];
    const tti_collective *what =
        tti_spread_collective(s, TTI_ALL_GATHER, 0, s->values[old].dtype, s->values[old].count);
    if (what == NULL)
        return TT_ENOMEM;
    for (int r = 0; r < n; r++) {
        in[0] = pieces[r];
        for (int k = 0, at = 1; k < n; k++)
            if (k != r)
                in[at++] = pieces[k];
        int root = tti_root(p, pieces[r]);
        int v = tti_add_combining(s, old, r, in, n, TTI_COLLECT);
        if (v < 0)
            return tt_status_of(p->ctx);
        tti_pnode *pn = &p->nodes[p->values[v].node];
        pn->piece = r;
        pn->what = what;
        pn->key = TTI_KEY_END; // last of all: by then the others are there
        p->values[v].root = root;
        p->values[v].memory = p->values[root].memory;
        p->values[v].fixed = p->values[root].fixed;
        s->whole[(int64_t)old * n + r] = v;
    }
    return TT_OK;
}

int tti_spread_gather(tti_spreader *s, int old)
{
    return tti_add_combining(s, old, 0, &s->copies[(int64_t)old * s->n_batches], s->n_batches,
                             TTI_GATHER);
}

// ---- sums ------------------------------------------------------------------------------------

typedef struct part {
    int value;
    const tt_lanes *lanes;
} part;

static int count_parts(const tt_lanes *a, const tt_lanes *b)
{
    tti_part parts[TTI_MAX_PARTS];
    return tti_lane_range_parts(a->first, b->first + b->n, a->total, parts);
}

// One after another in lanes: their sum, on the device that has both.
static tt_status add_two(tti_spreader *s, int old, int r, part *a, const part *b)
{
    tti_plan *p = s->p;
    tt_lanes *both = tti_plan_alloc(p, sizeof(*both));
    if (both == NULL)
        return TT_ENOMEM;
    int64_t rows = a->lanes->bound[a->lanes->n] + b->lanes->bound[b->lanes->n];
    tti_plan_request req = {.rows = rows,
                            .batch = {a->lanes->first_row, a->lanes->global_rows, a->lanes->total}};
    TT_TRY(tti_lanes_make(p, &req, both));
    int in[2] = {a->value, b->value};
    int v = tti_add_combining(s, old, r, in, 2, TTI_TREE);
    if (v < 0)
        return tt_status_of(p->ctx);
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->lanes = both;
    pn->key = tti_key_shift(p->nodes[p->values[b->value].node].key, TTI_SHIFT_PARTIAL);
    pn->reason = "sums of micro-batches";
    tti_set_data(p, v, TT_LAYOUT_PARTIAL, TTI_DIM_FLAT, r);
    TT_TRY(tti_bind_shape(p, p->values[v].tensor, rows, both, &p->values[v]));
    *a = (part){v, both};
    return TT_OK;
}

/*
 * The micro-batches' partials of an old value in lane order, those of one replica added as far as
 * the tree allows as soon as they are there: a device holds few at a time. Gives how many are left;
 * -1.
 */
static int gather_parts(tti_spreader *s, int old, int *values)
{
    part stack[64];
    int n = 0;
    if (s->is_sparse[old]) { // together they take as much memory as one by one
        memcpy(values, &s->copies[(int64_t)old * s->n_batches], sizeof(int) * (size_t)s->n_batches);
        return s->n_batches;
    }
    for (int h = 0; h < s->n_batches;) {
        int r = s->batches[h].replica, depth = 0;
        for (; h < s->n_batches && s->batches[h].replica == r; h++) {
            stack[depth++] =
                (part){s->copies[(int64_t)old * s->n_batches + h], s->batches[h].lanes};
            while (depth > 1 &&
                   count_parts(stack[depth - 2].lanes, stack[depth - 1].lanes) <
                       count_parts(stack[depth - 2].lanes, stack[depth - 2].lanes) +
                           count_parts(stack[depth - 1].lanes, stack[depth - 1].lanes)) {
                if (add_two(s, old, r, &stack[depth - 2], &stack[depth - 1]) != TT_OK)
                    return -1;
                depth--;
            }
        }
        for (int k = 0; k < depth; k++)
            values[n++] = stack[k].value;
    }
    return n;
}

/*
 * What replicas send: of each its parts added, with what narrowing took before, and rounded. Parts
 * of one replica follow each other. Gives how many values there are: one per replica with rows; -1.
 */
static int narrow_parts(tti_spreader *s, int old, int *values, int n)
{
    tti_plan *p = s->p;
    int made = 0, in[64 + 1];
    for (int k = 0; k < n;) {
        int n_in = 0, device = p->nodes[p->values[values[k]].node].device, r = 0;
        while (tti_spread_device(s, s->values[old].node, r) != device)
            r++;
        for (; k < n && p->nodes[p->values[values[k]].node].device == device; k++)
            in[n_in++] = values[k];
        in[n_in++] = tti_spread_piece(s, s->residual[old], r);
        if (in[n_in - 1] < 0)
            return -1;
        int v = tti_add_combining(s, old, r, in, n_in, TTI_NARROW);
        if (v < 0)
            return -1;
        tti_pnode *pn = &p->nodes[p->values[v].node];
        pn->key = tti_key_shift(p->nodes[p->values[in[n_in - 2]].node].key, TTI_SHIFT_RECEIVE);
        p->values[v].dtype = p->top->spread.wire;
        p->values[v].bytes = (size_t)p->values[v].count * tt_dtype_bytes(p->values[v].dtype);
        values[made++] = v;
    }
    return made;
}

// The first replica that makes a value from those of all, and the only one where it is made once.
static int maker_of(const tti_spreader *s, int old)
{
    return tti_is_made_once(s) && s->mesh->state != TT_LAYOUT_ONE ? old % s->n_replicas : 0;
}

static tt_status combine_sum(tti_spreader *s, int old)
{
    tti_plan *p = s->p;
    int n_replicas = s->n_replicas;
    int *values = tti_alloc(p->ctx, sizeof(int) * (size_t)(s->n_batches + 1));
    if (values == NULL)
        return TT_ENOMEM;
    int n = gather_parts(s, old, values);
    if (n > 0 && tti_is_library_sum(s, old, p->values[values[0]].dtype)) {
        tt_status joined = tti_spread_library_sum(s, old, values, n);
        tti_free(p->ctx, values);
        return joined;
    }
    if (n > 0 && tti_spread_hooks_sum(s, old, p->values[values[0]].dtype)) {
        tt_status hooked = tti_spread_hook_sum(s, old, values, n);
        tti_free(p->ctx, values);
        return hooked;
    }
    if (n > 0 && s->residual[old] >= 0)
        n = narrow_parts(s, old, values, n);
    int made = tti_is_made_once(s) ? 1 : n_replicas, by = maker_of(s, old);
    const tti_collective *what =
        tti_spread_collective(s,
                              s->in_pieces[old] ? TTI_REDUCE_SCATTER
                              : made == 1       ? TTI_REDUCE_TO
                                                : TTI_ALL_REDUCE,
                              by, s->values[old].dtype, s->values[old].count);
    tt_status st = n < 0 || what == NULL ? tt_status_of(p->ctx) : TT_OK;
    tti_host_sums hosts = {.s = s};
    if (st == TT_OK)
        st = tti_host_sums_begin(&hosts, s, old, what, values, n);
    for (int r = by; st == TT_OK && r < by + made; r++) {
        const int *in;
        int n_in = tti_host_sums_inputs(&hosts, r, &in);
        int v = n_in < 0 ? -1 : tti_add_combining(s, old, r, in, n_in, TTI_TREE);
        if (v < 0) {
            st = tt_status_of(p->ctx);
            break;
        }
        tti_pnode *pn = &p->nodes[p->values[v].node];
        pn->what = what;
        if (s->is_sparse[old])
            pn->reason = "sparse rows of all lanes";
        if (s->in_pieces[old]) {
            pn->piece = r;
            tti_make_piece(p, v, what->begin[r], what->begin[r + 1]);
            tti_set_data(p, v, TT_LAYOUT_SPLIT, TTI_DIM_FLAT, r);
            s->piece[(int64_t)old * n_replicas + r] = v;
            continue;
        }
        for (int to = made == 1 ? 0 : r; to < (made == 1 ? n_replicas : r + 1); to++)
            s->whole[(int64_t)old * n_replicas + to] = v;
    }
    tti_host_sums_end(&hosts);
    tti_free(p->ctx, values);
    return st;
}

// Statistics: means and M2 of every micro-batch are merged, by every replica.
static tt_status combine_moments(tti_spreader *s, const tti_pnode *old)
{
    tti_plan *p = s->p;
    int *values = tti_plan_alloc(p, sizeof(int) * 2 * (size_t)(s->n_batches + 1));
    if (values == NULL)
        return TT_ENOMEM;
    bool in_turn = p->lanes.n != p->lanes.total;
    for (int r = 0; r < s->n_replicas; r++)
        in_turn |= s->micros[r] > 1;
    if (in_turn)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                       "%s '%s' needs statistics of the whole batch, which gradient accumulation "
                       "and pipelines never have at once; use batch_norm with over: lane",
                       old->node->op->name, old->node->name);
    for (int h = 0; h < s->n_batches; h++) {
        values[2 * h] = s->copies[(int64_t)old->out * s->n_batches + h];
        values[2 * h + 1] = s->copies[(int64_t)(old->out + 1) * s->n_batches + h];
    }
    if (s->n_batches == 1) { // it has all lanes, so what it makes is final
        for (int k = 0; k < 3; k++) {
            tti_set_data(p, s->copies[old->out + k], TT_LAYOUT_ONE, TTI_DIM_FLAT,
                         s->batches[0].replica);
            for (int r = 0; r < s->n_replicas; r++)
                s->whole[(int64_t)(old->out + k) * s->n_replicas + r] = s->copies[old->out + k];
        }
        return TT_OK;
    }
    int made = tti_is_made_once(s) ? 1 : s->n_replicas, by = maker_of(s, old->out);
    for (int r = by; r < by + made; r++) {
        int v = tti_add_combining(s, old->out, r, values, 2 * s->n_batches, TTI_MOMENTS);
        if (v < 0)
            return tt_status_of(p->ctx);
        for (int k = 0; k < 3; k++)
            for (int to = made == 1 ? 0 : r; to < (made == 1 ? s->n_replicas : r + 1); to++)
                s->whole[(int64_t)(old->out + k) * s->n_replicas + to] = v + k;
    }
    return TT_OK;
}

tt_status tti_spread_combine(tti_spreader *s, int node)
{
    const tti_pnode *old = &s->nodes[node];
    if (is_moments(old))
        return combine_moments(s, old);
    for (int k = 0; k < old->n_out; k++) {
        int v = old->out + k;
        if (tti_is_split(&s->values[v]))
            continue;
        if (tti_is_sum(&s->values[v])) {
            TT_TRY(combine_sum(s, v));
            continue;
        }
        for (int h = s->n_batches - 1; h >= 0;
             h--) // the same with every micro-batch: the replica's first
            for (int r = 0; r < s->n_replicas; r++)
                if (s->batches[h].replica == r || s->whole[(int64_t)v * s->n_replicas + r] < 0)
                    s->whole[(int64_t)v * s->n_replicas + r] =
                        s->copies[(int64_t)v * s->n_batches + h];
    }
    return TT_OK;
}
