/*
 * process_move.c - calls that only copy, between members in several processes (process.h).
 *
 * What one process has for another is a stream of bytes: the values of its members, in order, that
 * any member of the other one needs; each value once, however many take it. A stream goes through
 * the slots in pieces. Where hosts have several processes, what all of a host need goes there once
 * (process_sum.h).
 */
#include "comm/transport/process_sum.h"
#include <string.h>

typedef struct stream {
    const tti_comm_call *call;
    tti_process *p;
    int from, to; // processes
} stream;

// The k-th value of a stream: member f's, for member t, or for all of the receiver's if t < 0.
typedef struct value {
    int f, t;
    tti_call_piece piece;
    size_t bytes;
} value;

static int n_values(const stream *s)
{
    int n = s->p->first[s->from + 1] - s->p->first[s->from];
    return s->call->is->is_uniform ? n : n * (s->p->first[s->to + 1] - s->p->first[s->to]);
}

static value value_at(const stream *s, int k)
{
    int first = s->p->first[s->to], n_to = s->p->first[s->to + 1] - first;
    value v = {.f = s->p->first[s->from] + k, .t = -1};
    if (!s->call->is->is_uniform) {
        v.f = s->p->first[s->from] + k / n_to;
        v.t = first + k % n_to;
    }
    v.piece = s->call->is->piece(s->call, v.f, v.t >= 0 ? v.t : first);
    v.bytes = (size_t)v.piece.count * tt_dtype_bytes(s->call->what.dtype);
    return v;
}

static size_t stream_bytes(const stream *s)
{
    size_t bytes = 0;
    for (int k = 0; k < n_values(s); k++)
        bytes += value_at(s, k).bytes;
    return bytes;
}

// Bytes [at, at + n) of one value, into a slot.
static void put_value(const stream *s, const value *v, size_t at, size_t n, char *slot)
{
    size_t base = (size_t)v->piece.from * tt_dtype_bytes(s->call->what.dtype);
    tti_process_put(s->p, slot, (const char *)s->call->members[v->f].in + base + at, n);
}

// And out of one, to the members that get it.
static void take_value(const stream *s, const value *v, size_t at, size_t n, const char *slot)
{
    size_t base = (size_t)v->piece.to * tt_dtype_bytes(s->call->what.dtype);
    for (int t = s->p->first[s->to]; t < s->p->first[s->to + 1]; t++)
        if ((v->t < 0 || v->t == t) && s->call->members[t].out != NULL)
            memcpy((char *)s->call->members[t].out + base + at, slot, n);
}

// Bytes [at, at + n) of a stream: into a slot, or from one.
static void copy_stream(const stream *s, size_t at, size_t n, char *into, const char *from)
{
    size_t begin = 0;
    for (int k = 0; k < n_values(s); k++) {
        value v = value_at(s, k);
        size_t low = TTI_MAX(at, begin), high = TTI_MIN(at + n, begin + v.bytes);
        if (low < high && into != NULL)
            put_value(s, &v, low - begin, high - low, into + (low - at));
        if (low < high && from != NULL)
            take_value(s, &v, low - begin, high - low, from + (low - at));
        begin += v.bytes;
    }
}

static size_t piece_of(const stream *s, size_t piece, int64_t k)
{
    size_t bytes = stream_bytes(s), at = (size_t)k * piece;
    return at >= bytes ? 0 : TTI_MIN(piece, bytes - at);
}

// Do all of another host get the same, so that its agent takes it for them?
static bool is_spread(const tti_process *p, const tti_comm_call *call, int q)
{
    return p->is_hierarchical && !p->shares_memory[q] && call->is->is_uniform;
}

static tt_status hand_over(tt_comm *c, const tti_comm_call *call,
                           const tti_collective_schedule *schedule, size_t piece, int64_t k)
{
    tti_process *p = c->state;
    uint32_t round = p->round + (uint32_t)k;
    char *slot = tti_area_slot(p, p->area[p->self], round, false);
    for (int q = 0; q < p->n; q++)
        if (q != p->self && p->shares_memory[q])
            TT_TRY(tti_process_wait(c, call->name, q, &p->area[q]->taken, round - TTI_SLOTS + 1));
    for (int q = 0; q < p->n; q++) {
        stream s = {call, p, p->self, q};
        size_t n = q != p->self && p->shares_memory[q] ? piece_of(&s, piece, k) : 0;
        if (n > 0)
            copy_stream(&s, (size_t)k * piece, n,
                        slot + (size_t)tti_process_place(p->self, q) * piece, NULL);
    }
    for (int i = 0; i < schedule->n; i++) {
        stream s = {call, p, p->self, schedule->steps[i].peer};
        if (schedule->steps[i].kind != TTI_STEP_SEND || p->shares_memory[s.to])
            continue;
        size_t n = piece_of(&s, piece, k);
        if (n == 0)
            continue;
        copy_stream(&s, (size_t)k * piece, n, p->out, NULL);
        TT_TRY(tti_process_send(c, call->name, s.to, round, TTI_EDGE_SLOT, p->out, n));
    }
    tti_flag_set(&p->area[p->self]->filled, round + 1);
    return TT_OK;
}

