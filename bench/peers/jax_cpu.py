#!/usr/bin/env python3
"""Training works in JAX with optax on the CPU, f32: one compiled step, its state donated. See
works.py for the works and what is printed.

usage: PYTHON jax_cpu.py [--only NAMES] [--seconds S] [--threads N]
"""
import os

import works

args = works.arguments()
# XLA has as many threads as the process may use cores.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import itertools

import jax
import jax.numpy as jnp
import optax

seeds = itertools.count()


def normal(*shape):
    return 0.02 * jax.random.normal(jax.random.PRNGKey(next(seeds)), shape)


def dense(i, o):
    return {"w": normal(i, o), "b": jnp.zeros(o)}


def apply_dense(p, x):
    return x @ p["w"] + p["b"]


# Each kind of work: make(work) gives the weights; forward(work, weights, x) the logits.


def mlp_make(work):
    return [dense(i, o) for i, o in zip(work.units, work.units[1:])]


def mlp_forward(work, weights, x):
    x = x.reshape(x.shape[0], -1)
    for p in weights[:-1]:
        x = jax.nn.relu(apply_dense(p, x))
    return apply_dense(weights[-1], x)


def conv(x, w, stride=1, padding="VALID"):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), padding,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def cnn_make(work):
    return {"c1": {"w": normal(3, 3, 1, 32), "b": jnp.zeros(32)},
            "c2": {"w": normal(3, 3, 32, 64), "b": jnp.zeros(64)},
            "top": [dense(9216, 128), dense(128, 10)]}


def cnn_forward(work, weights, x):
    for name in ("c1", "c2"):
        x = jax.nn.relu(conv(x, weights[name]["w"]) + weights[name]["b"])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return mlp_forward(work, weights["top"], x)


def norm_make(c):
    return {"g": jnp.ones(c), "b": jnp.zeros(c)}


def layer_norm(p, x):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["g"] + p["b"]


def gpt_make(work):
    c = work.width
    blocks = [{"norm1": norm_make(c), "qkv": dense(c, 3 * c), "proj": dense(c, c),
               "norm2": norm_make(c), "up": dense(c, 4 * c), "down": dense(4 * c, c)}
              for _ in range(work.layers)]
    return {"embed": normal(work.vocab, c), "position": normal(work.context, c),
            "blocks": blocks, "norm": norm_make(c)}


def attend(heads, qkv):
    b, t, c = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    q, k, v = qkv.reshape(b, t, 3, heads, c // heads).transpose(2, 0, 3, 1, 4)
    mask = jnp.tril(jnp.ones((t, t), bool))
    scores = q @ k.swapaxes(-1, -2) * (c // heads) ** -0.5
    y = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v
    return y.transpose(0, 2, 1, 3).reshape(b, t, c)


def gpt_forward(work, weights, ids):
    x = weights["embed"][ids] + weights["position"]
    for p in weights["blocks"]:
        qkv = apply_dense(p["qkv"], layer_norm(p["norm1"], x))
        x = x + apply_dense(p["proj"], attend(work.heads, qkv))
        up = apply_dense(p["up"], layer_norm(p["norm2"], x))
        x = x + apply_dense(p["down"], jax.nn.gelu(up, approximate=True))
    logits = layer_norm(weights["norm"], x) @ weights["embed"].T
    return logits.reshape(-1, logits.shape[-1])


def conv_norm_make(size, i, o):
    return {"w": normal(size, size, i, o), **norm_make(o)}


def conv_norm(p, x, stride):
    x = conv(x, p["w"], stride, "SAME")
    mean = x.mean((0, 1, 2))
    var = ((x - mean) ** 2).mean((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["g"] + p["b"]


def resnet18_make(work):
    blocks, i = [], 64
    for o, stride in works.RESNET18:
        block = {"c1": conv_norm_make(3, i, o), "c2": conv_norm_make(3, o, o)}
        if stride > 1 or i != o:
            block["short"] = conv_norm_make(1, i, o)
        blocks.append(block)
        i = o
    return {"stem": conv_norm_make(3, 3, 64), "blocks": blocks, "top": dense(512, 10)}


def resnet18_forward(work, weights, x):
    """Without running statistics, which cost next to nothing."""
    x = jax.nn.relu(conv_norm(weights["stem"], x, 1))
    for p, (_, stride) in zip(weights["blocks"], works.RESNET18):
        short = conv_norm(p["short"], x, stride) if "short" in p else x
        y = conv_norm(p["c2"], jax.nn.relu(conv_norm(p["c1"], x, stride)), 1)
        x = jax.nn.relu(y + short)
    return apply_dense(weights["top"], x.mean((1, 2)))


def data(work):
    n, b = work.batches, work.batch
    kx, ky = jax.random.split(jax.random.PRNGKey(1))
    if work.kind == "gpt":
        x = jax.random.randint(kx, (n, b, work.context), 0, work.vocab)
        y = jax.random.randint(ky, (n, b * work.context), 0, work.vocab)
    else:
        x = jax.random.normal(kx, (n, b) + work.image)
        y = jax.random.randint(ky, (n, b), 0, 10)
    return list(x), list(y)


def make_step(work):
    forward = globals()[work.kind + "_forward"]
    weights = globals()[work.kind + "_make"](work)
    update = (optax.adamw if work.kind == "gpt" else optax.adam)(1e-3)
    state = update.init(weights)
    x, y = data(work)

    def loss_of(w, xi, yi):
        logits = forward(work, w, xi)
        return optax.softmax_cross_entropy_with_integer_labels(logits, yi).mean()

    def train(w, s, xi, yi):
        loss, grads = jax.value_and_grad(loss_of)(w, xi, yi)
        change, s = update.update(grads, s, w)
        return optax.apply_updates(w, change), s, loss

    train = jax.jit(train, donate_argnums=(0, 1))

    def step(i):
        nonlocal weights, state
        i %= work.batches
        weights, state, loss = train(weights, state, x[i], y[i])
        jax.block_until_ready((weights, state, loss))
        return float(loss)

    return step


works.main("jax", args, make_step)
