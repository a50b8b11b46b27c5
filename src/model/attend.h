/*
 * attend.h - products and attention inside a layer, with names of weights that the layer chooses;
 * and the kinds that only whole models make.
 */
#ifndef TUTTI_MODEL_ATTEND_H
#define TUTTI_MODEL_ATTEND_H

#include "model/layer.h"

// act(x W + b) with the weights "<name>.weight" and "<name>.bias".
typedef struct tti_linear {
    const char *name;
    int64_t units;
    tt_act act;
    bool no_bias;
    tt_init init;
} tti_linear;
tt_tensor *tti_linear_in(tt_build *b, tt_tensor *x, const tti_linear *l);

// Attention with its four products; theta counts if rotary.
typedef struct tti_attend {
    const char *const *names; // of the products of queries, keys, values and output
    int heads, kv_heads;
    int64_t size, units, window; // width of a head; of the output; 0: from x
    double theta;
    bool causal, alibi, rotary, no_bias;
    tt_init init, last; // of the first three products, and of the output's
} tti_attend;
// x and keys are [batch, time, channels]; a mask may be NULL, or anything that tti_attend_mask()
// makes a bool [batch, tq, tk] of.
tt_tensor *tti_attend_in(tt_build *b, tt_tensor *x, tt_tensor *keys, tt_tensor *mask,
                         const tti_attend *a);
tt_tensor *tti_attend_mask(tt_build *b, tt_tensor *m, int64_t tq, int64_t tk);

// Kinds that no job names; a stored model does (tti_layer_find_built()).
extern const tti_layer_def tti_kind_llama_block, tti_kind_bert_block, tti_kind_bert_types,
    tti_kind_vit_block, tti_kind_vit_tokens, tti_kind_add_bias, tti_kind_column_embedding;

#endif
