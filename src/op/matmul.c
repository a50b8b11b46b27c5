/*
 * matmul.c - products of matrices, with bias and activation. Kernels: matmul_cpu.c.
 *   z = a b + bias, y = act(z)      each element of a b is one chain over k ascending from zero
 *   da = dz b^T, db = a^T dz        (and their transposes), dbias = sum of dz over rows
 * Rows of a are free. When k itself is the open axis, as in a weight's gradient, the product is a
 * lane sum: one chain per lane, then the tree. Activations whose gradient needs z have it as a
 * second output.
 */
#include "op/gemm.h"
#include "op/op.h"
#include "op/shape.h"

static const char *const act_names[] = {"linear",     "relu",     "gelu", "gelu_erf",
                                        "sigmoid",    "tanh",     "silu", "elu",
                                        "leaky_relu", "softplus", NULL};
static const tt_option matmul_options[] = {
    {"transpose_a", TT_OPT_BOOL, "false", "transpose the last two axes of a",
     offsetof(tti_matmul_attr, transpose_a), 0, 0, NULL},
    {"transpose_b", TT_OPT_BOOL, "false", "transpose the last two axes of b",
     offsetof(tti_matmul_attr, transpose_b), 0, 0, NULL},
    {"act", TT_OPT_ENUM, "linear", "activation", offsetof(tti_matmul_attr, act), 0, 0, act_names},
    {"wide", TT_OPT_BOOL, "false", "compute y as f32 for any types of a and b",
     offsetof(tti_matmul_attr, wide), 0, 0, NULL},
    TT_OPTION_END,
};

// ---- shapes ----------------------------------------------------------------------------------

static int k_axis_of_a(const tti_matmul_attr *at, const tt_shape *a)
{
    return a->rank - (at->transpose_a ? 2 : 1);
}

static int k_axis_of_b(const tti_matmul_attr *at, const tt_shape *b)
{
    return b->rank - (at->transpose_b ? 1 : 2);
}

// The dimension of a leading axis counted from the last one; 1 where there is none.
static int64_t lead_dim(const tt_shape *s, int i)
{
    return i < s->rank - 2 ? s->dim[s->rank - 3 - i] : 1;
}

static tt_status misfit(const tt_infer *q)
{
    const tti_matmul_attr *at = q->attr;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    return TT_FAIL(q->ctx, TT_ESHAPE, "%s: a is %s%s but b is %s%s", q->name,
                   tt_shape_text(&q->in[0]->shape, a), at->transpose_a ? " transposed" : "",
                   tt_shape_text(&q->in[1]->shape, b), at->transpose_b ? " transposed" : "");
}

static tt_status matmul_infer(tt_infer *q)
{
    const tti_matmul_attr *at = q->attr;
    const tt_shape *a = &q->in[0]->shape, *b = &q->in[1]->shape;
    tt_dtype type = q->in[0]->dtype;
    for (int i = 0; i < q->n_in; i++)
        if (!tti_is_float(type) || q->in[i]->dtype != type)
            return TT_FAIL(q->ctx, TT_EDTYPE, "%s: a is %s but %s is %s; both must be one float",
                           q->name, tt_dtype_name(type), i == 2 ? "bias" : "b",
                           tt_dtype_name(q->in[TTI_MAX(i, 1)]->dtype));
    if (at->act < 0 || at->act > TT_SOFTPLUS)
        return TT_FAIL(q->ctx, TT_EINVAL, "%s: there is no activation %d", q->name, at->act);
    if (a->rank < 2 || b->rank < 2)
        return misfit(q);
    int ka = k_axis_of_a(at, a), kb = k_axis_of_b(at, b);
    if (a->dim[ka] != b->dim[kb])
        return misfit(q);

    tt_shape y = {.rank = TTI_MAX(a->rank, b->rank)};
    y.dim[y.rank - 2] = a->dim[2 * a->rank - 3 - ka];
    y.dim[y.rank - 1] = b->dim[2 * b->rank - 3 - kb];
    for (int i = 0; i < y.rank - 2; i++) {
        int64_t da = lead_dim(a, i), db = lead_dim(b, i);
        if (da != db && da != 1 && db != 1)
            return misfit(q);
        y.dim[y.rank - 3 - i] = da == 1 ? db : da;
    }
    int open = 0;
    for (int i = 0; i < y.rank; i++)
        open += y.dim[i] < 0;
    if (open + (a->dim[ka] < 0) > 1)
        return misfit(q);
    if (q->n_in > 2) {
        const tt_shape *bias = &q->in[2]->shape;
        char ty[TT_SHAPE_TEXT], tb[TT_SHAPE_TEXT];
        if (bias->rank != 1 || bias->dim[0] != y.dim[y.rank - 1])
            return TT_FAIL(q->ctx, TT_ESHAPE, "%s: y is %s but bias is %s", q->name,
                           tt_shape_text(&y, ty), tt_shape_text(bias, tb));
    }
    q->n_out = tti_act_needs_input((tt_act)at->act) ? 2 : 1;
    for (int i = 0; i < q->n_out; i++) {
        q->shape[i] = y;
        q->dtype[i] = at->wide ? TT_F32 : type;
    }
    return TT_OK;
}

