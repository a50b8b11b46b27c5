/*
 * checkpoint.c - makes checkpoints for tests and looks whether one is whole.
 */
#include "checkpoint.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[TEST_TENSORS] = {"dense.bias",        "dense.weight",        "ids",
                                                "dense.bias/adam_m", "dense.weight/adam_m", "zz"};

// Element i of tensor k: distinct in the low bits, so that mixed-up pieces show.
static float value(int64_t step, int k, int64_t i)
{
    return (float)(step * 1024 + k * 64 + i % 61);
}

void test_snapshot_make(tti_snapshot *s, int64_t step, int64_t scale)
{
    memset(s, 0, sizeof(*s));
    s->state = (tti_train_state){.step = step,
                                 .cursor = step * 256 + 3,
                                 .count = 1000,
                                 .lanes = 8,
                                 .batch = 256,
                                 .accumulate = 2,
                                 .seed = UINT64_MAX - (uint64_t)step,
                                 .arithmetic = TT_ARITHMETIC,
                                 .lr_factor = 0.1 * (double)step,
                                 .early = {true, 1.0 / 3, 2},
                                 .plateau = {false, 0, 0},
                                 .best = {true, -INFINITY, 0},
                                 .skipped = 1,
                                 .n_sums = 5,
                                 .sums = {0.1, -0.0, NAN, 1e300, 5e-324}};
    if (step % 2 != 0) // of a CPU, or of GPUs
        strcpy(s->state.gpu, "a \"GPU\", CUDA 13.0");
    s->state.job = strdup("name: x\n# \"quoted\"\ttab \xc3\xa9\n");
    s->n = TEST_TENSORS;
    s->n_weights = 3;
    s->tensors = calloc(TEST_TENSORS, sizeof(*s->tensors));
    for (int k = 0; k < TEST_TENSORS; k++) {
        int64_t n = k == 5 ? 0 : scale * (k + 1);
        float *data = malloc(sizeof(float) * (size_t)(n + 1));
        for (int64_t i = 0; i < n; i++)
            data[i] = value(step, k, i);
        s->tensors[k] = (tti_named){.name = names[k],
                                    .dtype = k == 2 ? TT_I32 : TT_F32,
                                    .shape = {2, {n, 1}},
                                    .data = data,
                                    .bytes = sizeof(float) * (size_t)n};
    }
}

void test_snapshot_free(tti_snapshot *s)
{
    for (int64_t k = 0; k < s->n; k++)
        free((void *)s->tensors[k].data);
    free(s->tensors);
    free(s->state.job);
}

static bool same_double(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof(a)) == 0;
}

static void check_state(const tti_train_state *a, const tti_train_state *b)
{
    CHECK_INT(a->step, b->step);
    CHECK_INT(a->cursor, b->cursor);
    CHECK_INT(a->count, b->count);
    CHECK_INT(a->lanes, b->lanes);
    CHECK_INT(a->batch, b->batch);
    CHECK_INT(a->accumulate, b->accumulate);
    CHECK(a->seed == b->seed);
    CHECK_INT(a->arithmetic, b->arithmetic);
    CHECK_STR(a->gpu, b->gpu);
    CHECK(same_double(a->lr_factor, b->lr_factor));
    CHECK(a->early.has_best && same_double(a->early.best, b->early.best) && a->early.bad == 2);
    CHECK(!a->plateau.has_best && a->plateau.bad == 0);
    CHECK(a->best.has_best && same_double(a->best.best, b->best.best));
    CHECK_INT(a->skipped, b->skipped);
    CHECK_INT(a->n_sums, b->n_sums);
    for (int i = 0; i < a->n_sums; i++)
        CHECK(same_double(a->sums[i], b->sums[i]));
    CHECK_STR(a->job, b->job);
}

void test_snapshot_check(const tti_snapshot *s, int64_t scale)
{
    static tti_snapshot want;
    test_snapshot_make(&want, s->state.step, scale);
    check_state(&s->state, &want.state);
    CHECK_INT(s->n, want.n);
    CHECK_INT(s->n_weights, want.n_weights);
    for (int k = 0; k < TEST_TENSORS; k++) {
        const tti_named *a = &s->tensors[k], *b = NULL;
        for (int j = 0; j < TEST_TENSORS; j++)
            if (strcmp(want.tensors[j].name, a->name) == 0)
                b = &want.tensors[j];
        CHECK(b != NULL && a->dtype == b->dtype && a->bytes == b->bytes);
        CHECK(memcmp(&a->shape, &b->shape, sizeof(a->shape)) == 0);
        CHECK(memcmp(a->data, b->data, a->bytes) == 0);
    }
    test_snapshot_free(&want);
}
