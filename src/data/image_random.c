/*
 * image_random.c - random changes of images: rotation, zoom, colours, blur. They calculate in
 * float, one operation after another, so that every processor gives the same bits.
 */
#include "data/image.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define PI 3.141592653589793

// ---- rotation and zoom -----------------------------------------------------------------------

// Where an output pixel comes from: x' = a x + b y + c, y' = d x + e y + f.
typedef struct affine {
    double a, b, c, d, e, f;
} affine;

// Bilinear; 0 outside of the image.
static void warp(const tti_transform *t, const affine *m, const void *x, void *y)
{
    int64_t high = t->in.shape.dim[0], wide = t->in.shape.dim[1];
    int64_t n = tti_image_channels(&t->in);
    for (int64_t r = 0; r < high; r++)
        for (int64_t q = 0; q < wide; q++) {
            double px = m->a * (double)q + m->b * (double)r + m->c;
            double py = m->d * (double)q + m->e * (double)r + m->f;
            int64_t x0 = (int64_t)(px + 65536) - 65536, y0 = (int64_t)(py + 65536) - 65536; // down
            double wx = px - (double)x0, wy = py - (double)y0;
            double weight[4] = {(1 - wx) * (1 - wy), wx * (1 - wy), (1 - wx) * wy, wx * wy};
            for (int64_t c = 0; c < n; c++) {
                double sum = 0;
                for (int k = 0; k < 4; k++) {
                    int64_t cx = x0 + k % 2, cy = y0 + k / 2;
                    if (cx >= 0 && cx < wide && cy >= 0 && cy < high)
                        sum += weight[k] *
                               (double)tti_image_get(t->in.dtype, x, (cy * wide + cx) * n + c);
                }
                tti_image_put(t->in.dtype, y, (r * wide + q) * n + c, (float)sum);
            }
        }
}

// A turn by an angle and a change of size by a factor, about the middle.
static affine about_middle(const tti_transform *t, double angle, double size)
{
    double s, c;
    double mx = (double)(t->in.shape.dim[1] - 1) / 2, my = (double)(t->in.shape.dim[0] - 1) / 2;
    tti_sincos_exact(angle, &s, &c);
    s = s / size;
    c = c / size;
    return (affine){c, s, mx - c * mx - s * my, -s, c, my + s * mx - c * my};
}

static void copy(const tti_transform *t, const void *x, void *y)
{
    memcpy(y, x, tti_field_bytes(&t->in));
}

static tt_status rotate_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                              const tti_philox *random, tti_decode_room *room, const void *x,
                              void *y)
{
    tti_chance c = tti_chance_begin(random);
    (void)ctx, (void)record, (void)room;
    if (!tti_image_happens(&c, t->opts.probability)) {
        copy(t, x, y);
        return TT_OK;
    }
    double most = t->opts.degrees * (PI / 180);
    affine m = about_middle(t, tti_chance_in(&c, -most, most), 1);
    warp(t, &m, x, y);
    return TT_OK;
}

static tt_status zoom_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                            const tti_philox *random, tti_decode_room *room, const void *x, void *y)
{
    tti_chance c = tti_chance_begin(random);
    (void)ctx, (void)record, (void)room;
    if (!tti_image_happens(&c, t->opts.probability)) {
        copy(t, x, y);
        return TT_OK;
    }
    affine m = about_middle(t, 0, tti_chance_in(&c, 1 - t->opts.zoom, 1 + t->opts.zoom));
    warp(t, &m, x, y);
    return TT_OK;
}

// ---- colours ---------------------------------------------------------------------------------

static tt_status colour_prepare(tt_ctx *ctx, tti_transform *t)
{
    TT_TRY(tti_picture_check_numbers(ctx, t));
    int64_t n = tti_image_channels(&t->in);
    if (n != 1 && n != 3)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "random_colour: field '%s' has %lld channels; it needs 3 (red, green, blue) "
                       "or 1",
                       t->in.name, (long long)n);
    return TT_OK;
}

typedef struct colours {
    float brightness, contrast, saturation; // factors
    float grey;                             // mean of the image
    float turn[9];                          // of the hue
} colours;

static float luma(const float *v)
{
    return 0.299f * v[0] + 0.587f * v[1] + 0.114f * v[2];
}

