/*
 * own_op.c - a user's op with a kernel of its own on GPUs: plans leave it alone, since the kernel
 * that joins pointwise ops knows only those of the library.
 */
#include "op/op.h"
#include "test.h"
#include <string.h>

static tt_status never(const tt_launch *l)
{
    return TT_FAIL(l->ctx, TT_EINVAL, "only planned");
}

static const tt_op own = {
    .name = "own",
    .help = "pointwise, of a user",
    .inputs = 1,
    .flags = TT_OP_POINTWISE | TT_OP_ROW_FREE | TT_OP_NO_GRAD,
    .infer = tti_infer_same_float,
    .split = tti_split_pointwise,
    .kernel = {[TT_CUDA] = {.fn = {never}}},
};

// Whether the plan of two of them, or of two exps, has a joined node.
static bool is_joined(bool of_user)
{
    tt_ctx *ctx = tt_open(.devices = "gpu:0", .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    CHECK_OK(tt_op_register(ctx, &own));
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 64), .name = "x");
    for (int i = 0; i < 2; i++)
        x = of_user ? tt_node_out(g, &own, 1, &x, NULL) : tt_exp(g, x);
    tt_session *s = tt_session_new(g);
    char *text = tt_plan_print(s, .targets = &x, .n_targets = 1, .rows = 4);
    ck_assert_msg(text != NULL, "%s", tt_last_error(ctx).message);
    bool joined = strstr(text, of_user ? "own+own" : "exp+exp") != NULL;
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
    return joined;
}

TEST(gpu_plans_do_not_join_ops_with_kernels_of_their_own)
{
    test_need_gpu();
    CHECK(is_joined(false));
    CHECK(!is_joined(true));
}
