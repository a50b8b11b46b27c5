#!/usr/bin/env python3
"""Trains whole models of other projects for ten steps and writes the losses that
tests/unit/golden_models.c compares Tutti's with.

usage: PYTHON tests/golden/models.py > tests/unit/golden_models.inc

PYTHON is one with torch, torchvision and transformers. Models are those packages' own where they
have one, so the names of weights are compared, too: a weight's first values come from its name
(make.py). Inputs are numbers by formula. Each run is repeated in f64; where f32 strays from it, the
script fails.
"""
import sys

import make
import numpy as np
import torch
import torch.nn.functional as F
import torchvision
import transformers as hf
from make import fnv1a
from torch import nn

STEPS = 10
torch.set_num_threads(1)


def fill(seed, n, low, high):
    """make.fill(), all numbers at once."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(1)
        z = z + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    unit = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (low + (high - low) * unit).astype(np.float32)


make.fill = fill


def initial(model, name, shape):
    """The first value of a weight. Shifts of mobilenet_v2 are 1.5 larger, which keeps most of relu6's
    inputs between its corners: else gradients grow with every layer, and f32 strays from f64."""
    value = make.initial(name, shape)
    is_shift = model == "mobilenet_v2" and name.startswith("features") and name.endswith(".bias")
    return value + np.float32(1.5) if is_shift else value


# Names of weights in files of vit models, which transformers 5 has changed in memory.
VIT = [("vit.layers.", "vit.encoder.layer."), ("attention.q_proj", "attention.attention.query"),
       ("attention.k_proj", "attention.attention.key"), ("attention.v_proj", "attention.attention.value"),
       ("attention.o_proj", "attention.output.dense"), ("mlp.fc1", "intermediate.dense"),
       ("mlp.fc2", "output.dense")]


def in_files(name):
    for new, old in VIT if name.startswith("vit.") else []:
        name = name.replace(new, old)
    return name


# ---- models that no package has ------------------------------------------------------------------


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(i, o))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.up = nn.ConvTranspose2d(i, o, 2, 2)
        self.conv = DoubleConv(i, o)

    def forward(self, x, skip):
        x = self.up(x)
        dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        x = F.pad(x, (dx // 2, dx - dx // 2, dy // 2, dy - dy // 2))
        return self.conv(torch.cat([skip, x], 1))


class UNet(nn.Module):
    def __init__(self, channels, classes, width):
        super().__init__()
        self.inc = DoubleConv(channels, width)
        self.down1, self.down2 = Down(width, 2 * width), Down(2 * width, 4 * width)
        self.up1, self.up2 = Up(4 * width, 2 * width), Up(2 * width, width)
        self.outc = nn.ModuleDict({"conv": nn.Conv2d(width, classes, 1)})

    def forward(self, x):
        a = self.inc(x.permute(0, 3, 1, 2))
        b = self.down1(a)
        return self.outc["conv"](self.up2(self.up1(self.down2(b), b), a)).permute(0, 2, 3, 1)


class LstmLm(nn.Module):
    def __init__(self, vocab, width, units, layers):
        super().__init__()
        self.encoder = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, units, layers, batch_first=True)
        self.decoder = nn.Linear(units, vocab)

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x))[0])


class Tabular(nn.Module):
    """As fastai's, for two categories of 3 and 7 values."""

    def __init__(self, numbers):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Embedding(3, 3), nn.Embedding(7, 5)])
        self.bn_cont = nn.BatchNorm1d(numbers)
        self.layers = nn.Sequential(
            nn.Sequential(nn.Linear(8 + numbers, 11, bias=False), nn.ReLU(), nn.BatchNorm1d(11)),
            nn.Sequential(nn.Linear(11, 6, bias=False), nn.ReLU(), nn.BatchNorm1d(6)),
            nn.Sequential(nn.Linear(6, 1)))

    def forward(self, x):
        ids = x[:, :2].long()
        parts = [e(ids[:, i]) for i, e in enumerate(self.embeds)] + [self.bn_cont(x[:, 2:])]
        return self.layers(torch.cat(parts, 1))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(15, 9), nn.ReLU(), nn.Linear(9, 4))
        self.decoder = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 15), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x.flatten(1))).view(x.shape)


def llama(**more):
    return hf.LlamaForCausalLM(hf.LlamaConfig(
        vocab_size=23, hidden_size=32, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, attention_bias=False, **more))


def bert(kind, **more):
    return kind(hf.BertConfig(
        vocab_size=23, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        max_position_embeddings=12, pad_token_id=None, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **more))


def vit():
    return hf.ViTForImageClassification(hf.ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=96, image_size=12,
        patch_size=4, num_channels=3, num_labels=5))


def mobilenet():
    rows = [[1, 16, 1, 1], [6, 24, 2, 1], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2],
            [6, 320, 1, 1]]  # the second stride and the first convolution's: small: true
    m = torchvision.models.MobileNetV2(
        num_classes=10, width_mult=0.25, inverted_residual_setting=rows, dropout=0)
    m.features[0][0].stride = (1, 1)
    return m


