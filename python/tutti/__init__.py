"""Tutti: trains neural networks on many devices, with bit-identical results.

>>> import tutti
>>> model = tutti.Sequential([tutti.Flatten(), tutti.Dense(128, act="relu"), tutti.Dense(10)])
>>> model.compile(optimizer="adam", loss="cross_entropy", metrics=["accuracy"])
>>> model.fit(tutti.data.Digits(2000, batch=64), epochs=2)

docs/python.md is an introduction.
"""
from . import _c, callbacks, data, layers, losses, metrics, ops, optimizers, schedules
from ._context import Context, configure, devices
from ._fit import History, Interrupted
from ._job import Job
from ._lib import (AssertError, DeviceError, DtypeError, Error, FileError, InvalidError, NotFinite,
                   OutOfMemory, ParseError, PeerError, ShapeError, Stopped, UnsupportedError, lib,
                   version)
from ._model import Model, Sequential, load
from ._tensor import Array, Graph, Session, Tensor, from_dlpack, grad, tensor
from .callbacks import Callback
from .layers import *  # noqa: F401,F403

__version__ = version().split()[1] if version().startswith("version:") else "0.1.0"
