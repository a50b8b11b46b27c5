/*
 * replicas.c - are all copies of the variables equal? They must be between runs: every replica gets
 * the same update, bit for bit. Where one is not, memory or a core is at fault, or we are.
 * Processes compare hashes of theirs.
 */
#include "net/world.h"
#include "run/run.h"
#include <string.h>

// The whole shards of one variable as the host sees them.
typedef struct view {
    const tti_variable *v;
    const tti_shard **shard;
    const uint8_t **data;
    void **room; // of those on devices with memory of their own
    int n;
} view;

static void view_free(tt_ctx *ctx, view *w)
{
    for (int i = 0; w->room != NULL && i < w->n; i++)
        tti_free(ctx, w->room[i]);
    tti_free(ctx, (void *)w->shard);
    tti_free(ctx, (void *)w->data);
    tti_free(ctx, w->room);
}

// What is not of this process, or older and not in use, is left out.
static tt_status look(tt_ctx *ctx, const tti_variable *v, view *out)
{
    int all = 0;
    *out = (view){.v = v};
    for (const tti_shard *s = v->shards; s != NULL; s = s->next)
        all++;
    out->shard = tti_calloc(ctx, (size_t)all + 1, sizeof(*out->shard));
    out->data = tti_calloc(ctx, (size_t)all + 1, sizeof(*out->data));
    out->room = tti_calloc(ctx, (size_t)all + 1, sizeof(*out->room));
    if (out->shard == NULL || out->data == NULL || out->room == NULL)
        return TT_ENOMEM;
    for (const tti_shard *s = v->shards; s != NULL; s = s->next) {
        bool own = v->ctx == NULL || s->task == ctx->top.task;
        if (!own || !tti_shard_is_whole(v, s) || !tti_shard_is_fresh(v, s) ||
            (s->dev != NULL && s->dev->ctx != ctx))
            continue;
        int i = out->n++;
        out->shard[i] = s;
        out->data[i] = s->data;
        if (s->dev == NULL)
            continue;
        out->data[i] = out->room[i] = tti_alloc(ctx, v->bytes);
        if (out->room[i] == NULL)
            return TT_ENOMEM;
        TT_TRY(tti_device_copy(NULL, out->room[i], s->dev, s->data, v->bytes));
    }
    return TT_OK;
}

// The copy that differs from most others; of two, the second. -1: all are equal.
static int odd_one(const view *w)
{
    const tti_variable *v = w->v;
    int first = 1, odd = 1, most = 0;
    while (first < w->n && memcmp(w->data[first], w->data[0], v->bytes) == 0)
        first++;
    if (first >= w->n)
        return -1;
    for (int i = 0; w->n > 2 && i < w->n; i++) {
        int differs = 0;
        for (int k = 0; k < w->n; k++)
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
                   w->shard[odd]->device, v->name, w->shard[other]->device, (long long)step,
                   at / size, (long long)tt_shape_count(&v->shape),
                   (unsigned long long)tti_hash64(x, v->bytes, 0),
                   (unsigned long long)tti_hash64(y, v->bytes, 0));
}

// *hash: of the value, if it is wanted; 0: there is no whole shard here.
static tt_status check(tt_ctx *ctx, const tti_variable *v, int64_t step, uint64_t *hash)
{
    view w;
    if (v->bytes == 0)
        return TT_OK;
    tt_status st = look(ctx, v, &w);
    int odd = st == TT_OK && w.n > 1 ? odd_one(&w) : -1;
    if (odd >= 0)
        st = differs(ctx, &w, odd, step);
    if (hash != NULL)
        *hash = w.n == 0 ? 0 : tti_hash64(w.data[0], v->bytes, 0) | 1u;
    view_free(ctx, &w);
    return st;
}

// ---- between processes -----------------------------------------------------------------------

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
        st = check(ctx, list[i], step, &mine[i]);
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

tt_status tti_replicas_check(tt_session *s, int64_t step)
{
    tti_variable **list = NULL;
    int64_t n = 0;
    tti_hold h;
    TT_TRY(tti_store_hold(s->store, s->ctx, false, &h));
    tt_status st = tti_store_list(s->store, s->ctx, &list, &n); // by name: in all the same order
    int64_t n_job = 0;
    for (int64_t i = 0; i < n; i++)
        if (list[i]->ctx == s->ctx)
            list[n_job++] = list[i];
    if (st == TT_OK && s->ctx->top.n_tasks > 1)
        st = compare_processes(s, step, list, n_job);
    else
        for (int64_t i = 0; st == TT_OK && i < n; i++)
            st = check(s->ctx, list[i], step, NULL);
    tti_free(s->ctx, list);
    tti_store_let_go(s->store, &h);
    return st;
}
