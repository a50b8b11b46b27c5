/*
 * cuda_products.c - matmul and attention of the CUDA module alone, called as a plan calls them,
 * against sums in double; rows alone against rows together, to the bit. The module is the one that
 * TUTTI_CUDA_MODULE names, for a GPU or its emulation; with TUTTI_CUDA_OWN=1 it leaves cuBLASLt and
 * cuDNN alone, so two runs show whether a library or a kernel of ours is wrong.
 */
#include "base/base.h"
#include "comm/lanes.h"
#include "cuda_module.h"
#include "op/attention.h"
#include "op/gemm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/ops.h>

#define MAX_ARGS 16

// ---- a device and its memory -----------------------------------------------------------------

static const tti_cuda_module *module;
static void *device;
static void *held[4 * MAX_ARGS]; // given back by free_held()
static float *hosts[4 * MAX_ARGS];
static int n_held, n_hosts;

static void open_device(void)
{
    test_device_open();
    module = test_device_module();
    device = test_device_state();
}

static void free_held(void)
{
    while (n_held > 0)
        module->free(device, held[--n_held]);
    while (n_hosts > 0)
        free(hosts[--n_hosts]);
}

static void *room(size_t bytes)
{
    void *p;
    CHECK(n_held < (int)(sizeof(held) / sizeof(held[0])));
    ck_assert_msg(module->alloc(device, bytes + 64, &p) == TT_OK, "%s", test_device_reason());
    held[n_held++] = p;
    return p;
}

static float *host_floats(int64_t n)
{
    CHECK(n_hosts < (int)(sizeof(hosts) / sizeof(hosts[0])));
    hosts[n_hosts] = calloc((size_t)n + 1, sizeof(float));
    CHECK(hosts[n_hosts] != NULL);
    return hosts[n_hosts++];
}

static tt_arg shape_arg(tt_dtype t, tt_shape s)
{
    tt_arg a = {.dtype = t, .shape = s, .count = 1, .rows = 1, .cols = s.dim[s.rank - 1]};
    for (int i = 0; i < s.rank; i++)
        a.count *= s.dim[i];
    for (int i = 0; i + 1 < s.rank; i++)
        a.rows *= s.dim[i];
    a.open = -1;
    return a;
}

// On the device, skip elements into its memory; x, rounded to the type, is what is there.
static tt_arg put(tt_dtype t, tt_shape s, float *x, int skip)
{
    tt_arg a = shape_arg(t, s);
    size_t item = tt_dtype_bytes(t), bytes = (size_t)a.count * item;
    a.data = (char *)room(bytes + (size_t)skip * item) + (size_t)skip * item;
    if (x == NULL)
        return a;
    char *raw = calloc(1, bytes + 1);
    CHECK(raw != NULL);
    for (int64_t i = 0; i < a.count; i++) {
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
    ck_assert_msg(module->copy_now(device, a.data, NULL, raw, bytes) == TT_OK, "%s",
                  test_device_reason());
    free(raw);
    return a;
}

static tt_arg put_random(tt_dtype t, tt_shape s, uint64_t seed, float **x, int skip)
{
    *x = host_floats(shape_arg(t, s).count);
    test_fill(*x, shape_arg(t, s).count, seed, -1, 1);
    return put(t, s, *x, skip);
}

static float *get(const tt_arg *a)
{
    size_t item = tt_dtype_bytes(a->dtype), bytes = (size_t)a->count * item;
    float *x = host_floats(a->count);
    char *raw = calloc(1, bytes + 1);
    CHECK(raw != NULL);
    ck_assert_msg(module->copy_now(NULL, raw, device, a->data, bytes) == TT_OK, "%s",
                  test_device_reason());
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

static void call(const char *name, const void *attr, const tt_arg *in, int n_in, const tt_arg *out,
                 int n_out, const tt_lanes *lanes)
{
    const tt_kernel *k = module->kernel(name);
    ck_assert_msg(k != NULL, "the module has no %s", name);
    tt_prep p = {.attr = attr,
                 .in = in,
                 .out_args = out,
                 .n_in = n_in,
                 .n_out = n_out,
                 .lanes = lanes,
                 .device = device,
                 .n_phases = 1};
    ck_assert_msg(k->prepare(&p) == TT_OK, "%s: %s", name, test_device_reason());
    tt_launch l = {.attr = attr,
                   .in = in,
                   .n_in = n_in,
                   .out = out,
                   .n_out = n_out,
                   .lanes = lanes,
                   .tune = p.tune,
                   .scratch = room(p.scratch_bytes),
                   .device = device,
                   .stream = module->stream(device)};
    ck_assert_msg(k->fn[0](&l) == TT_OK && module->sync(device, 60000) == TT_OK, "%s: %s", name,
                  test_device_reason());
}

// got against want, whose numbers are of about unit size.
static void check_near(const char *what, tt_dtype t, const float *got, const double *want,
                       int64_t n)
{
    double bound = t == TT_F32 ? 3e-5 : t == TT_F16 ? 6e-3 : 4e-2;
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= bound * (1 + fabs(want[i])),
                      "%s (%s): element %lld of %lld is %.9g, not %.9g", what, tt_dtype_name(t),
                      (long long)i, (long long)n, (double)got[i], want[i]);
}

static const tt_lanes no_lanes = {.total = 1, .n_parts = 1};
static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};

