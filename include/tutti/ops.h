/*
 * ops.h - builders of ops. Each returns its tensor, or NULL on failure (see graph.h).
 *
 * Tensors are row-major; images are [batch, height, width, channels]; negative axes count from the
 * end. Binary ops broadcast as in NumPy. Every op is called tt_NAME; a layer, which makes its own
 * weights, tt_layer_NAME (model.h): tt_conv2d() is the op, tt_layer_conv2d() the layer. The
 * definition, the order of additions and the gradient of each op are in docs/arithmetic.md and at
 * the top of its source file. NaN propagates; docs/arithmetic.md has the exceptions, and tables
 * of special values (infinities, signed zeros).
 */
#ifndef TUTTI_OPS_H
#define TUTTI_OPS_H

#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- elementwise -----------------------------------------------------------------------------

// clang-format off
#define TT_UNARY_LIST(X)                                                                         \
    X(neg) X(abs) X(sqrt) X(rsqrt) X(exp) X(log) X(sin) X(cos) X(tanh) X(sigmoid) X(relu)        \
    X(gelu) X(gelu_erf) X(silu) X(softplus) X(selu) X(relu6) X(mish) X(hard_sigmoid)             \
    X(hard_swish) X(softsign) X(square) X(erf) X(sign) X(logical_not)
#define TT_BINARY_LIST(X)                                                                        \
    X(add) X(sub) X(mul) X(div) X(pow) X(minimum) X(maximum) X(equal) X(not_equal) X(less)       \
    X(less_equal) X(greater) X(greater_equal) X(logical_and) X(logical_or)
// clang-format on

/*
 * minimum and maximum: where a equals b, b gets the whole gradient and a gets 0. pow is C's; its
 * gradient by a is 0 where b is 0.
 */
#define TT_UNARY_BUILDER(n)  TT_API tt_tensor *tt_##n(tt_graph *g, tt_tensor *x);
#define TT_BINARY_BUILDER(n) TT_API tt_tensor *tt_##n(tt_graph *g, tt_tensor *a, tt_tensor *b);
TT_UNARY_LIST(TT_UNARY_BUILDER)
TT_BINARY_LIST(TT_BINARY_BUILDER)

TT_API tt_tensor *tt_leaky_relu(tt_graph *g, tt_tensor *x, double slope);
TT_API tt_tensor *tt_elu(tt_graph *g, tt_tensor *x, double alpha);
TT_API tt_tensor *tt_clip(tt_graph *g, tt_tensor *x, double low, double high);
TT_API tt_tensor *tt_scale(tt_graph *g, tt_tensor *x, double factor, double offset); // fma(x, f, o)
TT_API tt_tensor *tt_where(tt_graph *g, tt_tensor *cond, tt_tensor *a, tt_tensor *b);
// To an integer: the fraction is cut off and the nearest that fits is taken; NaN gives 0.
TT_API tt_tensor *tt_cast(tt_graph *g, tt_tensor *x, tt_dtype dtype);
TT_API tt_tensor *tt_identity(tt_graph *g, tt_tensor *x);
TT_API tt_tensor *tt_stop_gradient(tt_graph *g, tt_tensor *x);
TT_API tt_tensor *tt_broadcast(tt_graph *g, tt_tensor *x, tt_tensor *like); // to the shape of like
TT_API tt_tensor *tt_sum_like(tt_graph *g, tt_tensor *x, tt_tensor *like);  // its gradient

// Activations that dense and convolution nodes can apply.
typedef enum tt_act {
    TT_LINEAR = 0,
    TT_RELU = 1,
    TT_GELU = 2, // tanh form
    TT_GELU_ERF = 3,
    TT_SIGMOID = 4,
    TT_TANH = 5,
    TT_SILU = 6,
    TT_ELU = 7,
    TT_LEAKY_RELU = 8, // slope 0.01
    TT_SOFTPLUS = 9,
    TT_SOFTMAX = 10, // over the last axis; for layers only, not for tt_matmul() and others
    TT_SELU = 11,    // from here on a node of its own, which follows the product
    TT_RELU6 = 12,
    TT_MISH = 13,
    TT_HARD_SIGMOID = 14, // min(1, max(0, x / 6 + 1/2))
    TT_HARD_SWISH = 15,   // x hard_sigmoid(x)
    TT_SOFTSIGN = 16,
} tt_act;
TT_API tt_tensor *tt_activation(tt_graph *g, tt_tensor *x, tt_act act);
// Gated linear unit: a act(b), a and b the halves of the last axis. GLU has act TT_SIGMOID.
TT_API tt_tensor *tt_glu(tt_graph *g, tt_tensor *x, tt_act act);
// x > 0 ? x : slope x; slope is a tensor that broadcasts to x.
TT_API tt_tensor *tt_prelu(tt_graph *g, tt_tensor *x, tt_tensor *slope);

