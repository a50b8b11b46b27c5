/*
 * base.h - status codes, the context, keyword arguments, plain values.
 *
 * A program opens a context, builds and runs with it, and closes it. The context is sticky: the
 * first error wins, later calls on it return that error and do nothing, so one check at
 * tt_close() is enough. A context belongs to one thread at a time.
 */
#ifndef TUTTI_BASE_H
#define TUTTI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TT_API          __attribute__((visibility("default")))
#define TT_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TT_API
#define TT_PRINTF(f, a)
#endif

#define TT_VERSION    "0.1.0"
#define TT_ARITHMETIC 2 // raised whenever the bits of any job change; stored with hashes

/*
 * Keyword arguments: struct tt_x_opts, function tt_x_with(), macro tt_x(). Unset fields are zero,
 * and zero means default. TT_CALLn passes n positional arguments before the keywords.
 *
 * The first member of such a struct is its size as the caller knows it, which the macros set, so
 * that structs can grow at the end: what an older caller's struct does not have is default. A
 * function that fills a struct is likewise called tt_x_sized() and gets the size of the struct; the
 * macro tt_x() passes it, and no more than that is written.
 *
 * A struct of options within options is given by a pointer, and has its size first too: the macro
 * of its name makes one, .spread = tt_spread(.replicas = 2), and NULL means that all of it is
 * default. Several are an array of such pointers, which ends with the first NULL. Only plain values
 * stand in options themselves (tt_shape, tt_axes, tt_ints, tt_init, tt_batch): they never grow.
 *
 * TT_ZERO in a field of type double is the number zero where 0 would mean another default:
 * tt_layer_batch_norm(model, .momentum = TT_ZERO). It is the negative zero.
 */
#define TT_ZERO                       (-0.0)
#define TT_OPTS(type, ...)            (&(type){.opts_size = sizeof(type), __VA_ARGS__})
#define TT_CALL0(fn, ...)             fn##_with(TT_OPTS(fn##_opts, __VA_ARGS__))
#define TT_CALL1(fn, a, ...)          fn##_with((a), TT_OPTS(fn##_opts, __VA_ARGS__))
#define TT_CALL2(fn, a, b, ...)       fn##_with((a), (b), TT_OPTS(fn##_opts, __VA_ARGS__))
#define TT_CALL3(fn, a, b, c, ...)    fn##_with((a), (b), (c), TT_OPTS(fn##_opts, __VA_ARGS__))
#define TT_CALL4(fn, a, b, c, d, ...) fn##_with((a), (b), (c), (d), TT_OPTS(fn##_opts, __VA_ARGS__))

/*
 * X(code, value, text). After EINVAL to EIO objects are unchanged. After EDEVICE the context cannot
 * be used any more; after EPEER and ETIMEOUT the group of processes cannot.
 */
#define TT_STATUS_LIST(X)                                                   \
    X(TT_OK, 0, "no error")                                                 \
    X(TT_EINVAL, 1, "invalid argument")                                     \
    X(TT_ESHAPE, 2, "shapes do not fit")                                    \
    X(TT_EDTYPE, 3, "element types do not fit")                             \
    X(TT_ENOMEM, 4, "out of memory")                                        \
    X(TT_EIO, 5, "input or output failed")                                  \
    X(TT_EDEVICE, 6, "a device failed; the context is lost")                \
    X(TT_EPEER, 7, "a peer failed; restart from a checkpoint")              \
    X(TT_ETIMEOUT, 8, "a deadline passed; restart from a checkpoint")       \
    X(TT_EPARSE, 9, "text could not be read")                               \
    X(TT_EUNSUPPORTED, 10, "not available in this build or on this device") \
    X(TT_ELIMIT, 11, "a memory limit is too small")                         \
    X(TT_EASSERT, 12, "an assert node failed")                              \
    X(TT_ESTOP, 13, "stopped on request")                                   \
    X(TT_ENAN, 14, "a loss is not finite")

typedef enum tt_status {
#define TT_STATUS_ENUM(code, value, text) code = value,
    TT_STATUS_LIST(TT_STATUS_ENUM)
#undef TT_STATUS_ENUM
} tt_status;

