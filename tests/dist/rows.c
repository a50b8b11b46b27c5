/*
 * rows.c - few rows, odd numbers of them, none at all: every strategy does with them what one
 * device does, in training, evaluation and prediction.
 */
#include "cli/matrix.h"
#include "test.h"
#include <stdio.h>

static const matrix_model *model_named(const char *name, const char *optimizer)
{
    for (int i = 0; i < matrix_n_models(); i++)
        if (strcmp(matrix_models[i].name, name) == 0 &&
            strcmp(matrix_models[i].optimizer, optimizer) == 0)
            return &matrix_models[i];
    return NULL;
}

static void name_of(const matrix_way *way, char out[200])
{
    char options[128];
    matrix_options(way, options);
    snprintf(out, 200, "%s on %d%s%s", matrix_strategy(way), way->devices,
             options[0] == '\0' ? "" : ", ", options);
}

// ---- training --------------------------------------------------------------------------------

typedef struct outcome {
    tt_hash weights;
    double loss, metric, validation_loss, validation;
    int64_t rows;
} outcome;

// Two epochs of so many rows, batch at a time, measured on one row more.
static outcome train(const matrix_model *model, const matrix_way *way, int64_t rows, int64_t batch)
{
    char name[200];
    tt_fit_report r = {0};
    name_of(way, name);
    tt_ctx *ctx = matrix_open(way);
    tt_model *m = matrix_build(ctx, model, way);
    tt_data *train = matrix_data(ctx, model, rows), *more = matrix_data(ctx, model, rows + 1);
    tt_status st = tt_fit(m, train, .epochs = 2, .batch = batch, .validate = more);
    ck_assert_msg(st == TT_OK, "%s, %d rows: %s", name, (int)rows, tt_last_error(ctx).message);
    CHECK_OK(tt_fit_report_get(m, &r));
    // Compared as bytes: nothing may stand between the fields.
    outcome o;
    memset(&o, 0, sizeof(o));
    o.weights = r.weights;
    o.loss = r.last->loss;
    o.metric = r.last->metrics[0];
    o.validation_loss = r.last->validation_loss;
    o.validation = r.last->validation[0];
    o.rows = r.last->rows;
    CHECK_OK(tt_close(ctx));
    return o;
}

static void check_rows(const matrix_way *ways, int n)
{
    const matrix_model *models[] = {model_named("mlp", "sgd"), model_named("gpt", "adam")};
    matrix_way one = matrix_reference(0);
    for (int k = 0; k < 2; k++)
        for (int64_t rows = 1; rows <= 17; rows++) {
            outcome want = train(models[k], &one, rows, rows);
            CHECK_INT(want.rows, rows);
            for (int i = 0; i < n; i++) {
                outcome got = train(models[k], &ways[i], rows, rows);
                char name[200];
                name_of(&ways[i], name);
                ck_assert_msg(memcmp(&got, &want, sizeof(got)) == 0,
                              "%s, %d rows, %s: loss %a, validation %a; on one device %a and %a",
                              models[k]->name, (int)rows, name, got.loss, got.validation_loss,
                              want.loss, want.validation_loss);
            }
        }
}

#define ON(s, n)                        \
    {                                   \
        .strategy = (s), .devices = (n) \
    }
#define UP_TO_4(s) ON(s, 1), ON(s, 2), ON(s, 3), ON(s, 4)

TEST(one_to_17_rows_mirrored)
{
    static const matrix_way ways[] = {UP_TO_4("mirrored")};
    check_rows(ways, 4);
}

TEST(one_to_17_rows_central)
{
    static const matrix_way ways[] = {UP_TO_4("central")};
    check_rows(ways, 4);
}

TEST(one_to_17_rows_pipeline)
{
    static const matrix_way ways[] = {UP_TO_4("pipeline")};
    check_rows(ways, 4);
}

TEST(one_to_17_rows_replicas_of_parts)
{
    static const matrix_way ways[] = {
        {.strategy = "mirrored", .devices = 4, .pins = 2, .is_local = true},
        {.strategy = "pipeline", .devices = 4, .spread = {.replicas = 2}},
        {.strategy = "mirrored", .devices = 3, .spread = {.update = TT_UPDATE_SHARD}},
    };
    check_rows(ways, 3);
}

// Plans for seven rows and for one put a layer on different devices; its moments go along.
TEST(short_last_batches_where_a_device_has_several_stages)
{
    static const matrix_way ways[] = {
        {.strategy = "pipeline", .devices = 3, .spread = {.schedule = TT_PIPE_INTERLEAVED}},
        {.strategy = "pipeline",
         .devices = 2,
         .spread = {.schedule = TT_PIPE_INTERLEAVED, .chunks = 3}},
    };
    const matrix_model *model = model_named("mlp", "adam");
    matrix_way one = matrix_reference(0);
    for (int64_t rows = 7; rows <= 13; rows += 6) {
        outcome want = train(model, &one, rows, rows - 1);
        for (int i = 0; i < 2; i++) {
            outcome got = train(model, &ways[i], rows, rows - 1);
            ck_assert_msg(memcmp(&got, &want, sizeof(got)) == 0, "%d rows: loss %a, not %a",
                          (int)rows, got.loss, want.loss);
        }
    }
}

