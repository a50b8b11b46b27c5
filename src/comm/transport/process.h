/*
 * process.h - the transports between processes: shm, wire, and auto, which takes for each pair of
 * processes what its link is. What one process has for another goes into a slot of its own shared
 * memory, or as a message.
 *
 * Work goes in rounds, of which all processes have the same number in a call. In a round a process
 * fills a slot with a piece for each other one, and takes theirs. Rounds are counted through all
 * calls, and so are flags: a slot is used again once everybody's flag says that it was read.
 */
#ifndef TUTTI_COMM_TRANSPORT_PROCESS_H
#define TUTTI_COMM_TRANSPORT_PROCESS_H

#include "comm/collective_schedule.h"
#include "comm/comm.h"
#include "net/world.h"

#define TTI_SLOTS     4
#define TTI_SLOT_SHM  ((size_t)256 << 10)
#define TTI_SLOT_WIRE ((size_t)1 << 20)
#define TTI_SMALL     ((size_t)32 << 10) // bytes of addends that go along with the call's head

// Where in a group's memory something is.
typedef struct tti_place {
    uint64_t at;
    int32_t block, is_known;
} tti_place;
tti_place tti_place_of(const tt_comm *c, const void *at, size_t bytes);

typedef struct tti_member_head {
    int64_t count;
    int32_t first_lane, n_lanes;
    tti_place in, out;
} tti_member_head;

// What a process says of a call: fingerprint, members, unequal counts, and the addends themselves
// if they are few. Those of one operation lie one after another.
typedef struct tti_call_head {
    tti_fingerprint print;
    uint32_t bytes; // of all of it, by eights
    int32_t n_members, n_rows, is_small;
} tti_call_head; // then tti_member_head[n_members], int64_t[n_rows][total], small addends
_Static_assert(sizeof(tti_call_head) == 64, "one cache line goes from core to core, not two");

// Shared memory of a process: flags, two heads (of this call and the one before), slots.
typedef struct tti_area {
    _Alignas(64) tti_flag called; // operations whose heads are here
    _Alignas(64) tti_flag filled; // rounds whose slot is here
    _Alignas(64) tti_flag taken;  // rounds in which this process has read others' slots
    _Alignas(64) tti_flag summed; // rounds whose result is here
    _Alignas(64) tti_flag got;    // rounds in which this process has read others' results
    _Alignas(64) tti_flag spread; // rounds whose results of cross-host ones are here, for this host
    _Alignas(64) tti_flag closed; // 1: this process has closed the group
    _Alignas(64) char rest[];
} tti_area;

typedef struct tti_buffer tti_buffer; // of large messages

typedef struct tti_process {
    tti_world *w;
    tti_subgroup subgroup;
    int n, self; // processes of the group; which of them this is
    bool shares_memory[TT_MAX_TASKS];
    int host[TT_MAX_TASKS]; // of each: the first process on it; itself if not hierarchical
    bool is_hierarchical;   // several hosts, and one has several processes
    struct tti_hosts *hosts;
    tti_host_map map; // of members: hosts if hierarchical, else each process is one
    tti_collective_schedule
        schedule;                // this process's steps of the call being made, or the one before
    int scheduled, root;         // its kind and root; -1: none yet
    int first[TT_MAX_TASKS + 1]; // members of each
    int most;                    // the most of one
    uint32_t n_calls, round;
    tti_buffer *buffers, *mapped; // this process's; those of others
    int spins;
    bool passes;     // what others read goes past the cache
    uint32_t n_puts; // that were large enough for that
    size_t head_bytes, slot_bytes;
    tti_segment mine, maps[TT_MAX_TASKS];
    tti_area *area[TT_MAX_TASKS];            // of same-host ones, this one's too; else NULL
    char *heads[TT_MAX_TASKS];               // of cross-host ones: as received
    char *room[TT_MAX_TASKS];                // of cross-host ones: a slot as received, a result
    char *out;                               // a piece for a cross-host one, being packed
    const char *begin[TT_MAX_TASKS];         // heads of the operation being made
    const tti_call_head *head[TT_MAX_TASKS]; // of the call being made
} tti_process;

