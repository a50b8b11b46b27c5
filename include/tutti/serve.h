/*
 * serve.h - servers, sessions on them, state that outlives clients, queues, groups of threads.
 *
 * A cluster is a list of jobs ("ps", "worker", any name), each with tasks at addresses; a server
 * runs one task. A client opens a session on any server (tt_session_new(graph, .target =
 * "tutti://host:port")): the server computes the graph, on its own devices and, for nodes pinned to
 * other tasks ("/job:ps/task:0/cpu:0"), on theirs. Variables and queues live in containers of their
 * task, by name, until they are cleared or the server ends.
 *
 * Every connection is encrypted and authenticated with a key of 32 bytes. Where no key is given,
 * servers listen on loopback only and make one, which processes of the same user find in a file.
 */
#ifndef TUTTI_SERVE_H
#define TUTTI_SERVE_H

#include <tutti/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_server tt_server;

// What a server grants; zero means default. A client beyond a limit gets an error that names it.
typedef struct tt_limits {
    size_t opts_size; // set by the macro
    int clients;      // connections at once; default 64
    size_t memory;    // bytes of one request or reply, and of one queue's elements; default 4 GiB
    size_t graph;     // bytes of a graph's text; default 64 MiB
    int queues;       // queues of a task; default 1024
    int64_t run_ms;   // longest run of a graph; default 600000
    const char *devices; // devices of each session, for example "cpu:0@2GiB"; default the task's
    size_t variables;    // bytes of all variables of a task; default: half of the memory
} tt_limits;
#define tt_limits(...) TT_OPTS(tt_limits, __VA_ARGS__)

typedef struct tt_serve_opts {
    size_t opts_size;
    const char *cluster;     // a cluster file, or the JSON of TF_CONFIG; default: TF_CONFIG
    const char *task;        // "worker:1"; default: that of TF_CONFIG, or the only one
    const char *devices;     // default: the cluster file's, else "cpu:0"
    const char *bind;        // address to listen at, "host:port"; default: the task's
    const char *key;         // key file; default: the cluster file's, else TUTTI_SECRET_FILE
    int threads;             // CPU threads of each session; default: all cores
    const tt_limits *limits; // default: as above
} tt_serve_opts;

/*
 * Starts the server of one task in background threads. Returns when it accepts connections; NULL on
 * failure: TT_EINVAL for an unknown job or task, or an address beyond loopback without a key,
 * TT_EPARSE for a cluster file that cannot be read, TT_EIO where the port is taken. Owned by ctx,
 * which needs no devices of its own; free it earlier with tt_server_free().
 */
TT_API tt_server *tt_serve_with(tt_ctx *ctx, const tt_serve_opts *opts);
#define tt_serve(...) TT_CALL1(tt_serve, __VA_ARGS__, )

typedef struct tt_cluster_local_opts {
    size_t opts_size;
    const char *jobs;        // "ps:1, worker:2", n tasks together; default: n workers
    const char *devices;     // of each task; default "cpu:0"
    int threads;             // CPU threads of each session; default: all cores
    const tt_limits *limits; //
} tt_cluster_local_opts;

// A whole cluster of n tasks in this process, on free ports of loopback. As tt_serve() otherwise.
TT_API tt_server *tt_cluster_local_with(tt_ctx *ctx, int n, const tt_cluster_local_opts *opts);
#define tt_cluster_local(...) TT_CALL2(tt_cluster_local, __VA_ARGS__, )

TT_API int
tt_server_count(const tt_server *s); // tasks that it runs: 1, or those of a local cluster
// "tutti://127.0.0.1:40123" and "/job:worker/task:1" of one of them; "" if there is no such one.
// Borrowed until the server is freed.
TT_API const char *tt_server_target(const tt_server *s, int i);
TT_API const char *tt_server_task(const tt_server *s, int i);
/*
 * Stops: refuses new requests, lets those under way end within drain_ms (0: cancels them), and
 * closes all connections. Fails with TT_ETIMEOUT if some had to be cancelled.
 */
TT_API tt_status tt_server_stop(tt_server *s, int64_t drain_ms);
TT_API void tt_server_free(tt_server *s); // stops first, without draining

typedef struct tt_ping_opts {
    size_t opts_size;
    const char *key;     // key file; default TUTTI_SECRET_FILE, else that of loopback
    int64_t deadline_ms; // until the server must answer; a server that is not up yet is waited for.
                         // default 0: one try
} tt_ping_opts;

