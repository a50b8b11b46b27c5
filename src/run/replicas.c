/*
 * replicas.c - are all copies of the variables equal? They must be between runs: every replica gets
 * the same update, bit for bit. Where one is not, memory or a core is at fault, or we are.
 */
#include "run/run.h"
#include <string.h>

// The copy that differs from most others; of two, the second. -1: all are equal.
static int odd_one(const tti_variable *v)
{
    int first = 1, odd = 1, most = 0;
    while (first < v->n_copies && memcmp(v->copy[first].data, v->copy[0].data, v->bytes) == 0)
        first++;
    if (first >= v->n_copies)
        return -1;
    for (int i = 0; v->n_copies > 2 && i < v->n_copies; i++) {
        int differs = 0;
        for (int k = 0; k < v->n_copies; k++)
            differs += memcmp(v->copy[i].data, v->copy[k].data, v->bytes) != 0;
        if (differs > most) {
            most = differs;
            odd = i;
        }
    }
    return odd;
}

static tt_status differs(tt_ctx *ctx, const tti_variable *v, int odd, int64_t step)
{
    const tti_copy *bad = &v->copy[odd], *good = &v->copy[odd == 0 ? 1 : 0];
    const uint8_t *x = bad->data, *y = good->data;
    size_t size = tt_dtype_bytes(v->dtype), at = 0;
    while (at < v->bytes - 1 && x[at] == y[at])
        at++;
    return TT_FAIL(ctx, TT_EDEVICE,
                   "replica on %s differs in '%s' from the one on %s after step %lld: element %zu "
                   "is the first of %lld; hashes are %016llx and %016llx",
                   bad->device, v->name, good->device, (long long)step, at / size,
                   (long long)tt_shape_count(&v->shape),
                   (unsigned long long)tti_hash64(x, v->bytes, 0),
                   (unsigned long long)tti_hash64(y, v->bytes, 0));
}

tt_status tti_replicas_check(tt_session *s, int64_t step)
{
    tt_store *store = s->store;
    tt_status st = TT_OK;
    pthread_mutex_lock(&store->mu);
    for (int64_t i = 0; i < store->cap && st == TT_OK; i++) {
        for (const tti_variable *v = store->table[i]; v != NULL && st == TT_OK; v = v->next) {
            int odd = v->bytes > 0 ? odd_one(v) : -1;
            if (odd >= 0)
                st = differs(s->ctx, v, odd, step);
        }
    }
    pthread_mutex_unlock(&store->mu);
    return st;
}
