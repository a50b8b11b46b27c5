/*
 * store.c - variables by name, shared between sessions, with a life of their own.
 *
 * The memory of a value is not the context's: a store may outlive the context that made it. Bytes
 * are counted on the device, so that limits and reports see them.
 */
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
    for (int i = 0; i < v->n_copies; i++)
        tti_host_free(NULL, v->copy[i].data);
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
    pthread_mutex_destroy(&s->mu);
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
    void *data = v == NULL ? NULL : tti_host_alloc(NULL, bytes);
    char *name = data == NULL ? NULL : tti_strdup(NULL, var->name);
    if (name == NULL) {
        tti_host_free(NULL, data);
        tti_free(NULL, v);
        return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory for %zu bytes", var->name,
                       bytes);
    }
    *v = (tti_variable){.name = name,
                        .dtype = a->dtype,
                        .shape = a->shape,
                        .bytes = bytes,
                        .layout = {TT_LAYOUT_REPLICATED, -1},
                        .n_copies = 1,
                        .copy = {{.data = data}}};
    memcpy(v->copy[0].device, dev->name, sizeof(dev->name));
    tt_init init = {(tt_init_kind)a->init, a->a, a->b};
    tt_status st = tti_init_values(ctx, ctx->isa, &init, &a->shape, a->dtype, ctx->seed, var->key,
                                   0, tt_shape_count(&a->shape), data);
    if (st != TT_OK) {
        variable_free(v);
        return st;
    }
    atomic_fetch_add(&dev->variables, bytes);
    atomic_fetch_add(&dev->used, bytes);
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
        if (v->dtype != a->dtype || memcmp(&v->shape, &a->shape, sizeof(v->shape)) != 0)
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

// ---- copies ----------------------------------------------------------------------------------

static void count_bytes(tt_ctx *ctx, const char *device, int64_t bytes)
{
    for (int i = 0; i < ctx->n_devices; i++) {
        if (strcmp(ctx->devices[i]->name, device) != 0)
            continue;
        atomic_fetch_add(&ctx->devices[i]->variables, (size_t)bytes);
        atomic_fetch_add(&ctx->devices[i]->used, (size_t)bytes);
    }
}

static tt_status add_copy(tt_ctx *ctx, tti_variable *v, const tti_device *dev)
{
    if (v->n_copies == TTI_MAX_DEVICES)
        return TT_FAIL(ctx, TT_EUNSUPPORTED, "variable '%s': more than %d copies", v->name,
                       TTI_MAX_DEVICES);
    void *data = tti_host_alloc(NULL, v->bytes);
    if (data == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory for %zu bytes on %s", v->name,
                       v->bytes, dev->name);
    memcpy(data, v->copy[0].data, v->bytes);
    tti_copy *c = &v->copy[v->n_copies++];
    *c = (tti_copy){.data = data};
    memcpy(c->device, dev->name, sizeof(dev->name));
    count_bytes(ctx, dev->name, (int64_t)v->bytes);
    return TT_OK;
}

static int copy_on(const tti_variable *v, const char *device)
{
    for (int i = 0; i < v->n_copies; i++)
        if (strcmp(v->copy[i].device, device) == 0)
            return i;
    return -1;
}

static bool has_piece(const tti_variable *v, const tti_want *w)
{
    for (int i = 0; i < v->n_pieces; i++)
        if (v->piece[i].begin == w->begin && v->piece[i].bytes == w->bytes &&
            strcmp(v->piece[i].device, w->dev->name) == 0)
            return true;
    return false;
}

size_t tti_variable_needs(const tti_variable *v, const tti_want *w)
{
    bool there = copy_on(v, w->dev->name) >= 0;
    if (w->is_piece)
        there |= has_piece(v, w);
    return there ? 0 : w->bytes;
}

// The bytes of a piece count with the device that works on it, not with the one that has the copy.
static void bind_piece(tt_ctx *ctx, tti_variable *v, const tti_want *w, void **out)
{
    if (!has_piece(v, w) && v->n_pieces < TTI_MAX_DEVICES) {
        count_bytes(ctx, v->copy[0].device, -(int64_t)w->bytes);
        count_bytes(ctx, w->dev->name, (int64_t)w->bytes);
        memcpy(v->piece[v->n_pieces].device, w->dev->name, sizeof(w->dev->name));
        v->piece[v->n_pieces].begin = w->begin;
        v->piece[v->n_pieces++].bytes = w->bytes;
    }
    v->copy[0].is_bound = true;
    *out = (char *)v->copy[0].data + w->begin;
}

/*
 * A copy that no plan uses yet, made when a value was set or loaded, moves to where the first plan
 * wants it: the memory of the host's devices is one.
 */
tt_status tti_store_bind(tt_store *s, tt_ctx *ctx, tti_variable *v, const tti_want *w, void **out)
{
    tt_status st = TT_OK;
    pthread_mutex_lock(&s->mu);
    int at = copy_on(v, w->dev->name);
    for (int i = 0; i < v->n_copies && at < 0; i++) {
        if (v->copy[i].is_bound)
            continue;
        at = i;
        count_bytes(ctx, v->copy[i].device, -(int64_t)v->bytes);
        memcpy(v->copy[i].device, w->dev->name, sizeof(w->dev->name));
        count_bytes(ctx, w->dev->name, (int64_t)v->bytes);
    }
    if (w->is_piece) {
        bind_piece(ctx, v, w, out);
    } else {
        if (at < 0) {
            st = add_copy(ctx, v, w->dev);
            at = v->n_copies - 1;
        }
        if (st == TT_OK) {
            v->copy[at].is_bound = true;
            *out = v->copy[at].data;
        }
    }
    pthread_mutex_unlock(&s->mu);
    return st;
}

void tti_variable_write(tti_variable *v, const void *data)
{
    for (int i = 0; i < v->n_copies && v->bytes > 0; i++)
        if (v->copy[i].data != data)
            memcpy(v->copy[i].data, data, v->bytes);
}

void tti_variable_refresh(tti_variable *v, tt_ctx *ctx, uint64_t devices)
{
    const void *fresh = NULL;
    uint64_t stale = 0;
    for (int i = 0; i < v->n_copies; i++) {
        int at = -1;
        for (int d = 0; d < ctx->n_devices && at < 0; d++)
            at = strcmp(ctx->devices[d]->name, v->copy[i].device) == 0 ? d : -1;
        if (at >= 0 && (devices >> at & 1u) != 0)
            fresh = v->copy[i].data;
        else
            stale |= (uint64_t)1 << i;
    }
    for (int i = 0; stale != 0 && fresh != NULL && i < v->n_copies; i++)
        if ((stale >> i & 1u) != 0)
            memcpy(v->copy[i].data, fresh, v->bytes);
}