// ---- reductions ------------------------------------------------------------------------------

typedef struct tt_reduce_opts {
    size_t opts_size;
    int axis;     // one axis (TT_FIRST for the first); 0: use axes
    tt_axes axes; // several axes; default: all
    bool keep_dims;
} tt_reduce_opts;
typedef tt_reduce_opts tt_sum_opts, tt_mean_opts, tt_max_opts, tt_min_opts, tt_logsumexp_opts;
TT_API tt_tensor *tt_sum_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts);
TT_API tt_tensor *tt_mean_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts);
// max, min: the first of several equal elements gets the whole gradient, the others get 0.
TT_API tt_tensor *tt_max_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts);
TT_API tt_tensor *tt_min_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts);
TT_API tt_tensor *tt_logsumexp_with(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts);
#define tt_sum(...)       TT_CALL2(tt_sum, __VA_ARGS__, )
#define tt_mean(...)      TT_CALL2(tt_mean, __VA_ARGS__, )
#define tt_max(...)       TT_CALL2(tt_max, __VA_ARGS__, )
#define tt_min(...)       TT_CALL2(tt_min, __VA_ARGS__, )
#define tt_logsumexp(...) TT_CALL2(tt_logsumexp, __VA_ARGS__, )
// i32; ties: the lowest index; the first NaN if there is one
TT_API tt_tensor *tt_argmax(tt_graph *g, tt_tensor *x, int axis);
// The number of entries that a reduction of x over these axes covers, over the global batch; f32.
TT_API tt_tensor *tt_count(tt_graph *g, tt_tensor *x, const tt_reduce_opts *opts);

// ---- products --------------------------------------------------------------------------------

typedef struct tt_matmul_opts {
    size_t opts_size;
    bool transpose_a, transpose_b; // the last two axes
    tt_tensor *bias;               // [n], added before the activation
    tt_act act;
} tt_matmul_opts;
/*
 * y = act(a b + bias); a is [..., m, k], b is [..., k, n], leading axes broadcast. If b has rank 2,
 * the leading axes of a are rows. Bias and activation are part of the node, without extra rounding.
 */
TT_API tt_tensor *tt_matmul_with(tt_graph *g, tt_tensor *a, tt_tensor *b,
                                 const tt_matmul_opts *opts);
#define tt_matmul(...) TT_CALL3(tt_matmul, __VA_ARGS__, )

typedef enum tt_padding {
    TT_VALID = 0,
    TT_SAME = 1, // as in TensorFlow: the extra row or column goes to the end
    TT_EXPLICIT = 2,
} tt_padding;
typedef struct tt_conv2d_opts {
    size_t opts_size;
    int stride[2]; // height, width; default 1
    tt_padding padding;
    int pad[4]; // top, bottom, left, right, with TT_EXPLICIT
    tt_tensor *bias;
    tt_act act;
    int dilation[2]; // distance of neighbouring taps; default 1; not for depthwise_conv2d
    int groups;      // of channels, each convolved separately: w is [kh, kw, cin / groups, cout];
                     // default 1; not for depthwise_conv2d
} tt_conv2d_opts;
typedef tt_conv2d_opts tt_depthwise_conv2d_opts;
// x [batch, h, w, cin], w [kh, kw, cin, cout] (depthwise: [kh, kw, cin, multiplier]).
TT_API tt_tensor *tt_conv2d_with(tt_graph *g, tt_tensor *x, tt_tensor *w,
                                 const tt_conv2d_opts *opts);
