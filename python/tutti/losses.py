"""Losses: what training minimises.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._parts import Loss
from ._parts import loss

__all__ = [
    "BinaryCrossEntropy",
    "BinaryFocal",
    "CategoricalHinge",
    "CosineSimilarity",
    "CrossEntropy",
    "Dice",
    "Focal",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "Poisson",
    "SquaredHinge",
    "loss",
]


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

    kind = "cross_entropy"
    options = {
        "weight": "float",
        "smoothing": "float",
        "ignore": "int",
        "output": "text",
        "target": "text",
        "sample_weight": "text",
        "class_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        smoothing=0,
        ignore=None,
        output=None,
        target=None,
        sample_weight=None,
        class_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            smoothing=smoothing,
            ignore=ignore,
            output=output,
            target=target,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )


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

    kind = "binary_cross_entropy"
    options = {
        "weight": "float",
        "output": "text",
        "target": "text",
        "sample_weight": "text",
        "class_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        output=None,
        target=None,
        sample_weight=None,
        class_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )


class MSE(Loss):
    """Mean squared error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    kind = "mse"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


class MAE(Loss):
    """Mean absolute error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    kind = "mae"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


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

    kind = "huber"
    options = {
        "weight": "float",
        "delta": "float",
        "output": "text",
        "target": "text",
        "sample_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        delta=1,
        output=None,
        target=None,
        sample_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            delta=delta,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


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

    kind = "kl_divergence"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


class CosineSimilarity(Loss):
    """1 - cosine of the angle between output and target.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    kind = "cosine_similarity"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


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

    kind = "hinge"
    options = {
        "weight": "float",
        "output": "text",
        "target": "text",
        "sample_weight": "text",
        "class_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        output=None,
        target=None,
        sample_weight=None,
        class_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )


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

    kind = "squared_hinge"
    options = {
        "weight": "float",
        "output": "text",
        "target": "text",
        "sample_weight": "text",
        "class_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        output=None,
        target=None,
        sample_weight=None,
        class_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )


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

    kind = "categorical_hinge"
    options = {
        "weight": "float",
        "output": "text",
        "target": "text",
        "sample_weight": "text",
        "class_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        output=None,
        target=None,
        sample_weight=None,
        class_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )


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

    kind = "poisson"
    options = {
        "weight": "float",
        "output": "text",
        "target": "text",
        "no_log": "bool",
        "sample_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        output=None,
        target=None,
        no_log=False,
        sample_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            no_log=no_log,
            sample_weight=sample_weight,
        )


class LogCosh(Loss):
    """Log of the hyperbolic cosine of the error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    kind = "log_cosh"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


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

    kind = "focal"
    options = {
        "weight": "float",
        "ignore": "int",
        "output": "text",
        "target": "text",
        "gamma": "float",
        "sample_weight": "text",
        "class_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        ignore=None,
        output=None,
        target=None,
        gamma=2,
        sample_weight=None,
        class_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            ignore=ignore,
            output=output,
            target=target,
            gamma=gamma,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )


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

    kind = "binary_focal"
    options = {
        "weight": "float",
        "output": "text",
        "target": "text",
        "gamma": "float",
        "alpha": "float",
        "sample_weight": "text",
        "class_weight": "text",
    }

    def __init__(
        self,
        weight=1,
        *,
        output=None,
        target=None,
        gamma=2,
        alpha=0,
        sample_weight=None,
        class_weight=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            gamma=gamma,
            alpha=alpha,
            sample_weight=sample_weight,
            class_weight=class_weight,
        )


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

    kind = "dice"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


class MAPE(Loss):
    """Mean absolute error in percent of the target.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    kind = "mape"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )


class MSLE(Loss):
    """Mean squared error of log(1 + x).

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
        sample_weight: name of the data field with the weight of each record; default: all weigh the
            same
    """

    kind = "msle"
    options = {"weight": "float", "output": "text", "target": "text", "sample_weight": "text"}

    def __init__(self, weight=1, *, output=None, target=None, sample_weight=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            output=output,
            target=target,
            sample_weight=sample_weight,
        )
