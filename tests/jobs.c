/*
 * jobs.c - reads and builds the jobs of tests (jobs.h).
 */
#include "jobs.h"

const char job_small[] = "data:\n"
                         "  train: {digits: {count: 64}}\n"
                         "  validate: {digits: {count: 16, seed: 3}}\n"
                         "  test: {digits: 16}\n"
                         "model:\n"
                         "  - conv2d: {filters: 4, kernel: 3, act: relu}\n"
                         "  - max_pool2d: 2\n"
                         "  - flatten\n"
                         "  - dense: 10\n"
                         "train:\n"
                         "  epochs: 1\n"
                         "  batch: 16\n"
                         "  loss: cross_entropy\n"
                         "  optimizer: {adam: {lr: 1e-3}}\n"
                         "  metrics: [accuracy]\n";

tt_job *job_parse(tt_ctx *ctx, const char *yaml)
{
    return tt_job_parse(ctx, yaml, strlen(yaml), "j.yaml");
}

job_built job_build_read(tt_ctx *reader, tt_job *j)
{
    job_built b = {.reader = reader, .job = j};
    ck_assert_msg(j != NULL, "%s", tt_last_error(reader).message);
    tt_open_opts o = *tt_job_open_opts(j);
    o.on_event = test_ignore_event;
    b.ctx = tt_open_with(&o);
    b.status = tt_job_build(j, b.ctx, &b.parts);
    return b;
}

job_built job_build(const char *yaml)
{
    test_need_yaml();
    tt_ctx *reader = test_ctx();
    tt_job *j = job_parse(reader, yaml);
    ck_assert_msg(j != NULL, "%s\n%s", tt_last_error(reader).message, yaml);
    return job_build_read(reader, j);
}

void job_close(job_built *b)
{
    if (b->status != TT_OK)
        tt_clear_error(b->ctx);
    CHECK_OK(tt_close(b->ctx));
    CHECK_OK(tt_close(b->reader));
}

job_built job_build_ok(const char *yaml)
{
    job_built b = job_build(yaml);
    ck_assert_msg(b.status == TT_OK, "%s\n%s", tt_last_error(b.ctx).message, yaml);
    return b;
}

void job_build_fails(const char *yaml, const char *message)
{
    job_built b = job_build(yaml);
    ck_assert_msg(b.status != TT_OK, "no error '%s' from\n%s", message, yaml);
    CHECK_STR(tt_last_error(b.ctx).message, message);
    job_close(&b);
}
