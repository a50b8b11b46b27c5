/*
 * attention.c - attention against plain loops in double that hold all scores.
 */
#include "op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TQ,
    TK,
    HEADS,
    KV_HEADS,
    WIDTH,
    PACKED,
    CAUSAL,
    MASK,
    LEAD,
    WINDOW,
    ALIBI
}; // p[]

static tt_tensor *build(op_test *t)
{
    const op_case *c = op_case_of(t);
    int64_t b = c->rows > 0 ? TT_BATCH : c->p[LEAD], h = c->p[HEADS], kv = c->p[KV_HEADS];
    int64_t d = c->p[WIDTH], kv_heads = kv == 0 ? h : kv;
    tt_tensor *q, *k = NULL, *v = NULL, *mask = NULL;
    if (c->p[PACKED]) {
        q = op_input(t, TT_SHAPE(b, c->p[TQ], (h + 2 * kv_heads) * d), -2, 2);
    } else {
        q = op_input(t, TT_SHAPE(b, c->p[TQ], h * d), -2, 2);
        k = op_input(t, TT_SHAPE(b, c->p[TK], kv_heads * d), -2, 2);
        v = op_input(t, TT_SHAPE(b, c->p[TK], kv_heads * d), -2, 2);
    }
    if (c->p[MASK] == 2)
        mask = op_indices(t, TT_BOOL, TT_SHAPE(c->p[TQ], c->p[TK]), 2);
    if (c->p[MASK] == 3)
        mask = op_indices(t, TT_BOOL, TT_SHAPE(b, c->p[TQ], c->p[TK]), 2);
    return tt_attention(op_graph(t), q, k, v, .heads = (int)h, .kv_heads = (int)kv,
                        .causal = c->p[CAUSAL] != 0, .mask = mask, .scale = c->f[0],
                        .window = c->p[WINDOW], .alibi = c->p[ALIBI] != 0);
}

// ALiBi's slopes as its paper gives them for n heads.
static double slope_of(int64_t n, int64_t h)
{
    int64_t power = 1;
    while (2 * power <= n)
        power *= 2;
    return h < power ? pow(2, -8.0 * (double)(h + 1) / (double)power)
                     : pow(2, -4.0 * (double)(2 * (h - power) + 1) / (double)power);
}

// One query: its scores against every key, then the weighted mean of v.
static void attend(const op_case *c, const double *q, const double *k, const double *v,
                   int64_t kv_row, const double *mask, int64_t i, double slope, double *y)
{
    int64_t d = c->p[WIDTH], n = c->p[TK];
    double scale = c->f[0] > 0 ? c->f[0] : 1 / sqrt((double)d), max = -INFINITY, sum = 0;
    double *p = malloc(sizeof(double) * (size_t)(n + 1));
    for (int64_t j = 0; j < n; j++) {
        double s = 0;
        for (int64_t x = 0; x < d; x++)
            s += q[x] * k[j * kv_row + x];
        bool seen = (!c->p[CAUSAL] || j <= i) && (mask == NULL || mask[j] != 0);
        seen = seen && (c->p[WINDOW] == 0 || llabs(i - j) < c->p[WINDOW]);
        p[j] = seen ? s * scale - slope * (double)llabs(i - j) : -INFINITY;
        max = fmax(max, p[j]);
    }
    for (int64_t j = 0; j < n; j++)
        sum += p[j] = p[j] == -INFINITY ? 0 : exp(p[j] - max);
    for (int64_t x = 0; x < d; x++) {
        y[x] = 0;
        for (int64_t j = 0; j < n && sum > 0; j++)
            y[x] += p[j] / sum * v[j * kv_row + x];
    }
    free(p);
}

