/*
 * spec.c - the tasks of a cluster, from a file or from TF_CONFIG:
 *
 *   jobs:
 *     ps: [10.0.0.1:2222]
 *     worker:
 *       - 10.0.0.2:2222
 *       - {address: 10.0.0.3:2222, devices: "cpu:0, gpu:0"}
 *   devices: cpu:0     # of tasks that say none
 *   key: cluster.key   # beside the file, or an absolute path
 */
#include "base/ctx.h"
#include "base/file.h"
#include "base/hints.h"
#include "job/tree.h"
#include "serve/serve.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

void tti_spec_free(tt_ctx *ctx, tti_spec *s)
{
    tti_free(ctx, s->tasks);
    *s = (tti_spec){.self = -1};
}

static bool is_job_name(const char *s)
{
    size_t n = strlen(s);
    bool ok = n > 0 && n < sizeof(((tti_spec_task *)0)->job);
    for (; ok && *s != '\0'; s++)
        ok = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
             *s == '_' || *s == '-';
    return ok;
}

tt_status tti_spec_add(tt_ctx *ctx, tti_spec *s, const char *job, const char *address)
{
    char found[TTI_EXCERPT];
    if (!is_job_name(job))
        return TT_FAIL(ctx, TT_EINVAL,
                       "cluster: job '%s': a name has 1 to 31 letters, digits, '_' and '-'",
                       tti_excerpt(found, job));
    if (s->n == TTI_MAX_PEERS)
        return TT_FAIL(ctx, TT_EINVAL, "cluster: more than %d tasks", TTI_MAX_PEERS);
    const char *fault = address[0] == '\0' ? NULL : tti_address_fault(address, true);
    if (fault != NULL || strlen(address) >= TTI_ADDRESS)
        return TT_FAIL(ctx, TT_EINVAL, "cluster: job %s: '%s' is not host:port: %s", job,
                       tti_excerpt(found, address), fault != NULL ? fault : "it is too long");
    int index = 0;
    for (int64_t i = 0; i < s->n; i++) {
        index += strcmp(s->tasks[i].job, job) == 0;
        if (address[0] != '\0' && strcmp(s->tasks[i].address, address) == 0)
            return TT_FAIL(ctx, TT_EINVAL, "cluster: %s is the address of %s:%d and of %s:%d",
                           address, s->tasks[i].job, s->tasks[i].index, job, index);
    }
    if (!tti_grow(ctx, &s->tasks, &s->cap, s->n + 1, sizeof(*s->tasks)))
        return TT_ENOMEM;
    tti_spec_task *t = &s->tasks[s->n++];
    *t = (tti_spec_task){.index = index};
    snprintf(t->job, sizeof(t->job), "%s", job);
    snprintf(t->address, sizeof(t->address), "%s", address);
    return TT_OK;
}

// ---- the file --------------------------------------------------------------------------------

static tt_status text_of(tt_ctx *ctx, const tti_item *i, const char *path, char *out, size_t room)
{
    if (i->kind != TTI_SCALAR || i->text[0] == '\0')
        return tti_fail_at(ctx, TT_EPARSE, i->at, path, "is %s; use a text", tti_item_word(i));
    if (strlen(i->text) >= room)
        return tti_fail_at(ctx, TT_EPARSE, i->at, path, "is longer than %zu characters", room - 1);
    snprintf(out, room, "%s", i->text);
    return TT_OK;
}

static tt_status check_keys(tt_ctx *ctx, const tti_item *map, const char *path,
                            const char *const *names)
{
    if (map->kind != TTI_MAP)
        return tti_fail_at(ctx, TT_EPARSE, map->at, path, "is %s; use a map", tti_item_word(map));
    for (const tti_item *i = map->first; i != NULL; i = i->next) {
        bool known = false;
        for (int k = 0; names[k] != NULL; k++)
            known |= strcmp(names[k], i->key) == 0;
        const char *near = known ? NULL : tti_meant(i->key, names);
        if (!known)
            return tti_fail_at(ctx, TT_EPARSE, i->key_at, path, "unknown key '%.64s'%s%s%s", i->key,
                               near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                               near != NULL ? "'?" : "");
    }
    return TT_OK;
}

