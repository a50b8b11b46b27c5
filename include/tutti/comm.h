/*
 * comm.h - collectives on values, for loops by hand: sums, copies and exchanges between the members
 * of a group.
 *
 * Members are numbered from 0. A call is made once for all members of this process and takes an
 * array with one entry for each; it returns when every result is there. Sums follow the tree over
 * lane numbers, so they are what one device with the whole batch gives, to the bit, whoever holds
 * which lanes. Large ones are shared by the threads of the context's devices. A call allocates
 * nothing.
 *
 * A context that was opened with tasks (tasks.h) makes groups over all processes of the job: each
 * opens the group and makes every call, in the same order, with its own members; those of rank 0
 * are numbered first. A call that is not the same in all is an error in all, before data moves. A
 * group may also be of some processes: only these open it and make its calls, and calls of several
 * groups may take turns.
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
 * One of the parts a batch is cut into: whole lanes, so that sums over rows can be put together
 * again. A run of it gives n_sums partial sums for each sum: one per maximal sub-tree of its lanes.
 */
typedef struct tt_part {
    tt_batch batch;          // for tt_run()
    int64_t rows;            // 0: there is nothing to run
    int first_lane, n_lanes; // for tt_member; none if there are no rows
    int n_sums;
} tt_part;
// Part i of n of a batch of rows rows, with the context's lanes dealt evenly.
TT_API tt_status tt_batch_part(tt_ctx *ctx, int64_t rows, int i, int n, tt_part *out);

// ---- groups ----------------------------------------------------------------------------------

typedef struct tt_comm tt_comm;

typedef struct tt_comm_open_opts {
    size_t opts_size;
    int members;           // of this process, 1 to TT_MAX_MEMBERS; default: one for each device
    const char *transport; // "local": this process's members; of all the job's processes: "auto",
                           // "shm" (memory they share), "wire". Default: "auto" if it has several
    int64_t deadline_ms;   // longest wait in a call; default: the context's
    const int *ranks;      // processes of the group, ascending, this one among them; default: all
    int n_ranks;
} tt_comm_open_opts;
#define TT_MAX_MEMBERS 1024

// A group, owned by ctx; NULL on failure. It may be freed earlier.
TT_API tt_comm *tt_comm_open_with(tt_ctx *ctx, const tt_comm_open_opts *opts);
#define tt_comm_open(...) TT_CALL1(tt_comm_open, __VA_ARGS__, )
TT_API void tt_comm_free(tt_comm *c);
TT_API int tt_comm_members(const tt_comm *c); // of all processes; 0 for NULL

/*
 * Memory, zeroed, that the group's processes on one host reach: an all-reduce whose ins and outs
 * all lie in such memory copies nothing. Every process asks for the same bytes. Freed with the
 * group; NULL on failure.
 */
TT_API void *tt_comm_memory(tt_comm *c, size_t bytes);

/*
 * What one member brings and where its result goes. Memory of different members does not overlap;
 * in and out of one member are apart, or the same where a call says so. Neither is looked at where
 * it would hold no element.
 */
typedef struct tt_member {
    const void *in;
    void *out;
    int64_t count;           // elements: each call says of what
    int first_lane, n_lanes; // sums: the lanes whose partial sums are in, one after another
} tt_member;

typedef enum tt_combine {
    TT_COMBINE_SUM = 0,
    TT_COMBINE_MAX = 1, // NaN if any is
    TT_COMBINE_MIN = 2,
} tt_combine;

// One struct for all calls; each reads the fields named after it.
typedef struct tt_comm_opts {
    size_t opts_size;
    tt_dtype dtype;     // of the elements; default f32. Those of sums are no u8 or bool
    tt_combine combine; // reduce: default sum
    bool fast;          // reduce: sums in any order; what comes out depends on the members
    double factor;      // reduce: times the result, of floats; default 1. 1 / n gives a mean
    int lanes;          // reduce: lanes of the job; default: the context's
    tt_dtype round; // reduce: f32 is rounded to this, bf16 or f16, at the end; default: it is not
    int root;       // broadcast: whose value
} tt_comm_opts;
typedef tt_comm_opts tt_all_reduce_opts, tt_reduce_scatter_opts, tt_all_gather_opts,
    tt_broadcast_from_opts, tt_all_to_all_opts, tt_sum_lanes_opts;

/*
 * Every out gets the sum of all ins, count elements. A sum over lanes: in holds one partial for
 * each maximal sub-tree of the member's lanes, as tt_run() gives them; a member may hold none, and
 * all lanes must be held once. Without lanes each member has one value, and member i is lane i of
 * as many lanes as there are members. bf16 and f16 are added in f32 and rounded once; out may be
 * in.
 */
TT_API tt_status tt_all_reduce_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_reduce(...) TT_CALL2(tt_all_reduce, __VA_ARGS__, )

/*
 * The same sum, of which member i of n gets elements floor(i count / n) up to floor((i + 1) count /
 * n). out may be the place of those elements in in.
 */
TT_API tt_status tt_reduce_scatter_with(tt_comm *c, const tt_member *members,
                                        const tt_comm_opts *opts);
#define tt_reduce_scatter(...) TT_CALL2(tt_reduce_scatter, __VA_ARGS__, )

// Every out gets all ins one after another; counts may differ. in may be its own place in out.
TT_API tt_status tt_all_gather_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_gather(...) TT_CALL2(tt_all_gather, __VA_ARGS__, )

// Every out gets the in of member root; only root's in is looked at, and its out may be that.
TT_API tt_status tt_broadcast_from_with(tt_comm *c, const tt_member *members,
                                        const tt_comm_opts *opts);
#define tt_broadcast_from(...) TT_CALL2(tt_broadcast_from, __VA_ARGS__, )

/*
 * in and out are a block of count elements for each member: block j of member i becomes block i of
 * member j.
 */
TT_API tt_status tt_all_to_all_with(tt_comm *c, const tt_member *members, const tt_comm_opts *opts);
#define tt_all_to_all(...) TT_CALL2(tt_all_to_all, __VA_ARGS__, )

// Returns when every member has come here and no device works any more.
TT_API tt_status tt_barrier(tt_comm *c);

/*
 * The sum of the parts of one batch, without a group: micro-batches that one device took in turn.
 * As tt_all_reduce() of n members, but out is the one result.
 */
TT_API tt_status tt_sum_lanes_with(tt_ctx *ctx, const tt_member *parts, int n, void *out,
                                   const tt_comm_opts *opts);
#define tt_sum_lanes(...) TT_CALL4(tt_sum_lanes, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
