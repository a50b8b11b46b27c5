/*
 * cluster.h - who is in the job: the processes that a launcher started together, and which of them
 * this one is, read from the environment; and what tt_open() needs to join them.
 */
#ifndef TUTTI_CLUSTER_H
#define TUTTI_CLUSTER_H

#include <tutti/base.h>
#include <tutti/tasks.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TT_CLUSTER_MAX_TASKS 1024  // tasks, and processes that train
#define TT_CLUSTER_MAX_TEXT  65536 // bytes of a variable or of a hosts file

// Where a job's processes are told, in the order in which it is looked for.
typedef enum tt_cluster_source {
    TT_CLUSTER_NONE = 0,      // nowhere: one process
    TT_CLUSTER_HOSTS = 1,     // TUTTI_HOSTS, a hosts file
    TT_CLUSTER_TF_CONFIG = 2, // TF_CONFIG
    TT_CLUSTER_TORCHRUN = 3,  // RANK, WORLD_SIZE and the others that torchrun sets
    TT_CLUSTER_TASKS = 4,     // TUTTI_TASKS, before all others: what tutti run sets
} tt_cluster_source;

// One entry of the list: a process, or in a hosts file a host with so many of them.
typedef struct tt_task {
    const char *job;     // "chief", "worker", "ps", "evaluator"; static
    int index;           // among those of the same job
    const char *address; // "host:port", "host" where no port is told, "" where nothing is
    int n_processes;     // at least 1
    int first_rank;      // of its processes; -1: it does not train (ps, evaluator)
} tt_task;

typedef struct tt_cluster {
    tt_cluster_source source;
    bool is_ignored;      // TUTTI_CLUSTER=ignore: nothing else was looked at
    const char *found_in; // "TF_CONFIG", "RANK, WORLD_SIZE", "TUTTI_HOSTS=hosts.txt"; "" if nowhere
    const char *text;     // what is written there; "" if nothing
    tt_task *tasks;       // chief, then workers, ps, evaluators
    int n_tasks;          // at least 1
    int task;             // which of them this process belongs to
    int rank;             // of this process among those that train; -1: it does not
    int n_processes;      // those that train; at least 1
    int local_rank;       // among those of this machine
    int n_local;          // processes of this machine; 0 where it is not told
} tt_cluster;

/*
 * Reads the environment. TUTTI_TASKS lists "host:port" of all processes, '?' for those that take a
 * port themselves and tell the first, and TUTTI_RANK says which this is. TUTTI_HOSTS names a file
 * of lines "host[:port] [slots=N]", of which TUTTI_RANK says which process this is, where the
 * machine's name does not; TF_CONFIG is TensorFlow's JSON; RANK, WORLD_SIZE, MASTER_ADDR and
 * MASTER_PORT are torchrun's. A variable that is empty counts as not set. With
 * TUTTI_CLUSTER=ignore, or when none is set: one process.
 *
 * Fails with TT_EINVAL or TT_EPARSE when what is found is incomplete, contradicts itself, or when
 * two sources disagree on the number of processes or on the rank; TT_EIO when a hosts file cannot
 * be read. *out is written on success only; free it with tt_cluster_free().
 */
TT_API tt_status tt_cluster_find(tt_ctx *ctx, tt_cluster **out);
TT_API void tt_cluster_free(tt_ctx *ctx, tt_cluster *c); // NULL is fine

/*
 * What tt_open() needs to join the job: addresses, names and the secret, which TUTTI_SECRET_FILE
 * (a file that is its owner's alone, or "-": the first line of standard input) or TUTTI_SECRET
 * tells. Without one, all addresses, and TUTTI_BIND, must be of loopback: rank 0 makes a random key,
 * which processes of the same user on the same machine read from a file until tt_tasks_free(). A
 * host without a port has 29600, each further process of a host the next. Where torchrun tells the first address only, it waits until
 * all have met there. Also read: TUTTI_BIND, TUTTI_TRANSPORT, TUTTI_ENCRYPTION=off,
 * TUTTI_RENDEZVOUS_MS, TUTTI_HEARTBEAT_MS, TUTTI_LOSS_MS.
 *
 * job must be equal in all processes; it is copied. *out is NULL where this process trains alone;
 * free it with tt_tasks_free() once the context is open. Fails with TT_EINVAL where no secret is
 * told or it is none, with TT_EPEER where others do not come.
 */
TT_API tt_status tt_cluster_tasks(tt_ctx *ctx, const tt_cluster *c, const char *job,
                                  tt_tasks **out);
TT_API void tt_tasks_free(tt_ctx *ctx, tt_tasks *t); // NULL is fine

#ifdef __cplusplus
}
#endif
#endif
