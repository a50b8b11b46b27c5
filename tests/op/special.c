/*
 * special.c - special values: infinities, NaN, zeros and their signs, numbers near the ends of a
 * type. The tables of docs/arithmetic.md, in every instruction set and on a GPU; the lines of the
 * functions of one number are held against the page itself.
 */
#include "op_test.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define INF  INFINITY
#define EACH 4096 // elements of a run, at most

// Equal, a NaN being equal to a NaN, and zeros of one sign.
static bool is_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

// The distance in units of the last place of want; huge where only one is finite.
static double ulps(float got, double want)
{
    int e;
    if (!isfinite(want) || !isfinite((double)got))
        return is_same(got, (float)want) ? 0 : 1e30;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

// Calls try() with a context of every instruction set, or the GPU's.
static void everywhere(void (*try)(tt_ctx *ctx, const char *where))
{
    if (strcmp(test_device(), "cpu:0") != 0) {
        tt_ctx *ctx = test_ctx();
        try(ctx, "gpu");
        CHECK_OK(tt_close(ctx));
        return;
    }
    for (int set = 0; test_isa(set) != NULL; set++) {
        tt_ctx *ctx = test_ctx_on("cpu:0", test_isa(set), 1);
        try(ctx, test_isa(set));
        CHECK_OK(tt_close(ctx));
    }
}

// ---- functions of one number -----------------------------------------------------------------

static tt_tensor *leaky(tt_graph *g, tt_tensor *x)
{
    return tt_leaky_relu(g, x, 0.25);
}
static tt_tensor *elu(tt_graph *g, tt_tensor *x)
{
    return tt_elu(g, x, 1.5);
}
static tt_tensor *clip(tt_graph *g, tt_tensor *x)
{
    return tt_clip(g, x, -2, 3);
}

static const struct function {
    const char *name;
    tt_tensor *(*build)(tt_graph *g, tt_tensor *x);
    float y[4]; // of -inf, -0, 0, inf; of NaN it is NaN
} functions[] = {
    {"neg", tt_neg, {INF, 0, -0.0f, -INF}},
    {"abs", tt_abs, {INF, 0, 0, INF}},
    {"sign", tt_sign, {-1, 0, 0, 1}},
    {"square", tt_square, {INF, 0, 0, INF}},
    {"sqrt", tt_sqrt, {NAN, -0.0f, 0, INF}},
    {"rsqrt", tt_rsqrt, {NAN, -INF, INF, 0}},
    {"exp", tt_exp, {0, 1, 1, INF}},
    {"log", tt_log, {NAN, -INF, -INF, INF}},
    {"sin", tt_sin, {NAN, -0.0f, 0, NAN}},
    {"cos", tt_cos, {NAN, 1, 1, NAN}},
    {"tanh", tt_tanh, {-1, -0.0f, 0, 1}},
    {"erf", tt_erf, {-1, -0.0f, 0, 1}},
    {"sigmoid", tt_sigmoid, {0, 0.5f, 0.5f, 1}},
    {"relu", tt_relu, {0, 0, 0, INF}},
    {"gelu", tt_gelu, {NAN, -0.0f, 0, INF}},
    {"gelu_erf", tt_gelu_erf, {NAN, 0, 0, INF}},
    {"silu", tt_silu, {NAN, -0.0f, 0, INF}},
    {"softplus", tt_softplus, {0, (float)M_LN2, (float)M_LN2, INF}},
    {"leaky_relu", leaky, {-INF, -0.0f, 0, INF}},
    {"elu", elu, {-1.5f, -0.0f, 0, INF}},
    {"clip", clip, {-2, 0, 0, 3}},
};
#define N_FUNCTIONS ((int)(sizeof(functions) / sizeof(functions[0])))
static const float ends[5] = {-INF, -0.0f, 0, INF, NAN};

static void try_functions(tt_ctx *ctx, const char *where)
{
    tt_graph *g = tt_graph_new(ctx);
    float x[37], y[37];
    for (int k = 0; k < N_FUNCTIONS; k++) {
        const struct function *f = &functions[k];
        for (int i = 0; i < 37; i++)
            x[i] = ends[i % 5];
        CHECK_OK(tt_eval(g, f->build(g, tt_const(g, TT_F32, TT_SHAPE(37), x)), y, 37));
        for (int i = 0; i < 37; i++) {
            float want = i % 5 < 4 ? f->y[i % 5] : NAN;
            bool is_near = isfinite(want) && want != 0 && fabsf(y[i] - want) < 1e-6f;
            ck_assert_msg(is_near || is_same(y[i], want), "%s: %s(%g) is %g, not %g", where,
                          f->name, (double)x[i], (double)y[i], (double)want);
        }
    }
}
TEST_BOTH(special_values_of_functions)
{
    everywhere(try_functions);
}

static const char *word(float x, char *out)
{
    if (isnan(x))
        return "NaN";
    if (isinf(x))
        return x > 0 ? "inf" : "-inf";
    sprintf(out, "%.6g", (double)x);
    return out;
}

TEST(special_values_are_those_of_the_documentation)
{
    static char text[1 << 18];
    char line[200], w[4][32];
    FILE *f = fopen("docs/arithmetic.md", "r");
    if (f == NULL)
        test_skip("docs/ is not here");
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    for (int k = 0; k < N_FUNCTIONS; k++) {
        const float *y = functions[k].y;
        snprintf(line, sizeof(line), "| `%s` | %s | %s | %s | %s |", functions[k].name,
                 word(y[0], w[0]), word(y[1], w[1]), word(y[2], w[2]), word(y[3], w[3]));
        ck_assert_msg(strstr(text, line) != NULL, "docs/arithmetic.md lacks: %s", line);
    }
}

// ---- elu, and slopes of large numbers --------------------------------------------------------

static void try_elu(tt_ctx *ctx, const char *where)
{
    enum {
        N = EACH
    };
    static float x[N], y[N];
    tt_graph *g = tt_graph_new(ctx);
    for (int i = 0; i < N; i++) // magnitudes from 1e-37 to 30
        x[i] = -(float)exp(-85 + 88.4 * i / N);
    CHECK_OK(tt_eval(g, tt_elu(g, tt_const(g, TT_F32, TT_SHAPE(N), x), 1), y, N));
    for (int i = 0; i < N; i++)
        ck_assert_msg(ulps(y[i], expm1((double)x[i])) <= 2, "%s: elu(%a) is %a, not %a", where,
                      (double)x[i], (double)y[i], expm1((double)x[i]));
}
TEST_BOTH(elu_near_zero)
{
    everywhere(try_elu);
}

static void try_slopes(tt_ctx *ctx, const char *where)
{
    tt_tensor *(*const acts[])(tt_graph *, tt_tensor *) = {tt_gelu,     tt_gelu_erf, tt_silu,
                                                           tt_softplus, tt_sigmoid,  tt_tanh};
    const float x[] = {1e20f, -1e20f, FLT_MAX, -FLT_MAX, 120, -120};
    for (int k = 0; k < 6; k++) {
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(6), x), *dx = NULL;
        float y[6];
        CHECK_OK(tt_grad(g, tt_sum(g, acts[k](g, t)), NULL, 1, &t, &dx));
        CHECK_OK(tt_eval(g, dx, y, 6));
        for (int i = 0; i < 6; i++)
            ck_assert_msg(fabsf(y[i] - (k < 4 && x[i] > 0 ? 1.0f : 0.0f)) < 1e-6f,
                          "%s: the slope of activation %d at %g is %g", where, k, (double)x[i],
                          (double)y[i]);
    }
}
TEST_BOTH(slopes_of_large_numbers)
{
    everywhere(try_slopes);
}

