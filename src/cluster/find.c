/*
 * find.c - looks for a cluster in the environment. Every source that is there is read, so that one
 * which is broken or says otherwise is an error and never passed over; the first one counts.
 */
#include "base/file.h"
#include "cluster/launchers.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Those of launchers, too: tutti run unsets them for the processes that it starts.
const char *const tti_cluster_variables[] = {
    // Tutti's own
    "TUTTI_CLUSTER", "TUTTI_TASKS", "TUTTI_HOSTS", "TUTTI_RANK", "TUTTI_LOCAL", "TUTTI_SIZE",
    "TUTTI_LEADER", "TUTTI_JOB_ID", "TUTTI_ELASTIC",
    // TensorFlow's, torchrun's
    "TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
    "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "PET_NNODES", "PET_NODE_RANK",
    "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT", "PET_RDZV_ID",
    // of MPI
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_SIZE", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE", "PMIX_RANK", "PMIX_NAMESPACE",
    // of schedulers
    "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID",
    "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE",
    "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE", "FLUX_TASK_RANK", "FLUX_JOB_SIZE",
    "FLUX_TASK_LOCAL_ID", "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES", "SKYPILOT_NODE_IPS",
    "VC_TASK_INDEX", "VC_WORKER_NUM", "VC_WORKER_HOSTS", "JOB_COMPLETION_INDEX", NULL};

// Where it is looked for, in this order.
static const tt_cluster_source order[] = {TT_CLUSTER_TASKS, TT_CLUSTER_HOSTS, TT_CLUSTER_TF_CONFIG,
                                          TT_CLUSTER_TORCHRUN, TT_CLUSTER_LAUNCHER};

