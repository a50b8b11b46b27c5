"""Ops: functions of tensors. On symbols they add nodes to a graph, on arrays they compute.

Written by python/generate.py from include/tutti/ops.h and the catalogue; not edited by hand.
"""
from collections.abc import Sequence

from ._lib import Dtype
from ._tensor import Tensor, TensorLike, split as split


def print(x: TensorLike, label: str) -> Tensor: ...


def assert_(x: TensorLike, cond: TensorLike, message: str) -> Tensor: ...


def neg(x: TensorLike) -> Tensor: ...


def abs(x: TensorLike) -> Tensor: ...


def sqrt(x: TensorLike) -> Tensor: ...


def rsqrt(x: TensorLike) -> Tensor: ...


def exp(x: TensorLike) -> Tensor: ...


def log(x: TensorLike) -> Tensor: ...


def sin(x: TensorLike) -> Tensor: ...


def cos(x: TensorLike) -> Tensor: ...


def tanh(x: TensorLike) -> Tensor: ...


def sigmoid(x: TensorLike) -> Tensor: ...


def relu(x: TensorLike) -> Tensor: ...


def gelu(x: TensorLike) -> Tensor: ...


def gelu_erf(x: TensorLike) -> Tensor: ...


def silu(x: TensorLike) -> Tensor: ...


def softplus(x: TensorLike) -> Tensor: ...


def selu(x: TensorLike) -> Tensor: ...


def relu6(x: TensorLike) -> Tensor: ...


def mish(x: TensorLike) -> Tensor: ...


def hard_sigmoid(x: TensorLike) -> Tensor: ...


def hard_swish(x: TensorLike) -> Tensor: ...


def softsign(x: TensorLike) -> Tensor: ...


def square(x: TensorLike) -> Tensor: ...


def erf(x: TensorLike) -> Tensor: ...


def sign(x: TensorLike) -> Tensor: ...


def logical_not(x: TensorLike) -> Tensor: ...


def add(a: TensorLike, b: TensorLike) -> Tensor: ...


def sub(a: TensorLike, b: TensorLike) -> Tensor: ...


def mul(a: TensorLike, b: TensorLike) -> Tensor: ...


def div(a: TensorLike, b: TensorLike) -> Tensor: ...


def pow(a: TensorLike, b: TensorLike) -> Tensor: ...


def minimum(a: TensorLike, b: TensorLike) -> Tensor: ...


def maximum(a: TensorLike, b: TensorLike) -> Tensor: ...


def equal(a: TensorLike, b: TensorLike) -> Tensor: ...


def not_equal(a: TensorLike, b: TensorLike) -> Tensor: ...


def less(a: TensorLike, b: TensorLike) -> Tensor: ...


def less_equal(a: TensorLike, b: TensorLike) -> Tensor: ...


def greater(a: TensorLike, b: TensorLike) -> Tensor: ...


def greater_equal(a: TensorLike, b: TensorLike) -> Tensor: ...


def logical_and(a: TensorLike, b: TensorLike) -> Tensor: ...


def logical_or(a: TensorLike, b: TensorLike) -> Tensor: ...


def leaky_relu(x: TensorLike, slope: float) -> Tensor: ...


def elu(x: TensorLike, alpha: float) -> Tensor: ...


def clip(x: TensorLike, low: float, high: float) -> Tensor: ...


def scale(x: TensorLike, factor: float, offset: float) -> Tensor: ...


def where(cond: TensorLike, a: TensorLike, b: TensorLike) -> Tensor: ...


def cast(x: TensorLike, dtype: Dtype) -> Tensor: ...


def identity(x: TensorLike) -> Tensor: ...


def stop_gradient(x: TensorLike) -> Tensor: ...


def broadcast(x: TensorLike, like: TensorLike) -> Tensor: ...


def sum_like(x: TensorLike, like: TensorLike) -> Tensor: ...


def activation(x: TensorLike, act: str) -> Tensor: ...


def glu(x: TensorLike, act: str) -> Tensor: ...


def prelu(x: TensorLike, slope: TensorLike) -> Tensor: ...


def sum(
    x: TensorLike,
    *,
    axis: int | Sequence[int] | None = None,
    keep_dims: bool | None = None,
) -> Tensor: ...


def mean(
    x: TensorLike,
    *,
    axis: int | Sequence[int] | None = None,
    keep_dims: bool | None = None,
) -> Tensor: ...


def max(
    x: TensorLike,
    *,
    axis: int | Sequence[int] | None = None,
    keep_dims: bool | None = None,
) -> Tensor: ...


def min(
    x: TensorLike,
    *,
    axis: int | Sequence[int] | None = None,
    keep_dims: bool | None = None,
) -> Tensor: ...


def logsumexp(
    x: TensorLike,
    *,
    axis: int | Sequence[int] | None = None,
    keep_dims: bool | None = None,
) -> Tensor: ...


def argmax(x: TensorLike, axis: int) -> Tensor: ...


def count(
    x: TensorLike,
    *,
    axis: int | Sequence[int] | None = None,
    keep_dims: bool | None = None,
) -> Tensor: ...


def matmul(
    a: TensorLike,
    b: TensorLike,
    *,
    transpose_a: bool | None = None,
    transpose_b: bool | None = None,
    bias: TensorLike | None = None,
    act: str | None = None,
) -> Tensor: ...


def conv2d(
    x: TensorLike,
    w: TensorLike,
    *,
    stride: int | None = None,
    padding: str | None = None,
    pad: int | None = None,
    bias: TensorLike | None = None,
    act: str | None = None,
    dilation: int | None = None,
    groups: int | None = None,
) -> Tensor: ...


