/*
 * pointwise_program.cu - programs of pointwise.h from ops: which operation an op's name and types
 * mean, and how its operands are read.
 */
#include "cuda/kernel.cuh"
#include "op/gpu/pointwise.h"
#include "op/unary.h"
#include "op/walk.h"

// ---- operations by name ----------------------------------------------------------------------

static const struct {
    const char *name;
    uint8_t op;
    bool is_float; // its operands are
} rows[] = {
#define ROW(name, value) {#name, TTI_PW_F_##name, true},
    TTI_PW_FLOAT_1(ROW) TTI_PW_FLOAT_2(ROW) TTI_PW_COMPARE(ROW)
#undef ROW
#define ROW(name, value) {#name, TTI_PW_I_##name, false},
        TTI_PW_INT_1(ROW) TTI_PW_INT_2(ROW) TTI_PW_COMPARE(ROW)
#undef ROW
};

static bool is_float(int t)
{
    return t == TT_F32 || t == TT_BF16 || t == TT_F16;
}

static int cast_op(int from, int to)
{
    if (to == TT_BOOL && from != TT_BOOL)
        return is_float(from) ? TTI_PW_F_to_bool : TTI_PW_I_to_bool;
    if (to == TT_U8 && (from == TT_I32 || from == TT_I64))
        return TTI_PW_I_to_u8;
    if (to == TT_I32 && from == TT_I64)
        return TTI_PW_I_to_i32;
    if (is_float(from) == is_float(to))
        return TTI_PW_keep;
    return is_float(from) ? TTI_PW_F_to_I : TTI_PW_I_to_F;
}

// -1: there is none.
static int find_op(const char *name, int from, int to)
{
    if (from == TT_F64 || to == TT_F64)
        return -1;
    if (strcmp(name, "where") == 0)
        return TTI_PW_where;
    if (strcmp(name, "cast") == 0)
        return cast_op(from, to);
    if (strcmp(name, "broadcast") == 0)
        return TTI_PW_keep;
    if (from == TT_BOOL && strcmp(name, "add") == 0)
        return TTI_PW_I_logical_or;
    if (from == TT_BOOL && strcmp(name, "mul") == 0)
        return TTI_PW_I_logical_and;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_float == is_float(from) && strcmp(rows[i].name, name) == 0)
            return rows[i].op;
    return -1;
}

// ---- programs --------------------------------------------------------------------------------

tt_status tti_pw_input_add(const tt_launch *l, tti_pw_program *p, const tt_arg *x, uint8_t *src)
{
    tti_pw_input in = {};
    in.data = x->data;
    in.type = (uint8_t)x->dtype;
    in.bytes = (uint8_t)tti_pw_bytes(x->dtype);
    in.mode = x->count == l->out[0].count ? TTI_PW_FLAT : x->count == 1 ? TTI_PW_ONE : TTI_PW_WALK;
    for (int k = 0; k < p->n_in && in.mode != TTI_PW_WALK; k++)
        if (p->in[k].data == in.data && p->in[k].type == in.type && p->in[k].mode == in.mode) {
            *src = (uint8_t)k;
            return TT_OK;
        }
    if (p->n_in == TTI_PW_IN)
        return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "'%s': more than %d inputs in one kernel",
                       l->node->name, TTI_PW_IN);
    *src = p->n_in;
    p->in[p->n_in++] = in;
    return TT_OK;
}

tt_status tti_pw_step_add(const tt_launch *l, tti_pw_program *p, const tt_node *node, tt_dtype from,
                          tt_dtype to, int n_in, const uint8_t *src)
{
    int op = find_op(node->op->name, from, to), taken = 0, waits = 0;
    if (op < 0)
        return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "%s '%s': no kernel on GPUs for these types",
                       node->op->name, node->name);
    for (int k = 0; k < n_in; k++)
        taken += src[k] >= TTI_PW_STACK;
    for (int s = 0; s < p->n_steps; s++)
        waits += p->steps[s].grows;
    waits += 1 - taken;
    if (p->n_steps == TTI_PW_STEPS || waits > TTI_PW_DEPTH)
        return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "'%s': too many ops in one kernel", l->node->name);
    tti_pw_step *s = &p->steps[p->n_steps++];
    s->op = (uint8_t)op;
    s->type = (uint8_t)to;
    s->n_in = (uint8_t)n_in;
    s->grows = (int8_t)(1 - taken);
    memcpy(s->src, src, (size_t)n_in);
    if (node->op->attr_size == sizeof(tti_unary_attr)) {
        const tti_unary_attr *t = (const tti_unary_attr *)node->attr;
        s->a = (float)t->a;
        s->b = (float)t->b;
    }
    p->depth = waits > p->depth ? (uint8_t)waits : p->depth;
    return TT_OK;
}

// n < 2^31 is divided by d as (n factor / 2^32 + n) / 2^shift.
static void set_divisor(tti_pw_axis *a)
{
    if (a->dim > INT32_MAX || a->dim < 1)
        return;
    while (((int64_t)1 << a->shift) < a->dim)
        a->shift++;
    uint64_t rest = ((uint64_t)1 << a->shift) - (uint64_t)a->dim;
    a->factor = (uint32_t)((rest << 32) / (uint64_t)a->dim + 1);
}

static void set_walk(const tt_launch *l, tti_pw_program *p, int n_in, const uint8_t *src)
{
    tti_walk w;
    tti_walk_make(&w, &l->out[0], l->in, n_in);
    p->rank = (uint8_t)w.rank;
    for (int a = 0; a < w.rank; a++) {
        p->axis[a].dim = w.dim[a];
        for (int k = 0; k < n_in; k++)
            p->axis[a].stride[k] = w.stride[k][a];
        set_divisor(&p->axis[a]);
    }
    for (int k = 0; k < n_in; k++) {
        p->in[src[k]].walk = (uint8_t)k;
        p->in[src[k]].steps = w.stride[k][0] != 0;
    }
}

tt_status tti_pw_alone(const tt_launch *l)
{
    tti_pw_program p;
    memset(&p, 0, sizeof(p));
    bool is_broadcast = strcmp(l->node->op->name, "broadcast") == 0;
    int n_in = is_broadcast ? 1 : l->n_in;
    uint8_t src[TTI_PW_WALKS];
    tt_dtype from = l->in[n_in == 3 ? 1 : 0].dtype, to = l->out[0].dtype;
    if (l->out[0].count == 0)
        return TT_OK;
    for (int k = 0; k < n_in; k++)
        TT_TRY(tti_pw_input_add(l, &p, &l->in[k], &src[k]));
    set_walk(l, &p, n_in, src);
    TT_TRY(tti_pw_step_add(l, &p, l->node, from, to, n_in, src));
    if (is_broadcast && tti_pw_bytes(to) == 2) // moved as they are
        p.in[0].type = p.steps[0].type = TTI_PW_BITS16;
    return tti_pw_run(l, &p);
}

tt_status tti_pw_prepare(tt_prep *p)
{
    for (int k = 0; k < p->n_in; k++)
        if (p->in[k].dtype == TT_F64)
            return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "%s '%s': input %d is f64, not for GPUs",
                           p->node->op->name, p->node->name, k);
    p->n_phases = 1;
    p->units[0] = 1;
    return TT_OK;
}
