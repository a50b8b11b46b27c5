/*
 * shard.c - values that are no row's on a mesh: sums put together by trees, whole copies, pieces.
 *
 * The exact all-reduce of a large gradient is: replica r adds range r of everybody's partials along
 * the lane tree, right where they were made; updates that range of the variable; and takes the
 * other ranges from the others. Each replica reads its peers' memory; nothing is copied twice.
 * Small sums are cheaper added whole by every replica. Trees of gradients wait until the bucket
 * after theirs has been made, so that a replica seldom waits for a slower one.
 */
#include "op/residual.h"
#include "plan/spread.h"
#include <string.h>

#define BLOCK       1024 // of the global norm: pieces never cut one
#define WORTH_BYTES 16384

bool tti_is_split(const tti_value *v)
{
    return v->memory != TTI_CONSTANT && v->tensor->layout.kind == TT_LAYOUT_SPLIT;
}

static bool is_sum(const tti_value *v)
{
    return v->memory != TTI_CONSTANT && v->tensor->layout.kind == TT_LAYOUT_PARTIAL;
}

static bool is_moments(const tti_pnode *pn)
{
    return pn->kind == TTI_OP && pn->n_out > 0 && pn->node->out->layout.kind == TT_LAYOUT_MOMENTS;
}

void tti_piece_range(int64_t count, int r, int n, int64_t *begin, int64_t *end)
{
    int64_t blocks = (count + BLOCK - 1) / BLOCK;
    *begin = blocks * r / n * BLOCK;
    *end = TTI_MIN(blocks * (r + 1) / n * BLOCK, count);
}

// ---- modes -----------------------------------------------------------------------------------

static bool has_split(const tti_spreader *s, const tti_pnode *pn)
{
    for (int i = 0; i < pn->n_in; i++)
        if (tti_is_split(&s->values[pn->in[i]]))
            return true;
    for (int i = 0; i < pn->n_out; i++)
        if (tti_is_split(&s->values[pn->out + i]))
            return true;
    return false;
}

// Can a replica do a range of this node's elements by itself?
static bool is_flat(const tti_spreader *s, const tti_pnode *pn)
{
    unsigned flags = pn->node->op->flags;
    if (pn->kind != TTI_OP || pn->is_dropped || pn->n_out != 1 || pn->n_in == 0 ||
        (flags & (TT_OP_POINTWISE | TT_OP_FLAT | TT_OP_VIEW)) == 0 ||
        (flags & (TT_OP_EFFECT | TT_OP_RANDOM)) != 0 || tti_needs_widening(pn->node))
        return false;
    int64_t count = s->values[pn->out].count;
    for (int k = 0; k < pn->n_in; k++)
        if (s->values[pn->in[k]].count != count && s->values[pn->in[k]].count != 1)
            return false;
    return true;
}

static bool is_worth(const tti_spreader *s, const tti_value *v)
{
    if (s->n_replicas < 2 || s->no_pieces || s->mesh->is_central ||
        s->p->ctx->spread.update == TT_UPDATE_EACH || v->count < (int64_t)BLOCK * s->n_replicas)
        return false;
    return v->bytes >= WORTH_BYTES || s->p->ctx->spread.update == TT_UPDATE_SHARD;
}

// Single numbers from something large (the squares of a gradient) are made once, in turn by all.
static void set_owners(tti_spreader *s)
{
    int next = 0;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        bool dear = false;
        for (int k = 0; s->mode[i] == TTI_EVERY && k < pn->n_in; k++)
            dear |= s->in_pieces[pn->in[k]] != 0;
        for (int k = 0; k < pn->n_out; k++)
            dear &= s->values[pn->out + k].count == 1;
        if (!dear)
            continue;
        s->mode[i] = TTI_FIRST;
        s->owner[i] = (uint8_t)(next++ % s->n_replicas);
    }
}

/*
 * Gradients make buckets in the order they come. The trees of one stand where the next one ends;
 * sums that rows wait for (statistics of norms) stand where they are made.
 */
