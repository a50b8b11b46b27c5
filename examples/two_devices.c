/*
 * two_devices.c - one graph, two branches: a convolution on cpu:0 and dense layers on cpu:1, which
 * run at the same time. The same graph on one device gives the same bits.
 */
#include <stdio.h>
#include <time.h>
#include <tutti/tutti.h>

enum {
    ROWS = 61,
    STEPS = 8
};
static float pixels[ROWS * 28 * 28];

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static tt_tensor *weight(tt_graph *g, const char *name, tt_shape shape)
{
    return tt_variable(g, .shape = shape, .init = {TT_INIT_HE_NORMAL, 0, 0}, .name = name);
}

// trace: show the plan and write a trace that Perfetto opens.
static tt_hash train(const char *devices, int threads, const char *trace)
{
    tt_ctx *ctx = tt_open(.devices = devices, .threads = threads, .soft = TT_SOFT_ON);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 28, 28, 1), .name = "images");

    tt_device_push(g, "/device:CPU:0");
    tt_tensor *a = tt_conv2d(g, x, weight(g, "conv1", TT_SHAPE(3, 3, 1, 32)), .act = TT_RELU);
    a = tt_conv2d(g, a, weight(g, "conv2", TT_SHAPE(3, 3, 32, 32)), .act = TT_RELU);
    a = tt_global_avg_pool2d(g, a);
    tt_device_pop(g);
    tt_device_push(g, "/device:CPU:1");
    tt_tensor *b = tt_flatten(g, x);
    b = tt_matmul(g, b, weight(g, "dense1", TT_SHAPE(784, 2048)), .act = TT_RELU);
    b = tt_matmul(g, b, weight(g, "dense2", TT_SHAPE(2048, 32)));
    tt_device_pop(g);
    tt_tensor *loss = tt_mean(g, tt_square(g, tt_sub(g, a, b)));

    tt_tensor *vars[8], *grads[8], *updates[8];
    int n = tt_trainable(g, vars, 8);
    tt_grad(g, loss, NULL, n, vars, grads);
    for (int i = 0; i < n; i++)
        updates[i] = tt_update_adam(g, vars[i], grads[i]);

    tt_session *s = tt_session_new(g, .trace = trace != NULL);
    tt_feed_value feed = {x, pixels, TT_SHAPE(ROWS, 28, 28, 1), TT_F32};
    float value = 0;
    double began = 0;
    for (int step = 0; step < STEPS; step++) {
        began = step == 1 ? seconds() : began; // the first step makes the plan
        tt_run(s, .feeds = &feed, .n_feeds = 1, .targets = updates, .n_targets = n, .n_fetches = 1,
               .fetches = &(tt_fetch){loss, &value, sizeof(value)}, .step = step, .lr = 1e-3f);
    }
    double ms = (seconds() - began) * 1e3 / (STEPS - 1);
    char *plan = trace ? tt_plan_print(s, .targets = updates, .n_targets = n, .rows = ROWS) : NULL;
    tt_hash hash = {0};
    tt_weight_hash(s, &hash);
    printf("%s\n%-8s %6.1f ms a step, loss %.6f, weights %016llx%016llx\n", plan ? plan : "",
           devices, ms, (double)value, (unsigned long long)hash.high, (unsigned long long)hash.low);
    if (trace != NULL)
        tt_trace_write(s, trace);
    tt_string_free(ctx, plan);
    return tt_close(ctx) == TT_OK ? hash : (tt_hash){0, 0};
}

int main(int argc, char **argv)
{
    for (int i = 0; i < ROWS * 784; i++)
        pixels[i] = (float)(i * 2654435761u >> 16) / 65536.0f - 0.25f;
    tt_hash two = train("cpu:0*2", 2, argc > 1 ? argv[1] : "/dev/null");
    tt_hash one = train("cpu:0", 1, NULL);
    bool same = two.low == one.low && two.high == one.high && one.low != 0;
    puts(same ? "one device and two: the same bits" : "the bits differ");
    return same ? 0 : 1;
}
