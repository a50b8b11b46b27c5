/*
 * tf_config.c - TF_CONFIG: {"cluster": {"chief": ["host:port"], "worker": [...], "ps": [...]},
 * "task": {"type": "worker", "index": 0}}. The chief leads, or worker 0 where there is none. An
 * evaluator need not be in the cluster, and is never among those that train. Other members of the
 * object belong to TensorFlow and are passed over.
 */
#include "cluster/cluster.h"
#include <jansson.h>
#include <string.h>

#define WHERE "TF_CONFIG"
#define TASK  "{\"type\": \"worker\", \"index\": 0}"

static bool is_job(const char *name)
{
    for (int i = 0; tti_cluster_jobs[i] != NULL; i++)
        if (strcmp(tti_cluster_jobs[i], name) == 0)
            return true;
    return false;
}

static tt_status add_job(tt_ctx *ctx, const char *job, const json_t *list, tt_cluster *c)
{
    size_t n = json_array_size(list);
    if (list != NULL && !json_is_array(list))
        return TT_FAIL(ctx, TT_EINVAL, WHERE ": cluster: %s is not a list of \"host:port\"", job);
    if (strcmp(job, "chief") == 0 && n > 1)
        return TT_FAIL(
            ctx, TT_EINVAL,
            WHERE
            ": cluster: there are %zu chiefs; a job can have only one, make the others workers",
            n);
    for (size_t i = 0; i < n; i++) {
        const char *address = json_string_value(json_array_get(list, i));
        if (address == NULL)
            return TT_FAIL(ctx, TT_EINVAL,
                           WHERE ": %s %zu: the address is not a string \"host:port\"", job, i);
        TT_TRY(tti_task_add(ctx, c, WHERE, job, address, true, 1));
    }
    return TT_OK;
}

static tt_status add_tasks(tt_ctx *ctx, json_t *cluster, tt_cluster *c)
{
    char found[TTI_EXCERPT];
    const char *key;
    json_t *value;
    if (cluster != NULL && !json_is_object(cluster))
        return TT_FAIL(ctx, TT_EINVAL,
                       WHERE ": cluster is not an object {\"worker\": [\"host:port\", ...]}");
    json_object_foreach(cluster, key, value) if (!is_job(key)) return TT_FAIL(
        ctx, TT_EINVAL, WHERE ": cluster: '%s' is not one of chief, worker, ps, evaluator",
        tti_excerpt(found, key));
    for (int i = 0; tti_cluster_jobs[i] != NULL; i++)
        TT_TRY(add_job(ctx, tti_cluster_jobs[i], json_object_get(cluster, tti_cluster_jobs[i]), c));
    if (c->n_tasks > 0 && c->n_processes == 0)
        return TT_FAIL(ctx, TT_EINVAL, WHERE ": cluster: there is no chief and no worker");
    return TT_OK;
}

// The index is a number, or from some launchers the number as text.
static bool get_index(const json_t *v, int *out)
{
    if (json_is_string(v))
        return tti_cluster_number(json_string_value(v), TT_CLUSTER_MAX_TASKS - 1, out);
    if (!json_is_integer(v) || json_integer_value(v) < 0 ||
        json_integer_value(v) >= TT_CLUSTER_MAX_TASKS)
        return false;
    *out = (int)json_integer_value(v);
    return true;
}

static tt_status choose_task(tt_ctx *ctx, const json_t *task, tt_cluster *c)
{
    char found[TTI_EXCERPT];
    int index = 0;
    if (!json_is_object(task))
        return TT_FAIL(ctx, TT_EINVAL, WHERE ": task is not an object " TASK);
    const char *type = json_string_value(json_object_get(task, "type"));
    if (type == NULL)
        return TT_FAIL(ctx, TT_EINVAL, WHERE ": task has no type: " TASK);
    if (!is_job(type))
        return TT_FAIL(ctx, TT_EINVAL,
                       WHERE ": task: type '%s' is not one of chief, worker, ps, evaluator",
                       tti_excerpt(found, type));
    if (!get_index(json_object_get(task, "index"), &index))
        return TT_FAIL(ctx, TT_EINVAL, WHERE ": task: index is not a number from 0 to %d: " TASK,
                       TT_CLUSTER_MAX_TASKS - 1);
    int n = tti_task_count(c, type), at = tti_task_find(c, type, index);
    if (at < 0 && strcmp(type, "evaluator") == 0 && n == 0 && c->n_tasks > 0) {
        TT_TRY(tti_task_add(ctx, c, WHERE, "evaluator", "", false, 1));
        at = c->n_tasks - 1;
        c->tasks[at].index = index;
    }
    if (at < 0 && n == 0)
        return TT_FAIL(ctx, TT_EINVAL, WHERE ": task is %s %d, but cluster has no %s", type, index,
                       type);
    if (at < 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       WHERE ": task is %s %d, but cluster has %d of that type; use an index from "
                             "0 to %d, or a longer list",
                       type, index, n, n - 1);
    tti_task_choose(c, at, 0);
    return TT_OK;
}

static tt_status read_root(tt_ctx *ctx, const json_t *root, tt_cluster *c)
{
    json_t *task = json_object_get(root, "task");
    if (!json_is_object(root))
        return TT_FAIL(ctx, TT_EPARSE,
                       WHERE " is not a JSON object: {\"cluster\": ..., \"task\": " TASK "}");
    if (json_object_get(root, "sparseCluster") != NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       WHERE ": sparseCluster does not list all tasks; use cluster");
    TT_TRY(add_tasks(ctx, json_object_get(root, "cluster"), c));
    if (c->n_tasks == 0 && task == NULL) // what TensorFlow takes as one process, too
        TT_TRY(tti_task_add(ctx, c, WHERE, "worker", "", false, 1));
    if (c->n_tasks == 0 && json_is_object(task)) {
        const char *type = json_string_value(json_object_get(task, "type"));
        bool is_chief = type != NULL && strcmp(type, "chief") == 0;
        TT_TRY(tti_task_add(ctx, c, WHERE, is_chief ? "chief" : "worker", "", false, 1));
    }
    if (task == NULL && c->n_tasks > 1)
        return TT_FAIL(ctx, TT_EINVAL,
                       WHERE ": cluster has %d tasks, but task is missing: " TASK
                             " would identify this process",
                       c->n_tasks);
    if (task == NULL) {
        tti_task_choose(c, 0, 0);
        return TT_OK;
    }
    return choose_task(ctx, task, c);
}

tt_status tti_cluster_tf_config(tt_ctx *ctx, const char *text, size_t bytes, tt_cluster *c)
{
    char found[TTI_EXCERPT], why[TTI_EXCERPT];
    json_error_t error;
    if (bytes > TT_CLUSTER_MAX_TEXT)
        return TT_FAIL(ctx, TT_EINVAL, WHERE " has %zu bytes; at most %d are read", bytes,
                       TT_CLUSTER_MAX_TEXT);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL)
        return TT_FAIL(ctx, TT_EPARSE,
                       WHERE " is not valid JSON: line %d, column %d: %s; it is '%s'", error.line,
                       error.column, tti_excerpt(why, error.text), tti_excerpt(found, text));
    tt_status st = read_root(ctx, root, c);
    json_decref(root);
    return st;
}
