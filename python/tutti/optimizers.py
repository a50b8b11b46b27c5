"""Optimizers: how weights are updated.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._parts import Optimizer

__all__ = [
    "AMSGrad",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "FTRL",
    "LAMB",
    "LARS",
    "Lion",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "SGD",
]


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

    kind = "sgd"
    options = {
        "lr": "float",
        "momentum": "float",
        "nesterov": "bool",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.01,
        *,
        momentum=0,
        nesterov=False,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "adam"
    options = {
        "lr": "float",
        "beta1": "float",
        "beta2": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.001,
        *,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "adamw"
    options = {
        "lr": "float",
        "beta1": "float",
        "beta2": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.001,
        *,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        weight_decay=0.01,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "rmsprop"
    options = {
        "lr": "float",
        "momentum": "float",
        "beta1": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.001,
        *,
        momentum=0,
        beta1=0.9,
        eps=1e-07,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            momentum=momentum,
            beta1=beta1,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "adagrad"
    options = {
        "lr": "float",
        "initial": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.01,
        *,
        initial=0.1,
        eps=1e-07,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            initial=initial,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "lion"
    options = {
        "lr": "float",
        "beta1": "float",
        "beta2": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.0001,
        *,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "adadelta"
    options = {
        "lr": "float",
        "beta1": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=1,
        *,
        beta1=0.9,
        eps=1e-06,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "adamax"
    options = {
        "lr": "float",
        "beta1": "float",
        "beta2": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.002,
        *,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "nadam"
    options = {
        "lr": "float",
        "beta1": "float",
        "beta2": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.002,
        *,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "amsgrad"
    options = {
        "lr": "float",
        "beta1": "float",
        "beta2": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.001,
        *,
        beta1=0.9,
        beta2=0.999,
        eps=1e-08,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "ftrl"
    options = {
        "lr": "float",
        "initial": "float",
        "l1": "float",
        "l2": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.001,
        *,
        initial=0.1,
        l1=0,
        l2=0,
        eps=0,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            initial=initial,
            l1=l1,
            l2=l2,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "lamb"
    options = {
        "lr": "float",
        "beta1": "float",
        "beta2": "float",
        "eps": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.001,
        *,
        beta1=0.9,
        beta2=0.999,
        eps=1e-06,
        weight_decay=0.01,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=eps,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )


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

    kind = "lars"
    options = {
        "lr": "float",
        "momentum": "float",
        "nesterov": "bool",
        "trust": "float",
        "weight_decay": "float",
        "no_decay": "text",
        "clip_value": "float",
        "clip_norm": "float",
        "clip_global": "float",
        "ema": "float",
        "layer_decay": "float",
        "schedule": "choice",
        "groups": "list",
    }

    def __init__(
        self,
        lr=0.1,
        *,
        momentum=0.9,
        nesterov=False,
        trust=0.001,
        weight_decay=0,
        no_decay=None,
        clip_value=0,
        clip_norm=0,
        clip_global=0,
        ema=0,
        layer_decay=0,
        schedule=None,
        groups=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            lr=lr,
            momentum=momentum,
            nesterov=nesterov,
            trust=trust,
            weight_decay=weight_decay,
            no_decay=no_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            clip_global=clip_global,
            ema=ema,
            layer_decay=layer_decay,
            schedule=schedule,
            groups=groups,
        )