// ---- sin and cos -----------------------------------------------------------------------------

static void try_angles(tt_ctx *ctx, const char *where)
{
    static float x[EACH], y[2][EACH];
    for (uint32_t first = 0; first < 8; first++) {
        tt_graph *g = tt_graph_new(ctx);
        // floats of all exponents; multiples of pi/2 and their neighbours
        for (uint32_t i = 0; i < EACH; i++) {
            uint32_t u = 0x30000000u + (i * 8 + first) * (0x4f800000u / (8 * EACH));
            float f = (float)(M_PI_2 * floor(ldexp(1 + (double)i / EACH, (int)(i * 7 % 60))));
            if (i % 2 == 0)
                memcpy(&f, &u, sizeof(f));
            x[i] = i % 3 == 0 ? -f : f;
        }
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(EACH), x);
        CHECK_OK(tt_eval(g, tt_sin(g, t), y[0], EACH));
        CHECK_OK(tt_eval(g, tt_cos(g, t), y[1], EACH));
        for (int i = 0; i < EACH; i++)
            for (int k = 0; k < 2; k++) {
                double want = k == 0 ? sin((double)x[i]) : cos((double)x[i]);
                ck_assert_msg(ulps(y[k][i], want) <= 1.7, "%s: %s(%a) is %a, not %a", where,
                              k == 0 ? "sin" : "cos", (double)x[i], (double)y[k][i], want);
            }
        tt_graph_free(g);
    }
    const float known[] = {FLT_MAX, 0x1p127f, 1e22f, 2.8e6f, 4194304, 0x1.fe7a6p+22f};
    float s[6], c[6];
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(6), known);
    CHECK_OK(tt_eval(g, tt_sin(g, t), s, 6));
    CHECK_OK(tt_eval(g, tt_cos(g, t), c, 6));
    for (int i = 0; i < 6; i++)
        CHECK(ulps(s[i], sin((double)known[i])) <= 1.7 && ulps(c[i], cos((double)known[i])) <= 1.7);
}
TEST_BOTH(angles_of_any_size)
{
    everywhere(try_angles);
}

