/*
 * comm.h - communication for training loops written by hand: collectives between the members of a
 * group, messages between two members, and handles of calls that go on in the background.
 *
 * Members are numbered from 0. A process makes one call for all its members and passes an array
 * with one entry per member; the call returns when every result is complete, or at once with a
 * handle (.handle). Sums are added in the order of the lane tree, so they have the same bits as one
 * device with the whole batch, however the lanes are distributed. Large calls use the threads of
 * all the context's devices. A collective without a handle allocates nothing but bytes it returns.
 *
 * In a context opened with tasks (tasks.h), a group spans all processes of the job: each process
 * opens the group and makes every collective call, in the same order, with its own members; the
 * members of rank 0 come first. If the processes make different calls, all of them fail before any
 * data is sent. A subgroup is opened and used by its own processes only; calls on different groups
 * may alternate. Buffers are host memory; devices with their own memory are refused by name.
 *
 *   tt_member m[2] = {{.in = a, .out = a, .count = n, .n_lanes = 4},
 *                     {.in = b, .out = b, .count = n, .first_lane = 4, .n_lanes = 4}};
 *   tt_all_reduce(comm, m);
 */
#ifndef TUTTI_COMM_H
#define TUTTI_COMM_H

#include <tutti/run.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- parts of a batch ------------------------------------------------------------------------

/*
 * One part of a batch. Parts consist of whole lanes, so that sums over rows can be combined again.
 * Running a part gives n_sums partial results for each sum: one per maximal sub-tree of its lanes.
 */
typedef struct tt_part {
    tt_batch batch;          // for tt_run()
    int64_t rows;            // 0: the part is empty, nothing to run
    int first_lane, n_lanes; // for tt_member; no lanes if there are no rows
    int n_sums;
} tt_part;
// Part i of n of a batch with this many rows; the context's lanes are divided evenly.
TT_API tt_status tt_batch_part(tt_ctx *ctx, int64_t rows, int i, int n, tt_part *out);

// ---- groups ----------------------------------------------------------------------------------

typedef struct tt_comm tt_comm;

typedef struct tt_comm_open_opts {
    size_t opts_size;
    int members;           // members of this process, 1 to TT_MAX_MEMBERS; default: one per device
    const char *transport; // "local": this process only; over all processes of the job: "auto",
                           // "shm" (shared memory), "wire" (TCP). Default: "auto" if several
    int64_t deadline_ms;   // longest wait without progress, in ms; default: the context's
    const int *ranks;      // ranks of the group, ascending, including this one; default: all
    int n_ranks;
} tt_comm_open_opts;
#define TT_MAX_MEMBERS 1024

// Opens a group. It is owned by ctx and may be freed earlier; NULL on failure.
TT_API tt_comm *tt_comm_open_with(tt_ctx *ctx, const tt_comm_open_opts *opts);
#define tt_comm_open(...) TT_CALL1(tt_comm_open, __VA_ARGS__, )
TT_API void tt_comm_free(tt_comm *c);
TT_API int tt_comm_members(const tt_comm *c); // of all processes; 0 for NULL
TT_API int tt_comm_first(const tt_comm *c);   // number of this process's first member; 0 for NULL

/*
 * Zeroed memory that is shared by the group's processes on one host. An all-reduce whose inputs and
 * outputs all lie in such memory copies nothing. Every process must ask for the same number of
 * bytes. The memory is freed with the group; NULL on failure.
 */
TT_API void *tt_comm_memory(tt_comm *c, size_t bytes);

/*
 * The input and output of one member. Memory of different members must not overlap. in and out of
 * one member must not overlap either; they may be equal where a call says so. A pointer is not used
 * if it would hold no elements.
 */
typedef struct tt_member {
    const void *in;
    void *out;
    int64_t count;           // number of elements; each call says of what
    int first_lane, n_lanes; // sums: the lanes whose partial sums in holds, in order
} tt_member;

typedef enum tt_combine {
    TT_COMBINE_SUM = 0,
    TT_COMBINE_MAX = 1, // NaN if any value is NaN
    TT_COMBINE_MIN = 2,
} tt_combine;

// A call in the background; see below.
typedef struct tt_handle tt_handle;

