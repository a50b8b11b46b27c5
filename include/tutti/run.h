/*
 * run.h - sessions: running a graph on the devices of a context, and inspecting plans.
 */
#ifndef TUTTI_RUN_H
#define TUTTI_RUN_H

#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_session tt_session;

/*
 * A store holds variables by name. Each context has one; contexts may share one (tt_open(.store)),
 * each in a thread of its own, also at the same time. A run that writes variables has the store
 * alone, other runs and reads share it, so that a run sees all variables as they are between two
 * updates; calls wait for each other. A variable that lies only on a GPU of another context is
 * there for others once that context uses the store again, or closes. The variables of a job of
 * several processes are no other context's until the job's context is closed. Reference-counted;
 * release with tt_store_release().
 */
TT_API tt_store *tt_store_new(void);
TT_API tt_store *tt_store_of(tt_ctx *ctx); // retained for the caller
TT_API void tt_store_release(tt_store *s);
TT_API int64_t tt_store_version(tt_store *s,
                                const char *name); // number of writes; -1: no such variable

struct tt_bucket;
// Sums a bucket of gradients over the replicas; comm.h has the bucket.
typedef tt_status (*tt_bucket_fn)(void *user, const struct tt_bucket *b);

typedef struct tt_session_opts {
    size_t opts_size;
    bool hashes;      // keep a hash per node and lane of each run (tt_hashes_write)
    bool trace;       // record when each op ran (tt_trace_write)
    bool no_fuse;     // do not fuse elementwise ops
    const char *dump; // with hashes: also keep this node's values, so that a diff names the element
    bool no_fold;     // do not fold constants and duplicates
    tt_store *store;  // the store of its variables; default: the model's, else the context's
    const char *recompute;    // values to recompute in the backward pass: see tt_compile_opts
    tt_bucket_fn bucket_hook; // see tt_compile_opts
    void *bucket_user;
    const char *target;    // "tutti://host:port": the graph runs on that server (serve.h)
    const char *key;       // with target: key file; default TUTTI_SECRET_FILE, else loopback's
    const char *container; // with target: where its variables are; default ""
    bool isolate;          // with target: variables of its own, which go with the session
} tt_session_opts;
typedef tt_session_opts tt_session_new_opts; // the name the macro forms

TT_API tt_session *tt_session_new_with(tt_graph *g, const tt_session_opts *opts);
#define tt_session_new(...) TT_CALL1(tt_session_new, __VA_ARGS__, )
TT_API void tt_session_free(tt_session *s);

// A value for a feed. If the feed's shape is open, shape.dim[0] is the number of rows.
typedef struct tt_feed_value {
    tt_tensor *tensor;
    const void *data;
    tt_shape shape;
    tt_dtype dtype; // must be that of the feed
} tt_feed_value;

// Where to write a result; bytes is the size of data, checked before the run.
typedef struct tt_fetch {
    tt_tensor *tensor;
    void *data;
    size_t bytes;
} tt_fetch;

/*
 * The part of the global batch that a run computes. All fields 0: the fed batch is the whole batch.
 * Lane l of a batch of n rows has the rows floor(l n / lanes) to floor((l + 1) n / lanes) - 1; a
 * part consists of whole lanes. A sum over the rows of a part gives one partial sum per maximal
 * sub-tree of its lanes, stacked along a new first axis; partial sums of bf16 and f16 are f32,
 * since rounding comes after the last addition.
 */
typedef struct tt_batch {
    int64_t first_row;
    int64_t global_rows;
    int lanes; // default: the context's
} tt_batch;

