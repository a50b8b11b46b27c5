/*
 * onnx.c - what an ONNX file is made of: values, nodes, stored tensors, inputs and outputs. Field
 * numbers are those of onnx.proto.
 */
#include "save/onnx.h"
#include "base/ctx.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_STORED = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12
};
enum {
    ATTR_FLOAT = 1,
    ATTR_INT = 2,
    ATTR_TEXT = 3,
    ATTR_INTS = 7
};

int tti_onnx_type(tt_dtype t)
{
    static const int types[TT_N_DTYPES] = {
        [TT_F32] = 1, [TT_F64] = 11, [TT_BF16] = 16, [TT_F16] = 10,
        [TT_I32] = 6, [TT_I64] = 7,  [TT_U8] = 2,    [TT_BOOL] = 9,
    };
    return types[t];
}

// ---- life ------------------------------------------------------------------------------------

tt_status tti_onnx_open(tt_model *m, const tti_named *variables, tti_onnx *o)
{
    const tt_graph *g = m->graph;
    tt_ctx *ctx = m->ctx;
    int64_t n = 0;
    *o = (tti_onnx){.ctx = ctx,
                    .graph = g,
                    .variables = variables,
                    .weights = m->weights,
                    .n_variables = m->n_weights,
                    .nodes = {.ctx = ctx},
                    .inputs = {.ctx = ctx},
                    .outputs = {.ctx = ctx},
                    .call_in = {.ctx = ctx},
                    .call_attr = {.ctx = ctx},
                    .at = ""};
    o->first = tti_calloc(ctx, (size_t)g->n_nodes + 1, sizeof(*o->first));
    if (o->first == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < g->n_nodes; i++) {
        o->first[i] = n;
        n += g->nodes[i]->n_out;
    }
    o->values = tti_calloc(ctx, (size_t)n + 1, sizeof(*o->values));
    return o->values == NULL ? TT_ENOMEM : TT_OK;
}

void tti_onnx_close(tti_onnx *o)
{
    tti_text *texts[] = {&o->nodes, &o->inputs, &o->outputs, &o->call_in, &o->call_attr};
    for (int i = 0; i < TTI_COUNT(texts); i++)
        tti_text_free(texts[i]);
    for (int64_t i = 0; i < o->n_stored; i++)
        tti_free(o->ctx, o->stored[i].own);
    for (int64_t i = 0; i < o->n_names; i++)
        tti_free(o->ctx, o->names[i]);
    tti_free(o->ctx, o->stored);
    tti_free(o->ctx, o->names);
    tti_free(o->ctx, o->values);
    tti_free(o->ctx, o->first);
}

