/*
 * use_onnx.c - tt_export_onnx(): a trained model as an ONNX file, alone or with what is done to
 * records before it and to its results after it.
 */
#include "base/ctx.h"
#include "save/checkpoint.h"
#include "save/onnx.h"
#include "save/share.h"
#include "train/compile.h"
#include "train/use.h"
#include <stdio.h>
#include <string.h>

typedef struct export
{
    tt_model *m;
    const tti_use *use;
    tti_onnx o;
    tti_snapshot snapshot;
    tti_output outputs[TTI_MAX_INPUTS];
    int n_outputs;
    bool raw;
    tti_text done;    // transforms that the file has, for its metadata
    tti_text classes; // names of classes by output, as JSON
}
export;

// ---- before the model ------------------------------------------------------------------------

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static const char *write_normalise(export *e, const tti_transform *t, const char *x)
{
    tti_onnx *o = &e->o;
    int64_t n = t->opts.depth;
    tt_shape shape = n == 1 ? TT_SCALAR : TT_SHAPE(n);
    if (t->in.dtype != TT_F32)
        x = tti_onnx_cast(o, x, TT_F32);
    x = tti_onnx_2(o, "Sub", x, tti_onnx_const(o, TT_F32, shape, t->table));
    return tti_onnx_2(o, "Div", x, tti_onnx_const(o, TT_F32, shape, t->table + n));
}

static const char *write_one_hot(export *e, const tti_transform *t, const char *x)
{
    tti_onnx *o = &e->o;
    double rest = t->opts.smoothing / (double)t->opts.depth;
    const float values[2] = {(float)rest, (float)(1.0 - t->opts.smoothing + rest)};
    if (t->in.dtype != TT_I64)
        x = tti_onnx_cast(o, x, TT_I64);
    tti_onnx_begin(o, "OneHot");
    tti_onnx_in(o, x);
    tti_onnx_in(o, tti_onnx_ints(o, &t->opts.depth, 1));
    tti_onnx_in(o, tti_onnx_const(o, TT_F32, TT_SHAPE(2), values));
    tti_onnx_attr_int(o, "axis", -1);
    return tti_onnx_end(o);
}

// [c, h, w] -> [h, w, c]
static const char *write_channels_last(export *e, const tti_transform *t, const char *x)
{
    static const int64_t order[4] = {0, 2, 3, 1};
    return t->in.shape.rank == 3 ? tti_onnx_transpose(&e->o, x, order, 4) : NULL;
}

static const struct {
    const char *kind;
    const char *(*write)(export *e, const tti_transform *t, const char *x);
} transforms[] = {
    {"normalise", write_normalise},
    {"one_hot", write_one_hot},
    {"channels_last", write_channels_last},
};

static tt_status write_transform(export *e, const json_t *about, tt_field *f, const char **x)
{
    const char *kind = text_of(about, "kind");
    const tti_transform_def *def = tti_transform_find(kind);
    tti_transform t = {.def = def, .in = *f, .out = *f};
    const char *y = NULL;
    int row = 0;
    while (row < TTI_COUNT(transforms) && strcmp(transforms[row].kind, kind) != 0)
        row++;
    if (def != NULL && row < TTI_COUNT(transforms)) {
        TT_TRY(tti_options_of_json(e->m->ctx, "the model", kind, def->options,
                                   json_object_get(about, "options"), &t.opts));
        TT_TRY(def->prepare(e->m->ctx, &t));
        y = transforms[row].write(e, &t, *x);
        tti_free(e->m->ctx, t.table);
    }
    if (y == NULL)
        return TT_FAIL(
            e->m->ctx, TT_EUNSUPPORTED,
            "onnx: the transform '%.64s' of field '%s' has no counterpart in ONNX; write "
            "the model without its preprocessing (--plain; in C, leave out .raw)",
            kind, f->name);
    *x = y;
    *f = t.out;
    tti_text_add(&e->done, "%s%s of %s", e->done.n > 0 ? ", " : "", kind, f->name);
    return TT_OK;
}

static bool is_same(const tt_shape *a, const tt_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof(a->dim[0]) * (size_t)a->rank) == 0;
}

// Input i: what the file takes, and the value that the model's input gets.
static tt_status write_input(export *e, int i)
{
    tt_port p;
    TT_TRY(tt_model_input(e->m, i, &p));
    const tt_tensor *feed = e->m->inputs[i]->out;
    const char *x = p.name;
    int at = e->raw && e->use->data != NULL ? e->use->input_field[i] : -1;
    if (at < 0) {
        tti_onnx_input(&e->o, p.name, p.dtype, &p.shape);
        tti_onnx_set(&e->o, feed, x);
        return TT_OK;
    }
    tt_field f = e->use->fields[at].field;
    const json_t *list = json_object_get(e->use->data, "transforms");
    tti_onnx_input(&e->o, p.name, f.dtype, &f.shape);
    e->o.at = p.name;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        if (strcmp(text_of(one, "field"), e->use->fields[at].field.name) == 0)
            TT_TRY(write_transform(e, one, &f, &x));
    }
    if (f.dtype != p.dtype || !is_same(&f.shape, &p.shape)) {
        char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
        return TT_FAIL(e->m->ctx, TT_ESHAPE,
                       "onnx: prepared records of '%s' are %s %s, the model's input is %s %s",
                       p.name, tt_dtype_name(f.dtype), tt_shape_text(&f.shape, a),
                       tt_dtype_name(p.dtype), tt_shape_text(&p.shape, b));
    }
    tti_onnx_set(&e->o, feed, x);
    return TT_OK;
}

