/*
 * agreement.c - a plan that spans processes: each has made it for itself, so each must have made
 * the same. They compare a hash of what matters between them; where it differs they look for the
 * first plan node that does and say it. Flags that others wait for lie in memory of the process
 * that sets them, which those who share it map.
 */
#include "net/world.h"
#include "plan/plan.h"
#include <stdio.h>
#include <string.h>

struct tti_shared_flags {
    tti_segment of[TT_MAX_TASKS]; // by rank; none: all zero
};

typedef struct tti_flag_line {
    tti_flag flag;
    char rest[64 - sizeof(tti_flag)]; // a cache line each
} line;

void tti_plan_drop_shared(tti_plan *p)
{
    for (int r = 0; p->exe.shared != NULL && r < TT_MAX_TASKS; r++)
        tti_segment_free(&p->exe.shared->of[r]);
    p->exe.shared = NULL;
}

// ---- the fingerprint -------------------------------------------------------------------------

static uint64_t hash_value(const tti_plan *p, int value, uint64_t h)
{
    const tti_value *v = &p->values[value];
    const tti_value *root = &p->values[tti_root(p, value)];
    uint64_t words[] = {(uint64_t)v->count,
                        v->bytes,
                        v->skip,
                        (uint64_t)v->dtype,
                        (uint64_t)v->device,
                        root->offset,
                        (uint64_t)root->memory,
                        root->is_mapped};
    return tti_hash64(words, sizeof(words), h);
}

static uint64_t hash_node(const tti_plan *p, const tti_pnode *pn, uint64_t h)
{
    int64_t words[] = {pn->kind,         pn->n_in,
                       pn->n_out,        pn->device,
                       pn->piece,        pn->n_pieces,
                       pn->lanes->n,     pn->lanes->first,
                       pn->lanes->total, pn->lanes->bound[pn->lanes->n]};
    h = tti_hash64(words, sizeof(words), h);
    h = tti_hash64(pn->node->name, strlen(pn->node->name), h);
    for (int k = 0; k < pn->n_in; k++)
        h = hash_value(p, pn->in[k], h);
    for (int k = 0; k < pn->n_out; k++)
        h = hash_value(p, pn->out + k, h);
    if (pn->transfer == NULL)
        return h;
    uint64_t transfer[] = {(uint64_t)pn->transfer->edge, (uint64_t)pn->transfer->n,
                           pn->transfer->bytes};
    return tti_hash64(transfer, sizeof(transfer), h);
}

// Of the first n in the order.
static uint64_t hash_order(const tti_plan *p, int n)
{
    uint64_t h = 0;
    for (int i = 0; i < n; i++)
        h = hash_node(p, &p->nodes[p->order[i]], h);
    return h;
}

// ---- the first difference --------------------------------------------------------------------

typedef struct summary {
    uint64_t hash;
    int64_t n, rows;
    tti_segment_name flags;
} summary;

static int odd_one(const tti_topology *top, const uint64_t *hash)
{
    for (int r = 1; r < top->n_tasks; r++)
        if (hash[r] != hash[0])
            return r;
    return -1;
}

static void describe(const tti_plan *p, int at, char out[160])
{
    if (at >= p->n_order) {
        snprintf(out, 160, "nothing more");
        return;
    }
    const tti_pnode *pn = &p->nodes[p->order[at]];
    char shape[TT_SHAPE_TEXT] = "";
    if (pn->n_out > 0)
        tt_shape_text(&p->values[pn->out].shape, shape);
    snprintf(out, 160, "%s '%.60s' %.40s on %s", tti_pnode_kind_name(pn), pn->node->name, shape,
             p->top->devices[pn->device]->name);
}

