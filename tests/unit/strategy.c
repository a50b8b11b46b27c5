/*
 * strategy.c - the mesh each strategy makes of devices, lanes, pins and options, and what it
 * refuses, naming what would do.
 */
#include "strategy/strategy.h"
#include "test.h"
#include <stdio.h>

static tt_ctx *open_with(const char *strategy, const char *devices, int lanes,
                         const tt_spread *spread)
{
    return tt_open(.strategy = strategy, .devices = devices, .lanes = lanes, .spread = spread,
                   .threads = 1, .on_event = test_ignore_event);
}

// For a graph whose pins go up to local:pins-1.
static tt_status make_mesh(tt_ctx *ctx, int pins, tti_mesh *out)
{
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = test_uniform(g, 1, TT_SHAPE(2, 3));
    for (int k = 0; k < pins; k++) {
        char name[32];
        snprintf(name, sizeof(name), "local:%d", k);
        x = tt_relu(g, x);
        CHECK_OK(tt_pin(x, name));
    }
    return ctx->top.strategy->mesh(&ctx->top, g, out);
}

static tti_mesh mesh_of(const char *strategy, const char *devices, int pins,
                        const tt_spread *spread)
{
    tt_ctx *ctx = open_with(strategy, devices, 8, spread);
    tti_mesh m;
    tt_status st = make_mesh(ctx, pins, &m);
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
    CHECK_OK(tti_mesh_check(ctx, &m, ctx->top.n_devices));
    if (m.n_axes > 0)
        CHECK_INT(tti_mesh_n_devices(&m), ctx->top.n_devices);
    for (int r = 0; r < tti_mesh_size(&m, TTI_AXIS_DATA); r++)
        CHECK(tti_mesh_share(&m, r) > 0);
    m.speed = NULL; // the context's
    CHECK_OK(tt_close(ctx));
    return m;
}

