/*
 * fused.cu - TTI_KERNEL_FUSED: several pointwise nodes as one program of op/pointwise.h.
 * CPU form: fuse.c.
 *
 * Members form a tree: a result inside is used once. Of a member's operands the one that needs most
 * room is computed first, so that few results wait.
 */
#include "cuda/kernel.cuh"
#include "op/gpu/pointwise.h"
#include "plan/program.h"

typedef struct build {
    const tt_launch *l;
    const tti_fused *f;
    tti_pw_program p;
    int room[TTI_FUSE_MAX]; // results waiting at once while a member is computed
} build;

// The members that m uses, the one that needs most room first; returns how many.
static int used_by(const build *b, int m, int *list)
{
    const tti_fused_member *mb = &b->f->members[m];
    int n = 0;
    for (int k = 0; k < mb->n_in; k++) {
        if (mb->in[k] < TTI_FUSE_OF)
            continue;
        int used = mb->in[k] - TTI_FUSE_OF, i = n++;
        for (; i > 0 && b->room[list[i - 1]] < b->room[used]; i--)
            list[i] = list[i - 1];
        list[i] = used;
    }
    return n;
}

static tt_status add_step(build *b, int m, const int *list, int n)
{
    const tti_fused_member *mb = &b->f->members[m];
    tt_dtype from = TT_F32;
    uint8_t src[TTI_FUSE_IN];
    bool taken[TTI_FUSE_IN] = {};
    for (int k = 0; k < mb->n_in; k++) {
        bool is_inside = mb->in[k] >= TTI_FUSE_OF;
        int inside = mb->in[k] - TTI_FUSE_OF, at = 0;
        const tt_arg *x = is_inside ? &b->f->members[inside].out : &b->l->in[mb->in[k]];
        if (k == (mb->n_in == 3))
            from = x->dtype;
        while (is_inside && (list[at] != inside || taken[at]))
            at++;
        taken[at] |= is_inside;
        src[k] = (uint8_t)(TTI_PW_STACK + n - 1 - at);
        if (!is_inside)
            TT_TRY(tti_pw_input_add(b->l, &b->p, x, &src[k]));
    }
    return tti_pw_step_add(b->l, &b->p, mb->node, from, mb->out.dtype, mb->n_in, src);
}

static tt_status add_member(build *b, int m)
{
    int list[TTI_FUSE_IN], n = used_by(b, m, list);
    for (int i = 0; i < n; i++)
        TT_TRY(add_member(b, list[i]));
    return add_step(b, m, list, n);
}

static tt_status fused(const tt_launch *l)
{
    build b;
    memset(&b, 0, sizeof(b));
    b.l = l;
    b.f = (const tti_fused *)l->tune;
    int last = 0;
    if (l->out[0].count == 0)
        return TT_OK;
    for (int m = 0; m < b.f->n; m++) { // operands are members before
        int list[TTI_FUSE_IN], n = used_by(&b, m, list);
        b.room[m] = 1;
        for (int i = 0; i < n; i++)
            b.room[m] = b.room[list[i]] + i > b.room[m] ? b.room[list[i]] + i : b.room[m];
        if (b.f->members[m].n_in > 3)
            return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "%s '%s': not for joined nodes on GPUs",
                           b.f->members[m].node->op->name, b.f->members[m].node->name);
        if (b.f->members[m].is_last)
            last = m;
    }
    TT_TRY(add_member(&b, last));
    return tti_pw_run(l, &b.p);
}

extern "C" const tti_cuda_row tti_cuda_fused[] = {
    TTI_ROW_FORM(TTI_KERNEL_FUSED, fused),
    TTI_ROWS_END,
};
