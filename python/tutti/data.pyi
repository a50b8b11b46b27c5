"""Data: sources of records, and transforms of them.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ._lib import Dtype
from ._data import Source as Source
from ._data import Transform as Transform
from ._data import Arrays as Arrays, Data as Data, Map as Map


class Digits(Source):
    """Generated images of digits, 28 x 28; needs no files.

    Args:
        count: number of records
        first: index of the first record; different ranges give data sets that do not overlap
        seed: random seed of the drawings
        noise: standard deviation of the pixel noise; negative: no noise
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        count: int = 20000,
        *,
        first: int = 0,
        seed: int = 1,
        noise: float = 0.15,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class MNIST(Source):
    """MNIST's four files, or a data set in the same format (Fashion-MNIST).

    Args:
        split: which part of the data set: train or test
        dir: folder of the files; default: TUTTI_DATA_DIR/mnist, else data/mnist
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        split: str | Sequence[str] = "train",
        *,
        dir: str | Sequence[str] | None = None,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class IDX(Source):
    """Files in the IDX format, the format of MNIST.

    Args:
        x: IDX file with the records; may be compressed (.gz)
        y: IDX file with the labels or other targets
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        x: str | Sequence[str],
        *,
        y: str | Sequence[str] | None = None,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class CIFAR10(Source):
    """CIFAR-10 in its binary format.

    Args:
        split: which part of the data set: train or test
        dir: folder of the files; default: TUTTI_DATA_DIR/cifar10, else data/cifar10
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        split: str | Sequence[str] = "train",
        *,
        dir: str | Sequence[str] | None = None,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class CSV(Source):
    """A CSV file.

    Args:
        file: the CSV file; may be compressed (.gz)
        y: target columns: "price" or "a, b"; default: the last column; -: no target
        x: input columns; default: all but the targets
        classes: y is a class label, a number or a word, instead of a value
        words: class names in order: "cat, dog"; default: in order of appearance
        no_header: the file has no header line; columns are called c0, c1, ...
        comma: the column separator, one character or the word tab
        first: number of records to skip at the start
        count: number of records to use; 0: all
        skip: columns that are not inputs: "id, name"
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        file: str | Sequence[str],
        *,
        y: str | Sequence[str] | None = None,
        x: str | Sequence[str] | None = None,
        classes: bool = False,
        words: str | Sequence[str] | None = None,
        no_header: bool = False,
        comma: str | Sequence[str] = ",",
        first: int = 0,
        count: int = 0,
        skip: str | Sequence[str] | None = None,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class NPY(Source):
    """NumPy arrays: .npy files or an .npz archive.

    Args:
        x: .npy file with the records; with file: name of the array in the archive, default x
        y: .npy file with the targets; with file: name of the array in the archive, default y if it
            exists
        file: an .npz archive
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        x: str | Sequence[str] | None = None,
        *,
        y: str | Sequence[str] | None = None,
        file: str | Sequence[str] | None = None,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class Tokens(Source):
    """Files of u16 or u32 tokens without a header; the target is the next token.

    Args:
        file: token files or patterns: "a.bin, b*.bin"
        context: number of tokens per record
        vocab: vocabulary size; every token must be below it
        bits: bits per token in the file: 16 or 32
        stride: number of tokens from the start of one record to the start of the next; default:
            context
        from_: start of the part of the tokens to use, as a fraction
        to: end of the part of the tokens to use, as a fraction
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        file: str | Sequence[str],
        context: int,
        vocab: int,
        *,
        bits: int = 16,
        stride: int = 0,
        from_: float = 0,
        to: float = 1,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class Text(Source):
    """Text files, split into characters or bytes; the target is the next token.

    Args:
        file: text files or patterns: "a.txt, docs/*.md"
        context: number of tokens per record
        level: char: one token per character, the vocabulary is the characters of the text; byte:
            one token per byte, a vocabulary of 256
        stride: number of tokens from the start of one record to the start of the next; default:
            context
        from_: start of the part of the text to use, as a fraction
        to: end of the part of the text to use, as a fraction
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        file: str | Sequence[str],
        context: int,
        *,
        level: str | Sequence[str] = "char",
        stride: int = 0,
        from_: float = 0,
        to: float = 1,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class Normalise(Transform):
    """Normalise values: (x - mean) / scale.

    Args:
        fit: take mean and standard deviation from the training data: true (or fit) for each channel
            (last axis; column of a CSV file), all for one pair of numbers
        field: field to transform; default: the first
        mean: value to subtract
        scale: value to divide by
        means: one mean per channel (last axis), instead of mean
        scales: one scale per channel, instead of scale
    """

    def __init__(
        self,
        fit: Literal["false", "true", "fit", "all"] | bool = "false",
        *,
        field: str | Sequence[str] | None = None,
        mean: float = 0,
        scale: float = 1,
        means: str | Sequence[str] | None = None,
        scales: str | Sequence[str] | None = None,
    ) -> None: ...


class OneHot(Transform):
    """Encode a class label as a one-hot vector.

    Args:
        depth: number of classes; default: known from the data
        field: field to transform; default: the first
        smoothing: label smoothing: fraction of the target spread evenly over all classes
    """

    def __init__(
        self,
        depth: int = 0,
        *,
        field: str | Sequence[str] | None = None,
        smoothing: float = 0,
    ) -> None: ...


class ChannelsLast(Transform):
    """Convert an image from [channels, height, width] to [height, width, channels].

    Args:
        field: field to transform; default: the first
    """

    def __init__(self, field: str | Sequence[str] | None = None) -> None: ...


class RandomCrop(Transform):
    """Crop a window at a random position.

    Args:
        size: height and width of the crop; default: those of the image
        field: field to transform; default: the first
        pad: pixels of zero padding added on each side before cropping
    """

    def __init__(
        self,
        size: int | tuple[int, int] = 0,
        *,
        field: str | Sequence[str] | None = None,
        pad: int = 0,
    ) -> None: ...


class RandomFlip(Transform):
    """Mirror left to right with probability 1/2.

    Args:
        field: field to transform; default: the first
    """

    def __init__(self, field: str | Sequence[str] | None = None) -> None: ...


class RandomShift(Transform):
    """Shift by a random number of pixels.

    Args:
        shift: largest shift in pixels in each direction; empty pixels become 0
        field: field to transform; default: the first
    """

    def __init__(self, shift: int, *, field: str | Sequence[str] | None = None) -> None: ...
