/*
 * layers_sequence.c - what layers of sequences compute, against plain loops in double.
 */
#include "layer.h"
#include <math.h>
#include <stdlib.h>

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

// Packed qkv [rows, t, (heads + 2 kv) d] to [rows, t, heads d].
static double *attend(const double *qkv, int64_t rows, int64_t t, int heads, int kv, int64_t d,
                      bool causal)
{
    int64_t c = heads * d, packed = (heads + 2 * kv) * d;
    double *y = test_zeros((size_t)(rows * t * c), sizeof(*y));
    for (int64_t r = 0; r < rows * t; r++)
        for (int h = 0; h < heads; h++) {
            int64_t first = r / t * t, at = r % t, g = h / (heads / kv);
            int64_t n = causal ? at + 1 : t;
            double p[16], sum = 0;
            for (int64_t k = 0; k < n; k++) {
                p[k] = 0;
                for (int64_t i = 0; i < d; i++)
                    p[k] += qkv[r * packed + h * d + i] *
                            qkv[(first + k) * packed + c + g * d + i] / sqrt((double)d);
                sum += p[k] = exp(p[k]);
            }
            for (int64_t k = 0; k < n; k++)
                for (int64_t i = 0; i < d; i++)
                    y[r * c + h * d + i] +=
                        p[k] / sum * qkv[(first + k) * packed + c + (kv + g) * d + i];
        }
    return y;
}

TEST(embedding_and_positions)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4}, .dtype = TT_I32);
    test_shape(tt_layer_embedding(m, .vocab = 6, .width = 5), TT_SHAPE(TT_BATCH, 4, 5));
    test_shape(tt_layer_positional(m), TT_SHAPE(TT_BATCH, 4, 5));
    const int32_t ids[ROWS * 4] = {0, 5, 2, 2, 1, 0, 3, 4, 5, 5, 5, 0};
    double *e = test_weight(m, "embedding_1.weight"), *p = test_weight(m, "positional_1.weight");
    double *y = test_run(m, ids);
    for (int i = 0; i < ROWS * 20; i++)
        CHECK_NEAR(y[i], e[ids[i / 5] * 5 + i % 5] + p[i % 20], 1e-6);
    CHECK_OK(tt_close(ctx));
}

TEST(fixed_positions)
{
    tt_ctx *ctx = test_ctx();
    for (int c = 1; c <= 6; c++) {
        tt_model *m = tt_sequential(ctx, .input = {50, c});
        test_shape(tt_layer_positional(m, .fixed = true), TT_SHAPE(TT_BATCH, 50, c));
        CHECK_INT(tt_model_parameters(m), 0);
        float *x = test_input((int64_t)ROWS * 50 * c);
        double *y = test_run(m, x);
        for (int i = 0; i < ROWS * 50 * c; i++) {
            int t = i / c % 50, k = i % c;
            double angle = t * pow(10000, -(double)(k / 2 * 2) / c);
            double wave = k % 2 == 0 ? sin(angle) : cos(angle);
            CHECK_NEAR(y[i], (double)x[i] + wave, 1e-5);
        }
    }
    CHECK_OK(tt_close(ctx));
}

TEST(attention_layer)
{
    for (int kv = 1; kv <= 4; kv *= 2) {
        tt_ctx *ctx = test_ctx();
        tt_model *m = tt_sequential(ctx, .input = {5, 8});
        test_shape(
            tt_layer_attention(m, .heads = 4, .kv_heads = kv == 4 ? 0 : kv, .causal = kv > 1),
            TT_SHAPE(TT_BATCH, 5, 8));
        int packed = (4 + 2 * kv) * 2;
        CHECK_INT(tt_model_parameters(m), 8 * packed + packed + 72);
        float *x = test_input(ROWS * 40);
        double *qw = test_weight(m, "attention_1.qkv.weight"),
               *qb = test_weight(m, "attention_1.qkv.bias");
        double *pw = test_weight(m, "attention_1.proj.weight"),
               *pb = test_weight(m, "attention_1.proj.bias");
        double *qkv = test_linear(test_doubles(x, ROWS * 40), ROWS * 5, 8, qw, packed, qb);
        double *want = test_linear(attend(qkv, ROWS, 5, 4, kv, 2, kv > 1), ROWS * 5, 8, pw, 8, pb);
        test_near(test_run(m, x), want, ROWS * 40, 1e-4);
        CHECK_OK(tt_close(ctx));
    }
}

static void check_block(bool rms, bool causal)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {5, 8});
    test_shape(tt_layer_transformer_block(m, .heads = 2, .hidden = rms ? 12 : 0, .rms = rms,
                                          .no_causal = !causal, .dropout = 0.5, .name = "b"),
               TT_SHAPE(TT_BATCH, 5, 8));
    int64_t n = ROWS * 5, hidden = rms ? 12 : 32;
    float *x = test_input(n * 8);
    double *in = test_doubles(x, n * 8);
    double *b1 = rms ? NULL : test_weight(m, "b.norm1.bias"),
           *b2 = rms ? NULL : test_weight(m, "b.norm2.bias");
    double *y = test_norm(in, n, 8, test_weight(m, "b.norm1.weight"), b1, rms);
    double *qw = test_weight(m, "b.attn.qkv.weight"), *qb = test_weight(m, "b.attn.qkv.bias");
    double *pw = test_weight(m, "b.attn.proj.weight"), *pb = test_weight(m, "b.attn.proj.bias");
    y = attend(test_linear(y, n, 8, qw, 24, qb), ROWS, 5, 2, 2, 4, causal);
    y = test_linear(y, n, 8, pw, 8, pb);
    for (int64_t i = 0; i < n * 8; i++)
        in[i] += y[i];
    y = test_norm(in, n, 8, test_weight(m, "b.norm2.weight"), b2, rms);
    double *fw = test_weight(m, "b.mlp.fc.weight"), *fb = test_weight(m, "b.mlp.fc.bias");
    double *ow = test_weight(m, "b.mlp.proj.weight"), *ob = test_weight(m, "b.mlp.proj.bias");
    y = test_linear(y, n, 8, fw, hidden, fb);
    for (int64_t i = 0; i < n * hidden; i++)
        y[i] = gelu(y[i]);
    y = test_linear(y, n, hidden, ow, 8, ob);
    for (int64_t i = 0; i < n * 8; i++)
        in[i] += y[i];
    test_near(test_run(m, x), in, n * 8, 1e-3);
    CHECK_OK(tt_close(ctx));
}

TEST(transformer_block_layer)
{
    check_block(false, true);
    check_block(true, true);
    check_block(false, false);
}
