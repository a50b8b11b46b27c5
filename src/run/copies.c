/*
 * copies.c - where the value of a variable lies: whole copies on devices, or pieces of it.
 */
#include "comm/comm.h"
#include "op/init.h"
#include "op/random.h"
#include "run/run.h"
#include <string.h>

void tti_count_variable(tt_ctx *ctx, const char *device, int64_t bytes)
{
    for (int i = 0; ctx != NULL && i < ctx->top.n_devices; i++) {
        if (strcmp(ctx->top.devices[i]->name, device) != 0)
            continue;
        atomic_fetch_add(&ctx->top.devices[i]->variables, (size_t)bytes);
        atomic_fetch_add(&ctx->top.devices[i]->used, (size_t)bytes);
    }
}

// Memory on a device, or the host's; counted by the caller.
static tt_status new_memory(tt_ctx *ctx, const tti_variable *v, tti_device *dev, const char *name,
                            size_t bytes, void **out)
{
    if (dev != NULL)
        return dev->backend->alloc(dev, bytes, out);
    *out = tti_host_alloc(NULL, bytes);
    if (*out == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "variable '%s': out of memory for %zu bytes on %s", v->name,
                       bytes, name);
    return TT_OK;
}

static void drop_memory(tti_device *dev, void *data, size_t bytes)
{
    if (dev != NULL && data != NULL)
        dev->backend->free(dev, data, bytes);
    else
        tti_host_free(NULL, data);
}

void tti_variable_drop(tti_variable *v)
{
    tti_host_free(NULL, v->local);
    v->local = NULL;
    if (v->ctx != NULL)
        v->n_copies = v->n_pieces = 0; // they lie in the store's segments
    for (int i = 0; i < v->n_copies; i++)
        drop_memory(v->copy[i].dev, v->copy[i].data, v->bytes);
    for (int i = 0; i < v->n_pieces; i++)
        if (v->piece[i].dev != NULL)
            drop_memory(v->piece[i].dev, v->piece[i].data, v->piece[i].bytes);
    v->n_copies = v->n_pieces = 0;
}

// The device whose own memory is to be used; NULL: the host's is.
static tti_device *memory_of(tti_device *d)
{
    return tti_has_streams(d) ? d : NULL;
}

const char *tti_variable_device(const tti_variable *v)
{
    return v->n_copies > 0 ? v->copy[0].device : v->piece[0].device;
}

// Bytes [begin, begin + bytes) of the value to memory of a device (NULL: the host's).
static tt_status read_range(tti_variable *v, size_t begin, size_t bytes, tti_device *to, void *out)
{
    if (v->n_copies > 0)
        return tti_device_copy(to, out, v->copy[0].dev, (char *)v->copy[0].data + begin, bytes);
    for (int i = 0; i < v->n_pieces; i++) {
        const tti_piece *p = &v->piece[i];
        size_t from = TTI_MAX(begin, p->begin), end = TTI_MIN(begin + bytes, p->begin + p->bytes);
        if (p->dev != NULL && from < end)
            TT_TRY(tti_device_copy(to, (char *)out + (from - begin), p->dev,
                                   (char *)p->data + (from - p->begin), end - from));
    }
    return TT_OK;
}

const void *tti_variable_here(tti_variable *v)
{
    if (v->ctx == NULL)
        return v->n_copies > 0 && v->copy[0].dev == NULL ? v->copy[0].data : NULL;
    uint64_t have = 0;
    for (int i = 0; i < v->n_copies; i++)
        have |= (uint64_t)1 << v->copy[i].task;
    if (v->n_copies == 0)
        return v->local;
    bool all = __builtin_popcountll(have) == v->ctx->top.n_tasks && !v->in_parts;
    return all ? tti_shared_copy(v)->data : NULL;
}

tt_status tti_variable_read(tti_variable *v, void *out)
{
    if (v->ctx != NULL)
        return tti_shared_read(v, out);
    return read_range(v, 0, v->bytes, NULL, out);
}