// All take the same steps: what decides them is what all have.
static tt_status tell_difference(tti_plan *p, const summary *all)
{
    tt_ctx *ctx = p->ctx;
    int64_t low = 0, high = all[0].n;
    for (int r = 1; r < p->top->n_tasks; r++)
        high = TTI_MIN(high, all[r].n);
    while (low < high) { // the first `low` are equal
        int64_t middle = low + (high - low + 1) / 2;
        uint64_t mine = hash_order(p, (int)middle), hash[TT_MAX_TASKS];
        TT_TRY(tti_world_exchange(ctx->world, "what differs", &mine, sizeof(mine), hash, 0));
        if (odd_one(p->top, hash) < 0)
            low = middle;
        else
            high = middle - 1;
    }
    char mine[160], (*texts)[160] = tti_plan_alloc(p, sizeof(*texts) * (size_t)p->top->n_tasks);
    if (texts == NULL)
        return TT_ENOMEM;
    memset(mine, 0, sizeof(mine));
    describe(p, (int)low, mine);
    TT_TRY(tti_world_exchange(ctx->world, "the difference", mine, sizeof(mine), texts, 0));
    int odd = 1;
    while (odd < p->top->n_tasks - 1 && strcmp(texts[odd], texts[0]) == 0)
        odd++;
    const tti_rank *a = tti_world_rank(ctx->world, 0), *b = tti_world_rank(ctx->world, odd);
    if (strcmp(texts[odd], texts[0]) == 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "processes made different plans: for %.159s, %s and %s have different "
                       "memory or rows (%lld and %lld)",
                       texts[0], a->name, b->name, (long long)all[0].rows,
                       (long long)all[odd].rows);
    return TT_FAIL(ctx, TT_EINVAL,
                   "processes made different plans: entry %lld is %.159s for %s, but %.159s for %s",
                   (long long)low, texts[0], a->name, texts[odd], b->name);
}

// ---- flags -----------------------------------------------------------------------------------

static tt_status open_flags(tti_plan *p, const int *n, summary *mine)
{
    tt_ctx *ctx = p->ctx;
    if (n[p->top->task] == 0)
        return TT_OK;
    tti_segment *s = &p->exe.shared->of[p->top->task];
    TT_TRY(tti_segment_new(ctx, sizeof(line) * (size_t)n[p->top->task], s));
    for (int i = 0; i < n[p->top->task]; i++)
        tti_flag_init_shared(&((line *)s->at)[i].flag);
    mine->flags = tti_segment_name_of(s);
    return TT_OK;
}

tt_status tti_plan_agree(tti_plan *p, const uint8_t *wanted, tti_flag **flag)
{
    tt_ctx *ctx = p->ctx;
    int n[TT_MAX_TASKS] = {0};
    summary mine = {.hash = hash_order(p, p->n_order), .n = p->n_order, .rows = p->rows};
    summary all[TT_MAX_TASKS];
    for (int64_t i = 0; i < p->n_nodes; i++)
        n[p->top->devices[TTI_MAX(p->nodes[i].device, 0)]->task] += wanted[i];
    p->exe.shared = tti_plan_alloc(p, sizeof(*p->exe.shared));
    if (p->exe.shared == NULL)
        return TT_ENOMEM;
    TT_TRY(open_flags(p, n, &mine));
    // The number of exchanges so far tells this plan from those before, in all processes alike.
    p->fingerprint = tti_hash64(&mine.hash, sizeof(mine.hash), tti_world_count(ctx->world)) >> 1;
    TT_TRY(tti_world_exchange(ctx->world, "a plan", &mine, sizeof(mine), all, 0));
    for (int r = 0; r < p->top->n_tasks; r++)
        if (all[r].hash != all[0].hash || all[r].n != all[0].n)
            return tell_difference(p, all);
    for (int r = 0; r < p->top->n_tasks; r++)
        if (r != p->top->task && n[r] > 0 && tti_world_rank(ctx->world, r)->shares_memory)
            TT_TRY(tti_segment_map(ctx, &all[r].flags, &p->exe.shared->of[r]));
    memset(n, 0, sizeof(n));
    for (int64_t i = 0; i < p->n_nodes; i++) {
        if (!wanted[i])
            continue;
        int r = p->top->devices[p->nodes[i].device]->task;
        line *lines = p->exe.shared->of[r].at;
        if (lines != NULL)
            flag[i] = &lines[n[r]].flag;
        n[r]++;
    }
    TT_TRY(tti_world_exchange(ctx->world, "flags", NULL, 0, NULL, 0)); // all have mapped them
    tti_segment_seal(&p->exe.shared->of[p->top->task]);
    return TT_OK;
}
