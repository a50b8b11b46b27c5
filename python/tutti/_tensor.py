"""Tensors: symbols of a graph, and values. Graphs, sessions, gradients, immediate mode."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _c
from ._context import Context, Handle
from ._dlpack import array_of, capsule_of
from ._lib import (BYTES, DTYPES, NUMPY, axes_of, dtype_of, enum_value, lib, make, shape_of, text_of)

TensorLike = Any
_graphs: list[Graph] = []  # those of "with" blocks and of functions that the library calls


class Tensor:
    """A tensor: the result of an op, a feed, a variable or a constant of a graph.

    Operators build further nodes: +, -, *, /, **, @, comparisons, slices. A dimension of the batch
    is None in shape.
    """

    __array_priority__ = 1000  # NumPy leaves operators to us

    def __init__(self, graph, ptr):
        self.graph = graph
        self._ptr = ptr

    @property
    def shape(self) -> tuple[int | None, ...]:
        s = lib.tt_tensor_shape(self._ptr)
        return tuple(None if d == -1 else int(d) for d in s.dim[:s.rank])

    @property
    def dtype(self) -> str:
        return DTYPES[lib.tt_tensor_dtype(self._ptr)]

    @property
    def name(self) -> str:
        return text_of(lib.tt_tensor_name(self._ptr))

    @property
    def ndim(self):
        return len(self.shape)

    def __repr__(self):
        shape = ", ".join("batch" if d is None else str(d) for d in self.shape)
        return f"<tutti.Tensor {self.name} {self.dtype} [{shape}]>"

    def __hash__(self):
        return id(self)

    def __bool__(self):
        raise TypeError(f"{self!r} has no value yet: it is a symbol of a graph. Use ops.where() to "
                        "choose between tensors, and a session or numpy() for values")

    def numpy(self) -> np.ndarray:
        """Its value now, as a NumPy array. Feeds have none."""
        shape = tuple(d if d is not None else -1 for d in self.shape)
        if any(d < 0 for d in shape):
            raise ValueError(f"{self!r} depends on a feed: run it in a session")
        out = np.empty(shape, NUMPY[self.dtype])
        lib.tt_eval(self.graph.ptr, self._ptr, out.ctypes.data, out.size)
        self.graph.context.check()
        return out

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    # ---- operators -------------------------------------------------------------------------------

    def __add__(self, other):
        return call("tt_add", (self, other))

    def __radd__(self, other):
        return call("tt_add", (other, self))

    def __sub__(self, other):
        return call("tt_sub", (self, other))

    def __rsub__(self, other):
        return call("tt_sub", (other, self))

    def __mul__(self, other):
        return call("tt_mul", (self, other))

    def __rmul__(self, other):
        return call("tt_mul", (other, self))

    def __truediv__(self, other):
        return call("tt_div", (self, other))

    def __rtruediv__(self, other):
        return call("tt_div", (other, self))

    def __pow__(self, other):
        return call("tt_pow", (self, other))

    def __rpow__(self, other):
        return call("tt_pow", (other, self))

    def __matmul__(self, other):
        return call("tt_matmul_with", (self, other))

    def __rmatmul__(self, other):
        return call("tt_matmul_with", (other, self))

    def __neg__(self):
        return call("tt_neg", (self,))

    def __abs__(self):
        return call("tt_abs", (self,))

    def __lt__(self, other):
        return call("tt_less", (self, other))

    def __le__(self, other):
        return call("tt_less_equal", (self, other))

    def __gt__(self, other):
        return call("tt_greater", (self, other))

    def __ge__(self, other):
        return call("tt_greater_equal", (self, other))

    def __eq__(self, other):
        return call("tt_equal", (self, other))

    def __ne__(self, other):
        return call("tt_not_equal", (self, other))

    def __getitem__(self, key):
        x, axis = self, 0
        keys = key if isinstance(key, tuple) else (key,)
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = keys[:at] + (slice(None),) * (self.ndim - len(keys) + 1) + keys[at + 1:]
        for k in keys:
            if axis >= x.ndim:
                raise IndexError(f"{len(keys)} indices, but {self!r} has {self.ndim} dimensions")
            size = x.shape[axis]
            if isinstance(k, int):
                k = k + size if k < 0 and size is not None else k
                if k < 0 or (size is not None and k >= size):
                    raise IndexError(f"index {k} is not in axis {axis} of {self!r}")
                x = call("tt_slice", (x, axis, k, k + 1))
                x = call("tt_squeeze", (x, axis))
                continue
            if not isinstance(k, slice) or k.step not in (None, 1):
                raise TypeError("a tensor takes integers and slices without a step; use ops.gather() "
                                "for lists of indices")
            if k != slice(None):
                if size is None:
                    raise IndexError("the batch axis is not sliced: all its rows are computed")
                begin, end, _ = k.indices(size)
                x = call("tt_slice", (x, axis, begin, end))
            axis += 1
        return x

    def sum(self, axis=None, keep_dims=False):
        return call("tt_sum_with", (self,), axis=axis, keep_dims=keep_dims)

    def mean(self, axis=None, keep_dims=False):
        return call("tt_mean_with", (self,), axis=axis, keep_dims=keep_dims)

    def max(self, axis=None, keep_dims=False):
        return call("tt_max_with", (self,), axis=axis, keep_dims=keep_dims)

    def min(self, axis=None, keep_dims=False):
        return call("tt_min_with", (self,), axis=axis, keep_dims=keep_dims)

    def reshape(self, *shape):
        return call("tt_reshape", (self, shape[0] if len(shape) == 1 else shape))

    def transpose(self, *order):
        return call("tt_transpose", (self, order[0] if len(order) == 1 else order))

    def astype(self, dtype):
        return call("tt_cast", (self, dtype))

    @property
    def T(self):
        return self.transpose(())


class Array(Tensor):
    """A value: what ops give for values. It shares its memory by NumPy's protocol and DLPack."""

    def __init__(self, array, dtype):
        self._array = array
        self._dtype = dtype
        self.graph = None

    @property
    def shape(self):
        return self._array.shape

    @property
    def dtype(self):
        return self._dtype

    @property
    def name(self):
        return "array"

    def numpy(self):
        """The value as a NumPy array, without a copy; the bits of bf16 as uint16."""
        return self._array

    def item(self):
        return self._array.item()

    def __float__(self):
        return float(self._array)

    def __int__(self):
        return int(self._array)

    def __bool__(self):
        return bool(self._array)

    def __len__(self):
        return len(self._array)

    def __repr__(self):
        return f"tutti.{np.array2string(self._array, prefix='tutti.', separator=', ')} {self.dtype}"

    def __dlpack__(self, **options):
        return capsule_of(self._array, self.dtype)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def tensor(value: TensorLike, dtype: Any = None) -> Array:
    """A value from a NumPy array, a tensor with __dlpack__ or a list; memory is shared if it can be."""
    return Array(*array_of(value, dtype))


