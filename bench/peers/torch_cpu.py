#!/usr/bin/env python3
"""Training works in PyTorch on the CPU, f32, as its users write them fast: fused optimizers,
channels_last images. See works.py for the works and what is printed.

usage: PYTHON torch_cpu.py [--compile] [--only NAMES] [--seconds S] [--threads N]
"""
import torch
import torch.nn.functional as F
from torch import nn

import works


def mlp(work):
    layers = [nn.Flatten()]
    for i, o in zip(work.units, work.units[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def cnn(_):
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
                         nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, work):
        super().__init__()
        self.embed = nn.Embedding(work.vocab, work.width)
        self.position = nn.Embedding(work.context, work.width)
        self.blocks = nn.Sequential(*(Block(work.width, work.heads) for _ in range(work.layers)))
        self.norm = nn.LayerNorm(work.width)
        for w in self.parameters():
            if w.dim() > 1:
                nn.init.normal_(w, 0, 0.02)

    def forward(self, ids):
        x = self.blocks(self.embed(ids) + self.position.weight)
        return F.linear(self.norm(x), self.embed.weight).flatten(0, 1)


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.short = nn.Identity()
        if stride > 1 or i != o:
            self.short = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


def resnet18(_):
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    i = 64
    for o, stride in works.RESNET18:
        layers.append(Residual(i, o, stride))
        i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def data(work):
    n, b = work.batches, work.batch
    if work.kind == "gpt":
        ids = torch.randint(0, work.vocab, (2, n, b, work.context))
        return ids[0], ids[1].flatten(1)
    h, w, c = work.image
    images = torch.randn(n, b, c, h, w)
    return ([x.to(memory_format=torch.channels_last) for x in images],
            torch.randint(0, 10, (n, b)))


def make_step(work):
    model = {"mlp": mlp, "cnn": cnn, "gpt": Gpt, "resnet18": resnet18}[work.kind](work)
    if work.kind in ("cnn", "resnet18"):
        model = model.to(memory_format=torch.channels_last)
    kind = torch.optim.AdamW if work.kind == "gpt" else torch.optim.Adam
    opt = kind(model.parameters(), lr=1e-3, fused=True)
    run = torch.compile(model) if args.compile else model
    x, y = data(work)

    def step(i):
        i %= work.batches
        loss = F.cross_entropy(run(x[i]), y[i])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.item()

    return step


args = works.arguments(compile="through torch.compile")
torch.set_num_threads(args.threads)
torch.manual_seed(0)
works.main("torch-compile" if args.compile else "torch", args, make_step)
