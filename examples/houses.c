// houses.c - prices of houses from a CSV file: a tenth of the records is kept for testing, columns
// are normalised by the training records, and predictions come out in the units of the price.
#include <stdio.h>
#include <tutti/tutti.h>

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "examples/data/houses.csv";
    tt_ctx *ctx = tt_open(.devices = "cpu:0");

    tt_data *train = tt_csv(ctx, .file = file, .y = "price");
    tt_data *test = tt_data_split(train, .fraction = 0.1);
    for (int i = 0; i < 2; i++) {
        const char *field = i == 0 ? "x" : "y";
        tt_transform(train, "normalise", .field = field, .fit = TT_NORMALISE_FIT);
        tt_transform(test, "normalise", .field = field, .fit = TT_NORMALISE_FIT, .like = train);
    }

    tt_model *m = tt_sequential(ctx, .input = {5});
    tt_layer_dense(m, .units = 32, .act = TT_GELU);
    tt_layer_dense(m, .units = 1);
    tt_compile(m, .loss = TT_MSE, .optimizer = tt_adam(.lr = 1e-2));
    tt_evaluation e = {0};
    tt_fit(m, train, .epochs = 20);
    tt_evaluate(m, test, &e);
    printf("test loss %.4f of %lld records\n", e.loss, (long long)e.rows);

    // area, rooms, age, distance, garden, as in the file; the model normalises them itself.
    const float house[] = {120, 4, 30, 8, 1};
    float price = 0;
    tt_predict(m, house, 1, &price, .raw = true);
    printf("price %.0f\n", (double)price);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