static tt_status receive(tt_comm *c, const tti_comm_call *call,
                         const tti_collective_schedule *schedule, size_t piece, int64_t k)
{
    tti_process *p = c->state;
    uint32_t round = p->round + (uint32_t)k;
    for (int i = 0; i < schedule->n; i++) {
        int q = schedule->steps[i].peer;
        stream s = {call, p, q, p->self};
        if (schedule->steps[i].kind != TTI_STEP_RECEIVE || p->shares_memory[q])
            continue;
        size_t n = piece_of(&s, piece, k);
        char *to = is_spread(p, call, q) ? tti_hosts_place(p, p->self, q, round) : p->room[q];
        if (n > 0)
            TT_TRY(tti_process_receive(c, call->name, q, round, TTI_EDGE_SLOT, to, n));
    }
    if (p->is_hierarchical)
        tti_flag_set(&p->area[p->self]->spread, round + 1);
    return TT_OK;
}

static tt_status take(tt_comm *c, const tti_comm_call *call,
                      const tti_collective_schedule *schedule, size_t piece, int64_t k)
{
    tti_process *p = c->state;
    uint32_t round = p->round + (uint32_t)k;
    TT_TRY(receive(c, call, schedule, piece, k));
    for (int i = 0; i < schedule->n; i++) {
        const tti_collective_step *step = &schedule->steps[i];
        int q = step->first;
        stream s = {call, p, q, p->self};
        if (step->kind != TTI_STEP_COPY)
            continue;
        size_t n = piece_of(&s, piece, k);
        const char *from = p->room[q];
        if (is_spread(p, call, q)) {
            TT_TRY(tti_hosts_find(c, call->name, step, round, &from));
        } else if (p->shares_memory[q]) {
            TT_TRY(tti_process_wait(c, call->name, q, &p->area[q]->filled, round + 1));
            from = tti_area_slot(p, p->area[q], round, false) +
                   (size_t)tti_process_place(q, p->self) * piece;
        }
        if (n > 0)
            copy_stream(&s, (size_t)k * piece, n, NULL, from);
    }
    tti_flag_set(&p->area[p->self]->taken, round + 1);
    return TT_OK;
}

// From this process's members to each other.
static void move_own(const tti_comm_call *call)
{
    int64_t moves = tti_move_count(call);
    int first = call->first, end = first + call->n_mine;
    for (int64_t k = 0; k < moves; k++) {
        tti_move m = tti_move_at(call, k);
        bool is_own = m.to >= first && m.to < end && m.from >= first && m.from < end;
        if (is_own && m.bytes > 0 && m.src != m.dst)
            memcpy(m.dst, m.src, m.bytes);
    }
}

tt_status tti_process_move(tt_comm *c, const tti_comm_call *call)
{
    tti_process *p = c->state;
    size_t piece = tti_process_piece(p), longest = 0;
    for (int from = 0; from < p->n; from++)
        for (int to = 0; to < p->n; to++) {
            stream s = {call, p, from, to};
            longest = from != to ? TTI_MAX(longest, stream_bytes(&s)) : longest;
        }
    int64_t rounds = (int64_t)((longest + piece - 1) / piece);
    // What differs from receiver to receiver goes to each itself.
    const tti_collective_schedule *schedule =
        tti_process_schedule(p, call->is->is_uniform ? TTI_ALL_GATHER : TTI_ALL_TO_ALL, -1);
    for (int64_t k = 0; k < rounds; k++) {
        if (k == 0)
            TT_TRY(hand_over(c, call, schedule, piece, 0));
        if (k + 1 < rounds)
            TT_TRY(hand_over(c, call, schedule, piece, k + 1));
        TT_TRY(take(c, call, schedule, piece, k));
    }
    move_own(call);
    p->round += (uint32_t)rounds;
    tti_area *a = p->area[p->self];
    tti_flag_set(&a->summed, p->round);
    tti_flag_set(&a->got, p->round);
    tti_flag_set(&a->spread, p->round);
    return TT_OK;
}
