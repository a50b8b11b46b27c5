"""Callbacks: what is called while a model is fitted."""


def our_name(name):
    """Names of metrics here: Keras's val_loss is validation_loss."""
    return "validation_" + name[4:] if name and name.startswith("val_") else name


class Callback:
    """Override what you need. logs has the loss, the metrics and lr; self.model is the model.

    Setting self.model.stop_training ends the fit after the current step.
    """

    model = None
    recording = None  # of fit(run=...)

    def on_train_begin(self, logs):
        pass

    def on_train_end(self, logs):
        pass

    def on_train_error(self, error):
        """The fit ends with this exception."""

    def on_epoch_begin(self, epoch, logs):
        pass

    def on_epoch_end(self, epoch, logs):
        pass

    def on_batch_begin(self, step, logs):
        pass

    def on_batch_end(self, step, logs):
        pass

    def on_validation_end(self, logs):
        pass

    def options(self):
        """Options of the library's own loop that do the same; such a callback is not called."""
        return None


class LambdaCallback(Callback):
    """Callbacks from functions: LambdaCallback(on_epoch_end=lambda epoch, logs: ...)."""

    def __init__(self, **functions):
        for name, fn in functions.items():
            if not hasattr(Callback, name):
                from ._lib import nearest
                raise TypeError(f"there is no callback '{name}'"
                                + nearest(name, [n for n in vars(Callback) if n.startswith("on_")]))
            setattr(self, name, fn)


class _Watch(Callback):
    def __init__(self, monitor, patience, min_delta, mode):
        self.monitor = our_name(monitor)
        self.patience = patience
        self.min_delta = min_delta
        self.mode = mode
        self.best, self.waited = None, 0

    def _watch(self, **more):
        return {"value": self.monitor, "patience": self.patience, "min_delta": self.min_delta,
                "max": True if self.mode == "max" else None, **more}

    def _value(self, logs):
        name = self.monitor or ("validation_loss" if "validation_loss" in logs else "loss")
        if name not in logs:
            raise ValueError(f"{type(self).__name__} watches '{name}', but there are only: "
                             + ", ".join(logs))
        higher = self.mode == "max" or (self.mode == "auto" and "loss" not in name
                                        and "mse" not in name and "mae" not in name)
        return -logs[name] if higher else logs[name]

    def _is_better(self, logs):
        value = self._value(logs)
        if self.best is None or value < self.best - self.min_delta:
            self.best, self.waited = value, 0
            return True
        self.waited += 1
        return False


class EarlyStopping(_Watch):
    """Ends the fit when a metric stops improving.

    Args:
        monitor: "loss", "accuracy", "validation_loss", ...; default: validation_loss if there is
            validation data, else loss
        patience: epochs without improvement
        min_delta: smallest change that counts as an improvement
        restore_best_weights: at the end the model gets its best weights
        mode: "min", "max" or "auto"
    """

    def __init__(self, monitor=None, patience=1, min_delta=0.0, restore_best_weights=False,
                 mode="auto"):
        super().__init__(monitor, patience, min_delta, mode)
        self.restore = restore_best_weights
        self.weights = None

    def options(self):
        return {"early_stop": self._watch(restore=self.restore or None)}

    def on_epoch_end(self, epoch, logs):
        if self._is_better(logs):
            self.weights = self.model.get_weights() if self.restore else None
        elif self.waited >= self.patience:
            self.model.stop_training = True

    def on_train_end(self, logs):
        if self.weights is not None:
            self.model.set_weights(self.weights)


class ReduceLROnPlateau(_Watch):
    """Lowers the learning rate when a metric stops improving."""

    def __init__(self, monitor=None, factor=0.1, patience=10, min_delta=0.0, min_lr=0.0, mode="auto"):
        super().__init__(monitor, patience, min_delta, mode)
        self.factor, self.min_lr = factor, min_lr

    def options(self):
        return {"plateau": self._watch(factor=self.factor, min_lr=self.min_lr or None)}

    def on_epoch_end(self, epoch, logs):
        if not self._is_better(logs) and self.waited >= self.patience:
            self.model.lr_factor *= self.factor
            self.waited = 0


class ModelCheckpoint(Callback):
    """Saves checkpoints to a folder: the newest, and the best by a metric.

    Args:
        folder: of the checkpoints; fit(resume=True) goes on from the newest of it
        save_every: steps between them; default: one per epoch
        keep: number of newest checkpoints to keep
        monitor: metric of the best one, which is kept too
    """

    def __init__(self, folder, save_every=None, keep=3, monitor=None):
        self.folder, self.save_every, self.keep = folder, save_every, keep
        self.monitor = our_name(monitor)

    def options(self):
        return {"checkpoints": self.folder, "save_every": self.save_every, "keep": self.keep,
                "best": {"value": self.monitor} if self.monitor else None}

    def on_epoch_end(self, epoch, logs):
        self.model.save(self.folder)