TT_API tt_tensor *tt_depthwise_conv2d_with(tt_graph *g, tt_tensor *x, tt_tensor *w,
                                           const tt_conv2d_opts *opts);
#define tt_conv2d(...)           TT_CALL3(tt_conv2d, __VA_ARGS__, )
#define tt_depthwise_conv2d(...) TT_CALL3(tt_depthwise_conv2d, __VA_ARGS__, )

typedef struct tt_conv2d_transpose_opts {
    size_t opts_size;
    int stride[2];      // default 1
    tt_padding padding; // of the convolution that this reverses; same: the output is h stride
    int pad[4];         // rows and columns removed from the output, with TT_EXPLICIT
    int extra[2];       // rows and columns added at the end of the output; below stride
    tt_tensor *bias;
    tt_act act;
} tt_conv2d_transpose_opts;
/*
 * Transposed convolution: what conv2d's gradient does with dy. x is [batch, h, w, cin], w is [kh,
 * kw, cout, cin]; the output has (h - 1) stride + kh - padding + extra rows.
 */
TT_API tt_tensor *tt_conv2d_transpose_with(tt_graph *g, tt_tensor *x, tt_tensor *w,
                                           const tt_conv2d_transpose_opts *opts);
#define tt_conv2d_transpose(...) TT_CALL3(tt_conv2d_transpose, __VA_ARGS__, )

// ---- pooling and norms -----------------------------------------------------------------------

typedef struct tt_pool_opts {
    size_t opts_size;
    int size[2];   // window; required
    int stride[2]; // default: size
    tt_padding padding;
    int pad[4];
} tt_pool_opts;
typedef tt_pool_opts tt_max_pool2d_opts, tt_avg_pool2d_opts;
// The first of several equal maxima in a window, row by row, gets the whole gradient.
TT_API tt_tensor *tt_max_pool2d_with(tt_graph *g, tt_tensor *x, const tt_pool_opts *opts);
TT_API tt_tensor *tt_avg_pool2d_with(tt_graph *g, tt_tensor *x, const tt_pool_opts *opts);
#define tt_max_pool2d(...) TT_CALL2(tt_max_pool2d, __VA_ARGS__, )
#define tt_avg_pool2d(...) TT_CALL2(tt_avg_pool2d, __VA_ARGS__, )  // padded entries do not count
TT_API tt_tensor *tt_global_avg_pool2d(tt_graph *g, tt_tensor *x); // [batch, c]
TT_API tt_tensor *tt_global_max_pool2d(tt_graph *g, tt_tensor *x);

typedef struct tt_norm_opts {
    size_t opts_size;
    double eps; // default 1e-5; TT_ZERO: 0
} tt_norm_opts;
typedef tt_norm_opts tt_layer_norm_opts, tt_rms_norm_opts;
// Normalise over the last axis. gamma and beta are [c] and may be NULL.
TT_API tt_tensor *tt_layer_norm_with(tt_graph *g, tt_tensor *x, tt_tensor *gamma, tt_tensor *beta,
                                     const tt_norm_opts *opts);
TT_API tt_tensor *tt_rms_norm_with(tt_graph *g, tt_tensor *x, tt_tensor *gamma,
                                   const tt_norm_opts *opts);
#define tt_layer_norm(...) TT_CALL4(tt_layer_norm, __VA_ARGS__, )
#define tt_rms_norm(...)   TT_CALL3(tt_rms_norm, __VA_ARGS__, )

// The rows over which batch norm computes its statistics.
typedef enum tt_over {
    TT_OVER_BATCH = 0, // the whole batch
    TT_OVER_LANE = 1,  // each lane separately
} tt_over;

