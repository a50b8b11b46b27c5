/*
 * cluster.c - fuzzes the readers of TF_CONFIG and of hosts files; the first byte says which. What
 * is read keeps the bounds, has one task that is this process, and gives ranks without gaps.
 */
#include "cluster/cluster.h"
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore_event(void *user, const tt_event *ev)
{
    (void)user, (void)ev;
}

static void expect(int ok)
{
    if (!ok)
        abort();
}

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
    expect(c->local_rank >= 0 && c->local_rank < c->n_local);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tt_ctx *ctx;
    if (ctx == NULL)
        ctx = tt_open(.devices = "cpu:0", .threads = 1, .on_event = ignore_event);
    if (size == 0)
        return 0;
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    tt_cluster *c = tti_calloc(ctx, 1, sizeof(*c));
    char *text = malloc(size); // of its own size, so that reading behind it is noticed
    expect(c != NULL && text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    tt_status st = TT_OK;
    if (data[0] == 'h')
        st = tti_cluster_hosts(ctx, "hosts", text, size - 1, NULL, "box", c);
    else if (data[0] == 'r')
        st = tti_cluster_hosts(ctx, "hosts", text, size - 1, "1", "box", c);
    else
        st = tti_cluster_tf_config(ctx, text, size - 1, c);
    expect(st == tt_status_of(ctx));
    if (st == TT_OK)
        check(c);
    else
        expect(tt_last_error(ctx).message[0] != '\0');
    tt_clear_error(ctx);
    tt_cluster_free(ctx, c);
    free(text);
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