// Options of all calls; each call reads the fields marked with its name.
typedef struct tt_comm_opts {
    size_t opts_size;
    tt_dtype dtype;        // element type; default f32. Sums do not support u8 and bool
    tt_combine combine;    // reduce: default sum
    bool fast;             // reduce: add in any order; the result depends on the members
    double factor;         // reduce: multiplies the result (floats); default 1. 1 / n gives a mean
    int lanes;             // reduce: number of lanes of the job; default: the context's
    tt_dtype round;        // reduce: round an f32 result to bf16 or f16; default: no rounding
    int root;              // calls with a root: its member number
    const int64_t *counts; // all_to_all, scatter_from: unequal counts
    int64_t *received;     // all_gather, gather_to, all_to_all: NULL, or room for what was received
    tt_handle **handle;    // NULL: the call blocks; else where the handle is written
    int tag;               // messages: any number; default 0
    int member;            // messages: which of this process's members, from 0; default: the first
} tt_comm_opts;
typedef tt_comm_opts tt_all_reduce_opts, tt_reduce_to_opts, tt_reduce_scatter_opts,
    tt_all_gather_opts, tt_gather_to_opts, tt_scatter_from_opts, tt_broadcast_from_opts,
    tt_all_to_all_opts, tt_sum_lanes_opts, tt_send_to_opts, tt_receive_from_opts,
    tt_broadcast_bytes_opts, tt_gather_bytes_opts, tt_call_group_end_opts;

/*
 * Writes the sum of all inputs, count elements, to every output. With lanes, in holds one partial
 * sum per maximal sub-tree of the member's lanes, as tt_run() returns them; a member may hold no
 * lanes, and every lane must be held exactly once. Without lanes, each member has one value and
 * member i counts as lane i. bf16 and f16 are added in f32 and rounded once. out may equal in.
 */
TT_API tt_status tt_all_reduce_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_reduce(...) TT_CALL2(tt_all_reduce, __VA_ARGS__, )

// The same sum, written to the output of member root only; other outputs are not used.
TT_API tt_status tt_reduce_to_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_reduce_to(...) TT_CALL2(tt_reduce_to, __VA_ARGS__, )

/*
 * The same sum; member i of n gets the elements floor(i count / n) to floor((i + 1) count / n) - 1.
 * out may be the address of those elements in in.
 */
TT_API tt_status tt_reduce_scatter_with(tt_comm *c, const tt_member *members,
                                        const tt_comm_opts *opts);
#define tt_reduce_scatter(...) TT_CALL2(tt_reduce_scatter, __VA_ARGS__, )

/*
 * Writes all inputs, one after another, to every output; counts may differ. in may lie in out where
 * its elements end up. received: one count per member.
 */
TT_API tt_status tt_all_gather_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_gather(...) TT_CALL2(tt_all_gather, __VA_ARGS__, )

// The same, to the output of member root only; received is written in root's process.
TT_API tt_status tt_gather_to_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_gather_to(...) TT_CALL2(tt_gather_to, __VA_ARGS__, )

/*
 * The reverse: the input of member root holds one block per member, one after another; member i
 * gets block i, count elements. Blocks are equal, or root's process passes counts, one per member:
 * they must be the members' own. root's out may be the address of its block in in.
 */
TT_API tt_status tt_scatter_from_with(tt_comm *c, const tt_member *members,
                                      const tt_comm_opts *opts);
#define tt_scatter_from(...) TT_CALL2(tt_scatter_from, __VA_ARGS__, )

// Copies the input of member root to every output. The root's out may equal its in.
TT_API tt_status tt_broadcast_from_with(tt_comm *c, const tt_member *members,
                                        const tt_comm_opts *opts);
#define tt_broadcast_from(...) TT_CALL2(tt_broadcast_from, __VA_ARGS__, )

/*
 * in and out hold one block of count elements per member: block j of member i is sent to block i of
 * member j. With counts, blocks differ: counts has a row for each of this process's members, of one
 * count per member to send to; blocks lie one after another in in and in out; a member's count is
 * then the room of its out, in elements. received: a row for each of this process's members, of the
 * count from each member. All processes pass counts, or none.
 */
TT_API tt_status tt_all_to_all_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_to_all(...) TT_CALL2(tt_all_to_all, __VA_ARGS__, )

// Returns when every process has called it and its devices are idle.
TT_API tt_status tt_barrier(tt_comm *c);

/*
 * Adds the partial sums of the parts of one batch without a group, for micro-batches that ran one
 * after another on one device. Like tt_all_reduce() of n members, with one result, out.
 */
TT_API tt_status tt_sum_lanes_with(tt_ctx *ctx, const tt_member *parts, int n, void *out,
                                   const tt_comm_opts *opts);
#define tt_sum_lanes(...) TT_CALL4(tt_sum_lanes, __VA_ARGS__, )

// ---- bytes of any length ---------------------------------------------------------------------

// A string, a struct, a file: what the others need not know the length of.
typedef struct tt_bytes {
    const void *data; // results: followed by a zero byte
    size_t bytes;
} tt_bytes;

/*
 * Gives every process the bytes of member root: in is read in root's process only, *out is written
 * in all. Free *out with tt_bytes_free().
 */
