/*
 * shape.c - reshape, transpose, concat, stack, split, slice, pad, tile and their relatives.
 *
 * A case's numbers: p[0] is the rank, p[1..4] the dimensions of x (the first is the open batch when
 * the case has rows), p[5..] what the op takes.
 */
#include "op_test.h"

static tt_shape shape_of(const op_case *c)
{
    tt_shape s = {(int)c->p[0], {0}};
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = c->p[1 + i];
    return s;
}

static tt_tensor *x_of(op_test *t)
{
    return op_input(t, shape_of(op_case_of(t)), -1, 1);
}

// Splits element e of shape s into its indices.
static void unravel(const tt_shape *s, int64_t e, int64_t *at)
{
    for (int i = s->rank - 1; i >= 0; e /= s->dim[i--])
        at[i] = e % s->dim[i];
}

static int64_t ravel(const tt_shape *s, const int64_t *at)
{
    int64_t e = 0;
    for (int i = 0; i < s->rank; i++)
        e = e * s->dim[i] + at[i];
    return e;
}

// ---- reshape and its relatives: the elements in order ----------------------------------------

static void same_elements(const op_test *t, double *y)
{
    memcpy(y, op_value(t, 0), sizeof(*y) * (size_t)op_count(t));
}

static tt_tensor *build_reshape(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_shape s = {(int)p[5], {p[6], p[7], p[8], p[9]}};
    return tt_reshape(op_graph(t), x_of(t), s);
}

static tt_tensor *build_flatten(op_test *t)
{
    return tt_flatten(op_graph(t), x_of(t));
}

static tt_tensor *build_squeeze(op_test *t)
{
    return tt_squeeze(op_graph(t), x_of(t), (int)op_case_of(t)->p[5]);
}

static tt_tensor *build_expand_dims(op_test *t)
{
    return tt_expand_dims(op_graph(t), x_of(t), (int)op_case_of(t)->p[5]);
}

OP_CASES(reshape,
         {.label = "closed",
          .build = build_reshape,
          .oracle = same_elements,
          .p = {3, 2, 3, 4, 0, 2, 6, 4}},
         {.label = "copies_a_dimension",
          .build = build_reshape,
          .oracle = same_elements,
          .p = {3, 2, 3, 4, 0, 3, 0, 2, 6}},
         {.label = "scalar", .build = build_reshape, .oracle = same_elements, .p = {2, 1, 1}},
         {.label = "empty",
          .build = build_reshape,
          .oracle = same_elements,
          .p = {2, 5, 0, 0, 0, 2, 5, 0}},
         {.label = "open_stays_first",
          .build = build_reshape,
          .oracle = same_elements,
          .rows = 13,
          .p = {2, TT_BATCH, 12, 0, 0, 4, TT_BATCH, 2, 3, 2}},
         {.label = "open_takes_tokens",
          .build = build_reshape,
          .oracle = same_elements,
          .rows = 13,
          .p = {3, TT_BATCH, 5, 4, 0, 2, -5, 4}},
         {.label = "flatten",
          .build = build_flatten,
          .oracle = same_elements,
          .rows = 9,
          .p = {4, TT_BATCH, 2, 3, 5}},
         {.label = "flatten_vector", .build = build_flatten, .oracle = same_elements, .p = {1, 7}},
         {.label = "squeeze",
          .build = build_squeeze,
          .oracle = same_elements,
          .rows = 9,
          .p = {3, TT_BATCH, 1, 3, 0, 1}},
         {.label = "expand_last",
          .build = build_expand_dims,
          .oracle = same_elements,
          .rows = 9,
          .p = {2, TT_BATCH, 3, 0, 0, -1}},
         {.label = "expand_first",
          .build = build_expand_dims,
          .oracle = same_elements,
          .rows = 9,
          .p = {2, TT_BATCH, 3, 0, 0, 0}})

// ---- transpose -------------------------------------------------------------------------------

static tt_axes order_of(const op_case *c)
{
    tt_axes a = {(int)c->p[5], {0}};
    for (int i = 0; i < a.n; i++)
        a.axis[i] = (int)c->p[6 + i];
    return a;
}

static tt_tensor *build_transpose(op_test *t)
{
    return tt_transpose(op_graph(t), x_of(t), order_of(op_case_of(t)));
}