tt_status tti_variable_look(tt_ctx *ctx, tti_variable *v, const void **out, void **room)
{
    *room = NULL;
    *out = tti_variable_here(v);
    if (*out != NULL)
        return TT_OK;
    *room = tti_alloc(ctx, v->bytes + 1);
    if (*room == NULL)
        return TT_ENOMEM;
    *out = *room;
    tt_status st = tti_variable_read(v, *room);
    if (st != TT_OK) {
        tti_free(ctx, *room);
        *room = NULL;
    }
    return st;
}

tt_status tti_variable_write(tti_variable *v, const void *data)
{
    if (v->ctx != NULL)
        return tti_shared_write(v, data);
    for (int i = 0; i < v->n_copies; i++)
        if (v->copy[i].data != data)
            TT_TRY(tti_device_copy(v->copy[i].dev, v->copy[i].data, NULL, data, v->bytes));
    for (int i = 0; i < v->n_pieces; i++)
        if (v->piece[i].dev != NULL)
            TT_TRY(tti_device_copy(v->piece[i].dev, v->piece[i].data, NULL,
                                   (const char *)data + v->piece[i].begin, v->piece[i].bytes));
    return TT_OK;
}

// ---- first values ----------------------------------------------------------------------------

// Made where they will be, if the device can.
static tt_status draw_there(tti_variable *v, const tt_node *var, tti_device *dev,
                            const tt_kernel *kernel, const tti_init_attr *attr, void *data)
{
    int64_t count = tt_shape_count(&v->shape);
    tt_arg out = {.data = data,
                  .dtype = v->dtype,
                  .shape = v->shape,
                  .count = count,
                  .rows = 1,
                  .cols = count,
                  .open = -1};
    tt_launch l = {.ctx = dev->ctx,
                   .node = var,
                   .attr = attr,
                   .out = &out,
                   .n_out = 1,
                   .end = count,
                   .n_threads = 1,
                   .device = dev->state,
                   .stream = dev->backend->streams->stream(dev)};
    TT_TRY(count > 0 ? kernel->fn[0](&l) : TT_OK);
    return dev->backend->streams->sync(dev, tti_deadline(dev->ctx->deadline_ms));
}

#define DRAW_CHUNK 65536 // elements that a thread takes at once, whole groups of the generator

typedef struct drawing {
    const tti_init_attr *attr;
    tt_dtype dtype;
    tti_init_fn *fill;
    char *out;
} drawing;

static void draw_elements(const void *arg, int64_t begin, int64_t end)
{
    const drawing *d = arg;
    const tti_init_attr *a = d->attr;
    d->fill(&a->init, &a->shape, d->dtype, a->seed, a->key, begin, end,
            d->out + (size_t)begin * tt_dtype_bytes(d->dtype));
}

// In the host's memory, by the threads of all devices: elements do not depend on each other.
static tt_status draw_here(tt_ctx *ctx, const tti_variable *v, const tti_init_attr *attr, void *out)
{
    drawing d = {attr, v->dtype, tti_init_kernel(ctx->top.isa), out};
    int64_t count = tt_shape_count(&v->shape);
    bool all = true;
    TT_TRY(tti_init_check(ctx, &attr->init, v->dtype));
    for (int i = 0; i < ctx->top.n_devices; i++)
        all &= ctx->top.devices[i]->is_away || !tti_has_streams(ctx->top.devices[i]);
    if (!all) { // threads of GPUs submit work, others' are few
        unsigned saved = tti_fp_enter();
        draw_elements(&d, 0, count);
        tti_fp_leave(saved);
        return TT_OK;
    }
    return tti_comm_spread(ctx, &(tti_work){.name = v->name,
                                            .fn = draw_elements,
                                            .arg = &d,
                                            .units = count,
                                            .chunk = DRAW_CHUNK,
                                            .bytes = (int64_t)v->bytes,
                                            .deadline_ms = 10 * ctx->deadline_ms});
}

