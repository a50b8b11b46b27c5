/*
 * fitting.h - which tensor of a file goes into which variable of a model.
 */
#ifndef TUTTI_SAVE_FITTING_H
#define TUTTI_SAVE_FITTING_H

#include "model/model.h"
#include "save/checkpoint.h"
#include "save/layout.h"

// All weights' forms, in the order of the slots; free with tti_free().
tt_status tti_model_forms(tt_model *m, tti_form **out) TTI_CHECKED;

// A variable of a model: a weight, or of the training graph alone.
typedef struct tti_slot {
    const char *name;
    tt_session *session;
    tt_tensor *var;
} tti_slot;
// All of them, weights first, the others by name; free with tti_free().
tt_status tti_model_slots(tt_model *m, tti_slot **out, int64_t *n_weights, int64_t *n) TTI_CHECKED;

typedef struct tti_fitting {
    const char *file; // for messages
    const tti_slot *slots;
    int64_t n_slots;
    const tti_named *tensors;
    int64_t n_tensors;
    const char *const *types; // of tensors that Tutti has no type for; NULL: there are none
    bool partial;
    const char *map, *only;
    const tti_form *forms;   // of each slot in PyTorch's layout, rank 0: the same; NULL: all are
    tt_weight_layout layout; // asked for
    tti_origin origin;       // what the file says of itself
    bool is_torch;           // out: forms are used
    int64_t *found;          // out: for each slot its tensor, or -1
} tti_fitting;
/*
 * Which layout the file has is asked for, or known from its metadata or names, or else must follow
 * from the shapes of its matrices, all alike; where it does not, that is an error.
 *
 * Finds the tensor of every slot and compares names, types and shapes; nothing is changed. A type
 * may be narrower than the variable's if every value fits: bf16 and f16 go into f32 and f64.
 */
tt_status tti_fitting_find(tt_ctx *ctx, tti_fitting *f) TTI_CHECKED;
// Copies what was found into the variables.
tt_status tti_fitting_apply(tt_ctx *ctx, const tti_fitting *f) TTI_CHECKED;

#endif