static void oracle_transpose(const op_test *t, double *y)
{
    tt_shape xs = op_shape(t, 0), ys = op_out_shape(t);
    tt_axes order = order_of(op_case_of(t));
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t at[TT_MAX_RANK], from[TT_MAX_RANK];
        unravel(&ys, e, at);
        for (int i = 0; i < ys.rank; i++)
            from[order.n == 0 ? xs.rank - 1 - i : order.axis[i]] = at[i];
        y[e] = op_value(t, 0)[ravel(&xs, from)];
    }
}

OP_CASES(
    transpose,
    {.label = "matrix", .build = build_transpose, .oracle = oracle_transpose, .p = {2, 67, 131}},
    {.label = "blocks",
     .build = build_transpose,
     .oracle = oracle_transpose,
     .p = {2, 64, 96, 0, 0, 2, 1, 0}},
    {.label = "one_column", .build = build_transpose, .oracle = oracle_transpose, .p = {2, 131, 1}},
    {.label = "empty", .build = build_transpose, .oracle = oracle_transpose, .p = {2, 0, 3}},
    {.label = "heads",
     .build = build_transpose,
     .oracle = oracle_transpose,
     .p = {4, 2, 7, 3, 5, 4, 0, 2, 1, 3}},
    {.label = "reversed",
     .build = build_transpose,
     .oracle = oracle_transpose,
     .p = {4, 2, 17, 3, 19}},
    {.label = "rotated",
     .build = build_transpose,
     .oracle = oracle_transpose,
     .p = {4, 3, 18, 1, 37, 4, 2, 3, 0, 1}},
    {.label = "same",
     .build = build_transpose,
     .oracle = oracle_transpose,
     .p = {3, 3, 5, 7, 0, 3, 0, 1, 2}},
    {.label = "batch_stays",
     .build = build_transpose,
     .oracle = oracle_transpose,
     .rows = 11,
     .p = {3, TT_BATCH, 17, 33, 0, 3, 0, 2, 1}},
    {.label = "batch_moves",
     .build = build_transpose,
     .oracle = oracle_transpose,
     .rows = 11,
     .p = {3, TT_BATCH, 5, 3, 0, 3, 1, 0, 2}})

// Every element size: values that need all their bytes.
TEST_BOTH(transpose_moves_bits_of_every_type)
{
    enum {
        M = 37,
        N = 70
    };
    for (int type = 0; type < TT_N_DTYPES; type++) {
        tt_dtype dtype = (tt_dtype)type;
        size_t bytes = tt_dtype_bytes(dtype);
        static unsigned char x[M * N * 8], y[M * N * 8];
        for (size_t i = 0; i < sizeof(x); i++)
            x[i] = dtype == TT_BOOL ? i % 3 == 0 : (unsigned char)(i * 7 % 61 + 1);
        tt_ctx *ctx = test_ctx();
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *t = tt_const(g, dtype, TT_SHAPE(M, N), x);
        CHECK_OK(tt_eval(g, tt_transpose(g, t, TT_AXES(1, 0)), y, M * N));
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < N; j++)
                CHECK(memcmp(y + (j * M + i) * bytes, x + (i * N + j) * bytes, bytes) == 0);
        CHECK_OK(tt_close(ctx));
    }
}

// ---- concat, stack, split --------------------------------------------------------------------

// Three inputs whose axis p[5] has p[6], p[7], p[8] entries.
static tt_tensor *build_concat(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *xs[3];
    for (int i = 0; i < 3; i++) {
        tt_shape s = shape_of(op_case_of(t));
        s.dim[p[5]] = p[6 + i];
        xs[i] = op_input(t, s, -1, 1);
    }
    return tt_concat(op_graph(t), xs, 3, (int)p[5] - (int)p[0]); // counted from the end
}

static void oracle_concat(const op_test *t, double *y)
{
    int axis = (int)op_case_of(t)->p[5];
    tt_shape ys = op_out_shape(t);
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t at[TT_MAX_RANK];
        int i = 0;
        unravel(&ys, e, at);
        while (at[axis] >= op_shape(t, i).dim[axis])
            at[axis] -= op_shape(t, i++).dim[axis];
        tt_shape xs = op_shape(t, i);
        y[e] = op_value(t, i)[ravel(&xs, at)];
    }
}

