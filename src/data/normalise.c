/*
 * normalise.c - (x - mean) / scale, with one pair of numbers, or one for each channel (last axis).
 * The numbers are given, or taken from the data when the transform is added; from then on it is as
 * if they had been given, so that a model keeps them and other data sets can have the same.
 */
#include "base/value.h"
#include "data/data.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define MAX_CHANNELS 4096
#define NUMBER_TEXT  64

static int64_t channels_of(const tt_field *f)
{
    return f->shape.rank == 0 ? 1 : f->shape.dim[f->shape.rank - 1];
}

// Numbers of a list, one for each of n channels; an empty list gives each the same one.
static tt_status read_list(tt_ctx *ctx, const char *what, const char *list, double same, int64_t n,
                           float *out)
{
    int64_t got = 0;
    const char *s = list;
    while (s != NULL && *s != '\0') {
        char text[NUMBER_TEXT];
        size_t len = strcspn(s, ",");
        float v;
        memcpy(text, s, TTI_MIN(len, sizeof(text) - 1));
        text[TTI_MIN(len, sizeof(text) - 1)] = '\0';
        if (!tti_float_parse(text, &v))
            return TT_FAIL(ctx, TT_EINVAL, "normalise: %s: '%s' is not a number", what, text);
        if (got < n)
            out[got] = v;
        got++;
        s += len + (s[len] == ',');
    }
    if (got != 0 && got != n)
        return TT_FAIL(ctx, TT_EINVAL, "normalise: %lld %s for %lld channels", (long long)got, what,
                       (long long)n);
    for (int64_t i = 0; got == 0 && i < n; i++)
        out[i] = (float)same;
    return TT_OK;
}

static tt_status check_type(tt_ctx *ctx, const tti_transform *t, int64_t channels)
{
    if (t->in.dtype != TT_F32 && t->in.dtype != TT_U8)
        return TT_FAIL(ctx, TT_EDTYPE, "normalise: field '%s' is %s; it must be f32 or u8",
                       t->in.name, tt_dtype_name(t->in.dtype));
    if (channels > MAX_CHANNELS)
        return TT_FAIL(ctx, TT_EINVAL, "normalise: lists for %lld channels; at most %d are allowed",
                       (long long)channels, MAX_CHANNELS);
    return TT_OK;
}

// table: the mean of each channel, then the scale of each.
static tt_status normalise_prepare(tt_ctx *ctx, tti_transform *t)
{
    int64_t n = channels_of(&t->in);
    const tt_transform_opts *o = &t->opts;
    bool has_list = o->means[0] != '\0' || o->scales[0] != '\0';
    if (!has_list)
        n = 1;
    TT_TRY(check_type(ctx, t, n));
    float *table = tti_calloc(ctx, (size_t)n, 2 * sizeof(*table));
    if (table == NULL)
        return TT_ENOMEM;
    tt_status st = read_list(ctx, "means", o->means, o->mean, n, table);
    if (st == TT_OK)
        st = read_list(ctx, "scales", o->scales, o->scale, n, table + n);
    for (int64_t i = 0; st == TT_OK && i < n; i++)
        if (!(table[n + i] != 0.0f) || !__builtin_isfinite(table[n + i]) ||
            !__builtin_isfinite(table[i]))
            st = TT_FAIL(
                ctx, TT_EINVAL,
                "normalise: mean is %g and scale is %g; both must be finite and scale not 0",
                (double)table[i], (double)table[n + i]);
    if (st != TT_OK) {
        tti_free(ctx, table);
        return st;
    }
    t->table = table;
    t->opts.depth = n; // channels of the table
    t->out.dtype = TT_F32;
    t->out.classes = 0;
    return TT_OK;
}

// ---- numbers from the data -------------------------------------------------------------------

// Mean and sum of squared deviations of a channel, after so many values.
typedef struct moments {
    double n, mean, squares;
} moments;

static void add_value(moments *m, double v)
{
    double before = v - m->mean;
    m->n++;
    m->mean += before / m->n;
    m->squares += before * (v - m->mean);
}

