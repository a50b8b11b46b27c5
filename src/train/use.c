/*
 * use.c - a model's notes read back: what its outputs mean, how records are prepared and values
 * brought back to the target's units.
 */
#include "train/use.h"
#include "base/ctx.h"
#include "train/loss.h"
#include "train/scalar.h"
#include <string.h>

// ---- reading ---------------------------------------------------------------------------------

static void use_free(tt_model *m)
{
    tti_use *u = m->use;
    m->use = NULL;
    json_decref(u->data);
    json_decref(u->train);
    for (int i = 0; i < u->n_outputs; i++)
        tti_free(m->ctx, u->outputs[i].mean);
    tti_free(m->ctx, u);
}

static int field_named(const tti_use *u, const char *name)
{
    for (int i = 0; name != NULL && i < u->n_fields; i++)
        if (strcmp(u->fields[i].field.name, name) == 0)
            return i;
    return -1;
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

// The numbers of the transforms of a target, so that they can be undone.
static tt_status read_undo(tt_model *m, const tti_use *u, tti_use_output *out)
{
    const json_t *list = json_object_get(u->data, "transforms");
    const tt_field *f = &u->fields[out->target].field;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        tti_transform t = {.def = &tti_transform_normalise, .in = *f, .out = *f};
        if (strcmp(text_of(one, "field"), f->name) != 0)
            continue;
        if (strcmp(text_of(one, "kind"), t.def->name) != 0 || out->n_undo > 0) {
            out->n_undo = 0; // of another kind, or several: left as they are
            return TT_OK;
        }
        TT_TRY(tti_options_of_json(m->ctx, "the model", t.def->name, t.def->options,
                                   json_object_get(one, "options"), &t.opts));
        TT_TRY(t.def->prepare(m->ctx, &t));
        tti_free(m->ctx, out->mean);
        out->mean = t.table;
        out->scale = t.table + t.opts.depth;
        out->n_undo = t.opts.depth;
    }
    return TT_OK;
}

static tt_status read_loss(tt_model *m, tti_use *u, int i, const json_t *loss,
                           const tti_output *outputs)
{
    const json_t *o = json_object_get(loss, "options");
    const char *name = text_of(o, "output"), *target = text_of(o, "target");
    int kind = tti_loss_find(text_of(loss, "kind")), at = name[0] == '\0' ? i : -1;
    for (int k = 0; k < u->n_outputs; k++)
        if (name[0] != '\0' && strcmp(outputs[k].name, name) == 0)
            at = k;
    if (at < 0 || at >= u->n_outputs)
        return TT_OK;
    tti_use_output *out = &u->outputs[at];
    tt_shape shape = tt_tensor_shape(outputs[at].tensor);
    if (kind > 0 && tti_loss_has_classes((tt_loss_kind)kind) && shape.rank == 2 && shape.dim[1] > 1)
        out->meaning = TT_MEANS_CLASSES;
    if (kind == TT_BINARY_CROSS_ENTROPY || kind == TT_BINARY_FOCAL)
        out->meaning = TT_MEANS_BINARY;
    int by_place = m->n_inputs + i;
    out->target = target[0] != '\0'        ? field_named(u, target)
                  : by_place < u->n_fields ? by_place
                                           : -1;
    if (out->target < 0)
        return TT_OK;
    const json_t *words = u->fields[out->target].words;
    if (out->meaning == TT_MEANS_CLASSES && words != NULL &&
        json_array_size(words) == (size_t)shape.dim[1])
        out->words = words;
    return out->meaning == TT_MEANS_VALUES ? read_undo(m, u, out) : TT_OK;
}

static tt_status read_notes(tt_model *m, tti_use *u)
{
    tti_output outputs[TTI_MAX_INPUTS];
    u->n_outputs = m->n_layers > 0 ? tti_model_outputs(m, outputs) : 0;
    if (m->about_data != NULL && (u->data = json_loads(m->about_data, 0, NULL)) == NULL)
        return TT_FAIL(m->ctx, TT_EPARSE, "the model's description of its data is not valid JSON");
    if (m->about_train != NULL && (u->train = json_loads(m->about_train, 0, NULL)) == NULL)
        return TT_FAIL(m->ctx, TT_EPARSE,
                       "the model's description of its training is not valid JSON");
    u->n_fields =
        u->data == NULL ? 0 : tti_described_fields(m->ctx, "the model", u->data, u->fields);
    if (u->n_fields < 0)
        return tt_status_of(m->ctx);
    for (int i = 0; i < m->n_inputs; i++) {
        u->input_field[i] = field_named(u, m->inputs[i]->name);
        if (u->input_field[i] < 0 && i < u->n_fields)
            u->input_field[i] = i;
    }
    for (int i = 0; i < u->n_outputs; i++) {
        const char *op = tt_tensor_get_node(outputs[i].tensor)->op->name;
        tt_shape shape = tt_tensor_shape(outputs[i].tensor);
        u->outputs[i].target = -1;
        u->outputs[i].is_finished = strcmp(op, "softmax") == 0 || strcmp(op, "sigmoid") == 0;
        if (strcmp(op, "softmax") == 0 && shape.rank == 2)
            u->outputs[i].meaning = TT_MEANS_CLASSES;
    }
    const json_t *losses = json_object_get(u->train, "losses");
    for (size_t i = 0; i < json_array_size(losses) && i < TT_MAX_LOSSES; i++)
        TT_TRY(read_loss(m, u, (int)i, json_array_get(losses, i), outputs));
    return TT_OK;
}

