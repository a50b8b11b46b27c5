/*
 * mesh.c - meshes written by hand: coordinates of devices, shares of lanes, what is refused.
 */
#include "plan/mesh.h"
#include "plan/plan.h"
#include "test.h"
#include <string.h>

TEST(mesh_numbers_devices_row_by_row)
{
    tti_mesh m = {.n_axes = 3,
                  .axis = {{TTI_AXIS_PIPE, 2}, {TTI_AXIS_DATA, 3}, {TTI_AXIS_TENSOR, 4}}};
    CHECK_INT(tti_mesh_n_devices(&m), 24);
    CHECK_INT(tti_mesh_size(&m, TTI_AXIS_DATA), 3);
    CHECK_INT(tti_mesh_size(&m, TTI_AXIS_PIPE), 2);
    CHECK_INT(tti_mesh_size(&m, TTI_AXIS_EXPERT), 1); // none
    int device = 0;
    for (int p = 0; p < 2; p++)
        for (int d = 0; d < 3; d++)
            for (int t = 0; t < 4; t++, device++) {
                int at[TTI_N_AXES] = {d, p, t, 0, 0};
                CHECK_INT(tti_mesh_at(&m, at), device);
                CHECK_INT(tti_mesh_coordinate(&m, device, TTI_AXIS_DATA), d);
                CHECK_INT(tti_mesh_coordinate(&m, device, TTI_AXIS_PIPE), p);
                CHECK_INT(tti_mesh_coordinate(&m, device, TTI_AXIS_TENSOR), t);
                CHECK_INT(tti_mesh_coordinate(&m, device, TTI_AXIS_SHARD), 0);
            }
    m = tti_mesh_make(3, 2); // as strategies make them: a replica's devices follow each other
    for (device = 0; device < 6; device++)
        CHECK_INT(tti_mesh_device(&m, device / 2, device % 2), device);
}

TEST(mesh_as_text)
{
    char text[TTI_MESH_TEXT];
    tti_mesh m = tti_mesh_make(4, 2);
    CHECK_STR(tti_mesh_text(&m, text), "data 4 x pipe 2");
    CHECK_STR(tti_mesh_text(&(tti_mesh){0}, text), "");
    m = (tti_mesh){.n_axes = TTI_N_AXES,
                   .axis = {{TTI_AXIS_EXPERT, 1000000000},
                            {TTI_AXIS_SHARD, 1000000000},
                            {TTI_AXIS_TENSOR, 1000000000},
                            {TTI_AXIS_PIPE, 1000000000},
                            {TTI_AXIS_DATA, 1000000000}}};
    tti_mesh_text(&m, text);
    CHECK(strlen(text) < TTI_MESH_TEXT);
    CHECK(strstr(text, "expert 1000000000 x shard 1000000000 x tensor") == text);
}

TEST(meshes_that_are_no_grid_are_refused)
{
    const struct {
        tti_mesh mesh;
        tt_status st;
        const char *words;
    } cases[] = {
        {{.n_axes = 6}, TT_EINVAL, "mesh: 6 axes; 0 to 5 are allowed"},
        {{.n_axes = 1, .axis = {{(tti_mesh_axis)7, 2}}}, TT_EINVAL, "there is no axis number 7"},
        {{.n_axes = 1, .axis = {{TTI_AXIS_PIPE, 0}}}, TT_EINVAL, "axis pipe has size 0"},
        {{.n_axes = 2, .axis = {{TTI_AXIS_DATA, 2}, {TTI_AXIS_DATA, 2}}},
         TT_EINVAL,
         "axis data is there twice"},
        {{.n_axes = 2, .axis = {{TTI_AXIS_DATA, 2}, {TTI_AXIS_TENSOR, 2}}},
         TT_EUNSUPPORTED,
         "axis tensor has size 2, but plans are spread along data and pipe only"},
        {{.n_axes = 1, .axis = {{TTI_AXIS_EXPERT, 4}}}, TT_EUNSUPPORTED, "axis expert has size 4"},
        {{.n_axes = 2, .axis = {{TTI_AXIS_DATA, 4}, {TTI_AXIS_PIPE, 2}}},
         TT_EINVAL,
         "data 4 x pipe 2 needs 8 devices, but there are 4"},
        {{.n_axes = 2, .axis = {{TTI_AXIS_DATA, 1 << 20}, {TTI_AXIS_PIPE, 1 << 20}}},
         TT_EINVAL,
         "needs 1099511627776 devices"},
        {{.n_axes = 1, .axis = {{TTI_AXIS_DATA, 2}}, .n_without_lanes = 2},
         TT_EINVAL,
         "2 of 2 replicas take no lanes"},
        {{.n_axes = 2, .axis = {{TTI_AXIS_DATA, 2}, {TTI_AXIS_PIPE, 2}}, .n_stages = 3},
         TT_EINVAL,
         "3 stages cannot be divided evenly among 2 devices of axis pipe"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_ctx *ctx = test_ctx();
        CHECK_INT(tti_mesh_check(ctx, &cases[i].mesh, 4), cases[i].st);
        CHECK_MESSAGE(ctx, cases[i].words);
        CHECK_INT(tt_close(ctx), cases[i].st);
    }
    tt_ctx *ctx = test_ctx();
    tti_mesh m = {.n_axes = 3,
                  .axis = {{TTI_AXIS_DATA, 2}, {TTI_AXIS_TENSOR, 1}, {TTI_AXIS_PIPE, 2}}};
    CHECK_OK(tti_mesh_check(ctx, &m, 4));
    CHECK_OK(tti_mesh_check(ctx, &(tti_mesh){0}, 1));
    CHECK_OK(tt_close(ctx));
}

// The planner itself asks: a strategy's mistake is an error, not a plan.
TEST(plans_refuse_a_mesh_of_other_devices)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .threads = 1, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *y = tt_relu(g, test_uniform(g, 1, TT_SHAPE(2, 3)));
    tti_mesh m = tti_mesh_make(3, 1);
    tti_plan *p = NULL;
    tti_plan_request r = {
        .targets = &y, .n_targets = 1, .rows = 1, .top = &ctx->top, .mesh = &m, .dry_run = true};
    CHECK_INT(tti_plan_new(g, &r, &p), TT_EINVAL);
    CHECK(p == NULL);
    CHECK_MESSAGE(ctx, "mesh: data 3 x pipe 1 needs 3 devices, but there are 2");
    CHECK_INT(tt_close(ctx), TT_EINVAL);
}

