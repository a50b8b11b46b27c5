"""Metrics: what training reports beside the loss.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._parts import Metric
from ._parts import metric

__all__ = [
    "AUC",
    "AUCPr",
    "Accuracy",
    "BitsPerByte",
    "CalibrationError",
    "Confusion",
    "Cosine",
    "F1",
    "IoU",
    "MAE",
    "MAPE",
    "MSE",
    "Metric",
    "Perplexity",
    "Precision",
    "R2",
    "RMSE",
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


class AUC(Metric):
    """Area under the ROC curve, from counts at thresholds (train.thresholds)."""

    kind = "auc"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class AUCPr(Metric):
    """Area under the precision-recall curve: the average precision."""

    kind = "auc_pr"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class IoU(Metric):
    """Intersection over union of predicted and actual, mean over classes."""

    kind = "iou"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class RMSE(Metric):
    """Root of the mean squared error."""

    kind = "rmse"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class R2(Metric):
    """Fraction of the target's variance that is explained."""

    kind = "r2"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class MAPE(Metric):
    """Mean absolute error in percent of the target."""

    kind = "mape"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class Cosine(Metric):
    """Mean cosine of the angle between output and target."""

    kind = "cosine"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class BitsPerByte(Metric):
    """Cross entropy in bits per target, a byte or other symbol."""

    kind = "bits_per_byte"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class CalibrationError(Metric):
    """Difference of probability and accuracy, mean over 15 bins."""

    kind = "calibration_error"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)


class Confusion(Metric):
    """Fraction of targets predicted as another class; its table is the matrix."""

    kind = "confusion"
    options = {}

    def __init__(self, **unknown):
        super().__init__(unknown)
