/*
 * launchers.h (internal) - launchers that start processes and tell each its rank, a record each.
 */
#ifndef TUTTI_CLUSTER_LAUNCHERS_H
#define TUTTI_CLUSTER_LAUNCHERS_H

#include "cluster/cluster.h"

typedef struct tti_launcher tti_launcher;

// What a launcher says of this process.
typedef struct tti_launch {
    const tti_launcher *by; // NULL: none has started several processes
    int rank, n;
    int local_rank, n_local; // n_local 0: not told
    char leader[320];        // "host:port" or "host" of rank 0; "": not told
    bool is_derived;         // the leader follows from a list of hosts: rank 0 knows it better
    char id[512];            // what only processes of this start share; "": there is nothing
} tti_launch;

struct tti_launcher {
    const char *name;
    const char *rank, *size;          // variables; rank NULL: the number of the pod
    const char *local_rank, *n_local; // variables; NULL: there is none
    const char *with, *without;       // it counts only with this set, and that not; NULL: always
    bool is_node;                     // starts one process a machine
    bool by_parent;                   // processes of one start have the same daemon above them
    int depth;                        // of several the deepest counts
    const char *id[4];                // variables that make an id; NULL at the end
    tt_status (*more)(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s); // NULL: no more
};

// The one that has started this process beside others. Fails if its variables are wrong, or if two
// disagree. is_told: the variables of another source say who this process is.
tt_status tti_launcher_find(tt_ctx *ctx, const tti_cluster_env *env, bool is_told,
                            tti_launch *out) TTI_CHECKED;
const tti_launcher *tti_launcher_at(int i);                               // NULL behind the last
bool tti_launcher_has(const tti_launcher *l, const tti_cluster_env *env); // are its variables set?
// torchrun itself has started this process, whoever has started torchrun.
bool tti_launcher_is_torchrun(const tti_cluster_env *env);

// daemon.c; NULL: there is none.
#define TTI_DAEMON 96
const char *tti_daemon_find(char out[TTI_DAEMON]);

// The environment of this process.
typedef struct tti_here {
    tti_cluster_env env;
    char host[256], daemon[TTI_DAEMON];
} tti_here;
void tti_cluster_here(tti_here *h);

// launcher_hosts.c: leaders and local numbers, where a launcher tells them in a form of its own.
tt_status tti_launcher_slurm(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s) TTI_CHECKED;
tt_status tti_launcher_pet(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s) TTI_CHECKED;
tt_status tti_launcher_sky(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s) TTI_CHECKED;
tt_status tti_launcher_volcano(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s) TTI_CHECKED;

#endif
