"""Contexts: devices, strategy, lanes and seed; one for each set of options, shared by models."""
from __future__ import annotations

import atexit
import ctypes
import logging
import os
import sys
import threading
from typing import Any

from . import _c
from ._lib import error_of, lib, make, text_of

log = logging.getLogger("tutti")
LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG, 5: 5}
SPREAD = {field[0] for field in _c.tt_spread._fields_ if field[0] != "opts_size"}
OPTIONS = ("devices", "strategy", "lanes", "seed", "threads", "soft", "deadline_ms", "isa")

_defaults: dict[str, Any] = {}
_contexts: dict[Any, Context] = {}  # by their options


def _on_event(user, event):
    event = _c.tt_event.from_address(event)
    if event.kind == b"log" and event.level > 1:  # an error is raised
        log.log(LEVELS.get(event.level, logging.INFO), "%s", text_of_bytes(event.text))
    elif event.kind == b"print":
        print(text_of_bytes(event.text), flush=True)


def text_of_bytes(text):
    return text.decode(errors="replace") if text else ""


ON_EVENT = _c.tt_event_fn(_on_event)


def configure(**options: Any) -> None:
    """Sets defaults of all models that are made from here on.

    Args:
        devices: "cpu:0", "cpu:0*4", "gpu:all", "all"
        strategy: "single", "mirrored", "central" or "pipeline"
        lanes: fixed slices of the batch, which set the order of sums; default 8
        seed: of initial weights, shuffling and dropout
        threads: CPU threads, shared by all devices
        replicas, stages, schedule, chunks, micro, reduce, wire, bucket, update, share: options of
            the strategy
    """
    check(options)
    _defaults.update(options)


def check(options):
    from ._lib import nearest
    for name in options:
        if name not in OPTIONS and name not in SPREAD:
            raise TypeError(f"there is no option '{name}'" + nearest(name, (*OPTIONS, *sorted(SPREAD))))


def is_job():
    """Did a launcher start this process as one of several?"""
    names = ("TUTTI_TASKS", "TUTTI_HOSTS", "TF_CONFIG", "WORLD_SIZE")
    return any(os.environ.get(n) for n in names)


class Handle:
    """A pointer of the library that is freed once, behind what depends on it."""

    def __init__(self, context, ptr, free, *kept):
        self.context, self.ptr, self.free_fn, self.kept = context, ptr, free, kept
        self.users = []  # handles that are freed before

    def free(self):
        for user in self.users:
            user.free()
        ptr, self.ptr = self.ptr, None
        if ptr and self.context.ptr:
            self.free_fn(ptr)
        self.users, self.kept = [], ()

    def leave(self):
        """Has it freed by the next call that uses the context."""
        if self.ptr and self.context.ptr:
            self.context.trash.append(self)


