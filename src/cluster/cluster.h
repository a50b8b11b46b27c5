/*
 * cluster.h (internal) - one reader per source of a cluster, and what they share. Readers get the
 * environment as a function, so that tests and fuzzers need none.
 */
#ifndef TUTTI_CLUSTER_CLUSTER_H
#define TUTTI_CLUSTER_CLUSTER_H

#include "base/base.h"
#include <tutti/cluster.h>

typedef struct tti_cluster_env {
    const char *(*get)(const void *user, const char *name); // NULL if it is not set
    const void *user;
    const char *host; // this machine's name
} tti_cluster_env;

// A variable that is set and not empty; else NULL.
const char *tti_cluster_get(const tti_cluster_env *env, const char *name);
// All variables that are looked at; NULL at the end.
extern const char *const tti_cluster_variables[];

// tt_cluster_find() with an environment of one's own.
tt_status tti_cluster_read(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster **out) TTI_CHECKED;

// ---- sources: each fills a cluster that is all zero but for source; the caller frees it ------

tt_status tti_cluster_tf_config(tt_ctx *ctx, const char *text, size_t bytes,
                                tt_cluster *c) TTI_CHECKED;
tt_status tti_cluster_torchrun(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c) TTI_CHECKED;
// path is for messages; rank is what TUTTI_RANK says, or NULL.
tt_status tti_cluster_hosts(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                            const char *rank, const char *host, tt_cluster *c) TTI_CHECKED;
bool tti_cluster_has_torchrun(const tti_cluster_env *env);

// ---- tasks.c ---------------------------------------------------------------------------------

extern const char *const tti_cluster_jobs[]; // "chief", "worker", "ps", "evaluator", NULL

// Appends a task, the next of its job. where is for messages. An address is checked, copied, and
// must be the only one of its kind; "" is not known. Ranks are given in the order of the calls.
tt_status tti_task_add(tt_ctx *ctx, tt_cluster *c, const char *where, const char *job,
                       const char *address, bool needs_port, int n_processes) TTI_CHECKED;
int tti_task_find(const tt_cluster *c, const char *job, int index); // -1: there is none
int tti_task_count(const tt_cluster *c, const char *job);
// Says that this process is the k-th of a task's.
void tti_task_choose(tt_cluster *c, int task, int k);

// What is wrong with "host:port" or "host"; NULL: nothing.
const char *tti_address_fault(const char *address, bool needs_port);
// The same of a bare host; IPv6 without its brackets.
const char *tti_host_fault(const char *host, size_t n);
// A decimal number without sign, blanks or leading zeros, at most max.
bool tti_cluster_number(const char *s, int max, int *out);

// Text for messages: its beginning, with '?' for what a terminal should not get.
#define TTI_EXCERPT 72
const char *tti_excerpt(char out[TTI_EXCERPT], const char *s);

#endif