// Which message of a round, or of a call.
typedef enum tti_edge {
    TTI_EDGE_HEAD = 0,
    TTI_EDGE_SLOT = 1,
    TTI_EDGE_SUM = 2,
    TTI_EDGE_P2P = 3,
    TTI_EDGE_DATA = 4,
} tti_edge;

static inline char *tti_area_head(const tti_process *p, const tti_area *a, uint32_t call)
{
    return (char *)a->rest + (call & 1) * p->head_bytes;
}

static inline char *tti_area_slot(const tti_process *p, const tti_area *a, uint32_t round, bool sum)
{
    return (char *)a->rest + 2 * p->head_bytes +
           (2 * (size_t)(round % TTI_SLOTS) + sum) * p->slot_bytes;
}

// The place of rank q among those other than p.
static inline int tti_process_place(int p, int q)
{
    return q - (q > p);
}

// Bytes of a slot for each of the others, by whole cache lines; hierarchical: for each.
static inline size_t tti_process_piece(const tti_process *p)
{
    return p->slot_bytes / (size_t)TTI_MAX(p->n - !p->is_hierarchical, 1) / 64 * 64;
}

/*
 * The steps of this process in a call; root: a process, of TTI_REDUCE_TO. A send to one that shares
 * memory is a piece of a slot, which that one waits for.
 */
const tti_collective_schedule *tti_process_schedule(tti_process *p, tti_collective_kind kind,
                                                    int root);
// Processes here are numbered in the group. Waits for a flag of one on this host, or records who
// has not come.
tt_status tti_process_wait(tt_comm *c, const char *what, int rank, tti_flag *f,
                           uint32_t v) TTI_CHECKED;
tt_status tti_process_exchange(tt_comm *c, const char *what, const void *mine, size_t bytes,
                               void *all) TTI_CHECKED;
tt_status tti_process_send(tt_comm *c, const char *what, int to, uint32_t run, tti_edge edge,
                           const void *data, size_t bytes) TTI_CHECKED;
tt_status tti_process_receive(tt_comm *c, const char *what, int from, uint32_t run, tti_edge edge,
                              void *data, size_t bytes) TTI_CHECKED;

// Messages: the data of number n to a process, or its head. Closing waits for what is to be taken.
tt_status tti_process_p2p_send(tt_comm *c, const char *what, int to, uint32_t n, bool is_data,
                               const void *data, size_t bytes) TTI_CHECKED;
tt_status tti_process_p2p_receive(tt_comm *c, const char *what, int from, uint32_t n, bool is_data,
                                  void *data, size_t bytes) TTI_CHECKED;
bool tti_process_p2p_has(tt_comm *c, int from, uint32_t n, bool is_data);
void tti_process_p2p_close(tt_comm *c);

// Copies into memory that others read next.
void tti_process_put(tti_process *p, char *to, const char *from, size_t bytes);

tt_status tti_process_agree(tt_comm *c, const tti_comm_call *calls, int n, int *taken);
tt_status tti_process_select(tt_comm *c, tti_comm_call *call, int i);
tt_status tti_process_reduce(tt_comm *c, const tti_comm_call *call, tti_reduction *r);
// Is all memory of a sum the group's own? Then its range [begin, end) is summed in place.
bool tti_process_is_shared(tt_comm *c, const tti_comm_call *call, const tti_reduction *r);
tt_status tti_process_sum_shared(tt_comm *c, const tti_comm_call *call, tti_reduction *r,
                                 int64_t begin, int64_t end) TTI_CHECKED;
tt_status tti_process_move(tt_comm *c, const tti_comm_call *call);
// The addends of a small call as they lie behind the head.
const char *tti_process_small(const tti_process *p, const tti_call_head *h);

#endif
