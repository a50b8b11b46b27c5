/*
 * comm_ring.c - messages around a ring beside a non-blocking all-reduce. Every member passes blocks
 * on to its right neighbour until it has seen all of them and adds them up; meanwhile the group
 * computes the same sum. Alone it has four members; as one process of several it has one:
 *
 *   export TUTTI_TASKS=127.0.0.1:29701,127.0.0.1:29702
 *   TUTTI_RANK=0 build/release/examples/comm_ring & TUTTI_RANK=1 build/release/examples/comm_ring
 */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

#define MOST  4 // members of this process
#define COUNT 10000
static int64_t own[MOST][COUNT], block[MOST][COUNT], sum[MOST][COUNT], total[MOST][COUNT];

// Member i sends to the right what it has, receives from the left, and adds that.
static void pass_on(tt_comm *c, int n, int step)
{
    int first = tt_comm_first(c), all = tt_comm_members(c);
    tt_handle *sent[MOST];
    for (int i = 0; i < n; i++)
        tt_send_to(c, block[i], COUNT, (first + i + 1) % all, .dtype = TT_I64, .tag = step,
                   .member = i, .handle = &sent[i]);
    tt_handle_wait_all(sent, n);
    for (int i = 0; i < n; i++) {
        tt_receive_from(c, block[i], COUNT, (first + i + all - 1) % all, .dtype = TT_I64,
                        .tag = step, .member = i);
        for (int k = 0; k < COUNT; k++)
            sum[i][k] += block[i][k];
    }
}

static int run(tt_ctx *ctx, int n)
{
    tt_comm *c = tt_comm_open(ctx, .members = n);
    int all = tt_comm_members(c), wrong = 0;
    tt_member m[MOST];
    tt_handle *h = NULL;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < COUNT; k++)
            own[i][k] = block[i][k] = sum[i][k] = (tt_comm_first(c) + i + 1) * (k + 1);
        m[i] = (tt_member){.in = own[i], .out = total[i], .count = COUNT};
    }
    tt_all_reduce(c, m, .dtype = TT_I64, .handle = &h); // goes on in the background
    for (int step = 0; step < all - 1; step++)
        pass_on(c, n, step);
    tt_handle_wait(&h);
    for (int i = 0; i < n; i++)
        wrong += memcmp(sum[i], total[i], sizeof(sum[i])) != 0;

    char text[MOST][64]; // of any length: the others need not know it
    tt_bytes in[MOST], out[TT_MAX_MEMBERS];
    for (int i = 0; i < n; i++) {
        snprintf(text[i], sizeof(text[i]), "member %d has %lld in its last element",
                 tt_comm_first(c) + i, (long long)sum[i][COUNT - 1]);
        in[i] = (tt_bytes){text[i], strlen(text[i])};
    }
    if (tt_gather_bytes(c, in, out) == TT_OK && tt_comm_first(c) == 0)
        for (int i = 0; i < all; i++)
            puts(out[i].data);
    tt_bytes_free(ctx, out);
    return wrong;
}

int main(void)
{
    tt_ctx *reader = tt_open(.devices = "cpu:0");
    tt_cluster *cluster = NULL;
    tt_tasks *tasks = NULL; // NULL: this process is alone
    if (tt_cluster_find(reader, &cluster) == TT_OK)
        tt_cluster_tasks(reader, cluster, "comm_ring", &tasks);
    tt_ctx *ctx =
        tt_status_of(reader) == TT_OK ? tt_open(.devices = "cpu:0", .tasks = tasks) : NULL;
    int wrong = run(ctx, tasks != NULL ? 1 : MOST);
    bool good = tt_close(ctx) == TT_OK && wrong == 0;
    tt_tasks_free(reader, tasks);
    tt_cluster_free(reader, cluster);
    return tt_close(reader) == TT_OK && good ? 0 : 1;
}
