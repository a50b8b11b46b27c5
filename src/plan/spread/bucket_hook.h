/*
 * bucket_hook.h - a user's function that sums buckets of gradients, as plans (bucket_hook.c) and
 * sessions know it.
 */
#ifndef TUTTI_PLAN_SPREAD_BUCKET_HOOK_H
#define TUTTI_PLAN_SPREAD_BUCKET_HOOK_H

#include <tutti/comm.h>

// Of a session; comm is opened before the first run that needs it.
typedef struct tti_hook {
    tt_bucket_fn fn;
    void *user;
    tt_comm *comm;
} tti_hook;

// What one process's node of a bucket calls the function with.
typedef struct tti_bucket_call {
    const tti_hook *state;
    int index, n_buckets;
    int n_replicas, n_gradients;
    tt_gradient *gradients;
} tti_bucket_call;

#endif
