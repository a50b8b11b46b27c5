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
