/*
 * calls.c - single questions to a server: how it is, what state it has. Each opens a connection and
 * closes it.
 */
#include "base/ctx.h"
#include "save/safetensors.h"
#include "serve/serve.h"
#include <stdlib.h>
#include <string.h>

static tt_status check(tt_ctx *ctx, const char *target, const void *out, const char *who)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    if (target == NULL || out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the %s is NULL", who,
                       target == NULL ? "target" : "room for the result");
    return TT_OK;
}

tt_status tt_ping_sized(tt_ctx *ctx, const char *target, tt_server_info *out, size_t size,
                        const tt_ping_opts *opts)
{
    TT_TRY(check(ctx, target, out, "ping"));
    tt_ping_opts o;
    TT_TRY(TTI_OPTS_COPY(ctx, "ping", opts, &o));
    tti_channel *c;
    tti_channel_opts way = {.target = target, .key = o.key, .wait_ms = o.deadline_ms};
    TT_TRY(tti_channel_open(ctx, &way, &c));
    tti_text t = {.ctx = ctx};
    tti_reader r;
    tt_server_info i = {.n_tasks = 0};
    tti_put_u32(&t, 0);
    tt_status st = tti_channel_ask(c, TTI_ASK_INFO, &t, 0, &r);
    if (st == TT_OK) {
        tti_get_text(&r, i.task, sizeof(i.task));
        tti_get_text(&r, i.version, sizeof(i.version));
        tti_get_text(&r, i.devices, sizeof(i.devices));
        i.n_tasks = (int)tti_get_i64(&r);
        i.clients = (int)tti_get_i64(&r);
        i.sessions = (int)tti_get_i64(&r);
        i.containers = (int)tti_get_i64(&r);
        i.variables = (int)tti_get_i64(&r);
        i.queues = (int)tti_get_i64(&r);
        i.bytes = (size_t)tti_get_u64(&r);
        i.runs = tti_get_i64(&r);
        i.refused = tti_get_i64(&r);
        i.up_ms = tti_get_i64(&r);
        i.is_draining = tti_get_u32(&r) != 0;
        if (!tti_get_end(&r))
            st = TT_FAIL(ctx, TT_EPEER, "%s: the server's answer cannot be read", target);
    }
    tti_channel_close(c);
    if (st == TT_OK)
        tti_out_copy(out, size, &i, sizeof(i));
    return st;
}

// ---- state -----------------------------------------------------------------------------------

typedef struct asking {
    tt_ctx *ctx;
    tt_state_opts o;
    tti_channel *c;
} asking;

static tt_status ask_open(tt_ctx *ctx, const char *target, const tt_state_opts *opts, asking *a)
{
    a->ctx = ctx;
    TT_TRY(TTI_OPTS_COPY(ctx, "state", opts, &a->o));
    if (a->o.container == NULL)
        a->o.container = "";
    if (strlen(a->o.container) >= TTI_CONTAINER_MAX)
        return TT_FAIL(ctx, TT_EINVAL, "state: container '%.40s...' is longer than %d characters",
                       a->o.container, TTI_CONTAINER_MAX - 1);
    tti_channel_opts way = {.target = target, .key = a->o.key};
    return tti_channel_open(ctx, &way, &a->c);
}

static int by_name(const void *x, const void *y)
{
    const tt_state_entry *a = x, *b = y;
    int c = strcmp(a->container, b->container);
    c = c != 0 ? c : (int)a->is_queue - (int)b->is_queue;
    return c != 0 ? c : strcmp(a->name, b->name);
}

