/*
 * image.c - transforms of images, [height, width] or [height, width, channels] of any type. All
 * three take one window out of an image that zeros surround, so they share one copy; random_flip
 * takes its columns from right to left.
 */
#include "data/image.h"
#include <stddef.h>
#include <string.h>

tt_status tti_picture_check(tt_ctx *ctx, const tti_transform *t)
{
    char shape[TT_SHAPE_TEXT];
    int rank = t->in.shape.rank;
    if (rank == 2 || rank == 3)
        return TT_OK;
    return TT_FAIL(
        ctx, TT_ESHAPE,
        "%s: field '%s' has shape %s; an image is [height, width] or [height, width, channels]",
        t->def->name, t->in.name, tt_shape_text(&t->in.shape, shape));
}

tt_status tti_picture_check_numbers(tt_ctx *ctx, tti_transform *t)
{
    TT_TRY(tti_picture_check(ctx, t));
    if (t->in.dtype == TT_U8 || t->in.dtype == TT_F32)
        return TT_OK;
    return TT_FAIL(ctx, TT_EDTYPE, "%s: field '%s' is %s; it must be u8 or f32", t->def->name,
                   t->in.name, tt_dtype_name(t->in.dtype));
}

int64_t tti_image_channels(const tt_field *f)
{
    return f->shape.rank == 3 ? f->shape.dim[2] : 1;
}

// Below n, from one random word.
static int64_t below(uint32_t word, int64_t n)
{
    return (int64_t)((uint64_t)word * (uint64_t)n >> 32);
}

// The window of t->out's size whose upper left corner is (top, left) of x; zeros outside x.
static void window(const tti_transform *t, const char *x, int64_t top, int64_t left, char *y)
{
    int64_t high = t->in.shape.dim[0], wide = t->in.shape.dim[1];
    int64_t out_high = t->out.shape.dim[0], out_wide = t->out.shape.dim[1];
    size_t pixel = tti_field_bytes(&t->in) / (size_t)(high * wide);
    int64_t from = TTI_MAX(-left, 0), to = TTI_MIN(wide - left, out_wide); // columns that x has
    for (int64_t r = 0; r < out_high; r++, y += (size_t)out_wide * pixel) {
        int64_t row = top + r;
        if (row < 0 || row >= high || from >= to) {
            memset(y, 0, (size_t)out_wide * pixel);
            continue;
        }
        memset(y, 0, (size_t)from * pixel);
        memcpy(y + (size_t)from * pixel, x + (size_t)(row * wide + left + from) * pixel,
               (size_t)(to - from) * pixel);
        memset(y + (size_t)to * pixel, 0, (size_t)(out_wide - to) * pixel);
    }
}

// ---- channels_last ---------------------------------------------------------------------------

static tt_status last_prepare(tt_ctx *ctx, tti_transform *t)
{
    char shape[TT_SHAPE_TEXT];
    const int64_t *d = t->in.shape.dim;
    if (t->in.shape.rank != 3)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "%s: field '%s' has shape %s; it must be [channels, height, width]",
                       t->def->name, t->in.name, tt_shape_text(&t->in.shape, shape));
    t->out.shape = TT_SHAPE(d[1], d[2], d[0]);
    return TT_OK;
}

static tt_status last_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                            const tti_philox *random, tti_decode_room *room, const void *x, void *y)
{
    (void)room;
    int64_t channels = t->in.shape.dim[0], pixels = t->in.shape.dim[1] * t->in.shape.dim[2];
    size_t size = tt_dtype_bytes(t->in.dtype);
    char *out = y;
    (void)ctx, (void)record, (void)random;
    for (int64_t p = 0; p < pixels; p++)
        for (int64_t c = 0; c < channels; c++, out += size)
            memcpy(out, (const char *)x + (size_t)(c * pixels + p) * size, size);
    return TT_OK;
}

static const tt_option last_options[] = {TTI_FIELD_ROW, TT_OPTION_END};

const tti_transform_def tti_transform_channels_last = {
    .name = "channels_last",
    .help = "convert an image from [channels, height, width] to [height, width, channels]",
    .options = last_options,
    .prepare = last_prepare,
    .apply = last_apply,
};

// ---- random_crop -----------------------------------------------------------------------------

static tt_status crop_prepare(tt_ctx *ctx, tti_transform *t)
{
    TT_TRY(tti_picture_check(ctx, t));
    for (int i = 0; i < 2; i++) {
        int64_t side = t->in.shape.dim[i] + 2 * (int64_t)t->opts.pad;
        if (t->opts.size[i] == 0)
            t->opts.size[i] = (int)t->in.shape.dim[i];
        if (t->opts.size[i] > side)
            return TT_FAIL(ctx, TT_ESHAPE,
                           "random_crop: size [%d, %d] is larger than the image [%lld, %lld] with "
                           "%d pixels of padding",
                           t->opts.size[0], t->opts.size[1], (long long)t->in.shape.dim[0],
                           (long long)t->in.shape.dim[1], t->opts.pad);
        t->out.shape.dim[i] = t->opts.size[i];
    }
    if (tt_shape_count(&t->out.shape) > INT32_MAX)
        return TT_FAIL(ctx, TT_ESHAPE, "random_crop: size [%d, %d] is too large", t->opts.size[0],
                       t->opts.size[1]);
    return TT_OK;
}

