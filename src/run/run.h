/*
 * run.h (internal) - sessions, the executor's state.
 */
#ifndef TUTTI_RUN_RUN_H
#define TUTTI_RUN_RUN_H

#include "plan/spread/bucket_hook.h"
#include "run/remote.h"
#include "run/store.h"
#include <tutti/run.h>

// tasks.c: opens the devices of a context whose world is open, and has the others' beside them.
tt_status tti_open_tasks(tt_ctx *ctx, const tt_open_opts *o) TTI_CHECKED;

// ---- recording -------------------------------------------------------------------------------

typedef struct tti_span {
    int64_t begin_ns, end_ns;
    const tti_plan *plan;
    int device, entry;
    int64_t run;
} tti_span;

#define TTI_SPANS (1 << 16) // the newest that are kept

typedef struct tti_hash_row {
    int64_t step;
    const tt_node *node;
    int output;
    int lane; // -1: not split over lanes
    uint64_t hash;
} tti_hash_row;

/*
 * How a device spent the runs of a session, in nanoseconds. Written by its worker, and by the
 * calling thread after a run; read between runs.
 */
typedef struct tti_clock {
    int64_t walking; // from its first entry to its last, all that follows included
    int64_t communication;
    int64_t *waiting; // by the device it waited for; NULL: another process's device
    int64_t ended;    // when its last list ended

    // Where it is, for messages of others that wait for it.
    _Atomic int at;       // entry of its list
    _Atomic int waits_on; // device + 1; 0: it does not wait
} tti_clock;

// Faults on request; see fault.c. Called where ctx->fault is not NULL.
typedef struct tti_fault tti_fault;
tt_status tti_fault_open(tt_ctx *ctx) TTI_CHECKED;
struct tt_session;
tt_status tti_fault_before(const struct tt_session *s, const tti_plan *p, int device,
                           const tti_entry *en) TTI_CHECKED;
void tti_fault_after(const struct tt_session *s, const tti_plan *p, int device, const tti_entry *en,
                     int64_t took_ns);

// ---- sessions --------------------------------------------------------------------------------

// One device's part of a run.
typedef struct tti_walk_task {
    struct tt_session *session;
    tti_plan *plan;
    int device;
} tti_walk_task;

struct tt_session {
    tt_ctx *ctx;
    tt_graph *graph;
    tt_store *store;
    tt_session *next, **link; // in the graph's list
    tti_remote *remote;       // on a server; NULL: it runs here
    bool hashes, trace, no_fuse, no_fold;
    char dump[TTI_NAME_MAX];
    char *recompute; // a copy; NULL: none
    tti_hook hook;   // for buckets of gradients; fn NULL: none
    // What its plans are for: the context's, or one of its own with other speeds.
    const tti_topology *top;
    tti_topology own_top;

    tti_plan *plans;     // newest first
    char **arenas;       // by arena of the context's devices (plan/executable.h)
    size_t *arena_bytes; // likewise
    uint8_t paint;
    bool is_painted;
    struct tti_meeting *meeting; // several processes: tasks.c; NULL: one

    // The run in progress.
    int64_t n_runs;
    uint32_t sequence; // flags of this run have reached it
    _Atomic int failed;
    // The last run that has begun to write variables, and the last of a step that has ended well:
    // where they differ, variables are neither those before the step nor those after it.
    _Atomic uint32_t writing, written;
    tti_flag finished; // devices that ended, counted over all runs
    uint32_t n_finished;
    // Room of a run, by device: what workers get; those with streams, first ones first; up to where
    // each one's entries have been submitted.
    tti_walk_task *tasks;
    tti_device **streaming;
    int *submitted;
    int64_t wait_ms;     // of its waits: how long nothing may get on
    int64_t sync_ms;     // for a device with streams, whose progress is not seen
    tti_clock *clocks;   // by device
    int64_t *waits;      // what their times of waiting are in
    tt_tensor **targets; // room for many outputs
    int64_t cap_targets;
    const tt_feed_value *to_come; // of the run in progress: what will be fed after it
    int n_to_come;
    char *landing; // pinned memory where small fetches of devices with streams arrive
    size_t landing_bytes;
    tti_device *landing_of;