// ---- after the model -------------------------------------------------------------------------

static const char *finished(export *e, const tti_use_output *u, const char *y)
{
    tti_onnx *o = &e->o;
    if (u->meaning == TT_MEANS_CLASSES && !u->is_finished) {
        tti_onnx_begin(o, "Softmax");
        tti_onnx_in(o, y);
        tti_onnx_attr_int(o, "axis", -1);
        y = tti_onnx_end(o);
    }
    if (u->meaning == TT_MEANS_BINARY && !u->is_finished)
        y = tti_onnx_1(o, "Sigmoid", y);
    if (u->n_undo > 0) {
        tt_shape s = u->n_undo == 1 ? TT_SCALAR : TT_SHAPE(u->n_undo);
        y = tti_onnx_2(o, "Mul", y, tti_onnx_const(o, TT_F32, s, u->scale));
        y = tti_onnx_2(o, "Add", y, tti_onnx_const(o, TT_F32, s, u->mean));
    }
    return y;
}

// A name of an output that no input has.
static const char *output_name(export *e, const char *name)
{
    for (int i = 0; i < e->m->n_inputs; i++)
        if (strcmp(e->m->inputs[i]->name, name) == 0)
            return tti_onnx_text(&e->o, "%s_output", name);
    return tti_onnx_text(&e->o, "%s", name);
}

static void write_output(export *e, int i)
{
    const tt_tensor *t = e->outputs[i].tensor;
    const tti_use_output *u = &e->use->outputs[i];
    const char *name = output_name(e, e->outputs[i].name), *y = tti_onnx_value(&e->o, t);
    e->o.at = name;
    if (e->raw && t->dtype == TT_F32)
        y = finished(e, u, y);
    tti_onnx_output(&e->o, name, y, t);
    if (u->words == NULL)
        return;
    tti_text_add(&e->classes, "%s", e->classes.n > 0 ? ", " : "{");
    tti_text_json(&e->classes, name);
    tti_text_add(&e->classes, ": [");
    for (size_t k = 0; k < json_array_size(u->words); k++) {
        tti_text_add(&e->classes, "%s", k > 0 ? ", " : "");
        tti_text_json(&e->classes, json_string_value(json_array_get(u->words, k)));
    }
    tti_text_add(&e->classes, "]");
}

// ---- the file --------------------------------------------------------------------------------

static tt_status write_file(export *e, const char *path, tt_hash *hash)
{
    const char *metadata[9] = {"tutti.input",
                               e->raw ? "records as in the training data" : "prepared records",
                               "tutti.output", e->raw ? "as tutti predict" : "plain"};
    int n = 4;
    if (e->classes.n > 0)
        tti_text_add(&e->classes, "}");
    if (e->done.failed || e->classes.failed)
        return TT_ENOMEM;
    if (e->done.n > 0) {
        metadata[n++] = "tutti.preprocessing";
        metadata[n++] = e->done.s;
    }
    if (e->classes.n > 0) {
        metadata[n++] = "tutti.classes";
        metadata[n++] = e->classes.s;
    }
    return tti_onnx_write(&e->o, path, metadata, hash);
}

static tt_status export_all(export *e, const char *path, tt_hash *hash)
{
    tt_tensor *targets[TTI_MAX_INPUTS];
    TT_TRY(tti_model_snapshot(e->m, &e->snapshot));
    TT_TRY(tti_onnx_open(e->m, e->snapshot.tensors, &e->o));
    for (int i = 0; i < e->m->n_inputs; i++)
        TT_TRY(write_input(e, i));
    for (int i = 0; i < e->n_outputs; i++)
        targets[i] = e->outputs[i].tensor;
    TT_TRY(tti_onnx_graph(&e->o, targets, e->n_outputs));
    for (int i = 0; i < e->n_outputs; i++)
        write_output(e, i);
    return tti_is_first(e->m->ctx) ? write_file(e, path, hash) : TT_OK;
}

tt_status tt_export_onnx_with(tt_model *m, const char *path, const tt_export_onnx_opts *opts)
{
    tt_export_onnx_opts own;
    if (m == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    TT_TRY(TTI_OPTS_COPY(m->ctx, "export_onnx", opts, &own));
    if (path == NULL || path[0] == '\0')
        return TT_FAIL(m->ctx, TT_EINVAL, "export_onnx: no path is given");
    export *e = tti_calloc(m->ctx, 1, sizeof(*e));
    if (e == NULL)
        return TT_ENOMEM;
    tt_hash hash;
    *e = (export){.m = m, .raw = own.raw, .done = {.ctx = m->ctx}, .classes = {.ctx = m->ctx}};
    e->n_outputs = m->n_layers > 0 ? tti_model_outputs(m, e->outputs) : 0;
    tt_status st = TT_OK;
    if (m->n_inputs < 1 || e->n_outputs < 1)
        st = TT_FAIL(m->ctx, TT_EINVAL, "export_onnx: the model has %d inputs and %d outputs",
                     m->n_inputs, e->n_outputs);
    if (st == TT_OK && (e->use = tti_use_get(m)) == NULL)
        st = tt_status_of(m->ctx);
    if (st == TT_OK)
        st = export_all(e, path, &hash);
    tti_onnx_close(&e->o);
    tti_text_free(&e->done);
    tti_text_free(&e->classes);
    tti_snapshot_free(m->ctx, &e->snapshot);
    tti_free(m->ctx, e);
    return tti_ranks_wait(m->ctx, st, "exporting");
}
