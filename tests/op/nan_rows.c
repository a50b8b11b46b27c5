/*
 * nan_rows.c - the rows of nan.c.
 */
#include "nan_rows.h"

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

const nan_row nan_rows[] = {
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
    UNARY(selu),
    UNARY(relu6),
    UNARY(mish),
    UNARY(hard_sigmoid),
    UNARY(hard_swish),
    UNARY(softsign),
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
    BACKWARD(selu_grad),
    BACKWARD(mish_grad),
    BACKWARD(hard_swish_grad),
    BACKWARD(softsign_grad),
    ROW_WITH("relu6_grad", "y:T[20011] dy:T[20011]", "relu6_grad(%y, %dy)", .chooses = 1,
             .as = {1}),
    ROW_WITH("hard_sigmoid_grad", "x:T[20011] dy:T[20011]", "hard_sigmoid_grad(%x, %dy)",
             .chooses = 1, .as = {1}),
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
    ROW("gaussian_noise", "x:T[9, 997]", "gaussian_noise(%x) {deviation=0.25}"),

    // recurrent; in half precision a step far away changes no bit
    ROW_WITH("recurrent", "z:T[3, 4, 15] w:T[5, 15] b:T[15]", "recurrent(%z, %w, %b) {kind=gru}",
             .f32_only = true),
    ROW_WITH("recurrent", "z:T[3, 4, 20] w:T[5, 20] b:T[20]", "recurrent(%z, %w, %b) {kind=lstm}",
             .padded = 7, .loose = 2, .f32_only = true),
    ROW_WITH("recurrent_grad", "dy:T[3, 4, 5] y:T[3, 4, 5] w:T[5, 5]",
             "recurrent_grad(%dy, %y, %w) {kind=rnn}", .f32_only = true),

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
    ROW_WITH("update_adadelta", "w:var[20011] g:f32[20011] s:var[20011] v:var[20011]",
             "update_adadelta(%w, %g, %s, %v) {beta1=0.9, eps=1e-6}", .f32_only = true),
    ROW_WITH("update_adamax", "w:var[20011] g:f32[20011] s:var[20011] v:var[20011]",
             "update_adamax(%w, %g, %s, %v) {beta1=0.9, beta2=0.99, eps=1e-8}", .f32_only = true),
    ROW_WITH("update_nadam", "w:var[20011] g:f32[20011] s:var[20011] v:var[20011]",
             "update_nadam(%w, %g, %s, %v) {beta1=0.9, beta2=0.99, eps=1e-8}", .f32_only = true),
    ROW_WITH("update_amsgrad", "w:var[20011] g:f32[20011] s:var[20011] v:var[20011] u:var[20011]",
             "update_amsgrad(%w, %g, %s, %v, %u) {beta1=0.9, beta2=0.99, eps=1e-8}",
             .f32_only = true),
    ROW_WITH("update_ftrl", "w:var[20011] g:f32[20011] s:var[20011] v:var[20011]",
             "update_ftrl(%w, %g, %s, %v) {eps=1, l1=0.1}", .f32_only = true),
    ROW_WITH("update_moment", "w:var[20011] g:f32[20011]", "update_moment(%w, %g) {is_square=1}",
             .f32_only = true),
    ROW_WITH("lamb_direction", "m:f32[20011] v:f32[20011] w:f32[20011]",
             "lamb_direction(%m, %v, %w)", .f32_only = true),
    ROW_WITH("square_sum", "x:T[20011]", "square_sum(%x)", .f32_only = true),
    ROW_WITH("max_abs", "x:T[20011]", "max_abs(%x)", .f32_only = true),
    ROW_WITH("update_scale", "l:f64[] c:f64[] p:f64[] s:f64[]", "update_scale(%l, %c, %p, %s)",
             .f32_only = true, .loose = 4),
    {.op = "update_loss_scale", .exempt = "its input is a flag, and NaN says: not applied"},
    {.op = "residual", .exempt = "does nothing by itself"},
    ROW_WITH("print", "x:T[53]", "print(%x) {text=x}", .no_gpu = true),
    {.op = "assert", .exempt = "its condition is a bool, and x passes as it is"},
};
const int n_nan_rows = (int)(sizeof(nan_rows) / sizeof(nan_rows[0]));
_Static_assert(sizeof(nan_rows) / sizeof(nan_rows[0]) <= NAN_ROWS_MOST, "room in nan.c");
