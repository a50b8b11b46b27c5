/*
 * data.h - data sets: sources of records, transforms, and the order of records.
 *
 * A data set consists of a source (a number of records with some fields, read by index),
 * transforms, and an order: a permutation computed from seed and epoch, so that the state of the
 * order is one number. Every record is used exactly once per epoch; the last batch may be smaller.
 * Fields are matched with a model's inputs and targets by name, else by position: inputs first.
 */
#ifndef TUTTI_DATA_H
#define TUTTI_DATA_H

#include <tutti/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_data tt_data;

#define TT_MAX_FIELDS 16
typedef struct tt_field {
    char name[32]; // "x", "y"
    tt_dtype dtype;
    tt_shape shape;  // shape of one record
    int64_t classes; // integers: upper bound of the values (exclusive); 0: unknown
} tt_field;

// ---- a source --------------------------------------------------------------------------------

/*
 * An open source. read() writes the fields of record i to out[0] to out[n_fields - 1]; several
 * threads call it at the same time. Its errors should name the file and the record.
 */
typedef struct tt_source {
    int64_t count;
    int n_fields;
    tt_field fields[TT_MAX_FIELDS];
    void *self;
    tt_status (*read)(tt_ctx *ctx, void *self, int64_t i, void *const *out);
    void (*close)(tt_ctx *ctx, void *self); // NULL: nothing to release
    /*
     * Optional: the lane, of lanes lanes, that record i belongs to. Each lane must then have as
     * many records as its rows of all batches need; otherwise the error says how many that is.
     */
    int (*lane)(void *self, int64_t i, int lanes);
} tt_source;

// ---- data sets -------------------------------------------------------------------------------

/*
 * Common to all data sets: how records become batches. tt_fit() may override batch.
 */
#define TT_DATA_OPTIONS                                                          \
    int batch;       /* batch size; default 32 */                                \
    bool no_shuffle; /* default false: shuffle every epoch */                    \
    int64_t seed;    /* of shuffling and transforms; default: the context's */   \
    int workers;     /* threads that load ahead; default 1, -1: none */          \
    int prefetch;    /* batches loaded ahead; default: 1 MiB of them, 4 to 64 */ \
    bool compare_all /* several processes compare all records, not a sample, at the start */

typedef struct tt_data_opts {
    size_t opts_size;
    TT_DATA_OPTIONS;
} tt_data_opts;

/*
 * Makes a data set from the program's own source. The source is closed with the data set, and also
 * if this call fails. The data set is owned by ctx. Returns NULL on failure, like all functions
 * below that return a data set.
 */
typedef tt_data_opts tt_data_new_opts;
TT_API tt_data *tt_data_new_with(tt_ctx *ctx, const tt_source *source, const tt_data_opts *opts);
#define tt_data_new(...) TT_CALL2(tt_data_new, __VA_ARGS__, )
TT_API void tt_data_free(tt_data *d);

TT_API int64_t tt_data_count(const tt_data *d);                           // number of records
TT_API int tt_data_fields(const tt_data *d, tt_field out[TT_MAX_FIELDS]); // after transforms

// Generated images of digits: [28, 28, 1] f32 in [0, 1], and a class. Needs no files.
typedef struct tt_digits_opts {
    size_t opts_size;
    int64_t count; // default 20000
    int64_t first; // index of the first record, for sets that do not overlap; default 0
    int64_t set;   // random seed of the drawings; default 1
    double noise;  // standard deviation of the pixel noise; default 0.15; negative: none
    TT_DATA_OPTIONS;
} tt_digits_opts;
TT_API tt_data *tt_digits_with(tt_ctx *ctx, const tt_digits_opts *opts);
#define tt_digits(...) TT_CALL1(tt_digits, __VA_ARGS__, )

// The four MNIST files (IDX, may be .gz) in a folder: [28, 28, 1] f32 in [0, 1], and a class.
typedef struct tt_mnist_opts {
    size_t opts_size;
    const char *split; // "train" or "test"; default "train"
    const char *dir;   // default: TUTTI_DATA_DIR/mnist, else "data/mnist"
    TT_DATA_OPTIONS;
} tt_mnist_opts;
TT_API tt_data *tt_mnist_with(tt_ctx *ctx, const tt_mnist_opts *opts);
#define tt_mnist(...) TT_CALL1(tt_mnist, __VA_ARGS__, )

