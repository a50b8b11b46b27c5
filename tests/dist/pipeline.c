/*
 * pipeline.c - pipelines of every schedule, also where the last batch has fewer rows than lanes:
 * the same weights as one device.
 */
#include "../test.h"
#include <stdio.h>
#include <tutti/job.h>

static tt_hash train(int count, const char *distribute)
{
#ifndef TUTTI_HAVE_YAML
    test_skip("this build has no libyaml");
#endif
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "data: {train: {digits: {count: %d}}}\n"
             "model:\n"
             "  - flatten\n"
             "  - dense: {units: 33, act: relu}\n"
             "  - dense: {units: 21, act: relu}\n"
             "  - dropout: 0.1\n"
             "  - dense: {units: 17, act: relu}\n"
             "  - dense: 10\n"
             "train: {epochs: 2, batch: 16, loss: cross_entropy, optimizer: adam}\n"
             "distribute: {%s}\n",
             count, distribute);
    tt_ctx *reader = test_ctx();
    tt_job *j = tt_job_parse(reader, yaml, strlen(yaml), "j.yaml");
    ck_assert_msg(j != NULL, "%s", tt_last_error(reader).message);
    tt_open_opts o = tt_job_open_opts(j);
    o.on_event = test_ignore_event;
    tt_ctx *ctx = tt_open_with(&o);
    tt_job_parts parts;
    tt_hash h = {0};
    if (tt_job_build(j, ctx, &parts) == TT_OK &&
        tt_fit_with(parts.model, parts.train, &parts.fit) == TT_OK)
        (void)tt_model_hash(parts.model, &h);
    ck_assert_msg(tt_status_of(ctx) == TT_OK, "%s: %s", distribute, tt_last_error(ctx).message);
    CHECK_OK(tt_close(ctx));
    CHECK_OK(tt_close(reader));
    return h;
}

static void check_all(int count, const char *const *cases)
{
    tt_hash one = train(count, "");
    for (; *cases != NULL; cases++) {
        tt_hash h = train(count, *cases);
        ck_assert_msg(h.low == one.low && h.high == one.high, "%d rows, %s", count, *cases);
    }
}

static const char *const all_cases[] = {
    "strategy: pipeline, devices: 'cpu:0*2'",
    "strategy: pipeline, devices: 'cpu:0*3', schedule: gpipe",
    "strategy: pipeline, devices: 'cpu:0*2', schedule: interleaved",
    "strategy: pipeline, devices: 'cpu:0*3', schedule: interleaved, chunks: 1",
    "strategy: pipeline, devices: 'cpu:0*2', micro: 3",
    "strategy: pipeline, devices: 'cpu:0*2', schedule: interleaved, micro: 3",
    "strategy: pipeline, devices: 'cpu:0*4', stages: 2, share: [3, 1]",
    "strategy: pipeline, devices: 'cpu:0*4', replicas: 2, schedule: interleaved",
    NULL};

TEST(pipelines_change_no_bit)
{
    check_all(32, all_cases);
}

// Batches of 16 and of 1, 3, 5 rows: so many lanes of the last have a row.
TEST(pipelines_take_short_batches)
{
    check_all(17, all_cases);
    check_all(19, all_cases);
    check_all(21, all_cases);
}