// What a server says about itself.
typedef struct tt_server_info {
    char task[64];     // "/job:worker/task:1"
    char version[32];  // of its library
    char devices[128]; // as it was started with
    int n_tasks;       // of its cluster
    int clients;       // connections now
    int sessions;      // of them, those that have a graph
    int containers;    //
    int variables;     // in all containers
    int queues;        //
    size_t bytes;      // of variables
    int64_t runs;      // since it was started
    int64_t refused;   // requests that failed
    int64_t up_ms;     // time since it was started
    bool is_draining;  // it is about to stop
} tt_server_info;

// Asks a server. TT_EPEER if it does not answer or refuses the key.
TT_API tt_status tt_ping_sized(tt_ctx *ctx, const char *target, tt_server_info *out, size_t size,
                               const tt_ping_opts *opts);
#define tt_ping(...) TT_PING(__VA_ARGS__, )
#define TT_PING(ctx, target, out, ...) \
    tt_ping_sized((ctx), (target), (out), sizeof(*(out)), TT_OPTS(tt_ping_opts, __VA_ARGS__))

// ---- state -----------------------------------------------------------------------------------

typedef struct tt_state_opts {
    size_t opts_size;
    const char *key;       // key file; default TUTTI_SECRET_FILE, else that of loopback
    const char *container; // default: the default container, ""
    bool all;              // of all containers (list, clear)
} tt_state_opts;
typedef tt_state_opts tt_state_list_opts, tt_state_save_opts, tt_state_load_opts,
    tt_state_clear_opts;

// A variable or queue of a server.
typedef struct tt_state_entry {
    char container[64];
    char name[256];
    bool is_queue;
    tt_dtype dtype; // of a variable
    tt_shape shape;
    size_t bytes;    // of a queue: of the elements that it holds
    int64_t version; // of a variable: number of writes. Of a queue: elements that it holds
} tt_state_entry;

// Variables, then queues, by container and name; *out is freed with tt_state_free().
TT_API tt_status tt_state_list_with(tt_ctx *ctx, const char *target, tt_state_entry **out, int *n,
                                    const tt_state_opts *opts);
#define tt_state_list(...) TT_CALL4(tt_state_list, __VA_ARGS__, )
TT_API void tt_state_free(tt_ctx *ctx, tt_state_entry *entries);
// Writes the variables of a container to a safetensors file of the client, or sets them from one.
// Loading makes variables that are not there; one of another type or shape is TT_ESHAPE, and then
// none is changed. *n is their number.
TT_API tt_status tt_state_save_with(tt_ctx *ctx, const char *target, const char *path, int *n,
                                    const tt_state_opts *opts);
#define tt_state_save(...) TT_CALL4(tt_state_save, __VA_ARGS__, )
TT_API tt_status tt_state_load_with(tt_ctx *ctx, const char *target, const char *path, int *n,
                                    const tt_state_opts *opts);
#define tt_state_load(...) TT_CALL4(tt_state_load, __VA_ARGS__, )
// Removes containers with all that is in them. Calls that wait in their queues end with TT_ESTOP,
// and sessions that are open on them fail from then on. *n is the number of containers removed.
TT_API tt_status tt_state_clear_with(tt_ctx *ctx, const char *target, int *n,
                                     const tt_state_opts *opts);
#define tt_state_clear(...) TT_CALL3(tt_state_clear, __VA_ARGS__, )

// ---- queues ----------------------------------------------------------------------------------

typedef struct tt_queue tt_queue;
#define TT_QUEUE_MAX_PARTS 8

typedef enum tt_queue_kind {
    TT_QUEUE_FIFO = 0,
    TT_QUEUE_SHUFFLE = 1,  // in random order, by the seed and the order of calls
    TT_QUEUE_PADDING = 2,  // elements of different shapes; dequeued together, padded with zeros
    TT_QUEUE_PRIORITY = 3, // the lowest number first; equal ones in the order they came
} tt_queue_kind;

// A component of an element. In a padding queue a dimension of -1 may differ between elements.
typedef struct tt_queue_part {
    tt_dtype dtype;
    tt_shape shape;
} tt_queue_part;

typedef struct tt_queue_open_opts {
    size_t opts_size;
    tt_queue_kind kind;
    int64_t capacity;           // elements; required for a new queue
    int64_t min_after_dequeue;  // shuffling: elements left for mixing, until the queue is closed
    uint64_t seed;              // shuffling
    const tt_queue_part *parts; // required for a new queue
    int n_parts;                // 1 to TT_QUEUE_MAX_PARTS
    const char *target;         // the server where it lives; default: this process
    const char *key;            // key file; default TUTTI_SECRET_FILE, else that of loopback
    const char *container;      // on a server; default ""
    tt_queue *of;               // another handle, of any context: this one is of the same queue
} tt_queue_open_opts;