static tt_status list(asking *a, bool all, tt_state_entry **out, int *n)
{
    tti_text t = {.ctx = a->ctx};
    tti_reader r;
    tti_put_text(&t, a->o.container);
    tti_put_u32(&t, all);
    TT_TRY(tti_channel_ask(a->c, TTI_ASK_LIST, &t, 0, &r));
    uint32_t count = tti_get_u32(&r);
    if (count > (size_t)(r.end - r.at) / 16)
        r.failed = true;
    tt_state_entry *e = r.failed ? NULL : tti_calloc(a->ctx, (size_t)count + 1, sizeof(*e));
    if (e == NULL && !r.failed)
        return TT_ENOMEM;
    for (uint32_t i = 0; i < count && !r.failed; i++) {
        tti_get_text(&r, e[i].container, sizeof(e[i].container));
        tti_get_text(&r, e[i].name, sizeof(e[i].name));
        e[i].is_queue = tti_get_u32(&r) != 0;
        e[i].dtype = tti_get_dtype(&r);
        e[i].shape = tti_get_shape(&r);
        e[i].bytes = (size_t)tti_get_u64(&r);
        e[i].version = tti_get_i64(&r);
    }
    if (!tti_get_end(&r)) {
        tti_free(a->ctx, e);
        return TT_FAIL(a->ctx, TT_EPEER, "%s: the server's answer cannot be read",
                       tti_channel_target(a->c));
    }
    qsort(e, count, sizeof(*e), by_name);
    *out = e;
    *n = (int)count;
    return TT_OK;
}

tt_status tt_state_list_with(tt_ctx *ctx, const char *target, tt_state_entry **out, int *n,
                             const tt_state_opts *opts)
{
    TT_TRY(check(ctx, target, out == NULL || n == NULL ? NULL : out, "state list"));
    asking a = {.c = NULL};
    tt_status st = ask_open(ctx, target, opts, &a);
    if (st == TT_OK)
        st = list(&a, a.o.all, out, n);
    tti_channel_close(a.c);
    return st;
}

void tt_state_free(tt_ctx *ctx, tt_state_entry *entries)
{
    if (ctx != NULL)
        tti_free(ctx, entries);
}

// The value of one variable, to be freed.
static tt_status read_value(asking *a, const tt_state_entry *e, char **out)
{
    tti_text t = {.ctx = a->ctx};
    tti_reader r;
    tti_put_text(&t, e->container);
    tti_put_text(&t, e->name);
    TT_TRY(tti_channel_ask(a->c, TTI_ASK_READ, &t, 0, &r));
    const void *from = tti_get_bytes(&r, e->bytes);
    if (from == NULL)
        return TT_FAIL(a->ctx, TT_EPEER, "%s: variable '%s' changed its size meanwhile",
                       tti_channel_target(a->c), e->name);
    *out = tti_alloc(a->ctx, e->bytes + 1);
    if (*out == NULL)
        return TT_ENOMEM;
    memcpy(*out, from, e->bytes);
    return TT_OK;
}

static tt_status save(asking *a, const char *path, int *n)
{
    tt_state_entry *e;
    int all, k = 0;
    TT_TRY(list(a, false, &e, &all));
    tti_named *named = tti_calloc(a->ctx, (size_t)all + 1, sizeof(*named));
    tt_status st = named == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; i < all && st == TT_OK; i++) {
        char *data = NULL;
        if (e[i].is_queue)
            continue;
        st = read_value(a, &e[i], &data);
        if (st == TT_OK)
            named[k++] = (tti_named){e[i].name, e[i].dtype, e[i].shape, data, e[i].bytes};
    }
    tt_hash hash;
    if (st == TT_OK)
        st = tti_safetensors_write(a->ctx, path, named, k, NULL, &hash);
    for (int i = 0; i < k; i++)
        tti_free(a->ctx, (void *)named[i].data);
    tti_free(a->ctx, named);
    tti_free(a->ctx, e);
    *n = k;
    return st;
}

tt_status tt_state_save_with(tt_ctx *ctx, const char *target, const char *path, int *n,
                             const tt_state_opts *opts)
{
    TT_TRY(check(ctx, target, path == NULL || n == NULL ? NULL : path, "state save"));
    asking a = {.c = NULL};
    tt_status st = ask_open(ctx, target, opts, &a);
    if (st == TT_OK)
        st = save(&a, path, n);
    tti_channel_close(a.c);
    return st;
}

