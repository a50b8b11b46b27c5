/*
 * image_resize.c - resize, centre_crop and random_resized_crop. Bytes are resized as files of
 * images are (resample.c); other numbers in float with the same weights' shape.
 */
#include "data/image.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define TRIES 10

static tt_status size_prepare(tt_ctx *ctx, tti_transform *t)
{
    TT_TRY(tti_picture_check_numbers(ctx, t));
    if (t->opts.size[0] < 1 || t->opts.size[1] < 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s: size must be given, for example %s: [224, 224]",
                       t->def->name, t->def->name);
    for (int i = 0; i < 2; i++)
        t->out.shape.dim[i] = t->opts.size[i];
    if (tt_shape_count(&t->out.shape) > INT32_MAX)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: size [%d, %d] is too large", t->def->name,
                       t->opts.size[0], t->opts.size[1]);
    return TT_OK;
}

// ---- resizing --------------------------------------------------------------------------------

/*
 * One axis of floats, from n_in to n_out lines that lie stride apart, of which there are `lines`
 * groups: the mean below a triangle.
 */
static void resize_axis(const float *x, int64_t lines, int64_t n_in, int64_t n_out, int64_t stride,
                        float from, float to, float *y)
{
    double scale = (double)(to - from) / (double)n_out, wide = scale < 1 ? 1 : scale;
    for (int64_t o = 0; o < n_out; o++) {
        double centre = (double)from + ((double)o + 0.5) * scale;
        int64_t begin = TTI_MAX((int64_t)(centre - wide + 0.5), 0);
        int64_t end = TTI_MIN((int64_t)(centre + wide + 0.5), n_in);
        for (int64_t l = 0; l < lines; l++)
            for (int64_t s = 0; s < stride; s++) {
                double sum = 0, all = 0;
                for (int64_t k = begin; k < end; k++) {
                    double d = ((double)k - centre + 0.5) / wide, w = d < 0 ? 1 + d : 1 - d;
                    w = w > 0 ? w : 0;
                    all += w;
                    sum += w * (double)x[(l * n_in + k) * stride + s];
                }
                y[(l * n_out + o) * stride + s] = (float)(sum / all);
            }
    }
}

static tt_status resize_box(tt_ctx *ctx, const tti_transform *t, const tti_box *box,
                            tti_decode_room *room, const void *x, void *y)
{
    const int64_t *in = t->in.shape.dim, *out = t->out.shape.dim;
    int64_t channels = tti_image_channels(&t->in);
    if (t->in.dtype == TT_U8) {
        tti_pixels from = {.high = in[0], .wide = in[1], .channels = (int)channels};
        tti_pixels to = {.high = out[0], .wide = out[1], .channels = (int)channels, .p = y};
        memcpy(&from.p, &x, sizeof(x)); // it is only read
        return tti_resize(ctx, &from, box, room, &to);
    }
    size_t bytes = (size_t)(in[0] * out[1] * channels) * sizeof(float);
    float *rows = (float *)(void *)tti_room_get(ctx, room, 2, bytes);
    if (rows == NULL)
        return TT_ENOMEM;
    resize_axis(x, in[0], in[1], out[1], channels, box->left, box->right, rows);
    resize_axis(rows, 1, in[0], out[0], out[1] * channels, box->top, box->bottom, y);
    return TT_OK;
}

static tt_status resize_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                              const tti_philox *random, tti_decode_room *room, const void *x,
                              void *y)
{
    tti_box all = {0, 0, (float)t->in.shape.dim[1], (float)t->in.shape.dim[0]};
    (void)record, (void)random;
    return resize_box(ctx, t, &all, room, x, y);
}

// ---- random_resized_crop ---------------------------------------------------------------------

static tt_status crop_prepare(tt_ctx *ctx, tti_transform *t)
{
    if (t->opts.min_scale > t->opts.max_scale || !(t->opts.min_scale > 0))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: min_scale is %g and max_scale is %g; min_scale must be above 0 and not "
                       "above max_scale",
                       t->def->name, t->opts.min_scale, t->opts.max_scale);
    return size_prepare(ctx, t);
}

