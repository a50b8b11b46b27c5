/*
 * input.c - records from files (input.h). The kind of a file is seen by its first bytes.
 */
#include "cli/input.h"
#include "base/file.h"
#include "data/csv.h"
#include "data/npy.h"
#include <stdio.h>
#include <string.h>

typedef enum kind {
    IS_CSV,
    IS_NPY,
    IS_NPZ,
    IS_IDX,
} kind;

// How a file is opened.
typedef struct opening {
    cli_model *m;
    tt_ctx *ctx;
    const tti_use *use;
    const char *file;
    bool with_target;
} opening;

// ---- kinds of files --------------------------------------------------------------------------

static bool begins(const unsigned char *p, size_t n, const char *with, size_t k)
{
    return n >= k && memcmp(p, with, k) == 0;
}

static tt_status find_kind(tt_ctx *ctx, const char *file, kind *out)
{
    unsigned char p[8] = {0};
    tti_bytes b = {.fd = -1};
    TT_TRY(tti_bytes_open(ctx, file, 0, &b)); // unpacks what is packed
    size_t n = (size_t)TTI_MIN(b.n, 8);
    tt_status st = tti_bytes_read(ctx, &b, 0, n, p);
    tti_bytes_close(ctx, &b);
    TT_TRY(st);
    bool picture = begins(p, n, "\xff\xd8\xff", 3) || begins(p, n, "\x89PNG", 4) ||
                   begins(p, n, "GIF8", 4) || begins(p, n, "RIFF", 4) || begins(p, n, "BM", 2);
    if (picture)
        return TT_FAIL(
            ctx, TT_EUNSUPPORTED,
            "%s is an image file, but the model was not trained on image files; save the pixels as "
            "an array [records, height, width, channels] with numpy.save(), or use a .csv, .npz or "
            "IDX file",
            file);
    *out = begins(p, n, "\x93NUMPY", 6)    ? IS_NPY
           : begins(p, n, "PK\x03\x04", 4) ? IS_NPZ
           : begins(p, n, "\0\0", 2)       ? IS_IDX
                                           : IS_CSV;
    return TT_OK;
}

// "x.npy,y.npy": the part before the comma, and what stands behind it.
static const char *split(const char *file, char first[TTI_PATH_MAX])
{
    const char *comma = tti_file_exists(file) ? NULL : strchr(file, ',');
    size_t n = comma != NULL ? (size_t)(comma - file) : strlen(file);
    n = TTI_MIN(n, TTI_PATH_MAX - 1);
    memcpy(first, file, n);
    first[n] = '\0';
    return comma != NULL ? comma + 1 : NULL;
}

// ---- CSV -------------------------------------------------------------------------------------

static int64_t texts_of(const json_t *columns, const char *key)
{
    return (int64_t)json_array_size(json_object_get(columns, key));
}

static const char *text_at(const json_t *columns, const char *key, int64_t i)
{
    const char *s = json_string_value(json_array_get(json_object_get(columns, key), (size_t)i));
    return s != NULL ? s : "";
}

static bool is_target(const json_t *columns, const char *name)
{
    for (int64_t i = 0; i < texts_of(columns, "y"); i++)
        if (strcmp(text_at(columns, "y", i), name) == 0)
            return true;
    return false;
}

/*
 * Without a first line of names columns are told by their places: the file has all of the training
 * data's, or all but the targets.
 */
static tt_status place_of(const opening *o, const json_t *columns, int64_t n, const char *name,
                          tti_text *list)
{
    char made[32];
    int64_t all = texts_of(columns, "all"), before = 0, at = -1;
    for (int64_t i = 0; i < all && at < 0; i++) {
        if (strcmp(text_at(columns, "all", i), name) == 0)
            at = i;
        else
            before += is_target(columns, text_at(columns, "all", i));
    }
    int64_t targets = texts_of(columns, "y");
    if (n != all && (n != all - targets || o->with_target))
        return TT_FAIL(o->ctx, TT_EINVAL,
                       "%s: has %lld columns; the training data had %lld, %lld of them targets",
                       o->file, (long long)n, (long long)all, (long long)targets);
    snprintf(made, sizeof(made), "c%lld", (long long)(n == all ? at : at - before));
    tti_csv_list(list, made);
    return TT_OK;
}

