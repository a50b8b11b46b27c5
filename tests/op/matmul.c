/*
 * matmul.c - products: all transpositions, broadcasting of leading axes, rows and lanes, bias and
 * activation, and the gradients as outputs of their own (so that gradients of gradients are
 * checked).
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The numbers of a case. LEAD_A and LEAD_B: two dimensions each before the last two, 0: none.
enum {
    M,
    N,
    K,
    TA,
    TB,
    BIAS,
    ACT,
    LEAD_A,
    LEAD_A2,
    LEAD_B,
    LEAD_B2,
    OPEN
};
// What is open, with rows: the first axis of a (a row, or with lead a batch), or k.
enum {
    OPEN_A = 0,
    OPEN_K = 1,
    OPEN_BOTH = 2
};

static tt_shape matrix(const op_case *c, int64_t rows, int64_t cols, int lead, bool is_open)
{
    tt_shape s = {0, {0}};
    for (int i = 0; i < 2; i++)
        if (c->p[lead + i] != 0)
            s.dim[s.rank++] = c->p[lead + i];
    s.dim[s.rank++] = rows;
    s.dim[s.rank++] = cols;
    if (is_open && c->rows > 0)
        s.dim[0] = TT_BATCH;
    return s;
}

static tt_tensor *input_a(op_test *t)
{
    const op_case *c = op_case_of(t);
    int64_t m = c->p[M], k = c->p[K];
    return op_input(t, matrix(c, c->p[TA] ? k : m, c->p[TA] ? m : k, LEAD_A, true), -1, 1);
}

static tt_tensor *input_b(op_test *t)
{
    const op_case *c = op_case_of(t);
    int64_t n = c->p[N], k = c->p[K];
    return op_input(t, matrix(c, c->p[TB] ? n : k, c->p[TB] ? k : n, LEAD_B, c->p[OPEN] != OPEN_A),
                    -1, 1);
}

static tt_tensor *product(op_test *t, tt_tensor *a, tt_tensor *b)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *bias = p[BIAS] ? op_input(t, TT_SHAPE(p[N]), -1, 1) : NULL;
    return tt_matmul(op_graph(t), a, b, .transpose_a = p[TA], .transpose_b = p[TB], .bias = bias,
                     .act = (tt_act)p[ACT]);
}

static tt_tensor *build(op_test *t)
{
    tt_tensor *a = input_a(t), *b = input_b(t);
    return product(t, a, b);
}

// The matrix of x that belongs to number i among those of y: leading axes broadcast.
static const double *matrix_of(const double *x, const tt_shape *xs, const tt_shape *ys, int64_t i)
{
    int64_t at = 0, step = 1;
    for (int d = 3; d <= ys->rank; d++) {
        int64_t dy = ys->dim[ys->rank - d], dx = d <= xs->rank ? xs->dim[xs->rank - d] : 1;
        if (dx != 1)
            at += i % dy * step;
        step *= dx;
        i /= dy;
    }
    return x + at * xs->dim[xs->rank - 2] * xs->dim[xs->rank - 1];
}

static void oracle(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    tt_shape as = op_shape(t, 0), bs = op_shape(t, 1), ys = op_out_shape(t);
    int64_t m = ys.dim[ys.rank - 2], n = ys.dim[ys.rank - 1];
    int64_t k = as.dim[as.rank - (p[TA] ? 2 : 1)];
    for (int64_t i = 0; i < op_count(t); i++) {
        const double *a = matrix_of(op_value(t, 0), &as, &ys, i / (m * n));
        const double *b = matrix_of(op_value(t, 1), &bs, &ys, i / (m * n));
        int64_t r = i / n % m, c = i % n;
        double z = 0;
        for (int64_t j = 0; j < k; j++)
            z += a[p[TA] ? j * m + r : r * k + j] * b[p[TB] ? c * k + j : j * n + c];
        y[i] = test_act((tt_act)p[ACT], z + (p[BIAS] ? op_value(t, 2)[c] : 0));
    }
}

// p begins with m, n, k, transpose a, transpose b, bias, activation.
#define CASE .build = build, .oracle = oracle
OP_CASES(matmul, //
         {"dense", CASE, .rows = 33, .p = {0, 10, 37, [BIAS] = 1}},
         {"dense relu", CASE, .rows = 9, .p = {0, 35, 64, [BIAS] = 1, [ACT] = TT_RELU},
          .skip = OP_NO_GRAD},
         {"long chain", CASE, .rows = 5, .p = {0, 67, 1031}, .tol = 1e-4},
         {"longer chain", CASE, .rows = 3, .p = {0, 9, 2500, [BIAS] = 1}, .tol = 1e-4},
         {"many panels", CASE, .rows = 17, .p = {0, 530, 20}},
         {"gelu", CASE, .rows = 7, .p = {0, 18, 5, [BIAS] = 1, [ACT] = TT_GELU}},
         {"gelu without bias", CASE, .p = {3, 32, 4, [ACT] = TT_GELU}},
         {"gelu erf", CASE, .rows = 3, .p = {0, 16, 5, [ACT] = TT_GELU_ERF}},
         {"silu", CASE, .rows = 3, .p = {0, 33, 5, [BIAS] = 1, [ACT] = TT_SILU}},
         {"tanh", CASE, .rows = 3, .p = {0, 7, 5, [BIAS] = 1, [ACT] = TT_TANH}},
         {"sigmoid", CASE, .rows = 3, .p = {0, 7, 5, [ACT] = TT_SIGMOID}},
         {"softplus", CASE, .rows = 3, .p = {0, 7, 5, [ACT] = TT_SOFTPLUS}},
         {"elu", CASE, .rows = 3, .p = {0, 7, 5, [ACT] = TT_ELU}, .skip = OP_NO_GRAD},
         {"leaky relu", CASE, .p = {3, 7, 5, [ACT] = TT_LEAKY_RELU}, .skip = OP_NO_GRAD},
         {"tokens", CASE, .rows = 11, .p = {3, 19, 23, [BIAS] = 1, [LEAD_A] = 1}},
         {"many rows", CASE, .rows = 301, .p = {0, 3, 2}},
         {"one by one", CASE, .rows = 1, .p = {0, 1, 1}},
         {"no k", CASE, .p = {3, 4, 0, [BIAS] = 1}, .skip = OP_NO_GRAD},
         {"no columns", CASE, .p = {3, 0, 4}, .skip = OP_NO_GRAD},
         {"b turned", CASE, .rows = 29, .p = {0, 31, 513, [TB] = 1}, .tol = 1e-4},
         {"a turned", CASE, .p = {33, 17, 70, [TA] = 1}},
         {"both turned", CASE, .p = {16, 48, 19, [TA] = 1, [TB] = 1, [BIAS] = 1}},
         {"strides of a page", CASE, .p = {15, 33, 1024}, .tol = 1e-4},
         {"lanes", CASE, .rows = 45, .p = {20, 33, [TA] = 1, [OPEN] = OPEN_K}},
         {"fewer rows than lanes", CASE, .rows = 5, .p = {3, 18, [TA] = 1, [OPEN] = OPEN_K}},
         {"long lanes", CASE, .rows = 1200, .p = {5, 7, [TA] = 1, [OPEN] = OPEN_K}, .tol = 1e-4},
         {"batched", CASE, .rows = 5,
          .p = {7, 9,
                6, [LEAD_A] = 1, [LEAD_A2] = 2, [LEAD_B] = 1, [LEAD_B2] = 2, [OPEN] = OPEN_BOTH}},
         {"batched by one b", CASE, .rows = 3,
          .p = {7, 9, 6, [TB] = 1, [LEAD_A] = 1, [LEAD_A2] = 4, [LEAD_B] = 4}},
         {"batched, a turned", CASE, .rows = 3, .p = {7, 9, 6, [TA] = 1, [LEAD_A] = 1}},
         {"broadcast both ways", CASE,
          .p = {4, 5, 3, [LEAD_A] = 3, [LEAD_A2] = 1, [LEAD_B] = 1, [LEAD_B2] = 2, [BIAS] = 1}},
         {"b of higher rank", CASE, .p = {4, 17, 3, [TA] = 1, [LEAD_B] = 2, [LEAD_B2] = 3}})

// ---- gradients as the output -----------------------------------------------------------------

// The gradient of sum(dy product(a, b)) by input which (0: a, 1: b).
static tt_tensor *build_grad(op_test *t, int which)
{
    tt_tensor *in[2] = {input_a(t), input_b(t)}, *out = NULL;
    tt_tensor *y = product(t, in[0], in[1]);
    tt_tensor *dy = op_input(t, tt_tensor_shape(y), -1, 1);
    CHECK_OK(tt_grad(op_graph(t), y, dy, 1, &in[which], &out));
    return out;
}

static tt_tensor *build_da(op_test *t)
{
    return build_grad(t, 0);
}

static tt_tensor *build_db(op_test *t)
{
    return build_grad(t, 1);
}

// db = a^T dy over all rows of a; nothing is turned.
static void oracle_db(const op_test *t, double *y)
{
    const double *a = op_value(t, 0), *dy = op_value(t, 2);
    tt_shape as = op_shape(t, 0), ys = op_out_shape(t);
    int64_t k = ys.dim[0], n = ys.dim[1], rows = tt_shape_count(&as) / k;
    for (int64_t i = 0; i < op_count(t); i++) {
        y[i] = 0;
        for (int64_t r = 0; r < rows; r++)
            y[i] += a[r * k + i / n] * dy[r * n + i % n];
    }
}

OP_CASES(matmul_grad, //
         {"da", .build = build_da, .rows = 5, .p = {0, 33, 6}, .skip = OP_NO_ORACLE},
         {"da, b turned", .build = build_da, .rows = 5, .p = {0, 6, 7, [TB] = 1},
          .skip = OP_NO_ORACLE},
         {"da, a turned", .build = build_da, .p = {4, 6, 7, [TA] = 1}, .skip = OP_NO_ORACLE},
         {"da, both turned", .build = build_da, .p = {4, 6, 7, [TA] = 1, [TB] = 1},
          .skip = OP_NO_ORACLE},
         {"db", .build = build_db, .oracle = oracle_db, .rows = 21, .p = {0, 18, 5}},
         {"db, b turned", .build = build_db, .rows = 5, .p = {0, 6, 7, [TB] = 1},
          .skip = OP_NO_ORACLE},
         {"db, both turned", .build = build_db, .p = {4, 6, 7, [TA] = 1, [TB] = 1},
          .skip = OP_NO_ORACLE},
         {"db of tokens", .build = build_db, .oracle = oracle_db, .rows = 9,
          .p = {3, 17, 4, [LEAD_A] = 1}},
         {"db of long rows", .build = build_db, .oracle = oracle_db, .rows = 5,
          .p = {1300, 17, 2, [LEAD_A] = 1}, .tol = 1e-4, .skip = OP_NO_GRAD},
         {"db of tokens, a turned", .build = build_db, .rows = 9,
          .p = {3, 5, 4, [TA] = 1, [LEAD_A] = 1}, .skip = OP_NO_ORACLE},
         {"db by gelu", .build = build_db, .rows = 5, .p = {0, 4, 3, [BIAS] = 1, [ACT] = TT_GELU},
          .skip = OP_NO_ORACLE | OP_NO_GRAD},
         {"da by tanh", .build = build_da, .rows = 3, .p = {0, 4, 3, [ACT] = TT_TANH},
          .skip = OP_NO_ORACLE | OP_NO_GRAD},
         {"da of lanes", .build = build_da, .rows = 9, .p = {3, 4, [TA] = 1, [OPEN] = OPEN_K},
          .skip = OP_NO_ORACLE},
         {"db of a broadcast", .build = build_db, .rows = 3,
          .p = {2, 5, 4, [LEAD_A] = 1, [LEAD_A2] = 4, [LEAD_B] = 4}, .skip = OP_NO_ORACLE})

// ---- errors ----------------------------------------------------------------------------------

static void refuses(tt_shape a, tt_shape b, tt_status st, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    CHECK(tt_matmul(g, tt_feed(g, .shape = a), tt_feed(g, .shape = b)) == NULL);
    CHECK_MESSAGE(ctx, words);
    CHECK_INT(tt_close(ctx), st);
}

TEST(matmul_refuses_shapes)
{
    refuses(TT_SHAPE(32, 784), TT_SHAPE(512, 10), TT_ESHAPE,
            "matmul: a is [32, 784] but b is [512, 10]");
    refuses(TT_SHAPE(784), TT_SHAPE(784, 10), TT_ESHAPE, "a is [784]");
    refuses(TT_SHAPE(2, 4, 5), TT_SHAPE(3, 5, 6), TT_ESHAPE, "b is [3, 5, 6]");
    refuses(TT_SHAPE(TT_BATCH, 4), TT_SHAPE(TT_BATCH, 6), TT_ESHAPE, "a is [b, 4]");
    refuses(TT_SHAPE(TT_BATCH, 2, 4), TT_SHAPE(4, TT_BATCH), TT_ESHAPE, "b is [4, b]");
}

TEST(matmul_refuses_types)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *a = tt_feed(g, .shape = TT_SHAPE(2, 3));
    CHECK(tt_matmul(g, a, tt_feed(g, .dtype = TT_F64, .shape = TT_SHAPE(3, 4))) == NULL);
    CHECK_MESSAGE(ctx, "a is f32 but b is f64");
    CHECK_INT(tt_close(ctx), TT_EDTYPE);
}

TEST(matmul_refuses_bias)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *a = tt_feed(g, .shape = TT_SHAPE(2, 3)), *b = tt_feed(g, .shape = TT_SHAPE(3, 4));
    tt_tensor *bias = tt_feed(g, .shape = TT_SHAPE(5));
    CHECK(tt_matmul(g, a, b, .bias = bias) == NULL);
    CHECK_MESSAGE(ctx, "y is [2, 4] but bias is [5]");
    CHECK_INT(tt_close(ctx), TT_ESHAPE);
}

TEST_BOTH(matmul_of_open_k_adds_bias_after_the_sum)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *a = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 1));
    float ones[5] = {1, 1, 1, 1, 1}, bias = -7, y = 0;
    tt_tensor *out = tt_matmul(g, a, a, .transpose_a = true,
                               .bias = tt_const(g, TT_F32, TT_SHAPE(1), &bias), .act = TT_RELU);
    tt_session *s = tt_session_new(g);
    tt_feed_value feed = {a, ones, TT_SHAPE(5, 1), TT_F32};
    tt_fetch fetch = {out, &y, sizeof(y)};
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1));
    CHECK_NEAR(y, 0, 1e-9);
    bias = -3;
    tt_tensor *again = tt_matmul(g, a, a, .transpose_a = true,
                                 .bias = tt_const(g, TT_F32, TT_SHAPE(1), &bias), .act = TT_RELU);
    fetch.tensor = again;
    CHECK_OK(tt_run(s, .feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1));
    CHECK_NEAR(y, 2, 1e-9);
    CHECK_OK(tt_close(ctx));
}

// ---- half numbers ----------------------------------------------------------------------------

/*
 * A product of bf16 or f16 has the bits of one of the same numbers in f32, rounded at the end,
 * whatever is packed and however k is cut; y and, where the activation's gradient needs it, z.
 */
