/*
 * pipeline.c - pipelines of every schedule, also where the last batch has fewer rows than lanes:
 * the same weights as one device.
 */
#include "../jobs.h"
#include <stdio.h>

static tt_hash train(int count, const char *distribute)
{
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
    job_built b = job_build_ok(yaml);
    tt_hash h = {0};
    if (tt_fit_with(b.parts.model, b.parts.train, b.parts.fit) == TT_OK)
        (void)tt_model_hash(b.parts.model, &h);
    ck_assert_msg(tt_status_of(b.ctx) == TT_OK, "%s: %s", distribute, tt_last_error(b.ctx).message);
    job_close(&b);
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
