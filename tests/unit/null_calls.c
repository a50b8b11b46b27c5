/*
 * null_calls.c - every public function with NULL for each of its pointers, in a process of its own:
 * none may crash, and an error that a call returns is one that tt_close() returns too, if the call
 * has a context to record it in. The calls are generated: tools/null-calls.
 */
#include "../calls.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- the calls -------------------------------------------------------------------------------

typedef struct outcome {
    const char *name;
    int arg;
    bool has_context; // another argument belongs to a context, which can record the error
    bool is_pointer;  // it returns one
    bool has_failed;  // by what it returned
} outcome;

static bool has_context(const char *call)
{
    static const char *const owned[] = {"fx.ctx",   "fx.graph",   "fx.tensor", "fx.model",
                                        "fx.data",  "fx.session", "fx.job",    "fx.comm",
                                        "fx.queue", "fx.threads"};
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        if (strstr(call, owned[i]) != NULL)
            return true;
    return false;
}

#define CASE(name_, arg_, ...)                                                 \
    if (n++ == wanted) {                                                       \
        *o = (outcome){#name_, arg_, has_context(#__VA_ARGS__), false, false}; \
        if (!dry) {                                                            \
            __VA_ARGS__;                                                       \
        }                                                                      \
        return true;                                                           \
    }
#define STATUS(name_, arg_, call_) CASE(name_, arg_, o->has_failed = (call_) != TT_OK)
#define POINTER(name_, arg_, call_) \
    CASE(name_, arg_, o->is_pointer = true; o->has_failed = (call_) == NULL)
#define VALUE(name_, arg_, call_)   CASE(name_, arg_, (void)call_)
#define NOTHING(name_, arg_, call_) CASE(name_, arg_, call_)

// Makes call number `wanted`, or only says which one it is; false: there are not so many.
static bool call(int wanted, bool dry, outcome *o)
{
    int n = 0;
#include "null_calls.inc"
    return false;
}

// Questions whose answer is NULL or an error code, and no failure.
static bool is_question(const outcome *o)
{
    static const char *const names[] = {
        "tt_op_find",      "tt_op_at", "tt_source_find", "tt_source_at",  "tt_graph_find",
        "tt_device_parse", "tt_fail",  "tt_status_of",   "tt_last_error", "tt_job_get"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(o->name, names[i]) == 0)
            return true;
    return false;
}

enum {
    FINE = 0,
    NOT_RECORDED = 3
};

static int try_call(int i)
{
    outcome o;
    alarm(60);
    if (freopen("/dev/null", "w", stderr) == NULL) // what is logged there is not looked at
        return 4;
    calls_open();
    call(i, false, &o);
    if (o.has_context && o.has_failed && !is_question(&o) && tt_status_of(fx.ctx) == TT_OK)
        return NOT_RECORDED;
    return FINE;
}

TEST(no_public_function_crashes_on_null)
{
    outcome o;
    char wrong[4096] = "";
    int n = 0, n_wrong = 0;
    for (; call(n, true, &o); n++) {
        pid_t child = fork();
        if (child == 0)
            _exit(try_call(n));
        int status = 0;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        bool crashed = !WIFEXITED(status);
        if (!crashed && WEXITSTATUS(status) == FINE)
            continue;
        size_t at = strlen(wrong);
        snprintf(wrong + at, sizeof(wrong) - at, "\n%s: argument %d: %s", o.name, o.arg,
                 crashed                               ? strsignal(WTERMSIG(status))
                 : WEXITSTATUS(status) == NOT_RECORDED ? "an error that is not recorded"
                                                       : "another exit code");
        n_wrong++;
    }
    CHECK(n > 400);
    ck_assert_msg(n_wrong == 0, "%d of %d calls:%s", n_wrong, n, wrong);
}

// What a program that checks only at the end must not miss.
TEST(a_fit_without_data_fails_at_close)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4});
    tt_layer_dense(m, .units = 1);
    tt_compile(m, .loss = TT_MSE);
    CHECK(tt_fit(m, NULL) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "fit: the data is NULL");
    CHECK(tt_close(ctx) == TT_EINVAL);

    static float x[4], y[1];
    ctx = test_ctx();
    tt_data *d = tt_memory(ctx, .x = x, .y = y, .x_shape = TT_SHAPE(4), .y_shape = TT_SHAPE(1),
                           .count = 1, .batch = 1);
    CHECK(tt_fit(NULL, d) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "fit: the model is NULL");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

// NULL within what a call gets, not only instead of it.
TEST(nulls_in_options_are_errors_with_a_message)
{
    enum {
        N_CASES = 14
    };
    for (int i = 0; i < N_CASES; i++) {
        static float x[16], y[4], out[4];
        calls_open();
        tt_graph *g = tt_graph_new(fx.ctx);
        tt_tensor *feed = tt_feed(g, .shape = TT_SHAPE(4)), *relu = tt_relu(g, feed);
        tt_session *s = tt_session_new(g);
        tt_feed_value value = {feed, x, TT_SHAPE(4), TT_F32};
        tt_fetch fetch = {relu, out, sizeof(out)};
        tt_batch_data batch = {.rows = 4, .fields = {x, y}};
        tt_port port;
        tt_status st = TT_OK;
        CHECK_OK(tt_status_of(fx.ctx));
        switch (i) {
        case 0:
            st = tt_run(s, .feeds = NULL, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
            break;
        case 1:
            st = tt_run(s, .feeds = &value, .n_feeds = 1, .fetches = NULL, .n_fetches = 1);
            break;
        case 2:
            value.tensor = NULL;
            st = tt_run(s, .feeds = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
            break;
        case 3:
            value.data = NULL;
            st = tt_run(s, .feeds = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
            break;
        case 4:
            fetch.tensor = NULL;
            st = tt_run(s, .feeds = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
            break;
        case 5:
            fetch.data = NULL;
            st = tt_run(s, .feeds = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1);
            break;
        case 6:
            st = tt_run(s, .feeds = &value, .n_feeds = 1, .targets = NULL, .n_targets = 1);
            break;
        case 7:
            batch.fields[1] = NULL;
            st = tt_train_step(fx.model, &batch, NULL);
            break;
        case 8:
            st = tt_predict(fx.model, NULL, 4, out);
            break;
        case 9:
            st = tt_predict(fx.model, x, 4, NULL);
            break;
        case 10:
            st = tt_compile(fx.model, .loss = TT_CUSTOM_LOSS);
            break;
        case 11:
            st = tt_fit(fx.model, fx.data, .callbacks = {tt_callback(TT_AT_STEP, 1, NULL, NULL)});
            break;
        case 12:
            st = tt_model_input(fx.model, 0, NULL);
            break;
        default:
            st = tt_model_output(fx.model, 7, &port);
        }
        ck_assert_msg(st != TT_OK && tt_status_of(fx.ctx) == st, "case %d: %s, %s", i,
                      tt_status_name(st), tt_status_name(tt_status_of(fx.ctx)));
        CHECK(strlen(tt_last_error(fx.ctx).message) > 8);
        tt_store_release(fx.store);
        CHECK(tt_close(fx.ctx) == st);
    }
}