// The bits do not depend on the set, nor on the device: first values are made with them.
TEST_BOTH(angles_have_the_same_bits)
{
    static float x[EACH], want[EACH], y[EACH];
    for (uint32_t i = 0; i < EACH; i++) {
        uint32_t u = 0x3f000000u + i * (0x40800000u / EACH);
        memcpy(&x[i], &u, sizeof(u));
    }
    for (int k = 0; k < 2; k++)
        for (int set = -1; set < 0 || test_isa(set) != NULL; set++) {
            tt_ctx *ctx = set < 0 ? test_ctx() : tt_open(.devices = "cpu:0", .isa = test_isa(set));
            tt_graph *g = tt_graph_new(ctx);
            tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(EACH), x);
            CHECK_OK(tt_eval(g, k == 0 ? tt_sin(g, t) : tt_cos(g, t), set < 0 ? want : y, EACH));
            for (int i = 0; set >= 0 && i < EACH; i++)
                ck_assert_msg(memcmp(&y[i], &want[i], sizeof(float)) == 0, "%s: %a gives %a, %a",
                              test_isa(set), (double)x[i], (double)y[i], (double)want[i]);
            CHECK_OK(tt_close(ctx));
        }
}

// ---- pow -------------------------------------------------------------------------------------

static const float bases[] = {
    0,       -0.0f,    1,        -1,       0.5f,         -0.5f,        2,
    -2,      3,        -3,       10,       -10,          2.5f,         -2.5f,
    INF,     -INF,     NAN,      1e30f,    -1e30f,       1e-30f,       FLT_MIN,
    FLT_MAX, -FLT_MAX, 16777216, 16777215, 1 - 0x1p-24f, 1 + 0x1p-23f, 7};
