/*
 * nan.c - a NaN propagates: the rule of docs/arithmetic.md, tried on every op of the table.
 *
 * A row has an op with its inputs. One element of one float input becomes a NaN: every element of
 * the results that changes with other numbers in that place must be a NaN then, and every other
 * one must keep its bits. Inputs that only choose (the mask of a gradient, a comparison) count a
 * NaN as a number, which the row names. Each row is run in every instruction set, with one thread
 * or with three, in f32, bf16 and f16, and as "gpu/nan/..." on a GPU. An op without a row fails.
 */
#include "op_trial.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_OUT 16
#define PLACES  12

/*
 * in: "name:kind[shape]" or "name:kind[shape]<limit", kinds T (the type under test), f32, f64, i32,
 * bool, var (an f32 variable). call: the node, in the text form of graphs.
 */
typedef struct nan_row {
    const char *op, *in, *call;
    unsigned chooses;       // bit i: input i only chooses; a NaN counts as number as[i]
    double as[6], as_first; // as_first: of the input's first element, if it is another
    unsigned loose;         // bit i: output i is not looked at
    unsigned padded;        // bit i: input i is multiplied with zeros of a padding, too
    bool few;               // fewer than 8 channels: in half precision on GPUs x meets zeros, too
    bool taps, f32_only, no_gpu; // taps: numbers tell what depends on an element, infinities do not
    const char *exempt;          // why there is nothing to try
} nan_row;

#define ROW(op_, in_, call_)                \
    {                                       \
        .op = op_, .in = in_, .call = call_ \
    }
#define ROW_WITH(op_, in_, call_, ...)                   \
    {                                                    \
        .op = op_, .in = in_, .call = call_, __VA_ARGS__ \
    }
