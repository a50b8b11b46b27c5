/*
 * use.h (internal) - what a model knows of the data it was trained on and of its losses: noted by
 * tt_compile() and tt_fit() as texts, kept in its card, read here.
 */
#ifndef TUTTI_TRAIN_USE_H
#define TUTTI_TRAIN_USE_H

#include "data/describe.h"
#include "model/model.h"
#include <tutti/use.h>

// Notes losses and metrics, after compiling; batch and accumulate of a fit, 0 before one.
tt_status tti_note_train(tt_model *m, int64_t batch, int64_t accumulate) TTI_CHECKED;
tt_status tti_note_data(tt_model *m, const tt_data *d) TTI_CHECKED;

typedef struct tti_use_output {
    tt_meaning meaning;
    bool is_finished;    // it is probabilities already
    const json_t *words; // of classes; NULL: numbers
    int target;          // the described field that its loss compares with; -1: not known
    int64_t n_undo;      // channels; 0: nothing is undone
    float *mean, *scale;
} tti_use_output;

struct tti_use {
    json_t *data, *train; // NULL: not known
    int n_fields;
    tti_described_field fields[TT_MAX_FIELDS]; // of the data, before transforms
    int input_field[TTI_MAX_INPUTS];           // by input; -1: not known
    int n_outputs;
    tti_use_output outputs[TTI_MAX_INPUTS];
};
// Reads the notes, once; NULL: recorded.
const tti_use *tti_use_get(tt_model *m);

// What tt_compile() gets of the notes; texts are borrowed from the model's use.
// losses: what out points to.
tt_status tti_use_compile_opts(tt_model *m, tt_compile_opts *out,
                               tt_loss losses[TT_MAX_LOSSES]) TTI_CHECKED;
// The model that a card describes, its notes too; owned by ctx, weights are not loaded.
tt_status tti_model_of_card(tt_ctx *ctx, const char *file, const json_t *card,
                            tt_model **out) TTI_CHECKED;

#endif
