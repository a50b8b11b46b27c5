/*
 * plan.h - from a graph to what each device will do.
 *
 * A plan is made for a set of outputs, a number of rows and a part of the lanes. It passes through
 * these stages (stages.h):
 *
 *   build       build_program.c: live nodes become plan nodes; duplicates merged, constants folded;
 *               shapes bound
 *   recompute   recompute/: activations that are computed again rather than kept: copies of forward
 *               nodes
 *   spread      spread/: nodes on rows are copied to every replica and micro-batch, each with some
 *               lanes; sums over rows are put together
 *   place       place.c: a device for every node, with the reason
 *   cut         cut.c: edges between devices become one receive per tensor and destination,
 *               messages where processes share no memory
 *   chain       fuse/chain.c: nodes and those that read them become one where a backend has a
 *               kernel for it
 *   fuse        fuse/fuse.c: chains of pointwise ops become one node that works in tiles
 *   order       node_order.c: one global order; each device's list is a part of it, so no wait can
 *               deadlock
 *   memory      memory/: lifetimes in that order, places in each device's arena, whether they fit
 *   emit        emit/: entries: kernel calls with fixed offsets, waits and signals
 *
 * None of them changes a bit of the result. Values are numbered through the whole plan; a value
 * that is another's memory in a different shape (view, update, in place) has that one as its root.
 */
#ifndef TUTTI_PLAN_PLAN_H
#define TUTTI_PLAN_PLAN_H

#include "base/ctx.h"
#include "base/thread.h"
#include "comm/lane_tree.h"
#include "device/device.h"
#include "graph/graph.h"
#include "plan/executable.h"
#include "plan/layout.h"
#include "plan/order_key.h"
#include "plan/program.h"
#include <sys/uio.h>
#include <tutti/extend.h>
#include <tutti/run.h>

typedef enum tti_memory {
    TTI_ARENA = 0,    // planned: offset in the device's arena
    TTI_VARIABLE = 1, // in the store
    TTI_CONSTANT = 2, // in the graph, or folded
    TTI_STAGED = 3,   // small feeds of a device with streams: offset in its staging memory
} tti_memory;

typedef struct tti_value {
    const tt_tensor *tensor;
    tt_shape shape; // bound; sums over a part of the lanes have their parts on a first axis,
    tt_dtype dtype; // and bf16 and f16 ones are f32 there: rounding comes after the tree
    int64_t count;
    size_t bytes;
    tti_layout layout;   // along the axes of the mesh; set by spread
    int64_t sparse_rows; // a partial sum kept as so many rows of a table, at most; 0: it is dense
    int node;            // the plan node that makes it
    int root;            // the value whose memory it is; itself for most
    size_t skip;         // bytes into the root's memory
    int device;          // where it is
    tti_memory memory;
    bool keep;      // fetched: lives to the end
    bool is_sent;   // another device reads it
    bool is_mapped; // roots: so does one of another process, which maps this memory
    bool is_piece;  // a range of a whole value's elements; device is its own, not its node's
    bool is_range;  // of every part of a sum only some elements, from range_begin on
    int64_t range_begin;
    void *fixed; // variables and constants: the address
    size_t offset;
    int first, last; // roots: positions in the order, from made to last read
    int n_users;
} tti_value;

typedef enum tti_node_kind {
    TTI_OP = 0,      // a graph node
    TTI_RECV = 1,    // a copy of a value of another device
    TTI_COPY = 2,    // a copy on the same device: a variable fetched as it was before its update
    TTI_FUSED = 3,   // several pointwise nodes
    TTI_TREE = 4,    // adds partial sums of several micro-batches, all elements or a piece
    TTI_GATHER = 5,  // puts the rows of all micro-batches together
    TTI_MOMENTS = 6, // merges the statistics of all micro-batches
    TTI_COLLECT = 7, // puts the pieces of all replicas together, or into a copy of a variable
    TTI_NARROW = 8,  // rounds a replica's sum to the type it is sent in; the last input, a
                     // variable, has what that took before and takes what it takes now
    TTI_SEND = 9,    // a value, or nothing, goes to another process as messages
    // One device's part of a collective that a library carries out (device/collective.h).
    TTI_LIBRARY_COLLECTIVE = 10,
    TTI_CHAINED = 11, // several nodes by one kernel
    TTI_HOOK = 12,    // a process's part of a bucket of gradients that the user's hook sums
    TTI_HOOKED = 13,  // a gradient after its bucket's hook: the same memory
} tti_node_kind;

