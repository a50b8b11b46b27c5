/*
 * onnx_simple.c - elementwise ops and reductions as ONNX nodes.
 */
#include "op/gemm.h"
#include "op/reduce.h"
#include "op/unary.h"
#include "save/onnx.h"
#include <string.h>

static const char *num(tti_onnx *o, tt_dtype t, double v)
{
    return tti_onnx_scalar(o, t, v);
}

static const char *mul(tti_onnx *o, const char *a, const char *b)
{
    return tti_onnx_2(o, "Mul", a, b);
}

// ---- one input -------------------------------------------------------------------------------

typedef const char *(*unary_fn)(tti_onnx *o, tt_dtype t, const char *x, double a, double b);

static const char *square(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)t, (void)a, (void)b;
    return mul(o, x, x);
}

static const char *rsqrt(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)t, (void)a, (void)b;
    return tti_onnx_1(o, "Reciprocal", tti_onnx_1(o, "Sqrt", x));
}

// x / 2 (1 + y)
static const char *half_times(tti_onnx *o, tt_dtype t, const char *x, const char *y)
{
    return mul(o, mul(o, x, num(o, t, 0.5)), tti_onnx_2(o, "Add", y, num(o, t, 1)));
}

static const char *gelu(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)a, (void)b;
    const char *cube = mul(o, mul(o, x, x), x);
    const char *sum = tti_onnx_2(o, "Add", x, mul(o, cube, num(o, t, 0.044715)));
    return half_times(
        o, t, x,
        tti_onnx_1(o, "Tanh", mul(o, sum, num(o, t, 0.79788456080286536)))); // sqrt(2 / pi)
}

static const char *gelu_erf(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)a, (void)b;
    return half_times(o, t, x, tti_onnx_1(o, "Erf", mul(o, x, num(o, t, 0.70710678118654752))));
}

static const char *silu(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)t, (void)a, (void)b;
    return mul(o, x, tti_onnx_1(o, "Sigmoid", x));
}

static const char *mish(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)t, (void)a, (void)b;
    return mul(o, x, tti_onnx_1(o, "Tanh", tti_onnx_1(o, "Softplus", x)));
}

static const char *clip(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    return tti_onnx_3(o, "Clip", x, num(o, t, a), num(o, t, b));
}

static const char *relu6(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)a, (void)b;
    return clip(o, t, x, 0, 6);
}

static const char *hard_sigmoid(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)t, (void)a, (void)b;
    tti_onnx_begin(o, "HardSigmoid");
    tti_onnx_in(o, x);
    tti_onnx_attr_float(o, "alpha", 1.0 / 6);
    tti_onnx_attr_float(o, "beta", 0.5);
    return tti_onnx_end(o);
}

static const char *with_alpha(tti_onnx *o, const char *op, const char *x, double alpha)
{
    tti_onnx_begin(o, op);
    tti_onnx_in(o, x);
    tti_onnx_attr_float(o, "alpha", alpha);
    return tti_onnx_end(o);
}

static const char *leaky_relu(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)t, (void)b;
    return with_alpha(o, "LeakyRelu", x, a);
}

static const char *elu(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    (void)t, (void)b;
    return with_alpha(o, "Elu", x, a);
}

static const char *scale(tti_onnx *o, tt_dtype t, const char *x, double a, double b)
{
    if (a != 1)
        x = mul(o, x, num(o, t, a));
    return b == 0 ? x : tti_onnx_2(o, "Add", x, num(o, t, b));
}

static const struct unary_row {
    const char *op, *as; // as: the same op of ONNX; NULL: several, by fn
    unary_fn fn;
} unary_rows[] = {
    {"neg", "Neg", NULL},
    {"abs", "Abs", NULL},
    {"sign", "Sign", NULL},
    {"sqrt", "Sqrt", NULL},
    {"exp", "Exp", NULL},
    {"log", "Log", NULL},
    {"sin", "Sin", NULL},
    {"cos", "Cos", NULL},
    {"tanh", "Tanh", NULL},
    {"erf", "Erf", NULL},
    {"sigmoid", "Sigmoid", NULL},
    {"relu", "Relu", NULL},
    {"softplus", "Softplus", NULL},
    {"selu", "Selu", NULL},
    {"hard_swish", "HardSwish", NULL},
    {"softsign", "Softsign", NULL},
    {"logical_not", "Not", NULL},
    {"identity", "Identity", NULL},
    {"stop_gradient", "Identity", NULL},
    {"square", NULL, square},
    {"rsqrt", NULL, rsqrt},
    {"gelu", NULL, gelu},
    {"gelu_erf", NULL, gelu_erf},
    {"silu", NULL, silu},
    {"mish", NULL, mish},
    {"relu6", NULL, relu6},
    {"hard_sigmoid", NULL, hard_sigmoid},
    {"leaky_relu", NULL, leaky_relu},
    {"elu", NULL, elu},
    {"clip", NULL, clip},
    {"scale", NULL, scale},
};

