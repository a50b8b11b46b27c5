/*
 * model.h - small training graphs for tests of planning, running and failing.
 */
#ifndef TUTTI_TEST_MODEL_H
#define TUTTI_TEST_MODEL_H

#include "test.h"

#define MODEL_SIDE    8 // of the image
#define MODEL_IN      (MODEL_SIDE * MODEL_SIDE)
#define MODEL_CLASSES 5
#define MODEL_MAX     16

/*
 * Two branches over one batch of images, a dense one and a convolution, joined by a dense layer;
 * cross entropy, gradients by every weight, one update each. Branches and join are pinned to the
 * devices named, NULL: nowhere.
 */
typedef struct test_model {
    tt_graph *g;
    tt_tensor *x, *labels, *loss;
    tt_tensor *weights[MODEL_MAX], *grads[MODEL_MAX], *updates[MODEL_MAX];
    int n;
} test_model;

// False (the context says why) if anything could not be built.
bool test_model_build(test_model *m, tt_ctx *ctx, const char *dense, const char *conv,
                      const char *join);

/*
 * One training step on rows rows, made from the step's number; the loss, NaN on failure. The step's
 * data is made on the stack: nothing here allocates. At most 64 rows.
 */
double test_model_step(const test_model *m, tt_session *s, int64_t step, int64_t rows);

/*
 * Eight convolutions of one size on images of 28 by 28, so activations are most of its memory; a
 * dense layer at the end. The convolutions lie on so many devices of the replica in turn, 0: not
 * pinned.
 */
tt_model *test_deep_model(tt_ctx *ctx, int filters, int pins);

#endif
