"""fit(): the library's loop over data sets, and a loop in Python over streams of batches."""
import ctypes
import math
import os
import signal
import sys
import threading

from . import _c
from ._data import INPUTS, TARGETS, _named, data_of, fields_of
from ._dlpack import array_of
from ._lib import ESTOP, error_of, lib, make, nearest
from ._progress import Progress
from ._record import Recording, description
from ._tensor import hash_text
from .callbacks import Callback

MOMENTS = {"STEP": 0, "EPOCH": 1, "VALIDATION": 2, "END": 3, "STEP_BEGIN": 4, "EPOCH_BEGIN": 5,
           "BEGIN": 6}


class Logs(dict):
    """Values by name; Keras's val_loss is found as validation_loss."""

    def __missing__(self, key):
        if isinstance(key, str) and key.startswith("val_") and "validation_" + key[4:] in self:
            return self["validation_" + key[4:]]
        raise KeyError(key)


class History:
    """What fit() returns: history has a list per metric, one value per epoch.

    steps, seconds, samples_per_second, hash (of the weights), saved (the newest checkpoint) and run
    (the folder it was recorded in) are those of the whole fit.
    """

    def __init__(self):
        self.history = Logs()
        self.epoch = []
        self.steps = 0
        self.seconds = 0.0
        self.samples_per_second = 0.0
        self.ended = "finished"
        self.saved = ""
        self.hash = ""
        self.run = ""

    def add(self, epoch, logs):
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)

    def __repr__(self):
        last = ", ".join(f"{k} {v[-1]:.4g}" for k, v in self.history.items() if v)
        return f"<History of {len(self.epoch)} epochs: {last}>"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during fit(): the current step was finished; saved names the checkpoint, if any."""

    def __init__(self, step, saved):
        self.step, self.saved = step, saved
        super().__init__(f"stopped after step {step}; " + (f"saved to {saved}" if saved else
                         "the model keeps its weights; give fit() checkpoints=FOLDER to save them"))


Interrupted.__module__ = "tutti"


class CtrlC:
    """While it is entered, Ctrl-C asks the fit to end; a second one ends the step itself."""

    def __init__(self, context):
        self.context = context
        self.is_pressed = False

    def _on_signal(self, number, frame):
        if self.is_pressed:
            lib.tt_request_stop(self.context.ptr)
        self.is_pressed = True
        lib.tt_request_end(self.context.ptr)

    def __enter__(self):
        self.old = None
        if threading.current_thread() is threading.main_thread() and \
                signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self.old = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *error):
        if self.old is not None:
            signal.signal(signal.SIGINT, self.old)


def values_of(p, prefix=""):
    """The loss and the metrics of a tt_progress."""
    logs = Logs(loss=p.loss)
    for i in range(p.n_metrics):
        logs[p.names[i].decode()] = p.metrics[i]
    if p.has_validation:
        logs["validation_loss"] = p.validation_loss
        for i in range(p.n_metrics):
            logs["validation_" + p.names[i].decode()] = p.validation[i]
    logs["lr"] = p.lr
    return logs


def place_of(p):
    return {"step": p.step, "steps": p.steps, "epoch": p.epoch, "epochs": p.epochs, "rows": p.rows,
            "epoch_rows": p.epoch_rows, "speed": p.samples_per_second}


def overrides(callback, name):
    return getattr(type(callback), name, None) is not getattr(Callback, name) or \
        name in vars(callback)


def checked(callbacks):
    callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for c in callbacks:
        if not isinstance(c, Callback):
            raise TypeError(f"{c!r} is not a callback: subclass tutti.Callback, or use "
                            "tutti.callbacks.LambdaCallback(on_epoch_end=...)")
    return callbacks


class Loop:
    """The library's loop: its callbacks call those of Python."""

    def __init__(self, model, callbacks, progress):
        self.model, self.callbacks, self.progress = model, callbacks, progress
        self.history = History()
        self.error = None
        self.recording = None
        self.fields = []
        on = {name: [c for c in callbacks if overrides(c, name)]
              for name in ("on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end",
                           "on_batch_begin", "on_batch_end", "on_validation_end")}
        self.on = on
        self.last = Logs()
        self._add("STEP", self._step)  # also lets Python see Ctrl-C
        self._add("EPOCH", self._epoch)
        if on["on_epoch_begin"]:
            self._add("EPOCH_BEGIN", self._epoch_begin)
        if on["on_batch_begin"]:
            self._add("STEP_BEGIN", self._step_begin)
        self._add("VALIDATION", self._validation)

    def _add(self, moment, fn):
        def guarded(user, m, p):
            try:
                fn(_c.tt_progress.from_address(p))
            except BaseException as error:  # nothing passes through C
                self.error = self.error or error
                return ESTOP
            if self.model.context.pending is not None:  # of a metric or schedule
                return ESTOP
            return ESTOP if self.model.stop_training else 0

        self.fields.append({"at": MOMENTS[moment], "every": 1, "fn": _c.tt_callback_fn(guarded)})

    def _step(self, p):
        if self.progress.verbose == 1:
            self.progress.step(place_of(p), values_of(p))
        if self.on["on_batch_end"]:
            logs = values_of(p)
            for c in self.on["on_batch_end"]:
                c.on_batch_end(p.step, logs)

    def _step_begin(self, p):
        for c in self.on["on_batch_begin"]:
            c.on_batch_begin(p.step, values_of(p))

    def _epoch_begin(self, p):
        for c in self.on["on_epoch_begin"]:
            c.on_epoch_begin(p.epoch, values_of(p))

    def _epoch(self, p):
        self.history.steps = p.step
        logs = self.last = values_of(p)
        self.history.add(p.epoch, logs)
        self.progress.epoch(place_of(p), logs)
        for c in self.on["on_epoch_end"]:
            c.on_epoch_end(p.epoch, logs)

    def _validation(self, p):
        self.history.steps = p.step
        self.last = values_of(p)
        for c in self.on["on_validation_end"]:
            c.on_validation_end(self.last)


