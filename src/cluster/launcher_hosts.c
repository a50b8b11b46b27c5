/*
 * launcher_hosts.c - where rank 0 is and how many processes a machine has, of launchers that tell
 * it in a form of their own: Slurm, torchrun's settings, SkyPilot, Volcano.
 */
#include "cluster/launchers.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 20000 // of Slurm jobs: those of several jobs on a node should differ
#define N_PORTS    10000

static void keep_first(void *user, const char *host)
{
    char *first = user;
    if (first[0] == '\0')
        snprintf(first, 256, "%s", host);
}

tt_status tti_launcher_slurm(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s)
{
    const char *list = tti_cluster_get(env, "SLURM_STEP_NODELIST");
    const char *per_node = tti_cluster_get(env, "SLURM_STEP_TASKS_PER_NODE");
    const char *node = tti_cluster_get(env, "SLURM_NODEID");
    const char *job = tti_cluster_get(env, "SLURM_JOB_ID"), *step;
    char found[TTI_EXCERPT], first[256] = "";
    int n = 0, node_id = 0;
    if (list == NULL) // of old versions, and of het jobs
        list = tti_cluster_get(env, "SLURM_NODELIST");
    if (node != NULL && !tti_cluster_number(node, TT_CLUSTER_MAX_TASKS, &node_id))
        return TT_FAIL(ctx, TT_EINVAL, "SLURM_NODEID=%s is not a number", tti_excerpt(found, node));
    if (node != NULL && per_node != NULL && !tti_per_node(per_node, node_id, &s->n_local))
        return TT_FAIL(
            ctx, TT_EINVAL,
            "SLURM_STEP_TASKS_PER_NODE=%s does not tell the number of processes of node "
            "%d (SLURM_NODEID): 2(x3),1 means three nodes with two each and one with one",
            tti_excerpt(found, per_node), node_id);
    if (list == NULL)
        return TT_OK;
    const char *fault = tti_nodelist_expand(list, TT_CLUSTER_MAX_TASKS, keep_first, first, &n);
    if (fault != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "SLURM_STEP_NODELIST=%s: %s", tti_excerpt(found, list),
                       fault);
    if (n == 1)
        s->n_local = s->n;
    step = tti_cluster_get(env, "SLURM_STEP_ID");
    unsigned long number = job != NULL ? strtoul(job, NULL, 10) : 0;
    number += step != NULL ? strtoul(step, NULL, 10) : 0;
    snprintf(s->leader, sizeof(s->leader), "%s:%d", first, FIRST_PORT + (int)(number % N_PORTS));
    s->is_derived = true;
    return TT_OK;
}

// "2", or a range of which only "2:2" says how many there are.
static bool node_count(const char *text, int *out)
{
    char least[16];
    const char *colon = strchr(text, ':');
    if (colon == NULL)
        return tti_cluster_number(text, TT_CLUSTER_MAX_TASKS, out) && *out > 0;
    snprintf(least, sizeof(least), "%.*s", (int)TTI_MIN(colon - text, 15), text);
    return strcmp(least, colon + 1) == 0 && node_count(least, out);
}

tt_status tti_launcher_pet(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s)
{
    char found[TTI_EXCERPT];
    const char *nodes = tti_cluster_get(env, "PET_NNODES");
    const char *each = tti_cluster_get(env, "PET_NPROC_PER_NODE");
    const char *host = tti_cluster_get(env, "PET_MASTER_ADDR");
    const char *port = tti_cluster_get(env, "PET_MASTER_PORT");
    const char *end = tti_cluster_get(env, "PET_RDZV_ENDPOINT");
    int n = 1;
    if (nodes == NULL)
        return TT_OK; // which is told
    if (!node_count(nodes, &s->n))
        return TT_FAIL(ctx, TT_EINVAL,
                       "PET_NNODES=%s does not say how many machines there are; start the job with "
                       "torchrun --no-python tutti train JOB, or set PET_NNODES to a number",
                       tti_excerpt(found, nodes));
    if (each != NULL && tti_cluster_number(each, TT_CLUSTER_MAX_TASKS, &n) && n > 1)
        return TT_FAIL(ctx, TT_EINVAL,
                       "PET_NPROC_PER_NODE=%d, but RANK is not set: this is one process for the "
                       "whole machine. Set PET_NPROC_PER_NODE=1 (--devices gives it several "
                       "devices), or start %d with torchrun --no-python tutti train JOB",
                       n, n);
    if (host != NULL)
        snprintf(s->leader, sizeof(s->leader),
                 strchr(host, ':') != NULL ? "[%.250s]:%.8s" : "%.250s:%.8s", host,
                 port != NULL ? port : "29500");
    else if (end != NULL)
        snprintf(s->leader, sizeof(s->leader), "%.300s", end);
    const char *fault = s->leader[0] != '\0' ? tti_address_fault(s->leader, false) : NULL;
    if (fault != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s=%s: %s",
                       host != NULL ? "PET_MASTER_ADDR:PET_MASTER_PORT" : "PET_RDZV_ENDPOINT",
                       tti_excerpt(found, s->leader), fault);
    return TT_OK;
}

// The first word of a list with one of these separators.
static tt_status first_of(tt_ctx *ctx, const tti_cluster_env *env, const char *name,
                          const char *separators, tti_launch *s)
{
    char found[TTI_EXCERPT];
    const char *list = tti_cluster_get(env, name);
    if (list == NULL)
        return TT_OK;
    size_t n = strcspn(list, separators);
    bool is_v6 = memchr(list, ':', n) != NULL;
    snprintf(s->leader, sizeof(s->leader), is_v6 ? "[%.*s]" : "%.*s", (int)TTI_MIN(n, 300u), list);
    const char *fault = tti_address_fault(s->leader, false);
    if (fault != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s=%s: %s", name, tti_excerpt(found, list), fault);
    return TT_OK;
}

tt_status tti_launcher_sky(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s)
{
    return first_of(ctx, env, "SKYPILOT_NODE_IPS", "\n", s);
}

tt_status tti_launcher_volcano(tt_ctx *ctx, const tti_cluster_env *env, tti_launch *s)
{
    return first_of(ctx, env, "VC_WORKER_HOSTS", ",", s);
}
