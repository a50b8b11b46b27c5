// mnist_mlp.c - a digit classifier: model, data, training, saving.
#include <tutti/tutti.h>

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "data/mnist";
    tt_ctx *ctx = tt_open(.strategy = "mirrored", .devices = "all");
    tt_data *train = tt_mnist(ctx, .dir = dir, .split = "train", .batch = 256);
    tt_data *test = tt_mnist(ctx, .dir = dir, .split = "test", .batch = 256);

    tt_model *model = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(model);
    tt_layer_dense(model, .units = 128, .act = TT_RELU);
    tt_layer_dropout(model, .rate = 0.2);
    tt_layer_dense(model, .units = 10, .act = TT_SOFTMAX);

    tt_compile(model, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(.lr = 1e-3),
               .metrics = TT_ACCURACY);
    tt_fit(model, train, .epochs = 5, .validate = test);
    tt_save(model, "mnist.tutti");

    return tt_close(ctx) == TT_OK ? 0 : 1; // the first error, if any, comes out here
}
