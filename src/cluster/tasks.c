/*
 * tasks.c - the list of tasks and its rules: addresses that can be reached and are there once,
 * ranks in the order of the list. Everything in it comes from outside.
 */
#include "cluster/cluster.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_HOST 253

const char *const tti_cluster_jobs[] = {"chief", "worker", "ps", "evaluator", NULL};

const char *tti_excerpt(char out[TTI_EXCERPT], const char *s)
{
    size_t n = 0, most = TTI_EXCERPT - 4;
    for (; n < most && s[n] != '\0'; n++)
        out[n] = s[n] >= ' ' && s[n] <= '~' ? s[n] : '?';
    snprintf(out + n, TTI_EXCERPT - n, "%s", s[n] != '\0' ? "..." : "");
    return out;
}

bool tti_cluster_number(const char *s, int max, int *out)
{
    int64_t v = 0;
    if (s[0] == '\0' || (s[0] == '0' && s[1] != '\0'))
        return false;
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            return false;
        v = v * 10 + (*s - '0');
        if (v > max)
            return false;
    }
    *out = (int)v;
    return true;
}

// ---- addresses -------------------------------------------------------------------------------

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// A name that begins with '-' would be an option to the next command that gets it.
static const char *name_fault(const char *host, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_word(host[i]) && host[i] != '-' && host[i] != '.')
            return "a host name may contain only letters, digits, '.', '-' and '_'";
        if (!is_word(host[i]) && (i == 0 || host[i - 1] == '.'))
            return "every part of a host name must begin with a letter or digit";
    }
    return NULL;
}

const char *tti_host_fault(const char *host, size_t n)
{
    char copy[MAX_HOST + 1];
    unsigned char bytes[sizeof(struct in6_addr)];
    if (n == 0)
        return "the host is missing";
    if (n > MAX_HOST)
        return "the host has more than 253 characters";
    if (memchr(host, ':', n) == NULL)
        return name_fault(host, n);
    memcpy(copy, host, n);
    copy[n] = '\0';
    return inet_pton(AF_INET6, copy, bytes) == 1 ? NULL : "this is not an IPv6 address";
}

const char *tti_address_fault(const char *address, bool needs_port)
{
    const char *host = address, *end, *port;
    int number;
    if (address[0] == '[') {
        host++;
        end = strchr(host, ']');
        if (end == NULL || memchr(host, ':', (size_t)(end - host)) == NULL)
            return "brackets are for IPv6 only: [::1]:2222";
        port = end + 1;
    } else {
        end = port = address + strcspn(address, ":");
        if (*port == ':' && strchr(port + 1, ':') != NULL)
            return "there are several colons; write an IPv6 address in brackets: [::1]:2222";
    }
    const char *fault = tti_host_fault(host, (size_t)(end - host));
    if (fault != NULL)
        return fault;
    if (*port == '\0')
        return needs_port ? "the port is missing: host:port" : NULL;
    if (*port != ':' || !tti_cluster_number(port + 1, 65535, &number) || number == 0)
        return "the port must be from 1 to 65535";
    return NULL;
}

// ---- tasks -----------------------------------------------------------------------------------

int tti_task_find(const tt_cluster *c, const char *job, int index)
{
    for (int i = 0; i < c->n_tasks; i++)
        if (c->tasks[i].index == index && strcmp(c->tasks[i].job, job) == 0)
            return i;
    return -1;
}

int tti_task_count(const tt_cluster *c, const char *job)
{
    int n = 0;
    for (int i = 0; i < c->n_tasks; i++)
        n += strcmp(c->tasks[i].job, job) == 0;
    return n;
}

// Is the host of two addresses, known ones, the same?
static bool is_same_host(const char *a, const char *b)
{
    size_t n = a[0] == '[' ? strcspn(a, "]") : strcspn(a, ":");
    size_t m = b[0] == '[' ? strcspn(b, "]") : strcspn(b, ":");
    return n == m && n > 0 && strncasecmp(a, b, n) == 0;
}

void tti_task_choose(tt_cluster *c, int task, int k)
{
    const tt_task *t = &c->tasks[task];
    c->task = task;
    c->rank = t->first_rank < 0 ? -1 : t->first_rank + k;
    c->local_rank = k;
    c->n_local = t->n_processes;
    for (int i = 0; i < c->n_tasks; i++) {
        const tt_task *o = &c->tasks[i];
        if (i == task || (o->first_rank < 0) != (t->first_rank < 0) ||
            !is_same_host(o->address, t->address))
            continue;
        c->n_local += o->n_processes;
        c->local_rank += i < task ? o->n_processes : 0;
    }
}

tt_status tti_task_choose_rank(tt_ctx *ctx, const char *name, const char *text, tt_cluster *c)
{
    char found[TTI_EXCERPT];
    int rank, i = 0;
    if (!tti_cluster_number(text, c->n_processes - 1, &rank))
        return TT_FAIL(ctx, TT_EINVAL,
                       "TUTTI_RANK=%s: %s names %d processes, so it must be a number from 0 to %d",
                       tti_excerpt(found, text), name, c->n_processes, c->n_processes - 1);
    while (c->tasks[i].first_rank + c->tasks[i].n_processes <= rank)
        i++;
    tti_task_choose(c, i, rank - c->tasks[i].first_rank);
    return TT_OK;
}

static tt_status check_address(tt_ctx *ctx, const tt_cluster *c, const char *where,
                               const tt_task *t, bool needs_port)
{
    char found[TTI_EXCERPT];
    if (t->address[0] == '\0' && !needs_port)
        return TT_OK;
    const char *fault = tti_address_fault(t->address, needs_port);
    if (fault != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: %s %d: address '%s': %s", where, t->job, t->index,
                       tti_excerpt(found, t->address), fault);
    for (int i = 0; i < c->n_tasks; i++)
        if (strcasecmp(c->tasks[i].address, t->address) == 0)
            return TT_FAIL(
                ctx, TT_EINVAL,
                "%s: %s %d: address '%s' is already used by %s %d; each needs a different one",
                where, t->job, t->index, tti_excerpt(found, t->address), c->tasks[i].job,
                c->tasks[i].index);
    return TT_OK;
}

tt_status tti_task_add(tt_ctx *ctx, tt_cluster *c, const char *where, const char *job,
                       const char *address, bool needs_port, int n_processes)
{
    bool trains = strcmp(job, "chief") == 0 || strcmp(job, "worker") == 0;
    tt_task t = {.job = job, .address = address, .n_processes = n_processes, .first_rank = -1};
    t.index = tti_task_count(c, job);
    if (c->n_tasks == TT_CLUSTER_MAX_TASKS ||
        (trains && n_processes > TT_CLUSTER_MAX_TASKS - c->n_processes))
        return TT_FAIL(ctx, TT_EINVAL, "%s: %s %d: there are more than %d tasks or processes",
                       where, job, t.index, TT_CLUSTER_MAX_TASKS);
    TT_TRY(check_address(ctx, c, where, &t, needs_port));
    if (c->tasks == NULL)
        c->tasks = tti_calloc(ctx, TT_CLUSTER_MAX_TASKS, sizeof(*c->tasks));
    t.address = c->tasks != NULL ? tti_strdup(ctx, address) : NULL;
    if (t.address == NULL)
        return TT_ENOMEM;
    if (trains) {
        t.first_rank = c->n_processes;
        c->n_processes += n_processes;
    }
    c->tasks[c->n_tasks++] = t;
    return TT_OK;
}
