/*
 * recompute_budget.c - recomputation by budget: as little work again as lets the activations of
 * every device fit into so many bytes.
 *
 * "all" gives a set; its members are ordered by what a freed byte costs, and the shortest beginning
 * of that order whose plan fits is found by halving. Memory is what a trial plan needs, with every
 * stage but the last, so the strategy, transfers and scratch count as they will.
 */
#include "plan/plan.h"

typedef struct search {
    tt_graph *g;
    tti_plan_request req;
    int n_chosen;    // of the last trial
    size_t most;     // bytes of its largest arena
    int most_device; //
} search;

static tt_status try_one(search *s, const char *recompute, int cheapest)
{
    tti_plan *p;
    s->req.recompute = recompute;
    s->req.cheapest = cheapest;
    s->req.is_trial = true;
    TT_TRY(tti_plan_make(s->g, &s->req, &p));
    s->n_chosen = p->n_chosen;
    s->most = 0;
    for (int d = 0; d < p->top->n_devices; d++) {
        if (p->devices[d].arena_bytes > s->most) {
            s->most = p->devices[d].arena_bytes;
            s->most_device = d;
        }
    }
    tti_plan_free(p);
    return TT_OK;
}

tt_status tti_plan_in_budget(tt_graph *g, const tti_plan_request *req, size_t budget,
                             tti_plan **out)
{
    search s = {.g = g, .req = *req};
    tti_plan_request last = *req;
    last.recompute = NULL;
    TT_TRY(try_one(&s, NULL, 0));
    if (s.most > budget) {
        size_t plain = s.most;
        TT_TRY(try_one(&s, "all", 0));
        if (s.most > budget)
            return TT_FAIL(g->ctx, TT_ELIMIT,
                           "recompute: activations of %s need %zu bytes, %zu if all of them are "
                           "recomputed, more than the budget of %zu",
                           req->top->devices[s.most_device]->name, plain, s.most, budget);
        int low = 0, high = s.n_chosen;
        while (high - low > 1) {
            int middle = low + (high - low) / 2;
            TT_TRY(try_one(&s, "all", middle));
            if (s.most <= budget)
                high = middle;
            else
                low = middle;
        }
        last.recompute = "all";
        last.cheapest = high;
    }
    return tti_plan_make(g, &last, out);
}

tt_status tti_plan_compare(tti_plan *p, const tti_plan_request *req)
{
    tti_plan_request r = *req;
    tti_plan *plain;
    if (tti_recompute_is_none(req->recompute))
        return TT_OK;
    r.recompute = NULL;
    r.is_trial = true;
    r.mesh = &p->mesh;
    TT_TRY(tti_plan_make(p->graph, &r, &plain));
    for (int d = 0; d < p->top->n_devices; d++)
        p->devices[d].plain_bytes = plain->devices[d].arena_bytes;
    tti_plan_free(plain);
    return TT_OK;
}
