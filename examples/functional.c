/*
 * functional.c - a model that is no list: two inputs, a layer used for both, a residual connection,
 * two outputs; what it looks like, and a forward run.
 */
#include <stdio.h>
#include <tutti/tutti.h>

#define ROWS 4

int main(void)
{
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_model *m = tt_model_new(ctx);

    // Two pictures go through one encoder: the second call uses the weights of the first.
    tt_tensor *left = tt_input(m, .shape = {8, 8, 1}, .name = "left");
    tt_tensor *right = tt_input(m, .shape = {8, 8, 1}, .name = "right");
    tt_tensor *a = tt_conv2d(m, .filters = 4, .act = TT_RELU, .name = "encode", .from = {left});
    tt_tensor *b = tt_conv2d(m, .filters = 4, .act = TT_RELU, .from = {right}, .share = a);

    // Joined by .from; without it a layer goes on from the last one.
    tt_layer_concat(m, .from = {a, b});
    tt_max_pool2d(m);
    tt_flatten(m);
    tt_tensor *h = tt_dense(m, .units = 32, .act = TT_RELU);

    // A residual branch: the sum of h and what the branch made of it.
    tt_layer_norm(m);
    tt_dense(m, .units = 32, .act = TT_GELU);
    tt_dropout(m, .rate = 0.1);
    h = tt_layer_add(m, .from = {h}, .name = "joined");

    tt_tensor *same = tt_dense(m, .units = 2, .act = TT_SOFTMAX, .name = "same");
    tt_tensor *angle = tt_dense(m, .units = 1, .name = "angle", .from = {h});
    tt_output(m, same, NULL);
    tt_output(m, angle, NULL);

    char *text = tt_summary(m, false);
    printf("%s", text == NULL ? "" : text);
    tt_string_free(ctx, text);

    float x[2][ROWS * 64], p[ROWS][2], y[ROWS];
    for (int i = 0; i < ROWS * 64; i++) {
        x[0][i] = (float)(i % 7) / 7;
        x[1][i] = (float)(i % 5) / 5;
    }
    tt_session *s = tt_session_new(tt_model_get_graph(m));
    tt_feed_value feeds[] = {{left, x[0], TT_SHAPE(ROWS, 8, 8, 1), TT_F32},
                             {right, x[1], TT_SHAPE(ROWS, 8, 8, 1), TT_F32}};
    tt_fetch fetches[] = {{same, p, sizeof(p)}, {angle, y, sizeof(y)}};
    tt_run(s, .feeds = feeds, .n_feeds = 2, .fetches = fetches, .n_fetches = 2);

    bool good = tt_status_of(ctx) == TT_OK;
    for (int i = 0; good && i < ROWS; i++) {
        printf("same %.3f, angle %.3f\n", (double)p[i][1], (double)y[i]);
        good = p[i][0] + p[i][1] > 0.999f && p[i][0] + p[i][1] < 1.001f;
    }
    return tt_close(ctx) == TT_OK && good ? 0 : 1; // the first error of all these calls
}
