/*
 * hosts.c - a hosts file: a line "host[:port] [slots=N]" per machine, '#' before comments. It does
 * not say which process reads it: TUTTI_RANK does, or the machine's name where that is enough.
 */
#include "cluster/cluster.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\v\f"

static tt_status add_line(tt_ctx *ctx, const char *where, char *line, tt_cluster *c)
{
    char found[TTI_EXCERPT], *rest = NULL;
    int slots = 1;
    bool has_slots = false;
    line[strcspn(line, "#")] = '\0';
    char *host = strtok_r(line, BLANKS, &rest);
    if (host == NULL)
        return TT_OK;
    for (char *w; (w = strtok_r(NULL, BLANKS, &rest)) != NULL; has_slots = true) {
        if (strncmp(w, "slots=", 6) != 0 || has_slots)
            return TT_FAIL(ctx, TT_EPARSE, "%s: '%s': a line is host[:port] [slots=N]", where,
                           tti_excerpt(found, w));
        if (!tti_cluster_number(w + 6, TT_CLUSTER_MAX_TASKS, &slots) || slots == 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: '%s': slots must be from 1 to %d", where,
                           tti_excerpt(found, w), TT_CLUSTER_MAX_TASKS);
    }
    return tti_task_add(ctx, c, where, "worker", host, false, slots);
}

static tt_status add_lines(tt_ctx *ctx, const char *name, char *text, tt_cluster *c)
{
    char where[TTI_EXCERPT + 32];
    int number = 1;
    for (char *line = text, *next; line != NULL; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        snprintf(where, sizeof(where), "%s: line %d", name, number);
        TT_TRY(add_line(ctx, where, line, c));
    }
    return TT_OK;
}

// Are "box" and "box.example.org" one machine? Two full names must be equal.
static bool is_machine(const char *address, const char *host)
{
    size_t n = strcspn(address, ":"), m = strlen(host);
    size_t short_n = strcspn(address, ".:"), short_m = strcspn(host, ".");
    if (n == m && strncasecmp(address, host, n) == 0)
        return true;
    return (n == short_n || m == short_m) && short_n == short_m &&
           strncasecmp(address, host, short_n) == 0;
}

static tt_status choose_host(tt_ctx *ctx, const char *name, const char *host, tt_cluster *c)
{
    char found[TTI_EXCERPT];
    int task = 0, here = 0;
    for (int i = 0; i < c->n_tasks; i++) {
        if (!is_machine(c->tasks[i].address, host))
            continue;
        task = i;
        here += c->tasks[i].n_processes;
    }
    if (here != 1 && c->n_processes > 1)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s names %d processes, %d of them on this machine ('%s'); set TUTTI_RANK "
                       "to the rank of this process, 0 to %d",
                       name, c->n_processes, here, tti_excerpt(found, host), c->n_processes - 1);
    tti_task_choose(c, task, 0);
    return TT_OK;
}

tt_status tti_cluster_hosts(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                            const char *rank, const char *host, tt_cluster *c)
{
    char name[TTI_EXCERPT];
    tti_excerpt(name, path);
    if (bytes > TT_CLUSTER_MAX_TEXT)
        return TT_FAIL(ctx, TT_EINVAL, "%s has %zu bytes; a hosts file has at most %d", name, bytes,
                       TT_CLUSTER_MAX_TEXT);
    if (memchr(text, '\0', bytes) != NULL)
        return TT_FAIL(ctx, TT_EPARSE, "%s has a zero byte: it is not a hosts file", name);
    char *copy = tti_alloc(ctx, bytes + 1);
    if (copy == NULL)
        return TT_ENOMEM;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    tt_status st = add_lines(ctx, name, copy, c);
    tti_free(ctx, copy);
    TT_TRY(st);
    if (c->n_tasks == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s does not name a host: a line is host[:port] [slots=N]",
                       name);
    return rank != NULL ? tti_task_choose_rank(ctx, name, rank, c)
                        : choose_host(ctx, name, host, c);
}
