/*
 * precision.c - training in bf16 and f16: one hash for all devices, threads and instruction sets,
 * losses near those of f32, activations of half the size.
 */
#include "fit_models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tutti/extend.h>

// The hashes are part of the interface, as those of fit_hash.c are.
static const char *const golden[2][FIT_N_KINDS] = {
    {"27d8c22b7c513961dd7997b105262d7e", "1dd4c7f4cea0b1b26458e792208d8376",
     "b86103a0e614b3d98157decac3a99f88"},
    {"4a23557a47fec794427ce2dfa2a86ae6", "c7af6e522b0033937c793a33d7941643",
     "9aa6da6fff3c5e779ad2e3d425c79f7e"},
};

typedef struct outcome {
    char hash[40];
    double loss;
} outcome;

static outcome train(fit_kind kind, tt_precision p, const char *devices, int threads,
                     const char *isa)
{
    tt_ctx *ctx =
        tt_open(.devices = devices, .threads = threads, .isa = isa, .seed = 7,
                .strategy = devices == NULL ? NULL : "mirrored", .on_event = test_ignore_event);
    tt_model *m = fit_model_in(ctx, kind, p);
    tt_hash h;
    outcome out;
    tt_fit_report r;
    ck_assert_msg(m != NULL &&
                      tt_fit(m, fit_data(ctx, kind, 130), .epochs = 2, .batch = 27) == TT_OK,
                  "%s", tt_last_error(ctx).message);
    CHECK_OK(tt_model_hash(m, &h));
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK_INT(r.skipped, 0);
    out.loss = r.last->loss;
    snprintf(out.hash, sizeof(out.hash), "%016llx%016llx", (unsigned long long)h.high,
             (unsigned long long)h.low);
    CHECK_OK(tt_close(ctx));
    return out;
}

static void check_hash(fit_kind kind, tt_precision p)
{
    const char *want = golden[p - 1][kind];
    for (int i = 0; test_isa(i) != NULL; i++) {
        for (int threads = 1; threads <= 2; threads++) {
            outcome o = train(kind, p, NULL, threads, test_isa(i));
            ck_assert_msg(strcmp(o.hash, want) == 0, "%s, %s, %d threads: %s", fit_name(kind),
                          test_isa(i), threads, o.hash);
        }
    }
    static const char *const devices[] = {"cpu:0*2", "cpu:0*3"};
    for (int i = 0; i < 2; i++) {
        outcome o = train(kind, p, devices[i], 2, NULL);
        ck_assert_msg(strcmp(o.hash, want) == 0, "%s on %s: %s", fit_name(kind), devices[i],
                      o.hash);
    }
}

TEST(an_mlp_in_bf16_trains_to_its_hash_anywhere)
{
    check_hash(FIT_MLP, TT_PRECISION_BF16);
}

TEST(a_cnn_in_bf16_trains_to_its_hash_anywhere)
{
    check_hash(FIT_CNN, TT_PRECISION_BF16);
}

TEST(a_gpt_in_bf16_trains_to_its_hash_anywhere)
{
    check_hash(FIT_GPT, TT_PRECISION_BF16);
}

TEST(an_mlp_in_f16_trains_to_its_hash_anywhere)
{
    check_hash(FIT_MLP, TT_PRECISION_F16);
}

TEST(a_cnn_in_f16_trains_to_its_hash_anywhere)
{
    check_hash(FIT_CNN, TT_PRECISION_F16);
}

TEST(a_gpt_in_f16_trains_to_its_hash_anywhere)
{
    check_hash(FIT_GPT, TT_PRECISION_F16);
}

TEST(half_precision_trains_to_the_loss_of_f32)
{
    for (fit_kind kind = 0; kind < FIT_N_KINDS; kind++) {
        outcome want = train(kind, TT_PRECISION_F32, NULL, 1, NULL);
        for (tt_precision p = TT_PRECISION_BF16; p <= TT_PRECISION_F16; p++) {
            outcome got = train(kind, p, NULL, 1, NULL);
            double most = p == TT_PRECISION_BF16 ? 0.02 : 0.005;
            ck_assert_msg(fabs(got.loss - want.loss) < most && strcmp(got.hash, want.hash) != 0,
                          "%s, precision %d: loss %g, in f32 %g", fit_name(kind), (int)p, got.loss,
                          want.loss);
        }
    }
}