// ---- matmul ----------------------------------------------------------------------------------

typedef struct product {
    tt_shape a, b;
    bool trans_a, trans_b, bias, wide;
    int act;
} product;

static const product products[] = {
    {{2, {1, 1}}, {2, {1, 1}}, false, false, false, false, TT_LINEAR},
    {{2, {70, 33}}, {2, {33, 130}}, false, false, true, false, TT_RELU},
    {{2, {64, 64}}, {2, {64, 64}}, false, true, true, false, TT_GELU},
    {{2, {96, 40}}, {2, {96, 72}}, true, false, false, false, TT_LINEAR},
    {{2, {17, 5}}, {2, {9, 17}}, true, true, true, false, TT_SILU},
    {{2, {24, 16}}, {2, {16, 40}}, false, false, true, true, TT_GELU_ERF},
    {{2, {24, 16}}, {2, {16, 40}}, false, false, false, true, TT_LINEAR},
    {{3, {3, 8, 24}}, {2, {24, 16}}, false, false, true, false, TT_TANH},
    {{4, {2, 3, 8, 16}}, {4, {2, 3, 16, 24}}, false, false, false, false, TT_LINEAR},
    {{4, {2, 1, 8, 16}}, {3, {3, 24, 16}}, false, true, true, false, TT_SIGMOID},
    {{3, {4, 8, 16}}, {4, {5, 1, 16, 8}}, false, false, false, false, TT_GELU},
    {{2, {8, 16}}, {3, {3, 16, 8}}, false, false, false, false, TT_LINEAR},
    {{2, {5, 1}}, {2, {1, 8}}, false, false, true, false, TT_SOFTPLUS},
    {{2, {5, 16}}, {2, {16, 8}}, false, false, false, false, TT_ELU},
};

static double act_of(int act, double z)
{
    switch (act) {
    case TT_RELU:
        return z > 0 ? z : 0;
    case TT_GELU:
        return z / 2 * (1 + tanh(0.7978845608028654 * (z + 0.044715 * z * z * z)));
    case TT_GELU_ERF:
        return z / 2 * (1 + erf(z * 0.7071067811865476));
    case TT_SIGMOID:
        return 1 / (1 + exp(-z));
    case TT_TANH:
        return tanh(z);
    case TT_SILU:
        return z / (1 + exp(-z));
    case TT_ELU:
        return z > 0 ? z : expm1(z);
    case TT_SOFTPLUS:
        return log1p(exp(z));
    default:
        return z;
    }
}

