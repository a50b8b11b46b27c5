/*
 * onnx.h - a model's inference graph as an ONNX file.
 *
 * Every op of the graph has a row with a function that writes the nodes of ONNX that compute the
 * same. Values are names. Images are [batch, height, width, channels] here and [batch,
 * channels, height, width] there, so convolutions and pooling stand between two Transposes, which
 * runtimes cancel out; weights are transposed when they are written.
 */
#ifndef TUTTI_SAVE_ONNX_H
#define TUTTI_SAVE_ONNX_H

#include "model/model.h"
#include "save/protobuf.h"
#include "save/safetensors.h"

#define TTI_ONNX_IR    8  // version of the file format
#define TTI_ONNX_OPSET 17 // version of the set of operators

// A tensor stored in the file.
typedef struct tti_onnx_weight {
    const char *name;
    tt_dtype dtype;
    tt_shape shape;
    const void *data;
    size_t bytes;
    void *own; // data, if it was made for the file
} tti_onnx_weight;

typedef struct tti_onnx {
    tt_ctx *ctx;
    const tt_graph *graph;
    const tti_named *variables; // values of the model's weights, in the order of
    const tti_weight *weights;  // these
    int64_t n_variables;
    tti_text nodes;               // all nodes so far, as fields of the graph
    tti_text inputs, outputs;     // likewise
    tti_text call_in, call_attr;  // of the node that is being written
    const char *call_op;          //
    const char **values;          // by tensor: first[node id] + index; NULL: not written
    int64_t *first;               //
    tti_onnx_weight *stored;      //
    int64_t n_stored, cap_stored; //
    char **names;                 // all texts, to be freed
    int64_t n_names, cap_names;   //
    int64_t n_nodes, next;        // next: number of the next value without a name of its own
    const char *at;               // name of the graph's node that is being written
    bool failed;                  // out of memory; told already
} tti_onnx;

tt_status tti_onnx_open(tt_model *m, const tti_named *variables, tti_onnx *o) TTI_CHECKED;
void tti_onnx_close(tti_onnx *o);
/*
 * Writes the nodes that compute targets. What values[] of a feed has been set to is used; every
 * feed that is needed must have one.
 */
tt_status tti_onnx_graph(tti_onnx *o, tt_tensor *const *targets, int n) TTI_CHECKED;
// An input or output of the file. A leading open dimension is called "batch".
void tti_onnx_input(tti_onnx *o, const char *name, tt_dtype dtype, const tt_shape *record);
void tti_onnx_output(tti_onnx *o, const char *name, const char *value, const tt_tensor *t);
// Writes the file; metadata is pairs of texts, NULL at the end.
tt_status tti_onnx_write(tti_onnx *o, const char *path, const char *const *metadata,
                         tt_hash *hash) TTI_CHECKED;

// ---- values ----------------------------------------------------------------------------------

// Of a tensor of the graph. Weights and constants are stored when they are first asked for.
const char *tti_onnx_value(tti_onnx *o, const tt_tensor *t);
void tti_onnx_set(tti_onnx *o, const tt_tensor *t, const char *value);
// A text that lives as long as o.
const char *tti_onnx_text(tti_onnx *o, const char *fmt, ...) TT_PRINTF(2, 3);
// Stored tensors; equal ones are stored once. The data is copied.
const char *tti_onnx_const(tti_onnx *o, tt_dtype dtype, tt_shape shape, const void *data);
const char *tti_onnx_scalar(tti_onnx *o, tt_dtype dtype, double v);
const char *tti_onnx_ints(tti_onnx *o, const int64_t *v, int n);
// The elements of a weight or constant; NULL: t is neither.
const void *tti_onnx_data(const tti_onnx *o, const tt_tensor *t);
/*
 * t with its axes in another order, stored that way if t is a weight or a constant; then as view,
 * which has the same number of elements, if that is not NULL.
 */
const char *tti_onnx_permuted(tti_onnx *o, const tt_tensor *t, const int64_t *order,
                              const tt_shape *view);
// Stores a tensor made for the file under a name; data is freed with o. NULL data: out of memory.
const char *tti_onnx_store(tti_onnx *o, const char *name, tt_dtype dtype, tt_shape shape,
                           void *data);

// ---- nodes: begin, inputs and attributes in any order, end -----------------------------------

void tti_onnx_begin(tti_onnx *o, const char *op);
void tti_onnx_in(tti_onnx *o, const char *value); // "": an optional input that is left out
void tti_onnx_attr_int(tti_onnx *o, const char *name, int64_t v);
void tti_onnx_attr_ints(tti_onnx *o, const char *name, const int64_t *v, int n);
void tti_onnx_attr_float(tti_onnx *o, const char *name, double v);
void tti_onnx_attr_text(tti_onnx *o, const char *name, const char *s);
const char *tti_onnx_end(tti_onnx *o); // its output
void tti_onnx_end_many(tti_onnx *o, const char **out, int n);
// Nodes without attributes.
const char *tti_onnx_1(tti_onnx *o, const char *op, const char *a);
const char *tti_onnx_2(tti_onnx *o, const char *op, const char *a, const char *b);
const char *tti_onnx_3(tti_onnx *o, const char *op, const char *a, const char *b, const char *c);
const char *tti_onnx_transpose(tti_onnx *o, const char *x, const int64_t *order, int n);
// Dimensions below zero are open.
const char *tti_onnx_reshape(tti_onnx *o, const char *x, const tt_shape *to);
const char *tti_onnx_cast(tti_onnx *o, const char *x, tt_dtype to);

// ---- ops -------------------------------------------------------------------------------------

typedef struct tti_onnx_op {
    const char *name; // of the op
    // Writes the node and sets the values of its outputs. Fails for what ONNX cannot say.
    tt_status (*write)(tti_onnx *o, const tt_node *n);
} tti_onnx_op;
// Lists that end with a NULL name.
extern const tti_onnx_op tti_onnx_simple[], tti_onnx_moves[], tti_onnx_layers[],
    tti_onnx_sequences[];

// y of an elementwise op with two numbers as attributes; NULL: there is no such op.
const char *tti_onnx_unary(tti_onnx *o, const char *op, tt_dtype dtype, const char *x, double a,
                           double b);
const char *tti_onnx_act(tti_onnx *o, int act, tt_dtype dtype, const char *x);
// The product whose result a recurrence takes, if both are one node of ONNX; NULL: they are not.
const tt_node *tti_onnx_recurrent_product(const tti_onnx *o, const tt_node *n);
// The number of an element type in the format.
int tti_onnx_type(tt_dtype t);

#endif
