/*
 * find.c - looks for a cluster in the environment. Every source that is there is read, so that one
 * which is broken or says otherwise is an error and never passed over; the first one counts.
 */
#include "base/file.h"
#include "cluster/cluster.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const tti_cluster_variables[] = {
    "TUTTI_CLUSTER", "TUTTI_TASKS", "TUTTI_HOSTS", "TUTTI_RANK", "TUTTI_LOCAL",
    "TF_CONFIG",     "RANK",        "WORLD_SIZE",  "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    "GROUP_RANK",    "MASTER_ADDR", "MASTER_PORT", NULL};

// Where it is looked for, in this order.
static const tt_cluster_source order[] = {TT_CLUSTER_TASKS, TT_CLUSTER_HOSTS, TT_CLUSTER_TF_CONFIG,
                                          TT_CLUSTER_TORCHRUN};

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
    tti_free(ctx, c);
}

static tt_status read_none(tt_ctx *ctx, tt_cluster *c)
{
    TT_TRY(tti_task_add(ctx, c, "environment", "worker", "", false, 1));
    tti_task_choose(c, 0, 0);
    c->text = tti_strdup(ctx, "");
    return c->text != NULL ? TT_OK : TT_ENOMEM;
}

static tt_status read_hosts(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c)
{
    const char *path = tti_cluster_get(env, "TUTTI_HOSTS");
    char *text;
    size_t bytes;
    TT_TRY(tti_stream_read(ctx, path, TT_CLUSTER_MAX_TEXT, &text, &bytes));
    c->text = text;
    return tti_cluster_hosts(ctx, path, text, bytes, tti_cluster_get(env, "TUTTI_RANK"), env->host,
                             c);
}

static tt_status read_tf_config(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c)
{
    const char *text = tti_cluster_get(env, "TF_CONFIG");
    TT_TRY(tti_cluster_tf_config(ctx, text, strlen(text), c));
    c->text = tti_strdup(ctx, text);
    return c->text != NULL ? TT_OK : TT_ENOMEM;
}

static bool is_set(const tti_cluster_env *env, tt_cluster_source source)
{
    switch (source) {
    case TT_CLUSTER_TASKS:
        return tti_cluster_get(env, "TUTTI_TASKS") != NULL;
    case TT_CLUSTER_HOSTS:
        return tti_cluster_get(env, "TUTTI_HOSTS") != NULL;
    case TT_CLUSTER_TF_CONFIG:
        return tti_cluster_get(env, "TF_CONFIG") != NULL;
    case TT_CLUSTER_TORCHRUN:
        return tti_cluster_has_torchrun(env);
    default:
        return false;
    }
}

static tt_status read_source(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c)
{
    switch (c->source) {
    case TT_CLUSTER_TASKS:
        return tti_cluster_list(ctx, env, c);
    case TT_CLUSTER_HOSTS:
        return read_hosts(ctx, env, c);
    case TT_CLUSTER_TF_CONFIG:
        return read_tf_config(ctx, env, c);
    case TT_CLUSTER_TORCHRUN:
        return tti_cluster_torchrun(ctx, env, c);
    default:
        return read_none(ctx, c);
    }
}

static tt_status open_source(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster_source source,
                             tt_cluster **out)
{
    tti_text name = {.ctx = ctx};
    tt_cluster *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return TT_ENOMEM;
    c->source = source;
    if (source == TT_CLUSTER_HOSTS)
        tti_text_add(&name, "TUTTI_HOSTS=%s", tti_cluster_get(env, "TUTTI_HOSTS"));
    else
        tti_text_add(&name, "%s",
                     source == TT_CLUSTER_TASKS       ? "TUTTI_TASKS"
                     : source == TT_CLUSTER_TF_CONFIG ? "TF_CONFIG"
                     : source == TT_CLUSTER_TORCHRUN  ? "RANK, WORLD_SIZE"
                                                      : "");
    c->found_in = tti_text_take(&name);
    tt_status st = c->found_in != NULL ? read_source(ctx, env, c) : TT_ENOMEM;
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

static tt_status look(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster **first)
{
    for (int s = 0; s < TTI_COUNT(order); s++) {
        tt_cluster *c = NULL;
        if (!is_set(env, order[s]))
            continue;
        TT_TRY(open_source(ctx, env, order[s], &c));
        if (*first == NULL) {
            *first = c;
            continue;
        }
        tt_status st = compare(ctx, *first, c);
        tt_cluster_free(ctx, c);
        TT_TRY(st);
    }
    return *first != NULL ? TT_OK : open_source(ctx, env, TT_CLUSTER_NONE, first);
}

tt_status tti_cluster_read(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster **out)
{
    char found[TTI_EXCERPT];
    const char *how = tti_cluster_get(env, "TUTTI_CLUSTER");
    const char *rank = tti_cluster_get(env, "TUTTI_RANK");
    tt_cluster *c = NULL;
    if (how != NULL && strcmp(how, "ignore") != 0)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "TUTTI_CLUSTER=%s: set it to 'ignore' (one process, whatever else is set), or unset it",
            tti_excerpt(found, how));
    if (how == NULL && rank != NULL && tti_cluster_get(env, "TUTTI_HOSTS") == NULL &&
        tti_cluster_get(env, "TUTTI_TASKS") == NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       "TUTTI_RANK=%s, but TUTTI_HOSTS is not set; set it to the hosts file",
                       tti_excerpt(found, rank));
    tt_status st = how != NULL ? open_source(ctx, env, TT_CLUSTER_NONE, &c) : look(ctx, env, &c);
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

tt_status tt_cluster_find(tt_ctx *ctx, tt_cluster **out)
{
    char host[256] = "";
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    if (out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "tt_cluster_find: out is NULL");
    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0'; // no host of a file is this one
    return tti_cluster_read(ctx, &(tti_cluster_env){.get = get_env, .host = host}, out);
}
