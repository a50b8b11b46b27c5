/*
 * functional.c - a model that is no list: two inputs, a layer used for both, a residual connection,
 * two outputs with a loss each; what it looks like, and how it learns.
 */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

#define SIDE 8

static void draw_bar(float *picture, uint64_t bits, int *lies, int *at)
{
    *lies = (int)(bits & 1);
    *at = (int)(bits >> 1 & 7);
    memset(picture, 0, sizeof(float) * SIDE * SIDE);
    for (int k = 0; k < SIDE; k++)
        picture[*lies ? *at * SIDE + k : k * SIDE + *at] = 1;
}

// Record i: two pictures of a bar each; do both lie or stand, and how far apart are their places?
static tt_status read_pair(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    (void)ctx, (void)self;
    uint64_t bits = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    int lies[2], at[2];
    for (int k = 0; k < 2; k++)
        draw_bar(out[k], bits >> (40 + 8 * k), &lies[k], &at[k]);
    *(int32_t *)out[2] = lies[0] == lies[1];
    *(float *)out[3] = (float)(at[0] - at[1]) / SIDE;
    return TT_OK;
}

int main(void)
{
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_model *m = tt_model_new(ctx);

    // Two pictures go through one encoder: the second call uses the weights of the first.
    tt_tensor *left = tt_input(m, .shape = {SIDE, SIDE, 1}, .name = "left");
    tt_tensor *right = tt_input(m, .shape = {SIDE, SIDE, 1}, .name = "right");
    tt_tensor *a =
        tt_layer_conv2d(m, .filters = 4, .act = TT_RELU, .name = "encode", .from = {left});
    tt_tensor *b = tt_layer_conv2d(m, .filters = 4, .act = TT_RELU, .from = {right}, .share = a);

    // Joined by .from; without it a layer goes on from the last one.
    tt_layer_concat(m, .from = {a, b});
    tt_layer_flatten(m);
    tt_tensor *h = tt_layer_dense(m, .units = 32, .act = TT_RELU);

    // A residual branch: the sum of h and what the branch made of it.
    tt_layer_layer_norm(m);
    tt_layer_dense(m, .units = 32, .act = TT_GELU);
    h = tt_layer_add(m, .from = {h}, .name = "joined");
    tt_output(m, tt_layer_dense(m, .units = 2, .name = "same"), NULL);
    tt_output(m, tt_layer_dense(m, .units = 1, .name = "apart", .from = {h}), NULL);

    char *text = tt_summary(m, false);
    printf("%s", text == NULL ? "" : text);
    tt_string_free(ctx, text);

    tt_shape picture = TT_SHAPE(SIDE, SIDE, 1);
    tt_source pairs = {.count = 2048,
                       .n_fields = 4,
                       .fields = {{"left", TT_F32, picture, 0},
                                  {"right", TT_F32, picture, 0},
                                  {"is_same", TT_I32, TT_SCALAR, 2},
                                  {"distance", TT_F32, TT_SHAPE(1), 0}},
                       .read = read_pair};
    tt_compile(m,
               .losses = {tt_loss(.kind = TT_CROSS_ENTROPY), tt_loss(.kind = TT_MSE, .weight = 2)},
               .optimizer = tt_adam(.lr = 3e-3), .metrics = TT_ACCURACY);
    tt_fit(m, tt_data_new(ctx, &pairs, .batch = 32), .epochs = 10);

    tt_fit_report report = {0};
    tt_fit_report_get(m, &report);
    double accuracy = report.last->metrics[0];
    printf("after %lld steps: loss %.4f, accuracy %.4f\n", (long long)report.steps,
           report.last->loss, accuracy);
    return tt_close(ctx) == TT_OK && accuracy > 0.9 ? 0 : 1;
}