tt_status tti_variable_first(tti_variable *v, const tt_node *var, tti_device *dev)
{
    const tti_variable_attr *a = var->attr;
    tt_ctx *ctx = dev->ctx;
    const tt_kernel *kernel = tti_has_streams(dev)
                                  ? dev->backend->kernel(dev, tti_kernel_of_form(TTI_KERNEL_INIT))
                                  : NULL;
    bool there = kernel != NULL && (kernel->types >> v->dtype & 1u) != 0;
    tti_copy c = {.dev = there ? dev : NULL};
    memcpy(c.device, dev->name, sizeof(dev->name));
    TT_TRY(new_memory(ctx, v, c.dev, dev->name, v->bytes, &c.data));
    v->copy[v->n_copies++] = c;
    tti_init_attr attr = {.init = {(tt_init_kind)a->init, a->a, a->b},
                          .shape = a->shape,
                          .seed = ctx->seed,
                          .key = var->key};
    return there ? draw_there(v, var, dev, kernel, &attr, c.data)
                 : draw_here(ctx, v, &attr, c.data);
}

// ---- plans want memory -----------------------------------------------------------------------

// In the memory that the device works on: a value that was only just made lies with the host.
static int copy_on(const tti_variable *v, tti_device *dev)
{
    for (int i = 0; i < v->n_copies; i++)
        if (strcmp(v->copy[i].device, dev->name) == 0 && v->copy[i].dev == memory_of(dev))
            return i;
    return -1;
}

static tti_piece *find_piece(tti_variable *v, const tti_want *w)
{
    for (int i = 0; i < v->n_pieces; i++)
        if (v->piece[i].begin == w->begin && v->piece[i].bytes == w->bytes &&
            strcmp(v->piece[i].device, w->dev->name) == 0)
            return &v->piece[i];
    return NULL;
}

size_t tti_variable_needs(const tti_variable *v, const tti_want *w)
{
    if (v->ctx != NULL)
        return tti_shared_needs(v, w);
    bool there = copy_on(v, w->dev) >= 0;
    if (w->is_piece)
        there = (there && memory_of(w->dev) == NULL) || find_piece((tti_variable *)v, w) != NULL;
    return there ? 0 : w->bytes;
}

static tt_status add_copy(tt_ctx *ctx, tti_variable *v, tti_device *dev)
{
    if (v->n_copies == TTI_MAX_DEVICES)
        return TT_FAIL(ctx, TT_EUNSUPPORTED, "variable '%s': more than %d copies", v->name,
                       TTI_MAX_DEVICES);
    tti_copy c = {.dev = memory_of(dev)};
    TT_TRY(new_memory(ctx, v, c.dev, dev->name, v->bytes, &c.data));
    tt_status st = read_range(v, 0, v->bytes, c.dev, c.data);
    if (st != TT_OK) {
        drop_memory(c.dev, c.data, v->bytes);
        return st;
    }
    memcpy(c.device, dev->name, sizeof(dev->name));
    v->copy[v->n_copies++] = c;
    tti_count_variable(ctx, dev->name, (int64_t)v->bytes);
    return TT_OK;
}

static void remove_copy(tt_ctx *ctx, tti_variable *v, int i)
{
    tti_count_variable(ctx, v->copy[i].device, -(int64_t)v->bytes);
    drop_memory(v->copy[i].dev, v->copy[i].data, v->bytes);
    v->copy[i] = v->copy[--v->n_copies];
}

/*
 * A copy that no plan uses yet, made when a value was set or loaded, becomes that of the device: by
 * name alone if both have the host's memory, else it is moved.
 */
static tt_status move_unbound(tt_ctx *ctx, tti_variable *v, tti_device *dev, int *at)
{
    for (int i = 0; i < v->n_copies && *at < 0; i++) {
        if (v->copy[i].is_bound)
            continue;
        if (v->copy[i].dev == memory_of(dev)) {
            tti_count_variable(ctx, v->copy[i].device, -(int64_t)v->bytes);
            memcpy(v->copy[i].device, dev->name, sizeof(dev->name));
            tti_count_variable(ctx, dev->name, (int64_t)v->bytes);
            *at = i;
            continue;
        }
        TT_TRY(add_copy(ctx, v, dev));
        remove_copy(ctx, v, i); // the new one takes its place
        *at = i;
    }
    return TT_OK;
}

