"""Run folders: what a fit did, for `tutti runs`, `tutti plot` and TensorBoard."""
from __future__ import annotations

import ctypes
import json
import os
import sys

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


class Recording:
    """Records the events of a context while it is entered; run is a path, True or None."""

    def __init__(self, context, run, name, job):
        self.context, self.run, self.name, self.job = context, run, name, job
        self.folder, self.ptr = "", None

    def __enter__(self):
        if not self.run:
            return self
        if self.run is True and os.environ.get("TUTTI_TASKS"):
            raise ValueError("in a job of several processes, run must be a path, which all of them know")
        if self.run is not True:
            self.folder = os.fspath(self.run)
        if is_first():
            opts = make(_c.tt_record_opts, dir=self.folder or None, name=self.name, job=self.job)
            self.ptr = lib.tt_record_with(self.context.ptr, ctypes.byref(opts))
            self.context.check()
            self.folder = text_of(lib.tt_recorder_folder(self.ptr))
        return self

    def __exit__(self, *error):
        if self.ptr:
            lib.tt_recorder_end(self.ptr)
        self.ptr = None
