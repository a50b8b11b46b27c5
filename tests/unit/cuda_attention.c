/*
 * cuda_attention.c - attention of the CUDA module alone, called as a plan calls it: against sums in
 * double; rows alone against rows together, to the bit. With TUTTI_CUDA_OWN=1 the module leaves
 * cuDNN alone, so two runs show whether the library or a kernel of ours is wrong.
 */
#include "base/base.h"
#include "cuda_floats.h"
#include "op/attention.h"
#include <math.h>
#include <stdlib.h>

typedef struct attention {
    int64_t batch, tq, tk, d, heads, kv_heads;
    bool causal, packed;
    int mask; // 0: none, 1: [tq, tk], 2: [batch, tq, tk]
    double scale;
} attention;

static const attention attentions[] = {
    {1, 1, 1, 8, 1, 1, false, false, 0, 0},     {2, 70, 70, 64, 2, 2, true, true, 0, 0},
    {2, 64, 64, 64, 2, 2, true, false, 0, 0},   {1, 128, 128, 128, 2, 1, true, true, 0, 0},
    {3, 5, 9, 16, 4, 2, false, false, 0, 0.3},  {2, 9, 5, 24, 2, 2, true, false, 0, 0},
    {2, 33, 65, 10, 2, 1, false, false, 1, 0},  {2, 20, 20, 8, 2, 2, true, true, 2, 0},
    {1, 66, 66, 72, 1, 1, false, false, 0, 0},  {1, 3, 130, 200, 1, 1, false, false, 0, 0},
    {1, 192, 192, 64, 2, 2, false, true, 0, 0},
};

typedef struct heads {
    float *q, *k, *v, *mask, *dy;
    int64_t q_row, kv_row;
} heads;

// One query of one head, in double: p of each key, and the statistic.
static double weights(const attention *t, const heads *x, double scale, int64_t b, int64_t h,
                      int64_t i, double *p)
{
    double max = -INFINITY, sum = 0;
    int64_t g = h / (t->heads / t->kv_heads);
    for (int64_t j = 0; j < t->tk; j++) {
        double s = 0;
        bool sees =
            (!t->causal || j <= i) &&
            (t->mask == 0 || x->mask[((t->mask == 2 ? b * t->tq : 0) + i) * t->tk + j] != 0);
        for (int64_t c = 0; c < t->d; c++)
            s += (double)x->q[(b * t->tq + i) * x->q_row + h * t->d + c] *
                 (double)x->k[(b * t->tk + j) * x->kv_row + g * t->d + c];
        p[j] = sees ? s * scale : -INFINITY;
        max = p[j] > max ? p[j] : max;
    }
    for (int64_t j = 0; j < t->tk; j++) {
        p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - max);
        sum += p[j];
    }
    for (int64_t j = 0; j < t->tk && sum > 0; j++)
        p[j] /= sum;
    return sum > 0 ? max + log(sum) : 0;
}

// Everything of one case: y, lse, dq, dk, dv.
static void reference(const attention *t, const heads *x, double *y, double *lse, double *dq,
                      double *dk, double *dv)
{
    double p[512], ds[512], scale = t->scale != 0 ? t->scale : 1 / sqrt((double)t->d);
    int64_t d = t->d, row = t->heads * d;
    for (int64_t u = 0; u < t->batch * t->heads * t->tq; u++) {
        int64_t b = u / t->tq / t->heads, h = u / t->tq % t->heads, i = u % t->tq;
        int64_t g = h / (t->heads / t->kv_heads), at = (b * t->tq + i) * row + h * d;
        double delta = 0;
        lse[u] = weights(t, x, scale, b, h, i, p);
        for (int64_t c = 0; c < d; c++) {
            for (int64_t j = 0; j < t->tk; j++)
                y[at + c] += p[j] * (double)x->v[(b * t->tk + j) * x->kv_row + g * d + c];
            delta += y[at + c] * (double)x->dy[at + c];
        }
        for (int64_t j = 0; j < t->tk; j++) {
            int64_t kv = (b * t->tk + j) * x->kv_row + g * d;
            ds[j] = -delta;
            for (int64_t c = 0; c < d; c++)
                ds[j] += (double)x->dy[at + c] * (double)x->v[kv + c];
            ds[j] *= p[j] * scale;
            for (int64_t c = 0; c < d; c++) {
                int64_t q = (b * t->tq + i) * x->q_row + h * d + c;
                dq[q] += ds[j] * (double)x->k[kv + c];
                dk[kv + c] += ds[j] * (double)x->q[q];
                dv[kv + c] += p[j] * (double)x->dy[at + c];
            }
        }
    }
}

// Inputs on the device and here; returns how many the forward has.
static int make_heads(const attention *t, tt_dtype type, tt_arg *in, heads *x)
{
    int64_t all = t->heads + 2 * t->kv_heads;
    int n = 1;
    if (t->packed) {
        in[0] = test_floats_random(type, (tt_shape){3, {t->batch, t->tq, all * t->d}}, 1, &x->q, 0);
        x->k = x->q + t->heads * t->d;
        x->v = x->k + t->kv_heads * t->d;
        x->q_row = x->kv_row = all * t->d;
    } else {
        tt_shape q = {3, {t->batch, t->tq, t->heads * t->d}};
        tt_shape k = {3, {t->batch, t->tk, t->kv_heads * t->d}};
        in[0] = test_floats_random(type, q, 1, &x->q, 0);
        in[n++] = test_floats_random(type, k, 2, &x->k, 0);
        in[n++] = test_floats_random(type, k, 3, &x->v, 0);
        x->q_row = q.dim[2];
        x->kv_row = k.dim[2];
    }
    if (t->mask != 0) {
        tt_shape flat = {2, {t->tq, t->tk}}, full = {3, {t->batch, t->tq, t->tk}};
        tt_shape s = t->mask == 1 ? flat : full;
        int64_t count = test_arg(TT_BOOL, s).count;
        x->mask = test_floats(count);
        test_fill(x->mask, count, 9, 0, 1);
        for (int64_t i = 0; i < count; i++)
            x->mask[i] = x->mask[i] > 0.4f && i / t->tk % t->tq != 2; // query 2 sees no key
        in[n++] = test_floats_put(TT_BOOL, s, x->mask, 0);
    }
    return n;
}