def from_dlpack(value: Any) -> Array:
    """A value that shares the memory of a tensor of another library."""
    return Array(*array_of(value))


# ---- graphs --------------------------------------------------------------------------------------


class Graph:
    """A graph of ops, for loops by hand.

    >>> g = tutti.Graph()
    >>> x = g.feed("x", (None, 3))
    >>> w = g.variable("w", (3, 1))
    >>> y = ops.matmul(x, w)
    """

    def __init__(self, context=None, *, ptr=None, **options):
        self.context = context or Context.get(**options)
        self._own = ptr is None
        self.ptr = ptr
        self.handle: Handle | None = None
        if self._own:
            with self.context.lock:
                self.context.clean()
                self.ptr = lib.tt_graph_new(self.context.ptr)
                self.context.check()
            self.handle = Handle(self.context, self.ptr, lib.tt_graph_free)

    def close(self):
        if self._own:
            self.handle.free()
        self.ptr = None

    def __del__(self):
        if getattr(self, "handle", None) is not None:
            self.handle.leave()

    def __enter__(self):
        _graphs.append(self)
        return self

    def __exit__(self, *error):
        _graphs.remove(self)

    def __str__(self):
        return self.context.string(lib.tt_graph_print(self.ptr))

    def _made(self, ptr):
        if not ptr:
            self.context.check()
            raise RuntimeError("the node could not be made")
        return Tensor(self, ptr)

    def feed(self, name: str, shape: Sequence[int | None], dtype: Any = "f32") -> Tensor:
        """An input, whose value is given at each run. A first dimension of None is the batch."""
        opts = make(_c.tt_feed_opts, name=name, shape=_open_shape(shape), dtype=dtype)
        return self._made(lib.tt_feed_with(self.ptr, ctypes.byref(opts)))

    def variable(self, name: str, shape: Sequence[int], init: str = "zeros", a: float = 0.0,
                 b: float = 0.0, dtype: Any = "f32", trainable: bool = True) -> Tensor:
        """A variable: kept between runs; changed by ops.update_... and ops.assign."""
        opts = make(_c.tt_variable_opts, name=name, shape=shape, dtype=dtype, no_train=not trainable,
                    init=init_of(init, a, b))
        return self._made(lib.tt_variable_with(self.ptr, ctypes.byref(opts)))

    def constant(self, value, dtype=None):
        array, name = array_of(value, dtype)
        return self._made(lib.tt_const(self.ptr, DTYPES.index(name), shape_of(array.shape),
                                       array.ctypes.data))

    def find(self, name):
        ptr = lib.tt_graph_find(self.ptr, name.encode())
        if not ptr:
            raise KeyError(name)
        return Tensor(self, ptr)

    @property
    def trainable(self):
        """The trainable variables, in order of creation."""
        n = lib.tt_trainable(self.ptr, None, 0)
        out = (ctypes.c_void_p * max(n, 1))()
        lib.tt_trainable(self.ptr, out, n)
        return [Tensor(self, p) for p in out[:n]]

    def session(self, **options: Any) -> Session:
        return Session(self, **options)


