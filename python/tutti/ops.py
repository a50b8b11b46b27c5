"""Ops: functions of tensors. On symbols they add nodes to a graph, on arrays they compute.

Written by python/generate.py from include/tutti/ops.h and the catalogue; not edited by hand.
"""
from ._tensor import call as _call
from ._tensor import split

__all__ = [
    "abs",
    "activation",
    "add",
    "argmax",
    "assert_",
    "assign",
    "attention",
    "avg_pool2d",
    "batch_norm",
    "broadcast",
    "cast",
    "clip",
    "concat",
    "conv2d",
    "conv2d_transpose",
    "cos",
    "count",
    "cross_entropy",
    "depthwise_conv2d",
    "div",
    "dropout",
    "elu",
    "embedding",
    "equal",
    "erf",
    "exp",
    "expand_dims",
    "flatten",
    "gather",
    "gaussian_noise",
    "gelu",
    "gelu_erf",
    "global_avg_pool2d",
    "global_max_pool2d",
    "glu",
    "greater",
    "greater_equal",
    "hard_sigmoid",
    "hard_swish",
    "identity",
    "label_rank",
    "layer_norm",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logsumexp",
    "matmul",
    "max",
    "max_abs",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mish",
    "mul",
    "neg",
    "not_equal",
    "one_hot",
    "pad",
    "pow",
    "prelu",
    "print",
    "recurrent",
    "relu",
    "relu6",
    "reshape",
    "rms_norm",
    "rsqrt",
    "scale",
    "scatter_add",
    "selu",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "slice",
    "softmax",
    "softplus",
    "softsign",
    "split",
    "sqrt",
    "square",
    "square_sum",
    "squeeze",
    "stack",
    "stop_gradient",
    "sub",
    "sum",
    "sum_like",
    "tanh",
    "tile",
    "transpose",
    "update_adadelta",
    "update_adagrad",
    "update_adam",
    "update_adamax",
    "update_adamw",
    "update_amsgrad",
    "update_ema",
    "update_ftrl",
    "update_lion",
    "update_loss_scale",
    "update_nadam",
    "update_rmsprop",
    "update_scale",
    "update_sgd",
    "where",
]


def print(x, label):
    """reports the value when it is computed, and returns it."""
    return _call("tt_print", (x, label))


def assert_(x, cond, message):
    """fails the run unless every element of the condition is true; returns x."""
    return _call("tt_assert", (x, cond, message))


def neg(x):
    """-x."""
    return _call("tt_neg", (x,))


def abs(x):
    """|x|."""
    return _call("tt_abs", (x,))


def sqrt(x):
    """square root."""
    return _call("tt_sqrt", (x,))


def rsqrt(x):
    """1 / sqrt(x)."""
    return _call("tt_rsqrt", (x,))


def exp(x):
    """e^x."""
    return _call("tt_exp", (x,))


def log(x):
    """natural logarithm."""
    return _call("tt_log", (x,))


def sin(x):
    """sine, x in radians."""
    return _call("tt_sin", (x,))


def cos(x):
    """cosine, x in radians."""
    return _call("tt_cos", (x,))


def tanh(x):
    """hyperbolic tangent."""
    return _call("tt_tanh", (x,))


def sigmoid(x):
    """1 / (1 + e^-x)."""
    return _call("tt_sigmoid", (x,))


def relu(x):
    """max(x, 0)."""
    return _call("tt_relu", (x,))


def gelu(x):
    """gelu, tanh form."""
    return _call("tt_gelu", (x,))


def gelu_erf(x):
    """gelu, exact form."""
    return _call("tt_gelu_erf", (x,))


def silu(x):
    """x sigmoid(x)."""
    return _call("tt_silu", (x,))


def softplus(x):
    """log(1 + e^x)."""
    return _call("tt_softplus", (x,))


def selu(x):
    """1.0507 x for x > 0, else 1.7581 (e^x - 1)."""
    return _call("tt_selu", (x,))


def relu6(x):
    """min(6, max(0, x))."""
    return _call("tt_relu6", (x,))


def mish(x):
    """x tanh(softplus(x))."""
    return _call("tt_mish", (x,))


def hard_sigmoid(x):
    """min(1, max(0, x / 6 + 1/2))."""
    return _call("tt_hard_sigmoid", (x,))


def hard_swish(x):
    """x hard_sigmoid(x)."""
    return _call("tt_hard_swish", (x,))


def softsign(x):
    """x / (1 + |x|)."""
    return _call("tt_softsign", (x,))


def square(x):
    """x x."""
    return _call("tt_square", (x,))


def erf(x):
    """error function."""
    return _call("tt_erf", (x,))