const char *tti_cluster_get(const tti_cluster_env *env, const char *name)
{
    const char *value = env->get(env->user, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

void tt_cluster_free(tt_ctx *ctx, tt_cluster *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < c->n_tasks; i++)
        tti_free(ctx, (char *)c->tasks[i].address);
    tti_free(ctx, c->tasks);
    tti_free(ctx, (char *)c->found_in);
    tti_free(ctx, (char *)c->text);
    tti_free(ctx, (char *)c->launcher);
    tti_free(ctx, (char *)c->id);
    tti_free(ctx, c);
}

static tt_status read_none(tt_ctx *ctx, tt_cluster *c)
{
    TT_TRY(tti_task_add(ctx, c, "environment", "worker", "", false, 1));
    tti_task_choose(c, 0, 0);
    c->text = tti_strdup(ctx, "");
    return c->text != NULL ? TT_OK : TT_ENOMEM;
}

// Which of them this process is may be what a launcher says.
static tt_status read_hosts(tt_ctx *ctx, const tti_cluster_env *env, const tti_launch *by,
                            tt_cluster *c)
{
    const char *path = tti_cluster_get(env, "TUTTI_HOSTS");
    const char *rank = tti_cluster_get(env, "TUTTI_RANK");
    char *text, told[16];
    size_t bytes;
    TT_TRY(tti_stream_read(ctx, path, TT_CLUSTER_MAX_TEXT, &text, &bytes));
    c->text = text;
    if (rank == NULL && by->by != NULL) {
        snprintf(told, sizeof(told), "%d", by->rank);
        rank = told;
    }
    return tti_cluster_hosts(ctx, path, text, bytes, rank, env->host, c);
}

static tt_status read_tf_config(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c)
{
    const char *text = tti_cluster_get(env, "TF_CONFIG");
    TT_TRY(tti_cluster_tf_config(ctx, text, strlen(text), c));
    c->text = tti_strdup(ctx, text);
    return c->text != NULL ? TT_OK : TT_ENOMEM;
}

// What a launcher says: one task a process, of which the first one's address may be known.
static tt_status read_launcher(tt_ctx *ctx, const tti_launch *by, tt_cluster *c)
{
    tti_text t = {.ctx = ctx};
    for (int i = 0; i < by->n; i++)
        TT_TRY(tti_task_add(ctx, c, by->by->name, "worker", i == 0 ? by->leader : "", false, 1));
    tti_task_choose(c, by->rank, 0);
    c->local_rank = by->local_rank;
    c->n_local = by->n_local;
    c->leader_derived = by->is_derived;
    c->launcher = tti_strdup(ctx, by->by->name);
    c->id = tti_strdup(ctx, by->id);
    tti_text_add(&t, "%s=%d %s=%d", by->by->rank != NULL ? by->by->rank : "pod", by->rank,
                 by->by->size, by->n);
    c->text = tti_text_take(&t);
    return c->launcher != NULL && c->id != NULL && c->text != NULL ? TT_OK : TT_ENOMEM;
}

// Beside a launcher, MASTER_ADDR and MASTER_PORT alone say where its rank 0 is.
static bool has_torchrun(const tti_cluster_env *env, const tti_launch *by)
{
    return by->by == NULL ? tti_cluster_has_torchrun(env) : tti_cluster_get(env, "RANK") != NULL;
}

static bool is_set(const tti_cluster_env *env, const tti_launch *by, tt_cluster_source source)
{
    switch (source) {
    case TT_CLUSTER_TASKS:
        return tti_cluster_get(env, "TUTTI_TASKS") != NULL;
    case TT_CLUSTER_HOSTS:
        return tti_cluster_get(env, "TUTTI_HOSTS") != NULL;
    case TT_CLUSTER_TF_CONFIG:
        return tti_cluster_get(env, "TF_CONFIG") != NULL;
    case TT_CLUSTER_TORCHRUN:
        return has_torchrun(env, by);
    default:
        return by->by != NULL;
    }
}

static tt_status read_source(tt_ctx *ctx, const tti_cluster_env *env, const tti_launch *by,
                             tt_cluster *c)
{
    switch (c->source) {
    case TT_CLUSTER_TASKS:
        return tti_cluster_list(ctx, env, c);
    case TT_CLUSTER_HOSTS:
        return read_hosts(ctx, env, by, c);
    case TT_CLUSTER_TF_CONFIG:
        return read_tf_config(ctx, env, c);
    case TT_CLUSTER_TORCHRUN:
        return tti_cluster_torchrun(ctx, env, c);
    case TT_CLUSTER_LAUNCHER:
        return read_launcher(ctx, by, c);
    default:
        return read_none(ctx, c);
    }
}

static tt_status open_source(tt_ctx *ctx, const tti_cluster_env *env, const tti_launch *by,
                             tt_cluster_source source, tt_cluster **out)
{
    tti_text name = {.ctx = ctx};
    tt_cluster *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return TT_ENOMEM;
    c->source = source;
    if (source == TT_CLUSTER_HOSTS)
        tti_text_add(&name, "TUTTI_HOSTS=%s", tti_cluster_get(env, "TUTTI_HOSTS"));
    else if (source == TT_CLUSTER_LAUNCHER)
        tti_text_add(&name, "%s%s%s", by->by->rank != NULL ? by->by->rank : "",
                     by->by->rank != NULL ? ", " : "", by->by->size);
    else
        tti_text_add(&name, "%s",
                     source == TT_CLUSTER_TASKS       ? "TUTTI_TASKS"
                     : source == TT_CLUSTER_TF_CONFIG ? "TF_CONFIG"
                     : source == TT_CLUSTER_TORCHRUN  ? "RANK, WORLD_SIZE"
                                                      : "");
    c->found_in = tti_text_take(&name);
    tt_status st = c->found_in != NULL ? read_source(ctx, env, by, c) : TT_ENOMEM;
    if (st == TT_OK && c->launcher == NULL) {
        c->launcher = tti_strdup(ctx, "");
        c->id = tti_strdup(ctx, "");
        st = c->launcher != NULL && c->id != NULL ? TT_OK : TT_ENOMEM;
    }
    if (st == TT_OK)
        *out = c;
    else
        tt_cluster_free(ctx, c);
    return st;
}

// "2 processes, this one of rank 1"
static void describe(const tt_cluster *c, char name[TTI_EXCERPT], char *out, size_t room)
{
    tti_excerpt(name, c->found_in);
    if (c->rank < 0)
        snprintf(out, room, "%d and this process, which does not train", c->n_processes);
    else
        snprintf(out, room, "%d and this one of rank %d", c->n_processes, c->rank);
}

static tt_status compare(tt_ctx *ctx, const tt_cluster *a, const tt_cluster *b)
{
    char name_a[TTI_EXCERPT], name_b[TTI_EXCERPT], says_a[64], says_b[64];
    if (a->n_processes == b->n_processes && a->rank == b->rank)
        return TT_OK;
    describe(a, name_a, says_a, sizeof(says_a));
    describe(b, name_b, says_b, sizeof(says_b));
    return TT_FAIL(ctx, TT_EINVAL,
                   "the number of training processes is %s according to %s, but %s according to "
                   "%s; unset one of them",
                   says_a, name_a, says_b, name_b);
}

// A number of processes that was exported for all ranks of a launcher.
static tt_status check_world(tt_ctx *ctx, const tti_cluster_env *env, const tti_launch *by)
{
    const char *text = tti_cluster_get(env, "WORLD_SIZE");
    char found[TTI_EXCERPT];
    int n;
    if (by->by == NULL || text == NULL || tti_cluster_get(env, "RANK") != NULL ||
        (tti_cluster_number(text, TT_CLUSTER_MAX_TASKS, &n) && n == by->n))
        return TT_OK;
    return TT_FAIL(ctx, TT_EINVAL,
                   "WORLD_SIZE=%s, but %s has started %d processes (%s=%d); unset WORLD_SIZE",
                   tti_excerpt(found, text), by->by->name, by->n, by->by->size, by->n);
}

static tt_status no_rank(tt_ctx *ctx, const tti_cluster_env *env)
{
    char found[TTI_EXCERPT];
    tti_excerpt(found, tti_cluster_get(env, "TUTTI_SIZE"));
    return TT_FAIL(ctx, TT_EINVAL,
                   "TUTTI_SIZE=%s, but nothing says which of the processes this one is; set "
                   "TUTTI_RANK, from 0 on, or start it through a launcher that does",
                   found);
}

static tt_status look(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster **first)
{
    tti_launch by = {.by = NULL};
    bool is_told = tti_cluster_get(env, "RANK") != NULL;
    for (int s = 0; s < 3; s++)
        is_told = is_told || is_set(env, &by, order[s]);
    TT_TRY(tti_launcher_find(ctx, env, is_told, &by));
    TT_TRY(check_world(ctx, env, &by));
    const char *size = tti_cluster_get(env, "TUTTI_SIZE");
    if (by.by == NULL && !is_told && size != NULL && strcmp(size, "1") != 0)
        return no_rank(ctx, env);
    for (int s = 0; s < TTI_COUNT(order); s++) {
        tt_cluster *c = NULL;
        if (!is_set(env, &by, order[s]))
            continue;
        TT_TRY(open_source(ctx, env, &by, order[s], &c));
        if (*first == NULL) {
            *first = c;
            continue;
        }
        tt_status st = compare(ctx, *first, c);
        tt_cluster_free(ctx, c);
        TT_TRY(st);
    }
    return *first != NULL ? TT_OK : open_source(ctx, env, &by, TT_CLUSTER_NONE, first);
}

tt_status tti_cluster_read(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster **out)
{
    char found[TTI_EXCERPT];
    const char *how = tti_cluster_get(env, "TUTTI_CLUSTER");
    const char *rank = tti_cluster_get(env, "TUTTI_RANK");
    tt_cluster *c = NULL;
    tti_launch none = {.by = NULL};
    if (how != NULL && strcmp(how, "ignore") != 0)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "TUTTI_CLUSTER=%s: set it to 'ignore' (one process, whatever else is set), or unset it",
            tti_excerpt(found, how));
    if (how == NULL && rank != NULL && tti_cluster_get(env, "TUTTI_HOSTS") == NULL &&
        tti_cluster_get(env, "TUTTI_TASKS") == NULL && tti_cluster_get(env, "TUTTI_SIZE") == NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       "TUTTI_RANK=%s, but TUTTI_HOSTS is not set; set it to the hosts file, or "
                       "TUTTI_SIZE to the number of processes and TUTTI_LEADER to host:port of "
                       "rank 0",
                       tti_excerpt(found, rank));
    tt_status st =
        how != NULL ? open_source(ctx, env, &none, TT_CLUSTER_NONE, &c) : look(ctx, env, &c);
    if (st != TT_OK) {
        tt_cluster_free(ctx, c);
        return st;
    }
    c->is_ignored = how != NULL;
    *out = c;
    return TT_OK;
}

static const char *get_env(const void *user, const char *name)
{
    (void)user;
    return tti_env(name);
}

void tti_cluster_here(tti_here *h)
{
    h->host[0] = '\0';
    if (gethostname(h->host, sizeof(h->host) - 1) != 0)
        h->host[0] = '\0'; // no host of a file is this one
    h->env = (tti_cluster_env){get_env, NULL, h->host, tti_daemon_find(h->daemon)};
}

tt_status tt_cluster_find(tt_ctx *ctx, tt_cluster **out)
{
    tti_here here;
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "tt_cluster_find: out is NULL");
    tti_cluster_here(&here);
    return tti_cluster_read(ctx, &here.env, out);
}