// A turn about the axis of greys, which stay as they are.
static void hue_turn(double angle, float out[9])
{
    double s, c;
    tti_sincos_exact(angle, &s, &c);
    double third = (1 - c) / 3, side = s / sqrt(3.0);
    const double m[9] = {c + third,    third - side, third + side, third + side, c + third,
                         third - side, third - side, third + side, c + third};
    for (int i = 0; i < 9; i++)
        out[i] = (float)m[i];
}

static void colour_pixel(const colours *k, int64_t n, float *v)
{
    float grey, w[3];
    for (int64_t c = 0; c < n; c++) {
        v[c] = v[c] * k->brightness;
        v[c] = k->grey + (v[c] - k->grey) * k->contrast;
    }
    if (n != 3)
        return;
    grey = luma(v);
    for (int c = 0; c < 3; c++)
        w[c] = grey + (v[c] - grey) * k->saturation;
    for (int c = 0; c < 3; c++)
        v[c] = k->turn[3 * c] * w[0] + k->turn[3 * c + 1] * w[1] + k->turn[3 * c + 2] * w[2];
}

static float mean_grey(const tti_transform *t, const void *x, int64_t pixels, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < pixels; i++) {
        float v[3];
        for (int64_t c = 0; c < n; c++)
            v[c] = tti_image_get(t->in.dtype, x, i * n + c);
        sum += (double)(n == 3 ? luma(v) : v[0]);
    }
    return (float)(sum / (double)pixels);
}

static float factor(tti_chance *c, double most)
{
    double v = tti_chance_in(c, 1 - most, 1 + most);
    return (float)(v > 0 ? v : 0);
}

static tt_status colour_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                              const tti_philox *random, tti_decode_room *room, const void *x,
                              void *y)
{
    tti_chance c = tti_chance_begin(random);
    int64_t n = tti_image_channels(&t->in), pixels = tt_shape_count(&t->in.shape) / n;
    colours k;
    (void)ctx, (void)record, (void)room;
    if (!tti_image_happens(&c, t->opts.probability)) {
        copy(t, x, y);
        return TT_OK;
    }
    k.brightness = factor(&c, t->opts.brightness);
    k.contrast = factor(&c, t->opts.contrast);
    k.saturation = factor(&c, t->opts.saturation);
    hue_turn(tti_chance_in(&c, -t->opts.hue, t->opts.hue) * (2 * PI), k.turn);
    k.grey = mean_grey(t, x, pixels, n) * k.brightness;
    for (int64_t i = 0; i < pixels; i++) {
        float v[3];
        for (int64_t q = 0; q < n; q++)
            v[q] = tti_image_get(t->in.dtype, x, i * n + q);
        colour_pixel(&k, n, v);
        for (int64_t q = 0; q < n; q++)
            tti_image_put(t->in.dtype, y, i * n + q, v[q]);
    }
    return TT_OK;
}

// ---- blur ------------------------------------------------------------------------------------

#define MOST_SIGMA  10
#define MOST_RADIUS (3 * MOST_SIGMA + 1)

// The weights of a bell of radius r, whose sum is 1.
static int bell(double sigma, float w[2 * MOST_RADIUS + 1])
{
    int r = (int)(3 * sigma) + 1;
    double sum = 0, v[2 * MOST_RADIUS + 1];
    for (int i = -r; i <= r; i++) {
        double e = -0.5 * (double)(i * i) / (sigma * sigma);
        v[i + r] = e < -600 ? 0 : tti_exp_exact(e);
        sum += v[i + r];
    }
    for (int i = 0; i <= 2 * r; i++)
        w[i] = (float)(v[i] / sum);
    return r;
}

static int64_t within(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i; // the edge goes on
}

