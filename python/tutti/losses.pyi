"""Losses: what training minimises.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ._lib import Dtype
from ._parts import Loss as Loss
from ._parts import loss as loss


class CrossEntropy(Loss):
    """For classes: -log of the probability of the target class, from logits; a final softmax is
    skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        smoothing: label smoothing: fraction of the target spread evenly over all classes
        ignore: label whose targets are ignored
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        smoothing: float = 0,
        ignore: int | None = None,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
    ) -> None: ...


class BinaryCrossEntropy(Loss):
    """For yes or no: -log of the probability of the target, from logits; a final sigmoid is
    skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
    ) -> None: ...


class MSE(Loss):
    """Mean squared error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
    ) -> None: ...


class MAE(Loss):
    """Mean absolute error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
    ) -> None: ...


class Huber(Loss):
    """Squared error up to delta, linear beyond it.

    Args:
        weight: weight of this loss in the sum of all losses
        delta: error at which the loss changes from quadratic to linear
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        delta: float = 1,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
    ) -> None: ...
