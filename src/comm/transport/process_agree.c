/*
 * process_agree.c - agreeing on the calls of an operation between processes (process.h).
 *
 * An operation begins with everybody's heads, one per call: its fingerprint, its members' counts
 * and lanes, and a small call's values, so that a small sum costs one exchange of flags. Heads lie
 * in two places by turns: who writes those of operation n + 2 knows from everybody's of operation
 * n + 1 that operation n is over.
 */
#include "comm/transport/process_sum.h"
#include <string.h>

const char *tti_process_small(const tti_process *p, const tti_call_head *h)
{
    const tti_member_head *m = (const void *)(h + 1);
    const int64_t *rows = (const void *)(m + h->n_members);
    return (const char *)(rows + (size_t)h->n_rows * (size_t)p->first[p->n]);
}

// Bytes of a call's head without small values, in whichever process has most: equal in all.
static size_t least_bytes(const tti_process *p, const tti_comm_call *call)
{
    size_t rows = call->is->has_counts ? (size_t)p->most * (size_t)p->first[p->n] : 0;
    return sizeof(tti_call_head) + (size_t)p->most * sizeof(tti_member_head) +
           rows * sizeof(int64_t) + 8;
}

// Copies a small sum's values behind a head, if they fit; their bytes.
static size_t write_small(const tt_comm *c, const tti_comm_call *call, tti_call_head *h, char *to,
                          size_t room)
{
    size_t bytes = 0, item = tt_dtype_bytes(call->what.dtype);
    // Without lanes of its own a process cannot know whether its members hold a value or nothing.
    h->is_small = call->is->reduces && call->has_lanes;
    for (int i = 0; h->is_small != 0 && i < call->n_mine; i++) {
        const tt_member *from = &call->own[i];
        size_t n = 0;
        if (from->count <= (int64_t)TTI_SMALL)
            n = (size_t)from->count * item * (size_t)TTI_MAX(tti_member_parts(call, i), 0);
        h->is_small =
            from->count <= (int64_t)TTI_SMALL && n <= room - bytes && (n == 0 || from->in != NULL);
        if (h->is_small != 0 && n > 0)
            tti_process_put(c->state, to + bytes, from->in, n);
        bytes = h->is_small != 0 ? bytes + n : 0;
    }
    return bytes;
}

// Writes the head of a call into room bytes, which it fits in; its bytes.
static size_t write_head(const tt_comm *c, const tti_comm_call *call, int left, char *to,
                         size_t room)
{
    tti_call_head *h = (void *)to;
    tti_member_head *m = (void *)(h + 1);
    int64_t *rows = (void *)(m + call->n_mine);
    tti_fingerprint_make(c, call, 0, left, &h->print);
    h->n_members = call->n_mine;
    h->n_rows = tti_count_rows(call);
    for (int i = 0; i < call->n_mine; i++) {
        const tt_member *from = &call->own[i];
        m[i] = (tti_member_head){from->count, from->first_lane, from->n_lanes,
                                 tti_place_of(c, from->in, 0), tti_place_of(c, from->out, 0)};
    }
    size_t counts = (size_t)h->n_rows * (size_t)c->total;
    if (counts > 0)
        memcpy(rows, call->opts.counts, counts * sizeof(*rows));
    char *small = (char *)(rows + counts);
    size_t used = (size_t)(small - to);
    used += write_small(c, call, h, small, TTI_MIN(TTI_SMALL, (room - used) / 8 * 8));
    used = (used + 7) / 8 * 8;
    h->bytes = (uint32_t)used;
    return used;
}

