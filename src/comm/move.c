/*
 * move.c - the calls that only copy, as moves from member to member; a transport carries them out
 * in any order.
 */
#include "comm/comm.h"

int64_t tti_move_count(const tti_comm_call *call)
{
    int64_t n = call->n;
    return call->kind == TTI_BROADCAST ? n : n * n;
}

tti_move tti_move_at(const tti_comm_call *call, int64_t k)
{
    const tt_member *m = call->members;
    size_t item = tt_dtype_bytes(call->opts.dtype);
    int to = (int)(k % call->n), from = (int)(k / call->n);
    if (call->kind == TTI_BROADCAST)
        from = call->opts.root;
    size_t bytes = (size_t)m[from].count * item;
    size_t src = call->kind == TTI_ALL_TO_ALL ? (size_t)to * bytes : 0;
    size_t dst = call->kind == TTI_ALL_TO_ALL   ? (size_t)from * bytes
                 : call->kind == TTI_ALL_GATHER ? (size_t)call->offset[from] * item
                                                : 0;
    if (bytes == 0) // its memory may be none
        return (tti_move){.from = from, .to = to};
    return (tti_move){from, to, (const char *)m[from].in + src, (char *)m[to].out + dst, bytes};
}
