"""Metrics: what training reports beside the loss.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._parts import Metric
from ._parts import metric

__all__ = [
    "Accuracy",
    "F1",
    "MAE",
    "MSE",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
    "TopK",
    "metric",
]


class Accuracy(Metric):
    """Fraction of targets predicted first."""

    kind = "accuracy"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class TopK(Metric):
    """Fraction of targets among the k most probable predictions."""

    kind = "top_k"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class Precision(Metric):
    """Fraction of positive predictions that are correct."""

    kind = "precision"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class Recall(Metric):
    """Fraction of positive targets that are found."""

    kind = "recall"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class F1(Metric):
    """Harmonic mean of precision and recall."""

    kind = "f1"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class MSE(Metric):
    """Mean squared error."""

    kind = "mse"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class MAE(Metric):
    """Mean absolute error."""

    kind = "mae"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class Perplexity(Metric):
    """Exp of the mean cross entropy."""

    kind = "perplexity"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)
