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
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
        class_weight: weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        smoothing: float = 0,
        ignore: int | None = None,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
        class_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class BinaryCrossEntropy(Loss):
    """For yes or no: -log of the probability of the target, from logits; a final sigmoid is
    skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
        class_weight: weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
        class_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class MSE(Loss):
    """Mean squared error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class MAE(Loss):
    """Mean absolute error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class Huber(Loss):
    """Squared error up to delta, linear beyond it.

    Args:
        weight: weight of this loss in the sum of all losses
        delta: error at which the loss changes from quadratic to linear
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        delta: float = 1,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class KLDivergence(Loss):
    """Kullback-Leibler divergence from the target's probabilities, from logits; a final softmax is
    skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class CosineSimilarity(Loss):
    """1 - cosine of the angle between output and target.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class Hinge(Loss):
    """For yes or no: max(0, 1 - s x), s the sign of the target.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
        class_weight: weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
        class_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class SquaredHinge(Loss):
    """The square of hinge.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
        class_weight: weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
        class_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class CategoricalHinge(Loss):
    """For classes: the margin between the target class and the best other.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
        class_weight: weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
        class_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class Poisson(Loss):
    """For counts: e^x - t x, x the logarithm of the rate.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        no_log: the output is the rate itself, not its logarithm
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        no_log: bool = False,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class LogCosh(Loss):
    """Log of the hyperbolic cosine of the error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class Focal(Loss):
    """Cross entropy times (1 - p)^gamma: for classes of which some are rare; from logits, a final
    softmax is skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        ignore: label whose targets are ignored
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        gamma: power of 1 - p: how much less a target counts that is found
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
        class_weight: weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        ignore: int | None = None,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        gamma: float = 2,
        sample_weight: str | Sequence[str] | None = None,
        class_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class BinaryFocal(Loss):
    """Binary cross entropy times (1 - p)^gamma; from logits, a final sigmoid is skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        gamma: power of 1 - p: how much less a target counts that is found
        alpha: weight of targets 1, 1 - alpha that of targets 0; 0: none
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
        class_weight: weights of classes: [0=1, 3=2.5]; classes that are not named weigh 1
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        gamma: float = 2,
        alpha: float = 0,
        sample_weight: str | Sequence[str] | None = None,
        class_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class Dice(Loss):
    """For masks: 1 - 2 overlap / (sum of output and target), per record; from logits, a final
    sigmoid is skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class MAPE(Loss):
    """Mean absolute error in percent of the target.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...


class MSLE(Loss):
    """Mean squared error of log(1 + x).

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    def __init__(
        self,
        weight: float = 1,
        *,
        output: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        sample_weight: str | Sequence[str] | None = None,
    ) -> None: ...
