/*
 * server_own.h - what server.c (sockets) and server_peers.c (connections and their threads) share.
 */
#ifndef TUTTI_SERVE_SERVER_OWN_H
#define TUTTI_SERVE_SERVER_OWN_H

#include "net/wire_auth.h"
#include "serve/frame.h"

#define TTI_PEER_ID 16

typedef enum tti_peer_state {
    TTI_IDLE,
    TTI_WORKING, // its thread has the request
    TTI_ANSWERING,
} tti_peer_state;

// A connection.
typedef struct tti_peer {
    tti_listening *l;
    uint8_t id[TTI_PEER_ID];
    size_t id_bytes;
    int fd;
    tti_client *client;
    tti_assembly in;
    bool is_known; // has said hello
    struct tti_peer *next;

    // Guarded by l->mu:
    tti_peer_state state;
    bool is_gone, is_ended; // lost; its thread has ended
    tti_text answer;
    tt_status status;
    pthread_cond_t wake;

    uint64_t sent;
    int64_t credit;
    bool has_begun; // the first part of the answer is out
    tti_thread thread;
} tti_peer;

struct tti_listening {
    tt_ctx *ctx;
    tti_host *host;
    char bind[TTI_ADDRESS], url[TTI_ADDRESS + 16];
    int fd, wake_fd;
    void *zmq, *router, *zap, *monitor;
    tti_auth_key admitted;
    tti_thread thread;
    pthread_mutex_t mu; // guards the states of peers
    tti_peer *peers;    // changed by its thread alone, under mu
    _Atomic int stop;
    uint64_t n_clients; // so far, for names
};

// The thread with the sockets looks again.
void tti_listening_wake(tti_listening *l);
// The connection of an identity; NULL: there is none.
tti_peer *tti_peer_find(tti_listening *l, const void *id, size_t bytes);
// A new one, after all losses so far were taken. NULL: out of memory.
tti_peer *tti_peer_admit(tti_listening *l, const void *id, size_t bytes, int fd);
void tti_peer_take(tti_peer *p, const void *part, size_t bytes); // a part of a request, or a word
void tti_peer_lose(tti_peer *p);
void tti_peers_reap(tti_listening *l); // those that are lost and have ended

#endif
