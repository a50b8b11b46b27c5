"""Data: sources of records, and transforms of them.

Written by python/generate.py from the catalogue; not edited by hand.
"""
from ._data import Source
from ._data import Transform
from ._data import Arrays, Data, Map

__all__ = [
    "Arrays",
    "CIFAR10",
    "CSV",
    "ChannelsLast",
    "Data",
    "Digits",
    "IDX",
    "MNIST",
    "Map",
    "NPY",
    "Normalise",
    "OneHot",
    "RandomCrop",
    "RandomFlip",
    "RandomShift",
    "Source",
    "Text",
    "Tokens",
    "Transform",
]


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

    kind = "digits"
    options = {"count": "int", "first": "int", "seed": "int", "noise": "float"}

    def __init__(
        self,
        count=20000,
        *,
        first=0,
        seed=1,
        noise=0.15,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            count=count,
            first=first,
            seed=seed,
            noise=noise,
        )


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

    kind = "mnist"
    options = {"split": "text", "dir": "text"}

    def __init__(
        self,
        split="train",
        *,
        dir=None,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            split=split,
            dir=dir,
        )


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

    kind = "idx"
    options = {"x": "text", "y": "text"}

    def __init__(
        self,
        x,
        *,
        y=None,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            x=x,
            y=y,
        )


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

    kind = "cifar10"
    options = {"split": "text", "dir": "text"}

    def __init__(
        self,
        split="train",
        *,
        dir=None,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            split=split,
            dir=dir,
        )


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

    kind = "csv"
    options = {
        "file": "text",
        "y": "text",
        "x": "text",
        "classes": "bool",
        "words": "text",
        "no_header": "bool",
        "comma": "text",
        "first": "int",
        "count": "int",
        "skip": "text",
    }

    def __init__(
        self,
        file,
        *,
        y=None,
        x=None,
        classes=False,
        words=None,
        no_header=False,
        comma=",",
        first=0,
        count=0,
        skip=None,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            file=file,
            y=y,
            x=x,
            classes=classes,
            words=words,
            no_header=no_header,
            comma=comma,
            first=first,
            count=count,
            skip=skip,
        )


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

    kind = "npy"
    options = {"x": "text", "y": "text", "file": "text"}

    def __init__(
        self,
        x=None,
        *,
        y=None,
        file=None,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            x=x,
            y=y,
            file=file,
        )


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

    kind = "tokens"
    options = {
        "file": "text",
        "context": "int",
        "vocab": "int",
        "bits": "int",
        "stride": "int",
        "from": "float",
        "to": "float",
    }

    def __init__(
        self,
        file,
        context,
        vocab,
        *,
        bits=16,
        stride=0,
        from_=0,
        to=1,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            file=file,
            context=context,
            vocab=vocab,
            bits=bits,
            stride=stride,
            **{"from": from_},
            to=to,
        )


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

    kind = "text"
    options = {
        "file": "text",
        "context": "int",
        "level": "text",
        "stride": "int",
        "from": "float",
        "to": "float",
    }

    def __init__(
        self,
        file,
        context,
        *,
        level="char",
        stride=0,
        from_=0,
        to=1,
        batch=32,
        shuffle=True,
        transforms=(),
        workers=1,
        prefetch=0,
        **unknown,
    ):
        super().__init__(
            unknown,
            batch=batch,
            shuffle=shuffle,
            transforms=transforms,
            workers=workers,
            prefetch=prefetch,
            file=file,
            context=context,
            level=level,
            stride=stride,
            **{"from": from_},
            to=to,
        )


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

    kind = "normalise"
    options = {
        "fit": "word",
        "field": "text",
        "mean": "float",
        "scale": "float",
        "means": "text",
        "scales": "text",
    }
    choices = {
        "fit": ("false", "true", "fit", "all"),
    }

    def __init__(
        self,
        fit="false",
        *,
        field=None,
        mean=0,
        scale=1,
        means=None,
        scales=None,
        **unknown,
    ):
        super().__init__(
            unknown,
            fit=fit,
            field=field,
            mean=mean,
            scale=scale,
            means=means,
            scales=scales,
        )


class OneHot(Transform):
    """Encode a class label as a one-hot vector.

    Args:
        depth: number of classes; default: known from the data
        field: field to transform; default: the first
        smoothing: label smoothing: fraction of the target spread evenly over all classes
    """

    kind = "one_hot"
    options = {"depth": "int", "field": "text", "smoothing": "float"}

    def __init__(self, depth=0, *, field=None, smoothing=0, **unknown):
        super().__init__(unknown, depth=depth, field=field, smoothing=smoothing)


class ChannelsLast(Transform):
    """Convert an image from [channels, height, width] to [height, width, channels].

    Args:
        field: field to transform; default: the first
    """

    kind = "channels_last"
    options = {"field": "text"}

    def __init__(self, field=None, **unknown):
        super().__init__(unknown, field=field)


class RandomCrop(Transform):
    """Crop a window at a random position.

    Args:
        size: height and width of the crop; default: those of the image
        field: field to transform; default: the first
        pad: pixels of zero padding added on each side before cropping
    """

    kind = "random_crop"
    options = {"size": "pair", "field": "text", "pad": "int"}

    def __init__(self, size=0, *, field=None, pad=0, **unknown):
        super().__init__(unknown, size=size, field=field, pad=pad)


class RandomFlip(Transform):
    """Mirror left to right with probability 1/2.

    Args:
        field: field to transform; default: the first
    """

    kind = "random_flip"
    options = {"field": "text"}

    def __init__(self, field=None, **unknown):
        super().__init__(unknown, field=field)


class RandomShift(Transform):
    """Shift by a random number of pixels.

    Args:
        shift: largest shift in pixels in each direction; empty pixels become 0
        field: field to transform; default: the first
    """

    kind = "random_shift"
    options = {"shift": "int", "field": "text"}

    def __init__(self, shift, *, field=None, **unknown):
        super().__init__(unknown, shift=shift, field=field)
