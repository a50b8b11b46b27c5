"""Metrics: what training reports beside the loss.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ._lib import Dtype
from ._parts import Metric as Metric
from ._parts import metric as metric


class Accuracy(Metric):
    """Fraction of targets predicted first."""

    def __init__(self) -> None: ...


class TopK(Metric):
    """Fraction of targets among the k most probable predictions."""

    def __init__(self) -> None: ...


class Precision(Metric):
    """Fraction of positive predictions that are correct."""

    def __init__(self) -> None: ...


class Recall(Metric):
    """Fraction of positive targets that are found."""

    def __init__(self) -> None: ...


class F1(Metric):
    """Harmonic mean of precision and recall."""

    def __init__(self) -> None: ...


class MSE(Metric):
    """Mean squared error."""

    def __init__(self) -> None: ...


class MAE(Metric):
    """Mean absolute error."""

    def __init__(self) -> None: ...


class Perplexity(Metric):
    """Exp of the mean cross entropy."""

    def __init__(self) -> None: ...
