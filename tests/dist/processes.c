/*
 * processes.c - the matrix of same bits over real processes: what one device computes comes out of
 * two, three and four processes too, with shared memory and with letters. tutti bench same-bits
 * --processes runs all of it; here each way has one number of processes and each model a part of
 * the ways.
 */
#include "cli/matrix.h"
#include "test.h"
#include <stdio.h>
#include <string.h>

static bool is_possible(void)
{
    return strstr(tt_version_text(), "zeromq: yes") != NULL;
}

// Of every group of ways those that the models take in turn, with 2, 3 or 4 processes in turn.
static void check_group(const char *transport, int first, int last)
{
    static char wrong[3000]; // Check takes no more than 4096
    int n = 0;
    if (!is_possible())
        test_skip("this build has no ZeroMQ");
    for (int i = 0; i < matrix_n_ways(); i++) {
        const matrix_way *way = &matrix_ways[i];
        const matrix_model *model = &matrix_models[i % matrix_n_models()];
        int tasks = 2 + (i / 2) % 3;
        if ((int)way->group < first || (int)way->group > last || way->devices < 2 ||
            !matrix_has(model, way))
            continue;
        tasks = tasks > way->devices ? way->devices : tasks;
        matrix_way one = matrix_reference(way->lanes);
        matrix_result want, got;
        matrix_run(model, &one, NULL, &want);
        matrix_run_job(model, way, tasks, transport, &got);
        n++;
        if (matrix_same(&got, &want))
            continue;
        char options[128];
        size_t used = strlen(wrong);
        matrix_options(way, options);
        snprintf(wrong + used, sizeof(wrong) - used,
                 "\n  %s with %s, way %d: %s on %d of %d, %s: %s", model->name, model->optimizer,
                 i + 1, matrix_strategy(way), way->devices, tasks, options,
                 got.status == TT_OK ? "other bits" : got.message);
    }
    CHECK(n > 0);
    ck_assert_msg(wrong[0] == '\0', "of %d combinations these differ:%s", n, wrong);
}

// The ways of some groups as two tests: with shared memory and with letters.
#define TEST_GROUPS(name, first, last)    \
    TEST(name##_shm)                      \
    {                                     \
        check_group("shm", first, last);  \
    }                                     \
    TEST(name##_wire)                     \
    {                                     \
        check_group("wire", first, last); \
    }

TEST_GROUPS(processes_mirrored_and_central, MATRIX_MIRRORED, MATRIX_CENTRAL)
TEST_GROUPS(processes_pins, MATRIX_PINS, MATRIX_REPLICAS)
TEST_GROUPS(processes_pipelines, MATRIX_PIPELINE, MATRIX_PIPELINES)
TEST_GROUPS(processes_others, MATRIX_ACCUMULATE, MATRIX_LANES_16)
