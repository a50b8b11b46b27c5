/*
 * fitting.c - matches tensors with variables by name. Everything is compared before anything is
 * written, so a file of another model leaves a model as it was.
 */
#include "save/fitting.h"
#include "save/rename.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 4 // names listed in a message

typedef struct renamed {
    char *name;
    int64_t tensor;
} renamed;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const renamed *)a)->name, ((const renamed *)b)->name);
}

static void free_names(tt_ctx *ctx, renamed *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        tti_free(ctx, list[i].name);
    tti_free(ctx, list);
}

static bool has_slot(const tti_fitting *f, const char *name)
{
    for (int64_t i = 0; i < f->n_slots; i++)
        if (strcmp(f->slots[i].name, name) == 0)
            return true;
    return false;
}

// A tensor's new name; "" for one that another program keeps and Tutti does not need.
static tt_status new_name(tt_ctx *ctx, const tti_fitting *f, const char *rules, const char *old,
                          char out[TTI_RENAME_MAX])
{
    char name[TTI_RENAME_MAX];
    bool is_gpt2 = rules != f->map;
    if (is_gpt2 && strncmp(old, "transformer.", 12) == 0)
        old += 12;
    if (is_gpt2 && strcmp(old, "lm_head.weight") == 0 && has_slot(f, "head.weight")) {
        snprintf(out, TTI_RENAME_MAX, "head.weight"); // not the embedding's
        return TT_OK;
    }
    TT_TRY(tti_rename(ctx, rules, old, name));
    bool needed = !f->is_torch || tti_torch_name(name, out, TTI_RENAME_MAX);
    if (!f->is_torch)
        memcpy(out, name, sizeof(name));
    if (!needed || (is_gpt2 && tti_match(TTI_GPT2_NOT_NEEDED, old)))
        out[0] = '\0';
    return TT_OK;
}

// The tensors by their new names, sorted.
static tt_status rename_all(tt_ctx *ctx, const tti_fitting *f, renamed *list, bool *known)
{
    char name[TTI_RENAME_MAX];
    const char *rules = tti_map_rules(f->map);
    TT_TRY(tti_rename_check(ctx, rules));
    for (int64_t i = 0; i < f->n_tensors; i++) {
        TT_TRY(new_name(ctx, f, rules, f->tensors[i].name, name));
        known[i] = name[0] == '\0';
        list[i] = (renamed){tti_strdup(ctx, known[i] ? f->tensors[i].name : name), i};
        if (list[i].name == NULL)
            return TT_ENOMEM;
    }
    if (f->n_tensors > 1)
        qsort(list, (size_t)f->n_tensors, sizeof(*list), by_name);
    for (int64_t i = 1; i < f->n_tensors; i++)
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: '%s' and '%s' both become '%s'", f->file,
                           f->tensors[list[i - 1].tensor].name, f->tensors[list[i].tensor].name,
                           list[i].name);
    return TT_OK;
}

// Up to SHOWN names, and how many more.
typedef struct some {
    tti_text text;
    int64_t n;
} some;

static void note(some *s, const char *name)
{
    if (s->n++ < SHOWN)
        tti_text_add(&s->text, "%s'%.100s'", s->n > 1 ? ", " : "", name);
}

static tt_status tell(tt_ctx *ctx, const tti_fitting *f, some *missing, some *unknown)
{
    for (int i = 0; i < 2; i++) {
        some *s = i == 0 ? missing : unknown;
        if (s->n > SHOWN)
            tti_text_add(&s->text, " and %lld more", (long long)(s->n - SHOWN));
    }
    const char *a = missing->text.s, *b = unknown->text.s;
    if (missing->n > 0 && unknown->n > 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s does not fit the model: missing in the file: %s; not in the model: %s",
                       f->file, a == NULL ? "?" : a, b == NULL ? "?" : b);
    if (missing->n > 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s does not fit the model: missing in the file: %s",
                       f->file, a == NULL ? "?" : a);
    return TT_FAIL(ctx, TT_EINVAL, "%s does not fit the model: not in the model: %s", f->file,
                   b == NULL ? "?" : b);
}

