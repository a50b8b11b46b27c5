/*
 * comm.h - collective operations for training loops written by hand: all-reduce, reduce-scatter,
 * all-gather, broadcast and all-to-all between the members of a group.
 *
 * Members are numbered from 0. A process makes one call for all its members and passes an array
 * with one entry per member; the call returns when every result is complete. Sums are added in the
 * order of the lane tree, so they have the same bits as one device with the whole batch, however
 * the lanes are distributed. Large calls use the threads of all the context's devices. A call
 * allocates nothing.
 *
 * In a context opened with tasks (tasks.h), a group spans all processes of the job: each process
 * opens the group and makes every call, in the same order, with its own members; the members of
 * rank 0 come first. If the processes make different calls, all of them fail before any data is
 * sent. A subgroup is opened and used by its own processes only; calls on different groups may
 * alternate.
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

// Options of all calls; each call reads the fields marked with its name.
typedef struct tt_comm_opts {
    size_t opts_size;
    tt_dtype dtype;     // element type; default f32. Sums do not support u8 and bool
    tt_combine combine; // reduce: default sum
    bool fast;          // reduce: add in any order; the result depends on the members
    double factor;      // reduce: multiplies the result (floats); default 1. 1 / n gives a mean
    int lanes;          // reduce: number of lanes of the job; default: the context's
    tt_dtype round;     // reduce: round an f32 result to bf16 or f16; default: no rounding
    int root;           // broadcast: the member whose value is sent
} tt_comm_opts;
typedef tt_comm_opts tt_all_reduce_opts, tt_reduce_scatter_opts, tt_all_gather_opts,
    tt_broadcast_from_opts, tt_all_to_all_opts, tt_sum_lanes_opts;

/*
 * Writes the sum of all inputs, count elements, to every output. With lanes, in holds one partial
 * sum per maximal sub-tree of the member's lanes, as tt_run() returns them; a member may hold no
 * lanes, and every lane must be held exactly once. Without lanes, each member has one value and
 * member i counts as lane i. bf16 and f16 are added in f32 and rounded once. out may equal in.
 */
TT_API tt_status tt_all_reduce_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_reduce(...) TT_CALL2(tt_all_reduce, __VA_ARGS__, )

/*
 * The same sum; member i of n gets the elements floor(i count / n) to floor((i + 1) count / n) - 1.
 * out may be the address of those elements in in.
 */
TT_API tt_status tt_reduce_scatter_with(tt_comm *c, const tt_member *members,
                                        const tt_comm_opts *opts);
#define tt_reduce_scatter(...) TT_CALL2(tt_reduce_scatter, __VA_ARGS__, )

// Writes all inputs, one after another, to every output; counts may differ. in may lie in out.
TT_API tt_status tt_all_gather_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_gather(...) TT_CALL2(tt_all_gather, __VA_ARGS__, )

// Copies the input of member root to every output. The root's out may equal its in.
TT_API tt_status tt_broadcast_from_with(tt_comm *c, const tt_member *members,
                                        const tt_comm_opts *opts);
#define tt_broadcast_from(...) TT_CALL2(tt_broadcast_from, __VA_ARGS__, )

/*
 * in and out hold one block of count elements per member: block j of member i is sent to block i of
 * member j.
 */
TT_API tt_status tt_all_to_all_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_to_all(...) TT_CALL2(tt_all_to_all, __VA_ARGS__, )

// Returns when every member has called it and all devices are idle.
TT_API tt_status tt_barrier(tt_comm *c);

/*
 * Adds the partial sums of the parts of one batch without a group, for micro-batches that ran one
 * after another on one device. Like tt_all_reduce() of n members, with one result, out.
 */
TT_API tt_status tt_sum_lanes_with(tt_ctx *ctx, const tt_member *parts, int n, void *out,
                                   const tt_comm_opts *opts);
#define tt_sum_lanes(...) TT_CALL4(tt_sum_lanes, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
