/*
 * list.c - lists in one word. TUTTI_TASKS: "host:port,host:port" of all processes in the order of
 * their ranks, as tutti run tells them; '?' is a process that takes a port itself and tells the
 * first, which has one. -H of tutti run: "host1:2,host2", with numbers of processes.
 */
#include "cluster/cluster.h"
#include <stdio.h>
#include <string.h>

#define WHERE "TUTTI_TASKS"

static tt_status add_all(tt_ctx *ctx, char *list, tt_cluster *c)
{
    char found[TTI_EXCERPT];
    for (char *at = list, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL)
            *next++ = '\0';
        bool is_told = strcmp(at, "?") != 0;
        if (!is_told && c->n_tasks == 0)
            return TT_FAIL(
                ctx, TT_EINVAL,
                WHERE
                "=%s: the first process needs an address, host:port, where the others connect",
                tti_excerpt(found, list));
        TT_TRY(tti_task_add(ctx, c, WHERE, "worker", is_told ? at : "", is_told, 1));
    }
    return TT_OK;
}

// "1/2": the second of two processes of this machine.
static tt_status read_local(tt_ctx *ctx, const char *text, tt_cluster *c)
{
    char copy[32], found[TTI_EXCERPT];
    snprintf(copy, sizeof(copy), "%s", text);
    char *slash = strchr(copy, '/');
    int k, n;
    if (slash != NULL)
        *slash++ = '\0';
    if (strlen(text) >= sizeof(copy) || slash == NULL ||
        !tti_cluster_number(slash, c->n_processes, &n) || n < 1 ||
        !tti_cluster_number(copy, n - 1, &k))
        return TT_FAIL(ctx, TT_EINVAL,
                       "TUTTI_LOCAL=%s: write 0/2 for the first of two processes on a machine; "
                       "there are %d in all",
                       tti_excerpt(found, text), c->n_processes);
    c->local_rank = k;
    c->n_local = n;
    return TT_OK;
}

tt_status tti_cluster_list(tt_ctx *ctx, const tti_cluster_env *env, tt_cluster *c)
{
    const char *text = tti_cluster_get(env, "TUTTI_TASKS");
    const char *rank = tti_cluster_get(env, "TUTTI_RANK");
    const char *local = tti_cluster_get(env, "TUTTI_LOCAL");
    if (strlen(text) > TT_CLUSTER_MAX_TEXT)
        return TT_FAIL(ctx, TT_EINVAL, WHERE " has %zu bytes; at most %d are read", strlen(text),
                       TT_CLUSTER_MAX_TEXT);
    c->text = tti_strdup(ctx, text);
    char *copy = tti_strdup(ctx, text);
    tt_status st = c->text == NULL || copy == NULL ? TT_ENOMEM : add_all(ctx, copy, c);
    tti_free(ctx, copy);
    TT_TRY(st);
    if (rank == NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       WHERE " names %d processes, but TUTTI_RANK is not set; set it to the rank "
                             "of this process, 0 to %d",
                       c->n_processes, c->n_processes - 1);
    TT_TRY(tti_task_choose_rank(ctx, WHERE, rank, c));
    return local != NULL ? read_local(ctx, local, c) : TT_OK;
}

// ---- hosts with numbers of processes ---------------------------------------------------------

tt_status tti_cluster_words(tt_ctx *ctx, const char *text, tt_cluster *c)
{
    char word[320], found[TTI_EXCERPT];
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        int slots = 1;
        snprintf(word, sizeof(word), "%.*s", (int)TTI_MIN(n, sizeof(word) - 1), at);
        char *end = word[0] == '[' ? strchr(word, ']') : word;
        char *colon = end != NULL ? strchr(end, ':') : NULL;
        if (colon != NULL && strchr(colon + 1, ':') == NULL) {
            *colon = '\0';
            if (!tti_cluster_number(colon + 1, TT_MAX_TASKS, &slots) || slots == 0)
                return TT_FAIL(ctx, TT_EINVAL,
                               "-H %s: '%s' is not a number of processes from 1 to %d; host1:2 "
                               "means 2 processes on host1",
                               tti_excerpt(found, text), colon + 1, TT_MAX_TASKS);
        }
        TT_TRY(tti_task_add(ctx, c, "-H", "worker", word[0] != '\0' ? word : "-", false, slots));
        at += n;
        if (*at == '\0')
            break;
    }
    if (c->n_processes > TT_MAX_TASKS)
        return TT_FAIL(ctx, TT_EINVAL, "-H %s: %d processes; at most %d are allowed",
                       tti_excerpt(found, text), c->n_processes, TT_MAX_TASKS);
    tti_task_choose(c, 0, 0);
    return TT_OK;
}
