/*
 * by_name.c - layers and sources made by the names of their kinds: the same as by their own calls,
 * zero without a special meaning, and mistakes that name the culprit.
 */
#include "../test.h"
#include <string.h>

static tt_model *model_of(tt_ctx *ctx, int width)
{
    return tt_sequential(ctx, .input = {width});
}

static void same_hash(tt_model *a, tt_model *b)
{
    tt_hash x, y;
    CHECK_OK(tt_model_hash(a, &x));
    CHECK_OK(tt_model_hash(b, &y));
    CHECK(x.low == y.low && x.high == y.high);
}

TEST(a_layer_by_name_is_the_same_layer)
{
    tt_ctx *ctx = test_ctx();
    tt_model *a = model_of(ctx, 6), *b = model_of(ctx, 6);
    tt_layer_dense(a, .units = 5, .act = TT_RELU, .init = {.kind = TT_INIT_HE_NORMAL});
    tt_layer_dense(a, .units = 3, .no_bias = true, .name = "last");
    CHECK(tt_catalog_layer(
        b, "dense", .options = "{\"units\": \"5\", \"act\": \"relu\", \"init\": \"he_normal\"}"));
    CHECK(tt_catalog_layer(b, "dense", .options = "{\"units\": \"3\", \"no_bias\": \"true\"}",
                           .name = "last"));
    same_hash(a, b);
    CHECK_OK(tt_close(ctx));
}

TEST(a_layer_by_name_takes_inputs_and_shares_weights)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = model_of(ctx, 4);
    tt_tensor *a = tt_catalog_layer(m, "dense", .options = "{\"units\": \"4\"}");
    tt_tensor *b = tt_catalog_layer(m, "dense", .options = "{\"units\": \"4\"}", .share = a);
    CHECK(tt_catalog_layer(m, "add", .from = {a, b}) != NULL);
    CHECK_INT(tt_model_parameters(m), 20);
    CHECK_OK(tt_close(ctx));
}

// In tt_layer_mlp() a zero, TT_LINEAR, is the default, relu.
TEST(a_zero_by_name_is_itself)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = model_of(ctx, 4);
    CHECK(tt_catalog_layer(m, "mlp", .options = "{\"units\": \"[3, 2]\", \"act\": \"linear\"}"));
    char *text = tt_graph_print(tt_model_get_graph(m));
    CHECK(strstr(text, "relu") == NULL);
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
}

TEST(a_source_by_name_has_the_same_records)
{
    tt_ctx *ctx = test_ctx();
    tt_data *a = tt_digits(ctx, .count = 20, .first = 7, .set = 3, .batch = 20, .no_shuffle = true);
    tt_data *b = tt_catalog_source(
        ctx, "digits", .options = "{\"count\": \"20\", \"first\": \"7\", \"seed\": \"3\"}",
        .batch = 20, .no_shuffle = true);
    tt_batch_data x, y;
    CHECK_OK(tt_data_start(a, 0, 0));
    CHECK_OK(tt_data_start(b, 0, 0));
    CHECK_OK(tt_data_next(a, &x));
    CHECK_OK(tt_data_next(b, &y));
    CHECK_INT(y.rows, 20);
    CHECK(memcmp(x.fields[0], y.fields[0], 20 * 784 * sizeof(float)) == 0);
    CHECK(memcmp(x.fields[1], y.fields[1], 20 * sizeof(int32_t)) == 0);
    tt_data_stop(a);
    tt_data_stop(b);
    CHECK_OK(tt_close(ctx));
}

static void says(tt_ctx *ctx, const char *words)
{
    tt_error e = tt_last_error(ctx);
    ck_assert_msg(strstr(e.message, words) != NULL, "no '%s' in '%s'", words, e.message);
    tt_clear_error(ctx);
}

TEST(mistakes_in_names_are_told)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = model_of(ctx, 4);
    CHECK(tt_catalog_layer(m, "dens", .options = "{}") == NULL);
    says(ctx, "there is no layer 'dens'; did you mean 'dense'?");
    CHECK(tt_catalog_layer(m, "dense", .options = "{\"unit\": \"3\"}") == NULL);
    says(ctx, "units");
    CHECK(tt_catalog_layer(m, "dense", .options = "{\"units\": 3}") == NULL);
    says(ctx, "option 'units' is not a string");
    CHECK(tt_catalog_layer(m, "dense", .options = "[1]") == NULL);
    says(ctx, "dense: the options are not a JSON object: '[1]'");
    CHECK(tt_catalog_layer(m, "dense", .options = "{\"units\": \"-3\"}") == NULL);
    says(ctx, "units");
    CHECK(tt_catalog_layer(m, "dense", .name = "a") == NULL);
    says(ctx, "units must be given");
    CHECK(tt_catalog_source(ctx, "cvs", .options = NULL) == NULL);
    says(ctx, "there is no source 'cvs'; did you mean 'csv'?");
    CHECK(tt_catalog_source(ctx, "digits", .options = "{\"count\": \"x\"}") == NULL);
    says(ctx, "count");
    CHECK_OK(tt_close(ctx));
}