const char *tti_onnx_unary(tti_onnx *o, const char *op, tt_dtype dtype, const char *x, double a,
                           double b)
{
    for (int i = 0; i < TTI_COUNT(unary_rows); i++) {
        const struct unary_row *r = &unary_rows[i];
        if (strcmp(r->op, op) == 0)
            return r->as != NULL ? tti_onnx_1(o, r->as, x) : r->fn(o, dtype, x, a, b);
    }
    return NULL;
}

const char *tti_onnx_act(tti_onnx *o, int act, tt_dtype dtype, const char *x)
{
    static const struct {
        const char *op;
        double a;
    } acts[] = {
        [TT_RELU] = {"relu", 0},         [TT_GELU] = {"gelu", 0},
        [TT_GELU_ERF] = {"gelu_erf", 0}, [TT_SIGMOID] = {"sigmoid", 0},
        [TT_TANH] = {"tanh", 0},         [TT_SILU] = {"silu", 0},
        [TT_ELU] = {"elu", 1},           [TT_LEAKY_RELU] = {"leaky_relu", 0.01},
        [TT_SOFTPLUS] = {"softplus", 0},
    };
    if (act <= TT_LINEAR || act >= TTI_COUNT(acts) || acts[act].op == NULL)
        return x;
    return tti_onnx_unary(o, acts[act].op, dtype, x, acts[act].a, 0);
}

static tt_status write_unary(tti_onnx *o, const tt_node *n)
{
    const tti_unary_attr *a = n->op->attr_size > 0 ? n->attr : &(tti_unary_attr){0, 0};
    const char *x = tti_onnx_value(o, n->in[0]);
    tti_onnx_set(o, n->out, tti_onnx_unary(o, n->op->name, n->out->dtype, x, a->a, a->b));
    return TT_OK;
}

static tt_status write_cast(tti_onnx *o, const tt_node *n)
{
    tti_onnx_set(o, n->out, tti_onnx_cast(o, tti_onnx_value(o, n->in[0]), n->out->dtype));
    return TT_OK;
}

// ---- two and three inputs --------------------------------------------------------------------

static const char *const binary_rows[][2] = {
    {"add", "Add"},         {"sub", "Sub"},
    {"mul", "Mul"},         {"div", "Div"},
    {"minimum", "Min"},     {"maximum", "Max"},
    {"pow", "Pow"},         {"equal", "Equal"},
    {"less", "Less"},       {"less_equal", "LessOrEqual"},
    {"greater", "Greater"}, {"greater_equal", "GreaterOrEqual"},
    {"logical_and", "And"}, {"logical_or", "Or"},
    {"not_equal", "Equal"},
};

static tt_status write_binary(tti_onnx *o, const tt_node *n)
{
    const char *a = tti_onnx_value(o, n->in[0]), *b = tti_onnx_value(o, n->in[1]), *y = "";
    for (int i = 0; i < TTI_COUNT(binary_rows); i++)
        if (strcmp(binary_rows[i][0], n->op->name) == 0)
            y = tti_onnx_2(o, binary_rows[i][1], a, b);
    if (strcmp(n->op->name, "not_equal") == 0)
        y = tti_onnx_1(o, "Not", y);
    tti_onnx_set(o, n->out, y);
    return TT_OK;
}

static tt_status write_where(tti_onnx *o, const tt_node *n)
{
    const char *c = tti_onnx_value(o, n->in[0]), *a = tti_onnx_value(o, n->in[1]);
    tti_onnx_set(o, n->out, tti_onnx_3(o, "Where", c, a, tti_onnx_value(o, n->in[2])));
    return TT_OK;
}

static tt_status write_broadcast(tti_onnx *o, const tt_node *n)
{
    const tt_shape *y = &n->out->shape;
    const char *x = tti_onnx_value(o, n->in[0]);
    const char *to = tt_open_axis(y) < 0 ? tti_onnx_ints(o, y->dim, y->rank)
                                         : tti_onnx_1(o, "Shape", tti_onnx_value(o, n->in[1]));
    tti_onnx_set(o, n->out, tti_onnx_2(o, "Expand", x, to));
    return TT_OK;
}

