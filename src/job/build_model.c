/*
 * build_model.c - the model of a job: its inputs from the data's fields, then layer by layer.
 */
#include "base/ctx.h"
#include "job/job.h"
#include "model/build.h"
#include "model/layer.h"
#include <stdio.h>
#include <string.h>

#define MAX_NAMES 512

typedef struct builder {
    tt_job *job;
    tt_ctx *ctx;
    tt_model *model;
    const tt_field *fields;
    int n_fields;
    int64_t vocab; // symbols of the data's inputs; 0: not known
    tt_tensor *last;
    // Names that the job gave to what is more than one layer.
    struct {
        const char *name;
        tt_tensor *out;
    } names[MAX_NAMES];
    int n_names;
} builder;

static tt_status lost(const builder *b)
{
    return tt_status_of(b->ctx);
}

// ---- names -----------------------------------------------------------------------------------

static tt_tensor *find_output(const builder *b, const char *name)
{
    for (int i = 0; i < b->n_names; i++)
        if (strcmp(b->names[i].name, name) == 0)
            return b->names[i].out;
    const tti_layer *l = tti_layer_named(b->model, name);
    return l != NULL ? l->out : NULL;
}

static tt_status keep_name(builder *b, const char *name, tt_tensor *out)
{
    if (name == NULL)
        return TT_OK;
    if (find_output(b, name) != NULL)
        return TT_FAIL(b->ctx, TT_EINVAL, "the model already has a layer '%.64s'", name);
    if (b->n_names == MAX_NAMES)
        return TT_FAIL(b->ctx, TT_EINVAL, "more than %d names", MAX_NAMES);
    b->names[b->n_names].name = name;
    b->names[b->n_names++].out = out;
    return TT_OK;
}

static tt_status no_output(const builder *b, const tti_item *item, const char *path,
                           const char *name)
{
    const char *names[MAX_NAMES + 1];
    int n = 0;
    for (int i = 0; i < b->n_names && n < MAX_NAMES; i++)
        names[n++] = b->names[i].name;
    for (int64_t i = 0; i < b->model->n_layers && n < MAX_NAMES; i++)
        names[n++] = b->model->layers[i]->name;
    names[n] = NULL;
    const char *near = tti_nearest(name, names);
    return tti_fail_at(
        b->ctx, TT_EINVAL, item->at, path,
        near != NULL ? "there is no layer or input '%.64s' before this one; did you mean '%s'?"
                     : "there is no layer or input '%.64s' before this one",
        name, near);
}

// Calls fn for every name of "a, b".
static tt_status each_output(builder *b, const tti_item *item, const char *path,
                             tt_status (*fn)(builder *b, const char *name, tt_tensor *t, void *to),
                             void *to)
{
    for (const char *s = item->text; *s != '\0';) {
        size_t n = strcspn(s, ","), begin = strspn(s, " ");
        size_t end = n;
        while (end > begin && s[end - 1] == ' ')
            end--;
        char name[TTI_NAME_MAX];
        size_t length = end - TTI_MIN(begin, end);
        if (length >= sizeof(name))
            return tti_fail_at(b->ctx, TT_EINVAL, item->at, path,
                               "'%.40s...' has %zu bytes; names have at most %d",
                               s + TTI_MIN(begin, end), length, TTI_NAME_MAX - 1);
        snprintf(name, sizeof(name), "%.*s", (int)length, s + TTI_MIN(begin, end));
        tt_tensor *t = find_output(b, name);
        if (t == NULL)
            return no_output(b, item, path, name);
        char buf[TTI_PLACE_MAX];
        tti_fail_item(b->ctx, item, path, buf);
        tt_status st = fn(b, name, t, to);
        tti_fail_where(b->ctx, NULL);
        TT_TRY(st);
        s += n + (s[n] == ',');
    }
    return TT_OK;
}

typedef struct sources {
    tt_tensor *from[TT_MAX_FROM];
    int n;
} sources;

static tt_status add_source(builder *b, const char *name, tt_tensor *t, void *to)
{
    sources *s = to;
    if (s->n == TT_MAX_FROM)
        return TT_FAIL(b->ctx, TT_EINVAL, "'%s' is one input too many; at most %d are allowed",
                       name, TT_MAX_FROM);
    s->from[s->n++] = t;
    return TT_OK;
}