// The loss of a validation follows the rows of an update, not the parts they come in.
TEST(validation_of_parts_has_the_bits_of_the_whole)
{
    static const matrix_way ways[] = {
        {.strategy = "single", .devices = 1},
        {.strategy = "single", .devices = 1, .accumulate = 4},
        {.strategy = "mirrored", .devices = 3, .accumulate = 2},
        {.strategy = "pipeline", .devices = 2, .accumulate = 4},
    };
    double want = 0;
    for (int i = 0; i < 4; i++) {
        const matrix_model *model = model_named("gpt", "sgd");
        int parts = i == 0 ? 1 : ways[i].accumulate;
        tt_ctx *ctx = matrix_open(&ways[i]);
        tt_model *m = matrix_build(ctx, model, &ways[i]);
        tt_fit_report r = {0};
        tt_status st = tt_fit(m, matrix_data(ctx, model, 20), .batch = 20 / parts,
                              .accumulate = parts, .validate = matrix_data(ctx, model, 53));
        ck_assert_msg(st == TT_OK, "%s", tt_last_error(ctx).message);
        CHECK_OK(tt_fit_report_get(m, &r));
        want = i == 0 ? r.last->validation_loss : want;
        ck_assert_msg(r.last->validation_loss == want, "way %d: validation loss %a, not %a", i,
                      r.last->validation_loss, want);
        CHECK_OK(tt_close(ctx));
    }
}

// ---- evaluation and prediction ---------------------------------------------------------------

static const matrix_way spreads[] = {
    UP_TO_4("mirrored"),
    UP_TO_4("central"),
    UP_TO_4("pipeline"),
    {.strategy = "pipeline", .devices = 2, .spread = {.schedule = TT_PIPE_GPIPE, .micro = 3}},
    {.strategy = "pipeline", .devices = 2, .spread = {.schedule = TT_PIPE_INTERLEAVED}},
    {.strategy = "pipeline", .devices = 4, .spread = {.replicas = 2}},
    {.strategy = "single", .devices = 2, .pins = 2},
    {.strategy = "mirrored", .devices = 4, .pins = 2, .is_local = true},
};
#define N_SPREADS ((int)(sizeof(spreads) / sizeof(spreads[0])))

static const int64_t counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17, 31, 37};
#define N_COUNTS ((int)(sizeof(counts) / sizeof(counts[0])))
#define MOST     37
#define CLASSES  10

typedef struct answers {
    float y[N_COUNTS][2][MOST * CLASSES]; // by number of records; all at once, and five at a time
    tt_evaluation e[N_COUNTS];
} answers;

static void ask(const matrix_way *way, const float *x, answers *out)
{
    const matrix_model *model = model_named("cnn", "adam");
    char name[200];
    name_of(way, name);
    memset(out, 0, sizeof(*out));
    tt_ctx *ctx = matrix_open(way);
    tt_model *m = matrix_build(ctx, model, way);
    tt_status st = tt_fit(m, matrix_data(ctx, model, 13), .batch = 13);
    for (int k = 0; st == TT_OK && k < N_COUNTS; k++) {
        st = tt_predict(m, x, counts[k], out->y[k][0]);
        if (st == TT_OK)
            st = tt_predict(m, x, counts[k], out->y[k][1], .batch = 5);
        if (st == TT_OK && counts[k] > 0)
            st = tt_evaluate(m, matrix_data(ctx, model, counts[k]), &out->e[k], .batch = 5);
        ck_assert_msg(st != TT_OK || out->e[k].rows == counts[k], "%s: %d of %d rows evaluated",
                      name, (int)out->e[k].rows, (int)counts[k]);
    }
    ck_assert_msg(st == TT_OK, "%s: %s", name, tt_last_error(ctx).message);
    CHECK_OK(tt_close(ctx));
}

TEST(predictions_and_evaluations_have_the_bits_of_one_device)
{
    static float x[MOST * 28 * 28];
    static answers want, got;
    matrix_way one = matrix_reference(0);
    test_fill(x, MOST * 28 * 28, 3, 0, 1);
    ask(&one, x, &want);
    // In the order of the input: the rows of few records begin those of many.
    for (int k = 0; k < N_COUNTS; k++)
        for (int b = 0; b < 2; b++)
            CHECK(memcmp(want.y[k][b], want.y[N_COUNTS - 1][0],
                         (size_t)(counts[k] * CLASSES) * sizeof(float)) == 0);
    for (int i = 0; i < N_SPREADS; i++) {
        char name[200];
        name_of(&spreads[i], name);
        ask(&spreads[i], x, &got);
        ck_assert_msg(memcmp(want.y, got.y, sizeof(want.y)) == 0, "%s predicts otherwise", name);
        for (int k = 0; k < N_COUNTS; k++)
            ck_assert_msg(got.e[k].loss == want.e[k].loss &&
                              got.e[k].metrics[0] == want.e[k].metrics[0],
                          "%s: loss of %d records %a, on one device %a", name, (int)counts[k],
                          got.e[k].loss, want.e[k].loss);
    }
}
