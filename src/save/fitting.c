/*
 * fitting.c - matches tensors with variables by name. Everything is compared before anything is
 * written, so a file of another model leaves a model as it was.
 */
#include "save/fitting.h"
#include "save/rename.h"
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

// The tensors by their new names, sorted.
static tt_status rename_all(tt_ctx *ctx, const tti_fitting *f, renamed *list)
{
    char name[TTI_RENAME_MAX];
    TT_TRY(tti_rename_check(ctx, f->map));
    for (int64_t i = 0; i < f->n_tensors; i++) {
        TT_TRY(tti_rename(ctx, f->map, f->tensors[i].name, name));
        list[i] = (renamed){tti_strdup(ctx, name), i};
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
                       "%s does not fit the model: it lacks %s, and the model lacks its %s",
                       f->file, a == NULL ? "?" : a, b == NULL ? "?" : b);
    if (missing->n > 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s does not fit the model: it lacks %s", f->file,
                       a == NULL ? "?" : a);
    return TT_FAIL(ctx, TT_EINVAL, "%s does not fit the model, which lacks its %s", f->file,
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

static tt_status check_pair(tt_ctx *ctx, const tti_fitting *f, int64_t t, const tti_slot *slot)
{
    char has[TT_SHAPE_TEXT], wants[TT_SHAPE_TEXT];
    const tti_named *x = &f->tensors[t];
    const tt_tensor *v = slot->var;
    if ((unsigned)x->dtype >= TT_N_DTYPES)
        return TT_FAIL(ctx, TT_EDTYPE, "%s: '%s' is of type %s, or has more axes than Tutti has",
                       f->file, x->name, f->types != NULL ? f->types[t] : "?");
    bool same = x->shape.rank == v->shape.rank;
    for (int k = 0; k < x->shape.rank && same; k++)
        same = x->shape.dim[k] == v->shape.dim[k];
    if (!same)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: '%s' is %s %s but the model's is %s", f->file, x->name,
                       tt_dtype_name(x->dtype), tt_shape_text(&x->shape, has),
                       tt_shape_text(&v->shape, wants));
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

static tt_status check_all(tt_ctx *ctx, const tti_fitting *f, const renamed *list, bool *known)
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
    for (int64_t i = 0; i < f->n_slots && st == TT_OK; i++) {
        if (f->found[i] < 0)
            continue;
        n++;
        st = check_pair(ctx, f, f->found[i], &f->slots[i]);
    }
    if (st == TT_OK && n == 0 && f->n_slots > 0)
        st = TT_FAIL(ctx, TT_EINVAL, "%s: no tensor in it is one that the model should load",
                     f->file);
    return st;
}

tt_status tti_fitting_find(tt_ctx *ctx, tti_fitting *f)
{
    renamed *list = tti_calloc(ctx, (size_t)f->n_tensors + 1, sizeof(*list));
    bool *known = tti_calloc(ctx, (size_t)f->n_tensors + 1, sizeof(*known));
    tt_status st = list == NULL || known == NULL ? TT_ENOMEM : rename_all(ctx, f, list);
    if (st == TT_OK)
        st = check_all(ctx, f, list, known);
    if (list != NULL)
        free_names(ctx, list, f->n_tensors);
    tti_free(ctx, known);
    return st;
}

tt_status tti_fitting_apply(tt_ctx *ctx, const tti_fitting *f)
{
    size_t room = 0;
    for (int64_t i = 0; i < f->n_slots; i++) {
        const tt_tensor *v = f->slots[i].var;
        if (f->found[i] >= 0 && f->tensors[f->found[i]].dtype != v->dtype)
            room = TTI_MAX(room, (size_t)tt_shape_count(&v->shape) * tt_dtype_bytes(v->dtype));
    }
    void *wide = room == 0 ? NULL : tti_alloc(ctx, room);
    tt_status st = room > 0 && wide == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; i < f->n_slots && st == TT_OK; i++) {
        if (f->found[i] < 0)
            continue;
        tt_tensor *v = f->slots[i].var;
        const tti_named *x = &f->tensors[f->found[i]];
        int64_t n = tt_shape_count(&v->shape);
        const void *data = x->data;
        if (x->dtype != v->dtype) {
            for (int64_t k = 0; k < n; k++)
                tti_put_number(v->dtype, wide, k, tti_get_number(x->dtype, x->data, k));
            data = wide;
        }
        st = tt_set_variable(f->slots[i].session, v, data, (size_t)n * tt_dtype_bytes(v->dtype));
    }
    tti_free(ctx, wide);
    return st;
}
