/*
 * data.h - where records come from, and the order they are seen in.
 *
 * A data set is a source (so many records of some fields, "read record i"), transforms, and an
 * order: a permutation keyed by seed and epoch, so that the whole state of the order is one number.
 * Every record is seen exactly once per epoch; the last batch may be short. Fields are matched with
 * a model's inputs and targets by name, or else by position: inputs first.
 */
#ifndef TUTTI_DATA_H
#define TUTTI_DATA_H

#include <tutti/extend.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_data tt_data;

#define TT_MAX_FIELDS 8
typedef struct tt_field {
    char name[32]; // "x", "y"
    tt_dtype dtype;
    tt_shape shape;  // of one record
    int64_t classes; // integers: all are below it; 0: not known
} tt_field;

// ---- a source --------------------------------------------------------------------------------

/*
 * An open source. read() writes record i's fields one after another to out[0..n_fields) and is
 * called by several threads at once. A failure names file and record.
 */
typedef struct tt_source {
    int64_t count;
    int n_fields;
    tt_field fields[TT_MAX_FIELDS];
    void *self;
    tt_status (*read)(tt_ctx *ctx, void *self, int64_t i, void *const *out);
    void (*close)(tt_ctx *ctx, void *self); // NULL: nothing to release
    /*
     * Optional: which of lanes lanes record i belongs to. Each lane must then get as many records
     * as its rows of every batch ask for; the error says how many that is.
     */
    int (*lane)(void *self, int64_t i, int lanes);
} tt_source;

// A kind of source: how it is called in job files, its options, how it is opened.
typedef struct tt_source_def {
    const char *name;
    const char *help;
    const tt_option *options; // rows of the options struct below, its common part apart
    size_t options_size;
    const char *main; // the option that a bare value sets: "csv: prices.csv"; NULL: none
    tt_status (*open)(tt_ctx *ctx, const void *options, tt_source *out);
} tt_source_def;

// ---- data sets -------------------------------------------------------------------------------

/*
 * Common to all: how records become batches. The first four can be left to tt_fit(), which hands
 * its own batch on.
 */
#define TT_DATA_OPTIONS                                                             \
    int batch;       /* rows of a batch; default 32 */                              \
    bool no_shuffle; /* default false: the order is a new permutation each epoch */ \
    int64_t seed;    /* of order and transforms; default: the context's */          \
    int workers;     /* threads that read ahead; default 1, -1 none */              \
    int prefetch     /* batches read ahead; default: what 1 MiB holds, 4 to 64 */

typedef struct tt_data_opts {
    size_t opts_size;
    TT_DATA_OPTIONS;
} tt_data_opts;

/*
 * A data set over a source of the caller's; the source is closed with it, and also when this fails.
 * Owned by ctx. NULL on failure, as from every function below that returns one.
 */
typedef tt_data_opts tt_data_new_opts;
TT_API tt_data *tt_data_new_with(tt_ctx *ctx, const tt_source *source, const tt_data_opts *opts);
#define tt_data_new(...) TT_CALL2(tt_data_new, __VA_ARGS__, )
TT_API void tt_data_free(tt_data *d);

// A data set of a kind by name, its options given as a struct of def->options_size bytes, with
// defaults filled in.
TT_API tt_data *tt_data_open(tt_ctx *ctx, const tt_source_def *def, const void *options,
                             const tt_data_opts *opts);
TT_API const tt_source_def *tt_source_find(const tt_ctx *ctx, const char *name);
TT_API const tt_source_def *tt_source_at(const tt_ctx *ctx, int i); // NULL past the end
// Makes a user's kind known to job files run with this context.
TT_API tt_status tt_source_register(tt_ctx *ctx, const tt_source_def *def);

TT_API int64_t tt_data_count(const tt_data *d);                           // records
TT_API int tt_data_fields(const tt_data *d, tt_field out[TT_MAX_FIELDS]); // after transforms

// Procedural digits: [28, 28, 1] f32 in [0, 1], and a class. Needs no file.
typedef struct tt_digits_opts {
    size_t opts_size;
    int64_t count; // default 20000
    int64_t first; // number of the first record, so that sets do not overlap; default 0
    int64_t set;   // seed of the strokes; default 1
    double noise;  // deviation of the pixels' noise; default 0.15, below zero none
    TT_DATA_OPTIONS;
} tt_digits_opts;
TT_API tt_data *tt_digits_with(tt_ctx *ctx, const tt_digits_opts *opts);
#define tt_digits(...) TT_CALL1(tt_digits, __VA_ARGS__, )

// MNIST's four files (IDX, .gz or not) in a folder: [28, 28, 1] f32 in [0, 1], and a class.
typedef struct tt_mnist_opts {
    size_t opts_size;
    const char *split; // "train" or "test"; default "train"
    const char *dir;   // default: TUTTI_DATA_DIR/mnist, else "data/mnist"
    TT_DATA_OPTIONS;
} tt_mnist_opts;
TT_API tt_data *tt_mnist_with(tt_ctx *ctx, const tt_mnist_opts *opts);
#define tt_mnist(...) TT_CALL1(tt_mnist, __VA_ARGS__, )