static void oracle(const op_test *t, double *y)
{
    const op_case *c = op_case_of(t);
    int64_t h = c->p[HEADS], kv = c->p[KV_HEADS] == 0 ? h : c->p[KV_HEADS], d = c->p[WIDTH];
    int64_t tq = c->p[TQ], tk = c->p[TK], batch = op_out_shape(t).dim[0];
    bool packed = c->p[PACKED] != 0;
    int64_t q_row = packed ? (h + 2 * kv) * d : h * d, kv_row = packed ? q_row : kv * d;
    const double *q = op_value(t, 0), *k = packed ? q + h * d : op_value(t, 1);
    const double *v = packed ? k + kv * d : op_value(t, 2);
    const double *mask = c->p[MASK] ? op_value(t, packed ? 1 : 3) : NULL;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < tq; i++)
            for (int64_t head = 0; head < h; head++) {
                int64_t at = b * tk * kv_row + head / (h / kv) * d;
                const double *m = mask;
                if (m != NULL)
                    m += ((c->p[MASK] == 3 ? b : 0) * tq + i) * tk;
                attend(c, q + (b * tq + i) * q_row + head * d, k + at, v + at, kv_row, m, i,
                       c->p[ALIBI] ? slope_of(h, head) : 0, y + ((b * tq + i) * h + head) * d);
            }
}

#define ATTENTION .build = build, .oracle = oracle
OP_CASES(
    attention,
    {.label = "small", ATTENTION, .rows = 5, .p = {[TQ] = 7, [TK] = 7, [HEADS] = 2, [WIDTH] = 8}},
    {.label = "causal",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 19, [TK] = 19, [HEADS] = 2, [WIDTH] = 16, [CAUSAL] = 1}},
    {.label = "several key blocks",
     ATTENTION,
     .rows = 2,
     .p = {[TQ] = 131, [TK] = 131, [HEADS] = 1, [WIDTH] = 6, [CAUSAL] = 1}},
    {.label = "more keys than queries",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 5, [TK] = 150, [HEADS] = 3, [WIDTH] = 4}},
    {.label = "more queries than keys",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 70, [TK] = 3, [HEADS] = 2, [WIDTH] = 5, [CAUSAL] = 1}},
    {.label = "grouped heads",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 9, [TK] = 9, [HEADS] = 6, [KV_HEADS] = 2, [WIDTH] = 3, [CAUSAL] = 1}},
    {.label = "packed",
     ATTENTION,
     .rows = 11,
     .p = {[TQ] = 10, [TK] = 10, [HEADS] = 3, [WIDTH] = 6, [PACKED] = 1, [CAUSAL] = 1}},
    {.label = "packed, grouped, scaled",
     ATTENTION,
     .rows = 3,
     .f = {0.7},
     .p = {[TQ] = 67, [TK] = 67, [HEADS] = 4, [KV_HEADS] = 1, [WIDTH] = 16, [PACKED] = 1}},
    {.label = "mask",
     ATTENTION,
     .rows = 5,
     .p = {[TQ] = 6, [TK] = 70, [HEADS] = 2, [WIDTH] = 9, [MASK] = 2}},
    {.label = "mask per row",
     ATTENTION,
     .rows = 5,
     .p = {[TQ] = 11, [TK] = 11, [HEADS] = 2, [WIDTH] = 4, [MASK] = 3, [CAUSAL] = 1}},
    {.label = "packed mask",
     ATTENTION,
     .rows = 5,
     .p = {[TQ] = 4, [TK] = 4, [HEADS] = 2, [WIDTH] = 4, [PACKED] = 1, [MASK] = 3}},
    {.label = "window",
     ATTENTION,
     .rows = 2,
     .p = {[TQ] = 150, [TK] = 140, [HEADS] = 2, [WIDTH] = 5, [WINDOW] = 40}},
    {.label = "causal window",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 70, [TK] = 70, [HEADS] = 1, [WIDTH] = 6, [CAUSAL] = 1, [WINDOW] = 3}},
    {.label = "alibi",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 21, [TK] = 70, [HEADS] = 6, [WIDTH] = 3, [ALIBI] = 1}},
    {.label = "alibi, packed, grouped, causal, window",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 67,
           [TK] = 67,
           [HEADS] = 4,
           [KV_HEADS] = 2,
           [WIDTH] = 4,
           [PACKED] = 1,
           [CAUSAL] = 1,
           [WINDOW] = 9,
           [ALIBI] = 1}},
    {.label = "one key",
     ATTENTION,
     .p = {[TQ] = 1, [TK] = 1, [HEADS] = 1, [WIDTH] = 1, [LEAD] = 2}},
    {.label = "no queries",
     ATTENTION,
     .p = {[TQ] = 0, [TK] = 3, [HEADS] = 1, [WIDTH] = 2, [LEAD] = 2}},
    {.label = "wide heads",
     ATTENTION,
     .rows = 3,
     .p = {[TQ] = 9, [TK] = 9, [HEADS] = 1, [WIDTH] = 130, [CAUSAL] = 1}},
    {.label = "long",
     ATTENTION,
     .rows = 1,
     .tol = 2e-5,
     .skip = OP_NO_GRAD,
     .p = {[TQ] = 600, [TK] = 600, [HEADS] = 2, [WIDTH] = 64, [CAUSAL] = 1}})

