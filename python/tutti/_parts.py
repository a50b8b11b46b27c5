"""Parts of training: losses, metrics, optimizers and schedules, the library's and your own."""
from __future__ import annotations

import ctypes
import re

from . import _c
from ._lib import EINVAL, fail, nearest
from ._tensor import Graph, Tensor, call

# What other frameworks call our options.
HINTS = {"activation": "act", "kernel_size": "kernel", "strides": "stride", "pool_size": "size",
         "learning_rate": "lr", "input_dim": "vocab", "output_dim": "width", "num_heads": "heads",
         "num_embeddings": "vocab", "embedding_dim": "width", "kernel_initializer": "init",
         "out_features": "units", "out_channels": "filters", "p": "rate", "batch_size": "batch",
         "use_bias": "no_bias", "bias": "no_bias", "epsilon": "eps", "beta_1": "beta1",
         "beta_2": "beta2", "label_smoothing": "smoothing", "clipnorm": "clip_norm",
         "clipvalue": "clip_value", "global_clipnorm": "clip_global", "ignore_index": "ignore",
         "target_shape": "shape", "betas": "beta1"}
# Names that other frameworks have for losses and metrics.
NAMES = {"acc": "accuracy", "categorical_accuracy": "accuracy", "binary_accuracy": "accuracy",
         "sparse_categorical_accuracy": "accuracy", "top_k_categorical_accuracy": "top_k",
         "categorical_crossentropy": "cross_entropy", "nll": "cross_entropy",
         "sparse_categorical_crossentropy": "cross_entropy", "l1": "mae", "l2": "mse",
         "binary_crossentropy": "binary_cross_entropy", "bce": "binary_cross_entropy",
         "mean_squared_error": "mse", "mean_absolute_error": "mae", "smooth_l1": "huber",
         "root_mean_squared_error": "rmse", "mean_absolute_percentage_error": "mape",
         "mean_squared_logarithmic_error": "msle", "kld": "kl_divergence", "f1_score": "f1"}


class Part:
    """What the catalogue describes: a kind, and options by their names."""

    kind = ""
    options: dict[str, str] = {}
    choices: dict[str, tuple[str, ...]] = {}

    def __init__(self, unknown, **values):
        name = type(self).__name__
        for word in unknown:
            ours = HINTS.get(word)
            known = [*values]
            hint = f"; it is called '{ours}' here" if ours in known else nearest(word, known) \
                if known else "; it takes none"
            raise TypeError(f"{name}() has no argument '{word}'{hint}")
        for word, words in self.choices.items():
            if isinstance(values.get(word), bool):
                values[word] = str(values[word]).lower()
            if values.get(word) is not None and values[word] not in words:
                raise ValueError(f"{name}: {word} '{values[word]}' is not known"
                                 + nearest(values[word], words))
        for word, type_ in self.options.items():
            self._check(name, word, type_, values.get(word))
        self.values = values

    @staticmethod
    def _check(name, word, type_, value):
        wanted = {"int": (int,), "float": (int, float), "bool": (bool,), "text": (str, list, tuple)}
        if word == "class_weight" and isinstance(value, dict):
            return
        if value is None or type_ not in wanted or hasattr(value, "__fspath__"):
            return
        if hasattr(value, "item") and not isinstance(value, wanted[type_]):
            value = value.item()
        if not isinstance(value, wanted[type_]) or (isinstance(value, bool) and type_ != "bool"):
            raise TypeError(f"{name}: {word} must be a {type_}, not {value!r}")

    def __repr__(self):
        words = ", ".join(f"{k}={v!r}" for k, v in self.values.items() if v is not None)
        return f"{type(self).__name__}({words})"


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def find(module, value, what, base):
    """A part by its name, "cross_entropy", or as it is."""
    if isinstance(value, base):
        return value
    if isinstance(value, type) and issubclass(value, base):
        return value()
    kinds = {c.kind: c for c in vars(module).values()
             if isinstance(c, type) and issubclass(c, base) and c.kind}
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a {what}: give a name, such as '{next(iter(kinds))}', or "
                        f"a part of tutti.{module.__name__.split('.')[-1]}")
    if value not in kinds:
        ours = NAMES.get(value.lower())
        raise ValueError(f"there is no {what} '{value}'" + (
            f"; it is called '{ours}' here" if ours in kinds else nearest(value, kinds)))
    return kinds[value]()