def sign(x):
    """-1, 0 or 1."""
    return _call("tt_sign", (x,))


def logical_not(x):
    """not x."""
    return _call("tt_logical_not", (x,))


def add(a, b):
    """a + b."""
    return _call("tt_add", (a, b))


def sub(a, b):
    """a - b."""
    return _call("tt_sub", (a, b))


def mul(a, b):
    """a b."""
    return _call("tt_mul", (a, b))


def div(a, b):
    """a / b."""
    return _call("tt_div", (a, b))


def pow(a, b):
    """a to the power b."""
    return _call("tt_pow", (a, b))


def minimum(a, b):
    """a < b ? a : b."""
    return _call("tt_minimum", (a, b))


def maximum(a, b):
    """a > b ? a : b."""
    return _call("tt_maximum", (a, b))


def equal(a, b):
    """a == b."""
    return _call("tt_equal", (a, b))


def not_equal(a, b):
    """a != b."""
    return _call("tt_not_equal", (a, b))


def less(a, b):
    """a < b."""
    return _call("tt_less", (a, b))


def less_equal(a, b):
    """a <= b."""
    return _call("tt_less_equal", (a, b))


def greater(a, b):
    """a > b."""
    return _call("tt_greater", (a, b))


def greater_equal(a, b):
    """a >= b."""
    return _call("tt_greater_equal", (a, b))


def logical_and(a, b):
    """a and b."""
    return _call("tt_logical_and", (a, b))


def logical_or(a, b):
    """a or b."""
    return _call("tt_logical_or", (a, b))


def leaky_relu(x, slope):
    """x > 0 ? x : slope x."""
    return _call("tt_leaky_relu", (x, slope))


def elu(x, alpha):
    """x > 0 ? x : alpha (e^x - 1)."""
    return _call("tt_elu", (x, alpha))


def clip(x, low, high):
    """min(high, max(low, x))."""
    return _call("tt_clip", (x, low, high))


def scale(x, factor, offset):
    """fma(x, factor, offset)."""
    return _call("tt_scale", (x, factor, offset))


def where(cond, a, b):
    """cond ? a : b."""
    return _call("tt_where", (cond, a, b))


def cast(x, dtype):
    """x converted to another element type."""
    return _call("tt_cast", (x, dtype))


def identity(x):
    """x."""
    return _call("tt_identity", (x,))


def stop_gradient(x):
    """x; no gradient flows through it."""
    return _call("tt_stop_gradient", (x,))


def broadcast(x, like):
    """x broadcast to the shape of like."""
    return _call("tt_broadcast", (x, like))


def sum_like(x, like):
    """Its gradient."""
    return _call("tt_sum_like", (x, like))


def activation(x, act):
    """Activation of its inputs."""
    return _call("tt_activation", (x, act))


def glu(x, act):
    """Gated linear unit: a act(b), a and b the halves of the last axis. GLU has act TT_SIGMOID."""
    return _call("tt_glu", (x, act))


def prelu(x, slope):
    """X > 0 ? x : slope x; slope is a tensor that broadcasts to x."""
    return _call("tt_prelu", (x, slope))


def sum(x, *, axis=None, keep_dims=None):
    """sum over axes."""
    return _call("tt_sum_with", (x,), axis=axis, keep_dims=keep_dims)


def mean(x, *, axis=None, keep_dims=None):
    """Mean of its inputs."""
    return _call("tt_mean_with", (x,), axis=axis, keep_dims=keep_dims)


def max(x, *, axis=None, keep_dims=None):
    """maximum over axes."""
    return _call("tt_max_with", (x,), axis=axis, keep_dims=keep_dims)


def min(x, *, axis=None, keep_dims=None):
    """minimum over axes."""
    return _call("tt_min_with", (x,), axis=axis, keep_dims=keep_dims)


def logsumexp(x, *, axis=None, keep_dims=None):
    """Logsumexp of its inputs."""
    return _call("tt_logsumexp_with", (x,), axis=axis, keep_dims=keep_dims)


def argmax(x, axis):
    """index of the maximum along an axis; the lowest index among equals."""
    return _call("tt_argmax", (x, axis))


def count(x, *, axis=None, keep_dims=None):
    """number of entries that a reduction over these axes covers, over the global batch."""
    return _call("tt_count", (x,), axis=axis, keep_dims=keep_dims)


def matmul(a, b, *, transpose_a=None, transpose_b=None, bias=None, act=None):
    """matrix product act(a b + bias); leading axes broadcast."""
    return _call(
        "tt_matmul_with",
        (a, b),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        bias=bias,
        act=act,
    )