// Parts of the first copy: their bytes count with the device that works on them.
static void bind_host_piece(tt_ctx *ctx, tti_variable *v, const tti_want *w, void **out)
{
    if (find_piece(v, w) == NULL && v->n_pieces < TTI_MAX_DEVICES) {
        tti_count_variable(ctx, v->copy[0].device, -(int64_t)w->bytes);
        tti_count_variable(ctx, w->dev->name, (int64_t)w->bytes);
        tti_piece *p = &v->piece[v->n_pieces++];
        *p = (tti_piece){.begin = w->begin, .bytes = w->bytes};
        memcpy(p->device, w->dev->name, sizeof(w->dev->name));
    }
    v->copy[0].is_bound = true;
    *out = (char *)v->copy[0].data + w->begin;
}

// Once pieces with memory of their own hold all of the value, copies that no plan uses go.
static void drop_spare_copies(tt_ctx *ctx, tti_variable *v)
{
    size_t covered = 0;
    for (int i = 0; i < v->n_pieces; i++)
        covered += v->piece[i].dev != NULL ? v->piece[i].bytes : 0;
    for (int i = v->n_copies - 1; i >= 0 && covered >= v->bytes; i--)
        if (!v->copy[i].is_bound)
            remove_copy(ctx, v, i);
}

static tt_status bind_own_piece(tt_ctx *ctx, tti_variable *v, const tti_want *w, void **out)
{
    tti_piece *p = find_piece(v, w);
    if (p == NULL) {
        if (v->n_pieces == TTI_MAX_DEVICES)
            return TT_FAIL(ctx, TT_EUNSUPPORTED, "variable '%s': more than %d pieces", v->name,
                           TTI_MAX_DEVICES);
        tti_piece fresh = {.dev = w->dev, .begin = w->begin, .bytes = w->bytes};
        TT_TRY(new_memory(ctx, v, w->dev, w->dev->name, w->bytes, &fresh.data));
        tt_status st = read_range(v, w->begin, w->bytes, w->dev, fresh.data);
        if (st != TT_OK) {
            drop_memory(w->dev, fresh.data, w->bytes);
            return st;
        }
        memcpy(fresh.device, w->dev->name, sizeof(w->dev->name));
        tti_count_variable(ctx, w->dev->name, (int64_t)w->bytes);
        p = &v->piece[v->n_pieces++];
        *p = fresh;
        *out = p->data;
        drop_spare_copies(ctx, v);
        return TT_OK;
    }
    *out = p->data;
    return TT_OK;
}

tt_status tti_store_bind(tt_store *s, tt_ctx *ctx, tti_variable *v, const tti_want *w, void **out)
{
    tt_status st = TT_OK;
    pthread_mutex_lock(&s->mu);
    if (w->is_piece && memory_of(w->dev) != NULL) {
        st = bind_own_piece(ctx, v, w, out);
        pthread_mutex_unlock(&s->mu);
        return st;
    }
    int at = copy_on(v, w->dev);
    st = move_unbound(ctx, v, w->dev, &at);
    if (st == TT_OK && at < 0 && (!w->is_piece || v->n_copies == 0)) {
        st = add_copy(ctx, v, w->dev);
        at = v->n_copies - 1;
    }
    if (st == TT_OK && w->is_piece) {
        bind_host_piece(ctx, v, w, out);
    } else if (st == TT_OK) {
        v->copy[at].is_bound = true;
        *out = v->copy[at].data;
    }
    pthread_mutex_unlock(&s->mu);
    return st;
}

// ---- after a run -----------------------------------------------------------------------------