static const float powers[] = {0,       -0.0f,    1,     -1,    2,      -2,       3,
                               -3,      0.5f,     -0.5f, 1.5f,  -2.5f,  INF,      -INF,
                               NAN,     1e9f,     -1e9f, 1e30f, -1e30f, 16777215, -16777215,
                               FLT_MAX, -FLT_MAX, 127,   -126,  10,     1e-30f,   0.25f};
#define N_POW (int)(sizeof(bases) / sizeof(float))

// As the C library's in double, rounded, without subnormal numbers.
static double pow_of(float a, float b)
{
    double y = pow((double)a, (double)b);
    if (fabs(y) < (double)FLT_MIN)
        return copysign(0, y);
    return fabs(y) > (double)FLT_MAX * (1 + 0x1p-25) ? copysign(INFINITY, y) : y;
}

static void try_pow(tt_ctx *ctx, const char *where)
{
    static float a[N_POW * N_POW], b[N_POW * N_POW], y[N_POW * N_POW];
    _Static_assert(sizeof(bases) == sizeof(powers), "as many of both");
    tt_graph *g = tt_graph_new(ctx);
    int n = N_POW * N_POW;
    for (int i = 0; i < n; i++) {
        a[i] = bases[i / N_POW];
        b[i] = powers[i % N_POW];
    }
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(n), a), *z = tt_const(g, TT_F32, TT_SHAPE(n), b);
    CHECK_OK(tt_eval(g, tt_pow(g, x, z), y, n));
    for (int i = 0; i < n; i++) {
        double want = pow_of(a[i], b[i]);
        bool is_right = want == 0 || !isfinite(want) || (double)(float)want == want
                            ? is_same(y[i], (float)want)
                            : ulps(y[i], want) <= 1;
        ck_assert_msg(is_right, "%s: pow(%a, %a) is %a, not %a", where, (double)a[i], (double)b[i],
                      (double)y[i], want);
    }
}
TEST_BOTH(pow_special_values)
{
    everywhere(try_pow);
}

// Where a float is the result, it is the result: whole numbers to whole powers, and roots.
static void try_exact(tt_ctx *ctx, const char *where)
{
    static float a[EACH], b[EACH], want[EACH], y[EACH];
    int n = 0;
    tt_graph *g = tt_graph_new(ctx);
    for (int i = 1; i < 5000 && n < EACH - 8; i = i < 40 ? i + 1 : i * 5 / 4)
        for (int k = 1; k <= 24 && pow(i, k) < 0x1p60 && n < EACH - 8; k++) {
            float p = (float)pow(i, k);
            if ((double)p != pow(i, k))
                continue;
            a[n] = (float)i, b[n] = (float)k, want[n++] = p;
            a[n] = (float)-i, b[n] = (float)k, want[n++] = k % 2 == 0 ? p : -p;
            if (k == 2 || k == 4 || k == 8)
                a[n] = p, b[n] = 1.0f / (float)k, want[n++] = (float)i;
        }
    for (int k = -126; k <= 127 && n < EACH - 8; k++)
        a[n] = 2, b[n] = (float)k, want[n++] = ldexpf(1, k);
    a[n] = 16777216, b[n] = 1, want[n++] = 16777216;
    a[n] = FLT_MAX, b[n] = 1, want[n++] = FLT_MAX;
    a[n] = FLT_MIN, b[n] = 1, want[n++] = FLT_MIN;
    CHECK(n > 500);
    tt_tensor *x = tt_const(g, TT_F32, TT_SHAPE(n), a), *z = tt_const(g, TT_F32, TT_SHAPE(n), b);
    CHECK_OK(tt_eval(g, tt_pow(g, x, z), y, n));
    for (int i = 0; i < n; i++)
        ck_assert_msg(y[i] == want[i], "%s: pow(%.9g, %.9g) is %.9g, not %.9g", where, (double)a[i],
                      (double)b[i], (double)y[i], (double)want[i]);
}
TEST_BOTH(pow_exact_results)
{
    everywhere(try_exact);
}

