/*
 * layout.c - forms of weights in PyTorch's files, and names of its batch norms.
 */
#include "save/layout.h"
#include <stdio.h>
#include <string.h>

// ---- forms -----------------------------------------------------------------------------------

static const tti_layer *maker(const tt_model *m, const tt_tensor *t)
{
    for (int64_t i = m->n_layers - 1; i >= 0; i--)
        if (m->layers[i]->out == t)
            return m->layers[i];
    return NULL;
}

// Is x [batch, features], its features a picture that was flattened? hwc is what it was.
static bool is_flat(const tt_model *m, const tt_tensor *x, int64_t hwc[3])
{
    for (const tti_layer *l = maker(m, x); l != NULL && l->def != NULL && x->shape.rank == 2;
         l = maker(m, x)) {
        const tt_tensor *in = l->in[0];
        if (in->shape.rank == 4 && l->n_weights == 0) {
            memcpy(hwc, in->shape.dim + 1, 3 * sizeof(*hwc));
            return hwc[0] * hwc[1] * hwc[2] == x->shape.dim[1] && hwc[0] * hwc[1] > 1;
        }
        if (l->def->torch == TTI_TORCH_MATRIX || in->shape.rank != 2 ||
            in->shape.dim[1] != x->shape.dim[1])
            return false;
        x = in;
    }
    return false;
}

static void matrix(const tt_model *m, const tti_weight *w, tti_form *f)
{
    const int64_t *d = w->var->shape.dim;
    int64_t hwc[3];
    f->file = TT_SHAPE(d[1], d[0]);
    f->view = f->file;
    f->perm[0] = 1;
    f->perm[1] = 0;
    if (!is_flat(m, w->layer->in[0], hwc) || hwc[0] * hwc[1] * hwc[2] != d[0])
        return;
    f->view = TT_SHAPE(d[1], hwc[2], hwc[0], hwc[1]);
    memcpy(f->perm, (int[]){2, 3, 1, 0}, 4 * sizeof(int));
}

bool tti_torch_form(tt_model *m, const tti_weight *w, tti_form *f)
{
    const tti_layer_def *def = w->layer->def;
    const tt_shape *s = &w->var->shape;
    int64_t hwc[3];
    memset(f, 0, sizeof(*f));
    if (def == NULL)
        return false;
    if (def->torch == TTI_TORCH_MATRIX && s->rank == 2) {
        matrix(m, w, f);
        return true;
    }
    if (def->torch == TTI_TORCH_KERNEL && s->rank == 4) {
        f->file = f->view = TT_SHAPE(s->dim[3], s->dim[2], s->dim[0], s->dim[1]);
        memcpy(f->perm, (int[]){2, 3, 1, 0}, 4 * sizeof(int));
        return true;
    }
    if (def->torch == TTI_TORCH_KERNEL && s->rank == 3) {
        f->file = f->view = TT_SHAPE(s->dim[2], s->dim[1], s->dim[0]);
        memcpy(f->perm, (int[]){2, 1, 0}, 3 * sizeof(int));
        return true;
    }
    if (def->torch == TTI_TORCH_DEPTHWISE && s->rank == 4) {
        f->file = TT_SHAPE(s->dim[2] * s->dim[3], 1, s->dim[0], s->dim[1]);
        f->view = TT_SHAPE(s->dim[2], s->dim[3], s->dim[0], s->dim[1]);
        memcpy(f->perm, (int[]){2, 3, 0, 1}, 4 * sizeof(int));
        return true;
    }
    if (def->torch == TTI_TORCH_FEATURES && s->rank == 1 && is_flat(m, w->layer->in[0], hwc)) {
        f->file = *s;
        f->view = TT_SHAPE(hwc[2], hwc[0], hwc[1]);
        memcpy(f->perm, (int[]){1, 2, 0}, 3 * sizeof(int));
        return true;
    }
    return false;
}

// Walks ours in order; each element's place in the file follows by strides.
static void move(const tti_form *f, size_t size, const char *from, char *to, bool take)
{
    int rank = f->view.rank;
    int64_t stride[TT_MAX_RANK] = {0}, dim[TT_MAX_RANK] = {0}, step[TT_MAX_RANK] = {0},
            at[TT_MAX_RANK] = {0}, n = tt_shape_count(&f->view), place = 0;
    for (int64_t k = rank - 1, s = 1; k >= 0; s *= f->view.dim[k--])
        stride[k] = s;
    for (int k = 0; k < rank; k++) {
        dim[k] = f->view.dim[f->perm[k]];
        step[k] = stride[f->perm[k]];
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + (size_t)(take ? i : place) * size, from + (size_t)(take ? place : i) * size,
               size);
        for (int k = rank - 1; k >= 0; k--) {
            place += step[k];
            if (++at[k] < dim[k])
                break;
            place -= step[k] * dim[k];
            at[k] = 0;
        }
    }
}

void tti_form_take(const tti_form *f, size_t size, const void *file, void *ours)
{
    move(f, size, file, ours, true);
}

void tti_form_give(const tti_form *f, size_t size, const void *ours, void *file)
{
    move(f, size, ours, file, false);
}

// ---- names -----------------------------------------------------------------------------------

static const char gpt2_rules[] =
    "wte.weight=embed.weight, wpe.weight=pos.weight, ln_f.*=norm.*, "
    "h.*.ln_1.weight=block.*.norm1.weight, h.*.ln_1.bias=block.*.norm1.bias, "
    "h.*.ln_2.weight=block.*.norm2.weight, h.*.ln_2.bias=block.*.norm2.bias, "
    "h.*.attn.c_attn.weight=block.*.attn.qkv.weight, h.*.attn.c_attn.bias=block.*.attn.qkv.bias, "
    "h.*.attn.c_proj.weight=block.*.attn.proj.weight, h.*.attn.c_proj.bias=block.*.attn.proj.bias, "
    "h.*.mlp.c_fc.weight=block.*.mlp.fc.weight, h.*.mlp.c_fc.bias=block.*.mlp.fc.bias, "
    "h.*.mlp.c_proj.weight=block.*.mlp.proj.weight, h.*.mlp.c_proj.bias=block.*.mlp.proj.bias";

const char *tti_map_rules(const char *map)
{
    return map != NULL && strcmp(map, TTI_GPT2) == 0 ? gpt2_rules : map;
}

static const char *ending(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0 ? name + n - k : NULL;
}

bool tti_is_torch_name(const char *name)
{
    return ending(name, ".running_mean") != NULL || ending(name, ".running_var") != NULL ||
           ending(name, ".num_batches_tracked") != NULL;
}

bool tti_torch_name(const char *name, char *out, size_t room)
{
    const char *mean = ending(name, ".running_mean"), *var = ending(name, ".running_var");
    const char *at = mean != NULL ? mean : var;
    if (ending(name, ".num_batches_tracked") != NULL)
        return false;
    if (at == NULL)
        snprintf(out, room, "%s", name);
    else
        snprintf(out, room, "%.*s%s", (int)(at - name), name, mean != NULL ? ".mean" : ".var");
    return true;
}

void tti_torch_name_back(const tti_layer_def *def, const char *name, char *out, size_t room)
{
    const char *mean = ending(name, ".mean"), *var = ending(name, ".var");
    const char *at = mean != NULL ? mean : var;
    if (at == NULL || def == NULL || def->torch != TTI_TORCH_FEATURES)
        snprintf(out, room, "%s", name);
    else
        snprintf(out, room, "%.*s%s", (int)(at - name), name,
                 mean != NULL ? ".running_mean" : ".running_var");
}
