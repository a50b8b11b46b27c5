/*
 * layers_attention.c - multi_head_attention with two inputs and masks, and what its messages and
 * those of whole models say. Values of its other options: golden_layers.c.
 */
#include "layer.h"
#include <tutti/models.h>

#define TQ 4
#define TK 6
#define C  4

static const int32_t lengths[ROWS] = {6, 2, 3};

// Output of queries to keys, with a mask of this shape (rank 0: none).
static double *attend(int rank, const void *mask, tt_dtype type, int64_t keys)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *q = tt_input(m, .shape = {TQ, C}, .name = "q");
    tt_tensor *k = tt_input(m, .shape = {keys, C + 1}, .name = "k"), *given = NULL;
    if (rank > 0) {
        tt_input_opts o = {.opts_size = sizeof(o), .name = "mask", .dtype = type};
        const int64_t shapes[][2] = {{1}, {TK}, {TQ, TK}};
        memcpy(o.shape, shapes[rank - 1], sizeof(shapes[0]));
        given = tt_input_with(m, &o);
    }
    tt_tensor *y = tt_layer_multi_head_attention(m, .heads = 2, .rotary = true, .units = 3,
                                                 .name = "a", .from = {q, k, given});
    ck_assert_msg(y != NULL, "%s", tt_last_error(ctx).message);
    test_shape(y, TT_SHAPE(TT_BATCH, TQ, 3));
    static const char *const names[] = {"q_proj", "k_proj", "v_proj", "out_proj"};
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof(name), "a.%s.weight", names[i]);
        (void)test_weight(m, name);
    }
    float *all = test_input(ROWS * (TQ * C + TK * (C + 1))), *cut = all + ROWS * TQ * C;
    float *some = test_zeros((size_t)(ROWS * keys * (C + 1)), sizeof(*some));
    for (int r = 0; r < ROWS; r++)
        memcpy(some + r * keys * (C + 1), cut + r * TK * (C + 1),
               (size_t)keys * (C + 1) * sizeof(*some));
    const void *x[] = {all, some, mask};
    double *out = test_run_all(m, x, ROWS);
    CHECK_OK(tt_close(ctx));
    return out;
}

TEST(masks_hide_keys)
{
    uint8_t keys[ROWS][TK], pairs[ROWS][TQ][TK];
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < TK; j++) {
            keys[r][j] = j < lengths[r];
            for (int i = 0; i < TQ; i++)
                pairs[r][i][j] = keys[r][j];
        }
    const double *all = attend(0, NULL, TT_F32, TK), *by_length = attend(1, lengths, TT_I32, TK);
    test_near(attend(2, keys, TT_BOOL, TK), by_length, ROWS * TQ * 3, 0);
    test_near(attend(3, pairs, TT_BOOL, TK), by_length, ROWS * TQ * 3, 0);
    test_near(by_length, all, TQ * 3, 0); // the first record has all keys
    for (int r = 1; r < ROWS; r++) {
        const double *few = attend(0, NULL, TT_F32, lengths[r]);
        test_near(by_length + r * TQ * 3, few + r * TQ * 3, TQ * 3, 1e-6);
        ck_assert_msg(by_length[r * TQ * 3] != all[r * TQ * 3], "row %d: the mask hides nothing",
                      r);
    }
}

TEST(a_length_of_zero_gives_the_bias)
{
    static const int32_t none[ROWS] = {0, 0, 0};
    const double *y = attend(1, none, TT_I32, TK);
    for (int i = 0; i < ROWS * TQ * 3; i++)
        CHECK(y[i] == 0);
}

// ---- messages --------------------------------------------------------------------------------

static void check_message(tt_ctx *ctx, const tt_tensor *y, const char *want)
{
    CHECK(y == NULL);
    ck_assert_msg(strstr(tt_last_error(ctx).message, want) != NULL, "'%s', not '%s'",
                  tt_last_error(ctx).message, want);
    tt_clear_error(ctx);
}

TEST(attention_and_models_say_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_model_new(ctx);
    tt_tensor *x = tt_input(m, .shape = {TQ, 6}), *n = tt_input(m, .shape = {1});
    tt_tensor *p = tt_input(m, .shape = {5}, .dtype = TT_I32), *t = tt_input(m, .shape = {6});
    tt_tensor *i = tt_input(m, .shape = {6, 6, 1});
    check_message(ctx, tt_layer_multi_head_attention(m, .heads = 4, .from = {x}),
                  "6 channels do not divide into 4 heads; set size");
    check_message(ctx, tt_layer_multi_head_attention(m, .heads = 3, .kv_heads = 2, .from = {x}),
                  "3 heads cannot share 2 kv_heads");
    check_message(ctx, tt_layer_multi_head_attention(m, .heads = 2, .rotary = true, .from = {x}),
                  "heads are 3 wide; rotary needs an even width");
    check_message(ctx, tt_layer_multi_head_attention(m, .heads = 2, .from = {x, x, n}),
                  "the mask is f32 [b, 1]; it must be lengths (i32 [batch]), keys [batch, 4]");
    check_message(ctx, tt_layer_multi_head_attention(m, .heads = 2, .from = {x, x, p}),
                  "the mask is i32 [b, 5]");
    check_message(ctx, tt_layer_lstm_lm(m, .vocab = 9, .width = 4, .tied = true, .from = {p}),
                  "width is 4 and units is 128; with tied they must be equal");
    check_message(ctx, tt_layer_vit(m, .patch = 4, .from = {i}),
                  "images of 6 x 6 pixels are not a whole number of patches of 4");
    check_message(ctx, tt_layer_unet(m, .width = 2, .depth = 3, .from = {i}),
                  "after 2 halvings the image is 1 x 1; set depth to 2");
    check_message(ctx, tt_layer_tabular(m, .categories = {2, {3, 3}}, .from = {n}),
                  "with at least 2 columns");
    check_message(ctx, tt_layer_autoencoder(m, .units = {1, {3}}, .from = {p}),
                  "autoencoder: x is i32");
    CHECK(tt_layer_tabular(m, .categories = {1, {3}}, .units = {1, {4}}, .from = {t}) != NULL);
    CHECK_OK(tt_close(ctx));
}
