/*
 * conv.h - geometry that the convolutions' records and kernels share.
 */
#ifndef TUTTI_OP_CONV_H
#define TUTTI_OP_CONV_H

#include "op/op.h"

TT_CPU_DECLARE(tti_conv2d);
TT_CPU_DECLARE(tti_conv2d_dw);

// Attributes of all convolution ops; padding is resolved to numbers when a node is built.
typedef struct tti_conv_attr {
    tt_ints stride; // height, width
    tt_ints pad;    // top, bottom, left, right
    tt_ints size;   // dx: height and width of x; dw: of the kernel; else none
    int act;
    bool wide; // dw: y is f32 though x and dy are bf16 or f16
} tti_conv_attr;
extern const tt_op tti_op_conv2d, tti_op_conv2d_dx, tti_op_conv2d_dw;
extern const tt_option tti_conv_options[];    // stride, pad, act
extern const tt_option tti_conv_dx_options[]; // stride, pad, size
extern const tt_option tti_conv_dw_options[]; // those, wide

// The sizes of one convolution: x [batch, h, w, c_in], w [kh, kw, ...], y [batch, oh, ow, c_out].
typedef struct tti_conv_dims {
    int64_t batch, h, w, c_in, oh, ow, c_out, kh, kw;
    int64_t sh, sw, pt, pl;
} tti_conv_dims;

// conv_shape.c: windows over images, for convolutions and pooling.

#define TTI_WINDOW_MAX (1 << 20) // the largest window, stride and padding

/*
 * Resolves the options of a window of kh x kw over x [batch, h, w, c] to strides and paddings; a
 * stride of 0 is that axis of otherwise. Checks x; name is the op's, for messages.
 */
tt_status tti_window_fill(tt_ctx *ctx, const char *name, tt_tensor *x, const int64_t k[2],
                          const int stride[2], const int64_t otherwise[2], tt_padding rule,
                          const int pad[4], tt_ints *out_stride, tt_ints *out_pad);
// Output positions of a window over n entries of an axis (0: height, 1: width); below 1: no fit.
int64_t tti_window_out(const tt_ints *stride, const tt_ints *pad, int axis, int64_t n, int64_t k);
// Attributes that came from text: counts and bounds.
tt_status tti_window_check(tt_ctx *ctx, const char *name, const tt_ints *stride,
                           const tt_ints *pad);
// An image [batch, h, w, c] of floats: rank 4, no open or empty axis but the first.
tt_status tti_image_check(tt_ctx *ctx, const char *name, const char *what, const tt_tensor *x);

// conv.c, for depthwise.c as well.

tt_status tti_conv_fill(tt_ctx *ctx, const char *name, tt_tensor *x, tt_tensor *w,
                        const tt_conv2d_opts *o, tti_conv_attr *out);
// The gradient at the sum before the activation.
tt_tensor *tti_conv_dz(tt_graph *g, const tt_node *n, int act, tt_tensor *const *dy);
// Inputs 0 and 1 split by rows give a lane sum.
tt_status tti_conv_split_dw(const tt_split_query *q);
tti_conv_dims tti_conv_dims_of(const tti_conv_attr *a, const tt_shape *x, const tt_shape *w,
                               const tt_shape *y);
/*
 * Shape rules that differ only in what w is: conv2d w [kh, kw, c_in, c_out]; depthwise w [kh, kw,
 * c_in, multiplier] with c_in multiplier outputs.
 */
tt_status tti_conv_infer(tt_infer *q, bool depthwise);
tt_status tti_conv_infer_dx(tt_infer *q, bool depthwise);
tt_status tti_conv_infer_dw(tt_infer *q, bool depthwise);

// conv_plan.c

tt_status tti_conv_prepare(tt_prep *p);
tt_status tti_conv_dx_prepare(tt_prep *p);
tt_status tti_conv_dw_prepare(tt_prep *p);
// Rate of product kernels of an instruction set on one core, for time estimates.
double tti_conv_flops_per_ns(int isa);
static inline size_t tti_real_bytes(int isa)
{
    return isa == TT_ISA_F64 ? sizeof(double) : sizeof(float);
}

/*
 * The record of an op on images [batch, h, w, channels], whose rows are free. type_ is the struct
 * of the attributes, kernel_ the CPU's.
 */
#define TTI_IMAGE_OP(name_, inputs_, max_inputs_, options_, type_, infer_, grad_, kernel_, prep_, \
                     help_)                                                                       \
    const tt_op tti_op_##name_ = {                                                                \
        .name = #name_,                                                                           \
        .help = help_,                                                                            \
        .inputs = inputs_,                                                                        \
        .max_inputs = max_inputs_,                                                                \
        .flags = TT_OP_ROW_FREE,                                                                  \
        .attrs = options_,                                                                        \
        .attr_size = sizeof(type_),                                                               \
        .infer = infer_,                                                                          \
        .split = tti_split_first,                                                                 \
        .grad = grad_,                                                                            \
        .kernel = {[TT_CPU] = TTI_CPU(kernel_, prep_)},                                           \
    }

#endif
