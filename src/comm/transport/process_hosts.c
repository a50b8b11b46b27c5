/*
 * process_hosts.c - sums and copies in a hierarchy: within hosts, then between them
 * (process_sum.h).
 */
#include "comm/transport/process_sum.h"
#include <string.h>

struct tti_hosts {
    int n;                          // runs of addends that one host adds up by itself
    int first[TTI_MAX_ADDENDS + 1]; // of a run, and the end of all
    int host[TTI_MAX_ADDENDS];      // of a run
    int inner[TTI_MAX_ADDENDS];     // merges after an addend that are its host's
    int outer[TTI_MAX_ADDENDS];     // and then, after the last of a run, the others
    tti_reduction part, top;
};

struct tti_hosts *tti_hosts_new(tt_ctx *ctx)
{
    return tti_calloc(ctx, 1, sizeof(struct tti_hosts));
}

// ---- which additions -------------------------------------------------------------------------

typedef struct pile { // of the stack: what the addends from first on have become
    int first, host;  // -1: of several
} pile;

void tti_hosts_plan(tti_sum *s)
{
    struct tti_hosts *l = s->p->hosts;
    pile stack[TTI_MAX_PARTS + 2];
    bool begins[TTI_MAX_ADDENDS];
    int depth = 0;
    for (int i = 0; i < s->r->n; i++) {
        int host = s->p->map.host[tti_process_of(s->p, s->r->addend[i].member)];
        stack[depth++] = (pile){i, host};
        begins[i] = true;
        l->inner[i] = 0;
        for (int m = s->r->addend[i].merges; m > 0; m--, depth--) {
            pile *low = &stack[depth - 2], *high = &stack[depth - 1];
            bool is_one = low->host >= 0 && low->host == high->host;
            l->inner[i] += is_one;
            begins[high->first] = begins[high->first] && !is_one;
            low->host = is_one ? low->host : -1;
        }
        l->outer[i] = s->r->addend[i].merges - l->inner[i];
    }
    l->n = 0;
    for (int i = 0; i < s->r->n; i++)
        if (begins[i]) {
            l->host[l->n] = s->p->map.host[tti_process_of(s->p, s->r->addend[i].member)];
            l->first[l->n++] = i;
        }
    l->first[l->n] = s->r->n;
}

// ---- sums ------------------------------------------------------------------------------------

// Where element 0 of an addend of this host would be if its piece for q of round k began there.
static const char *find_addend(const tti_sum *s, int i, int q, int64_t k)
{
    const tti_process *p = s->p;
    const tti_addend *a = &s->r->addend[i];
    int from = tti_process_of(p, a->member);
    size_t item = tt_dtype_bytes(s->r->from);
    int64_t begin = tti_sum_piece(s, q, k), end = tti_sum_piece(s, q, k + 1);
    if (from == p->self)
        return (const char *)s->call->members[a->member].in +
               (size_t)a->part * (size_t)s->r->count * item;
    const char *at = tti_area_slot(p, p->area[from], p->round + (uint32_t)k, false) +
                     (size_t)tti_process_place(from, q) * tti_process_piece(p) +
                     (size_t)s->nth[i] * (size_t)(end - begin) * item;
    return (const char *)((uintptr_t)at - (size_t)begin * item);
}

static tt_status await_host(tti_sum *s, int64_t k)
{
    tti_process *p = s->p;
    for (int q = 0; q < p->n; q++)
        if (q != p->self && p->shares_memory[q])
            TT_TRY(tti_process_wait(s->c, s->call->name, q, &p->area[q]->filled,
                                    p->round + (uint32_t)k + 1));
    return TT_OK;
}

// Adds up the n-th run of addends for q's piece of round k, to there.
static void add_run(tti_sum *s, int n, int q, int64_t k, char *to)
{
    struct tti_hosts *l = s->p->hosts;
    tti_reduction *r = &l->part;
    int64_t begin = tti_sum_piece(s, q, k), end = tti_sum_piece(s, q, k + 1);
    tt_member out = {.out = (char *)((uintptr_t)to - (size_t)begin * tt_dtype_bytes(s->r->wide))};
    memcpy(r, s->r, offsetof(tti_reduction, addend));
    r->to = r->wide;
    r->members = &out;
    r->n_members = 1;
    r->is_scattered = r->passes = false;
    r->copy = NULL;
    r->is_partial = true;
    r->n = 0;
    for (int i = l->first[n]; i < l->first[n + 1]; i++) {
        r->addend[r->n] = s->r->addend[i];
        r->addend[r->n].data = find_addend(s, i, q, k);
        r->addend[r->n++].merges = l->inner[i];
    }
    tti_reduction_run(r, begin, end);
}

