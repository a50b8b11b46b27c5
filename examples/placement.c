/*
 * placement.c - who computes what: scopes, pins, colocation, control edges, a callback, and the
 * plan that tells the reason for each.
 */
#include <stdio.h>
#include <string.h>
#include <tutti/extend.h>
#include <tutti/tutti.h>

// Softmaxes go to cpu:1; no opinion on others.
static const char *place(void *user, const tt_node *node)
{
    (void)user;
    return strcmp(node->op->name, "softmax") == 0 ? "cpu:1" : NULL;
}

int main(void)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2@64MiB", .soft = TT_SOFT_WARN);
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        if (tt_device_get(ctx, i, &d) == TT_OK)
            printf("%s: part of %s, %zu bytes at most\n", d.name, d.physical, d.limit);
    }
    tt_graph *g = tt_graph_new(ctx);
    tt_set_placement(g, place, NULL);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 16), .name = "x");

    tt_device_push(g, "/job:localhost/task:0");
    tt_device_push(g, "cpu:1"); // merged: /job:localhost/task:0/device:CPU:1
    tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(16, 16), .name = "w");
    tt_tensor *h = tt_matmul(g, x, w);
    tt_device_pop(g);
    tt_device_pop(g);

    tt_tensor *e = tt_exp(g, x);
    tt_pin(e, "/device:CPU:0");
    tt_tensor *a = tt_layer_norm(g, x, NULL, NULL);
    tt_colocate(a, h); // a group with h, which is pinned to cpu:1
    tt_tensor *sm = tt_softmax(g, x);
    tt_after(sm, &h, 1); // not before h, though it reads nothing of it
    tt_tensor *far = tt_neg(g, x);
    tt_pin(far, "gpu:0"); // there is none: soft placement
    tt_tensor *y = tt_sum(g, tt_add(g, tt_add(g, h, e), tt_add(g, tt_add(g, a, sm), far)));

    tt_session *s = tt_session_new(g, .trace = true);
    float xs[8 * 16] = {0}, value = 0;
    tt_feed_value feed = {x, xs, TT_SHAPE(8, 16), TT_F32};
    tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &(tt_fetch){y, &value, sizeof(value)},
           .n_fetches = 1);
    char *plan = tt_plan_print(s, .targets = &y, .n_targets = 1, .rows = 8);
    printf("%s\n", plan == NULL ? "" : plan);
    tt_string_free(ctx, plan);
    tt_trace_write(s, "placement.trace.json"); // opens in Perfetto
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