/*
 * IDX files: one with records, one with labels (optional). u8 becomes f32 in [0, 1], other types
 * f32. Labels are one integer per record and become i32.
 */
typedef struct tt_idx_opts {
    size_t opts_size;
    const char *x, *y; // files; x is required
    TT_DATA_OPTIONS;
} tt_idx_opts;
TT_API tt_data *tt_idx_with(tt_ctx *ctx, const tt_idx_opts *opts);
#define tt_idx(...) TT_CALL1(tt_idx, __VA_ARGS__, )

// CIFAR-10's binary files: [32, 32, 3] f32 in [0, 1], and a class.
typedef struct tt_cifar10_opts {
    size_t opts_size;
    const char *split; // "train" or "test"; default "train"
    const char *dir;   // default: TUTTI_DATA_DIR/cifar10, else "data/cifar10"
    TT_DATA_OPTIONS;
} tt_cifar10_opts;
TT_API tt_data *tt_cifar10_with(tt_ctx *ctx, const tt_cifar10_opts *opts);
#define tt_cifar10(...) TT_CALL1(tt_cifar10, __VA_ARGS__, )

// images: how an image of other proportions gets its size.
typedef enum tt_images_fit {
    TT_IMAGES_CROP = 0,    // the largest part in the middle that has the proportions of size
    TT_IMAGES_STRETCH = 1, // all of it, distorted
    TT_IMAGES_PAD = 2,     // all of it, with black borders
} tt_images_fit;

// images: a file that is damaged, cut short or no image.
typedef enum tt_images_corrupt {
    TT_CORRUPT_ERROR = 0, // is an error when it is read
    TT_CORRUPT_SKIP = 1,  // is left out: opening decodes all files once, and warns of each
} tt_images_corrupt;

/*
 * JPEG, PNG and WebP files, decoded when they are read: u8 [height, width, channels], and a class
 * where there are classes. Either a folder with one folder per class, or a CSV file of paths and
 * labels. A format whose library was absent when Tutti was built is refused (tutti version).
 */
typedef struct tt_images_opts {
    size_t opts_size;
    const char *dir;  // a folder with one folder per class; images only: they have no class
    const char *file; // a CSV file: path, label. Relative paths are below dir, or its own folder
    int size[2];      // height and width of every record; required
    int channels;     // 3: colour, 1: grey; default 3
    tt_images_fit fit;
    bool scaled; // decode JPEG at 1/2, 1/4 or 1/8 where that is as large as needed
    tt_images_corrupt corrupt;
    const char *words;      // class names in order, "cat, dog"; default: sorted
    int64_t max_megapixels; // larger images are refused; default 100
    TT_DATA_OPTIONS;
    bool cache; // keep decoded images in memory: count * height * width * channels bytes
} tt_images_opts;
TT_API tt_data *tt_images_with(tt_ctx *ctx, const tt_images_opts *opts);
#define tt_images(...) TT_CALL1(tt_images, __VA_ARGS__, )

// csv: an empty cell, or NA, N/A, nan, null, in a column of numbers.
typedef enum tt_csv_missing {
    TT_MISSING_ERROR = 0, // names record, line and column
    TT_MISSING_NAN = 1,   // becomes nan, for the transform fill_missing
} tt_csv_missing;

// csv: a word of a category that the training data does not have.
typedef enum tt_csv_unseen {
    TT_UNSEEN_ERROR = 0,
    TT_UNSEEN_ZEROS = 1, // all its columns are 0
} tt_csv_unseen;