static int64_t lead(const tt_shape *s, int i)
{
    return i < s->rank - 2 ? s->dim[s->rank - 3 - i] : 1;
}

static tt_shape result_of(const product *p)
{
    tt_shape y = {.rank = TTI_MAX(p->a.rank, p->b.rank)};
    for (int i = 0; i < y.rank - 2; i++)
        y.dim[y.rank - 3 - i] = TTI_MAX(lead(&p->a, i), lead(&p->b, i));
    y.dim[y.rank - 2] = p->a.dim[p->a.rank - (p->trans_a ? 1 : 2)];
    y.dim[y.rank - 1] = p->b.dim[p->b.rank - (p->trans_b ? 2 : 1)];
    return y;
}

// z of all products; k from k0 to k1.
static void multiply(const product *p, const float *a, const float *b, const float *bias,
                     int64_t k0, int64_t k1, double *z)
{
    tt_shape y = result_of(p);
    int64_t m = y.dim[y.rank - 2], n = y.dim[y.rank - 1];
    int64_t k = p->a.dim[p->a.rank - (p->trans_a ? 2 : 1)], batch = 1;
    for (int i = 0; i < y.rank - 2; i++)
        batch *= y.dim[i];
    for (int64_t u = 0; u < batch; u++) {
        int64_t at_a = 0, at_b = 0, rest = u, by_a = 1, by_b = 1;
        for (int i = 0; i < y.rank - 2; i++) {
            int64_t d = y.dim[y.rank - 3 - i];
            at_a += lead(&p->a, i) == 1 ? 0 : rest % d * by_a;
            at_b += lead(&p->b, i) == 1 ? 0 : rest % d * by_b;
            by_a *= lead(&p->a, i);
            by_b *= lead(&p->b, i);
            rest /= d;
        }
        for (int64_t i = 0; i < m * n; i++) {
            double sum = bias != NULL ? (double)bias[i % n] : 0;
            for (int64_t q = k0; q < k1; q++) {
                double x = a[at_a * m * k + (p->trans_a ? q * m + i / n : i / n * k + q)];
                sum += x * (double)b[at_b * k * n + (p->trans_b ? i % n * k + q : q * n + i % n)];
            }
            z[u * m * n + i] = sum;
        }
    }
}

static void try_product(const product *p, tt_dtype t, int skip)
{
    tti_matmul_attr attr = {p->trans_a, p->trans_b, p->act, p->wide};
    tt_shape s = result_of(p);
    tt_dtype out_type = p->wide ? TT_F32 : t;
    float *a, *b, *bias = NULL;
    bool has_z =
        p->act == TT_GELU || p->act == TT_GELU_ERF || p->act == TT_SILU || p->act == TT_SOFTPLUS;
    tt_arg in[3] = {put_random(t, p->a, 1, &a, skip), put_random(t, p->b, 2, &b, skip)};
    tt_arg out[2] = {put(out_type, s, NULL, skip), put(out_type, s, NULL, skip)};
    if (p->bias)
        in[2] = put_random(t, (tt_shape){1, {s.dim[s.rank - 1]}}, 3, &bias, skip);
    call("matmul", &attr, in, p->bias ? 3 : 2, out, has_z ? 2 : 1, &no_lanes);
    double *z = calloc((size_t)out[0].count, sizeof(double));
    CHECK(z != NULL);
    multiply(p, a, b, bias, 0, p->a.dim[p->a.rank - (p->trans_a ? 2 : 1)], z);
    tt_dtype near = t == TT_F32 ? TT_F32 : t;
    if (has_z)
        check_near("z", near, get(&out[1]), z, out[0].count);
    for (int64_t i = 0; i < out[0].count; i++)
        z[i] = act_of(p->act, z[i]);
    check_near("y", near, get(&out[0]), z, out[0].count);
    free(z);
    free_held();
}