// The gradient of a weight that was cast is the f32 sum, not the sum rounded and widened again.
TEST(gradients_of_weights_leave_half_products_in_f32)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3), .name = "x");
    tt_tensor *image = tt_reshape(g, x, TT_SHAPE(TT_BATCH, 1, 3, 1));
    tt_tensor *vars[] = {
        tt_variable(g, .shape = TT_SHAPE(3, 2), .name = "w"),
        tt_variable(g, .shape = TT_SHAPE(2), .name = "b"),
        tt_variable(g, .shape = TT_SHAPE(1, 2, 1, 1), .name = "conv"),
        tt_variable(g, .shape = TT_SHAPE(1, 2, 1, 1), .name = "depthwise"),
    };
    tt_tensor *half[4], *grads[4];
    for (int i = 0; i < 4; i++)
        half[i] = tt_cast(g, vars[i], TT_BF16);
    image = tt_cast(g, image, TT_BF16);
    tt_tensor *y = tt_sum(g, tt_matmul(g, tt_cast(g, x, TT_BF16), half[0], .bias = half[1]));
    y = tt_add(g, y, tt_sum(g, tt_conv2d(g, image, half[2])));
    y = tt_add(g, y, tt_sum(g, tt_depthwise_conv2d(g, image, half[3])));
    CHECK_OK(tt_grad(g, y, NULL, 4, vars, grads));
    // 300 rows of 1 and one of 1/128: bf16 has eight bits of the sums, f32 all of them.
    float rows[301 * 3], out[4][6];
    for (int i = 0; i < 301 * 3; i++)
        rows[i] = i < 300 * 3 ? 1 : 1.0f / 128;
    tt_feed_value feed = {x, rows, TT_SHAPE(301, 3), TT_F32};
    tt_fetch fetches[4];
    for (int i = 0; i < 4; i++) {
        CHECK_INT(tt_tensor_dtype(grads[i]), TT_F32);
        tt_shape s = tt_tensor_shape(vars[i]);
        fetches[i] = (tt_fetch){grads[i], out[i], (size_t)tt_shape_count(&s) * sizeof(float)};
    }
    CHECK_OK(tt_run(tt_session_new(g), .feeds = &feed, .n_feeds = 1, .fetches = fetches,
                    .n_fetches = 4));
    CHECK(out[0][0] == 300 + 1.0f / 128);
    CHECK(out[1][0] == 301);
    CHECK(out[2][0] == 600 + 2.0f / 128);
    CHECK(out[3][1] == 600 + 2.0f / 128);
    CHECK_OK(tt_close(ctx));
}

// ---- layers of the caller's own --------------------------------------------------------------

static tt_tensor *gate(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)user, (void)n_in;
    tt_graph *g = tt_build_graph(b);
    tt_init init = {TT_INIT_GLOROT_UNIFORM, 0, 0};
    CHECK_INT(tt_tensor_dtype(in[0]), tt_build_is_training(b) ? TT_BF16 : TT_F32);
    tt_tensor *w = tt_layer_weight(b, "w", TT_SHAPE(5, 5), init);
    return tt_mul(g, in[0], tt_sigmoid(g, tt_matmul(g, in[0], w)));
}

static tt_status infer_same(tt_infer *q)
{
    q->shape[0] = q->in[0]->shape;
    q->dtype[0] = q->in[0]->dtype;
    return TT_OK;
}

static const tt_op only_f32 = {
    .name = "only_f32", .inputs = 1, .types = 1u << TT_F32, .infer = infer_same};

static tt_tensor *narrow(void *user, tt_build *b, tt_tensor *const *in, int n_in)
{
    (void)user, (void)n_in;
    return tt_node_out(tt_build_graph(b), &only_f32, 1, in, NULL);
}

TEST(a_layer_of_ones_own_computes_in_half_precision)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {5});
    tt_layer_custom(m, .fn = gate, .name = "gate");
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(m, .loss = TT_MSE, .precision = TT_PRECISION_BF16));
    float x[20] = {1, 2, 3}, y[4] = {1};
    tt_progress p;
    tt_batch_data batch = {.rows = 4, .fields = {x, y}};
    CHECK_OK(tt_train_step(m, &batch, &p));
    CHECK(p.loss > 0 && !p.is_skipped && p.loss_scale == 0);
    CHECK_OK(tt_close(ctx));
}

TEST(what_has_no_half_form_is_named)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {5});
    tt_layer_custom(m, .fn = narrow, .name = "mine");
    CHECK(tt_compile(m, .loss = TT_MSE, .precision = TT_PRECISION_F16) == TT_EDTYPE);
    CHECK_MESSAGE(ctx, "mine: only_f32: has no kernels for f16");
    tt_clear_error(ctx);
    m = tt_sequential(ctx, .input = {5}, .dtype = TT_F64);
    tt_layer_dense(m, .units = 1);
    CHECK(tt_compile(m, .loss = TT_MSE, .precision = TT_PRECISION_BF16) == TT_EDTYPE);
    CHECK_MESSAGE(ctx, "precision bf16, but input 'x' is f64");
    tt_clear_error(ctx);
    CHECK(tt_compile(m, .loss = TT_MSE, .precision = (tt_precision)3) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "there is no precision 3");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// ---- memory ----------------------------------------------------------------------------------

static size_t activations(tt_precision p)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {32}, .dtype = TT_I32);
    tt_layer_gpt(m, .layers = 8, .heads = 4, .width = 64, .vocab = 100);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .precision = p);
    static int32_t x[64 * 32], y[64 * 32];
    tt_plan_memory memory;
    tt_batch_data batch = {.rows = 64, .fields = {x, y}};
    CHECK_OK(tt_train_step(m, &batch, NULL));
    CHECK_OK(tt_plan_memory_get(tt_model_get_session(m), 0, &memory));
    CHECK_OK(tt_close(ctx));
    return memory.activations;
}

TEST(activations_take_half_the_memory)
{
    size_t wide = activations(TT_PRECISION_F32), half = activations(TT_PRECISION_BF16);
    ck_assert_msg(half < wide * 6 / 10 && activations(TT_PRECISION_F16) <= half * 11 / 10,
                  "%zu bytes, in f32 %zu", half, wide);
}
