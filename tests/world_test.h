/*
 * world_test.h - jobs of several real processes for tests: each is forked, opens a context with its
 * rank, runs the test's function and closes; what it says comes back through shared memory.
 */
#ifndef TUTTI_WORLD_TEST_H
#define TUTTI_WORLD_TEST_H

#include "net/world.h"
#include "test.h"
#include <sys/types.h>

#define WORLD_MOST    4
#define IGNORED(call) ((void)((call) == TT_OK)) // what failed is in the context

typedef struct world_rank {
    pid_t pid;
    _Atomic int stage; // what the rank's function makes of it, for the others and the test
    tt_status status;  // of tt_close()
    char message[2048];
    char note[256];
    uint64_t hash;
    double seconds; // from the fork to the end
} world_rank;

typedef struct world_job {
    int n;
    tt_tasks tasks; // but for n, self, addresses, secret
    const char *devices, *strategy;
    const char *(*devices_of)(int rank); // in place of devices; NULL: equal ones
    const tt_spread *spread;
    int lanes;
    void (*change)(struct world_job *j, int rank, tt_tasks *t); // what this rank gets wrong
    void (*run)(struct world_job *j, int rank, tt_ctx *ctx);    // NULL: nothing
    void *arg;
    // made by world_start():
    unsigned char secret[TT_SECRET_BYTES];
    char address[WORLD_MOST][32];
    const char *addresses[WORLD_MOST];
    world_rank *ranks; // shared
} world_job;

// Without ZeroMQ, or where forking cannot work, the test is skipped.
void world_start(world_job *j);
// Starts one rank; world_start() does so with all.
void world_fork(world_job *j, int rank);
void world_prepare(world_job *j);
// Waits for all to end by themselves; those that do not within seconds are killed and the test
// fails. Also fails if anything is left of them.
void world_join(world_job *j, double seconds);
void world_run(world_job *j); // start and join, 20 s
void world_await_stage(world_job *j, int rank, int stage);
// Numbers of a member, the same in every process.
void world_fill(char *to, size_t bytes, tt_dtype t, int member);

#endif
