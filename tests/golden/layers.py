#!/usr/bin/env python3
"""Trains a dense layer and one more in PyTorch, for each layer of a list, and writes the losses that
tests/unit/golden_layers.c compares Tutti's with.

usage: PYTHON tests/golden/layers.py > tests/unit/golden_layers.inc

Four steps of SGD with rate 0.1 on the mean of squares. The layer is written as a job file has it, so
words and defaults are compared too. Weights, input and target are numbers by formula (make.py).
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F
from make import fill, fnv1a, initial

ROWS, UNITS, STEPS = 8, 6, 4
CF = lambda x: x.permute(0, 3, 1, 2)  # channels first
CL = lambda x: x.permute(0, 2, 3, 1)
S = lambda x: x.transpose(1, 2)
K = lambda w: w.permute(3, 2, 0, 1)
K1 = lambda w: w.permute(2, 1, 0)
IMAGE, SEQUENCE, VECTOR = (6, 7, 5), (9, 5), (5,)


def lin(x, p, name):
    return x @ p[name + ".weight"] + (p[name + ".bias"] if name + ".bias" in p else 0)


def gated(act):
    return lambda z, p, n: lin(act(lin(z, p, n + ".gate")) * lin(z, p, n + ".up"), p, n + ".down")


def gate_weights(units, bias=True):
    w = {"gate.weight": (UNITS, 9), "up.weight": (UNITS, 9), "down.weight": (9, units)}
    return {**w, "gate.bias": (9,), "up.bias": (9,), "down.bias": (units,)} if bias else w


def conv(kernel, bias=4, **options):
    return (lambda z, p, n: CL(F.conv2d(CF(z), K(p[n + ".weight"]), p[n + ".bias"], **options)),
            {"weight": kernel, "bias": (bias,)})


def conv1d(kernel, **options):
    return (lambda z, p, n: S(F.conv1d(S(z), K1(p[n + ".weight"]), p[n + ".bias"], **options)),
            {"weight": kernel, "bias": (kernel[-1],)})


def causal(z, p, n):
    return S(F.conv1d(F.pad(S(z), (4, 0)), K1(p[n + ".weight"]), p[n + ".bias"], dilation=2))


def separable(z, p, n):
    w = p[n + ".depth.weight"]
    kh, kw, c, m = w.shape
    y = F.conv2d(CF(z), w.permute(2, 3, 0, 1).reshape(c * m, 1, kh, kw), groups=c, padding=1)
    return CL(F.conv2d(y, K(p[n + ".point.weight"]), p[n + ".bias"]))


def transpose(kernel, **options):
    return (lambda z, p, n: CL(F.conv_transpose2d(CF(z), K(p[n + ".weight"]), p[n + ".bias"], **options)),
            {"weight": kernel, "bias": (4,)})


def recurrent(kind, units, layers=1, both=False, last=False):
    """PyTorch's module with our weights, whose matrices are its own turned."""
    module = kind(UNITS, units, layers, batch_first=True, bidirectional=both)
    names = {n: tuple(v.shape)[::-1] for n, v in module.named_parameters()}

    def run(z, p, name):
        own = {n: p[f"{name}.{n}"].permute(*range(len(k))[::-1]) for n, k in names.items()}
        y, h = torch.func.functional_call(module.to(z.dtype), own, (z,))
        h = h[0] if isinstance(h, tuple) else h
        return y if not last else torch.cat([h[-2], h[-1]], -1) if both else h[-1]

    return run, names


def slopes(n):
    """ALiBi's, by its paper's rule for any number of heads."""
    near = 2 ** int(np.log2(n))
    first = [2 ** (-8 * (i + 1) / near) for i in range(near)]
    return first + [2 ** (-4 * (2 * i + 1) / near) for i in range(n - near)]


