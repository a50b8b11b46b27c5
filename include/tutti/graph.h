/*
 * graph.h - the graph: tensors, variables, feeds, scopes, gradients, text form.
 *
 * A graph is built by calls that return tensors, so expressions nest: a builder returns NULL on
 * failure, and NULL in gives NULL out; the context keeps the first error. Everything in a graph is
 * owned by it and borrowed until tt_graph_free(). A graph says nothing of when or where: plans do.
 */
#ifndef TUTTI_GRAPH_H
#define TUTTI_GRAPH_H

#include <tutti/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_graph tt_graph;
typedef struct tt_tensor tt_tensor;
typedef struct tt_node tt_node;

TT_API tt_graph *tt_graph_new(tt_ctx *ctx); // owned by ctx; may be freed earlier
TT_API void tt_graph_free(tt_graph *g);
TT_API tt_ctx *tt_graph_get_ctx(const tt_graph *g);

// What a tensor is. NULL gives a scalar shape, TT_F32, "".
TT_API tt_shape tt_tensor_shape(const tt_tensor *t);
TT_API tt_dtype tt_tensor_dtype(const tt_tensor *t);
TT_API const char *
tt_tensor_name(const tt_tensor *t); // "scope/dense_1:0" without ":0" for output 0
TT_API tt_node *tt_tensor_get_node(const tt_tensor *t);
TT_API tt_tensor *tt_graph_find(const tt_graph *g, const char *name); // NULL if there is none

// Values that enter at each run.
typedef struct tt_feed_opts {
    size_t opts_size;
    tt_dtype dtype;   // default f32
    tt_shape shape;   // a leading TT_BATCH is bound at the run
    const char *name; // default "feed_<n>"
} tt_feed_opts;
TT_API tt_tensor *tt_feed_with(tt_graph *g, const tt_feed_opts *opts);
#define tt_feed(...) TT_CALL1(tt_feed, __VA_ARGS__, )

// Constants. The data is copied; subnormal f32 values become zero.
TT_API tt_tensor *tt_const(tt_graph *g, tt_dtype dtype, tt_shape shape, const void *data);
TT_API tt_tensor *tt_scalar(tt_graph *g, double value); // f32
TT_API tt_tensor *tt_fill(tt_graph *g, tt_dtype dtype, tt_shape shape, double value);

typedef enum tt_init_kind {
    TT_INIT_ZEROS = 0,
    TT_INIT_CONSTANT = 1,         // a
    TT_INIT_UNIFORM = 2,          // from a up to b
    TT_INIT_NORMAL = 3,           // mean a, deviation b
    TT_INIT_TRUNCATED_NORMAL = 4, // the same, redrawn beyond two deviations
    TT_INIT_GLOROT_UNIFORM = 5,
    TT_INIT_GLOROT_NORMAL = 6,
    TT_INIT_HE_UNIFORM = 7,
    TT_INIT_HE_NORMAL = 8,
} tt_init_kind;

typedef struct tt_init {
    tt_init_kind kind;
    double a, b;
} tt_init;

typedef struct tt_variable_opts {
    size_t opts_size;
    tt_dtype dtype;   // default f32
    tt_shape shape;   // no open dimension
    tt_init init;     // default zeros
    const char *name; // default "variable_<n>"; the key in the store
    bool no_train;    // default false: tt_trainable() lists it
} tt_variable_opts;

/*
 * A variable: a tensor whose value lives in the store between runs. In one run every reader of the
 * tensor sees the value from before the run's updates; an update's own output is the new value.
 */
TT_API tt_tensor *tt_variable_with(tt_graph *g, const tt_variable_opts *opts);
#define tt_variable(...) TT_CALL1(tt_variable, __VA_ARGS__, )

// The graph's trainable variables, in order of creation. Returns how many there are.
TT_API int tt_trainable(const tt_graph *g, tt_tensor **out, int max);

// Names made inside a scope are "scope/name". A name already taken gets "_1", "_2", ...
TT_API tt_status tt_name_push(tt_graph *g, const char *scope);
TT_API tt_status tt_name_pop(tt_graph *g);

/*
 * Device scopes: nodes made inside are pinned; nested scopes merge field by field and the inner
 * one wins. NULL or "" clears the outer pins for the scope.
 */
TT_API tt_status tt_device_push(tt_graph *g, const char *device);
TT_API tt_status tt_device_pop(tt_graph *g);
TT_API tt_status tt_pin(tt_tensor *t, const char *device); // the node of t; wins over scopes

// Puts the nodes of a and b on one device. A pin against it is an error when the plan is made.
TT_API tt_status tt_colocate(tt_tensor *a, tt_tensor *b);

/*
 * Called for each node that has no pin when a plan is made; returns a device name or NULL for no
 * opinion. The string is read at once.
 */
typedef const char *(*tt_place_fn)(void *user, const tt_node *node);
TT_API void tt_set_placement(tt_graph *g, tt_place_fn fn, void *user);

// The node of t runs after the node of each of deps. A cycle is refused.
TT_API tt_status tt_after(tt_tensor *t, tt_tensor *const *deps, int n);

/*
 * Gradients of y by xs[0..n), added to the graph; out[i] is NULL where y does not depend on xs[i].
 * seed is the gradient of y itself; NULL means ones, and then y must be a scalar.
 */
TT_API tt_status tt_grad(tt_graph *g, tt_tensor *y, tt_tensor *seed, int n, tt_tensor *const *xs,
                         tt_tensor **out);

// Prints the value when it is computed, as a "print" event, and passes it on.
TT_API tt_tensor *tt_print(tt_graph *g, tt_tensor *x, const char *label);
// Fails the run with TT_EASSERT and the message unless every element of cond is true; passes x on.
TT_API tt_tensor *tt_assert(tt_graph *g, tt_tensor *x, tt_tensor *cond, const char *message);

/*
 * Text form. tt_graph_print() gives a string to be freed with tt_string_free(); tt_graph_parse()
 * reads it back to an equal graph. The parser knows the registered ops only, bounds every size,
 * and its messages name line and column.
 */
TT_API char *tt_graph_print(tt_graph *g);
TT_API tt_graph *tt_graph_parse(tt_ctx *ctx, const char *text, size_t bytes);
TT_API void tt_string_free(tt_ctx *ctx, char *s);

#ifdef __cplusplus
}
#endif
#endif