def conv2d(
    x,
    w,
    *,
    stride=None,
    padding=None,
    pad=None,
    bias=None,
    act=None,
    dilation=None,
    groups=None,
):
    """2-D convolution of x [batch, h, w, cin] with w [kh, kw, cin, cout], with optional bias and
    act."""
    return _call(
        "tt_conv2d_with",
        (x, w),
        stride=stride,
        padding=padding,
        pad=pad,
        bias=bias,
        act=act,
        dilation=dilation,
        groups=groups,
    )


def depthwise_conv2d(
    x,
    w,
    *,
    stride=None,
    padding=None,
    pad=None,
    bias=None,
    act=None,
    dilation=None,
    groups=None,
):
    """depthwise 2-D convolution of x with w [kh, kw, c, m], with optional bias and act."""
    return _call(
        "tt_depthwise_conv2d_with",
        (x, w),
        stride=stride,
        padding=padding,
        pad=pad,
        bias=bias,
        act=act,
        dilation=dilation,
        groups=groups,
    )


def conv2d_transpose(x, w, *, stride=None, padding=None, pad=None, extra=None, bias=None, act=None):
    """Transposed convolution: what conv2d's gradient does with dy. x is [batch, h, w, cin], w is
    [kh, kw, cout, cin]; the output has (h - 1) stride + kh - padding + extra rows."""
    return _call(
        "tt_conv2d_transpose_with",
        (x, w),
        stride=stride,
        padding=padding,
        pad=pad,
        extra=extra,
        bias=bias,
        act=act,
    )


def max_pool2d(x, *, size=None, stride=None, padding=None, pad=None):
    """2-D max pooling."""
    return _call("tt_max_pool2d_with", (x,), size=size, stride=stride, padding=padding, pad=pad)


def avg_pool2d(x, *, size=None, stride=None, padding=None, pad=None):
    """2-D average pooling; padded entries do not count."""
    return _call("tt_avg_pool2d_with", (x,), size=size, stride=stride, padding=padding, pad=pad)


def global_avg_pool2d(x):
    """[batch, c]."""
    return _call("tt_global_avg_pool2d", (x,))


def global_max_pool2d(x):
    """[batch, c]."""
    return _call("tt_global_max_pool2d", (x,))


def layer_norm(x, gamma, beta, *, eps=None):
    """normalises the last axis to mean 0 and standard deviation 1; also outputs the mean and 1 /
    deviation."""
    return _call("tt_layer_norm_with", (x, gamma, beta), eps=eps)


def rms_norm(x, gamma, *, eps=None):
    """divides the last axis by its root mean square; also outputs the factor."""
    return _call("tt_rms_norm_with", (x, gamma), eps=eps)


def batch_norm(
    x,
    gamma,
    beta,
    mean,
    var,
    *,
    eps=None,
    momentum=None,
    infer=None,
    act=None,
    residual=None,
    over=None,
):
    """Normalises over all axes but the last."""
    return _call(
        "tt_batch_norm_with",
        (x, gamma, beta, mean, var),
        eps=eps,
        momentum=momentum,
        infer=infer,
        act=act,
        residual=residual,
        over=over,
    )


def softmax(x):
    """exp(x) / sum(exp(x)) over the last axis."""
    return _call("tt_softmax", (x,))


def log_softmax(x):
    """x - log(sum(exp(x))) over the last axis."""
    return _call("tt_log_softmax", (x,))


def cross_entropy(logits, labels, *, smoothing=None, has_ignore=None, ignore=None):
    """cross entropy per row from logits and labels; also outputs the row's maximum and sum of
    exp."""
    return _call(
        "tt_cross_entropy_with",
        (logits, labels),
        smoothing=smoothing,
        has_ignore=has_ignore,
        ignore=ignore,
    )


def label_rank(x, labels):
    """number of classes with a higher score than the label."""
    return _call("tt_label_rank", (x, labels))


def embedding(table, ids):
    """looks up rows of a table by id."""
    return _call("tt_embedding", (table, ids))


def gather(x, ids, axis):
    """picks positions of one axis by id."""
    return _call("tt_gather", (x, ids, axis))


def scatter_add(x, ids, n):
    """a tensor of zeros with parts of x added at the ids."""
    return _call("tt_scatter_add", (x, ids, n))


def one_hot(ids, depth, dtype):
    """one-hot encoding: 1 at each id, 0 elsewhere."""
    return _call("tt_one_hot", (ids, depth, dtype))


def reshape(x, shape):
    """changes the shape."""
    return _call("tt_reshape", (x, shape))


def flatten(x):
    """[batch, product]."""
    return _call("tt_flatten", (x,))


def transpose(x, order):
    """permutes the axes."""
    return _call("tt_transpose", (x, order))


