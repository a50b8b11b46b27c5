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

// Four pixels side by side; a compiler without such vectors in hardware takes them one by one.
typedef float f4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));

static inline f4 f4_all(float a)
{
    return (f4){a, a, a, a};
}

// a where the mask is set, b elsewhere.
static inline f4 f4_if(i4 mask, f4 a, f4 b)
{
    return (f4)((mask & (i4)a) | (~mask & (i4)b));
}

static inline f4 f4_within(f4 a, float low, float high)
{
    a = f4_if(a < f4_all(low), f4_all(low), a);
    return f4_if(a > f4_all(high), f4_all(high), a);
}

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

// The pixel at or below x, kept within the image.
static int pixel_below(float x)
{
    return x < 0.0f ? 0 : x > SIDE - 1 ? SIDE - 1 : (int)x;
}

// Lowers the squared distances of the pixels near the piece from a to b, and of some that are not.
static void draw_piece(f4 *near, point a, point b, float reach)
{
    float dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
    float inverse = length2 > 1e-6f ? 1.0f / length2 : 0.0f;
    int x0 = pixel_below(TTI_MIN(a.x, b.x) - reach) / 4;
    int x1 = pixel_below(TTI_MAX(a.x, b.x) + reach) / 4;
    int y0 = pixel_below(TTI_MIN(a.y, b.y) - reach), y1 = pixel_below(TTI_MAX(a.y, b.y) + reach);
    for (int y = y0; y <= y1; y++) {
        f4 py = f4_all((float)y - a.y);
        for (int x = x0; x <= x1; x++) {
            f4 *n = near + y * (SIDE / 4) + x;
            f4 px = f4_all((float)(4 * x)) + (f4){0, 1, 2, 3} - f4_all(a.x);
            f4 t = f4_within((px * dx + py * dy) * inverse, 0.0f, 1.0f);
            f4 ex = px - t * dx, ey = py - t * dy, d2 = ex * ex + ey * ey;
            *n = f4_if(d2 < *n, d2, *n);
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

static void draw_stroke(words *w, const frame *f, const tti_stroke *s, f4 *near)
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

/*
 * Noise that is about normal: the sum of a word's four bytes, whose deviation is the root of 21845.
 */
static void make_noise(const words *w, float deviation, float *noise)
{
    float scale = deviation / 147.80054f;
    for (int p = 0; p < PIXELS; p += 4) {
        tti_philox r = tti_philox4(w->key, w->record, (uint64_t)p << 32 | NOISE);
        for (int k = 0; k < 4; k++) {
            uint32_t pairs = (r.v[k] & 0x00ff00ff) + (r.v[k] >> 8 & 0x00ff00ff);
            noise[p + k] = scale * (float)((int)((pairs & 0xffff) + (pairs >> 16)) - 510);
        }
    }
}

// Ink from distances, and noise.
static void ink_pixels(const f4 *near, float radius, float ink, const float *noise, float *x)
{
    float far = (radius + 1.0f) * (radius + 1.0f);
    for (int p = 0; p < PIXELS / 4; p++) {
        f4 v = f4_all(0.0f), more;
        for (int k = 0; k < 4; k++)
            if (near[p][k] < far)
                v[k] = radius + 0.5f - __builtin_sqrtf(near[p][k]);
        memcpy(&more, noise + 4 * p, sizeof(more));
        v = f4_within(f4_within(v, 0.0f, 1.0f) * ink + more, 0.0f, 1.0f);
        memcpy(x + 4 * p, &v, sizeof(v));
    }
}

static tt_status digits_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const digits *d = self;
    words w = {.key = d->key, .record = (uint64_t)(d->first + i)};
    f4 near[PIXELS / 4];
    float noise[PIXELS];
    int class = draw_below(&w, TTI_CLASSES), style = draw_below(&w, TTI_STYLES);
    const tti_glyph *glyph = &tti_glyphs[class][style];
    (void)ctx;

    frame f = draw_frame(&w);
    float ink = 0.85f + draw_about(&w, 0.15f);
    for (int p = 0; p < PIXELS / 4; p++)
        near[p] = f4_all(FAR);
    for (int s = 0; s < glyph->n; s++)
        draw_stroke(&w, &f, &glyph->strokes[s], near);
    make_noise(&w, d->noise, noise);
    ink_pixels(near, f.radius, ink, noise, out[0]);
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
        return TT_FAIL(ctx, TT_EINVAL, "digits: cannot use %lld records from record %lld on",
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
    {"count", TT_OPT_INT, "20000", "number of records", offsetof(tt_digits_opts, count), 1, 1e18,
     NULL},
    {"first", TT_OPT_INT, "0",
     "index of the first record; different ranges give data sets that do not overlap",
     offsetof(tt_digits_opts, first), 0, 1e18, NULL},
    {"seed", TT_OPT_INT, "1", "random seed of the drawings", offsetof(tt_digits_opts, set), 0, 0,
     NULL},
    {"noise", TT_OPT_FLOAT, "0.15", "standard deviation of the pixel noise; negative: no noise",
     offsetof(tt_digits_opts, noise), -1, 1, NULL},
    TT_OPTION_END,
};

const tt_source_def tti_source_digits = {
    .name = "digits",
    .help = "generated images of digits, 28 x 28; needs no files",
    .options = digits_options,
    .options_size = sizeof(tt_digits_opts),
    .main = "count",
    .open = digits_open,
};