// Messages between two processes of a plan: n of them, [begin, begin + bytes) of every stride
// bytes.
typedef struct tti_transfer {
    int peer; // rank; -1: no messages
    int edge; // number of the first
    int n;
    size_t begin, stride, bytes;
    struct iovec *parts; // of a bundle's send: room for where its inputs are; else NULL
} tti_transfer;

struct tti_emitter;
typedef struct tti_pnode {
    tti_node_kind kind;
    const tt_node *node; // of a receive: the node that made the value
    int n_in, n_out;
    int *in; // values
    int out; // first of n_out consecutive values
    int device;
    const char *reason;
    const tt_lanes *lanes; // the rows it works on: the plan's, or a replica's
    int64_t first_row;     // of them, within the run's
    int micro;             // the replica's micro-batch it belongs to
    int stage;             // of a pipeline, from 1; 0: none
    int piece;             // what: the piece it makes or already has; -1: none
    int n_covered;         // a host's sum: so many pieces from that one on; 0: one
    int n_pieces;          // a variable of which there is one, in so many pieces; 0: a whole copy
    bool is_copy;          // another replica does the same
    int group;             // fused into this plan node; -1: none
    int n_members;         // of a fused or chained node
    int *members;          // plan nodes, in order
    struct tti_fused *fused;
    struct tti_chain *chain;
    int position;      // in the order
    tti_order_key key; // where it would like to stand in the order
    bool is_dropped;
    bool is_recomputed; // computes a forward node again: belongs to the backward part
    bool is_chain;      // trees: adds what one replica has, part after part
    // What it is a member's part of: sums over replicas, pieces put together. NULL: nothing.
    const tti_collective *what;
    int collective;      // of a TTI_LIBRARY_COLLECTIVE or TTI_HOOK: of the plan's collectives
    tti_order_key ready; // likewise: where in the order its result is looked for
    int n_after;
    int *after; // plan nodes that run first
    int from;   // receives: the device, and the plan node, that made the value
    int maker;
    tti_transfer *transfer;         // receives and sends of messages; else NULL
    struct tti_bucket_call *bucket; // of a TTI_HOOK (spread/bucket_hook.h)
} tti_pnode;

// The elements of a whole value that a node's piece has.
static inline void tti_piece_of(const tti_pnode *pn, int64_t *begin, int64_t *end)
{
    *begin = pn->what->begin[pn->piece];
    *end = pn->what->begin[pn->piece + TTI_MAX(pn->n_covered, 1)];
}

// Devices, one of each replica, between which a library carries sums, or does not.
typedef struct tti_communicator_plan {
    int n, *device;
    bool is_usable;
    const char *words; // which, or why not
    void *state;       // the backend's, once the plan is to be run
} tti_communicator_plan;

/*
 * What the devices of a communicator do together: a plan node of each, which follow each other in
 * ids and in the order. Collectives that follow each other in the order are a group, enqueued at
 * once.
 */
typedef struct tti_collective_op {
    int communicator; // -1: a bucket's hook, a plan node of each process
    int first, n;     // plan nodes
    const tti_collective *what;
    int group, at; // the group, and the call of the executable
    tti_library_call call;
} tti_collective_op;

// What a device's memory is for: adds up to variable_bytes + arena_bytes + fixed_bytes.
typedef struct tti_usage {
    size_t weights, gradients, optimizer, activations, workspace;
} tti_usage;

typedef struct tti_device_plan {
    size_t arena_bytes;
    size_t mapped_bytes; // of them, in the arena that other processes map
    size_t lower_bound;  // most bytes alive at one position
    size_t variable_bytes;
    size_t fixed_bytes; // beside the arena, with streams: its staging memory and constants
    size_t received_bytes;
    tti_usage usage;
    size_t plain_bytes; // the arena without recomputation, once tti_plan_compare() was asked
} tti_device_plan;

/*
 * A plan: the program that the stages pass on, as values and nodes, and at the end the executable
 * (executable.h), which is all that a run walks.
 */