// The axis of y that an axis of a factor becomes; -1: it is summed over.
static int axis_of_y(const tt_shape *x, int k, int axis, int last, int rank)
{
    if (axis == k)
        return -1;
    return axis >= x->rank - 2 ? last : axis + rank - x->rank;
}

/*
 * Where y is split, along an axis that is not summed over; -1: it cannot be, as a factor that has
 * this axis, or the bias, is not split with the other.
 */
static int split_of_y(const tt_split_query *q, int ka, int kb)
{
    const tt_shape *a = &q->node->in[0]->shape, *b = &q->node->in[1]->shape;
    int rank = q->node->out->shape.rank;
    int from_a = q->axis[0] < 0 ? -1 : axis_of_y(a, ka, q->axis[0], rank - 2, rank);
    int from_b = q->axis[1] < 0 ? -1 : axis_of_y(b, kb, q->axis[1], rank - 1, rank);
    int at = TTI_MAX(from_a, from_b);
    if (from_a >= 0 && from_b >= 0 && from_a != from_b)
        return -1;
    if (at < rank - 2) // a leading axis: of both, or one has it once
        for (int i = 0; i < 2; i++) {
            const tt_shape *x = i == 0 ? a : b;
            int axis = at - (rank - x->rank);
            if (q->axis[i] < 0 && axis >= 0 && x->dim[axis] != 1)
                return -1;
        }
    if (q->node->n_in > 2 && (q->axis[2] >= 0) != (at == rank - 1))
        return -1;
    return at;
}

static tt_status matmul_split(const tt_split_query *q)
{
    const tt_node *n = q->node;
    const tti_matmul_attr *at = n->attr;
    int ka = k_axis_of_a(at, &n->in[0]->shape), kb = k_axis_of_b(at, &n->in[1]->shape);
    bool none = q->axis[0] < 0 && q->axis[1] < 0, by_a = q->axis[0] == ka, by_b = q->axis[1] == kb;
    int axis = none || by_a || by_b ? -1 : split_of_y(q, ka, kb);
    // Bias and activation come after the sum of all parts.
    bool sums = by_a && by_b && n->n_in == 2 && at->act == TT_LINEAR;
    for (int i = 0; i < n->n_out; i++)
        q->out[i] = (tt_split){axis >= 0                                 ? TT_SPLIT_AXIS
                               : sums                                    ? TT_SPLIT_LANE_SUM
                               : none && (n->n_in < 3 || q->axis[2] < 0) ? TT_SPLIT_WHOLE
                                                                         : TT_SPLIT_MIXES,
                               axis};
    return TT_OK;
}

// ---- building --------------------------------------------------------------------------------

extern const tt_op tti_op_matmul;

