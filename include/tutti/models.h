/*
 * models.h - multi-head attention with all its options, expressions as layers, and whole models as
 * one call: each appends the layers of a published model, whose weights have the original's names.
 *
 * Images are [batch, height, width, channels], sequences [batch, time, channels], tokens i32
 * [batch, time].
 */
#ifndef TUTTI_MODELS_H
#define TUTTI_MODELS_H

#include <tutti/layers.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_layer_multi_head_attention_opts {
    size_t opts_size;
    int heads;      // required
    int kv_heads;   // heads of keys and values; default heads; 1: multi-query attention
    int size;       // width of a head; default: channels / heads
    int units;      // width of the output; default: that of the queries
    bool causal;    // query i attends to keys 0 to i
    int window;     // attend to keys less than this far away only; default: to all
    bool alibi;     // subtract slope |i - j| from scores, a slope for each head
    bool rotary;    // rotate queries and keys by their position
    double theta;   // base of the rotary frequencies; default 10000
    bool no_bias;   //
    double dropout; // of the output
    tt_init init;   // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_multi_head_attention_opts;
/*
 * .from is {x}, {queries, keys} or {queries, keys, mask}. A mask is the length of each record's
 * keys (i32 [batch]), which keys there are ([batch, tk], 0: none), or which keys a query attends to
 * ([batch, tq, tk]). A query that attends to no key gives the bias of the output. Weights are
 * "q_proj", "k_proj", "v_proj" and "out_proj".
 */
TT_API tt_tensor *
tt_layer_multi_head_attention_with(tt_model *m, const tt_layer_multi_head_attention_opts *opts);
#define tt_layer_multi_head_attention(...) TT_CALL1(tt_layer_multi_head_attention, __VA_ARGS__, )

typedef struct tt_layer_lambda_opts {
    size_t opts_size;
    char expr[128]; // "x * sigmoid(1.7 * x)"; required
    TT_LAYER_OPTIONS;
} tt_layer_lambda_opts;
/*
 * An expression of x, numbers, + - * / ^, brackets and functions: those of TT_UNARY_LIST, softmax,
 * log_softmax, stop_gradient; sum, mean, max, min, logsumexp over the last axis, which stays; pow,
 * minimum, maximum; less, greater, equal (0 or 1); where(condition, a, b). Further inputs are x2,
 * x3, ...
 */
TT_API tt_tensor *tt_layer_lambda_with(tt_model *m, const tt_layer_lambda_opts *opts);
#define tt_layer_lambda(...) TT_CALL1(tt_layer_lambda, __VA_ARGS__, )

typedef struct tt_layer_llama_opts {
    size_t opts_size;
    int layers, heads; // default 4, 4
    int kv_heads;      // default: heads
    int width;         // default 128
    int hidden;        // of the feed-forward layers; default: 8/3 width, a multiple of 32
    int64_t vocab;     // required
    double theta;      // base of the rotary frequencies; default 10000
    double eps;        // of the RMS norms; default 1e-6; TT_ZERO: 0
    int window;        // sliding window of attention (Mistral); default: none
    bool tied;         // the output shares the embedding's weights
    TT_LAYER_OPTIONS;
} tt_layer_llama_opts;
// LLaMA: tokens to logits [batch, time, vocab]; names as in Hugging Face's LlamaForCausalLM.
TT_API tt_tensor *tt_layer_llama_with(tt_model *m, const tt_layer_llama_opts *opts);
#define tt_layer_llama(...) TT_CALL1(tt_layer_llama, __VA_ARGS__, )

typedef struct tt_layer_bert_opts {
    size_t opts_size;
    int layers, heads, width; // default 4, 4, 128
    int hidden;               // of the feed-forward layers; default: 4 times the width
    int64_t vocab;            // required
    int types;                // kinds of segments; default 2
    int classes;              // > 0: classes of the text; default: logits of every token
    double dropout;           // default 0
    TT_LAYER_OPTIONS;
} tt_layer_bert_opts;
/*
 * BERT: .from is {tokens}, {tokens, mask} or {tokens, mask, segments}; a mask is as of
 * multi_head_attention. Names as in Hugging Face's BertForMaskedLM, or with classes
 * BertForSequenceClassification.
 */
TT_API tt_tensor *tt_layer_bert_with(tt_model *m, const tt_layer_bert_opts *opts);
#define tt_layer_bert(...) TT_CALL1(tt_layer_bert, __VA_ARGS__, )