static tt_status list_columns(const opening *o, const json_t *columns, const char *key, int64_t n,
                              tti_text *list)
{
    bool by_place = json_is_true(json_object_get(columns, "no_header"));
    tt_status st = TT_OK;
    for (int64_t i = 0; i < texts_of(columns, key) && st == TT_OK; i++) {
        const char *name = text_at(columns, key, i);
        if (by_place)
            st = place_of(o, columns, n, name, list);
        else
            tti_csv_list(list, name);
    }
    return st != TT_OK ? st : list->failed ? TT_ENOMEM : TT_OK;
}

static int64_t count_columns(tt_ctx *ctx, const tt_csv_opts *o)
{
    tti_columns c;
    tt_csv_opts all = *o;
    all.x = "";
    all.y = "-";
    if (tti_csv_columns(ctx, &all, &c) != TT_OK)
        return -1;
    int64_t n = c.n;
    tti_columns_free(ctx, &c);
    return n;
}

// What else the training data was read with.
static void keep_options(const json_t *columns, tt_csv_opts *c)
{
    const char *tables = json_string_value(json_object_get(columns, "tables"));
    const char *quote = json_string_value(json_object_get(columns, "quote"));
    const char *decimal = json_string_value(json_object_get(columns, "decimal"));
    c->tables = tables != NULL ? tables : "";
    c->quote = quote != NULL ? quote : "\"";
    c->decimal = decimal != NULL ? decimal : ".";
    c->hash = (int)json_integer_value(json_object_get(columns, "hash"));
    c->missing = json_integer_value(json_object_get(columns, "missing")) == TT_MISSING_NAN
                     ? TT_MISSING_NAN
                     : TT_MISSING_ERROR;
    c->unseen = json_integer_value(json_object_get(columns, "unseen")) == TT_UNSEEN_ZEROS
                    ? TT_UNSEEN_ZEROS
                    : TT_UNSEEN_ERROR;
    c->window = (int)json_integer_value(json_object_get(columns, "window"));
    c->horizon = (int)json_integer_value(json_object_get(columns, "horizon"));
    c->stride = (int)json_integer_value(json_object_get(columns, "stride"));
}

static tt_data *open_csv(const opening *o)
{
    const json_t *columns = json_object_get(o->use->data, "columns");
    const char *comma = json_string_value(json_object_get(columns, "comma"));
    tti_text x = {.ctx = o->ctx}, y = {.ctx = o->ctx}, words = {.ctx = o->ctx};
    tti_text categories = {.ctx = o->ctx}, dates = {.ctx = o->ctx};
    tt_csv_opts c = {.opts_size = sizeof(c),
                     .file = o->file,
                     .x = "",
                     .y = o->with_target ? "" : "-",
                     .comma = comma != NULL ? comma : ",",
                     .no_header = json_is_true(json_object_get(columns, "no_header")),
                     .words = ""};
    const tti_described_field *target = o->use->n_fields > 1 ? &o->use->fields[1] : NULL;
    int64_t n = columns != NULL ? count_columns(o->ctx, &c) : 0;
    tt_status st = n < 0 ? tt_status_of(o->ctx) : TT_OK;
    if (columns != NULL && st == TT_OK)
        st = list_columns(o, columns, "x", n, &x);
    if (columns != NULL && st == TT_OK && o->with_target)
        st = list_columns(o, columns, "y", n, &y);
    if (columns != NULL && st == TT_OK)
        st = list_columns(o, columns, "categories", n, &categories);
    if (columns != NULL && st == TT_OK)
        st = list_columns(o, columns, "dates", n, &dates);
    c.categories = categories.s != NULL ? categories.s : "";
    c.dates = dates.s != NULL ? dates.s : "";
    keep_options(columns, &c);
    for (size_t i = 0; target != NULL && i < json_array_size(target->words); i++)
        tti_csv_list(&words, json_string_value(json_array_get(target->words, i)));
    c.classes = o->with_target && target != NULL && target->field.dtype == TT_I32;
    if (x.s != NULL)
        c.x = x.s;
    if (y.s != NULL)
        c.y = y.s;
    if (words.s != NULL && c.classes)
        c.words = words.s;
    c.no_shuffle = true;
    tt_data *d = st == TT_OK ? tt_csv_with(o->ctx, &c) : NULL;
    tti_text_free(&x);
    tti_text_free(&y);
    tti_text_free(&words);
    tti_text_free(&categories);
    tti_text_free(&dates);
    return d;
}

