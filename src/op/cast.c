/*
 * cast.c - elements in another type; identity and stop_gradient. Kernels: cast_cpu.c.
 *
 * Between floats: nearest even. A float becomes an integer by cutting its fraction off. A number or
 * integer that does not fit becomes the nearest that does, NaN becomes 0. To bool: whether it is
 * not 0, which NaN is not. From f64 to bf16 or f16 by way of f32.
 */
#include "op/op.h"
#include <string.h>

TT_CPU_DECLARE(tti_cast);
TT_CPU_DECLARE(tti_copy);

extern const tt_op tti_op_cast;

typedef struct cast_attr {
    tt_dtype dtype;
} cast_attr;

static const tt_option cast_attrs[] = {
    {"dtype", TT_OPT_DTYPE, NULL, "element type of y", offsetof(cast_attr, dtype), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_status cast_infer(tt_infer *q)
{
    const cast_attr *a = q->attr;
    if ((unsigned)a->dtype >= TT_N_DTYPES)
        return TT_FAIL(q->ctx, TT_EDTYPE, "cast: element type %d is unknown", (int)a->dtype);
    q->shape[0] = q->in[0]->shape;
    q->dtype[0] = a->dtype;
    return TT_OK;
}

// The row "wide" of ops whose sums over rows can leave them in f32; NULL: there is none.
static const tt_option *wide_row(const tt_op *op)
{
    for (const tt_option *row = op->attrs; row != NULL && row->type != TT_OPT_END; row++)
        if (row->type == TT_OPT_BOOL && strcmp(row->name, "wide") == 0)
            return row;
    return NULL;
}

/*
 * x of a half type in f32 as it was before it was rounded, where that is known: the cast of an f32,
 * or a sum over rows, whose node is made again to give f32. NULL: it is not known.
 */
static tt_tensor *unrounded(tt_graph *g, const tt_tensor *x)
{
    const tt_node *n = x->node;
    if (n->op == &tti_op_cast && n->in[0]->dtype == TT_F32)
        return n->in[0];
    const tt_option *row = wide_row(n->op);
    if (row == NULL || x->layout.kind != TT_LAYOUT_PARTIAL)
        return NULL;
    tt_ctx *ctx = tt_graph_get_ctx(g);
    char *attr = tti_alloc(ctx, n->op->attr_size);
    if (attr == NULL)
        return NULL;
    memcpy(attr, n->attr, n->op->attr_size);
    memcpy(attr + row->offset, &(bool){true}, sizeof(bool));
    tt_tensor *y = tt_node_out(g, n->op, n->n_in, n->in, attr);
    tti_free(ctx, attr);
    return y;
}

// The gradient of a weight that was cast to a half type is the sum over rows before its rounding.
static void cast_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    tt_dtype type = n->in[0]->dtype;
    if (!tti_is_float(type))
        return;
    bool widens = type == TT_F32 && tti_is_half(dy[0]->dtype);
    dx[0] = widens ? unrounded(g, dy[0]) : NULL;
    if (dx[0] == NULL)
        dx[0] = tt_cast(g, dy[0], type);
}

const tt_op tti_op_cast = {
    .name = "cast",
    .help = "x converted to another element type",
    .inputs = 1,
    .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE | TT_OP_ANY_TYPE,
    .types = TT_TYPES_ALL,
    TTI_ATTRS(cast_attrs, cast_attr),
    .infer = cast_infer,
    .split = tti_split_pointwise,
    .grad = cast_dx,
    .kernel = {[TT_CPU] = TTI_CPU(tti_cast, tti_prep_elements)},
};

tt_tensor *tt_cast(tt_graph *g, tt_tensor *x, tt_dtype dtype)
{
    if (x != NULL && x->dtype == dtype)
        return x;
    return tt_node_out(g, &tti_op_cast, 1, (tt_tensor *const[]){x}, &(cast_attr){dtype});
}

static void identity_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    (void)g, (void)n;
    dx[0] = dy[0];
}

#define COPY(name_, help_, flags_, grad_)                                         \
    const tt_op tti_op_##name_ = {                                                \
        .name = #name_,                                                           \
        .help = help_,                                                            \
        .inputs = 1,                                                              \
        .flags = TT_OP_VIEW | TT_OP_BITS | TT_OP_ROW_FREE | (flags_),             \
        .types = TT_TYPES_ALL,                                                    \
        .in_place = 1,                                                            \
        .infer = tti_infer_same,                                                  \
        .split = tti_split_pointwise,                                             \
        .grad = grad_,                                                            \
        .kernel = {[TT_CPU] = TTI_CPU(tti_copy, tti_prep_elements)},              \
    };                                                                            \
    tt_tensor *tt_##name_(tt_graph *g, tt_tensor *x)                              \
    {                                                                             \
        return tt_node_out(g, &tti_op_##name_, 1, (tt_tensor *const[]){x}, NULL); \
    }
COPY(identity, "x", 0, identity_dx)
COPY(stop_gradient, "x; no gradient flows through it", TT_OP_NO_GRAD, NULL)
