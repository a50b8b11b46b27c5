/*
 * wire.h - connections between the ranks of a job: ZeroMQ with CURVE.
 *
 * A rank listens at two places: for control (small messages, at its address) and for data (chunks
 * of messages, at a port of its own that its hello tells). It connects to both of every other rank,
 * so a connection is used in one direction. Who sent a message is not what it says but whose key
 * its connection has shown.
 */
#ifndef TUTTI_NET_WIRE_H
#define TUTTI_NET_WIRE_H

#include "base/base.h"
#include <sys/uio.h>
#include <tutti/tasks.h>

#define TTI_WIRE_CONTROL ((size_t)16 << 10)  // most bytes of a control message
#define TTI_WIRE_CHUNK   ((size_t)512 << 10) // most bytes of a data message, head and all

typedef struct tti_wire tti_wire;

typedef struct tti_wire_opts {
    int n, self;
    const char *bind; // "10.0.0.5:7070", "eth0:7070"
    const uint8_t *secret;
    bool no_encryption; // of data: each message is authenticated instead
} tti_wire_opts;

// Listens; nobody is connected yet. Errors name the address.
tt_status tti_wire_open(tt_ctx *ctx, const tti_wire_opts *opts, tti_wire **out) TTI_CHECKED;
// What was told but not yet taken by the system has that long; the wire's thread has ended.
void tti_wire_close(tti_wire *w, int linger_ms);
void tti_wire_forget(tti_wire *w, int rank); // nothing waits for that rank when the wire is closed
int tti_wire_data_port(const tti_wire *w);
/*
 * Without encryption of data: 32 random bytes that ranks need to send data to this one, told to
 * them by their encrypted control connections alone. Else NULL.
 */
const uint8_t *tti_wire_data_key(const tti_wire *w);

// "host:port", resolved; connecting goes on in the background.
tt_status tti_wire_connect(tti_wire *w, int rank, const char *address) TTI_CHECKED;
// With the rank's tti_wire_data_key(), if data is not encrypted.
tt_status tti_wire_connect_data(tti_wire *w, int rank, const char *address,
                                const uint8_t *data_key) TTI_CHECKED;
// How far the connection to a rank has come: for messages.
typedef enum tti_wire_state {
    TTI_WIRE_SILENT = 0,  // nobody answers there
    TTI_WIRE_ANSWERS = 1, // it is listened there, but nobody has said anything yet
    TTI_WIRE_READY = 2,
    TTI_WIRE_REFUSES = 3, // someone hangs up each time: not of the job
} tti_wire_state;
tti_wire_state tti_wire_state_of(const tti_wire *w, int rank);
int tti_wire_refused(const tti_wire *w); // connections that showed no key of the job, so far
int tti_wire_forged(const tti_wire *w);  // data messages that were not what their rank sent

// A control message; never waits. Any thread.
void tti_wire_tell(tti_wire *w, int to, const void *message, size_t bytes);
/*
 * A data message of n parts, all copied. Any thread. TT_ETIMEOUT, unrecorded, when there was no
 * room for wait_ms. Messages arrive in order, but after a break of the connection some may come
 * twice, or be missing until they have: the caller numbers them.
 */
tt_status tti_wire_put(tti_wire *w, int to, const struct iovec *parts, int n,
                       int wait_ms) TTI_CHECKED;

// The other side has taken the first n data messages: they are kept no longer. Any thread.
void tti_wire_taken(tti_wire *w, int by, uint32_t n);
// Has the rank told that it took all? Any thread.
bool tti_wire_has_taken(tti_wire *w, int rank);

// What is called with messages, on the thread that calls tti_wire_serve().
typedef struct tti_wire_calls {
    void (*control)(void *user, int from, const void *message, size_t bytes);
    void (*data)(void *user, int from, const void *message, size_t bytes);
    void *user;
} tti_wire_calls;
/*
 * Takes what has come, waiting up to timeout_ms for something or for tti_wire_wake(). Always the
 * same thread; while nobody calls it, nobody is admitted.
 */
void tti_wire_serve(tti_wire *w, int timeout_ms, const tti_wire_calls *calls);
// Answers the rank whose message is being taken, on the connection it came by.
void tti_wire_answer(tti_wire *w, const void *message, size_t bytes);
// While ranks meet, answers are taken; afterwards not, so that others may use the connections.
void tti_wire_met(tti_wire *w);
void tti_wire_wake(tti_wire *w);

#endif
