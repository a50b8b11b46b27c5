/*
 * cluster.c - fuzzes the readers of TF_CONFIG, of hosts files, of lists, of node lists and of whole
 * environments; the first byte says which. What is read keeps the bounds, has one task that is this
 * process, and gives ranks without gaps.
 */
#include "cluster/cluster.h"
#include "fuzz.h"

static void check(const tt_cluster *c)
{
    int next = 0;
    expect(c->n_tasks >= 1 && c->n_tasks <= TT_CLUSTER_MAX_TASKS);
    expect(c->n_processes >= 1 && c->n_processes <= TT_CLUSTER_MAX_TASKS);
    expect(c->task >= 0 && c->task < c->n_tasks);
    for (int i = 0; i < c->n_tasks; i++) {
        const tt_task *t = &c->tasks[i];
        expect(t->n_processes >= 1 && t->index >= 0);
        expect(t->address[0] == '\0' || tti_address_fault(t->address, false) == NULL);
        expect(t->first_rank == -1 || t->first_rank == next);
        next += t->first_rank >= 0 ? t->n_processes : 0;
    }
    expect(next == c->n_processes);
    const tt_task *own = &c->tasks[c->task];
    expect(own->first_rank < 0
               ? c->rank == -1
               : c->rank >= own->first_rank && c->rank < own->first_rank + own->n_processes);
    expect(c->local_rank >= 0 && (c->local_rank < c->n_local || c->n_local == 0));
}

// An environment: lines "NAME=value".
static const char *get(const void *user, const char *name)
{
    static char values[96][256]; // one for each variable: several are looked at together
    size_t n = strlen(name);
    int which = 0;
    while (tti_cluster_variables[which] != NULL && strcmp(tti_cluster_variables[which], name) != 0)
        which++;
    if (tti_cluster_variables[which] == NULL) // looked at, but not listed
        return NULL;
    char *value = values[which];
    for (const char *at = user; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, n) != 0 || at[n] != '=' || strcmp(name, "TUTTI_HOSTS") == 0)
            continue; // files are the other readers'
        size_t length = strcspn(at + n + 1, "\n");
        length = length < sizeof(values[0]) ? length : sizeof(values[0]) - 1;
        memcpy(value, at + n + 1, length);
        value[length] = '\0';
        return value;
    }
    return NULL;
}

static tt_status read_environment(tt_ctx *ctx, const char *text)
{
    tt_cluster *c = NULL;
    tt_status st = tti_cluster_read(ctx, &(tti_cluster_env){get, text, "box", NULL}, &c);
    expect((st == TT_OK) == (c != NULL));
    if (st == TT_OK)
        check(c);
    tt_cluster_free(ctx, c);
    return st;
}

static void check_host(void *user, const char *host)
{
    expect(tti_host_fault(host, strlen(host)) == NULL);
    ++*(int *)user;
}

static void read_node_list(const char *text)
{
    int seen = 0, n = 0, each = 0;
    const char *fault = tti_nodelist_expand(text, 100, check_host, &seen, &n);
    expect(seen <= 100 && (fault != NULL || (seen == n && n > 0)));
    expect(!tti_per_node(text, 3, &each) || (each > 0 && each <= TT_CLUSTER_MAX_TASKS));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    if (size == 0)
        return 0;
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    tt_cluster *c = tti_calloc(ctx, 1, sizeof(*c));
    char *text = malloc(size); // of its own size, so that reading behind it is noticed
    expect(c != NULL && text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    tt_status st = TT_OK;
    if (data[0] == 'e' && memchr(text, '\0', size - 1) == NULL)
        st = read_environment(ctx, text);
    else if (data[0] == 'n')
        read_node_list(text);
    else if (data[0] == 'w')
        st = tti_cluster_words(ctx, text, c);
    else if (data[0] == 'h')
        st = tti_cluster_hosts(ctx, "hosts", text, size - 1, NULL, "box", c);
    else if (data[0] == 'r')
        st = tti_cluster_hosts(ctx, "hosts", text, size - 1, "1", "box", c);
    else
        st = tti_cluster_tf_config(ctx, text, size - 1, c);
    expect(st == tt_status_of(ctx));
    if (st == TT_OK && c->n_tasks > 0)
        check(c);
    else if (st != TT_OK)
        expect(tt_last_error(ctx).message[0] != '\0');
    tt_clear_error(ctx);
    tt_cluster_free(ctx, c);
    free(text);
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
