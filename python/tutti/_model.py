"""Models: built from layers, compiled, evaluated, saved. fit() is in _fit.py."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _c, _fit, losses as _losses, metrics as _metrics, optimizers as _optimizers
from ._context import Context, Handle
from ._data import Data, data_of, fields_of
from ._dlpack import array_of
from ._layer import Layer, Symbol, _InputLayer
from ._lib import DTYPES, NUMPY, lib, make, nearest
from ._parts import FunctionLoss, FunctionMetric, Loss, Metric, Optimizer, find
from ._tensor import Graph, Session, hash_text


class Built:
    """The library's model, and what is needed while it is built."""

    def __init__(self, context, vocab=0):
        self.context = context
        self.vocab = vocab
        self.keep = []  # functions that the library calls
        self.names = {}
        self.session = None
        self.is_owner = True
        self.shared = {}  # layer: its first output
        context.clean()
        self.ptr = lib.tt_model_new(context.ptr)
        context.check()
        self.handle = Handle(context, self.ptr, lib.tt_model_free, self.keep)

    @staticmethod
    def of(context, ptr, is_owner):
        """A model that the library built."""
        b = Built.__new__(Built)
        b.context, b.vocab, b.keep, b.names, b.session, b.is_owner = context, 0, [], {}, None, is_owner
        b.ptr, b.shared = ptr, {}
        b.handle = Handle(context, ptr if is_owner else None, lib.tt_model_free, b.keep)
        return b

    def free_name(self, kind):
        self.names[kind] = self.names.get(kind, 0) + 1
        return f"{kind}_{self.names[kind]}"

    def input(self, shape, dtype, name):
        shape = tuple(int(d) for d in shape)
        opts = make(_c.tt_input_opts, dtype=dtype, name=name, shape=shape)
        out = lib.tt_input_with(self.ptr, ctypes.byref(opts))
        self.context.check()
        return out

    def append(self, layer, inputs):
        out = layer.append(self, inputs, self.shared.get(id(layer)))
        self.shared.setdefault(id(layer), out)
        return out

    def close(self):
        self.handle.free()
        self.ptr = None

    def __del__(self):
        if hasattr(self, "handle"):
            self.handle.leave()