/*
 * A handle on the queue of this name: made if there is none, else found, and then what is given
 * must agree with it (no capacity: any). In this process, queues are shared by .of; without it a
 * new queue is made. A handle belongs to its context; queues may be used by several threads, each
 * with a context and a handle of its own.
 */
TT_API tt_queue *tt_queue_open_with(tt_ctx *ctx, const char *name, const tt_queue_open_opts *opts);
#define tt_queue_open(...) TT_CALL2(tt_queue_open, __VA_ARGS__, )
TT_API void tt_queue_free(tt_queue *q); // the handle; a local queue goes with its last one

typedef struct tt_enqueue_opts {
    size_t opts_size;
    const void *const *values; // by part: the elements, one behind the other
    const tt_shape *shapes;    // padding: by part, the shape of each element here; else unused
    int64_t n;                 // elements; default 1
    const int64_t *priorities; // priority queue: of each element; default 0
    int64_t deadline_ms;       // default: the context's
} tt_enqueue_opts;

/*
 * Adds n elements, all or none. Waits for room; TT_ETIMEOUT at the deadline, TT_ESTOP if the queue
 * is closed, TT_EPEER if it is full and its last consumer vanished, TT_EINVAL if n is above the
 * capacity. Shapes beyond the parts' are TT_ESHAPE.
 */
TT_API tt_status tt_enqueue_with(tt_queue *q, const tt_enqueue_opts *opts);
#define tt_enqueue(...) TT_CALL1(tt_enqueue, __VA_ARGS__, )

typedef struct tt_dequeue_opts {
    size_t opts_size;
    void *const *out;    // by part: room for n elements
    const size_t *bytes; // by part: size of that room
    tt_shape *shapes;    // if not NULL: by part, the shape of one element as written (padded)
    int64_t n;           // elements; default 1
    bool up_to;          // a closed queue gives what it has left, perhaps nothing
    int64_t *taken;      // number of elements; required with up_to
    int64_t deadline_ms; // default: the context's
} tt_dequeue_opts;

/*
 * Takes n elements, all or none, one behind the other. Waits for them; TT_ETIMEOUT at the deadline,
 * TT_ESTOP if the queue is closed and has fewer (with up_to: TT_OK), TT_EPEER if it has too few and
 * its last producer vanished without closing it, TT_ESHAPE if the room is too small.
 */
TT_API tt_status tt_dequeue_with(tt_queue *q, const tt_dequeue_opts *opts);
#define tt_dequeue(...) TT_CALL1(tt_dequeue, __VA_ARGS__, )

TT_API tt_status tt_queue_size(tt_queue *q, int64_t *out);

typedef struct tt_queue_close_opts {
    size_t opts_size;
    bool cancel; // also end calls that wait now, and drop the elements
} tt_queue_close_opts;
// No more elements are taken in; what is there can still be dequeued. Closing twice is fine.
TT_API tt_status tt_queue_close_with(tt_queue *q, const tt_queue_close_opts *opts);
#define tt_queue_close(...) TT_CALL1(tt_queue_close, __VA_ARGS__, )

// ---- groups of threads -----------------------------------------------------------------------

/*
 * Threads that stop together: the first error stops all, cancels the group's queues and is returned
 * once. Each thread opens a context of its own.
 */
typedef struct tt_threads tt_threads;
typedef tt_status (*tt_thread_fn)(tt_threads *group, void *user);

TT_API tt_threads *tt_threads_new(tt_ctx *ctx); // owned by ctx
// Waits for its threads: after a stop, so that they end.
TT_API void tt_threads_free(tt_threads *t);
// Starts a thread. What fn returns, unless TT_OK or TT_ESTOP, stops the group.
TT_API tt_status tt_threads_start(tt_threads *t, const char *name, tt_thread_fn fn, void *user);
// Cancels q when the group stops. The handle must stay until the group is freed.
TT_API tt_status tt_threads_watch(tt_threads *t, tt_queue *q);
TT_API bool tt_threads_should_stop(const tt_threads *t); // from any thread
// Stops the group; with the error of a context (NULL: none) as its own, if it is the first.
TT_API void tt_threads_stop(tt_threads *t, const tt_ctx *error);
/*
 * Waits until all threads have ended. Returns the group's first error, which its context then has;
 * TT_ETIMEOUT, naming a thread, if one has not ended in deadline_ms (0: the context's).
 */
TT_API tt_status tt_threads_join(tt_threads *t, int64_t deadline_ms);

#ifdef __cplusplus
}
#endif
#endif
