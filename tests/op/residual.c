/*
 * residual.c - the node alone does nothing, and takes only what it can.
 */
#include "op/residual.h"
#include "op_test.h"

OP_TESTED(residual, "residual")

TEST_BOTH(residual_alone_leaves_its_variable)
{
    tt_ctx *ctx = test_ctx();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *grad = tt_fill(g, TT_F32, TT_SHAPE(3), 2.5);
    tt_tensor *kept = tti_residual(g, grad, 2, "kept");
    CHECK(kept != NULL);
    CHECK_INT(kept->shape.dim[0], 2);
    CHECK_INT(kept->shape.dim[1], 1024);
    tt_session *s = tt_session_new(g);
    CHECK_OK(tt_run(s, .targets = &kept, .n_targets = 1));
    float values[2048];
    CHECK_OK(tt_get_variable(s, kept->node->in[0], values, sizeof(values)));
    for (int i = 0; i < 2048; i++)
        CHECK(values[i] == 0);
    tt_tensor *in[2] = {grad, grad};
    CHECK(tt_node_out(g, &tti_op_residual, 2, in, NULL) == NULL);
    CHECK_MESSAGE(ctx, "is not a variable");
    CHECK(tt_close(ctx) == TT_EINVAL);
}
