/*
 * run.h - sessions: running a graph on the devices of a context, and looking at plans.
 */
#ifndef TUTTI_RUN_H
#define TUTTI_RUN_H

#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_session tt_session;

/*
 * A store holds variables by name. Each context has one; sessions of several contexts may share
 * one (tt_open(.store)). Thread-safe and reference-counted; release with tt_store_release().
 */
TT_API tt_store *tt_store_new(void);
TT_API tt_store *tt_store_of(tt_ctx *ctx); // retained for the caller
TT_API void tt_store_release(tt_store *s);
TT_API int64_t tt_store_version(tt_store *s, const char *name); // counts writes; -1: no such one

typedef struct tt_session_opts {
    size_t opts_size;
    bool hashes;      // keep a hash per node and lane of each run (tt_hashes_write)
    bool trace;       // record when each entry ran (tt_trace_write)
    bool no_fuse;     // leave elementwise chains as they are
    const char *dump; // with hashes: keep this node's values too, so that a diff names the element
    bool no_fold;     // leave constants and duplicates as they are
    tt_store *store;  // where its variables are; borrowed; default: the model's, the context's
    const char *recompute; // values computed again for the backward part: see tt_compile_opts
} tt_session_opts;
typedef tt_session_opts tt_session_new_opts; // the name the macro forms

TT_API tt_session *tt_session_new_with(tt_graph *g, const tt_session_opts *opts);
#define tt_session_new(...) TT_CALL1(tt_session_new, __VA_ARGS__, )
TT_API void tt_session_free(tt_session *s);

// A value given to a feed. shape.dim[0] of an open feed is the number of rows.
typedef struct tt_feed_value {
    tt_tensor *tensor;
    const void *data;
    tt_shape shape;
    tt_dtype dtype; // must be the feed's
} tt_feed_value;

// Where a result goes; bytes is the room there, checked before the run.
typedef struct tt_fetch {
    tt_tensor *tensor;
    void *data;
    size_t bytes;
} tt_fetch;

/*
 * Which part of the global batch a run computes. All zero: the whole batch as fed. Lane l of n rows
 * is rows floor(l n / lanes) up to floor((l + 1) n / lanes); a part is whole lanes. Sums over rows
 * of a part are one partial per maximal sub-tree of its lanes, stacked on a new first axis; those
 * of bf16 and f16 come as f32, since rounding follows the tree.
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
    tt_tensor *const *targets; // computed, not fetched: updates, for example
    int n_targets;
    tt_batch batch;
    int64_t step;     // read by random ops and optimizers (Adam counts from step + 1)
    float lr;         // learning rate of update ops
    float grad_scale; // update ops multiply gradients by it; default 1
    int micro;        // the batch goes through in so many parts, each of some lanes; default 1
    /*
     * Feeds of the run after this one, if they are known: devices with memory of their own get them
     * while this one computes. Their data must not change before that run, or the session's end.
     */
    const tt_feed_value *next;
    int n_next;
} tt_run_opts;

/*
 * Runs what fetches and targets need. The plan is made at the first call with these outputs and row
 * count and kept. After that a run allocates nothing.
 */
TT_API tt_status tt_run_with(tt_session *s, const tt_run_opts *opts);
#define tt_run(...) TT_CALL1(tt_run, __VA_ARGS__, )

// Immediate mode: the value of t now, on its device; n is the room in elements of its type.
TT_API tt_status tt_eval(tt_graph *g, tt_tensor *t, void *out, int64_t n);

// Reads or writes a variable in the store; bytes must be its size.
TT_API tt_status tt_get_variable(tt_session *s, tt_tensor *var, void *out, size_t bytes);
TT_API tt_status tt_set_variable(tt_session *s, tt_tensor *var, const void *data, size_t bytes);

// XXH3-128 over all variables of the graph sorted by name (name, type, shape, bytes).
TT_API tt_status tt_weight_hash(tt_session *s, tt_hash *out);

// A plan as text or JSON, free with tt_string_free(): op, device, reason, bytes; totals.
typedef enum tt_plan_form {
    TT_PLAN_TEXT = 0,
    TT_PLAN_JSON = 1,
    TT_PLAN_DOT = 2,
} tt_plan_form;
typedef struct tt_plan_opts {
    size_t opts_size;
    tt_tensor *const *targets; // default: every tensor nobody reads, and every update
    int n_targets;
    int64_t rows; // bound to open dimensions; default 1
    tt_plan_form form;
    int n_fetched; // so many of the targets are fetched, the others only computed; default all
    int micro;     // as tt_run_opts
} tt_plan_opts;
typedef tt_plan_opts tt_plan_print_opts;
TT_API char *tt_plan_print_with(tt_session *s, const tt_plan_opts *opts);
#define tt_plan_print(...) TT_CALL1(tt_plan_print, __VA_ARGS__, )

// Memory of the session's newest plan on device i.
typedef struct tt_plan_memory {
    size_t variables;
    size_t activations; // the arena's size; on GPUs also what is fed in one piece, and constants
    size_t lower_bound; // most bytes alive at once
    size_t touched;     // highest byte written so far, when tt_session_paint() was called
    // What it is for; these add up to total. The arena's parts are those where most of it is alive.
    size_t weights;   // the model's variables, and copies of them on this device
    size_t gradients; // of weights
    size_t optimizer; // its state
    size_t kept;      // activations and their gradients
    size_t workspace; // scratch of kernels, gaps
    size_t total;     // variables and arena
    size_t limit;     // of the device; 0: none
} tt_plan_memory;
TT_API tt_status tt_plan_memory_get(tt_session *s, int device, tt_plan_memory *out);
// Tests: fills the arenas with a byte, so that tt_plan_memory_get() can tell what was written.
TT_API tt_status tt_session_paint(tt_session *s, uint8_t byte);

// Writes what was recorded. The trace opens in Perfetto; hashes are compared by tt_hashes_diff().
TT_API tt_status tt_trace_write(tt_session *s, const char *path);
TT_API tt_status tt_hashes_write(tt_session *s, const char *path);

/*
 * Compares two files of hashes. *same tells; report (free with tt_string_free()) names the first
 * step, node and lane that differ, in the order of the graph.
 */
TT_API tt_status tt_hashes_diff(tt_ctx *ctx, const char *a, const char *b, bool *same,
                                char **report);

#ifdef __cplusplus
}
#endif
#endif
