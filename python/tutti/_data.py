"""Data sets: sources of the library, arrays in memory, Python objects by index; transforms."""
import ctypes
import json

import numpy as np

from . import _c
from ._context import Context, Handle
from ._dlpack import array_of
from ._lib import DTYPES, EINVAL, NUMPY, fail, lib, make, option_text, shape_of
from ._parts import Part

SPLIT = {"random": 0, "first": 1, "last": 2}


class Transform(Part):
    """A transform of records, such as Normalise(fit=True)."""

    @property
    def is_random(self):
        return self.kind.startswith("random_")

    def apply(self, context, data, like):
        values = {k: v for k, v in self.values.items() if v is not None}
        for name, words in self.choices.items():
            if name in values:
                values[name] = words.index(values[name])
        if isinstance(values.get("size"), int):
            values["size"] = (values["size"],) * 2
        if like is not None and values.get("fit"):
            values["like"] = like
        opts = make(_c.tt_transform_opts, **values)
        lib.tt_transform_with(data, self.kind.encode(), ctypes.byref(opts))
        context.check()


class Data:
    """A data set: records with fields, read in an order. It is opened when it is used."""

    def __init__(self, batch=32, shuffle=True, transforms=(), workers=1, prefetch=0):
        self.batch = batch
        self.shuffle = shuffle
        self.transforms = list(transforms)
        self.workers = workers
        self.prefetch = prefetch
        self._open = {}  # context: pointer
        self._handles = []
        self._splits = []

    # ---- opening ---------------------------------------------------------------------------------

    def _options(self):
        return {"batch": self.batch, "no_shuffle": not self.shuffle,
                "workers": self.workers or -1, "prefetch": self.prefetch or None}

    def _make(self, context):
        raise NotImplementedError

    def open(self, context=None, like=None):
        """The pointer of the data set in a context. like: training data, whose numbers it uses."""
        context = context or Context.local()
        if context not in self._open:
            context.clean()
            ptr = self._make(context)
            context.check()
            self._open[context] = ptr
            kept = getattr(self, "arrays", None), getattr(self, "_keep", None)
            self._handles.append(Handle(context, ptr, lib.tt_data_free, *kept))
            for part in self._splits:
                part._take(context, ptr)
            self._transform(context, ptr, like)
        return self._open[context]

    def _transform(self, context, ptr, like):
        transforms = self.transforms
        if like is not None and not transforms:
            transforms = like.transforms
        for t in transforms:
            if like is None or not t.is_random:
                t.apply(context, ptr, like.open(context) if like is not None else None)

    def close(self):
        for handle in self._handles:
            handle.free()
        self._open, self._handles = {}, []

    def __del__(self):
        for handle in getattr(self, "_handles", ()):
            handle.leave()

    # ---- looking ---------------------------------------------------------------------------------

    def __len__(self):
        """The number of records."""
        return lib.tt_data_count(self.open())

    @property
    def fields(self):
        """Name, dtype and shape of each field of a record."""
        return fields_of(self.open())

    def __iter__(self):
        """The batches of one epoch, each a tuple of NumPy arrays."""
        context = Context.local()
        ptr = self.open(context)
        fields, left = fields_of(ptr), lib.tt_data_count(ptr)
        lib.tt_data_start(ptr, 0, 0)
        context.check()
        batch = _c.tt_batch_data()
        try:
            while left > 0:
                lib.tt_data_next_sized(ptr, ctypes.byref(batch), ctypes.sizeof(batch))
                context.check()
                yield tuple(_copy(batch.fields[i], (batch.rows, *f["shape"]), f["dtype"])
                            for i, f in enumerate(fields))
                left -= batch.rows
        finally:
            lib.tt_data_stop(ptr)

    def split(self, fraction=None, *, rows=None, stratify=None, group=None, take="random", seed=None):
        """Takes records out of this data set and returns them as another, for validation.

        Args:
            fraction: of the records, above 0 and below 1; or
            rows: their number
            stratify: field or CSV column of which each value keeps its proportion
            group: field or CSV column: records with the same value stay together
            take: "random", "first" or "last"
            seed: of the choice
        """
        if self._open:
            raise RuntimeError("split() comes before the data set is used")
        if (fraction is None) == (rows is None):
            raise TypeError("split() takes one of fraction and rows")
        if take not in SPLIT:
            raise ValueError(f"take is '{take}'; it is one of random, first, last")
        part = _Split(self, {"fraction": fraction, "rows": rows, "stratify": stratify, "group": group,
                             "take": SPLIT[take], "seed": seed})
        self._splits.append(part)
        return part


