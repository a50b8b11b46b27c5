/*
 * parse.c - reads the text form of a graph (text.c shows it). One pass, no recursion; the input is
 * any bytes of known length. Every size is bounded before memory is asked for, and every node goes
 * through the same door as a builder's, so a text can make nothing that calls could not.
 *
 * Control edges may lead to later nodes, so they are kept aside and checked for cycles at the end.
 */
#include "base/ctx.h"
#include "graph/lex.h"
#include "graph/text.h"
#include <stdio.h>
#include <string.h>

typedef struct edge {
    tt_node *node, *after;
    int line;
} edge;

typedef struct parser {
    tt_ctx *ctx;
    tt_graph *g;
    tti_lex lex;
    char where[64]; // in front of messages of what is called

    // Of the node being read.
    char name[TTI_NAME_MAX];
    tt_tensor **in;
    int64_t n_in, cap_in;
    void *attr;
    int64_t cap_attr;
    char *data;

    tti_data_room data_room;
    edge *edges;
    int64_t n_edges, cap_edges;
} parser;

static bool name(parser *p, char out[TTI_NAME_MAX])
{
    tti_lex_skip(&p->lex);
    if (!tti_lex_is(&p->lex, '%'))
        return tti_lex_fail(&p->lex, p->lex.at, "a name beginning with '%%' expected");
    return tti_lex_word(&p->lex, "", out, TTI_NAME_MAX, "a name");
}

static tt_node *known_node(parser *p)
{
    char text[TTI_NAME_MAX];
    tti_lex_skip(&p->lex);
    const char *at = p->lex.at;
    if (!name(p, text))
        return NULL;
    tt_node *n = tti_node_find(p->g, text);
    if (n == NULL)
        (void)tti_lex_fail(&p->lex, at, "there is no node '%.64s' before this line", text);
    return n;
}

// ---- the parts of a node ---------------------------------------------------------------------

static const tt_op *op_word(parser *p)
{
    const char *names[1024], *near;
    char text[64];
    tti_lex_skip(&p->lex);
    const char *at = p->lex.at;
    if (!tti_lex_word(&p->lex, "", text, sizeof(text), "an op"))
        return NULL;
    const tt_op *op = tt_op_find(p->ctx, text);
    if (op != NULL)
        return op;
    int n = 0;
    for (const tt_op *o; n < TTI_COUNT(names) - 1 && (o = tt_op_at(p->ctx, n)) != NULL; n++)
        names[n] = o->name;
    names[n] = NULL;
    near = tti_nearest(text, names);
    if (near != NULL)
        (void)tti_lex_fail(&p->lex, at, "unknown op '%s'; did you mean '%s'?", text, near);
    else
        (void)tti_lex_fail(&p->lex, at, "unknown op '%s'", text);
    return NULL;
}

static bool inputs(parser *p)
{
    p->n_in = 0;
    if (!tti_lex_is(&p->lex, '(') || tti_lex_is(&p->lex, ')'))
        return true;
    do {
        tti_lex_skip(&p->lex);
        const char *at = p->lex.at;
        int index = 0;
        tt_node *n = known_node(p);
        if (n == NULL)
            return false;
        if (tti_lex_peek(&p->lex) == ':') {
            p->lex.at++;
            if (!tti_lex_number(&p->lex, INT32_MAX, &index, "the number of an output"))
                return false;
        }
        if (index >= n->n_out)
            return tti_lex_fail(&p->lex, at, "'%.64s' has no output %d, only %d", n->name, index,
                                n->n_out);
        if (p->n_in == TTI_TEXT_INPUTS)
            return tti_lex_fail(&p->lex, at, "more than %d inputs", TTI_TEXT_INPUTS);
        if (!tti_grow(p->ctx, &p->in, &p->cap_in, p->n_in + 1, sizeof(*p->in)))
            return false;
        p->in[p->n_in++] = n->outs[index];
    } while (tti_lex_is(&p->lex, ','));
    return tti_lex_expect(&p->lex, ')', "the inputs");
}