TEST(cuda_matmul_is_the_product)
{
    open_device();
    for (int i = 0; i < (int)TTI_COUNT(products); i++)
        for (int t = 0; t < 3; t++)
            for (int skip = 0; skip < 2; skip++)
                try_product(&products[i], types[t], skip);
    test_device_close();
}

// Lanes that share rows as jobs do; merges is theirs.
static tt_lanes make_lanes(int first, int last, int total, int64_t global, int64_t *bound,
                           uint8_t *merges)
{
    tti_lane_stack stack = {.depth = 0};
    tt_lanes ln = {.total = total, .first = first, .n = last - first, .global_rows = global};
    for (int i = 0; i <= ln.n; i++)
        bound[i] = tti_lane_row(first + i, global, total) - tti_lane_row(first, global, total);
    for (int i = 0; i < ln.n; i++)
        merges[i] = (uint8_t)tti_lane_push(&stack, (tti_part){first + i, 1});
    if (ln.n == total && ln.n > 0)
        merges[ln.n - 1] = (uint8_t)(merges[ln.n - 1] + tti_lane_finish(&stack));
    ln.n_parts = TTI_MAX(stack.depth, 1);
    ln.bound = bound;
    ln.merges = merges;
    return ln;
}

static void try_lanes(tt_dtype t, int first, int last, int total, int64_t global, int64_t per)
{
    int64_t bound[64];
    uint8_t merges[64];
    tt_lanes ln = make_lanes(first, last, total, global, bound, merges);
    int64_t k = bound[ln.n] * per, m = 20, n = 36, ends[TTI_MAX_PARTS + 1] = {0};
    product p = {{2, {k, m}}, {2, {k, n}}, true, false, false, false, TT_LINEAR};
    tti_matmul_attr attr = {true, false, TT_LINEAR, false};
    tti_part parts[TTI_MAX_PARTS];
    float *a, *b;
    tt_arg in[2] = {put_random(t, p.a, 4, &a, 0), put_random(t, p.b, 5, &b, 0)};
    in[0].open = in[1].open = 0;
    in[0].per = in[1].per = per;
    bool is_whole = ln.n == total;
    tt_shape whole = {2, {m, n}}, some = {3, {ln.n_parts, m, n}};
    tt_arg out = put(is_whole ? t : TT_F32, is_whole ? whole : some, NULL, 0);
    call("matmul", &attr, in, 2, &out, 1, &ln);
    int n_parts = tti_lane_range_parts(first, last, total, parts);
    CHECK(ln.n == 0 || n_parts == ln.n_parts);
    for (int i = 0; i < ln.n_parts && ln.n > 0; i++)
        ends[i + 1] = bound[TTI_MIN(parts[i].first + parts[i].size, last) - first] * per;
    double *z = calloc((size_t)(m * n * ln.n_parts), sizeof(double));
    CHECK(z != NULL);
    for (int i = 0; i < ln.n_parts; i++)
        multiply(&p, a, b, NULL, ends[i], ends[i + 1], z + i * m * n);
    check_near("lanes", t, get(&out), z, m * n * ln.n_parts);
    free(z);
    free_held();
}

TEST(cuda_matmul_sums_lanes)
{
    static const int deals[][5] = {{0, 1, 1, 7, 1},  {0, 8, 8, 16, 3}, {0, 8, 8, 21, 1},
                                   {1, 6, 8, 21, 2}, {2, 3, 8, 8, 4},  {0, 16, 16, 16, 1},
                                   {3, 8, 8, 5, 1},  {0, 5, 5, 40, 2}, {0, 40, 40, 90, 1},
                                   {0, 4, 8, 8, 8},  {5, 5, 8, 16, 1}};
    open_device();
    for (int i = 0; i < (int)TTI_COUNT(deals); i++)
        for (int t = 0; t < 3; t++)
            try_lanes(types[t], deals[i][0], deals[i][1], deals[i][2], deals[i][3], deals[i][4]);
    test_device_close();
}