def rotated(x):
    """x is [rows, heads, time, size]; as LLaMA's rotate_half."""
    t, d = x.shape[2:]
    angle = torch.arange(t, dtype=x.dtype)[:, None] * 10000 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angle = torch.cat([angle, angle], 1)
    half = torch.cat([-x[..., d // 2:], x[..., :d // 2]], -1)
    return x * angle.cos() + half * angle.sin()


def heads_of(heads, size, kv=None, causal=False, window=0, alibi=False, rotary=False, units=UNITS):
    kv = kv or heads
    shapes = {"q_proj": (UNITS, heads * size), "k_proj": (UNITS, kv * size), "v_proj": (UNITS, kv * size),
              "out_proj": (heads * size, units)}
    weights = {k + ".weight": v for k, v in shapes.items()}
    weights.update({k + ".bias": v[1:] for k, v in shapes.items()})

    def run(z, p, n):
        rows, t, _ = z.shape
        q, k, v = (lin(z, p, f"{n}.{w}").view(rows, t, -1, size).transpose(1, 2)
                   for w in ("q_proj", "k_proj", "v_proj"))
        q, k = (rotated(q), rotated(k)) if rotary else (q, k)
        k, v = (x.repeat_interleave(heads // kv, 1) for x in (k, v))
        far = torch.arange(t)[:, None] - torch.arange(t)
        bias = torch.zeros(heads, t, t, dtype=z.dtype)
        if alibi:
            bias -= torch.tensor(slopes(heads), dtype=z.dtype)[:, None, None] * far.abs()
        hidden = ((far < 0) & causal) | ((far.abs() >= window) & (window > 0))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(hidden, -np.inf))
        return lin(y.transpose(1, 2).reshape(rows, t, -1), p, n + ".out_proj")

    return run, weights


NORM = {"weight": (UNITS,), "bias": (UNITS,)}
wb = lambda p, n: (p[n + ".weight"], p[n + ".bias"])
# layer, input, bound of its numbers, function of (z, weights, name), weights
LAYERS = [
    ("activation act=selu", VECTOR, 2, lambda z, p, n: F.selu(z), {}),
    ("activation act=relu6", VECTOR, 9, lambda z, p, n: F.relu6(z), {}),
    ("activation act=mish", VECTOR, 3, lambda z, p, n: F.mish(z), {}),
    ("activation act=hard_sigmoid", VECTOR, 4, lambda z, p, n: F.hardsigmoid(z), {}),
    ("activation act=hard_swish", VECTOR, 4, lambda z, p, n: F.hardswish(z), {}),
    ("activation act=softsign", VECTOR, 4, lambda z, p, n: F.softsign(z), {}),
    ("dense units=4 act=mish", VECTOR, 2, lambda z, p, n: F.mish(lin(z, p, n)), {"weight": (UNITS, 4), "bias": (4,)}),
    ("glu", VECTOR, 2, lambda z, p, n: F.glu(z), {}),
    ("glu act=silu", SEQUENCE, 2, lambda z, p, n: z[..., :3] * F.silu(z[..., 3:]), {}),
    ("swiglu hidden=9", VECTOR, 2, gated(F.silu), gate_weights(UNITS)),
    ("geglu hidden=9 units=3 no_bias=true", SEQUENCE, 2, gated(F.gelu), gate_weights(3, False)),
    ("prelu", IMAGE, 2, lambda z, p, n: torch.where(z > 0, z, z * p[n + ".weight"]), {"weight": (UNITS,)}),
    ("prelu shared=true", VECTOR, 2, lambda z, p, n: F.prelu(z, p[n + ".weight"]), {"weight": (1,)}),
    ("repeat times=3", VECTOR, 2, lambda z, p, n: z[:, None].repeat(1, 3, 1), {}),
    ("zero_pad pad=[1,2,3,0]", IMAGE, 2, lambda z, p, n: F.pad(z, (0, 0, 3, 0, 1, 2)), {}),
    ("zero_pad pad=2", SEQUENCE, 2, lambda z, p, n: F.pad(z, (0, 0, 2, 2)), {}),
    ("crop pad=[1,0,0,2]", IMAGE, 2, lambda z, p, n: z[:, 1:, :-2], {}),
    ("crop pad=[1,2]", SEQUENCE, 2, lambda z, p, n: z[:, 1:-2], {}),
    ("upsample2d factor=[2,3]", IMAGE, 2, lambda z, p, n: CL(F.interpolate(CF(z), scale_factor=(2, 3))), {}),
    ("upsample2d factor=[2,3] mode=bilinear", IMAGE, 2,
     lambda z, p, n: CL(F.interpolate(CF(z), scale_factor=(2, 3), mode="bilinear")), {}),
    ("upsample1d factor=3", SEQUENCE, 2, lambda z, p, n: S(F.interpolate(S(z), scale_factor=3)), {}),
    ("pixel_unshuffle factor=2", (6, 8, 5), 2, lambda z, p, n: CL(F.pixel_unshuffle(CF(z), 2)), {}),
    ("group_norm groups=3", IMAGE, 2, lambda z, p, n: CL(F.group_norm(CF(z), 3, *wb(p, n))), NORM),
    ("group_norm groups=2", VECTOR, 2, lambda z, p, n: F.group_norm(z, 2, *wb(p, n)), NORM),
    ("instance_norm", IMAGE, 2, lambda z, p, n: CL(F.instance_norm(CF(z), None, None, *wb(p, n))), NORM),
    ("instance_norm", SEQUENCE, 2, lambda z, p, n: S(F.instance_norm(S(z), None, None, *wb(p, n))), NORM),
    ("conv2d filters=4 dilation=2 pad=2", IMAGE, 2, *conv((3, 3, 6, 4), dilation=2, padding=2)),
    ("conv2d filters=4 kernel=[3,2] dilation=[2,3]", IMAGE, 2, *conv((3, 2, 6, 4), dilation=(2, 3))),
    ("conv2d filters=4 dilation=2 stride=2 pad=1", IMAGE, 2, *conv((3, 3, 6, 4), dilation=2, stride=2, padding=1)),
    ("conv2d filters=9 groups=3", IMAGE, 2, *conv((3, 3, 2, 9), 9, groups=3)),
    ("conv2d filters=12 groups=6 stride=2 pad=1", IMAGE, 2, *conv((3, 3, 1, 12), 12, groups=6, stride=2, padding=1)),
    ("conv2d filters=4 groups=2 dilation=2", IMAGE, 2, *conv((3, 3, 3, 4), groups=2, dilation=2)),
    ("conv2d_transpose filters=4 stride=2 pad=1 extra=1", IMAGE, 2,
     *transpose((3, 3, 4, 6), stride=2, padding=1, output_padding=1)),
    ("conv2d_transpose filters=4 kernel=[2,3] stride=[3,1]", IMAGE, 2, *transpose((2, 3, 4, 6), stride=(3, 1))),
    ("conv2d_transpose filters=4 kernel=4 stride=2 padding=same", IMAGE, 2,
     *transpose((4, 4, 4, 6), stride=2, padding=1)),
    ("conv1d filters=4 stride=2 pad=1", SEQUENCE, 2, *conv1d((3, 6, 4), stride=2, padding=1)),
    ("conv1d filters=4 groups=2 padding=same", SEQUENCE, 2, *conv1d((3, 3, 4), groups=2, padding=1)),
    ("conv1d filters=4 dilation=2 causal=true", SEQUENCE, 2, causal, {"weight": (3, 6, 4), "bias": (4,)}),
    ("conv1d_transpose filters=4 stride=2 pad=1 extra=1", SEQUENCE, 2,
     lambda z, p, n: S(F.conv_transpose1d(S(z), K1(p[n + ".weight"]), p[n + ".bias"], 2, 1, 1)),
     {"weight": (3, 4, 6), "bias": (4,)}),
    ("separable_conv2d filters=4 multiplier=2 pad=1", IMAGE, 2, separable,
     {"depth.weight": (3, 3, 6, 2), "point.weight": (1, 1, 12, 4), "bias": (4,)}),
    ("lstm units=7", SEQUENCE, 2, *recurrent(torch.nn.LSTM, 7)),
    ("lstm units=5 layers=2 bidirectional=true last=true", SEQUENCE, 2,
     *recurrent(torch.nn.LSTM, 5, 2, True, True)),
    ("gru units=17 bidirectional=true", SEQUENCE, 2, *recurrent(torch.nn.GRU, 17, 1, True)),
    ("gru units=4 layers=3 last=true", SEQUENCE, 2, *recurrent(torch.nn.GRU, 4, 3, False, True)),
    ("rnn units=6 layers=2", SEQUENCE, 2, *recurrent(torch.nn.RNN, 6, 2)),
    ("multi_head_attention heads=2", SEQUENCE, 2, *heads_of(2, 3)),
    ("multi_head_attention heads=3 causal=true window=3", SEQUENCE, 2, *heads_of(3, 2, None, True, 3)),
    ("multi_head_attention heads=6 kv_heads=2 alibi=true", SEQUENCE, 2, *heads_of(6, 1, 2, alibi=True)),
    ("multi_head_attention heads=4 kv_heads=1 size=4 units=5 rotary=true causal=true", SEQUENCE, 2,
     *heads_of(4, 4, 1, True, rotary=True, units=5)),
    ("max_pool1d size=3 stride=2 pad=1", SEQUENCE, 2, lambda z, p, n: S(F.max_pool1d(S(z), 3, 2, 1)), {}),
    ("avg_pool1d size=3", SEQUENCE, 2, lambda z, p, n: S(F.avg_pool1d(S(z), 3)), {}),
    ("global_avg_pool1d", SEQUENCE, 2, lambda z, p, n: z.mean(1), {}),
    ("global_max_pool1d", SEQUENCE, 2, lambda z, p, n: z.amax(1), {}),
    ("adaptive_avg_pool2d size=[2,3]", IMAGE, 2, lambda z, p, n: CL(F.adaptive_avg_pool2d(CF(z), (2, 3))), {}),
    ("adaptive_avg_pool2d size=[3,1]", IMAGE, 2, lambda z, p, n: CL(F.adaptive_avg_pool2d(CF(z), (3, 1))), {}),
    ("adaptive_max_pool2d size=[4,3]", IMAGE, 2, lambda z, p, n: CL(F.adaptive_max_pool2d(CF(z), (4, 3))), {}),
    ("adaptive_max_pool2d size=[3,7]", IMAGE, 2, lambda z, p, n: CL(F.adaptive_max_pool2d(CF(z), (3, 7))), {}),
]


def train(text, shape, bound, fn, weights, dtype):
    kind = text.split()[0]
    own = kind + ("_2" if kind == "dense" else "_1")
    names = {"dense_1.weight": (5, UNITS), "dense_1.bias": (UNITS,)}
    names.update({f"{own}.{k}": v for k, v in weights.items()})
    p = {k: torch.tensor(initial(k, v).reshape(v)).to(dtype).requires_grad_() for k, v in names.items()}
    n = ROWS * int(np.prod(shape))
    x = torch.tensor(fill(fnv1a(text), n, -bound, bound).reshape((ROWS,) + shape)).to(dtype)
    optimizer, losses, t = torch.optim.SGD(p.values(), 0.1), [], None
    for _ in range(STEPS):
        y = fn(lin(x, p, "dense_1"), p, own)
        if t is None:
            t = torch.tensor(fill(fnv1a(kind), y.numel(), -1, 1).reshape(y.shape)).to(dtype)
        loss = ((y - t) ** 2).mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


if __name__ == "__main__":
    print("// Written by tests/golden/layers.py with PyTorch", torch.__version__.split("+")[0])
    for row in LAYERS:
        exact, rough = train(*row, torch.float64), train(*row, torch.float32)
        if max(abs(a - b) / a for a, b in zip(exact, rough)) > 5e-6:
            sys.exit(row[0] + ": f32 strays from f64")
        shape = ", ".join(map(str, row[1]))
        print(f'{{"{row[0]}", {{{shape}}}, {row[2]}, {{{", ".join("%.9g" % v for v in exact)}}}}},')
