/*
 * comm.h (internal) - a group of members, one call as its transport sees it, the transport record.
 *
 * Every collective is one of two things: a reduction (addends combined element by element, the
 * result written to some places) or moves (bytes copied from members to members). comm.c checks a
 * call and turns it into one of them; a transport carries it out. What members must agree on is the
 * call's fingerprint.
 */
#ifndef TUTTI_COMM_COMM_H
#define TUTTI_COMM_COMM_H

#include "base/ctx.h"
#include "comm/lanes.h"
#include <tutti/comm.h>

typedef enum tti_call_kind {
    TTI_ALL_REDUCE = 0,
    TTI_REDUCE_SCATTER = 1,
    TTI_ALL_GATHER = 2,
    TTI_BROADCAST = 3,
    TTI_ALL_TO_ALL = 4,
    TTI_BARRIER = 5,
    TTI_SUM_LANES = 6,
} tti_call_kind;

// What every member of a call must have in common; later transports send it ahead.
typedef struct tti_fingerprint {
    uint64_t sequence; // calls of the group so far
    int64_t count;     // -1: members may differ
    int32_t kind, dtype, combine, lanes, root;
} tti_fingerprint;

typedef struct tti_comm_call {
    tti_call_kind kind;
    const char *name;         // for messages: "all_reduce"
    const tt_member *members; // of all processes once they agree; others' have no memory
    int n, total;             // how many these are, and all of the group
    int first, n_mine;        // those of this process, once they agree
    tt_comm_opts opts;        // filled
    bool has_lanes;           // some member holds lanes: a sum over them
    const int64_t *offset;    // all_gather: where each member's elements begin, and the end of all
} tti_comm_call;

// ---- reductions ------------------------------------------------------------------------------

// One value to be combined; after it the two topmost of the stack are combined so many times.
typedef struct tti_addend {
    const char *data; // NULL: of another process
    int merges;
    int member, part; // whose, and which of its parts
    bool is_wide;     // of the sums' type already
} tti_addend;

typedef struct tti_reduction {
    const struct tti_fold_set *set; // the arithmetic
    tt_dtype from, wide, to;        // of the addends, of the sums, of the result
    tt_combine combine;
    double factor;
    int64_t count;
    const tt_member *members; // results go to their outs; NULL: nowhere
    int n_members;
    bool is_scattered;
    bool passes;      // results go past the cache: they are many, and others read them
    char *copy;       // NULL, or where they go too, as if that began with element 0
    bool copy_passes; // past the cache
    bool is_partial;  // the result is an addend of another reduction: to is wide
    int n;
    tti_addend addend[TTI_MAX(TT_MAX_MEMBERS, TT_MAX_LANES)];
} tti_reduction;

// The program of a reduction: lanes checked and put in order. Errors name the member.
tt_status tti_reduction_make(tt_ctx *ctx, const tti_comm_call *call,
                             tti_reduction *out) TTI_CHECKED;
// Elements [begin, end) of it, from all addends to all outs.
void tti_reduction_run(const tti_reduction *r, int64_t begin, int64_t end);
// Partial sums that the in of a member holds; its lanes are valid.
int tti_member_parts(const tti_comm_call *call, int member);

// First element of member i's share when n members share count elements.
static inline int64_t tti_share_begin(int64_t count, int i, int n)
{
    return count / n * i + count % n * i / n;
}

// ---- moves -----------------------------------------------------------------------------------

typedef struct tti_move {
    int from, to; // members
    const char *src;
    char *dst;
    size_t bytes;
} tti_move;

int64_t tti_move_count(const tti_comm_call *call);
tti_move tti_move_at(const tti_comm_call *call, int64_t k);

// ---- work on the context's devices -----------------------------------------------------------

// Units [begin, end) of some work; any division gives the same result.
typedef void (*tti_units_fn)(const void *arg, int64_t begin, int64_t end);

typedef struct tti_work {
    const char *name; // of the call, for messages
    tti_units_fn fn;
    const void *arg;
    int64_t units, chunk;
    int64_t bytes; // that go through memory: few are not worth waking anyone
    int64_t deadline_ms;
} tti_work;

/*
 * Shares units among the threads of all devices; a little work is done by the caller alone. A
 * device that is late is an error that names it, but is waited for.
 */
tt_status tti_comm_spread(tt_ctx *ctx, const tti_work *w) TTI_CHECKED;

// ---- transports ------------------------------------------------------------------------------

/*
 * A way to other members. open may leave something in c->state. agree compares a call's
 * fingerprints, one per member of this process (prints[i] is members[i]'s), with everyone's; it
 * fails naming who differs in what. reduce, move and barrier then do the work, with the deadline
 * c->deadline_ms on every wait. Where members are in several processes, agree also makes the call's
 * members those of all.
 */
typedef struct tti_transport {
    const char *name;
    const char *help;
    tt_status (*open)(tt_comm *c, const int *ranks, int n); // NULL, 0: all processes
    void (*close)(tt_comm *c);
    tt_status (*agree)(tt_comm *c, tti_comm_call *call, const tti_fingerprint *prints);
    tt_status (*reduce)(tt_comm *c, const tti_comm_call *call, tti_reduction *r);
    tt_status (*move)(tt_comm *c, const tti_comm_call *call);
    tt_status (*barrier)(tt_comm *c);
} tti_transport;
extern const tti_transport tti_transport_local, tti_transport_auto, tti_transport_shm,
    tti_transport_wire;

// Memory that tt_comm_memory() has given.
typedef struct tti_block tti_block;
void tti_blocks_free(tt_comm *c);

struct tt_comm {
    tt_ctx *ctx;
    struct tti_hooks owned;
    const tti_transport *transport;
    void *state; // the transport's
    tti_block *blocks;
    int n_members;    // of this process
    int total, first; // of all processes, and which of them is this process's first
    tt_member *all;   // one per member of all
    int64_t deadline_ms;
    uint64_t sequence;
    tti_fingerprint *prints; // one per member of this process
    int64_t *offsets;        // one more than members of all
};

/*
 * Fills a call from what a public function got, and checks options and counts; then memory, once
 * members agree and lanes are known to be right.
 */
tt_status tti_call_begin(tt_ctx *ctx, tti_call_kind kind, const tt_member *members, int n,
                         int total, const tt_comm_opts *opts, tti_comm_call *call) TTI_CHECKED;
tt_status tti_call_check_memory(tt_ctx *ctx, const tti_comm_call *call) TTI_CHECKED;
const char *tti_call_name(int kind);

// Compares two fingerprints; TT_EINVAL, recorded, says how member's differs from member first's.
tt_status tti_fingerprint_check(tt_ctx *ctx, const char *name, int first, const tti_fingerprint *a,
                                int member, const tti_fingerprint *b) TTI_CHECKED;

#endif