typedef struct tt_batch_norm_opts {
    size_t opts_size;
    double eps;          // default 1e-5; TT_ZERO: 0
    double momentum;     // of the running statistics: new = momentum old + (1 - momentum) batch;
                         // default 0.9; TT_ZERO: 0
    bool infer;          // inference: use the running statistics, do not update them
    tt_act act;          // applied as part of the node
    tt_tensor *residual; // added before the activation
    tt_tensor **new_mean, **new_var; // out: updates of the running statistics; run them as targets
    tt_over over; // default: whole batch; per lane: running statistics are the mean over lanes
} tt_batch_norm_opts;
typedef struct tt_batch_norm_vars {
    tt_tensor *gamma, *beta, *mean, *var; // each [c]; mean and var are variables
} tt_batch_norm_vars;
// Normalises over all axes but the last.
TT_API tt_tensor *tt_batch_norm_with(tt_graph *g, tt_tensor *x, tt_batch_norm_vars vars,
                                     const tt_batch_norm_opts *opts);
#define tt_batch_norm(...) TT_CALL3(tt_batch_norm, __VA_ARGS__, )

// ---- softmax and losses ----------------------------------------------------------------------

TT_API tt_tensor *tt_softmax(tt_graph *g, tt_tensor *x);     // over the last axis
TT_API tt_tensor *tt_log_softmax(tt_graph *g, tt_tensor *x); // over the last axis

typedef struct tt_cross_entropy_opts {
    size_t opts_size;
    double smoothing; // label smoothing
    bool has_ignore;  // rows with the label ignore have loss 0 and no gradient
    int64_t ignore;
} tt_cross_entropy_opts;
/*
 * One loss per row, [...], from logits [..., c] and labels, which are integers [...] or
 * probabilities [..., c]. The softmax is part of the node and never stored.
 */
TT_API tt_tensor *tt_cross_entropy_with(tt_graph *g, tt_tensor *logits, tt_tensor *labels,
                                        const tt_cross_entropy_opts *opts);
#define tt_cross_entropy(...) TT_CALL3(tt_cross_entropy, __VA_ARGS__, )
// For each row of x [..., c], the number of classes that rank above its label (ties: lowest index
// first), i32 [...]. 0: the label is the argmax. A label outside [0, c) has rank c.
TT_API tt_tensor *tt_label_rank(tt_graph *g, tt_tensor *x, tt_tensor *labels);

// ---- indices ---------------------------------------------------------------------------------

TT_API tt_tensor *tt_embedding(tt_graph *g, tt_tensor *table, tt_tensor *ids); // [..., c]
TT_API tt_tensor *tt_gather(tt_graph *g, tt_tensor *x, tt_tensor *ids, int axis);
// A tensor [n, ...] of zeros to which the rows of x are added at ids, in order.
TT_API tt_tensor *tt_scatter_add(tt_graph *g, tt_tensor *x, tt_tensor *ids, int64_t n);
TT_API tt_tensor *tt_one_hot(tt_graph *g, tt_tensor *ids, int64_t depth, tt_dtype dtype);

// ---- shapes ----------------------------------------------------------------------------------

TT_API tt_tensor *tt_reshape(tt_graph *g, tt_tensor *x, tt_shape shape);  // 0: copy the dimension
TT_API tt_tensor *tt_flatten(tt_graph *g, tt_tensor *x);                  // [batch, product]
TT_API tt_tensor *tt_transpose(tt_graph *g, tt_tensor *x, tt_axes order); // none: reversed
TT_API tt_tensor *tt_concat(tt_graph *g, tt_tensor *const *xs, int n, int axis);
TT_API tt_tensor *tt_stack(tt_graph *g, tt_tensor *const *xs, int n, int axis);
TT_API tt_status tt_split_at(tt_graph *g, tt_tensor *x, int axis, int n,
                             tt_tensor **out); // n equal
TT_API tt_tensor *tt_slice(tt_graph *g, tt_tensor *x, int axis, int64_t begin, int64_t end);
TT_API tt_tensor *tt_pad(tt_graph *g, tt_tensor *x, int axis, int64_t before, int64_t after);
TT_API tt_tensor *tt_tile(tt_graph *g, tt_tensor *x, int axis, int64_t times);
TT_API tt_tensor *tt_squeeze(tt_graph *g, tt_tensor *x, int axis);
TT_API tt_tensor *tt_expand_dims(tt_graph *g, tt_tensor *x, int axis);

// ---- dropout and attention -------------------------------------------------------------------

