/*
 * pickle.c - the tensors of a pickle (pickle.h): runs it and collects what its dictionary holds.
 */
#include "save/pickle.h"
#include "save/pickle_machine.h"
#include <string.h>

static char *copy_text(tt_ctx *ctx, const tti_pk_value *v)
{
    char *s = tti_alloc(ctx, v->length + 1);
    if (s != NULL) {
        memcpy(s, v->text, v->length);
        s[v->length] = '\0';
    }
    return s;
}

static tt_status add_tensor(tti_pk_machine *m, const tti_pk_value *name, const tti_pk_value *t,
                            tti_pickle *out)
{
    const tti_pk_value *storage = &m->values[t->a], *shape = &m->values[t->b],
                       *stride = &m->values[t->c];
    tti_pickled *p = &out->tensors[out->n];
    *p = (tti_pickled){.type = tti_pk_storage_type(storage),
                       .numel = storage->number,
                       .offset = t->number,
                       .rank = (int)TTI_MIN(shape->n, TT_MAX_RANK + 1)};
    for (int64_t i = 0; i < shape->n && i < TT_MAX_RANK; i++) {
        const tti_pk_value *a = tti_pk_item(m, shape, i), *b = tti_pk_item(m, stride, i);
        if (a->kind != TTI_PK_INT || b->kind != TTI_PK_INT)
            return tti_pk_damaged(m, "a shape that is not a list of numbers");
        p->shape[i] = a->number;
        p->stride[i] = b->number;
    }
    p->name = copy_text(m->ctx, name);
    p->key = copy_text(m->ctx, storage);
    out->n++;
    return p->name != NULL && p->key != NULL ? TT_OK : TT_ENOMEM;
}

static bool is_text(const tti_pk_value *v, const char *s)
{
    return v->kind == TTI_PK_TEXT && v->length == strlen(s) && memcmp(v->text, s, v->length) == 0;
}

// The dictionary of tensors: the whole, or what a training script put it into.
static const tti_pk_value *find_dict(const tti_pk_machine *m, const tti_pk_value *d)
{
    static const char *const usual[] = {"state_dict", "model_state_dict", "model"};
    for (int64_t i = d->n > 0 ? d->first : -1; i >= 0; i = m->pieces[i].next) {
        const tti_pk_value *v = &m->values[m->pieces[i].value];
        for (int k = 0; k < TTI_COUNT(usual); k++)
            if (v->kind == TTI_PK_DICT && is_text(&m->values[m->pieces[i].key], usual[k]))
                return v;
    }
    return d;
}

static tt_status collect(tti_pk_machine *m, tti_pickle *out)
{
    const tti_pk_value *d = tti_pk_top(m);
    if (d == NULL || d->kind != TTI_PK_DICT)
        return TT_FAIL(m->ctx, TT_EUNSUPPORTED,
                       "%s: is not a dictionary of tensors; write one with "
                       "torch.save(model.state_dict(), ...)",
                       m->file);
    d = find_dict(m, d);
    out->tensors = tti_calloc(m->ctx, (size_t)d->n + 1, sizeof(*out->tensors));
    if (out->tensors == NULL)
        return TT_ENOMEM;
    for (int64_t i = d->n > 0 ? d->first : -1; i >= 0; i = m->pieces[i].next) {
        const tti_pk_value *key = &m->values[m->pieces[i].key], *v = &m->values[m->pieces[i].value];
        if (key->kind == TTI_PK_TEXT && v->kind == TTI_PK_TENSOR)
            TT_TRY(add_tensor(m, key, v, out));
        else
            out->others++;
    }
    if (out->n == 0)
        return TT_FAIL(m->ctx, TT_EUNSUPPORTED, "%s: has no tensors in it", m->file);
    return TT_OK;
}

void tti_pickle_free(tt_ctx *ctx, tti_pickle *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        tti_free(ctx, p->tensors[i].name);
        tti_free(ctx, p->tensors[i].key);
    }
    tti_free(ctx, p->tensors);
    *p = (tti_pickle){0};
}

tt_status tti_pickle_read(tt_ctx *ctx, const char *file, const void *data, size_t bytes,
                          tti_pickle *out)
{
    tti_pk_machine m = {.ctx = ctx,
                        .file = file,
                        .p = data,
                        .end = (const unsigned char *)data + bytes,
                        .bytes = bytes};
    tt_status st = TT_OK;
    bool over = false;
    *out = (tti_pickle){0};
    while (st == TT_OK && !over)
        st = m.p < m.end ? tti_pk_operation(&m, *m.p++, &over)
                         : tti_pk_damaged(&m, "it is cut short");
    if (st == TT_OK)
        st = collect(&m, out);
    tti_free(ctx, m.values);
    tti_free(ctx, m.items);
    tti_free(ctx, m.pieces);
    tti_free(ctx, m.stack);
    tti_free(ctx, m.memo);
    if (st != TT_OK)
        tti_pickle_free(ctx, out);
    return st;
}
