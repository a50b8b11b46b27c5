/*
 * mix.c - random_mixup and random_cutmix: a record is mixed with another one of the data set, which
 * chance chooses by seed, epoch and record alone. They apply after all transforms, wherever they
 * stand in the list, and to all fields: the image or vector, and targets in the same proportion.
 */
#include "data/image.h"
#include <math.h>
#include <stddef.h>

static tt_status mix_check(tt_ctx *ctx, const tti_transform *t)
{
    if (t->in.dtype != TT_F32 && t->in.dtype != TT_U8)
        return TT_FAIL(ctx, TT_EDTYPE, "%s: field '%s' is %s; it must be f32 or u8", t->def->name,
                       t->in.name, tt_dtype_name(t->in.dtype));
    if (!(t->opts.alpha > 0) || t->opts.alpha > 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s: alpha is %g; it must be above 0 and at most 1",
                       t->def->name, t->opts.alpha);
    return TT_OK;
}

static tt_status mixup_prepare(tt_ctx *ctx, tti_transform *t)
{
    return mix_check(ctx, t);
}

static tt_status cutmix_prepare(tt_ctx *ctx, tti_transform *t)
{
    TT_TRY(tti_picture_check(ctx, t));
    return mix_check(ctx, t);
}

tt_status tti_mix_check(tt_data *d, const tti_transform *t)
{
    for (int f = 0; f < d->source.n_fields; f++)
        if (f != t->field && d->fields[f].dtype != TT_F32)
            return TT_FAIL(d->ctx, TT_EDTYPE,
                           "%s: field '%s' is %s, which cannot be mixed; put `one_hot: {field: "
                           "%s}` before it",
                           t->def->name, d->fields[f].name, tt_dtype_name(d->fields[f].dtype),
                           d->fields[f].name);
    return TT_OK;
}

static void blend(const tt_field *f, double keep, void *x, const void *other)
{
    float a = (float)keep, b = (float)(1 - keep);
    int64_t n = tt_shape_count(&f->shape);
    for (int64_t i = 0; i < n; i++)
        tti_image_put(f->dtype, x, i,
                      a * tti_image_get(f->dtype, x, i) + b * tti_image_get(f->dtype, other, i));
}

// A rectangle of the other image, of 1 - keep of the area where all of it is inside. Gives what is
// kept.
static double paste(const tt_field *f, double keep, tti_chance *c, void *x, const void *other)
{
    int64_t high = f->shape.dim[0], wide = f->shape.dim[1];
    double part = sqrt(1 - keep);
    int64_t h = (int64_t)((double)high * part), w = (int64_t)((double)wide * part);
    int64_t row = tti_chance_below(c, high), column = tti_chance_below(c, wide);
    int64_t top = TTI_MAX(row - h / 2, 0), bottom = TTI_MIN(row - h / 2 + h, high);
    int64_t left = TTI_MAX(column - w / 2, 0), right = TTI_MIN(column - w / 2 + w, wide);
    size_t pixel = tti_field_bytes(f) / (size_t)(high * wide);
    for (int64_t r = top; r < bottom && left < right; r++)
        memcpy((char *)x + (size_t)(r * wide + left) * pixel,
               (const char *)other + (size_t)(r * wide + left) * pixel,
               (size_t)(right - left) * pixel);
    int64_t cut = TTI_MAX(bottom - top, 0) * TTI_MAX(right - left, 0);
    return 1 - (double)cut / (double)(high * wide);
}

int64_t tti_mix_partner(const tt_data *d, const tti_transform *t, const tti_philox *random,
                        double *keep, tti_chance *c)
{
    *c = tti_chance_begin(random);
    bool happens = tti_image_happens(c, t->opts.probability);
    uint64_t high = tti_chance_word(c), low = tti_chance_word(c);
    *keep = tti_chance_beta(c, t->opts.alpha);
    if (!happens)
        return -1;
    return tti_data_record(d, (int64_t)((high << 32 | low) % (uint64_t)d->count));
}

void tti_mix(const tt_data *d, const tti_transform *t, double keep, tti_chance *c, void *const *x,
             void *const *other)
{
    if (t->def == &tti_transform_random_cutmix)
        keep = paste(&d->fields[t->field], keep, c, x[t->field], other[t->field]);
    else
        blend(&d->fields[t->field], keep, x[t->field], other[t->field]);
    for (int f = 0; f < d->source.n_fields; f++)
        if (f != t->field)
            blend(&d->fields[f], keep, x[f], other[f]);
}

// What a list of transforms does in its place: nothing.
static tt_status mix_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                           const tti_philox *random, tti_decode_room *room, const void *x, void *y)
{
    (void)ctx, (void)record, (void)random, (void)room;
    memcpy(y, x, tti_field_bytes(&t->in));
    return TT_OK;
}

// clang-format off
static const tt_option mix_options[] = {
    TTI_FIELD_ROW,
    {"alpha", TT_OPT_FLOAT, "1",
     "of the beta distribution of the proportion, above 0 and at most 1: small ones change little",
     offsetof(tt_transform_opts, alpha), 0, 1, NULL},
    TTI_PROBABILITY_ROW("1"),
    TT_OPTION_END,
};
// clang-format on

const tti_transform_def tti_transform_random_mixup = {
    .name = "random_mixup",
    .help = "mix each record and its target with another one of the data set",
    .options = mix_options,
    .main = "alpha",
    .mixes = true,
    .prepare = mixup_prepare,
    .apply = mix_apply,
};

const tti_transform_def tti_transform_random_cutmix = {
    .name = "random_cutmix",
    .help = "replace a rectangle of each image by that of another one, and mix the targets",
    .options = mix_options,
    .main = "alpha",
    .mixes = true,
    .prepare = cutmix_prepare,
    .apply = mix_apply,
};