// The text of a value: quoted, in brackets, or up to a comma, a space or a brace.
static bool value_text(parser *p, char out[TTI_TEXT_VALUE])
{
    tti_lex_skip(&p->lex);
    const char *s = p->lex.at;
    size_t n = 0;
    if (tti_lex_peek(&p->lex) == '"')
        return tti_lex_quoted(&p->lex, out, TTI_TEXT_VALUE, "a value");
    bool bracket = tti_lex_peek(&p->lex) == '[';
    while (s + n < p->lex.end && s[n] != '\n' && s[n] != '\0' &&
           (bracket ? s[n] != ']' : strchr(", \t\r{}", s[n]) == NULL))
        n++;
    if (bracket && (s + n == p->lex.end || s[n] != ']'))
        return tti_lex_fail(&p->lex, s, "the bracket of a list is not closed");
    n += bracket;
    if (n == 0)
        return tti_lex_fail(&p->lex, s, "a value expected");
    if (n >= TTI_TEXT_VALUE)
        return tti_lex_fail(&p->lex, s, "a value is longer than %d characters", TTI_TEXT_VALUE - 1);
    memcpy(out, s, n);
    out[n] = '\0';
    p->lex.at = s + n;
    return true;
}

static bool unknown_attr(parser *p, const char *at, const tt_op *op, const char *text)
{
    const char *names[128], *near;
    int n = 0;
    for (; n < TTI_COUNT(names) - 1 && op->attrs != NULL && op->attrs[n].type != TT_OPT_END; n++)
        names[n] = op->attrs[n].name;
    names[n] = NULL;
    near = tti_nearest(text, names);
    if (near != NULL)
        return tti_lex_fail(&p->lex, at, "%s has no attribute '%s'; did you mean '%s'?", op->name,
                            text, near);
    return tti_lex_fail(&p->lex, at, "%s has no attribute '%s'", op->name, text);
}

// One name=value. given counts rows that were set, to refuse a second time.
static bool attr(parser *p, const tt_op *op, bool *given, int max)
{
    char text[64], value[TTI_TEXT_VALUE], why[TTI_WHY_MAX];
    tti_value v;
    tti_lex_skip(&p->lex);
    const char *at = p->lex.at;
    if (!tti_lex_word(&p->lex, "", text, sizeof(text), "an attribute"))
        return false;
    int i = 0;
    while (i < max && strcmp(op->attrs[i].name, text) != 0)
        i++;
    if (i == max)
        return unknown_attr(p, at, op, text);
    if (given[i])
        return tti_lex_fail(&p->lex, at, "attribute '%s' is given twice", text);
    given[i] = true;
    if (!tti_lex_expect(&p->lex, '=', "an attribute's name"))
        return false;
    tti_lex_skip(&p->lex);
    at = p->lex.at;
    if (!value_text(p, value))
        return false;
    if (!tti_value_parse(&op->attrs[i], value, &v, why))
        return tti_lex_fail(&p->lex, at, "%s: %s '%.64s' %s", op->name, text, value, why);
    memcpy((char *)p->attr + op->attrs[i].offset, &v, tti_value_bytes(op->attrs[i].type));
    return true;
}

static bool attrs(parser *p, const tt_op *op)
{
    bool given[128] = {false};
    int max = 0;
    while (op->attrs != NULL && max < TTI_COUNT(given) && op->attrs[max].type != TT_OPT_END)
        max++;
    if (!tti_grow(p->ctx, &p->attr, &p->cap_attr, (int64_t)op->attr_size + 1, 1))
        return false;
    memset(p->attr, 0, op->attr_size);
    if (tti_options_default(p->ctx, op->attrs, p->attr) != TT_OK)
        return false;

    tti_lex_skip(&p->lex);
    const char *at = p->lex.at;
    if (tti_lex_is(&p->lex, '{') && !tti_lex_is(&p->lex, '}')) {
        do {
            if (!attr(p, op, given, max))
                return false;
        } while (tti_lex_is(&p->lex, ','));
        if (!tti_lex_expect(&p->lex, '}', "the attributes"))
            return false;
    }
    for (int i = 0; i < max; i++)
        if (op->attrs[i].value == NULL && !given[i])
            return tti_lex_fail(&p->lex, at, "%s: attribute '%s' must be given", op->name,
                                op->attrs[i].name);
    return true;
}