static void try_pow_gradient(tt_ctx *ctx, const char *where)
{
    static const struct {
        float a, b, da, db;
    } rows[] = {
        {0, 0, 0, 0},
        {0, 2, 0, 0},
        {0, 1, 1, 0},
        {0, 0.5f, INF, 0},
        {0, -1, -INF, -INF},
        {-2, 3, 12, 0},
        {2, 0, 0, (float)M_LN2},
        {-2, 0, 0, 0},
        {NAN, 0, 0, NAN},
        {NAN, 1, 1, NAN},
        {2, NAN, NAN, NAN},
        {INF, 0, 0, INF},
        {2, 3, 12, 8 * (float)M_LN2},
        {-0.0f, 0, 0, 0},
    };
    enum {
        N = sizeof(rows) / sizeof(rows[0])
    };
    float a[N], b[N], d[2][N];
    tt_graph *g = tt_graph_new(ctx);
    for (int i = 0; i < N; i++) {
        a[i] = rows[i].a;
        b[i] = rows[i].b;
    }
    tt_tensor *x[2] = {tt_const(g, TT_F32, TT_SHAPE(N), a), tt_const(g, TT_F32, TT_SHAPE(N), b)};
    tt_tensor *dx[2];
    CHECK_OK(tt_grad(g, tt_sum(g, tt_pow(g, x[0], x[1])), NULL, 2, x, dx));
    for (int k = 0; k < 2; k++)
        CHECK_OK(tt_eval(g, dx[k], d[k], N));
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) {
            float want = k == 0 ? rows[i].da : rows[i].db;
            bool is_right = isfinite(want) ? fabsf(d[k][i] - want) <= 1e-5f * fabsf(want)
                                           : is_same(d[k][i], want);
            ck_assert_msg(is_right, "%s: the gradient of pow(%g, %g) by %s is %g, not %g", where,
                          (double)a[i], (double)b[i], k == 0 ? "a" : "b", (double)d[k][i],
                          (double)want);
        }
}
TEST_BOTH(pow_gradient_special_values)
{
    everywhere(try_pow_gradient);
}

// ---- rows of infinities ----------------------------------------------------------------------

#define WIDE 21 // of the rows below: these, then what fills them

static const struct soft_row {
    float x[3], fill;
    float lse;        // logsumexp; NaN: see try_soft
    float p0, log_p0; // softmax and its logarithm, of element 0
    float loss;       // cross entropy of label 0
} soft_rows[] = {
    {{-INF, -INF, -INF}, -INF, -INF, NAN, NAN, NAN},
    {{INF, 0, 1}, 0, INF, NAN, NAN, NAN},
    {{0, INF, -INF}, 0, INF, NAN, NAN, NAN},
    {{INF, INF, 0}, -INF, INF, NAN, NAN, NAN},
    {{-INF, 0, 0}, -INF, (float)M_LN2, 0, -INF, INF},
    {{3, -INF, -INF}, -INF, 3, 1, 0, 0},
    {{NAN, 0, 0}, 0, NAN, NAN, NAN, NAN},
    {{0, 0, NAN}, -INF, NAN, NAN, NAN, NAN},
    {{FLT_MAX, -FLT_MAX, 0}, 0, FLT_MAX, 1, 0, 0},
};
#define N_SOFT (int)(sizeof(soft_rows) / sizeof(soft_rows[0]))

static void check_soft(const char *where, const char *what, int row, float got, float want)
{
    bool is_near = isfinite(want) && fabsf(got - want) <= 1e-6f * (1 + fabsf(want));
    ck_assert_msg(is_near || (!isfinite(want) && is_same(got, want)),
                  "%s: %s of row %d is %g, not %g", where, what, row, (double)got, (double)want);
}

