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
    "CentreCrop",
    "ChannelsLast",
    "Data",
    "Digits",
    "FillMissing",
    "IDX",
    "Images",
    "Jsonl",
    "MNIST",
    "Map",
    "NPY",
    "Normalise",
    "OneHot",
    "RandomBlur",
    "RandomColour",
    "RandomCrop",
    "RandomCutmix",
    "RandomFlip",
    "RandomMixup",
    "RandomResizedCrop",
    "RandomRotate",
    "RandomShift",
    "RandomZoom",
    "Resize",
    "Source",
    "Text",
    "Tfrecord",
    "Tokens",
    "Transform",
    "Webdataset",
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

    kind = "images"
    options = {
        "dir": "text",
        "file": "text",
        "size": "pair",
        "channels": "int",
        "fit": "word",
        "scaled": "bool",
        "corrupt": "word",
        "words": "text",
        "max_megapixels": "int",
        "cache": "bool",
    }
    choices = {
        "fit": ("crop", "stretch", "pad"),
        "corrupt": ("error", "skip"),
    }

    def __init__(
        self,
        dir=None,
        *,
        file=None,
        size=0,
        channels=3,
        fit="crop",
        scaled=False,
        corrupt="error",
        words=None,
        max_megapixels=100,
        cache=False,
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
            dir=dir,
            file=file,
            size=size,
            channels=channels,
            fit=fit,
            scaled=scaled,
            corrupt=corrupt,
            words=words,
            max_megapixels=max_megapixels,
            cache=cache,
        )


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
        "categories": "text",
        "hash": "int",
        "dates": "text",
        "missing": "word",
        "unseen": "word",
        "quote": "text",
        "decimal": "text",
        "tables": "text",
        "window": "int",
        "horizon": "int",
        "stride": "int",
    }
    choices = {
        "missing": ("error", "nan"),
        "unseen": ("error", "zeros"),
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
        categories=None,
        hash=0,
        dates=None,
        missing="error",
        unseen="error",
        quote="\"",
        decimal=".",
        tables=None,
        window=0,
        horizon=1,
        stride=1,
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
            categories=categories,
            hash=hash,
            dates=dates,
            missing=missing,
            unseen=unseen,
            quote=quote,
            decimal=decimal,
            tables=tables,
            window=window,
            horizon=horizon,
            stride=stride,
        )


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

    kind = "jsonl"
    options = {"file": "text", "y": "text", "x": "text", "classes": "bool", "words": "text"}

    def __init__(
        self,
        file,
        y,
        *,
        x=None,
        classes=False,
        words=None,
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
        )


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

    kind = "tfrecord"
    options = {
        "file": "text",
        "x": "text",
        "y": "text",
        "shape": "shape",
        "classes": "int",
        "size": "pair",
        "channels": "int",
        "fit": "word",
    }
    choices = {
        "fit": ("crop", "stretch", "pad"),
    }

    def __init__(
        self,
        file,
        x,
        *,
        y=None,
        shape=None,
        classes=0,
        size=0,
        channels=3,
        fit="crop",
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
            x=x,
            y=y,
            shape=shape,
            classes=classes,
            size=size,
            channels=channels,
            fit=fit,
        )


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

    kind = "webdataset"
    options = {
        "file": "text",
        "x": "text",
        "y": "text",
        "size": "pair",
        "channels": "int",
        "words": "text",
        "fit": "word",
        "scaled": "bool",
    }
    choices = {
        "fit": ("crop", "stretch", "pad"),
    }

    def __init__(
        self,
        file,
        *,
        x="jpg, jpeg, png, webp",
        y="cls",
        size=0,
        channels=3,
        words=None,
        fit="crop",
        scaled=False,
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
            x=x,
            y=y,
            size=size,
            channels=channels,
            words=words,
            fit=fit,
            scaled=scaled,
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


class FillMissing(Transform):
    """Replace missing values (nan).

    Args:
        fit: mean (or true): take the mean of each column of the training data, of the values that
            are there
        field: field to transform; default: the first
        value: the number that replaces a missing value
        means: one number per column (last axis), instead of value
    """

    kind = "fill_missing"
    options = {"fit": "word", "field": "text", "value": "float", "means": "text"}
    choices = {
        "fit": ("false", "true", "fit", "mean"),
    }

    def __init__(self, fit="false", *, field=None, value=0, means=None, **unknown):
        super().__init__(unknown, fit=fit, field=field, value=value, means=means)


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


class Resize(Transform):
    """Resize an image, bilinear with antialiasing.

    Args:
        size: height and width of the result; required
        field: field to transform; default: the first
    """

    kind = "resize"
    options = {"size": "pair", "field": "text"}

    def __init__(self, size=0, *, field=None, **unknown):
        super().__init__(unknown, size=size, field=field)


class CentreCrop(Transform):
    """Crop a window in the middle of an image.

    Args:
        size: height and width of the result; required
        field: field to transform; default: the first
    """

    kind = "centre_crop"
    options = {"size": "pair", "field": "text"}

    def __init__(self, size=0, *, field=None, **unknown):
        super().__init__(unknown, size=size, field=field)


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


class RandomResizedCrop(Transform):
    """Crop a part of random size and proportions, and resize it.

    Args:
        size: height and width of the result; required
        field: field to transform; default: the first
        min_scale: smallest part of the image's area
        max_scale: largest part of the image's area
        max_aspect: largest width divided by height; the smallest is 1 divided by it
    """

    kind = "random_resized_crop"
    options = {
        "size": "pair",
        "field": "text",
        "min_scale": "float",
        "max_scale": "float",
        "max_aspect": "float",
    }

    def __init__(
        self,
        size=0,
        *,
        field=None,
        min_scale=0.08,
        max_scale=1,
        max_aspect=1.3333333333333333,
        **unknown,
    ):
        super().__init__(
            unknown,
            size=size,
            field=field,
            min_scale=min_scale,
            max_scale=max_scale,
            max_aspect=max_aspect,
        )


class RandomFlip(Transform):
    """Mirror left to right, or upside down, with probability 1/2.

    Args:
        field: field to transform; default: the first
        vertical: upside down instead of left to right
        probability: how often it is applied, from 0 to 1
    """

    kind = "random_flip"
    options = {"field": "text", "vertical": "bool", "probability": "float"}

    def __init__(self, field=None, *, vertical=False, probability=0.5, **unknown):
        super().__init__(unknown, field=field, vertical=vertical, probability=probability)


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


class RandomRotate(Transform):
    """Rotate by a random angle.

    Args:
        degrees: largest angle, in either direction; empty pixels become 0
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    kind = "random_rotate"
    options = {"degrees": "float", "field": "text", "probability": "float"}

    def __init__(self, degrees, *, field=None, probability=1, **unknown):
        super().__init__(unknown, degrees=degrees, field=field, probability=probability)


class RandomZoom(Transform):
    """Enlarge or shrink by a random factor.

    Args:
        zoom: largest change of size: 0.2 shows the image at 0.8 to 1.2 times its size
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    kind = "random_zoom"
    options = {"zoom": "float", "field": "text", "probability": "float"}

    def __init__(self, zoom, *, field=None, probability=1, **unknown):
        super().__init__(unknown, zoom=zoom, field=field, probability=probability)


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

    kind = "random_colour"
    options = {
        "field": "text",
        "brightness": "float",
        "contrast": "float",
        "saturation": "float",
        "hue": "float",
        "probability": "float",
    }

    def __init__(
        self,
        field=None,
        *,
        brightness=0,
        contrast=0,
        saturation=0,
        hue=0,
        probability=1,
        **unknown,
    ):
        super().__init__(
            unknown,
            field=field,
            brightness=brightness,
            contrast=contrast,
            saturation=saturation,
            hue=hue,
            probability=probability,
        )


class RandomBlur(Transform):
    """Blur by a random amount.

    Args:
        sigma: largest standard deviation of the blur, in pixels
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    kind = "random_blur"
    options = {"sigma": "float", "field": "text", "probability": "float"}

    def __init__(self, sigma, *, field=None, probability=1, **unknown):
        super().__init__(unknown, sigma=sigma, field=field, probability=probability)


class RandomMixup(Transform):
    """Mix each record and its target with another one of the data set.

    Args:
        alpha: of the beta distribution of the proportion, above 0 and at most 1: small ones change
            little
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    kind = "random_mixup"
    options = {"alpha": "float", "field": "text", "probability": "float"}

    def __init__(self, alpha=1, *, field=None, probability=1, **unknown):
        super().__init__(unknown, alpha=alpha, field=field, probability=probability)


class RandomCutmix(Transform):
    """Replace a rectangle of each image by that of another one, and mix the targets.

    Args:
        alpha: of the beta distribution of the proportion, above 0 and at most 1: small ones change
            little
        field: field to transform; default: the first
        probability: how often it is applied, from 0 to 1
    """

    kind = "random_cutmix"
    options = {"alpha": "float", "field": "text", "probability": "float"}

    def __init__(self, alpha=1, *, field=None, probability=1, **unknown):
        super().__init__(unknown, alpha=alpha, field=field, probability=probability)
