/*
 * tensor.c - shapes and tensors: what they are, how they are named and printed.
 */
#include "graph/graph.h"
#include <stdio.h>
#include <string.h>

int tt_open_axis(const tt_shape *shape)
{
    for (int i = 0; shape != NULL && i < shape->rank; i++)
        if (shape->dim[i] < 0)
            return i;
    return -1;
}

int64_t tt_shape_count(const tt_shape *shape)
{
    int64_t n = shape == NULL ? 0 : 1;
    for (int i = 0; shape != NULL && i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

const char *tt_shape_text(const tt_shape *shape, char buf[TT_SHAPE_TEXT])
{
    if (shape == NULL || buf == NULL)
        return "";
    int at = snprintf(buf, TT_SHAPE_TEXT, "[");
    for (int i = 0; i < shape->rank && at < TT_SHAPE_TEXT - 24; i++) {
        const char *comma = i == 0 ? "" : ", ";
        long long d = shape->dim[i];
        if (d >= 0)
            at += snprintf(buf + at, (size_t)(TT_SHAPE_TEXT - at), "%s%lld", comma, d);
        else if (d == -1)
            at += snprintf(buf + at, (size_t)(TT_SHAPE_TEXT - at), "%sb", comma);
        else
            at += snprintf(buf + at, (size_t)(TT_SHAPE_TEXT - at), "%s%lldb", comma, -d);
    }
    snprintf(buf + at, (size_t)(TT_SHAPE_TEXT - at), "]");
    return buf;
}

tt_status tti_shape_check(tt_ctx *ctx, const char *what, const tt_shape *s, bool open_ok)
{
    if (s->rank < 0 || s->rank > TT_MAX_RANK)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: rank %d is not between 0 and %d", what, s->rank,
                       TT_MAX_RANK);
    char text[TT_SHAPE_TEXT];
    int64_t n = 1;
    int open = 0;
    for (int i = 0; i < s->rank; i++) {
        int64_t d = s->dim[i] < 0 ? -s->dim[i] : s->dim[i];
        open += s->dim[i] < 0;
        if (s->dim[i] < -((int64_t)1 << 40) || !tti_mul_i64(n, TTI_MAX(d, 1), &n) ||
            n > (int64_t)1 << 46)
            return TT_FAIL(ctx, TT_ESHAPE, "%s: %s is too large", what, tt_shape_text(s, text));
    }
    if (open > (open_ok ? 1 : 0))
        return TT_FAIL(ctx, TT_ESHAPE, "%s: %s has %s open dimension", what, tt_shape_text(s, text),
                       open_ok ? "more than one" : "an");
    return TT_OK;
}

tt_shape tt_tensor_shape(const tt_tensor *t)
{
    return t == NULL ? TT_SCALAR : t->shape;
}

tt_dtype tt_tensor_dtype(const tt_tensor *t)
{
    return t == NULL ? TT_F32 : t->dtype;
}

const char *tt_tensor_name(const tt_tensor *t)
{
    return t == NULL ? "" : t->node->name;
}

tt_node *tt_tensor_get_node(const tt_tensor *t)
{
    return t == NULL ? NULL : t->node;
}

tt_tensor *tt_graph_find(const tt_graph *g, const char *name)
{
    if (g == NULL || name == NULL)
        return NULL;
    char base[TTI_NAME_MAX];
    const char *colon = strrchr(name, ':');
    int index = 0;
    if (colon == NULL || sscanf(colon + 1, "%d", &index) != 1)
        return tti_node_find(g, name) == NULL ? NULL : tti_node_find(g, name)->out;
    if ((size_t)(colon - name) >= sizeof(base))
        return NULL;
    memcpy(base, name, (size_t)(colon - name));
    base[colon - name] = 0;
    tt_node *n = tti_node_find(g, base);
    return n == NULL || index < 0 || index >= n->n_out ? NULL : n->outs[index];
}