TEST(cuda_matmul_rows_are_free)
{
    static const int64_t some[] = {1, 3, 8, 63, 65};
    float *a, *b, *bias;
    open_device();
    for (int t = 0; t < 3; t++) {
        tti_matmul_attr attr = {false, false, TT_GELU, false};
        tt_shape sa = {2, {130, 520}}, sb = {2, {520, 72}}, sy = {2, {130, 72}};
        tt_arg in[3] = {put_random(types[t], sa, 1, &a, 0), put_random(types[t], sb, 2, &b, 0),
                        put_random(types[t], (tt_shape){1, {72}}, 3, &bias, 0)};
        tt_arg out[2] = {put(types[t], sy, NULL, 0), put(types[t], sy, NULL, 0)};
        tt_lanes ln = no_lanes;
        call("matmul", &attr, in, 3, out, 2, &ln);
        float *y = get(&out[0]), *z = get(&out[1]);
        for (int i = 0; i < (int)TTI_COUNT(some); i++) {
            sa.dim[0] = sy.dim[0] = some[i];
            tt_arg part[3] = {shape_arg(types[t], sa), in[1], in[2]};
            tt_arg to[2] = {put(types[t], sy, NULL, 0), put(types[t], sy, NULL, 0)};
            part[0].data = (char *)in[0].data + 8 * 520 * tt_dtype_bytes(types[t]);
            call("matmul", &attr, part, 3, to, 2, &ln);
            CHECK(memcmp(get(&to[0]), y + 8 * 72, (size_t)some[i] * 72 * 4) == 0);
            CHECK(memcmp(get(&to[1]), z + 8 * 72, (size_t)some[i] * 72 * 4) == 0);
        }
        free_held();
    }
    test_device_close();
}

// A weight and what its product does.
typedef struct weight {
    int64_t k, n;
    bool trans_b, bias;
    int act;
} weight;

static const weight weights_of_rows[] = {
    {784, 128, false, true, TT_RELU},   {128, 10, false, true, TT_LINEAR},
    {10, 128, true, false, TT_LINEAR},  {5, 7, false, false, TT_ELU},
    {33, 130, false, true, TT_GELU},    {1031, 67, true, false, TT_LINEAR},
    {64, 256, false, true, TT_GELU},    {520, 72, true, true, TT_RELU},
    {768, 2304, false, true, TT_GELU},  {1024, 1024, true, false, TT_LINEAR},
    {1023, 1025, false, true, TT_RELU}, {2048, 520, false, true, TT_SILU},
    {700, 1002, true, true, TT_LINEAR}, {300, 200, false, true, TT_LINEAR},
};

#define EMULATED ((int64_t)110000) // largest weight on the emulation

static bool is_emulated(void)
{
    return strstr(getenv("TUTTI_CUDA_MODULE"), "emu") != NULL;
}

