/*
 * store.c - variables by name, shared between sessions, with a life of their own.
 *
 * The memory of a value is not the context's: a store may outlive the context that made it. Bytes
 * are counted on the device, so that limits and reports see them.
 */
#include "net/world.h"
#include "op/random.h"
#include "run/run.h"
#include <string.h>

tt_store *tt_store_new(void)
{
    tt_store *s = tti_calloc(NULL, 1, sizeof(*s));
    if (s == NULL)
        return NULL;
    atomic_store(&s->refs, 1);
    pthread_mutex_init(&s->mu, NULL);
    return s;
}

tt_store *tt_store_of(tt_ctx *ctx)
{
    if (ctx == NULL || ctx->store == NULL)
        return NULL;
    atomic_fetch_add(&ctx->store->refs, 1);
    return ctx->store;
}

static void variable_free(tti_variable *v)
{
    tti_variable_drop(v);
    tti_free(NULL, v->name);
    tti_free(NULL, v);
}

void tt_store_release(tt_store *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    for (int64_t i = 0; i < s->cap; i++) {
        for (tti_variable *v = s->table[i], *next; v != NULL; v = next) {
            next = v->next;
            variable_free(v);
        }
    }
    for (int64_t i = 0; i < s->n_segments; i++)
        tti_segment_free(&s->segments[i]);
    pthread_mutex_destroy(&s->mu);
    tti_free(NULL, s->segments);
    tti_free(NULL, s->table);
    tti_free(NULL, s);
}

static tti_variable **slot_of(tt_store *s, const char *name)
{
    return &s->table[tti_hash64(name, strlen(name), 0) & (uint64_t)(s->cap - 1)];
}

static tti_variable *find(tt_store *s, const char *name)
{
    if (s->cap == 0)
        return NULL;
    for (tti_variable *v = *slot_of(s, name); v != NULL; v = v->next)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

tti_variable *tti_store_find(tt_store *s, const char *name)
{
    pthread_mutex_lock(&s->mu);
    tti_variable *v = find(s, name);
    pthread_mutex_unlock(&s->mu);
    return v;
}

int64_t tt_store_version(tt_store *s, const char *name)
{
    tti_variable *v = s == NULL || name == NULL ? NULL : tti_store_find(s, name);
    return v == NULL ? -1 : atomic_load(&v->version);
}

static bool grow(tt_store *s)
{
    if (s->n < s->cap)
        return true;
    int64_t cap = s->cap, more = cap == 0 ? 64 : cap * 4;
    tti_variable **old = s->table, **table = tti_calloc(NULL, (size_t)more, sizeof(*table));
    if (table == NULL)
        return false;
    s->table = table;
    s->cap = more;
    for (int64_t i = 0; i < cap; i++) {
        for (tti_variable *v = old[i], *next; v != NULL; v = next) {
            next = v->next;
            tti_variable **at = slot_of(s, v->name);
            v->next = *at;
            *at = v;
        }
    }
    tti_free(NULL, old);
    return true;
}

static tt_status make(tt_ctx *ctx, const tt_node *var, tti_device *dev, tti_variable **out)
{
    const tti_variable_attr *a = var->attr;
    size_t bytes = (size_t)tt_shape_count(&a->shape) * tt_dtype_bytes(a->dtype);
    void *probe = tti_alloc(ctx, 1); // lets tests fail this allocation too
    if (probe == NULL)
        return TT_ENOMEM;
    tti_free(ctx, probe);
    tti_variable *v = tti_calloc(NULL, 1, sizeof(*v));
    char *name = v == NULL ? NULL : tti_strdup(NULL, var->name);
    if (name == NULL) {
        tti_free(NULL, v);
        return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory", var->name);
    }
    *v = (tti_variable){.name = name, .dtype = a->dtype, .shape = a->shape, .bytes = bytes};
    tt_status st = tti_variable_first(v, var, dev);
    if (st != TT_OK) {
        variable_free(v);
        return st;
    }
    bool several = ctx->top.n_tasks > 1;
    if (several) {
        v->ctx = ctx;
        v->local = v->copy[0].data;
        v->n_copies = 0;
    }
    if (!several) // else once plans say whose it is
        tti_count_variable(ctx, dev->name, (int64_t)bytes);
    *out = v;
    return TT_OK;
}

tt_status tti_store_get(tt_store *s, const tt_node *var, tti_device *dev, tti_variable **out)
{
    tt_ctx *ctx = var->graph->ctx;
    const tti_variable_attr *a = var->attr;
    pthread_mutex_lock(&s->mu);
    tt_status st = TT_OK;
    tti_variable *v = find(s, var->name);
    if (v != NULL) {
        char want[TT_SHAPE_TEXT], has[TT_SHAPE_TEXT];
        if (v->dtype != a->dtype || !tti_shape_equal(&v->shape, &a->shape))
            st = TT_FAIL(ctx, TT_ESHAPE, "variable '%s' is %s %s but the store has it as %s %s",
                         var->name, tt_dtype_name(a->dtype), tt_shape_text(&a->shape, want),
                         tt_dtype_name(v->dtype), tt_shape_text(&v->shape, has));
    } else if (!grow(s)) {
        st = TT_FAIL(ctx, TT_ENOMEM, "store: out of memory");
    } else {
        st = make(ctx, var, dev, &v);
        if (st == TT_OK) {
            tti_variable **at = slot_of(s, v->name);
            v->next = *at;
            *at = v;
            s->n++;
        }
    }
    pthread_mutex_unlock(&s->mu);
    if (st == TT_OK)
        *out = v;
    return st;
}