def fields_of(ptr):
    room = (_c.tt_field * 16)()
    n = lib.tt_data_fields(ptr, room)
    return [{"name": f.name.decode(), "dtype": DTYPES[f.dtype],
             "shape": tuple(f.shape.dim[:f.shape.rank]), "classes": f.classes} for f in room[:n]]


def _copy(address, shape, dtype):
    count = int(np.prod(shape, dtype=np.int64))
    size = count * np.dtype(NUMPY[dtype]).itemsize
    memory = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(bytearray(memory), NUMPY[dtype]).reshape(shape)


class _Split(Data):
    def __init__(self, whole, values):
        super().__init__(whole.batch, False, (), whole.workers, whole.prefetch)
        self.whole, self.values = whole, values
        self._raw = {}

    def _take(self, context, ptr):
        opts = make(_c.tt_data_split_opts, **self.values)
        self._raw[context] = lib.tt_data_split_with(ptr, ctypes.byref(opts))
        context.check()

    def _make(self, context):
        self.whole.open(context)
        return self._raw[context]

    def _transform(self, context, ptr, like):
        super()._transform(context, ptr, self.whole)


class Source(Part, Data):
    """A source of the library: files, or records that it makes."""

    def __init__(self, unknown, batch, shuffle, transforms, workers, prefetch, **values):
        Part.__init__(self, unknown, **values)
        Data.__init__(self, batch, shuffle, transforms, workers, prefetch)

    def _make(self, context):
        values = {k: option_text(v) for k, v in self.values.items() if v is not None}
        opts = make(_c.tt_catalog_source_opts, options=json.dumps(values), **self._options())
        return lib.tt_catalog_source_with(context.ptr, self.kind.encode(), ctypes.byref(opts))


# ---- arrays --------------------------------------------------------------------------------------

TARGETS = {"f64": "f32", "i64": "i32", "u8": "i32", "bool": "i32"}
INPUTS = {"f64": "f32", "i64": "i32"}


def _named(values, standard):
    """[(name, value)] of an array, a list of arrays or a dict of them."""
    if values is None:
        return []
    if isinstance(values, dict):
        return list(values.items())
    if isinstance(values, tuple) or (isinstance(values, list) and values
                                     and hasattr(values[0], "shape")):
        return [(standard if i == 0 else f"{standard}_{i}", v) for i, v in enumerate(values)]
    return [(standard, values)]


class Arrays(Data):
    """Arrays in memory: inputs x and targets y, whose first axis is the record.

    x and y are NumPy arrays or tensors with __dlpack__, several as a tuple or as a dict by the names
    of the model's inputs and targets. float32, float16, bfloat16 and int32 arrays that are
    contiguous are used where they are; float64 becomes f32, int64 becomes i32.
    """

    def __init__(self, x, y=None, *, batch=32, shuffle=True, transforms=(), workers=1, prefetch=0):
        super().__init__(batch, shuffle, transforms, workers, prefetch)
        self.arrays = []  # (name, array, dtype)
        self.n_inputs = len(_named(x, "x"))
        for rules, named in ((INPUTS, _named(x, "x")), (TARGETS, _named(y, "y"))):
            for name, value in named:
                array, dtype = array_of(value)
                if dtype in rules:
                    array, dtype = array_of(array, rules[dtype])
                if array.ndim == 0:
                    raise ValueError(f"'{name}' is a scalar; its first axis must be the record")
                self.arrays.append((name, array, dtype))
        counts = {name: len(array) for name, array, _ in self.arrays}
        if not counts:
            raise ValueError("there are no arrays")
        if len(set(counts.values())) > 1:
            raise ValueError("the arrays have different numbers of records: "
                             + ", ".join(f"'{n}' has {c}" for n, c in counts.items()))
        self.count = next(iter(counts.values()))
        if self.count == 0:
            raise ValueError("the arrays have no records")

    def _make(self, context):
        fields = [{"name": name, "data": array.ctypes.data, "dtype": dtype, "shape": array.shape[1:]}
                  for name, array, dtype in self.arrays]
        opts = make(_c.tt_memory_opts, count=self.count, fields=fields, **self._options())
        return lib.tt_memory_with(context.ptr, ctypes.byref(opts))

    def __len__(self):
        return self.count