const tti_use *tti_use_get(tt_model *m)
{
    if (m->use != NULL)
        return m->use;
    tti_use *u = tti_calloc(m->ctx, 1, sizeof(*u));
    if (u == NULL)
        return NULL;
    m->use = u;
    m->free_use = use_free;
    if (read_notes(m, u) == TT_OK)
        return u;
    use_free(m);
    return NULL;
}

// ---- looking ---------------------------------------------------------------------------------

static tt_shape record_of(const tt_tensor *t)
{
    tt_shape all = tt_tensor_shape(t), one = {.rank = all.rank - 1};
    if (one.rank > 0)
        memcpy(one.dim, all.dim + 1, sizeof(one.dim[0]) * (size_t)one.rank);
    return one;
}

static tt_status no_port(tt_model *m, const char *what, int i, int n)
{
    return TT_FAIL(m->ctx, TT_EINVAL, "the model has %d %s%s; there is no number %d", n, what,
                   n == 1 ? "" : "s", i);
}

int tt_model_input_count(const tt_model *m)
{
    return m == NULL ? 0 : m->n_inputs;
}

int tt_model_output_count(tt_model *m)
{
    tti_output outputs[TTI_MAX_INPUTS];
    return m == NULL || m->n_layers == 0 ? 0 : tti_model_outputs(m, outputs);
}

// What asking for a port begins with.
static tt_status open_port(tt_model *m, const tt_port *out, const tti_use **u)
{
    if (m == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    if (out == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "the port to write to is NULL");
    *u = tti_use_get(m);
    return *u == NULL ? tt_status_of(m->ctx) : TT_OK;
}

tt_status tt_model_input_sized(tt_model *m, int i, tt_port *out, size_t size)
{
    const tti_use *u;
    TT_TRY(open_port(m, out, &u));
    if (i < 0 || i >= m->n_inputs)
        return no_port(m, "input", i, m->n_inputs);
    const tti_layer *l = m->inputs[i];
    tt_port p = {.name = l->name, .dtype = l->out->dtype, .shape = record_of(l->out)};
    int at = u->input_field[i];
    p.raw_dtype = u->data != NULL && at >= 0 ? u->fields[at].field.dtype : p.dtype;
    p.raw_shape = u->data != NULL && at >= 0 ? u->fields[at].field.shape : p.shape;
    tti_out_copy(out, size, &p, sizeof(p));
    return TT_OK;
}

tt_status tt_model_output_sized(tt_model *m, int i, tt_port *out, size_t size)
{
    tti_output outputs[TTI_MAX_INPUTS];
    const tti_use *u;
    TT_TRY(open_port(m, out, &u));
    if (i < 0 || i >= u->n_outputs)
        return no_port(m, "output", i, u->n_outputs);
    (void)tti_model_outputs(m, outputs);
    tt_port p = {.name = outputs[i].name,
                 .dtype = tt_tensor_dtype(outputs[i].tensor),
                 .shape = record_of(outputs[i].tensor),
                 .meaning = u->outputs[i].meaning};
    p.raw_dtype = p.dtype;
    p.raw_shape = p.shape;
    tti_out_copy(out, size, &p, sizeof(p));
    return TT_OK;
}

const char *tt_model_class(tt_model *m, int i, int64_t class_number)
{
    const tti_use *u = m == NULL || tti_is_stuck(m->ctx) ? NULL : tti_use_get(m);
    if (u == NULL || i < 0 || i >= u->n_outputs || class_number < 0)
        return NULL;
    return json_string_value(json_array_get(u->outputs[i].words, (size_t)class_number));
}

// ---- before and after ------------------------------------------------------------------------

tt_status tt_model_prepare(tt_model *m, tt_data *raw)
{
    if (m == NULL)
        return TT_FAIL(raw != NULL ? raw->ctx : NULL, TT_EINVAL, "prepare: the model is NULL");
    if (tti_is_stuck(m->ctx))
        return tt_status_of(m->ctx);
    if (raw == NULL)
        return TT_FAIL(m->ctx, TT_EINVAL, "prepare: the data set is NULL");
    const tti_use *u = tti_use_get(m);
    if (u == NULL)
        return tt_status_of(m->ctx);
    return tti_described_transforms(raw, "the model", u->data);
}

// Probabilities of a row of scores; our own exponential, the same everywhere.
static void softmax(float *y, int64_t n)
{
    double sum = 0;
    float most = y[0];
    for (int64_t i = 1; i < n; i++)
        most = y[i] > most ? y[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += tti_scalar_exp((double)y[i] - most);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(tti_scalar_exp((double)y[i] - most) / sum);
}

static void finish(const tti_use_output *o, float *y, int64_t n)
{
    if (o->meaning == TT_MEANS_CLASSES && !o->is_finished)
        softmax(y, n);
    for (int64_t i = 0; o->meaning == TT_MEANS_BINARY && !o->is_finished && i < n; i++)
        y[i] = (float)(1 / (1 + tti_scalar_exp(-(double)y[i])));
    for (int64_t i = 0; o->n_undo > 0 && i < n; i++)
        y[i] = (float)((double)y[i] * o->scale[i % o->n_undo] + o->mean[i % o->n_undo]);
}

tt_status tt_model_finish(tt_model *m, int i, float *y, int64_t n)
{
    tt_port port;
    TT_TRY(tt_model_output(m, i, &port));
    int64_t width = tt_shape_count(&port.shape);
    if (y == NULL || n < 0)
        return TT_FAIL(m->ctx, TT_EINVAL, "finish: there are no rows");
    if (port.dtype != TT_F32)
        return TT_FAIL(m->ctx, TT_EDTYPE, "finish: output '%s' is %s; it must be f32", port.name,
                       tt_dtype_name(port.dtype));
    for (int64_t k = 0; k < n; k++)
        finish(&m->use->outputs[i], y + k * width, width);
    return TT_OK;
}
