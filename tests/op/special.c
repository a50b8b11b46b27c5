/*
 * special.c - special values: infinities, NaN, zeros and their signs, numbers near the ends of a
 * type. The tables of docs/arithmetic.md, in every instruction set and on a GPU; the lines of the
 * functions of one number are held against the page itself.
 */
#include "special.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#define EACH 4096 // elements of a run, at most

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
void special_everywhere(void (*try)(tt_ctx *ctx, const char *where))
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
    {"selu", tt_selu, {-1.75809934f, -0.0f, 0, INF}},
    {"relu6", tt_relu6, {0, 0, 0, 6}},
    {"mish", tt_mish, {NAN, -0.0f, 0, INF}},
    {"hard_sigmoid", tt_hard_sigmoid, {0, 0.5f, 0.5f, 1}},
    {"hard_swish", tt_hard_swish, {NAN, -0.0f, 0, INF}},
    {"softsign", tt_softsign, {NAN, -0.0f, 0, NAN}},
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
    special_everywhere(try_functions);
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
    special_everywhere(try_elu);
}

static void try_slopes(tt_ctx *ctx, const char *where)
{
    tt_tensor *(*const acts[])(tt_graph *, tt_tensor *) = {
        tt_gelu,    tt_gelu_erf, tt_silu,     tt_softplus,     tt_mish, tt_hard_swish,
        tt_sigmoid, tt_tanh,     tt_softsign, tt_hard_sigmoid, tt_relu6};
    const float x[] = {1e20f, -1e20f, FLT_MAX, -FLT_MAX, 120, -120};
    for (int k = 0; k < (int)(sizeof(acts) / sizeof(acts[0])); k++) {
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(6), x), *dx = NULL;
        float y[6];
        CHECK_OK(tt_grad(g, tt_sum(g, acts[k](g, t)), NULL, 1, &t, &dx));
        CHECK_OK(tt_eval(g, dx, y, 6));
        for (int i = 0; i < 6; i++)
            ck_assert_msg(fabsf(y[i] - (k < 6 && x[i] > 0 ? 1.0f : 0.0f)) < 1e-4f,
                          "%s: the slope of activation %d at %g is %g", where, k, (double)x[i],
                          (double)y[i]);
    }
}
TEST_BOTH(slopes_of_large_numbers)
{
    special_everywhere(try_slopes);
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
    special_everywhere(try_angles);
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
    special_everywhere(try_pow);
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
    special_everywhere(try_exact);
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
    special_everywhere(try_pow_gradient);
}