// Zeroes each element with probability rate and scales the rest by 1 / (1 - rate).
TT_API tt_tensor *tt_dropout(tt_graph *g, tt_tensor *x, double rate);
// x + deviation z, z normal random numbers of the step, the row and the element, as in dropout.
TT_API tt_tensor *tt_gaussian_noise(tt_graph *g, tt_tensor *x, double deviation);

typedef struct tt_attention_opts {
    size_t opts_size;
    int heads;    // heads of q; required
    int kv_heads; // heads of k and v; default heads; must divide heads
    bool causal;
    double scale;    // default 1 / sqrt(d)
    tt_tensor *mask; // bool [tq, tk], or [batch, tq, tk]; false: not attended
    int64_t window;  // query i attends to keys j with |i - j| < window only; default: to all
    bool alibi;      // subtract slope |i - j| from scores, a slope for each head (ALiBi)
} tt_attention_opts;
/*
 * softmax(q k^T scale) v per head; q is [batch, t, heads d], k and v are [batch, tk, kv_heads d].
 * The matrix of scores is never stored. A query that attends to no key has y = 0. If k and v are
 * NULL, q is [batch, t, (heads + 2 kv_heads) d] and holds all three.
 */
TT_API tt_tensor *tt_attention_with(tt_graph *g, tt_tensor *q, tt_tensor *k, tt_tensor *v,
                                    const tt_attention_opts *opts);
#define tt_attention(...) TT_CALL4(tt_attention, __VA_ARGS__, )

// ---- updates: one node per variable; lr and grad_scale come from the run ---------------------

typedef struct tt_update_opts {
    size_t opts_size;
    double lr_scale;     // factor on the run's learning rate; default 1
    double weight_decay; // adamw, lion: decoupled; the others: added to the gradient
    double momentum;     // sgd, rmsprop; default 0
    bool nesterov;
    double beta1,
        beta2;        // adam: default 0.9, 0.999; lion: 0.9, 0.99; rmsprop: beta1 is its decay, 0.9
    double eps;       // default 1e-8 (adam and the like), 1e-7 (rmsprop, adagrad), 1e-6 (adadelta)
    double initial;   // adagrad, ftrl: initial value of the sums; default 0.1
    tt_tensor *scale; // f32 scalar, factor on the gradient after grad_scale; not finite: no update
    bool exact;       // zero fields mean zero, not the default; otherwise TT_ZERO does
    double l1, l2;    // ftrl: strength of its penalties
} tt_update_opts;
typedef tt_update_opts tt_update_sgd_opts, tt_update_adam_opts, tt_update_adamw_opts,
    tt_update_rmsprop_opts, tt_update_adagrad_opts, tt_update_lion_opts, tt_update_adadelta_opts,
    tt_update_adamax_opts, tt_update_nadam_opts, tt_update_amsgrad_opts, tt_update_ftrl_opts;
TT_API tt_tensor *tt_assign(tt_graph *g, tt_tensor *var, tt_tensor *value);
TT_API tt_tensor *tt_update_sgd_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                     const tt_update_opts *opts);
TT_API tt_tensor *tt_update_adam_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                      const tt_update_opts *opts);
TT_API tt_tensor *tt_update_adamw_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                       const tt_update_opts *opts);
TT_API tt_tensor *tt_update_rmsprop_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                         const tt_update_opts *opts);
TT_API tt_tensor *tt_update_adagrad_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                         const tt_update_opts *opts);
TT_API tt_tensor *tt_update_lion_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                      const tt_update_opts *opts);
#define tt_update_sgd(...)     TT_CALL3(tt_update_sgd, __VA_ARGS__, )
#define tt_update_adam(...)    TT_CALL3(tt_update_adam, __VA_ARGS__, )
#define tt_update_adamw(...)   TT_CALL3(tt_update_adamw, __VA_ARGS__, )
#define tt_update_rmsprop(...) TT_CALL3(tt_update_rmsprop, __VA_ARGS__, )
#define tt_update_adagrad(...) TT_CALL3(tt_update_adagrad, __VA_ARGS__, )
#define tt_update_lion(...)    TT_CALL3(tt_update_lion, __VA_ARGS__, )
// adadelta: beta1 is the decay of both averages, default 0.9. ftrl: eps is its beta, default 0.
TT_API tt_tensor *tt_update_adadelta_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                          const tt_update_opts *opts);
TT_API tt_tensor *tt_update_adamax_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                        const tt_update_opts *opts);
TT_API tt_tensor *tt_update_nadam_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                       const tt_update_opts *opts);
TT_API tt_tensor *tt_update_amsgrad_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                         const tt_update_opts *opts);
TT_API tt_tensor *tt_update_ftrl_with(tt_graph *g, tt_tensor *var, tt_tensor *grad,
                                      const tt_update_opts *opts);
