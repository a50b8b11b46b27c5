"""Layers: the building blocks of models.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._layer import Layer
from ._layer import Input, Lambda

__all__ = [
    "Activation",
    "Add",
    "Attention",
    "AvgPool2D",
    "BatchNorm",
    "Concat",
    "Conv2D",
    "Dense",
    "DepthwiseConv2D",
    "Dropout",
    "Embedding",
    "Flatten",
    "GPT",
    "GlobalAvgPool2D",
    "GlobalMaxPool2D",
    "Input",
    "Lambda",
    "Layer",
    "LayerNorm",
    "LeNet",
    "MLP",
    "MaxPool2D",
    "Permute",
    "Positional",
    "RMSNorm",
    "ResNet",
    "Reshape",
    "Residual",
    "TransformerBlock",
]


class Residual(Layer):
    """Residual connection: x + f(x), where f is a list of layers.

    Args:
        layers: layers, in order
        act: activation
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "residual"
    options = {"layers": "list", "act": "word"}
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
    }

    def __init__(self, layers=None, *, act="linear", name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, layers=layers, act=act)


class Dense(Layer):
    """Fully connected layer: act(x W + b) on the last axis.

    Args:
        units: number of outputs
        act: activation
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "dense"
    options = {
        "units": "int",
        "act": "word",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal"),
    }

    def __init__(
        self,
        units,
        *,
        act="linear",
        no_bias=False,
        init="glorot_uniform",
        init_a=0,
        init_b=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            units=units,
            act=act,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Conv2D(Layer):
    """2-D convolution.

    Args:
        filters: number of output channels
        kernel: height and width of the window: 3 or [3, 5]
        stride: step of the window in rows and columns
        padding: padding of the borders; same keeps the image size at stride 1
        pad: explicit zero padding on each side, in rows and columns; instead of padding
        act: activation
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "conv2d"
    options = {
        "filters": "int",
        "kernel": "pair",
        "stride": "pair",
        "padding": "word",
        "pad": "pair",
        "act": "word",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "padding": ("valid", "same"),
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal"),
    }

    def __init__(
        self,
        filters,
        *,
        kernel=3,
        stride=1,
        padding="valid",
        pad=0,
        act="linear",
        no_bias=False,
        init="glorot_uniform",
        init_a=0,
        init_b=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            filters=filters,
            kernel=kernel,
            stride=stride,
            padding=padding,
            pad=pad,
            act=act,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class DepthwiseConv2D(Layer):
    """Depthwise 2-D convolution: each channel is convolved separately.

    Args:
        kernel: height and width of the window: 3 or [3, 5]
        filters: number of filters per input channel
        stride: step of the window in rows and columns
        padding: padding of the borders; same keeps the image size at stride 1
        pad: explicit zero padding on each side, in rows and columns; instead of padding
        act: activation
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "depthwise_conv2d"
    options = {
        "kernel": "pair",
        "filters": "int",
        "stride": "pair",
        "padding": "word",
        "pad": "pair",
        "act": "word",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "padding": ("valid", "same"),
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal"),
    }

    def __init__(
        self,
        kernel=3,
        *,
        filters=1,
        stride=1,
        padding="valid",
        pad=0,
        act="linear",
        no_bias=False,
        init="glorot_uniform",
        init_a=0,
        init_b=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            kernel=kernel,
            filters=filters,
            stride=stride,
            padding=padding,
            pad=pad,
            act=act,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class MaxPool2D(Layer):
    """2-D max pooling.

    Args:
        size: height and width of the window: 3 or [3, 5]
        stride: step of the window in rows and columns; 0: the window's size
        padding: padding of the borders; same keeps the image size at stride 1
        pad: explicit padding on each side, in rows and columns; padded entries are ignored
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "max_pool2d"
    options = {"size": "pair", "stride": "pair", "padding": "word", "pad": "pair"}
    choices = {
        "padding": ("valid", "same"),
    }

    def __init__(
        self,
        size=2,
        *,
        stride=0,
        padding="valid",
        pad=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            size=size,
            stride=stride,
            padding=padding,
            pad=pad,
        )


class AvgPool2D(Layer):
    """2-D average pooling.

    Args:
        size: height and width of the window: 3 or [3, 5]
        stride: step of the window in rows and columns; 0: the window's size
        padding: padding of the borders; same keeps the image size at stride 1
        pad: explicit padding on each side, in rows and columns; padded entries are ignored
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "avg_pool2d"
    options = {"size": "pair", "stride": "pair", "padding": "word", "pad": "pair"}
    choices = {
        "padding": ("valid", "same"),
    }

    def __init__(
        self,
        size=2,
        *,
        stride=0,
        padding="valid",
        pad=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            size=size,
            stride=stride,
            padding=padding,
            pad=pad,
        )


class GlobalAvgPool2D(Layer):
    """Global average pooling; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "global_avg_pool2d"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class GlobalMaxPool2D(Layer):
    """Global max pooling; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "global_max_pool2d"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Flatten(Layer):
    """Flatten each record to one dimension.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "flatten"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Reshape(Layer):
    """Change the shape of each record.

    Args:
        shape: new shape of one record; one dimension may be -1 (computed from the others)
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "reshape"
    options = {"shape": "shape"}

    def __init__(self, shape, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, shape=shape)


class Permute(Layer):
    """Permute the axes of each record.

    Args:
        order: new order of the axes of one record, counted from 0 without the batch: [2, 0, 1]
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "permute"
    options = {"order": "list"}

    def __init__(self, order, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, order=order)


class Add(Layer):
    """Add the inputs; with one input, add it to the layer before.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "add"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Concat(Layer):
    """Concatenate the inputs; with one input, append it to the layer before.

    Args:
        axis: axis to join along; 0 is the batch, negative axes count from the end
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "concat"
    options = {"axis": "int"}

    def __init__(self, axis=-1, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, axis=axis)


class Activation(Layer):
    """An activation function as a layer.

    Args:
        act: activation
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "activation"
    options = {"act": "word"}
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
    }

    def __init__(self, act, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, act=act)


class Dropout(Layer):
    """Dropout: zeroes random elements in training and scales the others; does nothing in inference.

    Args:
        rate: fraction of elements to set to zero in training
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "dropout"
    options = {"rate": "float"}

    def __init__(self, rate=0, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, rate=rate)


class BatchNorm(Layer):
    """Batch normalisation per channel; an optional second input is added before the activation.

    Args:
        eps: small constant added to the variance
        momentum: fraction of the old running statistics kept at each step
        act: activation
        zero_scale: initialise the scale to 0 instead of 1
        over: compute batch norm statistics over the whole batch, or over each lane
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "batch_norm"
    options = {
        "eps": "float",
        "momentum": "float",
        "act": "word",
        "zero_scale": "bool",
        "over": "word",
    }
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
        "over": ("batch", "lane"),
    }

    def __init__(
        self,
        eps=1e-05,
        *,
        momentum=0.9,
        act="linear",
        zero_scale=False,
        over="batch",
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            eps=eps,
            momentum=momentum,
            act=act,
            zero_scale=zero_scale,
            over=over,
        )


class LayerNorm(Layer):
    """Layer normalisation over the last axis, with scale and shift.

    Args:
        eps: small constant added to the variance
        no_bias: do not add a bias
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "layer_norm"
    options = {"eps": "float", "no_bias": "bool"}

    def __init__(self, eps=1e-05, *, no_bias=False, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, eps=eps, no_bias=no_bias)


class RMSNorm(Layer):
    """RMS normalisation over the last axis, with scale.

    Args:
        eps: small constant added to the variance
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "rms_norm"
    options = {"eps": "float"}

    def __init__(self, eps=1e-05, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, eps=eps)


class Embedding(Layer):
    """Embedding: look up a vector for each id.

    Args:
        width: size of the embedding vectors
        vocab: vocabulary size; every id must be below it
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "embedding"
    options = {"width": "int", "vocab": "int", "init": "word", "init_a": "float", "init_b": "float"}
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal"),
    }

    def __init__(
        self,
        width,
        *,
        vocab=None,
        init="normal",
        init_a=0,
        init_b=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            width=width,
            vocab=vocab,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Positional(Layer):
    """Add a position embedding.

    Args:
        fixed: use fixed sines and cosines instead of trained weights
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "positional"
    options = {"fixed": "bool", "init": "word", "init_a": "float", "init_b": "float"}
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal"),
    }

    def __init__(
        self,
        fixed=False,
        *,
        init="normal",
        init_a=0,
        init_b=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            fixed=fixed,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Attention(Layer):
    """Multi-head self-attention.

    Args:
        heads: number of attention heads; must divide the channels
        kv_heads: number of heads for keys and values (grouped-query attention); 0: same as heads
        causal: causal mask: a position attends only to itself and to earlier positions
        no_bias: do not add a bias
        dropout: dropout rate of the output
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "attention"
    options = {
        "heads": "int",
        "kv_heads": "int",
        "causal": "bool",
        "no_bias": "bool",
        "dropout": "float",
    }

    def __init__(
        self,
        heads,
        *,
        kv_heads=0,
        causal=False,
        no_bias=False,
        dropout=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            heads=heads,
            kv_heads=kv_heads,
            causal=causal,
            no_bias=no_bias,
            dropout=dropout,
        )


class TransformerBlock(Layer):
    """Transformer block: x + attention(norm(x)), then x + mlp(norm(x)).

    Args:
        heads: number of attention heads; must divide the channels
        kv_heads: number of heads for keys and values (grouped-query attention); 0: same as heads
        hidden: hidden units of the MLP; 0: 4 times the width
        no_causal: no causal mask: attend to all positions
        no_bias: do not add a bias
        rms: use RMS norm instead of layer norm
        act: activation
        dropout: dropout rate in both branches
        depth: number of blocks in the model; scales down the initial weights of the output
            projections
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "transformer_block"
    options = {
        "heads": "int",
        "kv_heads": "int",
        "hidden": "int",
        "no_causal": "bool",
        "no_bias": "bool",
        "rms": "bool",
        "act": "word",
        "dropout": "float",
        "depth": "float",
    }
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
    }

    def __init__(
        self,
        heads,
        *,
        kv_heads=0,
        hidden=0,
        no_causal=False,
        no_bias=False,
        rms=False,
        act="gelu",
        dropout=0,
        depth=1,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            heads=heads,
            kv_heads=kv_heads,
            hidden=hidden,
            no_causal=no_causal,
            no_bias=no_bias,
            rms=rms,
            act=act,
            dropout=dropout,
            depth=depth,
        )


class MLP(Layer):
    """Multi-layer perceptron: dense layers in sequence.

    Args:
        units: number of outputs of each layer; the last one is the model's output
        act: activation
        dropout: dropout rate after each layer but the last
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "mlp"
    options = {"units": "list", "act": "word", "dropout": "float"}
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax"),
    }

    def __init__(self, units, *, act="relu", dropout=0, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, units=units, act=act, dropout=dropout)