static void check_rows(const weight *w, tt_dtype t)
{
    static const int64_t cuts[][2] = {{0, 1}, {7, 1}, {1, 2}, {3, 3}, {5, 8}, {0, 33}, {1, 64}};
    const int64_t rows = 70, item = (int64_t)tt_dtype_bytes(t);
    tti_matmul_attr attr = {false, w->trans_b, w->act, false};
    tt_shape sb = {2, {w->trans_b ? w->n : w->k, w->trans_b ? w->k : w->n}};
    tt_shape sa = {2, {rows, w->k}}, sy = {2, {rows, w->n}};
    int n_in = w->bias ? 3 : 2, n_out = w->act == TT_GELU || w->act == TT_SILU ? 2 : 1;
    float *x;
    tt_arg in[3] = {put_random(t, sa, 1, &x, 0), put_random(t, sb, 2, &x, 0),
                    put_random(t, (tt_shape){1, {w->n}}, 3, &x, 0)};
    tt_arg out[2] = {put(t, sy, NULL, 0), put(t, sy, NULL, 0)};
    call("matmul", &attr, in, n_in, out, n_out, &no_lanes);
    float *y[2] = {get(&out[0]), get(&out[n_out - 1])};
    for (int i = 0; i < (int)TTI_COUNT(cuts); i++) {
        int64_t first = cuts[i][0], n = cuts[i][1] * w->n;
        sa.dim[0] = sy.dim[0] = cuts[i][1];
        tt_arg part[3] = {shape_arg(t, sa), in[1], in[2]};
        tt_arg to[2] = {put(t, sy, NULL, (int)(first * w->n)), put(t, sy, NULL, 0)};
        part[0].data = (char *)in[0].data + first * w->k * item;
        call("matmul", &attr, part, n_in, to, n_out, &no_lanes);
        for (int j = 0; j < n_out; j++)
            ck_assert_msg(memcmp(get(&to[j]), y[j] + first * w->n, (size_t)n * 4) == 0,
                          "[%lld, %lld], %s, activation %d: output %d of rows %lld to %lld differs",
                          (long long)w->k, (long long)w->n, tt_dtype_name(t), w->act, j,
                          (long long)first, (long long)(first + cuts[i][1]));
    }
    free_held();
}

TEST(cuda_matmul_rows_alone_are_rows_together)
{
    open_device();
    for (int i = 0; i < (int)TTI_COUNT(weights_of_rows); i++) {
        const weight *w = &weights_of_rows[i];
        for (int t = 0; t < 3 && (w->k * w->n < EMULATED || !is_emulated()); t++)
            check_rows(w, types[t]);
    }
    test_device_close();
}

// Lanes first to last of 8 with all their rows in a and b; f32 parts, as a plan's are.
static float *sum_lanes(const tt_arg *all, int first, int last, int64_t global, int64_t per)
{
    int64_t bound[9], skip = tti_lane_row(first, global, 8) * per;
    uint8_t merges[8];
    tti_matmul_attr attr = {true, false, TT_LINEAR, false};
    tt_lanes ln = make_lanes(first, last, 8, global, bound, merges);
    tt_arg in[2];
    for (int i = 0; i < 2; i++) {
        int64_t width = all[i].shape.dim[1];
        in[i] = shape_arg(all[i].dtype, (tt_shape){2, {bound[ln.n] * per, width}});
        in[i].data = (char *)all[i].data + skip * width * (int64_t)tt_dtype_bytes(all[i].dtype);
        in[i].open = 0;
        in[i].per = per;
    }
    tt_shape s = {2, {all[0].shape.dim[1], all[1].shape.dim[1]}};
    tt_arg out = put(TT_F32, s, NULL, 0);
    CHECK_INT(ln.n_parts, 1);
    call("matmul", &attr, in, 2, &out, 1, &ln);
    return get(&out);
}

static void check_lanes(tt_dtype t, int64_t m, int64_t n, int64_t global, int64_t per)
{
    float *x, *one[15];
    tt_arg in[2] = {put_random(t, (tt_shape){2, {global * per, m}}, 4, &x, 0),
                    put_random(t, (tt_shape){2, {global * per, n}}, 5, &x, 0)};
    for (int i = 0; i < 8; i++)
        one[i] = sum_lanes(in, i, i + 1, global, per);
    for (int i = 0; i < 7; i++) { // the tree, by twos, fours and eights
        int size = i < 4 ? 2 : i < 6 ? 4 : 8, first = i < 4 ? 2 * i : i < 6 ? 4 * (i - 4) : 0;
        one[8 + i] = sum_lanes(in, first, first + size, global, per);
        for (int64_t j = 0; j < m * n; j++) {
            float want = one[2 * i][j] + one[2 * i + 1][j];
            ck_assert_msg(one[8 + i][j] == want,
                          "[%lld, %lld], %s, %lld rows by %lld: element %lld of lanes %d to %d is "
                          "%a, from its halves %a",
                          (long long)m, (long long)n, tt_dtype_name(t), (long long)global,
                          (long long)per, (long long)j, first, first + size, (double)one[8 + i][j],
                          (double)want);
        }
    }
    free_held();
}

