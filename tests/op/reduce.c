/*
 * reduce.c - reductions over any axes against plain loops in double, their order of additions
 * against loops in float, and counts over the global batch.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHAPE,
    AXES,
    KEEP,
    FRONT
}; // p[]: a row of shapes, a bit per axis, keep_dims, transposed

#define B TT_BATCH
static const tt_shape shapes[] = {
    {2, {B, 33}},       // 0
    {3, {B, 5, 21}},    // 1
    {1, {B}},           // 2
    {4, {B, 3, 4, 17}}, // 3
    {2, {B, 515}},      // 4
    {2, {601, 37}},     // 5
    {3, {6, 1, 300}},   // 6
    {4, {3, 5, 2, 7}},  // 7
    {0, {0}},           // 8
    {2, {0, 4}},        // 9
    {2, {4, 0}},        // 10
    {1, {1000}},        // 11
    {2, {9, 2500}},     // 12: long rows
    {3, {-3, 2, 5}},    // 13: three entries a row
};
#undef B

typedef struct reduction {
    tt_shape x;
    bool on[TT_MAX_RANK];
    int64_t n; // reduced elements per output
} reduction;

// x as it enters; with FRONT the batch is moved behind axis 1 before the op.
static tt_tensor *enter(op_test *t, tt_reduce_opts *opts)
{
    const op_case *c = op_case_of(t);
    tt_shape s = shapes[c->p[SHAPE]];
    tt_tensor *x = op_input(t, s, c->f[0], c->f[1]);
    *opts = (tt_reduce_opts){.opts_size = sizeof(*opts), .keep_dims = c->p[KEEP]};
    for (int i = 0; i < s.rank; i++)
        if (c->p[AXES] >> i & 1)
            opts->axes.axis[opts->axes.n++] = i % 2 ? i - s.rank : i;
    if (c->p[FRONT]) {
        tt_axes order = {s.rank, {1, 0, 2, 3}};
        x = tt_transpose(op_graph(t), x, order);
    }
    return x;
}

static reduction reduction_of(const op_test *t)
{
    const op_case *c = op_case_of(t);
    reduction r = {.x = op_shape(t, 0), .n = 1};
    if (c->p[FRONT]) {
        int64_t d = r.x.dim[0];
        r.x.dim[0] = r.x.dim[1];
        r.x.dim[1] = d;
    }
    for (int i = 0; i < r.x.rank; i++) {
        r.on[i] = c->p[AXES] == 0 || (c->p[AXES] >> i & 1) != 0;
        r.n *= r.on[i] ? r.x.dim[i] : 1;
    }
    return r;
}

// Calls back with each element of x in row-major order, its output and its index among the reduced.
static void each(const op_test *t, void (*fn)(double *y, double x, int64_t index, int64_t n),
                 double *y)
{
    const op_case *c = op_case_of(t);
    reduction r = reduction_of(t);
    int64_t count = tt_shape_count(&r.x), at[TT_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        int64_t out = 0, index = 0, from = i;
        for (int a = 0; a < r.x.rank; a++)
            *(r.on[a] ? &index : &out) = *(r.on[a] ? &index : &out) * r.x.dim[a] + at[a];
        if (c->p[FRONT]) { // x is stored with axes 0 and 1 the other way round
            from = 0;
            for (int a = 0; a < r.x.rank; a++) {
                int k = a == 0 ? 1 : a == 1 ? 0 : a;
                from = from * r.x.dim[k] + at[k];
            }
        }
        fn(&y[out], op_value(t, 0)[from], index, r.n);
        for (int a = r.x.rank - 1; a >= 0 && ++at[a] == r.x.dim[a]; a--)
            at[a] = 0;
    }
}

static void start(const op_test *t, double *y, double value)
{
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = value;
}

#define REDUCE(name_)                                    \
    static tt_tensor *name_##_build(op_test *t)          \
    {                                                    \
        tt_reduce_opts opts;                             \
        tt_tensor *x = enter(t, &opts);                  \
        return tt_##name_##_with(op_graph(t), x, &opts); \
    }
REDUCE(sum)
REDUCE(mean)
REDUCE(max)
REDUCE(min)
REDUCE(logsumexp)

static void add(double *y, double x, int64_t index, int64_t n)
{
    (void)index, (void)n;
    *y += x;
}
static void add_part(double *y, double x, int64_t index, int64_t n)
{
    (void)index;
    *y += x / (double)n;
}
static void add_exp(double *y, double x, int64_t index, int64_t n)
{
    (void)index, (void)n;
    *y += exp(x);
}
static void greatest(double *y, double x, int64_t index, int64_t n)
{
    (void)index, (void)n;
    *y = x > *y ? x : *y;
}
static void least(double *y, double x, int64_t index, int64_t n)
{
    (void)index, (void)n;
    *y = x < *y ? x : *y;
}

static void sum_oracle(const op_test *t, double *y)
{
    start(t, y, 0);
    each(t, add, y);
}
static void mean_oracle(const op_test *t, double *y)
{
    start(t, y, 0);
    each(t, add_part, y);
}
static void max_oracle(const op_test *t, double *y)
{
    start(t, y, -INFINITY);
    each(t, greatest, y);
}
static void min_oracle(const op_test *t, double *y)
{
    start(t, y, INFINITY);
    each(t, least, y);
}
static void logsumexp_oracle(const op_test *t, double *y)
{
    start(t, y, 0);
    each(t, add_exp, y);
    for (int64_t i = 0; i < op_count(t); i++)
        y[i] = log(y[i]);
}

static tt_tensor *argmax_build(op_test *t)
{
    tt_reduce_opts opts;
    tt_tensor *x = enter(t, &opts);
    return tt_argmax(op_graph(t), x, opts.axes.axis[0] == 0 ? TT_FIRST : opts.axes.axis[0]);
}
static void first_greatest(double *y, double x, int64_t index, int64_t n)
{
    static double top; // of the output being scanned; argmax cases have one output at a time
    (void)n;
    if (index == 0 || x > top) {
        top = x;
        *y = (double)index;
    }
}
static void argmax_oracle(const op_test *t, double *y)
{
    // The reduced axis must be the innermost of the walk: one output after the other.
    reduction r = reduction_of(t);
    int axis = 0;
    while (!r.on[axis])
        axis++;
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < r.x.rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : r.x.dim[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t j = 0; j < r.n; j++)
                first_greatest(&y[o * inner + k], op_value(t, 0)[(o * r.n + j) * inner + k], j,
                               r.n);
}

#define OPEN(name_, shape_, axes_, keep_, more_)                                                  \
    {                                                                                             \
        .label = #name_ " " #shape_ " " #axes_, .build = name_##_build, .oracle = name_##_oracle, \
        .rows = 19, .p = {shape_, axes_, keep_}, .f = {-1, 1}, more_                              \
    }
#define FIXED(name_, shape_, axes_, keep_, more_)                                                 \
    {                                                                                             \
        .label = #name_ " " #shape_ " " #axes_, .build = name_##_build, .oracle = name_##_oracle, \
        .p = {shape_, axes_, keep_}, .f = {-1, 1}, more_                                          \
    }
#define MOVED(name_, shape_, axes_)                                              \
    {                                                                            \
        .label = #name_ " moved " #shape_ " " #axes_, .build = name_##_build,    \
        .oracle = name_##_oracle, .rows = 19, .p = {shape_, axes_, 0, 1}, .f = { \
            -1,                                                                  \
            1                                                                    \
        }                                                                        \
    }
#define NONE .skip = 0
#define INT  .skip = OP_NO_GRAD | OP_NO_HALF
OP_CASES(sum, OPEN(sum, 0, 0, 0, NONE), OPEN(sum, 0, 1, 0, NONE), OPEN(sum, 0, 2, 1, NONE),
         OPEN(sum, 0, 3, 1, NONE), OPEN(sum, 1, 1, 0, NONE), OPEN(sum, 1, 2, 0, NONE),
         OPEN(sum, 1, 4, 0, NONE), OPEN(sum, 1, 5, 0, NONE), OPEN(sum, 1, 3, 1, NONE),
         OPEN(sum, 1, 6, 0, NONE), OPEN(sum, 2, 0, 0, NONE), OPEN(sum, 3, 5, 0, NONE),
         OPEN(sum, 3, 10, 1, NONE), OPEN(sum, 3, 11, 0, NONE), OPEN(sum, 4, 1, 0, NONE),
         OPEN(sum, 4, 2, 0, NONE), OPEN(sum, 13, 0, 0, NONE), OPEN(sum, 13, 1, 0, NONE),
         OPEN(sum, 13, 3, 0, NONE), FIXED(sum, 5, 0, 0, NONE), FIXED(sum, 5, 1, 0, NONE),
         FIXED(sum, 5, 2, 0, NONE), FIXED(sum, 6, 1, 0, NONE), FIXED(sum, 6, 3, 0, NONE),
         FIXED(sum, 6, 2, 0, NONE), FIXED(sum, 6, 5, 1, NONE), FIXED(sum, 7, 5, 0, NONE),
         FIXED(sum, 7, 10, 0, NONE), FIXED(sum, 7, 6, 1, NONE), FIXED(sum, 8, 0, 0, NONE),
         FIXED(sum, 9, 1, 0, NONE), FIXED(sum, 9, 2, 0, NONE), FIXED(sum, 10, 2, 0, NONE),
         FIXED(sum, 11, 0, 1, NONE), FIXED(sum, 12, 1, 0, NONE), MOVED(sum, 1, 1), MOVED(sum, 1, 2),
         MOVED(sum, 1, 3), MOVED(sum, 1, 7), MOVED(sum, 1, 6), MOVED(sum, 3, 10))
OP_CASES(mean, OPEN(mean, 0, 0, 0, NONE), OPEN(mean, 1, 1, 0, NONE), OPEN(mean, 1, 6, 1, NONE),
         OPEN(mean, 2, 0, 0, NONE), OPEN(mean, 13, 1, 0, NONE), FIXED(mean, 7, 9, 0, NONE))
OP_CASES(max, OPEN(max, 0, 2, 0, NONE), OPEN(max, 1, 2, 1, NONE), OPEN(max, 1, 6, 0, NONE),
         OPEN(max, 3, 10, 0, NONE), OPEN(max, 1, 1, 0, .skip = OP_NO_ROWS),
         FIXED(max, 5, 0, 0, NONE), FIXED(max, 5, 1, 0, NONE), FIXED(max, 7, 5, 0, NONE),
         FIXED(max, 12, 1, 0, NONE), MOVED(max, 1, 4))
OP_CASES(min, OPEN(min, 0, 2, 0, NONE), OPEN(min, 1, 2, 1, NONE), FIXED(min, 5, 1, 0, NONE),
         FIXED(min, 7, 9, 0, NONE), FIXED(min, 11, 0, 0, NONE))
OP_CASES(logsumexp, OPEN(logsumexp, 0, 2, 0, NONE), OPEN(logsumexp, 1, 2, 1, NONE),
         OPEN(logsumexp, 1, 6, 0, NONE), FIXED(logsumexp, 5, 0, 0, NONE))
OP_CASES(argmax, OPEN(argmax, 0, 2, 0, INT), OPEN(argmax, 1, 2, 0, INT), OPEN(argmax, 1, 4, 0, INT),
         FIXED(argmax, 5, 1, 0, INT), FIXED(argmax, 5, 2, 0, INT), FIXED(argmax, 11, 1, 0, INT),
         FIXED(argmax, 12, 1, 0, INT), FIXED(argmax, 12, 2, 0, INT))

// ---- order, ties, counts, errors -------------------------------------------------------------

static float row_sum(const float *x, int64_t n)
{
    float p[16] = {0};
    for (int64_t j = 0; j < n; j++)
        p[j % 16] += x[j];
    for (int d = 8; d > 0; d /= 2)
        for (int i = 0; i < d; i++)
            p[i] += p[i + d];
    return p[0] + 0;
}

// [3, 5, 7, 50] over axes 0, 2, 3: rows of 50 * 7 by the 16 partials, then a chain over axis 0.
TEST(sum_order_is_the_written_one)
{
    enum {
        A = 3,
        C = 5,
        D = 7,
        E = 50
    };
    float x[A * C * D * E], y[C], want[C];
    test_fill(x, A * C * D * E, 5, -1, 1);
    for (int c = 0; c < C; c++) {
        want[c] = 0;
        for (int a = 0; a < A; a++)
            want[c] += row_sum(x + (a * C + c) * D * E, D * E);
    }
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(A, C, D, E), x);
    CHECK_OK(tt_eval(g, tt_sum(g, t, .axes = TT_AXES(0, 2, -1)), y, C));
    CHECK(memcmp(y, want, sizeof(want)) == 0);
    CHECK_OK(tt_close(ctx));
}

// v[0] to v[n - 1] by the binary tree over their numbers.
static float tree_sum(const float *v, int64_t n)
{
    int64_t half = 1;
    if (n <= 1)
        return n == 0 ? 0 : v[0];
    while (half * 2 < n)
        half *= 2;
    return tree_sum(v, half) + tree_sum(v + half, n - half);
}

// Terms that lie `step` apart: chains of 64, then the tree.
static float terms_sum(const float *v, int64_t step, int64_t n)
{
    static float block[1 << 15];
    int64_t blocks = 0;
    for (int64_t i = 0; i < n; i += 64) {
        float sum = 0;
        for (int64_t k = i; k < i + 64 && k < n; k++)
            sum += v[k * step];
        block[blocks++] = sum;
    }
    return tree_sum(block, blocks);
}

// A row: blocks of 1,024, each by 16 partials, then the tree.
static float long_row_sum(const float *v, int64_t n)
{
    static float block[1 << 15];
    int64_t blocks = 0;
    for (int64_t i = 0; i < n; i += 1024)
        block[blocks++] = row_sum(v + i, n - i < 1024 ? n - i : 1024);
    return tree_sum(block, blocks);
}

static const int64_t long_sums[][4] = {
    // [a, n, c], of which n is reduced: [a, c]; with the last number 1 a and c are: [n]
    {1, 512, 512, 0},   {1, 4096, 100, 0}, {1, 65536, 3, 0}, {3, 1000, 7, 0},
    {1, 300, 2500, 0},  {2, 64, 70, 0},    {2, 65, 200, 0},  {1, 128, 65, 0},
    {1, 20001, 2, 0},   {2, 1024, 1, 0},   {3, 1025, 1, 0},  {2, 5000, 1, 0},
    {1, 1 << 20, 1, 0}, {200, 3, 1500, 1}, {64, 2, 3, 1},    {129, 5, 64, 1},
};

static float *long_input(const int64_t *d)
{
    float *x = malloc(sizeof(*x) * (size_t)(d[0] * d[1] * d[2]));
    test_fill(x, d[0] * d[1] * d[2], 5, 0, 1);
    return x;
}

// How many outputs a row of long_sums has; each as it is defined, and exactly.
static int64_t long_outputs(const int64_t *d, const float *x, float *want, double *exact)
{
    int64_t n = d[3] ? d[1] : d[0] * d[2];
    for (int64_t o = 0; o < n; o++) {
        int64_t outer = d[3] ? d[0] : 1, inner = d[3] ? d[2] : d[1], step = d[3] ? 1 : d[2];
        const float *first = d[3] ? x + o * d[2] : x + o / d[2] * d[1] * d[2] + o % d[2];
        float rows[256];
        exact[o] = 0;
        for (int64_t i = 0; i < outer; i++) {
            const float *row = first + i * d[1] * d[2];
            for (int64_t k = 0; k < inner; k++)
                exact[o] += (double)row[k * step];
            rows[i] = step > 1 ? terms_sum(row, step, inner) : long_row_sum(row, inner);
        }
        want[o] = d[3] ? terms_sum(rows, 1, outer) : rows[0];
    }
    return n;
}

static tt_tensor *long_sum(tt_graph *g, const int64_t *d, const float *x)
{
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(d[0], d[1], d[2]), x);
    return d[3] ? tt_sum(g, t, .axes = TT_AXES(0, 2)) : tt_sum(g, t, .axis = 1);
}

// Long sums by blocks and their tree, in every set and with any threads.
TEST(sum_order_of_long_axes)
{
    static float want[8192], y[8192];
    static double exact[8192];
    for (size_t i = 0; i < sizeof(long_sums) / sizeof(long_sums[0]); i++) {
        const int64_t *d = long_sums[i];
        float *x = long_input(d);
        int64_t n = long_outputs(d, x, want, exact);
        for (int isa = 0; test_isa(isa) != NULL; isa++) {
            tt_ctx *ctx = tt_open(.threads = 1 + (int)i % 3, .isa = test_isa(isa));
            tt_graph *g = tt_graph_new(ctx);
            CHECK_OK(tt_eval(g, long_sum(g, d, x), y, n));
            for (int64_t o = 0; o < n; o++)
                ck_assert_msg(y[o] == want[o], "[%lld, %lld, %lld], %s: sum %lld is %a, not %a",
                              (long long)d[0], (long long)d[1], (long long)d[2], test_isa(isa),
                              (long long)o, (double)y[o], (double)want[o]);
            CHECK_OK(tt_close(ctx));
        }
        free(x);
    }
}

// Of numbers in [0, 1), whose errors add up: within a few roundings however many there are.
TEST_BOTH(sums_of_long_axes_are_accurate)
{
    static float want[8192], y[8192];
    static double exact[8192];
    for (size_t i = 0; i < sizeof(long_sums) / sizeof(long_sums[0]); i++) {
        const int64_t *d = long_sums[i];
        float *x = long_input(d);
        int64_t n = long_outputs(d, x, want, exact);
        tt_ctx *ctx = test_ctx();
        tt_graph *g = tt_graph_new(ctx);
        CHECK_OK(tt_eval(g, long_sum(g, d, x), y, n));
        double worst = 0, squares = 0;
        for (int64_t o = 0; o < n; o++) {
            double error = fabs(((double)y[o] - exact[o]) / exact[o]);
            worst = fmax(worst, error);
            squares += error * error / (double)n;
        }
        ck_assert_msg(worst < 4e-7 && sqrt(squares) < 1.2e-7,
                      "[%lld, %lld, %lld]: relative errors up to %.1e, %.1e on average",
                      (long long)d[0], (long long)d[1], (long long)d[2], worst, sqrt(squares));
        CHECK_OK(tt_close(ctx));
        free(x);
    }
}

// Columns of a batch of 11 rows in 4 lanes: chains per lane, then the tree; and of 1,100.
static void check_lanes(int rows)
{
    enum {
        C = 137,
        L = 4
    };
    static float x[1100 * C], y[C], want[C];
    test_fill(x, rows * C, 6, -1, 1);
    for (int c = 0; c < C; c++) {
        float lane[L];
        for (int l = 0; l < L; l++)
            lane[l] = terms_sum(x + l * rows / L * C + c, C, (l + 1) * rows / L - l * rows / L);
        want[c] = (lane[0] + lane[1]) + (lane[2] + lane[3]);
    }
    tt_ctx *ctx = tt_open(.lanes = L);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *f = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, C));
    tt_tensor *sum = tt_sum(g, f, .axis = TT_FIRST);
    tt_session *s = tt_session_new(g);
    CHECK_OK(tt_run(s, .feeds = &(tt_feed_value){f, x, TT_SHAPE(rows, C), TT_F32}, .n_feeds = 1,
                    .fetches = &(tt_fetch){sum, y, sizeof(y)}, .n_fetches = 1));
    CHECK(memcmp(y, want, sizeof(want)) == 0);
    CHECK_OK(tt_close(ctx));
}

TEST(sum_order_of_lanes)
{
    check_lanes(11);
    check_lanes(1100);
}

TEST_BOTH(max_tie_goes_to_the_first)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    float x[] = {1, 5, 5, 2, -3, -3}, d[6], seed[] = {10, 20, 30};
    tt_tensor *t = tt_const(g, TT_F32, TT_SHAPE(2, 3), x), *dx;
    tt_tensor *y = tt_max(g, t, .axis = -1);
    CHECK_OK(tt_grad(g, y, tt_const(g, TT_F32, TT_SHAPE(2), seed), 1, &t, &dx));
    CHECK_OK(tt_eval(g, dx, d, 6));
    CHECK(d[0] == 0 && d[1] == 10 && d[2] == 0 && d[3] == 20 && d[4] == 0 && d[5] == 0);
    y = tt_min(g, t, .axis = TT_FIRST);
    CHECK_OK(tt_grad(g, y, tt_const(g, TT_F32, TT_SHAPE(3), seed), 1, &t, &dx));
    CHECK_OK(tt_eval(g, dx, d, 6));
    CHECK(d[0] == 10 && d[1] == 0 && d[2] == 0 && d[3] == 0 && d[4] == 20 && d[5] == 30);
    int32_t k[2];
    CHECK_OK(tt_eval(g, tt_argmax(g, t, -1), k, 2));
    CHECK(k[0] == 1 && k[1] == 0);
    CHECK_OK(tt_close(ctx));
}

// A part of a batch divides by the rows of the whole.
TEST_BOTH(count_is_global)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *f = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 3));
    tt_reduce_opts first = {.opts_size = sizeof(first), .axis = TT_FIRST};
    tt_reduce_opts last = {.opts_size = sizeof(last), .axis = -1};
    tt_tensor *all = tt_count(g, f, NULL), *rows = tt_count(g, f, &first);
    tt_tensor *cols = tt_count(g, f, &last);
    tt_session *s = tt_session_new(g);
    float x[12] = {0}, n[3];
    tt_fetch fetches[] = {{all, &n[0], 4}, {rows, &n[1], 4}, {cols, &n[2], 4}};
    CHECK_OK(tt_run(s, .feeds = &(tt_feed_value){f, x, TT_SHAPE(4, 3), TT_F32}, .n_feeds = 1,
                    .fetches = fetches, .n_fetches = 3, .batch = {4, 16, 8}));
    CHECK(n[0] == 48 && n[1] == 16 && n[2] == 3);
    CHECK_OK(tt_close(ctx));
}

// bf16 sums over the batch are rounded once, after the lanes.
TEST(sum_of_halves_is_wide)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *f = tt_feed(g, .dtype = TT_BF16, .shape = TT_SHAPE(TT_BATCH));
    tt_tensor *sum = tt_sum(g, f);
    CHECK(tt_tensor_dtype(sum) == TT_BF16);
    CHECK(tt_tensor_dtype(sum->node->in[0]) == TT_F32);
    CHECK_OK(tt_close(ctx));
}

// All lanes but the first of the most there can be: a sum for every level is pending, up and down.
TEST(sum_over_most_of_the_lanes)
{
    enum {
        LANES = 1024,
        COLS = 3,
        PARTS = 10
    };
    static float x[LANES - 1][COLS], got[PARTS][COLS], dense[PARTS][COLS][2], dy[LANES - 1][2];
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .lanes = LANES, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *f = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, COLS));
    tt_tensor *h = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2));
    tt_tensor *sum = tt_sum(g, f, .axis = TT_FIRST);
    tt_tensor *product = tt_matmul(g, f, h, .transpose_a = true);
    for (int i = 0; i < LANES - 1; i++) {
        for (int c = 0; c < COLS; c++)
            x[i][c] = (float)(i % 7 + c); // small integers: sums are exact
        dy[i][0] = 1;
        dy[i][1] = (float)(i % 3);
    }
    tt_session *s = tt_session_new(g);
    tt_feed_value in[] = {{f, x, TT_SHAPE(LANES - 1, COLS), TT_F32},
                          {h, dy, TT_SHAPE(LANES - 1, 2), TT_F32}};
    tt_fetch out[] = {{sum, got, sizeof(got)}, {product, dense, sizeof(dense)}};
    tt_status st = tt_run(s, .feeds = in, .n_feeds = 2, .fetches = out, .n_fetches = 2,
                          .batch = {1, LANES, LANES});
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
    for (int p = 0, from = 1; p < PARTS; from += 1 << p++)
        for (int c = 0; c < COLS; c++) {
            float want = 0, want_second = 0;
            for (int i = from; i < from + (1 << p); i++) {
                want += x[i - 1][c];
                want_second += x[i - 1][c] * dy[i - 1][1];
            }
            CHECK(got[p][c] == want && dense[p][c][0] == want && dense[p][c][1] == want_second);
        }
    CHECK_OK(tt_close(ctx));
}

TEST(reduce_refuses)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(2, 3));
    CHECK(tt_sum(g, x, .axis = 2) == NULL);
    CHECK_MESSAGE(ctx, "no axis 2 in [2, 3]");
    tt_clear_error(ctx);
    CHECK(tt_mean(g, x, .axes = TT_AXES(1, -1)) == NULL);
    CHECK_MESSAGE(ctx, "twice");
    tt_clear_error(ctx);
    CHECK(tt_argmax(g, x, -3) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_max(g, test_iota_i32(g, 3)) == NULL);
    CHECK(tt_close(ctx) == TT_EDTYPE);
}
