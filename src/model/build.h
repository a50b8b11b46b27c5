/*
 * build.h - appending layers and taking them back: what model.c and layer.c share.
 */
#ifndef TUTTI_MODEL_BUILD_H
#define TUTTI_MODEL_BUILD_H

#include "model/model.h"

#define TTI_LAYER_NAME 100 // longest name of a layer with its prefix

// "dense_2: " in front of every message, behind what stood there before.
typedef struct tti_where {
    const char *outer;
    char text[2 * TTI_NAME_MAX];
} tti_where;
void tti_where_push(tti_where *w, tt_ctx *ctx, const char *name);
void tti_where_pop(const tti_where *w, tt_ctx *ctx);

// How far a model had come; dropping frees what was appended since.
typedef struct tti_mark {
    int64_t n_nodes, n_layers, n_weights;
    int n_inputs;
} tti_mark;
tti_mark tti_model_mark(const tt_model *m);
void tti_model_drop(tt_model *m, tti_mark mark);

// Fails if the model is compiled, so that nothing can be appended any more.
tt_status tti_model_open(const tt_model *m, const char *what) TTI_CHECKED;

tt_status tti_name_check(tt_ctx *ctx, const char *what, const char *name) TTI_CHECKED;
tti_layer *tti_layer_named(const tt_model *m, const char *name); // NULL: none
// The full name of a layer to be appended: prefix and name, or "<kind>_<n>" without a name.
tt_status tti_layer_name(tt_model *m, const char *kind, const char *name,
                         char out[TTI_NAME_MAX]) TTI_CHECKED;
// A record at the end of the list, with a copy of opts; NULL: no memory.
tti_layer *tti_layer_append(tt_model *m, const tti_layer_def *def, const char *name,
                            const void *opts);
// Builds b->layer into b->graph inside its scope and its pin; NULL: recorded.
tt_tensor *tti_layer_build(tt_build *b, tt_tensor *const *in);
// Is t the output of a layer of this model?
bool tti_is_output(const tt_model *m, const tt_tensor *t);

#endif