// ---- arrays ----------------------------------------------------------------------------------

static const char *field_of(const opening *o, int input)
{
    int at = o->use->data != NULL ? o->use->input_field[input] : -1;
    return at >= 0 ? o->use->fields[at].field.name : o->m->model->inputs[input]->name;
}

static tt_data *open_npz(const opening *o)
{
    const char *names[TT_MAX_FIELDS];
    int n = 0, n_inputs = o->m->model->n_inputs;
    tt_source source;
    for (int i = 0; i < n_inputs; i++)
        names[n++] = field_of(o, i);
    for (int i = 0; i < o->use->n_outputs && n < TT_MAX_FIELDS; i++) {
        int target = o->use->outputs[i].target;
        bool has = o->with_target;
        if (target < 0)
            continue;
        if (!has) { // a label, to be shown
            tti_bytes zip = {.fd = -1};
            if (tti_bytes_open(o->ctx, o->file, 0, &zip) != TT_OK ||
                tti_npz_has(o->ctx, &zip, o->use->fields[target].field.name, &has) != TT_OK)
                has = false;
            tti_bytes_close(o->ctx, &zip);
        }
        bool known = false;
        for (int k = 0; k < n; k++)
            known |= strcmp(names[k], o->use->fields[target].field.name) == 0;
        if (has && !known)
            names[n++] = o->use->fields[target].field.name;
    }
    if (tt_status_of(o->ctx) != TT_OK ||
        tti_npz_fields(o->ctx, o->file, names, n_inputs, n, &source) != TT_OK)
        return NULL;
    return tt_data_new(o->ctx, &source, .no_shuffle = true);
}

static tt_data *open_arrays(const opening *o, kind k)
{
    char x[TTI_PATH_MAX];
    const char *y = split(o->file, x);
    if (o->m->model->n_inputs > 1) {
        (void)TT_FAIL(o->ctx, TT_EINVAL,
                      "%s: the model has %d inputs; give an .npz file with arrays of their names",
                      o->file, o->m->model->n_inputs);
        return NULL;
    }
    if (o->with_target && y == NULL) {
        (void)TT_FAIL(o->ctx, TT_EINVAL,
                      "%s: has no targets; give two files, %s,Y, or an .npz with both", o->file,
                      o->file);
        return NULL;
    }
    if (k == IS_NPY)
        return tt_npy(o->ctx, .x = x, .y = y != NULL ? y : "", .no_shuffle = true);
    return tt_idx(o->ctx, .x = x, .y = y != NULL ? y : "", .no_shuffle = true);
}

// ---- checks ----------------------------------------------------------------------------------

static bool same_shape(const tt_shape *a, const tt_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

// What may have happened to records of another shape.
static const char *shape_advice(const tt_shape *has, const tt_shape *wants)
{
    bool pictures = has->rank == 3 && wants->rank == 3;
    if (pictures && has->dim[0] == wants->dim[2] && has->dim[1] == wants->dim[0] &&
        has->dim[2] == wants->dim[1])
        return ": its channels come first, but the model takes channels last (NHWC); --layout nchw "
               "converts them";
    if (tt_shape_count(has) == tt_shape_count(wants))
        return ": the number of values is the same; reshape the array if its values are in that "
               "order";
    return "";
}

static tt_status compare(const opening *o, const tt_field *has, const tt_field *wants,
                         const char *input)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    if (!same_shape(&has->shape, &wants->shape))
        return TT_FAIL(o->ctx, TT_ESHAPE,
                       "%s: records have shape %s, but the model's input '%s' has %s%s", o->file,
                       tt_shape_text(&has->shape, a), input, tt_shape_text(&wants->shape, b),
                       shape_advice(&has->shape, &wants->shape));
    if (has->dtype != wants->dtype)
        return TT_FAIL(o->ctx, TT_EDTYPE,
                       "%s: records are %s, but the model's input '%s' takes %s; save the array "
                       "with that type and range",
                       o->file, tt_dtype_name(has->dtype), input, tt_dtype_name(wants->dtype));
    return TT_OK;
}

static int field_named(const tt_field *fields, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return i;
    return -1;
}

