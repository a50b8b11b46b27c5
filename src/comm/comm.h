/*
 * comm.h (internal) - a group of members, one call as its transport sees it, the transport record.
 *
 * Every call is one collective (device/collective.h): a kind (a record, collectives.c), a type, a
 * piece map that says which elements go from whom to whom, and options. A reduction combines
 * addends element by element and hands out pieces of the result; the others copy pieces from
 * members to members. calls.c checks a call and hands it to a transport, which carries it out. What
 * members must agree on is the call's fingerprint.
 */
#ifndef TUTTI_COMM_COMM_H
#define TUTTI_COMM_COMM_H

#include "base/ctx.h"
#include "base/thread.h"
#include "comm/lane_tree.h"
#include "comm/reduction.h"
#include "device/collective.h"
#include <tutti/comm.h>

/*
 * What every member of a call must have in common; transports between processes send it ahead. It
 * is small and has no padding: with the rest of a call's head it is one cache line, and two that
 * are equal are so byte by byte.
 */
typedef struct tti_fingerprint {
    uint64_t sequence; // calls of the group so far
    int64_t count;     // -1: members may differ
    double factor;
    int32_t lanes, root;
    int32_t left; // calls of the same operation from this one on
    uint8_t kind, dtype, combine, round;
    uint8_t is_fast, is_unequal;
    uint8_t unused[6];
} tti_fingerprint;

// Counts of an all-to-all of unequal blocks, from member to member, and where the blocks lie.
typedef struct tti_counts {
    int64_t *count, *in_at, *out_at; // [total * total], by sender; NULL up to the first such call
} tti_counts;

typedef struct tti_comm_call {
    tti_collective what;
    const struct tti_collective_def *is;
    const char *name;         // for messages: "all_reduce"
    const tt_member *own;     // of this process
    const tt_member *members; // of all processes once they agree; others' have no memory
    int n, total;             // how many these are, and all of the group
    int first, n_mine;        // those of this process, once they agree
    tt_comm_opts opts;        // filled
    bool has_lanes;           // some member holds lanes: a sum over them
    const int64_t *offset;    // where each member's elements begin, and the end of all
    const tti_counts *counts; // unequal blocks
    tt_bytes *made;           // bytes: where the result is put
    void *copy;               // memory of the call: members, counts; freed with its handle
} tti_comm_call;

// ---- the kinds -------------------------------------------------------------------------------

// Elements: where in the sender's in, or in the result of a reduction; where in the receiver's out.
typedef struct tti_call_piece {
    int64_t from, to, count;
} tti_call_piece;

typedef enum tti_flow {
    TTI_FLOW_ALL = 0, // every member sends and receives
    TTI_FLOW_FROM_ROOT = 1,
    TTI_FLOW_TO_ROOT = 2,
} tti_flow;

typedef struct tti_collective_def {
    const char *name;
    tti_call_piece (*piece)(const tti_comm_call *call, int from,
                            int to); // of sums, from is not used
    tti_flow flow;
    bool reduces;    // else it copies; a barrier has no pieces
    bool is_uniform; // what a member sends is the same for all receivers
    bool is_free;    // members may have different counts
    bool has_counts; // may be given unequal counts
    bool in_place;   // a member's piece for itself may be the same memory in in and out
    bool makes_out;  // the result is allocated, one per process
} tti_collective_def;

// First of count elements of member r's piece, and the end of all for the number of members.
static inline int64_t tti_piece_begin(const tti_collective *c, int64_t count, int r)
{
    return c->begin != NULL ? c->begin[r] : tti_share_begin(count, r, c->n);
}

const tti_collective_def *
tti_collective_def_of(int kind); // one without pieces, "?", if there is none
const char *tti_call_name(int kind);

// ---- reductions ------------------------------------------------------------------------------

// The program of a reduction: lanes checked and put in order. Errors name the member.
tt_status tti_reduction_make(tt_ctx *ctx, const tti_comm_call *call,
                             tti_reduction *out) TTI_CHECKED;
