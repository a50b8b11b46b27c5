/*
 * micro_batches.c - the lanes of a plan as micro-batches: which replica takes which, in which
 * parts.
 */
#include "plan/spread/spread.h"
#include <stdio.h>
#include <string.h>

static const char *say_lanes(tti_plan *p, const tt_lanes *ln)
{
    char text[64];
    int n = ln->n == 1
                ? snprintf(text, sizeof(text), "lane %d", ln->first)
                : snprintf(text, sizeof(text), "lanes %d to %d", ln->first, ln->first + ln->n - 1);
    char *s = tti_plan_alloc(p, (size_t)n + 1);
    if (s != NULL)
        memcpy(s, text, (size_t)n + 1);
    return s;
}

// Adds the micro-batch of the plan's lanes from where the last one ends, if it has rows.
static tt_status add_batch(tti_spreader *s, int replica, int end)
{
    tti_plan *p = s->p;
    const tt_lanes *all = &p->lanes;
    int64_t row = 0;
    for (int i = 0; i < s->n_batches; i++)
        row += s->batches[i].rows;
    int64_t rows = all->bound[end] - row;
    if (rows == 0)
        return TT_OK; // its lanes are empty: they go with the next, or the last
    tti_micro_batch *sh = &s->batches[s->n_batches++];
    tti_plan_request req = {.rows = rows,
                            .batch = {all->first_row + row, all->global_rows, all->total}};
    *sh = (tti_micro_batch){.replica = replica, .micro = s->micros[replica]++, .rows = rows};
    sh->lanes = tti_plan_alloc(p, sizeof(*sh->lanes));
    if (sh->lanes == NULL)
        return TT_ENOMEM;
    TT_TRY(tti_lanes_make(p, &req, sh->lanes));
    sh->reason = say_lanes(p, sh->lanes);
    return sh->reason == NULL ? TT_ENOMEM : TT_OK;
}

tt_status tti_spread_batches(tti_spreader *s, int micro)
{
    tti_plan *p = s->p;
    int n_lanes = p->lanes.n, from = 0;
    s->batches = tti_plan_alloc(p, sizeof(*s->batches) * (size_t)(n_lanes + 1));
    s->micros = tti_plan_alloc(p, sizeof(int) * (size_t)s->n_replicas);
    int *end = tti_plan_alloc(p, sizeof(int) * (size_t)s->n_replicas);
    if (s->batches == NULL || s->micros == NULL || end == NULL)
        return TT_ENOMEM;
    int first = s->mesh->n_without_lanes;
    if (s->n_replicas - first > n_lanes) // a run of few lanes: the first replicas take one each
        for (int r = first; r < s->n_replicas; r++)
            end[r] = TTI_MIN(r + 1 - first, n_lanes);
    else
        tti_assign_lanes(s->mesh, n_lanes, end);
    for (int r = 0; r < s->n_replicas; from = end[r++]) {
        int lanes = end[r] - from, parts = micro == 0 ? lanes : TTI_MIN(micro, lanes);
        for (int m = 0; m < parts; m++)
            TT_TRY(add_batch(s, r, from + (int)((int64_t)(m + 1) * lanes / parts)));
    }
    return TT_OK;
}