typedef struct tt_run_opts {
    size_t opts_size;
    const tt_feed_value *feeds;
    int n_feeds;
    const tt_fetch *fetches;
    int n_fetches;
    tt_tensor *const *targets; // computed but not fetched, for example updates
    int n_targets;
    tt_batch batch;
    int64_t step;     // read by random ops and optimizers (Adam counts step + 1 - unapplied)
    float lr;         // learning rate of update ops
    float grad_scale; // factor by which update ops multiply gradients; default 1, TT_ZERO: 0
    int micro;        // number of micro-batches, each of some lanes; default 1
    /*
     * Optional: the feeds of the next run. They are copied to GPUs while this run computes. Their
     * data must not change until that run, or until the session is freed; NULL if it is not known
     * yet, so that memory is kept for it.
     */
    const tt_feed_value *next;
    int n_next;
    int64_t unapplied; // of the steps before this one, those that were not applied; default 0
} tt_run_opts;

/*
 * Computes the fetches and targets. The first call with these outputs and this number of rows makes
 * a plan, which is kept; later calls allocate nothing.
 */
TT_API tt_status tt_run_with(tt_session *s, const tt_run_opts *opts);
#define tt_run(...) TT_CALL1(tt_run, __VA_ARGS__, )

// Computes t immediately, on its device, and writes it to out, which has room for n elements.
TT_API tt_status tt_eval(tt_graph *g, tt_tensor *t, void *out, int64_t n);

// Reads or writes a variable of the store; bytes must be its size.
TT_API tt_status tt_get_variable(tt_session *s, tt_tensor *var, void *out, size_t bytes);
TT_API tt_status tt_set_variable(tt_session *s, tt_tensor *var, const void *data, size_t bytes);

// XXH3-128 over all variables of the graph sorted by name (name, type, shape, bytes).
TT_API tt_status tt_weight_hash(tt_session *s, tt_hash *out);

// A plan as text, JSON or DOT: op, device, reason, bytes, totals. Free with tt_string_free().
typedef enum tt_plan_form {
    TT_PLAN_TEXT = 0,
    TT_PLAN_JSON = 1,
    TT_PLAN_DOT = 2,
} tt_plan_form;
typedef struct tt_plan_opts {
    size_t opts_size;
    tt_tensor *const *targets; // default: all tensors without a reader, and all updates
    int n_targets;
    int64_t rows; // batch size; default 1
    tt_plan_form form;
    int n_fetched; // number of targets that are fetched, the others only computed; default: all
    int micro;     // as in tt_run_opts
} tt_plan_opts;
typedef tt_plan_opts tt_plan_print_opts;
TT_API char *tt_plan_print_with(tt_session *s, const tt_plan_opts *opts);
#define tt_plan_print(...) TT_CALL1(tt_plan_print, __VA_ARGS__, )

// Memory of the session's newest plan on device i.
typedef struct tt_plan_memory {
    size_t variables;
    size_t activations; // size of the arena; on GPUs also feeds and constants
    size_t lower_bound; // largest number of bytes in use at the same time
    // Use of the memory, adding up to total. For the arena: at the moment of its largest use.
    size_t weights;   // the model's variables, and copies of them on this device
    size_t gradients; // gradients of the weights
    size_t optimizer; // state of the optimizer
    size_t kept;      // activations and their gradients
    size_t workspace; // scratch memory of kernels, and gaps
    size_t total;     // variables and arena
    size_t limit;     // memory limit of the device; 0: none
} tt_plan_memory;
TT_API tt_status tt_plan_memory_get_sized(tt_session *s, int device, tt_plan_memory *out,
                                          size_t size);
#define tt_plan_memory_get(s, device, out) \
    tt_plan_memory_get_sized((s), (device), (out), sizeof(tt_plan_memory))

/*
 * Writes the recorded trace to a file, for Perfetto. In a job of several processes all make the
 * call together; the first one writes what the devices of all did, by its clock.
 */
TT_API tt_status tt_trace_write(tt_session *s, const char *path);
// Writes the recorded hashes to a file, for tt_hashes_diff().
TT_API tt_status tt_hashes_write(tt_session *s, const char *path);

/*
 * Compares two files of hashes and sets *same. *report (free with tt_string_free()) names the first
 * step, node and lane that differ, in graph order.
 */
TT_API tt_status tt_hashes_diff(tt_ctx *ctx, const char *a, const char *b, bool *same,
                                char **report);

#ifdef __cplusplus
}
#endif
#endif
