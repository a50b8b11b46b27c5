#!/usr/bin/env python3
"""Training works in TensorFlow and Keras on the CPU, f32: a tf.function step, with --jit through
XLA. See works.py for the works and what is printed.

usage: PYTHON tf_cpu.py [--jit] [--only NAMES] [--seconds S] [--threads N]
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import tensorflow as tf
from keras import layers

import works


def mlp(work):
    hidden = [layers.Dense(n, "relu") for n in work.units[1:-1]]
    return keras.Sequential([layers.Input(work.image), layers.Flatten(), *hidden,
                             layers.Dense(work.units[-1])])


def cnn(work):
    return keras.Sequential([
        layers.Input(work.image), layers.Conv2D(32, 3, activation="relu"),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPool2D(2), layers.Flatten(),
        layers.Dense(128, "relu"), layers.Dense(10)])


def normal():
    return keras.initializers.RandomNormal(0, 0.02)


class Gpt(keras.Model):
    def __init__(self, work):
        super().__init__()
        self.heads = work.heads
        c = work.width

        def dense(n):
            return layers.Dense(n, kernel_initializer=normal())

        def norm():
            return layers.LayerNormalization(epsilon=1e-5)

        self.table = self.add_weight(shape=(work.vocab, c), initializer=normal())
        self.position = self.add_weight(shape=(work.context, c), initializer=normal())
        self.parts = [[norm(), dense(3 * c), dense(c), norm(), dense(4 * c), dense(c)]
                      for _ in range(work.layers)]
        self.last = norm()
        self.kept = [p for block in self.parts for p in block]  # where Keras looks for weights

    def attend(self, qkv):
        b, t, c = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
        parts = tf.reshape(qkv, (b, t, 3, self.heads, c // self.heads))
        q, k, v = tf.unstack(tf.transpose(parts, (2, 0, 3, 1, 4)))
        mask = tf.linalg.band_part(tf.ones((t, t)), -1, 0)
        scores = tf.matmul(q, k, transpose_b=True) * (c // self.heads) ** -0.5
        y = tf.matmul(tf.nn.softmax(scores + (mask - 1) * 1e9), v)
        return tf.reshape(tf.transpose(y, (0, 2, 1, 3)), (b, t, c))

    def call(self, ids):
        x = tf.gather(self.table, ids) + self.position
        for norm1, qkv, proj, norm2, up, down in self.parts:
            x = x + proj(self.attend(qkv(norm1(x))))
            x = x + down(keras.activations.gelu(up(norm2(x)), approximate=True))
        logits = tf.matmul(self.last(x), self.table, transpose_b=True)
        return tf.reshape(logits, (-1, logits.shape[-1]))


def conv_norm(x, filters, size, stride):
    x = layers.Conv2D(filters, size, stride, "same", use_bias=False)(x)
    return layers.BatchNormalization()(x)


def resnet18(work):
    image = layers.Input(work.image)
    x = layers.ReLU()(conv_norm(image, 64, 3, 1))
    for o, stride in works.RESNET18:
        short = conv_norm(x, o, 1, stride) if stride > 1 or o != x.shape[-1] else x
        y = conv_norm(layers.ReLU()(conv_norm(x, o, 3, stride)), o, 3, 1)
        x = layers.ReLU()(layers.Add()([y, short]))
    return keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def data(work):
    n, b = work.batches, work.batch
    if work.kind == "gpt":
        x = tf.random.uniform((n, b, work.context), 0, work.vocab, tf.int32)
        y = tf.random.uniform((n, b * work.context), 0, work.vocab, tf.int32)
    else:
        x = tf.random.normal((n, b) + work.image)
        y = tf.random.uniform((n, b), 0, 10, tf.int32)
    return tf.unstack(x), tf.unstack(y)


def make_step(work):
    model = {"mlp": mlp, "cnn": cnn, "gpt": Gpt, "resnet18": resnet18}[work.kind](work)
    x, y = data(work)
    model(x[0])
    opt = (keras.optimizers.AdamW if work.kind == "gpt" else keras.optimizers.Adam)(1e-3)
    opt.build(model.trainable_variables)

    @tf.function(jit_compile=args.jit)
    def train(xi, yi):
        with tf.GradientTape() as tape:
            logits = model(xi, training=True)
            terms = tf.nn.sparse_softmax_cross_entropy_with_logits(yi, logits)
            loss = tf.reduce_mean(terms)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return lambda i: train(x[i % work.batches], y[i % work.batches]).numpy()


args = works.arguments(jit="through XLA")
tf.config.threading.set_intra_op_parallelism_threads(args.threads)
tf.config.threading.set_inter_op_parallelism_threads(args.threads)
keras.utils.set_random_seed(0)
works.main("tf-xla" if args.jit else "tf", args, make_step)
