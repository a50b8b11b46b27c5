/*
 * layer_resize.c - more or fewer entries along the axes between batch and channels: repeat,
 * zero_pad, crop, upsampling, pixel_shuffle, adaptive pooling. None has weights.
 *
 * Bilinear upsampling and averages over windows of unequal size are products with a constant matrix
 * for each axis, [outputs, inputs]: row i has the weights of output i.
 */
#include "model/layer.h"

// ---- repeat ----------------------------------------------------------------------------------

static const tt_option repeat_options[] = {
    {"times", TT_OPT_INT32, NULL, "how many times", offsetof(tt_layer_repeat_opts, times), 1,
     TTI_MAX_WIDTH, NULL},
    TT_OPTION_END,
};

static tt_tensor *repeat_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    tt_tensor *x = tt_expand_dims(b->graph, in[0], 1);
    return x == NULL ? NULL : tt_tile(b->graph, x, 1, ((const tt_layer_repeat_opts *)opts)->times);
}

TTI_LAYER(repeat, tt_layer_repeat_opts, repeat_options, "times", repeat_build,
          "repeat each record along a new axis: [batch, ...] becomes [batch, times, ...]")

// ---- zero_pad, crop --------------------------------------------------------------------------

static const tt_option pad_options[] = {
    {"pad", TT_OPT_INTS, NULL,
     "entries on each side: 1 for all sides, [1, 2] by axis, [1, 1, 2, 2] before and after each",
     offsetof(tt_layer_zero_pad_opts, pad), 0, TTI_MAX_SIDE, NULL},
    TT_OPTION_END,
};

// Before and after each axis between batch and channels.
static bool sides(tt_build *b, const tt_tensor *x, const tt_ints *pad, int64_t out[][2])
{
    char text[TT_SHAPE_TEXT];
    int axes = x->shape.rank - 2;
    if (axes < 1) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE,
                      "x is %s; it must have axes between batch and channels, as [batch, time, "
                      "channels]",
                      tt_shape_text(&x->shape, text));
        return false;
    }
    if (pad->n != 1 && pad->n != axes && pad->n != 2 * axes) {
        (void)TT_FAIL(b->model->ctx, TT_EINVAL,
                      "pad has %d numbers; x is %s, which takes 1 for all sides, %d by axis, or %d "
                      "before and after each axis",
                      pad->n, tt_shape_text(&x->shape, text), axes, 2 * axes);
        return false;
    }
    for (int i = 0; i < axes; i++)
        for (int k = 0; k < 2; k++)
            out[i][k] = pad->v[pad->n == 1 ? 0 : pad->n == 2 * axes ? 2 * i + k : i];
    return true;
}

static tt_tensor *zero_pad_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    int64_t side[TT_MAX_RANK][2];
    tt_tensor *x = in[0];
    if (!sides(b, x, &((const tt_layer_zero_pad_opts *)opts)->pad, side))
        return NULL;
    for (int i = 0; i < in[0]->shape.rank - 2 && x != NULL; i++)
        if (side[i][0] + side[i][1] > 0)
            x = tt_pad(b->graph, x, i + 1, side[i][0], side[i][1]);
    return x;
}

static tt_tensor *crop_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    int64_t side[TT_MAX_RANK][2];
    char text[TT_SHAPE_TEXT];
    tt_tensor *x = in[0];
    if (!sides(b, x, &((const tt_layer_zero_pad_opts *)opts)->pad, side))
        return NULL;
    for (int i = 0; i < in[0]->shape.rank - 2 && x != NULL; i++) {
        int64_t n = x->shape.dim[i + 1];
        if (side[i][0] + side[i][1] >= n) {
            (void)TT_FAIL(b->model->ctx, TT_ESHAPE,
                          "x is %s; of its %lld entries along axis %d, %lld and %lld cannot be cut "
                          "off",
                          tt_shape_text(&in[0]->shape, text), (long long)n, i + 1,
                          (long long)side[i][0], (long long)side[i][1]);
            return NULL;
        }
        if (side[i][0] + side[i][1] > 0)
            x = tt_slice(b->graph, x, i + 1, side[i][0], n - side[i][1]);
    }
    return x;
}

TTI_LAYER(zero_pad, tt_layer_zero_pad_opts, pad_options, "pad", zero_pad_build,
          "add zeros around the axes between batch and channels")
TTI_LAYER(crop, tt_layer_zero_pad_opts, pad_options, "pad", crop_build,
          "remove entries at the borders of the axes between batch and channels")

// ---- products with a matrix per axis ---------------------------------------------------------

// Fills row i of outputs n from inputs: out[0..inputs) is zeroed.
typedef void (*row_fn)(int64_t i, int64_t n, int64_t inputs, float *out);

