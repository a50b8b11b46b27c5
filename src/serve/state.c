/*
 * state.c - requests about a server and its containers: what is in them, values out and in,
 * clearing.
 */
#include "run/run.h"
#include "serve/serve.h"
#include <string.h>

typedef struct total {
    int64_t containers, variables, queues;
    uint64_t bytes;
} total;

static total count_all(tti_host *h)
{
    total t = {0, 0, 0, 0};
    pthread_mutex_lock(&h->mu);
    for (tti_container *k = h->containers; k != NULL; k = k->next) {
        tti_variable **list;
        int64_t n = 0;
        t.containers++;
        if (tti_store_list(k->store, NULL, &list, &n) == TT_OK) {
            for (int64_t i = 0; i < n; i++)
                t.bytes += list[i]->bytes;
            tti_free(NULL, list);
        }
        t.variables += n;
        pthread_mutex_lock(&k->mu);
        t.queues += k->n_queues;
        pthread_mutex_unlock(&k->mu);
    }
    pthread_mutex_unlock(&h->mu);
    return t;
}

tt_status tti_state_room(tti_client *c, uint64_t bytes, const char *what)
{
    tti_host *h = c->host;
    uint64_t has = bytes <= h->bounds.variables ? count_all(h).bytes : 0;
    if (bytes <= h->bounds.variables && has <= h->bounds.variables - bytes)
        return TT_OK;
    return TT_FAIL(
        c->ctx, TT_ELIMIT, "%s of %llu bytes: %s has variables of %llu bytes, and its limit is %zu",
        what, (unsigned long long)bytes, h->task, (unsigned long long)has, h->bounds.variables);
}

tt_status tti_info_request(tti_client *c, tti_text *out)
{
    tti_host *h = c->host;
    total t = count_all(h);
    tti_put_text(out, h->task);
    tti_put_text(out, TT_VERSION);
    tti_put_text(out, h->devices);
    tti_put_i64(out, h->spec.n);
    tti_put_i64(out, atomic_load(&h->n_clients));
    tti_put_i64(out, atomic_load(&h->n_sessions));
    tti_put_i64(out, t.containers);
    tti_put_i64(out, t.variables);
    tti_put_i64(out, t.queues);
    tti_put_u64(out, t.bytes);
    tti_put_i64(out, atomic_load(&h->n_runs));
    tti_put_i64(out, atomic_load(&h->n_refused));
    tti_put_i64(out, (tti_now_ns() - h->started_ns) / 1000000);
    tti_put_u32(out, (uint32_t)atomic_load(&h->is_draining));
    return TT_OK;
}

static void put_queue(tti_text *out, const tti_container *k, tti_queue_core *q)
{
    tt_shape none = {0};
    tti_put_text(out, k->name);
    tti_put_text(out, q->name);
    tti_put_u32(out, 1);
    tti_put_u32(out, 0);
    tti_put_shape(out, &none);
    pthread_mutex_lock(&q->mu);
    tti_put_u64(out, q->bytes);
    tti_put_i64(out, q->n);
    pthread_mutex_unlock(&q->mu);
}

static uint32_t put_container(tti_text *out, tti_container *k)
{
    tti_variable **list;
    int64_t n = 0;
    if (tti_store_list(k->store, NULL, &list, &n) != TT_OK) {
        out->failed = true;
        return 0;
    }
    for (int64_t i = 0; i < n; i++) {
        tti_put_text(out, k->name);
        tti_put_text(out, list[i]->name);
        tti_put_u32(out, 0);
        tti_put_u32(out, (uint32_t)list[i]->dtype);
        tti_put_shape(out, &list[i]->shape);
        tti_put_u64(out, list[i]->bytes);
        tti_put_i64(out, atomic_load(&list[i]->version));
    }
    tti_free(NULL, list);
    pthread_mutex_lock(&k->mu);
    for (tti_queue_core *q = k->queues; q != NULL; q = q->next, n++)
        put_queue(out, k, q);
    pthread_mutex_unlock(&k->mu);
    return (uint32_t)n;
}