// Along the last axis and along the first, which other kernels take.
static void try_soft(tt_ctx *ctx, const char *where)
{
    static float x[N_SOFT][WIDE], across[WIDE][N_SOFT], y[N_SOFT][WIDE], z[N_SOFT];
    int32_t label[N_SOFT] = {0};
    tt_graph *g = tt_graph_new(ctx);
    for (int r = 0; r < N_SOFT; r++)
        for (int j = 0; j < WIDE; j++)
            x[r][j] = across[j][r] = j < 3 ? soft_rows[r].x[j] : soft_rows[r].fill;
    // The rows above are of three entries; those that fill with numbers have another sum.
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(N_SOFT, WIDE), x);
    tt_tensor *u = tt_const(g, TT_F32, TT_SHAPE(WIDE, N_SOFT), across);
    CHECK_OK(tt_eval(g, tt_logsumexp(g, t, .axis = -1), z, N_SOFT));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "logsumexp", r, z[r], r == 4 ? (float)log(2) : soft_rows[r].lse);
    CHECK_OK(tt_eval(g, tt_logsumexp(g, u, .axes = TT_AXES(0)), z, N_SOFT));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "logsumexp across", r, z[r], soft_rows[r].lse);
    CHECK_OK(tt_eval(g, tt_softmax(g, t), y, (int64_t)N_SOFT * WIDE));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "softmax", r, y[r][0], soft_rows[r].p0);
    CHECK_OK(tt_eval(g, tt_log_softmax(g, t), y, (int64_t)N_SOFT * WIDE));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "log_softmax", r, y[r][0], soft_rows[r].log_p0);
    tt_tensor *l = tt_const(g, TT_I32, TT_SHAPE(N_SOFT), label);
    CHECK_OK(tt_eval(g, tt_cross_entropy(g, t, l), z, N_SOFT));
    for (int r = 0; r < N_SOFT; r++)
        check_soft(where, "cross_entropy", r, z[r], soft_rows[r].loss);
}
TEST_BOTH(rows_of_infinities)
{
    everywhere(try_soft);
}

// ---- norms of large numbers ------------------------------------------------------------------

static void norm_of(const float *x, int n, bool rms, double *y)
{
    long double mean = 0, v = 0;
    for (int j = 0; j < n; j++)
        mean += (long double)x[j] / n;
    if (rms)
        mean = 0;
    for (int j = 0; j < n; j++)
        v += ((long double)x[j] - mean) * ((long double)x[j] - mean) / n;
    for (int j = 0; j < n; j++)
        y[j] = (double)(((long double)x[j] - mean) / sqrtl(v + 1e-5L));
}

static void try_norms(tt_ctx *ctx, const char *where)
{
    static const int widths[] = {1, 7, 48, 53, 1024, 1100};
    static const double sizes[] = {1e18, 1e19, 1e20, 1e25, 1e30, 1e37};
    static float x[6 * 1100], y[6 * 1100], dx[6 * 1100];
    static double want[1100];
    for (int k = 0; k < 12; k++) {
        int n = widths[k / 2];
        bool rms = k % 2 != 0;
        tt_graph *g = tt_graph_new(ctx);
        for (int r = 0; r < 6; r++) {
            test_fill(x + r * n, n, (uint64_t)r + 9, -sizes[r], sizes[r]);
            for (int j = 0; j < n; j += 3) // not about zero
                x[r * n + j] += (float)(0.5 * sizes[r]);
        }
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(6, n), x), *d = NULL;
        tt_tensor *z = rms ? tt_op_rms_norm(g, t, NULL) : tt_op_layer_norm(g, t, NULL, NULL);
        CHECK_OK(tt_grad(g, z, test_uniform(g, 5, TT_SHAPE(6, n)), 1, &t, &d));
        CHECK_OK(tt_eval(g, z, y, 6 * n));
        CHECK_OK(tt_eval(g, d, dx, 6 * n));
        for (int r = 0; r < 6; r++) {
            norm_of(x + r * n, n, rms, want);
            for (int j = 0; j < n; j++) {
                ck_assert_msg(fabs((double)y[r * n + j] - want[j]) < 2e-5 * (1 + fabs(want[j])),
                              "%s: %s of %d numbers of size %g: %g is %g, not %g", where,
                              rms ? "rms_norm" : "layer_norm", n, sizes[r], (double)x[r * n + j],
                              (double)y[r * n + j], want[j]);
                ck_assert_msg(isfinite((double)dx[r * n + j]),
                              "%s: the gradient of %s of %d numbers of size %g is %g", where,
                              rms ? "rms_norm" : "layer_norm", n, sizes[r], (double)dx[r * n + j]);
            }
        }
        tt_graph_free(g);
    }
}
TEST_BOTH(norms_of_large_numbers)
{
    everywhere(try_norms);
}

