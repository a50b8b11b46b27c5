/*
 * graph.h - the graph: tensors, variables, feeds, scopes, gradients, text form.
 *
 * A graph is built by calls that return tensors, so that expressions nest. A builder returns NULL
 * on failure and if an input is NULL; the context keeps the first error (without a graph, that of
 * an input). Everything in a graph is owned by it and valid until tt_graph_free(). A graph does not
 * say when and where its nodes run; that is decided when a plan is made.
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

// Properties of a tensor. For NULL: a scalar shape, TT_F32, "".
TT_API tt_shape tt_tensor_shape(const tt_tensor *t);
TT_API tt_dtype tt_tensor_dtype(const tt_tensor *t);
TT_API const char *
tt_tensor_name(const tt_tensor *t); // "scope/split_1:1"; without ":0" for output 0
TT_API tt_node *tt_tensor_get_node(const tt_tensor *t);
TT_API tt_tensor *tt_graph_find(const tt_graph *g, const char *name); // NULL if not found

// The open dimension, which is split over lanes; -1: none.
TT_API int tt_open_axis(const tt_shape *shape);
// Number of elements; for an open shape, minus the number of elements per row of the batch.
TT_API int64_t tt_shape_count(const tt_shape *shape);
// The shape as text, with open dimensions as "b" or "64b": "[b, 784]". Returns buf.
#define TT_SHAPE_TEXT 128
TT_API const char *tt_shape_text(const tt_shape *shape, char buf[TT_SHAPE_TEXT]);

// An input of the graph; its value is given at each run.
typedef struct tt_feed_opts {
    size_t opts_size;
    tt_dtype dtype;   // default f32
    tt_shape shape;   // a leading TT_BATCH is the batch size, known at the run
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
    TT_INIT_UNIFORM = 2,          // uniform from a to b; both 0: from -0.05 to 0.05
    TT_INIT_NORMAL = 3,           // mean a, standard deviation b; b of 0: 0.02
    TT_INIT_TRUNCATED_NORMAL = 4, // the same, redrawn beyond two standard deviations
    TT_INIT_GLOROT_UNIFORM = 5,   // uniform within +-sqrt(6 / (fan_in + fan_out))
    TT_INIT_GLOROT_NORMAL = 6,    // standard deviation sqrt(2 / (fan_in + fan_out))
    TT_INIT_HE_UNIFORM = 7,       // uniform within +-sqrt(6 / fan_in)
    TT_INIT_HE_NORMAL = 8,        // standard deviation sqrt(2 / fan_in)
    TT_INIT_LECUN_UNIFORM = 9,    // uniform within +-sqrt(3 / fan_in)
    TT_INIT_LECUN_NORMAL = 10,    // standard deviation sqrt(1 / fan_in)
} tt_init_kind;

/*
 * How a first value is drawn. Of a shape [..., in, out] the fans are in and out, each times the
 * product of the dimensions before; of one dimension both are that. docs/models.md has those of
 * every layer. TT_EINVAL: a range that is empty, a negative deviation, numbers that are not used.
 */
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
    bool no_train;    // default false: the variable is trained
} tt_variable_opts;

/*
 * A variable: a tensor whose value is kept in the store between runs. Within a run, every reader
 * sees the value from before the run's updates; the output of an update op is the new value.
 */
TT_API tt_tensor *tt_variable_with(tt_graph *g, const tt_variable_opts *opts);
#define tt_variable(...) TT_CALL1(tt_variable, __VA_ARGS__, )

// The graph's trainable variables, in order of creation. Returns their number.
TT_API int tt_trainable(const tt_graph *g, tt_tensor **out, int max);

// Names made inside a scope are "scope/name". If a name is taken, "_1", "_2", ... is appended.
TT_API tt_status tt_name_push(tt_graph *g, const char *scope);
TT_API tt_status tt_name_pop(tt_graph *g);

/*
 * Device scopes: nodes made inside are pinned to the device. Nested scopes are merged field by
 * field; the inner one wins. NULL or "" removes the outer pins within the scope.
 */
TT_API tt_status tt_device_push(tt_graph *g, const char *device);
TT_API tt_status tt_device_pop(tt_graph *g);
TT_API tt_status tt_pin(tt_tensor *t, const char *device); // pins the node of t; wins over scopes

// Places the nodes of a and b on one device. Contradicting pins are an error at plan time.
TT_API tt_status tt_colocate(tt_tensor *a, tt_tensor *b);

/*
 * Called when a plan is made, for each node without a pin. Returns a device name, or NULL for no
 * preference. The string is read immediately.
 */
typedef const char *(*tt_place_fn)(void *user, const tt_node *node);
TT_API void tt_set_placement(tt_graph *g, tt_place_fn fn, void *user);

// Makes the node of t run after the nodes of deps. A cycle is an error.
TT_API tt_status tt_after(tt_tensor *t, tt_tensor *const *deps, int n);

/*
 * Adds the gradients of y with respect to xs[0] to xs[n - 1] to the graph; out[i] is NULL if y does
 * not depend on xs[i]. seed is the gradient of y itself; NULL means 1, and y must be a scalar then.
 */
TT_API tt_status tt_grad(tt_graph *g, tt_tensor *y, tt_tensor *seed, int n, tt_tensor *const *xs,
                         tt_tensor **out);

// Reports the value as a "print" event when it is computed; returns x.
TT_API tt_tensor *tt_print(tt_graph *g, tt_tensor *x, const char *label);
// Fails the run with TT_EASSERT and the message unless every element of cond is true; returns x.
TT_API tt_tensor *tt_assert(tt_graph *g, tt_tensor *x, tt_tensor *cond, const char *message);

/*
 * Text form. tt_graph_print() returns a string, to be freed with tt_string_free(); tt_graph_parse()
 * reads it back to an equal graph. The parser accepts registered ops only and checks every size;
 * its messages name line and column.
 */
TT_API char *tt_graph_print(tt_graph *g);
TT_API tt_graph *tt_graph_parse(tt_ctx *ctx, const char *text, size_t bytes);
TT_API void tt_string_free(tt_ctx *ctx, char *s);

#ifdef __cplusplus
}
#endif
#endif