TEST(mesh_shares_are_numbers_or_the_slowest_speed)
{
    tti_mesh m = tti_mesh_make(3, 2);
    for (int r = 0; r < 3; r++)
        CHECK(tti_mesh_share(&m, r) == 1);
    m.share = " 2,1.5 , 7";
    CHECK(tti_mesh_share(&m, 0) == 2 && tti_mesh_share(&m, 1) == 1.5 && tti_mesh_share(&m, 2) == 7);
    m.n_without_lanes = 1; // the numbers are of the others
    CHECK(tti_mesh_share(&m, 1) == 2 && tti_mesh_share(&m, 2) == 1.5);
    const double speed[] = {4, 3, 5, 8, 0, 2};
    m.speed = speed;
    CHECK(tti_mesh_share(&m, 0) == 3 && tti_mesh_share(&m, 1) == 5);
    CHECK(tti_mesh_share(&m, 2) == 1); // not measured
}

// A replica that only holds variables takes none, wherever lanes end.
TEST(replicas_without_lanes_take_none)
{
    tti_mesh m = tti_mesh_make(4, 1);
    int end[4];
    m.n_without_lanes = 1;
    tti_assign_lanes(&m, 8, end);
    CHECK(end[0] == 0 && end[1] == 2 && end[2] == 5 && end[3] == 8); // as three replicas
    m.n_without_lanes = 3;
    tti_assign_lanes(&m, 8, end);
    CHECK(end[0] == 0 && end[1] == 0 && end[2] == 0 && end[3] == 8);
}

// ---- layouts ---------------------------------------------------------------------------------

TEST(layouts_as_text)
{
    char text[TTI_LAYOUTS_TEXT];
    tti_layout l = {0};
    CHECK_STR(tti_layout_text(&l, text), "replicated");
    l.on[TTI_AXIS_PIPE] = (tti_layout_entry){TT_LAYOUT_ONE, TTI_DIM_FLAT, 1};
    CHECK_STR(tti_layout_text(&l, text), "pipe one@1");
    l.on[TTI_AXIS_DATA] = (tti_layout_entry){TT_LAYOUT_SPLIT, 0, 1023};
    CHECK_STR(tti_layout_text(&l, text), "data split(0)@1023, pipe one@1");
    l.on[TTI_AXIS_DATA] = (tti_layout_entry){TT_LAYOUT_SPLIT, TTI_DIM_FLAT, 2};
    CHECK_STR(tti_layout_text(&l, text), "data split(flat)@2, pipe one@1");
    for (int a = 0; a < TTI_N_AXES; a++)
        l.on[a] = (tti_layout_entry){TT_LAYOUT_MOMENTS, TTI_DIM_FLAT, INT16_MAX};
    CHECK_STR(tti_layout_text(&l, text), "data moments@32767, pipe moments@32767, "
                                         "tensor moments@32767, shard moments@32767, "
                                         "expert moments@32767");
}

static const tti_layout_entry whole = {TT_LAYOUT_REPLICATED, TTI_DIM_FLAT, 0};

static tti_layout_entry part_along(int dim)
{
    return (tti_layout_entry){TT_LAYOUT_SPLIT, (int8_t)dim, 1};
}