static tt_tensor *build_stack(op_test *t)
{
    tt_tensor *xs[3];
    for (int i = 0; i < 3; i++)
        xs[i] = x_of(t);
    return tt_stack(op_graph(t), xs, 3, (int)op_case_of(t)->p[5]);
}

static void oracle_stack(const op_test *t, double *y)
{
    int axis = (int)op_case_of(t)->p[5];
    tt_shape xs = op_shape(t, 0);
    axis = axis < 0 ? axis + xs.rank + 1 : axis;
    tt_shape ys = op_out_shape(t);
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t at[TT_MAX_RANK], from[TT_MAX_RANK];
        unravel(&ys, e, at);
        for (int i = 0; i < xs.rank; i++)
            from[i] = at[i + (i >= axis)];
        y[e] = op_value(t, (int)at[axis])[ravel(&xs, from)];
    }
}

// first part - third part: the second has no gradient
static tt_tensor *build_split(op_test *t)
{
    tt_tensor *parts[3] = {NULL};
    (void)tt_split_at(op_graph(t), x_of(t), (int)op_case_of(t)->p[5], 3, parts);
    return tt_sub(op_graph(t), parts[0], parts[2]);
}

static void oracle_split(const op_test *t, double *y)
{
    int axis = (int)op_case_of(t)->p[5];
    tt_shape xs = op_shape(t, 0), ys = op_out_shape(t);
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t at[TT_MAX_RANK];
        unravel(&ys, e, at);
        double first = op_value(t, 0)[ravel(&xs, at)];
        at[axis] += 2 * ys.dim[axis];
        y[e] = first - op_value(t, 0)[ravel(&xs, at)];
    }
}

OP_CASES(
    concat,
    {.label = "first_axis",
     .build = build_concat,
     .oracle = oracle_concat,
     .p = {2, 0, 5, 0, 0, 0, 3, 1, 4}},
    {.label = "last_axis",
     .build = build_concat,
     .oracle = oracle_concat,
     .rows = 13,
     .p = {2, TT_BATCH, 0, 0, 0, 1, 3, 1, 17}},
    {.label = "middle_axis",
     .build = build_concat,
     .oracle = oracle_concat,
     .rows = 13,
     .p = {3, TT_BATCH, 0, 3, 0, 1, 2, 5, 1}},
    {.label = "with_empty",
     .build = build_concat,
     .oracle = oracle_concat,
     .p = {2, 4, 0, 0, 0, 1, 2, 0, 3}},
    {.label = "open_axis",
     .build = build_concat,
     .oracle = oracle_concat,
     .rows = 5,
     .skip = OP_NO_ROWS,
     .p = {2, TT_BATCH, 3, 0, 0, 0, TT_BATCH, -2, TT_BATCH}},
    {.label = "stack_first", .build = build_stack, .oracle = oracle_stack, .p = {2, 4, 3, 0, 0, 0}},
    {.label = "stack_last",
     .build = build_stack,
     .oracle = oracle_stack,
     .rows = 9,
     .p = {2, TT_BATCH, 3, 0, 0, -1}},
    {.label = "split_first", .build = build_split, .oracle = oracle_split, .p = {2, 6, 5, 0, 0, 0}},
    {.label = "split_last",
     .build = build_split,
     .oracle = oracle_split,
     .rows = 9,
     .p = {3, TT_BATCH, 2, 21, 0, 2}})

// ---- slice, pad, tile ------------------------------------------------------------------------

static tt_tensor *build_slice(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    return tt_slice(op_graph(t), x_of(t), (int)p[5], p[6], p[7]);
}

static void oracle_slice(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    tt_shape xs = op_shape(t, 0), ys = op_out_shape(t);
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t at[TT_MAX_RANK];
        unravel(&ys, e, at);
        at[p[5]] += p[6];
        y[e] = op_value(t, 0)[ravel(&xs, at)];
    }
}

static tt_tensor *build_pad(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    return tt_pad(op_graph(t), x_of(t), (int)p[5], p[6], p[7]);
}

