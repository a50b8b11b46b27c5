/*
 * own_metric.c - a metric and callbacks of the program: two inputs, the explained
 * variance as a metric, the learning rate shown as epochs begin, progress as the command shows it.
 */
#include <stdio.h>
#include <tutti/tutti.h>

#define COUNT 512

// The sums that the explained variance needs, over the rows of a batch.
static tt_status build(void *user, tt_graph *g, const tt_metric_inputs *in, tt_tensor **states)
{
    (void)user;
    tt_tensor *error = tt_sub(g, in->output, in->target);
    states[0] = tt_sum(g, error);
    states[1] = tt_sum(g, tt_square(g, error));
    states[2] = tt_sum(g, in->target);
    states[3] = tt_sum(g, tt_square(g, in->target));
    states[4] = tt_sum(g, tt_broadcast(g, tt_scalar(g, 1), in->target));
    return TT_OK;
}

// 1 - variance of the errors / variance of the targets, from the sums over all records.
static double value(void *user, const double *const *sums, const int64_t *sizes)
{
    (void)user;
    (void)sizes;
    double n = sums[4][0];
    double errors = sums[1][0] - sums[0][0] * sums[0][0] / n;
    double targets = sums[3][0] - sums[2][0] * sums[2][0] / n;
    return 1 - errors / targets;
}

// Called before each epoch.
static tt_status before_epoch(void *user, tt_model *m, const tt_progress *p)
{
    (void)m;
    (*(int *)user)++;
    printf("epoch %lld begins at learning rate %g\n", (long long)p->epoch, p->lr);
    return TT_OK;
}

int main(void)
{
    static float width[COUNT], height[COUNT], area[COUNT];
    for (int i = 0; i < COUNT; i++) {
        width[i] = (float)(i % 32) / 16 - 1;
        height[i] = (float)(i / 32) / 8 - 1;
        area[i] = (width[i] + 1) * (height[i] + 1);
    }
    tt_ctx *ctx = tt_open(.seed = 1, .devices = "cpu:0*2", .strategy = "mirrored");
    tt_data *data = tt_memory(ctx, .count = COUNT, .batch = 32,
                              .fields = {tt_array("width", width, TT_F32, TT_SHAPE(1)),
                                         tt_array("height", height, TT_F32, TT_SHAPE(1)),
                                         tt_array("area", area, TT_F32, TT_SHAPE(1))});

    tt_model *model = tt_model_new(ctx);
    tt_tensor *w = tt_input(model, .shape = {1}, .name = "width");
    tt_tensor *h = tt_input(model, .shape = {1}, .name = "height");
    tt_tensor *both = tt_layer_concat(model, .from = {w, h});
    tt_layer_dense(model, .units = 32, .act = TT_TANH, .from = {both});
    tt_layer_dense(model, .units = 1);

    tt_compile(model, .loss = TT_MSE, .optimizer = tt_adam(.lr = 0.05, .schedule = tt_cosine()),
               .own_metrics = {tt_metric(.name = "explained", .build = build, .value = value)});
    int epochs = 0;
    tt_fit(model, data, .epochs = 16, .progress = stdout,
           .callbacks = {tt_callback(TT_AT_EPOCH_BEGIN, 4, before_epoch, &epochs)});

    tt_evaluation e = {0};
    tt_evaluate(model, data, &e);
    printf("%s %.4f\n", e.n_metrics > 0 ? e.names[0] : "", e.metrics[0]);
    bool good = epochs == 4 && e.metrics[0] > 0.95;
    return tt_close(ctx) == TT_OK && good ? 0 : 1;
}
