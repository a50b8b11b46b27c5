"""Schedules of the learning rate.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._parts import Schedule
from ._parts import schedule

__all__ = [
    "Constant",
    "Cosine",
    "Exponential",
    "Linear",
    "OneCycle",
    "Schedule",
    "Step",
    "schedule",
]


class Constant(Schedule):
    """Constant learning rate.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
    """

    kind = "constant"
    options = {"warmup": "int"}

    def __init__(self, warmup=0, **unknown):
        super().__init__(unknown, warmup=warmup)


class Step(Schedule):
    """Multiply by factor every N steps.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        factor: factor on the learning rate
        every: number of steps between two applications of factor
    """

    kind = "step"
    options = {"warmup": "int", "factor": "float", "every": "int"}

    def __init__(self, warmup=0, *, factor=0.1, every=1000, **unknown):
        super().__init__(unknown, warmup=warmup, factor=factor, every=every)


class Exponential(Schedule):
    """Exponential decay: by factor per N steps, continuously.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        factor: factor on the learning rate
        every: number of steps between two applications of factor
    """

    kind = "exponential"
    options = {"warmup": "int", "factor": "float", "every": "int"}

    def __init__(self, warmup=0, *, factor=0.95, every=1000, **unknown):
        super().__init__(unknown, warmup=warmup, factor=factor, every=every)


class Cosine(Schedule):
    """Cosine decay to final.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
    """

    kind = "cosine"
    options = {"warmup": "int", "steps": "int", "final": "float"}

    def __init__(self, warmup=0, *, steps=0, final=0, **unknown):
        super().__init__(unknown, warmup=warmup, steps=steps, final=final)


class Linear(Schedule):
    """Linear decay to final.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
    """

    kind = "linear"
    options = {"warmup": "int", "steps": "int", "final": "float"}

    def __init__(self, warmup=0, *, steps=0, final=0, **unknown):
        super().__init__(unknown, warmup=warmup, steps=steps, final=final)


class OneCycle(Schedule):
    """One cycle: from 1/25 of lr up to lr and down to final, both by cosine.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
        peak: fraction of the steps at which the learning rate peaks
    """

    kind = "one_cycle"
    options = {"warmup": "int", "steps": "int", "final": "float", "peak": "float"}

    def __init__(self, warmup=0, *, steps=0, final=0.0001, peak=0.3, **unknown):
        super().__init__(unknown, warmup=warmup, steps=steps, final=final, peak=peak)