static tt_status blur_apply(tt_ctx *ctx, const tti_transform *t, int64_t record,
                            const tti_philox *random, tti_decode_room *room, const void *x, void *y)
{
    tti_chance c = tti_chance_begin(random);
    int64_t high = t->in.shape.dim[0], wide = t->in.shape.dim[1], n = tti_image_channels(&t->in);
    float w[2 * MOST_RADIUS + 1];
    bool happens = tti_image_happens(&c, t->opts.probability);
    double sigma = tti_chance_in(&c, 0, t->opts.sigma);
    (void)record;
    if (!happens || sigma < 0.05) { // too little to be seen
        copy(t, x, y);
        return TT_OK;
    }
    size_t bytes = (size_t)tt_shape_count(&t->in.shape) * sizeof(float);
    float *rows = (float *)(void *)tti_room_get(ctx, room, 2, bytes);
    if (rows == NULL)
        return TT_ENOMEM;
    int r = bell(sigma, w);
    for (int64_t i = 0; i < high; i++)
        for (int64_t q = 0; q < wide; q++)
            for (int64_t k = 0; k < n; k++) {
                float sum = 0;
                for (int s = -r; s <= r; s++)
                    sum += w[s + r] *
                           tti_image_get(t->in.dtype, x, (i * wide + within(q + s, wide)) * n + k);
                rows[(i * wide + q) * n + k] = sum;
            }
    for (int64_t i = 0; i < high; i++)
        for (int64_t q = 0; q < wide * n; q++) {
            float sum = 0;
            for (int s = -r; s <= r; s++)
                sum += w[s + r] * rows[within(i + s, high) * wide * n + q];
            tti_image_put(t->in.dtype, y, i * wide * n + q, sum);
        }
    return TT_OK;
}

// ---- records ---------------------------------------------------------------------------------

// clang-format off
static const tt_option rotate_options[] = {
    TTI_FIELD_ROW,
    {"degrees", TT_OPT_FLOAT, NULL, "largest angle, in either direction; empty pixels become 0",
     offsetof(tt_transform_opts, degrees), 0, 180, NULL},
    TTI_PROBABILITY_ROW("1"),
    TT_OPTION_END,
};

static const tt_option zoom_options[] = {
    TTI_FIELD_ROW,
    {"zoom", TT_OPT_FLOAT, NULL,
     "largest change of size: 0.2 shows the image at 0.8 to 1.2 times its size",
     offsetof(tt_transform_opts, zoom), 0, 0.9, NULL},
    TTI_PROBABILITY_ROW("1"),
    TT_OPTION_END,
};

static const tt_option colour_options[] = {
    TTI_FIELD_ROW,
    {"brightness", TT_OPT_FLOAT, "0",
     "largest change of the brightness: 0.4 multiplies by 0.6 to 1.4",
     offsetof(tt_transform_opts, brightness), 0, 10, NULL},
    {"contrast", TT_OPT_FLOAT, "0", "largest change of the contrast",
     offsetof(tt_transform_opts, contrast), 0, 10, NULL},
    {"saturation", TT_OPT_FLOAT, "0", "largest change of the saturation",
     offsetof(tt_transform_opts, saturation), 0, 10, NULL},
    {"hue", TT_OPT_FLOAT, "0", "largest change of the hue, as a fraction of the colour circle",
     offsetof(tt_transform_opts, hue), 0, 0.5, NULL},
    TTI_PROBABILITY_ROW("1"),
    TT_OPTION_END,
};

static const tt_option blur_options[] = {
    TTI_FIELD_ROW,
    {"sigma", TT_OPT_FLOAT, NULL, "largest standard deviation of the blur, in pixels",
     offsetof(tt_transform_opts, sigma), 0, MOST_SIGMA, NULL},
    TTI_PROBABILITY_ROW("1"),
    TT_OPTION_END,
};
// clang-format on

const tti_transform_def tti_transform_random_rotate = {
    .name = "random_rotate",
    .help = "rotate by a random angle",
    .options = rotate_options,
    .main = "degrees",
    .prepare = tti_picture_check_numbers,
    .apply = rotate_apply,
};

const tti_transform_def tti_transform_random_zoom = {
    .name = "random_zoom",
    .help = "enlarge or shrink by a random factor",
    .options = zoom_options,
    .main = "zoom",
    .prepare = tti_picture_check_numbers,
    .apply = zoom_apply,
};

const tti_transform_def tti_transform_random_colour = {
    .name = "random_colour",
    .help = "change brightness, contrast, saturation and hue at random",
    .options = colour_options,
    .prepare = colour_prepare,
    .apply = colour_apply,
};

const tti_transform_def tti_transform_random_blur = {
    .name = "random_blur",
    .help = "blur by a random amount",
    .options = blur_options,
    .main = "sigma",
    .prepare = tti_picture_check_numbers,
    .apply = blur_apply,
};
