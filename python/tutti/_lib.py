"""The library: found, loaded, called; its errors as exceptions; Python values as C structs."""
from __future__ import annotations

import ctypes
import difflib
import glob
import math
import os
import re
from typing import Any

from . import _c, _paths

Dtype = Any  # "f32", a NumPy or PyTorch type, or float, int, bool

DTYPES = ("f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool")
BYTES = {"f32": 4, "f64": 8, "bf16": 2, "f16": 2, "i32": 4, "i64": 8, "u8": 1, "bool": 1}
NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i64": "int64",
         "u8": "uint8", "bool": "bool", "bf16": "uint16"}  # NumPy has no bf16: its bits
WORDS = {"float": "f32", "double": "f64", "float32": "f32", "float64": "f64", "float16": "f16",
         "half": "f16", "bfloat16": "bf16", "int": "i32", "int32": "i32", "int64": "i64",
         "long": "i64", "uint8": "u8"}


# ---- errors --------------------------------------------------------------------------------------


class Error(Exception):
    """An error of the library. status is its name, such as TT_ESHAPE."""

    status = "TT_EINVAL"


class ShapeError(Error, ValueError):
    """Shapes do not fit."""


class DtypeError(Error, TypeError):
    """Element types do not fit."""


class InvalidError(Error, ValueError):
    """An argument is not valid."""


class OutOfMemory(Error, MemoryError):
    """A host or a device has not enough memory, or its limit is too small."""


class FileError(Error, OSError):
    """A file could not be read or written."""

    def __str__(self):
        return str(self.args[0])


class ParseError(Error, ValueError):
    """A text, such as a job file, could not be read."""


class DeviceError(Error, RuntimeError):
    """A device failed; models of its context cannot be used any more."""


class PeerError(Error, ConnectionError):
    """Another process of the job failed or was not heard of in time; restart from a checkpoint."""

    def __str__(self):
        return str(self.args[0])


class UnsupportedError(Error, NotImplementedError):
    """Not available in this build or on this device."""


class NotFinite(Error, ArithmeticError):
    """A loss is not finite, or training has diverged."""


class AssertError(Error, AssertionError):
    """An assert node of a graph failed."""


class Stopped(Error):
    """A run was stopped on request."""


ERRORS = {"TT_EINVAL": InvalidError, "TT_ESHAPE": ShapeError, "TT_EDTYPE": DtypeError,
          "TT_ENOMEM": OutOfMemory, "TT_EIO": FileError, "TT_EDEVICE": DeviceError,
          "TT_EPEER": PeerError, "TT_ETIMEOUT": PeerError, "TT_EPARSE": ParseError,
          "TT_EUNSUPPORTED": UnsupportedError, "TT_ELIMIT": OutOfMemory, "TT_EASSERT": AssertError,
          "TT_ESTOP": Stopped, "TT_ENAN": NotFinite}
for _error in (Error, *ERRORS.values()):
    _error.__module__ = "tutti"
STATUS = {value: name for name, value in _c.ENUMS["tt_status"].items()}
ESTOP = _c.ENUMS["tt_status"]["TT_ESTOP"]
EINVAL = _c.ENUMS["tt_status"]["TT_EINVAL"]


# What the library tells a C program to write, for Python.
PYTHON = [(r"int32_t, with \.\w+ = TT_I32", "int32, such as y.astype('int32')"),
          (r"\btt_(compile|fit|evaluate|predict|save)\(\)", r"\1()"),
          (r"tt_load\(\)", "load_weights()"), (r"tt_layer_custom\(\)", "a subclass of tutti.Layer")]


def error_of(status, message):
    for pattern, ours in PYTHON:
        message = re.sub(pattern, ours, message)
    name = STATUS.get(status, "TT_EINVAL")
    error = ERRORS[name](message)
    error.status = name
    return error