def init_of(init, a=0.0, b=0.0):
    kinds = {k.removeprefix("TT_INIT_").lower(): v for k, v in _c.ENUMS["tt_init_kind"].items()}
    if init not in kinds:
        from ._lib import nearest
        raise ValueError(f"there is no initializer '{init}'" + nearest(init, kinds))
    return _c.tt_init(kinds[init], a, b)


def _open_shape(shape):
    shape = (shape,) if isinstance(shape, int) or shape is None else shape
    return tuple(-1 if d is None else d for d in shape)


class Session:
    """Runs a graph: session(fetches, feeds, targets=..., step=..., lr=...)."""

    def __init__(self, graph, **options):
        self.graph = graph
        opts = make(_c.tt_session_opts, **options)
        self.ptr = lib.tt_session_new_with(graph.ptr, ctypes.byref(opts))
        if not self.ptr:
            graph.context.check()
        self.handle = Handle(graph.context, self.ptr, lib.tt_session_free)
        if getattr(graph, "handle", None) is not None:
            graph.handle.users.append(self.handle)

    def close(self):
        self.handle.free()
        self.ptr = None

    def __del__(self):
        if hasattr(self, "handle"):
            self.handle.leave()

    def __call__(self, fetches=(), feeds=None, *, targets=(), step=0, lr=0.0, grad_scale=None,
                 micro=0):
        """The values of fetches, a tensor or a list of them, as NumPy arrays."""
        is_one = isinstance(fetches, Tensor)
        fetches = [fetches] if is_one else list(fetches)
        rows, keep, values = None, [], []
        for t, value in (feeds or {}).items():
            array, name = array_of(value, t.dtype)
            if t.shape[:1] == (None,):
                rows = array.shape[0] if array.ndim else rows
            keep.append(array)
            values.append(_c.tt_feed_value(t._ptr, array.ctypes.data, shape_of(array.shape),
                                           DTYPES.index(name)))
        outs = [np.empty(_full_shape(t, rows), NUMPY[t.dtype]) for t in fetches]
        fed = (_c.tt_feed_value * max(len(values), 1))(*values)
        got = (_c.tt_fetch * max(len(outs), 1))(*[
            _c.tt_fetch(t._ptr, o.ctypes.data, o.nbytes) for t, o in zip(fetches, outs)])
        done = (ctypes.c_void_p * max(len(targets), 1))(*[t._ptr for t in targets])
        opts = _c.tt_run_opts(ctypes.sizeof(_c.tt_run_opts))
        opts.feeds, opts.n_feeds = ctypes.addressof(fed), len(values)
        opts.fetches, opts.n_fetches = ctypes.addressof(got), len(outs)
        opts.targets, opts.n_targets = ctypes.addressof(done), len(targets)
        opts.step, opts.lr, opts.micro = step, lr, micro
        if grad_scale is not None:
            opts.grad_scale = grad_scale or -0.0
        with self.graph.context.lock:
            if lib.tt_run_with(self.ptr, ctypes.byref(opts)):
                self.graph.context.check()
        return outs[0] if is_one else outs

    def get(self, variable):
        """The value of a variable."""
        out = np.empty(variable.shape, NUMPY[variable.dtype])
        lib.tt_get_variable(self.ptr, variable._ptr, out.ctypes.data, out.nbytes)
        self.graph.context.check()
        return out

    def set(self, variable, value):
        array, _ = array_of(value, variable.dtype)
        if array.shape != variable.shape:
            raise ValueError(f"{variable.name} is {variable.shape}, but the value is {array.shape}")
        lib.tt_set_variable(self.ptr, variable._ptr, array.ctypes.data, array.nbytes)
        self.graph.context.check()

    @property
    def hash(self):
        """XXH3-128 over all variables, as 32 hexadecimal digits."""
        out = _c.tt_hash()
        lib.tt_weight_hash(self.ptr, ctypes.byref(out))
        self.graph.context.check()
        return hash_text(out)