static bool is_among(const tt_ctx *ctx, uint64_t devices, const char *name)
{
    for (int d = 0; d < ctx->top.n_devices; d++)
        if ((devices >> d & 1u) != 0 && strcmp(ctx->top.devices[d]->name, name) == 0)
            return true;
    return false;
}

// Pieces with memory of their own have the value: copies get it.
static tt_status copies_from_pieces(tti_variable *v)
{
    int n = v->n_copies;
    for (int i = 0; i < n; i++) {
        v->n_copies = 0; // so that pieces are read
        tt_status st = read_range(v, 0, v->bytes, v->copy[i].dev, v->copy[i].data);
        v->n_copies = n;
        TT_TRY(st);
    }
    return TT_OK;
}

tt_status tti_variable_refresh(tti_variable *v, tt_ctx *ctx, uint64_t devices, bool in_pieces)
{
    if (v->ctx != NULL)
        return tti_shared_refresh(v, devices, in_pieces);
    bool own = v->n_pieces > 0 && v->piece[0].dev != NULL;
    if (in_pieces && own)
        return copies_from_pieces(v);
    const tti_copy *fresh = in_pieces ? &v->copy[0] : NULL; // of the host: parts of the first copy
    for (int i = 0; i < v->n_copies && fresh == NULL; i++)
        if (is_among(ctx, devices, v->copy[i].device))
            fresh = &v->copy[i];
    if (fresh == NULL)
        return TT_OK;
    for (int i = 0; i < v->n_copies; i++) {
        tti_copy *c = &v->copy[i];
        if (c != fresh && (in_pieces || !is_among(ctx, devices, c->device)))
            TT_TRY(tti_device_copy(c->dev, c->data, fresh->dev, fresh->data, v->bytes));
    }
    for (int i = 0; i < v->n_pieces && own; i++)
        TT_TRY(tti_device_copy(v->piece[i].dev, v->piece[i].data, fresh->dev,
                               (const char *)fresh->data + v->piece[i].begin, v->piece[i].bytes));
    return TT_OK;
}

// ---- when a context ends ---------------------------------------------------------------------

static void leave(tti_variable *v, tt_ctx *ctx, bool is_wanted)
{
    bool away = v->n_copies == 0 || v->copy[0].dev != NULL;
    void *data = away && is_wanted ? tti_host_alloc(NULL, v->bytes) : NULL;
    if (data != NULL && tti_variable_read(v, data) != TT_OK)
        memset(data, 0, v->bytes); // the device is lost, and the context has said so
    for (int i = v->n_copies - 1; i >= 0; i--)
        if (v->copy[i].dev != NULL && v->copy[i].dev->ctx == ctx)
            remove_copy(ctx, v, i);
    int kept = 0;
    for (int i = 0; i < v->n_pieces; i++) {
        tti_piece *p = &v->piece[i];
        if (p->dev == NULL || p->dev->ctx != ctx)
            v->piece[kept++] = *p;
        else
            drop_memory(p->dev, p->data, p->bytes);
    }
    v->n_pieces = kept;
    if (data == NULL)
        return;
    tti_copy c = {.data = data};
    memcpy(c.device, "cpu:0", 6);
    for (int i = v->n_copies; i > 0; i--)
        v->copy[i] = v->copy[i - 1];
    v->copy[0] = c;
    v->n_copies++;
}

void tti_store_leave(tt_store *s, tt_ctx *ctx)
{
    bool has_streams = false;
    for (int d = 0; d < ctx->top.n_devices; d++)
        has_streams |= tti_has_streams(ctx->top.devices[d]);
    if (s == NULL || !has_streams)
        return;
    pthread_mutex_lock(&s->mu);
    bool is_wanted = atomic_load(&s->refs) > 1;
    for (int64_t i = 0; i < s->cap; i++)
        for (tti_variable *v = s->table[i]; v != NULL; v = v->next)
            leave(v, ctx, is_wanted);
    pthread_mutex_unlock(&s->mu);
}
