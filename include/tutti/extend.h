/*
 * extend.h - for writing your own ops and sources: the op record, the node, the launch that a
 * kernel gets, and types of sources that job files can name. tutti.h does not include it.
 *
 * An op is a const record: its name, its attributes, its shape rule, how it splits over lanes, its
 * gradient as graph nodes, and its kernels per backend. No code in the library switches over ops:
 * everything it needs to know is a field of this record.
 */
#ifndef TUTTI_EXTEND_H
#define TUTTI_EXTEND_H

#include <tutti/data.h>
#include <tutti/device.h>
#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- options: one row = name, type, default, help, bounds ------------------------------------

typedef enum tt_opt_type {
    TT_OPT_END = 0,
    TT_OPT_BOOL,   // bool
    TT_OPT_INT,    // int64_t
    TT_OPT_FLOAT,  // double
    TT_OPT_STRING, // char[TT_OPT_STRING_MAX]
    TT_OPT_ENUM,   // int; names lists the words, NULL at the end
    TT_OPT_INTS,   // tt_ints
    TT_OPT_SIZE,   // size_t; "512MiB"
    TT_OPT_DTYPE,  // tt_dtype
    TT_OPT_SHAPE,  // tt_shape
    TT_OPT_INT32,  // int
    TT_OPT_TEXT,   // const char *, any length; borrowed from the caller. Lists: "a, b"
    TT_OPT_PAIR,   // int[2]; "3" is [3, 3]
} tt_opt_type;

#define TT_OPT_STRING_MAX 128
typedef struct tt_option {
    const char *name;
    tt_opt_type type;
    const char *value; // default, as text; NULL: the option is required
    const char *help;
    size_t offset;            // into the struct the rows describe
    double min, max;          // bounds of a number; both 0: none
    const char *const *names; // words of an enum; of a text: keys allowed in the form {word: value}
} tt_option;
#define TT_OPTION_END                               \
    {                                               \
        NULL, TT_OPT_END, NULL, NULL, 0, 0, 0, NULL \
    }

// ---- nodes and tensors -----------------------------------------------------------------------

typedef struct tt_op tt_op;

// How a tensor lies along one axis of the mesh of devices: "data", for example, which has replicas.
typedef enum tt_layout_kind {
    TT_LAYOUT_REPLICATED = 0, // all coordinates have the same
    TT_LAYOUT_SPLIT = 1,      // along dim; on data by lanes
    TT_LAYOUT_PARTIAL = 2,    // each coordinate has a partial sum; they are still to be added
    TT_LAYOUT_ONE = 3,        // one coordinate has it
    TT_LAYOUT_MOMENTS = 4,    // as PARTIAL, but statistics that are still to be merged
} tt_layout_kind;
typedef struct tt_layout {
    tt_layout_kind kind;
    int dim; // -1: not split
} tt_layout;

struct tt_tensor {
    tt_graph *graph;
    tt_node *node;
    int index; // which output of node
    tt_dtype dtype;
    tt_shape shape;
    tt_layout layout; // along data, where the batch is split over lanes: from the op's split rule
};

struct tt_node {
    tt_graph *graph;
    const tt_op *op;
    const char *name; // unique path
    int id;           // order of creation; inputs have lower ids
    int n_in, n_out;
    tt_tensor **in;
    tt_tensor *out;        // output 0
    tt_tensor **outs;      // all outputs
    const void *attr;      // the op's attribute struct; NULL if it has none
    const void *data;      // constants: the elements
    size_t data_bytes;     //
    uint64_t key;          // hash of the name path; keys the random numbers
    bool mixes_rows;       // cannot be split over lanes
    const tt_node *origin; // if made by tt_grad(): the node whose gradient this is part of
    int colocation;        // group; -1: none
    bool has_pin;
    tt_device_name pin;
    int n_after;
    tt_node **after; // control edges: nodes that run first
};

/*
 * Adds a node: checks the inputs and attributes, infers shapes, applies the split rule, and names
 * the node. attr is copied: the fields that op->attrs describes; all other bytes of the copy are
 * zero. Without rows all op->attr_size bytes are copied, and their padding must be zero, because
 * plans compare the bytes. If name is NULL, it is "<op>_<n>". Returns NULL on failure, and if any
 * input is NULL (then an error is already recorded).
 */