// Is the first output of y's node so, of inputs that are so? "mixes": it cannot work on parts.
static void check_infer(tt_ctx *ctx, const tt_tensor *y, tti_layout_entry a, tti_layout_entry b,
                        tti_layout_entry c, const char *want)
{
    tti_layout_entry in[3] = {a, b, c}, out[8] = {{0}};
    char text[TTI_LAYOUT_TEXT];
    bool good = tti_layout_infer(ctx, y->node, in, out);
    ck_assert_msg(strcmp(good ? tti_layout_entry_text(out[0], text) : "mixes", want) == 0,
                  "%s: %s, not %s", y->node->name, good ? text : "mixes", want);
}

/*
 * A block of two matrix products, split as tensor parallelism splits it: the first weight by
 * columns, the second by rows. What comes between works on parts; at the end is a partial sum.
 */
TEST(split_rules_answer_for_a_tensor_axis)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 8), .name = "x");
    tt_tensor *w1 = tt_feed(g, .shape = TT_SHAPE(8, 32), .name = "w1");
    tt_tensor *w2 = tt_feed(g, .shape = TT_SHAPE(32, 8), .name = "w2");
    tt_tensor *bias = tt_feed(g, .shape = TT_SHAPE(32), .name = "bias");
    tt_tensor *h = tt_matmul(g, x, w1), *hb = tt_add(g, h, bias), *a = tt_relu(g, hb);
    tt_tensor *y = tt_matmul(g, a, w2);
    CHECK(y != NULL);
    check_infer(ctx, h, whole, part_along(1), whole, "split(1)@1");
    check_infer(ctx, hb, part_along(1), part_along(0), whole, "split(1)@1");
    check_infer(ctx, a, part_along(1), whole, whole, "split(1)@1");
    check_infer(ctx, y, part_along(1), part_along(0), whole, "partial@1");
    // Along data, the same nodes: rows.
    check_infer(ctx, h, part_along(0), whole, whole, "split(0)@1");
    check_infer(ctx, hb, part_along(0), whole, whole, "split(0)@1");
    // What cannot be: one factor of a sum, rows of one and columns of the other, other parts.
    check_infer(ctx, y, part_along(1), whole, whole, "mixes");
    check_infer(ctx, y, whole, part_along(0), whole, "mixes");
    check_infer(ctx, h, part_along(0), part_along(1), whole, "mixes");
    check_infer(ctx, hb, part_along(1), whole, whole, "mixes");
    check_infer(ctx, hb, part_along(1), (tti_layout_entry){TT_LAYOUT_SPLIT, 0, 0}, whole, "mixes");
    check_infer(ctx, a, (tti_layout_entry){TT_LAYOUT_PARTIAL, TTI_DIM_FLAT, 1}, whole, whole,
                "mixes");
    check_infer(ctx, h, whole, whole, whole, "replicated");
    CHECK_OK(tt_close(ctx));
}

TEST(split_rules_answer_for_any_dimension)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4, 6), .name = "x");
    tt_tensor *t = tt_transpose(g, x, TT_AXES(1, 0, 2));
    check_infer(ctx, t, part_along(1), whole, whole, "split(0)@1");
    check_infer(ctx, t, part_along(2), whole, whole, "split(2)@1");
    tt_tensor *s = tt_softmax(g, x);
    check_infer(ctx, s, part_along(1), whole, whole, "split(1)@1");
    check_infer(ctx, s, part_along(2), whole, whole, "mixes"); // over the last
    tt_tensor *sum = tt_sum(g, x, .axes = TT_AXES(1));
    check_infer(ctx, sum, part_along(1), whole, whole, "partial@1");
    check_infer(ctx, sum, part_along(2), whole, whole, "split(1)@1"); // one place further
    check_infer(ctx, sum, part_along(0), whole, whole, "split(0)@1");
    tt_tensor *kept = tt_sum(g, x, .axes = TT_AXES(1), .keep_dims = true);
    check_infer(ctx, kept, part_along(2), whole, whole, "split(2)@1");
    tt_tensor *most = tt_max(g, x, .axes = TT_AXES(1));
    check_infer(ctx, most, part_along(1), whole, whole, "mixes"); // a maximum is not a sum
    check_infer(ctx, most, part_along(2), whole, whole, "split(1)@1");
    tt_tensor *flat = tt_reshape(g, x, TT_SHAPE(TT_BATCH, 24));
    check_infer(ctx, flat, part_along(0), whole, whole, "split(0)@1");
    check_infer(ctx, flat, part_along(1), whole, whole, "split(1)@1"); // the first of those joined
    check_infer(ctx, flat, part_along(2), whole, whole, "mixes");
    tt_tensor *wide = tt_reshape(g, flat, TT_SHAPE(TT_BATCH, 4, 6));
    check_infer(ctx, wide, part_along(1), whole, whole, "split(1)@1");
    tt_tensor *both = tt_mul(g, x, tt_feed(g, .shape = TT_SHAPE(4, 1), .name = "scale"));
    check_infer(ctx, both, part_along(1), part_along(0), whole, "split(1)@1");
    check_infer(ctx, both, part_along(2), whole, whole, "split(2)@1"); // broadcast
    check_infer(ctx, both, part_along(1), whole, whole, "mixes");      // the other has all of it
    CHECK_OK(tt_close(ctx));
}
