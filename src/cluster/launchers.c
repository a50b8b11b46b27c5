/*
 * launchers.c - launchers that start processes and tell each its rank: mpirun, srun, Kubernetes and
 * others, a record each. A process may have been started through several of them (srun starts the
 * daemons of mpirun, a pod runs torchrun): the innermost one has started this very process and
 * counts; those of the same depth must agree.
 */
#include "cluster/launchers.h"
#include <stdio.h>
#include <string.h>

enum {
    HINT = -1, // counts only where nothing else is set
    OUTER = 0, // places a process or a script on machines, which may start more
    NODE = 1,  // the same, and tells each machine its number
    STEP = 2,  // starts processes, or the daemons of another launcher
    INNER = 3, // always the one that has started this process
    OWN = 4,   // set by the user for Tutti
};

#define SIZE "TUTTI_SIZE"

// The deepest come first.
static const tti_launcher launchers[] = {
    {.name = "TUTTI_RANK and TUTTI_SIZE",
     .rank = "TUTTI_RANK",
     .size = SIZE,
     .with = SIZE,
     .depth = OWN,
     .id = {"TUTTI_LEADER"}},
    {.name = "OpenMPI's mpirun",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .n_local = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .depth = INNER,
     .id = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_precondition_transports"}},
    {.name = "mpirun of MPICH or Intel MPI",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .n_local = "MPI_LOCALNRANKS",
     .with = "MPI_LOCALRANKID",
     .by_parent = true,
     .depth = INNER},
    {.name = "MVAPICH's mpirun",
     .rank = "MV2_COMM_WORLD_RANK",
     .size = "MV2_COMM_WORLD_SIZE",
     .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
     .n_local = "MV2_COMM_WORLD_LOCAL_SIZE",
     .by_parent = true,
     .depth = INNER},
    {.name = "horovodrun",
     .rank = "HOROVOD_RANK",
     .size = "HOROVOD_SIZE",
     .local_rank = "HOROVOD_LOCAL_RANK",
     .n_local = "HOROVOD_LOCAL_SIZE",
     .depth = INNER,
     .id = {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"}},
    {.name = "jsrun",
     .rank = "JSM_NAMESPACE_RANK",
     .size = "JSM_NAMESPACE_SIZE",
     .local_rank = "JSM_NAMESPACE_LOCAL_RANK",
     .n_local = "JSM_NAMESPACE_LOCAL_SIZE",
     .depth = STEP,
     .id = {"LSB_JOBID", "JSM_JSRUN_JOBID"}},
    {.name = "flux run",
     .rank = "FLUX_TASK_RANK",
     .size = "FLUX_JOB_SIZE",
     .local_rank = "FLUX_TASK_LOCAL_ID",
     .depth = STEP,
     .id = {"FLUX_JOB_ID"}},
    {.name = "Slurm's srun",
     .rank = "SLURM_PROCID",
     .size = "SLURM_STEP_NUM_TASKS",
     .local_rank = "SLURM_LOCALID",
     .with = "SLURM_STEP_ID", // without it this is the shell of a batch script
     .depth = STEP,
     .id = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     .more = tti_launcher_slurm},
    {.name = "a launcher with PMI",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .without = "MPI_LOCALRANKID",
     .depth = STEP,
     .id = {"PMI_JOBID"}},
    {.name = "torchrun's settings for a machine",
     .rank = "PET_NODE_RANK",
     .size = "PET_NNODES",
     .is_node = true,
     .depth = NODE,
     .id = {"PET_RDZV_ID"},
     .more = tti_launcher_pet},
    {.name = "SkyPilot",
     .rank = "SKYPILOT_NODE_RANK",
     .size = "SKYPILOT_NUM_NODES",
     .is_node = true,
     .depth = NODE,
     .id = {"SKYPILOT_TASK_ID"},
     .more = tti_launcher_sky},
    {.name = "Volcano",
     .rank = "VC_TASK_INDEX",
     .size = "VC_WORKER_NUM",
     .with = "VC_WORKER_HOSTS",
     .is_node = true,
     .depth = NODE,
     .more = tti_launcher_volcano},
    {.name = "an indexed Job of Kubernetes",
     .rank = "JOB_COMPLETION_INDEX",
     .size = SIZE,
     .is_node = true,
     .depth = OUTER},
    {.name = "a StatefulSet of Kubernetes",
     .rank = NULL, // the number at the end of the pod's name
     .size = SIZE,
     .with = "KUBERNETES_SERVICE_HOST",
     .without = "JOB_COMPLETION_INDEX",
     .is_node = true,
     .depth = OUTER},
    {.name = "a launcher with PMIx",
     .rank = "PMIX_RANK",
     .size = SIZE,
     .depth = HINT,
     .id = {"PMIX_NAMESPACE"}},
};

// ---- one of them -----------------------------------------------------------------------------

static const char *rank_text(const tti_launcher *l, const tti_cluster_env *env, char pod[32])
{
    if (l->rank != NULL)
        return tti_cluster_get(env, l->rank);
    const char *name = tti_cluster_get(env, "POD_NAME");
    const char *dash = strrchr(name != NULL ? name : env->host, '-');
    if (dash == NULL || strspn(dash + 1, "0123456789") != strcspn(dash + 1, "."))
        return NULL;
    snprintf(pod, 32, "%.*s", (int)strcspn(dash + 1, "."), dash + 1);
    return pod[0] != '\0' ? pod : NULL;
}

// Has it started this process?
static bool is_there(const tti_launcher *l, const tti_cluster_env *env)
{
    char pod[32];
    if ((l->with != NULL && tti_cluster_get(env, l->with) == NULL) ||
        (l->without != NULL && tti_cluster_get(env, l->without) != NULL))
        return false;
    if (l->rank == NULL) // any pod has a name
        return tti_cluster_get(env, SIZE) != NULL && tti_cluster_get(env, "TUTTI_RANK") == NULL &&
               rank_text(l, env, pod) != NULL;
    return tti_cluster_get(env, l->rank) != NULL ||
           (strcmp(l->size, SIZE) != 0 && tti_cluster_get(env, l->size) != NULL);
}

static tt_status number(tt_ctx *ctx, const tti_launcher *l, const tti_cluster_env *env,
                        const char *name, int min, int max, int *out)
{
    char found[TTI_EXCERPT];
    const char *text = name != NULL ? tti_cluster_get(env, name) : NULL;
    if (text == NULL)
        return TT_OK;
    if (!tti_cluster_number(text, max, out) || *out < min)
        return TT_FAIL(ctx, TT_EINVAL, "%s=%s, set by %s, is not a number from %d to %d", name,
                       tti_excerpt(found, text), l->name, min, max);
    return TT_OK;
}

static tt_status no_number(tt_ctx *ctx, const tti_launcher *l, const tti_cluster_env *env,
                           bool is_size)
{
    char found[TTI_EXCERPT], pod[32];
    const char *told = is_size ? l->rank : l->size, *value = tti_cluster_get(env, told);
    if (is_size && l->rank == NULL) {
        told = "pod";
        value = rank_text(l, env, pod);
    }
    if (is_size)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s has started this process (%s=%s), but nothing says how many there are: "
                       "set %s to the number of processes for each of them, 1 if each is a job of "
                       "its own; --alone runs the whole job in every process",
                       l->name, told, tti_excerpt(found, value != NULL ? value : ""),
                       strcmp(l->size, SIZE) == 0 ? SIZE : l->size);
    return TT_FAIL(ctx, TT_EINVAL,
                   "%s has started several processes (%s=%s), but %s, the rank of this one, is not "
                   "set; --alone runs the whole job in every process",
                   l->name, told, tti_excerpt(found, value != NULL ? value : ""), l->rank);
}

// What processes of one start have in common, and those of no other.
static void make_id(const tti_cluster_env *env, tti_launch *s)
{
    const char *own = tti_cluster_get(env, "TUTTI_JOB_ID");
    size_t n = 0;
    s->id[0] = '\0';
    if (own != NULL) {
        snprintf(s->id, sizeof(s->id), "TUTTI_JOB_ID=%s", own);
        return;
    }
    for (int i = 0; i < TTI_COUNT(s->by->id) && s->by->id[i] != NULL; i++) {
        const char *value = tti_cluster_get(env, s->by->id[i]);
        if (value != NULL && n < sizeof(s->id))
            n += (size_t)snprintf(s->id + n, sizeof(s->id) - n, "%s%s=%s", n > 0 ? " " : "",
                                  s->by->id[i], value);
    }
    if (s->id[0] == '\0' && s->by->by_parent && env->parent != NULL)
        snprintf(s->id, sizeof(s->id), "%s", env->parent);
}

// Where rank 0 is, if somebody says so; after what the launcher itself told.
static tt_status get_leader(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s)
{
    const char *own = tti_cluster_get(env, "TUTTI_LEADER");
    const char *host = tti_cluster_get(env, "MASTER_ADDR");
    const char *port = tti_cluster_get(env, "MASTER_PORT");
    char found[TTI_EXCERPT], text[300];
    if (own == NULL && host == NULL)
        return TT_OK;
    if (own == NULL && port != NULL)
        snprintf(text, sizeof(text), strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
    else
        snprintf(text, sizeof(text), own == NULL && strchr(host, ':') != NULL ? "[%s]" : "%s",
                 own != NULL ? own : host);
    const char *fault = tti_address_fault(text, false);
    if (fault != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s=%s: %s",
                       own != NULL    ? "TUTTI_LEADER"
                       : port != NULL ? "MASTER_ADDR:MASTER_PORT"
                                      : "MASTER_ADDR",
                       tti_excerpt(found, text), fault);
    snprintf(s->leader, sizeof(s->leader), "%s", text);
    s->is_derived = false;
    return TT_OK;
}

static tt_status check(tt_ctx *ctx, const tti_cluster_env *env, const tti_launch *s)
{
    const tti_launcher *l = s->by;
    int size = s->n;
    TT_TRY(number(ctx, l, env, SIZE, 1, TT_CLUSTER_MAX_TASKS, &size));
    if (size != s->n)
        return TT_FAIL(ctx, TT_EINVAL, "%s=%d, set by %s, but " SIZE "=%d; unset " SIZE, l->size,
                       s->n, l->name, size);
    if (s->rank >= s->n)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s=%d, set by %s, but %s=%d: the rank must be a number from 0 to %d",
                       l->rank != NULL ? l->rank : "the number of the pod", s->rank, l->name,
                       l->size, s->n, s->n - 1);
    if (s->n_local > s->n || (s->n_local > 0 && s->local_rank >= s->n_local))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: this is process %d of %d on its machine, but there are %d in all (%s)",
                       l->name, s->local_rank, s->n_local, s->n, l->size);
    return TT_OK;
}

static tt_status read_one(tt_ctx *ctx, const tti_launcher *l, const tti_cluster_env *env,
                          tti_launch *s)
{
    char pod[32], found[TTI_EXCERPT];
    const char *rank = rank_text(l, env, pod);
    *s = (tti_launch){.by = l, .rank = -1};
    if (l->more == tti_launcher_pet)
        TT_TRY(tti_launcher_pet(ctx, env, s)); // its size may be a range
    else
        TT_TRY(number(ctx, l, env, l->size, 1, TT_CLUSTER_MAX_TASKS, &s->n));
    if (s->n == 0)
        return no_number(ctx, l, env, true);
    if (rank != NULL && !tti_cluster_number(rank, TT_CLUSTER_MAX_TASKS - 1, &s->rank))
        return TT_FAIL(ctx, TT_EINVAL, "%s=%s, set by %s, is not a number from 0 to %d",
                       l->rank != NULL ? l->rank : "the number of the pod",
                       tti_excerpt(found, rank), l->name, TT_CLUSTER_MAX_TASKS - 1);
    if (rank == NULL && s->n > 1)
        return no_number(ctx, l, env, false);
    s->rank = TTI_MAX(s->rank, 0);
    TT_TRY(number(ctx, l, env, l->local_rank, 0, TT_CLUSTER_MAX_TASKS - 1, &s->local_rank));
    TT_TRY(number(ctx, l, env, l->n_local, 1, TT_CLUSTER_MAX_TASKS, &s->n_local));
    if (l->is_node)
        s->n_local = 1;
    if (l->more != NULL && l->more != tti_launcher_pet)
        TT_TRY(l->more(ctx, env, s));
    TT_TRY(check(ctx, env, s));
    TT_TRY(get_leader(ctx, env, s));
    make_id(env, s);
    return TT_OK;
}

// ---- all of them -----------------------------------------------------------------------------

static tt_status differ(tt_ctx *ctx, const tti_launch *a, const tti_launch *b)
{
    return TT_FAIL(ctx, TT_EINVAL,
                   "%s says that this process is rank %d of %d (%s=%d), but %s that it is rank %d "
                   "of %d (%s=%d); start it through one of them, or unset the variables of the "
                   "other; --alone runs the whole job in every process",
                   a->by->name, a->rank, a->n, a->by->size, a->n, b->by->name, b->rank, b->n,
                   b->by->size, b->n);
}

bool tti_launcher_is_torchrun(const tti_cluster_env *env)
{
    return tti_cluster_get(env, "TORCHELASTIC_RUN_ID") != NULL &&
           tti_cluster_get(env, "RANK") != NULL;
}

tt_status tti_launcher_find(tt_ctx *ctx, const tti_cluster_env *env, bool is_told, tti_launch *out)
{
    tti_launch found;
    bool some = is_told; // somebody else says who this process is
    *out = (tti_launch){.by = NULL};
    if (tti_launcher_is_torchrun(env))
        return TT_OK;
    for (int i = 0; i < TTI_COUNT(launchers); i++) {
        const tti_launcher *l = &launchers[i];
        if (!is_there(l, env) || (out->by != NULL && l->depth < out->by->depth) ||
            (l->depth == HINT && some) || (l->depth == OUTER && is_told))
            continue;
        some = true;
        TT_TRY(read_one(ctx, l, env, &found));
        if (found.n == 1 && l->depth != OWN) // says nothing of what else was started here
            continue;
        if (out->by != NULL && (found.n != out->n || found.rank != out->rank))
            return differ(ctx, out, &found);
        if (out->by == NULL || (out->n_local == 0 && found.n_local > 0))
            *out = found;
    }
    return TT_OK;
}

const tti_launcher *tti_launcher_at(int i)
{
    return i >= 0 && i < TTI_COUNT(launchers) ? &launchers[i] : NULL;
}

bool tti_launcher_has(const tti_launcher *l, const tti_cluster_env *env)
{
    return is_there(l, env);
}
