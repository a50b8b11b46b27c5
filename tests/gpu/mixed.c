/*
 * mixed.c - CPU and GPUs in one graph, and work that moves between them: branches on both, central
 * variables on the CPU, checkpoints of one resumed on the other.
 */
#include "cli/matrix.h"
#include "model.h"
#include "strategy/strategy.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 4
#define ROWS  17
#define CNN   (&matrix_models[2]) // sgd, without the mlp's sum that vanishes: 1 / 0 or 1 / -0

// Losses of some steps with branches on these devices.
static void branches(const char *devices, const char *dense, const char *conv, const char *join,
                     double loss[STEPS])
{
    tt_ctx *ctx = tt_open(.devices = devices, .on_event = test_ignore_event, .soft = TT_SOFT_OFF);
    test_model m;
    ck_assert_msg(test_model_build(&m, ctx, dense, conv, join), "%s: %s", devices,
                  tt_last_error(ctx).message);
    tt_session *s = tt_session_new(m.g);
    for (int step = 0; step < STEPS; step++) {
        loss[step] = test_model_step(&m, s, step, ROWS);
        ck_assert_msg(!isnan(loss[step]), "%s: %s", devices, tt_last_error(ctx).message);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(gpu_and_cpu_share_a_graph)
{
    static const struct {
        const char *devices, *dense, *conv, *join;
    } spreads[] = {
        {"gpu:0", NULL, NULL, NULL},
        {"gpu:0*2", "gpu:0", "gpu:1", "gpu:0"},
        {"cpu:0,gpu:0*2", "cpu:0", "gpu:0", "gpu:1"},
        {"cpu:0,gpu:0", "gpu:0", "cpu:0", "cpu:0"},
        {"gpu:0*2,cpu:0", "gpu:1", "gpu:0", "cpu:0"},
    };
    double want[STEPS], got[STEPS];
    test_need_gpu();
    branches("cpu:0", NULL, NULL, NULL, want);
    for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++) {
        branches(spreads[i].devices, spreads[i].dense, spreads[i].conv, spreads[i].join, got);
        for (int step = 0; step < STEPS; step++)
            ck_assert_msg(fabs(got[step] - want[step]) <= 1e-4 * want[step],
                          "%s, step %d: loss %.9g, on the CPU %.9g", spreads[i].devices, step,
                          got[step], want[step]);
    }
}

// ---- overlap ---------------------------------------------------------------------------------

// A chain of products on one device that takes a while.
static tt_tensor *chain(tt_graph *g, tt_tensor *x, const char *device, int64_t width, int n)
{
    CHECK_OK(tt_device_push(g, device));
    tt_tensor *w =
        tt_variable(g, .shape = TT_SHAPE(width, width), .init = {TT_INIT_UNIFORM, -0.01, 0.01});
    for (int i = 0; i < n; i++)
        x = tt_matmul(g, x, w);
    tt_tensor *y = tt_sum(g, x);
    CHECK_OK(tt_device_pop(g));
    return y;
}

// The time in which slices of both rows run, in microseconds.
static double overlap(json_t *events, int a, int b)
{
    json_t *x, *y;
    size_t i, k;
    double sum = 0;
    json_array_foreach(events, i, x)
    {
        if (strcmp(json_string_value(json_object_get(x, "ph")), "X") != 0 ||
            json_integer_value(json_object_get(x, "tid")) != a)
            continue;
        json_array_foreach(events, k, y)
        {
            if (strcmp(json_string_value(json_object_get(y, "ph")), "X") != 0 ||
                json_integer_value(json_object_get(y, "tid")) != b)
                continue;
            double from = fmax(json_number_value(json_object_get(x, "ts")),
                               json_number_value(json_object_get(y, "ts")));
            double to = fmin(json_number_value(json_object_get(x, "ts")) +
                                 json_number_value(json_object_get(x, "dur")),
                             json_number_value(json_object_get(y, "ts")) +
                                 json_number_value(json_object_get(y, "dur")));
            sum += to > from ? to - from : 0;
        }
    }
    return sum;
}

TEST(gpu_and_cpu_branches_overlap)
{
    test_need_gpu();
    bool real = !test_gpu_is_emulated();
    int64_t width = real ? 1024 : 32;
    tt_ctx *ctx = tt_open(.devices = "cpu:0,gpu:0*2", .on_event = test_ignore_event, .seed = 3);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_fill(g, TT_F32, TT_SHAPE(width, width), 0.5);
    tt_tensor *sums[] = {chain(g, x, "cpu:0", width, 3),
                         chain(g, x, "gpu:0", width, real ? 200 : 3),
                         chain(g, x, "gpu:1", width, real ? 200 : 3)};
    tt_session *s = tt_session_new(g, .trace = true);
    float out[3];
    tt_fetch fetches[3];
    for (int i = 0; i < 3; i++)
        fetches[i] = (tt_fetch){sums[i], &out[i], sizeof(float)};
    for (int i = 0; i < 3; i++)
        CHECK_OK(tt_run(s, .fetches = fetches, .n_fetches = 3));
    char path[512];
    snprintf(path, sizeof(path), "%s/trace.json", test_folder());
    CHECK_OK(tt_trace_write(s, path));
    CHECK_OK(tt_close(ctx));
    json_t *root = json_load_file(path, 0, NULL), *events = json_object_get(root, "traceEvents");
    CHECK(json_is_array(events));
    if (real) {
        CHECK(overlap(events, 0, 1) > 0);
        CHECK(overlap(events, 1, 2) > 0);
    }
    json_decref(root);
}

// ---- central ---------------------------------------------------------------------------------

typedef struct lines {
    char text[4096];
} lines;

static void keep_lines(void *user, const tt_event *ev)
{
    lines *l = user;
    size_t n = strlen(l->text);
    if (strcmp(ev->kind, "log") == 0)
        snprintf(l->text + n, sizeof(l->text) - n, "%s\n", ev->text);
}

TEST(gpu_computes_what_central_variables_on_the_cpu_need)
{
    const matrix_model *model = CNN;
    matrix_way one = matrix_reference(0);
    matrix_result want;
    test_need_gpu();
    matrix_run(model, &one, NULL, &want);
    lines said = {""};
    tt_ctx *ctx = tt_open(.devices = "cpu:0,gpu:0*2", .strategy = "central", .seed = 7,
                          .level = TT_WARN, .on_event = keep_lines, .user = &said);
    matrix_way way = {.strategy = "central", .devices = 3};
    tt_model *m = matrix_build(ctx, model, &way);
    tt_fit_report r;
    ck_assert_msg(m != NULL && tt_fit(m, matrix_data(ctx, model, 121), .batch = 36) == TT_OK, "%s",
                  tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    ck_assert_msg(fabs(r.last->loss - want.loss) < 1e-3 * want.loss, "loss %.9g, on the CPU %.9g",
                  r.last->loss, want.loss);
    tt_device_info cpu, gpu;
    CHECK_OK(tt_device_get(ctx, 0, &cpu));
    CHECK_OK(tt_device_get(ctx, 1, &gpu));
    CHECK_STR(cpu.name, "cpu:0");
    CHECK(cpu.variables > 0 && gpu.arena > 0);
    ck_assert_msg(strstr(said.text, "CPU and GPUs are used together") != NULL, "%s", said.text);
    char *plan = tt_plan_print(tt_model_get_session(m));
    for (char *save, *line = strtok_r(plan, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) // rows are the GPUs', all else is the CPU's
        if (strstr(line, "  lane") != NULL || strncmp(line, "variable ", 9) == 0)
            ck_assert_msg(strstr(line, strstr(line, "  lane") != NULL ? " gpu:" : " cpu:0 "), "%s",
                          line);
    tt_string_free(ctx, plan);
    CHECK_OK(tt_close(ctx));
}

// The mesh of a graph without pins on "cpu:0,gpu:0*2".
static tt_status apart(const tt_spread *spread, int lanes, tti_mesh *m, int *end, const char *words)
{
    tt_ctx *ctx = tt_open(.devices = "cpu:0,gpu:0*2", .strategy = "central", .spread = spread,
                          .lanes = lanes, .on_event = test_ignore_event);
    tt_status st = ctx->top.strategy->mesh(&ctx->top, tt_graph_new(ctx), m);
    if (st == TT_OK)
        tti_assign_lanes(m, lanes, end);
    else
        CHECK_MESSAGE(ctx, words);
    CHECK_INT(tt_close(ctx), st);
    return st;
}

TEST(gpu_central_on_a_cpu_gives_it_no_lanes)
{
    tti_mesh m;
    int end[3];
    test_need_gpu();
    CHECK_OK(apart(NULL, 8, &m, end, ""));
    CHECK(tti_mesh_size(&m, TTI_AXIS_DATA) == 3 && m.state == TT_LAYOUT_ONE &&
          m.n_without_lanes == 1);
    CHECK(end[0] == 0 && end[1] == 4 && end[2] == 8);
    CHECK_OK(apart(tt_spread(.share = "3,1", .replicas = 2), 8, &m, end, ""));
    CHECK(end[0] == 0 && end[1] == 6 && end[2] == 8);
    CHECK_OK(apart(NULL, 2, &m, end, "")); // as many lanes as GPUs
    CHECK(end[0] == 0 && end[1] == 1 && end[2] == 2);
    CHECK_INT(apart(tt_spread(.share = "1,1,1"), 8, &m, end, "but there are 2 replicas"),
              TT_EINVAL);
    CHECK_INT(apart(tt_spread(.replicas = 3), 8, &m, end,
                    "there are 2 devices beside the one that holds the variables; use replicas: 2"),
              TT_EINVAL);
}

// ---- ops without a kernel on GPUs ------------------------------------------------------------

// y = -print(exp(x)) on rows of a batch. print is the CPU's alone.
static tt_status run_print(const char *devices, const char *strategy, char **plan, lines *said)
{
    tt_ctx *ctx = tt_open(.devices = devices, .strategy = strategy, .level = TT_WARN,
                          .on_event = keep_lines, .user = said);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 2), .name = "x");
    tt_tensor *y = tt_neg(
        g, tt_matmul(g, tt_print(g, tt_exp(g, x), "e"), tt_fill(g, TT_F32, TT_SHAPE(2, 2), 1)));
    tt_session *s = tt_session_new(g);
    float in[8] = {0}, out[8];
    tt_status st = tt_run(s, .feeds = &(tt_feed_value){x, in, TT_SHAPE(4, 2), TT_F32}, .n_feeds = 1,
                          .fetches = &(tt_fetch){y, out, sizeof(out)}, .n_fetches = 1);
    for (int i = 0; st == TT_OK && i < 8; i++)
        CHECK(out[i] == -2);
    char *text = st == TT_OK ? tt_plan_print(s) : NULL;
    *plan = text == NULL ? NULL : strdup(text);
    tt_string_free(ctx, text);
    CHECK_INT(tt_close(ctx), st);
    return st;
}

// The device of the plan's line that begins with this op.
static void check_place(const char *plan, const char *op, const char *device)
{
    const char *line = strstr(plan, op);
    while (line != NULL && line > plan && line[-1] != '\n')
        line = strstr(line + 1, op);
    ck_assert_msg(line != NULL, "no %s in %s", op, plan);
    const char *at = strstr(line, device);
    ck_assert_msg(at != NULL && at < strchr(line, '\n'), "%s is not on %s: %s", op, device, plan);
}

TEST(gpu_ops_without_a_kernel_run_on_the_cpu_one_by_one)
{
    char *plan;
    lines said = {""};
    test_need_gpu();
    CHECK_OK(run_print("gpu:0,cpu:0", "single", &plan, &said));
    check_place(plan, "exp ", " gpu:0 ");
    check_place(plan, "print ", " cpu:0 ");
    check_place(plan, "print ", "gpu:0 has no kernel for f32");
    check_place(plan, "matmul ", " gpu:0 "); // and back again
    free(plan);
    said.text[0] = '\0';
    CHECK_OK(run_print("cpu:0,gpu:0", "mirrored", &plan, &said));
    CHECK(strstr(said.text, "print 'print' belongs to gpu:0, which has no kernel for f32; placed "
                            "elsewhere") != NULL);
    free(plan);
    CHECK_OK(run_print("cpu:0,gpu:0", "central", &plan, &said));
    check_place(plan, "print ", " cpu:0 ");
    check_place(plan, "matmul ", " gpu:0 ");
    free(plan);
}

TEST(gpu_ops_without_a_kernel_are_named_where_there_is_no_cpu)
{
    static const char *const ways[][2] = {
        {"gpu:0", "single"}, {"gpu:0*2", "mirrored"}, {"gpu:0*2", "pipeline"}};
    test_need_gpu();
    for (int i = 0; i < 3; i++) {
        char *plan;
        lines said = {""};
        CHECK_INT(run_print(ways[i][0], ways[i][1], &plan, &said), TT_EUNSUPPORTED);
        ck_assert_msg(strstr(said.text, "print 'print': there is no kernel for f32 on gpu:0") &&
                          strstr(said.text, "; add cpu:0 to the devices to run it there"),
                      "%s: %s", ways[i][1], said.text);
    }
}

// ---- checkpoints -----------------------------------------------------------------------------

static tt_status end_at(void *user, tt_model *m, const tt_progress *p)
{
    if (p->step == *(int64_t *)user)
        tt_request_end(tt_graph_get_ctx(tt_model_get_graph(m)));
    return TT_OK;
}

// Two epochs of two steps on a device, up to a step; said gets the log.
static double fit(const char *device, const char *folder, int64_t stop_at, lines *said)
{
    tt_ctx *ctx = tt_open(.devices = device, .seed = 7, .level = TT_WARN, .on_event = keep_lines,
                          .user = said);
    matrix_way way = matrix_reference(0);
    tt_model *m = matrix_build(ctx, CNN, &way);
    tt_fit_report r;
    tt_status st = tt_fit(m, matrix_data(ctx, CNN, 37), .epochs = 2, .batch = 36,
                          .checkpoints = folder, .resume = folder != NULL,
                          .callbacks = {tt_callback(TT_AT_STEP, 1, end_at, &stop_at)});
    ck_assert_msg(st == (stop_at > 0 ? TT_ESTOP : TT_OK), "%s: %s", device,
                  tt_last_error(ctx).message);
    tt_clear_error(ctx);
    CHECK_OK(tt_fit_report_get(m, &r));
    double loss = r.last->loss;
    CHECK_OK(tt_close(ctx));
    return loss;
}

TEST(gpu_checkpoints_go_on_on_the_cpu_and_back)
{
    static const struct {
        const char *from, *to, *tf32, *says;
    } ways[] = {
        {"gpu:0", "cpu:0", "0",
         "was made with arithmetic version 1002 (GPUs), this is version 2: the bits will differ"},
        {"cpu:0", "gpu:0", "0",
         "was made with arithmetic version 2, this is version 1002 (GPUs): the bits will differ"},
        {"gpu:0", "gpu:0", "0", NULL},
        {"gpu:0", "gpu:0", "1", ", TF32: other bits may follow"}, // as with another library
    };
    lines said = {""};
    test_need_gpu();
    double want = fit("cpu:0", NULL, 0, &said);
    for (int i = 0; i < 4; i++) {
        char folder[512];
        snprintf(folder, sizeof(folder), "%s/%d", test_folder(), i);
        setenv("TUTTI_TF32", "0", 1);
        (void)fit(ways[i].from, folder, 3, &said);
        setenv("TUTTI_TF32", ways[i].tf32, 1);
        said.text[0] = '\0';
        double got = fit(ways[i].to, folder, 0, &said);
        ck_assert_msg(fabs(got - want) <= 2e-3 * want, "from %s to %s: loss %.9g, not %.9g",
                      ways[i].from, ways[i].to, got, want);
        ck_assert_msg(ways[i].says == NULL ? strstr(said.text, "other bits") == NULL
                                           : strstr(said.text, ways[i].says) != NULL,
                      "from %s to %s it says: %s", ways[i].from, ways[i].to, said.text);
    }
}

// Files of hashes say which arithmetic they follow, so that a difference between kinds is expected.
TEST(gpu_hashes_say_whose_arithmetic_they_are)
{
    static const char *const devices[] = {"cpu:0", "gpu:0"};
    char path[2][512], *report = NULL;
    test_need_gpu();
    for (int i = 0; i < 2; i++) {
        tt_ctx *ctx = tt_open(.devices = devices[i], .on_event = test_ignore_event);
        tt_graph *g = tt_graph_new(ctx);
        tt_session *s = tt_session_new(g, .hashes = true);
        tt_tensor *w = tt_variable(g, .shape = TT_SHAPE(2, 3), .init = {TT_INIT_NORMAL, 0, 1});
        tt_tensor *y = tt_neg(g, w);
        float out[6];
        CHECK_OK(tt_run(s, .fetches = &(tt_fetch){y, out, sizeof(out)}, .n_fetches = 1));
        snprintf(path[i], sizeof(path[i]), "%s/%d", test_folder(), i);
        CHECK_OK(tt_hashes_write(s, path[i]));
        CHECK_OK(tt_close(ctx));
    }
    bool same = false;
    tt_ctx *ctx = test_ctx();
    CHECK_OK(tt_hashes_diff(ctx, path[0], path[1], &same, &report));
    ck_assert_msg(same, "initial weights differ: %s", report);
    ck_assert_msg(strstr(report, "from arithmetic versions 2 and 1002 (GPUs)") != NULL, "%s",
                  report);
    tt_string_free(ctx, report);
    CHECK_OK(tt_close(ctx));
}