def nearest(word, words):
    """'; did you mean "relu"?', or the list of what is possible."""
    near = difflib.get_close_matches(str(word), [str(w) for w in words], 1, 0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    return "; possible: " + ", ".join(str(w) for w in words)


# ---- loading -------------------------------------------------------------------------------------


def find():
    path = _paths.library()
    if path is None:
        raise ImportError(
            "tutti: libtutti.so is not found; install a wheel, run make in the source tree, or set "
            "TUTTI_LIBRARY to its path")
    return path


def load(path):
    # Libraries that a wheel carries beside it are loaded first, so that the loader finds them by
    # their names. Their order is not known: what fails is tried again behind the others.
    waiting = sorted(glob.glob(os.path.join(os.path.dirname(path), "deps", "*.so*")))
    while waiting:
        left = []
        for file in waiting:
            try:
                ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                left.append(file)
        if len(left) == len(waiting):
            break
        waiting = left
    return ctypes.CDLL(path)


class Library:
    """Functions by their names, with their prototypes set when they are first used."""

    def __init__(self):
        self._path = find()
        self._dll = load(self._path)

    def __getattr__(self, name):
        if name not in _c.FUNCTIONS:
            raise AttributeError(name)
        result, params = _c.FUNCTIONS[name]
        fn = getattr(self._dll, name)
        fn.restype, fn.argtypes = result, params
        setattr(self, name, fn)
        return fn


lib = Library()
_fail = lib._dll.tt_fail  # takes any number of arguments
_fail.restype = ctypes.c_int


def fail(ctx, message):
    """Records an error of Python code that the library called."""
    text = message.encode(errors="replace")
    return _fail(ctypes.c_void_p(ctx), EINVAL, b"python", 0, b"%s", ctypes.c_char_p(text))


def text_of(pointer):
    return ctypes.string_at(pointer).decode(errors="replace") if pointer else ""


# ---- values --------------------------------------------------------------------------------------


def dtype_of(value):
    """The name of an element type: of "f32", numpy.float32, torch.float32, float, ..."""
    if isinstance(value, str) and value in DTYPES:
        return value
    name = value if isinstance(value, str) else getattr(value, "__name__", None) or str(value)
    name = name.removeprefix("torch.").removesuffix("'>").split(".")[-1]
    name = {"bool_": "bool", "float_": "f32"}.get(name, name)
    if name in DTYPES:
        return name
    if name in WORDS:
        return WORDS[name]
    raise TypeError(f"there is no element type '{name}'" + nearest(name, DTYPES))


def words_of(enum):
    """The words of an enum: TT_OVER_BATCH and TT_OVER_LANE are "batch" and "lane"."""
    names = list(_c.ENUMS[enum])
    prefix = os.path.commonprefix(names) if len(names) > 1 else "TT_"
    prefix = prefix[:prefix.rfind("_") + 1] or "TT_"
    return {name[len(prefix):].lower(): value for name, value in _c.ENUMS[enum].items()}


_WORDS: dict[str, dict[str, int]] = {}


def enum_value(enum, value):
    if enum == "tt_dtype":
        return DTYPES.index(dtype_of(value))
    if not isinstance(value, str):
        return int(value)
    if enum not in _WORDS:
        _WORDS[enum] = words_of(enum)
    if value not in _WORDS[enum]:
        raise ValueError(f"'{value}' is not known" + nearest(value, _WORDS[enum]))
    return _WORDS[enum][value]


def shape_of(dims):
    dims = (dims,) if isinstance(dims, int) else tuple(int(d) for d in dims)
    if len(dims) > 8:
        raise ValueError(f"a shape has at most 8 dimensions, not {len(dims)}")
    return _c.tt_shape(len(dims), (ctypes.c_int64 * 8)(*dims))


def axes_of(axes):
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    return _c.tt_axes(len(axes), (ctypes.c_int * 8)(*axes))


def make(struct, **values):
    """A struct with these fields; texts, nested structs and pointers are kept alive by it."""
    out = struct()
    out._keep = []
    if hasattr(struct, "opts_size"):
        out.opts_size = ctypes.sizeof(struct)
    fill(out, values, out._keep)
    return out


_TYPES: dict[type, tuple] = {}


def fill(out, values, keep):
    struct = type(out)
    if struct not in _TYPES:
        _TYPES[struct] = (dict(struct._fields_), getattr(struct, "_enums_", {}),
                          getattr(struct, "_points_", {}))
    types, enums, points = _TYPES[struct]
    for name, value in values.items():
        if value is None:
            continue
        if name not in types:
            raise TypeError(f"{struct.__name__} has no field '{name}'" + nearest(name, types))
        kind = types[name]
        if name in enums:
            value = enum_value(enums[name], value)
        elif kind is ctypes.c_char_p:
            value = joined(value).encode()
            keep.append(value)
        elif name in points and issubclass(kind, ctypes.Array):  # of pointers
            array = getattr(out, name)
            if len(value) > kind._length_:
                raise ValueError(f"{name}: {len(value)} are given; at most {kind._length_} are allowed")
            for i, item in enumerate(value):
                keep.append(pointed(getattr(_c, points[name]), item))
                array[i] = ctypes.addressof(keep[-1])
            continue
        elif name in points and not isinstance(value, int):
            value = pointed(getattr(_c, points[name]), value)
            keep.append(value)
            value = ctypes.addressof(value)
        elif kind is ctypes.c_void_p and not isinstance(value, int):
            keep.append(value)
            value = ctypes.cast(value, ctypes.c_void_p)
        elif kind is ctypes.c_double:
            value = float(value)
            value = -0.0 if value == 0 else value  # zero itself, and not the default
        elif kind is _c.tt_shape and not isinstance(value, _c.tt_shape):
            value = shape_of(value)
        elif kind is _c.tt_axes and not isinstance(value, _c.tt_axes):
            value = axes_of(value)
        elif isinstance(value, dict):
            fill_nested(getattr(out, name), value, keep)
            continue
        elif issubclass(kind, ctypes.Array) and not isinstance(value, kind):
            array = getattr(out, name)
            for i, item in enumerate(value):
                if isinstance(item, dict):
                    fill_nested(array[i], item, keep)
                else:
                    array[i] = item
                    keep.append(item)
            continue
        elif isinstance(value, ctypes._CFuncPtr):
            keep.append(value)
        elif isinstance(value, ctypes.Structure):
            keep.append(getattr(value, "_keep", None))
        setattr(out, name, value)


def fill_nested(out, values, keep):
    if hasattr(type(out), "opts_size"):
        out.opts_size = ctypes.sizeof(out)
    fill(out, values, keep)


def pointed(struct, value):
    """What a pointer to a struct points to: one, or an array of them."""
    if isinstance(value, dict):
        return make(struct, **value)
    if isinstance(value, (list, tuple)):
        out = (struct * max(len(value), 1))()
        out._keep = []
        for i, item in enumerate(value):
            fill_nested(out[i], item, out._keep)
        return out
    return value


def joined(value):
    """A text, or a list of texts as the library reads it."""
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def option_text(value):
    """The value of an option as a job file has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return repr(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value):
        return joined(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(str(int(v)) for v in value) + "]"
    return joined(value)


def version() -> str:
    """Version, features and libraries of this build."""
    return text_of(lib.tt_version_text())
