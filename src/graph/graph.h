/*
 * graph.h (internal) - the graph's own storage.
 *
 * Nodes are kept in order of creation, inputs before users, so any loop over ids is a topological
 * order (control edges are checked to keep it so). Memory comes from one pool that the graph frees
 * as a whole; a builder that fails leaves the graph as it was.
 */
#ifndef TUTTI_GRAPH_GRAPH_H
#define TUTTI_GRAPH_GRAPH_H

#include "base/base.h"
#include <tutti/graph.h>
#include <tutti/ops.h>

#define TTI_NAME_MAX    256
#define TTI_SCOPE_DEPTH 32
#define TTI_MAX_NODES   (1 << 20)

typedef struct tti_block tti_block; // of the graph's pool

struct tt_graph {
    tt_ctx *ctx;
    struct tti_hooks owned;

    tt_node **nodes; // by id
    int64_t n_nodes, cap_nodes;
    tti_block *pool;

    // Names: open hash table of node ids + 1.
    int32_t *names;
    int64_t cap_names;

    struct tti_name_hint { // the next number to try for a name that was taken before
        uint64_t hash;
        int next;
    } hints[256];

    char scope[TTI_NAME_MAX]; // "outer/inner/" or ""
    int scope_len[TTI_SCOPE_DEPTH];
    int n_scopes;
    size_t scope_from; // names begin with what follows in scope: tti_scope_root()
    tt_device_name pins[TTI_SCOPE_DEPTH]; // merged; the last is in force
    bool has_pin[TTI_SCOPE_DEPTH];
    int n_pins;

    int n_colocations;
    tt_place_fn place;
    void *place_user;

    tt_store *store; // of a model's variables; NULL: sessions take the context's

    // Sessions on this graph (run/ keeps the list), tt_eval()'s own among them.
    struct tt_session *sessions, *eval;
    void (*free_sessions)(tt_graph *g);
};

// Attributes of the source nodes.
typedef struct tti_feed_attr {
    tt_dtype dtype;
    tt_shape shape;
} tti_feed_attr;
typedef struct tti_variable_attr {
    tt_dtype dtype;
    tt_shape shape;
    int init; // tt_init_kind
    double a, b;
    bool no_train;
} tti_variable_attr;

// Zeroed memory that lives as long as the graph; NULL: TT_ENOMEM recorded.
void *tti_graph_alloc(tt_graph *g, size_t bytes);
// The context that a tensor belongs to; NULL for NULL.
tt_ctx *tti_tensor_ctx(const tt_tensor *t);
// Is there a graph to build in? If not, the context of x, an input, has the error.
bool tti_has_graph(const tt_graph *g, const tt_tensor *x, const char *who);

/*
 * Names made from here on begin at the root, whatever scopes are open, until tti_scope_back() is
 * given what this returns: variables of layers are named by path alone.
 */
size_t tti_scope_root(tt_graph *g);
void tti_scope_back(tt_graph *g, size_t from);

// Drops all nodes from id n on: undoes a builder that failed half-way.
void tti_graph_truncate(tt_graph *g, int64_t n);

// A constant node with this name; data is copied. The text form's way in.
tt_node *tti_const_node(tt_graph *g, tt_dtype dtype, tt_shape shape, const void *data,
                        const char *name);
// Checks every dimension and the product of all; fails naming what.
tt_status tti_shape_check(tt_ctx *ctx, const char *what, const tt_shape *s, bool open_ok);
bool tti_shape_equal(const tt_shape *a, const tt_shape *b);
// The node of this name; NULL if there is none.
tt_node *tti_node_find(const tt_graph *g, const char *name);
bool tti_is_variable(const tt_tensor *t);
// Does n, an update, write the variable that is its input k? Optional inputs may follow the state,
// so a bit of the op's mask counts only where there is a variable.
bool tti_writes(const tt_node *n, int k);
extern const tt_op tti_op_const, tti_op_feed, tti_op_variable;

// Element i of data as a number; conversion rounds to nearest even and saturates integers.
double tti_get_number(tt_dtype t, const void *data, int64_t i);
void tti_put_number(tt_dtype t, void *data, int64_t i, double v);
// Subnormal f32 and bf16 become zero of their sign: what every value that enters goes through.
void tti_flush(tt_dtype t, void *data, int64_t n);

#endif