// The name ("TT_ESHAPE") and the text of a status. Never NULL; static strings.
TT_API const char *tt_status_name(tt_status st);
TT_API const char *tt_status_text(tt_status st);

// Element types. Values are part of file formats and are never renumbered.
typedef enum tt_dtype {
    TT_F32 = 0,
    TT_F64 = 1,
    TT_BF16 = 2,
    TT_F16 = 3,
    TT_I32 = 4,
    TT_I64 = 5,
    TT_U8 = 6,
    TT_BOOL = 7,
} tt_dtype;
#define TT_N_DTYPES 8

TT_API const char *tt_dtype_name(tt_dtype t); // "f32"; "?" if unknown
TT_API size_t tt_dtype_bytes(tt_dtype t);     // 4; 0 if unknown

/*
 * A shape. A negative dimension is open: -k means k entries per row of the batch; its size is known
 * when the graph runs. TT_BATCH is one entry per row. At most one dimension may be open.
 */
#define TT_MAX_RANK 8
#define TT_BATCH    (-1)
typedef struct tt_shape {
    int rank;
    int64_t dim[TT_MAX_RANK];
} tt_shape;
#define TT_SHAPE(...) \
    ((tt_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})
#define TT_SCALAR ((tt_shape){0, {0}})

/*
 * An axis in an option where 0 means "not given": -1 is the last axis, TT_FIRST the first. A list
 * of axes is TT_AXES(0, 2); an empty list means all axes.
 */
#define TT_FIRST (-TT_MAX_RANK - 1)
typedef struct tt_axes {
    int n;
    int axis[TT_MAX_RANK];
} tt_axes;
#define TT_AXES(...) ((tt_axes){sizeof((int[]){__VA_ARGS__}) / sizeof(int), {__VA_ARGS__}})

// A short list of numbers: {3, {256, 128, 10}}.
typedef struct tt_ints {
    int n;
    int64_t v[TT_MAX_RANK * 2];
} tt_ints;

typedef struct tt_ctx tt_ctx;
typedef struct tt_store tt_store;

// XXH3-128.
typedef struct tt_hash {
    uint64_t low, high;
} tt_hash;

typedef enum tt_level {
    TT_LOG_DEFAULT = 0, // same as TT_WARN
    TT_ERROR = 1,
    TT_WARN = 2,
    TT_INFO = 3,
    TT_DEBUG = 4,
    TT_TRACE = 5,
} tt_level;

// One value of an event: a string if text is not NULL, else a number.
typedef struct tt_pair {
    const char *name;
    double number;
    const char *text;
} tt_pair;

/*
 * An event that a context reports to the program. The callback runs on the thread where the event
 * happened, one call at a time; strings are valid during the call only. kind is "log", "print",
 * "run", "plan", or one of training: "begin", "step", "epoch", "validation", "checkpoint", "nan",
 * "end". Training events carry their values in pairs.
 */
typedef struct tt_event {
    const char *kind;
    tt_level level;   // of a log line
    const char *text; // log line, printed value, or JSON object of the event
    const tt_pair *pairs;
    int n_pairs;
} tt_event;
typedef void (*tt_event_fn)(void *user, const tt_event *ev);

typedef enum tt_soft {
    TT_SOFT_WARN = 0, // fall back to another device, log each fallback once
    TT_SOFT_ON = 1,   // fall back silently
    TT_SOFT_OFF = 2,  // a pin that cannot be satisfied is an error
} tt_soft;

typedef enum tt_reduce {
    TT_REDUCE_EXACT = 0, // in a fixed order (the lane tree): the same bits on any devices
    TT_REDUCE_FAST = 1,  // in any order: the result depends on the devices
} tt_reduce;

typedef enum tt_pipe {
    TT_PIPE_1F1B = 0,        // at most as many micro-batches in flight as stages that follow
    TT_PIPE_GPIPE = 1,       // all forward, then all backward
    TT_PIPE_INTERLEAVED = 2, // each device has several stages
} tt_pipe;