# ---- losses --------------------------------------------------------------------------------------


class Loss(Part):
    """A loss. Your own is a function of (target, output) tensors: see tutti.losses.loss."""

    def fields(self, context, target=None):
        values = dict(self.values)
        values["has_ignore"] = values.get("ignore") is not None or None
        if isinstance(values.get("class_weight"), dict):
            values["class_weight"] = ", ".join(
                f"{c}={float(w)!r}" for c, w in values["class_weight"].items())
        return {"kind": _c.ENUMS["tt_loss_kind"]["TT_" + self.kind.upper()], **values}

    @property
    def name(self):
        return self.kind


class FunctionLoss(Loss):
    def __init__(self, fn, weight=1.0, output=None, target=None):
        self.fn = fn
        super().__init__({}, weight=weight, output=output, target=target)

    @property
    def name(self):
        return getattr(self.fn, "__name__", "loss")

    def fields(self, context, target=None):
        """target: the type and shape of one record of its target."""
        def build(user, g, y, t):
            graph = Graph(context, ptr=g)
            return guarded(context, graph, lambda: _tensor(
                self.fn(Tensor(graph, t), Tensor(graph, y)), f"loss '{self.name}'"))

        out = {"kind": _c.ENUMS["tt_loss_kind"]["TT_CUSTOM_LOSS"], "fn": _c.tt_loss_fn(build),
               **self.values}
        if target is not None:
            out.update(has_target=True, target_dtype=target[0], target_shape=target[1])
        return out


def loss(fn=None, *, weight=1.0, output=None, target=None):
    """A loss of your own: fn(target, output) gives the terms, [batch, ...], as tensors.

    The loss is their mean over the global batch, whatever the devices. A plain function can be
    given to compile(); this adds a weight, or names the output and the target of a model with
    several of them.
    """
    if fn is None:
        return lambda f: FunctionLoss(f, weight, output, target)
    return FunctionLoss(fn, weight, output, target)


def _tensor(value, what):
    if not isinstance(value, Tensor) or value.graph is None:
        raise TypeError(f"{what} must return a tensor made of its arguments, not {value!r}")
    return value._ptr


def guarded(context, graph, fn, failed=None):
    """Calls Python code from the library: an exception is kept, and raised when the call returns."""
    try:
        with graph:
            return fn()
    except BaseException as error:  # nothing passes through C
        context.keep(error)
        fail(context.ptr, f"{type(error).__name__}: {error}")
        return failed


# ---- metrics -------------------------------------------------------------------------------------


class Metric(Part):
    """A metric. To write one, subclass it: build() and value(); or give a function to compile().

    build(target, output) returns tensors that are sums over the batch; value(sums) makes one number
    of their totals over all records, each a list of numbers.
    """

    lower_is_better = False

    def __init__(self, unknown=(), **values):
        super().__init__(unknown, **values)

    @property
    def name(self):
        return self.kind or snake(type(self).__name__)

    def bit(self):
        from ._lib import lib, text_of
        for value in _c.ENUMS["tt_metric_kind"].values():
            if self.kind and text_of(lib.tt_metric_name(value)) == self.kind:
                return value
        return 0

    def build(self, target, output):
        raise NotImplementedError(f"{type(self).__name__} needs build(target, output)")

    def value(self, sums):
        raise NotImplementedError(f"{type(self).__name__} needs value(sums)")

    def _states(self, target, output, mask):
        return self.build(target, output)

    def fields(self, context):
        def build(user, g, inputs, states):
            graph = Graph(context, ptr=g)
            given = _c.tt_metric_inputs.from_address(inputs)

            def make():
                mask = Tensor(graph, given.mask) if given.mask else None
                out = self._states(Tensor(graph, given.target), Tensor(graph, given.output), mask)
                out = out if isinstance(out, (list, tuple)) else [out]
                room = (ctypes.c_void_p * 8).from_address(states)
                for i, state in enumerate(out):
                    room[i] = _tensor(state, f"build() of metric '{self.name}'")
                return 0

            return guarded(context, graph, make, EINVAL)

        def value(user, sums, sizes):
            try:
                n = 0
                totals, counts = (ctypes.c_void_p * 8).from_address(sums), []
                counts = (ctypes.c_int64 * 8).from_address(sizes)
                out = []
                while n < self._n_states:
                    out.append(list((ctypes.c_double * counts[n]).from_address(totals[n])))
                    n += 1
                return float(self.value([s[0] if len(s) == 1 else s for s in out]))
            except BaseException as error:  # nothing passes through C
                context.keep(error)
                return float("nan")

        return {"name": self.name, "build": _c.tt_metric_build_fn(self._counting(build)),
                "value": _c.tt_metric_value_fn(value), "lower_is_better": self.lower_is_better}

    def _counting(self, build):
        def counted(user, g, inputs, states):
            status = build(user, g, inputs, states)
            room = (ctypes.c_void_p * 8).from_address(states)
            self._n_states = next((i for i, p in enumerate(room) if not p), 8)
            return status

        return counted