static tt_status read_task(tt_ctx *ctx, const char *job, const tti_item *i, tti_spec *s)
{
    static const char *const keys[] = {"address", "devices", NULL};
    char address[TTI_ADDRESS], place[TTI_PLACE_MAX], where[TTI_PLACE_MAX + 8];
    const tti_item *devices = NULL, *at = i;
    if (i->kind == TTI_MAP) {
        TT_TRY(check_keys(ctx, i, "jobs", keys));
        at = tti_item_get(i, "address");
        devices = tti_item_get(i, "devices");
        if (at == NULL)
            return tti_fail_at(ctx, TT_EPARSE, i->at, "jobs", "a task has no address: host:port");
    }
    TT_TRY(text_of(ctx, at, "jobs", address, sizeof(address)));
    snprintf(where, sizeof(where), "%s: ", tti_place_text(at->at, place));
    tti_fail_where(ctx, where);
    tt_status st = tti_spec_add(ctx, s, job, address);
    tti_fail_where(ctx, NULL);
    TT_TRY(st);
    if (devices == NULL)
        return TT_OK;
    tti_spec_task *t = &s->tasks[s->n - 1];
    return text_of(ctx, devices, "jobs.devices", t->devices, sizeof(t->devices));
}

// The key lies beside the file that names it.
static tt_status read_key(tt_ctx *ctx, const char *path, const tti_item *key, tti_spec *s)
{
    char name[sizeof(s->key)], folder[TTI_PATH_MAX], own[256];
    TT_TRY(text_of(ctx, key, "key", name, sizeof(name)));
    bool beside = name[0] != '/' && strchr(path, '/') != NULL;
    if (beside)
        TT_TRY(tti_file_split(ctx, path, folder, own));
    int n =
        snprintf(s->key, sizeof(s->key), "%s%s%s", beside ? folder : "", beside ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof(s->key))
        return tti_fail_at(ctx, TT_EPARSE, key->at, "key", "the path is too long");
    return TT_OK;
}

static tt_status read_root(tt_ctx *ctx, const char *path, const tti_item *root, tti_spec *s)
{
    static const char *const keys[] = {"jobs", "devices", "key", NULL};
    TT_TRY(check_keys(ctx, root, "", keys));
    const tti_item *jobs = tti_item_get(root, "jobs"), *key = tti_item_get(root, "key"),
                   *devices = tti_item_get(root, "devices");
    if (jobs == NULL || jobs->kind != TTI_MAP || jobs->n == 0)
        return tti_fail_at(ctx, TT_EPARSE, jobs != NULL ? jobs->at : root->at, "jobs",
                           "is missing: a map of jobs, each with a list of host:port");
    for (const tti_item *j = jobs->first; j != NULL; j = j->next) {
        if (j->kind == TTI_LIST)
            for (const tti_item *i = j->first; i != NULL; i = i->next)
                TT_TRY(read_task(ctx, j->key, i, s));
        else
            TT_TRY(read_task(ctx, j->key, j, s));
    }
    if (s->n == 0)
        return tti_fail_at(ctx, TT_EPARSE, jobs->at, "jobs", "there is no task");
    if (key != NULL)
        TT_TRY(read_key(ctx, path, key, s));
    char text[sizeof(s->tasks[0].devices)];
    if (devices == NULL)
        return TT_OK;
    TT_TRY(text_of(ctx, devices, "devices", text, sizeof(text)));
    for (int64_t i = 0; i < s->n; i++)
        if (s->tasks[i].devices[0] == '\0')
            memcpy(s->tasks[i].devices, text, sizeof(text));
    return TT_OK;
}

// ---- TF_CONFIG -------------------------------------------------------------------------------

static tt_status read_tf_config(tt_ctx *ctx, const char *text, size_t bytes, tti_spec *s)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    json_t *cluster = json_object_get(root, "cluster"), *task = json_object_get(root, "task"),
           *list;
    const char *job, *type = json_string_value(json_object_get(task, "type"));
    char word[64], found[TTI_EXCERPT];
    tt_status st = TT_OK;
    if (root == NULL)
        return TT_FAIL(ctx, TT_EPARSE, "TF_CONFIG is not valid JSON: line %d, column %d: %s",
                       error.line, error.column, tti_excerpt(found, error.text));
    if (!json_is_object(cluster))
        st = TT_FAIL(ctx, TT_EPARSE,
                     "TF_CONFIG has no cluster: {\"cluster\": {\"worker\": [\"host:port\"]}}");
    json_object_foreach(cluster, job, list)
    {
        if (st == TT_OK && !json_is_array(list))
            st = TT_FAIL(ctx, TT_EPARSE, "TF_CONFIG: cluster: %s is not a list of \"host:port\"",
                         tti_excerpt(found, job));
        for (size_t i = 0; st == TT_OK && i < json_array_size(list); i++) {
            const char *address = json_string_value(json_array_get(list, i));
            st = tti_spec_add(ctx, s, job, address != NULL ? address : "not a text");
        }
    }
    if (st == TT_OK && s->n == 0)
        st = TT_FAIL(ctx, TT_EPARSE, "TF_CONFIG: cluster has no tasks");
    const json_t *index = json_object_get(task, "index");
    if (st == TT_OK && type != NULL && (json_is_integer(index) || json_is_string(index))) {
        if (json_is_string(index))
            snprintf(word, sizeof(word), "%.40s:%.16s", type, json_string_value(index));
        else
            snprintf(word, sizeof(word), "%.40s:%lld", type, (long long)json_integer_value(index));
        st = tti_spec_find(ctx, s, word, &s->self);
    }
    json_decref(root);
    return st;
}

