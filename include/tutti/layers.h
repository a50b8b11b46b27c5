/*
 * layers.h - more layers: gates, joins, padding and scaling of images, noise, group norms, 1-d
 * convolutions and pooling, transposed and separable convolutions. As those of model.h: each call
 * appends a layer and returns its output, NULL on failure.
 *
 * Images are [batch, height, width, channels], sequences [batch, time, channels].
 */
#ifndef TUTTI_LAYERS_H
#define TUTTI_LAYERS_H

#include <tutti/model.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- gates and activations -------------------------------------------------------------------

typedef struct tt_layer_glu_opts {
    size_t opts_size;
    tt_act act; // of the gate; default TT_SIGMOID
    TT_LAYER_OPTIONS;
} tt_layer_glu_opts;
// a act(b), a and b the halves of the last axis of x.
TT_API tt_tensor *tt_layer_glu_with(tt_model *m, const tt_layer_glu_opts *opts);
#define tt_layer_glu(...) TT_CALL1(tt_layer_glu, __VA_ARGS__, )

typedef struct tt_layer_swiglu_opts {
    size_t opts_size;
    int hidden; // width of gate and up; required
    int units;  // width of the output; default: that of the input
    bool no_bias;
    tt_init init; // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_swiglu_opts;
typedef tt_layer_swiglu_opts tt_layer_geglu_opts;
// The feed-forward layer of LLaMA, (act(x gate) * (x up)) down on the last axis; act is silu, of
// geglu gelu_erf.
TT_API tt_tensor *tt_layer_swiglu_with(tt_model *m, const tt_layer_swiglu_opts *opts);
TT_API tt_tensor *tt_layer_geglu_with(tt_model *m, const tt_layer_swiglu_opts *opts);
#define tt_layer_swiglu(...) TT_CALL1(tt_layer_swiglu, __VA_ARGS__, )
#define tt_layer_geglu(...)  TT_CALL1(tt_layer_geglu, __VA_ARGS__, )

typedef struct tt_layer_prelu_opts {
    size_t opts_size;
    double slope; // initial slope for negative x; default 0.25; TT_ZERO: 0
    bool shared;  // one slope for all channels; default: one each
    TT_LAYER_OPTIONS;
} tt_layer_prelu_opts;
// x > 0 ? x : weight x; the weight, [channels] or [1], is trained.
TT_API tt_tensor *tt_layer_prelu_with(tt_model *m, const tt_layer_prelu_opts *opts);
#define tt_layer_prelu(...) TT_CALL1(tt_layer_prelu, __VA_ARGS__, )

// ---- joins -----------------------------------------------------------------------------------

typedef tt_plain_opts tt_layer_multiply_opts, tt_layer_subtract_opts, tt_layer_average_opts,
    tt_layer_maximum_opts, tt_layer_minimum_opts;
// Of all of .from, element by element; with one, of the last layer and it. subtract takes two.
TT_API tt_tensor *tt_layer_multiply_with(tt_model *m, const tt_plain_opts *opts);
TT_API tt_tensor *tt_layer_subtract_with(tt_model *m, const tt_plain_opts *opts);
TT_API tt_tensor *tt_layer_average_with(tt_model *m, const tt_plain_opts *opts);
TT_API tt_tensor *tt_layer_maximum_with(tt_model *m, const tt_plain_opts *opts);
TT_API tt_tensor *tt_layer_minimum_with(tt_model *m, const tt_plain_opts *opts);
#define tt_layer_multiply(...) TT_CALL1(tt_layer_multiply, __VA_ARGS__, )
#define tt_layer_subtract(...) TT_CALL1(tt_layer_subtract, __VA_ARGS__, )
#define tt_layer_average(...)  TT_CALL1(tt_layer_average, __VA_ARGS__, )
#define tt_layer_maximum(...)  TT_CALL1(tt_layer_maximum, __VA_ARGS__, )
#define tt_layer_minimum(...)  TT_CALL1(tt_layer_minimum, __VA_ARGS__, )

typedef struct tt_layer_dot_opts {
    size_t opts_size;
    bool normalise; // of vectors of length 1: cosines
    TT_LAYER_OPTIONS;
} tt_layer_dot_opts;
// Dot products along the last axis: [batch, n] and [batch, n] give [batch, 1]; [batch, t, n] and
// [batch, s, n] give [batch, t, s].
TT_API tt_tensor *tt_layer_dot_with(tt_model *m, const tt_layer_dot_opts *opts);
#define tt_layer_dot(...) TT_CALL1(tt_layer_dot, __VA_ARGS__, )

// ---- shapes ----------------------------------------------------------------------------------

typedef struct tt_layer_repeat_opts {
    size_t opts_size;
    int times; // required
    TT_LAYER_OPTIONS;
} tt_layer_repeat_opts;
// [batch, ...] becomes [batch, times, ...].
TT_API tt_tensor *tt_layer_repeat_with(tt_model *m, const tt_layer_repeat_opts *opts);
#define tt_layer_repeat(...) TT_CALL1(tt_layer_repeat, __VA_ARGS__, )

typedef struct tt_layer_zero_pad_opts {
    size_t opts_size;
    tt_ints pad; // all sides, one number per axis, or before and after of each axis; required
    TT_LAYER_OPTIONS;
} tt_layer_zero_pad_opts;
typedef tt_layer_zero_pad_opts tt_layer_crop_opts;
// Axes between batch and channels get more, or (crop) fewer, entries on both sides.
TT_API tt_tensor *tt_layer_zero_pad_with(tt_model *m, const tt_layer_zero_pad_opts *opts);
TT_API tt_tensor *tt_layer_crop_with(tt_model *m, const tt_layer_zero_pad_opts *opts);
#define tt_layer_zero_pad(...) TT_CALL1(tt_layer_zero_pad, __VA_ARGS__, )
#define tt_layer_crop(...)     TT_CALL1(tt_layer_crop, __VA_ARGS__, )

typedef enum tt_upsample_mode {
    TT_NEAREST = 0,
    TT_BILINEAR = 1, // between the centres of pixels, as PyTorch without align_corners
} tt_upsample_mode;
typedef struct tt_layer_upsample2d_opts {
    size_t opts_size;
    int factor[2]; // default 2
    tt_upsample_mode mode;
    TT_LAYER_OPTIONS;
} tt_layer_upsample2d_opts;
TT_API tt_tensor *tt_layer_upsample2d_with(tt_model *m, const tt_layer_upsample2d_opts *opts);
#define tt_layer_upsample2d(...) TT_CALL1(tt_layer_upsample2d, __VA_ARGS__, )

typedef struct tt_layer_pixel_shuffle_opts {
    size_t opts_size;
    int factor; // default 2
    TT_LAYER_OPTIONS;
} tt_layer_pixel_shuffle_opts;
typedef tt_layer_pixel_shuffle_opts tt_layer_pixel_unshuffle_opts, tt_layer_upsample1d_opts;
// [b, h, w, c factor factor] becomes [b, h factor, w factor, c], channels in PyTorch's order; and
// back.
TT_API tt_tensor *tt_layer_pixel_shuffle_with(tt_model *m, const tt_layer_pixel_shuffle_opts *opts);
TT_API tt_tensor *tt_layer_pixel_unshuffle_with(tt_model *m,
                                                const tt_layer_pixel_shuffle_opts *opts);
// Repeats each step of [batch, time, channels].
TT_API tt_tensor *tt_layer_upsample1d_with(tt_model *m, const tt_layer_pixel_shuffle_opts *opts);
#define tt_layer_pixel_shuffle(...)   TT_CALL1(tt_layer_pixel_shuffle, __VA_ARGS__, )
#define tt_layer_pixel_unshuffle(...) TT_CALL1(tt_layer_pixel_unshuffle, __VA_ARGS__, )
#define tt_layer_upsample1d(...)      TT_CALL1(tt_layer_upsample1d, __VA_ARGS__, )

// ---- noise: in training only -----------------------------------------------------------------

typedef tt_layer_dropout_opts tt_layer_spatial_dropout_opts, tt_layer_gaussian_dropout_opts;
// Drops whole channels of a record: one draw for all places.
TT_API tt_tensor *tt_layer_spatial_dropout_with(tt_model *m, const tt_layer_dropout_opts *opts);
// Multiplies by normal numbers of mean 1 and deviation sqrt(rate / (1 - rate)).
TT_API tt_tensor *tt_layer_gaussian_dropout_with(tt_model *m, const tt_layer_dropout_opts *opts);
#define tt_layer_spatial_dropout(...)  TT_CALL1(tt_layer_spatial_dropout, __VA_ARGS__, )
#define tt_layer_gaussian_dropout(...) TT_CALL1(tt_layer_gaussian_dropout, __VA_ARGS__, )

typedef struct tt_layer_gaussian_noise_opts {
    size_t opts_size;
    double deviation; // default 0.1
    TT_LAYER_OPTIONS;
} tt_layer_gaussian_noise_opts;
// Adds normal numbers of mean 0.
TT_API tt_tensor *tt_layer_gaussian_noise_with(tt_model *m,
                                               const tt_layer_gaussian_noise_opts *opts);
#define tt_layer_gaussian_noise(...) TT_CALL1(tt_layer_gaussian_noise, __VA_ARGS__, )

// ---- norms -----------------------------------------------------------------------------------

typedef struct tt_layer_group_norm_opts {
    size_t opts_size;
    int groups; // of channels; default 32; instance_norm: one for each channel
    double eps; // default 1e-5; TT_ZERO: 0
    TT_LAYER_OPTIONS;
} tt_layer_group_norm_opts;
typedef tt_layer_group_norm_opts tt_layer_instance_norm_opts;
// Normalises each group of channels of each record, over all places; then scale and shift.
TT_API tt_tensor *tt_layer_group_norm_with(tt_model *m, const tt_layer_group_norm_opts *opts);
TT_API tt_tensor *tt_layer_instance_norm_with(tt_model *m, const tt_layer_group_norm_opts *opts);
#define tt_layer_group_norm(...)    TT_CALL1(tt_layer_group_norm, __VA_ARGS__, )
#define tt_layer_instance_norm(...) TT_CALL1(tt_layer_instance_norm, __VA_ARGS__, )

// ---- convolutions ----------------------------------------------------------------------------

typedef struct tt_layer_conv1d_opts {
    size_t opts_size;
    int filters; // required
    int kernel;  // default 3
    int stride;  // default 1
    tt_padding padding;
    int pad;      // explicit zero padding on both sides, instead of padding
    bool causal;  // pad on the left only, so that a step depends on none after it
    int dilation; // default 1
    int groups;   // default 1
    tt_act act;
    bool no_bias;
    tt_init init; // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_conv1d_opts;
TT_API tt_tensor *tt_layer_conv1d_with(tt_model *m, const tt_layer_conv1d_opts *opts);
#define tt_layer_conv1d(...) TT_CALL1(tt_layer_conv1d, __VA_ARGS__, )

typedef struct tt_layer_conv2d_transpose_opts {
    size_t opts_size;
    int filters;        // required
    int kernel[2];      // default 3
    int stride[2];      // default 1
    tt_padding padding; // same: the output is stride times as large
    int pad[2];         // rows and columns removed on each side of the output
    int extra[2];       // rows and columns added at the end of the output; below stride
    tt_act act;
    bool no_bias;
    tt_init init; // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_conv2d_transpose_opts;
// The weight is [h, w, filters, in].
TT_API tt_tensor *tt_layer_conv2d_transpose_with(tt_model *m,
                                                 const tt_layer_conv2d_transpose_opts *opts);
#define tt_layer_conv2d_transpose(...) TT_CALL1(tt_layer_conv2d_transpose, __VA_ARGS__, )

typedef struct tt_layer_conv1d_transpose_opts {
    size_t opts_size;
    int filters; // required
    int kernel;  // default 3
    int stride;  // default 1
    tt_padding padding;
    int pad;
    int extra;
    tt_act act;
    bool no_bias;
    tt_init init; // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_conv1d_transpose_opts;
TT_API tt_tensor *tt_layer_conv1d_transpose_with(tt_model *m,
                                                 const tt_layer_conv1d_transpose_opts *opts);
#define tt_layer_conv1d_transpose(...) TT_CALL1(tt_layer_conv1d_transpose, __VA_ARGS__, )

typedef struct tt_layer_separable_conv2d_opts {
    size_t opts_size;
    int filters;   // required
    int kernel[2]; // default 3
    int stride[2]; // default 1
    tt_padding padding;
    int pad[2];
    int multiplier; // filters per channel of the depthwise part; default 1
    tt_act act;
    bool no_bias;
    tt_init init; // default Glorot uniform
    TT_LAYER_OPTIONS;
} tt_layer_separable_conv2d_opts;
// A depthwise convolution, then one of 1 x 1; bias and activation follow the second.
TT_API tt_tensor *tt_layer_separable_conv2d_with(tt_model *m,
                                                 const tt_layer_separable_conv2d_opts *opts);
#define tt_layer_separable_conv2d(...) TT_CALL1(tt_layer_separable_conv2d, __VA_ARGS__, )

// ---- pooling ---------------------------------------------------------------------------------

typedef struct tt_layer_max_pool1d_opts {
    size_t opts_size;
    int size;   // default 2
    int stride; // default: size
    tt_padding padding;
    int pad; // explicit padding on both sides; padded entries are ignored
    TT_LAYER_OPTIONS;
} tt_layer_max_pool1d_opts;
typedef tt_layer_max_pool1d_opts tt_layer_avg_pool1d_opts;
TT_API tt_tensor *tt_layer_max_pool1d_with(tt_model *m, const tt_layer_max_pool1d_opts *opts);
TT_API tt_tensor *tt_layer_avg_pool1d_with(tt_model *m, const tt_layer_max_pool1d_opts *opts);
#define tt_layer_max_pool1d(...) TT_CALL1(tt_layer_max_pool1d, __VA_ARGS__, )
#define tt_layer_avg_pool1d(...) TT_CALL1(tt_layer_avg_pool1d, __VA_ARGS__, )

typedef tt_plain_opts tt_layer_global_avg_pool1d_opts, tt_layer_global_max_pool1d_opts;
TT_API tt_tensor *tt_layer_global_avg_pool1d_with(tt_model *m, const tt_plain_opts *opts);
TT_API tt_tensor *tt_layer_global_max_pool1d_with(tt_model *m, const tt_plain_opts *opts);
#define tt_layer_global_avg_pool1d(...) TT_CALL1(tt_layer_global_avg_pool1d, __VA_ARGS__, )
#define tt_layer_global_max_pool1d(...) TT_CALL1(tt_layer_global_max_pool1d, __VA_ARGS__, )

typedef struct tt_layer_adaptive_avg_pool2d_opts {
    size_t opts_size;
    int size[2]; // height and width of the output; required
    TT_LAYER_OPTIONS;
} tt_layer_adaptive_avg_pool2d_opts;
typedef tt_layer_adaptive_avg_pool2d_opts tt_layer_adaptive_max_pool2d_opts;
// Output i of n covers entries floor(i h / n) to ceil((i + 1) h / n) - 1, as in PyTorch.
TT_API tt_tensor *tt_layer_adaptive_avg_pool2d_with(tt_model *m,
                                                    const tt_layer_adaptive_avg_pool2d_opts *opts);
TT_API tt_tensor *tt_layer_adaptive_max_pool2d_with(tt_model *m,
                                                    const tt_layer_adaptive_avg_pool2d_opts *opts);
#define tt_layer_adaptive_avg_pool2d(...) TT_CALL1(tt_layer_adaptive_avg_pool2d, __VA_ARGS__, )
#define tt_layer_adaptive_max_pool2d(...) TT_CALL1(tt_layer_adaptive_max_pool2d, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