def concat(xs, axis):
    """concatenates the inputs along an axis."""
    return _call("tt_concat", (xs, axis))


def stack(xs, axis):
    """Stack of its inputs."""
    return _call("tt_stack", (xs, axis))


def slice(x, axis, begin, end):
    """a range of positions of one axis."""
    return _call("tt_slice", (x, axis, begin, end))


def pad(x, axis, before, after):
    """pads an axis with zeros before and after."""
    return _call("tt_pad", (x, axis, before, after))


def tile(x, axis, times):
    """repeats x along an axis."""
    return _call("tt_tile", (x, axis, times))


def squeeze(x, axis):
    """Squeeze of its inputs."""
    return _call("tt_squeeze", (x, axis))


def expand_dims(x, axis):
    """Expand_dims of its inputs."""
    return _call("tt_expand_dims", (x, axis))


def dropout(x, rate):
    """dropout: zeroes random elements and scales the others."""
    return _call("tt_dropout", (x, rate))


def gaussian_noise(x, deviation):
    """adds normal random numbers."""
    return _call("tt_gaussian_noise", (x, deviation))


def attention(
    q,
    k,
    v,
    *,
    heads=None,
    kv_heads=None,
    causal=None,
    scale=None,
    mask=None,
    window=None,
    alibi=None,
):
    """attention per head, softmax(q k^T scale) v; also outputs the log-sum-exp of each query."""
    return _call(
        "tt_attention_with",
        (q, k, v),
        heads=heads,
        kv_heads=kv_heads,
        causal=causal,
        scale=scale,
        mask=mask,
        window=window,
        alibi=alibi,
    )


def assign(var, value):
    """assigns a new value to a variable."""
    return _call("tt_assign", (var, value))


def update_sgd(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of sgd on a variable."""
    return _call(
        "tt_update_sgd_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_adam(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of adam on a variable."""
    return _call(
        "tt_update_adam_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_adamw(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of adamw on a variable."""
    return _call(
        "tt_update_adamw_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_rmsprop(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of rmsprop on a variable."""
    return _call(
        "tt_update_rmsprop_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_adagrad(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of adagrad on a variable."""
    return _call(
        "tt_update_adagrad_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_lion(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of lion on a variable."""
    return _call(
        "tt_update_lion_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_adadelta(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of adadelta on a variable."""
    return _call(
        "tt_update_adadelta_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_adamax(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of adamax on a variable."""
    return _call(
        "tt_update_adamax_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_nadam(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of nadam on a variable."""
    return _call(
        "tt_update_nadam_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_amsgrad(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of amsgrad on a variable."""
    return _call(
        "tt_update_amsgrad_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_ftrl(
    var,
    grad,
    *,
    lr_scale=None,
    weight_decay=None,
    momentum=None,
    nesterov=None,
    beta1=None,
    beta2=None,
    eps=None,
    initial=None,
    scale=None,
    exact=None,
    l1=None,
    l2=None,
):
    """one step of ftrl on a variable."""
    return _call(
        "tt_update_ftrl_with",
        (var, grad),
        lr_scale=lr_scale,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
        initial=initial,
        scale=scale,
        exact=exact,
        l1=l1,
        l2=l2,
    )


def update_ema(var, value, *, decay=None, scale=None):
    """updates an exponential moving average."""
    return _call("tt_update_ema_with", (var, value), decay=decay, scale=scale)


def square_sum(x):
    """the sum of the squares of all elements, f64."""
    return _call("tt_square_sum", (x,))


def max_abs(xs):
    """the largest magnitude of 65,536 elements each, or of several tensors; a NaN wins."""
    return _call("tt_max_abs", (xs,))


def update_scale(
    loss_sum,
    count,
    p,
    *,
    squares=None,
    clip=None,
    guard=None,
    largest=None,
    square=None,
    step=None,
):
    """the factor on the gradients, from loss, count, p and square sums; the norm; whether to apply
    the step."""
    return _call(
        "tt_update_scale_with",
        (loss_sum, count, p),
        squares=squares,
        clip=clip,
        guard=guard,
        largest=largest,
        square=square,
        step=step,
    )


def update_loss_scale(scale, good, go, *, every=None, most=None):
    """halves the loss scale after a skipped step, doubles it after many good steps."""
    return _call("tt_update_loss_scale_with", (scale, good, go), every=every, most=most)


def recurrent(z, w, *, kind=None, bias=None, reverse=None):
    """rnn, gru or lstm over all steps of z [batch, time, gates h] with w [h, gates h]."""
    return _call("tt_recurrent_with", (z, w), kind=kind, bias=bias, reverse=reverse)
