/*
 * fill_missing.c - replaces nan by a number: one that is given, or the mean of the values that are
 * there, of each column (last axis) of the training data. As in normalise, a model keeps the
 * numbers as if they had been given.
 */
#include "base/value.h"
#include "data/data.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

static int64_t columns_of(const tt_field *f)
{
    return f->shape.rank == 0 ? 1 : f->shape.dim[f->shape.rank - 1];
}

static tt_status check(tt_ctx *ctx, const tti_transform *t)
{
    if (t->in.dtype != TT_F32)
        return TT_FAIL(ctx, TT_EDTYPE, "fill_missing: field '%s' is %s; it must be f32", t->in.name,
                       tt_dtype_name(t->in.dtype));
    return TT_OK;
}

// table: the number of each column.
static tt_status fill_prepare(tt_ctx *ctx, tti_transform *t)
{
    int64_t n = columns_of(&t->in), got = 0;
    TT_TRY(check(ctx, t));
    float *table = tti_calloc(ctx, (size_t)n, sizeof(*table));
    if (table == NULL)
        return TT_ENOMEM;
    tt_status st = TT_OK;
    for (const char *s = t->opts.means; *s != '\0' && st == TT_OK; got++) {
        char text[64];
        size_t len = strcspn(s, ",");
        float v;
        memcpy(text, s, TTI_MIN(len, sizeof(text) - 1));
        text[TTI_MIN(len, sizeof(text) - 1)] = '\0';
        if (!tti_float_parse(text, &v) || !isfinite(v))
            st = TT_FAIL(ctx, TT_EINVAL, "fill_missing: means: '%s' is not a finite number", text);
        else if (got < n)
            table[got] = v;
        s += len + (s[len] == ',');
    }
    if (st == TT_OK && got != 0 && got != n)
        st = TT_FAIL(ctx, TT_EINVAL, "fill_missing: %lld means for %lld columns", (long long)got,
                     (long long)n);
    if (st == TT_OK && !isfinite(t->opts.value))
        st = TT_FAIL(ctx, TT_EINVAL, "fill_missing: value must be finite");
    for (int64_t i = 0; got == 0 && i < n; i++)
        table[i] = (float)t->opts.value;
    if (st != TT_OK) {
        tti_free(ctx, table);
        return st;
    }
    t->table = table;
    t->opts.depth = n;
    return TT_OK;
}

static tt_status measure(tt_data *d, const tti_transform *t, int64_t n, double *sum, double *count)
{
    tti_single one;
    tt_status st = tti_single_open(d, &one);
    for (int64_t i = 0; st == TT_OK && i < d->count; i++) {
        st = tti_single_read(&one, tti_data_record(d, i));
        const float *x = one.slot.fields[t->field];
        for (int64_t k = 0; st == TT_OK && k < tt_shape_count(&t->in.shape); k++)
            if (!isnan(x[k])) {
                sum[k % n] += (double)x[k];
                count[k % n]++;
            }
        if (i % 64 == 0)
            atomic_fetch_add_explicit(&d->ctx->pulse, 1, memory_order_relaxed);
        if (st == TT_OK && i % 64 == 0 && atomic_load(&d->ctx->stop))
            st = TT_FAIL(d->ctx, TT_ESTOP, "fill_missing: stopped on request");
    }
    tti_single_close(&one);
    return st;
}

static tt_status like_table(tt_data *d, const tti_transform *t, int64_t n, tti_text *list)
{
    const tt_data *like = t->opts.like;
    for (int i = 0; i < like->n_transforms; i++) {
        const tti_transform *u = &like->transforms[i];
        if (u->def != t->def || u->place != t->place || strcmp(u->in.name, t->in.name) != 0 ||
            u->opts.depth != n)
            continue;
        for (int64_t k = 0; k < n; k++)
            tti_text_add(list, "%s%.9g", k > 0 ? ", " : "", (double)u->table[k]);
        return TT_OK;
    }
    return TT_FAIL(d->ctx, TT_EINVAL,
                   "fill_missing: the data set in like has no fill_missing of %lld columns at the "
                   "same place of field '%s'",
                   (long long)n, t->in.name);
}

static tt_status fill_fit(tt_data *d, tti_transform *t, char *own[2])
{
    int64_t n = columns_of(&t->in);
    tti_text list = {.ctx = d->ctx};
    if (t->opts.fit == TT_NORMALISE_GIVEN)
        return TT_OK;
    TT_TRY(check(d->ctx, t));
    if (t->opts.value != 0 || t->opts.means[0] != '\0')
        return TT_FAIL(d->ctx, TT_EINVAL, "fill_missing: give either fit or value, not both");
    double *sum = tti_calloc(d->ctx, (size_t)n, 2 * sizeof(*sum));
    if (sum == NULL)
        return TT_ENOMEM;
    tt_status st =
        t->opts.like != NULL ? like_table(d, t, n, &list) : measure(d, t, n, sum, sum + n);
    for (int64_t k = 0; st == TT_OK && t->opts.like == NULL && k < n; k++) {
        if (sum[n + k] == 0)
            st =
                TT_FAIL(d->ctx, TT_EINVAL,
                        "fill_missing: column %lld of field '%s' has no value in any record; leave "
                        "it out (skip)",
                        (long long)k, t->in.name);
        tti_text_add(&list, "%s%.9g", k > 0 ? ", " : "", (double)(float)(sum[k] / sum[n + k]));
    }
    t->opts.fit = TT_NORMALISE_GIVEN;
    tti_free(d->ctx, sum);
    if (st == TT_OK) {
        t->opts.means = own[0] = tti_text_take(&list);
        return own[0] != NULL ? TT_OK : TT_ENOMEM;
    }
    tti_text_free(&list);
    return st;
}

static tt_status fill_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                            const tti_philox *random, tti_decode_room *room, const void *x, void *y)
{
    int64_t n = tt_shape_count(&t->in.shape), columns = t->opts.depth;
    (void)ctx, (void)record, (void)random, (void)room;
    for (int64_t i = 0; i < n; i++) {
        float v = ((const float *)x)[i];
        ((float *)y)[i] = isnan(v) ? t->table[i % columns] : v;
    }
    return TT_OK;
}

static const char *const fit_words[] = {"false", "true", "fit", "mean", NULL}; // tt_normalise
// clang-format off
static const tt_option fill_options[] = {
    TTI_FIELD_ROW,
    {"value", TT_OPT_FLOAT, "0", "the number that replaces a missing value",
     offsetof(tt_transform_opts, value), 0, 0, NULL},
    {"means", TT_OPT_TEXT, "", "one number per column (last axis), instead of value",
     offsetof(tt_transform_opts, means), 0, 0, NULL},
    {"fit", TT_OPT_ENUM, "false",
     "mean (or true): take the mean of each column of the training data, of the values that are "
     "there",
     offsetof(tt_transform_opts, fit), 0, 0, fit_words},
    TT_OPTION_END,
};
// clang-format on

const tti_transform_def tti_transform_fill_missing = {
    .name = "fill_missing",
    .help = "replace missing values (nan)",
    .options = fill_options,
    .main = "fit",
    .fit = fill_fit,
    .prepare = fill_prepare,
    .apply = fill_apply,
};