static tt_status exchange_heads(tt_comm *c, const char *name, char *head, size_t bytes)
{
    tti_process *p = c->state;
    uint32_t call = p->n_calls++;
    p->begin[p->self] = head;
    tti_flag_set(&p->area[p->self]->called, call + 1);
    for (int d = 1; d < p->n; d++) {
        int to = (p->self + d) % p->n;
        uint64_t n = bytes;
        if (p->shares_memory[to])
            continue;
        TT_TRY(tti_process_send(c, name, to, call, TTI_EDGE_HEAD, &n, sizeof(n)));
        TT_TRY(tti_process_send(c, name, to, call, TTI_EDGE_HEAD + 8, head, bytes));
    }
    for (int d = 1; d < p->n; d++) {
        int from = (p->self + d) % p->n;
        uint64_t n = 0;
        if (p->shares_memory[from]) {
            TT_TRY(tti_process_wait(c, name, from, &p->area[from]->called, call + 1));
            p->begin[from] = tti_area_head(p, p->area[from], call);
            continue;
        }
        TT_TRY(tti_process_receive(c, name, from, call, TTI_EDGE_HEAD, &n, sizeof(n)));
        if (n < sizeof(tti_call_head) || n > p->head_bytes)
            return TT_FAIL(c->ctx, TT_EPEER, "%s: rank %d sends %llu bytes as the head of a call",
                           name, from, (unsigned long long)n);
        TT_TRY(tti_process_receive(c, name, from, call, TTI_EDGE_HEAD + 8, p->heads[from], n));
        p->begin[from] = p->heads[from];
    }
    return TT_OK;
}

// As many calls as surely fit, in every process the same number.
static int count_calls(const tti_process *p, const tti_comm_call *calls, int n, size_t *least)
{
    int taken = 0;
    *least = 0;
    for (; taken < n; taken++) {
        size_t bytes = least_bytes(p, &calls[taken]);
        if (taken > 0 && *least + bytes > p->head_bytes)
            break;
        *least += bytes;
    }
    return taken;
}

tt_status tti_process_agree(tt_comm *c, const tti_comm_call *calls, int n, int *taken)
{
    tti_process *p = c->state;
    size_t rest, used = 0;
    for (int i = 0; i < n; i++)
        TT_TRY(tti_fingerprints_check(c, &calls[i], n - i));
    tti_world_doing(p->w, calls[0].name, NULL);
    char *head = tti_area_head(p, p->area[p->self], p->n_calls);
    *taken = count_calls(p, calls, n, &rest);
    for (int i = 0; i < *taken; i++) {
        rest -= least_bytes(p, &calls[i]);
        used += write_head(c, &calls[i], n - i, head + used, p->head_bytes - used - rest);
    }
    return exchange_heads(c, calls[0].name, head, used);
}

// Goes to head i of process q; false: it is not one.
static bool find_head(tti_process *p, int q, int i)
{
    const char *at = i == 0 ? p->begin[q] : (const char *)p->head[q] + p->head[q]->bytes;
    const tti_call_head *h = p->head[q] = (const void *)at;
    return h->bytes >= sizeof(*h) && h->bytes % 8 == 0 &&
           h->bytes <= p->head_bytes - (size_t)(at - p->begin[q]);
}

// Compares everybody's fingerprint with rank 0's and collects all members.
tt_status tti_process_select(tt_comm *c, tti_comm_call *call, int i)
{
    tti_process *p = c->state;
    bool has_lanes = false;
    for (int q = 0; q < p->n; q++) {
        int n = call->n_mine == 0 ? 0 : p->first[q + 1] - p->first[q];
        if (!find_head(p, q, i))
            return TT_FAIL(c->ctx, TT_EPEER, "%s: rank %d sends a damaged head of a call",
                           call->name, p->subgroup.ranks[q]);
        const tti_call_head *h = p->head[q];
        const tti_member_head *m = (const void *)(h + 1);
        TT_TRY(tti_fingerprint_check(c->ctx, call->name, 0, &p->head[0]->print, p->first[q],
                                     &h->print));
        for (int k = 0; k < n && h->n_members == n; k++) {
            c->all[p->first[q] + k] =
                (tt_member){NULL, NULL, m[k].count, m[k].first_lane, m[k].n_lanes};
            has_lanes |= m[k].n_lanes != 0 || m[k].first_lane != 0;
        }
        if (h->n_rows > 0 && h->n_rows <= TTI_MAX(n, 1))
            tti_counts_put(c, call, p->first[q], (const void *)(m + h->n_members), h->n_rows);
    }
    for (int k = 0; k < call->n_mine; k++)
        c->all[c->first + k] = call->own[k];
    call->members = c->all;
    call->n = c->total;
    call->first = c->first;
    call->has_lanes = has_lanes;
    return TT_OK;
}
