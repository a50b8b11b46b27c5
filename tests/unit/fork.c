/*
 * fork.c - a context after fork(): its threads are the parent's, and the child is told so instead
 * of waiting for them.
 */
#include "../test.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct job {
    tt_ctx *ctx;
    tt_model *model;
    tt_data *data;
} job;

static job open_job(void)
{
    job j = {.ctx = tt_open(.devices = "cpu:0*2", .threads = 2, .strategy = "mirrored",
                            .on_event = test_ignore_event)};
    j.data = tt_digits(j.ctx, .count = 64, .batch = 16);
    j.model = tt_sequential(j.ctx, .input = {28, 28, 1});
    tt_layer_flatten(j.model);
    tt_layer_dense(j.model, .units = 10);
    tt_compile(j.model, .loss = TT_CROSS_ENTROPY, .optimizer = tt_adam());
    return j;
}

// What a child exits with says how far it came.
static int in_child(job *j)
{
    float x[28 * 28] = {0}, y[10];
    alarm(20); // instead of waiting for ever
    if (tt_fit(j->model, j->data) != TT_EINVAL)
        return 1;
    if (strstr(tt_last_error(j->ctx).message, "fork") == NULL)
        return 2;
    tt_clear_error(j->ctx); // does not bring the threads back
    if (tt_predict(j->model, x, 1, y) != TT_EINVAL)
        return 3;
    tt_clear_error(j->ctx);
    if (tt_sequential(j->ctx, .input = {4}) != NULL)
        return 4;
    tt_data_free(j->data);
    if (tt_close(j->ctx) != TT_EINVAL)
        return 5;
    job own = open_job(); // one of its own works
    if (tt_fit(own.model, own.data) != TT_OK)
        return 6;
    return tt_close(own.ctx) == TT_OK ? 42 : 7;
}

TEST(a_context_says_that_it_was_forked)
{
    job j = open_job();
    CHECK_OK(tt_fit(j.model, j.data));
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(in_child(&j));
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 42, "the child ended with %#x",
                      (unsigned)status);
    }
    CHECK_OK(tt_fit(j.model, j.data)); // the parent goes on
    CHECK_OK(tt_close(j.ctx));
}