// Refused by tt_open() or, at the latest, for the graph.
static void refuse_lanes(const char *strategy, const char *devices, int lanes, int pins,
                         const tt_spread *spread, const char *words)
{
    tt_ctx *ctx = open_with(strategy, devices, lanes, spread);
    tti_mesh m;
    if (tt_status_of(ctx) == TT_OK)
        CHECK(make_mesh(ctx, pins, &m) == TT_EINVAL);
    CHECK_MESSAGE(ctx, words);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

static void refuse(const char *strategy, const char *devices, int pins, const tt_spread *spread,
                   const char *words)
{
    refuse_lanes(strategy, devices, 8, pins, spread, words);
}

// The mesh {data, pipe} of these sizes?
static bool is_mesh(const tti_mesh *m, int data, int pipe)
{
    return m->n_axes == 2 && m->axis[0].name == TTI_AXIS_DATA && m->axis[0].size == data &&
           m->axis[1].name == TTI_AXIS_PIPE && m->axis[1].size == pipe;
}

#define SPREAD(...) tt_spread(__VA_ARGS__)
#define NOTHING     NULL

TEST(strategies_make_meshes)
{
    tti_mesh m = mesh_of("single", "cpu:0*3", 3, NOTHING);
    CHECK(m.n_axes == 0 && m.n_stages == 0 && m.n_micro == 1);
    m = mesh_of("mirrored", "cpu:0*3", 0, NOTHING);
    CHECK(is_mesh(&m, 3, 1) && m.state == TT_LAYOUT_REPLICATED && m.n_micro == 1);
    m = mesh_of("mirrored", "cpu:0*4", 2, SPREAD(.replicas = 2));
    CHECK(is_mesh(&m, 2, 2));
    m = mesh_of("central", "cpu:0*2", 0, NOTHING);
    CHECK_INT(m.n_without_lanes, 0);
    CHECK(is_mesh(&m, 2, 1) && m.state == TT_LAYOUT_ONE);
}

TEST(pipelines_make_meshes)
{
    tti_mesh m = mesh_of("pipeline", "cpu:0*4", 0, NOTHING);
    CHECK(is_mesh(&m, 1, 4) && m.n_stages == 4 && m.n_micro == 0);
    m = mesh_of("pipeline", "cpu:0*4", 0, SPREAD(.replicas = 2));
    CHECK(is_mesh(&m, 2, 2) && m.n_stages == 2);
    m = mesh_of("pipeline", "cpu:0*4", 0, SPREAD(.stages = 2, .micro = 4));
    CHECK(is_mesh(&m, 2, 2) && m.n_micro == 4);
    m = mesh_of("pipeline", "cpu:0*4", 2, NOTHING);
    CHECK(is_mesh(&m, 2, 2)); // by pins
    m = mesh_of("pipeline", "cpu:0*2", 4, SPREAD(.schedule = TT_PIPE_INTERLEAVED));
    CHECK(is_mesh(&m, 1, 2) && m.n_stages == 4); // pins name stages
    m = mesh_of("pipeline", "cpu:0*3", 0, SPREAD(.schedule = TT_PIPE_INTERLEAVED));
    CHECK(m.n_stages == 6 && m.n_micro == 0);
    m = mesh_of("pipeline", "cpu:0*2", 0,
                SPREAD(.schedule = TT_PIPE_INTERLEAVED, .chunks = 4, .micro = 4));
    CHECK(m.n_stages == 8 && m.n_micro == 4);
    m = mesh_of("pipeline", "cpu:0*2", 0, SPREAD(.schedule = TT_PIPE_INTERLEAVED, .chunks = 1));
    CHECK(m.n_stages == 2 && m.n_micro == 0);
}

TEST(shares_of_lanes)
{
    tti_mesh m = mesh_of("mirrored", "cpu:0*2", 0, SPREAD(.share = "equal"));
    CHECK(tti_mesh_share(&m, 0) == 1 && tti_mesh_share(&m, 1) == 1);
    m = mesh_of("mirrored", "cpu:0*3", 0, SPREAD(.share = "2, 1.5 ,1"));
    CHECK(m.share != NULL);
    m.share = "2, 1.5 ,1"; // the context's is gone
    CHECK(tti_mesh_share(&m, 0) == 2 && tti_mesh_share(&m, 1) == 1.5 && tti_mesh_share(&m, 2) == 1);
    m = mesh_of("mirrored", "cpu:0*3", 0, SPREAD(.share = "auto"));
    m = mesh_of("pipeline", "cpu:0*4", 0, SPREAD(.share = "auto", .stages = 2));
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = "2,1,1"),
           "share '2,1,1' has 3 numbers, but there are 2 replicas");
    refuse("mirrored", "cpu:0", 0, SPREAD(.share = "2,1"),
           "share '2,1' has 2 numbers, but there is 1 replica");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = "2,0"), "share '2,0': 0 must be above 0");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = "2,-1"), "-1 must be above 0");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = "2,x"),
           "share '2,x': 'x' is not a number; use equal");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = "2,"), "'' is not a number");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = ""), "'' is not a number");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = "nan,1"), "'nan' is not a number");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = "fast"),
           "'fast' is not a number; use equal, auto");
    char many[300];
    memset(many, 0, sizeof(many));
    for (int i = 0; i < 149; i++)
        memcpy(many + 2 * i, i < 148 ? "1," : "1", 2);
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = many), "...' is too long");
    strcpy(many, "1.0000000000000000000000000000000000000000,1");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.share = many), "is not a number");
}

TEST(unknown_strategies_are_refused)
{
    refuse("mirored", "cpu:0", 0, NOTHING,
           "'mirored' is unknown; did you mean 'mirrored'? (single, mirrored, central, pipeline)");
    refuse("swarmed", "cpu:0", 0, NOTHING, "'swarmed' is not one of single, mirrored, central");
    refuse("", "cpu:0", 0, NOTHING, "'' is not one of");
}

