"""Layers: the building blocks of models.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ._lib import Dtype
from ._layer import Layer as Layer
from ._layer import Input as Input, Lambda as Lambda


class Residual(Layer):
    """Residual connection: x + f(x), where f is a list of layers.

    Args:
        layers: layers, in order
        act: activation
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        layers: Sequence[Layer] | None = None,
        *,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        units: int,
        *,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        filters: int,
        *,
        kernel: int | tuple[int, int] = 3,
        stride: int | tuple[int, int] = 1,
        padding: Literal["valid", "same"] = "valid",
        pad: int | tuple[int, int] = 0,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        kernel: int | tuple[int, int] = 3,
        *,
        filters: int = 1,
        stride: int | tuple[int, int] = 1,
        padding: Literal["valid", "same"] = "valid",
        pad: int | tuple[int, int] = 0,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        filters: int,
        *,
        kernel: int | tuple[int, int] = 3,
        stride: int | tuple[int, int] = 1,
        padding: Literal["valid", "same"] = "valid",
        pad: int | tuple[int, int] = 0,
        multiplier: int = 1,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        filters: int,
        *,
        kernel: int | tuple[int, int] = 3,
        stride: int | tuple[int, int] = 1,
        padding: Literal["valid", "same"] = "valid",
        pad: int | tuple[int, int] = 0,
        extra: int | tuple[int, int] = 0,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        filters: int,
        *,
        kernel: int = 3,
        stride: int = 1,
        padding: Literal["valid", "same"] = "valid",
        pad: int = 0,
        causal: bool = False,
        dilation: int = 1,
        groups: int = 1,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        filters: int,
        *,
        kernel: int = 3,
        stride: int = 1,
        padding: Literal["valid", "same"] = "valid",
        pad: int = 0,
        extra: int = 0,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        hidden: int,
        *,
        units: int = 0,
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        hidden: int,
        *,
        units: int = 0,
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        size: int | tuple[int, int] = 2,
        *,
        stride: int | tuple[int, int] = 0,
        padding: Literal["valid", "same"] = "valid",
        pad: int | tuple[int, int] = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        size: int | tuple[int, int] = 2,
        *,
        stride: int | tuple[int, int] = 0,
        padding: Literal["valid", "same"] = "valid",
        pad: int | tuple[int, int] = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class GlobalAvgPool2D(Layer):
    """Global average pooling; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class GlobalMaxPool2D(Layer):
    """Global max pooling; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class AdaptiveAvgPool2D(Layer):
    """2-D average pooling to an output of a given size.

    Args:
        size: height and width of the output: 7 or [7, 5]
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class AdaptiveMaxPool2D(Layer):
    """2-D max pooling to an output of a given size.

    Args:
        size: height and width of the output: 7 or [7, 5]
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        size: int = 2,
        *,
        stride: int = 0,
        padding: Literal["valid", "same"] = "valid",
        pad: int = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        size: int = 2,
        *,
        stride: int = 0,
        padding: Literal["valid", "same"] = "valid",
        pad: int = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class GlobalAvgPool1D(Layer):
    """Average over time; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class GlobalMaxPool1D(Layer):
    """Maximum over time; the output is [batch, channels].

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Flatten(Layer):
    """Flatten each record to one dimension.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Reshape(Layer):
    """Change the shape of each record.

    Args:
        shape: new shape of one record; one dimension may be -1 (computed from the others)
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Permute(Layer):
    """Permute the axes of each record.

    Args:
        order: new order of the axes of one record, counted from 0 without the batch: [2, 0, 1]
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        order: Sequence[int],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Add(Layer):
    """Add the inputs; with one input, add it to the layer before.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Concat(Layer):
    """Concatenate the inputs; with one input, append it to the layer before.

    Args:
        axis: axis to join along; 0 is the batch, negative axes count from the end
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        axis: int = -1,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Multiply(Layer):
    """Multiply the inputs element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Subtract(Layer):
    """The first input minus the second.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Average(Layer):
    """The mean of the inputs, element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Maximum(Layer):
    """The largest of the inputs, element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Minimum(Layer):
    """The smallest of the inputs, element by element.

    Args:
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(self, *, name: str | None = None, device: str | None = None) -> None: ...


