/*
 * digits.c - procedural digits: images that need no file and are the same on every machine.
 *
 * Record i is drawn from random words keyed by (set, i): a class, a style, its points shaken, a
 * shift, scale, slant and rotation, a pen. Strokes become short straight pieces; each pixel gets
 * its distance to the nearest, and from that its ink; then noise. Only + - * / and square roots are
 * used, so that the bits follow from the text here: no other function of libm, no fused steps.
 */
#include "data/data.h"
#include "data/strokes.h"
#include <stddef.h>
#include <string.h>

#define SIDE   28
#define PIXELS (SIDE * SIDE)
#define PIECES 4 // straight pieces of a curve between two points
#define FAR    1e6f
#define SHAPE  0x73686170ull // sets apart the words of shapes and of noise
#define NOISE  0x6e6f6973ull

typedef struct digits {
    uint64_t key;
    int64_t first;
    float noise;
} digits;

typedef struct point {
    float x, y;
} point;

// ---- random words in order -------------------------------------------------------------------

typedef struct words {
    uint64_t key, record, next;
    tti_philox block;
} words;

static uint32_t draw(words *w)
{
    if (w->next % 4 == 0)
        w->block = tti_philox4(w->key, w->record, w->next / 4 << 32 | SHAPE);
    return w->block.v[w->next++ % 4];
}

// Below n.
static int draw_below(words *w, uint32_t n)
{
    return (int)((uint64_t)draw(w) * n >> 32);
}

// From -spread up to spread.
static float draw_about(words *w, float spread)
{
    return ((float)(draw(w) >> 8) * 0x1p-23f - 1.0f) * spread;
}

// ---- strokes to pixels -----------------------------------------------------------------------

// From the box of the strokes to pixels.
typedef struct frame {
    float xx, xy, yx, yy; // pixels per hundredth of the box
    float x, y;           // where the middle of the box goes
    float shake;          // of the points, in hundredths
    float radius;         // of the pen, pixels
} frame;

static frame draw_frame(words *w)
{
    float wide = 0.2f * (0.95f + draw_about(w, 0.12f)),
          high = 0.2f * (0.95f + draw_about(w, 0.12f));
    float slant = draw_about(w, 0.2f), half = draw_about(w, 0.07f);
    // The rotation whose half angle has the tangent half.
    float c = (1.0f - half * half) / (1.0f + half * half), s = 2.0f * half / (1.0f + half * half);
    frame f = {.xx = c * wide, .yx = s * wide, .shake = 3.5f};
    f.xy = -s * high - c * slant * high;
    f.yy = c * high - s * slant * high;
    f.x = 13.5f + draw_about(w, 2.9f);
    f.y = 13.5f + draw_about(w, 2.9f);
    f.radius = 1.25f + draw_about(w, 0.4f);
    return f;
}

static point draw_point(words *w, const frame *f, float x, float y)
{
    x += draw_about(w, f->shake) - 50.0f;
    y += draw_about(w, f->shake) - 50.0f;
    return (point){f->x + f->xx * x + f->xy * y, f->y + f->yx * x + f->yy * y};
}

static int low_pixel(float x)
{
    return x < 0.0f ? 0 : x > SIDE - 1 ? SIDE : (int)x;
}

static int high_pixel(float x) // one past the last
{
    return x < 0.0f ? 0 : x > SIDE - 1 ? SIDE : (int)x + 1;
}

// Lowers the squared distances of the pixels near the piece from a to b.
static void draw_piece(float *near, point a, point b, float reach)
{
    float dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    float inverse = length2 > 1e-6f ? 1.0f / length2 : 0.0f;
    int x0 = low_pixel(TTI_MIN(a.x, b.x) - reach), x1 = high_pixel(TTI_MAX(a.x, b.x) + reach);
    int y0 = low_pixel(TTI_MIN(a.y, b.y) - reach), y1 = high_pixel(TTI_MAX(a.y, b.y) + reach);
    for (int y = y0; y < y1; y++) {
        for (int x = x0; x < x1; x++) {
            float px = (float)x - a.x, py = (float)y - a.y;
            float t = (px * dx + py * dy) * inverse;
            t = t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
            float ex = px - t * dx, ey = py - t * dy, d2 = ex * ex + ey * ey;
            if (d2 < near[y * SIDE + x])
                near[y * SIDE + x] = d2;
        }
    }
}

// The curve of Catmull and Rom between b and c, a before and d after them.
static point curve(point a, point b, point c, point d, float t)
{
    float u = t * t, v = u * t;
    float wa = 0.5f * (2.0f * u - v - t), wb = 0.5f * (3.0f * v - 5.0f * u + 2.0f);
    float wc = 0.5f * (4.0f * u - 3.0f * v + t), wd = 0.5f * (v - u);
    return (point){wa * a.x + wb * b.x + wc * c.x + wd * d.x,
                   wa * a.y + wb * b.y + wc * c.y + wd * d.y};
}