class Model:
    """A model from inputs to outputs, which layers connect.

    >>> x = tutti.Input((28, 28))
    >>> y = tutti.Dense(10)(tutti.Flatten()(x))
    >>> model = tutti.Model(x, y)

    Args:
        inputs: one tutti.Input, or a list of them
        outputs: one output of a layer, a list of them, or a dict by name
        devices, strategy, lanes, seed, threads, ...: where and how it runs; see tutti.configure()
    """

    def __init__(self, inputs: Any, outputs: Any, **options: Any) -> None:
        self._inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        self._outputs = outputs if isinstance(outputs, dict) else {
            None if i == 0 else f"y_{i}": o
            for i, o in enumerate(outputs if isinstance(outputs, (list, tuple)) else [outputs])}
        for s in [*self._inputs, *self._outputs.values()]:
            if not isinstance(s, Symbol):
                raise TypeError(f"inputs and outputs are made by tutti.Input and by layers; "
                                f"{type(s).__name__} is neither")
        self._start(options)
        if all(s.layer.shape is not None for s in self._inputs):
            self._build()

    def _start(self, options):
        self._options = options
        self._context = Context.get(**options) if options else None
        self._built = None
        self._compiled = None  # what compile() was given
        self._targets = None  # types of targets it is compiled for
        self.stop_training = False
        self.lr_factor = 1.0
        self._batch_step = 0

    # ---- building --------------------------------------------------------------------------------

    @property
    def context(self):
        if self._context is None:
            self._context = Context.get(**self._options)
        return self._context

    @property
    def ptr(self):
        return self.built().ptr

    def built(self, fields=None):
        if self._built is None:
            self._build(fields)
        return self._built

    def _build(self, fields=None):
        with self.context.lock:
            b = Built(self.context, fields[0]["classes"] if fields else 0)
            try:
                self._connect(b, fields)
            except BaseException:
                b.close()
                raise
            self._built = b

    def _connect(self, b, fields):
        done = {}
        for i, s in enumerate(self._inputs):
            if not isinstance(s.layer, _InputLayer):
                raise TypeError(f"{s!r} is not an input: inputs are made by tutti.Input")
            done[id(s)] = self._add_input(b, s.layer, fields, i)
        for name, s in self._outputs.items():
            self._reach(b, s, done)
        if len(self._outputs) > 1 or None not in self._outputs:
            for name, s in self._outputs.items():
                lib.tt_output(b.ptr, done[id(s)], (name or "y").encode())
                b.context.check()

    def _add_input(self, b, layer, fields, i):
        shape, dtype = layer.shape, layer.dtype
        if shape is None:
            field = next((f for f in fields or () if f["name"] == layer.name), None)
            field = field or (fields[i] if fields else None)
            if field is None:
                raise ValueError("the shape of the input is not known yet: give it, such as "
                                 "tutti.Input((28, 28)) or Sequential(..., input=(28, 28)), or fit the "
                                 "model first")
            shape, dtype = field["shape"], field["dtype"]
        return b.input(shape, dtype, layer.name)

    def _reach(self, b, last, done):
        """Appends the layers that lead to a symbol, in the order of the connections."""
        todo = [last]
        while todo:
            s = todo[-1]
            waiting = [x for x in s.inputs if id(x) not in done]
            if id(s) in done:
                todo.pop()
            elif isinstance(s.layer, _InputLayer):
                raise ValueError("an output depends on an input that is not among the model's inputs")
            elif waiting:
                todo.extend(reversed(waiting))
            else:
                done[id(s)] = b.append(s.layer, [done[id(x)] for x in s.inputs])
                todo.pop()

    # ---- looking ---------------------------------------------------------------------------------

    def summary(self, json: bool = False, print_: bool = True) -> str | None:
        """Prints layers, output shapes and parameters; json=True returns the text as JSON."""
        text = self.context.string(lib.tt_summary(self.ptr, json))
        if json or not print_:
            return text
        print(text, end="")
        return None

    def count_params(self) -> int:
        return lib.tt_model_parameters(self.ptr)

    @property
    def hash(self) -> str:
        """XXH3-128 of all weights, as 32 hexadecimal digits: equal on any devices."""
        out = _c.tt_hash()
        lib.tt_model_hash(self.ptr, ctypes.byref(out))
        self.context.check()
        return hash_text(out)

    def _weights(self):
        n = lib.tt_model_weights_sized(self.ptr, None, 0, ctypes.sizeof(_c.tt_weight_info))
        room = (_c.tt_weight_info * max(n, 1))()
        lib.tt_model_weights_sized(self.ptr, room, n, ctypes.sizeof(_c.tt_weight_info))
        return list(room[:n])

    @property
    def weight_names(self) -> list[str]:
        return [w.name.decode() for w in self._weights()]

    def _session(self):
        """A session over the model's weights."""
        if self._built.session is None:
            graph = Graph(self.context, ptr=lib.tt_model_get_graph(self.ptr))
            self._built.session = Session(graph)
            self._built.handle.users.append(self._built.session.handle)
        return self._built.session

    def get_weights(self) -> dict[str, np.ndarray]:
        """All weights by name, as NumPy arrays."""
        self.built()
        session = self._session()
        return {w.name.decode(): session.get(session.graph.find(w.name.decode()))
                for w in self._weights()}

    def set_weights(self, weights: dict[str, Any]) -> None:
        """Sets weights by name; names that are not given stay as they are."""
        self.built()
        session, names = self._session(), self.weight_names
        for name, value in weights.items():
            if name not in names:
                raise ValueError(f"the model has no weight '{name}'" + nearest(name, names))
            session.set(session.graph.find(name), value)

    # ---- compile ---------------------------------------------------------------------------------

    def compile(self, optimizer: Any = "sgd", loss: Any = None, metrics: Any = (), *,
                precision: str = "f32", freeze: str | Sequence[str] | None = None,
                recompute: str | None = None, top_k: int | None = None,
                thresholds: int | None = None, threshold: float | None = None) -> None:
        """Says how the model is trained.

        Args:
            optimizer: "adam", tutti.optimizers.Adam(lr=1e-3), ...
            loss: "cross_entropy", tutti.losses.Huber(delta=2), a function of (target, output), or a
                list of them for several outputs
            metrics: "accuracy", functions of (target, output), parts of tutti.metrics
            precision: "f32", "bf16" or "f16": of products and activations; weights stay f32
            freeze: weights that are not trained, as name patterns
            recompute: activations to recompute in the backward pass: "all", names of layers,
                "budget 4GiB"
            top_k: the k of the metric top_k
            thresholds: number of thresholds of the metrics auc and auc_pr; 200
            threshold: probability from which binary metrics count a prediction as yes; 0.5
        """
        if loss is None:
            raise TypeError("compile() needs a loss, such as loss='cross_entropy'")
        given = loss if isinstance(loss, (list, tuple)) else [loss]
        metrics = metrics if isinstance(metrics, (list, tuple)) else [metrics]
        self._compiled = {
            "optimizer": find(_optimizers, optimizer, "optimizer", Optimizer),
            "losses": [self._loss(one) for one in given],
            "metrics": [self._metric(one) for one in metrics],
            "more": {"precision": precision, "freeze": freeze, "recompute": recompute, "top_k": top_k,
                     "thresholds": thresholds, "threshold": threshold},
        }
        self._targets = None
        if self._built is not None and not any(isinstance(one, FunctionLoss)
                                               for one in self._compiled["losses"]):
            self._compile((None,) * len(given))

    @staticmethod
    def _loss(value):
        if callable(value) and not isinstance(value, (Loss, type)):
            return FunctionLoss(value)
        return find(_losses, value, "loss", Loss)

    @staticmethod
    def _metric(value):
        if callable(value) and not isinstance(value, (Metric, type)):
            return FunctionMetric(value)
        return find(_metrics, value, "metric", Metric)

    def _compile(self, targets):
        """targets: type and shape of the target of each loss, None where they are not known."""
        if self._compiled is None:
            raise RuntimeError("the model is not compiled: call compile(loss=..., optimizer=...) first")
        if self._targets == targets:
            return
        c, context = self._compiled, self.context
        own = [m for m in c["metrics"] if not m.bit()]
        bits = 0
        for m in c["metrics"]:
            bits |= m.bit()
        kept, dense = None, None
        kind = c["losses"][0].kind
        if kind in ("cross_entropy", "focal", "categorical_hinge") and targets[0]:
            dense = kind == "cross_entropy" and targets[0][0] in ("f32", "f64", "bf16", "f16") or None
            kept = targets[0][0] if targets[0][0] != "f32" else None
        opts = make(_c.tt_compile_opts,
                    losses=[one.fields(context, t) for one, t in zip(c["losses"], targets)],
                    optimizer=c["optimizer"].fields(context), metrics=bits,
                    own_metrics=[m.fields(context) for m in own] or None, target_dtype=kept,
                    dense_targets=dense,
                    **{k: v for k, v in c["more"].items() if v is not None})
        with context.lock:
            self._built.keep.append(opts)
            lib.tt_compile_with(self.ptr, ctypes.byref(opts))
            context.check()
            self._targets = targets

    def _prepare(self, fields):
        """Builds and compiles for data with these fields."""
        self.built(fields)
        if self._compiled is None:
            return self._compile(())  # says that it is not compiled
        targets, at = [], lib.tt_model_input_count(self.ptr)
        for one in self._compiled["losses"]:
            named = [f for f in fields if f["name"] == one.values.get("target")]
            field = named[0] if named else fields[at] if at < len(fields) else None
            at += not named
            targets.append((field["dtype"], field["shape"]) if field else None)
        return self._compile(tuple(targets))

    # ---- training --------------------------------------------------------------------------------

    def fit(self, x: Any = None, y: Any = None, **options: Any) -> _fit.History:
        return _fit.fit(self, x, y, **options)

    fit.__doc__ = _fit.fit.__doc__

    def train_on_batch(self, x: Any, y: Any = None, lr: float | None = None) -> dict[str, float]:
        """One update from one global batch; returns the loss and the metrics of this step."""
        return _fit.train_on_batch(self, x, y, lr)

    def evaluate(self, x: Any, y: Any = None, *, batch_size: int | None = None,
                 rows: int | None = None, ema: bool = False) -> dict[str, float]:
        """The loss and the metrics over all records, as a dict."""
        data = x if isinstance(x, Data) else data_of(x, y, batch_size, False)
        if data is None:
            return _fit.evaluate_batches(self, x)
        with self.context.lock:
            return self._evaluate(data, batch_size, rows, ema)

    def table(self, metric: str) -> list[float]:
        """The table behind a metric of the last evaluate(), as one list: "confusion" the matrix row by
        row, "precision", "recall", "f1" and "iou" a value per class, "auc" and "auc_pr" their curves.
        """
        with self.context.lock:
            n = lib.tt_evaluate_table(self.ptr, metric.encode(), None, 0)
            if n == 0:
                raise ValueError(f"there is no table of '{metric}': give the metric to compile(), and "
                                 "evaluate() first")
            out = (ctypes.c_double * n)()
            lib.tt_evaluate_table(self.ptr, metric.encode(), out, n)
            return list(out)

    def _evaluate(self, data, batch_size, rows, ema):
        like = getattr(self, "_trained_on", None)
        ptr = data.open(self.context, like if data is not like else None)
        self._prepare(fields_of(ptr))
        out = _c.tt_evaluation()
        opts = make(_c.tt_evaluate_opts, batch=batch_size, rows=rows, ema=ema,
                    out_size=ctypes.sizeof(out))
        lib.tt_evaluate_with(self.ptr, ptr, ctypes.byref(out), ctypes.byref(opts))
        self.context.check()
        return {"loss": out.loss, **{out.names[i].decode(): out.metrics[i]
                                     for i in range(out.n_metrics)}}

    def predict(self, x: Any, *, batch_size: int = 256, raw: bool = False) -> Any:
        """Outputs for records: a NumPy array, or a dict of them by name for several outputs.

        raw: of a model that knows its data, inputs before preprocessing, outputs as probabilities or
        in the target's own units.
        """
        if isinstance(x, Data):
            parts = [self.predict(batch[:max(lib.tt_model_input_count(self.ptr), 1)],
                                  batch_size=batch_size) for batch in x]
            return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else {
                k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
        values = self._ordered(x)
        if self._built is None:
            self.built([{"name": "x", "dtype": array_of(v)[1], "shape": array_of(v)[0].shape[1:],
                         "classes": 0} for v in values])
        inputs, count = [], None
        ports = [self._port(i, lib.tt_model_input_sized)
                 for i in range(lib.tt_model_input_count(self.ptr))]
        if len(values) != len(ports):
            raise ValueError(f"the model has {len(ports)} inputs, but {len(values)} are given")
        for port, value in zip(ports, values):
            dtype = DTYPES[port.raw_dtype if raw else port.dtype]
            wanted = port.raw_shape if raw else port.shape
            array, _ = array_of(value, dtype)
            shape = tuple(wanted.dim[:wanted.rank])
            if array.ndim == 0 or array.shape[1:] != shape:
                raise ValueError(f"input '{port.name.decode()}' takes records of shape {shape}, but the "
                                 f"array is {array.shape}; its first axis is the record")
            if count is not None and len(array) != count:
                raise ValueError(f"the inputs have {count} and {len(array)} records")
            count = len(array)
            inputs.append(array)
        outputs = {}
        for i in range(lib.tt_model_output_count(self.ptr)):
            port = self._port(i, lib.tt_model_output_sized)
            shape = tuple(port.shape.dim[:port.shape.rank])
            outputs[port.name.decode()] = np.empty((count, *shape), NUMPY[DTYPES[port.dtype]])
        if count == 0:
            return next(iter(outputs.values())) if len(outputs) == 1 else outputs
        opts = make(_c.tt_predict_opts, batch=batch_size, raw=raw,
                    inputs=[a.ctypes.data for a in inputs],
                    outputs=[a.ctypes.data for a in outputs.values()])
        with self.context.lock:
            lib.tt_predict_with(self.ptr, None, count, None, ctypes.byref(opts))
            self.context.check()
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def _ordered(self, x):
        if not isinstance(x, dict):
            return list(x) if isinstance(x, tuple) else [x]
        names = [self._port(i, lib.tt_model_input_sized).name.decode()
                 for i in range(lib.tt_model_input_count(self.ptr))]
        for name in x:
            if name not in names:
                raise ValueError(f"the model has no input '{name}'" + nearest(name, names))
        return [x[n] for n in names if n in x]

    def _port(self, i, call):
        out = _c.tt_port()
        call(self.ptr, i, ctypes.byref(out), ctypes.sizeof(out))
        self.context.check()
        return out

    # ---- saving ----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> None:
        """Writes weights, optimizer state and the model's description; tutti.load() reads them.

        A path that ends in .safetensors or .tutti is one file with the weights and the description,
        for use and for other programs; any other is a checkpoint folder, from which training goes on.
        """
        path = os.fspath(path)
        is_file = path.endswith((".safetensors", ".tutti"))
        (lib.tt_export if is_file else lib.tt_save)(self.ptr, path.encode())
        self.context.check()

    def load_weights(self, path: str | os.PathLike, *, map: str | None = None,
                     only: str | Sequence[str] | None = None, partial: bool = False,
                     layout: str = "auto") -> None:
        """Loads weights from what save() or a fit wrote, or from a safetensors or .pt file.

        Args:
            map: rename rules "old.*=new.*", or "huggingface_gpt2"
            only: weights to load, as name patterns
            partial: ignore weights that only the file or only the model has
            layout: "auto", "tutti" or "torch": how matrices lie in a file that does not say so
        """
        opts = make(_c.tt_load_opts, map=map, only=only, partial=partial,
                    layout={"auto": 0, "tutti": 1, "torch": 2}[layout])
        lib.tt_load_with(self.ptr, os.fspath(path).encode(), ctypes.byref(opts))
        self.context.check()

    def __repr__(self):
        return f"<tutti.{type(self).__name__} of {len(self._weights()) if self._built else '?'} weights>"


class Sequential(Model):
    """A model of layers in sequence.

    >>> model = tutti.Sequential([tutti.Flatten(), tutti.Dense(128, act="relu"), tutti.Dense(10)])

    Args:
        layers: in order; a tutti.Input may come first
        input: the shape of one record; default: that of the data it is fitted to
        dtype: of the input
        devices, strategy, lanes, seed, threads, ...: where and how it runs; see tutti.configure()
    """

    def __init__(self, layers: Sequence[Any] = (), input: Any = None, *, dtype: Any = "f32",
                 **options: Any) -> None:
        self.layers: list[Layer] = []
        self._input = _InputLayer(input, dtype, None)
        for layer in layers:
            self._take(layer)
        self._start(options)
        if self._input.shape is not None and self.layers:
            self._build()

    def _take(self, layer):
        if isinstance(layer, Symbol) and isinstance(layer.layer, _InputLayer) and not self.layers:
            self._input = layer.layer
            return
        if isinstance(layer, type) and issubclass(layer, Layer):
            raise TypeError(f"{layer.__name__} is a class; write {layer.__name__}(...)")
        if not isinstance(layer, Layer):
            raise TypeError(f"{layer!r} is not a layer")
        self.layers.append(layer)

    def add(self, layer: Layer) -> None:
        """Appends a layer."""
        if self._built is not None and self._targets is not None:
            raise RuntimeError("the model is compiled: add layers before compile()")
        self._take(layer)
        if self._built is not None:
            self._built.close()
            self._built = None

    @property
    def _inputs(self):
        return [Symbol(self._input, [])]

    def _connect(self, b, fields):
        if not self.layers:
            raise ValueError("the model has no layers")
        y = self._add_input(b, self._input, fields, 0)
        for layer in self.layers:
            y = b.append(layer, [y])


class Loaded(Model):
    """A model that was read from a file."""

    def __init__(self, path, **options):
        self._inputs, self._outputs = [], {}
        self._start(options)
        with self.context.lock:
            ptr = lib.tt_model_load(self.context.ptr, os.fspath(path).encode())
            self.context.check()
        self._built, self._is_ready = Built.of(self.context, ptr, True), False

    def compile_as_trained(self):
        """Compiles it with the losses and metrics it was trained with, for evaluate()."""
        lib.tt_model_compile(self.ptr)
        self.context.check()
        self._is_ready = True

    def _prepare(self, fields):
        if self._compiled is not None or not self._is_ready:
            super()._prepare(fields)

    def class_name(self, number, output=0):
        """The name of a class; None where classes have numbers only."""
        from ._lib import text_of
        return text_of(lib.tt_model_class(self.ptr, output, number)) or None


def load(path: str | os.PathLike, **options: Any) -> Loaded:
    """A model from what save() or a fit wrote: a run's folder, a checkpoint, a .tutti file."""
    return Loaded(path, **options)