// Partial sums that the in of a member holds; its lanes are valid.
int tti_member_parts(const tti_comm_call *call, int member);

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
    bool is_alone; // by the calling thread: devices may be at other work
} tti_work;

/*
 * Shares units among the threads of all devices; a little work is done by the caller alone. A
 * device that is late is an error that names it, but is waited for.
 */
tt_status tti_comm_spread(tt_ctx *ctx, const tti_work *w) TTI_CHECKED;
tt_status tti_comm_await_devices(tt_comm *c) TTI_CHECKED; // returns once all are idle

// ---- transports ------------------------------------------------------------------------------

/*
 * A way to other members. open may leave something in c->state. agree compares the fingerprints of
 * the calls of one operation with everyone's; it fails naming who differs in what. Of n calls it
 * may take fewer, at least one: *taken. select then makes a call's members those of all processes,
 * calls in order and as often as wanted. reduce and move do the work, with the deadline
 * c->deadline_ms on every wait. Messages: to, or from, another process; arrived says whether one is
 * complete. Those of a transport within a process are NULL.
 */
typedef struct tti_transport {
    const char *name;
    const char *help;
    tt_status (*open)(tt_comm *c, const int *ranks, int n); // NULL, 0: all processes
    void (*close)(tt_comm *c);
    tt_status (*agree)(tt_comm *c, const tti_comm_call *calls, int n, int *taken);
    tt_status (*select)(tt_comm *c, tti_comm_call *call, int i);
    tt_status (*reduce)(tt_comm *c, const tti_comm_call *call, tti_reduction *r);
    tt_status (*move)(tt_comm *c, const tti_comm_call *call);
    int (*process_of)(const tt_comm *c, int member);
    tt_status (*send)(tt_comm *c, const char *what, int to, uint32_t n, bool is_data,
                      const void *data, size_t bytes);
    tt_status (*receive)(tt_comm *c, const char *what, int from, uint32_t n, bool is_data,
                         void *data, size_t bytes);
    bool (*arrived)(tt_comm *c, int from, uint32_t n, bool is_data);
    tt_status (*late)(tt_comm *c, const char *what, int from); // records who is waited for
} tti_transport;
extern const tti_transport tti_transport_local, tti_transport_auto, tti_transport_shm,
    tti_transport_wire;

// Memory that tt_comm_memory() has given.
typedef struct tti_block tti_block;
void tti_blocks_free(tt_comm *c);

// ---- work in the background ------------------------------------------------------------------

typedef struct tti_p2p_head {
    int32_t from, to, tag, dtype; // members
    int64_t count;
} tti_p2p_head;

typedef struct tti_p2p {
    tti_p2p_head head;
    const void *out;
    void *in;
    int process;     // the other side's
    uint32_t number; // of messages to that process
} tti_p2p;

typedef enum tti_handle_kind {
    TTI_HANDLE_CALLS = 0,
    TTI_HANDLE_SEND = 1,
    TTI_HANDLE_RECEIVE = 2,
} tti_handle_kind;

struct tt_handle {
    tt_handle *next;            // of its queue
    tt_handle *parts, *sibling; // messages of an operation, in order
    tt_handle **back, *other;   // all handles of a group
    tt_comm *c;
    tti_handle_kind kind;
    bool is_done; // guarded by c->mu, as status
    tt_status status;
    tti_comm_call *calls;
    int64_t n_calls, calls_room;
    tti_p2p message;
};

// A thread that works off handles in order; started by the first one.
typedef struct tti_runner {
    tt_comm *c;
    tti_thread thread;
    tt_handle *first, *last; // guarded by c->mu
    bool is_stopping;        // likewise
} tti_runner;

