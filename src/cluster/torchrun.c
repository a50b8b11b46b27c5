/*
 * torchrun.c - the variables that torchrun sets for each of its processes. They name the leader
 * only: the other addresses are known when the processes have met. Launchers that set RANK and
 * WORLD_SIZE without LOCAL_RANK start one process a machine.
 */
#include "cluster/cluster.h"
#include <stdio.h>
#include <string.h>

#define ALL "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"

enum {
    RANK,
    WORLD_SIZE,
    LOCAL_RANK,
    LOCAL_WORLD_SIZE,
    GROUP_RANK,
    N_NUMBERS
};
static const char *const numbers[N_NUMBERS] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
                                               "LOCAL_WORLD_SIZE", "GROUP_RANK"};
static const char *const names[] = {"RANK",       "WORLD_SIZE",  "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                    "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"};

bool tti_cluster_has_torchrun(const tti_cluster_env *env)
{
    for (int i = 0; i < TTI_COUNT(names); i++)
        if (tti_cluster_get(env, names[i]) != NULL)
            return true;
    return false;
}

// "RANK=1 WORLD_SIZE=4"
static void print_set(const tti_cluster_env *env, tti_text *t)
{
    for (int i = 0; i < TTI_COUNT(names); i++) {
        const char *value = tti_cluster_get(env, names[i]);
        char shown[TTI_EXCERPT];
        if (value != NULL)
            tti_text_add(t, "%s%s=%s", t->n > 0 ? " " : "", names[i], tti_excerpt(shown, value));
    }
}

static tt_status missing(tt_ctx *ctx, const tti_cluster_env *env, const char *name)
{
    tti_text t = {.ctx = ctx};
    print_set(env, &t);
    char *set = tti_text_take(&t);
    if (set == NULL)
        return TT_ENOMEM;
    tt_status st = TT_FAIL(ctx, TT_EINVAL,
                           "%s is not set, but %s is; set all of torchrun's variables %s, or none",
                           name, set, ALL);
    tti_free(ctx, set);
    return st;
}

// Numbers that are not set stay at -1.
static tt_status get_numbers(tt_ctx *ctx, const tti_cluster_env *env, int v[N_NUMBERS])
{
    char found[TTI_EXCERPT];
    for (int i = 0; i < N_NUMBERS; i++) {
        const char *text = tti_cluster_get(env, numbers[i]);
        bool is_size = i == WORLD_SIZE || i == LOCAL_WORLD_SIZE;
        v[i] = -1;
        if (text == NULL)
            continue;
        if (!tti_cluster_number(text, TT_CLUSTER_MAX_TASKS - !is_size, &v[i]) || v[i] < is_size)
            return TT_FAIL(ctx, TT_EINVAL, "%s=%s is not a number from %d to %d", numbers[i],
                           tti_excerpt(found, text), is_size, TT_CLUSTER_MAX_TASKS - !is_size);
    }
    if (v[WORLD_SIZE] < 0)
        return missing(ctx, env, "WORLD_SIZE");
    if (v[RANK] < 0 && v[WORLD_SIZE] > 1)
        return missing(ctx, env, "RANK");
    v[RANK] = TTI_MAX(v[RANK], 0);
    return TT_OK;
}

static tt_status below(tt_ctx *ctx, const int v[N_NUMBERS], int a, int b)
{
    if (v[a] < v[b] || v[b] < 0)
        return TT_OK;
    return TT_FAIL(ctx, TT_EINVAL, "%s=%d, but %s=%d: it must be a number from 0 to %d", numbers[a],
                   v[a], numbers[b], v[b], v[b] - 1);
}

static tt_status check_numbers(tt_ctx *ctx, const int v[N_NUMBERS])
{
    TT_TRY(below(ctx, v, RANK, WORLD_SIZE));
    TT_TRY(below(ctx, v, LOCAL_RANK, LOCAL_WORLD_SIZE));
    if (v[LOCAL_WORLD_SIZE] > v[WORLD_SIZE])
        return TT_FAIL(ctx, TT_EINVAL,
                       "LOCAL_WORLD_SIZE=%d, but WORLD_SIZE=%d: a machine cannot have more "
                       "processes than the job",
                       v[LOCAL_WORLD_SIZE], v[WORLD_SIZE]);
    if (v[LOCAL_RANK] > v[RANK])
        return TT_FAIL(ctx, TT_EINVAL,
                       "LOCAL_RANK=%d, but RANK=%d: the local rank cannot be above the rank",
                       v[LOCAL_RANK], v[RANK]);
    if (v[GROUP_RANK] > v[RANK] - TTI_MAX(v[LOCAL_RANK], 0))
        return TT_FAIL(ctx, TT_EINVAL,
                       "GROUP_RANK=%d, but with RANK=%d LOCAL_RANK=%d only %d processes are on the "
                       "machines before this one",
                       v[GROUP_RANK], v[RANK], TTI_MAX(v[LOCAL_RANK], 0),
                       v[RANK] - TTI_MAX(v[LOCAL_RANK], 0));
    return TT_OK;
}

// "host:port" of rank 0, or "" where one process needs none.
static tt_status get_leader(tt_ctx *ctx, const tti_cluster_env *env, int size, char out[320])
{
    char found[TTI_EXCERPT];
    int number;
    const char *host = tti_cluster_get(env, "MASTER_ADDR");
    const char *port = tti_cluster_get(env, "MASTER_PORT");
    out[0] = '\0';
    if (size > 1 && (host == NULL || port == NULL))
        return missing(ctx, env, host == NULL ? "MASTER_ADDR" : "MASTER_PORT");
    const char *fault = host != NULL ? tti_host_fault(host, strlen(host)) : NULL;
    if (fault != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "MASTER_ADDR=%s: %s", tti_excerpt(found, host), fault);
    if (port != NULL && (!tti_cluster_number(port, 65535, &number) || number == 0))
        return TT_FAIL(ctx, TT_EINVAL, "MASTER_PORT=%s: the port must be from 1 to 65535",
                       tti_excerpt(found, port));
    if (host != NULL && port != NULL)
        snprintf(out, 320, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
    return TT_OK;
}

tt_status tti_cluster_torchrun(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c)
{
    int v[N_NUMBERS];
    char leader[320];
    tti_text t = {.ctx = ctx};
    TT_TRY(get_numbers(ctx, env, v));
    TT_TRY(check_numbers(ctx, v));
    TT_TRY(get_leader(ctx, env, v[WORLD_SIZE], leader));
    for (int i = 0; i < v[WORLD_SIZE]; i++)
        TT_TRY(tti_task_add(ctx, c, "MASTER_ADDR", "worker", i == 0 ? leader : "", false, 1));
    tti_task_choose(c, v[RANK], 0);
    c->local_rank = TTI_MAX(v[LOCAL_RANK], 0);
    c->n_local = v[LOCAL_WORLD_SIZE] > 0 ? v[LOCAL_WORLD_SIZE] : v[LOCAL_RANK] >= 0 ? 0 : 1;
    print_set(env, &t);
    c->text = tti_text_take(&t);
    return c->text != NULL ? TT_OK : TT_ENOMEM;
}