// A part of the image with a random area and proportions; all of it in the middle if none fits.
static tti_box random_box(const tti_transform *t, tti_chance *c)
{
    int64_t high = t->in.shape.dim[0], wide = t->in.shape.dim[1];
    double most = tti_log_exact(t->opts.max_aspect);
    for (int i = 0; i < TRIES; i++) {
        double area =
            (double)(high * wide) * tti_chance_in(c, t->opts.min_scale, t->opts.max_scale);
        double aspect = tti_exp_exact(tti_chance_in(c, -most, most));
        int64_t w = (int64_t)(sqrt(area * aspect) + 0.5), h = (int64_t)(sqrt(area / aspect) + 0.5);
        if (w < 1 || h < 1 || w > wide || h > high)
            continue;
        int64_t top = tti_chance_below(c, high - h + 1), left = tti_chance_below(c, wide - w + 1);
        return (tti_box){(float)left, (float)top, (float)(left + w), (float)(top + h)};
    }
    tti_pixels x = {.high = high, .wide = wide};
    return tti_box_fit(&x, t->out.shape.dim[0], t->out.shape.dim[1]);
}

static tt_status resized_crop_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                                    const tti_philox *random, tti_decode_room *room, const void *x,
                                    void *y)
{
    tti_chance c = tti_chance_begin(random);
    tti_box box = random_box(t, &c);
    (void)record;
    return resize_box(ctx, t, &box, room, x, y);
}

// ---- centre_crop -----------------------------------------------------------------------------

static tt_status centre_prepare(tt_ctx *ctx, tti_transform *t)
{
    TT_TRY(size_prepare(ctx, t));
    for (int i = 0; i < 2; i++)
        if (t->opts.size[i] > t->in.shape.dim[i])
            return TT_FAIL(ctx, TT_ESHAPE,
                           "centre_crop: size [%d, %d] is larger than the image [%lld, %lld]",
                           t->opts.size[0], t->opts.size[1], (long long)t->in.shape.dim[0],
                           (long long)t->in.shape.dim[1]);
    return TT_OK;
}

static tt_status centre_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                              const tti_philox *random, tti_decode_room *room, const void *x,
                              void *y)
{
    const int64_t *in = t->in.shape.dim, *out = t->out.shape.dim;
    size_t pixel = tti_field_bytes(&t->in) / (size_t)(in[0] * in[1]);
    int64_t top = (in[0] - out[0]) / 2, left = (in[1] - out[1]) / 2;
    (void)ctx, (void)record, (void)random, (void)room;
    for (int64_t r = 0; r < out[0]; r++)
        memcpy((char *)y + (size_t)(r * out[1]) * pixel,
               (const char *)x + (size_t)((top + r) * in[1] + left) * pixel,
               (size_t)out[1] * pixel);
    return TT_OK;
}

// ---- records ---------------------------------------------------------------------------------

// clang-format off
#define SIZE_ROW \
    {"size", TT_OPT_PAIR, "0", "height and width of the result; required", \
     offsetof(tt_transform_opts, size), 0, TTI_MOST_SIDE, NULL}

static const tt_option size_options[] = {TTI_FIELD_ROW, SIZE_ROW, TT_OPTION_END};

static const tt_option resized_crop_options[] = {
    TTI_FIELD_ROW,
    SIZE_ROW,
    {"min_scale", TT_OPT_FLOAT, "0.08", "smallest part of the image's area",
     offsetof(tt_transform_opts, min_scale), 0, 1, NULL},
    {"max_scale", TT_OPT_FLOAT, "1", "largest part of the image's area",
     offsetof(tt_transform_opts, max_scale), 0, 1, NULL},
    {"max_aspect", TT_OPT_FLOAT, "1.3333333333333333",
     "largest width divided by height; the smallest is 1 divided by it",
     offsetof(tt_transform_opts, max_aspect), 1, 100, NULL},
    TT_OPTION_END,
};
// clang-format on

const tti_transform_def tti_transform_resize = {
    .name = "resize",
    .help = "resize an image, bilinear with antialiasing",
    .options = size_options,
    .main = "size",
    .prepare = size_prepare,
    .apply = resize_apply,
};

const tti_transform_def tti_transform_centre_crop = {
    .name = "centre_crop",
    .help = "crop a window in the middle of an image",
    .options = size_options,
    .main = "size",
    .prepare = centre_prepare,
    .apply = centre_apply,
};

const tti_transform_def tti_transform_random_resized_crop = {
    .name = "random_resized_crop",
    .help = "crop a part of random size and proportions, and resize it",
    .options = resized_crop_options,
    .main = "size",
    .prepare = crop_prepare,
    .apply = resized_crop_apply,
};
