/*
 * binary.c - y[i] = f(a[i], b[i]) with NumPy's broadcasting: one row per op. Also where, and
 * broadcasting by itself with its gradient. Kernels: binary_cpu.c.
 *
 *   minimum  a < b ? a : b        maximum  a > b ? a : b      (a tie gives b; NaN where either is)
 *   pow      as C's; a negative base wants a whole exponent, else NaN
 *   Integers wrap; of bools, add is or, mul is and. Comparisons give bool.
 *
 * The gradient by an operand that was broadcast is summed over the axes it was repeated on
 * (tt_sum_like); over the open axis that is a lane sum.
 */
#include "op/binary.h"
#include "op/op.h"

#define NUMBERS (TT_TYPES_ALL & ~(1u << TT_BOOL))

static tt_tensor *two(tt_graph *g, const tt_op *op, tt_tensor *a, tt_tensor *b)
{
    return tt_node_out(g, op, 2, (tt_tensor *const[]){a, b}, NULL);
}

// ---- shape rules -----------------------------------------------------------------------------

static tt_status infer_both(tt_infer *q, unsigned types)
{
    tt_dtype a = q->in[0]->dtype, b = q->in[1]->dtype;
    if (a != b)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: a is %s but b is %s", q->name, tt_dtype_name(a),
                       tt_dtype_name(b));
    if ((types >> a & 1u) == 0)
        return TT_FAIL(q->ctx, TT_EDTYPE, "%s: not for %s", q->name, tt_dtype_name(a));
    q->dtype[0] = a;
    return tti_broadcast_shape(q->ctx, q->name, &q->in[0]->shape, &q->in[1]->shape, &q->shape[0]);
}
static tt_status infer_any(tt_infer *q)
{
    return infer_both(q, TT_TYPES_ALL);
}
static tt_status infer_numbers(tt_infer *q)
{
    return infer_both(q, NUMBERS);
}
static tt_status infer_floats(tt_infer *q)
{
    return infer_both(q, TT_TYPES_FLOAT);
}
static tt_status infer_bools(tt_infer *q)
{
    return infer_both(q, 1u << TT_BOOL);
}
static tt_status infer_compare(tt_infer *q)
{
    TT_TRY(infer_both(q, TT_TYPES_ALL));
    q->dtype[0] = TT_BOOL;
    return TT_OK;
}

static tt_status prepare_pow(tt_prep *p)
{
    TT_TRY(tti_prep_elements(p));
    p->ns += 1.5 * (double)p->units[0];
    return TT_OK;
}

// ---- gradients: a, b, y and d = dy give da and db --------------------------------------------

#define GRAD(name_, da_, db_)                                                                   \
    static void name_##_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx) \
    {                                                                                           \
        tt_tensor *a = n->in[0], *b = n->in[1], *y = n->out, *d = dy[0];                        \
        (void)y;                                                                                \
        dx[0] = tt_sum_like(g, (da_), a);                                                       \
        dx[1] = tt_sum_like(g, (db_), b);                                                       \
    }

// d where the condition holds, else 0; and the other way round.
static tt_tensor *keep(tt_graph *g, tt_tensor *cond, tt_tensor *d)
{
    return d == NULL ? NULL : tt_where(g, cond, d, tt_fill(g, d->dtype, TT_SCALAR, 0));
}
static tt_tensor *drop(tt_graph *g, tt_tensor *cond, tt_tensor *d)
{
    return d == NULL ? NULL : tt_where(g, cond, tt_fill(g, d->dtype, TT_SCALAR, 0), d);
}
// b a^(b - 1), but 0 where b is 0: there a^b is 1 whatever a is, 0 included
static tt_tensor *pow_slope(tt_graph *g, tt_tensor *a, tt_tensor *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    tt_tensor *zero = tt_fill(g, tt_tensor_dtype(b), TT_SCALAR, 0);
    tt_tensor *slope = tt_mul(g, b, tt_pow(g, a, tt_scale(g, b, 1, -1)));
    return drop(g, tt_equal(g, b, zero), slope);
}
// log a, but 0 where a^b does not move with b: a is below 0, or is 0 and b is not below
static tt_tensor *log_or_zero(tt_graph *g, tt_tensor *a, tt_tensor *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    tt_tensor *zero = tt_fill(g, tt_tensor_dtype(a), TT_SCALAR, 0);
    tt_tensor *flat = tt_logical_and(g, tt_equal(g, a, zero), tt_greater_equal(g, b, zero));
    return drop(g, tt_logical_or(g, tt_less(g, a, zero), flat), tt_log(g, a));
}

GRAD(add, d, d)
GRAD(sub, d, tt_neg(g, d))
GRAD(mul, tt_mul(g, d, b), tt_mul(g, d, a))
GRAD(div, tt_div(g, d, b), tt_neg(g, tt_div(g, tt_mul(g, d, y), b)))
GRAD(pow, tt_mul(g, d, pow_slope(g, a, b)), tt_mul(g, d, tt_mul(g, y, log_or_zero(g, a, b))))
// A tie gives all of it to b, a NaN of either to a.
GRAD(minimum, drop(g, tt_greater_equal(g, a, b), d), keep(g, tt_greater_equal(g, a, b), d))
GRAD(maximum, drop(g, tt_less_equal(g, a, b), d), keep(g, tt_less_equal(g, a, b), d))

// ---- the ops ---------------------------------------------------------------------------------

