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


class AUC(Metric):
    """Area under the ROC curve, from counts at thresholds (train.thresholds)."""

    def __init__(self) -> None: ...


class AUCPr(Metric):
    """Area under the precision-recall curve: the average precision."""

    def __init__(self) -> None: ...


class IoU(Metric):
    """Intersection over union of predicted and actual, mean over classes."""

    def __init__(self) -> None: ...


class RMSE(Metric):
    """Root of the mean squared error."""

    def __init__(self) -> None: ...


class R2(Metric):
    """Fraction of the target's variance that is explained."""

    def __init__(self) -> None: ...


class MAPE(Metric):
    """Mean absolute error in percent of the target."""

    def __init__(self) -> None: ...


class Cosine(Metric):
    """Mean cosine of the angle between output and target."""

    def __init__(self) -> None: ...


class BitsPerByte(Metric):
    """Cross entropy in bits per target, a byte or other symbol."""

    def __init__(self) -> None: ...


class CalibrationError(Metric):
    """Difference of probability and accuracy, mean over 15 bins."""

    def __init__(self) -> None: ...


class Confusion(Metric):
    """Fraction of targets predicted as another class; its table is the matrix."""

    def __init__(self) -> None: ...