static bool is_wanted(const tti_fitting *f, const tti_slot *slot)
{
    return f->only == NULL || f->only[0] == '\0' || tti_match(f->only, slot->name);
}

// Does every value of type a have one in type b?
static bool widens(tt_dtype a, tt_dtype b)
{
    bool half = a == TT_BF16 || a == TT_F16;
    return a == b || (half && (b == TT_F32 || b == TT_F64)) || (a == TT_F32 && b == TT_F64);
}

// ---- layouts ---------------------------------------------------------------------------------

static bool same_shape(const tt_shape *a, const tt_shape *b)
{
    bool same = a->rank == b->rank;
    for (int k = 0; k < a->rank && same; k++)
        same = a->dim[k] == b->dim[k];
    return same;
}

// The form of slot i that the file should have; NULL: as the model has it.
static const tti_form *form_of(const tti_fitting *f, int64_t i)
{
    bool formed = f->forms != NULL && f->forms[i].view.rank > 0;
    const char *name = f->found[i] >= 0 ? f->tensors[f->found[i]].name : "";
    if (!formed || !f->is_torch || (tti_map_rules(f->map) != f->map && tti_match(TTI_CONV1D, name)))
        return NULL;
    return &f->forms[i];
}

// By what is asked for, what the file says, and its names. False: only shapes can tell.
static bool know_layout(tt_ctx *ctx, tti_fitting *f)
{
    const char *why = NULL;
    f->is_torch = f->layout == TT_WEIGHTS_TORCH;
    if (f->layout != TT_WEIGHTS_AUTO || f->forms == NULL)
        return true;
    if (f->map == NULL || f->map[0] == '\0')
        for (int64_t i = 0; i < f->n_tensors; i++)
            if (tti_match(TTI_GPT2_SIGN, f->tensors[i].name)) {
                f->map = TTI_GPT2;
                TT_LOG(ctx, TT_WARN, "%s: names are those of Hugging Face's GPT-2 (map: %s)",
                       f->file, TTI_GPT2);
                break;
            }
    if (tti_map_rules(f->map) != f->map)
        return f->is_torch = true;
    if (f->origin == TTI_FROM_TUTTI)
        return true;
    for (int64_t i = 0; i < f->n_tensors; i++)
        if (tti_is_torch_name(f->tensors[i].name))
            why = "names";
    if (f->origin == TTI_FROM_TORCH)
        why = "metadata";
    if (why != NULL)
        TT_LOG(
            ctx, TT_WARN,
            "%s: has PyTorch's layout, by its %s: weights are transposed (as with layout: torch)",
            f->file, why);
    f->is_torch = why != NULL;
    return why != NULL;
}

/*
 * A file has one layout: a matrix that fits in one orientation alone says it for all. One that fits
 * in both says nothing, and loading it by chance would be wrong without a word.
 */
static tt_status layout_by_shapes(tt_ctx *ctx, tti_fitting *f)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    const tti_named *ours = NULL, *torch = NULL, *both = NULL;
    for (int64_t i = 0; i < f->n_slots; i++) {
        if (f->found[i] < 0 || f->forms[i].view.rank == 0)
            continue;
        const tti_named *x = &f->tensors[f->found[i]];
        bool is_ours = same_shape(&x->shape, &f->slots[i].var->shape);
        bool is_torch = same_shape(&x->shape, &f->forms[i].file);
        const tti_named **to = is_ours && is_torch ? &both : is_ours ? &ours : &torch;
        if ((is_ours || is_torch) && *to == NULL)
            *to = x;
    }
    if (ours != NULL && torch != NULL)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "%s: '%s' is %s, Tutti's layout, but '%s' is %s, PyTorch's layout: load "
                       "them separately, with only and layout",
                       f->file, ours->name, tt_shape_text(&ours->shape, a), torch->name,
                       tt_shape_text(&torch->shape, b));
    if (both != NULL && ours == NULL && torch == NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: '%s' is %s: the file does not say whether it is [in, out] (Tutti) or "
                       "[out, in] (PyTorch); set layout: torch or layout: tutti (in C .layout)",
                       f->file, both->name, tt_shape_text(&both->shape, a));
    f->is_torch = torch != NULL;
    if (f->is_torch)
        TT_LOG(ctx, TT_WARN, "%s: has PyTorch's layout, by its shapes: weights are transposed",
               f->file);
    return TT_OK;
}

