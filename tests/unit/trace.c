/*
 * trace.c - the trace of a run: JSON in Chrome's trace event form, and loaded by Perfetto's own
 * processor where that can be had.
 */
#include "model.h"
#include "ranks.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_trace(char path[512])
{
    tt_ctx *ctx = test_ctx_on("cpu:0*2", NULL, 2);
    test_model m;
    CHECK(test_model_build(&m, ctx, "cpu:0", "cpu:1", "cpu:0"));
    tt_session *s = tt_session_new(m.g, .trace = true);
    for (int step = 0; step < 2; step++)
        CHECK(!isnan(test_model_step(&m, s, step, 13)));
    snprintf(path, 512, "%s/trace.json", test_folder());
    CHECK_OK(tt_trace_write(s, path));
    CHECK_OK(tt_close(ctx));
}

// Every event has what its phase needs; arrows come in pairs of one id, forward in time.
TEST(a_trace_is_made_of_whole_events)
{
    char path[512];
    write_trace(path);
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *event;
    ck_assert_msg(root != NULL, "%s", error.text);
    json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
    CHECK(json_is_array(events));
    size_t i;
    int slices = 0, begun = 0, ended = 0;
    json_array_foreach(events, i, event)
    {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        CHECK(phase != NULL && strlen(phase) == 1);
        CHECK(json_is_string(json_object_get(event, "name")));
        CHECK(json_is_integer(json_object_get(event, "pid")));
        if (phase[0] == 'M')
            continue;
        CHECK(json_is_integer(json_object_get(event, "tid")));
        CHECK(json_number_value(json_object_get(event, "ts")) >= 0);
        if (phase[0] == 'X') {
            CHECK(json_number_value(json_object_get(event, "dur")) >= 0);
            slices++;
        }
        begun += phase[0] == 's';
        ended += phase[0] == 'f';
        if (phase[0] == 's' || phase[0] == 'f')
            CHECK(json_is_integer(json_object_get(event, "id")));
    }
    CHECK(slices > 20 && begun > 0 && begun == ended);
    json_decref(root);
}

// The first slice whose argument key has this value; NULL: none.
static json_t *find_slice(json_t *events, const char *key, const char *value)
{
    json_t *event;
    size_t i;
    json_array_foreach(events, i, event)
    {
        json_t *args = json_object_get(event, "args");
        const char *has = json_string_value(json_object_get(args, key));
        if (has != NULL && strcmp(has, value) == 0)
            return event;
    }
    return NULL;
}

// What a slice says of itself: lanes, who sent, micro-batch and stage.
TEST(slices_tell_lanes_senders_and_stages)
{
    static const char *const strategies[] = {"mirrored", "pipeline"};
    for (int k = 0; k < 2; k++) {
        char path[512];
        tt_ctx *ctx = tt_open(.devices = "cpu:0*2", .threads = 2, .strategy = strategies[k],
                              .on_event = test_ignore_event);
        tt_model *m = tt_sequential(ctx, .input = {28, 28, 1});
        tt_layer_flatten(m);
        tt_layer_dense(m, .units = 32, .act = TT_RELU);
        tt_layer_dense(m, .units = 10);
        tt_compile(m, .loss = TT_CROSS_ENTROPY);
        ck_assert_msg(tt_fit(m, tt_digits(ctx, .count = 32, .batch = 32), .trace = true) == TT_OK,
                      "%s", tt_last_error(ctx).message);
        snprintf(path, sizeof(path), "%s/trace.json", test_folder());
        CHECK_OK(tt_trace_write(tt_model_get_session(m), path));
        CHECK_OK(tt_close(ctx));
        json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        json_t *events = json_object_get(root, "traceEvents");
        CHECK(find_slice(events, "part", "backward") != NULL);
        if (k == 0) {
            json_t *slice = find_slice(events, "lanes", "4-7");
            CHECK(slice != NULL && find_slice(events, "lanes", "0-3") != NULL);
            CHECK_INT(json_integer_value(json_object_get(json_object_get(slice, "args"), "rows")),
                      16);
            CHECK_INT(json_integer_value(json_object_get(slice, "tid")), 1);
            slice = find_slice(events, "op", "tree");
            CHECK(slice != NULL);
            CHECK_STR(json_string_value(json_object_get(slice, "cat")), "communication");
            CHECK(strncmp(json_string_value(json_object_get(slice, "name")), "tree ", 5) == 0);
            CHECK(find_slice(events, "from", "cpu:0, cpu:1") != NULL);
        } else {
            json_t *slice = find_slice(events, "from", "cpu:0"); // what stage 0 hands on
            CHECK(slice != NULL);
            json_t *args = json_object_get(slice, "args");
            CHECK_STR(json_string_value(json_object_get(args, "op")), "receive");
            CHECK(json_is_integer(json_object_get(args, "micro")));
            CHECK_INT(json_integer_value(json_object_get(args, "stage")), 0);
            CHECK(find_slice(events, "lanes", "3-3") != NULL);
        }
        json_decref(root);
    }
}

TEST(perfetto_loads_a_trace)
{
    char path[512], line[1200];
    const char *python = getenv("TUTTI_PYTHON");
    if (python == NULL && access("build/python/bin/python", X_OK) == 0)
        python = "build/python/bin/python";
    if (python == NULL || access("tests/python/perfetto_test", R_OK) != 0)
        test_skip("no Python for tests (tools/python-deps)");
    write_trace(path);
    snprintf(line, sizeof(line), "timeout 40 %s tests/python/perfetto_test %s >%s/out 2>&1", python,
             path, test_folder());
    int status = system(line);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 124)
        test_skip("Perfetto's trace processor cannot be had here");
    CHECK_INT(WEXITSTATUS(status), 0);
}

// Events of one phase of a process; process 0: of all.
static int count_events(json_t *root, const char *phase, int process, const char *category)
{
    json_t *event, *events = json_object_get(root, "traceEvents");
    size_t i;
    int n = 0;
    json_array_foreach(events, i, event)
    {
        const char *cat = json_string_value(json_object_get(event, "cat"));
        n += strcmp(json_string_value(json_object_get(event, "ph")), phase) == 0 &&
             (process == 0 || json_integer_value(json_object_get(event, "pid")) == process) &&
             (category == NULL || (cat != NULL && strcmp(cat, category) == 0));
    }
    return n;
}

TEST(a_trace_of_several_processes_has_the_devices_of_all)
{
    ranks_need();
    command_write("job.yaml", command_small_job);
    setenv("TUTTI_TRANSPORT", "wire", 1);
    command_ok("run -n 3 job.yaml --strategy mirrored --run r --trace 3");
    char path[600];
    json_error_t error;
    snprintf(path, sizeof(path), "%s/r/trace.json", test_folder());
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s", error.text);
    int first = count_events(root, "X", 1, NULL);
    CHECK(first > 20);
    CHECK(count_events(root, "X", 2, NULL) > first / 2);
    CHECK(count_events(root, "X", 3, NULL) > first / 2);
    CHECK(count_events(root, "s", 0, "message") > 0);
    CHECK_INT(count_events(root, "s", 0, "message"), count_events(root, "f", 0, "message"));
    json_decref(root);
}