TEST(options_of_other_strategies_are_refused)
{
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.stages = 2),
           "strategy mirrored has no option stages; strategy pipeline has");
    refuse("single", "cpu:0", 0, SPREAD(.replicas = 2),
           "strategy single has no option replicas; strategy mirrored, central, pipeline have");
    refuse("single", "cpu:0", 0, SPREAD(.share = "2,1"), "single has no option share");
    refuse("central", "cpu:0*2", 0, SPREAD(.update = TT_UPDATE_SHARD), "has no option update");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.micro = 4), "has no option micro");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.schedule = TT_PIPE_GPIPE), "has no option schedule");
    refuse("pipeline", "cpu:0*2", 0, SPREAD(.chunks = 2), "chunks is 2, but schedule 1f1b has one");
    // What says nothing is no contradiction.
    (void)mesh_of("single", "cpu:0", 0, SPREAD(.replicas = 1, .stages = 1, .share = "equal"));
    (void)mesh_of("single", "cpu:0", 0, SPREAD(.reduce = TT_REDUCE_FAST, .bucket = 1 << 20));
}

TEST(bad_values_of_options_are_refused)
{
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.replicas = -1), "replicas -1 is below 0");
    refuse("pipeline", "cpu:0*2", 0, SPREAD(.stages = 1025), "stages 1025 is above 1024");
    refuse("pipeline", "cpu:0*2", 0, SPREAD(.micro = 1 << 20), "micro 1048576 is above 1024");
    refuse("pipeline", "cpu:0*2", 0, SPREAD(.schedule = (tt_pipe)9),
           "schedule 9 is not one of its values");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.wire = TT_F64), "wire is f64; use f32, bf16 or f16");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.wire = TT_I32), "wire is i32");
    refuse("mirrored", "cpu:0*2", 0, SPREAD(.wire = (tt_dtype)99), "wire is ?");
}

// Rounded on the way, sums cannot be exact.
TEST(narrow_wires_reduce_fast)
{
    tt_ctx *ctx = open_with("mirrored", "cpu:0*2", 8, SPREAD(.wire = TT_BF16));
    CHECK(ctx->top.spread.reduce == TT_REDUCE_FAST);
    CHECK_OK(tt_close(ctx));
}

TEST(replicas_devices_and_lanes_must_agree)
{
    refuse_lanes("mirrored", "cpu:0*4", 2, 0, NOTHING,
                 "4 replicas, but 2 lanes, and a replica needs at least one; use lanes: 4 (which "
                 "changes the bits), or 2 devices");
    refuse("mirrored", "cpu:0*5", 2, NOTHING,
           "5 devices cannot be divided into replicas of 2 devices each (pins up to local:1); use "
           "4 or 6 devices");
    refuse("mirrored", "cpu:0*4", 2, SPREAD(.replicas = 4),
           "replicas is 4, of 2 devices each (pins up to local:1), but there are 4 devices; use "
           "replicas: 2 or 8 devices");
    refuse("mirrored", "cpu:0*4", 0, SPREAD(.replicas = 2),
           "replicas is 2, of 1 device each (no pins local:1), but there are 4 devices; use "
           "replicas: 4 or 2 devices");
    refuse("central", "cpu:0*2", 3, NOTHING,
           "a replica needs 3 devices (pins up to local:2), but there is only cpu:0, cpu:1");
    refuse("single", "cpu:0*2", 3, NOTHING, "is pinned to local:2, but there is only cpu:0, cpu:1");
}