tt_status tti_spec_parse(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                         tti_spec *out)
{
    *out = (tti_spec){.self = -1};
    if (bytes > 0 && text[strspn(text, " \t\r\n")] == '{' && strstr(text, "\"cluster\"") != NULL)
        return read_tf_config(ctx, text, bytes, out);
    tti_tree tree = {.ctx = ctx};
    tti_item *root;
    tt_status st = tti_yaml_read(&tree, path, text, bytes, &root);
    if (st == TT_OK)
        st = read_root(ctx, path, root, out);
    tti_tree_free(&tree);
    return st;
}

tt_status tti_spec_read(tt_ctx *ctx, const char *cluster, tti_spec *out)
{
    char *text;
    size_t bytes;
    *out = (tti_spec){.self = -1};
    if (cluster == NULL)
        cluster = tti_env("TF_CONFIG");
    if (cluster == NULL || cluster[0] == '\0')
        return TT_FAIL(ctx, TT_EINVAL,
                       "no cluster: name a cluster file, or set TF_CONFIG, or use a local cluster");
    if (cluster[strspn(cluster, " \t\r\n")] == '{')
        return tti_spec_parse(ctx, "TF_CONFIG", cluster, strlen(cluster), out);
    TT_TRY(tti_file_read(ctx, cluster, TTI_MAX_JOB_BYTES, &text, &bytes));
    tt_status st = tti_spec_parse(ctx, cluster, text, bytes, out);
    tti_free(ctx, text);
    return st;
}

// ---- finding ---------------------------------------------------------------------------------

// "ps:0-1, worker:0-2"
static void list_tasks(const tti_spec *s, char *out, size_t room)
{
    out[0] = '\0';
    for (int64_t i = 0; i < s->n; i++) {
        bool first = s->tasks[i].index == 0;
        int last = 0;
        for (int64_t k = 0; first && k < s->n; k++)
            if (strcmp(s->tasks[k].job, s->tasks[i].job) == 0)
                last = TTI_MAX(last, s->tasks[k].index);
        size_t n = strlen(out);
        if (first && last == 0)
            snprintf(out + n, room - n, "%s%s:0", n > 0 ? ", " : "", s->tasks[i].job);
        else if (first)
            snprintf(out + n, room - n, "%s%s:0 to %s:%d", n > 0 ? ", " : "", s->tasks[i].job,
                     s->tasks[i].job, last);
    }
}

static int find(const tti_spec *s, const char *job, int index)
{
    for (int64_t i = 0; i < s->n; i++)
        if (strcmp(s->tasks[i].job, job) == 0 && s->tasks[i].index == index)
            return (int)i;
    return -1;
}

tt_status tti_spec_find(tt_ctx *ctx, const tti_spec *s, const char *word, int *out)
{
    char job[64], list[512], found[TTI_EXCERPT];
    const char *colon = strrchr(word, ':');
    int index = 0;
    snprintf(job, sizeof(job), "%.*s", (int)(colon != NULL ? TTI_MIN(colon - word, 63) : 63), word);
    bool ok = colon == NULL || tti_cluster_number(colon + 1, TTI_MAX_PEERS, &index);
    *out = ok ? find(s, job, index) : -1;
    if (*out >= 0)
        return TT_OK;
    list_tasks(s, list, sizeof(list));
    return TT_FAIL(ctx, TT_EINVAL, "the cluster has no task '%s'; it has %s",
                   tti_excerpt(found, word), list);
}

tt_status tti_spec_place(tt_ctx *ctx, const tti_spec *s, int self, const tt_device_name *pin,
                         const char *node, int *out)
{
    char device[TT_DEVICE_NAME_MAX], list[512];
    *out = self;
    if (pin->job[0] == '\0' && pin->task < 0)
        return TT_OK;
    const char *job = pin->job[0] != '\0' ? pin->job : s->tasks[self].job;
    *out = find(s, job, TTI_MAX(pin->task, 0));
    if (*out >= 0)
        return TT_OK;
    tt_device_print(pin, device);
    list_tasks(s, list, sizeof(list));
    return TT_FAIL(ctx, TT_EINVAL, "'%s' is pinned to %s, but the cluster has %s", node, device,
                   list);
}