// ---- layers ----------------------------------------------------------------------------------

static tt_status build_layers(builder *b, const tti_item *list, const char *path, tt_tensor *start);

// Options the data knows.
static tt_status fill_later(builder *b, const tti_layer_def *def, const tti_item *record,
                            const char *path, void *opts)
{
    for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
        if (strcmp(row->name, "vocab") != 0 || tti_item_get(record, row->name) != NULL)
            continue;
        char text[32];
        snprintf(text, sizeof(text), "%lld", (long long)b->vocab);
        if (b->vocab < 1)
            return tti_fail_at(b->ctx, TT_EINVAL, record->at, path,
                               "%s must be given: the data does not define it", row->name);
        TT_TRY(tti_option_set(b->ctx, def->options, opts, def->name, row->name, text));
    }
    return TT_OK;
}

static tt_status take_common(builder *b, const tti_item *record, const char *path,
                             tti_layer_common *out)
{
    char below[TTI_KEY_MAX];
    sources s = {.n = 0};
    const tti_item *name = tti_item_get(record, "name"), *from = tti_item_get(record, "from"),
                   *share = tti_item_get(record, "share");
    out->name = name != NULL && name->text[0] != '\0' ? name->text : NULL;
    if (from != NULL) {
        tti_path_join(below, path, "from");
        TT_TRY(each_output(b, from, below, add_source, &s));
        memcpy(out->from, s.from, sizeof(out->from));
    }
    if (share != NULL && share->text[0] != '\0') {
        tti_path_join(below, path, "share");
        out->share = find_output(b, share->text);
        if (out->share == NULL)
            return no_output(b, share, below, share->text);
    }
    return TT_OK;
}

static tt_status build_kind(builder *b, const tti_layer_def *def, const tti_item *record,
                            const char *path, tt_tensor *start)
{
    char buf[TTI_PLACE_MAX];
    char *opts = tti_calloc(b->ctx, 1, def->size);
    if (opts == NULL)
        return TT_ENOMEM;
    memcpy(opts, &def->size, sizeof(def->size)); // opts_size is the first member
    tti_layer_common *common = (tti_layer_common *)(void *)(opts + def->common);
    tt_status st = tti_bind(b->ctx, def->options, record, opts);
    if (st == TT_OK)
        st = fill_later(b, def, record, path, opts);
    if (st == TT_OK)
        st = take_common(b, record, path, common);
    if (st == TT_OK) {
        if (common->from[0] == NULL)
            common->from[0] = start;
        tti_fail_item(b->ctx, record, path, buf);
        b->last = tti_layer_add(b->model, def, opts);
        st = b->last == NULL ? lost(b) : TT_OK;
        if (st == TT_OK && def->expand != NULL)
            st = keep_name(b, common->name, b->last);
        tti_fail_where(b->ctx, NULL);
    }
    tti_free(b->ctx, opts);
    return st;
}

// x + f(x)
static tt_status build_residual(builder *b, const tti_item *record, const char *path,
                                tt_tensor *start)
{
    tti_layer_common c = {.name = NULL};
    tti_job_residual o = {0};
    char below[TTI_KEY_MAX], buf[TTI_PLACE_MAX];
    const tti_item *list = tti_item_get(record, "layers");
    TT_TRY(tti_bind(b->ctx, tti_job_residual_rows, record, &o));
    TT_TRY(take_common(b, record, path, &c));
    tt_tensor *x = c.from[0] != NULL ? c.from[0] : start != NULL ? start : b->last;
    if (c.from[1] != NULL)
        return tti_fail_at(b->ctx, TT_EINVAL, record->at, path, "takes 1 input");
    if (list == NULL || list->n == 0)
        return tti_fail_at(b->ctx, TT_EINVAL, record->at, path, "layers must be given");
    tti_path_join(below, path, "layers");
    TT_TRY(build_layers(b, list, below, x == b->last ? NULL : x));
    tti_fail_item(b->ctx, record, path, buf);
    b->last = tt_layer_add(b->model, .from = {x, b->last});
    if (b->last != NULL && o.act != TT_LINEAR)
        b->last = tt_layer_activation(b->model, .act = (tt_act)o.act);
    tt_status st = b->last == NULL ? lost(b) : keep_name(b, c.name, b->last);
    tti_fail_where(b->ctx, NULL);
    return st;
}