// What follows the word data: fills p->data as the attributes dtype and shape say.
static bool data(parser *p)
{
    const tti_feed_attr *a = p->attr;
    tti_fail_where(p->ctx, p->where);
    tt_status st = tti_shape_check(p->ctx, "const", &a->shape, false);
    tti_fail_where(p->ctx, NULL);
    return st == TT_OK && tti_parse_data(&p->lex, a, &p->data_room, &p->data);
}

// "(number)" after colocate or stage.
static bool in_parentheses(parser *p, int max, int *out, const char *what)
{
    return tti_lex_expect(&p->lex, '(', what) && tti_lex_number(&p->lex, max, out, what) &&
           tti_lex_expect(&p->lex, ')', what);
}

static bool types(parser *p, const tt_node *n)
{
    static const tt_option shape_row = {"shape", TT_OPT_SHAPE, NULL, NULL, 0, 0, 0, NULL};
    char text[64], list[TTI_TEXT_VALUE], why[TTI_WHY_MAX], is_shape[TT_SHAPE_TEXT];
    for (int i = 0; i < n->n_out; i++) {
        tt_dtype dtype;
        tti_value v;
        if (i > 0 && !tti_lex_expect(&p->lex, ',', "a type"))
            return false;
        tti_lex_skip(&p->lex);
        const char *at = p->lex.at;
        if (!tti_lex_word(&p->lex, "", text, sizeof(text), "a type"))
            return false;
        if (tti_parse_dtype(NULL, text, &dtype) != TT_OK)
            return tti_lex_fail(&p->lex, at, "'%s' is not an element type", text);
        if (tti_lex_peek(&p->lex) != '[')
            return tti_lex_fail(&p->lex, p->lex.at, "a shape in brackets expected after the type");
        if (!value_text(p, list))
            return false;
        if (!tti_value_parse(&shape_row, list, &v, why))
            return tti_lex_fail(&p->lex, at, "'%.64s' %s", list, why);
        const tt_tensor *t = n->outs[i];
        if (dtype != t->dtype || !tti_value_equal(&shape_row, &v, &(tti_value){.shape = t->shape}))
            return tti_lex_fail(
                &p->lex, at, "output %d of '%.64s' is written as %s%.64s but is %s%s", i, n->name,
                text, list, tt_dtype_name(t->dtype), tt_shape_text(&t->shape, is_shape));
    }
    return true;
}

// ---- lines -----------------------------------------------------------------------------------

static tt_node *make_node(parser *p, const tt_op *op)
{
    const tti_feed_attr *a = p->attr;
    tt_node *n;
    tti_fail_where(p->ctx, p->where);
    if (op == &tti_op_const)
        n = tti_const_node(p->g, a->dtype, a->shape, p->data, p->name);
    else if (op == &tti_op_feed && p->n_in == 0)
        n = tt_tensor_get_node(
            tt_feed(p->g, .dtype = a->dtype, .shape = a->shape, .name = p->name));
    else
        n = tt_node_new(p->g, op, (int)p->n_in, p->in, p->attr, p->name);
    tti_fail_where(p->ctx, NULL);
    return n;
}