NHWC = lambda x: x.permute(0, 3, 1, 2)
# name, layer as a job file has it, rate, rows, inputs, target, model, function of (model, *inputs)
# A field is (shape of a record, below, least): below 0 has numbers; else whole numbers from least.
TOKENS = ((12,), 23, 0)
MODELS = [
    ("llama", "llama vocab=23 layers=2 heads=4 kv_heads=2 width=32 hidden=96", 0.1, 6, [TOKENS], TOKENS,
     llama, lambda m, x: m(x).logits),
    ("bert", "bert vocab=23 layers=2 heads=3 width=24 hidden=40", 0.1, 6, [TOKENS], TOKENS,
     lambda: bert(hf.BertForMaskedLM), lambda m, x: m(x).logits),
    ("bert_classes", "bert vocab=23 layers=2 heads=3 width=24 hidden=40 classes=3", 0.1, 6,
     [TOKENS, ((), 12, 1), ((12,), 2, 0)], ((), 3, 0),
     lambda: bert(hf.BertForSequenceClassification, num_labels=3),
     lambda m, x, n, s: m(x, attention_mask=(torch.arange(12) < n[:, None]).long(), token_type_ids=s).logits),
    ("vit", "vit patch=4 layers=2 heads=2 width=24 classes=5", 0.05, 6, [((12, 12, 3), 0, 0)], ((), 5, 0),
     vit, lambda m, x: m(NHWC(x)).logits),
    ("mobilenet_v2", "mobilenet_v2 classes=10 width=0.25 small=true dropout=0", 0.00005, 8,
     [((16, 16, 3), 0, 0)], ((), 10, 0), mobilenet, lambda m, x: m(NHWC(x))),
    ("unet", "unet classes=3 width=4 depth=2", 0.05, 4, [((10, 7, 2), 0, 0)], ((10, 7), 3, 0),
     lambda: UNet(2, 3, 4), lambda m, x: m(x)),
    ("lstm_lm", "lstm_lm vocab=23 width=10 units=14 layers=2", 0.2, 6, [TOKENS], TOKENS,
     lambda: LstmLm(23, 10, 14, 2), lambda m, x: m(x)),
    ("tabular", "tabular categories=[3,7] units=[11,6]", 0.05, 16, [((6,), 0, 0)], ((1,), 0, 0),
     lambda: Tabular(4), lambda m, x: m(x)),
    ("autoencoder", "autoencoder units=[9,4] last=sigmoid", 0.2, 8, [((5, 3), 0, 0)], ((5, 3), 0, 0),
     Autoencoder, lambda m, x: m(x)),
]


# ---- layouts, fields, training -------------------------------------------------------------------


def axes(model, name, p):
    """Axes of PyTorch's weight in the order that Tutti keeps them."""
    owner = model.get_submodule(name.rpartition(".")[0])
    if isinstance(owner, nn.Conv2d) and p.dim() == 4:
        return (2, 3, 0, 1) if owner.groups > 1 else (2, 3, 1, 0)
    if isinstance(owner, nn.ConvTranspose2d) and p.dim() == 4:
        return (2, 3, 1, 0)
    if isinstance(owner, (nn.Linear, nn.LSTM)) and p.dim() == 2:
        return (1, 0)
    return tuple(range(p.dim()))


def field(name, key, rows, spec, dtype):
    shape, below, least = spec
    n = rows * int(np.prod(shape, dtype=int))
    u = fill(fnv1a(f"{name}.{key}"), n, least if below else -1, least + below if below else 1)
    if below:
        u = np.minimum(u.astype(np.int64), least + below - 1)
        return torch.tensor(u.reshape((rows,) + shape))
    x = u.reshape((rows,) + shape)
    if name == "tabular" and key == "x0":
        x[:, 0] = np.minimum((x[:, 0] + 1) * np.float32(1.5), 2).astype(np.int64)
        x[:, 1] = np.minimum((x[:, 1] + 1) * np.float32(3.5), 6).astype(np.int64)
    return torch.tensor(x).to(dtype)


def train(row, dtype):
    name, _, rate, rows, inputs, target, make, run = row
    model = make().to(dtype).train()
    with torch.no_grad():
        for n, p in model.named_parameters():
            order = axes(model, n, p)
            ours = torch.tensor(initial(name, in_files(n), [p.shape[i] for i in order]))
            p.copy_(ours.permute(*np.argsort(order).tolist()))
    xs = [field(name, f"x{i}", rows, s, dtype) for i, s in enumerate(inputs)]
    y = field(name, "y", rows, target, dtype)
    optimizer, losses = torch.optim.SGD(model.parameters(), rate), []
    for _ in range(STEPS):
        out = run(model, *xs)
        loss = (F.cross_entropy(out.flatten(0, -2), y.flatten()) if target[1] else ((out - y) ** 2).mean())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses, sum(p.numel() for p in model.parameters())


if __name__ == "__main__":
    show = lambda f: "{{%s}, %d, %d, %d}" % (", ".join(map(str, f[0])) or "0", len(f[0]), f[1], f[2])
    print("// Written by tests/golden/models.py with PyTorch", torch.__version__.split("+")[0])
    for row in MODELS:
        (exact, parameters), (rough, _) = train(row, torch.float64), train(row, torch.float32)
        stray = max(abs(a - b) / a for a, b in zip(exact, rough))
        print(f"{row[0]}: {parameters} parameters, loss {exact[0]:.4f} to {exact[-1]:.4f}, f32 strays {stray:.1e}",
              file=sys.stderr)
        if stray > 5e-6:
            sys.exit(row[0] + ": f32 strays from f64")
        print(f'{{"{row[0]}", "{row[1]}", {row[2]}, {row[3]}, {{{", ".join(map(show, row[4]))}}}, {show(row[5])}, '
              f'{parameters}, {{{", ".join("%.9g" % v for v in exact)}}}}},')
