/*
 * mirrored.c - training on two devices by one word. Every device has a copy of the weights and
 * takes a part of each batch of 32; the gradients are added in an order that does not depend on who
 * made them. On one device the program is the same with .devices = "cpu:0", and so is the result.
 */
#include <stdio.h>
#include <tutti/tutti.h>

static tt_hash train(const char *devices)
{
    tt_ctx *ctx = tt_open(.strategy = "mirrored", .devices = devices, .seed = 1);
    tt_data *digits = tt_digits(ctx, .count = 3200, .batch = 32);
    tt_data *unseen = tt_digits(ctx, .count = 1000, .first = 3200, .batch = 32);

    tt_model *model = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(model);
    tt_layer_dense(model, .units = 128, .act = TT_RELU);
    tt_layer_dense(model, .units = 10);
    tt_compile(model, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam(), .metrics = TT_ACCURACY);
    tt_fit(model, digits, .epochs = 1);

    tt_evaluation e = {0};
    tt_hash hash = {0, 0};
    tt_evaluate(model, unseen, &e); // spread over the devices, too
    tt_model_hash(model, &hash);
    printf("%-8s loss %.6f, accuracy %.3f, weights %016llx%016llx\n", devices, e.loss, e.metrics[0],
           (unsigned long long)hash.high, (unsigned long long)hash.low);
    return tt_close(ctx) == TT_OK ? hash : (tt_hash){0, 0};
}

int main(void)
{
    tt_hash two = train("cpu:0*2"), one = train("cpu:0");
    return one.low != 0 && one.low == two.low && one.high == two.high ? 0 : 1;
}