// What this host has for q's piece of round k, to there; the bytes.
static size_t add_runs(tti_sum *s, int q, int64_t k, char *to)
{
    const struct tti_hosts *l = s->p->hosts;
    size_t bytes = 0, each = (size_t)(tti_sum_piece(s, q, k + 1) - tti_sum_piece(s, q, k)) *
                             tt_dtype_bytes(s->r->wide);
    for (int i = 0; each > 0 && i < l->n; i++)
        if (l->host[i] == s->p->map.host[s->p->self]) {
            add_run(s, i, q, k, to + bytes);
            bytes += each;
        }
    return bytes;
}

tt_status tti_hosts_relay(tti_sum *s, int64_t k)
{
    tti_process *p = s->p;
    size_t bytes = 0;
    TT_TRY(await_host(s, k));
    for (int i = 0; i < s->schedule->n_sum; i++) {
        const tti_collective_step *step = &s->schedule->steps[i];
        if (step->kind == TTI_STEP_FOLD && step->host >= 0)
            bytes = add_runs(s, step->first, k, p->out);
        if (step->kind == TTI_STEP_SEND && bytes > 0)
            TT_TRY(tti_process_send(s->c, s->call->name, step->peer, p->round + (uint32_t)k,
                                    TTI_EDGE_SLOT, p->out, bytes));
    }
    return TT_OK;
}

// What another host has for this process, through the agent there.
static tt_status receive_runs(tti_sum *s, const tti_collective_step *step, int64_t k, size_t each)
{
    tti_process *p = s->p;
    const struct tti_hosts *l = p->hosts;
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += l->host[i] == step->host;
    if (n == 0 || each == 0)
        return TT_OK;
    return tti_process_receive(s->c, s->call->name, step->peer, p->round + (uint32_t)k,
                               TTI_EDGE_SLOT, p->room[step->peer], (size_t)n * each);
}

tt_status tti_hosts_sum(tti_sum *s, int64_t k)
{
    tti_process *p = s->p;
    struct tti_hosts *l = p->hosts;
    tti_reduction *r = &l->top;
    int own = p->map.host[p->self], seen[TT_MAX_TASKS];
    int64_t begin = tti_sum_piece(s, p->self, k), end = tti_sum_piece(s, p->self, k + 1);
    size_t item = tt_dtype_bytes(s->r->wide), each = (size_t)(end - begin) * item;
    memset(seen, 0, sizeof(*seen) * (size_t)p->map.n_hosts);
    for (int i = 0; i < s->schedule->n_sum; i++)
        if (s->schedule->steps[i].kind == TTI_STEP_RECEIVE)
            TT_TRY(receive_runs(s, &s->schedule->steps[i], k, each));
    memcpy(r, s->r, offsetof(tti_reduction, addend));
    r->n = 0;
    for (int n = 0; n < l->n; n++) {
        int h = l->host[n], last = l->first[n + 1] - 1;
        for (int i = l->first[n]; h == own && i <= last; i++) {
            r->addend[r->n] = s->r->addend[i];
            r->addend[r->n].data = find_addend(s, i, p->self, k);
            r->addend[r->n++].merges = l->inner[i];
        }
        if (h != own) {
            const char *at = p->room[tti_host_agent(&p->map, h, p->self)];
            uintptr_t data = (uintptr_t)at + (size_t)seen[h]++ * each - (size_t)begin * item;
            r->addend[r->n++] = (tti_addend){.data = (const char *)data, .is_wide = true};
        }
        r->addend[r->n - 1].merges += l->outer[last];
    }
    tti_reduction_run(r, begin, end);
    return TT_OK;
}

// ---- once to each host -----------------------------------------------------------------------

char *tti_hosts_place(const tti_process *p, int agent, int q, uint32_t round)
{
    return tti_area_slot(p, p->area[agent], round, true) + (size_t)q * tti_process_piece(p);
}

tt_status tti_hosts_find(tt_comm *c, const char *what, const tti_collective_step *copy,
                         uint32_t round, const char **out)
{
    tti_process *p = c->state;
    *out = tti_hosts_place(p, copy->peer, copy->first, round);
    return copy->peer == p->self
               ? TT_OK
               : tti_process_wait(c, what, copy->peer, &p->area[copy->peer]->spread, round + 1);
}