#define UNARY(op_)         ROW(#op_, "x:T[20011]", #op_ "(%x)")
#define UNARY_OF(op_, at_) ROW(#op_, "x:T[20011]", #op_ "(%x) " at_)
#define BACKWARD(op_)      ROW(#op_, "y:T[20011] dy:T[20011]", #op_ "(%y, %dy)")
#define BINARY(op_)        ROW(#op_, "a:T[20011] b:T[20011]", #op_ "(%a, %b)")
#define BROADCAST(op_)     ROW(#op_, "a:T[61, 37] b:T[37]", #op_ "(%a, %b)")
#define COMPARE(op_, a_, b_) \
    ROW_WITH(#op_, "a:T[20011] b:T[20011]", #op_ "(%a, %b)", .chooses = 3, .as = {a_, b_})
#define HIGH 8.0  // above every number there is
#define LOW  -3.0 // below
#define MOST 1e30

static const nan_row rows[] = {
    // elementwise
    UNARY(neg),
    UNARY(abs),
    UNARY(square),
    UNARY(sign),
    UNARY(sqrt),
    UNARY(rsqrt),
    UNARY(exp),
    UNARY(log),
    UNARY(sin),
    UNARY(cos),
    UNARY(tanh),
    UNARY(erf),
    UNARY(sigmoid),
    UNARY(relu),
    UNARY(gelu),
    UNARY(gelu_erf),
    UNARY(silu),
    UNARY(softplus),
    UNARY(identity),
    UNARY(stop_gradient),
    UNARY_OF(leaky_relu, "{slope=0.2}"),
    UNARY_OF(elu, "{alpha=1.5}"),
    UNARY_OF(clip, "{low=0.5, high=1.5}"),
    UNARY_OF(scale, "{factor=2, offset=1}"),
    ROW("logical_not", "x:bool[99]<2", "logical_not(%x)"),
    ROW_WITH("relu_grad", "y:T[20011] dy:T[20011]", "relu_grad(%y, %dy)", .chooses = 1,
             .as = {HIGH}),
    ROW_WITH("leaky_relu_grad", "y:T[20011] dy:T[20011]", "leaky_relu_grad(%y, %dy) {slope=0.2}",
             .chooses = 1, .as = {HIGH}),
    ROW_WITH("clip_grad", "x:T[20011] dy:T[20011]", "clip_grad(%x, %dy) {low=0.5, high=1.5}",
             .chooses = 1, .as = {1}),
    BACKWARD(gelu_grad),
    BACKWARD(gelu_erf_grad),
    BACKWARD(silu_grad),
    BACKWARD(sigmoid_grad),
    BACKWARD(tanh_grad),
    BACKWARD(softplus_grad),
    ROW("elu_grad", "y:T[20011] dy:T[20011]", "elu_grad(%y, %dy) {alpha=1.5}"),
    BINARY(add),
    BINARY(sub),
    BINARY(mul),
    BINARY(div),
    BINARY(minimum),
    BINARY(maximum),
    BINARY(pow),
    BROADCAST(minimum),
    BROADCAST(maximum),
    BROADCAST(add),
    BROADCAST(pow),
    COMPARE(equal, HIGH, HIGH),
    COMPARE(not_equal, HIGH, HIGH),
    COMPARE(less, HIGH, LOW),
    COMPARE(less_equal, HIGH, LOW),
    COMPARE(greater, LOW, HIGH),
    COMPARE(greater_equal, LOW, HIGH),
    ROW("logical_and", "a:bool[99]<2 b:bool[99]<2", "logical_and(%a, %b)"),
    ROW("logical_or", "a:bool[99]<2 b:bool[99]<2", "logical_or(%a, %b)"),
    ROW("where", "c:bool[20011]<2 a:T[20011] b:T[20011]", "where(%c, %a, %b)"),
    ROW("broadcast", "x:T[37] like:T[61, 37]", "broadcast(%x, %like)"),
    ROW("cast", "x:T[20011]", "cast(%x) {dtype=f32}"),
    ROW("cast", "x:T[20011]", "cast(%x) {dtype=bf16}"),
    ROW("cast", "x:T[20011]", "cast(%x) {dtype=f16}"),
    ROW_WITH("cast", "x:T[20011]", "cast(%x) {dtype=f64}", .no_gpu = true),
    ROW_WITH("cast", "x:T[20011]", "cast(%x) {dtype=i32}", .chooses = 1, .as = {0}),
    ROW_WITH("cast", "x:T[20011]", "cast(%x) {dtype=i64}", .chooses = 1, .as = {0}),
    ROW_WITH("cast", "x:T[20011]", "cast(%x) {dtype=u8}", .chooses = 1, .as = {0}),
    ROW_WITH("cast", "x:T[20011]", "cast(%x) {dtype=bool}", .chooses = 1, .as = {HIGH}),

// reductions: along rows, long rows, columns, both ends, and all
#define REDUCTION(op_, ...)                                                   \
    ROW_WITH(#op_, "x:T[9, 53]", #op_ "(%x) {axes=[1]}", __VA_ARGS__),        \
        ROW_WITH(#op_, "x:T[3, 9001]", #op_ "(%x) {axes=[1]}", __VA_ARGS__),  \
        ROW_WITH(#op_, "x:T[301, 53]", #op_ "(%x) {axes=[0]}", __VA_ARGS__),  \
        ROW_WITH(#op_, "x:T[11, 2100]", #op_ "(%x) {axes=[0]}", __VA_ARGS__), \
        ROW_WITH(#op_, "x:T[5, 6, 72]", #op_ "(%x) {axes=[1]}", __VA_ARGS__)
#define FOLD(op_)                                                                        \
    REDUCTION(op_, .chooses = 0), ROW(#op_, "x:T[7, 5, 37]", #op_ "(%x) {axes=[0, 2]}"), \
        ROW(#op_, "x:T[20011]", #op_ "(%x) {axes=[0]}")
    FOLD(sum),
    FOLD(max),
    FOLD(min),
    REDUCTION(argmax, .chooses = 1, .as = {HIGH}),
    ROW_WITH("max_grad", "x:T[9, 53] y:T[9] dy:T[9]", "max_grad(%x, %y, %dy) {axes=[1]}",
             .chooses = 3, .as = {HIGH, HIGH}),
    ROW_WITH("max_grad", "x:T[53, 9] y:T[9] dy:T[9]", "max_grad(%x, %y, %dy) {axes=[0]}",
             .chooses = 3, .as = {HIGH, HIGH}),
    ROW("count", "x:T[9, 53]", "count(%x) {axes=[0]}"),

    // products
    ROW("matmul", "x:T[21, 37] w:T[37, 43] b:T[43]", "matmul(%x, %w, %b)"),
    ROW("matmul", "x:T[21, 37] w:T[37, 43] b:T[43]", "matmul(%x, %w, %b) {act=elu}"),
    ROW("matmul", "x:T[37, 21] w:T[43, 37]", "matmul(%x, %w) {transpose_a=true, transpose_b=true}"),
    ROW("matmul", "x:T[64, 128] w:T[128, 64] b:T[64]", "matmul(%x, %w, %b) {act=relu}"),

// convolutions and pooling
// Input 1 is multiplied with the zeros of the padding, too.
#define TAPS(op_, in_, call_) ROW_WITH(op_, in_, call_, .padded = 2, .taps = true)
#define FEW(op_, in_, call_)  ROW_WITH(op_, in_, call_, .padded = 2, .taps = true, .few = true)
#define WINDOW                "stride=[2, 2], pad=[1, 1, 1, 1]"
    FEW("conv2d", "x:T[3, 7, 6, 5] w:T[3, 3, 5, 19] b:T[19]",
        "conv2d(%x, %w, %b) {pad=[1, 1, 1, 1], act=relu}"),
    TAPS("conv2d", "x:T[2, 9, 9, 16] w:T[3, 3, 16, 32]", "conv2d(%x, %w) {" WINDOW "}"),
    TAPS("conv2d", "x:T[2, 8, 8, 64] w:T[1, 1, 64, 64]", "conv2d(%x, %w)"),
    TAPS("conv2d", "x:T[1, 5, 5, 64] w:T[3, 3, 64, 64]", "conv2d(%x, %w) {pad=[1, 1, 1, 1]}"),
    FEW("conv2d", "x:T[2, 16, 16, 3] w:T[7, 7, 3, 64]",
        "conv2d(%x, %w) {stride=[2, 2], pad=[3, 3, 3, 3]}"),
    TAPS("conv2d_dx", "dy:T[2, 7, 6, 19] w:T[3, 3, 5, 19]",
         "conv2d_dx(%dy, %w) {pad=[1, 1, 1, 1], size=[7, 6]}"),
    TAPS("conv2d_dx", "dy:T[2, 4, 4, 32] w:T[3, 3, 16, 32]",
         "conv2d_dx(%dy, %w) {" WINDOW ", size=[7, 7]}"),
    FEW("conv2d_dw", "x:T[2, 7, 6, 5] dy:T[2, 7, 6, 19]",
        "conv2d_dw(%x, %dy) {pad=[1, 1, 1, 1], size=[3, 3]}"),
    TAPS("conv2d_dw", "x:T[2, 7, 7, 16] dy:T[2, 4, 4, 32]",
         "conv2d_dw(%x, %dy) {" WINDOW ", size=[3, 3]}"),
    TAPS("depthwise_conv2d", "x:T[2, 7, 6, 37] w:T[3, 3, 37, 1] b:T[37]",
         "depthwise_conv2d(%x, %w, %b) {pad=[1, 1, 1, 1]}"),
    TAPS("depthwise_conv2d_dx", "dy:T[2, 7, 6, 37] w:T[3, 3, 37, 1]",
         "depthwise_conv2d_dx(%dy, %w) {pad=[1, 1, 1, 1], size=[7, 6]}"),
    TAPS("depthwise_conv2d_dw", "x:T[2, 7, 6, 37] dy:T[2, 7, 6, 37]",
         "depthwise_conv2d_dw(%x, %dy) {pad=[1, 1, 1, 1], size=[3, 3]}"),
#define POOL(x_, y_, at_)                                                                      \
    ROW("max_pool2d", "x:T" x_, "max_pool2d(%x) {" at_ "}"),                                   \
        ROW_WITH("max_pool2d_grad", "x:T" x_ " dy:T" y_, "max_pool2d_grad(%x, %dy) {" at_ "}", \
                 .chooses = 1, .as = {HIGH}),                                                  \
        ROW("avg_pool2d", "x:T" x_, "avg_pool2d(%x) {" at_ "}")
    POOL("[2, 6, 8, 5]", "[2, 3, 4, 5]", "size=[2, 2], stride=[2, 2]"),
    POOL("[2, 7, 7, 40]", "[2, 4, 4, 40]", "size=[3, 3], " WINDOW),
    POOL("[2, 8, 6, 72]", "[2, 4, 3, 72]", "size=[2, 2], stride=[2, 2]"),
    POOL("[1, 18, 17, 21]", "[1, 1, 1, 21]", "size=[18, 17], stride=[1, 1]"),
    ROW("avg_pool2d_grad", "dy:T[2, 3, 4, 37]",
        "avg_pool2d_grad(%dy) {size=[2, 2], stride=[2, 2], image=[6, 8]}"),

// softmax and losses
#define SOFT(op_)                                                               \
    ROW(#op_, "x:T[9, 53]", #op_ "(%x)"), ROW(#op_, "x:T[5, 16]", #op_ "(%x)"), \
        ROW(#op_, "x:T[2, 1101]", #op_ "(%x)")
#define SOFT_GRAD(op_)                                     \
    ROW(#op_, "y:T[9, 53] dy:T[9, 53]", #op_ "(%y, %dy)"), \
        ROW(#op_, "y:T[2, 1101] dy:T[2, 1101]", #op_ "(%y, %dy)")
    SOFT(softmax),
    SOFT_GRAD(softmax_grad),
    SOFT(log_softmax),
    SOFT_GRAD(log_softmax_grad),
    ROW_WITH("cross_entropy", "x:T[9, 53] t:i32[9]<53", "cross_entropy(%x, %t)", .loose = 2),
    ROW_WITH("cross_entropy", "x:T[2, 1101] t:i32[2]<1101", "cross_entropy(%x, %t) {smoothing=0.1}",
             .loose = 2),
    ROW_WITH("cross_entropy", "x:T[9, 53] t:T[9, 53]", "cross_entropy(%x, %t)", .loose = 2),
    ROW("cross_entropy_grad", "x:T[9, 53] t:i32[9]<53 m:f32[9] s:f32[9] d:f32[9]",
        "cross_entropy_grad(%x, %t, %m, %s, %d)"),
    ROW("cross_entropy_grad", "x:T[2, 1101] t:i32[2]<1101 m:f32[2] s:f32[2] d:f32[2]",
        "cross_entropy_grad(%x, %t, %m, %s, %d) {smoothing=0.1}"),
    ROW("cross_entropy_grad", "x:T[9, 53] t:T[9, 53] m:f32[9] s:f32[9] d:f32[9]",
        "cross_entropy_grad(%x, %t, %m, %s, %d)"),
    ROW_WITH("label_rank", "x:T[9, 53] t:i32[9]<1", "label_rank(%x, %t)", .chooses = 1,
             .as = {HIGH}, .as_first = LOW),

// norms
#define NORM(c_)                                                                               \
    ROW("layer_norm", "x:T[9, " c_ "] g:T[" c_ "] b:T[" c_ "]",                                \
        "layer_norm(%x, %g, %b) {gamma=true, beta=true}"),                                     \
        ROW("layer_norm_grad", "x:T[9, " c_ "] dy:T[9, " c_ "] m:f32[9] r:f32[9] g:T[" c_ "]", \
            "layer_norm_grad(%x, %dy, %m, %r, %g) {gamma=true, beta=true}"),                   \
        ROW("rms_norm", "x:T[9, " c_ "] g:T[" c_ "]", "rms_norm(%x, %g) {gamma=true}"),        \
        ROW("rms_norm_grad", "x:T[9, " c_ "] dy:T[9, " c_ "] r:f32[9] g:T[" c_ "]",            \
            "rms_norm_grad(%x, %dy, %r, %g) {gamma=true}")
    NORM("53"),
    NORM("48"),
    NORM("1100"),
    ROW("batch_norm_stats", "x:T[37, 21]", "batch_norm_stats(%x)"),
    ROW("batch_norm_apply", "x:T[37, 21] m:f32[21] v:f32[21] g:f32[21] b:f32[21]",
        "batch_norm_apply(%x, %m, %v, %g, %b) {act=relu}"),
    ROW("batch_norm_sums", "x:T[37, 21] dy:T[37, 21] m:f32[21] v:f32[21]",
        "batch_norm_sums(%x, %dy, %m, %v)"),
    ROW_WITH("batch_norm_sums", "x:T[37, 21] dy:T[37, 21] m:f32[21] v:f32[21] g:f32[21] b:f32[21]",
             "batch_norm_sums(%x, %dy, %m, %v, %g, %b) {act=relu}", .loose = 2, .chooses = 0x30,
             .as = {[5] = MOST}),
    ROW("batch_norm_dx",
        "x:T[37, 21] dy:T[37, 21] m:f32[21] v:f32[21] g:f32[21] s:f32[21] t:f32[21]",
        "batch_norm_dx(%x, %dy, %m, %v, %g, %s, %t)"),
    ROW_WITH("batch_norm_running", "m:var[21] v:var[21] a:f32[21] b:f32[21]",
             "batch_norm_running(%m, %a)", .f32_only = true),
    ROW("batch_norm_lane", "x:T[b, 21] g:f32[21] b:f32[21]", "batch_norm_lane(%x, %g, %b)"),
    ROW("batch_norm_lane_grad", "x:T[b, 21] dy:T[b, 21] m:f32[b, 21] r:f32[b, 21] g:f32[21]",
        "batch_norm_lane_grad(%x, %dy, %m, %r, %g)"),

    // attention
    ROW("attention", "q:T[2, 19, 32] k:T[2, 19, 32] v:T[2, 19, 32]",
        "attention(%q, %k, %v) {heads=2, kv_heads=2, causal=true}"),
    ROW("attention", "q:T[1, 70, 64] k:T[1, 70, 32] v:T[1, 70, 32]",
        "attention(%q, %k, %v) {heads=2, kv_heads=1}"),
    ROW("attention_grad",
        "q:T[2, 19, 32] k:T[2, 19, 32] v:T[2, 19, 32] y:T[2, 19, 32] l:f32[2, 2, 19] "
        "dy:T[2, 19, 32]",
        "attention_grad(%q, %k, %v, %y, %l, %dy) {heads=2, kv_heads=2, causal=true}"),

    // shapes and indices
    ROW("reshape", "x:T[9, 53]", "reshape(%x) {shape=[53, 9]}"),
    ROW("transpose", "x:T[9, 53]", "transpose(%x) {order=[1, 0]}"),
    ROW("concat", "a:T[9, 53] b:T[9, 7]", "concat(%a, %b) {axis=1}"),
    ROW("split", "x:T[9, 54]", "split(%x) {axis=1, n=3}"),
    ROW("slice", "x:T[9, 53]", "slice(%x) {axis=1, begin=3, end=40}"),
    ROW("slice_grad", "dy:T[9, 37] x:T[9, 53]", "slice_grad(%dy, %x) {axis=1, before=3}"),
    ROW("pad", "x:T[9, 53]", "pad(%x) {axis=1, before=2, after=1}"),
    ROW("tile", "x:T[9, 53]", "tile(%x) {axis=1, n=3}"),
    ROW("embedding", "w:T[11, 37] t:i32[19]<11", "embedding(%w, %t)"),
    ROW("embedding_grad", "dy:T[19, 37] t:i32[19]<11", "embedding_grad(%dy, %t) {n=11}"),
    ROW("gather", "x:T[9, 53] t:i32[7]<53", "gather(%x, %t) {axis=1}"),
    ROW("scatter_add", "dy:T[9, 7] t:i32[7]<53", "scatter_add(%dy, %t) {axis=1, n=53}"),
    ROW("one_hot", "t:i32[9]<10", "one_hot(%t) {depth=10}"),
    ROW("dropout", "x:T[9, 997]", "dropout(%x) {rate=0.25}"),

    // updates
    ROW_WITH("assign", "w:var[20011] g:f32[20011]", "assign(%w, %g)", .f32_only = true),
    ROW_WITH("update_sgd", "w:var[20011] g:f32[20011] s:var[20011]",
             "update_sgd(%w, %g, %s) {momentum=0.9}", .f32_only = true),
    ROW_WITH("update_adam", "w:var[20011] g:f32[20011] s:var[20011] v:var[20011]",
             "update_adam(%w, %g, %s, %v) {beta1=0.9, beta2=0.99, eps=1e-8}", .f32_only = true),
    ROW_WITH("update_adamw", "w:var[20011] g:f32[20011] s:var[20011] v:var[20011]",
             "update_adamw(%w, %g, %s, %v) {beta1=0.9, beta2=0.99, eps=1e-8}", .f32_only = true),
    ROW_WITH("update_rmsprop", "w:var[20011] g:f32[20011] s:var[20011]",
             "update_rmsprop(%w, %g, %s) {beta1=0.9, eps=1e-7}", .f32_only = true),
    ROW_WITH("update_adagrad", "w:var[20011] g:f32[20011] s:var[20011]",
             "update_adagrad(%w, %g, %s) {eps=1e-7}", .f32_only = true),
    ROW_WITH("update_lion", "w:var[20011] g:f32[20011] s:var[20011]",
             "update_lion(%w, %g, %s) {beta1=0.9, beta2=0.99}", .f32_only = true),
    ROW_WITH("update_ema", "w:var[20011] g:f32[20011]", "update_ema(%w, %g)", .f32_only = true),
    ROW_WITH("square_sum", "x:T[20011]", "square_sum(%x)", .f32_only = true),
    ROW_WITH("max_abs", "x:T[20011]", "max_abs(%x)", .f32_only = true),
    ROW_WITH("update_scale", "l:f64[] c:f64[] p:f64[] s:f64[]", "update_scale(%l, %c, %p, %s)",
             .f32_only = true, .loose = 4),
    {.op = "update_loss_scale", .exempt = "its input is a flag, and NaN says: not applied"},
    {.op = "residual", .exempt = "does nothing by itself"},
    ROW_WITH("print", "x:T[53]", "print(%x) {text=x}", .no_gpu = true),
    {.op = "assert", .exempt = "its condition is a bool, and x passes as it is"},
};
#define N_ROWS ((int)(sizeof(rows) / sizeof(rows[0])))

TEST(every_op_has_a_nan_row)
{
    tt_ctx *ctx = test_ctx();
    char missing[2048] = "";
    const tt_op *op;
    for (int i = 0; (op = tt_op_at(ctx, i)) != NULL; i++) {
        bool found = (op->flags & TT_OP_SOURCE) != 0;
        for (int k = 0; k < N_ROWS && !found; k++)
            found = strcmp(rows[k].op, op->name) == 0;
        if (!found)
            snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), " %s", op->name);
    }
    for (int k = 0; k < N_ROWS; k++)
        ck_assert_msg(tt_op_find(ctx, rows[k].op) != NULL, "no op is called '%s'", rows[k].op);
    CHECK_OK(tt_close(ctx));
    ck_assert_msg(missing[0] == '\0', "ops without a row in tests/op/nan.c:%s", missing);
}

// ---- a trial: one context with the row's node ------------------------------------------------

typedef struct nan_in {
    char name[16], kind[8], shape[48];
    int limit;
    tt_dtype dtype;
    tt_tensor *tensor;
    tt_shape bound;
    int64_t count;
    double *value;
} nan_in;

typedef struct nan_trial {
    const nan_row *row;
    const char *device, *isa;
    tt_dtype dtype;
    int threads, n_in, n_out;
    nan_in in[8];
    tt_tensor *out[MAX_OUT]; // outputs of the node, then variables
    int64_t count[MAX_OUT];
    tt_ctx *ctx;
    tt_session *s;
} nan_trial;

typedef struct nan_result {
    double *v[MAX_OUT];
} nan_result;

#define BATCH 11 // rows of an open axis

static void parse_inputs(nan_trial *t, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "tutti graph 1\n");
    for (const char *at = t->row->in; *at != '\0'; at += *at == ' ') {
        nan_in *in = &t->in[t->n_in++];
        int used = 0;
        ck_assert_msg(
            sscanf(at, "%15[^:]:%7[^[]%47[^]]]%n", in->name, in->kind, in->shape, &used) == 3,
            "row '%s': '%s'", t->row->op, at);
        at += used;
        if (*at == '<')
            in->limit = (int)strtol(at + 1, (char **)&at, 10);
        bool is_var = strcmp(in->kind, "var") == 0;
        const char *type = is_var ? "f32" : in->kind[0] == 'T' ? tt_dtype_name(t->dtype) : in->kind;
        n += (size_t)snprintf(text + n, room - n, "%%%s = %s {dtype=%s, shape=%s]}\n", in->name,
                              is_var ? "variable" : "feed", type, in->shape);
    }
    snprintf(text + n, room - n, "%%out = %s\n", t->row->call);
}

static int64_t count_of(tt_tensor *x)
{
    tt_shape s = tt_tensor_shape(x);
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] < 0)
            s.dim[i] *= -BATCH;
    return tt_shape_count(&s);
}

static void open_trial(nan_trial *t, const nan_row *row, const char *device, const char *isa,
                       int threads, tt_dtype dtype)
{
    char text[2048];
    *t = (nan_trial){.row = row, .device = device, .isa = isa, .dtype = dtype, .threads = threads};
    parse_inputs(t, text, sizeof(text));
    t->ctx = tt_open(.devices = device, .isa = isa, .threads = threads,
                     .on_event = test_ignore_event, .lanes = 4, .seed = 7);
    tt_graph *g = tt_graph_parse(t->ctx, text, strlen(text));
    ck_assert_msg(g != NULL, "%s: %s\n%s", row->op, tt_last_error(t->ctx).message, text);
    for (int i = 0; i < t->n_in; i++) {
        nan_in *in = &t->in[i];
        in->tensor = tt_graph_find(g, in->name);
        in->dtype = tt_tensor_dtype(in->tensor);
        in->bound = tt_tensor_shape(in->tensor);
        for (int k = 0; k < in->bound.rank; k++)
            if (in->bound.dim[k] < 0)
                in->bound.dim[k] *= -BATCH;
        in->count = tt_shape_count(&in->bound);
        in->value = malloc(sizeof(double) * (size_t)(in->count + 1));
        float *x = malloc(sizeof(float) * (size_t)(in->count + 1));
        test_fill(x, in->count, (uint64_t)i + 1, 0.25, 2);
        for (int64_t k = 0; k < in->count; k++)
            in->value[k] = in->limit > 0 ? floor(((double)x[k] - 0.25) / 1.75 * in->limit)
                                         : op_round(in->dtype, (double)x[k]);
        free(x);
    }
    const tt_node *n = tt_tensor_get_node(tt_graph_find(g, "out"));
    for (int i = 0; i < n->n_out; i++)
        t->out[t->n_out++] = n->outs[i];
    for (int i = 0; i < t->n_in; i++)
        if (strcmp(t->in[i].kind, "var") == 0)
            t->out[t->n_out++] = t->in[i].tensor;
    for (int i = 0; i < t->n_out; i++)
        t->count[i] = count_of(t->out[i]);
    t->s = tt_session_new(g, .no_fold = true);
}

static bool is_variable(const nan_trial *t, const tt_tensor *x)
{
    for (int i = 0; i < t->n_in; i++)
        if (t->in[i].tensor == x)
            return true;
    return false;
}

static void run_trial(nan_trial *t, nan_result *r)
{
    tt_feed_value feeds[8];
    tt_fetch fetches[MAX_OUT];
    void *data[MAX_OUT];
    int n_feeds = 0, n_fetches = 0;
    for (int i = 0; i < t->n_in; i++) {
        nan_in *in = &t->in[i];
        void *x = op_encode(in->dtype, in->value, in->count);
        size_t bytes = tt_dtype_bytes(in->dtype) * (size_t)in->count;
        if (strcmp(in->kind, "var") == 0) {
            CHECK_OK(tt_set_variable(t->s, in->tensor, x, bytes));
            free(x);
        } else {
            feeds[n_feeds++] = (tt_feed_value){in->tensor, x, in->bound, in->dtype};
        }
    }
    for (int i = 0; i < t->n_out; i++) {
        size_t bytes = tt_dtype_bytes(tt_tensor_dtype(t->out[i])) * (size_t)t->count[i];
        data[i] = calloc(1, bytes + 8);
        if (!is_variable(t, t->out[i]))
            fetches[n_fetches++] = (tt_fetch){t->out[i], data[i], bytes};
    }
    tt_status st = tt_run(t->s, .feeds = feeds, .n_feeds = n_feeds, .fetches = fetches,
                          .n_fetches = n_fetches, .step = 3, .lr = 0.1f);
    ck_assert_msg(st == TT_OK, "%s: %s", t->row->op, tt_last_error(t->ctx).message);
    for (int i = 0; i < t->n_out; i++) {
        tt_dtype dtype = tt_tensor_dtype(t->out[i]);
        if (is_variable(t, t->out[i]))
            CHECK_OK(tt_get_variable(t->s, t->out[i], data[i],
                                     tt_dtype_bytes(dtype) * (size_t)t->count[i]));
        r->v[i] = malloc(sizeof(double) * (size_t)(t->count[i] + 1));
        for (int64_t k = 0; k < t->count[i]; k++)
            r->v[i][k] = op_decode(dtype, data[i], k);
        free(data[i]);
    }
    for (int i = 0; i < n_feeds; i++)
        free((void *)feeds[i].data);
}

static void free_result(const nan_trial *t, nan_result *r)
{
    for (int i = 0; i < t->n_out; i++)
        free(r->v[i]);
}

static void close_trial(nan_trial *t)
{
    for (int i = 0; i < t->n_in; i++)
        free(t->in[i].value);
    CHECK_OK(tt_close(t->ctx));
}

// ---- the rule --------------------------------------------------------------------------------

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

// Places of an input: its ends, the bodies and tails of vectors, the ends of parts of threads.
static int places_of(const nan_trial *t, const nan_in *in, int64_t *at)
{
    bool is_slow = strcmp(t->device, "gpu:0") == 0 && test_gpu_is_emulated();
    int64_t n = in->count;
    const int64_t want[PLACES] = {0,         n - 1,     n / 2, 5,      15,   16,
                                  n / 3 - 1, n / 3 + 7, n - 2, n - 17, 6671, 13341};
    int k = 0;
    for (int i = 0; i < (is_slow ? 4 : PLACES); i++) {
        bool is_new = want[i] >= 0 && want[i] < n;
        for (int j = 0; j < k; j++)
            is_new = is_new && at[j] != want[i];
        if (is_new)
            at[k++] = want[i];
    }
    return k;
}

static void fail_at(const nan_trial *t, const nan_in *in, int64_t at, int out, int64_t k,
                    double got, const char *why)
{
    ck_abort_msg("%s, %s, %s, %s, %d threads: with NaN at %s[%lld] element %lld of output %d is "
                 "%g: %s",
                 t->row->call, tt_dtype_name(t->dtype), t->device,
                 t->isa == NULL ? "best set" : t->isa, t->threads, in->name, (long long)at,
                 (long long)k, out, got, why);
}

// Runs with each of n numbers in one place: which elements of the results change?
static void mark_changes(nan_trial *t, double *at, const double *numbers, int n,
                         const nan_result *base, uint8_t *const *marks, uint8_t mark)
{
    double old = *at;
    for (int i = 0; i < n; i++) {
        nan_result other;
        *at = numbers[i];
        run_trial(t, &other);
        for (int o = 0; o < t->n_out; o++)
            for (int64_t k = 0; k < t->count[o]; k++)
                if (!same(other.v[o][k], base->v[o][k]))
                    marks[o][k] |= mark;
        free_result(t, &other);
    }
    *at = old;
}

/*
 * NaN in one place: elements that change with usual numbers there are NaN, those that change not
 * even with huge ones keep their bits.
 */
static void check_spreads(nan_trial *t, int input, int64_t at, const nan_result *base)
{
    nan_in *in = &t->in[input];
    double huge = in->dtype == TT_F16 ? 6e4 : 1e30, old = in->value[at];
    const double usual[] = {HIGH, LOW, 0.3125, 1.1875};
    const double most[] = {huge, -huge, INFINITY, -INFINITY};
    bool meets_zeros = t->row->few && t->dtype != TT_F32 && strcmp(t->device, "gpu:0") == 0;
    bool is_padded = (t->row->padded >> input & 1) != 0 || meets_zeros;
    uint8_t *marks[MAX_OUT];
    for (int o = 0; o < t->n_out; o++)
        marks[o] = calloc((size_t)t->count[o] + 1, 1);
    mark_changes(t, &in->value[at], usual, 4, base, marks, 1);
    mark_changes(t, &in->value[at], most, t->row->taps ? 2 : 4, base, marks, 2);
    nan_result got;
    in->value[at] = NAN;
    run_trial(t, &got);
    in->value[at] = old;
    for (int o = 0; o < t->n_out; o++) {
        for (int64_t k = 0; (t->row->loose >> o & 1) == 0 && k < t->count[o]; k++) {
            if ((marks[o][k] & 1) != 0 && !isnan(got.v[o][k]))
                fail_at(t, in, at, o, k, got.v[o][k], "it depends on that, and is not NaN");
            if (marks[o][k] == 0 && !is_padded && !same(got.v[o][k], base->v[o][k]))
                fail_at(t, in, at, o, k, got.v[o][k], "it does not depend on that");
        }
        free(marks[o]);
    }
    free_result(t, &got);
}

// A NaN that only chooses counts as a number.
static void check_counts_as(nan_trial *t, nan_in *in, int64_t at, double as)
{
    double old = in->value[at];
    nan_result got, want;
    in->value[at] = as;
    run_trial(t, &want);
    in->value[at] = NAN;
    run_trial(t, &got);
    in->value[at] = old;
    for (int o = 0; o < t->n_out; o++)
        for (int64_t k = 0; k < t->count[o]; k++)
            if (!same(got.v[o][k], want.v[o][k]))
                fail_at(t, in, at, o, k, got.v[o][k], "a NaN counts as another number there");
    free_result(t, &want);
    free_result(t, &got);
}

static void try_row(const nan_row *row, const char *device, const char *isa, int threads,
                    tt_dtype dtype)
{
    nan_trial t;
    nan_result base;
    open_trial(&t, row, device, isa, threads, dtype);
    run_trial(&t, &base);
    for (int o = 0; o < t.n_out; o++)
        for (int64_t k = 0; k < t.count[o]; k++)
            ck_assert_msg(!isnan(base.v[o][k]), "%s: NaN without one", row->call);
    for (int i = 0; i < t.n_in; i++) {
        int64_t at[PLACES];
        int n = op_is_float(t.in[i].dtype) ? places_of(&t, &t.in[i], at) : 0;
        for (int k = 0; k < n; k++) {
            if ((row->chooses >> i & 1) != 0)
                check_counts_as(&t, &t.in[i], at[k],
                                at[k] == 0 && row->as_first != 0 ? row->as_first : row->as[i]);
            else
                check_spreads(&t, i, at[k], &base);
        }
    }
    free_result(&t, &base);
    close_trial(&t);
}

static void run_entry(const test_entry *e)
{
    const char *op = e->arg;
    bool is_gpu = strncmp(e->name, "gpu/", 4) == 0;
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};
    if (is_gpu)
        test_need_gpu();
    for (int k = 0; k < N_ROWS; k++) {
        const nan_row *r = &rows[k];
        if (strcmp(r->op, op) != 0 || r->exempt != NULL || (is_gpu && r->no_gpu))
            continue;
        for (int i = 0; i < (r->f32_only ? 1 : 3); i++) {
            if (is_gpu) {
                try_row(r, "gpu:0", NULL, 1, types[i]);
                continue;
            }
            for (int set = 0; test_isa(set) != NULL; set++) // halves: the best and the last set
                if (i == 0 || set == 0 || test_isa(set + 1) == NULL)
                    try_row(r, "cpu:0", test_isa(set), set == 0 && i == 0 ? 3 : 1, types[i]);
        }
    }
}

// "nan/op" and "gpu/nan/op" for every op of the rows.
__attribute__((constructor)) static void register_rows(void)
{
    static test_entry entries[2][N_ROWS];
    static char names[2][N_ROWS][48];
    for (int gpu = 0; gpu < 2; gpu++)
        for (int k = 0; k < N_ROWS; k++) {
            bool is_new = rows[k].exempt == NULL;
            for (int j = 0; j < k; j++)
                is_new = is_new && strcmp(rows[k].op, rows[j].op) != 0;
            if (!is_new)
                continue;
            snprintf(names[gpu][k], sizeof(names[gpu][k]), "%snan/%s", gpu ? "gpu/" : "",
                     rows[k].op);
            entries[gpu][k] = (test_entry){
                .file = __FILE__, .name = names[gpu][k], .run = run_entry, .arg = rows[k].op};
            test_register(&entries[gpu][k]);
        }
}