typedef struct tti_plan {
    tt_ctx *ctx; // errors and memory; all else that a plan depends on is in top
    tti_topology *top;
    tt_graph *graph;
    struct tti_plan_block *blocks; // the plan's memory
    uint64_t key;                  // of outputs, rows, lanes

    bool is_dry_run;  // cannot run
    int64_t began_ns; // the stage that is under way
    tti_mesh mesh;
    bool is_on_mesh; // on the mesh: nodes have their devices (spread.c)
    int64_t rows;
    tt_lanes lanes;
    tt_step *step; // the block that kernels read

    tti_value *values;
    int64_t n_values, cap_values;
    tti_pnode *nodes;
    int64_t n_nodes, cap_nodes;
    int *order; // plan nodes
    int n_order;
    tti_communicator_plan *communicators; // that were asked for
    int64_t n_communicators, cap_communicators;
    tti_collective_op *collectives;
    int64_t n_collectives, cap_collectives;
    struct tti_cross { // edges between devices, by plan node, and from library collectives
        int from, to;
    } * cross;
    int n_cross;

    /*
     * Values with memory in arenas, once that is planned: those of device d at [arena_start[2 d],
     * arena_start[2 d + 2]), what other processes map in the second half.
     */
    int *arena_values, *arena_start;
    tti_device_plan *devices; // by device
    size_t host_need;         // bytes of the host's memory, of all CPUs without a limit

    int *targets; // values of the outputs asked for, in the order asked
    int n_targets, n_fetched;
    int *feeds; // values of the feeds
    int n_feeds;
    uint64_t fingerprint; // several processes: equal in all, and of no other plan
    int n_messages;
    const struct tti_hook *hook; // sums buckets of gradients; NULL: none
    int n_buckets;
    int fallbacks;                   // nodes not on the device they were pinned to
    double forward_ns, recompute_ns; // estimated: of rows forward, and of what is computed again
    int n_chosen, n_recomputed;      // nodes not kept; those of them that the backward part needs
    double even_bubble;              // the same if all stages cost the same
    double bubble; // pipelines: share of the devices' time that the schedule leaves idle

    tti_executable exe; // made by emit; the stages before it do not look at it
    struct tti_plan *next;
} tti_plan;

// What a plan wants of a variable on a device: all of it, or a piece that no other plan node has.
typedef struct tti_want {
    const tt_node *var;
    tti_device *dev;
    bool is_piece;
    size_t begin, bytes;
} tti_want;
struct tti_plan;
tti_want tti_plan_want(const struct tti_plan *p, const tti_pnode *pn);

typedef struct tti_plan_request {
    tt_tensor *const *targets;
    int n_targets;
    int n_fetched; // the first n_fetched targets are kept to the end
    int64_t rows;
    tt_batch batch;
    int micro;               // the batch goes through in so many parts
    const tti_topology *top; // what it is for
    const tti_mesh *mesh;    // NULL: every node on its own
    const char *recompute;   // see tt_compile_opts
    int cheapest;            // of what recompute chooses only so many; 0: all
    bool is_trial;           // only memory is planned, limits are not held against it
    bool no_fuse, no_fold;
    bool no_pieces;                // every replica makes whole values
    bool dry_run;                  // only to be looked at: variables get no memory
    const struct tti_hook *hook;   // of the user, for buckets of gradients; NULL: none
    struct tti_stage_watch *watch; // sees the plan after every stage (stages.h); NULL: nobody does
    // Where the memory of variables is, for all of a plan's at once; run/ owns the store.
    tt_status (*variables)(void *user, const tti_want *w, int n, void **addresses);
    // The device where the store has a variable for some plan; NULL: none.
    tti_device *(*variable_home)(void *user, const tt_node *var);
    // Bytes that the device will hold in addition.
    size_t (*variable_needs)(void *user, const tti_want *w);
    void *user;
} tti_plan_request;

// Makes a plan; on failure the error is recorded and *out is untouched.
tt_status tti_plan_new(tt_graph *g, const tti_plan_request *req, tti_plan **out);
// The same without looking for what a budget allows.
tt_status tti_plan_make(tt_graph *g, const tti_plan_request *req, tti_plan **out);
void tti_plan_free(tti_plan *p);
// Makes the addresses those of these arenas.
void tti_plan_bind(tti_plan *p, char *const *arenas);
char *tti_plan_text(tti_plan *p, tt_plan_form form);
// Offsets of small feeds in staging memory; then that memory.
void tti_plan_staging(tti_plan *p);
// Fills fixed_bytes, once memory is planned.
tt_status tti_plan_fixed(tti_plan *p) TTI_CHECKED;
size_t tti_plan_bytes(const tti_device_plan *d); // all of a device's memory
tt_status tti_plan_staging_alloc(tti_plan *p) TTI_CHECKED;
tt_status tti_plan_message_alloc(tti_plan *p) TTI_CHECKED; // once there are submissions
// What was captured goes; then events too.
void tti_plan_drop_exec(tti_plan *p);
void tti_plan_drop_streams(tti_plan *p);