TT_API tt_status tt_broadcast_bytes_with(tt_comm *c, const tt_bytes *in, tt_bytes *out,
                                         const tt_comm_opts *opts);
#define tt_broadcast_bytes(...) TT_CALL3(tt_broadcast_bytes, __VA_ARGS__, )

/*
 * Gives every process the bytes of every member: in has one entry for each of this process's
 * members, out one for each member of the group. Free out, all of it at once, with tt_bytes_free().
 */
TT_API tt_status tt_gather_bytes_with(tt_comm *c, const tt_bytes *in, tt_bytes *out,
                                      const tt_comm_opts *opts);
#define tt_gather_bytes(...) TT_CALL3(tt_gather_bytes, __VA_ARGS__, )
TT_API void tt_bytes_free(tt_ctx *ctx, tt_bytes *out);

// ---- messages between two members ------------------------------------------------------------

/*
 * Sends count elements to a member, or receives them from one. A message is received by the first
 * call that names its sender, receiver and tag; those of one sender, receiver and tag keep their
 * order. Both sides must say the same count and type. Sending does not wait for the receiver:
 * messages are buffered, between members of one process too. Messages are independent of collective
 * calls, of their order and of their handles.
 */
TT_API tt_status tt_send_to_with(tt_comm *c, const void *data, int64_t count, int to,
                                 const tt_comm_opts *opts);
#define tt_send_to(...) TT_CALL4(tt_send_to, __VA_ARGS__, )
TT_API tt_status tt_receive_from_with(tt_comm *c, void *data, int64_t count, int from,
                                      const tt_comm_opts *opts);
#define tt_receive_from(...) TT_CALL4(tt_receive_from, __VA_ARGS__, )

// ---- handles ---------------------------------------------------------------------------------

/*
 * A call with .handle = &h returns at once and goes on in a thread of the group: collectives one
 * after another in the order of their calls, messages beside them. Any number may be under way, and
 * they may be waited for in any order. The memory of the call must stay as it is until the handle
 * is done; the array of members is copied. An error of the call is returned by every wait, and ends
 * the calls behind it. tt_comm_free() and tt_close() wait for what is under way.
 *
 *   tt_handle *h;
 *   tt_all_reduce(comm, m, .handle = &h);
 *   ...
 *   tt_handle_wait(&h);
 *
 * A handle that is done is freed and *h becomes NULL; NULL counts as done.
 */
TT_API tt_status tt_handle_wait(tt_handle **h);
TT_API tt_status tt_handle_test(tt_handle **h, bool *done); // does not wait
TT_API tt_status tt_handle_wait_all(tt_handle **handles, int n);
// Waits until one of them is done; *which is its index, -1 if all are NULL.
TT_API tt_status tt_handle_wait_any(tt_handle **handles, int n, int *which);

/*
 * Calls between begin and end are one operation: they are compared at once, so that many small ones
 * cost one exchange between processes. They start at the end, which also takes the handle of all of
 * them. Sends come first and receives last, so that their order does not matter.
 */
TT_API tt_status tt_call_group_begin(tt_comm *c);
TT_API tt_status tt_call_group_end_with(tt_comm *c, const tt_comm_opts *opts);
#define tt_call_group_end(...) TT_CALL1(tt_call_group_end, __VA_ARGS__, )

// ---- a hook on buckets of gradients ----------------------------------------------------------

// The gradient of one weight, on one replica of this process.
typedef struct tt_gradient {
    const char *weight; // its name
    tt_shape shape;
    int64_t count;
    float *data; // before: summed over this replica's rows; after: over all replicas
} tt_gradient;

/*
 * What tt_compile(.bucket_hook) is called with, once per bucket and step in each process. The hook
 * replaces every gradient by the sum over all replicas, or by an approximation of it, with the same
 * bits in all replicas: else their weights drift apart. Sums are scaled by a power of two that all
 * share, so a hook is linear. Its calls go to comm, a group with one member per replica, in order;
 * buckets come in the same order in every process. It runs on a thread that computes: other devices
 * go on.
 *
 * It sees the f32 gradients of weights with more than one element; what is summed as sparse rows,
 * losses and metrics are summed by the library. With one replica it is not called. An error that it
 * returns ends the run with that error.
 */
typedef struct tt_bucket {
    size_t size; // of this struct
    tt_comm *comm;
    int index, n_buckets;         // of the step, in the order in which gradients are computed
    int64_t step;                 // from 0
    int n_replicas;               // of this process
    int n_gradients;              // of each
    const tt_gradient *gradients; // [n_replicas * n_gradients], those of a replica together
} tt_bucket;

#ifdef __cplusplus
}
#endif
#endif