TEST(cuda_matmul_lanes_alone_are_lanes_together)
{
    static const int64_t deals[][4] = {{784, 128, 32, 1},  {128, 10, 32, 1},  {20, 36, 21, 3},
                                       {5, 7, 1200, 1},    {2, 17, 13, 130},  {64, 256, 19, 5},
                                       {768, 1024, 16, 8}, {768, 1001, 19, 5}};
    open_device();
    for (int i = 0; i < (int)TTI_COUNT(deals); i++)
        for (int t = 0; t < 3 && (deals[i][0] * deals[i][1] < EMULATED || !is_emulated()); t++)
            check_lanes(types[t], deals[i][0], deals[i][1], deals[i][2], deals[i][3]);
    test_device_close();
}

TEST(cuda_relu_of_a_product_keeps_nan)
{
    float a[2] = {NAN, 1}, b[2] = {1, -1}, *y;
    open_device();
    for (int t = 0; t < 3; t++) {
        tti_matmul_attr attr = {false, false, TT_RELU, false};
        tt_arg in[2] = {put(types[t], (tt_shape){2, {2, 1}}, a, 0),
                        put(types[t], (tt_shape){2, {1, 2}}, b, 0)};
        tt_arg out = put(types[t], (tt_shape){2, {2, 2}}, NULL, 0);
        call("matmul", &attr, in, 2, &out, 1, &no_lanes);
        y = get(&out);
        CHECK(isnan(y[0]) && isnan(y[1]) && y[2] == 1 && y[3] == 0);
        free_held();
    }
    test_device_close();
}

// ---- attention -------------------------------------------------------------------------------

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
        in[0] = put_random(type, (tt_shape){3, {t->batch, t->tq, all * t->d}}, 1, &x->q, 0);
        x->k = x->q + t->heads * t->d;
        x->v = x->k + t->kv_heads * t->d;
        x->q_row = x->kv_row = all * t->d;
    } else {
        tt_shape q = {3, {t->batch, t->tq, t->heads * t->d}};
        tt_shape k = {3, {t->batch, t->tk, t->kv_heads * t->d}};
        in[0] = put_random(type, q, 1, &x->q, 0);
        in[n++] = put_random(type, k, 2, &x->k, 0);
        in[n++] = put_random(type, k, 3, &x->v, 0);
        x->q_row = q.dim[2];
        x->kv_row = k.dim[2];
    }
    if (t->mask != 0) {
        tt_shape flat = {2, {t->tq, t->tk}}, full = {3, {t->batch, t->tq, t->tk}};
        tt_shape s = t->mask == 1 ? flat : full;
        int64_t count = shape_arg(TT_BOOL, s).count;
        x->mask = host_floats(count);
        test_fill(x->mask, count, 9, 0, 1);
        for (int64_t i = 0; i < count; i++)
            x->mask[i] = x->mask[i] > 0.4f && i / t->tk % t->tq != 2; // query 2 sees no key
        in[n++] = put(TT_BOOL, s, x->mask, 0);
    }
    return n;
}