class FunctionMetric(Metric):
    def __init__(self, fn, name=None, lower_is_better=False):
        self.fn = fn
        self._name = name or getattr(fn, "__name__", "metric").strip("<>")
        self.lower_is_better = lower_is_better
        super().__init__()

    @property
    def name(self):
        return self._name

    def _states(self, target, output, mask):
        v = self.fn(target, output)
        _tensor(v, f"metric '{self.name}'")
        v = v if v.dtype == "f32" else v.astype("f32")
        ones = call("tt_broadcast", (1.0, v))
        if mask is not None and mask.shape == v.shape:
            v, ones = v * mask, mask
        return [v.sum(), ones.sum()]

    def value(self, sums):
        return sums[0] / sums[1] if sums[1] else float("nan")


def metric(fn=None, *, name=None, lower_is_better=False):
    """A metric of your own: the mean over all records of fn(target, output), a tensor [batch, ...].

    For what is not a mean, subclass Metric.
    """
    if fn is None:
        return lambda f: FunctionMetric(f, name, lower_is_better)
    return FunctionMetric(fn, name, lower_is_better)


# ---- schedules and optimizers --------------------------------------------------------------------


class Schedule(Part):
    """A schedule of the learning rate. Your own is a function: see tutti.schedules.schedule."""

    def fields(self, context):
        return {"kind": _c.ENUMS["tt_schedule_kind"]["TT_LR_" + self.kind.upper()], **self.values}


class FunctionSchedule(Schedule):
    def __init__(self, fn, warmup=0):
        self.fn = fn
        super().__init__({}, warmup=warmup)

    def fields(self, context):
        def at(user, step, steps):
            try:
                factor = float(self.fn(step, steps))
                if not 0 <= factor < float("inf"):
                    raise ValueError(f"the schedule gives {factor} at step {step}; the factor must be "
                                     "finite and not negative")
                return factor
            except BaseException as error:  # nothing passes through C
                context.keep(error)
                return 0.0

        return {"kind": _c.ENUMS["tt_schedule_kind"]["TT_LR_CUSTOM"], "fn": _c.tt_schedule_fn(at),
                **self.values}


def schedule(fn=None, *, warmup=0):
    """A schedule of your own: fn(step, steps) is the factor on the learning rate.

    step counts from 0, steps is the length of training (0 where it is not known).
    """
    if fn is None:
        return lambda f: FunctionSchedule(f, warmup)
    return FunctionSchedule(fn, warmup)


class Optimizer(Part):
    """An optimizer: how weights are updated from gradients."""

    def fields(self, context):
        from . import schedules
        values = dict(self.values)
        given, groups = values.pop("schedule", None), values.pop("groups", None) or []
        if given is None:
            given = "constant"
        if callable(given) and not isinstance(given, (Part, type)):
            given = FunctionSchedule(given)
        given = find(schedules, given, "schedule", Schedule)
        for g in groups:
            if not isinstance(g, dict) or "match" not in g:
                raise TypeError(f"{type(self).__name__}: a group is a dict with 'match', not {g!r}")
        groups = [{"lr_scale": 1.0, **g} for g in groups]
        kind = _c.ENUMS["tt_optimizer_kind"]["TT_" + self.kind.upper()]
        return {"kind": kind, **values, "schedule": given.fields(context), "groups": groups or None,
                "exact": True}