// A layer, or what it is made of, in the scope of its device.
static tt_status build_item(builder *b, const tti_item *record, const char *path, tt_tensor *start)
{
    const tti_layer_def *def = tti_layer_find(record->key);
    const tti_item *device = tti_item_get(record, "device");
    bool pinned = device != NULL && device->text[0] != '\0' && !b->job->no_pins;
    if (pinned) {
        char below[TTI_KEY_MAX], buf[TTI_PLACE_MAX];
        tti_path_join(below, path, "device");
        tti_fail_item(b->ctx, device, below, buf);
        tt_status st = tt_device_push(b->model->graph, device->text);
        tti_fail_where(b->ctx, NULL);
        TT_TRY(st);
    }
    tt_status st = def == NULL ? build_residual(b, record, path, start)
                               : build_kind(b, def, record, path, start);
    if (pinned && st == TT_OK)
        st = tt_device_pop(b->model->graph);
    return st;
}

// start: what the first layer continues from, if that is not the last one made.
static tt_status build_layers(builder *b, const tti_item *list, const char *path, tt_tensor *start)
{
    int i = 0;
    for (const tti_item *c = list->first; c != NULL; c = c->next, i++) {
        const tti_item *record = tti_chosen(c);
        char number[16], at[TTI_KEY_MAX], below[TTI_KEY_MAX];
        snprintf(number, sizeof(number), "%d", i);
        tti_path_join(at, path, number);
        tti_path_join(below, at, record->key);
        TT_TRY(build_item(b, record, below, i == 0 ? start : NULL));
    }
    return TT_OK;
}

// ---- inputs and outputs ----------------------------------------------------------------------

static tt_status add_input(builder *b, const tt_field *f)
{
    tt_input_opts o = {.opts_size = sizeof(o), .dtype = f->dtype, .name = f->name};
    if (f->shape.rank > 0)
        memcpy(o.shape, f->shape.dim, (size_t)f->shape.rank * sizeof(o.shape[0]));
    b->last = tt_input_with(b->model, &o);
    if (b->vocab == 0)
        b->vocab = f->classes;
    return b->last == NULL ? lost(b) : TT_OK;
}

// "'x' and 'y'"
static const char *field_names(const builder *b, char out[TT_MAX_FIELDS * 40])
{
    int n = 0;
    for (int i = 0; i < b->n_fields; i++)
        n += snprintf(out + n, TT_MAX_FIELDS * 40 - (size_t)n, "%s'%s'",
                      i == 0                 ? ""
                      : i == b->n_fields - 1 ? " and "
                                             : ", ",
                      b->fields[i].name);
    return out;
}

/*
 * A named input is the field of that name. The only input may have a name of its own: it is the
 * first field. Of several none is taken by its place, since that could be the target's.
 */
static tt_status find_field(builder *b, const tti_item *item, const char *path, bool alone,
                            tt_field *f)
{
    char names[TT_MAX_FIELDS * 40];
    int at = alone ? 0 : b->n_fields;
    for (int i = 0; i < b->n_fields; i++)
        if (strcmp(b->fields[i].name, item->key) == 0)
            at = i;
    if (at == b->n_fields && b->n_fields > 0)
        return tti_fail_at(b->ctx, TT_EINVAL, item->at, path,
                           "the data has no field '%.64s'; its %s %s", item->key,
                           b->n_fields == 1 ? "field is" : "fields are", field_names(b, names));
    if (f->shape.rank == 0 && b->n_fields == 0)
        return tti_fail_at(b->ctx, TT_EINVAL, item->at, path,
                           "shape must be given: the job has no data that defines it");
    if (f->shape.rank == 0)
        *f = b->fields[at];
    return TT_OK;
}

