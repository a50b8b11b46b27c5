/*
 * cast.c - elements in another type; identity and stop_gradient. Kernels: cast_cpu.c.
 *
 * Between floats: nearest even. A float becomes an integer by cutting its fraction off; what does
 * not fit becomes the nearest that does, NaN becomes 0. An integer too wide keeps its low bits. To
 * bool: whether it is not 0. From f64 to bf16 or f16 by way of f32.
 */
#include "op/op.h"

TT_CPU_DECLARE(tti_cast);
TT_CPU_DECLARE(tti_copy);

extern const tt_op tti_op_cast;

typedef struct cast_attr {
    tt_dtype dtype;
} cast_attr;

static const tt_option cast_attrs[] = {
    {"dtype", TT_OPT_DTYPE, NULL, "type of y", offsetof(cast_attr, dtype), 0, 0, NULL},
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

/*
 * A sum over rows leaves its node in f32 and is cast to the half type of what it is the gradient of
 * (a weight that was cast). Where that goes back to f32 here it is taken as it was, not rounded.
 */
static void cast_dx(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    tt_dtype type = n->in[0]->dtype;
    if (!tti_is_float(type))
        return;
    const tt_node *from = dy[0]->node;
    bool is_rounded = from->op == &tti_op_cast && from->in[0]->dtype == type;
    dx[0] = is_rounded ? from->in[0] : tt_cast(g, dy[0], type);
}

const tt_op tti_op_cast = {
    .name = "cast",
    .help = "x in another element type",
    .inputs = 1,
    .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE | TT_OP_ANY_TYPE,
    .types = TT_TYPES_ALL,
    .attrs = cast_attrs,
    .attr_size = sizeof(cast_attr),
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
COPY(stop_gradient, "x, passing no gradient on", TT_OP_NO_GRAD, NULL)
