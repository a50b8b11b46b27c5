/*
 * store.h (internal) - variables by name, and where their values lie.
 *
 * A variable is a list of shards, each {range of its bytes, location, version}; a whole copy is a
 * shard whose range is everything. A shard is fresh if its version is the variable's. Fresh shards
 * always cover the value; what else there is of it may be older and is filled from them when a plan
 * uses it (tti_store_ready()) or the value is read. In a job of several processes the lists are
 * equal in all of them, so which bytes go from which process to which follows from the list, and
 * all processes take part in a transfer or none does.
 *
 * Contexts that share a store exclude each other with a hold: a run that writes variables has the
 * store alone, runs and reads that write nothing share it. A thread uses only the devices of its
 * own context, so a store that several contexts have keeps every value also in the host's memory.
 */
#ifndef TUTTI_RUN_STORE_H
#define TUTTI_RUN_STORE_H

#include "plan/plan.h"

#define TTI_EVERY_TASK (-1)

typedef struct tti_shard {
    size_t begin, bytes; // range of the value

    // Location.
    int task;        // rank of its process; TTI_EVERY_TASK: each has one like it, for itself
    char device[32]; // name of the device that works on it
    tti_device *dev; // address space: the memory of this device; NULL: the host's
    void *data;      // NULL: of a process whose memory is not mapped here

    int64_t version;      // of the value that it holds
    bool is_bound;        // plans have its address
    bool is_mapped;       // it lies in one of the store's segments
    bool is_filled;       // while shards are filled: only then fresh
    struct tti_shard *in; // whose memory it lies in; itself: it has memory of its own
    struct tti_shard *next;
} tti_shard;

typedef struct tti_variable {
    char *name;
    tt_dtype dtype;
    tt_shape shape;
    size_t bytes;
    tt_store *store;
    _Atomic int64_t version; // number of writes
    tti_shard *shards;       // guarded by the store's holds
    // Whose job's processes have it together; NULL: this process alone. Changed under a hold.
    tt_ctx *_Atomic ctx;
    uint32_t n_fills; // transfers between processes so far
    struct tti_variable *next;
} tti_variable;

// A context's use of a store for a while; on the caller's stack.
typedef struct tti_hold {
    tt_ctx *ctx;
    bool is_alone;
    struct tti_hold *next;
} tti_hold;

struct tt_store {
    _Atomic int refs;
    _Atomic int n_contexts; // that have it open; models' stores are not counted
    pthread_mutex_t mu;     // guards what follows, down to the table
    pthread_cond_t changed;
    tti_hold *holds;
    int n_waiting;        // for a hold alone: new ones that share let them go first
    bool is_growing;      // a hold that shares waits to be alone
    tti_variable **table; // by name
    int64_t n, cap;
    struct tti_segment *segments; // several processes: memory of shards; guarded by holds
    int64_t n_segments, cap_segments;
};

// ---- store.c: contexts and names -------------------------------------------------------------

/*
 * Waits until ctx may use the values: alone, or with others that also write nothing. A context that
 * already has a hold gets another at once, unless it shares and now wants to be alone. Fails if the
 * context is stopped meanwhile.
 */
tt_status tti_store_hold(tt_store *s, tt_ctx *ctx, bool alone, tti_hold *h) TTI_CHECKED;
void tti_store_share(tt_store *s, tti_hold *h); // from here on it is not alone
void tti_store_let_go(tt_store *s, tti_hold *h);

/*
 * If other contexts use the store too: what only devices of ctx have comes to the host's memory,
 * where they can read it. Before and after what ctx does with the store.
 */
tt_status tti_store_publish(tt_store *s, tt_ctx *ctx) TTI_CHECKED;

// A context begins to use a store; until it closes it keeps the store.
void tti_store_join(tt_store *s);
// Before the devices and the processes of ctx close: what they have of values moves to the host.
void tti_store_leave(tt_store *s, tt_ctx *ctx);

// The variable of this node, made and initialised on dev if the store has none of that name.
tt_status tti_store_get(tt_store *s, const tt_node *var, tti_device *dev,
                        tti_variable **out) TTI_CHECKED;
tti_variable *tti_store_find(tt_store *s, const char *name);
// All variables, in the order of their names; free with tti_free(ctx).
tt_status tti_store_list(tt_store *s, tt_ctx *ctx, tti_variable ***out, int64_t *n) TTI_CHECKED;