static void oracle_pad(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    tt_shape xs = op_shape(t, 0), ys = op_out_shape(t);
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t at[TT_MAX_RANK];
        unravel(&ys, e, at);
        at[p[5]] -= p[6];
        bool inside = at[p[5]] >= 0 && at[p[5]] < xs.dim[p[5]];
        y[e] = inside ? op_value(t, 0)[ravel(&xs, at)] : 0;
    }
}

static tt_tensor *build_tile(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    return tt_tile(op_graph(t), x_of(t), (int)p[5], p[6]);
}

static void oracle_tile(const op_test *t, double *y)
{
    const int64_t *p = op_case_of(t)->p;
    tt_shape xs = op_shape(t, 0), ys = op_out_shape(t);
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t at[TT_MAX_RANK];
        unravel(&ys, e, at);
        at[p[5]] %= xs.dim[p[5]];
        y[e] = op_value(t, 0)[ravel(&xs, at)];
    }
}

OP_CASES(
    slice,
    {.label = "first_axis",
     .build = build_slice,
     .oracle = oracle_slice,
     .p = {2, 7, 5, 0, 0, 0, 2, 6}},
    {.label = "last_axis",
     .build = build_slice,
     .oracle = oracle_slice,
     .rows = 11,
     .p = {3, TT_BATCH, 2, 19, 0, 2, 3, 18}},
    {.label = "middle_axis",
     .build = build_slice,
     .oracle = oracle_slice,
     .rows = 11,
     .p = {3, TT_BATCH, 5, 3, 0, 1, 4, 5}},
    {.label = "nothing",
     .build = build_slice,
     .oracle = oracle_slice,
     .p = {2, 7, 5, 0, 0, 0, 2, 2}},
    {.label = "of_the_batch",
     .build = build_slice,
     .oracle = oracle_slice,
     .rows = 11,
     .skip = OP_NO_ROWS,
     .p = {2, TT_BATCH, 5, 0, 0, 0, 2, 7}},
    {.label = "pad_first", .build = build_pad, .oracle = oracle_pad, .p = {2, 3, 5, 0, 0, 0, 1, 2}},
    {.label = "pad_last",
     .build = build_pad,
     .oracle = oracle_pad,
     .rows = 11,
     .p = {2, TT_BATCH, 5, 0, 0, 1, 0, 17}},
    {.label = "pad_middle",
     .build = build_pad,
     .oracle = oracle_pad,
     .rows = 11,
     .p = {3, TT_BATCH, 5, 3, 0, 1, 2, 0}},
    {.label = "pad_empty", .build = build_pad, .oracle = oracle_pad, .p = {2, 0, 5, 0, 0, 0, 1, 2}},
    {.label = "tile_first", .build = build_tile, .oracle = oracle_tile, .p = {2, 3, 5, 0, 0, 0, 4}},
    {.label = "tile_last",
     .build = build_tile,
     .oracle = oracle_tile,
     .rows = 11,
     .p = {2, TT_BATCH, 7, 0, 0, 1, 3}},
    {.label = "tile_one_element",
     .build = build_tile,
     .oracle = oracle_tile,
     .rows = 11,
     .p = {2, TT_BATCH, 1, 0, 0, 1, 37}},
    {.label = "tile_middle",
     .build = build_tile,
     .oracle = oracle_tile,
     .rows = 11,
     .p = {3, TT_BATCH, 2, 3, 0, 1, 5}},
    {.label = "tile_the_batch",
     .build = build_tile,
     .oracle = oracle_tile,
     .rows = 11,
     .skip = OP_NO_ROWS,
     .p = {2, TT_BATCH, 7, 0, 0, 0, 3}})

// ---- errors ----------------------------------------------------------------------------------

// The builder must fail with this status and these words.
#define CHECK_FAILS(status, words, x_shape, call)                   \
    do {                                                            \
        tt_ctx *ctx = test_ctx();                                   \
        tt_graph *g = tt_graph_new(ctx);                            \
        tt_tensor *x = tt_feed(g, .shape = (x_shape), .name = "x"); \
        CHECK(x != NULL);                                           \
        CHECK((call) == NULL);                                      \
        CHECK_MESSAGE(ctx, words);                                  \
        CHECK(tt_close(ctx) == (status));                           \
    } while (0)
#define OPEN TT_SHAPE(TT_BATCH, 6)