static void set_tree_keys(tti_spreader *s)
{
    uint8_t *urgent = tti_calloc(s->p->ctx, (size_t)s->n_values + 1, 1);
    size_t total = 0, bucket = s->p->ctx->spread.bucket, bytes = 0;
    for (int64_t i = s->n_nodes - 1; urgent != NULL && i >= 0; i--) {
        bool waited = s->mode[i] == TTI_ROWS;
        for (int k = 0; k < s->nodes[i].n_out; k++)
            waited |= urgent[s->nodes[i].out + k] != 0;
        for (int k = 0; waited && k < s->nodes[i].n_in; k++)
            urgent[s->nodes[i].in[k]] = 1;
    }
    for (int64_t v = 0; v < s->n_values; v++) {
        s->tree_key[v] = s->nodes[s->values[v].node].key + 0.3;
        total += is_sum(&s->values[v]) ? s->values[v].bytes : 0;
    }
    if (bucket == 0)
        bucket = TTI_MIN(TTI_MAX(total / 8, (size_t)256 << 10), (size_t)25 << 20);
    double next = s->nodes[s->n_nodes - 1].key, end = next; // where the bucket after this one ends
    for (int64_t i = s->n_nodes - 1; urgent != NULL && i >= 0; i--) {
        const tti_pnode *pn = &s->nodes[i];
        for (int k = 0; s->mode[i] == TTI_ROWS && k < pn->n_out; k++) {
            int v = pn->out + k;
            if (!is_sum(&s->values[v]) || urgent[v])
                continue;
            if (bytes >= bucket) {
                next = end;
                bytes = 0;
            }
            if (bytes == 0)
                end = pn->key;
            bytes += s->values[v].bytes;
            s->tree_key[v] = next + 0.3;
        }
    }
    tti_free(s->p->ctx, urgent);
}

// Sums that are sent to other replicas in a narrower type.
static void set_residuals(tti_spreader *s)
{
    bool all_lanes = s->p->lanes.n == s->p->lanes.total;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        if (pn->kind != TTI_OP || pn->node->op != &tti_op_residual || pn->is_dropped)
            continue;
        const tti_value *var = &s->values[pn->in[0]], *sum = &s->values[pn->in[1]];
        bool fits = var->shape.rank == 2 && var->shape.dim[0] == s->n_replicas &&
                    var->shape.dim[1] >= sum->count;
        if (s->n_replicas < 2 || s->mesh->is_central || !all_lanes || !fits ||
            s->mode[sum->node] != TTI_ROWS || !is_sum(sum))
            continue;
        s->mode[i] = TTI_NOTHING;
        s->residual[pn->in[1]] = pn->in[0];
    }
}

void tti_spread_modes(tti_spreader *s)
{
    const tti_plan *p = s->p;
    bool all_lanes = p->lanes.n == p->lanes.total;
    for (int64_t i = 0; i < s->n_nodes; i++) {
        const tti_pnode *pn = &s->nodes[i];
        bool live = !pn->is_dropped;
        s->mode[i] = live && pn->kind == TTI_OP && has_split(s, pn) ? TTI_ROWS
                     : s->mesh->is_central || (live && (pn->node->op->flags & TT_OP_EFFECT) != 0)
                         ? TTI_FIRST
                         : TTI_EVERY;
        for (int k = 0; k < pn->n_in; k++) {
            int v = pn->in[k];
            s->is_late[i] |= s->is_late[s->values[v].node] ||
                             (s->mode[s->values[v].node] == TTI_ROWS && is_sum(&s->values[v]));
        }
        if (s->mode[i] != TTI_EVERY || !all_lanes || !is_flat(s, pn) ||
            !is_worth(s, &s->values[pn->out]))
            continue;
        bool any = false; // something comes in pieces: a large sum, or made of one
        for (int k = 0; k < pn->n_in; k++) {
            int v = pn->in[k], maker = s->values[v].node;
            if (s->mode[maker] == TTI_ROWS && is_sum(&s->values[v]) &&
                s->values[v].count == s->values[pn->out].count)
                s->in_pieces[v] = 1;
            any |= s->in_pieces[v] != 0;
        }
        if (any) {
            s->mode[i] = TTI_PIECES;
            s->in_pieces[pn->out] = 1;
        }
    }
    set_owners(s);
    set_tree_keys(s);
    set_residuals(s);
    for (int64_t i = 0; i < s->n_nodes; i++) // until a reader wants it otherwise
        s->is_shared[i] = s->nodes[i].kind == TTI_OP && s->nodes[i].node->op == &tti_op_variable &&
                          s->n_replicas > 1;
    for (int64_t i = 0; i < s->n_nodes; i++)
        for (int k = 0; k < s->nodes[i].n_in; k++)
            if (s->mode[i] != TTI_PIECES && s->mode[i] != TTI_NOTHING)
                s->is_shared[s->values[s->nodes[i].in[k]].node] = 0;
    for (int i = 0; i < p->n_fetched; i++)
        s->is_shared[s->values[p->targets[i]].node] = 0;
}