// ---- shards.c: the list of one variable, under a hold ----------------------------------------

// Added at the end of the list, without memory.
tti_shard *tti_shard_add(tti_variable *v, const tti_shard *like);
void tti_shard_remove(tti_variable *v, tti_shard *s); // and its memory
bool tti_shard_is_fresh(const tti_variable *v, const tti_shard *s);
bool tti_shard_is_whole(const tti_variable *v, const tti_shard *s);
// The shard of a device with this range; NULL: there is none.
tti_shard *tti_shard_find(const tti_variable *v, const tti_want *w);
// Memory for a shard that has none.
tt_status tti_shard_alloc(tt_ctx *ctx, const tti_variable *v, tti_shard *s) TTI_CHECKED;
// Does what ctx can read of it in the host's memory, or anywhere, cover all of it?
bool tti_variable_covers(const tti_variable *v, const tt_ctx *ctx, bool in_host);
/*
 * Shards that are not fresh get the value, or memory of the caller does. In a job all processes
 * call it with the same shards, and each fills its own.
 */
tt_status tti_shards_fill(tti_variable *v, tt_ctx *ctx, tti_shard *const *s, int n) TTI_CHECKED;
tt_status tti_variable_fetch(tti_variable *v, tt_ctx *ctx, void *out) TTI_CHECKED;
// Fresh on devices of ctx, but not in the host's memory; and that mended, for other contexts.
bool tti_variable_is_hidden(const tti_variable *v, const tt_ctx *ctx);
tt_status tti_variable_publish(tti_variable *v, tt_ctx *ctx) TTI_CHECKED;
void tti_variable_drop(tti_variable *v); // all shards
void tti_count_variable(tt_ctx *ctx, const char *device, int64_t bytes);

// ---- variables.c: values in and out, with a hold of their own --------------------------------

// In, to all shards; out, to memory of the host. In a job all processes do it together.
tt_status tti_variable_write(tti_variable *v, tt_ctx *ctx, const void *data) TTI_CHECKED;
tt_status tti_variable_read(tti_variable *v, tt_ctx *ctx, void *out) TTI_CHECKED;
// Where the value is in memory of the host, if every process has it so; NULL: it has to be read.
const void *tti_variable_here(tti_variable *v);
// Its bytes as the host sees them: where they are, or read into *room, to be freed with tti_free().
tt_status tti_variable_look(tt_ctx *ctx, tti_variable *v, const void **out,
                            void **room) TTI_CHECKED;
/*
 * What lies on a device of another context alone comes to the host's memory when that one next
 * uses the store: waits a moment for it, without a hold. Fails after the deadline.
 */
tt_status tti_variable_await(tti_variable *v, tt_ctx *ctx, int64_t deadline) TTI_CHECKED;
// first_value.c: draws the first value of a variable that has no shards.
tt_status tti_variable_first(tti_variable *v, const tt_node *var, tti_device *dev) TTI_CHECKED;

// ---- bind.c, uses.c: plans ---------------------------------------------------------------------

// The memory of all that a plan wants; NULL where it cannot be reached. All processes together.
tt_status tti_store_bind(tt_store *s, tt_ctx *ctx, const tti_want *w, int n,
                         void **out) TTI_CHECKED;
// Bytes that this would add on the device.
size_t tti_variable_needs(tti_variable *v, tt_ctx *ctx, const tti_want *w);
// The name of the device where plans use it; false: none does.
bool tti_variable_home(tti_variable *v, tt_ctx *ctx, char out[32]);
// Lists the shards that a plan reads and writes, in p->exe.
tt_status tti_store_note_uses(tt_store *s, tt_ctx *ctx, tti_plan *p) TTI_CHECKED;
/*
 * Before a run of the plan: holds the store as the plan needs it, and has all shards fresh that it
 * uses. After it: those that were written are the variables' newest. The hold stays.
 */
tt_status tti_store_ready(tt_store *s, tt_ctx *ctx, tti_plan *p, tti_hold *h) TTI_CHECKED;
tt_status tti_store_written(tt_store *s, tt_ctx *ctx, tti_plan *p) TTI_CHECKED;

#endif