static tt_tensor *matrix(tt_build *b, row_fn fill, int64_t n, int64_t inputs, tt_dtype dtype)
{
    tt_ctx *ctx = b->model->ctx;
    float *w = tti_calloc(ctx, (size_t)(n * inputs), sizeof(*w));
    if (w == NULL)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        fill(i, n, inputs, w + i * inputs);
    tt_tensor *t = tt_const(b->graph, TT_F32, TT_SHAPE(n, inputs), w);
    tti_free(ctx, w);
    return t == NULL ? NULL : tt_cast(b->graph, t, dtype);
}

// x [batch, h, w, c] becomes [batch, size[0], size[1], c].
static tt_tensor *by_matrices(tt_build *b, tt_tensor *x, row_fn fill, const int64_t size[2])
{
    const int64_t *d = x->shape.dim, batch = d[0], h = d[1], w = d[2], c = d[3];
    tt_graph *g = b->graph;
    if (size[0] != h) {
        tt_tensor *m = matrix(b, fill, size[0], h, x->dtype);
        x = m == NULL ? NULL : tt_matmul(g, m, tt_reshape(g, x, TT_SHAPE(batch, h, w * c)));
        x = x == NULL ? NULL : tt_reshape(g, x, TT_SHAPE(batch, size[0], w, c));
    }
    if (x != NULL && size[1] != w) {
        tt_tensor *m = matrix(b, fill, size[1], w, x->dtype);
        x = m == NULL ? NULL : tt_matmul(g, m, x);
    }
    return x;
}

// ---- upsampling ------------------------------------------------------------------------------

static const char *const mode_words[] = {"nearest", "bilinear", NULL};
static const tt_option upsample2d_options[] = {
    TTI_PAIR_ROW(tt_layer_upsample2d_opts, factor, "2", 1, "factor of the height and the width"),
    {"mode", TT_OPT_ENUM, "nearest", "repeat pixels, or interpolate between their centres",
     offsetof(tt_layer_upsample2d_opts, mode), 0, 0, mode_words},
    TT_OPTION_END,
};

static void bilinear_row(int64_t i, int64_t n, int64_t inputs, float *out)
{
    double at = ((double)i + 0.5) * (double)inputs / (double)n - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at, high = low + 1 < inputs ? low + 1 : inputs - 1;
    out[low] += (float)(1 - (at - (double)low));
    out[high] += (float)(at - (double)low);
}

// Every entry of the axis so many times.
static tt_tensor *repeat_each(tt_graph *g, tt_tensor *x, int axis, int64_t times)
{
    if (x == NULL || times == 1)
        return x;
    tt_shape s = x->shape;
    s.dim[axis] *= times;
    x = tt_expand_dims(g, x, axis + 1);
    x = x == NULL ? NULL : tt_tile(g, x, axis + 1, times);
    return x == NULL ? NULL : tt_reshape(g, x, s);
}

static tt_tensor *upsample2d_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    const tt_layer_upsample2d_opts *o = opts;
    tt_tensor *x = in[0];
    if (!tti_layer_image_check(b, x))
        return NULL;
    if (o->mode == TT_BILINEAR) {
        int64_t size[2] = {x->shape.dim[1] * o->factor[0], x->shape.dim[2] * o->factor[1]};
        return by_matrices(b, x, bilinear_row, size);
    }
    return repeat_each(b->graph, repeat_each(b->graph, x, 2, o->factor[1]), 1, o->factor[0]);
}

TTI_LAYER(upsample2d, tt_layer_upsample2d_opts, upsample2d_options, "factor", upsample2d_build,
          "enlarge images by whole factors")

static const tt_option factor_options[] = {
    TTI_INT_ROW(tt_layer_pixel_shuffle_opts, factor, "2", 1, "factor"),
    TT_OPTION_END,
};

static tt_tensor *upsample1d_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    if (!tti_layer_sequence_check(b, in[0]))
        return NULL;
    return repeat_each(b->graph, in[0], 1, ((const tt_layer_pixel_shuffle_opts *)opts)->factor);
}

TTI_LAYER(upsample1d, tt_layer_pixel_shuffle_opts, factor_options, "factor", upsample1d_build,
          "repeat each step of a sequence")

// ---- pixel_shuffle ---------------------------------------------------------------------------

static tt_tensor *shuffle_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    int64_t r = ((const tt_layer_pixel_shuffle_opts *)opts)->factor;
    if (!tti_layer_image_check(b, in[0]))
        return NULL;
    const int64_t *d = in[0]->shape.dim;
    if (d[3] % (r * r) != 0) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE,
                      "x has %lld channels; a factor of %lld needs a multiple of %lld",
                      (long long)d[3], (long long)r, (long long)(r * r));
        return NULL;
    }
    int64_t n = d[0], h = d[1], w = d[2], c = d[3] / (r * r);
    tt_tensor *x = tt_reshape(b->graph, in[0], TT_SHAPE(n, h, w, c, r, r));
    x = x == NULL ? NULL : tt_transpose(b->graph, x, TT_AXES(0, 1, 4, 2, 5, 3));
    return x == NULL ? NULL : tt_reshape(b->graph, x, TT_SHAPE(n, h * r, w * r, c));
}

