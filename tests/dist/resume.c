/*
 * resume.c - a fit that is stopped under one strategy and goes on under another ends with the
 * weights of one that never stopped.
 */
#include "cli/matrix.h"
#include "test.h"
#include <stdio.h>

#define ROWS    36
#define RECORDS (3 * ROWS + 13)

static tt_status end_at(void *user, tt_model *m, const tt_progress *p)
{
    if (p->step == *(int64_t *)user)
        tt_request_end(tt_graph_get_ctx(tt_model_get_graph(m)));
    return TT_OK;
}

// Two epochs of four steps; stop_at is the last step, 0: to the end.
static tt_hash fit(const matrix_model *model, const matrix_way *way, const char *folder,
                   int64_t stop_at)
{
    tt_ctx *ctx = matrix_open(way);
    tt_model *m = matrix_build(ctx, model, way);
    int64_t parts = way->accumulate > 1 ? way->accumulate : 1;
    tt_hash h = {0, 0};
    tt_status st = tt_fit(m, matrix_data(ctx, model, RECORDS), .epochs = 2, .batch = ROWS / parts,
                          .accumulate = parts, .checkpoints = folder, .resume = folder != NULL,
                          .validate = matrix_data(ctx, model, 11),
                          .callbacks = {tt_callback(TT_AT_STEP, 1, end_at, &stop_at)});
    ck_assert_msg(st == (stop_at > 0 ? TT_ESTOP : TT_OK), "%s, %s on %d: %s", model->name,
                  matrix_strategy(way), way->devices, tt_last_error(ctx).message);
    tt_clear_error(ctx);
    CHECK_OK(tt_model_hash(m, &h));
    CHECK_OK(tt_close(ctx));
    return h;
}

typedef struct pair {
    int64_t stop_at;
    matrix_way from, to;
} pair;

#define SINGLE(...)                       \
    {                                     \
        .strategy = "single", __VA_ARGS__ \
    }
#define MIRRORED(...)                       \
    {                                       \
        .strategy = "mirrored", __VA_ARGS__ \
    }
#define CENTRAL(...)                       \
    {                                      \
        .strategy = "central", __VA_ARGS__ \
    }
#define PIPELINE(...)                       \
    {                                       \
        .strategy = "pipeline", __VA_ARGS__ \
    }
#define SHARD .spread = {.update = TT_UPDATE_SHARD}

static void check_pairs(const pair *pairs, int n)
{
    for (int k = 0; k < matrix_n_models(); k++) {
        const matrix_model *model = &matrix_models[k];
        matrix_way one = matrix_reference(0);
        tt_hash want = fit(model, &one, NULL, 0);
        for (int i = 0; i < n; i++) {
            const pair *p = &pairs[i];
            char folder[512];
            if ((k + i) % 2 == 0 || !matrix_has(model, &p->from) || !matrix_has(model, &p->to))
                continue; // each pair with half of the models
            snprintf(folder, sizeof(folder), "%s/%d-%d", test_folder(), k, i);
            (void)fit(model, &p->from, folder, p->stop_at);
            tt_hash got = fit(model, &p->to, folder, 0);
            ck_assert_msg(got.low == want.low && got.high == want.high,
                          "%s: from %s on %d to %s on %d after step %d: other weights", model->name,
                          matrix_strategy(&p->from), p->from.devices, matrix_strategy(&p->to),
                          p->to.devices, (int)p->stop_at);
        }
    }
}
#define CHECK_PAIRS(pairs) check_pairs((pairs), (int)(sizeof(pairs) / sizeof((pairs)[0])))

TEST(resumed_on_other_devices)
{
    static const pair pairs[] = {
        {3, SINGLE(.devices = 1), MIRRORED(.devices = 3)},
        {5, MIRRORED(.devices = 8), SINGLE(.devices = 1)},
        {2, MIRRORED(.devices = 2), MIRRORED(.devices = 3, SHARD)},
        {4, MIRRORED(.devices = 3, SHARD), SINGLE(.devices = 2, .pins = 2)},
        {1, SINGLE(.devices = 1, .accumulate = 4), MIRRORED(.devices = 2, .accumulate = 2)},
    };
    CHECK_PAIRS(pairs);
}

TEST(resumed_with_central_variables)
{
    static const pair pairs[] = {
        {3, CENTRAL(.devices = 3), MIRRORED(.devices = 2)},
        {5, MIRRORED(.devices = 4, SHARD), CENTRAL(.devices = 2)},
    };
    CHECK_PAIRS(pairs);
}

TEST(resumed_as_pipeline)
{
    static const pair pairs[] = {
        {3, PIPELINE(.devices = 2), MIRRORED(.devices = 3)},
        {5, MIRRORED(.devices = 2), PIPELINE(.devices = 3)},
        {2, PIPELINE(.devices = 2, .spread = {.schedule = TT_PIPE_GPIPE}),
         PIPELINE(.devices = 4, .spread = {.replicas = 2})},
        {6, CENTRAL(.devices = 2), PIPELINE(.devices = 2)},
    };
    CHECK_PAIRS(pairs);
}

TEST(resumed_as_replicas_of_split)
{
    static const pair pairs[] = {
        {3, MIRRORED(.devices = 4, .pins = 2, .is_local = true), PIPELINE(.devices = 2)},
        {5, SINGLE(.devices = 2, .pins = 2),
         MIRRORED(.devices = 4, .pins = 2, .is_local = true, SHARD)},
        {4, MIRRORED(.devices = 4, .pins = 2, .is_local = true), SINGLE(.devices = 1)},
    };
    CHECK_PAIRS(pairs);
}