static void try_attention(const attention *t, tt_dtype type)
{
    tti_attention_attr attr = {t->heads, t->kv_heads, t->causal, t->scale, t->packed, t->mask != 0};
    tt_shape sy = {3, {t->batch, t->tq, t->heads * t->d}}, sl = {3, {t->batch, t->heads, t->tq}};
    heads x = {0};
    tt_arg in[8], out[3], dx[3];
    int n = make_heads(t, type, in, &x), n_dx = t->packed ? 1 : 3;
    out[0] = put(type, sy, NULL, 0);
    out[1] = put(TT_F32, sl, NULL, 0);
    call("attention", &attr, in, n, out, 2, &no_lanes);
    in[n] = out[0];
    in[n + 1] = out[1];
    in[n + 2] = put_random(type, sy, 7, &x.dy, 0);
    for (int i = 0; i < n_dx; i++)
        dx[i] = put(type, in[i].shape, NULL, 0);
    call("attention_grad", &attr, in, n + 3, dx, n_dx, &no_lanes);

    int64_t nq = in[0].count, nk = t->packed ? 0 : in[1].count;
    double *y = calloc((size_t)(out[0].count + out[1].count + nq + 2 * nk), sizeof(double));
    CHECK(y != NULL);
    double *lse = y + out[0].count, *dq = lse + out[1].count, *dk = dq + nq, *dv = dk + nk;
    if (t->packed) {
        dk = dq + t->heads * t->d;
        dv = dk + t->kv_heads * t->d;
    }
    reference(t, &x, y, lse, dq, dk, dv);
    check_near("y", type, get(&out[0]), y, out[0].count);
    check_near("lse", type, get(&out[1]), lse, out[1].count);
    check_near("dq", type, get(&dx[0]), dq, nq);
    if (!t->packed) {
        check_near("dk", type, get(&dx[1]), dk, nk);
        check_near("dv", type, get(&dx[2]), dv, nk);
    }
    free(y);
    free_held();
}

TEST(cuda_attention_and_its_gradient)
{
    open_device();
    for (int i = 0; i < (int)TTI_COUNT(attentions); i++)
        for (int t = 0; t < 3; t++)
            try_attention(&attentions[i], types[t]);
    test_device_close();
}

// Row r of the batch alone gives what it gives among the others, the gradient too.
TEST(cuda_attention_rows_are_free)
{
    const int64_t batch = 5, t = 80, h = 2, d = 64, row = 3 * h * d;
    tti_attention_attr attr = {h, h, true, 0, true, false};
    float *x, *g;
    open_device();
    for (int i = 0; i < 3; i++) {
        tt_dtype type = types[i];
        size_t item = tt_dtype_bytes(type);
        tt_shape sq = {3, {batch, t, row}}, sy = {3, {batch, t, h * d}}, sl = {3, {batch, h, t}};
        tt_arg in[4] = {put_random(type, sq, 1, &x, 0), put(type, sy, NULL, 0),
                        put(TT_F32, sl, NULL, 0), put_random(type, sy, 2, &g, 0)};
        tt_arg dx = put(type, sq, NULL, 0);
        call("attention", &attr, in, 1, &in[1], 2, &no_lanes);
        call("attention_grad", &attr, in, 4, &dx, 1, &no_lanes);
        float *y = get(&in[1]), *dq = get(&dx);
        for (int64_t r = 1; r < batch; r += 3) {
            sq.dim[0] = sy.dim[0] = sl.dim[0] = 1;
            tt_arg one[4] = {shape_arg(type, sq), put(type, sy, NULL, 0), put(TT_F32, sl, NULL, 0),
                             shape_arg(type, sy)};
            tt_arg to = put(type, sq, NULL, 0);
            one[0].data = (char *)in[0].data + (size_t)(r * t * row) * item;
            one[3].data = (char *)in[3].data + (size_t)(r * t * h * d) * item;
            call("attention", &attr, one, 1, &one[1], 2, &no_lanes);
            call("attention_grad", &attr, one, 4, &to, 1, &no_lanes);
            CHECK(memcmp(get(&one[1]), y + r * t * h * d, (size_t)(t * h * d) * 4) == 0);
            CHECK(memcmp(get(&to), dq + r * t * row, (size_t)(t * row) * 4) == 0);
        }
        free_held();
    }
    test_device_close();
}
