"""Schedules of the learning rate.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ._lib import Dtype
from ._parts import Schedule as Schedule
from ._parts import schedule as schedule


class Constant(Schedule):
    """Constant learning rate.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
    """

    def __init__(self, warmup: int = 0) -> None: ...


class Step(Schedule):
    """Multiply by factor every N steps.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        factor: factor on the learning rate
        every: number of steps between two applications of factor
    """

    def __init__(self, warmup: int = 0, *, factor: float = 0.1, every: int = 1000) -> None: ...


class Exponential(Schedule):
    """Exponential decay: by factor per N steps, continuously.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        factor: factor on the learning rate
        every: number of steps between two applications of factor
    """

    def __init__(self, warmup: int = 0, *, factor: float = 0.95, every: int = 1000) -> None: ...


class Cosine(Schedule):
    """Cosine decay to final.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
    """

    def __init__(self, warmup: int = 0, *, steps: int = 0, final: float = 0) -> None: ...


class Linear(Schedule):
    """Linear decay to final.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
    """

    def __init__(self, warmup: int = 0, *, steps: int = 0, final: float = 0) -> None: ...


class OneCycle(Schedule):
    """One cycle: from 1/25 of lr up to lr and down to final, both by cosine.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
        peak: fraction of the steps at which the learning rate peaks
    """

    def __init__(
        self,
        warmup: int = 0,
        *,
        steps: int = 0,
        final: float = 0.0001,
        peak: float = 0.3,
    ) -> None: ...