    tti_span *spans; // ring of TTI_SPANS
    _Atomic int64_t n_spans;
    tti_hash_row *rows; // guarded by rows_mu
    int64_t n_rows, cap_rows;
    char *dumped; // bytes of the node in .dump, newest run
    size_t dumped_bytes;
    pthread_mutex_t rows_mu;
};

// hook_group.c: can the context have a hook? Opens its group before a plan that needs it runs.
tt_status tti_hook_check(tt_ctx *ctx) TTI_CHECKED;
tt_status tti_hook_open(tt_session *s, const tti_plan *p) TTI_CHECKED;

// ---- several processes: tasks.c --------------------------------------------------------------

// Arenas as large as a plan of all processes needs: each makes its own, and maps those it can read.
tt_status tti_join_arenas(tt_session *s, const tti_plan *p) TTI_CHECKED;
// Before a run: the processes that read this one's memory have ended the run before. After it:
// told.
tt_status tti_border_wait(tt_session *s) TTI_CHECKED;
tt_status tti_border_set(tt_session *s) TTI_CHECKED;
void tti_meeting_free(tt_session *s);
// Messages of a call; of one whose values are in memory of a GPU (gpu_messages.c).
tt_status tti_run_mail(tt_session *s, tti_plan *p, const tti_entry *en,
                       const tti_call *c) TTI_CHECKED;
tt_status tti_submit_messages(tt_session *s, tti_plan *p, tti_device *d, const tti_entry *en,
                              const tti_call *c) TTI_CHECKED;
// Waits for a flag of memory that processes share, which that rank sets; ends when they, or this
// run, have failed. for_node is for reports; NULL: it is no node's.
tt_status tti_wait_shared(tt_session *s, tti_flag *flag, uint32_t value, int spins, int rank,
                          const tt_node *for_node) TTI_CHECKED;

// Walks a plan on all its devices; blocks until all have ended.
tt_status tti_execute(tt_session *s, tti_plan *p);
// submit.c: the part of devices with streams; returns when it has ended.
tt_status tti_submit(tt_session *s, tti_plan *p) TTI_CHECKED;
// Between submit.c and submit_collectives.c: what an entry waits for; is something looked at
// between entries?
tt_status tti_wait_for_others(tt_session *s, tti_plan *p, int device,
                              const tti_entry *en) TTI_CHECKED;
bool tti_is_watched(const tt_session *s);
/*
 * submit_collectives.c: how many submissions from the i-th on are collectives of a library that are
 * enqueued at once, 0: none; enqueues them; has every device's other work wait for its collectives
 * so far.
 */
int tti_collectives_at(const tti_plan *p, int i);
tt_status tti_submit_collectives(tt_session *s, tti_plan *p, int i, int n) TTI_CHECKED;
tt_status tti_join_devices(tt_session *s, const tti_plan *p) TTI_CHECKED;
// Where fetch i is after that, in s->landing; SIZE_MAX: it is fetched from its device.
size_t tti_landing_at(const tt_session *s, const tti_plan *p, int fetch);
/*
 * ahead.c: feeds of the next run are copied while this one computes; taken from there if the run is
 * fed from source. settle: nothing reads the memory of feeds any more.
 */
tt_status tti_ahead_start(tti_plan *p, const tt_feed_value *next, int n) TTI_CHECKED;
tt_status tti_ahead_take(tti_plan *p, int feed, const void *source, void *to,
                         bool *is_taken) TTI_CHECKED;
void tti_ahead_settle(tt_session *s);
// Between exec.c and submit.c.
tt_status tti_wait_for_entry(tt_session *s, tti_plan *p, int device, const tti_entry *en,
                             const tti_wait *w) TTI_CHECKED;
