/*
 * matrix.c - the matrix of same bits, a test for each group of ways: every model ends with the
 * weights, the loss and the metric of one device. tutti bench same-bits prints the same records.
 */
#include "cli/matrix.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

static void describe(const matrix_model *model, const matrix_way *way, char out[256])
{
    char options[128];
    matrix_options(way, options);
    snprintf(out, 256, "%s with %s, %s on %d, %s", model->name, model->optimizer,
             matrix_strategy(way), way->devices, options);
}

/*
 * A sanitizer makes steps some fifty times as long: there each way takes two of the models in turn.
 * TEST_MATRIX=all takes all of them, which is many minutes.
 */
static bool is_taken(int model, int way)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    const char *all = getenv("TEST_MATRIX");
    return (model + way) % 5 == 0 || (all != NULL && strcmp(all, "all") == 0);
#else
    (void)model, (void)way;
    return true;
#endif
}

// All ways of the group that the model has; the number of them.
static int check_model(const matrix_model *model, matrix_group group, char *wrong, size_t room)
{
    matrix_result want[MATRIX_MAX_LANES + 1], got;
    bool has[MATRIX_MAX_LANES + 1] = {false};
    int n = 0;
    for (int i = 0; i < matrix_n_ways(); i++) {
        const matrix_way *way = &matrix_ways[i];
        char name[256];
        if (way->group != group || !matrix_has(model, way) ||
            !is_taken((int)(model - matrix_models), i))
            continue;
        if (!has[way->lanes]) {
            matrix_way one = matrix_reference(way->lanes);
            matrix_run(model, &one, NULL, &want[way->lanes]);
            ck_assert_msg(want[way->lanes].status == TT_OK, "%s on one device: %s", model->name,
                          want[way->lanes].message);
            has[way->lanes] = true;
        }
        n++;
        matrix_run(model, way, NULL, &got);
        if (matrix_same(&got, &want[way->lanes]))
            continue;
        describe(model, way, name);
        size_t used = strlen(wrong);
        if (got.status != TT_OK)
            snprintf(wrong + used, room - used, "\n  %s: %s", name, got.message);
        else
            snprintf(wrong + used, room - used, "\n  %s: loss %a, on one device %a", name, got.loss,
                     want[way->lanes].loss);
    }
    return n;
}

static void check_group(matrix_group group)
{
    static char wrong[3000]; // Check takes no more than 4096
    int n = 0;
    for (int i = 0; i < matrix_n_models(); i++)
        n += check_model(&matrix_models[i], group, wrong, sizeof(wrong));
    CHECK(n > 0);
    ck_assert_msg(wrong[0] == '\0', "of %d combinations these differ:%s", n, wrong);
}

// Of each model, on this machine as on any other; an arithmetic that changes says so.
TEST(matrix_hashes_are_the_recorded_ones)
{
    matrix_way one = matrix_reference(0);
    matrix_result got;
    CHECK_INT(TT_ARITHMETIC, 2);
    for (int i = 0; i < matrix_n_models(); i++) {
        matrix_run(&matrix_models[i], &one, NULL, &got);
        ck_assert_msg(matrix_is_golden(&matrix_models[i], &got), "%s with %s has other weights %s",
                      matrix_models[i].name, matrix_models[i].optimizer, got.message);
    }
}

TEST(matrix_single)
{
    check_group(MATRIX_SINGLE);
}

TEST(matrix_mirrored)
{
    check_group(MATRIX_MIRRORED);
}

TEST(matrix_central)
{
    check_group(MATRIX_CENTRAL);
}

TEST(matrix_pins)
{
    check_group(MATRIX_PINS);
}

TEST(matrix_replicas_of_pins)
{
    check_group(MATRIX_REPLICAS);
}

TEST(matrix_pipeline)
{
    check_group(MATRIX_PIPELINE);
}

TEST(matrix_interleaved)
{
    check_group(MATRIX_INTERLEAVED);
}

TEST(matrix_replicas_of_pipelines)
{
    check_group(MATRIX_PIPELINES);
}

TEST(matrix_accumulate)
{
    check_group(MATRIX_ACCUMULATE);
}

TEST(matrix_recompute)
{
    check_group(MATRIX_RECOMPUTE);
}

TEST(matrix_lanes_1)
{
    check_group(MATRIX_LANES_1);
}

TEST(matrix_lanes_4)
{
    check_group(MATRIX_LANES_4);
}

TEST(matrix_lanes_16)
{
    check_group(MATRIX_LANES_16);
}

// Where the batch goes through in parts, its statistics are never there: told so, with what helps.
TEST(matrix_batch_norm_over_the_batch_is_refused_in_parts)
{
    static const matrix_way ways[] = {
        {.strategy = "single", .devices = 1, .accumulate = 2},
        {.strategy = "mirrored", .devices = 2, .accumulate = 4},
        {.strategy = "pipeline", .devices = 2},
        {.strategy = "pipeline", .devices = 4, .spread = {.replicas = 2}},
    };
    const matrix_model *model = matrix_models;
    while (!model->is_joined)
        model++;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        matrix_result got;
        char name[256];
        describe(model, &ways[i], name);
        matrix_run(model, &ways[i], NULL, &got);
        ck_assert_msg(got.status != TT_OK && strstr(got.message, "over: lane") != NULL,
                      "%s is not refused: '%s'", name, got.message);
    }
}