// CSV files with a header line. x is all columns but the targets. Values are f32.
typedef struct tt_csv_opts {
    size_t opts_size;
    const char *file;  // files or patterns, "a.csv, b?.csv", in this order, as if they were one
    const char *y;     // target columns: "price" or "a, b"; default: the last; "-": none
    const char *x;     // input columns; default: all but the targets
    bool classes;      // y is a class label (i32): a number from 0, or a word
    const char *words; // class names in order, "cat, dog"; default: in order of appearance
                       // In these lists a name may be quoted: "\"New York, NY\", Rome"
    bool no_header;    // columns are called "c0", "c1", ...
    const char *comma; // the column separator; default ","
    int64_t first;     // number of records to skip at the start
    int64_t count;     // number of records to use; default: all
    TT_DATA_OPTIONS;
    const char *skip; // columns that are not inputs: "id, name"
    /*
     * Input columns of words, "city, colour": each becomes as many columns as it has words, in
     * sorted order, of which one is 1. With hash, as many columns as that: the word's hash chooses.
     */
    const char *categories;
    int hash;
    const char *dates; // input columns of dates, 2024-01-31 or with 13:45:00: each becomes days
                       // since 1970-01-01 (with a fraction), month, day of month, weekday, hour
    tt_csv_missing missing;
    tt_csv_unseen unseen;
    const char *quote;   // the quotation mark; default "\""; "none": quotes are text
    const char *decimal; // the decimal mark: "." or ","; default "."
    const char *tables;  // words of the categories, as a model keeps them; default: from the file
    /*
     * Windows over rows in order of time: record i is rows [i * stride, i * stride + window), x is
     * [window, columns], y is that of the row horizon rows behind the last of them.
     */
    int window, horizon, stride; // default 0: single rows; horizon 1; stride 1
} tt_csv_opts;
TT_API tt_data *tt_csv_with(tt_ctx *ctx, const tt_csv_opts *opts);
#define tt_csv(...) TT_CALL1(tt_csv, __VA_ARGS__, )

/*
 * JSON lines: an object per line. A key is a number, true or false, or a list of numbers whose
 * length is the same in all records; "a.b" is key b of object a.
 */
typedef struct tt_jsonl_opts {
    size_t opts_size;
    const char *file;  // files or patterns, in this order; may be .gz
    const char *y;     // target keys: "price" or "a, b"; "-": none; required
    const char *x;     // input keys; default: all keys of the first record but the targets
    bool classes;      // y is a class label: a number from 0, or a word
    const char *words; // class names in order; default: in order of appearance
    TT_DATA_OPTIONS;
} tt_jsonl_opts;
TT_API tt_data *tt_jsonl_with(tt_ctx *ctx, const tt_jsonl_opts *opts);
#define tt_jsonl(...) TT_CALL1(tt_jsonl, __VA_ARGS__, )

/*
 * TFRecord files of tf.train.Example. x is a feature of floats (f32), integers (i32), or one image
 * file (u8 [height, width, channels]); y is an integer class, or floats.
 */
typedef struct tt_tfrecord_opts {
    size_t opts_size;
    const char *file; // files or patterns, in this order; may be .gz
    const char *x;    // name of the feature; required
    const char *y;    // name of the target; default: none
    tt_shape shape;   // of x; default: one axis of the values of the first record
    int64_t classes;  // number of classes of an integer y; default: from the records
    int size[2];      // images: height and width
    int channels;     // images: 3 or 1; default 3
    tt_images_fit fit;
    TT_DATA_OPTIONS;
} tt_tfrecord_opts;
TT_API tt_data *tt_tfrecord_with(tt_ctx *ctx, const tt_tfrecord_opts *opts);
#define tt_tfrecord(...) TT_CALL1(tt_tfrecord, __VA_ARGS__, )

/*
 * WebDataset: tar files in which the files of a record follow each other and have the same name up
 * to the first dot: 0001.jpg, 0001.cls. x is the image, y its class: a number, or a word.
 */
typedef struct tt_webdataset_opts {
    size_t opts_size;
    const char *file;  // files or patterns, in this order; may be .gz
    const char *x;     // endings of images; default "jpg, jpeg, png, webp"
    const char *y;     // ending of classes; default "cls"; "-": none
    int size[2];       // height and width of every record; required
    int channels;      // 3 or 1; default 3
    const char *words; // class names in order; default: numbers, or words in order of appearance
    tt_images_fit fit;
    bool scaled; // as in images
    TT_DATA_OPTIONS;
} tt_webdataset_opts;
TT_API tt_data *tt_webdataset_with(tt_ctx *ctx, const tt_webdataset_opts *opts);
#define tt_webdataset(...) TT_CALL1(tt_webdataset, __VA_ARGS__, )

/*
 * Arrays in .npy files or in one .npz archive; the first axis is the record. f4 and f8 become f32;
 * i4, i8 and u2 become i32. u1 stays u8 and b1 bool in inputs; both become i32 in targets.
 */