typedef enum tt_update_where {
    TT_UPDATE_AUTO = 0,  // the cheaper of the two, chosen per variable
    TT_UPDATE_EACH = 1,  // every replica updates the whole variable
    TT_UPDATE_SHARD = 2, // every replica updates a shard; shards are then gathered
} tt_update_where;

// Options of strategies; zero means default. Only reduce and wire can change bits.
typedef struct tt_spread {
    size_t opts_size; // set by the macro
    int replicas;     // number of copies of the model; default: as many as the devices allow
    int stages;       // pipeline: devices per replica; default devices / replicas
    tt_pipe schedule; // pipeline
    int chunks;       // interleaved: stages per device; default 2
    int micro;        // pipeline: micro-batches per replica; default: one per lane
    tt_reduce reduce; //
    tt_dtype wire;    // type in which gradients are sent: f32, bf16, f16; not f32: reduce fast
    size_t bucket;    // bytes of gradients per all-reduce; default: from the model's size
    tt_update_where update;
    const char *share; // lanes per replica: "equal" (default), "auto" (by speed), "2,1"
} tt_spread;
#define tt_spread(...) TT_OPTS(tt_spread, __VA_ARGS__)

typedef struct tt_open_opts {
    size_t opts_size;
    const char *devices;     // "cpu:0", "cpu:0*2", "cpu:0*2@512MiB", "all"; default "cpu:0"
    const char *strategy;    // "single", "mirrored", "central", "pipeline"; default "single"
    int lanes;               // fixed slices of the batch; set the order of sums; default 8
    uint64_t seed;           // seed of random numbers and initial weights; default 0
    tt_soft soft;            // soft placement
    int threads;             // CPU threads, shared by all devices; default: all cores allowed
    int64_t deadline_ms;     // longest wait without any progress, in ms; default 60000
    tt_level level;          // lowest level logged; TT_ERROR also hides the lines per epoch
    tt_event_fn on_event;    // default: log lines to stderr
    void *user;              // passed to on_event
    const char *isa;         // "plain", "fma", "avx2", "avx512"; default TUTTI_ISA, else the best
    tt_store *store;         // use these variables; default: a new store
    const tt_spread *spread; // options of the strategy
    const struct tt_tasks *tasks; // the job's processes (tasks.h); default: only this one
} tt_open_opts;

/*
 * Opens a context; close it with tt_close(). Returns NULL only if there is no memory for the
 * context itself. After a bad option the context is returned and holds the error.
 */
TT_API tt_ctx *tt_open_with(const tt_open_opts *opts);
#define tt_open(...) TT_CALL0(tt_open, __VA_ARGS__)

/*
 * Joins all threads, frees everything that the context owns and returns its first error.
 * tt_close(NULL) returns TT_EINVAL.
 * A context belongs to the process that opened it: in a child of fork() every call on it, this one
 * included, returns TT_EINVAL and does nothing. The child opens a context of its own.
 */
TT_API tt_status tt_close(tt_ctx *ctx);

typedef struct tt_error {
    tt_status status;
    const char *message; // borrowed until the context is closed or cleared; "" when TT_OK
    const char *file;    // source file of the library
    int line;
} tt_error;

TT_API tt_error tt_last_error(const tt_ctx *ctx);
TT_API tt_status tt_status_of(const tt_ctx *ctx); // the sticky status; TT_EINVAL for NULL
TT_API void tt_clear_error(tt_ctx *ctx);

// Makes a running tt_run() stop with TT_ESTOP. May be called from any thread or signal handler.
TT_API void tt_request_stop(tt_ctx *ctx);

// Host allocations made through the context so far, and bytes now in use.
typedef struct tt_alloc_stats {
    int64_t calls;
    int64_t blocks;
    size_t bytes;
} tt_alloc_stats;
TT_API tt_alloc_stats tt_alloc_stats_get(const tt_ctx *ctx);

// Version, features and libraries of this build, one "key: value" per line; a static string.
TT_API const char *tt_version_text(void);

#ifdef __cplusplus
}
#endif
#endif