#define tt_update_adadelta(...) TT_CALL3(tt_update_adadelta, __VA_ARGS__, )
#define tt_update_adamax(...)   TT_CALL3(tt_update_adamax, __VA_ARGS__, )
#define tt_update_nadam(...)    TT_CALL3(tt_update_nadam, __VA_ARGS__, )
#define tt_update_amsgrad(...)  TT_CALL3(tt_update_amsgrad, __VA_ARGS__, )
#define tt_update_ftrl(...)     TT_CALL3(tt_update_ftrl, __VA_ARGS__, )

typedef struct tt_update_ema_opts {
    size_t opts_size;
    double decay;     // default 0.999
    tt_tensor *scale; // if not finite, there is no update; otherwise it is not used
} tt_update_ema_opts;
// Exponential moving average: var = decay var + (1 - decay) value; var = value at the first step
// that is applied.
TT_API tt_tensor *tt_update_ema_with(tt_graph *g, tt_tensor *var, tt_tensor *value,
                                     const tt_update_ema_opts *opts);
#define tt_update_ema(...) TT_CALL3(tt_update_ema, __VA_ARGS__, )

// The sum of the squares of all elements, f64.
TT_API tt_tensor *tt_square_sum(tt_graph *g, tt_tensor *x);

/*
 * The largest magnitude, NaN where one element is: of one tensor a number for every 65,536
 * elements, of several tensors one number. For tt_update_scale().
 */
TT_API tt_tensor *tt_max_abs(tt_graph *g, tt_tensor *const *xs, int n);

typedef struct tt_update_scale_opts {
    size_t opts_size;
    tt_tensor *const *squares; // tt_square_sum() of each gradient
    int n_squares;
    double clip; // clip all gradients together to this norm; 0: off
    bool guard;  // return NaN if the loss, the norm or a magnitude of largest is not finite, or if
                 // the update would make a value infinite
    tt_tensor **norm, **go;    // out: the norm; 1, or NaN if the factor is NaN
    tt_tensor *const *largest; // tt_max_abs() of gradients; used with guard
    int n_largest;
    double
        square;  // with largest: factor on the squares of gradients that the update keeps; 0: none
    double step; // with largest: the update adds the gradient times the learning rate times this
} tt_update_scale_opts;
/*
 * The factor on the gradients of an update, for tt_update_opts.scale, computed from scalars: the
 * sum of the loss terms, their count, and p, by which each term of the gradients was divided. It is
 * p / count (0 if count is 0), times clip / norm if the norm of the scaled gradients is above clip.
 */
TT_API tt_tensor *tt_update_scale_with(tt_graph *g, tt_tensor *loss_sum, tt_tensor *count,
                                       tt_tensor *p, const tt_update_scale_opts *opts);
#define tt_update_scale(...) TT_CALL4(tt_update_scale, __VA_ARGS__, )

typedef struct tt_update_loss_scale_opts {
    size_t opts_size;
    int64_t every;    // consecutive good steps after which the scale doubles; default 2000
    double most;      // largest scale; default 2^24
    tt_tensor **used; // out: the scale before this update
} tt_update_loss_scale_opts;
/*
 * Updates the loss scale of f16 training. scale and good (the number of consecutive applied steps)
 * are variables, f32 scalars; go comes from tt_update_scale(). The scale is halved, but not below
 * 1, after a step that was not applied. Returns the new scale.
 */
TT_API tt_tensor *tt_update_loss_scale_with(tt_graph *g, tt_tensor *scale, tt_tensor *good,
                                            tt_tensor *go, const tt_update_loss_scale_opts *opts);
#define tt_update_loss_scale(...) TT_CALL4(tt_update_loss_scale, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
