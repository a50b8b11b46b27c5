/*
 * ctx.h - the context: the sticky error, counted memory, and what the context owns.
 */
#ifndef TUTTI_BASE_CTX_H
#define TUTTI_BASE_CTX_H

#include "base/base.h"
#include "base/registry.h"
#include "base/topology.h"
#include <pthread.h>

#define TTI_MESSAGE_MAX 6144 // a path of the longest kind, and what is wrong with it

/*
 * Hashes of the weights that a fit tells as events "hash", for the chain of a run. Processes other
 * than the first learn whether and how often from it; a list of steps is given to all.
 */
typedef struct tti_hashing {
    bool is_on;
    int64_t every;     // steps between two; 0: by what they cost
    const int64_t *at; // these steps instead, ascending; NULL: none are named
    int64_t n_at;
} tti_hashing;

struct tt_ctx {
    // Error slot. The status is read without the lock on every public call.
    _Atomic int status;
    pthread_mutex_t mu; // guards message, file, line, events out; recursive
    char message[TTI_MESSAGE_MAX];
    const char *file;
    int line;
    const char *where; // in front of messages while a file is read: "graph text line 3: "; or NULL

    tt_event_fn on_event;
    void *user;
    tti_observer *observers; // guarded by mu
    tt_level level;
    bool has_progress; // a fit shows its progress itself: no lines per epoch; guarded by mu
    _Atomic(struct tti_attempt *) attempt; // that is under way; NULL: none

    // fork.c
    volatile int *is_here; // 1; a fork makes it 0; NULL: pid is compared
    int pid;               // of who opened it; 0: not watched

    // Host memory.
    _Atomic int64_t alloc_calls, alloc_blocks, alloc_bytes;
    _Atomic int64_t fail_in;      // counts down to the allocation that fails; 0: off
    _Atomic int64_t disk_fail_in; // the same for calls of disk.h
    _Atomic int disk_fail_how;

    tti_topology top; // set by tt_open(), then only read
    char share[128];  // what top.spread.share points to

    // Settings.
    uint64_t seed;
    int n_threads;
    int n_beside; // threads of the job's other processes on the same cores
    // Among the processes that divide the GPUs of a host; 0: they are not divided.
    int gpu_turn, n_gpu_sharers;
    bool no_capture;             // plans of devices with streams are walked every time
    int64_t deadline_ms;         // net/timeout.h
    int64_t learn_ms;            // the shortest that is learned from runs before; 0: it was given
    _Atomic uint64_t pulse;      // grows with what gets on outside of runs, for others that wait
    struct tti_fault *fault;     // run/: what is to go wrong, in tests; NULL: nothing
    _Atomic int stop;            // tt_request_stop()
    _Atomic int end;             // tt_request_end(): a fit ends after its step
    tti_hashing hashing;         // set before a fit
    struct tti_elastic *elastic; // train/: a job whose processes may change; NULL: they do not
    // Of such a job: the number of this membership, 0: it never changes; and the file with that of
    // the newest one: folders are published by it alone (folder.c).
    int64_t epoch;
    const char *epoch_file; // borrowed

    // What upper folders hang here.
    tt_store *store;
    tt_store **stores; // others that sessions have opened
    int64_t n_stores, cap_stores;
    struct tti_world *world; // comm/: the job's other processes; NULL: there are none
    tti_registry user_ops, user_sources;
    struct tti_hooks *owned; // last one first
};

// Makes the recursive lock of a context that is all zero; what tt_open() and tt_close() need.
void tti_ctx_init(tt_ctx *ctx);
void tti_ctx_deinit(tt_ctx *ctx);

// fork.c: from here on a child of fork() is told from the process itself. fail records that.
void tti_fork_watch(tt_ctx *ctx);
void tti_fork_unwatch(tt_ctx *ctx);
bool tti_is_forked(const tt_ctx *ctx);
void tti_fork_fail(tt_ctx *ctx);

/*
 * Something that is only tried: it may fail, and nothing of it is logged. After the end the context
 * is as it was before the beginning, and the attempt has the first error. Attempts may be nested;
 * the context carries no error when one begins.
 */
typedef struct tti_attempt {
    struct tti_attempt *outer;
    tt_status status; // TT_OK: it went well
    char message[TTI_MESSAGE_MAX];
    const char *file;
    int line;
} tti_attempt;
void tti_attempt_begin(tt_ctx *ctx, tti_attempt *a);
tt_status tti_attempt_end(tt_ctx *ctx, tti_attempt *a); // gives its status
// The attempt's error becomes that of the context after all.
tt_status tti_attempt_raise(tt_ctx *ctx, const tti_attempt *a);

// Puts text, borrowed, in front of every message from here on; NULL ends that.
void tti_fail_where(tt_ctx *ctx, const char *text);

#endif