static tt_tensor *unshuffle_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    int64_t r = ((const tt_layer_pixel_shuffle_opts *)opts)->factor;
    if (!tti_layer_image_check(b, in[0]))
        return NULL;
    const int64_t *d = in[0]->shape.dim;
    if (d[1] % r != 0 || d[2] % r != 0) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE,
                      "x is an image of %lld x %lld; a factor of %lld must divide both",
                      (long long)d[1], (long long)d[2], (long long)r);
        return NULL;
    }
    int64_t n = d[0], h = d[1] / r, w = d[2] / r, c = d[3];
    tt_tensor *x = tt_reshape(b->graph, in[0], TT_SHAPE(n, h, r, w, r, c));
    x = x == NULL ? NULL : tt_transpose(b->graph, x, TT_AXES(0, 1, 3, 5, 2, 4));
    return x == NULL ? NULL : tt_reshape(b->graph, x, TT_SHAPE(n, h, w, c * r * r));
}

TTI_LAYER(pixel_shuffle, tt_layer_pixel_shuffle_opts, factor_options, "factor", shuffle_build,
          "move channels to pixels: [b, h, w, c f f] becomes [b, h f, w f, c]")
TTI_LAYER(pixel_unshuffle, tt_layer_pixel_shuffle_opts, factor_options, "factor", unshuffle_build,
          "move pixels to channels: [b, h f, w f, c] becomes [b, h, w, c f f]")

// ---- adaptive pooling ------------------------------------------------------------------------

static const tt_option adaptive_options[] = {
    TTI_PAIR_ROW(tt_layer_adaptive_avg_pool2d_opts, size, NULL, 1,
                 "height and width of the output: 7 or [7, 5]"),
    TT_OPTION_END,
};

static void window(int64_t i, int64_t n, int64_t inputs, int64_t *begin, int64_t *end)
{
    *begin = i * inputs / n;
    *end = ((i + 1) * inputs + n - 1) / n;
}

static void average_row(int64_t i, int64_t n, int64_t inputs, float *out)
{
    int64_t begin, end;
    window(i, n, inputs, &begin, &end);
    for (int64_t k = begin; k < end; k++)
        out[k] = (float)(1 / (double)(end - begin));
}

// The maxima of the windows along one axis.
static tt_tensor *maxima(tt_build *b, tt_tensor *x, int axis, int64_t n)
{
    tt_graph *g = b->graph;
    tt_tensor *y = NULL;
    for (int64_t i = 0, begin, end; x != NULL && i < n; i++) {
        window(i, n, x->shape.dim[axis], &begin, &end);
        tt_tensor *part = tt_slice(g, x, axis, begin, end);
        part = part == NULL ? NULL : tt_max(g, part, .axis = axis, .keep_dims = true);
        if (part == NULL)
            return NULL;
        y = y == NULL ? part : tt_concat(g, (tt_tensor *[]){y, part}, 2, axis);
    }
    return y;
}

static tt_tensor *adaptive(tt_build *b, const tt_layer_adaptive_avg_pool2d_opts *o, tt_tensor *x,
                           bool max)
{
    if (!tti_layer_image_check(b, x))
        return NULL;
    int64_t h = x->shape.dim[1], w = x->shape.dim[2], size[2] = {o->size[0], o->size[1]};
    if (h % size[0] == 0 && w % size[1] == 0) { // windows of one size
        tt_pool_opts p = {.opts_size = sizeof(p), .size = {(int)(h / size[0]), (int)(w / size[1])}};
        return max ? tt_max_pool2d_with(b->graph, x, &p) : tt_avg_pool2d_with(b->graph, x, &p);
    }
    if (!max)
        return by_matrices(b, x, average_row, size);
    return maxima(b, maxima(b, x, 1, size[0]), 2, size[1]);
}

static tt_tensor *adaptive_avg_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return adaptive(b, opts, in[0], false);
}

static tt_tensor *adaptive_max_build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    (void)n_in;
    return adaptive(b, opts, in[0], true);
}

TTI_LAYER(adaptive_avg_pool2d, tt_layer_adaptive_avg_pool2d_opts, adaptive_options, "size",
          adaptive_avg_build, "2-D average pooling to an output of a given size")
TTI_LAYER(adaptive_max_pool2d, tt_layer_adaptive_avg_pool2d_opts, adaptive_options, "size",
          adaptive_max_build, "2-D max pooling to an output of a given size")