typedef struct tt_npy_opts {
    size_t opts_size;
    const char *x, *y; // .npy files; with file: names of arrays in it, default "x" and "y"
    const char *file;  // an .npz archive
    TT_DATA_OPTIONS;
} tt_npy_opts;
TT_API tt_data *tt_npy_with(tt_ctx *ctx, const tt_npy_opts *opts);
#define tt_npy(...) TT_CALL1(tt_npy, __VA_ARGS__, )

/*
 * Files of u16 or u32 tokens without a header. Record i is the context tokens that start at
 * i * stride; its target is the same range shifted by one token.
 */
typedef struct tt_tokens_opts {
    size_t opts_size;
    const char *file; // files or patterns: "a.bin, b?.bin"
    int bits;         // 16 or 32; default 16
    int context;      // tokens per record; required
    int stride;       // default: context
    int64_t vocab;    // vocabulary size: every token is below it; required
    double from, to;  // the part of the tokens to use, as fractions; default 0, 1
    TT_DATA_OPTIONS;
} tt_tokens_opts;
TT_API tt_data *tt_tokens_with(tt_ctx *ctx, const tt_tokens_opts *opts);
#define tt_tokens(...) TT_CALL1(tt_tokens, __VA_ARGS__, )

// Text files, split into bytes or characters, as records of context tokens.
typedef struct tt_text_opts {
    size_t opts_size;
    const char *file;  // files or patterns: "src/base/?.c, docs/?.md", in sorted order
    const char *level; // "char": the vocabulary is the sorted characters of the text; "byte": 256
    int context;       // required
    int stride;        // default: context
    double from, to;   // the part of the text to use, as fractions; default 0, 1
    TT_DATA_OPTIONS;
} tt_text_opts;
TT_API tt_data *tt_text_with(tt_ctx *ctx, const tt_text_opts *opts);
#define tt_text(...) TT_CALL1(tt_text, __VA_ARGS__, )

// An array of records in the program's memory, as a field of a data set.
typedef struct tt_array {
    size_t opts_size; // set by the macro
    const char *name; // of the field: matches an input or a target of the model; copied
    const void *data; // count records, one after another
    tt_dtype dtype;   // default f32
    tt_shape shape;   // shape of one record; default: a scalar
} tt_array;
#define tt_array(...) TT_OPTS(tt_array, __VA_ARGS__)

/*
 * Arrays in the program's memory; they must stay valid until the data set is freed. Either x and y,
 * or any number of named fields: inputs first, then targets.
 */
typedef struct tt_memory_opts {
    size_t opts_size;
    const void *x, *y;         // y may be NULL
    tt_dtype x_dtype, y_dtype; // default f32
    tt_shape x_shape, y_shape; // shape of one record; default: a scalar
    int64_t count;             // number of records; required
    TT_DATA_OPTIONS;
    const tt_array *fields[TT_MAX_FIELDS]; // {tt_array(.name = "a", .data = a), ...}
} tt_memory_opts;
TT_API tt_data *tt_memory_with(tt_ctx *ctx, const tt_memory_opts *opts);
#define tt_memory(...) TT_CALL1(tt_memory, __VA_ARGS__, )

// ---- splits ----------------------------------------------------------------------------------

typedef enum tt_split_take {
    TT_SPLIT_RANDOM = 0,
    TT_SPLIT_FIRST = 1,
    TT_SPLIT_LAST = 2, // the newest, where records are in order of time
} tt_split_take;

/*
 * Takes records out of d and returns them as a second data set, for validation or testing: every
 * record of d is in exactly one of the two afterwards. The choice depends on the records, these
 * options and the seed, never on devices or threads. The new data set has d's batch and workers,
 * is not shuffled and shares the source with d; either may be freed first. A second split takes
 * from what is left. Split before adding transforms, so that a normalise that is fitted sees the
 * training records only. NULL on failure; d is then as it was.
 */
