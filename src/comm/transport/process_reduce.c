/*
 * process_reduce.c - sums over members in several processes (process.h).
 *
 * Every process sums a range of the elements: of an all-reduce an equal part, of a reduce-scatter
 * what its members get. In a round it puts the elements of its addends that are in another's range
 * into a slot for that one, adds up a piece of its own range, by the same program of additions as
 * one process with all addends, and hands the result on to all. The slots of a few rounds stay in
 * the cache; the next round is handed over before waiting for this one.
 */
#include "comm/nontemporal.h"
#include "comm/transport/process_sum.h"
#include <string.h>

static void count_addends(tti_sum *j)
{
    for (int q = 0; q < j->p->n; q++)
        j->n_addends[q] = 0;
    for (int i = 0; i < j->r->n; i++)
        j->nth[i] = j->n_addends[tti_process_of(j->p, j->r->addend[i].member)]++;
}

// All addends came with the heads: everybody sums everything.
static bool is_small(const tti_process *p)
{
    for (int q = 0; q < p->n; q++)
        if (p->head[q]->is_small == 0)
            return false;
    return true;
}

// Where each addend lies in its process's head: members in order, their parts one after another.
static void run_small(const tti_process *p, const tti_comm_call *call, tti_reduction *r)
{
    size_t bytes = (size_t)r->count * tt_dtype_bytes(r->from);
    const char *at = NULL;
    for (int m = 0, q = -1; m < call->n; m++) {
        while (q < 0 || m >= p->first[q + 1]) {
            q++;
            at = tti_process_small(p, p->head[q]);
        }
        int parts = tti_member_parts(call, m);
        for (int i = 0; q != p->self && i < r->n; i++)
            if (r->addend[i].member == m)
                r->addend[i].data = at + (size_t)r->addend[i].part * bytes;
        at += (size_t)parts * bytes;
    }
    unsigned saved = tti_fp_enter();
    tti_reduction_run(r, 0, r->count);
    tti_fp_leave(saved);
}

static void make_ranges(tti_sum *j)
{
    const tti_process *p = j->p;
    int64_t count = j->r->count, longest = 0;
    int most = 1;
    for (int q = 0; q < p->n; q++) {
        if (j->r->is_scattered) {
            j->begin[q] = tti_share_begin(count, p->first[q], j->call->n);
            j->end[q] = tti_share_begin(count, p->first[q + 1], j->call->n);
        } else { // by whole cache lines
            j->begin[q] = TTI_MIN(tti_share_begin((count + 15) / 16, q, p->n) * 16, count);
            j->end[q] = TTI_MIN(tti_share_begin((count + 15) / 16, q + 1, p->n) * 16, count);
        }
        longest = TTI_MAX(longest, j->end[q] - j->begin[q]);
        most = TTI_MAX(most, j->n_addends[q]);
    }
    j->chunk = (int64_t)(tti_process_piece(p) / (size_t)most / sizeof(double));
    if (tt_dtype_bytes(j->r->wide) < sizeof(double))
        j->chunk *= 2;
    j->chunk = TTI_MAX(j->chunk / 16 * 16, (int64_t)1);
    j->rounds = (longest + j->chunk - 1) / j->chunk;
}

// This process's addends in q's piece of round k, packed into memory of its own; the bytes.
static size_t pack(const tti_sum *j, int q, int64_t k, char *to)
{
    size_t item = tt_dtype_bytes(j->r->from), n = 0;
    int64_t begin = tti_sum_piece(j, q, k), end = tti_sum_piece(j, q, k + 1);
    size_t bytes = (size_t)(end - begin) * item;
    for (int i = 0; i < j->r->n; i++) {
        int m = j->r->addend[i].member;
        if (m < j->call->first || m >= j->call->first + j->call->n_mine || bytes == 0)
            continue;
        size_t part = (size_t)j->r->addend[i].part * (size_t)j->r->count + (size_t)begin;
        tti_process_put(j->p, to + n, (const char *)j->call->members[m].in + part * item, bytes);
        n += bytes;
    }
    return n;
}

