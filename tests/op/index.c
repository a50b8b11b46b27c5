/*
 * index.c - embedding, gather, scatter_add, one_hot.
 *
 * A case's numbers: p[0] places, p[1] columns, p[2] ids per row (0: one, without an axis of its
 * own), p[3] type of the ids, p[4] how many of the places ids name (0: all).
 */
#include "op_test.h"

static tt_tensor *ids_of(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_shape s = {2, {c->rows > 0 ? TT_BATCH : 7, c->p[2]}};
    s.rank = c->p[2] == 0 ? 1 : 2;
    return op_indices(t, (tt_dtype)c->p[3], s, c->p[4] > 0 ? c->p[4] : c->p[0]);
}

// ---- embedding -------------------------------------------------------------------------------

static tt_tensor *build_embedding(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *table = op_input(t, TT_SHAPE(p[0], p[1]), -1, 1);
    return tt_embedding(op_graph(t), table, ids_of(t));
}

static void oracle_embedding(const op_test *t, double *y)
{
    int64_t c = op_shape(t, 0).dim[1];
    for (int64_t e = 0; e < op_count(t); e++)
        y[e] = op_value(t, 0)[(int64_t)op_value(t, 1)[e / c] * c + e % c];
}

OP_CASES(embedding,
         {.label = "tokens",
          .build = build_embedding,
          .oracle = oracle_embedding,
          .rows = 13,
          .p = {11, 5, 4, TT_I32}},
         {.label = "wide",
          .build = build_embedding,
          .oracle = oracle_embedding,
          .rows = 17,
          .p = {7, 261, 3, TT_I64}},
         {.label = "few_of_many",
          .build = build_embedding,
          .oracle = oracle_embedding,
          .rows = 9,
          .p = {503, 3, 5, TT_I32, 20}},
         {.label = "one_id",
          .build = build_embedding,
          .oracle = oracle_embedding,
          .rows = 29,
          .p = {3, 16, 11, TT_I32, 1}},
         {.label = "one_column",
          .build = build_embedding,
          .oracle = oracle_embedding,
          .rows = 5,
          .p = {7, 1, 0, TT_I32}},
         {.label = "closed",
          .build = build_embedding,
          .oracle = oracle_embedding,
          .p = {11, 6, 3, TT_I64}})

// ---- gather ----------------------------------------------------------------------------------

// y[o, i, k] = x[o, ids[i], k], the axes before and after as one each.
static void oracle_gather(const op_test *t, double *y)
{
    int axis = (int)op_case_of(t)->p[5];
    tt_shape x = op_shape(t, 0), ids = op_shape(t, 1);
    int64_t inner = 1, n_ids = 1;
    for (int i = axis + 1; i < x.rank; i++)
        inner *= x.dim[i];
    for (int i = 0; i < ids.rank; i++)
        n_ids *= ids.dim[i];
    for (int64_t e = 0; e < op_count(t); e++) {
        int64_t k = e % inner, i = e / inner % n_ids, o = e / inner / n_ids;
        y[e] = op_value(t, 0)[(o * x.dim[axis] + (int64_t)op_value(t, 1)[i]) * inner + k];
    }
}

// x [3, n, c] by the case's ids
static tt_tensor *build_gather(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *x = op_input(t, TT_SHAPE(3, p[0], p[1]), -1, 1);
    return tt_gather(op_graph(t), x, ids_of(t), (int)p[5]);
}

// x [b, n, c] by ids [4, 2]
static tt_tensor *build_gather_of_batch(op_test *t)
{
    const int64_t *p = op_case_of(t)->p;
    tt_tensor *x = op_input(t, TT_SHAPE(TT_BATCH, p[0], p[1]), -1, 1);
    return tt_gather(op_graph(t), x, op_indices(t, TT_I32, TT_SHAPE(4, 2), p[0]), (int)p[5]);
}

