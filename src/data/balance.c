/*
 * balance.c - as many records of each class: those of smaller classes are repeated, in the order of
 * the source, until their class is as large as the largest. The list is made once, so that an epoch
 * is a permutation of it as of any other data set.
 */
#include "data/data.h"
#include <string.h>

#define MOST_CLASSES 1000000

static int64_t value_of(tt_dtype t, const void *x)
{
    return t == TT_I32   ? *(const int32_t *)x
           : t == TT_I64 ? *(const int64_t *)x
                         : *(const uint8_t *)x;
}

// The class of each record, and how many each has.
static tt_status read_classes(tt_data *d, int field, int64_t classes, int64_t *label, int64_t *size)
{
    tti_single one;
    tt_status st = tti_single_open(d, &one);
    for (int64_t i = 0; st == TT_OK && i < d->count; i++) {
        int64_t record = tti_data_record(d, i);
        st = tti_single_read(&one, record);
        label[i] = st == TT_OK ? value_of(d->fields[field].dtype, one.slot.fields[field]) : 0;
        if (st == TT_OK && (label[i] < 0 || label[i] >= classes))
            st = TT_FAIL(d->ctx, TT_EINVAL,
                         "balance: record %lld: class %lld of field '%s' is not below %lld",
                         (long long)record, (long long)label[i], d->fields[field].name,
                         (long long)classes);
        if (st == TT_OK)
            size[label[i]]++;
        if (i % 64 == 0)
            atomic_fetch_add_explicit(&d->ctx->pulse, 1, memory_order_relaxed);
    }
    tti_single_close(&one);
    return st;
}

// Round after round over the records: in round k those of classes that k rounds do not fill.
static void repeat(tt_data *d, const int64_t *label, const int64_t *size, int64_t most,
                   int64_t *left, int64_t classes, int64_t *out)
{
    int64_t n = 0;
    for (int64_t c = 0; c < classes; c++)
        left[c] = size[c] > 0 ? most : 0;
    for (bool more = true; more;) {
        more = false;
        for (int64_t i = 0; i < d->count; i++) {
            if (left[label[i]] == 0)
                continue;
            out[n++] = tti_data_record(d, i);
            more |= --left[label[i]] > 0;
        }
    }
}

static tt_status balance(tt_data *d, int field, int64_t *label, int64_t *size, int64_t classes)
{
    int64_t most = 0, present = 0, all;
    TT_TRY(read_classes(d, field, classes, label, size));
    for (int64_t c = 0; c < classes; c++) {
        most = TTI_MAX(most, size[c]);
        present += size[c] > 0;
    }
    if (!tti_mul_i64(most, present, &all) || all > INT64_MAX / 16)
        return TT_FAIL(d->ctx, TT_EINVAL, "balance: the classes are too large together");
    int64_t *subset = tti_alloc(d->ctx, (size_t)all * sizeof(*subset));
    if (subset == NULL)
        return TT_ENOMEM;
    repeat(d, label, size, most, size + classes, classes, subset);
    tti_ring_free(d); // sizes change
    tti_free(d->ctx, d->subset);
    d->subset = subset;
    d->count = all;
    return TT_OK;
}

tt_status tt_data_balance(tt_data *d, const char *field)
{
    int f = -1;
    if (d == NULL)
        return TT_EINVAL;
    if (tti_is_stuck(d->ctx))
        return tt_status_of(d->ctx);
    field = field != NULL ? field : "y";
    for (int i = 0; i < d->source.n_fields; i++)
        if (strcmp(d->fields[i].name, field) == 0)
            f = i;
    if (f < 0)
        return TT_FAIL(d->ctx, TT_EINVAL, "balance: %s has no field '%.64s'", tti_data_name(d),
                       field);
    const tt_field *t = &d->fields[f];
    bool is_class = t->dtype == TT_I32 || t->dtype == TT_I64 || t->dtype == TT_U8;
    if (!is_class || tt_shape_count(&t->shape) != 1 || t->classes < 1 || t->classes > MOST_CLASSES)
        return TT_FAIL(d->ctx, TT_EDTYPE,
                       "balance: field '%s' is not one class per record; balance needs classes "
                       "(classes: true)",
                       field);
    if (d->n_transforms > 0 || d->is_started || d->lane_first != NULL)
        return TT_FAIL(d->ctx, TT_EINVAL,
                       "balance: must come before transforms and tt_data_start(), and not with "
                       "records that belong to lanes");
    int64_t *label = tti_alloc(d->ctx, (size_t)d->count * sizeof(*label));
    int64_t *size = tti_calloc(d->ctx, (size_t)t->classes, 2 * sizeof(*size));
    tt_status st =
        label != NULL && size != NULL ? balance(d, f, label, size, t->classes) : TT_ENOMEM;
    tti_free(d->ctx, label);
    tti_free(d->ctx, size);
    return st;
}
