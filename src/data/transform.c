/*
 * transform.c - transforms: the list of kinds, appending one, and those that know nothing of
 * images. Those of images: image.c.
 */
#include "base/hints.h"
#include "base/option_json.h"
#include "data/data.h"
#include <stddef.h>
#include <string.h>

static const tti_transform_def *const kinds[] = {
#define X(kind) &tti_transform_##kind,
#include "data/transforms.def"
#undef X
};

const tti_transform_def *tti_transform_at(int i)
{
    return i >= 0 && i < TTI_COUNT(kinds) ? kinds[i] : NULL;
}

const tti_transform_def *tti_transform_find(const char *name)
{
    for (int i = 0; name != NULL && i < TTI_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

static tt_status unknown_kind(tt_ctx *ctx, const char *kind)
{
    const char *names[TTI_COUNT(kinds) + 1] = {NULL};
    for (int i = 0; i < TTI_COUNT(kinds); i++)
        names[i] = kinds[i]->name;
    const tti_hint *h = tti_hint_find("transform", NULL, kind);
    const char *near = tti_meant(kind, names);
    char hint[TTI_HINT_MAX];
    if (tti_hint_helps(h, kind, near))
        return TT_FAIL(ctx, TT_EINVAL, "unknown transform '%.64s'; %s", kind,
                       tti_hint_text(h, hint));
    return TT_FAIL(ctx, TT_EINVAL, "unknown transform '%.64s'%s%s%s", kind,
                   near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}

static tt_status find_field(const tt_data *d, const char *kind, const char *name, int *out)
{
    *out = 0;
    if (name == NULL || name[0] == '\0')
        return TT_OK;
    for (int f = 0; f < d->source.n_fields; f++) {
        if (strcmp(d->fields[f].name, name) == 0) {
            *out = f;
            return TT_OK;
        }
    }
    return TT_FAIL(d->ctx, TT_EINVAL, "%s: %s has no field '%.64s'", kind, tti_data_name(d), name);
}

tt_status tt_transform_with(tt_data *d, const char *kind, const tt_transform_opts *opts)
{
    if (d == NULL)
        return TT_EINVAL;
    tt_ctx *ctx = d->ctx;
    if (tti_is_stuck(ctx))
        return tt_status_of(ctx);
    const tti_transform_def *def = tti_transform_find(kind);
    if (def == NULL)
        return unknown_kind(ctx, kind != NULL ? kind : "");
    if (d->is_started)
        return TT_FAIL(ctx, TT_EINVAL, "%s: transforms must be added before tt_data_start()", kind);
    if (d->n_transforms == TTI_MAX_TRANSFORMS)
        return TT_FAIL(ctx, TT_EINVAL, "%s: at most %d transforms are allowed", kind,
                       TTI_MAX_TRANSFORMS);

    tti_transform t = {.def = def};
    if (opts != NULL)
        TT_TRY(TTI_OPTS_COPY(ctx, kind, opts, &t.opts));
    TT_TRY(tti_options_fill(ctx, def->options, &t.opts, kind));
    tti_options_zeros(def->options, &t.opts, false);
    TT_TRY(find_field(d, kind, t.opts.field, &t.field));
    for (int i = 0; i < d->n_transforms; i++)
        t.place += d->transforms[i].field == t.field;
    t.in = t.out = d->fields[t.field];
    char *own[2] = {NULL, NULL};
    tt_status st = def->fit != NULL ? def->fit(d, &t, own) : TT_OK;
    tti_text about = {.ctx = ctx};
    if (st == TT_OK) {
        tti_options_json(&about, def->options, &t.opts);
        t.about = tti_text_take(&about);
        st = t.about == NULL ? TT_ENOMEM : def->prepare(ctx, &t);
    }
    if (st == TT_OK && def->mixes)
        st = tti_mix_check(d, &t);
    tti_free(ctx, own[0]);
    tti_free(ctx, own[1]);
    if (st != TT_OK) {
        tti_free(ctx, t.about);
        return st;
    }
    t.opts.field = t.opts.means = t.opts.scales = NULL; // the caller's
    t.opts.like = NULL;
    tti_ring_free(d); // sizes change
    d->transforms[d->n_transforms++] = t;
    d->fields[t.field] = t.out;
    return TT_OK;
}

// ---- one_hot ---------------------------------------------------------------------------------

static tt_status one_hot_prepare(tt_ctx *ctx, tti_transform *t)
{
    tt_dtype dt = t->in.dtype;
    int64_t n = tt_shape_count(&t->in.shape);
    if (dt != TT_I32 && dt != TT_I64 && dt != TT_U8)
        return TT_FAIL(ctx, TT_EDTYPE, "one_hot: field '%s' is %s; it must be i32, i64 or u8",
                       t->in.name, tt_dtype_name(dt));
    if (t->opts.depth == 0)
        t->opts.depth = t->in.classes;
    if (t->opts.depth < 1)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "one_hot: depth must be given: the number of classes of field '%s' is unknown",
            t->in.name);
    if (t->opts.depth > INT32_MAX / n)
        return TT_FAIL(ctx, TT_EINVAL, "one_hot: depth %lld is too large",
                       (long long)t->opts.depth);
    if (t->in.shape.rank + 1 >= TT_MAX_RANK)
        return TT_FAIL(ctx, TT_ESHAPE, "one_hot: field '%s' has too many axes", t->in.name);
    t->out.shape.dim[t->out.shape.rank++] = t->opts.depth;
    t->out.dtype = TT_F32;
    t->out.classes = 0;
    return TT_OK;
}

static tt_status one_hot_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                               const tti_philox *random, tti_decode_room *room, const void *x,
                               void *y)
{
    (void)room;
    int64_t n = tt_shape_count(&t->in.shape), depth = t->opts.depth;
    float rest = (float)(t->opts.smoothing / (double)depth);
    float one = (float)(1.0 - t->opts.smoothing + t->opts.smoothing / (double)depth);
    float *out = y;
    (void)random;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = t->in.dtype == TT_I32   ? ((const int32_t *)x)[i]
                    : t->in.dtype == TT_I64 ? ((const int64_t *)x)[i]
                                            : ((const uint8_t *)x)[i];
        if (v < 0 || v >= depth)
            return TT_FAIL(
                ctx, TT_EINVAL,
                "one_hot: record %lld: the value %lld of field '%s' must be below depth, %lld",
                (long long)record, (long long)v, t->in.name, (long long)depth);
        for (int64_t k = 0; k < depth; k++)
            out[i * depth + k] = k == v ? one : rest;
    }
    return TT_OK;
}

// clang-format off
static const tt_option one_hot_options[] = {
    TTI_FIELD_ROW,
    {"depth", TT_OPT_INT, "0", "number of classes; default: known from the data",
     offsetof(tt_transform_opts, depth), 0, INT32_MAX, NULL},
    {"smoothing", TT_OPT_FLOAT, "0",
     "label smoothing: fraction of the target spread evenly over all classes",
     offsetof(tt_transform_opts, smoothing), 0, 1, NULL},
    TT_OPTION_END,
};
// clang-format on

const tti_transform_def tti_transform_one_hot = {
    .name = "one_hot",
    .help = "encode a class label as a one-hot vector",
    .options = one_hot_options,
    .main = "depth",
    .prepare = one_hot_prepare,
    .apply = one_hot_apply,
};