// rows of the batch itself
static tt_tensor *build_gather_rows(op_test *t)
{
    const op_case *c = op_case_of(t);
    tt_tensor *x = op_input(t, TT_SHAPE(TT_BATCH, c->p[1]), -1, 1);
    return tt_gather(op_graph(t), x, op_indices(t, TT_I32, TT_SHAPE(6), c->rows), 0);
}

OP_CASES(gather,
         {.label = "middle_axis",
          .build = build_gather,
          .oracle = oracle_gather,
          .rows = 13,
          .p = {5, 4, 2, TT_I32, 0, 1}},
         {.label = "last_axis",
          .build = build_gather,
          .oracle = oracle_gather,
          .rows = 13,
          .p = {5, 9, 0, TT_I64, 5, 2}},
         {.label = "first_axis",
          .build = build_gather,
          .oracle = oracle_gather,
          .rows = 13,
          .p = {5, 9, 0, TT_I64, 3, 0}},
         {.label = "closed",
          .build = build_gather,
          .oracle = oracle_gather,
          .p = {5, 4, 2, TT_I32, 0, 1}},
         {.label = "of_a_batch",
          .build = build_gather_of_batch,
          .oracle = oracle_gather,
          .rows = 13,
          .p = {5, 3, 0, TT_I32, 0, 1}},
         {.label = "last_axis_of_a_batch",
          .build = build_gather_of_batch,
          .oracle = oracle_gather,
          .rows = 13,
          .p = {3, 5, 0, TT_I32, 0, 2}},
         {.label = "rows_of_the_batch",
          .build = build_gather_rows,
          .oracle = oracle_gather,
          .rows = 13,
          .skip = OP_NO_ROWS,
          .p = {0, 5}})

// ---- scatter_add -----------------------------------------------------------------------------

static tt_tensor *build_scatter(op_test *t)
{
    const op_case *c = op_case_of(t);
    int64_t first = c->rows > 0 ? TT_BATCH : 7;
    tt_shape s = {3, {first, c->p[2], c->p[1]}};
    if (c->p[2] == 0)
        s = TT_SHAPE(first, c->p[1]);
    tt_tensor *x = op_input(t, s, -1, 1);
    return tt_scatter_add(op_graph(t), x, ids_of(t), c->p[0]);
}

static void oracle_scatter(const op_test *t, double *y)
{
    int64_t c = op_case_of(t)->p[1], count = 1;
    tt_shape x = op_shape(t, 0);
    for (int i = 0; i < x.rank; i++)
        count *= x.dim[i];
    memset(y, 0, sizeof(*y) * (size_t)op_count(t));
    for (int64_t e = 0; e < count; e++)
        y[(int64_t)op_value(t, 1)[e / c] * c + e % c] += op_value(t, 0)[e];
}

OP_CASES(
    scatter_add,
    {.label = "rows",
     .build = build_scatter,
     .oracle = oracle_scatter,
     .rows = 61,
     .p = {5, 17, 0, TT_I32}},
    {.label = "tokens",
     .build = build_scatter,
     .oracle = oracle_scatter,
     .rows = 21,
     .p = {31, 131, 3, TT_I64}},
    {.label = "closed", .build = build_scatter, .oracle = oracle_scatter, .p = {4, 3, 9, TT_I64}},
    {.label = "fewer_rows_than_lanes",
     .build = build_scatter,
     .oracle = oracle_scatter,
     .rows = 3,
     .p = {4, 3, 0, TT_I32}})

// ---- one_hot ---------------------------------------------------------------------------------

static tt_tensor *build_one_hot(op_test *t)
{
    return tt_one_hot(op_graph(t), ids_of(t), op_case_of(t)->p[0], op_dtype(t));
}

static void oracle_one_hot(const op_test *t, double *y)
{
    int64_t depth = op_case_of(t)->p[0];
    for (int64_t e = 0; e < op_count(t); e++)
        y[e] = (double)(e % depth) == op_value(t, 0)[e / depth];
}

