/*
 * model.h (internal) - layers and models.
 *
 * A model is a list of layers. Each is built twice by the same function: into the inference graph
 * when it is appended, and into the training graph by tt_compile(). Weights are variables of one
 * name in both, so they are one variable of the store.
 */
#ifndef TUTTI_MODEL_MODEL_H
#define TUTTI_MODEL_MODEL_H

#include "base/base.h"
#include "graph/graph.h"
#include <tutti/train.h>

// ---- layers ----------------------------------------------------------------------------------

typedef struct tti_layer tti_layer;

// What of a layer's weights PyTorch lays out otherwise (save/layout.h).
typedef enum tti_torch {
    TTI_TORCH_SAME = 0,
    TTI_TORCH_MATRIX,    // those of rank 2: [in, out] here, [out, in] there
    TTI_TORCH_KERNEL,    // those of rank 4 and 3: convolutions
    TTI_TORCH_DEPTHWISE, //
    TTI_TORCH_FEATURES,  // those of rank 1 have one number for each feature of the input
} tti_torch;

/*
 * A kind of layer. The rows describe the public options struct (tt_layer_dense_opts), all but
 * TT_LAYER_OPTIONS and what no text can say. build() adds nodes; weights come from
 * tt_layer_weight(). A composite has expand() instead, which appends layers and returns the last
 * one's output.
 */
typedef struct tti_layer_def {
    const char *name, *help;
    const tt_option *options;
    size_t size;        // of the options struct
    size_t common;      // offset of TT_LAYER_OPTIONS in it
    const char *main;   // the row that a bare value sets: "dense: 10"; NULL: none
    int min_in, max_in; // inputs; 0, 0 means exactly one
    tt_tensor *(*build)(tt_build *b, const void *opts, tt_tensor *const *in, int n_in);
    tt_tensor *(*expand)(tt_model *m, const void *opts, const char *name);
    tti_torch torch;
    // Batches of so many rows, or fewer, have lanes, or are one, that train nothing through it;
    // NULL: any number will do.
    int64_t (*few_rows)(const tti_layer *l, int lanes);
} tti_layer_def;

typedef struct tti_layer_common {
    TT_LAYER_OPTIONS;
} tti_layer_common;

const tti_layer_def *tti_layer_find(const char *name);
const tti_layer_def *tti_layer_at(int i); // NULL past the end
// Also those that only composites make; none of a composite's own.
const tti_layer_def *tti_layer_find_built(const char *kind);

/*
 * Appends a layer; opts is a whole options struct with every default filled in and is copied, its
 * texts too. What tt_x_with() functions and job files both call.
 */
tt_tensor *tti_layer_add(tt_model *m, const tti_layer_def *def, const void *opts);
// For tt_x_with(): copies what the caller's struct has, fills defaults, checks bounds, appends.
tt_tensor *tti_layer_call(tt_model *m, const tti_layer_def *def, const void *opts);

struct tti_layer {
    const tti_layer_def *def; // NULL: an input
    char *name;               // unique in the model: "dense_1", "block.3.attn"
    void *opts;               // a copy
    int n_in;
    tt_tensor *in[TT_MAX_FROM];  // in the inference graph
    tt_tensor *out;              // in the inference graph
    tt_tensor *train_out;        // in the training graph; NULL before tt_compile()
    tti_layer *share;            // whose weights it uses; itself for most
    int first_weight, n_weights; // in the model's list
    bool has_pin;                // of the device scope it was appended in
    tt_device_name pin;
};

// What a build function sees. States of batch norm are updates that training must run.
struct tt_build {
    tt_model *model;
    tt_graph *graph;
    tti_layer *layer;
    bool training;
    tt_dtype type; // TT_F32, or the half type in which a layer of the training graph computes
};
// Has tt_compile() run this update with every step (running statistics).
tt_status tti_build_update(tt_build *b, tt_tensor *update) TTI_CHECKED;
// A weight as the store has it; tt_layer_weight() gives it in the type the layer computes in.
tt_tensor *tti_layer_weight(tt_build *b, const char *name, tt_shape shape, tt_init init);
// x in the type the layer computes in: f32 becomes it, all other types stay.
tt_tensor *tti_compute(tt_build *b, tt_tensor *x);
// A weight that is not trained.
tt_tensor *tti_layer_state(tt_build *b, const char *name, tt_shape shape, tt_init init);

typedef struct tti_weight {
    char *name;
    tt_tensor *var;       // in the inference graph
    tt_tensor *train_var; // in the training graph
    bool trains;
    tti_layer *layer;
} tti_weight;

#define TTI_MAX_INPUTS 8

typedef struct tti_output {
    char *name;
    tt_tensor *tensor; // in the inference graph
} tti_output;

typedef struct tti_step tti_step; // train/compile.h
typedef struct tti_use tti_use;   // train/use.h

// Layers whose names match go on a device, unless a device scope says another.
typedef struct tti_pin_rule {
    char *patterns;
    tt_device_name device;
    bool is_used; // some layer's name matched
} tti_pin_rule;

struct tt_model {
    tt_ctx *ctx;
    struct tti_hooks owned;
    tt_store *store;     // its weights: two models of one context may have layers of one name
    tt_graph *graph;     // inference
    tt_session *session; // of it; made when first needed
    tti_layer **layers;
    int64_t n_layers, cap_layers;
    tti_weight *weights; // in order of creation
    int64_t n_weights, cap_weights;
    int n_inputs, n_outputs;
    tti_layer *inputs[TTI_MAX_INPUTS];
    tti_output outputs[TTI_MAX_INPUTS]; // given by tt_output(); none: the last layer's
    char prefix[TTI_NAME_MAX];          // in front of layer names while a composite expands
    tti_step *step;                     // what tt_compile() made; NULL before
    void (*free_step)(tt_model *m);     // frees it; set by tt_compile()
    tt_dtype compute;                   // type of the training graph's layers; tt_compile() sets it
    tt_tensor **updates;                // of the training graph: running statistics
    int64_t n_updates, cap_updates;
    tti_pin_rule *pin_rules; // the first that matches counts
    int64_t n_pin_rules, cap_pin_rules;
    // For its card (save/card.h): JSON objects of the data and the training; NULL: not known.
    char *about_data, *about_train;
    tti_use *use;                  // what they say, read; NULL: not yet
    void (*free_use)(tt_model *m); // set with it
};

// The layer whose output t is; NULL (recorded) if t is no layer's output of this model.
tti_layer *tti_layer_of(tt_model *m, const tt_tensor *t);
// The outputs with names, the default one too.
int tti_model_outputs(tt_model *m, tti_output out[TTI_MAX_INPUTS]);
/*
 * Builds every layer again into g, for training; fills train_out and train_var. The updates are
 * borrowed until the next call. g is the caller's alone from here on, whether or not this succeeds:
 * the context no longer owns it, so it must be freed with the model (tti_step_free()).
 */
tt_status tti_model_build_training(tt_model *m, tt_graph *g, tt_tensor ***updates,
                                   int *n_updates) TTI_CHECKED;
// A rule for layers that are appended from here on.
tt_status tti_model_pin(tt_model *m, const char *patterns, const char *device) TTI_CHECKED;
// Inference session, made on demand.
tt_session *tti_model_session(tt_model *m);

#endif