// A message that has come and is not yet received.
typedef struct tti_arrival {
    struct tti_arrival *next;
    tti_p2p_head head;
    int process; // of the sender
    uint32_t number;
    char data[]; // if the sender is a member of this process
} tti_arrival;

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
    bool is_alone;    // the call runs beside the context's thread
    bool is_nested;   // calls come from within a run: devices are at work
    int64_t *offsets; // one more than members of all
    tti_counts counts;
    int64_t *row; // of a root's counts, one per member
    bool has_row;

    // Handles and messages: the context's thread, but for what mu guards.
    pthread_mutex_t mu;
    pthread_cond_t changed; // a handle is queued or done
    tti_runner calls, sends;
    tt_handle *handles;
    tt_handle *group;      // of the operation being collected; NULL: none is
    tti_arrival *arrivals; // oldest first
    uint32_t *sent, *got;  // messages to and heads from each process
    int n_processes;
};

// Checks and makes calls that have begun, as one operation; the thread that may use the group.
tt_status tti_calls_run(tt_comm *c, tti_comm_call *calls, int64_t n) TTI_CHECKED;
// An error of one process is everybody's: the others would wait for it.
tt_status tti_comm_end(tt_comm *c, tt_status st);
// A call that has begun: now, in the background, or as part of a group of calls (a copy of it).
tt_status tti_call_submit(tt_comm *c, tti_comm_call *call) TTI_CHECKED;
tt_status tti_comm_ready(tt_comm *c) TTI_CHECKED; // TT_EINVAL if NULL; the error if there is one

// handle.c
tt_status tti_handles_open(tt_comm *c) TTI_CHECKED;
void tti_handles_close(tt_comm *c); // waits for what is under way
void tti_comm_drain(tt_comm *c, tti_runner *r);
tt_handle *tti_handle_new(tt_comm *c, tti_handle_kind kind); // NULL: recorded
void tti_handle_free(tt_handle *h);
void tti_handle_free_all(tt_handle *h);          // and its messages
void tti_handle_clear(const tt_comm_opts *opts); // what a call that fails leaves
tt_status tti_handle_add(tt_handle *h, const tti_comm_call *call) TTI_CHECKED; // copies it
tt_status tti_handle_start(tt_handle *h) TTI_CHECKED;  // queues it, and its parts
tt_status tti_handle_finish(tt_handle *h) TTI_CHECKED; // waits for it, and frees it

tt_handle **tti_handle_of(const tt_comm_opts *opts); // where it is to be put; NULL: nowhere

// message.c
tt_status tti_p2p_send(tt_comm *c, const tti_p2p *m) TTI_CHECKED;
tt_status tti_p2p_send_now(tt_comm *c, const tti_p2p *m) TTI_CHECKED; // after those queued
tt_status tti_p2p_receive(tt_comm *c, const tti_p2p *m, bool waits, bool *done) TTI_CHECKED;
tt_status tti_p2p_late(tt_comm *c, const tti_p2p *m) TTI_CHECKED;
void tti_arrivals_free(tt_comm *c);

/*
 * Fills a call from what a public function got, and checks options and counts; then memory, once
 * members agree and lanes are known to be right.
 */
tt_status tti_call_begin(tt_ctx *ctx, tti_collective_kind kind, const tt_member *members, int n,
                         int first, int total, const tt_comm_opts *opts,
                         tti_comm_call *call) TTI_CHECKED;
// Rows of opts.counts that this process has: one per member of an all-to-all, the root's of others.
int tti_count_rows(const tti_comm_call *call);
tt_status tti_call_check_memory(tt_ctx *ctx, const tti_comm_call *call) TTI_CHECKED;
// Puts the rows of counts of members from first on where the call's piece map looks.
void tti_counts_put(tt_comm *c, const tti_comm_call *call, int first, const int64_t *rows, int n);

void tti_fingerprint_make(const tt_comm *c, const tti_comm_call *call, int member, int left,
                          tti_fingerprint *out);
// Compares those of this process's members.
tt_status tti_fingerprints_check(const tt_comm *c, const tti_comm_call *call, int left) TTI_CHECKED;
// Compares two fingerprints; TT_EINVAL, recorded, says how member's differs from member first's.
tt_status tti_fingerprint_check(tt_ctx *ctx, const char *name, int first, const tti_fingerprint *a,
                                int member, const tti_fingerprint *b) TTI_CHECKED;

#endif