// ---- reductions ------------------------------------------------------------------------------

static tt_status write_reduce(tti_onnx *o, const tt_node *n)
{
    const tti_reduce_attr *a = n->attr;
    bool is_sum = strcmp(n->op->name, "sum") == 0;
    const char *x = tti_onnx_value(o, n->in[0]);
    const char *axes = is_sum && a->axes.n > 0 ? tti_onnx_ints(o, a->axes.v, a->axes.n) : NULL;
    if (a->axes.n == 0) {
        tti_onnx_set(o, n->out, tti_onnx_1(o, "Identity", x));
        return TT_OK;
    }
    tti_onnx_begin(o, is_sum ? "ReduceSum" : n->op->name[1] == 'a' ? "ReduceMax" : "ReduceMin");
    tti_onnx_in(o, x);
    if (is_sum)
        tti_onnx_in(o, axes);
    else
        tti_onnx_attr_ints(o, "axes", a->axes.v, a->axes.n);
    tti_onnx_attr_int(o, "keepdims", a->keep_dims ? 1 : 0);
    const char *y = tti_onnx_end(o);
    if (a->keep_dims && a->lead > 0)
        y = tti_onnx_reshape(o, y, &n->out->shape);
    if (n->out->dtype != n->in[0]->dtype)
        y = tti_onnx_cast(o, y, n->out->dtype);
    tti_onnx_set(o, n->out, y);
    return TT_OK;
}

static tt_status write_argmax(tti_onnx *o, const tt_node *n)
{
    const tti_reduce_attr *a = n->attr;
    const char *x = tti_onnx_value(o, n->in[0]);
    tti_onnx_begin(o, "ArgMax");
    tti_onnx_in(o, x);
    tti_onnx_attr_int(o, "axis", a->axes.v[0]);
    tti_onnx_attr_int(o, "keepdims", a->keep_dims ? 1 : 0);
    tti_onnx_set(o, n->out, tti_onnx_cast(o, tti_onnx_end(o), TT_I32));
    return TT_OK;
}

static tt_status write_softmax(tti_onnx *o, const tt_node *n)
{
    const char *x = tti_onnx_value(o, n->in[0]);
    tti_onnx_begin(o, strcmp(n->op->name, "softmax") == 0 ? "Softmax" : "LogSoftmax");
    tti_onnx_in(o, x);
    tti_onnx_attr_int(o, "axis", -1);
    tti_onnx_set(o, n->out, tti_onnx_end(o));
    return TT_OK;
}

#define UNARY(name_)       \
    {                      \
        name_, write_unary \
    }
#define BINARY(name_)       \
    {                       \
        name_, write_binary \
    }
// clang-format off
const tti_onnx_op tti_onnx_simple[] = {
    UNARY("neg"), UNARY("abs"), UNARY("square"), UNARY("sign"), UNARY("sqrt"), UNARY("rsqrt"),
    UNARY("exp"), UNARY("log"), UNARY("sin"), UNARY("cos"), UNARY("tanh"), UNARY("erf"),
    UNARY("sigmoid"), UNARY("relu"), UNARY("gelu"), UNARY("gelu_erf"), UNARY("silu"),
    UNARY("softplus"), UNARY("selu"), UNARY("relu6"), UNARY("mish"), UNARY("hard_sigmoid"),
    UNARY("hard_swish"), UNARY("softsign"), UNARY("logical_not"), UNARY("leaky_relu"),
    UNARY("elu"), UNARY("clip"), UNARY("scale"), UNARY("identity"), UNARY("stop_gradient"),
    BINARY("add"), BINARY("sub"), BINARY("mul"), BINARY("div"), BINARY("minimum"),
    BINARY("maximum"), BINARY("pow"), BINARY("equal"), BINARY("not_equal"), BINARY("less"),
    BINARY("less_equal"), BINARY("greater"), BINARY("greater_equal"), BINARY("logical_and"),
    BINARY("logical_or"),
    {"where", write_where},
    {"broadcast", write_broadcast},
    {"cast", write_cast},
    {"sum", write_reduce},
    {"max", write_reduce},
    {"min", write_reduce},
    {"argmax", write_argmax},
    {"softmax", write_softmax},
    {"log_softmax", write_softmax},
    {NULL, NULL},
};
// clang-format on