#define BINARY(name_, help_, flags_, types_, infer_, grad_, in_place_, prepare_) \
    const tt_op tti_op_##name_ = {                                               \
        .name = #name_,                                                          \
        .help = help_,                                                           \
        .inputs = 2,                                                             \
        .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE | TT_OP_ANY_TYPE | (flags_),   \
        .types = types_,                                                         \
        .in_place = in_place_,                                                   \
        .infer = infer_,                                                         \
        .split = tti_split_pointwise,                                            \
        .grad = grad_,                                                           \
        .kernel = {[TT_CPU] = TTI_CPU(tti_binary_##name_, prepare_)},            \
    };                                                                           \
    tt_tensor *tt_##name_(tt_graph *g, tt_tensor *a, tt_tensor *b)               \
    {                                                                            \
        return two(g, &tti_op_##name_, a, b);                                    \
    }
#define ARITHMETIC(name_, help_, types_, infer_) \
    BINARY(name_, help_, 0, types_, infer_, name_##_dx, 3, tti_prep_elements)
#define COMPARE(name_, help_) \
    BINARY(name_, help_, TT_OP_NO_GRAD, 1u << TT_BOOL, infer_compare, NULL, 0, tti_prep_elements)
#define LOGICAL(name_, help_) \
    BINARY(name_, help_, TT_OP_NO_GRAD, 1u << TT_BOOL, infer_bools, NULL, 3, tti_prep_elements)

ARITHMETIC(add, "a + b", TT_TYPES_ALL, infer_any)
ARITHMETIC(sub, "a - b", NUMBERS, infer_numbers)
ARITHMETIC(mul, "a b", TT_TYPES_ALL, infer_any)
ARITHMETIC(div, "a / b", TT_TYPES_FLOAT, infer_floats)
ARITHMETIC(minimum, "a < b ? a : b", TT_TYPES_ALL, infer_any)
ARITHMETIC(maximum, "a > b ? a : b", TT_TYPES_ALL, infer_any)
BINARY(pow, "a to the power b", 0, TT_TYPES_FLOAT, infer_floats, pow_dx, 3, prepare_pow)
COMPARE(equal, "a == b")
COMPARE(not_equal, "a != b")
COMPARE(less, "a < b")
COMPARE(less_equal, "a <= b")
COMPARE(greater, "a > b")
COMPARE(greater_equal, "a >= b")
LOGICAL(logical_and, "a and b")
LOGICAL(logical_or, "a or b")

// ---- where -----------------------------------------------------------------------------------

static tt_status where_infer(tt_infer *q)
{
    tt_dtype c = q->in[0]->dtype, a = q->in[1]->dtype, b = q->in[2]->dtype;
    if (c != TT_BOOL)
        return TT_FAIL(q->ctx, TT_EDTYPE, "where: cond is %s, not bool", tt_dtype_name(c));
    if (a != b)
        return TT_FAIL(q->ctx, TT_EDTYPE, "where: a is %s but b is %s", tt_dtype_name(a),
                       tt_dtype_name(b));
    tt_shape ab;
    TT_TRY(tti_broadcast_shape(q->ctx, "where", &q->in[1]->shape, &q->in[2]->shape, &ab));
    q->dtype[0] = a;
    return tti_broadcast_shape(q->ctx, "where: cond against a and b", &q->in[0]->shape, &ab,
                               &q->shape[0]);
}

static void where_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    dx[1] = tt_sum_like(g, keep(g, n->in[0], dy[0]), n->in[1]);
    dx[2] = tt_sum_like(g, drop(g, n->in[0], dy[0]), n->in[2]);
}

const tt_op tti_op_where = {
    .name = "where",
    .help = "cond ? a : b",
    .inputs = 3,
    .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE | TT_OP_ANY_TYPE,
    .types = TT_TYPES_ALL,
    .in_place = 6,
    .infer = where_infer,
    .split = tti_split_pointwise,
    .grad = where_dx,
    .kernel = {[TT_CPU] = TTI_CPU(tti_binary_where, tti_prep_elements)},
};

tt_tensor *tt_where(tt_graph *g, tt_tensor *cond, tt_tensor *a, tt_tensor *b)
{
    return tt_node_out(g, &tti_op_where, 3, (tt_tensor *const[]){cond, a, b}, NULL);
}

// ---- broadcast -------------------------------------------------------------------------------

static tt_status broadcast_infer(tt_infer *q)
{
    const tt_shape *x = &q->in[0]->shape, *like = &q->in[1]->shape;
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    bool fits = x->rank <= like->rank;
    for (int i = 1; fits && i <= x->rank; i++)
        fits = x->dim[x->rank - i] == 1 || x->dim[x->rank - i] == like->dim[like->rank - i];
    if (!fits)
        return TT_FAIL(q->ctx, TT_ESHAPE, "broadcast: x is %s but like is %s", tt_shape_text(x, a),
                       tt_shape_text(like, b));
    q->shape[0] = *like;
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

static void broadcast_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    dx[0] = tt_sum_like(g, dy[0], n->in[0]);
}

// Only the shape of like is used.
const tt_op tti_op_broadcast = {
    .name = "broadcast",
    .help = "x broadcast to the shape of like",
    .inputs = 2,
    .flags = TT_OP_BITS | TT_OP_ROW_FREE,
    .types = TT_TYPES_ALL,
    .shape_only = 1u << 1,
    .infer = broadcast_infer,
    .split = tti_split_pointwise,
    .grad = broadcast_dx,
    .kernel = {[TT_CPU] = TTI_CPU(tti_binary_broadcast, tti_prep_elements)},
};

tt_tensor *tt_broadcast(tt_graph *g, tt_tensor *x, tt_tensor *like)
{
    if (x != NULL && like != NULL && tti_shape_equal(&x->shape, &like->shape))
        return x;
    return two(g, &tti_op_broadcast, x, like);
}