void tti_record_span(tt_session *s, tti_plan *p, int device, int entry, int64_t begin, int64_t end);
// How device spent the runs since tti_clocks_clear(), which took total_ns together.
typedef struct tti_spent {
    int64_t compute, communication, idle; // idle: no list of its own to walk
    const int64_t *waiting; // by device, borrowed from the clock; NULL: another process's device
} tti_spent;
void tti_clocks_new(tt_session *s); // freed with the session; a failure is recorded
void tti_clocks_clear(tt_session *s);
tti_spent tti_clock_read(const tt_session *s, int device, int64_t total_ns);
// Plans are made anew with the next runs, since the mesh has changed. Not while a trace is taken.
void tti_session_forget(tt_session *s);
// Fails if copies of a variable differ, naming device and variable; step is for the message.
tt_status tti_replicas_check(tt_session *s, int64_t step) TTI_CHECKED;
// Writes the text to a file and frees it; failures name the file.
tt_status tti_text_write(tti_text *t, const char *path) TTI_CHECKED;
// When the first span that is kept began; INT64_MAX: none is.
int64_t tti_trace_first(const tt_session *s);
// Adds the events of this process's spans, with times from start on.
void tti_trace_events(const tt_session *s, int64_t start, tti_text *t);
// trace_ranks.c: adds the events of all processes on rank 0. All of them make the call.
tt_status tti_trace_gather(const tt_session *s, tti_text *t) TTI_CHECKED;
// After an entry ran: hashes of its outputs by lane.
tt_status tti_hashes_add(tt_session *s, const tti_plan *p, const tti_entry *en);
// The variable of a node, made where it is pinned or on the first device if there is none yet.
tt_status tti_session_variable(tt_session *s, const tt_node *var, tti_variable **out);
// Bytes that a plan's use of a variable on a device would add there.
size_t tti_session_needs(tt_session *s, const tti_want *w);

// Where a plan has its variables, by name; another that comes after it follows.
typedef struct tti_home {
    const char *name; // borrowed from the graph
    int device;
} tti_home;
typedef struct tti_homes {
    tti_home *v; // free with tti_free()
    int n;
} tti_homes;

// A run as it would be planned.
typedef struct tti_trial {
    tt_tensor *const *targets;
    int n_targets, n_fetched;
    int64_t rows;
    int micro;
    const char *recompute;
    const tti_topology *top; // NULL: the session's
    const tti_homes *follow; // the variables of a run before it; NULL: none
    tti_homes *homes;        // those of this one are put here; NULL: not wanted
} tti_trial;
typedef struct tti_need {
    size_t variables, arena; // of the plan
    size_t fixed;            // of the arena: what every plan has for itself
    size_t others;           // variables on the device that are none of it
    size_t added;            // variables that the run before, whose homes it follows, has not there
    size_t limit;            // of the device; 0: none
} tti_need;
// What it would need on each device of its topology. Fails as the plan would, but for limits.
tt_status tti_session_try(tt_session *s, const tti_trial *t, tti_need *out) TTI_CHECKED;
// Lanes by other speeds of the devices, where share: auto says so, from the next plan on.
tt_status tti_session_set_speeds(tt_session *s, const double *speed) TTI_CHECKED;
/*
 * A plan that is only looked at: for some topology (NULL: the session's), its stages seen by a
 * watch (NULL: by none). The session does not keep it: free it with tti_plan_free().
 */
tt_status tti_session_look(tt_session *s, const tt_plan_opts *opts, const tti_topology *top,
                           struct tti_stage_watch *watch, tti_plan **out) TTI_CHECKED;
// Makes and keeps the plan that a run of the session will use; dry_run: without memory.
tt_status tti_session_plan(tt_session *s, const tti_topology *top, tt_tensor *const *targets,
                           int n_targets, int n_fetched, int64_t rows, int micro,
                           bool dry_run) TTI_CHECKED;
// The kept plan for this request, or a new one.
tt_status tti_find_plan(tt_session *s, tti_plan_request *r, tti_plan **out) TTI_CHECKED;
/*
 * speed.c: what each device gets done in a moment, all of them working at once; only the ratios
 * mean something. All processes do it together.
 */
tt_status tti_measure_speeds(tt_ctx *ctx, double *speed) TTI_CHECKED;
// Numbers of this process's devices in, of all devices out; all processes do it together.
tt_status tti_by_device(tt_ctx *ctx, double *values) TTI_CHECKED;
const void *tti_value_data(const tt_session *s, const tti_plan *p, int value);

#endif
