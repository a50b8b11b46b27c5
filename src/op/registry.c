/*
 * registry.c - all ops by name: the library's list (ops.def), then those a user registered.
 */
#include "base/ctx.h"
#include "op/op.h"

#define X(name) extern const tt_op tti_op_##name;
#include "op/ops.def"
#undef X

static const void *const all[] = {
#define X(name) &tti_op_##name,
#include "op/ops.def"
#undef X
};
static const tti_records ops = {"op", "a name and a shape rule", all, TTI_COUNT(all)};

const tt_op *tt_op_at(const tt_ctx *ctx, int i)
{
    return tti_registry_at(&ops, ctx != NULL ? &ctx->user_ops : NULL, i);
}

const tt_op *tt_op_find(const tt_ctx *ctx, const char *name)
{
    return tti_registry_find(&ops, ctx != NULL ? &ctx->user_ops : NULL, name);
}

tt_status tt_op_register(tt_ctx *ctx, const tt_op *op)
{
    return tti_registry_add(ctx, &ops, ctx != NULL ? &ctx->user_ops : NULL, op,
                            op != NULL && op->infer != NULL);
}
