/*
 * matrix.c - the matrix of same bits on parts of a GPU: every model ends with the weights, the loss
 * and the metric of gpu:0, whatever the strategy. tutti bench same-bits --devices gpu:0 prints all
 * ways; the emulation takes some of them.
 */
#include "cli/matrix.h"
#include "test.h"
#include <stdio.h>

#define DEVICE "gpu:0"

// The emulation is slow: the smallest model in every second way, two others in one.
static bool is_taken(const matrix_way *way, int model, int number)
{
    if (way->isa != NULL || way->threads > 0)
        return false; // a GPU has neither
    if (!test_gpu_is_emulated())
        return true;
    if (way->devices > 4)
        return false;
    return model == 0 ? number % 2 == 0 : number == 5 && (model == 8 || model == 10);
}

static void check_group(matrix_group group)
{
    static char wrong[3000];
    int n = 0;
    test_need_gpu();
    for (int k = 0; k < matrix_n_models(); k++) {
        const matrix_model *model = &matrix_models[k];
        matrix_result want[MATRIX_MAX_LANES + 1], got;
        bool has[MATRIX_MAX_LANES + 1] = {false};
        for (int i = 0; i < matrix_n_ways(); i++) {
            matrix_way way = matrix_ways[i];
            if (way.group != group || !matrix_has(model, &way) || !is_taken(&way, k, i))
                continue;
            way.device = DEVICE;
            if (!has[way.lanes]) {
                matrix_way one = matrix_reference(way.lanes);
                one.device = DEVICE;
                matrix_run(model, &one, NULL, &want[way.lanes]);
                ck_assert_msg(want[way.lanes].status == TT_OK, "%s.%s on one device: %s",
                              model->name, model->optimizer, want[way.lanes].message);
                has[way.lanes] = true;
            }
            n++;
            matrix_run(model, &way, NULL, &got);
            if (matrix_same(&got, &want[way.lanes]))
                continue;
            char options[128];
            matrix_options(&way, options);
            size_t used = strlen(wrong);
            snprintf(wrong + used, sizeof(wrong) - used, "\n  %s.%s, %s on %d, %s: %s", model->name,
                     model->optimizer, matrix_strategy(&way), way.devices, options,
                     got.status == TT_OK ? "other weights" : got.message);
        }
    }
    CHECK(n > 0);
    ck_assert_msg(wrong[0] == '\0', "of %d combinations these differ:%s", n, wrong);
}

TEST(gpu_matrix_single)
{
    check_group(MATRIX_SINGLE);
}

TEST(gpu_matrix_mirrored)
{
    check_group(MATRIX_MIRRORED);
}

TEST(gpu_matrix_central)
{
    check_group(MATRIX_CENTRAL);
}

TEST(gpu_matrix_pins)
{
    check_group(MATRIX_PINS);
}

TEST(gpu_matrix_replicas_of_pins)
{
    check_group(MATRIX_REPLICAS);
}

TEST(gpu_matrix_pipeline)
{
    check_group(MATRIX_PIPELINE);
}

TEST(gpu_matrix_interleaved)
{
    check_group(MATRIX_INTERLEAVED);
}

TEST(gpu_matrix_replicas_of_pipelines)
{
    check_group(MATRIX_PIPELINES);
}

TEST(gpu_matrix_accumulate)
{
    check_group(MATRIX_ACCUMULATE);
}

TEST(gpu_matrix_recompute)
{
    check_group(MATRIX_RECOMPUTE);
}

TEST(gpu_matrix_lanes_1)
{
    check_group(MATRIX_LANES_1);
}

TEST(gpu_matrix_lanes_4)
{
    check_group(MATRIX_LANES_4);
}

// The GPU's weights are near the CPU's after four steps, the loss too.
TEST(gpu_matrix_is_near_the_cpu)
{
    test_need_gpu();
    for (int k = 0; k < matrix_n_models(); k++) {
        const matrix_model *model = &matrix_models[k];
        matrix_way cpu = matrix_reference(0), gpu = cpu;
        matrix_result want, got;
        if (strcmp(model->name, "mlp") == 0)
            continue; // has a sum that vanishes, to 0 or -0, and divides by it
        if (test_gpu_is_emulated() && k != 6)
            continue;
        gpu.device = DEVICE;
        matrix_run(model, &cpu, NULL, &want);
        matrix_run(model, &gpu, NULL, &got);
        double tol = model->precision == TT_PRECISION_F32 ? 1e-3 : 3e-2;
        ck_assert_msg(got.status == TT_OK, "%s.%s: %s", model->name, model->optimizer, got.message);
        ck_assert_msg(got.loss > want.loss * (1 - tol) && got.loss < want.loss * (1 + tol),
                      "%s.%s: loss %.9g, on the CPU %.9g", model->name, model->optimizer, got.loss,
                      want.loss);
    }
}