// The gradient's size is that of 1 / deviation; all entries alike give 0; an infinity gives NaN.
static void try_norm_rows(tt_ctx *ctx, const char *where)
{
    enum {
        N = 53
    };
    static float x[4][N], y[4][N], w[4][N], d[4][N], small[4][N];
    for (int scale = 0; scale < 2; scale++) {
        tt_graph *g = tt_graph_new(ctx);
        test_fill(&x[0][0], 4 * N, 3, -1, 1);
        test_fill(&w[0][0], 4 * N, 4, -1, 1);
        for (int j = 0; j < N; j++) {
            for (int r = 0; r < 2; r++)
                x[r][j] = ldexpf(x[r][j], scale == 0 ? 10 : 100);
            x[2][j] = 3e38f;
            x[3][j] = j == 20 ? INFINITY : x[3][j];
        }
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(4, N), x), *dx = NULL;
        tt_tensor *seed = tt_const(g, TT_F32, TT_SHAPE(4, N), w);
        tt_tensor *z = tt_op_layer_norm(g, t, NULL, NULL);
        CHECK_OK(tt_grad(g, z, seed, 1, &t, &dx));
        CHECK_OK(tt_eval(g, z, y, 4 * N));
        CHECK_OK(tt_eval(g, dx, scale == 0 ? small : d, 4 * N));
        for (int j = 0; j < N; j++)
            ck_assert_msg(fabsf(y[2][j]) <= 1.01f && isnan(y[3][j]), "%s: %g, %g", where,
                          (double)y[2][j], (double)y[3][j]);
        tt_graph_free(g);
    }
    for (int r = 0; r < 2; r++)
        for (int j = 0; j < N; j++)
            ck_assert_msg(fabsf(ldexpf(d[r][j], 100) - ldexpf(small[r][j], 10)) < 1e-4f,
                          "%s: the gradient is %g, not %g", where, (double)ldexpf(d[r][j], 100),
                          (double)ldexpf(small[r][j], 10));
}
TEST_BOTH(norms_of_large_rows)
{
    everywhere(try_norm_rows);
}

// ---- gradients of what chooses ---------------------------------------------------------------

// dy of ones by x, through build().
static void gradient(tt_ctx *ctx, tt_tensor *(*build)(tt_graph *g, tt_tensor *x), const float *x,
                     tt_shape shape, float *dx)
{
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *t = tt_const(g, TT_F32, shape, x), *d = NULL;
    CHECK_OK(tt_grad(g, tt_sum(g, build(g, t)), NULL, 1, &t, &d));
    CHECK_OK(tt_eval(g, d, dx, tt_shape_count(&shape)));
}
static tt_tensor *row_max(tt_graph *g, tt_tensor *x)
{
    return tt_max(g, x, .axis = -1);
}
static tt_tensor *row_min(tt_graph *g, tt_tensor *x)
{
    return tt_min(g, x, .axis = -1);
}
static tt_tensor *column_max(tt_graph *g, tt_tensor *x)
{
    return tt_max(g, x, .axes = TT_AXES(0));
}
static tt_tensor *pool(tt_graph *g, tt_tensor *x)
{
    return tt_op_max_pool2d(g, tt_reshape(g, x, TT_SHAPE(1, 2, 3, 1)), .size = {2, 3});
}
static tt_tensor *all_pool(tt_graph *g, tt_tensor *x)
{
    return tt_op_global_max_pool2d(g, tt_reshape(g, x, TT_SHAPE(1, 2, 3, 1)));
}

