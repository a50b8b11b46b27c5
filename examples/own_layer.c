/*
 * own_layer.c - a layer of one's own in a list of layers: a gated product, with weights that are
 * kept, trained and saved as those of any layer.
 */
#include <stdio.h>
#include <tutti/tutti.h>

// y = (x W) sigmoid(x V), on the last axis; built once for inference and once for training.
static tt_tensor *gated(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    tt_graph *g = tt_build_graph(b);
    tt_shape x = tt_tensor_shape(in[0]);
    tt_shape shape = TT_SHAPE(x.dim[x.rank - 1], *(const int *)user);
    tt_init init = {TT_INIT_GLOROT_UNIFORM, 0, 0};
    tt_tensor *value = tt_matmul(g, in[0], tt_layer_weight(b, "value", shape, init));
    tt_tensor *gate = tt_matmul(g, in[0], tt_layer_weight(b, "gate", shape, init));
    return tt_mul(g, value, tt_sigmoid(g, gate));
}

int main(void)
{
    tt_ctx *ctx = tt_open(.seed = 1);
    tt_model *model = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_conv2d(model, .filters = 16, .kernel = {3}, .act = TT_RELU);
    tt_layer_max_pool2d(model);
    tt_layer_flatten(model);
    int units = 64;
    tt_layer_custom(model, .fn = gated, .user = &units, .name = "gated");
    tt_layer_dropout(model, .rate = 0.2);
    tt_layer_dense(model, .units = 10, .act = TT_SOFTMAX);

    tt_weight_info weights[8];
    int n = tt_model_weights(model, weights, 8);
    for (int i = 0; i < n && i < 8; i++)
        printf("%s\n", weights[i].name);
    char *text = tt_summary(model, false);
    printf("%s", text == NULL ? "" : text);
    tt_string_free(ctx, text);
    return tt_close(ctx) == TT_OK && n == 6 ? 0 : 1;
}
