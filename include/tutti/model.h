/*
 * model.h - models: layers with weights, in sequence or connected in any way.
 *
 * A layer is called tt_layer_NAME, with the name that job files use; tt_NAME is the op (ops.h).
 * A layer call appends a layer to a model and returns its output, a tensor of the model's inference
 * graph (NULL on failure; the context keeps the first error). Without .from a layer reads the
 * output of the layer before, so a sequential model is a list of calls; with .from it reads the
 * given outputs. Weights are named by path: "<layer>.weight", "block.3.attn.qkv.weight".
 * tt_compile() builds the same layers a second time for training.
 */
#ifndef TUTTI_MODEL_H
#define TUTTI_MODEL_H

#include <tutti/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_model tt_model;

#define TT_MAX_FROM 8

// Common to all layers.
#define TT_LAYER_OPTIONS                                                           \
    const char *name;             /* default "<kind>_<n>"; copied */               \
    tt_tensor *from[TT_MAX_FROM]; /* outputs of layers; default: the last layer */ \
    tt_tensor *share              /* output of the layer whose weights to use */

typedef struct tt_sequential_opts {
    size_t opts_size;
    int64_t input[TT_MAX_RANK]; // shape of one record: {28, 28, 1}; default: see tt_input()
    tt_dtype dtype;             // default f32
    const char *name;           // name of the input; default "x"
} tt_sequential_opts;
// Makes an empty model, owned by ctx. With .input it has one input.
TT_API tt_model *tt_sequential_with(tt_ctx *ctx, const tt_sequential_opts *opts);
#define tt_sequential(...) TT_CALL1(tt_sequential, __VA_ARGS__, )
// Makes an empty model without inputs; add them with tt_input().
TT_API tt_model *tt_model_new(tt_ctx *ctx);
TT_API void tt_model_free(tt_model *m);

typedef struct tt_input_opts {
    size_t opts_size;
    int64_t shape[TT_MAX_RANK]; // shape of one record; default: a scalar
    tt_dtype dtype;
    const char *name; // default "x", "x_1", ...: matched with the fields of the data
} tt_input_opts;
TT_API tt_tensor *tt_input_with(tt_model *m, const tt_input_opts *opts);
#define tt_input(...) TT_CALL1(tt_input, __VA_ARGS__, )
// Adds an output of the model: x, the output of a layer. Default: the output of the last layer.
TT_API tt_status tt_output(tt_model *m, tt_tensor *x, const char *name);

// ---- layers ----------------------------------------------------------------------------------

