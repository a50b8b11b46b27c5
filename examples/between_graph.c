/*
 * between_graph.c - between-graph replication by hand: two workers, each with a graph of its own,
 * share a variable by name and queues on a parameter server. Each computes the gradient of half of
 * the lanes; the first adds both in the order of the lanes and updates. The weights get the bits of
 * one process that trains on whole batches.
 */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

enum {
    ROWS = 32,
    IN = 20,
    OUT = 3,
    STEPS = 5,
    HALF = ROWS / 2
};
static const tt_queue_part gradient = {TT_F32, {2, {IN, OUT}}}, token = {TT_I32, {0, {0}}};
static const char *ps; // the server's address

typedef struct net {
    tt_tensor *x, *w, *dw, *given, *update;
} net;

static net build(tt_graph *g)
{
    net n = {.x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, IN), .name = "x")};
    n.w = tt_variable(g, .shape = TT_SHAPE(IN, OUT), .name = "w", .init = {TT_INIT_NORMAL, 0, 0.1});
    tt_tensor *loss = tt_mean(g, tt_square(g, tt_tanh(g, tt_matmul(g, n.x, n.w))));
    tt_grad(g, loss, NULL, 1, &n.w, &n.dw);
    n.given = tt_feed(g, .shape = TT_SHAPE(IN, OUT), .name = "given");
    n.update = tt_assign(g, n.w, tt_sub(g, n.w, tt_scale(g, n.given, 0.5, 0)));
    return n;
}

static void batch(int step, float *x)
{
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)((unsigned)(i + step * 977) * 2654435761u >> 8) / 16777216.0f - 0.4f;
}

static void apply(tt_session *s, const net *n, const float *dw)
{
    tt_feed_value f = {n->given, dw, TT_SHAPE(IN, OUT), TT_F32};
    tt_run(s, .feeds = &f, .n_feeds = 1, .targets = &n->update, .n_targets = 1);
}

static tt_status worker(tt_threads *group, void *number)
{
    int self = *(int *)number;
    float x[ROWS * IN], w[IN * OUT], dw[2][IN * OUT];
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_graph *g = tt_graph_new(ctx);
    net n = build(g);
    tt_session *there = tt_session_new(g, .target = ps), *here = tt_session_new(g);
    tt_queue *sums = tt_queue_open(ctx, "gradients", .target = ps, .capacity = 2,
                                   .parts = &gradient, .n_parts = 1);
    tt_queue *go =
        tt_queue_open(ctx, "go", .target = ps, .capacity = 2, .parts = &token, .n_parts = 1);
    for (int i = 0; i < STEPS && tt_status_of(ctx) == TT_OK; i++) {
        int32_t one = i;
        batch(i, x);
        tt_get_variable(there, n.w, w, sizeof(w));
        tt_set_variable(here, n.w, w, sizeof(w));
        tt_feed_value rows = {n.x, x + self * HALF * IN, TT_SHAPE(HALF, IN), TT_F32};
        tt_run(here, .feeds = &rows, .n_feeds = 1, .n_fetches = 1,
               .batch = {.first_row = self * HALF, .global_rows = ROWS},
               .fetches = &(tt_fetch){n.dw, dw[self], sizeof(dw[self])});
        if (self == 1) { // gives its gradient, and waits for the update
            tt_enqueue(sums, .values = (const void *[]){dw[1]});
            tt_dequeue(go, .out = (void *[]){&one});
            continue;
        }
        tt_dequeue(sums, .out = (void *[]){dw[1]});
        for (int k = 0; k < IN * OUT; k++)
            dw[0][k] += dw[1][k]; // lanes 0 to 3, then lanes 4 to 7
        apply(there, &n, dw[0]);
        tt_enqueue(go, .values = (const void *[]){&one});
    }
    if (tt_status_of(ctx) != TT_OK)
        tt_threads_stop(group, ctx);
    return tt_close(ctx);
}

int main(void)
{
    int numbers[] = {0, 1};
    float x[ROWS * IN], dw[IN * OUT];
    tt_hash a = {0, 0}, b = {0, 1};
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_server *server = tt_cluster_local(ctx, 1, .jobs = "ps");
    ps = tt_server_target(server, 0);
    tt_threads *group = tt_threads_new(ctx);
    for (int i = 0; i < 2; i++)
        tt_threads_start(group, "worker", worker, &numbers[i]);
    tt_threads_join(group, 30000);

    tt_graph *g = tt_graph_new(ctx);
    net n = build(g);
    tt_session *alone = tt_session_new(g), *there = tt_session_new(g, .target = ps);
    for (int i = 0; i < STEPS; i++) {
        batch(i, x);
        tt_feed_value all = {n.x, x, TT_SHAPE(ROWS, IN), TT_F32};
        tt_run(alone, .feeds = &all, .n_feeds = 1, .n_fetches = 1,
               .fetches = &(tt_fetch){n.dw, dw, sizeof(dw)});
        apply(alone, &n, dw);
    }
    tt_weight_hash(alone, &a);
    tt_weight_hash(there, &b);
    bool same = a.low == b.low && a.high == b.high;
    printf("two workers and a parameter server: %s\n",
           same ? "the bits of one process" : "other bits");
    return tt_close(ctx) == TT_OK && same ? 0 : 1;
}