static tt_tensor *product(tt_graph *g, tt_tensor *a, bool transpose_a, tt_tensor *b,
                          bool transpose_b)
{
    tti_matmul_attr at = {transpose_a, transpose_b, TT_LINEAR, false};
    return tt_node_out(g, &tti_op_matmul, 2, (tt_tensor *[]){a, b}, &at);
}

tt_tensor *tt_matmul_with(tt_graph *g, tt_tensor *a, tt_tensor *b, const tt_matmul_opts *opts)
{
    if (!tti_has_graph(g, a, "matmul"))
        return NULL;
    TTI_OPTS_OWN(tt_graph_get_ctx(g), "matmul", tt_matmul_opts, opts);
    if (opts == NULL)
        return NULL;
    if (!tti_given(g, "matmul", a) || !tti_given(g, "matmul", b))
        return NULL;
    int act = (int)tti_act_fused(opts->act);
    tti_matmul_attr at = {opts->transpose_a, opts->transpose_b, act, false};
    int k = k_axis_of_a(&at, &a->shape);
    if (k >= 0 && a->shape.rank >= 2 && a->shape.dim[k] < 0 &&
        (opts->bias != NULL || opts->act != TT_LINEAR)) { // a lane sum, then the rest
        tt_tensor *y = product(g, a, at.transpose_a, b, at.transpose_b);
        if (opts->bias != NULL)
            y = tt_add(g, y, opts->bias);
        return opts->act == TT_LINEAR ? y : tt_activation(g, y, opts->act);
    }
    tt_tensor *in[] = {a, b, opts->bias};
    tt_tensor *y = tt_node_out(g, &tti_op_matmul, opts->bias == NULL ? 2 : 3, in, &at);
    return tti_act_apart(g, y, opts->act);
}

// All axes but the last as one. The open axis must stay the slowest, so it must be the first.
static bool can_flatten(const tt_tensor *t)
{
    int open = tt_open_axis(&t->shape);
    return open <= 0 || open == t->shape.rank - 1;
}

static tt_tensor *flatten(tt_graph *g, tt_tensor *t)
{
    if (t == NULL || t->shape.rank == 2)
        return t;
    tt_shape s = {2, {1, t->shape.dim[t->shape.rank - 1]}};
    for (int i = 0; i < t->shape.rank - 1; i++)
        s.dim[0] *= t->shape.dim[i];
    return tt_reshape(g, t, s);
}

// Sums over the leading axes along which x was broadcast.
static tt_tensor *fit(tt_graph *g, tt_tensor *dx, tt_tensor *x)
{
    if (dx == NULL || tti_shape_equal(&dx->shape, &x->shape))
        return dx;
    return tt_sum_like(g, dx, x);
}

static void matmul_grad(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    const tti_matmul_attr *at = n->attr;
    tt_tensor *a = n->in[0], *b = n->in[1];
    tt_tensor *dz = dy[0];
    if (dz != NULL && at->act != TT_LINEAR)
        dz = tti_act_grad(g, (tt_act)at->act, dz, n->n_out > 1 ? n->outs[1] : n->out);
    if (n->n_out > 1 && dy[1] != NULL)
        dz = dy[0] == NULL ? dy[1] : tt_add(g, dz, dy[1]);
    if (dz == NULL)
        return;
    if (at->wide)
        dz = tt_cast(g, dz, a->dtype);
    if (n->n_in > 2)
        dx[2] = fit(g, dz, n->in[2]);

    bool ta = at->transpose_a, tb = at->transpose_b;
    dx[0] = ta ? product(g, b, tb, dz, true) : product(g, dz, false, b, !tb);
    dx[0] = fit(g, dx[0], a);
    if (!ta && b->shape.rank == 2 && a->shape.rank > 2 && can_flatten(a) && can_flatten(dz)) {
        a = flatten(g, a); // the sum over all rows is one product
        dz = flatten(g, dz);
    }
    dx[1] = tb ? product(g, dz, true, a, ta) : product(g, a, !ta, dz, false);
    dx[1] = fit(g, dx[1], b);
}

// ---- how the kernel runs ---------------------------------------------------------------------

