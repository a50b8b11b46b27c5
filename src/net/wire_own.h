/*
 * wire_own.h - what the files of wire.h share: wire.c (sockets, control messages, receiving),
 * wire_accept.c (where the wire listens and who is let in), wire_send.c (data messages until they
 * are taken), wire_seal.c (keys and messages without encryption), wire_files.c (descriptors). They
 * alone know ZeroMQ.
 */
#ifndef TUTTI_NET_WIRE_OWN_H
#define TUTTI_NET_WIRE_OWN_H

#include "net/keys.h"
#include "net/mac.h"
#include "net/wire.h"
#include "net/wire_auth.h"
#include "net/zmq_weak.h"
#include <pthread.h>

#define TTI_WIRE_WINDOW    64  // data messages that may be on their way to a rank
#define TTI_WIRE_STRANGERS 192 // connections at a listener beside all ranks' own twice
#define TTI_HOST_TEXT      48

// What nobody else may know; in memory for secrets, what is by rank behind the struct.
typedef struct tti_wire_secrets {
    char own_key[41];                  // secret half of this rank's pair, as text: Z85
    uint8_t data_key[TT_SECRET_BYTES]; // without encryption of data: tti_wire_data_key()
    tti_auth_key *shown;               // by rank: what it shows
    tti_digest *mac_in;                // key of what it sends to this one
    tti_digest *mac_out;               // of what this one sends to it
} tti_wire_secrets;

// Without encryption, what is behind a data message.
typedef struct tti_seal {
    uint64_t number; // of messages from this rank to that one
    tti_tag tag;
} tti_seal;

// Data messages to a rank.
typedef struct tti_send_queue {
    void *socket, *monitor;
    pthread_mutex_t mu;
    // Guarded by mu:
    pthread_cond_t room;
    zmq_msg_t kept[TTI_WIRE_WINDOW]; // messages [n_taken, n_put), by number
    uint32_t n_put, n_sent, n_taken; // given to us, given to ZeroMQ, taken by the rank
    uint64_t n_sealed;
    bool is_broken;
    _Atomic bool is_behind; // some could not be given to ZeroMQ
} tti_send_queue;

typedef struct tti_wire_link {
    char host[TTI_HOST_TEXT]; // where the rank is, as a number; "": not known yet
    void *control, *monitor;
    pthread_mutex_t mu; // guards control
    _Atomic int state;
    uint64_t n_got;       // the wire's thread: sealed messages of the rank
    int64_t connected_ns; // the wire's thread: when, and how often it was closed soon after
    int n_closed;
    bool is_lost; // close() does not wait for what it has not taken
    tti_send_queue data;
} tti_wire_link;

typedef struct tti_connection { // a connection that came in
    int fd, own;                // ZeroMQ's, and a copy that stays the same one; -1: needed no more
    char host[TTI_HOST_TEXT];
    bool is_known;  // a message of a rank has come by it
    bool is_turned; // it was cut off: ZeroMQ is about to drop it
} tti_connection;

typedef struct tti_listener { // where a socket listens
    void *monitor;
    int fd, port, n_connections, most;
    tti_connection *connections; // in the order in which they came
    bool is_resting;             // it does not listen: there are too many
} tti_listener;

struct tti_wire {
    tt_ctx *ctx;
    int n, self;
    bool no_encryption, is_meeting;
    void *zmq, *zap, *control, *data;
    tti_listener control_listener, data_listener;
    int wake_fd, data_port;
    int64_t looked_ns; // at links
    _Atomic int n_refused, n_forged;
    zmq_msg_t *asking;       // whose message is being taken: its route
    tti_wire_link *links;    // by rank, as the next
    char (*public_keys)[41]; // as text: Z85
    tti_wire_secrets *secrets;
    size_t secrets_bytes;
};

// wire.c: all frames of a message, at most max; the number there were. Then drops them.
int tti_wire_take(void *socket, zmq_msg_t *frames, int max);
void tti_wire_drop(zmq_msg_t *frames, int n, int max);
int tti_wire_event(void *monitor, int *value); // ZMQ_EVENT_..., -1: none
void tti_wire_set(void *socket, int option, int value);

// wire_accept.c: listens at "host:port", where port 0 is any that is free; the port.
tt_status tti_listener_open(tti_wire *w, void *socket, const char *at, tti_listener *d,
                            int *port) TTI_CHECKED;
// Sees who comes and goes. Strangers are bounded, in all and by address: those that have been there
// longest go first, from where most of them are. With far too many, listening rests.
void tti_listener_watch(tti_wire *w, tti_listener *d);
void tti_listener_know(tti_listener *d, int fd); // a message of a rank has come by that connection
void tti_listener_cut(tti_listener *d,
                      int fd); // what came by that connection is nobody's of the job
void tti_listener_close(tti_listener *d);
bool tti_listener_admit(tti_wire *w); // answers one who wants to come in; false: there is none

// wire_files.c: descriptors for a job of n processes; the soft limit is raised if need be.
tt_status tti_wire_check_files(tt_ctx *ctx, int n) TTI_CHECKED;

// wire_seal.c
tt_status tti_wire_make_keys(tti_wire *w, const uint8_t *secret) TTI_CHECKED;
// With the rank's own key: what is shown to it, and what seals messages to it.
void tti_wire_use_key(tti_wire *w, int rank, void *socket, const uint8_t *data_key);
// Writes the seal behind a message; with the queue's mu held.
void tti_wire_seal(tti_wire *w, int to, char *message, size_t bytes);
// A message is what the rank sent, and the next of it; bytes is its size without the seal.
bool tti_wire_unseal(tti_wire *w, int from, zmq_msg_t *m, size_t *bytes);

// wire_send.c
void tti_send_queue_open(tti_send_queue *b);
void tti_send_queue_close(tti_send_queue *b); // its sockets are closed already
// Sends what was behind. If it also looks at the connection, what the rank has not told of goes
// over a new one once more.
void tti_send_queue_watch(tti_wire *w, int rank, bool looks);

#endif
