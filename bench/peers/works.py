"""The training works that Tutti is compared on, and how a peer is timed: the same for all peers.

A peer's script makes step(i) for each work and hands it to main(). One line a work comes out, its
columns apart by tabs: side, work, median, low and high quartile and minimum in microseconds per
step, steps timed, milliseconds of the first step. bench/train --lines prints the same columns.
"""
import argparse
import sys
import time
from dataclasses import dataclass


@dataclass
class Work:
    name: str
    kind: str  # mlp, cnn, gpt, resnet18
    batch: int
    units: tuple = ()
    layers: int = 0
    heads: int = 0
    width: int = 0
    context: int = 0
    vocab: int = 0
    batches: int = 8  # ready before timing, seen in turn
    is_long: bool = False  # a second a step and more: only when asked for

    @property
    def image(self):
        return (32, 32, 3) if self.kind == "resnet18" else (28, 28, 1)


WORKS = [
    Work("mlp-b32", "mlp", 32, units=(784, 128, 10)),
    Work("mlp-b256", "mlp", 256, units=(784, 128, 10)),
    Work("cnn-b32", "cnn", 32),
    Work("cnn-b256", "cnn", 256),
    Work("wide-mlp-b256", "mlp", 256, units=(784, 4096, 4096, 10)),
    Work("chargpt-b12", "gpt", 12, layers=4, heads=4, width=128, context=64, vocab=65),
    Work("resnet18-b32", "resnet18", 32, batches=2),
    Work("gpt-6x384-b16", "gpt", 16, layers=6, heads=6, width=384, context=128, vocab=65,
         is_long=True),
    Work("gpt2-124m-b4", "gpt", 4, layers=12, heads=12, width=768, context=64, vocab=50304,
         is_long=True),
]

# Blocks of ResNet-18: channels out, stride.
RESNET18 = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))


def arguments(**flags):
    """Parses the command line; flags are the peer's own switches, name=help."""
    p = argparse.ArgumentParser()
    p.add_argument("--only", default="", metavar="NAMES", help="works, by name: mlp-b32,cnn-b32")
    p.add_argument("--all", action="store_true", help="the long works too")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=4, help="of timing, per work")
    p.add_argument("--wait", action="store_true", help="time once for each line on stdin")
    for name, text in flags.items():
        p.add_argument("--" + name, action="store_true", help=text)
    return p.parse_args()


def wanted(args):
    names = [n for n in args.only.split(",") if n]
    unknown = set(names) - {w.name for w in WORKS}
    if unknown:
        sys.exit(f"no work is called {', '.join(sorted(unknown))}: "
                 f"there are {', '.join(w.name for w in WORKS)}")
    return [w for w in WORKS if w.name in names or not names and (args.all or not w.is_long)]


def clock(step, first, seconds):
    """Times single steps, after two that are not counted, numbered from first on."""
    for i in range(2):
        step(first + i)
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        step(first + 2 + len(times))
        times.append(time.perf_counter() - start)
    return times


def report(side, work, times, first_step):
    n = len(times)
    t = sorted(1e6 * x for x in times)
    columns = [t[n // 2], t[n // 4], t[n - 1 - n // 4], t[0]]
    print(side, work.name, *(f"{x:.1f}" for x in columns), n, f"{1e3 * first_step:.1f}", sep="\t",
          flush=True)


def main(side, args, make_step):
    """make_step(work) builds the model and its data; step(i) trains on batch i and waits for it."""
    for work in wanted(args):
        step = make_step(work)
        if step is None:
            continue
        start = time.perf_counter()
        step(0)
        first_step = time.perf_counter() - start
        done = 1
        for _ in sys.stdin if args.wait else [None]:
            times = clock(step, done, args.seconds)
            done += 2 + len(times)
            report(side, work, times, first_step)