TT_API tt_node *tt_node_new(tt_graph *g, const tt_op *op, int n_in, tt_tensor *const *in,
                            const void *attr, const char *name);
// The same, but returns output 0, as most builders do.
TT_API tt_tensor *tt_node_out(tt_graph *g, const tt_op *op, int n_in, tt_tensor *const *in,
                              const void *attr);

// Records an error of the op that is being built or run; returns the code.
TT_API tt_status tt_fail(tt_ctx *ctx, tt_status st, const char *file, int line, const char *fmt,
                         ...) TT_PRINTF(5, 6);
#define TT_FAIL(ctx, st, ...) tt_fail((ctx), (st), __FILE__, __LINE__, __VA_ARGS__)
#define TT_TRY(call)                      \
    do {                                  \
        tt_status tt_try_status = (call); \
        if (tt_try_status != TT_OK)       \
            return tt_try_status;         \
    } while (0)

// ---- what a kernel gets ----------------------------------------------------------------------

// An input or output with all dimensions known. Elements are dense and row-major.
typedef struct tt_arg {
    void *data;
    tt_dtype dtype;
    tt_shape shape;
    int64_t count; // elements
    int64_t rows;  // product of all dimensions but the last; 1 for a scalar
    int64_t cols;  // the last dimension; 1 for a scalar
    int open;      // axis that is split over lanes; -1: none
    int64_t per;   // entries on that axis per row of the batch
} tt_arg;

/*
 * The lanes of a call and how their sums are combined. A kernel that sums over rows computes one
 * partial sum per lane, in order, pushes it on a stack, and then adds the two topmost entries
 * merges[i] times (lower lane + higher lane). The entries left on the stack, bottom first, are the
 * n_parts results.
 */
#define TT_MAX_LANES 1024
typedef struct tt_lanes {
    int total; // lanes of the job
    int first; // first lane here
    int n;     // lanes here
    int n_parts;
    int depth;             // largest size of the stack
    int64_t global_rows;   // rows of the whole batch
    int64_t first_row;     // global number of row 0 of the call
    const int64_t *bound;  // n + 1 row bounds within the call
    const uint8_t *merges; // n counts
} tt_lanes;

// The values that change from step to step, in device memory. Launches hold none of them.
typedef struct tt_step {
    int64_t step;
    uint64_t seed;
    float lr;
    float grad_scale;
    int64_t unapplied; // of the steps before this one, those that no update was applied of
} tt_step;

/*
 * One call of a kernel. The threads of the pool share the work: this call computes the units
 * [begin, end) of the phase; phases are separated by a barrier. scratch is shared by all threads,
 * local belongs to this thread.
 *
 * On TT_CUDA the function runs once on the host and enqueues the work of all units and phases on
 * stream. The data of in and out, scratch and step are device addresses; everything else is host
 * memory. The stream may be in capture mode, so the function must not wait, allocate or copy from
 * the host; the captured work is repeated with the same arguments in every step.
 */
typedef struct tt_launch {
    tt_ctx *ctx;
    const tt_node *node; // for names in messages
    const void *attr;
    const tt_arg *in;
    const tt_arg *out;
    int n_in, n_out;
    const tt_step *step;
    const tt_lanes *lanes;
    const void *tune; // what prepare() left in tt_prep.tune
    char *scratch;
    char *local;
    int64_t begin, end;
    int phase;
    int thread, n_threads;
    void *device; // TT_CUDA: the module's state of the device (cuda/cuda.h)
    void *stream; // TT_CUDA: where work is enqueued (cudaStream_t)
} tt_launch;

typedef tt_status (*tt_kernel_fn)(const tt_launch *l);

/*
 * Called when the plan is made, to decide how a kernel will run. Shapes are known, data is not. The
 * function fills the fields after "out:"; its decisions must not change any bit of the result.
 */
#define TT_MAX_PHASES 4
#define TT_TUNE_BYTES 256
typedef struct tt_prep {
    tt_ctx *ctx;
    const tt_node *node;
    const void *attr;
    const tt_arg *in;
    const tt_arg *out_args;
    int n_in, n_out;
    const tt_lanes *lanes;
    int n_threads; // of the device
    int isa;       // TT_ISA_...: tile sizes may depend on it
    void *device;  // TT_CUDA: as in tt_launch
    // out:
    int n_phases;                 // default 1
    int64_t units[TT_MAX_PHASES]; // number of independent units of each phase
    int64_t grain[TT_MAX_PHASES]; // smallest number of units per call; default 1
    double ns;                    // estimated time on one thread; short kernels use one thread
    size_t scratch_bytes;
    size_t local_bytes;
    char tune[TT_TUNE_BYTES];
} tt_prep;