class Map(Data):
    """Records of a Python object by number, as PyTorch's map-style data sets: len() and [i].

    A record is a tuple of arrays or numbers, or a dict of them by field. Threads of the library read
    ahead; each call holds the interpreter's lock.
    """

    def __init__(self, records, *, batch=32, shuffle=True, transforms=(), workers=1, prefetch=0):
        super().__init__(batch, shuffle, transforms, workers, prefetch)
        self.records = records
        if len(records) < 1:
            raise ValueError("the data set has no records")
        first = self._values(records[0])
        names = list(records[0]) if isinstance(records[0], dict) else \
            ["x"] + [f"y_{i}" if i else "y" for i in range(len(first) - 1)]
        self._fields = []
        for i, (name, value) in enumerate(zip(names, first)):
            array, dtype = array_of(value)
            dtype = (INPUTS if i == 0 else TARGETS).get(dtype, dtype)
            self._fields.append((name, array.shape, dtype))

    @staticmethod
    def _values(record):
        if isinstance(record, dict):
            return list(record.values())
        return list(record) if isinstance(record, (tuple, list)) else [record]

    def __len__(self):
        return len(self.records)

    def _make(self, context):
        fields = self._fields

        def read(ctx, user, i, out):
            try:
                rooms = (ctypes.c_void_p * len(fields)).from_address(out)
                for room, (name, shape, dtype), value in zip(rooms, fields,
                                                             self._values(self.records[i])):
                    array, _ = array_of(value, dtype)
                    if array.shape != shape:
                        raise ValueError(f"field '{name}' is {array.shape}, but that of record 0 is "
                                         f"{shape}")
                    ctypes.memmove(room, array.ctypes.data, array.nbytes)
                return 0
            except BaseException as error:  # nothing passes through C
                fail(ctx, f"record {i}: {type(error).__name__}: {error}")
                return EINVAL

        source = _c.tt_source(count=len(self.records), n_fields=len(fields))
        kinds = dict(_c.tt_source._fields_)
        source.read = kinds["read"](read)
        self._keep = getattr(self, "_keep", []) + [source.read, source]
        for field, (name, shape, dtype) in zip(source.fields, fields):
            field.name, field.dtype, field.shape = name.encode(), DTYPES.index(dtype), shape_of(shape)
        opts = make(_c.tt_data_opts, **self._options())
        return lib.tt_data_new_with(context.ptr, ctypes.byref(source), ctypes.byref(opts))


def data_of(x, y=None, batch=None, shuffle=True):
    """A data set of what fit() and evaluate() take; None where it is a stream of batches."""
    if isinstance(x, Data):
        if y is not None:
            raise TypeError("a data set has its targets: y is not given beside it")
        return x
    if y is None and isinstance(x, tuple) and len(x) == 2:
        x, y = x
    is_array = hasattr(x, "shape") or isinstance(x, (dict, tuple)) or (
        isinstance(x, list) and len(x) > 0)
    if is_array:
        return Arrays(x, y, batch=batch or 32, shuffle=shuffle)
    if hasattr(x, "__next__") or callable(x) or hasattr(x, "__iter__") and (
            hasattr(x, "batch_size") or not hasattr(x, "__getitem__")):
        return None
    if hasattr(x, "__len__") and hasattr(x, "__getitem__"):
        return Map(x, batch=batch or 32, shuffle=shuffle)
    raise TypeError(f"a {type(x).__name__} is not data: give arrays, a tutti.data source, a data set "
                    "with len() and [i], a DataLoader or a generator of batches")