typedef struct tile_size {
    int rows, cols;
    double flops_per_ns; // one core
} tile_size;
static const tile_size tiles[TT_N_ISA] = {
    [TT_ISA_PLAIN] = {TTI_GEMM_MR_PLAIN, 16 * TTI_GEMM_NV_PLAIN, 0.5},
    [TT_ISA_FMA] = {TTI_GEMM_MR_PLAIN, 16 * TTI_GEMM_NV_PLAIN, 10},
    [TT_ISA_AVX2] = {TTI_GEMM_MR_AVX2, 16 * TTI_GEMM_NV_AVX2, 90},
    [TT_ISA_AVX512] = {TTI_GEMM_MR_AVX512, 16 * TTI_GEMM_NV_AVX512, 100},
    [TT_ISA_F64] = {TTI_GEMM_MR_PLAIN, 16 * TTI_GEMM_NV_PLAIN, 0.5},
};

#define RUN  512 // k in one sweep
#define FOUR 32  // up to this many k per lane four lanes are combined in registers

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static void plan_shapes(const tt_prep *p, tti_gemm_plan *t)
{
    const tti_matmul_attr *at = p->attr;
    const tt_shape *a = &p->in[0].shape, *b = &p->in[1].shape;
    int ka = k_axis_of_a(at, a), kb = k_axis_of_b(at, b);
    t->trans_a = at->transpose_a;
    t->trans_b = at->transpose_b;
    t->act = at->act;
    t->k = a->dim[ka];
    t->m = a->dim[2 * a->rank - 3 - ka];
    t->n = b->dim[2 * b->rank - 3 - kb];
    t->has_lanes = p->in[0].open == ka;
    t->half_in = tti_is_half(p->in[0].dtype);
    t->half_out = tti_is_half(p->out_args[0].dtype);
    t->per = p->in[0].per;
    t->batch = 1;
    t->lead = TTI_MAX(a->rank, b->rank) - 2;
    if (b->rank == 2 && !t->trans_a) {
        for (int i = 0; i < t->lead; i++)
            t->m *= a->dim[i];
        t->lead = 0;
    }
    int32_t step_a = 1, step_b = 1;
    for (int i = 0; i < t->lead; i++) { // from the last leading axis on
        int64_t da = lead_dim(a, i), db = lead_dim(b, i);
        int at_i = t->lead - 1 - i;
        t->dim[at_i] = (int32_t)(da == 1 ? db : da);
        t->step_a[at_i] = da == 1 ? 0 : step_a;
        t->step_b[at_i] = db == 1 ? 0 : step_b;
        step_a *= (int32_t)da;
        step_b *= (int32_t)db;
        t->batch *= t->dim[at_i];
    }
}

// Splits the product among threads: the grid of units with the least work on the busiest thread.
static void plan_grid(const tt_prep *p, tti_gemm_plan *t)
{
    tile_size s = tiles[p->isa];
    int64_t all_tiles = ceil_div(t->m, s.rows), panels = ceil_div(t->n, s.cols);
    double best = 0;
    int64_t min_rows = ceil_div(t->m, TTI_GEMM_ROWS), most = 4 * p->n_threads;
    for (int64_t gm = min_rows; gm <= TTI_MAX(min_rows, TTI_MIN(all_tiles, min_rows + most)); gm++)
        for (int64_t gn = 1; gn <= TTI_MIN(panels, most); gn++) {
            double rows = (double)ceil_div(t->m, gm);
            double cols = (double)(ceil_div(panels, gn) * s.cols);
            // In multiply-adds per k: the tiles, packing A, turning B; what one thread ends later
            // than the others is some part of a unit.
            double unit = rows * cols + 6 * rows + (t->trans_b ? 8 : 1) * cols;
            double cost = unit * (double)ceil_div(t->batch * gm * gn, p->n_threads);
            if (p->n_threads > 1)
                cost += 0.1 * unit;
            if (best == 0 || cost < best * 0.99) {
                best = cost;
                t->row_blocks = gm;
                t->col_blocks = gn;
            }
        }
}

