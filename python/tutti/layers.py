"""Layers: the building blocks of models.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._layer import Layer
from ._layer import Input, Lambda

__all__ = [
    "Activation",
    "AdaptiveAvgPool2D",
    "AdaptiveMaxPool2D",
    "Add",
    "Attention",
    "Autoencoder",
    "Average",
    "AvgPool1D",
    "AvgPool2D",
    "BERT",
    "BatchNorm",
    "Concat",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Crop",
    "Dense",
    "DepthwiseConv2D",
    "Dot",
    "Dropout",
    "Embedding",
    "Expression",
    "Flatten",
    "GPT",
    "GRU",
    "GaussianDropout",
    "GaussianNoise",
    "Geglu",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "Glu",
    "GroupNorm",
    "Input",
    "InstanceNorm",
    "LLaMA",
    "LSTM",
    "LSTMLM",
    "Lambda",
    "Layer",
    "LayerNorm",
    "LeNet",
    "MLP",
    "MaxPool1D",
    "MaxPool2D",
    "Maximum",
    "Minimum",
    "MobileNetV2",
    "MultiHeadAttention",
    "Multiply",
    "Permute",
    "PixelShuffle",
    "PixelUnshuffle",
    "Positional",
    "Prelu",
    "RMSNorm",
    "RNN",
    "Repeat",
    "ResNet",
    "Reshape",
    "Residual",
    "SeparableConv2D",
    "SpatialDropout",
    "Subtract",
    "Swiglu",
    "Tabular",
    "TransformerBlock",
    "UNet",
    "Upsample1D",
    "Upsample2D",
    "ViT",
    "ZeroPad",
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
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
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
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
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
        dilation: distance of neighbouring taps in rows and columns
        groups: groups of channels, each convolved separately
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
        "dilation": "pair",
        "groups": "int",
    }
    choices = {
        "padding": ("valid", "same"),
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
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
        dilation=1,
        groups=1,
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
            dilation=dilation,
            groups=groups,
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
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
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


class SeparableConv2D(Layer):
    """Depthwise 2-D convolution followed by a 1 x 1 convolution.

    Args:
        filters: number of output channels
        kernel: height and width of the window: 3 or [3, 5]
        stride: step of the window in rows and columns
        padding: padding of the borders; same keeps the size at stride 1
        pad: explicit zero padding on each side, in rows and columns; instead of padding
        multiplier: filters per channel of the depthwise part
        act: activation
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "separable_conv2d"
    options = {
        "filters": "int",
        "kernel": "pair",
        "stride": "pair",
        "padding": "word",
        "pad": "pair",
        "multiplier": "int",
        "act": "word",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "padding": ("valid", "same"),
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        filters,
        *,
        kernel=3,
        stride=1,
        padding="valid",
        pad=0,
        multiplier=1,
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
            multiplier=multiplier,
            act=act,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Conv2DTranspose(Layer):
    """Transposed 2-D convolution: enlarges images.

    Args:
        filters: number of output channels
        kernel: height and width of the window: 3 or [3, 5]
        stride: factor by which the output is larger
        padding: same: the output is exactly stride times as large
        pad: rows and columns removed on each side of the output
        extra: rows and columns added at the end of the output; below stride
        act: activation
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "conv2d_transpose"
    options = {
        "filters": "int",
        "kernel": "pair",
        "stride": "pair",
        "padding": "word",
        "pad": "pair",
        "extra": "pair",
        "act": "word",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "padding": ("valid", "same"),
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        filters,
        *,
        kernel=3,
        stride=1,
        padding="valid",
        pad=0,
        extra=0,
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
            extra=extra,
            act=act,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Conv1D(Layer):
    """1-D convolution of sequences.

    Args:
        filters: number of output channels
        kernel: width of the window
        stride: step of the window
        padding: padding of the borders; same keeps the size at stride 1
        pad: explicit zero padding on both sides; instead of padding
        causal: pad on the left only: a step depends on none after it
        dilation: distance of neighbouring taps
        groups: groups of channels, each convolved separately
        act: activation
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "conv1d"
    options = {
        "filters": "int",
        "kernel": "int",
        "stride": "int",
        "padding": "word",
        "pad": "int",
        "causal": "bool",
        "dilation": "int",
        "groups": "int",
        "act": "word",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "padding": ("valid", "same"),
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        filters,
        *,
        kernel=3,
        stride=1,
        padding="valid",
        pad=0,
        causal=False,
        dilation=1,
        groups=1,
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
            causal=causal,
            dilation=dilation,
            groups=groups,
            act=act,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Conv1DTranspose(Layer):
    """Transposed 1-D convolution: lengthens sequences.

    Args:
        filters: number of output channels
        kernel: width of the window
        stride: factor by which the output is longer
        padding: padding of the borders; same keeps the size at stride 1
        pad: entries removed on both sides of the output
        extra: entries added at the end of the output; below stride
        act: activation
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "conv1d_transpose"
    options = {
        "filters": "int",
        "kernel": "int",
        "stride": "int",
        "padding": "word",
        "pad": "int",
        "extra": "int",
        "act": "word",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "padding": ("valid", "same"),
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        filters,
        *,
        kernel=3,
        stride=1,
        padding="valid",
        pad=0,
        extra=0,
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
            extra=extra,
            act=act,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Swiglu(Layer):
    """Gated feed-forward layer: (silu(x gate) * (x up)) down on the last axis.

    Args:
        hidden: hidden units
        units: number of outputs; 0: as many as inputs
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "swiglu"
    options = {
        "hidden": "int",
        "units": "int",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        hidden,
        *,
        units=0,
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
            hidden=hidden,
            units=units,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class Geglu(Layer):
    """Gated feed-forward layer: (gelu_erf(x gate) * (x up)) down on the last axis.

    Args:
        hidden: hidden units
        units: number of outputs; 0: as many as inputs
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "geglu"
    options = {
        "hidden": "int",
        "units": "int",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        hidden,
        *,
        units=0,
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
            hidden=hidden,
            units=units,
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


class AdaptiveAvgPool2D(Layer):
    """2-D average pooling to an output of a given size.

    Args:
        size: height and width of the output: 7 or [7, 5]
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "adaptive_avg_pool2d"
    options = {"size": "pair"}

    def __init__(self, size, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, size=size)


class AdaptiveMaxPool2D(Layer):
    """2-D max pooling to an output of a given size.

    Args:
        size: height and width of the output: 7 or [7, 5]
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "adaptive_max_pool2d"
    options = {"size": "pair"}

    def __init__(self, size, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, size=size)


class MaxPool1D(Layer):
    """1-D max pooling.

    Args:
        size: width of the window
        stride: step of the window; 0: its width
        padding: padding of the borders; same keeps the size at stride 1
        pad: explicit padding on both sides; padded entries are ignored
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "max_pool1d"
    options = {"size": "int", "stride": "int", "padding": "word", "pad": "int"}
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


class AvgPool1D(Layer):
    """1-D average pooling.

    Args:
        size: width of the window
        stride: step of the window; 0: its width
        padding: padding of the borders; same keeps the size at stride 1
        pad: explicit padding on both sides; padded entries are ignored
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "avg_pool1d"
    options = {"size": "int", "stride": "int", "padding": "word", "pad": "int"}
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


class GlobalAvgPool1D(Layer):
    """Average over time; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "global_avg_pool1d"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class GlobalMaxPool1D(Layer):
    """Maximum over time; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "global_max_pool1d"
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


class Multiply(Layer):
    """Multiply the inputs element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "multiply"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Subtract(Layer):
    """The first input minus the second.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "subtract"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Average(Layer):
    """The mean of the inputs, element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "average"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Maximum(Layer):
    """The largest of the inputs, element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "maximum"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Minimum(Layer):
    """The smallest of the inputs, element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "minimum"
    options = {}

    def __init__(self, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device)


class Dot(Layer):
    """Dot products of two inputs along the last axis.

    Args:
        normalise: scale the vectors to length 1 first: cosine similarity
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "dot"
    options = {"normalise": "bool"}

    def __init__(self, normalise=False, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, normalise=normalise)


class Repeat(Layer):
    """Repeat each record along a new axis: [batch, ...] becomes [batch, times, ...].

    Args:
        times: how many times
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "repeat"
    options = {"times": "int"}

    def __init__(self, times, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, times=times)


class ZeroPad(Layer):
    """Add zeros around the axes between batch and channels.

    Args:
        pad: entries on each side: 1 for all sides, [1, 2] by axis, [1, 1, 2, 2] before and after
            each
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "zero_pad"
    options = {"pad": "list"}

    def __init__(self, pad, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, pad=pad)


class Crop(Layer):
    """Remove entries at the borders of the axes between batch and channels.

    Args:
        pad: entries on each side: 1 for all sides, [1, 2] by axis, [1, 1, 2, 2] before and after
            each
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "crop"
    options = {"pad": "list"}

    def __init__(self, pad, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, pad=pad)


class Upsample2D(Layer):
    """Enlarge images by whole factors.

    Args:
        factor: factor of the height and the width
        mode: repeat pixels, or interpolate between their centres
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "upsample2d"
    options = {"factor": "pair", "mode": "word"}
    choices = {
        "mode": ("nearest", "bilinear"),
    }

    def __init__(self, factor=2, *, mode="nearest", name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, factor=factor, mode=mode)


class Upsample1D(Layer):
    """Repeat each step of a sequence.

    Args:
        factor: factor
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "upsample1d"
    options = {"factor": "int"}

    def __init__(self, factor=2, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, factor=factor)


class PixelShuffle(Layer):
    """Move channels to pixels: [b, h, w, c f f] becomes [b, h f, w f, c].

    Args:
        factor: factor
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "pixel_shuffle"
    options = {"factor": "int"}

    def __init__(self, factor=2, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, factor=factor)


class PixelUnshuffle(Layer):
    """Move pixels to channels: [b, h f, w f, c] becomes [b, h, w, c f f].

    Args:
        factor: factor
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "pixel_unshuffle"
    options = {"factor": "int"}

    def __init__(self, factor=2, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, factor=factor)


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
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
    }

    def __init__(self, act, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, act=act)


class Glu(Layer):
    """Gated linear unit: the first half of the last axis times act of the second.

    Args:
        act: activation
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "glu"
    options = {"act": "word"}
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
    }

    def __init__(self, act="sigmoid", *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, act=act)


class Prelu(Layer):
    """X for x > 0, else a trained slope times x.

    Args:
        slope: initial slope for negative x
        shared: one slope for all channels instead of one each
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "prelu"
    options = {"slope": "float", "shared": "bool"}

    def __init__(self, slope=0.25, *, shared=False, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, slope=slope, shared=shared)


class Expression(Layer):
    """An expression of ops.

    Args:
        expr: expression of x (further inputs: x2, x3, ...), numbers, + - * / ^ and functions, of at
            most 127 characters
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "lambda"
    options = {"expr": "text"}

    def __init__(self, expr, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, expr=expr)


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


class SpatialDropout(Layer):
    """Dropout of whole channels in training.

    Args:
        rate: fraction to drop in training
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "spatial_dropout"
    options = {"rate": "float"}

    def __init__(self, rate=0, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, rate=rate)


class GaussianDropout(Layer):
    """Multiply by normal numbers of mean 1 and deviation sqrt(rate / (1 - rate)) in training.

    Args:
        rate: fraction to drop in training
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "gaussian_dropout"
    options = {"rate": "float"}

    def __init__(self, rate=0, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, rate=rate)


class GaussianNoise(Layer):
    """Add normal numbers of mean 0 in training.

    Args:
        deviation: standard deviation of what is added
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "gaussian_noise"
    options = {"deviation": "float"}

    def __init__(self, deviation=0.1, *, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, deviation=deviation)


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
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
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


class GroupNorm(Layer):
    """Normalise each group of channels of a record, with scale and shift.

    Args:
        groups: groups of channels
        eps: small constant added to the variance
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "group_norm"
    options = {"groups": "int", "eps": "float"}

    def __init__(self, groups=32, *, eps=1e-05, name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, groups=groups, eps=eps)


class InstanceNorm(Layer):
    """Normalise each channel of a record, with scale and shift.

    Args:
        eps: small constant added to the variance
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "instance_norm"
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
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
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
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
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


class LSTM(Layer):
    """Long short-term memory over the steps of a sequence.

    Args:
        units: number of outputs of a step
        layers: layers, each on the outputs of the one before
        bidirectional: also from the last step to the first, the outputs side by side
        last: only the output of the last step
        dropout: dropout rate between layers
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "lstm"
    options = {
        "units": "int",
        "layers": "int",
        "bidirectional": "bool",
        "last": "bool",
        "dropout": "float",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        units,
        *,
        layers=1,
        bidirectional=False,
        last=False,
        dropout=0,
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
            layers=layers,
            bidirectional=bidirectional,
            last=last,
            dropout=dropout,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class GRU(Layer):
    """Gated recurrent unit over the steps of a sequence.

    Args:
        units: number of outputs of a step
        layers: layers, each on the outputs of the one before
        bidirectional: also from the last step to the first, the outputs side by side
        last: only the output of the last step
        dropout: dropout rate between layers
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "gru"
    options = {
        "units": "int",
        "layers": "int",
        "bidirectional": "bool",
        "last": "bool",
        "dropout": "float",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        units,
        *,
        layers=1,
        bidirectional=False,
        last=False,
        dropout=0,
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
            layers=layers,
            bidirectional=bidirectional,
            last=last,
            dropout=dropout,
            no_bias=no_bias,
            init=init,
            init_a=init_a,
            init_b=init_b,
        )


class RNN(Layer):
    """Recurrent layer with tanh over the steps of a sequence.

    Args:
        units: number of outputs of a step
        layers: layers, each on the outputs of the one before
        bidirectional: also from the last step to the first, the outputs side by side
        last: only the output of the last step
        dropout: dropout rate between layers
        no_bias: do not add a bias
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "rnn"
    options = {
        "units": "int",
        "layers": "int",
        "bidirectional": "bool",
        "last": "bool",
        "dropout": "float",
        "no_bias": "bool",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        units,
        *,
        layers=1,
        bidirectional=False,
        last=False,
        dropout=0,
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
            layers=layers,
            bidirectional=bidirectional,
            last=last,
            dropout=dropout,
            no_bias=no_bias,
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


class MultiHeadAttention(Layer):
    """Multi-head attention of x, of queries to keys, or to the keys that a mask allows.

    Args:
        heads: number of attention heads
        kv_heads: number of heads of keys and values, which must divide heads; 1: multi-query
            attention; 0: same as heads
        size: width of a head; 0: channels / heads
        units: width of the output; 0: that of the queries
        causal: causal mask: a position attends only to itself and to earlier positions
        window: attend only to positions less than this far away; 0: to all
        alibi: ALiBi: scores fall with the distance, by a slope of each head
        rotary: rotate queries and keys by their position
        theta: base of the rotary frequencies
        no_bias: do not add a bias
        dropout: dropout rate of the output
        init: initializer of the weights
        init_a: initializer's parameter: the constant, lower bound or mean
        init_b: initializer's parameter: the upper bound or standard deviation; default: -0.05 to
            0.05, standard deviation 0.02
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "multi_head_attention"
    options = {
        "heads": "int",
        "kv_heads": "int",
        "size": "int",
        "units": "int",
        "causal": "bool",
        "window": "int",
        "alibi": "bool",
        "rotary": "bool",
        "theta": "float",
        "no_bias": "bool",
        "dropout": "float",
        "init": "word",
        "init_a": "float",
        "init_b": "float",
    }
    choices = {
        "init": ("zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform",
        "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"),
    }

    def __init__(
        self,
        heads,
        *,
        kv_heads=0,
        size=0,
        units=0,
        causal=False,
        window=0,
        alibi=False,
        rotary=False,
        theta=10000,
        no_bias=False,
        dropout=0,
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
            heads=heads,
            kv_heads=kv_heads,
            size=size,
            units=units,
            causal=causal,
            window=window,
            alibi=alibi,
            rotary=rotary,
            theta=theta,
            no_bias=no_bias,
            dropout=dropout,
            init=init,
            init_a=init_a,
            init_b=init_b,
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
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
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
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
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


class LLaMA(Layer):
    """LLaMA language model: tokens [time] to logits [time, vocab].

    Args:
        layers: number of blocks
        heads: number of attention heads
        kv_heads: number of heads of keys and values (grouped-query attention); 0: same as heads
        width: number of channels
        hidden: hidden units of the feed-forward layers; 0: 8/3 width, rounded up to a multiple of
            32
        vocab: vocabulary size
        theta: base of the rotary frequencies
        eps: small constant added in the norms
        window: sliding window: attend only to positions less than this far away; 0: to all
        tied: share the output weights with the embedding
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "llama"
    options = {
        "layers": "int",
        "heads": "int",
        "kv_heads": "int",
        "width": "int",
        "hidden": "int",
        "vocab": "int",
        "theta": "float",
        "eps": "float",
        "window": "int",
        "tied": "bool",
    }

    def __init__(
        self,
        layers=4,
        *,
        heads=4,
        kv_heads=0,
        width=128,
        hidden=0,
        vocab=None,
        theta=10000,
        eps=1e-06,
        window=0,
        tied=False,
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
            kv_heads=kv_heads,
            width=width,
            hidden=hidden,
            vocab=vocab,
            theta=theta,
            eps=eps,
            window=window,
            tied=tied,
        )


class BERT(Layer):
    """BERT: tokens [time] to logits [time, vocab] or to classes; a second input is a mask, a third
    the segments.

    Args:
        layers: number of blocks
        heads: number of attention heads
        width: number of channels
        hidden: hidden units of the feed-forward layers; 0: 4 times the width
        vocab: vocabulary size
        types: kinds of segments
        classes: number of classes of the text; 0: logits of every token
        dropout: dropout rate of the embeddings and in all branches
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "bert"
    options = {
        "layers": "int",
        "heads": "int",
        "width": "int",
        "hidden": "int",
        "vocab": "int",
        "types": "int",
        "classes": "int",
        "dropout": "float",
    }

    def __init__(
        self,
        layers=4,
        *,
        heads=4,
        width=128,
        hidden=0,
        vocab=None,
        types=2,
        classes=0,
        dropout=0,
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
            hidden=hidden,
            vocab=vocab,
            types=types,
            classes=classes,
            dropout=dropout,
        )


class ViT(Layer):
    """Vision transformer: images to classes.

    Args:
        patch: side of a patch, in pixels; must divide the image
        layers: number of blocks
        heads: number of attention heads
        width: number of channels
        hidden: hidden units of the feed-forward layers; 0: 4 times the width
        classes: number of classes
        dropout: dropout rate of the patches and in all branches
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "vit"
    options = {
        "patch": "int",
        "layers": "int",
        "heads": "int",
        "width": "int",
        "hidden": "int",
        "classes": "int",
        "dropout": "float",
    }

    def __init__(
        self,
        patch=16,
        *,
        layers=12,
        heads=12,
        width=768,
        hidden=0,
        classes=10,
        dropout=0,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            patch=patch,
            layers=layers,
            heads=heads,
            width=width,
            hidden=hidden,
            classes=classes,
            dropout=dropout,
        )


class MobileNetV2(Layer):
    """MobileNet V2: images to classes.

    Args:
        classes: number of classes
        width: factor on the number of channels, which stay multiples of 8
        small: variant for 32 x 32 images: the first two strides are 1
        dropout: dropout rate before the last layer
        over: compute batch norm statistics over the whole batch, or over each lane
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "mobilenet_v2"
    options = {
        "classes": "int",
        "width": "float",
        "small": "bool",
        "dropout": "float",
        "over": "word",
    }
    choices = {
        "over": ("batch", "lane"),
    }

    def __init__(
        self,
        classes=10,
        *,
        width=1,
        small=False,
        dropout=0.2,
        over="batch",
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            classes=classes,
            width=width,
            small=small,
            dropout=dropout,
            over=over,
        )


class UNet(Layer):
    """U-Net: images to a class for each pixel.

    Args:
        classes: number of classes, the channels of the output
        width: number of channels of the first level, doubled at each next
        depth: how often the size is halved
        over: compute batch norm statistics over the whole batch, or over each lane
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "unet"
    options = {"classes": "int", "width": "int", "depth": "int", "over": "word"}
    choices = {
        "over": ("batch", "lane"),
    }

    def __init__(
        self,
        classes=2,
        *,
        width=64,
        depth=4,
        over="batch",
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            classes=classes,
            width=width,
            depth=depth,
            over=over,
        )


class LSTMLM(Layer):
    """Language model of LSTM layers: tokens [time] to logits [time, vocab].

    Args:
        layers: number of LSTM layers
        width: size of the embedding vectors
        units: number of outputs of a step
        vocab: vocabulary size
        dropout: dropout rate after the embedding and after each layer
        tied: share the output weights with the embedding; width must equal units
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "lstm_lm"
    options = {
        "layers": "int",
        "width": "int",
        "units": "int",
        "vocab": "int",
        "dropout": "float",
        "tied": "bool",
    }

    def __init__(
        self,
        layers=2,
        *,
        width=128,
        units=128,
        vocab=None,
        dropout=0,
        tied=False,
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            layers=layers,
            width=width,
            units=units,
            vocab=vocab,
            dropout=dropout,
            tied=tied,
        )


class Tabular(Layer):
    """Network for tables [columns], with embeddings of the columns of categories.

    Args:
        categories: how many values each of the first columns has: whole numbers from 0; the other
            columns are numbers
        units: number of outputs of each hidden layer
        classes: number of outputs
        dropout: dropout rate after each hidden layer
        no_batch_norm: no batch norm of the numbers and after the hidden layers
        over: compute batch norm statistics over the whole batch, or over each lane
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "tabular"
    options = {
        "categories": "list",
        "units": "list",
        "classes": "int",
        "dropout": "float",
        "no_batch_norm": "bool",
        "over": "word",
    }
    choices = {
        "over": ("batch", "lane"),
    }

    def __init__(
        self,
        categories=None,
        *,
        units=None,
        classes=1,
        dropout=0,
        no_batch_norm=False,
        over="batch",
        name=None,
        device=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            name=name,
            device=device,
            categories=categories,
            units=units,
            classes=classes,
            dropout=dropout,
            no_batch_norm=no_batch_norm,
            over=over,
        )


class Autoencoder(Layer):
    """Autoencoder of dense layers: to a code, and back to the shape of the input.

    Args:
        units: number of outputs of each layer of the encoder; the last one is the code
        act: activation
        last: activation of the output
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    kind = "autoencoder"
    options = {"units": "list", "act": "word", "last": "word"}
    choices = {
        "act": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
        "last": ("linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu",
        "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish",
        "softsign"),
    }

    def __init__(self, units, *, act="relu", last="linear", name=None, device=None, **unknown):
        super().__init__(unknown, name=name, device=device, units=units, act=act, last=last)
