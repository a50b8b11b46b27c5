"""Optimizers: how weights are updated.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ._lib import Dtype
from ._parts import Optimizer as Optimizer
from ._parts import Schedule as Schedule


class SGD(Optimizer):
    """Stochastic gradient descent, with optional momentum.

    Args:
        lr: learning rate
        momentum: momentum: fraction of the last update kept
        nesterov: use Nesterov momentum
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.01,
        *,
        momentum: float = 0,
        nesterov: bool = False,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class Adam(Optimizer):
    """Adam; weight decay is added to the gradient.

    Args:
        lr: learning rate
        beta1: decay rate of the gradient's moving average
        beta2: decay rate of the squared gradient's moving average
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.001,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class AdamW(Optimizer):
    """AdamW: Adam with decoupled weight decay.

    Args:
        lr: learning rate
        beta1: decay rate of the gradient's moving average
        beta2: decay rate of the squared gradient's moving average
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.001,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.01,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class RMSprop(Optimizer):
    """RMSprop.

    Args:
        lr: learning rate
        momentum: momentum: fraction of the last update kept
        beta1: decay rate of the squared gradient's moving average
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.001,
        *,
        momentum: float = 0,
        beta1: float = 0.9,
        eps: float = 1e-07,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class Adagrad(Optimizer):
    """Adagrad.

    Args:
        lr: learning rate
        initial: initial value of the accumulated squares
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.01,
        *,
        initial: float = 0.1,
        eps: float = 1e-07,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class Lion(Optimizer):
    """Lion, with decoupled weight decay.

    Args:
        lr: learning rate
        beta1: decay rate used for the direction of the update
        beta2: decay rate of the gradient's moving average
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.0001,
        *,
        beta1: float = 0.9,
        beta2: float = 0.99,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class Adadelta(Optimizer):
    """Adadelta.

    Args:
        lr: learning rate
        beta1: decay rate of the averages of squared gradients and steps
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 1,
        *,
        beta1: float = 0.9,
        eps: float = 1e-06,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class Adamax(Optimizer):
    """Adamax: Adam with the largest gradient in place of the mean square.

    Args:
        lr: learning rate
        beta1: decay rate of the gradient's moving average
        beta2: decay rate of the largest gradient
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.002,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class Nadam(Optimizer):
    """Nadam: Adam with Nesterov momentum.

    Args:
        lr: learning rate
        beta1: decay rate of the gradient's moving average
        beta2: decay rate of the squared gradient's moving average
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.002,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class AMSGrad(Optimizer):
    """AMSGrad: Adam with the largest mean square so far.

    Args:
        lr: learning rate
        beta1: decay rate of the gradient's moving average
        beta2: decay rate of the squared gradient's moving average
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.001,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class FTRL(Optimizer):
    """FTRL-Proximal, for sparse linear models.

    Args:
        lr: learning rate
        initial: initial value of the accumulated squares
        l1: strength of the penalty by magnitude: makes weights zero
        l2: strength of the penalty by square
        eps: constant added to the root of the squares (the paper's beta)
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.001,
        *,
        initial: float = 0.1,
        l1: float = 0,
        l2: float = 0,
        eps: float = 0,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class LAMB(Optimizer):
    """LAMB: Adam whose steps are scaled to the norm of each weight, for large batches.

    Args:
        lr: learning rate
        beta1: decay rate of the gradient's moving average
        beta2: decay rate of the squared gradient's moving average
        eps: small constant added to the denominator
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.001,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-06,
        weight_decay: float = 0.01,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...


class LARS(Optimizer):
    """LARS: SGD whose steps are scaled to the norm of each weight, for large batches.

    Args:
        lr: learning rate
        momentum: momentum: fraction of the last update kept
        nesterov: use Nesterov momentum
        trust: trust coefficient: a step is at most so large, as a part of the weight's norm
        weight_decay: weight decay
        no_decay: weights without weight decay, as name patterns: '*.bias, norm*'
        clip_value: clip each gradient element to this absolute value; 0: off
        clip_norm: clip the gradient of each weight to this norm; 0: off
        clip_global: clip all gradients together to this global norm; 0: off
        ema: decay of an exponential moving average of the weights; 0: off
        layer_decay: factor on the learning rate from each layer with weights to the one before; 0:
            off
        schedule: learning rate schedule
        groups: settings for groups of weights; the first group that matches a weight applies
    """

    def __init__(
        self,
        lr: float = 0.1,
        *,
        momentum: float = 0.9,
        nesterov: bool = False,
        trust: float = 0.001,
        weight_decay: float = 0,
        no_decay: str | Sequence[str] | None = None,
        clip_value: float = 0,
        clip_norm: float = 0,
        clip_global: float = 0,
        ema: float = 0,
        layer_decay: float = 0,
        schedule: str | Schedule | Callable[[int, int], float] | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None: ...