static tt_status named_input(builder *b, const tti_item *item, bool alone)
{
    char path[TTI_KEY_MAX], buf[TTI_PLACE_MAX];
    tt_field f = {0};
    tti_path_join(path, "model.inputs", item->key);
    TT_TRY(tti_bind(b->ctx, tti_job_input_rows, item, &f));
    TT_TRY(find_field(b, item, path, alone, &f));
    if (strlen(item->key) >= sizeof(f.name))
        return tti_fail_at(b->ctx, TT_EINVAL, item->at, path, "the name is too long");
    strcpy(f.name, item->key);
    tti_fail_item(b->ctx, item, path, buf);
    tt_status st = add_input(b, &f);
    tti_fail_where(b->ctx, NULL);
    return st;
}

// ---- pins ------------------------------------------------------------------------------------

static tt_status add_pins(builder *b, const tti_item *pins)
{
    for (const tti_item *c = pins->first; c != NULL; c = c->next) {
        char path[TTI_KEY_MAX], buf[TTI_PLACE_MAX];
        tti_path_join(path, "distribute.pins", c->key);
        tti_fail_item(b->ctx, c, path, buf);
        tt_status st = tti_model_pin(b->model, c->key, tti_item_get(c, "device")->text);
        tti_fail_where(b->ctx, NULL);
        TT_TRY(st);
    }
    return TT_OK;
}

// A pattern that matches nothing is a slip of the pen.
static tt_status check_pins(builder *b, const tti_item *pins)
{
    int i = 0;
    for (const tti_item *c = pins->first; c != NULL; c = c->next, i++) {
        const char *names[MAX_NAMES + 1];
        int n = 0;
        if (b->model->pin_rules[i].is_used)
            continue;
        for (int64_t k = 0; k < b->model->n_layers && n < MAX_NAMES; k++)
            if (b->model->layers[k]->def != NULL)
                names[n++] = b->model->layers[k]->name;
        names[n] = NULL;
        const char *near = tti_nearest(c->key, names);
        return tti_fail_at(b->ctx, TT_EINVAL, c->key_at, "distribute.pins",
                           near != NULL ? "'%.64s' matches no layer; did you mean '%s'?"
                                        : "'%.64s' matches no layer; the first is '%s'",
                           c->key,
                           near != NULL ? near
                           : n > 0      ? names[0]
                                        : "");
    }
    return TT_OK;
}

static tt_status add_output(builder *b, const char *name, tt_tensor *t, void *to)
{
    (void)to;
    return tt_output(b->model, t, name);
}

static tt_status build(builder *b, const tti_item *model)
{
    const tti_item *inputs = tti_item_get(model, "inputs"), *list = model;
    int n = inputs != NULL ? inputs->n : 0;
    for (const tti_item *c = n > 0 ? inputs->first : NULL; c != NULL; c = c->next)
        TT_TRY(named_input(b, c, n == 1));
    if (n == 0 && b->n_fields == 0)
        return tti_fail_at(b->ctx, TT_EINVAL, model->at, "model",
                           "the job has no data, so model.inputs must describe the inputs");
    if (n == 0)
        TT_TRY(add_input(b, &b->fields[0]));
    if (model->kind == TTI_MAP)
        list = tti_item_get(model, "layers");
    if (list->n == 0)
        return tti_fail_at(b->ctx, TT_EINVAL, list->at, "model", "has no layers");
    const tti_item *pins = tti_item_get(tti_item_get(b->job->root, "distribute"), "pins");
    if (!b->job->no_pins)
        TT_TRY(add_pins(b, pins));
    TT_TRY(build_layers(b, list, model->kind == TTI_MAP ? "model.layers" : "model", NULL));
    if (!b->job->no_pins)
        TT_TRY(check_pins(b, pins));
    const tti_item *outputs = tti_item_get(model, "outputs");
    return outputs == NULL ? TT_OK : each_output(b, outputs, "model.outputs", add_output, NULL);
}

tt_status tti_job_build_model(tt_job *j, tt_ctx *ctx, const tt_field *fields, int n_fields,
                              tt_model **out)
{
    builder *b = tti_calloc(ctx, 1, sizeof(*b));
    if (b == NULL)
        return TT_ENOMEM;
    *b = (builder){.job = j, .ctx = ctx, .fields = fields, .n_fields = n_fields};
    b->model = tt_model_new(ctx);
    tt_status st = b->model == NULL ? lost(b) : build(b, tti_item_get(j->root, "model"));
    if (st == TT_OK)
        *out = b->model;
    else
        tt_model_free(b->model);
    tti_free(ctx, b);
    return st;
}