// Nothing is written if one would not fit.
static tt_status check_fits(asking *a, const tti_safetensors *f)
{
    tt_state_entry *e;
    int n;
    char x[TT_SHAPE_TEXT], y[TT_SHAPE_TEXT];
    TT_TRY(list(a, false, &e, &n));
    tt_status st = TT_OK;
    for (int64_t i = 0; i < f->n && st == TT_OK; i++) {
        st = tti_safetensors_usable(f, i);
        const tti_named *t = &f->tensors[i];
        for (int k = 0; k < n && st == TT_OK; k++) {
            if (e[k].is_queue || strcmp(e[k].name, t->name) != 0)
                continue;
            bool same = e[k].dtype == t->dtype && e[k].shape.rank == t->shape.rank;
            for (int d = 0; same && d < t->shape.rank; d++)
                same = e[k].shape.dim[d] == t->shape.dim[d];
            if (!same)
                st = TT_FAIL(a->ctx, TT_ESHAPE, "variable '%s' is %s %s in %s, but %s %s at %s",
                             t->name, tt_dtype_name(t->dtype), tt_shape_text(&t->shape, x), f->path,
                             tt_dtype_name(e[k].dtype), tt_shape_text(&e[k].shape, y),
                             tti_channel_target(a->c));
        }
    }
    tti_free(a->ctx, e);
    return st;
}

static tt_status write_value(asking *a, tti_safetensors *f, int64_t i)
{
    const tti_named *v = &f->tensors[i];
    tti_text t = {.ctx = a->ctx};
    tti_reader r;
    tti_put_text(&t, a->o.container);
    tti_put_text(&t, v->name);
    tti_put_u32(&t, (uint32_t)v->dtype);
    tti_put_shape(&t, &v->shape);
    tti_put_align(&t);
    size_t n = (size_t)t.n;
    char *head = tti_text_take(&t), *data = tti_alloc(a->ctx, v->bytes + 1);
    tt_status st = head == NULL || data == NULL ? TT_ENOMEM : tti_safetensors_read(f, i, data);
    tti_piece p[] = {{head, n}, {data, v->bytes}};
    if (st == TT_OK)
        st = tti_channel_send(a->c, TTI_ASK_WRITE, p, 2);
    if (st == TT_OK)
        st = tti_channel_receive(a->c, 0, &r);
    tti_free(a->ctx, head);
    tti_free(a->ctx, data);
    return st;
}

tt_status tt_state_load_with(tt_ctx *ctx, const char *target, const char *path, int *n,
                             const tt_state_opts *opts)
{
    TT_TRY(check(ctx, target, path == NULL || n == NULL ? NULL : path, "state load"));
    asking a = {.c = NULL};
    tti_safetensors f;
    TT_TRY(tti_safetensors_open(ctx, path, &f));
    tt_status st = ask_open(ctx, target, opts, &a);
    if (st == TT_OK)
        st = check_fits(&a, &f);
    for (int64_t i = 0; i < f.n && st == TT_OK; i++)
        st = write_value(&a, &f, i);
    *n = (int)f.n;
    tti_channel_close(a.c);
    tti_safetensors_close(&f);
    return st;
}

tt_status tt_state_clear_with(tt_ctx *ctx, const char *target, int *n, const tt_state_opts *opts)
{
    TT_TRY(check(ctx, target, n, "state clear"));
    asking a = {.c = NULL};
    tti_text t = {.ctx = ctx};
    tti_reader r;
    tt_status st = ask_open(ctx, target, opts, &a);
    if (st == TT_OK) {
        tti_put_text(&t, a.o.container);
        tti_put_u32(&t, a.o.all);
        st = tti_channel_ask(a.c, TTI_ASK_CLEAR, &t, 0, &r);
    }
    if (st == TT_OK)
        *n = (int)tti_get_u32(&r);
    tti_channel_close(a.c);
    return st;
}