static tt_status matmul_prepare(tt_prep *p)
{
    tti_gemm_plan plan = {0}, *t = &plan;
    _Static_assert(sizeof(plan) <= TT_TUNE_BYTES, "the plan must fit");
    plan_shapes(p, t);
    tile_size s = tiles[p->isa];
    if (t->batch * t->m * t->n == 0) {
        p->units[0] = 0;
        return TT_OK;
    }
    plan_grid(p, t);
    bool keeps = t->has_lanes || t->half_out; // pending sums of a whole unit
    if (keeps && t->k > 2 * RUN)
        t->col_blocks = TTI_MAX(t->col_blocks, ceil_div(t->n, 512));
    int64_t rows = ceil_div(t->m, t->row_blocks);
    int64_t panels = ceil_div(ceil_div(t->n, s.cols), t->col_blocks);

    // A is packed where its rows would meet in the same lines of the cache, where each k is on a
    // page of its own, or where many panels share the cost; B to turn it, and where tiles are small
    // and many.
    t->pack_a = t->trans_a ? t->m >= 1024 && panels > 2
                           : panels >= (t->trans_b ? 8 : 16) || (t->k % 1024 == 0 && panels > 1);
    t->pack_b = t->trans_b || (s.cols == 16 && rows >= 16 * s.rows) || t->half_in;
    int64_t longest = t->has_lanes ? ceil_div(t->k, TTI_MAX(p->lanes->n, 1)) : t->k;
    t->kc = t->k;
    if (t->pack_a || t->pack_b || t->n % 16 != 0 || t->has_lanes)
        if (t->k > 2 * RUN)
            t->kc = longest > RUN ? ceil_div(longest, ceil_div(longest, RUN)) : RUN;
    t->tile_rows = s.rows;
    t->way = t->pack_a || t->trans_a ? GEMM_BY_K : GEMM_BY_ROW;
    if (t->has_lanes && t->way == GEMM_BY_K && longest <= (t->n >= 1024 ? FOUR / 2 : FOUR) &&
        p->isa == TT_ISA_AVX512) {
        t->way = GEMM_BY_FOUR;
        t->tile_rows = TTI_MIN(s.rows, 4);
        t->pack_b |= t->n >= 512; // tiles of few rows come back to B often
    }
    t->levels = t->has_lanes ? TTI_MAX(p->lanes->depth, 1) : 1;

    int64_t level = s.rows * s.cols;
    if (t->k > t->kc)
        level = rows * s.cols * (keeps ? panels : 1);
    int64_t kc = TTI_MIN(t->kc, t->k);
    t->at_b = t->pack_a || t->half_in ? ceil_div(rows * kc + 16, 16) * 16 : 0;
    t->at_stack = t->at_b + (t->pack_b || t->n % 16 != 0 ? kc * s.cols : 0);
    size_t real_bytes = p->isa == TT_ISA_F64 ? sizeof(double) : sizeof(float);
    p->local_bytes = (size_t)(t->at_stack + t->levels * level) * real_bytes;
    p->units[0] = t->batch * t->row_blocks * t->col_blocks;
    double mn = (double)(t->m * t->n), k_sides = (double)(t->k * (t->m + t->n));
    p->ns = (double)t->batch * (2 * mn * (double)t->k / s.flops_per_ns + (mn + k_sides) / 8);
    __builtin_memcpy(p->tune, t, sizeof(*t));
    return TT_OK;
}

TT_CPU_DECLARE(tti_matmul);

const tt_op tti_op_matmul = {
    .name = "matmul",
    .help = "matrix product act(a b + bias); leading axes broadcast",
    .inputs = 2,
    .max_inputs = 3,
    .flags = TT_OP_ROW_FREE | TT_OP_ANY_TYPE,
    TTI_ATTRS(matmul_options, tti_matmul_attr),
    .infer = matmul_infer,
    .split = matmul_split,
    .grad = matmul_grad,
    .kernel = {[TT_CPU] = TTI_CPU(tti_matmul, matmul_prepare)},
};
