/*
 * executable.h - what a run walks: for each device a list of entries with their calls, waits and
 * flags, the addresses that depend on where the arenas are, and what runs keep between them.
 *
 * The program (plan.h) says what is computed; emit.c makes the executable of it once memory is
 * planned. A plan that is only looked at has the lists, but no memory behind them.
 */
#ifndef TUTTI_PLAN_EXECUTABLE_H
#define TUTTI_PLAN_EXECUTABLE_H

#include "base/thread.h"
#include "device/device.h"
#include <tutti/extend.h>

struct tti_plan;
struct tti_transfer;

// ---- lists -----------------------------------------------------------------------------------

// One kernel call of an entry.
typedef struct tti_call {
    tt_kernel_fn fn;
    tt_kernel_fn
        batched; // with streams: takes several such calls at once (op/batched_calls.h); NULL: none
    tt_launch launch;
    int n_phases;
    int n_threads; // 1: on the worker alone
    int64_t units[TT_MAX_PHASES];
    int64_t chunk[TT_MAX_PHASES];
    size_t scratch_bytes, local_bytes;
    // A copy of in[0] to out[0] that is not by a kernel: one of the devices has streams. NULL:
    // host.
    bool is_move;
    tti_device *from, *to;
    const struct tti_transfer *transfer; // messages: of in[0], or else into out[0]; NULL: none
    size_t staged_at; // of messages from or to a GPU: where in the executable's messages
} tti_call;

typedef struct tti_wait {
    tti_flag *flag;
    int entry_device;         // who sets it
    int entry;                // of its list
    const tt_node *waits_for; // for messages
    bool is_shared;           // the flag is in memory of several processes
} tti_wait;

// One step of a device's list.
typedef struct tti_entry {
    int pnode;
    int n_calls, n_waits;
    bool is_communication; // of the plan node, where the executor sees it
    bool writes_variable;  // an update: what was there before is lost
    tti_call *calls;
    tti_wait *waits;
    tti_flag *done; // set after the entry; NULL: nobody waits
    // On a device with streams: others with streams wait for the event, those without for the flag.
    bool has_event, has_flag, is_feed;
    bool is_shared; // another process waits for done
    void *event;
    void *times[2]; // events around it, in a trace
} tti_entry;

// All that a device does, in the plan's order.
typedef struct tti_entry_list {
    tti_entry *entries;
    int n_entries;
} tti_entry_list;

// Collectives of one communicator that are enqueued at once: calls of the executable's collectives.
typedef struct tti_collective_group {
    int communicator, first, n; // calls
} tti_collective_group;

// ---- memory ----------------------------------------------------------------------------------

/*
 * A device has an arena of its own and, where other processes read its values, one for those: of n
 * devices, device d's are numbers d and n + d.
 */
static inline int tti_arena_number(int n_devices, int device, bool is_mapped)
{
    return device + (is_mapped ? n_devices : 0);
}

// An argument whose address depends on the arena: patched when the arena moves.
typedef struct tti_patch {
    void *at; // a pointer to a pointer
    int arena;
    size_t offset;
} tti_patch;

// A constant in the memory of a device with streams.
typedef struct tti_constant {
    int value, device;
    size_t bytes;
    void *data;
} tti_constant;

// What a device with streams gets before each run in one copy: the step block and small feeds.
typedef struct tti_feed_staging {
    size_t bytes; // 0: the device has no work
    char *data;   // on the device
    char *mirror; // pinned, on the host; run/ fills it
} tti_feed_staging;
#define TTI_STAGED_FEED ((size_t)256 << 10) // larger feeds go alone

// ---- runs ------------------------------------------------------------------------------------

/*
 * Whether teams help a short run: on cores that are far apart one thread can be faster than two,
 * and which are near changes while a program runs. Now and then both ways are timed. The choice
 * cannot be seen in the result.
 */
typedef struct tti_pace {
    int64_t runs;
    int64_t best[2]; // nanoseconds of the shortest run in this trial: with teams, alone
    bool alone;      // kernels run on the worker alone
    bool is_long;    // too long for teams not to help: no trials
} tti_pace;

// A variable that a plan uses, and its shards (run/store.h).
struct tti_variable;
struct tti_shard;
typedef struct tti_variable_use {
    struct tti_variable *variable;
    int first, n;    // of the executable's shards
    int n_written;   // of those, how many a run writes
    int64_t version; // of the variable, at which all of them are fresh
} tti_variable_use;

typedef struct tti_executable {
    tti_entry_list *lists; // by device
    tti_patch *patches;
    int64_t n_patches, cap_patches;
    char **arena_at; // by arena: what the addresses were made for
    tti_constant *constants;
    int64_t n_constants, cap_constants;
    tti_feed_staging *staging; // by device
    char *messages; // pinned: what GPUs of this process send to others and receive; NULL: nothing

    tti_call **feed_calls;  // by feed of the plan: its call, whose input is the caller's memory
    tti_variable_use *uses; // of variables, in the order of their names; run/ fills it
    int n_uses;
    struct tti_shard **shards; // by use
    bool *is_written;          // by shard: a run writes it
    bool writes_variables;
    tti_flag **flags; // of this process alone
    int n_flags;
    struct tti_shared_flags *shared; // agreement.c; NULL: none

    /*
     * Entries of devices with streams, in the plan's order, which is the order of submission. Once
     * captured, the graph has those of all but the feeds.
     */
    struct tti_submission {
        int device, entry;
    } * submissions;
    int n_submissions;
    tti_collective_group *groups; // in the order
    int n_groups;
    tti_library_call *collectives; // in the order
    void *captured;                // the backend's graph; NULL: none yet
    int64_t n_walks; // runs that were submitted entry by entry, since the arenas moved

    tti_pace pace;
    int64_t longest_ns;      // of its runs so far
    struct tti_ahead *ahead; // by feed; run/ahead.c. NULL: never asked for
    void (*drop_ahead)(struct tti_plan *p);
} tti_executable;

#endif