static tt_status refuse_value(tt_data *d, int64_t record, int field, int64_t element)
{
    tti_text where = {.ctx = d->ctx};
    tti_data_where(d, record, field, element, &where);
    tt_status st = TT_FAIL(d->ctx, TT_EINVAL,
                           "normalise: fit: %s is not a finite number; replace such values, or "
                           "leave the record out",
                           where.s != NULL ? where.s : "a value");
    tti_text_free(&where);
    return st;
}

static tt_status add_record(tt_data *d, const tti_transform *t, int64_t record, const void *x,
                            int64_t channels, moments *m)
{
    int64_t n = tt_shape_count(&t->in.shape);
    for (int64_t k = 0; k < n; k++) {
        double v = t->in.dtype == TT_U8 ? ((const uint8_t *)x)[k] : ((const float *)x)[k];
        if (!isfinite(v))
            return refuse_value(d, record, t->field, k);
        add_value(&m[k % channels], v);
    }
    return TT_OK;
}

/*
 * One pass over the records in their order in the source, so that the numbers do not depend on who
 * reads them. A channel without any deviation has scale 1.
 */
static tt_status measure(tt_data *d, const tti_transform *t, int64_t channels, moments *m,
                         float *table)
{
    tti_single one;
    tt_status st = tti_single_open(d, &one);
    for (int64_t i = 0; st == TT_OK && i < d->count; i++) {
        int64_t record = tti_data_record(d, i);
        st = tti_single_read(&one, record);
        if (st == TT_OK)
            st = add_record(d, t, record, one.slot.fields[t->field], channels, m);
        if (i % 64 == 0) // others who wait for this process see that it goes on
            atomic_fetch_add_explicit(&d->ctx->pulse, 1, memory_order_relaxed);
        if (i % 64 == 0 && atomic_load(&d->ctx->stop))
            st = TT_FAIL(d->ctx, TT_ESTOP, "normalise: stopped on request");
    }
    tti_single_close(&one);
    for (int64_t k = 0; st == TT_OK && k < channels; k++) {
        float scale = (float)sqrt(m[k].squares / m[k].n);
        table[k] = (float)m[k].mean;
        table[channels + k] = scale > 0 ? scale : 1;
    }
    return st;
}

static tt_status fit_table(tt_data *d, const tti_transform *t, int64_t channels, float *table)
{
    moments *m = tti_calloc(d->ctx, (size_t)channels, sizeof(*m));
    if (m == NULL)
        return TT_ENOMEM;
    tt_status st = measure(d, t, channels, m, table);
    tti_free(d->ctx, m);
    return st;
}

// The numbers of the same transform of another data set.
static tt_status like_table(tt_data *d, const tti_transform *t, int64_t channels, float *table)
{
    const tt_data *like = t->opts.like;
    for (int i = 0; i < like->n_transforms; i++) {
        const tti_transform *u = &like->transforms[i];
        if (u->def != t->def || u->place != t->place || strcmp(u->in.name, t->in.name) != 0 ||
            u->opts.depth != channels)
            continue;
        memcpy(table, u->table, (size_t)channels * 2 * sizeof(*table));
        return TT_OK;
    }
    return TT_FAIL(d->ctx, TT_EINVAL,
                   "normalise: the data set in like has no normalise of %lld channels at the same "
                   "place of field '%s'",
                   (long long)channels, t->in.name);
}

static tt_status check_fit(tt_data *d, const tti_transform *t, int64_t channels)
{
    for (int i = 0; i < d->n_transforms; i++)
        if (d->transforms[i].field == t->field &&
            strncmp(d->transforms[i].def->name, "random_", 7) == 0)
            return TT_FAIL(d->ctx, TT_EINVAL,
                           "normalise: with fit it must come before %s: the numbers would depend "
                           "on chance",
                           d->transforms[i].def->name);
    if (t->opts.mean != 0 || t->opts.scale != 1 || t->opts.means[0] != '\0' ||
        t->opts.scales[0] != '\0')
        return TT_FAIL(d->ctx, TT_EINVAL, "normalise: give either fit or mean and scale, not both");
    return check_type(d->ctx, t, channels);
}

