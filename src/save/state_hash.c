/*
 * state_hash.c - hashes of what a checkpoint holds: its weights, its optimizer's tensors, and the
 * state that says where training is. Files may be laid out in any way: tensors count by name.
 */
#include "save/manifest.h"
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const tti_named *const *)a)->name, (*(const tti_named *const *)b)->name);
}

static tt_status hash_tensors(tt_ctx *ctx, const tti_named *t, int64_t n, char out[33])
{
    const tti_named **list = tti_calloc(ctx, (size_t)n + 1, sizeof(*list));
    tti_hasher *h = tti_hash_begin(ctx);
    if (list == NULL || h == NULL) {
        if (h != NULL)
            (void)tti_hash_end(ctx, h);
        tti_free(ctx, (void *)list);
        return TT_ENOMEM;
    }
    for (int64_t i = 0; i < n; i++)
        list[i] = &t[i];
    if (n > 0)
        qsort((void *)list, (size_t)n, sizeof(*list), by_name);
    for (int64_t i = 0; i < n; i++) {
        int64_t head[TT_MAX_RANK + 2] = {list[i]->dtype, list[i]->shape.rank};
        memcpy(head + 2, list[i]->shape.dim, sizeof(int64_t) * (size_t)list[i]->shape.rank);
        tti_hash_add(h, list[i]->name, strlen(list[i]->name) + 1);
        tti_hash_add(h, head, sizeof(int64_t) * (size_t)(list[i]->shape.rank + 2));
        tti_hash_add(h, list[i]->data, list[i]->bytes);
    }
    tti_hash_text(tti_hash_end(ctx, h), out);
    tti_free(ctx, (void *)list);
    return TT_OK;
}

static void add_watch(tti_hasher *h, const tti_watch_state *w)
{
    const double numbers[] = {w->has_best, w->has_best ? w->best : 0, (double)w->bad};
    tti_hash_add(h, numbers, sizeof(numbers));
}

static tt_status hash_state(tt_ctx *ctx, const tti_train_state *s, char out[33])
{
    const int64_t counts[] = {s->step,       s->cursor,        s->count,   s->lanes,
                              s->batch,      s->accumulate,    s->skipped, s->unapplied,
                              s->arithmetic, (int64_t)s->seed, s->n_sums};
    tti_hasher *h = tti_hash_begin(ctx);
    if (h == NULL)
        return TT_ENOMEM;
    tti_hash_add(h, counts, sizeof(counts));
    tti_hash_add(h, &s->lr_factor, sizeof(s->lr_factor));
    add_watch(h, &s->early);
    add_watch(h, &s->plateau);
    add_watch(h, &s->best);
    tti_hash_add(h, s->sums, sizeof(s->sums[0]) * (size_t)s->n_sums);
    tti_hash_add(h, s->gpu, strlen(s->gpu) + 1);
    if (s->job != NULL)
        tti_hash_add(h, s->job, strlen(s->job));
    tti_hash_text(tti_hash_end(ctx, h), out);
    return TT_OK;
}

tt_status tti_snapshot_hash(tt_ctx *ctx, const tti_snapshot *s, tti_snapshot_hashes *out)
{
    TT_TRY(hash_tensors(ctx, s->tensors, s->n_weights, out->weights));
    TT_TRY(hash_tensors(ctx, s->tensors + s->n_weights, s->n - s->n_weights, out->optimizer));
    return hash_state(ctx, &s->state, out->state);
}
