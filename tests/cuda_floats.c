/*
 * cuda_floats.c - floats for kernels of the CUDA module called alone (cuda_floats.h).
 */
#include "cuda_floats.h"
#include "base/base.h"
#include <math.h>
#include <stdlib.h>

const tt_dtype test_float_types[3] = {TT_F32, TT_BF16, TT_F16};

static float *hosts[64]; // freed by test_floats_clear()
static int n_hosts;

float *test_floats(int64_t n)
{
    CHECK(n_hosts < TTI_COUNT(hosts));
    hosts[n_hosts] = calloc((size_t)n + 1, sizeof(float));
    CHECK(hosts[n_hosts] != NULL);
    return hosts[n_hosts++];
}

void test_floats_clear(void)
{
    test_device_clear();
    while (n_hosts > 0)
        free(hosts[--n_hosts]);
}

tt_arg test_floats_put(tt_dtype t, tt_shape s, float *x, int skip)
{
    tt_arg a = test_arg(t, s);
    size_t item = tt_dtype_bytes(t), bytes = (size_t)a.count * item;
    char *raw = x != NULL ? calloc(1, bytes + 1) : NULL;
    CHECK(x == NULL || raw != NULL);
    for (int64_t i = 0; i < a.count && x != NULL; i++) {
        if (t == TT_F32) {
            memcpy(raw + 4 * i, &x[i], 4);
        } else if (t == TT_BOOL) {
            raw[i] = x[i] != 0;
        } else {
            uint16_t h = t == TT_BF16 ? tti_to_bf16(x[i]) : tti_to_f16(x[i]);
            memcpy(raw + 2 * i, &h, 2);
            x[i] = t == TT_BF16 ? tti_from_bf16(h) : tti_from_f16(h);
        }
    }
    a.data = test_device_room(raw, bytes, (size_t)skip * item);
    free(raw);
    return a;
}

tt_arg test_floats_random(tt_dtype t, tt_shape s, uint64_t seed, float **x, int skip)
{
    int64_t n = test_arg(t, s).count;
    *x = test_floats(n);
    test_fill(*x, n, seed, -1, 1);
    return test_floats_put(t, s, *x, skip);
}

float *test_floats_get(const tt_arg *a)
{
    float *x = test_floats(a->count);
    char *raw = calloc((size_t)a->count + 1, tt_dtype_bytes(a->dtype));
    CHECK(raw != NULL);
    test_device_get(raw, a);
    for (int64_t i = 0; i < a->count; i++) {
        uint16_t h;
        memcpy(&h, raw + 2 * i, 2);
        if (a->dtype == TT_F32)
            memcpy(&x[i], raw + 4 * i, 4);
        else
            x[i] = a->dtype == TT_BF16 ? tti_from_bf16(h) : tti_from_f16(h);
    }
    free(raw);
    return x;
}

void test_floats_run(const char *name, const void *attr, const tt_arg *in, int n_in,
                     const tt_arg *out, int n_out, const tt_lanes *lanes)
{
    static const tt_lanes none = {.total = 1, .n_parts = 1};
    tt_launch l = {.attr = attr,
                   .in = in,
                   .n_in = n_in,
                   .out = out,
                   .n_out = n_out,
                   .lanes = lanes != NULL ? lanes : &none};
    ck_assert_msg(test_device_run(name, l) == TT_OK, "%s: %s", name, test_device_reason());
}

void test_floats_near(const char *what, tt_dtype t, const float *got, const double *want, int64_t n)
{
    double bound = t == TT_F32 ? 3e-5 : t == TT_F16 ? 6e-3 : 4e-2;
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= bound * (1 + fabs(want[i])),
                      "%s (%s): element %lld of %lld is %.9g, not %.9g", what, tt_dtype_name(t),
                      (long long)i, (long long)n, (double)got[i], want[i]);
}