class Dot(Layer):
    """Dot products of two inputs along the last axis.

    Args:
        normalise: scale the vectors to length 1 first: cosine similarity
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        normalise: bool = False,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Repeat(Layer):
    """Repeat each record along a new axis: [batch, ...] becomes [batch, times, ...].

    Args:
        times: how many times
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        times: int,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class ZeroPad(Layer):
    """Add zeros around the axes between batch and channels.

    Args:
        pad: entries on each side: 1 for all sides, [1, 2] by axis, [1, 1, 2, 2] before and after
            each
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        pad: Sequence[int],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Crop(Layer):
    """Remove entries at the borders of the axes between batch and channels.

    Args:
        pad: entries on each side: 1 for all sides, [1, 2] by axis, [1, 1, 2, 2] before and after
            each
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        pad: Sequence[int],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Upsample2D(Layer):
    """Enlarge images by whole factors.

    Args:
        factor: factor of the height and the width
        mode: repeat pixels, or interpolate between their centres
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        factor: int | tuple[int, int] = 2,
        *,
        mode: Literal["nearest", "bilinear"] = "nearest",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Upsample1D(Layer):
    """Repeat each step of a sequence.

    Args:
        factor: factor
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        factor: int = 2,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class PixelShuffle(Layer):
    """Move channels to pixels: [b, h, w, c f f] becomes [b, h f, w f, c].

    Args:
        factor: factor
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        factor: int = 2,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class PixelUnshuffle(Layer):
    """Move pixels to channels: [b, h f, w f, c] becomes [b, h, w, c f f].

    Args:
        factor: factor
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        factor: int = 2,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Activation(Layer):
    """An activation function as a layer.

    Args:
        act: activation
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Glu(Layer):
    """Gated linear unit: the first half of the last axis times act of the second.

    Args:
        act: activation
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "sigmoid",
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Prelu(Layer):
    """X for x > 0, else a trained slope times x.

    Args:
        slope: initial slope for negative x
        shared: one slope for all channels instead of one each
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        slope: float = 0.25,
        *,
        shared: bool = False,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Expression(Layer):
    """An expression of ops.

    Args:
        expr: expression of x (further inputs: x2, x3, ...), numbers, + - * / ^ and functions, of at
            most 127 characters
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        expr: str | Sequence[str],
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Dropout(Layer):
    """Dropout: zeroes random elements in training and scales the others; does nothing in inference.

    Args:
        rate: fraction of elements to set to zero in training
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        rate: float = 0,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class SpatialDropout(Layer):
    """Dropout of whole channels in training.

    Args:
        rate: fraction to drop in training
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        rate: float = 0,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class GaussianDropout(Layer):
    """Multiply by normal numbers of mean 1 and deviation sqrt(rate / (1 - rate)) in training.

    Args:
        rate: fraction to drop in training
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        rate: float = 0,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class GaussianNoise(Layer):
    """Add normal numbers of mean 0 in training.

    Args:
        deviation: standard deviation of what is added
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        deviation: float = 0.1,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        eps: float = 1e-05,
        *,
        momentum: float = 0.9,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        zero_scale: bool = False,
        over: Literal["batch", "lane"] = "batch",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class LayerNorm(Layer):
    """Layer normalisation over the last axis, with scale and shift.

    Args:
        eps: small constant added to the variance
        no_bias: do not add a bias
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        eps: float = 1e-05,
        *,
        no_bias: bool = False,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class RMSNorm(Layer):
    """RMS normalisation over the last axis, with scale.

    Args:
        eps: small constant added to the variance
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        eps: float = 1e-05,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class GroupNorm(Layer):
    """Normalise each group of channels of a record, with scale and shift.

    Args:
        groups: groups of channels
        eps: small constant added to the variance
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        groups: int = 32,
        *,
        eps: float = 1e-05,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class InstanceNorm(Layer):
    """Normalise each channel of a record, with scale and shift.

    Args:
        eps: small constant added to the variance
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        eps: float = 1e-05,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        width: int,
        *,
        vocab: int | None = None,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "normal",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        fixed: bool = False,
        *,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "normal",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        units: int,
        *,
        layers: int = 1,
        bidirectional: bool = False,
        last: bool = False,
        dropout: float = 0,
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        units: int,
        *,
        layers: int = 1,
        bidirectional: bool = False,
        last: bool = False,
        dropout: float = 0,
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        units: int,
        *,
        layers: int = 1,
        bidirectional: bool = False,
        last: bool = False,
        dropout: float = 0,
        no_bias: bool = False,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        heads: int,
        *,
        kv_heads: int = 0,
        causal: bool = False,
        no_bias: bool = False,
        dropout: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        heads: int,
        *,
        kv_heads: int = 0,
        size: int = 0,
        units: int = 0,
        causal: bool = False,
        window: int = 0,
        alibi: bool = False,
        rotary: bool = False,
        theta: float = 10000,
        no_bias: bool = False,
        dropout: float = 0,
        init: Literal["zeros", "constant", "uniform", "normal", "truncated_normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal"] = "glorot_uniform",
        init_a: float = 0,
        init_b: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        heads: int,
        *,
        kv_heads: int = 0,
        hidden: int = 0,
        no_causal: bool = False,
        no_bias: bool = False,
        rms: bool = False,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "gelu",
        dropout: float = 0,
        depth: float = 1,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class MLP(Layer):
    """Multi-layer perceptron: dense layers in sequence.

    Args:
        units: number of outputs of each layer; the last one is the model's output
        act: activation
        dropout: dropout rate after each layer but the last
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        units: Sequence[int],
        *,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "relu",
        dropout: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class LeNet(Layer):
    """LeNet-5 for small images, with ReLU and max pooling.

    Args:
        classes: number of classes
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        classes: int = 10,
        *,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        depth: int = 18,
        *,
        classes: int = 10,
        width: int = 64,
        small: bool = False,
        over: Literal["batch", "lane"] = "batch",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        layers: int = 4,
        *,
        heads: int = 4,
        width: int = 128,
        vocab: int | None = None,
        dropout: float = 0,
        no_bias: bool = False,
        untied: bool = False,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        layers: int = 4,
        *,
        heads: int = 4,
        kv_heads: int = 0,
        width: int = 128,
        hidden: int = 0,
        vocab: int | None = None,
        theta: float = 10000,
        eps: float = 1e-06,
        window: int = 0,
        tied: bool = False,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        layers: int = 4,
        *,
        heads: int = 4,
        width: int = 128,
        hidden: int = 0,
        vocab: int | None = None,
        types: int = 2,
        classes: int = 0,
        dropout: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        patch: int = 16,
        *,
        layers: int = 12,
        heads: int = 12,
        width: int = 768,
        hidden: int = 0,
        classes: int = 10,
        dropout: float = 0,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        classes: int = 10,
        *,
        width: float = 1,
        small: bool = False,
        dropout: float = 0.2,
        over: Literal["batch", "lane"] = "batch",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        classes: int = 2,
        *,
        width: int = 64,
        depth: int = 4,
        over: Literal["batch", "lane"] = "batch",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        layers: int = 2,
        *,
        width: int = 128,
        units: int = 128,
        vocab: int | None = None,
        dropout: float = 0,
        tied: bool = False,
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


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

    def __init__(
        self,
        categories: Sequence[int] | None = None,
        *,
        units: Sequence[int] | None = None,
        classes: int = 1,
        dropout: float = 0,
        no_batch_norm: bool = False,
        over: Literal["batch", "lane"] = "batch",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...


class Autoencoder(Layer):
    """Autoencoder of dense layers: to a code, and back to the shape of the input.

    Args:
        units: number of outputs of each layer of the encoder; the last one is the code
        act: activation
        last: activation of the output
        name: name of the layer; default: its type and a number
        device: device, such as cpu:1; default: chosen by the strategy
    """

    def __init__(
        self,
        units: Sequence[int],
        *,
        act: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "relu",
        last: Literal["linear", "relu", "gelu", "gelu_erf", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "softplus", "softmax", "selu", "relu6", "mish", "hard_sigmoid", "hard_swish", "softsign"] = "linear",
        name: str | None = None,
        device: str | None = None,
    ) -> None: ...
