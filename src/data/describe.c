/*
 * describe.c - data sets as JSON (describe.h).
 */
#include "data/describe.h"
#include "data/csv.h"
#include "data/shards.h"
#include "data/text.h"
#include <string.h>

// ---- out -------------------------------------------------------------------------------------

static void put_texts(tti_text *t, char *const *names, const int64_t *order, int64_t n)
{
    tti_text_add(t, "[");
    for (int64_t i = 0; i < n; i++) {
        tti_text_add(t, "%s", i > 0 ? ", " : "");
        tti_text_json(t, names[order != NULL ? order[i] : i]);
    }
    tti_text_add(t, "]");
}

// Names of columns by their place among inputs or targets.
static void put_columns(tti_text *t, const tti_csv_about *c, const int32_t *place, int64_t n)
{
    int64_t *order = tti_calloc(t->ctx, (size_t)n + 1, sizeof(*order));
    t->failed |= order == NULL;
    for (int64_t i = 0; order != NULL && i < c->n; i++)
        if (place[i] >= 0)
            order[place[i]] = i;
    put_texts(t, c->names, order, order != NULL ? n : 0);
    tti_free(t->ctx, order);
}

static void put_csv(tti_text *t, const tti_csv_about *c)
{
    char comma[2] = {c->comma, '\0'};
    tti_text_add(t, ", \"columns\": {\"x\": ");
    put_columns(t, c, c->x, c->n_x);
    tti_text_add(t, ", \"y\": ");
    put_columns(t, c, c->y, c->n_y);
    tti_text_add(t, ", \"all\": ");
    put_texts(t, c->names, NULL, c->n);
    tti_text_add(t, ", \"comma\": ");
    tti_text_json(t, c->comma == '\t' ? "tab" : comma);
    tti_text_add(t, ", \"no_header\": %s", c->no_header ? "true" : "false");
    tti_csv_describe(c, t);
    tti_text_add(t, "}");
}

static void put_vocabulary(tti_text *t, const tti_vocab *v)
{
    tti_text_add(t, ", \"vocabulary\": ");
    if (v->is_bytes) {
        tti_text_add(t, "\"bytes\"");
        return;
    }
    for (int64_t i = 0; i < v->n; i++)
        tti_text_add(t, "%s%u", i > 0 ? ", " : "[", v->points[i]);
    tti_text_add(t, "]");
}

char *const *tti_data_words(const tt_data *d, int64_t *n)
{
    tti_csv_about csv = {0};
    char *const *words = NULL;
    *n = 0;
    if (d == NULL)
        return NULL;
    if (tti_csv_about_of(d, &csv)) {
        *n = csv.n_words;
        return csv.words;
    }
    if ((words = tti_images_words(d, n)) == NULL && (words = tti_jsonl_words(d, n)) == NULL)
        words = tti_webdataset_words(d, n);
    return words;
}

// What is done to image files, so that it is done to others, too.
static void put_images(tti_text *t, const tt_data *d)
{
    tti_images_about a;
    if (tti_images_about_of(d, &a) || tti_tfrecord_about(d, &a) || tti_webdataset_about(d, &a))
        tti_text_add(t,
                     ", \"images\": {\"size\": [%d, %d], \"channels\": %d, \"fit\": %d, "
                     "\"scaled\": %s, \"max_pixels\": %lld}",
                     a.high, a.wide, a.channels, (int)a.fit, a.scaled ? "true" : "false",
                     (long long)a.max_pixels);
}