static tt_status list(tti_host *h, const char *name, bool all, tti_text *out)
{
    int64_t at = out->n;
    uint32_t n = 0;
    tti_put_u32(out, 0);
    pthread_mutex_lock(&h->mu);
    for (tti_container *k = h->containers; k != NULL; k = k->next)
        if (all || strcmp(k->name, name) == 0)
            n += put_container(out, k);
    pthread_mutex_unlock(&h->mu);
    if (!out->failed)
        memcpy(out->s + at, &n, sizeof(n));
    return TT_OK;
}

// The container that a request names, which must be there.
static tt_status known(tti_client *c, const char *name, tti_container **out)
{
    *out = tti_container_get(c->host, name, false);
    if (*out == NULL)
        return TT_FAIL(c->ctx, TT_EINVAL, "%s has no container '%s'", c->host->task, name);
    return TT_OK;
}

static tt_status read_variable(tti_client *c, const char *container, const char *name,
                               tti_text *out)
{
    tti_container *k;
    TT_TRY(known(c, container, &k));
    tti_variable *v = tti_store_find(k->store, name);
    tt_status st = TT_OK;
    if (v == NULL) {
        st = TT_FAIL(c->ctx, TT_EINVAL, "%s has no variable '%s' in container '%s'", c->host->task,
                     name, container);
    } else {
        char *room = tti_alloc(c->ctx, v->bytes + 1);
        st = room == NULL ? TT_ENOMEM : tti_variable_read(v, c->ctx, room);
        if (st == TT_OK)
            tti_text_put(out, room, v->bytes);
        tti_free(c->ctx, room);
    }
    tti_container_release(k);
    return st;
}

static tt_status write_variable(tti_client *c, const char *container, const char *name,
                                tti_reader *r)
{
    tt_dtype dtype = tti_get_dtype(r);
    tt_shape shape = tti_get_shape(r);
    tti_get_align(r);
    size_t bytes = (size_t)(r->end - r->at);
    const void *data = tti_get_bytes(r, bytes);
    if (!tti_get_end(r))
        return tti_bad_message(c, "write");
    int64_t need = (int64_t)tt_dtype_bytes(dtype); // no more than was sent is made
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] < 0 || !tti_mul_i64(need, shape.dim[i], &need))
            return tti_bad_message(c, "write");
    if ((uint64_t)need != bytes)
        return TT_FAIL(c->ctx, TT_ESHAPE, "variable '%s' has %lld bytes, but %zu were sent", name,
                       (long long)need, bytes);
    TT_TRY(tti_state_room(c, bytes, "a variable"));
    tti_container *k = tti_container_get(c->host, container, true);
    if (k == NULL)
        return TT_FAIL(c->ctx, TT_ENOMEM, "the server is out of memory");
    tt_graph *g = tt_graph_new(c->ctx);
    tt_tensor *v = tt_variable(g, .dtype = dtype, .shape = shape, .name = name);
    tt_session *s = v == NULL ? NULL : tt_session_new(g, .store = k->store);
    tt_status st = s == NULL ? tt_status_of(c->ctx) : tt_set_variable(s, v, data, bytes);
    tt_graph_free(g);
    tti_container_release(k);
    return st;
}

tt_status tti_state_request(tti_client *c, uint32_t kind, tti_reader *r, tti_text *out)
{
    char container[TTI_CONTAINER_MAX], name[256] = "";
    tti_get_text(r, container, sizeof(container));
    bool all = false;
    if (kind == TTI_ASK_LIST || kind == TTI_ASK_CLEAR)
        all = tti_get_u32(r) != 0;
    else
        tti_get_text(r, name, sizeof(name));
    if (kind == TTI_ASK_WRITE)
        return r->failed ? tti_bad_message(c, "write") : write_variable(c, container, name, r);
    if (!tti_get_end(r))
        return tti_bad_message(c, "state");
    if (kind == TTI_ASK_LIST)
        return list(c->host, container, all, out);
    if (kind == TTI_ASK_READ)
        return read_variable(c, container, name, out);
    int n = tti_containers_clear(c->host, container, all);
    if (n == 0)
        return TT_FAIL(c->ctx, TT_EINVAL, "%s has no container '%s'", c->host->task, container);
    tti_put_u32(out, (uint32_t)n);
    return TT_OK;
}