// ---- pairs -----------------------------------------------------------------------------------

static tt_status check_pair(tt_ctx *ctx, const tti_fitting *f, int64_t i)
{
    char has[TT_SHAPE_TEXT], wants[TT_SHAPE_TEXT], form[TT_SHAPE_TEXT];
    int64_t t = f->found[i];
    const tti_form *other = form_of(f, i);
    const tti_named *x = &f->tensors[t];
    const tt_tensor *v = f->slots[i].var;
    if ((unsigned)x->dtype >= TT_N_DTYPES)
        return TT_FAIL(ctx, TT_EDTYPE, "%s: '%s' has type %s, or more axes than Tutti supports",
                       f->file, x->name, f->types != NULL ? f->types[t] : "?");
    if (other != NULL && !same_shape(&x->shape, &other->file))
        return TT_FAIL(
            ctx, TT_ESHAPE, "%s: '%s' is %s %s but PyTorch's layout of the model's %s is %s%s",
            f->file, x->name, tt_dtype_name(x->dtype), tt_shape_text(&x->shape, has),
            tt_shape_text(&v->shape, wants), tt_shape_text(&other->file, form),
            same_shape(&x->shape, &v->shape) ? "; layout: tutti loads it unchanged" : "");
    bool is_torch =
        f->forms != NULL && f->forms[i].view.rank > 0 && same_shape(&x->shape, &f->forms[i].file);
    if (other == NULL && !same_shape(&x->shape, &v->shape))
        return TT_FAIL(ctx, TT_ESHAPE, "%s: '%s' is %s %s but the model's is %s%s", f->file,
                       x->name, tt_dtype_name(x->dtype), tt_shape_text(&x->shape, has),
                       tt_shape_text(&v->shape, wants),
                       is_torch ? "; it has PyTorch's layout: layout: torch transposes it" : "");
    if (!widens(x->dtype, v->dtype))
        return TT_FAIL(ctx, TT_EDTYPE, "%s: '%s' is %s %s but the model's is %s", f->file, x->name,
                       tt_dtype_name(x->dtype), tt_shape_text(&x->shape, has),
                       tt_dtype_name(v->dtype));
    return TT_OK;
}

// Fills found; notes what is missing, and marks the tensors that are known to the model.
static void look_up(const tti_fitting *f, const renamed *list, bool *known, some *missing)
{
    for (int64_t i = 0; i < f->n_slots; i++) {
        renamed key = {(char *)f->slots[i].name, 0};
        const renamed *r = f->n_tensors == 0
                               ? NULL
                               : bsearch(&key, list, (size_t)f->n_tensors, sizeof(key), by_name);
        f->found[i] = -1;
        if (r != NULL)
            known[r->tensor] = true;
        if (!is_wanted(f, &f->slots[i]))
            continue;
        if (r != NULL)
            f->found[i] = r->tensor;
        else
            note(missing, f->slots[i].name);
    }
}