// Before the preprocessing, so that messages have the shapes of the file.
static tt_status compare_raw(const opening *o, const tt_data *d)
{
    tt_field fields[TT_MAX_FIELDS];
    int n = tt_data_fields(d, fields);
    for (int i = 0; o->use->data != NULL && i < o->m->model->n_inputs; i++) {
        int at = field_named(fields, n, field_of(o, i)), wants = o->use->input_field[i];
        if (at >= 0 && wants >= 0)
            TT_TRY(compare(o, &fields[at], &o->use->fields[wants].field,
                           o->m->model->inputs[i]->name));
    }
    return TT_OK;
}

tt_status cli_input_match(cli_model *m, const char *file, const tt_data *d,
                          int field[TTI_MAX_INPUTS])
{
    opening o = {.m = m, .ctx = m->j.ctx, .use = tti_use_get(m->model), .file = file};
    tt_field fields[TT_MAX_FIELDS];
    int n = tt_data_fields(d, fields);
    if (o.use == NULL)
        return tt_status_of(o.ctx);
    for (int i = 0; i < m->model->n_inputs; i++) {
        tt_port port;
        field[i] = field_named(fields, n, field_of(&o, i));
        if (field[i] < 0 && m->model->n_inputs == 1)
            field[i] = 0;
        if (field[i] < 0)
            return TT_FAIL(o.ctx, TT_EINVAL, "%s: has no field '%s', which the model needs", file,
                           field_of(&o, i));
        TT_TRY(tt_model_input(m->model, i, &port));
        tt_field wants = {.dtype = port.dtype, .shape = port.shape};
        TT_TRY(compare(&o, &fields[field[i]], &wants, port.name));
    }
    return TT_OK;
}

// Names as the model's data had them: what a file calls x may be called otherwise there.
static void rename_fields(const opening *o, tt_data *d)
{
    const char *target = NULL;
    for (int i = 0; i < o->use->n_outputs && target == NULL; i++)
        if (o->use->outputs[i].target >= 0)
            target = o->use->fields[o->use->outputs[i].target].field.name;
    for (int i = 0; i < 2 && i < d->source.n_fields; i++) {
        const char *name = i == 0 ? field_of(o, 0) : target;
        if (name == NULL || strlen(name) >= sizeof(d->fields[i].name))
            continue;
        strcpy(d->fields[i].name, name);
        strcpy(d->source.fields[i].name, name);
    }
}

// ---- opening ---------------------------------------------------------------------------------
static tt_status channels_last(const opening *o, const char *layout, tt_data *d)
{
    if (layout == NULL || strcmp(layout, "nhwc") == 0)
        return TT_OK;
    for (int i = 0; i < o->m->model->n_inputs; i++)
        TT_TRY(tt_transform(d, "channels_last", .field = field_of(o, i)));
    return TT_OK;
}

tt_status cli_input_open(cli_model *m, const char *file, bool with_target, const char *layout,
                         tt_data **out)
{
    opening o = {.m = m, .ctx = m->j.ctx, .file = file, .with_target = with_target};
    char first[TTI_PATH_MAX];
    kind k = IS_CSV;
    o.use = tti_use_get(m->model);
    if (o.use == NULL)
        return tt_status_of(o.ctx);
    const json_t *vocabulary = json_object_get(o.use->data, "vocabulary");
    if (vocabulary != NULL && with_target)
        return cli_input_text(m, file, vocabulary, out);
    if (vocabulary != NULL)
        return TT_FAIL(o.ctx, TT_EUNSUPPORTED,
                       "the model was trained on text: give --prompt TEXT to continue a text, or "
                       "use tutti eval --data FILE");
    (void)split(file, first);
    tt_data *d = NULL;
    bool is_own = cli_input_kind(m, file, with_target, &d);
    if (!is_own) {
        TT_TRY(find_kind(o.ctx, first, &k));
        d = k == IS_CSV ? open_csv(&o) : k == IS_NPZ ? open_npz(&o) : open_arrays(&o, k);
    }
    if (d == NULL)
        return tt_status_of(o.ctx);
    if (k != IS_NPZ && !is_own)
        rename_fields(&o, d);
    tt_status st = channels_last(&o, layout, d);
    if (st == TT_OK)
        st = compare_raw(&o, d);
    if (st == TT_OK)
        st = tt_model_prepare(m->model, d);
    if (st != TT_OK) {
        tt_data_free(d);
        return st;
    }
    *out = d;
    return TT_OK;
}
