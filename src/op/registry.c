/*
 * registry.c - all ops by name: the library's list (ops.def), then those a user registered.
 */
#include "base/ctx.h"
#include "op/op.h"
#include <string.h>

#define X(name) extern const tt_op tti_op_##name;
#include "op/ops.def"
#undef X

static const tt_op *const ops[] = {
#define X(name) &tti_op_##name,
#include "op/ops.def"
#undef X
};

const tt_op *tt_op_at(const tt_ctx *ctx, int i)
{
    if (i >= 0 && i < TTI_COUNT(ops))
        return ops[i];
    i -= TTI_COUNT(ops);
    return ctx != NULL && i >= 0 && i < ctx->n_user_ops ? ctx->user_ops[i] : NULL;
}

const tt_op *tt_op_find(const tt_ctx *ctx, const char *name)
{
    const tt_op *op;
    for (int i = 0; name != NULL && (op = tt_op_at(ctx, i)) != NULL; i++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

tt_status tt_op_register(tt_ctx *ctx, const tt_op *op)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (op == NULL || op->name == NULL || op->infer == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "op: the record needs a name and a shape rule");
    if (tt_op_find(ctx, op->name) != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "op '%s' is already registered", op->name);
    if (!tti_grow(ctx, &ctx->user_ops, &ctx->cap_user_ops, ctx->n_user_ops + 1,
                  sizeof(*ctx->user_ops)))
        return TT_ENOMEM;
    ctx->user_ops[ctx->n_user_ops++] = op;
    return TT_OK;
}