/*
 * Any IDX files: one of records, one of labels (may be missing). u8 becomes f32 in [0, 1], other
 * types f32; labels, one integer a record, i32.
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

// Columns of a CSV file with a header line: x is all columns but those of y. f32.
typedef struct tt_csv_opts {
    size_t opts_size;
    const char *file;
    const char *y;     // target columns, "price" or "a, b"; default: the last; "-": none
    const char *x;     // input columns; default: all others
    bool classes;      // y is a class, i32: a number from 0 on, or a word
    const char *words; // classes in order, "cat, dog"; default: as they first appear in the file
    bool no_header;    // columns are called "c0", "c1", ...
    const char *comma; // the separator; default ","
    int64_t first;     // records before it are left out
    int64_t count;     // so many from there; default: all
    TT_DATA_OPTIONS;
} tt_csv_opts;
TT_API tt_data *tt_csv_with(tt_ctx *ctx, const tt_csv_opts *opts);
#define tt_csv(...) TT_CALL1(tt_csv, __VA_ARGS__, )

/*
 * Arrays in .npy files, or in one .npz file; the first axis counts records. f4 and f8 become f32,
 * i4, i8 and u2 i32. As an input u1 is u8 and b1 bool; as a target both are i32.
 */
typedef struct tt_npy_opts {
    size_t opts_size;
    const char *x, *y; // x.npy and y.npy; with file their names in it, default "x", "y"
    const char *file;  // an .npz
    TT_DATA_OPTIONS;
} tt_npy_opts;
TT_API tt_data *tt_npy_with(tt_ctx *ctx, const tt_npy_opts *opts);
#define tt_npy(...) TT_CALL1(tt_npy, __VA_ARGS__, )

/*
 * Flat files of u16 or u32 tokens. Record i is context tokens from i * stride on, its target the
 * same one token later.
 */
typedef struct tt_tokens_opts {
    size_t opts_size;
    const char *file; // or several: "a.bin, b.bin", globs too
    int bits;         // 16 or 32; default 16
    int context;      // tokens of a record; required
    int stride;       // default: context
    int64_t vocab;    // all tokens must be below it; required
    double from, to;  // the part of the tokens that is used; default 0, 1
    TT_DATA_OPTIONS;
} tt_tokens_opts;
TT_API tt_data *tt_tokens_with(tt_ctx *ctx, const tt_tokens_opts *opts);
#define tt_tokens(...) TT_CALL1(tt_tokens, __VA_ARGS__, )

// Text, byte by byte or character by character, as records of context symbols.
typedef struct tt_text_opts {
    size_t opts_size;
    const char *file;  // files or globs: "src/base/?.c, docs/?.md", in sorted order
    const char *level; // "char": the characters that occur, sorted, are the vocabulary; "byte": 256
    int context;       // required
    int stride;        // default: context
    double from, to;   // the part of the text that is used; default 0, 1
    TT_DATA_OPTIONS;
} tt_text_opts;
TT_API tt_data *tt_text_with(tt_ctx *ctx, const tt_text_opts *opts);
#define tt_text(...) TT_CALL1(tt_text, __VA_ARGS__, )

// Arrays of the program, borrowed until the data set is freed.
typedef struct tt_memory_opts {
    size_t opts_size;
    const void *x, *y;         // y may be NULL
    tt_dtype x_dtype, y_dtype; // default f32
    tt_shape x_shape, y_shape; // of one record; a scalar by default
    int64_t count;             // records; required
    TT_DATA_OPTIONS;
} tt_memory_opts;
TT_API tt_data *tt_memory_with(tt_ctx *ctx, const tt_memory_opts *opts);
#define tt_memory(...) TT_CALL1(tt_memory, __VA_ARGS__, )

// ---- transforms: appended, applied in order to each record -----------------------------------

// One struct for all kinds: each reads the fields named after it.
typedef struct tt_transform_opts {
    size_t opts_size;
    const char *field;  // which field; default: the first
    double mean, scale; // normalise: (x - mean) / scale; scale default 1. u8 becomes f32 first
    const char *means, *scales; // normalise per channel, "0.49, 0.48, 0.45"
    int64_t depth;              // one_hot: classes; the field must be integer
    int size[2];                // random_crop: height, width
    int pad;                    // random_crop: zeros around it first
    int shift;                  // random_shift: most pixels in each direction, zeros come in
    double smoothing;           // one_hot: label smoothing
} tt_transform_opts;
// kind: "normalise", "one_hot", "random_crop", "random_flip" (left to right), "random_shift".
TT_API tt_status tt_transform_with(tt_data *d, const char *kind, const tt_transform_opts *opts);
#define tt_transform(...) TT_CALL2(tt_transform, __VA_ARGS__, )

// ---- iterating by hand -----------------------------------------------------------------------

// A batch: fields[i] is [rows, ...] of tt_data_fields()[i]; borrowed until the next call.
typedef struct tt_batch_data {
    int64_t rows;
    int64_t epoch, first; // records [first, first + rows) of the epoch's order
    const void *fields[TT_MAX_FIELDS];
} tt_batch_data;

/*
 * Begins at a cursor: epoch * count + records already seen in it. batch 0: the data set's own.
 * Threads that read ahead are started; tt_data_stop() ends them.
 */
TT_API tt_status tt_data_start(tt_data *d, int64_t batch, int64_t cursor);
TT_API tt_status tt_data_next(tt_data *d, tt_batch_data *out); // goes on into the next epoch
TT_API void tt_data_stop(tt_data *d);
// The record that stands at place i of an epoch.
TT_API int64_t tt_data_order(const tt_data *d, int64_t epoch, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
