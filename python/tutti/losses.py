"""Losses: what training minimises.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._parts import Loss
from ._parts import loss

__all__ = ["BinaryCrossEntropy", "CrossEntropy", "Huber", "Loss", "MAE", "MSE", "loss"]


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

    kind = "cross_entropy"
    options = {
        "weight": "float",
        "smoothing": "float",
        "ignore": "int",
        "output": "text",
        "target": "text",
    }

    def __init__(self, weight=1, *, smoothing=0, ignore=None, output=None, target=None, **unknown):
        super().__init__(
            unknown,
            weight=weight,
            smoothing=smoothing,
            ignore=ignore,
            output=output,
            target=target,
        )


class BinaryCrossEntropy(Loss):
    """For yes or no: -log of the probability of the target, from logits; a final sigmoid is
    skipped.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    kind = "binary_cross_entropy"
    options = {"weight": "float", "output": "text", "target": "text"}

    def __init__(self, weight=1, *, output=None, target=None, **unknown):
        super().__init__(unknown, weight=weight, output=output, target=target)


class MSE(Loss):
    """Mean squared error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    kind = "mse"
    options = {"weight": "float", "output": "text", "target": "text"}

    def __init__(self, weight=1, *, output=None, target=None, **unknown):
        super().__init__(unknown, weight=weight, output=output, target=target)


class MAE(Loss):
    """Mean absolute error.

    Args:
        weight: weight of this loss in the sum of all losses
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    kind = "mae"
    options = {"weight": "float", "output": "text", "target": "text"}

    def __init__(self, weight=1, *, output=None, target=None, **unknown):
        super().__init__(unknown, weight=weight, output=output, target=target)


class Huber(Loss):
    """Squared error up to delta, linear beyond it.

    Args:
        weight: weight of this loss in the sum of all losses
        delta: error at which the loss changes from quadratic to linear
        output: name of the model's output; default: the only one
        target: name of the data field with the target; default: the next field after the inputs
    """

    kind = "huber"
    options = {"weight": "float", "delta": "float", "output": "text", "target": "text"}

    def __init__(self, weight=1, *, delta=1, output=None, target=None, **unknown):
        super().__init__(unknown, weight=weight, delta=delta, output=output, target=target)