def depthwise_conv2d(
    x: TensorLike,
    w: TensorLike,
    *,
    stride: int | None = None,
    padding: str | None = None,
    pad: int | None = None,
    bias: TensorLike | None = None,
    act: str | None = None,
    dilation: int | None = None,
    groups: int | None = None,
) -> Tensor: ...


def conv2d_transpose(
    x: TensorLike,
    w: TensorLike,
    *,
    stride: int | None = None,
    padding: str | None = None,
    pad: int | None = None,
    extra: int | None = None,
    bias: TensorLike | None = None,
    act: str | None = None,
) -> Tensor: ...


def max_pool2d(
    x: TensorLike,
    *,
    size: int | None = None,
    stride: int | None = None,
    padding: str | None = None,
    pad: int | None = None,
) -> Tensor: ...


def avg_pool2d(
    x: TensorLike,
    *,
    size: int | None = None,
    stride: int | None = None,
    padding: str | None = None,
    pad: int | None = None,
) -> Tensor: ...


def global_avg_pool2d(x: TensorLike) -> Tensor: ...


def global_max_pool2d(x: TensorLike) -> Tensor: ...


def layer_norm(
    x: TensorLike,
    gamma: TensorLike,
    beta: TensorLike,
    *,
    eps: float | None = None,
) -> Tensor: ...


def rms_norm(x: TensorLike, gamma: TensorLike, *, eps: float | None = None) -> Tensor: ...


def batch_norm(
    x: TensorLike,
    gamma: TensorLike,
    beta: TensorLike,
    mean: TensorLike,
    var: TensorLike,
    *,
    eps: float | None = None,
    momentum: float | None = None,
    infer: bool | None = None,
    act: str | None = None,
    residual: TensorLike | None = None,
    over: str | None = None,
) -> Tensor: ...


def softmax(x: TensorLike) -> Tensor: ...


def log_softmax(x: TensorLike) -> Tensor: ...


def cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    *,
    smoothing: float | None = None,
    has_ignore: bool | None = None,
    ignore: int | None = None,
) -> Tensor: ...


def label_rank(x: TensorLike, labels: TensorLike) -> Tensor: ...


def embedding(table: TensorLike, ids: TensorLike) -> Tensor: ...


def gather(x: TensorLike, ids: TensorLike, axis: int) -> Tensor: ...


def scatter_add(x: TensorLike, ids: TensorLike, n: int) -> Tensor: ...


def one_hot(ids: TensorLike, depth: int, dtype: Dtype) -> Tensor: ...


def reshape(x: TensorLike, shape: Sequence[int]) -> Tensor: ...


def flatten(x: TensorLike) -> Tensor: ...


def transpose(x: TensorLike, order: Sequence[int]) -> Tensor: ...


def concat(xs: Sequence[TensorLike], axis: int) -> Tensor: ...


def stack(xs: Sequence[TensorLike], axis: int) -> Tensor: ...


def slice(x: TensorLike, axis: int, begin: int, end: int) -> Tensor: ...


def pad(x: TensorLike, axis: int, before: int, after: int) -> Tensor: ...


def tile(x: TensorLike, axis: int, times: int) -> Tensor: ...


def squeeze(x: TensorLike, axis: int) -> Tensor: ...


def expand_dims(x: TensorLike, axis: int) -> Tensor: ...


def dropout(x: TensorLike, rate: float) -> Tensor: ...


def gaussian_noise(x: TensorLike, deviation: float) -> Tensor: ...


def attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    *,
    heads: int | None = None,
    kv_heads: int | None = None,
    causal: bool | None = None,
    scale: float | None = None,
    mask: TensorLike | None = None,
    window: int | None = None,
    alibi: bool | None = None,
) -> Tensor: ...


def assign(var: TensorLike, value: TensorLike) -> Tensor: ...


def update_sgd(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_adam(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_adamw(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_rmsprop(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_adagrad(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_lion(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_adadelta(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_adamax(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_nadam(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_amsgrad(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_ftrl(
    var: TensorLike,
    grad: TensorLike,
    *,
    lr_scale: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    nesterov: bool | None = None,
    beta1: float | None = None,
    beta2: float | None = None,
    eps: float | None = None,
    initial: float | None = None,
    scale: TensorLike | None = None,
    exact: bool | None = None,
    l1: float | None = None,
    l2: float | None = None,
) -> Tensor: ...


def update_ema(
    var: TensorLike,
    value: TensorLike,
    *,
    decay: float | None = None,
    scale: TensorLike | None = None,
) -> Tensor: ...


def square_sum(x: TensorLike) -> Tensor: ...


def max_abs(xs: Sequence[TensorLike]) -> Tensor: ...


def update_scale(
    loss_sum: TensorLike,
    count: TensorLike,
    p: TensorLike,
    *,
    squares: Sequence[TensorLike] | None = None,
    clip: float | None = None,
    guard: bool | None = None,
    largest: Sequence[TensorLike] | None = None,
    square: float | None = None,
    step: float | None = None,
) -> Tensor: ...


def update_loss_scale(
    scale: TensorLike,
    good: TensorLike,
    go: TensorLike,
    *,
    every: int | None = None,
    most: float | None = None,
) -> Tensor: ...


def recurrent(
    z: TensorLike,
    w: TensorLike,
    *,
    kind: str | None = None,
    bias: TensorLike | None = None,
    reverse: bool | None = None,
) -> Tensor: ...
