/*
 * replicas.c - are all copies of the variables equal? They must be between runs: every replica gets
 * the same update, bit for bit. Where one is not, memory or a core is at fault, or we are.
 */
#include "run/run.h"
#include <string.h>

// The copies of one variable as the host sees them.
typedef struct view {
    const tti_variable *v;
    const uint8_t *data[TTI_MAX_DEVICES];
    void *room[TTI_MAX_DEVICES];
} view;

static tt_status look(tt_ctx *ctx, const tti_variable *v, view *out)
{
    *out = (view){.v = v};
    for (int i = 0; i < v->n_copies; i++) {
        out->data[i] = v->copy[i].data;
        if (v->copy[i].dev == NULL)
            continue;
        out->data[i] = out->room[i] = tti_alloc(ctx, v->bytes);
        if (out->room[i] == NULL)
            return TT_ENOMEM;
        TT_TRY(tti_device_copy(NULL, out->room[i], v->copy[i].dev, v->copy[i].data, v->bytes));
    }
    return TT_OK;
}

// The copy that differs from most others; of two, the second. -1: all are equal.
static int odd_one(const view *w)
{
    const tti_variable *v = w->v;
    int first = 1, odd = 1, most = 0;
    while (first < v->n_copies && memcmp(w->data[first], w->data[0], v->bytes) == 0)
        first++;
    if (first >= v->n_copies)
        return -1;
    for (int i = 0; v->n_copies > 2 && i < v->n_copies; i++) {
        int differs = 0;
        for (int k = 0; k < v->n_copies; k++)
            differs += memcmp(w->data[i], w->data[k], v->bytes) != 0;
        if (differs > most) {
            most = differs;
            odd = i;
        }
    }
    return odd;
}

static tt_status differs(tt_ctx *ctx, const view *w, int odd, int64_t step)
{
    const tti_variable *v = w->v;
    int other = odd == 0 ? 1 : 0;
    const uint8_t *x = w->data[odd], *y = w->data[other];
    size_t size = tt_dtype_bytes(v->dtype), at = 0;
    while (at < v->bytes - 1 && x[at] == y[at])
        at++;
    return TT_FAIL(ctx, TT_EDEVICE,
                   "replica on %s differs in '%s' from the one on %s after step %lld: element %zu "
                   "is the first of %lld; hashes are %016llx and %016llx",
                   v->copy[odd].device, v->name, v->copy[other].device, (long long)step, at / size,
                   (long long)tt_shape_count(&v->shape),
                   (unsigned long long)tti_hash64(x, v->bytes, 0),
                   (unsigned long long)tti_hash64(y, v->bytes, 0));
}

static tt_status check(tt_ctx *ctx, const tti_variable *v, int64_t step)
{
    if (v->bytes == 0 || v->n_copies < 2)
        return TT_OK;
    view w;
    tt_status st = look(ctx, v, &w);
    int odd = st == TT_OK ? odd_one(&w) : -1;
    if (odd >= 0)
        st = differs(ctx, &w, odd, step);
    for (int i = 0; i < v->n_copies; i++)
        tti_free(ctx, w.room[i]);
    return st;
}

tt_status tti_replicas_check(tt_session *s, int64_t step)
{
    tt_store *store = s->store;
    tt_status st = TT_OK;
    pthread_mutex_lock(&store->mu);
    for (int64_t i = 0; i < store->cap && st == TT_OK; i++) {
        for (const tti_variable *v = store->table[i]; v != NULL && st == TT_OK; v = v->next)
            st = check(s->ctx, v, step);
    }
    pthread_mutex_unlock(&store->mu);
    return st;
}