// ---- nodes that put together -----------------------------------------------------------------

static const char *const reasons[] = {
    [TTI_TREE] = "sums of all lanes",          [TTI_GATHER] = "rows of all lanes",
    [TTI_MOMENTS] = "statistics of all lanes", [TTI_COLLECT] = "parts of all replicas",
    [TTI_NARROW] = "narrower, to be sent",
};

/*
 * A node with replica r that puts values together into an old one's; of statistics, into three that
 * follow each other. Gives the first new value; -1.
 */
static int add_joining(tti_spreader *s, int old, int r, const int *values, int n_in,
                       tti_node_kind kind)
{
    tti_plan *p = s->p;
    int maker = s->values[old].node, n_out = kind == TTI_MOMENTS ? 3 : 1;
    int *in = tti_plan_alloc(p, sizeof(int) * (size_t)(n_in + 1));
    if (in == NULL)
        return -1;
    memcpy(in, values, sizeof(int) * (size_t)n_in);
    bool late = kind == TTI_TREE || kind == TTI_COLLECT;
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
                    .key = (kind == TTI_TREE ? s->tree_key[old] : s->nodes[maker].key + 0.3) +
                           (late ? s->late : 0)};
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
        int made = tti_plan_value(p, joined);
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

int tti_spread_whole(tti_spreader *s, int old, int r)
{
    int *at = &s->whole[(int64_t)old * s->n_replicas + r];
    if (*at >= 0)
        return *at;
    *at =
        add_joining(s, old, r, &s->piece[(int64_t)old * s->n_replicas], s->n_replicas, TTI_COLLECT);
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
    if (*at >= 0)
        tti_make_piece(p, *at, begin, end);
    return *at;
}

tt_status tti_spread_collect(tti_spreader *s, int old)
{
    tti_plan *p = s->p;
    int n = s->n_replicas, in[TTI_MAX_DEVICES];
    const int *pieces = &s->piece[(int64_t)old * n];
    for (int r = 0; r < n; r++) {
        in[0] = pieces[r];
        for (int k = 0, at = 1; k < n; k++)
            if (k != r)
                in[at++] = pieces[k];
        int root = tti_root(p, pieces[r]);
        int v = add_joining(s, old, r, in, n, TTI_COLLECT);
        if (v < 0)
            return tt_status_of(p->ctx);
        tti_pnode *pn = &p->nodes[p->values[v].node];
        pn->piece = r;
        pn->key = 1e15; // last of all: by then the others are there
        p->values[v].root = root;
        p->values[v].memory = p->values[root].memory;
        p->values[v].fixed = p->values[root].fixed;
        s->whole[(int64_t)old * n + r] = v;
    }
    return TT_OK;
}

int tti_spread_gather(tti_spreader *s, int old)
{
    return add_joining(s, old, 0, &s->copies[(int64_t)old * s->n_shards], s->n_shards, TTI_GATHER);
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
    int v = add_joining(s, old, r, in, 2, TTI_TREE);
    if (v < 0)
        return tt_status_of(p->ctx);
    tti_pnode *pn = &p->nodes[p->values[v].node];
    pn->lanes = both;
    pn->key = p->nodes[p->values[b->value].node].key + 0.2;
    pn->reason = "sums of micro-batches";
    TT_TRY(tti_bind_shape(p, p->values[v].tensor, rows, both, &p->values[v]));
    *a = (part){v, both};
    return TT_OK;
}

/*
 * The shards' partials of an old value in lane order, those of one replica added as far as the tree
 * allows as soon as they are there: a device holds few at a time. Gives how many are left; -1.
 */