// Ties go to the first, a NaN is what is chosen, of several the first.
static void try_choices(tt_ctx *ctx, const char *where)
{
    static const float ties[] = {1, 5, 5, 2, 5, 1}, lows[] = {3, 1, 2, 1, 4, 1};
    static const float nans[] = {1, 9, NAN, 2, NAN, 1};
    tt_tensor *(*const builds[])(tt_graph *, tt_tensor *) = {row_max, column_max, pool, all_pool,
                                                             row_min};
    float d[6];
    for (int k = 0; k < 5; k++)
        for (int is_nan = 0; is_nan < 2; is_nan++) {
            tt_shape shape = k == 1 ? TT_SHAPE(6, 1) : TT_SHAPE(1, 6);
            gradient(ctx, builds[k], is_nan ? nans : k == 4 ? lows : ties, shape, d);
            for (int i = 0; i < 6; i++)
                ck_assert_msg(d[i] == (float)(i == (is_nan ? 2 : 1)),
                              "%s: choice %d, %s: element %d gets %g", where, k,
                              is_nan ? "NaN" : "ties", i, (double)d[i]);
        }
    // maximum and minimum: a tie gives b all of it, a NaN gives a
    static const float a[] = {1, NAN, 1, NAN, 2}, b[] = {1, 1, NAN, NAN, 3};
    static const float da[2][5] = {{0, 1, 1, 1, 0}, {0, 1, 1, 1, 1}};
    for (int k = 0; k < 2; k++) {
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *x[2] = {tt_const(g, TT_F32, TT_SHAPE(5), a),
                           tt_const(g, TT_F32, TT_SHAPE(5), b)};
        tt_tensor *dx[2];
        float y[2][5];
        tt_tensor *top = k == 0 ? tt_maximum(g, x[0], x[1]) : tt_minimum(g, x[0], x[1]);
        CHECK_OK(tt_grad(g, tt_sum(g, top), NULL, 2, x, dx));
        for (int i = 0; i < 2; i++)
            CHECK_OK(tt_eval(g, dx[i], y[i], 5));
        for (int i = 0; i < 5; i++)
            ck_assert_msg(y[0][i] == da[k][i] && y[1][i] == 1 - da[k][i], "%s: %g and %g at %d",
                          where, (double)y[0][i], (double)y[1][i], i);
    }
}
TEST_BOTH(choices_of_gradients)
{
    everywhere(try_choices);
}

// ---- argmax ----------------------------------------------------------------------------------

static void try_argmax(tt_ctx *ctx, const char *where)
{
    enum {
        N = 83
    };
    static float x[N][N], across[N][N];
    int32_t y[N], z[N];
    test_fill(&x[0][0], N * N, 5, -1, 1);
    for (int r = 0; r < N; r++) { // NaN at r, and after it; before it the greatest number
        x[r][r] = NAN;
        if (r + 30 < N)
            x[r][r + 30] = NAN;
        if (r > 20)
            x[r][r - 20] = INFINITY;
        for (int j = 0; j < N; j++)
            across[j][r] = x[r][j];
    }
    tt_graph *g = tt_graph_new(ctx);
    CHECK_OK(tt_eval(g, tt_argmax(g, tt_const(g, TT_F32, TT_SHAPE(N, N), x), 1), y, N));
    CHECK_OK(tt_eval(g, tt_argmax(g, tt_const(g, TT_F32, TT_SHAPE(N, N), across), 0), z, N));
    for (int r = 0; r < N; r++)
        ck_assert_msg(y[r] == r && z[r] == r, "%s: the first NaN is at %d, argmax is %d and %d",
                      where, r, y[r], z[r]);
}
TEST_BOTH(argmax_is_the_first_nan)
{
    everywhere(try_argmax);
}