def hash_text(h):
    return f"{h.high:016x}{h.low:016x}"


def _full_shape(t, rows):
    s = lib.tt_tensor_shape(t._ptr)
    dims = s.dim[:s.rank]
    if any(d < 0 for d in dims) and rows is None:
        raise ValueError(f"{t!r} has a batch dimension, but no feed gives the number of rows")
    return tuple(-d * rows if d < 0 else d for d in dims)


def grad(y: Any, xs: Any = None, seed: Tensor | None = None) -> Any:
    """Gradients of y with respect to xs, as tensors of its graph; None where y does not depend.

    Given a function instead, it returns a function that computes the gradient of its first argument:
    tutti.grad(lambda x: ops.sum(x * x))(array).
    """
    if callable(y) and not isinstance(y, Tensor):
        return _grad_of_function(y)
    is_one = isinstance(xs, Tensor)
    xs = [xs] if is_one else list(xs)
    given = (ctypes.c_void_p * max(len(xs), 1))(*[x._ptr for x in xs])
    out = (ctypes.c_void_p * max(len(xs), 1))()
    lib.tt_grad(y.graph.ptr, y._ptr, seed._ptr if seed is not None else None, len(xs), given, out)
    y.graph.context.check()
    grads = [Tensor(y.graph, p) if p else None for p in out[:len(xs)]]
    return grads[0] if is_one else grads


def _grad_of_function(fn):
    def gradient(*args):
        graph = Graph(Context.local())
        try:
            with graph.context.lock, graph:
                inputs = [graph.constant(a) for a in args]
                y = fn(*inputs)
                if not isinstance(y, Tensor) or y.shape != ():
                    raise ValueError("the function must return a scalar tensor, such as ops.sum(...)")
                dx = grad(y, inputs[0])
                if dx is None:
                    raise ValueError("the result does not depend on the first argument")
                return Array(dx.numpy(), dx.dtype)
        finally:
            graph.close()

    return gradient


# ---- calls of ops --------------------------------------------------------------------------------


def _graph_of(values):
    for v in values:
        if isinstance(v, (list, tuple)):
            found = _graph_of(v)
            if found:
                return found
        elif isinstance(v, Tensor) and v.graph is not None:
            return v.graph
    return None


def _like(values):
    """The element type that numbers beside these tensors get."""
    for v in values:
        if isinstance(v, Tensor):
            return v.dtype
    return "f32"


def _symbol(graph, value, like):
    if value is None:
        return None
    if isinstance(value, Tensor) and value.graph is not None:
        if value.graph.ptr != graph.ptr:
            raise ValueError(f"{value!r} belongs to another graph")
        return value._ptr
    if isinstance(value, (bool, int, float)):
        like = "f32" if isinstance(value, float) and like in ("i32", "i64", "u8", "bool") else like
        ptr = lib.tt_fill(graph.ptr, DTYPES.index(like), shape_of(()), float(value))
    else:
        array, name = array_of(value)
        ptr = lib.tt_const(graph.ptr, DTYPES.index(name), shape_of(array.shape), array.ctypes.data)
    if not ptr:
        graph.context.check()
    return ptr


