/*
 * collective_schedule.c - the steps of a collective (collective_schedule.h).
 */
#include "comm/collective_schedule.h"
#include "base/ctx.h"
#include <string.h>

tt_status tti_host_map_make(tt_ctx *ctx, int n, const int *first_of, tti_host_map *out)
{
    int *all = tti_calloc(ctx, 3 * (size_t)n + 1, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    tti_host_map m = {.n = n, .host = all, .members = all + n, .first = all + 2 * n};
    for (int i = 0; i < n; i++) {
        m.host[i] = first_of[i] == i ? m.n_hosts++ : m.host[first_of[i]];
        m.first[m.host[i] + 1]++;
    }
    for (int h = 0; h < m.n_hosts; h++)
        m.first[h + 1] += m.first[h];
    for (int i = n - 1; i >= 0; i--) { // from the last one on: first goes back to where it was
        int h = m.host[i];
        m.members[--m.first[h + 1]] = i;
    }
    // Now first[h + 1] is where host h begins.
    memmove(m.first, m.first + 1, sizeof(int) * (size_t)m.n_hosts);
    m.first[m.n_hosts] = n;
    *out = m;
    return TT_OK;
}

void tti_host_map_free(tt_ctx *ctx, tti_host_map *m)
{
    tti_free(ctx, m->host);
    *m = (tti_host_map){0};
}

int tti_collective_schedule_room(const tti_host_map *m)
{
    return 5 * m->n + 2 * m->n_hosts + 1; // folds, sends; receives, copies; those of hosts
}

// ---- steps -----------------------------------------------------------------------------------

static void add(tti_collective_schedule *s, tti_collective_step_kind kind, int peer, int host,
                int first, int end)
{
    s->steps[s->n++] = (tti_collective_step){kind, peer, host, first, end};
}

static bool reaches(const tti_collective_request *q, int host)
{
    return q->kind != TTI_REDUCE_TO || q->hosts->host[q->root] == host;
}

// Sums in pieces of members: this one's host to each member elsewhere, others' hosts to this one.
static void sum_by_member(const tti_collective_request *q, int self, tti_collective_schedule *s)
{
    const tti_host_map *m = q->hosts;
    int own = m->host[self];
    for (int d = 1; d < m->n; d++) {
        int to = (self + d) % m->n;
        if (m->host[to] == own || tti_host_agent(m, own, to) != self)
            continue;
        add(s, TTI_STEP_FOLD, self, own, to, to + 1);
        add(s, TTI_STEP_SEND, to, own, to, to + 1);
    }
    for (int h = 0; h < m->n_hosts; h++)
        if (h != own)
            add(s, TTI_STEP_RECEIVE, tti_host_agent(m, h, self), h, self, self + 1);
    add(s, TTI_STEP_FOLD, self, -1, self, self + 1);
}

// Sums that go from host to host as a whole: all of the result, or what a host's members make.
static void sum_by_host(const tti_collective_request *q, int self, tti_collective_schedule *s)
{
    const tti_host_map *m = q->hosts;
    int own = m->host[self];
    bool is_whole = q->grain == TTI_WHOLE, is_folded = false;
    bool acts = tti_host_agent(m, own, q->turn) == self;
    for (int h = 0; acts && h < m->n_hosts; h++) {
        int first = is_whole ? 0 : m->members[m->first[h]];
        int end = is_whole ? m->n : m->members[m->first[h + 1] - 1] + 1;
        if (h == own || !reaches(q, h))
            continue;
        if (!is_folded || !is_whole)
            add(s, TTI_STEP_FOLD, self, own, first, end);
        is_folded = true;
        add(s, TTI_STEP_SEND, tti_host_agent(m, h, q->turn), own, first, end);
    }
    if (!reaches(q, own))
        return;
    int first = is_whole ? 0 : m->members[m->first[own]];
    int end = is_whole ? m->n : m->members[m->first[own + 1] - 1] + 1;
    for (int h = 0; acts && h < m->n_hosts; h++)
        if (h != own)
            add(s, TTI_STEP_RECEIVE, tti_host_agent(m, h, q->turn), h, first, end);
    if (q->kind != TTI_REDUCE_TO || q->root == self)
        add(s, TTI_STEP_FOLD, self, -1, is_whole ? 0 : self, is_whole ? m->n : self + 1);
}

// What each member has goes once to each host, and from there to all of it.
static void share(const tti_collective_request *q, int self, tti_collective_schedule *s)
{
    const tti_host_map *m = q->hosts;
    int own = m->host[self];
    for (int h = 0; h < m->n_hosts; h++)
        if (h != own && reaches(q, h))
            add(s, TTI_STEP_SEND, tti_host_agent(m, h, self), own, self, self + 1);
    if (!reaches(q, own))
        return;
    for (int from = 0; from < m->n; from++)
        if (m->host[from] != own && tti_host_agent(m, own, from) == self)
            add(s, TTI_STEP_RECEIVE, from, m->host[from], from, from + 1);
    for (int d = 1; d < m->n && (q->kind != TTI_REDUCE_TO || q->root == self); d++) {
        int from = (self + d) % m->n;
        bool is_here = m->host[from] == own;
        add(s, TTI_STEP_COPY, is_here ? from : tti_host_agent(m, own, from), own, from, from + 1);
    }
}

// Each member has something else for each other one.
static void exchange(const tti_collective_request *q, int self, tti_collective_schedule *s)
{
    const tti_host_map *m = q->hosts;
    for (int to = 0; to < m->n; to++)
        if (m->host[to] != m->host[self])
            add(s, TTI_STEP_SEND, to, m->host[self], self, self + 1);
    for (int d = 1; d < m->n; d++) {
        int from = (self + d) % m->n;
        bool is_here = m->host[from] == m->host[self];
        if (!is_here)
            add(s, TTI_STEP_RECEIVE, from, m->host[from], from, from + 1);
        add(s, TTI_STEP_COPY, is_here ? from : self, m->host[self], from, from + 1);
    }
}

void tti_collective_schedule_make(const tti_collective_request *q, int self,
                                  tti_collective_schedule *out)
{
    bool sums =
        q->kind == TTI_ALL_REDUCE || q->kind == TTI_REDUCE_SCATTER || q->kind == TTI_REDUCE_TO;
    bool is_whole = q->grain == TTI_WHOLE;
    out->n = 0;
    if (sums && q->grain == TTI_BY_MEMBER)
        sum_by_member(q, self, out);
    else if (sums)
        sum_by_host(q, self, out);
    out->n_sum = out->n;
    if (q->kind == TTI_ALL_GATHER || (sums && q->kind != TTI_REDUCE_SCATTER && !is_whole))
        share(q, self, out);
    else if (!sums)
        exchange(q, self, out);
}