static tt_status check_all(tt_ctx *ctx, tti_fitting *f, const renamed *list, bool *known,
                           bool by_shapes)
{
    some missing = {.text = {.ctx = ctx}}, unknown = {.text = {.ctx = ctx}};
    int64_t n = 0;
    bool strict = !f->partial;
    look_up(f, list, known, &missing);
    for (int64_t i = 0; i < f->n_tensors; i++)
        if (!known[i] && (f->only == NULL || f->only[0] == '\0'))
            note(&unknown, f->tensors[i].name);
    tt_status st = TT_OK;
    if (strict && missing.n + unknown.n > 0)
        st = tell(ctx, f, &missing, &unknown);
    tti_text_free(&missing.text);
    tti_text_free(&unknown.text);
    if (st == TT_OK && by_shapes)
        st = layout_by_shapes(ctx, f);
    for (int64_t i = 0; i < f->n_slots && st == TT_OK; i++) {
        if (f->found[i] < 0)
            continue;
        n++;
        st = check_pair(ctx, f, i);
    }
    if (st == TT_OK && n == 0 && f->n_slots > 0)
        st = TT_FAIL(ctx, TT_EINVAL, "%s: none of its tensors is selected for loading", f->file);
    return st;
}

tt_status tti_fitting_find(tt_ctx *ctx, tti_fitting *f)
{
    renamed *list = tti_calloc(ctx, (size_t)f->n_tensors + 1, sizeof(*list));
    bool *known = tti_calloc(ctx, (size_t)f->n_tensors + 1, sizeof(*known));
    bool by_shapes = !know_layout(ctx, f);
    tt_status st = list == NULL || known == NULL ? TT_ENOMEM : rename_all(ctx, f, list, known);
    if (st == TT_OK)
        st = check_all(ctx, f, list, known, by_shapes);
    if (list != NULL)
        free_names(ctx, list, f->n_tensors);
    tti_free(ctx, known);
    return st;
}

// The tensor's elements as the variable has them: itself, or in room.
static const void *elements(const tti_fitting *f, int64_t i, char *room)
{
    const tt_tensor *v = f->slots[i].var;
    const tti_named *x = &f->tensors[f->found[i]];
    const tti_form *other = form_of(f, i);
    int64_t n = tt_shape_count(&v->shape);
    size_t size = tt_dtype_bytes(v->dtype);
    const void *data = x->data;
    if (x->dtype != v->dtype) {
        char *wide = room + (other != NULL ? (size_t)n * size : 0);
        for (int64_t k = 0; k < n; k++)
            tti_put_number(v->dtype, wide, k, tti_get_number(x->dtype, x->data, k));
        data = wide;
    }
    if (other == NULL)
        return data;
    tti_form_take(other, size, data, room);
    return room;
}

tt_status tti_fitting_apply(tt_ctx *ctx, const tti_fitting *f)
{
    size_t room = 0;
    for (int64_t i = 0; i < f->n_slots; i++) {
        const tt_tensor *v = f->slots[i].var;
        if (f->found[i] < 0)
            continue;
        size_t bytes = (size_t)tt_shape_count(&v->shape) * tt_dtype_bytes(v->dtype);
        int parts = (f->tensors[f->found[i]].dtype != v->dtype) + (form_of(f, i) != NULL);
        room = TTI_MAX(room, bytes * (size_t)parts);
    }
    char *other = room == 0 ? NULL : tti_alloc(ctx, room);
    tt_status st = room > 0 && other == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; i < f->n_slots && st == TT_OK; i++) {
        tt_tensor *v = f->slots[i].var;
        if (f->found[i] >= 0)
            st = tt_set_variable(f->slots[i].session, v, elements(f, i, other),
                                 (size_t)tt_shape_count(&v->shape) * tt_dtype_bytes(v->dtype));
    }
    tti_free(ctx, other);
    return st;
}

tt_status tti_model_forms(tt_model *m, tti_form **out)
{
    *out = tti_calloc(m->ctx, (size_t)m->n_weights + 1, sizeof(**out));
    for (int64_t i = 0; *out != NULL && i < m->n_weights; i++)
        if (!tti_torch_form(m, &m->weights[i], &(*out)[i]))
            (*out)[i].view.rank = 0;
    return *out == NULL ? TT_ENOMEM : TT_OK;
}
