/*
 * where.c - says where a value of a data set is: which data set, file, record, column or field. And
 * labels that a model cannot use, which are refused with it.
 */
#include "data/csv.h"
#include "data/data.h"
#include "data/images.h"

static const char *file_of(const tt_data *d, int field)
{
    return d->n_files == 0 ? NULL : d->files[TTI_MIN(TTI_MAX(field, 0), d->n_files - 1)].path;
}

// "csv 'a.csv'"
static void put_file(const tt_data *d, int field, tti_text *t)
{
    const char *file = file_of(d, field);
    tti_text_add(t, "%s", tti_data_name(d));
    if (file != NULL)
        tti_text_add(t, " '%s'", file);
}

void tti_data_title(const tt_data *d, int field, tti_text *t)
{
    tti_text_add(t, "the %s%sdata", d->role != NULL ? d->role : "", d->role != NULL ? " " : "");
    if (d->def == NULL)
        return;
    tti_text_add(t, " (");
    put_file(d, field, t);
    tti_text_add(t, ")");
}

// "field 'x', element [3, 0]"
static void put_element(const tt_field *f, int64_t element, tti_text *t)
{
    int64_t size = tt_shape_count(&f->shape);
    tti_text_add(t, ", field '%s'", f->name);
    if (element < 0 || f->shape.rank == 0)
        return;
    for (int i = 0; i < f->shape.rank; i++) {
        size /= f->shape.dim[i];
        tti_text_add(t, "%s%lld", i == 0 ? ", element [" : ", ",
                     (long long)(element / size % f->shape.dim[i]));
    }
    tti_text_add(t, "]");
}

void tti_data_where(const tt_data *d, int64_t record, int field, int64_t element, tti_text *t)
{
    if (d->role != NULL)
        tti_text_add(t, "%s data: ", d->role);
    if (d->role == NULL || d->def != NULL) {
        put_file(d, field, t);
        tti_text_add(t, ": ");
    }
    if (tti_csv_where(d, record, field, element, t) || tti_images_where(d, record, t))
        return;
    tti_text_add(t, "record %lld", (long long)record);
    put_element(&d->fields[field], element, t);
}

// ---- labels ----------------------------------------------------------------------------------

static int64_t label_at(tt_dtype type, const void *x, int64_t i)
{
    if (type == TT_I32)
        return ((const int32_t *)x)[i];
    return type == TT_I64 ? ((const int64_t *)x)[i] : ((const uint8_t *)x)[i];
}

// What a label or id should be, and what to do.
static void put_remedy(const tti_labels *l, int64_t label, int64_t classes, tti_text *t)
{
    int64_t last = l->classes - 1, most = TTI_MAX(label + 1, classes);
    if (label < 0) {
        tti_text_add(t, "%ss are 0 to %lld; check the data", l->is_id ? "id" : "label",
                     (long long)last);
        if (label == -1 && !l->is_id)
            tti_text_add(t, ", or ignore it (loss: {cross_entropy: {ignore: -1}})");
    } else if (l->is_id) {
        tti_text_add(t,
                     "'%s' has a vocabulary of %lld, ids 0 to %lld; set vocab: %lld, or check "
                     "the data",
                     l->layer, (long long)l->classes, (long long)last, (long long)most);
    } else {
        tti_text_add(t,
                     "the model's output '%s' has %lld classes, 0 to %lld; give it %lld units, "
                     "or check the labels%s",
                     l->layer, (long long)l->classes, (long long)last, (long long)most,
                     most == l->classes + 1 ? ": they must count from 0" : "");
    }
}

static tt_status bad_label(const tt_data *d, tt_ctx *ctx, int64_t record, int field, int64_t at,
                           int64_t label)
{
    const tti_labels *l = &d->labels[field];
    tti_text t = {.ctx = d->ctx};
    tti_data_where(d, record, field, at, &t);
    tti_text_add(&t, ": the %s is %lld, but ", l->is_id ? "id" : "label", (long long)label);
    put_remedy(l, label, d->fields[field].classes, &t);
    tt_status st = TT_FAIL(ctx, TT_EINVAL, "%s", t.s != NULL ? t.s : "a label is out of range");
    tti_text_free(&t);
    return st;
}

tt_status tti_data_check_labels(const tt_data *d, tt_ctx *ctx, int64_t record, int field,
                                const void *x)
{
    const tti_labels *l = &d->labels[field];
    int64_t n = tt_shape_count(&d->fields[field].shape);
    for (int64_t i = 0; i < n; i++) {
        int64_t v = label_at(d->fields[field].dtype, x, i);
        if ((v < 0 || v >= l->classes) && !(l->has_ignore && v == l->ignore))
            return bad_label(d, ctx, record, field, i, v);
    }
    return TT_OK;
}