static void draw_stroke(words *w, const frame *f, const tti_stroke *s, float *near)
{
    point p[TTI_STROKE_MAX + 1];
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (i == 1 && s->n == 2) // a straight stroke may bend in the middle
            p[n++] = draw_point(w, f, 0.5f * (float)(s->at[0][0] + s->at[1][0]),
                                0.5f * (float)(s->at[0][1] + s->at[1][1]));
        p[n++] = draw_point(w, f, s->at[i][0], s->at[i][1]);
    }
    for (int i = 0; i + 1 < n; i++) {
        point before = p[TTI_MAX(i - 1, 0)], after = p[TTI_MIN(i + 2, n - 1)], from = p[i];
        for (int k = 1; k <= PIECES; k++) {
            point to = curve(before, p[i], p[i + 1], after, (float)k / PIECES);
            draw_piece(near, from, to, f->radius + 1.5f);
            from = to;
        }
    }
}

// Ink from distances, and noise that is about normal: the sum of a word's four bytes, whose deviation
// is the root of 21845.
static void ink_pixels(words *w, const float *near, float radius, float ink, float noise, float *x)
{
    float scale = noise / 147.80054f;
    for (int p = 0; p < PIXELS; p += 4) {
        tti_philox r = tti_philox4(w->key, w->record, (uint64_t)p << 32 | NOISE);
        for (int k = 0; k < 4; k++) {
            uint32_t pairs = (r.v[k] & 0x00ff00ff) + (r.v[k] >> 8 & 0x00ff00ff);
            int sum = (int)((pairs & 0xffff) + (pairs >> 16));
            float v = radius + 0.5f - __builtin_sqrtf(near[p + k]);
            v = v < 0.0f ? 0.0f : v > 1.0f ? ink : v * ink;
            v += scale * (float)(sum - 510);
            x[p + k] = v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
        }
    }
}

static tt_status digits_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const digits *d = self;
    words w = {.key = d->key, .record = (uint64_t)(d->first + i)};
    float near[PIXELS];
    int class = draw_below(&w, TTI_CLASSES), style = draw_below(&w, TTI_STYLES);
    const tti_glyph *glyph = &tti_glyphs[class][style];
    (void)ctx;

    frame f = draw_frame(&w);
    float ink = 0.85f + draw_about(&w, 0.15f);
    for (int p = 0; p < PIXELS; p++)
        near[p] = FAR;
    for (int s = 0; s < glyph->n; s++)
        draw_stroke(&w, &f, &glyph->strokes[s], near);
    ink_pixels(&w, near, f.radius, ink, d->noise, out[0]);
    *(int32_t *)out[1] = class;
    return TT_OK;
}

static void digits_close(tt_ctx *ctx, void *self)
{
    tti_free(ctx, self);
}

static tt_status digits_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_digits_opts *o = options;
    if (o->first < 0 || o->count < 1 || o->first > INT64_MAX / 8 || o->count > INT64_MAX / 8)
        return TT_FAIL(ctx, TT_EINVAL, "digits: %lld records from number %lld on",
                       (long long)o->count, (long long)o->first);
    digits *d = tti_calloc(ctx, 1, sizeof(*d));
    if (d == NULL)
        return TT_ENOMEM;
    *d = (digits){.key = (uint64_t)o->set, .first = o->first};
    d->noise = o->noise > 0 ? (float)o->noise : 0.0f;
    *out = (tt_source){
        .count = o->count,
        .n_fields = 2,
        .fields = {{.name = "x", .dtype = TT_F32, .shape = TT_SHAPE(SIDE, SIDE, 1)},
                   {.name = "y", .dtype = TT_I32, .classes = TTI_CLASSES}},
        .self = d,
        .read = digits_read,
        .close = digits_close,
    };
    return TT_OK;
}

static const tt_option digits_options[] = {
    {"count", TT_OPT_INT, "20000", "records", offsetof(tt_digits_opts, count), 1, 1e18, NULL},
    {"first", TT_OPT_INT, "0", "number of the first record, so that sets do not overlap",
     offsetof(tt_digits_opts, first), 0, 1e18, NULL},
    {"seed", TT_OPT_INT, "1", "of the strokes: another one, other records",
     offsetof(tt_digits_opts, set), 0, 0, NULL},
    {"noise", TT_OPT_FLOAT, "0.15", "deviation of the pixels' noise; below zero: none",
     offsetof(tt_digits_opts, noise), -1, 1, NULL},
    TT_OPTION_END,
};

const tt_source_def tti_source_digits = {
    .name = "digits",
    .help = "procedural digits, 28 by 28; needs no file",
    .options = digits_options,
    .options_size = sizeof(tt_digits_opts),
    .main = "count",
    .open = digits_open,
};
