/*
 * collectives.c - the kinds of collectives, one record each: a new one is a row here, a word in
 * comm.h and a piece map. Memory, checks, moves and every transport follow from the row.
 */
#include "comm/comm.h"

// ---- piece maps ------------------------------------------------------------------------------

static tti_call_piece none(const tti_comm_call *call, int from, int to)
{
    (void)call;
    (void)from;
    (void)to;
    return (tti_call_piece){0, 0, 0};
}

// All of the result, for everybody.
static tti_call_piece whole_sum(const tti_comm_call *call, int from, int to)
{
    (void)from;
    return (tti_call_piece){0, 0, call->members[to].count};
}

static tti_call_piece sum_for_root(const tti_comm_call *call, int from, int to)
{
    return to == call->what.root ? whole_sum(call, from, to) : (tti_call_piece){0, 0, 0};
}

static tti_call_piece share_of_sum(const tti_comm_call *call, int from, int to)
{
    (void)from;
    int64_t count = call->members[to].count, begin = tti_piece_begin(&call->what, count, to);
    return (tti_call_piece){begin, 0, tti_piece_begin(&call->what, count, to + 1) - begin};
}

static tti_call_piece one_after_another(const tti_comm_call *call, int from, int to)
{
    (void)to;
    return (tti_call_piece){0, call->offset[from], call->members[from].count};
}

static tti_call_piece gather_at_root(const tti_comm_call *call, int from, int to)
{
    return to == call->what.root ? one_after_another(call, from, to) : (tti_call_piece){0, 0, 0};
}

static tti_call_piece block_of_root(const tti_comm_call *call, int from, int to)
{
    return from == call->what.root ? (tti_call_piece){call->offset[to], 0, call->members[to].count}
                                   : (tti_call_piece){0, 0, 0};
}

static tti_call_piece all_of_root(const tti_comm_call *call, int from, int to)
{
    (void)to;
    return (tti_call_piece){0, 0, from == call->what.root ? call->members[from].count : 0};
}

static tti_call_piece blocks(const tti_comm_call *call, int from, int to)
{
    if (call->counts != NULL) {
        int64_t i = (int64_t)from * call->n + to;
        return (tti_call_piece){call->counts->in_at[i], call->counts->out_at[i],
                                call->counts->count[i]};
    }
    int64_t count = call->members[from].count;
    return (tti_call_piece){to * count, from * count, count};
}

// With a zero byte behind each.
static tti_call_piece strings(const tti_comm_call *call, int from, int to)
{
    (void)to;
    return (tti_call_piece){0, call->offset[from] + from, call->members[from].count};
}

// ---- the records -----------------------------------------------------------------------------

#define REDUCES  1u
#define UNIFORM  2u
#define FREE     4u
#define COUNTS   8u
#define IN_PLACE 16u
#define MAKES    32u
#define KIND(name_, piece_, flow_, has)                                                            \
    {                                                                                              \
        .name = name_, .piece = piece_, .flow = TTI_FLOW_##flow_, .reduces = ((has)&REDUCES) != 0, \
        .is_uniform = ((has)&UNIFORM) != 0, .is_free = ((has)&FREE) != 0,                          \
        .has_counts = ((has)&COUNTS) != 0, .in_place = ((has)&IN_PLACE) != 0,                      \
        .makes_out = ((has)&MAKES) != 0,                                                           \
    }
static const tti_collective_def kinds[] = {
    [TTI_ALL_REDUCE] = KIND("all_reduce", whole_sum, ALL, REDUCES | IN_PLACE),
    [TTI_REDUCE_SCATTER] = KIND("reduce_scatter", share_of_sum, ALL, REDUCES | IN_PLACE),
    [TTI_ALL_GATHER] = KIND("all_gather", one_after_another, ALL, UNIFORM | FREE | IN_PLACE),
    [TTI_BROADCAST] = KIND("broadcast", all_of_root, FROM_ROOT, UNIFORM | IN_PLACE),
    [TTI_ALL_TO_ALL] = KIND("all_to_all", blocks, ALL, COUNTS),
    [TTI_BARRIER] = KIND("barrier", none, ALL, 0),
    [TTI_SUM_LANES] = KIND("sum_lanes", none, ALL, REDUCES),
    [TTI_REDUCE_TO] = KIND("reduce_to", sum_for_root, TO_ROOT, REDUCES | IN_PLACE),
    [TTI_GATHER_TO] = KIND("gather_to", gather_at_root, TO_ROOT, FREE | IN_PLACE),
    [TTI_SCATTER_FROM] = KIND("scatter_from", block_of_root, FROM_ROOT, FREE | COUNTS | IN_PLACE),
    [TTI_BROADCAST_BYTES] = KIND("broadcast_bytes", all_of_root, FROM_ROOT, UNIFORM | FREE | MAKES),
    [TTI_GATHER_BYTES] = KIND("gather_bytes", strings, ALL, UNIFORM | FREE | MAKES),
};

const tti_collective_def *tti_collective_def_of(int kind)
{
    static const tti_collective_def unknown = {.name = "?", .piece = none};
    return kind >= 0 && kind < TTI_N_COLLECTIVE_KINDS ? &kinds[kind] : &unknown;
}

const char *tti_call_name(int kind)
{
    return tti_collective_def_of(kind)->name;
}

// ---- moves -----------------------------------------------------------------------------------

int64_t tti_move_count(const tti_comm_call *call)
{
    int64_t n = call->n;
    return call->is->flow == TTI_FLOW_ALL ? n * n : n;
}

tti_move tti_move_at(const tti_comm_call *call, int64_t k)
{
    const tt_member *m = call->members;
    size_t item = tt_dtype_bytes(call->what.dtype);
    int to = (int)(k % call->n), from = (int)(k / call->n);
    if (call->is->flow == TTI_FLOW_FROM_ROOT)
        from = call->what.root;
    if (call->is->flow == TTI_FLOW_TO_ROOT) {
        from = (int)k;
        to = call->what.root;
    }
    tti_call_piece p = call->is->piece(call, from, to);
    if (p.count == 0 || m[from].in == NULL || m[to].out == NULL) // memory may be none
        return (tti_move){.from = from, .to = to};
    return (tti_move){from, to, (const char *)m[from].in + (size_t)p.from * item,
                      (char *)m[to].out + (size_t)p.to * item, (size_t)p.count * item};
}