void tti_data_describe(const tt_data *d, tti_text *t)
{
    tti_csv_about csv = {0};
    tti_vocab vocab;
    bool is_csv = tti_csv_about_of(d, &csv);
    tti_text_add(t, "{\"source\": \"%s\", \"fields\": [", tti_data_name(d));
    for (int i = 0; i < d->source.n_fields; i++) {
        const tt_field *f = &d->source.fields[i];
        tti_text_add(t, "%s{\"name\": ", i > 0 ? ", " : "");
        tti_text_json(t, f->name);
        tti_text_add(t, ", \"type\": \"%s\", \"shape\": ", tt_dtype_name(f->dtype));
        tti_shape_json(t, &f->shape);
        tti_text_add(t, ", \"classes\": %lld", (long long)f->classes);
        int64_t n_words;
        char *const *words = tti_data_words(d, &n_words);
        if (i == 1 && words != NULL) {
            tti_text_add(t, ", \"words\": ");
            put_texts(t, words, NULL, n_words);
        }
        tti_text_add(t, "}");
    }
    tti_text_add(t, "]");
    if (is_csv)
        put_csv(t, &csv);
    put_images(t, d);
    tti_jsonl_describe(d, t);
    tti_tfrecord_describe(d, t);
    if (tti_text_vocab(d, &vocab))
        put_vocabulary(t, &vocab);
    tti_text_add(t, ", \"transforms\": [");
    const char *comma = "";
    for (int i = 0; i < d->n_transforms; i++) {
        const tti_transform *f = &d->transforms[i];
        if (strncmp(f->def->name, "random_", 7) == 0)
            continue;
        tti_text_add(t, "%s{\"kind\": \"%s\", \"field\": ", comma, f->def->name);
        tti_text_json(t, f->in.name);
        tti_text_add(t, ", \"options\": %s}", f->about);
        comma = ", ";
    }
    tti_text_add(t, "]}");
}

// ---- in --------------------------------------------------------------------------------------

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static tt_status read_field(tt_ctx *ctx, const char *file, const json_t *o,
                            tti_described_field *out)
{
    const char *name = text_of(o, "name");
    const json_t *words = json_object_get(o, "words");
    *out = (tti_described_field){0};
    if (name[0] == '\0' || strlen(name) >= sizeof(out->field.name) ||
        !tti_shape_of_json(json_object_get(o, "shape"), &out->field.shape))
        return TT_FAIL(ctx, TT_EPARSE, "%s: the description of the data has no valid field '%.64s'",
                       file, name);
    strcpy(out->field.name, name);
    out->field.classes = json_integer_value(json_object_get(o, "classes"));
    out->words = json_is_array(words) ? words : NULL;
    return tti_parse_dtype(ctx, text_of(o, "type"), &out->field.dtype);
}

int tti_described_fields(tt_ctx *ctx, const char *file, const json_t *o,
                         tti_described_field out[TT_MAX_FIELDS])
{
    const json_t *list = json_object_get(o, "fields");
    if (json_array_size(list) > TT_MAX_FIELDS) {
        (void)TT_FAIL(ctx, TT_EPARSE, "%s: the description of the data has too many fields", file);
        return -1;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        if (read_field(ctx, file, json_array_get(list, i), &out[i]) != TT_OK)
            return -1;
    return (int)json_array_size(list);
}

static bool has_field(const tt_data *d, const char *name)
{
    for (int i = 0; i < d->source.n_fields; i++)
        if (strcmp(d->fields[i].name, name) == 0)
            return true;
    return false;
}

tt_status tti_described_transforms(tt_data *d, const char *file, const json_t *o)
{
    const json_t *list = json_object_get(o, "transforms");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *field = text_of(one, "field"), *kind = text_of(one, "kind");
        const tti_transform_def *def = tti_transform_find(kind);
        tt_transform_opts opts = {.opts_size = sizeof(opts)};
        if (def == NULL)
            return TT_FAIL(d->ctx, TT_EUNSUPPORTED,
                           "%s: there is no transform '%.64s' in this version", file, kind);
        if (!has_field(d, field))
            continue;
        TT_TRY(tti_options_of_json(d->ctx, file, kind, def->options,
                                   json_object_get(one, "options"), &opts));
        opts.field = field;
        TT_TRY(tt_transform_with(d, kind, &opts));
    }
    return TT_OK;
}
