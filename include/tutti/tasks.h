/*
 * tasks.h - the processes of one job and how they reach each other: what tt_open() of each of them
 * gets, equal in all but for self. They connect when the context is opened and part when it is
 * closed; every connection is authenticated and encrypted with keys made from the job's secret.
 */
#ifndef TUTTI_TASKS_H
#define TUTTI_TASKS_H

#include <tutti/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TT_MAX_TASKS    64
#define TT_SECRET_BYTES 32

// Zero means default. All is copied.
typedef struct tt_tasks {
    int n;                        // processes of the job, 1 to TT_MAX_TASKS
    int self;                     // which of them this is, from 0: its rank
    const char *const *names;     // of all; default "/job:worker/task:0" and so on
    const char *const *addresses; // of all: "host:port", where each listens
    const char *bind;             // address or interface to listen on; default: of its own address
    const unsigned char *secret;  // TT_SECRET_BYTES random ones, known to the job's processes alone
    const char *host;             // processes of different ones share no memory; default: by system
    const char *job;              // must be equal in all: what they are about to do; default ""
    const char *transport;        // "auto": memory where it can be shared, else wire; "shm"; "wire"
    bool no_encryption;           // of bulk data, which is still authenticated; control always is
    int64_t rendezvous_ms;        // all are there by then, or it is an error; default 10000
    int64_t heartbeat_ms;         // default 250
    int64_t loss_ms;              // who is lost is named within this; default 2000
} tt_tasks;

// The secret of a new job, from the system's random numbers.
TT_API tt_status tt_secret_new(tt_ctx *ctx, unsigned char out[TT_SECRET_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