static void try_attention(const attention *t, tt_dtype type)
{
    tti_attention_attr attr = {.heads = t->heads,
                               .kv_heads = t->kv_heads,
                               .causal = t->causal,
                               .scale = t->scale,
                               .packed = t->packed,
                               .has_mask = t->mask != 0};
    tt_shape sy = {3, {t->batch, t->tq, t->heads * t->d}}, sl = {3, {t->batch, t->heads, t->tq}};
    heads x = {0};
    tt_arg in[8], out[3], dx[3];
    int n = make_heads(t, type, in, &x), n_dx = t->packed ? 1 : 3;
    out[0] = test_floats_put(type, sy, NULL, 0);
    out[1] = test_floats_put(TT_F32, sl, NULL, 0);
    test_floats_run("attention", &attr, in, n, out, 2, NULL);
    in[n] = out[0];
    in[n + 1] = out[1];
    in[n + 2] = test_floats_random(type, sy, 7, &x.dy, 0);
    for (int i = 0; i < n_dx; i++)
        dx[i] = test_floats_put(type, in[i].shape, NULL, 0);
    test_floats_run("attention_grad", &attr, in, n + 3, dx, n_dx, NULL);

    int64_t nq = in[0].count, nk = t->packed ? 0 : in[1].count;
    double *y = calloc((size_t)(out[0].count + out[1].count + nq + 2 * nk), sizeof(double));
    CHECK(y != NULL);
    double *lse = y + out[0].count, *dq = lse + out[1].count, *dk = dq + nq, *dv = dk + nk;
    if (t->packed) {
        dk = dq + t->heads * t->d;
        dv = dk + t->kv_heads * t->d;
    }
    reference(t, &x, y, lse, dq, dk, dv);
    test_floats_near("y", type, test_floats_get(&out[0]), y, out[0].count);
    test_floats_near("lse", type, test_floats_get(&out[1]), lse, out[1].count);
    test_floats_near("dq", type, test_floats_get(&dx[0]), dq, nq);
    if (!t->packed) {
        test_floats_near("dk", type, test_floats_get(&dx[1]), dk, nk);
        test_floats_near("dv", type, test_floats_get(&dx[2]), dv, nk);
    }
    free(y);
    test_floats_clear();
}

TEST(cuda_attention_and_its_gradient)
{
    test_device_open();
    for (int i = 0; i < (int)TTI_COUNT(attentions); i++)
        for (int t = 0; t < 3; t++)
            try_attention(&attentions[i], test_float_types[t]);
    test_device_close();
}

// Row r of the batch alone gives what it gives among the others, the gradient too.
TEST(cuda_attention_rows_are_free)
{
    const int64_t batch = 5, t = 80, h = 2, d = 64, row = 3 * h * d;
    tti_attention_attr attr = {.heads = h, .kv_heads = h, .causal = true, .packed = true};
    float *x, *g;
    test_device_open();
    for (int i = 0; i < 3; i++) {
        tt_dtype type = test_float_types[i];
        size_t item = tt_dtype_bytes(type);
        tt_shape sq = {3, {batch, t, row}}, sy = {3, {batch, t, h * d}}, sl = {3, {batch, h, t}};
        tt_arg in[4] = {test_floats_random(type, sq, 1, &x, 0), test_floats_put(type, sy, NULL, 0),
                        test_floats_put(TT_F32, sl, NULL, 0),
                        test_floats_random(type, sy, 2, &g, 0)};
        tt_arg dx = test_floats_put(type, sq, NULL, 0);
        test_floats_run("attention", &attr, in, 1, &in[1], 2, NULL);
        test_floats_run("attention_grad", &attr, in, 4, &dx, 1, NULL);
        float *y = test_floats_get(&in[1]), *dq = test_floats_get(&dx);
        for (int64_t r = 1; r < batch; r += 3) {
            sq.dim[0] = sy.dim[0] = sl.dim[0] = 1;
            tt_arg one[4] = {test_arg(type, sq), test_floats_put(type, sy, NULL, 0),
                             test_floats_put(TT_F32, sl, NULL, 0), test_arg(type, sy)};
            tt_arg to = test_floats_put(type, sq, NULL, 0);
            one[0].data = (char *)in[0].data + (size_t)(r * t * row) * item;
            one[3].data = (char *)in[3].data + (size_t)(r * t * h * d) * item;
            test_floats_run("attention", &attr, one, 1, &one[1], 2, NULL);
            test_floats_run("attention_grad", &attr, one, 4, &to, 1, NULL);
            CHECK(memcmp(test_floats_get(&one[1]), y + r * t * h * d, (size_t)(t * h * d) * 4) ==
                  0);
            CHECK(memcmp(test_floats_get(&to), dq + r * t * row, (size_t)(t * row) * 4) == 0);
        }
        test_floats_clear();
    }
    test_device_close();
}