// A query that may see no key gives zeros, and no gradient that is not a number.
TEST_BOTH(attention_of_a_query_without_keys)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    uint8_t seen[] = {1, 0, 1, 0, 0, 0};
    float y[8], d[8];
    tt_tensor *q = test_uniform(g, 1, TT_SHAPE(1, 2, 4)),
              *k = test_uniform(g, 2, TT_SHAPE(1, 3, 4));
    tt_tensor *mask = tt_const(g, TT_BOOL, TT_SHAPE(2, 3), seen), *dq;
    tt_tensor *out = tt_attention(g, q, k, k, .heads = 1, .mask = mask);
    CHECK_OK(tt_eval(g, out, y, 8));
    CHECK_OK(tt_grad(g, tt_sum(g, out), NULL, 1, &q, &dq));
    CHECK_OK(tt_eval(g, dq, d, 8));
    for (int i = 0; i < 8; i++) {
        CHECK(isfinite(y[i]) && isfinite(d[i]));
        CHECK(i < 4 || (y[i] == 0 && d[i] == 0));
    }
    CHECK_OK(tt_close(ctx));
}

#define T 70 // more than a block of keys
#define D 40

// dq of the queries that see one key, and dk of the keys that no other query sees, are 0.
static void check_one_key(tt_dtype type, bool causal, const uint8_t *seen, int heads, int kv_heads)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    static float dq[2 * T * 4 * D], dk[2 * T * 4 * D];
    int64_t nq = (int64_t)2 * T * heads * D, nk = (int64_t)2 * T * kv_heads * D;
    tt_tensor *q = tt_cast(g, test_uniform(g, 1, TT_SHAPE(2, T, heads * D)), type);
    tt_tensor *k = tt_cast(g, test_uniform(g, 2, TT_SHAPE(2, T, kv_heads * D)), type);
    tt_tensor *v = tt_cast(g, test_uniform(g, 3, TT_SHAPE(2, T, kv_heads * D)), type);
    tt_tensor *dy = tt_cast(g, test_uniform(g, 4, TT_SHAPE(2, T, heads * D)), type), *d[2];
    tt_tensor *mask = seen == NULL ? NULL : tt_const(g, TT_BOOL, TT_SHAPE(T, T), seen);
    tt_tensor *y = tt_attention(g, q, k, v, .heads = heads, .kv_heads = kv_heads, .causal = causal,
                                .mask = mask);
    CHECK_OK(tt_grad(g, tt_sum(g, tt_mul(g, y, dy)), NULL, 2, (tt_tensor *[]){q, k}, d));
    CHECK_OK(tt_eval(g, tt_cast(g, d[0], TT_F32), dq, nq));
    CHECK_OK(tt_eval(g, tt_cast(g, d[1], TT_F32), dk, nk));
    double greatest = 0;
    int alone = 0;
    bool shared[T] = {false}; // keys of queries that see others as well
    for (int i = 0; i < T; i++) {
        int keys = 0;
        for (int j = 0; j < T; j++)
            keys += (!causal || j <= i) && (seen == NULL || seen[i * T + j]);
        for (int j = 0; j < T; j++)
            shared[j] |= keys > 1 && (!causal || j <= i) && (seen == NULL || seen[i * T + j]);
        alone += keys == 1;
        for (int b = 0; b < 2 && keys == 1; b++)
            for (int c = 0; c < heads * D; c++)
                greatest = fmax(greatest, fabs((double)dq[(b * T + i) * heads * D + c]));
    }
    for (int j = 0; j < T; j++)
        for (int b = 0; b < 2 && !shared[j]; b++)
            for (int c = 0; c < kv_heads * D; c++)
                greatest = fmax(greatest, fabs((double)dk[(b * T + j) * kv_heads * D + c]));
    CHECK(alone > 0);
    ck_assert_msg(greatest == 0, "%s, %d queries with one key: a gradient of %g",
                  tt_dtype_name(type), alone, greatest);
    CHECK_OK(tt_close(ctx));
}

