/*
 * text.c - a graph as text, one line per node in order of creation. parse.c reads it.
 *
 *   tutti graph 1
 *   # a comment
 *   %x = feed {shape=[b, 784]}
 *   %w = variable {shape=[784, 10], init=glorot_uniform}
 *   %c = const {shape=[3]} data [1, 0.5, -2]
 *   %hidden/y = matmul(%x, %w) {act=relu} @/device:CPU:0 colocate(0) : f32[b, 10]
 *   %z = add(%hidden/y, %"odd name":1) : f32[b, 10]
 *   after %z: %p, %q
 *
 * Attributes that have their default are left out. ":1" is output 1 of a node. What follows the
 * last colon are the types of the outputs, which the parser infers again and compares; sources
 * (feed, const, variable) have them as attributes. Constants are "data [...]" when short,
 * "data all 0.5" when every element has the same bits, else "data base64 ...". Names with other
 * characters than letters, digits and "_./-" are quoted. The placement function is not written.
 */
#include "graph/text.h"
#include <string.h>

bool tti_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_./-", c) != NULL);
}

// With backslashes before quotes and backslashes, and \xHH for what is no printable ASCII.
static void put_quoted(tti_text *t, const char *s)
{
    tti_text_put(t, "\"", 1);
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            tti_text_add(t, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            tti_text_add(t, "\\x%02x", c);
        else
            tti_text_put(t, s, 1);
    }
    tti_text_put(t, "\"", 1);
}

static bool is_bare(const char *s, const char *more)
{
    const char *c = s;
    while (tti_is_name_char(*c) || (*c != '\0' && strchr(more, *c) != NULL))
        c++;
    return c > s && *c == '\0';
}

static void put_word(tti_text *t, const char *s)
{
    if (is_bare(s, ""))
        tti_text_put(t, s, strlen(s));
    else
        put_quoted(t, s);
}

static void put_name(tti_text *t, const tt_node *n)
{
    tti_text_put(t, "%", 1);
    put_word(t, n->name);
}

static void put_inputs(tti_text *t, const tt_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        tti_text_add(t, "%s", i == 0 ? "(" : ", ");
        put_name(t, n->in[i]->node);
        if (n->in[i]->index > 0)
            tti_text_add(t, ":%d", n->in[i]->index);
    }
    if (n->n_in > 0)
        tti_text_put(t, ")", 1);
}

static void put_attrs(tti_text *t, const tt_node *n)
{
    bool any = false;
    for (const tt_option *row = n->op->attrs; row != NULL && row->type != TT_OPT_END; row++) {
        if (n->attr == NULL || tti_option_is_default(row, n->attr))
            continue;
        tti_text_add(t, "%s%s=", any ? ", " : " {", row->name);
        any = true;
        if (row->type == TT_OPT_STRING)
            put_quoted(t, (const char *)n->attr + row->offset);
        else
            tti_option_print(t, row, n->attr);
    }
    if (any)
        tti_text_put(t, "}", 1);
}

// True when every element has the bits of the first.
static bool is_uniform(const tt_node *n, size_t bytes)
{
    const char *data = n->data;
    return n->data_bytes > bytes && memcmp(data, data + bytes, n->data_bytes - bytes) == 0;
}

static bool put_list(tti_text *t, const tt_node *n, int64_t count)
{
    char number[TTI_TEXT_LIST][TTI_NUMBER_TEXT];
    for (int64_t i = 0; i < count; i++)
        if (!tti_element_print(n->out->dtype, n->data, i, number[i]))
            return false;
    tti_text_put(t, " data [", 7);
    for (int64_t i = 0; i < count; i++)
        tti_text_add(t, "%s%s", i > 0 ? ", " : "", number[i]);
    tti_text_put(t, "]", 1);
    return true;
}

static void put_data(tti_text *t, const tt_node *n)
{
    size_t bytes = tt_dtype_bytes(n->out->dtype);
    int64_t count = (int64_t)(n->data_bytes / bytes);
    char number[TTI_NUMBER_TEXT];
    if (count <= TTI_TEXT_LIST && put_list(t, n, count))
        return;
    if (is_uniform(n, bytes) && tti_element_print(n->out->dtype, n->data, 0, number)) {
        tti_text_add(t, " data all %s", number);
        return;
    }
    tti_text_put(t, " data base64 ", 13);
    tti_base64_print(t, n->data, n->data_bytes);
}

// groups[c] is the number under which colocation group c was first printed, plus one.
static void put_place(tti_text *t, const tt_node *n, int *groups, int *n_groups)
{
    if (n->has_pin) {
        char device[TT_DEVICE_NAME_MAX];
        tt_device_print(&n->pin, device);
        tti_text_put(t, " @", 2);
        if (is_bare(device, ":"))
            tti_text_put(t, device, strlen(device));
        else
            put_quoted(t, device);
    }
    if (n->colocation >= 0) {
        if (groups[n->colocation] == 0)
            groups[n->colocation] = ++*n_groups;
        tti_text_add(t, " colocate(%d)", groups[n->colocation] - 1);
    }
}

static void put_types(tti_text *t, const tt_node *n)
{
    char shape[TT_SHAPE_TEXT];
    for (int i = 0; i < n->n_out; i++)
        tti_text_add(t, "%s%s%s", i == 0 ? " : " : ", ", tt_dtype_name(n->outs[i]->dtype),
                     tt_shape_text(&n->outs[i]->shape, shape));
}

char *tt_graph_print(tt_graph *g)
{
    if (g == NULL || tti_is_stuck(g->ctx))
        return NULL;
    int *groups = tti_calloc(g->ctx, (size_t)g->n_colocations + 1, sizeof(*groups));
    if (groups == NULL)
        return NULL;

    tti_text t = {.ctx = g->ctx};
    int n_groups = 0;
    tti_text_add(&t, "%s\n", TTI_TEXT_MAGIC);
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const tt_node *n = g->nodes[i];
        put_name(&t, n);
        tti_text_put(&t, " = ", 3);
        put_word(&t, n->op->name);
        put_inputs(&t, n);
        put_attrs(&t, n);
        if (n->op == &tti_op_const)
            put_data(&t, n);
        put_place(&t, n, groups, &n_groups);
        if ((n->op->flags & TT_OP_SOURCE) == 0)
            put_types(&t, n);
        tti_text_put(&t, "\n", 1);
    }
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const tt_node *n = g->nodes[i];
        for (int k = 0; k < n->n_after; k++) {
            tti_text_put(&t, k == 0 ? "after " : ", ", k == 0 ? 6 : 2);
            if (k == 0) {
                put_name(&t, n);
                tti_text_put(&t, ": ", 2);
            }
            put_name(&t, n->after[k]);
        }
        if (n->n_after > 0)
            tti_text_put(&t, "\n", 1);
    }
    tti_free(g->ctx, groups);
    return tti_text_take(&t);
}

void tt_string_free(tt_ctx *ctx, char *s)
{
    tti_free(ctx, s);
}
