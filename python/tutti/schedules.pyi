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


class Piecewise(Schedule):
    """Constant pieces: a factor from each of several steps on.

    Args:
        pieces: factors on the learning rate from a step on, counted after the warmup: [1000=0.5,
            2000=0.1]
        warmup: number of steps of linear warmup before the schedule begins
    """

    def __init__(self, pieces: str | Sequence[str], *, warmup: int = 0) -> None: ...


class Polynomial(Schedule):
    """Polynomial decay to final.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
        power: power of the polynomial; 1: as linear
    """

    def __init__(
        self,
        warmup: int = 0,
        *,
        steps: int = 0,
        final: float = 0,
        power: float = 1,
    ) -> None: ...


class InverseTime(Schedule):
    """Inverse time decay: lr / (1 + factor t / every).

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        factor: the rate is divided by 1 + factor t / every at step t
        every: number of steps by which t is divided
    """

    def __init__(self, warmup: int = 0, *, factor: float = 1, every: int = 1000) -> None: ...


class CosineRestarts(Schedule):
    """Cosine decay to final, again and again (warm restarts).

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        every: number of steps of the first period
        grow: each period has this many times the steps of the one before
        factor: factor on the learning rate at each restart
        final: learning rate at the end, as a fraction of lr
    """

    def __init__(
        self,
        warmup: int = 0,
        *,
        every: int = 1000,
        grow: float = 1,
        factor: float = 1,
        final: float = 0,
    ) -> None: ...


class WSD(Schedule):
    """Warmup, stable, decay: constant, then down to final over the last steps.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
        decay: fraction of the steps, at the end, over which it decays
        shape: how it decays; sqrt: 1 - sqrt(y)
    """

    def __init__(
        self,
        warmup: int = 0,
        *,
        steps: int = 0,
        final: float = 0,
        decay: float = 0.2,
        shape: Literal["linear", "cosine", "sqrt"] = "linear",
    ) -> None: ...