def _place(graph, function, values, like, keep):
    """The positional arguments of a call, by their kinds."""
    out, values = [], list(values)
    for kind in _c.OPS[function]:
        if kind == "tensor":
            out.append(_symbol(graph, values.pop(0), like))
        elif kind == "tensors":
            items = [_symbol(graph, v, like) for v in values.pop(0)]
            keep.append((ctypes.c_void_p * max(len(items), 1))(*items))
            out.append(keep[-1])
        elif kind == "count":
            out.append(len(keep[-1]))
        elif kind == "tt_shape":
            out.append(shape_of(_open_shape(values.pop(0))))
        elif kind == "tt_axes":
            out.append(axes_of(values.pop(0)))
        elif kind == "text":
            out.append(str(values.pop(0)).encode())
        elif kind.endswith("_vars"):
            fields = getattr(_c, kind)._fields_
            out.append(getattr(_c, kind)(*[_symbol(graph, values.pop(0), like) for _ in fields]))
        elif kind.endswith("_opts"):
            pass
        elif kind in _c.ENUMS:
            out.append(enum_value(kind, values.pop(0)))
        elif kind == "double":
            out.append(float(values.pop(0)))
        else:
            out.append(int(values.pop(0)))
    return out


def _options(graph, struct, words, like):
    given, types = {}, dict(struct._fields_)
    for name, value in words.items():
        if value is None:
            continue
        if name == "axis" and "axes" in types:
            given["axes"] = axes_of(value)
        elif types[name] is ctypes.c_void_p and f"n_{name}" in types:
            items = [_symbol(graph, v, like) for v in value]
            given[name] = (ctypes.c_void_p * max(len(items), 1))(*items)
            given[f"n_{name}"] = len(items)
        elif types[name] is ctypes.c_void_p:
            given[name] = _symbol(graph, value, like)
        elif isinstance(value, int) and issubclass(types[name], ctypes.Array):
            given[name] = (value,) * types[name]._length_
        else:
            given[name] = value
    if "has_ignore" in types and words.get("ignore") is not None:
        given["has_ignore"] = True
    if "pad" in types and words.get("pad") is not None and words.get("padding") is None:
        given["padding"] = "explicit"
    return make(struct, **given)


def build(graph, function, values, words):
    """Adds the node of an op to a graph."""
    keep, like = [], _like([*values, *words.values()])
    out = _place(graph, function, values, like, keep)
    kind = _c.OPS[function][-1] if _c.OPS[function] else ""
    if kind.endswith("_opts"):
        keep.append(_options(graph, getattr(_c, kind), words, like))
        out.append(ctypes.byref(keep[-1]))
    ptr = getattr(lib, function)(graph.ptr, *out)
    if not ptr:
        graph.context.check()
        raise RuntimeError(f"{function}: the node could not be made")
    return Tensor(graph, ptr)


def call(function, values, **words):
    """An op: a node, if an input is a symbol or a graph is being built; else its value, at once."""
    graph = _graph_of([*values, *words.values()]) or (_graphs[-1] if _graphs else None)
    if graph is not None:
        return build(graph, function, values, words)
    context = Context.local()
    with context.lock:
        graph = Graph(context)
        try:
            y = build(graph, function, values, words)
            return Array(y.numpy(), y.dtype)
        finally:
            graph.close()


def split(x: TensorLike, n: int, axis: int = 0) -> list[Tensor]:
    """Splits x along an axis into n equal parts."""
    if isinstance(x, Array) or not isinstance(x, Tensor):
        array, name = array_of(x)
        return [Array(np.ascontiguousarray(a), name) for a in np.split(array, n, axis)]
    out = (ctypes.c_void_p * n)()
    lib.tt_split_at(x.graph.ptr, x._ptr, axis, n, out)
    x.graph.context.check()
    return [Tensor(x.graph, p) for p in out]
