"""Progress: a line that is redrawn in terminals and notebooks, a line per epoch elsewhere."""
import math
import os
import sys
import time


def is_first():
    """Only the first process of a job writes."""
    rank = os.environ.get("TUTTI_RANK") or os.environ.get("RANK") or "0"
    return rank == "0"


def in_notebook():
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and "IPKernelApp" in getattr(instance, "config", {})


def number(value):
    if value is None or math.isnan(value):
        return "nan"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.3g}"


class Progress:
    """verbose: "auto", 0 (nothing), 1 (a line that is redrawn) or 2 (a line per epoch)."""

    def __init__(self, verbose="auto", stream=None):
        self.stream = stream or sys.stdout
        if verbose == "auto":
            verbose = 1 if in_notebook() or getattr(self.stream, "isatty", lambda: False)() else 2
        self.verbose = int(verbose) if is_first() else 0
        self.shown = 0
        self.at = 0.0

    def step(self, p, logs):
        """After a step; p has step, steps, epoch, epochs, rows, epoch_rows, speed."""
        now = time.monotonic()
        if self.verbose != 1 or now - self.at < 0.1:
            return
        self.at = now
        done = p["rows"] / p["epoch_rows"] if p["epoch_rows"] else p["step"] / max(p["steps"], 1)
        done = min(max(done, 0), 1)
        bar = "=" * int(20 * done)
        self._draw(f"{self._head(p)} [{bar:<20}] {self._values(logs)}")

    def epoch(self, p, logs):
        if self.verbose == 0:
            return
        line = f"{self._head(p)} {self._values(logs)}"
        if p.get("speed"):
            line += f"  {p['speed']:,.0f} samples/s"
        self._draw(line)
        self._end()

    def note(self, text):
        if self.verbose:
            self._end()
            self.stream.write(text + "\n")
            self.stream.flush()

    def _head(self, p):
        if p["epochs"]:
            return f"epoch {p['epoch']}/{p['epochs']}"
        return f"step {p['step']}/{p['steps']}" if p["steps"] else f"step {p['step']}"

    @staticmethod
    def _values(logs):
        return "  ".join(f"{k} {number(v)}" for k, v in logs.items() if k != "lr")

    def _draw(self, line):
        if self.verbose == 1:
            self.stream.write("\r" + line.ljust(self.shown))
            self.shown = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def _end(self):
        if self.verbose == 1 and self.shown:
            self.stream.write("\n")
            self.stream.flush()
        self.shown = 0
