"""Run folders: what a fit did, for `tutti runs`, `tutti plot` and TensorBoard."""
from __future__ import annotations

import ctypes
import json
import os
import sys

import numpy as np

from . import _c
from ._lib import lib, make, text_of
from ._progress import is_first


def plain(value):
    """A value as JSON has it; functions by their names."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "values") and hasattr(value, "kind"):
        kind = value.kind or getattr(value, "name", None) or type(value).__name__
        return {kind: {k: plain(v) for k, v in value.values.items() if v is not None}}
    return getattr(value, "__name__", type(value).__name__)


def description(model, name, options):
    """The model and its training with the keys of a job file, as far as they are the same."""
    c = model._compiled or {}
    about = {"name": name, "program": os.path.basename(sys.argv[0] or "python")}
    if model.context.options:
        about["distribute"] = {k: plain(v) for k, v in model.context.options.items() if k != "seed"}
    about["seed"] = model.context.options.get("seed", 0)
    if hasattr(model, "layers"):
        about["model"] = [plain(layer) for layer in model.layers]
    train = {k: plain(v) for k, v in options.items()
             if k in ("epochs", "steps", "batch", "accumulate", "nan") and v is not None}
    if c:
        train["loss"] = plain(c["losses"][0]) if len(c["losses"]) == 1 else plain(c["losses"])
        train["optimizer"] = plain(c["optimizer"])
        train["metrics"] = [m.name for m in c["metrics"]]
        train.update({k: plain(v) for k, v in c["more"].items() if v is not None})
    about["train"] = train
    return json.dumps(about, indent=1) + "\n"


def git_state(folder):
    """The commit of a folder and whether files differ from it; (None, False): it is not in git."""
    import subprocess  # imports take their time, and most programs record nothing
    try:
        out = subprocess.run(["git", "-C", folder or ".", "status", "--porcelain=v2", "--branch",
                              "--untracked-files=no"], capture_output=True, text=True, timeout=2)
    except (OSError, subprocess.TimeoutExpired):
        return None, False
    lines = out.stdout.splitlines() if out.returncode == 0 else []
    oid = [x.split()[-1] for x in lines if x.startswith("# branch.oid ")]
    return (oid or [None])[0], any(not x.startswith("#") for x in lines)


class Recording:
    """Records the events of a context while it is entered; run is a path, True or None."""

    def __init__(self, context, run, name, job, mlflow=None, http=None):
        self.context, self.name, self.job = context, name, job
        self.run = run or (True if mlflow or http else None)
        self.mlflow, self.http = mlflow, http
        self.folder, self.ptr = "", None

    def __enter__(self):
        if not self.run:
            return self
        if self.run is True and os.environ.get("TUTTI_TASKS"):
            raise ValueError("in a job of several processes, run must be a path, which all of them know")
        if self.run is not True:
            self.folder = os.fspath(self.run)
        if is_first():
            opts = make(_c.tt_record_opts, dir=self.folder or None, name=self.name, job=self.job,
                        mlflow=self.mlflow, http=self.http)
            self.ptr = lib.tt_record_with(self.context.ptr, ctypes.byref(opts))
            self.context.check()
            self.folder = text_of(lib.tt_recorder_folder(self.ptr))
        return self

    def origin(self, train=None, validate=None):
        """Records versions, the machine, the data, and the commit of the program's folder."""
        if not self.ptr:
            return
        commit, changed = git_state(os.path.dirname(os.path.abspath(sys.argv[0] or ".")))
        opts = make(_c.tt_record_origin_opts, commit=commit, changed=changed)
        opts.train, opts.validate = train, validate
        lib.tt_record_origin_with(self.ptr, ctypes.byref(opts))
        self.context.check()

    # For TensorBoard. Nothing in processes that do not record.

    def histogram(self, tag, step, values):
        values = np.ascontiguousarray(values, np.float32).reshape(-1)
        self._call(lib.tt_record_histogram_with, tag,
                   make(_c.tt_record_histogram_opts, step=step, count=values.size),
                   values=values.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))

    def image(self, tag, step, pixels):
        """pixels: [height, width] or [height, width, channels]; u8, or floats from 0 to 1."""
        pixels = np.asarray(pixels)
        if pixels.ndim not in (2, 3):
            raise ValueError(f"image '{tag}' has shape {pixels.shape}; it must be [height, width] or "
                             "[height, width, channels]")
        if pixels.dtype != np.uint8:
            pixels = np.clip(np.nan_to_num(pixels.astype(np.float64)) * 255 + 0.5, 0, 255)
        pixels = np.ascontiguousarray(pixels, np.uint8)
        self._call(lib.tt_record_image_with, tag,
                   make(_c.tt_record_image_opts, step=step, height=pixels.shape[0],
                        width=pixels.shape[1], channels=pixels.shape[2] if pixels.ndim == 3 else 1),
                   pixels=pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_ubyte)))

    def confusion(self, tag, step, counts):
        counts = np.ascontiguousarray(counts, np.float64)
        self._call(lib.tt_record_confusion_with, tag,
                   make(_c.tt_record_confusion_opts, step=step, classes=counts.shape[0]),
                   counts=counts.ctypes.data_as(ctypes.POINTER(ctypes.c_double)))

    def _call(self, function, tag, opts, **pointers):
        if not self.ptr:
            return
        for name, value in pointers.items():
            kind = dict(opts._fields_)[name]
            setattr(opts, name, ctypes.cast(value, kind))
        function(self.ptr, tag.encode(), ctypes.byref(opts))
        self.context.check()

    def __exit__(self, *error):
        if self.ptr:
            lib.tt_recorder_end(self.ptr)
        self.ptr = None
