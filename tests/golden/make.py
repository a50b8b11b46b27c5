#!/usr/bin/env python3
"""Trains three small models in PyTorch and writes what tests/unit/golden.c compares Tutti with.

usage: PYTHON tests/golden/make.py [FOLDER]     PYTHON is one with torch and numpy; default: here

Initial weights and the two batches, seen in turn, come from test_fill() of tests/test.c, repeated
here, so a file holds only what training made of them: final weights, named and laid out as Tutti
has them, and in its metadata the loss of every step and PyTorch's version. Each run is repeated in
f64: where f32 itself strays from that by more than half of what the test allows, the script fails,
since the file would measure PyTorch's rounding and not Tutti.
"""
import json
import math
import struct
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

STEPS = 10
MASK = 2**64 - 1
# What golden.c allows: the loss, relative; a weight tensor, norm of the difference over its norm.
LOSS_LIMIT = 1e-5
WEIGHT_LIMIT = {"sgd": 1e-5, "adam": 1e-3, "adamw": 1e-3}


# ---- numbers by formula, as in tests/test.c and tests/unit/golden.c ------------------------------


def fnv1a(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def fill(seed, n, low, high):
    state = (seed * 0xD1342543DE82EF95 + 1) & MASK
    out = np.empty(n, dtype=np.float64)
    for i in range(n):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out[i] = low + (high - low) * float((z ^ (z >> 31)) >> 11) * 2.0**-53
    return out.astype(np.float32)


def initial(name, shape):
    """The first value of a weight, in Tutti's layout."""
    n = math.prod(shape)
    if len(shape) > 1:
        a = 1 / math.sqrt(n // shape[-1])
        low, high = -a, a
    elif name.endswith(".bias"):
        low, high = -0.1, 0.1
    else:
        low, high = 0.9, 1.1
    return fill(fnv1a(name), n, low, high).reshape(shape)


def inputs(model, step, shape):
    return fill(fnv1a(f"{model}.x.{step}"), math.prod(shape), -1, 1).reshape(shape)


def classes(model, field, step, shape, below):
    u = fill(fnv1a(f"{model}.{field}.{step}"), math.prod(shape), 0, below)
    return np.minimum(u.astype(np.int64), below - 1).reshape(shape)


# ---- the models ----------------------------------------------------------------------------------


class Mlp(nn.Module):
    name, rows = "mlp", 20

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 48)
        self.out = nn.Linear(48, 10)

    def batch(self, step):
        return inputs("mlp", step, (self.rows, 64)), classes("mlp", "y", step, (self.rows,), 10)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))


class Cnn(nn.Module):
    """Images come as [rows, height, width, channels]; so are they flattened."""

    name, rows = "cnn", 12

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3)
        self.out = nn.Linear(5 * 4 * 16, 10)

    def batch(self, step):
        shape = (self.rows, 12, 10, 3)
        return inputs("cnn", step, shape), classes("cnn", "y", step, (self.rows,), 10)

    def forward(self, x):
        x = F.relu(self.first(x.permute(0, 3, 1, 2)))
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.out(x.permute(0, 2, 3, 1).flatten(1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Mlp2(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 4 * width)
        self.proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.proj(F.gelu(self.fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp2(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """The output's weights are the embedding's. Six rows: fewer than Tutti's eight lanes."""

    name, rows, context, vocab, width = "gpt", 6, 16, 23, 32

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(self.vocab, self.width)
        self.pos = nn.Embedding(self.context, self.width)
        self.block = nn.ModuleList(Block(self.width, 2) for _ in range(2))
        self.norm = nn.LayerNorm(self.width)

    def batch(self, step):
        shape = (self.rows, self.context)
        return (classes("gpt", "x", step, shape, self.vocab),
                classes("gpt", "y", step, shape, self.vocab))

    def forward(self, ids):
        x = self.embed(ids) + self.pos.weight
        for block in self.block:
            x = block(x)
        return F.linear(self.norm(x), self.embed.weight).flatten(0, 1)


# ---- PyTorch's layouts and ours ------------------------------------------------------------------


def axes_to_ours(model, name):
    """Axes of PyTorch's weight in the order that Tutti keeps them: inputs before outputs."""
    owner = model.get_submodule(name.rpartition(".")[0])
    if name.endswith(".weight") and isinstance(owner, nn.Linear):
        return (1, 0)
    if name.endswith(".weight") and isinstance(owner, nn.Conv2d):
        return (2, 3, 1, 0)
    return tuple(range(model.get_parameter(name).dim()))


def set_initial(model):
    for name, p in model.named_parameters():
        axes = axes_to_ours(model, name)
        ours = initial(name, [p.shape[i] for i in axes])
        with torch.no_grad():
            p.copy_(torch.from_numpy(ours).permute(*np.argsort(axes).tolist()))


def weights_of(model):
    return {name: p.detach().permute(*axes_to_ours(model, name)).contiguous().numpy()
            for name, p in model.named_parameters()}


# ---- training ------------------------------------------------------------------------------------


def optimizer_of(kind, model):
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    # A bias of attention's keys has a gradient of zero but for rounding, which Adam would blow up
    # to whole steps; this eps is above that rounding and far below the other gradients.
    eps = 1e-6 if model.name == "gpt" else 1e-8
    if kind == "adam":
        return torch.optim.Adam(model.parameters(), lr=2e-3, eps=eps)
    decays = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": decays, "weight_decay": 0.5},
                              {"params": others, "weight_decay": 0.0}], lr=5e-3, eps=eps)


def train(make, kind, dtype):
    model = make()
    set_initial(model)
    model.to(dtype)
    opt = optimizer_of(kind, model)
    losses = []
    for step in range(STEPS):
        x, y = (torch.from_numpy(a) for a in model.batch(step % 2))
        x = x.to(dtype) if x.is_floating_point() else x
        loss = F.cross_entropy(model(x), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, weights_of(model)


def distance(a, b):
    b = b.astype(np.float64)
    return float(np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b))


def write_safetensors(path, tensors, metadata):
    header = {"__metadata__": metadata}
    data = b""
    for name in sorted(tensors):
        raw = np.ascontiguousarray(tensors[name], dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    works = [(Mlp, "sgd"), (Mlp, "adam"), (Cnn, "sgd"), (Cnn, "adam"),
             (Gpt, "sgd"), (Gpt, "adam"), (Gpt, "adamw")]
    for make, kind in works:
        losses, weights = train(make, kind, torch.float32)
        exact_losses, exact = train(make, kind, torch.float64)
        off = max(abs(a - b) / b for a, b in zip(losses, exact_losses))
        worst = max(weights, key=lambda n: distance(weights[n], exact[n]))
        away = distance(weights[worst], exact[worst])
        print(f"{make.name}-{kind}: loss {losses[0]:.4f} to {losses[-1]:.4f}; f32 from f64: "
              f"losses {off:.1e}, {worst} {away:.1e}")
        if off > LOSS_LIMIT / 2 or away > WEIGHT_LIMIT[kind] / 2:
            sys.exit(f"{make.name}-{kind}: f32 is too far from f64 to test with")
        write_safetensors(folder / f"{make.name}-{kind}.safetensors", weights,
                          {"losses": " ".join(f"{x:.17g}" for x in losses),
                           "torch": torch.__version__.partition("+")[0]})


if __name__ == "__main__":
    main()
