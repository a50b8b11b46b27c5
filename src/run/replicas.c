/*
 * replicas.c - are all copies of the variables equal? They must be between runs: every replica gets
 * the same update, bit for bit. Where one is not, memory or a core is at fault, or we are.
 * Processes compare hashes of theirs.
 */
#include "net/world.h"
#include "run/run.h"
#include <stdlib.h>
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

// ---- between processes -----------------------------------------------------------------------

// Hash of this process's copies, which must be equal; 0: it has none of its own.
static tt_status hash_own(tt_ctx *ctx, tti_variable *v, int64_t step, uint64_t *out)
{
    const tti_copy *own = v->in_parts ? NULL : tti_shared_copy(v);
    *out = own == NULL ? 0 : tti_hash64(own->data, v->bytes, 0) | 1u;
    for (int i = 0; own != NULL && i < v->n_copies; i++) {
        const tti_copy *c = &v->copy[i];
        if (c->task == ctx->top.task && memcmp(c->data, own->data, v->bytes) != 0)
            return TT_FAIL(ctx, TT_EDEVICE,
                           "replica on %s differs in '%s' from the one on %s "
                           "after step %lld",
                           c->device, v->name, own->device, (long long)step);
    }
    return TT_OK;
}

// The process whose copy differs from most others; of two, the second. -1: all are equal.
static int odd_process(const tt_ctx *ctx, const uint64_t *all, int64_t n, int64_t at, int *other)
{
    int odd = -1, most = 0;
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        int differs = 0, with = -1;
        uint64_t mine = all[r * n + at];
        for (int k = 0; k < ctx->top.n_tasks && mine != 0; k++)
            if (all[k * n + at] != 0 && all[k * n + at] != mine) {
                differs++;
                with = k;
            }
        if (differs >= most && differs > 0) {
            most = differs;
            odd = r;
            *other = with;
        }
    }
    return odd;
}

static tt_status compare_processes(tt_session *s, int64_t step, tti_variable *const *list,
                                   int64_t n)
{
    tt_ctx *ctx = s->ctx;
    uint64_t *mine = tti_calloc(ctx, (size_t)(n * (ctx->top.n_tasks + 1) + 1), sizeof(*mine));
    uint64_t *all = mine + n;
    tt_status st = mine == NULL ? TT_ENOMEM : TT_OK;
    for (int64_t i = 0; st == TT_OK && i < n; i++)
        st = hash_own(ctx, list[i], step, &mine[i]);
    if (st == TT_OK)
        st = tti_world_exchange(ctx->world, "copies of variables", mine, sizeof(*mine) * (size_t)n,
                                all, 0);
    for (int64_t i = 0; st == TT_OK && i < n; i++) {
        int other = 0, odd = odd_process(ctx, all, n, i, &other);
        if (odd >= 0)
            st = TT_FAIL(ctx, TT_EDEVICE,
                         "the copy of %s differs in '%s' from that of %s after step %lld; hashes "
                         "are %016llx and %016llx",
                         tti_world_rank(ctx->world, odd)->name, list[i]->name,
                         tti_world_rank(ctx->world, other)->name, (long long)step,
                         (unsigned long long)all[odd * n + i],
                         (unsigned long long)all[other * n + i]);
    }
    tti_free(ctx, mine);
    return st;
}

// By name, which is the same order in all.
static int by_name(const void *a, const void *b)
{
    return strcmp((*(tti_variable *const *)a)->name, (*(tti_variable *const *)b)->name);
}

static tt_status check_processes(tt_session *s, int64_t step)
{
    tt_store *store = s->store;
    tti_variable **list = tti_calloc(s->ctx, (size_t)store->n + 1, sizeof(*list));
    int64_t n = 0;
    if (list == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < store->cap; i++)
        for (tti_variable *v = store->table[i]; v != NULL; v = v->next)
            if (v->ctx == s->ctx && v->bytes > 0 && v->n_copies > 0)
                list[n++] = v;
    qsort(list, (size_t)n, sizeof(*list), by_name);
    tt_status st = compare_processes(s, step, list, n);
    tti_free(s->ctx, list);
    return st;
}

tt_status tti_replicas_check(tt_session *s, int64_t step)
{
    tt_store *store = s->store;
    tt_status st = TT_OK;
    if (s->ctx->top.n_tasks > 1)
        return check_processes(s, step);
    pthread_mutex_lock(&store->mu);
    for (int64_t i = 0; i < store->cap && st == TT_OK; i++) {
        for (const tti_variable *v = store->table[i]; v != NULL && st == TT_OK; v = v->next)
            st = check(s->ctx, v, step);
    }
    pthread_mutex_unlock(&store->mu);
    return st;
}