TEST(stages_devices_and_lanes_must_agree)
{
    refuse("pipeline", "cpu:0*4", 0, SPREAD(.replicas = 3),
           "4 devices cannot be divided evenly among 3 replicas; use 3 or 6");
    refuse("pipeline", "cpu:0*4", 0, SPREAD(.stages = 3),
           "replicas of 3 devices each (stages: 3); use 3 or 6 devices");
    refuse("pipeline", "cpu:0*4", 0, SPREAD(.stages = 2, .replicas = 4),
           "replicas: 2 or 8 devices");
    refuse("pipeline", "cpu:0*4", 0, SPREAD(.stages = 8), "8 devices (stages: 8), but there is");
    refuse("pipeline", "cpu:0*2", 3, SPREAD(.stages = 2), "pins go up to local:2; use stages: 3");
    refuse("pipeline", "cpu:0*4", 2, SPREAD(.stages = 4), "pins end at local:1, and a stage needs");
    refuse("pipeline", "cpu:0*2", 3, SPREAD(.schedule = TT_PIPE_INTERLEAVED),
           "pins go up to local:2, but with 2 stages per device (chunks) there cannot be 3 stages; "
           "use pins up to local:1 or local:3");
    refuse("pipeline", "cpu:0*2", 0, SPREAD(.micro = 9), "micro is 9, but a replica has at most 8");
    refuse("pipeline", "cpu:0*4", 0, SPREAD(.micro = 8, .stages = 2), "use micro: 4");
}

TEST(most_devices_follow_lanes)
{
    const struct {
        const char *strategy;
        int lanes;
        const char *text;
    } cases[] = {{"single", 8, "up to 8 replicas (lanes: 8)"},
                 {"mirrored", 16, "up to 16 replicas (lanes: 16)"},
                 {"central", 2, "up to 2 replicas (lanes: 2)"},
                 {"pipeline", 8, "up to 8 replicas of 2 devices each (lanes: 8)"},
                 {"pipeline", 1, "up to 1 replica of 2 devices each (lanes: 1)"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tt_ctx *ctx = open_with(cases[i].strategy, "cpu:0*2", cases[i].lanes, NOTHING);
        char text[TTI_MOST_TEXT];
        CHECK_STR(tti_most_text(&ctx->top, tt_graph_new(ctx), text), cases[i].text);
        CHECK_OK(tt_close(ctx));
    }
}

// ---- lanes -----------------------------------------------------------------------------------

static void check_lanes(int n_lanes, int n_replicas, const double *share, const int *want)
{
    tti_mesh m = tti_mesh_make(n_replicas, 1);
    int end[64], at = 0;
    m.speed = share;
    tti_assign_lanes(&m, n_lanes, end);
    for (int r = 0; r < n_replicas; r++) {
        if (want != NULL)
            ck_assert_msg(end[r] - at == want[r], "%d lanes: replica %d has %d", n_lanes, r,
                          end[r] - at);
        if (share == NULL)
            CHECK(end[r] - at <= (n_lanes + n_replicas - 1) / n_replicas);
        CHECK(end[r] > at);
        at = end[r];
    }
    CHECK_INT(at, n_lanes);
}

TEST(lanes_are_assigned_by_shares_and_sub_trees)
{
    check_lanes(8, 2, NULL, (const int[]){4, 4});
    check_lanes(8, 3, NULL, (const int[]){2, 3, 3});  // 5 sub-trees; 3, 2, 3 would be 6
    check_lanes(16, 3, NULL, (const int[]){4, 6, 6}); // 5 again, and nobody has more than 6
    check_lanes(8, 2, (const double[]){3, 1}, (const int[]){6, 2});
    check_lanes(8, 2, (const double[]){5, 3}, (const int[]){5, 3});
    check_lanes(8, 2, (const double[]){1000, 1}, (const int[]){7, 1});
    check_lanes(8, 8, (const double[]){9, 1, 1, 1, 1, 1, 1, 1},
                (const int[]){1, 1, 1, 1, 1, 1, 1, 1});
    for (int n_lanes = 1; n_lanes <= 40; n_lanes++)
        for (int n = 1; n <= TTI_MIN(n_lanes, 9); n++)
            check_lanes(n_lanes, n, NULL, NULL);
}