class LeNet(Layer):
    """LeNet-5 for small images, with ReLU and max pooling.

    Args:
        classes: number of classes
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "lenet"
    options = {"classes": "int"}

    def __init__(self, classes=10, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, classes=classes)


class ResNet(Layer):
    """ResNet-18, ResNet-34 or ResNet-50.

    Args:
        depth: number of layers: 18, 34 or 50
        classes: number of classes
        width: number of channels of the first stage
        small: variant for 32 x 32 images: a 3x3 stem without pooling
        over: compute batch norm statistics over the whole batch, or over each lane
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "resnet"
    options = {"depth": "int", "classes": "int", "width": "int", "small": "bool", "over": "word"}
    choices = {
        "over": ("batch", "lane"),
    }

    def __init__(
        self,
        depth=18,
        *,
        classes=10,
        width=64,
        small=False,
        over="batch",
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            depth=depth,
            classes=classes,
            width=width,
            small=small,
            over=over,
        )


class GPT(Layer):
    """GPT-2 language model: tokens [time] to logits [time, vocab].

    Args:
        layers: number of transformer blocks
        heads: number of attention heads
        width: number of channels
        vocab: vocabulary size
        dropout: dropout rate after the embedding and in every branch
        no_bias: do not add a bias
        untied: do not share the output weights with the embedding
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "gpt"
    options = {
        "layers": "int",
        "heads": "int",
        "width": "int",
        "vocab": "int",
        "dropout": "float",
        "no_bias": "bool",
        "untied": "bool",
    }

    def __init__(
        self,
        layers=4,
        *,
        heads=4,
        width=128,
        vocab=None,
        dropout=0,
        no_bias=False,
        untied=False,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            layers=layers,
            heads=heads,
            width=width,
            vocab=vocab,
            dropout=dropout,
            no_bias=no_bias,
            untied=untied,
        )