OP_CASES(one_hot,
         {.label = "labels",
          .build = build_one_hot,
          .oracle = oracle_one_hot,
          .rows = 13,
          .skip = OP_NO_GRAD,
          .p = {10, 0, 0, TT_I32}},
         {.label = "tokens",
          .build = build_one_hot,
          .oracle = oracle_one_hot,
          .skip = OP_NO_GRAD,
          .p = {3, 0, 5, TT_I64}})

TEST_BOTH(one_hot_of_integers)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    int32_t ids[2] = {2, 0};
    tt_tensor *x = tt_const(g, TT_I32, TT_SHAPE(2), ids);
    int64_t wide[6];
    uint8_t narrow[6];

    CHECK_OK(tt_eval(g, tt_one_hot(g, x, 3, TT_I64), wide, 6));
    CHECK_OK(tt_eval(g, tt_one_hot(g, x, 3, TT_BOOL), narrow, 6));
    for (int i = 0; i < 6; i++) {
        CHECK_INT(wide[i], i == 2 || i == 3);
        CHECK_INT(narrow[i], i == 2 || i == 3);
    }
    CHECK_OK(tt_close(ctx));
}

// ---- errors ----------------------------------------------------------------------------------

TEST_BOTH(embedding_names_an_id_out_of_range)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    int32_t ids[16] = {0};
    float y[32];
    ids[12] = 70000;
    tt_tensor *table = tt_fill(g, TT_F32, TT_SHAPE(50304, 2), 1);
    tt_tensor *x = tt_const(g, TT_I32, TT_SHAPE(16), ids);

    CHECK(tt_eval(g, tt_embedding(g, table, x), y, 32) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "id 70000 at position 12 is not below 50304");
    CHECK_MESSAGE(ctx, "embedding '");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST_BOTH(index_ops_refuse_negative_ids)
{
    int64_t ids[3] = {1, -2, 0};
    float y[16];
    for (int i = 0; i < 3; i++) {
        tt_ctx *ctx = test_ctx();
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *x = tt_const(g, TT_I64, TT_SHAPE(3), ids);
        tt_tensor *v = tt_fill(g, TT_F32, TT_SHAPE(3, 2), 1);
        tt_tensor *bad = i == 0   ? tt_gather(g, v, x, 0)
                         : i == 1 ? tt_scatter_add(g, v, x, 5)
                                  : tt_one_hot(g, x, 4, TT_F32);
        CHECK(tt_eval(g, bad, y, i == 0 ? 6 : i == 1 ? 10 : 12) == TT_EINVAL);
        CHECK_MESSAGE(ctx, "id -2 at position 1 is below 0");
        CHECK(tt_close(ctx) == TT_EINVAL);
    }
}

TEST(index_ops_refuse_types_and_shapes)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *table = tt_fill(g, TT_F32, TT_SHAPE(5, 2), 1);
    tt_tensor *ids = test_iota_i32(g, 3);

    CHECK(tt_embedding(g, table, table) == NULL);
    CHECK_MESSAGE(ctx, "ids are f32, not i32 or i64");
    tt_clear_error(ctx);
    CHECK(tt_embedding(g, tt_fill(g, TT_F32, TT_SHAPE(5), 1), ids) == NULL);
    CHECK_MESSAGE(ctx, "the table is [5], not [n, c]");
    tt_clear_error(ctx);
    CHECK(tt_gather(g, table, ids, 2) == NULL);
    CHECK_MESSAGE(ctx, "no axis 2");
    tt_clear_error(ctx);
    CHECK(tt_scatter_add(g, table, ids, 4) == NULL);
    CHECK_MESSAGE(ctx, "x is [5, 2] but ids are [3]");
    tt_clear_error(ctx);
    CHECK(tt_one_hot(g, ids, 0, TT_F32) == NULL);
    CHECK(tt_close(ctx) == TT_EINVAL);
}