// Within a hierarchy everything goes into the slot: who sends it to another host finds it there.
static tt_status hand_over(tti_sum *j, int64_t k)
{
    tti_process *p = j->p;
    uint32_t round = p->round + (uint32_t)k;
    char *slot = tti_area_slot(p, p->area[p->self], round, false);
    for (int q = 0; q < p->n; q++)
        if (q != p->self && p->shares_memory[q]) // who has read what was here
            TT_TRY(tti_process_wait(j->c, j->call->name, q, &p->area[q]->taken,
                                    round - TTI_SLOTS + 1));
    for (int q = 0; q < p->n; q++)
        if (q != p->self && (p->shares_memory[q] || p->is_hierarchical))
            pack(j, q, k, slot + (size_t)tti_process_place(p->self, q) * tti_process_piece(p));
    for (int i = 0; i < j->schedule->n_sum && !p->is_hierarchical; i++) {
        const tti_collective_step *step = &j->schedule->steps[i];
        if (step->kind != TTI_STEP_SEND || p->shares_memory[step->peer])
            continue;
        size_t n = pack(j, step->peer, k, p->out);
        if (n > 0)
            TT_TRY(
                tti_process_send(j->c, j->call->name, step->peer, round, TTI_EDGE_SLOT, p->out, n));
    }
    tti_flag_set(&p->area[p->self]->filled, round + 1);
    return TT_OK;
}

// Points the addends of others to where they are, as if they began at element 0.
static tt_status find_addends(tti_sum *j, int64_t k)
{
    tti_process *p = j->p;
    uint32_t round = p->round + (uint32_t)k;
    int64_t begin = tti_sum_piece(j, p->self, k), end = tti_sum_piece(j, p->self, k + 1);
    size_t item = tt_dtype_bytes(j->r->from), bytes = (size_t)(end - begin) * item;
    const char *from[TT_MAX_TASKS];
    for (int i = 0; i < j->schedule->n_sum; i++) {
        int q = j->schedule->steps[i].peer;
        if (j->schedule->steps[i].kind != TTI_STEP_RECEIVE)
            continue;
        if (p->shares_memory[q]) {
            TT_TRY(tti_process_wait(j->c, j->call->name, q, &p->area[q]->filled, round + 1));
            from[q] = tti_area_slot(p, p->area[q], round, false) +
                      (size_t)tti_process_place(q, p->self) * tti_process_piece(p);
            continue;
        }
        from[q] = p->room[q];
        size_t n = bytes * (size_t)j->n_addends[q];
        if (n > 0)
            TT_TRY(
                tti_process_receive(j->c, j->call->name, q, round, TTI_EDGE_SLOT, p->room[q], n));
    }
    for (int i = 0; i < j->r->n; i++) {
        int q = tti_process_of(p, j->r->addend[i].member);
        if (q != p->self)
            j->r->addend[i].data = (const char *)((uintptr_t)from[q] + (size_t)j->nth[i] * bytes -
                                                  (size_t)begin * item);
    }
    return TT_OK;
}

static tt_status sum(tti_sum *j, int64_t k)
{
    tti_process *p = j->p;
    uint32_t round = p->round + (uint32_t)k;
    bool is_all = j->is_handed_on;
    int64_t begin = tti_sum_piece(j, p->self, k), end = tti_sum_piece(j, p->self, k + 1);
    size_t item = tt_dtype_bytes(j->r->to);
    char *result = tti_area_slot(p, p->area[p->self], round, true);
    if (p->is_hierarchical)
        result += (size_t)p->self * tti_process_piece(p);
    if (!p->is_hierarchical)
        TT_TRY(find_addends(j, k));
    for (int q = 0; is_all && q < p->n; q++)
        if (q != p->self && p->shares_memory[q])
            TT_TRY(
                tti_process_wait(j->c, j->call->name, q, &p->area[q]->got, round - TTI_SLOTS + 1));
    if (is_all) {
        j->r->copy = (char *)((uintptr_t)result - (size_t)begin * item);
        j->r->copy_passes = p->passes;
    }
    if (p->is_hierarchical)
        TT_TRY(tti_hosts_sum(j, k));
    else
        tti_reduction_run(j->r, begin, end);
    tti_flag_set(&p->area[p->self]->taken, round + 1);
    if (!is_all)
        return TT_OK;
    tti_flag_set(&p->area[p->self]->summed, round + 1);
    for (int i = j->schedule->n_sum; i < j->schedule->n && end > begin; i++) {
        const tti_collective_step *step = &j->schedule->steps[i];
        if (step->kind == TTI_STEP_SEND && !p->shares_memory[step->peer])
            TT_TRY(tti_process_send(j->c, j->call->name, step->peer, round, TTI_EDGE_SUM, result,
                                    (size_t)(end - begin) * item));
    }
    return TT_OK;
}

// Bytes of q's result of round k.
static size_t result_bytes(const tti_sum *j, int q, int64_t k)
{
    return (size_t)(tti_sum_piece(j, q, k + 1) - tti_sum_piece(j, q, k)) * tt_dtype_bytes(j->r->to);
}