static char *print_list(tt_ctx *ctx, const float *x, int64_t n)
{
    tti_text s = {.ctx = ctx};
    for (int64_t i = 0; i < n; i++)
        tti_text_add(&s, "%s%.9g", i > 0 ? ", " : "", (double)x[i]); // all bits of a float
    return tti_text_take(&s);
}

// Replaces fit by the numbers, as if they had been given: what a model keeps of it.
static tt_status normalise_fit(tt_data *d, tti_transform *t, char *own[2])
{
    bool all = t->opts.fit == TT_NORMALISE_FIT_ALL;
    int64_t n = all ? 1 : channels_of(&t->in);
    if (t->opts.fit == TT_NORMALISE_GIVEN)
        return TT_OK;
    TT_TRY(check_fit(d, t, n));
    float *table = tti_calloc(d->ctx, (size_t)n, 2 * sizeof(*table));
    if (table == NULL)
        return TT_ENOMEM;
    tt_status st = t->opts.like != NULL ? like_table(d, t, n, table) : fit_table(d, t, n, table);
    t->opts.fit = TT_NORMALISE_GIVEN;
    if (st == TT_OK && all) {
        t->opts.mean = table[0];
        t->opts.scale = table[1];
    } else if (st == TT_OK) {
        t->opts.means = own[0] = print_list(d->ctx, table, n);
        t->opts.scales = own[1] = print_list(d->ctx, table + n, n);
        st = own[0] == NULL || own[1] == NULL ? TT_ENOMEM : TT_OK;
    }
    tti_free(d->ctx, table);
    return st;
}

static tt_status normalise_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                                 const tti_philox *random, tti_decode_room *room, const void *x,
                                 void *y)
{
    (void)room;
    int64_t n = tt_shape_count(&t->in.shape), channels = t->opts.depth;
    const float *mean = t->table, *scale = t->table + channels, *f = x;
    const uint8_t *u = x;
    float *out = y;
    (void)ctx, (void)record, (void)random;
    for (int64_t i = 0; i < n; i += channels)
        for (int64_t c = 0; c < channels; c++) {
            float v = t->in.dtype == TT_U8 ? (float)u[i + c] : f[i + c];
            out[i + c] = (v - mean[c]) / scale[c];
        }
    return TT_OK;
}

static const char *const fit_words[] = {"false", "true", "fit", "all", NULL}; // tt_normalise
// clang-format off
static const tt_option normalise_options[] = {
    TTI_FIELD_ROW,
    {"mean", TT_OPT_FLOAT, "0", "value to subtract", offsetof(tt_transform_opts, mean), 0, 0, NULL},
    {"scale", TT_OPT_FLOAT, "1", "value to divide by",
     offsetof(tt_transform_opts, scale), 0, 0, NULL},
    {"means", TT_OPT_TEXT, "", "one mean per channel (last axis), instead of mean",
     offsetof(tt_transform_opts, means), 0, 0, NULL},
    {"scales", TT_OPT_TEXT, "", "one scale per channel, instead of scale",
     offsetof(tt_transform_opts, scales), 0, 0, NULL},
    {"fit", TT_OPT_ENUM, "false",
     "take mean and standard deviation from the training data: true (or fit) for each channel "
     "(last axis; column of a CSV file), all for one pair of numbers",
     offsetof(tt_transform_opts, fit), 0, 0, fit_words},
    TT_OPTION_END,
};
// clang-format on

const tti_transform_def tti_transform_normalise = {
    .name = "normalise",
    .help = "normalise values: (x - mean) / scale",
    .options = normalise_options,
    .main = "fit",
    .fit = normalise_fit,
    .prepare = normalise_prepare,
    .apply = normalise_apply,
};