typedef struct tt_data_split_opts {
    size_t opts_size;
    double fraction;      // of the records that the source has, above 0 and below 1; or
    int64_t rows;         // the number of records
    const char *stratify; // field or CSV column: each of its values keeps its proportion
    const char *group;    // field or CSV column: records with the same value stay together
    tt_split_take take;
    int64_t seed; // default: that of d
} tt_data_split_opts;
TT_API tt_data *tt_data_split_with(tt_data *d, const tt_data_split_opts *opts);
#define tt_data_split(...) TT_CALL1(tt_data_split, __VA_ARGS__, )

/*
 * Repeats records of d so that every class of an integer field has as many as the largest: which
 * ones depends on their order in the source alone. Call it after splits and before transforms.
 * field NULL: "y".
 */
TT_API tt_status tt_data_balance(tt_data *d, const char *field);

// ---- transforms: appended, applied in order to each record -----------------------------------

// normalise: where its numbers come from.
typedef enum tt_normalise {
    TT_NORMALISE_GIVEN = 0,   // from the options
    TT_NORMALISE_FIT = 1,     // mean and standard deviation of each channel of the data
    TT_NORMALISE_FIT_ALL = 3, // one mean and one standard deviation of all values
} tt_normalise;

// Options of all transforms; each reads the fields marked with its name.
typedef struct tt_transform_opts {
    size_t opts_size;
    const char *field;  // field to transform; default: the first
    double mean, scale; // normalise: (x - mean) / scale; scale default 1. u8 is converted to f32
    const char *means, *scales; // normalise per channel, "0.49, 0.48, 0.45"
    int64_t depth;              // one_hot: number of classes; integer fields
    int size[2];                // random_crop: height, width
    int pad;                    // random_crop: zero padding added before cropping
    int shift;                  // random_shift: largest shift in pixels; empty pixels are 0
    double smoothing;           // one_hot: label smoothing
    tt_normalise fit;    // normalise: reads all records of d once; the model keeps the numbers
    const tt_data *like; // with fit: the numbers that were fitted on this data set instead
    double value;        // fill_missing: what replaces nan, unless it is fitted
    double min_scale, max_scale; // random_resized_crop: part of the area; default 0.08 to 1
    double max_aspect; // random_resized_crop: width over height, from 1 / this on; default 4/3
    double degrees;    // random_rotate: largest angle
    double zoom;       // random_zoom: largest change of size, 0.2: to 0.8 or 1.2 times
    double brightness, contrast, saturation; // random_colour: largest change of the factor 1
    double hue;         // random_colour: largest turn, as a fraction of the circle, up to 0.5
    double sigma;       // random_blur: largest standard deviation, in pixels
    double alpha;       // random_mixup, random_cutmix: of the beta distribution; default 1
    double probability; // of random transforms; default 1, random_flip 1/2
    bool vertical;      // random_flip: upside down instead
} tt_transform_opts;
// kind: "normalise", "fill_missing", "one_hot", "channels_last" (of [channels, height, width]);
// of images "resize", "centre_crop"; random ones, of training data only: "random_crop",
// "random_resized_crop", "random_flip", "random_shift", "random_rotate", "random_zoom",
// "random_colour", "random_blur"; of records "random_mixup", "random_cutmix".
TT_API tt_status tt_transform_with(tt_data *d, const char *kind, const tt_transform_opts *opts);
#define tt_transform(...) TT_CALL2(tt_transform, __VA_ARGS__, )

// ---- iterating by hand -----------------------------------------------------------------------

// A batch: fields[i] is [rows, ...] of tt_data_fields()[i]; valid until the next call.
typedef struct tt_batch_data {
    int64_t rows;
    int64_t epoch, first; // records [first, first + rows) of the epoch's order
    const void *fields[TT_MAX_FIELDS];
} tt_batch_data;

/*
 * Starts reading at a cursor: epoch * count + number of records already used in that epoch. batch 0
 * means the data set's own batch size. Starts the background threads; tt_data_stop() ends them.
 */
TT_API tt_status tt_data_start(tt_data *d, int64_t batch, int64_t cursor);
// Continues into the next epoch.
TT_API tt_status tt_data_next_sized(tt_data *d, tt_batch_data *out, size_t size);
#define tt_data_next(d, out) tt_data_next_sized((d), (out), sizeof(tt_batch_data))
TT_API void tt_data_stop(tt_data *d);
// The index of the record at position i of an epoch.
TT_API int64_t tt_data_order(const tt_data *d, int64_t epoch, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