// ---- recomputation ---------------------------------------------------------------------------

bool tti_recompute_is_none(const char *text);
// Is text a budget? Then bytes is its size, or *st the error.
bool tti_recompute_budget(tt_ctx *ctx, const char *text, size_t *bytes, tt_status *st);
// Fails if text is no value of recompute, or a pattern matches no layer of the graph.
tt_status tti_recompute_check(tt_graph *g, const char *text) TTI_CHECKED;
// The plan that computes again the cheapest set with which every device's arena fits the budget.
tt_status tti_plan_in_budget(tt_graph *g, const tti_plan_request *req, size_t budget,
                             tti_plan **out) TTI_CHECKED;
// How large the arenas would be if all were kept; req is the plan's.
tt_status tti_plan_compare(tti_plan *p, const tti_plan_request *req) TTI_CHECKED;

// ---- between the stages ----------------------------------------------------------------------

void *tti_plan_alloc(tti_plan *p, size_t bytes); // zeroed; lives as long as the plan
tt_status tti_plan_build(tti_plan *p, const tti_plan_request *req);
tt_status tti_plan_recompute(tti_plan *p, const tti_plan_request *req);
// Of a plan as built, on a mesh: the local device or stage of every node.
tt_status tti_plan_stages(tti_plan *p, const tti_plan_request *req, int *stage) TTI_CHECKED;
tt_status tti_plan_spread(tti_plan *p, const tti_plan_request *req);
tt_status tti_plan_place(tti_plan *p, const tti_plan_request *req);
tt_status tti_plan_cut(tti_plan *p);
// bundle_messages.c: of a bucket, between hosts with several replicas.
tt_status tti_bundle_messages(tti_plan *p) TTI_CHECKED;
tt_status tti_plan_chain(tti_plan *p);
tt_status tti_plan_fuse(tti_plan *p);
// What must come before what, by plan node; and an order that holds it, in p->order.
typedef struct tti_edges {
    int *from, *to;
    int64_t n;
} tti_edges;
tt_status tti_plan_sort(tti_plan *p, tti_edges *out);
void tti_edges_free(tti_plan *p, tti_edges *e);
tt_status tti_plan_order(tti_plan *p);
/*
 * Lifetimes and offsets. scratch[i] is the value that plan node i uses as scratch; -1: none. Nodes
 * of one run may work at once: run[i] is the first of its run; -1: none.
 */
tt_status tti_plan_memory(tti_plan *p, const int *scratch, const int *run);
// arena_offsets.c: of the values of all arenas.
tt_status tti_plan_offsets(tti_plan *p) TTI_CHECKED;
tt_status tti_plan_usage(tti_plan *p, const int *scratch);
// Refuses a plan that exceeds a device's limit, with a table of its largest holders.
tt_status tti_plan_check_limits(tti_plan *p, const size_t *new_variables);
tt_status tti_plan_emit(tti_plan *p, const tti_plan_request *req);
/*
 * agreement.c: all processes have made the same plan, or it is an error that names the first
 * difference. wanted[i]: another process waits for plan node i; flag[i] becomes its flag.
 */
tt_status tti_plan_agree(tti_plan *p, const uint8_t *wanted, tti_flag **flag) TTI_CHECKED;
void tti_plan_drop_shared(tti_plan *p);
// Do two devices share memory? Else what one reads of the other goes by messages.
bool tti_is_cross_host(const tti_plan *p, int device, int other);
tt_status tti_lanes_make(tti_plan *p, const tti_plan_request *req, tt_lanes *out);
// Is the tensor a sum or statistic that a run of some lanes has only parts of?
bool tti_is_partial(const tt_tensor *t);
// Shape and type of a tensor's value in a run of rows rows with these lanes.
tt_status tti_bind_shape(const tti_plan *p, const tt_tensor *t, int64_t rows, const tt_lanes *lanes,
                         tti_value *out);

int64_t tti_part_rows(const tt_lanes *ln, tti_part part); // rows of the global batch in a part

// collective_groups.c: groups of collectives, and their calls; the states of the communicators that
// the plan has a use for.
tt_status tti_plan_groups(tti_plan *p, const int *entry) TTI_CHECKED;
tt_status tti_plan_communicators(tti_plan *p) TTI_CHECKED;
// Waits of a device for its own library collectives: once for all that was enqueued at once.
void tti_plan_collective_waits(tti_plan *p);
// Has the node a place in the order only together with the others of its collective?
static inline bool tti_is_of_collective(const tti_pnode *pn)
{
    return pn->kind == TTI_LIBRARY_COLLECTIVE || pn->kind == TTI_HOOK;
}
// Is the node a library collective, or a view of what one makes?
bool tti_is_on_collective(const tti_plan *p, int node);