class CSVLogger(Callback):
    """Writes a line per epoch to a CSV file."""

    def __init__(self, file):
        self.file = file

    def on_train_begin(self, logs):
        self._out = open(self.file, "w", newline="", encoding="utf-8")
        self._writer = None

    def on_epoch_end(self, epoch, logs):
        import csv
        if self._writer is None:
            self._writer = csv.DictWriter(self._out, ["epoch", *logs], extrasaction="ignore")
            self._writer.writeheader()
        self._writer.writerow({"epoch": epoch, **logs})
        self._out.flush()

    def on_train_end(self, logs):
        self._out.close()


class TensorBoard(Callback):
    """Writes histograms, images and confusion matrices beside the losses and metrics that
    fit(run=...) records for TensorBoard.

    Args:
        histograms: of all weights, after each epoch
        images: dict of arrays by name, [height, width] or [height, width, channels], u8 or floats from
            0 to 1; written once
        confusion: the matrix of each validation, if the metric confusion is compiled
    """

    def __init__(self, histograms=True, images=None, confusion=True):
        self.histograms, self.images, self.confusion = histograms, dict(images or {}), confusion

    def _recording(self):
        if self.recording is None or not self.recording.folder:
            raise ValueError("callbacks.TensorBoard needs a run folder: fit(..., run=True)")
        return self.recording

    def on_train_begin(self, logs):
        for name, pixels in self.images.items():
            self._recording().image(name, 0, pixels)
        self._recording()

    def on_epoch_end(self, epoch, logs):
        if self.histograms:
            step = self.recording.step()
            for name, values in self.model.get_weights().items():
                if values.dtype == "float32":
                    self.recording.histogram("weights/" + name, step, values)

    def on_validation_end(self, logs):
        if self.confusion and "validation_confusion" in logs:
            counts = self.model.table("confusion")
            n = round(len(counts) ** 0.5)
            self.recording.confusion("confusion_matrix/validation", self.recording.step(),
                                     [counts[i * n:i * n + n] for i in range(n)])


class Notify(Callback):
    """Tells when a fit has ended, failed, diverged or stalled.

    Args:
        webhook: address that gets a JSON message by HTTP POST; "$NAME" is the value of that
            environment variable
        command: shell command; its environment has TUTTI_EVENT, TUTTI_RUN, TUTTI_STEP and
            TUTTI_MESSAGE
        stall: seconds without a step after which the fit counts as stalled; 0: never

    What cannot be told is a warning of the logger tutti.
    """

    def __init__(self, webhook=None, command=None, stall=600):
        import os
        self.command, self.stall = command, stall
        self.webhook = os.environ.get(webhook[1:], "") if (webhook or "").startswith("$") else webhook
        if webhook and not (self.webhook or "").startswith(("http://", "https://")):
            raise ValueError(f"webhook '{webhook}' is not an address, http://HOST/PATH, or $NAME of an "
                             "environment variable that holds one")
        if not webhook and not command:
            raise ValueError("Notify() needs a webhook or a command")
        self._step, self._over = 0, None

    def on_train_begin(self, logs):
        import threading
        self._step, self._over = 0, threading.Event()
        if self.stall > 0:
            threading.Thread(target=self._watch, args=(self._over,), daemon=True).start()

    def on_batch_end(self, step, logs):
        self._step = step

    def _watch(self, over):
        seen = told = -1
        while not over.wait(self.stall):
            if self._step == seen and seen != told:
                told = seen
                self._tell("stalled", f"nothing has happened for {self.stall:g} s after step {seen}")
            seen = self._step

    def on_train_end(self, logs):
        self._end("ended", "")

    def on_train_error(self, error):
        from ._lib import NotFinite
        if isinstance(error, KeyboardInterrupt):
            self._end("ended", "stopped on request")
        else:
            self._end("diverged" if isinstance(error, NotFinite) else "failed", str(error))

    def _end(self, event, message):
        if self._over is not None and self._over.is_set():
            return
        if self._over is not None:
            self._over.set()
        self._tell(event, message)

    def _tell(self, event, message):
        import json
        import logging
        import os
        import subprocess
        import urllib.request

        from ._progress import is_first
        if not is_first():
            return
        run = self.recording.folder if self.recording is not None else ""
        text = f"{run or 'a fit'} {event} at step {self._step}" + (f": {message}" if message else "")
        try:
            if self.webhook:
                body = json.dumps({"event": event, "step": self._step, "run": run,
                                   "message": message, "text": text}).encode()
                urllib.request.urlopen(urllib.request.Request(
                    self.webhook, body, {"Content-Type": "application/json"}), timeout=5).close()
            if self.command:
                subprocess.run(["sh", "-c", self.command], timeout=60, check=True, env={
                    **os.environ, "TUTTI_EVENT": event, "TUTTI_RUN": run,
                    "TUTTI_STEP": str(self._step), "TUTTI_MESSAGE": message})
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            logging.getLogger("tutti").warning("callbacks.Notify: '%s' was not told: %s", event, error)
