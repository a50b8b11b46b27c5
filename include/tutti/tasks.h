/*
 * tasks.h - the processes of one job and their addresses, for tt_open() in each process; only self
 * differs between them. They connect when the context is opened and disconnect when it is closed.
 * Every connection is authenticated and encrypted with keys derived from the job's secret.
 */
#ifndef TUTTI_TASKS_H
#define TUTTI_TASKS_H

#include <tutti/base.h>

#ifdef __cplusplus
extern "C" {
#endif

// Every process is connected with every other one, so connections of a job grow with the square of
// this; tables by rank have this size. Devices are not limited by it.
#define TT_MAX_TASKS    1024
#define TT_SECRET_BYTES 32

// Zero means default. Everything is copied.
typedef struct tt_tasks {
    size_t opts_size;             // set by the macro
    int n;                        // number of processes, 1 to TT_MAX_TASKS
    int self;                     // rank of this process, from 0
    const char *const *names;     // name of each process; default "/job:worker/task:0", ...
    const char *const *addresses; // address of each process: "host:port", where it listens
    const char *bind;             // address or interface to listen on; default: its own address
    const unsigned char *secret;  // TT_SECRET_BYTES random bytes, known only to the job's processes
    const char *host;      // host identity: only equal hosts share memory; default: by system
    const char *job;       // description of the job; must be equal in all; default ""
    const char *transport; // "auto": shared memory if possible, else TCP; "shm"; "wire": TCP
    bool no_encryption; // bulk data is authenticated but not encrypted; control messages always are
    int64_t rendezvous_ms;    // time for all processes to connect; default 10000, longer if
                              // more than four processes share a core
    int64_t heartbeat_ms;     // default 250
    int64_t loss_ms;          // time until a lost process is reported; default 2000, or longer
                              // likewise
    const volatile int *stop; // when it becomes non-zero (set by a signal handler), tt_open() stops
                              // waiting for the others: TT_ESTOP; default NULL. Not copied
} tt_tasks;
#define tt_tasks(...) TT_OPTS(tt_tasks, __VA_ARGS__)

// Makes the secret of a new job from the system's random numbers.
TT_API tt_status tt_secret_new(tt_ctx *ctx, unsigned char out[TT_SECRET_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