static int gather_parts(tti_spreader *s, int old, int *values)
{
    part stack[64];
    int n = 0;
    if (s->touched[old]) { // together they take as much memory as one by one
        memcpy(values, &s->copies[(int64_t)old * s->n_shards], sizeof(int) * (size_t)s->n_shards);
        return s->n_shards;
    }
    for (int h = 0; h < s->n_shards;) {
        int r = s->shards[h].replica, depth = 0;
        for (; h < s->n_shards && s->shards[h].replica == r; h++) {
            stack[depth++] = (part){s->copies[(int64_t)old * s->n_shards + h], s->shards[h].lanes};
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
        int v = add_joining(s, old, r, in, n_in, TTI_NARROW);
        if (v < 0)
            return -1;
        tti_pnode *pn = &p->nodes[p->values[v].node];
        pn->key = p->nodes[p->values[in[n_in - 2]].node].key + 0.25;
        p->values[v].dtype = p->ctx->spread.wire;
        p->values[v].bytes = (size_t)p->values[v].count * tt_dtype_bytes(p->values[v].dtype);
        values[made++] = v;
    }
    return made;
}

static tt_status join_sum(tti_spreader *s, int old)
{
    tti_plan *p = s->p;
    int n_replicas = s->n_replicas;
    int *values = tti_alloc(p->ctx, sizeof(int) * (size_t)(s->n_shards + 1));
    if (values == NULL)
        return TT_ENOMEM;
    int n = gather_parts(s, old, values);
    if (n > 0 && s->residual[old] >= 0)
        n = narrow_parts(s, old, values, n);
    tt_status st = n < 0 ? tt_status_of(p->ctx) : TT_OK;
    int made = s->mesh->is_central ? 1 : n_replicas;
    for (int r = 0; st == TT_OK && r < made; r++) {
        int v = add_joining(s, old, r, values, n, TTI_TREE);
        if (v < 0) {
            st = tt_status_of(p->ctx);
            break;
        }
        if (s->touched[old])
            p->nodes[p->values[v].node].reason = "rows touched by all lanes";
        if (s->in_pieces[old]) {
            int64_t begin, end;
            tti_piece_range(s->values[old].count, r, n_replicas, &begin, &end);
            p->nodes[p->values[v].node].piece = r;
            tti_make_piece(p, v, begin, end);
            s->piece[(int64_t)old * n_replicas + r] = v;
            continue;
        }
        for (int to = r; to < (made == 1 ? n_replicas : r + 1); to++)
            s->whole[(int64_t)old * n_replicas + to] = v;
    }
    tti_free(p->ctx, values);
    return st;
}

// Statistics: means and M2 of every shard are merged, by every replica.
static tt_status join_moments(tti_spreader *s, const tti_pnode *old)
{
    tti_plan *p = s->p;
    int *values = tti_plan_alloc(p, sizeof(int) * 2 * (size_t)(s->n_shards + 1));
    if (values == NULL)
        return TT_ENOMEM;
    bool in_turn = p->lanes.n != p->lanes.total;
    for (int r = 0; r < s->n_replicas; r++)
        in_turn |= s->micros[r] > 1;
    if (in_turn)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                       "%s '%s' needs statistics of the whole batch, which accumulation and "
                       "pipelines never have at once; batch_norm with over: lane works there",
                       old->node->op->name, old->node->name);
    for (int h = 0; h < s->n_shards; h++) {
        values[2 * h] = s->copies[(int64_t)old->out * s->n_shards + h];
        values[2 * h + 1] = s->copies[(int64_t)(old->out + 1) * s->n_shards + h];
    }
    if (s->n_shards == 1) { // it has all lanes, so what it makes is final
        for (int k = 0; k < 3; k++)
            for (int r = 0; r < s->n_replicas; r++)
                s->whole[(int64_t)(old->out + k) * s->n_replicas + r] = s->copies[old->out + k];
        return TT_OK;
    }
    int made = s->mesh->is_central ? 1 : s->n_replicas;
    for (int r = 0; r < made; r++) {
        int v = add_joining(s, old->out, r, values, 2 * s->n_shards, TTI_MOMENTS);
        if (v < 0)
            return tt_status_of(p->ctx);
        for (int k = 0; k < 3; k++)
            for (int to = r; to < (made == 1 ? s->n_replicas : r + 1); to++)
                s->whole[(int64_t)(old->out + k) * s->n_replicas + to] = v + k;
    }
    return TT_OK;
}

tt_status tti_spread_join(tti_spreader *s, int node)
{
    const tti_pnode *old = &s->nodes[node];
    if (is_moments(old))
        return join_moments(s, old);
    for (int k = 0; k < old->n_out; k++) {
        int v = old->out + k;
        if (tti_is_split(&s->values[v]))
            continue;
        if (is_sum(&s->values[v])) {
            TT_TRY(join_sum(s, v));
            continue;
        }
        for (int h = s->n_shards - 1; h >= 0; h--) // the same with every shard: the replica's first
            for (int r = 0; r < s->n_replicas; r++)
                if (s->shards[h].replica == r || s->whole[(int64_t)v * s->n_replicas + r] < 0)
                    s->whole[(int64_t)v * s->n_replicas + r] =
                        s->copies[(int64_t)v * s->n_shards + h];
    }
    return TT_OK;
}