// Backends and instruction sets. f64 counts as a set: the same sources compiled for double.
typedef enum tt_backend_id {
    TT_CPU = 0,
    TT_CUDA = 1,
} tt_backend_id;
#define TT_N_BACKENDS 2
typedef enum tt_isa {
    TT_ISA_PLAIN = 0, // the reference: it defines the bits
    TT_ISA_FMA = 1,   // the plain source, compiled with FMA instructions
    TT_ISA_AVX2 = 2,
    TT_ISA_AVX512 = 3,
    TT_ISA_F64 = 4,
} tt_isa;
#define TT_N_ISA 5

typedef struct tt_kernel {
    tt_status (*prepare)(
        tt_prep *p);           // NULL: one unit per row of output 0 (elementwise ops: element)
    tt_kernel_fn fn[TT_N_ISA]; // all NULL: no kernel on this backend. TT_CUDA has fn[0] alone
    unsigned types;            // TT_CUDA: supported 1 << dtype of output 0; 0: the op's, no f64
} tt_kernel;

// ---- the op record ---------------------------------------------------------------------------

// The shape rule is called when a node is built. An input may have one open dimension.
typedef struct tt_infer {
    tt_ctx *ctx;
    const char *name; // op name, for messages
    int n_in;
    tt_tensor *const *in;
    const void *attr;
    // out:
    int n_out; // preset to the record's
    tt_shape shape[64];
    tt_dtype dtype[64];
} tt_infer;

/*
 * The split rule says how outputs are split if inputs are: axis[i] is the axis of input i that is
 * split, -1: it is not. It is asked for each axis of the mesh of devices. On data the parts are
 * lanes, and the axes are the open ones; on others any axis may be split, into equal parts. The
 * answer follows from axis[], the attributes and the shapes alone. An op without a split rule
 * cannot be split: it mixes rows.
 */
typedef enum tt_split_kind {
    TT_SPLIT_WHOLE = 0,    // the same with every part
    TT_SPLIT_AXIS = 1,     // split along axis
    TT_SPLIT_LANE_SUM = 2, // a partial sum per part; of lanes, added along the lane tree
    TT_SPLIT_MIXES = 3,    // cannot be split
    /*
     * Outputs 0 to 2 are mean, variance and unbiased variance over rows, each [c]. In a run of a
     * part of the lanes they are the mean, M2 and M2 of that part; parts are merged along the lane
     * tree by Chan's formula.
     */
    TT_SPLIT_LANE_MOMENTS = 4,
} tt_split_kind;
typedef struct tt_split {
    tt_split_kind kind;
    int axis;
} tt_split;
typedef struct tt_split_query {
    const tt_node *node; // shapes of in and outs are known
    const int *axis;     // per input
    tt_split *out;       // to be filled, per output
} tt_split_query;

enum tt_op_flags {
    TT_OP_VIEW = 1 << 0,      // output 0 shares the memory of input 0
    TT_OP_RANDOM = 1 << 1,    // never merged or folded
    TT_OP_UPDATE = 1 << 2,    // writes the variable that is input 0; output 0 is its new value
    TT_OP_EFFECT = 1 << 3,    // never merged or folded: print, assert
    TT_OP_POINTWISE = 1 << 4, // out[i] depends on in[...][i] only; same shape or one element. Units
                              // are elements; no tune, scratch or local. Plans fuse such ops
    TT_OP_BITS = 1 << 5,      // moves elements of any type without interpreting them
    TT_OP_SOURCE = 1 << 6,    // feed, constant, variable: has no kernel
    TT_OP_ROW_FREE = 1 << 7,  // a row's bits do not depend on the other rows of the call
    TT_OP_NO_GRAD = 1 << 9,   // no gradient flows through it: stop_gradient, argmax, comparisons
    TT_OP_ANY_TYPE = 1 << 8,  // kernels handle every dtype themselves; bf16 and f16 are not widened
    TT_OP_FLAT = 1 << 10,     // updates: units are elements; element i depends on element i of the
                              // inputs and on scalars, so a range can be updated separately
    TT_OP_RESIDUAL =
        1 << 11,           // update: error feedback. Input 0 has one row per replica: the rounding
                           // error of its partial sum (input 1) when it was sent
    TT_OP_PARTS = 1 << 12, // a replica may run it on the parts of its inputs that it holds. Readers
        // of output 0 get the results of all replicas, one after another: for one
        // input a number per 65,536 elements, for several inputs one number
};