static tt_status crop_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                            const tti_philox *random, tti_decode_room *room, const void *x, void *y)
{
    (void)room;
    int64_t at[2];
    (void)ctx, (void)record;
    for (int i = 0; i < 2; i++) {
        int64_t places = t->in.shape.dim[i] + 2 * (int64_t)t->opts.pad - t->opts.size[i] + 1;
        at[i] = below(random->v[i], places) - t->opts.pad;
    }
    window(t, x, at[0], at[1], y);
    return TT_OK;
}

// ---- random_shift ----------------------------------------------------------------------------

static tt_status image_prepare(tt_ctx *ctx, tti_transform *t)
{
    return tti_picture_check(ctx, t);
}

static tt_status shift_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                             const tti_philox *random, tti_decode_room *room, const void *x,
                             void *y)
{
    (void)room;
    int64_t n = t->opts.shift;
    (void)ctx, (void)record;
    window(t, x, below(random->v[0], 2 * n + 1) - n, below(random->v[1], 2 * n + 1) - n, y);
    return TT_OK;
}

// ---- random_flip -----------------------------------------------------------------------------

static tt_status flip_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                            const tti_philox *random, tti_decode_room *room, const void *x, void *y)
{
    (void)room;
    int64_t high = t->in.shape.dim[0], wide = t->in.shape.dim[1];
    size_t bytes = tti_field_bytes(&t->in), pixel = bytes / (size_t)(high * wide);
    (void)ctx, (void)record;
    bool turn = t->opts.probability == 0.5 ? random->v[0] >> 31 != 0
                                           : (double)random->v[0] * 0x1p-32 < t->opts.probability;
    if (!turn) {
        memcpy(y, x, bytes);
        return TT_OK;
    }
    for (int64_t r = 0; t->opts.vertical && r < high; r++)
        memcpy((char *)y + (size_t)(r * wide) * pixel,
               (const char *)x + (size_t)((high - 1 - r) * wide) * pixel, (size_t)wide * pixel);
    if (t->opts.vertical)
        return TT_OK;
    for (int64_t r = 0; r < high; r++)
        for (int64_t c = 0; c < wide; c++)
            memcpy((char *)y + (size_t)(r * wide + c) * pixel,
                   (const char *)x + (size_t)(r * wide + wide - 1 - c) * pixel, pixel);
    return TT_OK;
}

// ---- records ---------------------------------------------------------------------------------

// clang-format off
static const tt_option crop_options[] = {
    TTI_FIELD_ROW,
    {"size", TT_OPT_PAIR, "0", "height and width of the crop; default: those of the image",
     offsetof(tt_transform_opts, size), 0, TTI_MOST_SIDE, NULL},
    {"pad", TT_OPT_INT32, "0", "pixels of zero padding added on each side before cropping",
     offsetof(tt_transform_opts, pad), 0, TTI_MOST_SIDE, NULL},
    TT_OPTION_END,
};

static const tt_option shift_options[] = {
    TTI_FIELD_ROW,
    {"shift", TT_OPT_INT32, NULL,
     "largest shift in pixels in each direction; empty pixels become 0",
     offsetof(tt_transform_opts, shift), 1, TTI_MOST_SIDE, NULL},
    TT_OPTION_END,
};

static const tt_option flip_options[] = {
    TTI_FIELD_ROW,
    {"vertical", TT_OPT_BOOL, "false", "upside down instead of left to right",
     offsetof(tt_transform_opts, vertical), 0, 0, NULL},
    TTI_PROBABILITY_ROW("0.5"),
    TT_OPTION_END,
};
// clang-format on

const tti_transform_def tti_transform_random_crop = {
    .name = "random_crop",
    .help = "crop a window at a random position",
    .options = crop_options,
    .main = "size",
    .prepare = crop_prepare,
    .apply = crop_apply,
};

const tti_transform_def tti_transform_random_flip = {
    .name = "random_flip",
    .help = "mirror left to right, or upside down, with probability 1/2",
    .options = flip_options,
    .prepare = image_prepare,
    .apply = flip_apply,
};

const tti_transform_def tti_transform_random_shift = {
    .name = "random_shift",
    .help = "shift by a random number of pixels",
    .options = shift_options,
    .main = "shift",
    .prepare = image_prepare,
    .apply = shift_apply,
};