TEST(shape_ops_refuse_what_does_not_fit)
{
    CHECK_FAILS(TT_ESHAPE, "x is [4, 6] but the shape is [5, 5]", TT_SHAPE(4, 6),
                tt_reshape(g, x, TT_SHAPE(5, 5)));
    CHECK_FAILS(TT_ESHAPE, "no open dimension", TT_SHAPE(4, 6), tt_reshape(g, x, TT_SHAPE(-1, 3)));
    CHECK_FAILS(TT_ESHAPE, "x is [b, 6]", OPEN, tt_reshape(g, x, TT_SHAPE(4, 6)));
    CHECK_FAILS(TT_ESHAPE, "x is [b, 6]", OPEN, tt_reshape(g, x, TT_SHAPE(-4, 3)));
    CHECK_FAILS(TT_ESHAPE, "no dimension 2", OPEN, tt_reshape(g, x, TT_SHAPE(0, 3, 0)));
    CHECK_FAILS(TT_ESHAPE, "axis 1 of [b, 6] is not 1", OPEN, tt_squeeze(g, x, 1));
    CHECK_FAILS(TT_EINVAL, "new axis 4", OPEN, tt_expand_dims(g, x, 4));
    CHECK_FAILS(TT_EINVAL, "each axis of [b, 6] once", OPEN, tt_transpose(g, x, TT_AXES(1, 1)));
    CHECK_FAILS(TT_EINVAL, "each axis of [b, 6] once", OPEN, tt_transpose(g, x, TT_AXES(1, 0, 2)));
    CHECK_FAILS(TT_ESHAPE, "[2, 9) is not within axis 1 of [b, 6]", OPEN, tt_slice(g, x, 1, 2, 9));
    CHECK_FAILS(TT_ESHAPE, "is not within", OPEN, tt_slice(g, x, 1, 3, 2));
    CHECK_FAILS(TT_ESHAPE, "is open and cannot grow by 3", OPEN, tt_pad(g, x, 0, 1, 2));
    CHECK_FAILS(TT_EINVAL, "-1 before", OPEN, tt_pad(g, x, 1, -1, 2));
    CHECK_FAILS(TT_EINVAL, "0 times", OPEN, tt_tile(g, x, 1, 0));
    CHECK_FAILS(TT_EINVAL, "there are no inputs", OPEN, tt_concat(g, &x, 0, 0));
    CHECK_FAILS(TT_EINVAL, "an input is NULL", OPEN, tt_tile(g, NULL, 1, 2));
}

TEST(concat_and_split_name_what_does_not_fit)
{
    CHECK_FAILS(TT_ESHAPE, "input 0 is [b, 6] but input 1 is [3, 6]", OPEN,
                tt_concat(g, (tt_tensor *[]){x, tt_fill(g, TT_F32, TT_SHAPE(3, 6), 0)}, 2, 0));
    CHECK_FAILS(TT_EDTYPE, "input 0 is f32 but input 1 is i32", TT_SHAPE(3),
                tt_concat(g, (tt_tensor *[]){x, tt_fill(g, TT_I32, TT_SHAPE(3), 0)}, 2, 0));
    tt_tensor *out[4] = {NULL};
    CHECK_FAILS(TT_ESHAPE, "axis 1 of [b, 6] is not a multiple of 4", OPEN,
                tt_split_at(g, x, 1, 4, out) == TT_OK ? x : NULL);
    CHECK_FAILS(TT_ESHAPE, "axis 0 of [b, 6] is not a multiple of 2", OPEN,
                tt_split_at(g, x, 0, 2, out) == TT_OK ? x : NULL);
}

// How many entries the batch has is known at the run only.
TEST_BOTH(slice_beyond_the_batch_fails_the_run)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2));
    tt_tensor *y = tt_slice(g, x, 0, 1, 5);
    tt_session *s = tt_session_new(g);
    float data[8] = {0}, out[8];

    CHECK(tt_run(s, .feeds = &(tt_feed_value){x, data, TT_SHAPE(4, 2), TT_F32}, .n_feeds = 1,
                 .fetches = &(tt_fetch){y, out, sizeof(out)}, .n_fetches = 1) == TT_ESHAPE);
    CHECK_MESSAGE(ctx, "[1, 5) is not within the 4 entries of axis 0");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
