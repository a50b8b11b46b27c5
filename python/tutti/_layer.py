"""Layers: descriptions of what a model is made of, and their connections."""
import ctypes
import json

from . import _c
from ._lib import lib, make, option_text
from ._parts import Part, _tensor, guarded, snake
from ._tensor import Graph, Tensor, init_of, shape_of


class Symbol:
    """The output of a layer before the model is built: what functional models are written with."""

    def __init__(self, layer, inputs):
        self.layer = layer
        self.inputs = inputs

    def __add__(self, other):
        from .layers import Add
        return Add()([self, other])

    def __repr__(self):
        return f"<output of {self.layer!r}>"


class Layer(Part):
    """A layer. To write one, subclass it and define build().

    >>> class Scale(tutti.Layer):
    ...     def build(self, x):
    ...         return x * self.weight("scale", x.shape[-1:], init="constant", a=1)

    build(*inputs) makes the output from tensors with tutti.ops, once for inference and once for
    training (self.training tells). Calling a layer connects it: y = layer(x). Calling it twice
    shares its weights.
    """

    def __init__(self, unknown=(), name=None, device=None, **values):
        super().__init__(unknown, **values)
        self.name = name
        self.device = device

    def __call__(self, *inputs):
        if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
            inputs = tuple(inputs[0])
        for x in inputs:
            if not isinstance(x, Symbol):
                raise TypeError(f"{type(self).__name__}() is called with outputs of layers or with "
                                f"tutti.Input, not {type(x).__name__}; arrays are given to "
                                "model.predict()")
        if not inputs:
            raise TypeError(f"{type(self).__name__}() needs an input")
        return Symbol(self, list(inputs))

    # ---- building --------------------------------------------------------------------------------

    def append(self, model, inputs, share):
        """Appends itself to a model that is being built; returns the output's pointer."""
        graph = lib.tt_model_get_graph(model.ptr)
        if self.device:
            lib.tt_device_push(graph, str(self.device).encode())
            model.context.check()
        try:
            out = self._append(model, inputs, share)
            model.context.check()
            return out
        finally:
            if self.device:
                lib.tt_device_pop(graph)

    def _append(self, model, inputs, share):
        if not self.kind:
            return self._append_own(model, inputs, share)
        if self.kind == "residual":
            return append_residual(self, model, inputs)
        values = {k: option_text(v) for k, v in self.values.items() if v is not None}
        if "vocab" in self.options and "vocab" not in values:
            if not model.vocab:
                raise ValueError(f"{type(self).__name__}: vocab must be given: the data does not "
                                 "define it")
            values["vocab"] = str(model.vocab)
        opts = make(_c.tt_catalog_layer_opts, options=json.dumps(values), name=self.name,
                    **{"from": inputs}, share=share)
        return lib.tt_catalog_layer_with(model.ptr, self.kind.encode(), ctypes.byref(opts))

    def _append_own(self, model, inputs, share):
        def build(user, b, given, n):
            graph = Graph(model.context, ptr=lib.tt_build_graph(b))
            pointers = (ctypes.c_void_p * n).from_address(given)
            tensors = [Tensor(graph, p) for p in pointers]
            self._build, self._graph = b, graph
            try:
                return guarded(model.context, graph, lambda: _tensor(
                    self.build(*tensors), f"build() of layer '{type(self).__name__}'"))
            finally:
                self._build = None

        fn = _c.tt_layer_fn(build)
        model.keep.append(fn)
        call, struct = own_call()
        opts = make(struct, fn=fn, name=self.name or model.free_name(snake(type(self).__name__)),
                    **{"from": inputs}, share=share)
        return call(model.ptr, ctypes.byref(opts))

    def build(self, *inputs):
        raise NotImplementedError(f"{type(self).__name__} needs build(*inputs)")

    @property
    def training(self):
        """True while the layer is built for training."""
        return bool(lib.tt_build_is_training(self._build))

    def weight(self, name, shape, init="glorot_uniform", a=0.0, b=0.0):
        """A weight of the layer; to be called in build()."""
        if getattr(self, "_build", None) is None:
            raise RuntimeError("weight() is called in build() of a layer")
        ptr = lib.tt_layer_weight(self._build, name.encode(), shape_of(shape), init_of(init, a, b))
        if not ptr:
            self._graph.context.check()
        return Tensor(self._graph, ptr)


def own_call():
    """The function that appends a layer of the program's own."""
    for name in ("tt_layer_custom", "tt_custom"):
        if name + "_with" in _c.FUNCTIONS:
            return getattr(lib, name + "_with"), getattr(_c, name + "_opts")
    raise AttributeError("tt_layer_custom_with")


class Lambda(Layer):
    """A layer without weights made of a function of tensors: Lambda(lambda x: x * 2)."""

    def __init__(self, fn, *, name=None, device=None):
        self.fn = fn
        super().__init__(name=name, device=device)

    def build(self, *inputs):
        return self.fn(*inputs)


class _InputLayer(Layer):
    def __init__(self, shape, dtype, name):
        self.shape = None if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = dtype
        super().__init__(name=name)


def Input(shape=None, dtype="f32", name=None):
    """An input of a model: the shape of one record, without the batch.

    name matches a field of the data; default "x", "x_1", ...
    """
    return Symbol(_InputLayer(shape, dtype, name), [])


def append_residual(layer, model, inputs):
    from .layers import Activation, Add
    inner = layer.values["layers"]
    if not inner:
        raise ValueError("Residual: layers must be given")
    if len(inputs) != 1:
        raise ValueError(f"Residual takes 1 input, got {len(inputs)}")
    y = inputs
    for one in inner:
        y = [model.append(one, y)]
    out = model.append(Add(), [inputs[0], y[0]])
    if layer.values["act"] != "linear":
        out = model.append(Activation(layer.values["act"]), [out])
    return out