def fit(model, x, y=None, *, batch_size=None, epochs=None, steps=None, validation_data=None,
        validation_split=0.0, validation_steps=None, validate_every=None, shuffle=True, callbacks=(),
        verbose="auto", accumulate=None, checkpoints=None, save_every=None, keep=None, resume=False,
        restart=False, nan="stop", divergence=None, steps_per_epoch=None, run=None, mlflow=None,
        http=None):
    """Trains the model and returns a History.

    Args:
        x: inputs: a NumPy array or a tensor with __dlpack__, a tuple or dict of them; or a data set:
            tutti.data.CSV(...), an object with len() and [i], a PyTorch DataLoader, a generator of
            (x, y) batches or a function that returns one
        y: targets, where x are inputs
        batch_size: global batch size, over all devices; default: the data set's, 32 for arrays
        epochs: passes over the data; default 1
        steps: updates, instead of epochs
        validation_data: (x, y) or a data set, evaluated after each epoch
        validation_split: fraction of the records, the last ones, that are used so instead
        validation_steps: batches of a validation; default: all
        validate_every: steps between validations, instead of after each epoch
        shuffle: shuffle arrays every epoch
        callbacks: of tutti.callbacks, or your own
        verbose: 0: nothing, 1: a line that is redrawn, 2: a line per epoch, "auto"
        accumulate: batches per update
        checkpoints: folder to save to; with save_every (steps; default: every epoch) and keep (3)
        resume: go on from the newest checkpoint there; restart: begin again, and keep the old ones
        nan: what to do when a loss is not finite: "stop", "skip" or "continue"
        divergence: fail when the loss stays above this many times its first value; default 1000
        steps_per_epoch: of a generator that does not end
        run: folder in which the fit is recorded, for tutti runs, tutti plot and TensorBoard; True: a
            new one, runs/NAME-NNN, after the program's name. Checkpoints go there, too
        mlflow: address of an MLflow tracking server to which the run is also sent; "$NAME" is the
            value of that environment variable
        http: address that gets the events of the run as JSON, about once a second

    Ctrl-C ends the fit after the current step, saves a checkpoint, if there is a folder for it, and
    raises tutti.Interrupted, a KeyboardInterrupt. The results do not depend on the devices.
    """
    if x is None:
        raise TypeError("fit() needs data")
    callbacks = checked(callbacks)
    data = data_of(x, y, batch_size, shuffle)
    for c in callbacks:
        c.model = model
    model.stop_training = False
    progress = Progress(verbose)
    for name, value in (("epochs", epochs), ("steps", steps), ("batch_size", batch_size)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ValueError(f"{name} is {value!r}; it must be an integer of at least 1")
    if data is None:
        if checkpoints or resume or restart or validation_split or accumulate or run or mlflow or http:
            raise TypeError("a stream of batches cannot be split, resumed, accumulated or recorded; "
                            "tutti.callbacks.ModelCheckpoint saves, and arrays or data sets with "
                            "len() and [i] can do all of it")
        with telling(callbacks):
            return fit_batches(model, x, epochs or 1, steps, steps_per_epoch, validation_data,
                               callbacks, progress)
    if steps_per_epoch is not None:
        raise TypeError("steps_per_epoch is for generators; an epoch of a data set is all its records")
    validate = None
    if validation_split:
        validate = data.split(validation_split, take="last")
    elif validation_data is not None:
        validate = data_of(*(validation_data if isinstance(validation_data, tuple)
                             else (validation_data,)), shuffle=False)
        if validate is None:
            raise TypeError("validation data must be arrays or a data set, not a generator")
        validate.shuffle = False
    options = {
        "batch": batch_size, "epochs": epochs, "steps": steps, "validate_every": validate_every,
        "validate_rows": validation_steps * (batch_size or data.batch) if validation_steps else None,
        "accumulate": accumulate, "checkpoints": checkpoints, "save_every": save_every, "keep": keep,
        "resume": resume or None, "restart": restart or None,
        "nan": ("stop", "skip", "continue").index(nan) if nan in ("stop", "skip", "continue")
        else _bad_nan(nan), "divergence": divergence}
    with telling(callbacks):
        return fit_data(model, data, validate, callbacks, progress, options, run, mlflow, http)


class telling:
    """Callbacks learn of the exception with which a fit ends."""

    def __init__(self, callbacks):
        self.callbacks = callbacks

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if error is not None:
            for c in self.callbacks:
                c.on_train_error(error)


def _bad_nan(nan):
    raise ValueError(f"nan is '{nan}'" + nearest(nan, ("stop", "skip", "continue")))


def program_name():
    return os.path.splitext(os.path.basename(sys.argv[0] or ""))[0].strip("-_") or "python"


def fit_data(model, data, validate, callbacks, progress, options, run=None, mlflow=None, http=None):
    context = model.context
    ptr = data.open(context)
    model._prepare(fields_of(ptr))
    model._trained_on = data
    if validate is not None:
        options["validate"] = validate.open(context, data)
    called = []
    for c in callbacks:
        more = c.options()
        if more is None:
            called.append(c)
        else:
            options.update({k: v for k, v in more.items() if v is not None})
    loop = Loop(model, called, progress)
    about = description(model, program_name(), {**options, "batch": options["batch"] or data.batch})
    if run and os.environ.get("TUTTI_REPEAT"):  # tutti reproduce: from the beginning, in its folder
        options.update(checkpoints=None, resume=None, restart=None)
    with Recording(context, run, program_name(), about, mlflow, http) as recording:
        recording.origin(ptr, options.get("validate"))
        if recording.folder and options["checkpoints"] is None:
            options["checkpoints"] = os.path.join(recording.folder, "checkpoints")
        loop.history.run, loop.recording = recording.folder, recording
        opts = make(_c.tt_fit_opts, callbacks=loop.fields, **options)
        return finish(model, loop, progress,
                      lambda: lib.tt_fit_with(model.ptr, ptr, ctypes.byref(opts)))


def finish(model, loop, progress, run):
    """Runs the library's loop and makes of its end a history or an exception."""
    context = model.context
    for c in loop.callbacks:
        c.recording = loop.recording
    if loop.recording is not None:
        loop.recording.step = lambda: loop.history.steps
    for c in loop.on["on_train_begin"]:
        c.on_train_begin(Logs())
    with context.lock, CtrlC(context) as ctrl_c:
        status = run()
    report(model, loop.history)
    if loop.error is not None or context.pending is not None:
        error, context.pending = loop.error or context.pending, None
        lib.tt_clear_error(context.ptr)
        raise error
    if status == ESTOP and ctrl_c.is_pressed:
        lib.tt_clear_error(context.ptr)
        stopped = Interrupted(loop.history.steps, loop.history.saved)
        progress.note(f"{stopped}")
        raise stopped
    context.check()
    for c in loop.on["on_train_end"]:
        c.on_train_end(loop.last)
    return loop.history


def report(model, history):
    r = _c.tt_fit_report()
    if lib.tt_fit_report_get_sized(model.ptr, ctypes.byref(r), ctypes.sizeof(r)):
        return
    last = _c.tt_progress.from_address(r.last)
    history.steps, history.seconds = last.step, r.seconds
    history.samples_per_second = r.samples_per_second
    history.hash = hash_text(r.weights)
    history.saved = r.saved.decode() if r.saved else ""
    words = {v: k.removeprefix("TT_FIT_").lower() for k, v in _c.ENUMS["tt_fit_end"].items()}
    history.ended = words.get(r.ended, "")
    if not history.epoch and last.step:
        history.add(last.epoch, values_of(last))


# ---- streams of batches --------------------------------------------------------------------------


def batch_arrays(batch, y=None):
    """The inputs and the targets of a batch, [(name, array, dtype)]."""
    if y is None and isinstance(batch, (tuple, list)) and len(batch) == 2:
        batch, y = batch
    out = []
    for rules, named in ((INPUTS, _named(batch, "x")), (TARGETS, _named(y, "y"))):
        for name, value in named:
            array, dtype = array_of(value)
            if dtype in rules:
                array, dtype = array_of(array, rules[dtype])
            out.append((name, array, dtype))
    return out


def step_of(model, arrays, lr=None):
    """One update; returns its tt_progress."""
    rows = {a.shape[0] if a.ndim else 0 for _, a, _ in arrays}
    if len(rows) != 1:
        raise ValueError("the arrays of a batch have different numbers of rows: "
                         + ", ".join(f"'{n}' has {len(a)}" for n, a, _ in arrays))
    model._prepare([{"name": n, "dtype": d, "shape": a.shape[1:], "classes": 0}
                    for n, a, d in arrays])
    check_shapes(model, arrays)
    batch = _c.tt_batch_data(rows=rows.pop())
    for i, (_, array, _) in enumerate(arrays):
        batch.fields[i] = array.ctypes.data
    out = _c.tt_progress()
    opts = make(_c.tt_train_step_opts, out_size=ctypes.sizeof(out), lr=lr)
    with model.context.lock:
        lib.tt_train_step_with(model.ptr, ctypes.byref(batch), ctypes.byref(out), ctypes.byref(opts))
        model.context.check()
    return out


def check_shapes(model, arrays):
    """tt_train_step() gets bare pointers: what they point to is compared with the model here."""
    inputs = [model._port(i, lib.tt_model_input_sized)
              for i in range(lib.tt_model_input_count(model.ptr))]
    wanted = [(p.name.decode(), tuple(p.shape.dim[:p.shape.rank])) for p in inputs]
    for (name, shape), (_, array, _) in zip(wanted, arrays):
        if array.shape[1:] != shape:
            raise ValueError(f"input '{name}' takes records of shape {shape}, but the batch is "
                             f"{array.shape}")
    n = len(wanted) + len(model._compiled["losses"])
    if len(arrays) != n:
        raise ValueError(f"a batch has {n} arrays, inputs first, then targets; this one has "
                         f"{len(arrays)}")
    for i, loss in enumerate(model._compiled["losses"]):
        port = model._port(min(i, lib.tt_model_output_count(model.ptr) - 1), lib.tt_model_output_sized)
        shape = tuple(port.shape.dim[:port.shape.rank])
        _, array, dtype = arrays[len(wanted) + i]
        if loss.kind == "cross_entropy" and dtype not in ("f32", "f64", "f16", "bf16"):
            shape = shape[:-1]
        if array.shape[1:] != shape:
            raise ValueError(f"the target has records of shape {array.shape[1:]}, but the output of "
                             f"the model needs {shape}")


def train_on_batch(model, x, y, lr=None):
    p = step_of(model, batch_arrays(x, y), lr)
    return Logs(loss=p.step_loss, **{p.names[i].decode(): p.metrics[i] for i in range(p.n_metrics)})


def batches_of(stream):
    return stream() if callable(stream) else stream


def fit_batches(model, stream, epochs, steps, steps_per_epoch, validation, callbacks, progress):
    """Each batch of the stream is one update. Metrics of an epoch are means weighted by rows."""
    history, step, is_iterator = History(), 0, hasattr(stream, "__next__")
    if is_iterator and epochs > 1 and not steps_per_epoch:
        raise ValueError("a generator can be read once: give steps_per_epoch, or a function that "
                         "returns a new generator for each epoch")
    for c in callbacks:
        c.on_train_begin(Logs())
    epochs = 10**9 if steps else epochs
    iterator, logs = iter(batches_of(stream)), Logs()
    with CtrlC(model.context) as ctrl_c:
        for epoch in range(1, epochs + 1):
            if epoch > 1 and not is_iterator:
                iterator = iter(batches_of(stream))
            for c in callbacks:
                c.on_epoch_begin(epoch, logs)
            sums, rows, n = Logs(), 0, 0
            for batch in iterator:
                for c in callbacks:
                    c.on_batch_begin(step, logs)
                arrays = batch_arrays(batch)
                lr = None if model.lr_factor == 1 else _lr_of(model) * model.lr_factor
                p = step_of(model, arrays, lr)
                step, n, count = step + 1, n + 1, len(arrays[0][1])
                rows += count
                one = Logs(loss=p.step_loss,
                           **{p.names[i].decode(): p.metrics[i] for i in range(p.n_metrics)})
                for name, value in one.items():
                    sums[name] = sums.get(name, 0.0) + value * count
                logs = Logs({k: v / rows for k, v in sums.items()}, lr=p.lr)
                for c in callbacks:
                    c.on_batch_end(step, logs)
                place = {"step": step, "steps": steps or (steps_per_epoch or 0) * epochs,
                         "epoch": epoch, "epochs": 0 if steps else epochs, "rows": n,
                         "epoch_rows": steps_per_epoch or _length(stream)}
                progress.step(place, logs)
                if not math.isfinite(p.step_loss):
                    raise error_of(_c.ENUMS["tt_status"]["TT_ENAN"],
                                   f"step {step}: the loss is {p.step_loss}")
                if ctrl_c.is_pressed or model.stop_training or n == steps_per_epoch or step == steps:
                    break
            if n == 0:
                raise ValueError("the stream has no batches" if step == 0 else
                                 f"the stream ended before epoch {epoch} of {epochs}")
            if validation is not None:
                result = model.evaluate(*(validation if isinstance(validation, tuple)
                                          else (validation,)))
                logs.update({"validation_" + k: v for k, v in result.items()})
                for c in callbacks:
                    c.on_validation_end(logs)
            history.add(epoch, logs)
            progress.epoch(place, logs)
            for c in callbacks:
                c.on_epoch_end(epoch, logs)
            if ctrl_c.is_pressed or model.stop_training or (steps and step >= steps):
                break
    history.steps, history.hash = step, model.hash
    if ctrl_c.is_pressed:
        lib.tt_clear_error(model.context.ptr)
        raise Interrupted(step, "")
    for c in callbacks:
        c.on_train_end(logs)
    return history


def _lr_of(model):
    return model._compiled["optimizer"].values["lr"]


def _length(stream):
    try:
        return len(stream)
    except TypeError:
        return 0


def evaluate_batches(model, stream):
    """Means over the batches of a stream, weighted by their rows."""
    sums, rows = Logs(), 0
    for batch in batches_of(stream):
        arrays = batch_arrays(batch)
        n = lib.tt_model_input_count(model.built(
            [{"name": k, "dtype": d, "shape": a.shape[1:], "classes": 0} for k, a, d in arrays]).ptr)
        count = len(arrays[0][1])
        result = model.evaluate({k: a for k, a, _ in arrays[:n]}, {k: a for k, a, _ in arrays[n:]})
        rows += count
        for name, value in result.items():
            sums[name] = sums.get(name, 0.0) + value * count
    if rows == 0:
        raise ValueError("the stream has no batches")
    return {k: v / rows for k, v in sums.items()}
