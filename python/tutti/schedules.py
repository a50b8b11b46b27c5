"""Schedules of the learning rate.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._parts import Schedule
from ._parts import schedule

__all__ = [
    "Constant",
    "Cosine",
    "CosineRestarts",
    "Exponential",
    "InverseTime",
    "Linear",
    "OneCycle",
    "Piecewise",
    "Polynomial",
    "Schedule",
    "Step",
    "WSD",
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


class Piecewise(Schedule):
    """Constant pieces: a factor from each of several steps on.

    Args:
        pieces: factors on the learning rate from a step on, counted after the warmup: [1000=0.5,
            2000=0.1]
        warmup: number of steps of linear warmup before the schedule begins
    """

    kind = "piecewise"
    options = {"pieces": "text", "warmup": "int"}

    def __init__(self, pieces, *, warmup=0, **unknown):
        super().__init__(unknown, pieces=pieces, warmup=warmup)


class Polynomial(Schedule):
    """Polynomial decay to final.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
        power: power of the polynomial; 1: as linear
    """

    kind = "polynomial"
    options = {"warmup": "int", "steps": "int", "final": "float", "power": "float"}

    def __init__(self, warmup=0, *, steps=0, final=0, power=1, **unknown):
        super().__init__(unknown, warmup=warmup, steps=steps, final=final, power=power)


class InverseTime(Schedule):
    """Inverse time decay: lr / (1 + factor t / every).

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        factor: the rate is divided by 1 + factor t / every at step t
        every: number of steps by which t is divided
    """

    kind = "inverse_time"
    options = {"warmup": "int", "factor": "float", "every": "int"}

    def __init__(self, warmup=0, *, factor=1, every=1000, **unknown):
        super().__init__(unknown, warmup=warmup, factor=factor, every=every)


class CosineRestarts(Schedule):
    """Cosine decay to final, again and again (warm restarts).

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        every: number of steps of the first period
        grow: each period has this many times the steps of the one before
        factor: factor on the learning rate at each restart
        final: learning rate at the end, as a fraction of lr
    """

    kind = "cosine_restarts"
    options = {
        "warmup": "int",
        "every": "int",
        "grow": "float",
        "factor": "float",
        "final": "float",
    }

    def __init__(self, warmup=0, *, every=1000, grow=1, factor=1, final=0, **unknown):
        super().__init__(unknown, warmup=warmup, every=every, grow=grow, factor=factor, final=final)


class WSD(Schedule):
    """Warmup, stable, decay: constant, then down to final over the last steps.

    Args:
        warmup: number of steps of linear warmup before the schedule begins
        steps: step at which the schedule ends; 0: the last step of training
        final: learning rate at the end, as a fraction of lr
        decay: fraction of the steps, at the end, over which it decays
        shape: how it decays; sqrt: 1 - sqrt(y)
    """

    kind = "wsd"
    options = {"warmup": "int", "steps": "int", "final": "float", "decay": "float", "shape": "word"}
    choices = {
        "shape": ("linear", "cosine", "sqrt"),
    }

    def __init__(self, warmup=0, *, steps=0, final=0, decay=0.2, shape="linear", **unknown):
        super().__init__(unknown, warmup=warmup, steps=steps, final=final, decay=decay, shape=shape)
