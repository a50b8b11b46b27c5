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
