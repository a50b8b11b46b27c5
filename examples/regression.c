/*
 * regression.c - a curve learned from arrays of one's own: training with a callback, saving,
 * loading into a second model, predicting.
 */
#include <stdio.h>
#include <tutti/tutti.h>

#define COUNT 512

// Called after every epoch; TT_ESTOP ends the fit, which then has succeeded.
static tt_status look(void *user, tt_model *m, const tt_progress *p)
{
    (void)m;
    *(double *)user = p->loss;
    return p->loss < 2e-5 ? TT_ESTOP : TT_OK;
}

static tt_model *curve(tt_ctx *ctx)
{
    tt_model *model = tt_sequential(ctx, .input = {1});
    tt_layer_dense(model, .units = 32, .act = TT_RELU);
    tt_layer_dense(model, .units = 32, .act = TT_RELU);
    tt_layer_dense(model, .units = 1);
    return model;
}

int main(void)
{
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i / (COUNT / 2) - 1; // from -1 to 1
        y[i] = x[i] * x[i] * x[i] - x[i] / 2;
    }
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_data *data = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(1), .y_shape = TT_SHAPE(1),
                              .count = COUNT, .batch = 32);
    tt_model *model = curve(ctx);
    double loss = 0;
    tt_compile(model, .loss = TT_MSE, .optimizer = tt_adam(.lr = 3e-3));
    tt_fit(model, data, .epochs = 60, .callbacks = {tt_callback(TT_AT_EPOCH, 1, look, &loss)});
    tt_save(model, "curve.tutti");

    tt_model *again = curve(ctx);
    float at[3] = {-0.5f, 0, 0.75f}, out[3] = {0};
    tt_load(again, "curve.tutti");
    tt_predict(again, at, 3, out);
    printf("loss %.6f\n", loss);
    for (int i = 0; i < 3; i++)
        printf("%5.2f: %.3f, should be %.3f\n", at[i], out[i], at[i] * at[i] * at[i] - at[i] / 2);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