// What processes that share no memory with this one have summed and it takes, for all of its host.
static tt_status receive_results(tti_sum *j, int64_t k)
{
    tti_process *p = j->p;
    uint32_t round = p->round + (uint32_t)k;
    for (int i = j->schedule->n_sum; i < j->schedule->n; i++) {
        const tti_collective_step *step = &j->schedule->steps[i];
        int q = step->peer;
        size_t bytes = result_bytes(j, q, k);
        if (step->kind != TTI_STEP_RECEIVE || p->shares_memory[q] || bytes == 0)
            continue;
        char *to = p->is_hierarchical ? tti_hosts_place(p, p->self, q, round) : p->room[q];
        TT_TRY(tti_process_receive(j->c, j->call->name, q, round, TTI_EDGE_SUM, to, bytes));
    }
    if (p->is_hierarchical)
        tti_flag_set(&p->area[p->self]->spread, round + 1);
    return TT_OK;
}

// Copies what the others have summed to this process's members.
static tt_status collect(tti_sum *j, int64_t k)
{
    tti_process *p = j->p;
    uint32_t round = p->round + (uint32_t)k;
    size_t item = tt_dtype_bytes(j->r->to);
    TT_TRY(receive_results(j, k));
    for (int i = j->schedule->n_sum; i < j->schedule->n; i++) {
        const tti_collective_step *step = &j->schedule->steps[i];
        int q = step->first;
        if (step->kind != TTI_STEP_COPY)
            continue;
        size_t bytes = result_bytes(j, q, k);
        const char *from = p->room[q];
        if (p->shares_memory[q]) {
            TT_TRY(tti_process_wait(j->c, j->call->name, q, &p->area[q]->summed, round + 1));
            from = tti_area_slot(p, p->area[q], round, true);
            from += p->is_hierarchical ? (size_t)q * tti_process_piece(p) : 0;
        } else if (p->is_hierarchical) {
            TT_TRY(tti_hosts_find(j->c, j->call->name, step, round, &from));
        }
        for (int m = 0; bytes > 0 && m < j->r->n_members; m++)
            tti_copy((char *)j->r->members[m].out + (size_t)tti_sum_piece(j, q, k) * item, from,
                     bytes, j->r->passes);
    }
    tti_flag_set(&p->area[p->self]->got, round + 1);
    return TT_OK;
}

static tt_status run_rounds(tti_sum *j)
{
    bool is_all = j->is_handed_on;
    for (int64_t k = 0; k < j->rounds; k++) {
        if (k == 0)
            TT_TRY(hand_over(j, 0));
        if (k + 1 < j->rounds)
            TT_TRY(hand_over(j, k + 1));
        if (j->p->is_hierarchical)
            TT_TRY(tti_hosts_relay(j, k));
        TT_TRY(sum(j, k));
        if (is_all && k > 0)
            TT_TRY(collect(j, k - 1));
    }
    return is_all && j->rounds > 0 ? collect(j, j->rounds - 1) : TT_OK;
}

static tt_status reduce_large(tt_comm *c, const tti_comm_call *call, tti_reduction *r)
{
    tti_sum j;
    bool has_root = call->is->flow == TTI_FLOW_TO_ROOT;
    j.c = c;
    j.p = c->state;
    j.call = call;
    j.r = r;
    j.is_handed_on = !r->is_scattered;
    int root = has_root ? tti_process_of(j.p, call->what.root) : -1;
    count_addends(&j);
    make_ranges(&j);
    if (tti_process_is_shared(c, call, r)) {
        unsigned before = tti_fp_enter();
        tt_status shared = tti_process_sum_shared(c, call, r, j.begin[j.p->self], j.end[j.p->self]);
        tti_fp_leave(before);
        return shared;
    }
    if (j.is_handed_on && !has_root) {
        r->members = call->members + call->first;
        r->n_members = call->n_mine;
    } else if (has_root && root != j.p->self) {
        r->n_members = 0;
    }
    size_t bytes = (size_t)r->count * tt_dtype_bytes(r->to);
    r->passes = bytes >= TTI_NONTEMPORAL_LEAST;
    j.schedule = tti_process_schedule(j.p, call->what.kind, root);
    if (j.p->is_hierarchical)
        tti_hosts_plan(&j);
    unsigned saved = tti_fp_enter();
    tt_status st = run_rounds(&j);
    tti_fp_leave(saved);
    // Rounds go on where these ended; flags that a call does not use keep up.
    j.p->round += (uint32_t)j.rounds;
    tti_area *a = j.p->area[j.p->self];
    tti_flag_set(&a->summed, j.p->round);
    tti_flag_set(&a->got, j.p->round);
    tti_flag_set(&a->spread, j.p->round);
    return st;
}

tt_status tti_process_reduce(tt_comm *c, const tti_comm_call *call, tti_reduction *r)
{
    if (!is_small(c->state))
        return reduce_large(c, call, r);
    run_small(c->state, call, r);
    return TT_OK;
}
