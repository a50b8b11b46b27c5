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


class Images(Source):
    """JPEG, PNG and WebP files: one folder per class, or a list.

    Args:
        dir: a folder with one folder per class
        file: a CSV file of paths and labels instead; paths are relative to dir, or to the file's
            folder
        size: height and width that all images are resized to; required
        channels: 3: colour, 1: grey
        fit: images of other proportions: crop (use the largest part in the middle), stretch, or pad
            with black
        scaled: decode JPEG files at 1/2, 1/4 or 1/8 of their size where that is still as large as
            size
        corrupt: damaged files: error when one is read, or skip: all files are decoded once at the
            start, and damaged ones are left out
        words: class names in order: "cat, dog"; default: sorted
        max_megapixels: larger images are refused before they are decoded
        cache: keep resized images in memory, one byte per value, so that each file is decoded once
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        dir: str | Sequence[str] | None = None,
        *,
        file: str | Sequence[str] | None = None,
        size: int | tuple[int, int] = 0,
        channels: int = 3,
        fit: Literal["crop", "stretch", "pad"] = "crop",
        scaled: bool = False,
        corrupt: Literal["error", "skip"] = "error",
        words: str | Sequence[str] | None = None,
        max_megapixels: int = 100,
        cache: bool = False,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class CSV(Source):
    """CSV files.

    Args:
        file: CSV files: names or patterns, "a.csv, b*.csv"; may be compressed (.gz)
        y: target columns: "price" or "a, b"; default: the last column; -: no target
        x: input columns; default: all but the targets
        classes: y is a class label, a number or a word, instead of a value
        words: class names in order: "cat, dog"; default: in order of appearance
        no_header: the file has no header line; columns are called c0, c1, ...
        comma: the column separator, one character or the word tab
        first: number of records to skip at the start
        count: number of records to use; 0: all
        skip: columns that are not inputs: "id, name"
        categories: input columns of words: each becomes one column per word, 1 where it is that
            word, else 0
        hash: categories become this many columns instead, chosen by the word's hash; 0: one per
            word
        dates: input columns of dates (2024-01-31, 2024-01-31 13:45): each becomes days since 1970,
            month, day, weekday and hour
        missing: empty cells and NA in columns of numbers: error, or nan (then use fill_missing)
        unseen: a word of a category that the training data lacks: error, or zeros in all its
            columns
        quote: the quotation mark, one character or the word none
        decimal: the decimal mark: a point or a comma
        tables: words of the categories, as a model keeps them; default: those of the file
        window: rows per record, for files in order of time: x is [window, columns]; 0: single rows
        horizon: with window: y is that of the row so many rows later
        stride: with window: rows from one record to the next
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
        categories: str | Sequence[str] | None = None,
        hash: int = 0,
        dates: str | Sequence[str] | None = None,
        missing: Literal["error", "nan"] = "error",
        unseen: Literal["error", "zeros"] = "error",
        quote: str | Sequence[str] = "\"",
        decimal: str | Sequence[str] = ".",
        tables: str | Sequence[str] | None = None,
        window: int = 0,
        horizon: int = 1,
        stride: int = 1,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class Jsonl(Source):
    """JSON lines.

    Args:
        file: files of JSON lines: names or patterns; may be compressed (.gz)
        y: target keys: "price" or "a, b.c"; -: no target
        x: input keys; default: all keys of the first record but the targets
        classes: y is a class label, a number or a word, instead of a value
        words: class names in order: "cat, dog"; default: in order of appearance
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        file: str | Sequence[str],
        y: str | Sequence[str],
        *,
        x: str | Sequence[str] | None = None,
        classes: bool = False,
        words: str | Sequence[str] | None = None,
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class Tfrecord(Source):
    """TFRecord files of tf.train.Example.

    Args:
        file: TFRecord files: names or patterns; may be compressed (.gz)
        x: the input feature: floats, integers, or one image file
        y: the target feature: an integer class, or floats
        shape: shape of x; default: one axis
        classes: number of classes; 0: found by reading all records
        size: images: height and width that they are resized to
        channels: images: 3 for colour, 1 for grey
        fit: images of other proportions: crop, stretch or pad
        batch: batch size, summed over all devices
        shuffle: shuffle every epoch
        transforms: transforms of each record, in order
        workers: threads that load ahead; 0: none
        prefetch: batches loaded ahead; 0: chosen from their size
    """

    def __init__(
        self,
        file: str | Sequence[str],
        x: str | Sequence[str],
        *,
        y: str | Sequence[str] | None = None,
        shape: int | Sequence[int] | None = None,
        classes: int = 0,
        size: int | tuple[int, int] = 0,
        channels: int = 3,
        fit: Literal["crop", "stretch", "pad"] = "crop",
        batch: int = 32,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
        workers: int = 1,
        prefetch: int = 0,
    ) -> None: ...


class Webdataset(Source):
    """WebDataset: tar files of images and classes.

    Args:
        file: tar files: names or patterns; may be compressed (.gz)
        x: endings of images
        y: ending of the file that has the class, a number or a word; -: none
        size: height and width that all images are resized to; required
        channels: 3: colour, 1: grey
        words: class names in order: "cat, dog"; default: numbers, or words in order of appearance
        fit: images of other proportions: crop, stretch or pad
        scaled: decode JPEG files at 1/2, 1/4 or 1/8 of their size where that is still as large as
            size
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
        x: str | Sequence[str] = "jpg, jpeg, png, webp",
        y: str | Sequence[str] = "cls",
        size: int | tuple[int, int] = 0,
        channels: int = 3,
        words: str | Sequence[str] | None = None,
        fit: Literal["crop", "stretch", "pad"] = "crop",
        scaled: bool = False,
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