// "@device", "colocate(3)", in any order.
static bool places(parser *p, tt_node *n)
{
    char text[TT_DEVICE_NAME_MAX];
    for (;;) {
        if (tti_lex_is(&p->lex, '@')) {
            if (!tti_lex_word(&p->lex, ":", text, sizeof(text), "a device"))
                return false;
            tti_fail_where(p->ctx, p->where);
            tt_status st = tt_device_parse(p->ctx, text, &n->pin);
            tti_fail_where(p->ctx, NULL);
            if (st != TT_OK)
                return false;
            n->has_pin = true;
            continue;
        }
        if (tti_lex_end(&p->lex) || tti_lex_peek(&p->lex) == ':')
            return true;
        const char *at = p->lex.at;
        if (!tti_lex_word(&p->lex, "", text, sizeof(text), "'@', 'colocate' or ':'"))
            return false;
        if (strcmp(text, "colocate") == 0) {
            if (!in_parentheses(p, TTI_MAX_NODES, &n->colocation, "colocate"))
                return false;
            p->g->n_colocations = TTI_MAX(p->g->n_colocations, n->colocation + 1);
        } else if (strcmp(text, "stage") == 0) {
            return tti_lex_fail(&p->lex, at, "a stage is a pin; use @local:1 for the second");
        } else {
            return tti_lex_fail(&p->lex, at, "'@', 'colocate' or ':' expected, not '%s'", text);
        }
    }
}

static bool node_parts(parser *p)
{
    const char *at = p->lex.at;
    if (!name(p, p->name))
        return false;
    if (tti_node_find(p->g, p->name) != NULL)
        return tti_lex_fail(&p->lex, at, "there already is a node '%.64s'", p->name);
    if (!tti_lex_expect(&p->lex, '=', "the name"))
        return false;
    const tt_op *op = op_word(p);
    if (op == NULL || !inputs(p) || !attrs(p, op))
        return false;

    tti_lex_skip(&p->lex);
    bool has_data = p->lex.end - p->lex.at >= 4 && memcmp(p->lex.at, "data", 4) == 0;
    if (has_data != (op == &tti_op_const))
        return tti_lex_fail(&p->lex, p->lex.at,
                            has_data ? "only const has data" : "const needs data");
    p->lex.at += has_data ? 4 : 0;
    if (has_data && !data(p))
        return false;
    tt_node *n = make_node(p, op);
    if (n == NULL || !places(p, n))
        return false;
    return !tti_lex_is(&p->lex, ':') || types(p, n);
}

static bool node_line(parser *p)
{
    bool ok = node_parts(p);
    tti_free(p->ctx, p->data);
    p->data = NULL;
    return ok;
}

// "after %node: %first, %second"
static bool after_line(parser *p)
{
    tt_node *n = known_node(p);
    if (n == NULL || !tti_lex_expect(&p->lex, ':', "the node that waits"))
        return false;
    do {
        tt_node *first = known_node(p);
        if (first == NULL)
            return false;
        if (p->n_edges == TTI_TEXT_AFTER)
            return tti_lex_fail(&p->lex, p->lex.at, "more than %d control edges", TTI_TEXT_AFTER);
        if (!tti_grow(p->ctx, &p->edges, &p->cap_edges, p->n_edges + 1, sizeof(*p->edges)))
            return false;
        p->edges[p->n_edges++] = (edge){n, first, p->lex.line};
    } while (tti_lex_is(&p->lex, ','));
    return true;
}

static bool line(parser *p)
{
    if (tti_lex_end(&p->lex) || *p->lex.at == '#')
        return true;
    bool after = p->lex.end - p->lex.at > 6 && memcmp(p->lex.at, "after ", 6) == 0;
    p->lex.at += after ? 6 : 0;
    if (!(after ? after_line(p) : node_line(p)))
        return false;
    return tti_lex_end(&p->lex) || tti_lex_fail(&p->lex, p->lex.at, "the line should end here");
}

// ---- control edges ---------------------------------------------------------------------------