/*
 * With one key the weight is 1 whatever q and k are, so neither has a gradient: dp and delta, equal
 * sums, must be added in one order to cancel.
 */
TEST_BOTH(attention_with_one_key_has_no_gradient_by_q_and_k)
{
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};
    static uint8_t own[T * T], some[T * T];
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++) {
            own[i * T + j] = i == j;                               // each query sees its own key
            some[i * T + j] = i % 3 == 0 ? j == T - 1 - i : j < i; // and each third one key
        }
    for (int i = 0; i < 3; i++) {
        check_one_key(types[i], true, NULL, 2, 2);
        check_one_key(types[i], false, own, 2, 1);
        check_one_key(types[i], false, some, 4, 2);
    }
}

TEST(attention_refuses_what_does_not_fit)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *q = test_uniform(g, 1, TT_SHAPE(2, 5, 12)),
              *k = test_uniform(g, 2, TT_SHAPE(2, 6, 8));
    CHECK(tt_attention(g, q, k, k, .heads = 5) == NULL);
    CHECK_MESSAGE(ctx, "attention: q is [2, 5, 12]; its last axis does not divide into 5");
    tt_clear_error(ctx);
    CHECK(tt_attention(g, q, k, k, .heads = 4) == NULL);
    CHECK_MESSAGE(ctx, "q is [2, 5, 12] with 4 heads but k is [2, 6, 8] with 4");
    tt_clear_error(ctx);
    CHECK(tt_attention(g, q, k, k, .heads = 3, .kv_heads = 2) == NULL);
    CHECK_MESSAGE(ctx, "3 heads of q cannot share 2 heads of k");
    tt_clear_error(ctx);
    CHECK(tt_attention(g, q, k, k) == NULL);
    CHECK_MESSAGE(ctx, "0 heads of q");
    tt_clear_error(ctx);
    CHECK(tt_attention(g, q, k, k, .heads = 3, .kv_heads = 2, .mask = k) == NULL);
    tt_clear_error(ctx);
    CHECK(tt_attention(g, q, k, NULL, .heads = 3) == NULL);
    tt_clear_error(ctx);
    tt_tensor *mask = tt_fill(g, TT_BOOL, TT_SHAPE(5, 5), 1);
    CHECK(tt_attention(g, q, q, q, .heads = 3, .mask = mask) != NULL);
    CHECK(tt_attention(g, k, q, q, .heads = 2, .kv_heads = 3, .mask = mask) == NULL);
    tt_clear_error(ctx);
    tt_tensor *small = tt_fill(g, TT_BOOL, TT_SHAPE(4, 5), 1);
    CHECK(tt_attention(g, q, q, q, .heads = 3, .mask = small) == NULL);
    CHECK_MESSAGE(ctx, "the mask is [4, 5], not [5, 5]");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
