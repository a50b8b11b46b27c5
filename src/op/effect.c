/*
 * effect.c - nodes that do something beside their value: print and assert. Both pass x on, copied,
 * so that what is computed from it comes after the effect. Kernels: effect_cpu.c.
 */
#include "op/effect.h"
#include "graph/graph.h"
#include "op/op.h"
#include <stdio.h>
#include <string.h>

TT_CPU_DECLARE(tti_print);
TT_CPU_DECLARE(tti_assert);

static const tt_option effect_attrs[] = {
    {"text", TT_OPT_STRING, "", "label or message", offsetof(tti_effect_attr, text), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_status assert_infer(tt_infer *q)
{
    if (q->in[1]->dtype != TT_BOOL)
        return TT_FAIL(q->ctx, TT_EDTYPE, "assert: the condition is %s, not bool",
                       tt_dtype_name(q->in[1]->dtype));
    return tti_infer_same(q);
}

static void pass_gradient(tt_graph *g, const tt_node *n, tt_tensor *const *dy, tt_tensor **dx)
{
    (void)g;
    (void)n;
    dx[0] = dy[0];
}

static tt_status split_pass(const tt_split_query *q)
{
    q->out[0] = (tt_split){q->axis[0] < 0 ? TT_SPLIT_WHOLE : TT_SPLIT_AXIS, q->axis[0]};
    return TT_OK;
}

#define EFFECT(op, n, infer_, help_)                            \
    const tt_op tti_op_##op = {                                 \
        .name = #op,                                            \
        .help = help_,                                          \
        .inputs = n,                                            \
        .flags = TT_OP_EFFECT | TT_OP_BITS,                     \
        .types = TT_TYPES_ALL,                                  \
        TTI_ATTRS(effect_attrs, tti_effect_attr),               \
        .infer = infer_,                                        \
        .split = split_pass,                                    \
        .grad = pass_gradient,                                  \
        .kernel = {[TT_CPU] = TTI_CPU(tti_##op, tti_prep_one)}, \
    }
EFFECT(print, 1, tti_infer_same, "reports the value when it is computed, and returns it");
EFFECT(assert, 2, assert_infer,
       "fails the run unless every element of the condition is true; returns x");

static tti_effect_attr attr_of(const char *text)
{
    tti_effect_attr a;
    memset(&a, 0, sizeof(a));
    snprintf(a.text, sizeof(a.text), "%s", text == NULL ? "" : text);
    return a;
}

tt_tensor *tt_print(tt_graph *g, tt_tensor *x, const char *label)
{
    tti_effect_attr a = attr_of(label);
    return tt_node_out(g, &tti_op_print, 1, (tt_tensor *[]){x}, &a);
}

tt_tensor *tt_assert(tt_graph *g, tt_tensor *x, tt_tensor *cond, const char *message)
{
    tti_effect_attr a = attr_of(message);
    return tt_node_out(g, &tti_op_assert, 2, (tt_tensor *[]){x, cond}, &a);
}

#define SHOWN 8 // elements that a print shows

tt_status tti_effect_print(const tt_launch *l)
{
    const tti_effect_attr *a = l->attr;
    const tt_arg *x = &l->in[0];
    char shape[TT_SHAPE_TEXT];
    tti_text t = {.ctx = l->ctx};
    tti_text_add(&t, "%s%s%s %s %s:", a->text, a->text[0] != 0 ? " " : "",
                 l->node->in[0]->node->name, tt_dtype_name(x->dtype),
                 tt_shape_text(&x->shape, shape));
    for (int64_t i = 0; i < x->count && i < SHOWN; i++)
        tti_text_add(&t, " %.9g", tti_get_number(x->dtype, x->data, i));
    if (x->count > SHOWN)
        tti_text_add(&t, " ...");
    char *text = tti_text_take(&t);
    if (text == NULL)
        return TT_ENOMEM;
    tt_event ev = {.kind = "print", .level = TT_INFO, .text = text};
    tti_emit(l->ctx, &ev);
    tti_free(l->ctx, text);
    return TT_OK;
}

tt_status tti_effect_assert(const tt_launch *l)
{
    const tti_effect_attr *a = l->attr;
    const uint8_t *cond = l->in[1].data;
    for (int64_t i = 0; i < l->in[1].count; i++)
        if (cond[i] == 0)
            return TT_FAIL(l->ctx, TT_EASSERT, "assert '%s': %s (element %lld of '%s' is false)",
                           l->node->name, a->text, (long long)i, l->node->in[1]->node->name);
    return TT_OK;
}
