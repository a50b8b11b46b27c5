/*
 * serve.h (internal) - servers and their clients.
 *
 *   client                                         server
 *   tt_session, tt_queue, tt_state_...()           tti_host: cluster, containers, limits
 *     tti_channel: one connection,        <--->      server.c: sockets, messages in parts
 *     one request at a time                          tti_client: what one connection has
 *
 * A connection carries requests one after the other: a kind, a body of any size in parts, an answer
 * with a status. A server has a thread for every connection that asked for more than its state, so
 * a request may wait (for a queue, for a run) without others noticing. When the connection is lost
 * what it waits for is cancelled.
 */
#ifndef TUTTI_SERVE_SERVE_H
#define TUTTI_SERVE_SERVE_H

#include "base/thread.h"
#include "cluster/cluster.h"
#include "serve/pack.h"
#include "serve/queue.h"
#include <tutti/serve.h>

#define TTI_SERVE_PROTOCOL 1
#define TTI_SERVE_CHUNK    ((size_t)512 << 10) // bytes of a part of a message
#define TTI_SERVE_WINDOW   16                  // parts of an answer that are sent ahead
#define TTI_MAX_PEERS      256                 // tasks of a cluster
#define TTI_CONTAINER_MAX  64

// Kinds of requests; part of the protocol.
typedef enum tti_request {
    TTI_ASK_HELLO = 1,
    TTI_ASK_INFO = 2,
    TTI_ASK_GRAPH = 3,
    TTI_ASK_RUN = 4,
    TTI_ASK_GET = 5, // a variable of the session's graph
    TTI_ASK_SET = 6,
    TTI_ASK_LIST = 7, // state
    TTI_ASK_READ = 8,
    TTI_ASK_WRITE = 9,
    TTI_ASK_CLEAR = 10,
    TTI_QUEUE_OPEN = 11,
    TTI_ENQUEUE = 12,
    TTI_DEQUEUE = 13,
    TTI_QUEUE_SIZE = 14,
    TTI_QUEUE_CLOSE = 15,
    TTI_QUEUE_FREE = 16,
} tti_request;

// ---- spec.c: the cluster ---------------------------------------------------------------------

typedef struct tti_spec_task {
    char job[32];
    int index;
    char address[TTI_ADDRESS];
    char devices[128]; // "": not said
} tti_spec_task;

typedef struct tti_spec {
    tti_spec_task *tasks;
    int64_t n, cap;
    char key[512]; // file; "": none is named
    int self;      // as TF_CONFIG says; -1: not said
} tti_spec;

// From a file, or the JSON of TF_CONFIG; free with tti_spec_free() also after a failure.
tt_status tti_spec_read(tt_ctx *ctx, const char *cluster, tti_spec *out) TTI_CHECKED;
tt_status tti_spec_parse(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                         tti_spec *out) TTI_CHECKED;
void tti_spec_free(tt_ctx *ctx, tti_spec *s);
tt_status tti_spec_add(tt_ctx *ctx, tti_spec *s, const char *job, const char *address) TTI_CHECKED;
// The task that "worker:1" or "worker" names; an error lists those that there are.
tt_status tti_spec_find(tt_ctx *ctx, const tti_spec *s, const char *word, int *out) TTI_CHECKED;
// The task of a device name, of which fields may be missing: its own where it says no job.
tt_status tti_spec_place(tt_ctx *ctx, const tti_spec *s, int self, const tt_device_name *pin,
                         const char *node, int *out) TTI_CHECKED;

// ---- keys.c: whose key opens a connection ----------------------------------------------------

typedef struct tti_serve_key {
    unsigned char secret[TT_SECRET_BYTES];
    tti_loopback_key file; // of a server without a key of its own
    bool is_given;         // by a key file or the environment
} tti_serve_key;

// What a server at this address uses; file may be NULL or "".
tt_status tti_key_of_server(tt_ctx *ctx, const char *file, const char *address,
                            tti_serve_key *out) TTI_CHECKED;
// What a client of it uses.
tt_status tti_key_of_target(tt_ctx *ctx, const char *file, const char *address,
                            unsigned char out[TT_SECRET_BYTES]) TTI_CHECKED;
// "tutti://host:port" to "host:port".
tt_status tti_target_address(tt_ctx *ctx, const char *target, char out[TTI_ADDRESS]) TTI_CHECKED;
// A pair of keys as ZeroMQ wants them, of the server or of its clients.
bool tti_serve_pair(const unsigned char secret[TT_SECRET_BYTES], bool server, char public_key[41],
                    char secret_key[41]);

// ---- channel.c: a client's connection --------------------------------------------------------

typedef struct tti_piece {
    const void *data;
    size_t bytes;
} tti_piece;

typedef struct tti_channel tti_channel;

typedef struct tti_channel_opts {
    const char *target;
    const char *key;             // file; NULL: found
    const unsigned char *secret; // instead; NULL: none
    int64_t wait_ms;             // for a server that does not listen yet; 0: one try
} tti_channel_opts;

tt_status tti_channel_open(tt_ctx *ctx, const tti_channel_opts *o, tti_channel **out) TTI_CHECKED;
void tti_channel_close(tti_channel *c); // NULL is fine
const char *tti_channel_target(const tti_channel *c);
int64_t tti_channel_run_ms(const tti_channel *c); // how long the server lets a run take
// Sends a request; its answer is received before the next.
tt_status tti_channel_send(tti_channel *c, tti_request kind, const tti_piece *pieces,
                           int n) TTI_CHECKED;