const char *tti_onnx_text(tti_onnx *o, const char *fmt, ...)
{
    char text[2 * TTI_NAME_MAX + 64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    char *own = o->failed ? NULL : tti_strdup(o->ctx, text);
    if (own == NULL || !tti_grow(o->ctx, &o->names, &o->cap_names, o->n_names + 1, sizeof(own))) {
        tti_free(o->ctx, own);
        o->failed = true;
        return "";
    }
    return o->names[o->n_names++] = own;
}

// ---- stored tensors --------------------------------------------------------------------------

static const char *stored_named(const tti_onnx *o, const char *name)
{
    for (int64_t i = 0; i < o->n_stored; i++)
        if (strcmp(o->stored[i].name, name) == 0)
            return o->stored[i].name;
    return NULL;
}

static const char *add_stored(tti_onnx *o, const tti_onnx_weight *w)
{
    if (o->failed || !tti_grow(o->ctx, &o->stored, &o->cap_stored, o->n_stored + 1, sizeof(*w))) {
        tti_free(o->ctx, w->own);
        o->failed = true;
        return "";
    }
    o->stored[o->n_stored++] = *w;
    return w->name;
}

const char *tti_onnx_store(tti_onnx *o, const char *name, tt_dtype dtype, tt_shape shape,
                           void *data)
{
    size_t bytes = (size_t)tt_shape_count(&shape) * tt_dtype_bytes(dtype);
    o->failed |= data == NULL;
    return add_stored(o, &(tti_onnx_weight){name, dtype, shape, data, bytes, data});
}

const char *tti_onnx_const(tti_onnx *o, tt_dtype dtype, tt_shape shape, const void *data)
{
    char name[160], dims[TT_SHAPE_TEXT];
    size_t bytes = (size_t)tt_shape_count(&shape) * tt_dtype_bytes(dtype);
    tt_hash h = tti_hash128(data, bytes);
    snprintf(name, sizeof(name), "const:%s%s:%016llx%016llx", tt_dtype_name(dtype),
             tt_shape_text(&shape, dims), (unsigned long long)h.high, (unsigned long long)h.low);
    const char *found = stored_named(o, name);
    if (found != NULL || o->failed)
        return found != NULL ? found : "";
    char *own = tti_alloc(o->ctx, bytes + 1);
    if (own != NULL)
        memcpy(own, data, bytes);
    return tti_onnx_store(o, tti_onnx_text(o, "%s", name), dtype, shape, own);
}

const char *tti_onnx_scalar(tti_onnx *o, tt_dtype dtype, double v)
{
    char data[8] = {0};
    tti_put_number(dtype, data, 0, v);
    return tti_onnx_const(o, dtype, TT_SCALAR, data);
}

const char *tti_onnx_ints(tti_onnx *o, const int64_t *v, int n)
{
    return tti_onnx_const(o, TT_I64, TT_SHAPE(n), v);
}

const void *tti_onnx_data(const tti_onnx *o, const tt_tensor *t)
{
    if (t->node->op == &tti_op_const)
        return t->node->data;
    for (int64_t i = 0; i < o->n_variables; i++)
        if (o->weights[i].var == t)
            return o->variables[i].data;
    return NULL;
}

// Elements of x, of this size each, with its axes in another order.
static void permute(const tt_shape *x, const int64_t *order, size_t size, const char *from,
                    char *to)
{
    int64_t at[TT_MAX_RANK] = {0}, step[TT_MAX_RANK], n = tt_shape_count(x), stride = 1;
    int64_t steps[TT_MAX_RANK];
    for (int i = x->rank - 1; i >= 0; i--) {
        step[i] = stride;
        stride *= x->dim[i];
    }
    for (int i = 0; i < x->rank; i++)
        steps[i] = step[order[i]];
    for (int64_t k = 0; k < n; k++) {
        int64_t source = 0;
        for (int i = 0; i < x->rank; i++)
            source += at[i] * steps[i];
        memcpy(to + (size_t)k * size, from + (size_t)source * size, size);
        for (int i = x->rank - 1; i >= 0 && ++at[i] == x->dim[order[i]]; i--)
            at[i] = 0;
    }
}

const char *tti_onnx_permuted(tti_onnx *o, const tt_tensor *t, const int64_t *order,
                              const tt_shape *view)
{
    const tt_shape *x = &t->shape;
    const void *data = tti_onnx_data(o, t);
    if (data == NULL) {
        const char *y = tti_onnx_transpose(o, tti_onnx_value(o, t), order, x->rank);
        return view == NULL ? y : tti_onnx_reshape(o, y, view);
    }
    char digits[TT_MAX_RANK + 1] = "";
    tt_shape to = {.rank = x->rank};
    for (int i = 0; i < x->rank; i++) {
        digits[i] = (char)('0' + order[i]);
        to.dim[i] = x->dim[order[i]];
    }
    digits[x->rank] = '\0';
    const char *name = tti_onnx_text(o, "%s:%s%s", t->node->name, digits, view != NULL ? "v" : "");
    const char *found = stored_named(o, name);
    if (found != NULL || o->failed)
        return found != NULL ? found : "";
    size_t size = tt_dtype_bytes(t->dtype);
    char *own = tti_alloc(o->ctx, (size_t)tt_shape_count(x) * size + 1);
    if (own != NULL)
        permute(x, order, size, data, own);
    return tti_onnx_store(o, name, t->dtype, view != NULL ? *view : to, own);
}

// ---- values ----------------------------------------------------------------------------------

void tti_onnx_set(tti_onnx *o, const tt_tensor *t, const char *value)
{
    o->values[o->first[t->node->id] + t->index] = value;
}

const char *tti_onnx_value(tti_onnx *o, const tt_tensor *t)
{
    const char **at = &o->values[o->first[t->node->id] + t->index];
    const void *data = *at == NULL ? tti_onnx_data(o, t) : NULL;
    if (data == NULL) {
        if (*at == NULL && !o->failed) {
            (void)TT_FAIL(o->ctx, TT_EUNSUPPORTED,
                          "onnx: output %d of the op %s (%s) cannot be written", t->index,
                          t->node->op->name, t->node->name);
            o->failed = true;
        }
        return *at != NULL ? *at : "";
    }
    size_t bytes = (size_t)tt_shape_count(&t->shape) * tt_dtype_bytes(t->dtype);
    const char *name = tti_onnx_text(o, "%s", t->node->name);
    return *at = add_stored(o, &(tti_onnx_weight){name, t->dtype, t->shape, data, bytes, NULL});
}

// ---- nodes -----------------------------------------------------------------------------------

void tti_onnx_begin(tti_onnx *o, const char *op)
{
    o->call_op = op;
    o->call_in.n = o->call_attr.n = 0;
}

void tti_onnx_in(tti_onnx *o, const char *value)
{
    tti_pb_text(&o->call_in, 1, value);
}

static void end_attr(tti_onnx *o, tti_text *a, const char *name, int type)
{
    tti_pb_text(a, 1, name);
    tti_pb_int(a, 20, type);
    tti_pb_part(&o->call_attr, 5, a);
}

void tti_onnx_attr_int(tti_onnx *o, const char *name, int64_t v)
{
    tti_text a = {.ctx = o->ctx};
    tti_pb_int(&a, 3, v);
    end_attr(o, &a, name, ATTR_INT);
}

void tti_onnx_attr_ints(tti_onnx *o, const char *name, const int64_t *v, int n)
{
    tti_text a = {.ctx = o->ctx};
    for (int i = 0; i < n; i++)
        tti_pb_int(&a, 8, v[i]);
    end_attr(o, &a, name, ATTR_INTS);
}

void tti_onnx_attr_float(tti_onnx *o, const char *name, double v)
{
    tti_text a = {.ctx = o->ctx};
    tti_pb_float(&a, 2, (float)v);
    end_attr(o, &a, name, ATTR_FLOAT);
}

void tti_onnx_attr_text(tti_onnx *o, const char *name, const char *s)
{
    tti_text a = {.ctx = o->ctx};
    tti_pb_text(&a, 4, s);
    end_attr(o, &a, name, ATTR_TEXT);
}

// Ends the node; out[] are its outputs.
static void end_call(tti_onnx *o, const char *const *out, int n)
{
    tti_text t = {.ctx = o->ctx};
    t.failed = o->call_in.failed || o->call_attr.failed || o->failed;
    if (o->call_in.n > 0)
        tti_text_put(&t, o->call_in.s, (size_t)o->call_in.n);
    for (int i = 0; i < n; i++)
        tti_pb_text(&t, 2, out[i]);
    tti_pb_text(&t, 3, tti_onnx_text(o, "%s#%lld", o->at, (long long)o->n_nodes++));
    tti_pb_text(&t, 4, o->call_op);
    if (o->call_attr.n > 0)
        tti_text_put(&t, o->call_attr.s, (size_t)o->call_attr.n);
    tti_pb_part(&o->nodes, GRAPH_NODE, &t);
    o->failed |= o->nodes.failed;
}

void tti_onnx_end_many(tti_onnx *o, const char **out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = tti_onnx_text(o, "/%s:%lld", o->at, (long long)o->next++);
    end_call(o, out, n);
}

const char *tti_onnx_end(tti_onnx *o)
{
    const char *out;
    tti_onnx_end_many(o, &out, 1);
    return out;
}

const char *tti_onnx_3(tti_onnx *o, const char *op, const char *a, const char *b, const char *c)
{
    tti_onnx_begin(o, op);
    tti_onnx_in(o, a);
    if (b != NULL)
        tti_onnx_in(o, b);
    if (c != NULL)
        tti_onnx_in(o, c);
    return tti_onnx_end(o);
}

const char *tti_onnx_2(tti_onnx *o, const char *op, const char *a, const char *b)
{
    return tti_onnx_3(o, op, a, b, NULL);
}

const char *tti_onnx_1(tti_onnx *o, const char *op, const char *a)
{
    return tti_onnx_3(o, op, a, NULL, NULL);
}

const char *tti_onnx_transpose(tti_onnx *o, const char *x, const int64_t *order, int n)
{
    tti_onnx_begin(o, "Transpose");
    tti_onnx_in(o, x);
    tti_onnx_attr_ints(o, "perm", order, n);
    return tti_onnx_end(o);
}

const char *tti_onnx_reshape(tti_onnx *o, const char *x, const tt_shape *to)
{
    int64_t dim[TT_MAX_RANK];
    for (int i = 0; i < to->rank; i++)
        dim[i] = to->dim[i] < 0 ? -1 : to->dim[i];
    return tti_onnx_2(o, "Reshape", x, tti_onnx_ints(o, dim, to->rank));
}

const char *tti_onnx_cast(tti_onnx *o, const char *x, tt_dtype to)
{
    tti_onnx_begin(o, "Cast");
    tti_onnx_in(o, x);
    tti_onnx_attr_int(o, "to", tti_onnx_type(to));
    return tti_onnx_end(o);
}

// ---- inputs and outputs ----------------------------------------------------------------------

static void add_port(tti_text *to, int field, const char *name, tt_dtype dtype,
                     const tt_shape *shape)
{
    tti_text all = {.ctx = to->ctx}, type = {.ctx = to->ctx}, tensor = {.ctx = to->ctx},
             dims = {.ctx = to->ctx};
    for (int i = 0; i < shape->rank; i++) {
        tti_text dim = {.ctx = to->ctx};
        char open[32] = "batch";
        if (shape->dim[i] < -1)
            snprintf(open, sizeof(open), "%lldbatch", (long long)-shape->dim[i]);
        if (shape->dim[i] < 0)
            tti_pb_text(&dim, 2, open);
        else
            tti_pb_int(&dim, 1, shape->dim[i]);
        tti_pb_part(&dims, 1, &dim);
    }
    tti_pb_int(&tensor, 1, tti_onnx_type(dtype));
    tti_pb_part(&tensor, 2, &dims);
    tti_pb_part(&type, 1, &tensor);
    tti_pb_text(&all, 1, name);
    tti_pb_part(&all, 2, &type);
    tti_pb_part(to, field, &all);
}

void tti_onnx_input(tti_onnx *o, const char *name, tt_dtype dtype, const tt_shape *record)
{
    tt_shape s = {.rank = record->rank + 1, .dim = {-1}};
    memcpy(s.dim + 1, record->dim, sizeof(s.dim[0]) * (size_t)record->rank);
    add_port(&o->inputs, GRAPH_INPUT, name, dtype, &s);
}

void tti_onnx_output(tti_onnx *o, const char *name, const char *value, const tt_tensor *t)
{
    o->at = name;
    tti_onnx_begin(o, "Identity");
    tti_onnx_in(o, value);
    end_call(o, &name, 1);
    add_port(&o->outputs, GRAPH_OUTPUT, name, t->dtype, &t->shape);
}