class FillMissing(Transform):
    """Replace missing values (nan).

    Args:
        fit: mean (or true): take the mean of each column of the training data, of the values that
            are there
        field: field to transform; default: the first
        value: the number that replaces a missing value
        means: one number per column (last axis), instead of value
    """

    def __init__(
        self,
        fit: Literal["false", "true", "fit", "mean"] | bool = "false",
        *,
        field: str | Sequence[str] | None = None,
        value: float = 0,
        means: str | Sequence[str] | None = None,
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


class Resize(Transform):
    """Resize an image, bilinear with antialiasing.

    Args:
        size: height and width of the result; required
        field: field to transform; default: the first
    """

    def __init__(
        self,
        size: int | tuple[int, int] = 0,
        *,
        field: str | Sequence[str] | None = None,
    ) -> None: ...


class CentreCrop(Transform):
    """Crop a window in the middle of an image.

    Args:
        size: height and width of the result; required
        field: field to transform; default: the first
    """

    def __init__(
        self,
        size: int | tuple[int, int] = 0,
        *,
        field: str | Sequence[str] | None = None,
    ) -> None: ...


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


class RandomResizedCrop(Transform):
    """Crop a part of random size and proportions, and resize it.

    Args:
        size: height and width of the result; required
        field: field to transform; default: the first
        min_scale: smallest part of the image's area
        max_scale: largest part of the image's area
        max_aspect: largest width divided by height; the smallest is 1 divided by it
    """

    def __init__(
        self,
        size: int | tuple[int, int] = 0,
        *,
        field: str | Sequence[str] | None = None,
        min_scale: float = 0.08,
        max_scale: float = 1,
        max_aspect: float = 1.3333333333333333,
    ) -> None: ...


class RandomFlip(Transform):
    """Mirror left to right, or upside down, with probability 1/2.

    Args:
        field: field to transform; default: the first
        vertical: upside down instead of left to right
        probability: how often it is applied, from 0 to 1
    """

    def __init__(
        self,
        field: str | Sequence[str] | None = None,
        *,
        vertical: bool = False,
        probability: float = 0.5,
    ) -> None: ...


class RandomShift(Transform):
    """Shift by a random number of pixels.

    Args:
        shift: largest shift in pixels in each direction; empty pixels become 0
        field: field to transform; default: the first
    """

    def __init__(self, shift: int, *, field: str | Sequence[str] | None = None) -> None: ...


class RandomRotate(Transform):
    """Rotate by a random angle.

    Args:
        degrees: largest angle, in either direction; empty pixels become 0
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    def __init__(
        self,
        degrees: float,
        *,
        field: str | Sequence[str] | None = None,
        probability: float = 1,
    ) -> None: ...


class RandomZoom(Transform):
    """Enlarge or shrink by a random factor.

    Args:
        zoom: largest change of size: 0.2 shows the image at 0.8 to 1.2 times its size
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    def __init__(
        self,
        zoom: float,
        *,
        field: str | Sequence[str] | None = None,
        probability: float = 1,
    ) -> None: ...


class RandomColour(Transform):
    """Change brightness, contrast, saturation and hue at random.

    Args:
        field: field to transform; default: the first
        brightness: largest change of the brightness: 0.4 multiplies by 0.6 to 1.4
        contrast: largest change of the contrast
        saturation: largest change of the saturation
        hue: largest change of the hue, as a fraction of the colour circle
        probability: how often it is applied, from 0 to 1
    """

    def __init__(
        self,
        field: str | Sequence[str] | None = None,
        *,
        brightness: float = 0,
        contrast: float = 0,
        saturation: float = 0,
        hue: float = 0,
        probability: float = 1,
    ) -> None: ...


class RandomBlur(Transform):
    """Blur by a random amount.

    Args:
        sigma: largest standard deviation of the blur, in pixels
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    def __init__(
        self,
        sigma: float,
        *,
        field: str | Sequence[str] | None = None,
        probability: float = 1,
    ) -> None: ...


class RandomMixup(Transform):
    """Mix each record and its target with another one of the data set.

    Args:
        alpha: of the beta distribution of the proportion, above 0 and at most 1: small ones change
            little
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    def __init__(
        self,
        alpha: float = 1,
        *,
        field: str | Sequence[str] | None = None,
        probability: float = 1,
    ) -> None: ...


class RandomCutmix(Transform):
    """Replace a rectangle of each image by that of another one, and mix the targets.

    Args:
        alpha: of the beta distribution of the proportion, above 0 and at most 1: small ones change
            little
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    def __init__(
        self,
        alpha: float = 1,
        *,
        field: str | Sequence[str] | None = None,
        probability: float = 1,
    ) -> None: ...