class Context:
    """An open tt_ctx. Use Context.get(): contexts with the same options are one.

    The library wants one thread at a time in a context, so calls that use one hold its lock. What
    Python no longer refers to is freed by the next of them, and not wherever the interpreter notices.
    """

    def __init__(self, options, joins=True):
        self.options = options
        self._start()
        self._open(options, joins)

    def _start(self):
        self.pending = None  # an exception of Python code that the library called
        self.ptr = None
        self.is_joined = False
        self.lock = threading.RLock()
        self.trash: list[Handle] = []  # what is not used any more

    @staticmethod
    def local():
        """The context of values and of data that no model has asked for: of this process alone."""
        if not is_job():
            return Context.get()
        if "local" not in _contexts:
            _contexts["local"] = Context(dict(_defaults, devices="cpu:0", strategy="single"), False)
        return _contexts["local"]

    def clean(self):
        while self.trash:
            self.trash.pop().free()

    @staticmethod
    def get(**options):
        check(options)
        options = {**_defaults, **{k: v for k, v in options.items() if v is not None}}
        key = tuple(sorted((k, str(v)) for k, v in options.items()))
        if key not in _contexts:
            _contexts[key] = Context(options)
        return _contexts[key]

    def _open(self, options, joins):
        spread = {k: v for k, v in options.items() if k in SPREAD}
        tasks, cluster, helper = self.tasks() if joins else (None, None, None)
        self.is_joined = bool(tasks)
        plain = {k: v for k, v in options.items() if k not in SPREAD}
        if "strategy" not in plain and tasks:
            plain["strategy"] = "mirrored"
        if isinstance(plain.get("devices"), (list, tuple)):
            plain["devices"] = ", ".join(plain["devices"])
        opts = make(_c.tt_open_opts, **plain, spread=spread or None, on_event=ON_EVENT,
                    tasks=tasks or None, level=3)
        self.ptr = lib.tt_open_with(ctypes.byref(opts))
        self.forget(tasks, cluster, helper)
        if not self.ptr:
            raise MemoryError("there is no memory for a context")
        status = lib.tt_status_of(self.ptr)
        if status:
            message = self._message()
            lib.tt_close(self.ptr)
            self.ptr = None
            raise error_of(status, message)

    @staticmethod
    def forget(tasks, cluster, helper):
        if helper:
            lib.tt_tasks_free(helper, tasks)
            lib.tt_cluster_free(helper, cluster)
            lib.tt_close(helper)

    @staticmethod
    def tasks():
        """The processes of the job that this one belongs to, if a launcher started it."""
        if not is_job():
            return None, None, None
        if any(c.is_joined for c in _contexts.values()):
            raise RuntimeError(
                "this process has joined its job already: all models of a job of several processes "
                "have the same devices, strategy, lanes and seed")
        helper = lib.tt_open_with(ctypes.byref(make(_c.tt_open_opts, on_event=ON_EVENT)))
        cluster, tasks = ctypes.c_void_p(), ctypes.c_void_p()
        status = lib.tt_cluster_find(helper, ctypes.byref(cluster))
        if not status:
            job = os.path.basename(sys.argv[0] or "python").encode()
            status = lib.tt_cluster_tasks(helper, cluster, job, ctypes.byref(tasks))
        if status:
            message = text_of_bytes(lib.tt_last_error(helper).message)
            lib.tt_close(helper)
            raise error_of(status, message)
        return tasks.value, cluster.value, helper

    def _message(self):
        return text_of_bytes(lib.tt_last_error(self.ptr).message)

    def check(self):
        """Raises the error of the last call, if there is one."""
        pending, self.pending = self.pending, None
        status = lib.tt_status_of(self.ptr)
        if pending is None and not status:
            return
        message = self._message()
        lib.tt_clear_error(self.ptr)
        if pending is not None:
            raise pending
        if lib.tt_status_of(self.ptr):  # it cannot be used any more
            self.drop()
        raise error_of(status, message)

    def keep(self, error):
        """Remembers an exception of a Python function that the library called."""
        if self.pending is None:
            self.pending = error
        return error

    def drop(self):
        for key in [k for k, c in _contexts.items() if c is self]:
            del _contexts[key]

    def string(self, pointer):
        """A text that the library made."""
        if not pointer:
            self.check()
            return ""
        try:
            return text_of(pointer)
        finally:
            lib.tt_string_free(self.ptr, pointer)

    @property
    def devices(self):
        out, info = [], _c.tt_device_info()
        for i in range(lib.tt_device_count(self.ptr)):
            lib.tt_device_get_sized(self.ptr, i, ctypes.byref(info), ctypes.sizeof(info))
            out.append({"name": info.name.decode(), "physical": info.physical.decode(),
                        "model": info.model.decode(), "threads": info.threads})
        return out

    def close(self):
        if self.ptr:
            self.drop()
            self.trash = []  # tt_close() frees all of it
            lib.tt_close(self.ptr)
            self.ptr = None


def devices(names: str = "all") -> list[dict[str, Any]]:
    """The devices of this machine: their names, models and threads."""
    return Context.get(devices=names).devices


@atexit.register
def close_all():
    for context in list(_contexts.values()):
        context.close()
