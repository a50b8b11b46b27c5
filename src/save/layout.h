/*
 * layout.h - how PyTorch lays out the weights that Tutti has in another order.
 *
 * Matrices are [in, out] here and [out, in] there, kernels [height, width, in, out] and [out, in,
 * height, width]; what follows a flattened picture counts its channels last here and first there.
 */
#ifndef TUTTI_SAVE_LAYOUT_H
#define TUTTI_SAVE_LAYOUT_H

#include "model/model.h"

// A weight in PyTorch's layout: seen as view, its axes go to ours in the order of perm.
typedef struct tti_form {
    tt_shape file; // as the file has it
    tt_shape view; // the same elements, axes split
    int perm[TT_MAX_RANK];
} tti_form;

// False: the weight is the same in both.
bool tti_torch_form(tt_model *m, const tti_weight *w, tti_form *out);
// Elements of size bytes from the file's order to ours, or back.
void tti_form_take(const tti_form *f, size_t size, const void *file, void *ours);
void tti_form_give(const tti_form *f, size_t size, const void *ours, void *file);

/*
 * The name that a tensor of a PyTorch file has here: "bn.running_mean" is "bn.mean". False: Tutti
 * has no use for it (num_batches_tracked).
 */
bool tti_torch_name(const char *name, char *out, size_t room);
// The other way, for a weight of a layer of that kind.
void tti_torch_name_back(const tti_layer_def *def, const char *name, char *out, size_t room);
bool tti_is_torch_name(const char *name); // does only PyTorch have such a one?

// ---- name maps that ship ---------------------------------------------------------------------

#define TTI_GPT2            "huggingface_gpt2"
#define TTI_GPT2_SIGN       "h.0.attn.c_attn.weight, transformer.h.0.attn.c_attn.weight"
#define TTI_GPT2_NOT_NEEDED "h.*.attn.bias, h.*.attn.masked_bias, lm_head.weight"
// [in, out] there, too
#define TTI_CONV1D "*.c_attn.weight, *.c_proj.weight, *.c_fc.weight"

// The rules of a map by its name; map itself if it is none's (tti_rename_check() looks at it).
const char *tti_map_rules(const char *map);

#endif