static void check_half(const char *isa, tt_dtype type, const int64_t shape[3], int turned,
                       tt_act act)
{
    int64_t m = shape[0], k = shape[1], n = shape[2];
    bool ta = (turned & 1) != 0, tb = (turned & 2) != 0, open = (turned & 4) != 0;
    tt_ctx *ctx = tt_open(.isa = isa, .threads = 2, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    float *data = malloc(sizeof(float) * (size_t)(m * k + k * n + n));
    test_fill(data, m * k + k * n + n, 5, -1, 1);
    tt_tensor *feeds[3] = {
        tt_feed(g, .shape = ta ? TT_SHAPE(open ? TT_BATCH : k, m) : TT_SHAPE(m, k)),
        tt_feed(g, .shape = tb ? TT_SHAPE(n, k) : TT_SHAPE(open ? TT_BATCH : k, n)),
        tt_feed(g, .shape = TT_SHAPE(n))};
    tt_feed_value values[3] = {
        {feeds[0], data, ta ? TT_SHAPE(k, m) : TT_SHAPE(m, k), TT_F32},
        {feeds[1], data + m * k, tb ? TT_SHAPE(n, k) : TT_SHAPE(k, n), TT_F32},
        {feeds[2], data + m * k + k * n, TT_SHAPE(n), TT_F32}};
    tt_tensor *y[2][2];
    for (int wide = 0; wide < 2; wide++) {
        tt_tensor *in[3];
        for (int i = 0; i < 3; i++) {
            in[i] = tt_cast(g, feeds[i], type);
            if (wide)
                in[i] = tt_cast(g, in[i], TT_F32);
        }
        tt_tensor *out = tt_matmul(g, in[0], in[1], .transpose_a = ta, .transpose_b = tb,
                                   .bias = open ? NULL : in[2], .act = act);
        CHECK(out != NULL);
        const tt_node *node = tt_tensor_get_node(out);
        for (int i = 0; i < 2; i++)
            y[wide][i] = tt_cast(g, tt_cast(g, node->outs[i < node->n_out ? i : 0], type), TT_F32);
    }
    size_t bytes = sizeof(float) * (size_t)(m * n);
    float *got[4];
    tt_fetch fetches[4];
    for (int i = 0; i < 4; i++) {
        got[i] = malloc(bytes);
        fetches[i] = (tt_fetch){y[i / 2][i % 2], got[i], bytes};
    }
    ck_assert_msg(tt_run(tt_session_new(g), .feeds = values, .n_feeds = open ? 2 : 3,
                         .fetches = fetches, .n_fetches = 4) == TT_OK,
                  "%s", tt_last_error(ctx).message);
    ck_assert_msg(memcmp(got[0], got[2], bytes) == 0 && memcmp(got[1], got[3], bytes) == 0,
                  "%s, %s: [%d, %d] times [%d, %d], turned %d, activation %d", isa,
                  tt_dtype_name(type), (int)m, (int)k, (int)k, (int)n, turned, (int)act);
    for (int i = 0; i < 4; i++)
        free(got[i]);
    free(data);
    CHECK_OK(tt_close(ctx));
}

TEST(matmul_of_half_numbers_rounds_the_product_in_f32)
{
    static const int64_t shapes[][3] = {{1, 1, 1},      {7, 33, 17},     {30, 70, 40},
                                        {15, 1300, 31}, {260, 1100, 17}, {520, 20, 70},
                                        {20, 1024, 66}};
    for (int isa = 0; test_isa(isa) != NULL; isa++) {
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            for (int turned = 0; turned < 4; turned++) {
                tt_dtype type = (turned + s) % 2 == 0 ? TT_BF16 : TT_F16;
                check_half(test_isa(isa), type, shapes[s], turned, TT_LINEAR);
                check_half(test_isa(isa), type, shapes[s], turned, TT_GELU);
            }
            check_half(test_isa(isa), s % 2 == 0 ? TT_F16 : TT_BF16, shapes[s], 1 | 4, TT_LINEAR);
        }
    }
}