// Hangs the edges on their nodes, in the order of the text.
static bool place_edges(parser *p)
{
    for (int64_t i = 0; i < p->n_edges; i++)
        p->edges[i].node->n_after++;
    for (int64_t i = 0; i < p->n_edges; i++) {
        tt_node *n = p->edges[i].node;
        if (n->after == NULL) {
            n->after = tti_graph_alloc(p->g, sizeof(tt_node *) * (size_t)n->n_after);
            if (n->after == NULL)
                return false;
            n->n_after = 0;
        }
        n->after[n->n_after++] = p->edges[i].after;
    }
    return true;
}

static bool check_cycles(parser *p)
{
    bool forward = false; // only an edge to a later node can close a cycle
    for (int64_t i = 0; i < p->n_edges; i++)
        forward |= p->edges[i].after->id >= p->edges[i].node->id;
    if (!forward)
        return true;

    uint8_t *path = tti_calloc(p->ctx, (size_t)p->g->n_nodes, 1);
    bool found = false;
    bool ok = path != NULL && tti_find_cycle(p->g, path, &found);
    for (int64_t i = 0; ok && found && i < p->n_edges; i++) {
        const edge *e = &p->edges[i];
        if (e->after->id < e->node->id || path[e->node->id] == 0 || path[e->after->id] == 0)
            continue;
        (void)TT_FAIL(p->ctx, TT_EPARSE,
                      "graph text line %d: '%.64s' cannot run after '%.64s': that would be a cycle",
                      e->line, e->node->name, e->after->name);
        break;
    }
    tti_free(p->ctx, path);
    return ok && !found;
}

// ---- the whole -------------------------------------------------------------------------------

static bool magic(parser *p)
{
    static const char text[] = TTI_TEXT_MAGIC;
    size_t n = strlen(text), head = strlen("tutti graph ");
    if ((size_t)(p->lex.end - p->lex.at) < n || memcmp(p->lex.at, text, head) != 0)
        return tti_lex_fail(&p->lex, p->lex.at, "'%s' expected", text);
    p->lex.at += head;
    if (memcmp(p->lex.at, text + head, n - head) != 0)
        return tti_lex_fail(&p->lex, p->lex.at, "this version reads graph texts of version 1 only");
    p->lex.at += n - head;
    return tti_lex_end(&p->lex) ||
           tti_lex_fail(&p->lex, p->lex.at, "this version reads graph texts of version 1 only");
}

static bool lines(parser *p)
{
    if (!magic(p))
        return false;
    while (p->lex.at < p->lex.end) {
        p->lex.at++; // the line's end
        p->lex.start = p->lex.at;
        if (p->lex.line == INT32_MAX)
            return tti_lex_fail(&p->lex, p->lex.at, "too many lines");
        p->lex.line++;
        snprintf(p->where, sizeof(p->where), "graph text line %d: ", p->lex.line);
        if (!line(p))
            return false;
        while (p->lex.at < p->lex.end && *p->lex.at != '\n') // of a comment
            p->lex.at++;
    }
    return place_edges(p) && check_cycles(p);
}

tt_graph *tti_graph_parse(tt_ctx *ctx, const char *text, size_t bytes, size_t data_limit)
{
    if (tti_is_stuck(ctx))
        return NULL;
    if (text == NULL && bytes > 0) {
        (void)TT_FAIL(ctx, TT_EINVAL, "graph text is NULL");
        return NULL;
    }
    text = text == NULL ? "" : text;
    parser p = {.ctx = ctx,
                .g = tt_graph_new(ctx),
                .lex = {.ctx = ctx, .at = text, .end = text + bytes, .start = text, .line = 1},
                .data_room = {.limit = data_limit, .left = data_limit}};
    if (p.g != NULL && !lines(&p)) {
        tt_graph_free(p.g);
        p.g = NULL;
    }
    tti_free(ctx, p.in);
    tti_free(ctx, p.attr);
    tti_free(ctx, p.edges);
    return p.g;
}

tt_graph *tt_graph_parse(tt_ctx *ctx, const char *text, size_t bytes)
{
    return tti_graph_parse(ctx, text, bytes, TTI_TEXT_DATA);
}