typedef struct tt_layer_dense_opts {
    size_t opts_size;
    int units; // required
    tt_act act;
    bool no_bias;
    tt_init init; // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_dense_opts;
// y = act(x W + b) on the last axis; W is [in, units].
TT_API tt_tensor *tt_layer_dense_with(tt_model *m, const tt_layer_dense_opts *opts);
#define tt_layer_dense(...) TT_CALL1(tt_layer_dense, __VA_ARGS__, )

typedef struct tt_layer_conv2d_opts {
    size_t opts_size;
    int filters;        // output channels, required; depthwise: filters per channel, default 1
    int kernel[2];      // default 3
    int stride[2];      // default 1
    tt_padding padding; // default TT_VALID
    int pad[2];         // explicit zero padding on each side, instead of padding
    tt_act act;
    bool no_bias;
    tt_init init;    // default Glorot uniform
    int dilation[2]; // distance of neighbouring taps; default 1
    int groups;      // of channels, each convolved separately; default 1; not for depthwise
    TT_LAYER_OPTIONS;
} tt_layer_conv2d_opts;
typedef tt_layer_conv2d_opts tt_layer_depthwise_conv2d_opts;
TT_API tt_tensor *tt_layer_conv2d_with(tt_model *m, const tt_layer_conv2d_opts *opts);
TT_API tt_tensor *tt_layer_depthwise_conv2d_with(tt_model *m, const tt_layer_conv2d_opts *opts);
#define tt_layer_conv2d(...)           TT_CALL1(tt_layer_conv2d, __VA_ARGS__, )
#define tt_layer_depthwise_conv2d(...) TT_CALL1(tt_layer_depthwise_conv2d, __VA_ARGS__, )

typedef struct tt_layer_max_pool2d_opts {
    size_t opts_size;
    int size[2];   // default 2
    int stride[2]; // default: size
    tt_padding padding;
    int pad[2]; // explicit padding on each side; padded entries are ignored
    TT_LAYER_OPTIONS;
} tt_layer_max_pool2d_opts;
typedef tt_layer_max_pool2d_opts tt_layer_avg_pool2d_opts;
TT_API tt_tensor *tt_layer_max_pool2d_with(tt_model *m, const tt_layer_max_pool2d_opts *opts);
TT_API tt_tensor *tt_layer_avg_pool2d_with(tt_model *m, const tt_layer_max_pool2d_opts *opts);
#define tt_layer_max_pool2d(...) TT_CALL1(tt_layer_max_pool2d, __VA_ARGS__, )
#define tt_layer_avg_pool2d(...) TT_CALL1(tt_layer_avg_pool2d, __VA_ARGS__, )

// Layers with the common options only.
typedef struct tt_plain_opts {
    size_t opts_size;
    TT_LAYER_OPTIONS;
} tt_plain_opts;
typedef tt_plain_opts tt_layer_flatten_opts, tt_layer_global_avg_pool2d_opts,
    tt_layer_global_max_pool2d_opts, tt_layer_add_opts;
TT_API tt_tensor *tt_layer_flatten_with(tt_model *m, const tt_plain_opts *opts);
TT_API tt_tensor *tt_layer_global_avg_pool2d_with(tt_model *m, const tt_plain_opts *opts);
TT_API tt_tensor *tt_layer_global_max_pool2d_with(tt_model *m, const tt_plain_opts *opts);
// Adds all of .from; with one, adds it to the last layer: a residual connection.
TT_API tt_tensor *tt_layer_add_with(tt_model *m, const tt_plain_opts *opts);
#define tt_layer_flatten(...)           TT_CALL1(tt_layer_flatten, __VA_ARGS__, )
#define tt_layer_global_avg_pool2d(...) TT_CALL1(tt_layer_global_avg_pool2d, __VA_ARGS__, )
#define tt_layer_global_max_pool2d(...) TT_CALL1(tt_layer_global_max_pool2d, __VA_ARGS__, )
#define tt_layer_add(...)               TT_CALL1(tt_layer_add, __VA_ARGS__, )

typedef struct tt_layer_concat_opts {
    size_t opts_size;
    int axis; // axis to join along; 0 is the batch; default -1, the last
    TT_LAYER_OPTIONS;
} tt_layer_concat_opts;
TT_API tt_tensor *tt_layer_concat_with(tt_model *m, const tt_layer_concat_opts *opts);
#define tt_layer_concat(...) TT_CALL1(tt_layer_concat, __VA_ARGS__, )

typedef struct tt_layer_reshape_opts {
    size_t opts_size;
    tt_shape shape; // new shape of one record; one dimension may be -1: computed
    TT_LAYER_OPTIONS;
} tt_layer_reshape_opts;
TT_API tt_tensor *tt_layer_reshape_with(tt_model *m, const tt_layer_reshape_opts *opts);
#define tt_layer_reshape(...) TT_CALL1(tt_layer_reshape, __VA_ARGS__, )

typedef struct tt_layer_permute_opts {
    size_t opts_size;
    tt_ints order; // new order of the axes of one record, counted from 0
    TT_LAYER_OPTIONS;
} tt_layer_permute_opts;
TT_API tt_tensor *tt_layer_permute_with(tt_model *m, const tt_layer_permute_opts *opts);
#define tt_layer_permute(...) TT_CALL1(tt_layer_permute, __VA_ARGS__, )

typedef struct tt_layer_dropout_opts {
    size_t opts_size;
    double rate; // fraction of elements set to zero; 0 to 1, exclusive
    TT_LAYER_OPTIONS;
} tt_layer_dropout_opts;
TT_API tt_tensor *tt_layer_dropout_with(tt_model *m, const tt_layer_dropout_opts *opts);
#define tt_layer_dropout(...) TT_CALL1(tt_layer_dropout, __VA_ARGS__, )

typedef struct tt_layer_activation_opts {
    size_t opts_size;
    tt_act act; // required
    TT_LAYER_OPTIONS;
} tt_layer_activation_opts;
TT_API tt_tensor *tt_layer_activation_with(tt_model *m, const tt_layer_activation_opts *opts);
#define tt_layer_activation(...) TT_CALL1(tt_layer_activation, __VA_ARGS__, )

typedef struct tt_layer_batch_norm_opts {
    size_t opts_size;
    double eps;      // default 1e-5; TT_ZERO: 0
    double momentum; // fraction of the running statistics kept per step; default 0.9; TT_ZERO: 0
    tt_act act;
    bool zero_scale;  // the scale starts at 0, not 1: for the last norm of a residual block
    tt_over over;     // statistics over the whole batch (default) or over each lane, as needed
                      // with gradient accumulation and pipelines
    TT_LAYER_OPTIONS; // a second .from is added before the activation
} tt_layer_batch_norm_opts;
TT_API tt_tensor *tt_layer_batch_norm_with(tt_model *m, const tt_layer_batch_norm_opts *opts);
#define tt_layer_batch_norm(...) TT_CALL1(tt_layer_batch_norm, __VA_ARGS__, )

typedef struct tt_layer_layer_norm_opts {
    size_t opts_size;
    double eps;   // default 1e-5; TT_ZERO: 0
    bool no_bias; // layer_norm
    TT_LAYER_OPTIONS;
} tt_layer_layer_norm_opts;
typedef tt_layer_layer_norm_opts tt_layer_rms_norm_opts;
TT_API tt_tensor *tt_layer_layer_norm_with(tt_model *m, const tt_layer_layer_norm_opts *opts);
TT_API tt_tensor *tt_layer_rms_norm_with(tt_model *m, const tt_layer_layer_norm_opts *opts);
#define tt_layer_layer_norm(...) TT_CALL1(tt_layer_layer_norm, __VA_ARGS__, )
#define tt_layer_rms_norm(...)   TT_CALL1(tt_layer_rms_norm, __VA_ARGS__, )

typedef struct tt_layer_embedding_opts {
    size_t opts_size;
    int64_t vocab; // required
    int width;     // required
    tt_init init;  // default normal, standard deviation 0.02
    TT_LAYER_OPTIONS;
} tt_layer_embedding_opts;
TT_API tt_tensor *tt_layer_embedding_with(tt_model *m, const tt_layer_embedding_opts *opts);
#define tt_layer_embedding(...) TT_CALL1(tt_layer_embedding, __VA_ARGS__, )

typedef struct tt_layer_positional_opts {
    size_t opts_size;
    bool fixed;   // fixed sines and cosines; default: learned
    tt_init init; // default normal, standard deviation 0.02
    TT_LAYER_OPTIONS;
} tt_layer_positional_opts;
// Adds a position embedding to x [batch, t, c].
TT_API tt_tensor *tt_layer_positional_with(tt_model *m, const tt_layer_positional_opts *opts);
#define tt_layer_positional(...) TT_CALL1(tt_layer_positional, __VA_ARGS__, )

typedef struct tt_layer_attention_opts {
    size_t opts_size;
    int heads; // required
    int kv_heads;
    bool causal;
    bool no_bias;
    double dropout; // dropout rate of the output
    TT_LAYER_OPTIONS;
} tt_layer_attention_opts;
// Multi-head self-attention with its projections qkv and proj; input and output [batch, t, c].
TT_API tt_tensor *tt_layer_attention_with(tt_model *m, const tt_layer_attention_opts *opts);
#define tt_layer_attention(...) TT_CALL1(tt_layer_attention, __VA_ARGS__, )

typedef struct tt_layer_transformer_block_opts {
    size_t opts_size;
    int heads; // required
    int kv_heads;
    int hidden; // hidden units of the MLP; default 4 times the width
    bool no_causal;
    bool no_bias;
    bool rms;       // RMS norm instead of layer norm
    tt_act act;     // default TT_GELU
    double dropout; // dropout rate in both branches
    double depth;   // number of blocks: output weights are drawn with 0.02 / sqrt(2 depth); 1
    TT_LAYER_OPTIONS;
} tt_layer_transformer_block_opts;
// x + attn(norm(x)), then x + mlp(norm(x)).
TT_API tt_tensor *tt_layer_transformer_block_with(tt_model *m,
                                                  const tt_layer_transformer_block_opts *opts);
#define tt_layer_transformer_block(...) TT_CALL1(tt_layer_transformer_block, __VA_ARGS__, )

/*
 * A layer written by the user: fn builds it, once for inference and once for training, and makes
 * its weights with tt_layer_weight(). user must stay valid as long as the model.
 */
typedef struct tt_build tt_build;
typedef tt_tensor *(*tt_layer_fn)(void *user, tt_build *b, tt_tensor *const *in, int n_in);
typedef struct tt_layer_custom_opts {
    size_t opts_size;
    tt_layer_fn fn; // required
    void *user;
    TT_LAYER_OPTIONS;
} tt_layer_custom_opts;
TT_API tt_tensor *tt_layer_custom_with(tt_model *m, const tt_layer_custom_opts *opts);
#define tt_layer_custom(...) TT_CALL1(tt_layer_custom, __VA_ARGS__, )
TT_API tt_graph *tt_build_graph(const tt_build *b);
TT_API bool tt_build_is_training(const tt_build *b);
// A weight of the layer. With precision bf16 or f16 the training graph gets it cast to that type.
TT_API tt_tensor *tt_layer_weight(tt_build *b, const char *name, tt_shape shape, tt_init init);

// ---- predefined models: appended to a model as layers ----------------------------------------

typedef struct tt_layer_mlp_opts {
    size_t opts_size;
    tt_ints units; // outputs of each layer: {3, {256, 128, 10}}
    tt_act act;    // activation of all layers but the last; default TT_RELU
    double dropout;
    TT_LAYER_OPTIONS;
} tt_layer_mlp_opts;
typedef struct tt_layer_lenet_opts {
    size_t opts_size;
    int classes; // default 10
    TT_LAYER_OPTIONS;
} tt_layer_lenet_opts;
typedef struct tt_layer_resnet_opts {
    size_t opts_size;
    int depth;    // 18, 34 or 50; default 18
    int classes;  // default 10
    int width;    // channels of the first stage; default 64
    bool small;   // variant for 32 x 32 images: a 3x3 stem without pooling
    tt_over over; // statistics of the batch norms; default: over the whole batch
    TT_LAYER_OPTIONS;
} tt_layer_resnet_opts;
typedef struct tt_layer_gpt_opts {
    size_t opts_size;
    int layers, heads, width; // default 4, 4, 128
    int64_t vocab;            // required
    double dropout;
    bool no_bias, untied; // untied: the output does not share the embedding's weights
    TT_LAYER_OPTIONS;
} tt_layer_gpt_opts;
TT_API tt_tensor *tt_layer_mlp_with(tt_model *m, const tt_layer_mlp_opts *opts);
TT_API tt_tensor *tt_layer_lenet_with(tt_model *m, const tt_layer_lenet_opts *opts);
TT_API tt_tensor *tt_layer_resnet_with(tt_model *m, const tt_layer_resnet_opts *opts);
TT_API tt_tensor *tt_layer_gpt_with(tt_model *m, const tt_layer_gpt_opts *opts);
#define tt_layer_mlp(...)    TT_CALL1(tt_layer_mlp, __VA_ARGS__, )
#define tt_layer_lenet(...)  TT_CALL1(tt_layer_lenet, __VA_ARGS__, )
#define tt_layer_resnet(...) TT_CALL1(tt_layer_resnet, __VA_ARGS__, )
#define tt_layer_gpt(...)    TT_CALL1(tt_layer_gpt, __VA_ARGS__, )

// ---- inspection --------------------------------------------------------------------------------

TT_API tt_graph *tt_model_get_graph(tt_model *m); // for inference
// Layers, output shapes, parameters and bytes, as text or JSON; free with tt_string_free().
TT_API char *tt_summary(tt_model *m, bool json);
TT_API int64_t tt_model_parameters(const tt_model *m); // trainable and frozen

typedef struct tt_weight_info {
    const char *name; // valid until the model is freed
    tt_dtype dtype;
    tt_shape shape;
    bool trains; // false: running statistics
} tt_weight_info;
// Writes at most max of them, each of size bytes; returns the number of all.
TT_API int tt_model_weights_sized(const tt_model *m, tt_weight_info *out, int max, size_t size);
#define tt_model_weights(m, out, max) \
    tt_model_weights_sized((m), (out), (max), sizeof(tt_weight_info))

#ifdef __cplusplus
}
#endif
#endif