// The devices of a communicator, in memory of the plan; NULL: TT_ENOMEM recorded.
tti_device **tti_communicator_devices(tti_plan *p, const tti_communicator_plan *g);

// Adds a value or node; -1: TT_ENOMEM recorded. Pointers into the arrays move.
int tti_plan_value(tti_plan *p, tti_value v);
int tti_plan_node(tti_plan *p, tti_pnode n);
int tti_root(const tti_plan *p, int value);
// The arena of a root that is in one.
static inline int tti_arena_of(const tti_plan *p, const tti_value *root)
{
    return tti_arena_number(p->top->n_devices, root->device, root->is_mapped);
}
// The plan node that made a value, on whatever device.
const tti_pnode *tti_maker(const tti_plan *p, int value);
// Does this plan node look at the elements of input k?
bool tti_reads(const tti_pnode *pn, int k);

/*
 * node_kinds.c: what all plan nodes of a kind have in common. The stages ask these, so that a new
 * kind is a new record.
 */
typedef enum tti_layout_role {
    TTI_LAYOUT_FOLLOWS = 0, // works on parts, and makes what split rules say
    TTI_LAYOUT_MOVES,       // passes on what it reads, whatever part it is
    TTI_LAYOUT_REDUCES,     // reads partial values
    TTI_LAYOUT_COLLECTS,    // puts all pieces of the elements together
    TTI_LAYOUT_GATHERS,     // puts all parts of a split by lanes together
    TTI_LAYOUT_LIBRARY,     // one of the last three, by the collective that it is a part of
} tti_layout_role;
typedef struct tti_kind {
    const char *name;                                   // as tables and traces name it
    const char *(*name_of)(const struct tti_pnode *pn); // the same, where it depends on the node
    tti_kernel_form kernel; // of devices with streams; TTI_KERNEL_OP: the op's, or none
    bool communicates;      // moves or merges what other devices made
    bool combines;          // puts values of several devices together, reading them where they are
    bool combines_lanes;    // those of some lanes each, in the order of the lanes
    tti_layout_role layout; // what it does with parts of values
    // Does it write its input k, a variable? NULL: none of them.
    bool (*writes)(const tti_plan *p, const struct tti_pnode *pn, int k);
    tt_status (*draft)(struct tti_emitter *e, int pnode); // its calls (draft.h)
} tti_kind;
const tti_kind *tti_kind_of(const tti_pnode *pn);
bool tti_writes_input(const tti_plan *p, const tti_pnode *pn, int k);
// What a plan node does, as tables and traces name it: the op, "receive", "tree".
const char *tti_pnode_kind_name(const tti_pnode *pn);
// Does it move or merge what other devices made? Time in it would not be there on one device.
bool tti_is_communication(const tti_pnode *pn);

// How a kernel of this node will run, args bound. data may be NULL.
void tti_arg_fill(tt_arg *a, const tti_value *v);
tt_status tti_prepare(tti_plan *p, const tt_node *n, int device, const tt_lanes *lanes,
                      const tt_arg *in, const tt_arg *out, tt_prep *prep);
// The set a node's kernels come from: f64, or the context's.
int tti_isa_for(const tti_topology *top, const tt_node *n);
// True when the executor must widen and round around this node's kernel on a CPU.
bool tti_needs_widening(const tt_node *n);
// Has the device a kernel for this node, its types included?
bool tti_has_kernel(const tti_topology *top, const tt_node *n, const tti_device *d);

// Chains: which kernel they ask for, and how it will run; see tt_kernel.prepare.
tti_kernel_key tti_chain_key(const tti_chain *c);
tt_status tti_prepare_chain(const tti_plan *p, const tti_pnode *pn, const tti_chain *c,
                            const tt_kernel *k, const tt_arg *in, int n_in, const tt_arg *out,
                            int n_out, tt_prep *prep);

// Fused nodes: what launch.tune points to, and the kernel.
#define TTI_FUSE_TILE 2048 // elements
tt_status tti_fused_kernel(const tt_launch *l);
size_t tti_fused_local(const tti_fused *f); // bytes of tiles a thread needs

#endif
