"""Job files: data, model and training described in YAML."""
import ctypes
import os

from . import _c, _fit
from ._context import ON_EVENT, Context, _contexts
from ._data import Data
from ._lib import lib, make, text_of
from ._model import Built, Model
from ._progress import Progress
from ._record import Recording


def copy_of(struct, address):
    """Options that the library owns, to be changed."""
    return struct.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(struct)))


class _JobData(Data):
    def __init__(self, context, ptr):
        super().__init__()
        self._open = {context: ptr}

    @property
    def fields(self):
        from ._data import fields_of
        return fields_of(next(iter(self._open.values())))

    def __len__(self):
        return lib.tt_data_count(next(iter(self._open.values())))


class _JobModel(Model):
    def __init__(self, context, ptr):
        self._inputs, self._outputs = [], {}
        self._start({})
        self._context = context
        self._built = Built.of(context, ptr, False)  # the context's

    def _prepare(self, fields):
        if self._compiled is not None:
            super()._prepare(fields)  # compile() was called again


def _copied(struct, address):
    """A struct of the job's, to be changed."""
    return struct.from_buffer_copy(struct.from_address(address))


class Job:
    """A job file with its data and its compiled model, built in a context as it asks for.

    >>> job = tutti.Job("mnist.yaml", {"train.epochs": 2})
    >>> job.fit()
    >>> job.model.evaluate(job.validate)

    Args:
        file: the job file
        sets: values of keys that replace those of the file
        env: TUTTI_SECTION_KEY variables replace values too; default True
    """

    def __init__(self, file, sets=None, *, env=True):
        words = [f"{k}={v}".encode() for k, v in (sets or {}).items()]
        array = (ctypes.c_char_p * max(len(words), 1))(*words)
        self._reader = Context.local()
        opts = make(_c.tt_job_opts, sets=array, n_sets=len(words), no_env=not env)
        self._ptr = lib.tt_job_read_with(self._reader.ptr, os.fspath(file).encode(),
                                         ctypes.byref(opts))
        self._reader.check()
        self.context = self._open()
        parts = _c.tt_job_parts()
        lib.tt_job_build_sized(self._ptr, self.context.ptr, ctypes.byref(parts), ctypes.sizeof(parts))
        self.context.check()
        self._parts = parts
        self.train, self.validate, self.test = (
            _JobData(self.context, p) if p else None
            for p in (parts.train, parts.validate, parts.test))
        self.model = _JobModel(self.context, parts.model)

    def _open(self):
        context = Context.__new__(Context)
        context.options = {}
        context._start()
        opts = copy_of(_c.tt_open_opts, lib.tt_job_open_opts(self._ptr))
        opts.on_event, opts.level = ON_EVENT, 3
        tasks, cluster, helper = Context.tasks()
        opts.tasks, context.is_joined = tasks, bool(tasks)
        context.ptr = lib.tt_open_with(ctypes.byref(opts))
        Context.forget(tasks, cluster, helper)
        context.check()
        _contexts[("job", id(self))] = context
        return context

    @property
    def name(self):
        return text_of(lib.tt_job_name(self._ptr))

    def __getitem__(self, key):
        """The value of a key, "train.batch", as text."""
        value = lib.tt_job_get(self._ptr, key.encode())
        if not value:
            raise KeyError(key)
        return text_of(value)

    def __str__(self):
        return self._reader.string(lib.tt_job_print(self._ptr))

    def fit(self, *, callbacks=(), verbose="auto", run=None, **options):
        """Trains the model as the job says; options replace those of the job, as in Model.fit().

        run: folder in which the fit is recorded; True: a new one, runs/NAME-NNN. It is also sent to
        output.mlflow and output.http, if the job has them.
        """
        callbacks = _fit.checked(callbacks)
        if self.train is None:
            raise ValueError("the job has no data.train")
        for c in callbacks:
            c.model = self.model
        model, progress = self.model, Progress(verbose)
        model.stop_training = False
        loop = _fit.Loop(model, callbacks, progress)
        opts = copy_of(_c.tt_fit_opts, self._parts.fit)
        more = make(_c.tt_fit_opts, callbacks=loop.fields, **options)
        for name, _ in _c.tt_fit_opts._fields_:
            if name == "callbacks" or options.get(name) is not None:
                setattr(opts, name, getattr(more, name))
        wants = bool(run)
        with Recording(self.context, run, self.name, str(self), wants and self["output.mlflow"],
                       wants and self["output.http"]) as recording:
            recording.origin(self.train.open(self.context), opts.validate)
            if recording.folder and not opts.checkpoints:
                opts.checkpoints = os.path.join(recording.folder, "checkpoints").encode()
            loop.history.run, loop.recording = recording.folder, recording
            with _fit.telling(callbacks):
                return _fit.finish(model, loop, progress, lambda: lib.tt_fit_with(
                    model.ptr, self.train.open(self.context), ctypes.byref(opts)))