/*
 * Waits for the answer, at most wait_ms without any part of it (0: the context's deadline). What it
 * holds is valid until the next request. A status that the server sends is recorded with its
 * message; after any other failure the connection is of no use.
 */
tt_status tti_channel_receive(tti_channel *c, int64_t wait_ms, tti_reader *out) TTI_CHECKED;
// Both; the request is t, which is freed.
tt_status tti_channel_ask(tti_channel *c, tti_request kind, tti_text *t, int64_t wait_ms,
                          tti_reader *out) TTI_CHECKED;

// ---- host.c: a task's state ------------------------------------------------------------------

// Variables and queues of one name; reference-counted.
typedef struct tti_container {
    char name[TTI_CONTAINER_MAX];
    _Atomic int refs;
    _Atomic int is_removed;
    tt_store *store;
    pthread_mutex_t mu;
    tti_queue_core *queues; // guarded by mu; a list
    int n_queues;
    struct tti_container *next;
} tti_container;

typedef struct tti_bounds { // tt_limits with all defaults filled in
    int clients, queues;
    size_t memory, graph, variables;
    int64_t run_ms;
} tti_bounds;

typedef struct tti_host {
    tti_spec spec;
    int self;
    char task[64], devices[128];
    int threads;
    tti_bounds bounds;
    tti_serve_key key;
    int64_t started_ns;
    pthread_mutex_t mu; // guards containers
    tti_container *containers;
    _Atomic int n_clients, n_sessions, is_draining;
    _Atomic int64_t n_runs, n_refused;
} tti_host;

tt_status tti_host_init(tt_ctx *ctx, tti_host *h) TTI_CHECKED; // its lists; the rest is set
void tti_host_deinit(tt_ctx *ctx, tti_host *h);

// Found or made; released by the caller. NULL: out of memory.
tti_container *tti_container_get(tti_host *h, const char *name, bool make);
void tti_container_release(tti_container *c);
tti_container *tti_container_new(const char *name);
void tti_container_end(tti_host *h, tti_container *c); // released; removed if nobody else has it
int tti_containers_clear(tti_host *h, const char *name, bool all); // how many there were

// ---- client.c: what a connection has on the server -------------------------------------------

typedef struct tti_client_queue {
    tti_queue_core *core;
    bool produces, consumes;
} tti_client_queue;

typedef struct tti_client {
    tti_host *host;
    char name[128];
    _Atomic int is_gone;   // lost: waits end
    _Atomic int64_t until; // run under way: when it is stopped; 0: none
    tt_ctx *ctx;           // for messages; of a session also its devices
    pthread_mutex_t mu;    // guards ctx against being closed while it is stopped
    tti_container *container;
    bool is_isolated;          // the container is the session's own
    bool is_ephemeral;         // it goes with the last session that is open on it
    struct tti_placed *placed; // the session's graph; NULL: none
    tti_client_queue *queues;
    int64_t n_queues, cap_queues;
} tti_client;

tti_client *tti_client_new(tti_host *h, const char *name);
void tti_client_free(tti_client *c); // producers and consumers that are lost are told to queues
// Carries out a request. The answer is appended to out; after a failure it is the message.
tt_status tti_client_handle(tti_client *c, uint32_t kind, const void *body, size_t bytes,
                            tti_text *out);
// From another thread: the connection is lost, or the time of a run is over.
void tti_client_cancel(tti_client *c);
void tti_client_check_time(tti_client *c, int64_t now);
// The message of a body that is not one.
tt_status tti_bad_message(tti_client *c, const char *what);

// state.c, queues.c (server's side): requests by kind
// May a container get so many bytes of variables more? what names them.
tt_status tti_state_room(tti_client *c, uint64_t bytes, const char *what) TTI_CHECKED;
tt_status tti_info_request(tti_client *c, tti_text *out) TTI_CHECKED;
tt_status tti_state_request(tti_client *c, uint32_t kind, tti_reader *r, tti_text *out) TTI_CHECKED;
tt_status tti_queue_request(tti_client *c, uint32_t kind, tti_reader *r, tti_text *out) TTI_CHECKED;

// placed.c: a graph on the server, perhaps over several tasks
tt_status tti_placed_new(tti_client *c, tt_graph *g, struct tti_placed **out) TTI_CHECKED;
void tti_placed_free(struct tti_placed *p);
tt_status tti_placed_run(struct tti_placed *p, tti_reader *r, tti_text *out) TTI_CHECKED;
tt_status tti_placed_variable(struct tti_placed *p, uint32_t kind, tti_reader *r,
                              tti_text *out) TTI_CHECKED;

// ---- server.c: sockets -----------------------------------------------------------------------

typedef struct tti_listening tti_listening;
// Listens for a host whose key is not set yet: port 0 is a free one, which *port tells.
tt_status tti_listening_open(tt_ctx *ctx, const char *bind, tti_listening **out,
                             int *port) TTI_CHECKED;
tt_status tti_listening_start(tti_listening *l, tti_host *h) TTI_CHECKED; // accepts from here on
bool tti_listening_drain(tti_listening *l, int64_t ms); // false: some were cancelled
void tti_listening_close(tti_listening *l);             // NULL is fine

#endif