typedef struct tt_layer_vit_opts {
    size_t opts_size;
    int patch;                // side of a patch; default 16
    int layers, heads, width; // default 12, 12, 768
    int hidden;               // of the feed-forward layers; default: 4 times the width
    int classes;              // default 10
    double dropout;           // default 0
    TT_LAYER_OPTIONS;
} tt_layer_vit_opts;
// Vision transformer: images to classes; names as in Hugging Face's ViTForImageClassification.
TT_API tt_tensor *tt_layer_vit_with(tt_model *m, const tt_layer_vit_opts *opts);
#define tt_layer_vit(...) TT_CALL1(tt_layer_vit, __VA_ARGS__, )

typedef struct tt_layer_mobilenet_v2_opts {
    size_t opts_size;
    int classes;    // default 10
    double width;   // factor on the channels; default 1
    bool small;     // for 32 x 32 images: the first two strides are 1
    double dropout; // before the last layer; default 0.2; TT_ZERO: 0
    tt_over over;   // rows of batch norm's statistics
    TT_LAYER_OPTIONS;
} tt_layer_mobilenet_v2_opts;
// MobileNet V2: images to classes; names as in torchvision.
TT_API tt_tensor *tt_layer_mobilenet_v2_with(tt_model *m, const tt_layer_mobilenet_v2_opts *opts);
#define tt_layer_mobilenet_v2(...) TT_CALL1(tt_layer_mobilenet_v2, __VA_ARGS__, )

typedef struct tt_layer_unet_opts {
    size_t opts_size;
    int classes;  // output channels; default 2
    int width;    // channels of the first level; doubled at each next; default 64
    int depth;    // times the size is halved; default 4
    tt_over over; // rows of batch norm's statistics
    TT_LAYER_OPTIONS;
} tt_layer_unet_opts;
// U-Net: images to a class for each pixel, [batch, height, width, classes].
TT_API tt_tensor *tt_layer_unet_with(tt_model *m, const tt_layer_unet_opts *opts);
#define tt_layer_unet(...) TT_CALL1(tt_layer_unet, __VA_ARGS__, )

typedef struct tt_layer_lstm_lm_opts {
    size_t opts_size;
    int layers;       // default 2
    int width, units; // of the embedding and of a step; default 128 both
    int64_t vocab;    // required
    double dropout;   // after the embedding and each layer; default 0
    bool tied;        // the output shares the embedding's weights; width must equal units
    TT_LAYER_OPTIONS;
} tt_layer_lstm_lm_opts;
// A language model of LSTM layers: tokens to logits [batch, time, vocab].
TT_API tt_tensor *tt_layer_lstm_lm_with(tt_model *m, const tt_layer_lstm_lm_opts *opts);
#define tt_layer_lstm_lm(...) TT_CALL1(tt_layer_lstm_lm, __VA_ARGS__, )

typedef struct tt_layer_tabular_opts {
    size_t opts_size;
    tt_ints categories; // how many values each of the first columns has; the others are numbers
    tt_ints units;      // of the hidden layers; default {200, 100}
    int classes;        // number of outputs; default 1
    double dropout;     // after each hidden layer; default 0
    bool no_batch_norm; // default: batch norm of the numbers and after each hidden layer
    tt_over over;       // rows of batch norm's statistics
    TT_LAYER_OPTIONS;
} tt_layer_tabular_opts;
/*
 * A network for tables [batch, columns]: each column of categories, whole numbers from 0, has an
 * embedding of min(600, round(1.6 n^0.56)) numbers, which join the other columns.
 */
TT_API tt_tensor *tt_layer_tabular_with(tt_model *m, const tt_layer_tabular_opts *opts);
#define tt_layer_tabular(...) TT_CALL1(tt_layer_tabular, __VA_ARGS__, )

typedef struct tt_layer_autoencoder_opts {
    size_t opts_size;
    tt_ints units; // of the encoder's layers, the last is the code; the decoder mirrors them
    tt_act act;    // of all layers but code and output; default TT_RELU
    tt_act last;   // of the output; default TT_LINEAR
    TT_LAYER_OPTIONS;
} tt_layer_autoencoder_opts;
// Dense layers to a code and back to the shape of the input. The code is layer "encoder.<last>".
TT_API tt_tensor *tt_layer_autoencoder_with(tt_model *m, const tt_layer_autoencoder_opts *opts);
#define tt_layer_autoencoder(...) TT_CALL1(tt_layer_autoencoder, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
