/*
 * cluster.h - the processes of a job, read from the environment that a launcher set; which of them
 * this process is; and what tt_open() needs to join them.
 */
#ifndef TUTTI_CLUSTER_H
#define TUTTI_CLUSTER_H

#include <tutti/base.h>
#include <tutti/tasks.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TT_CLUSTER_MAX_TASKS 1024  // limit for tasks and for training processes
#define TT_CLUSTER_MAX_TEXT  65536 // largest variable or hosts file, in bytes

// Where the description of the job's processes was found.
typedef enum tt_cluster_source {
    TT_CLUSTER_NONE = 0,      // not found: one process
    TT_CLUSTER_HOSTS = 1,     // TUTTI_HOSTS, a hosts file
    TT_CLUSTER_TF_CONFIG = 2, // TF_CONFIG
    TT_CLUSTER_TORCHRUN = 3,  // RANK, WORLD_SIZE and the others that torchrun sets
    TT_CLUSTER_TASKS = 4,     // TUTTI_TASKS, set by tutti run; read first
    TT_CLUSTER_LAUNCHER = 5,  // the variables of mpirun, srun, Kubernetes or another launcher
} tt_cluster_source;

// One entry of the list: a process, or, from a hosts file, a host with n_processes of them.
typedef struct tt_task {
    const char *job;     // "chief", "worker", "ps", "evaluator"; static
    int index;           // index among the tasks of the same job
    const char *address; // "host:port"; "host" if the port is unknown; "" if both are
    int n_processes;     // at least 1
    int first_rank;      // rank of its first process; -1: it does not train (ps, evaluator)
} tt_task;

typedef struct tt_cluster {
    tt_cluster_source source;
    bool is_ignored; // TUTTI_CLUSTER=ignore: nothing else was read
    const char
        *found_in;    // "TF_CONFIG", "RANK, WORLD_SIZE", "TUTTI_HOSTS=hosts.txt"; "" if not found
    const char *text; // the content of that variable or file; "" if none
    tt_task *tasks;   // chief, then workers, ps, evaluators
    int n_tasks;      // at least 1
    int task;         // index of the task that this process belongs to
    int rank;         // rank of this process; -1: it does not train
    int n_processes;  // number of training processes; at least 1
    int local_rank;   // rank among the processes of this machine
    int n_local;      // number of processes on this machine; 0: unknown
    const char *launcher; // who started the processes: "OpenMPI's mpirun"; "" if that was not read
    const char *id;       // text that only processes of this start share; "" if there is none
    bool leader_derived;  // the first address was derived from the launcher's list of hosts
} tt_cluster;

/*
 * Reads the environment. TUTTI_TASKS lists "host:port" of all processes ('?' for a process that
 * chooses its own port and reports it to rank 0), and TUTTI_RANK is this process's rank.
 * TUTTI_HOSTS names a file with lines "host[:port] [slots=N]"; TUTTI_RANK is needed if the host
 * name does not identify the process. TF_CONFIG is TensorFlow's JSON. RANK, WORLD_SIZE, MASTER_ADDR
 * and MASTER_PORT are set by torchrun. After these come the variables of launchers: of OpenMPI,
 * MPICH, Intel MPI, Slurm, Kubernetes and others (docs/cluster.md). An empty variable counts as not
 * set. If none is set, or with TUTTI_CLUSTER=ignore, there is one process.
 *
 * Fails with TT_EINVAL or TT_EPARSE if the description is incomplete or contradicts itself, if
 * two sources disagree on the number of processes or on the rank, or if a launcher started several
 * processes without saying how many; with TT_EIO if a hosts file cannot be read. *out is written on
 * success only; free it with tt_cluster_free().
 */
TT_API tt_status tt_cluster_find(tt_ctx *ctx, tt_cluster **out);
TT_API void tt_cluster_free(tt_ctx *ctx, tt_cluster *c); // NULL is fine

/*
 * What tt_open() needs to join the job: addresses, names and the secret, which TUTTI_SECRET_FILE
 * (a file that is its owner's alone, or "-": the first line of standard input) or TUTTI_SECRET
 * tells. Without one, rank 0 makes a random key, which the other processes of the same user read
 * from a file until tt_tasks_free(): on one machine in the user's runtime folder, and across
 * machines in TUTTI_KEY_DIR, a folder that all share (for processes of a launcher: ~/.tutti if it
 * is not set). Without either, all addresses, and TUTTI_BIND, must be of loopback. A host without a
 * port has 29600, each further process of a host the next. Where only the first address is told, it
 * waits until all have met there; tt_request_stop() ends that with TT_ESTOP. Also read: TUTTI_BIND,
 * TUTTI_TRANSPORT, TUTTI_ENCRYPTION=off, TUTTI_RENDEZVOUS_MS, TUTTI_HEARTBEAT_MS, TUTTI_LOSS_MS.
 *
 * job must be equal in all processes; it is copied. *out is NULL if this process trains alone;
 * free it with tt_tasks_free() once the context is open. Fails with TT_EINVAL if the secret is
 * missing or malformed, with TT_EPEER if other processes do not appear in time.
 */
TT_API tt_status tt_cluster_tasks(tt_ctx *ctx, const tt_cluster *c, const char *job,
                                  tt_tasks **out);
TT_API void tt_tasks_free(tt_ctx *ctx, tt_tasks *t); // NULL is fine

#ifdef __cplusplus
}
#endif
#endif