struct tt_op {
    const char *name;
    const char *help; // one line
    int inputs;       // number of inputs; with max_inputs: the smallest number
    int max_inputs;   // 0: exactly inputs; -1: any number
    int outputs;      // 0 means 1
    unsigned flags;
    unsigned types;    // 1 << dtype of output 0 that have kernels; 0: all floats
    unsigned in_place; // bit i: output 0 may reuse the memory of input i
    const tt_option *attrs;
    size_t attr_size;
    tt_status (*infer)(tt_infer *q);
    tt_status (*split)(const tt_split_query *q);
    /*
     * Adds the nodes of the gradient. dy[i] is NULL if output i has no gradient; dx[i] stays NULL
     * if input i gets none. Errors are recorded in the context.
     */
    void (*grad)(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx);
    tt_kernel kernel[TT_N_BACKENDS];
    unsigned writes;     // TT_OP_UPDATE: bit i: input i, if a variable, is written in place
    unsigned shape_only; // bit i: only the shape of input i is used, not its elements
};

#define TT_TYPES_FLOAT (1u << TT_F32 | 1u << TT_F64 | 1u << TT_BF16 | 1u << TT_F16)
#define TT_TYPES_INT   (1u << TT_I32 | 1u << TT_I64 | 1u << TT_U8 | 1u << TT_BOOL)
#define TT_TYPES_ALL   (TT_TYPES_FLOAT | TT_TYPES_INT)

// Registers a user's op with the context, so that graph texts can name it.
TT_API tt_status tt_op_register(tt_ctx *ctx, const tt_op *op);
TT_API const tt_op *tt_op_find(const tt_ctx *ctx, const char *name); // NULL if unknown
TT_API const tt_op *tt_op_at(const tt_ctx *ctx, int i);              // NULL past the end

// ---- types of sources ------------------------------------------------------------------------

// A type of source: its name in job files, its options, and how to open it.
typedef struct tt_source_def {
    const char *name;
    const char *help;
    const tt_option *options; // rows of the options struct, without the common part
    size_t options_size;
    const char *main; // the option that a plain value sets ("csv: prices.csv"); NULL: none
    tt_status (*open)(tt_ctx *ctx, const void *options, tt_source *out);
} tt_source_def;

// Opens a data set of type def; options is a struct of def->options_size bytes with all defaults
// filled in.
TT_API tt_data *tt_data_open(tt_ctx *ctx, const tt_source_def *def, const void *options,
                             const tt_data_opts *opts);
TT_API const tt_source_def *tt_source_find(const tt_ctx *ctx, const char *name);
TT_API const tt_source_def *tt_source_at(const tt_ctx *ctx, int i); // NULL past the end
// Registers a user's source type, so that job files run with this context can name it.
TT_API tt_status tt_source_register(tt_ctx *ctx, const tt_source_def *def);

// The CPU kernels of an op, one function per instruction set.
#if defined(__x86_64__)
#define TT_CPU_DECLARE(n)                     \
    tt_status n##_plain(const tt_launch *l);  \
    tt_status n##_fma(const tt_launch *l);    \
    tt_status n##_avx2(const tt_launch *l);   \
    tt_status n##_avx512(const tt_launch *l); \
    tt_status n##_f64(const tt_launch *l)
#define TT_CPU_FNS(n)                                     \
    {                                                     \
        n##_plain, n##_fma, n##_avx2, n##_avx512, n##_f64 \
    }
#else
#define TT_CPU_DECLARE(n)                    \
    tt_status n##_plain(const tt_launch *l); \
    tt_status n##_f64(const tt_launch *l)
#define TT_CPU_FNS(n)                        \
    {                                        \
        n##_plain, NULL, NULL, NULL, n##_f64 \
    }
#endif

#ifdef __cplusplus
}
#endif
#endif
