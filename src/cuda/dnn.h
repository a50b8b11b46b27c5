/*
 * dnn.h - cuDNN's graphs: tensors and operations are collected, a plan is built once, then run.
 *
 * A graph remembers its first failure, so calls that add to it need no checks: tti_dnn_build() says
 * whether all went well. That there is no plan is no error of the user's; whoever asked has a
 * kernel of its own. Tensors are named by numbers from 1 on; 0 is none.
 *
 *     tti_dnn_graph *g = tti_dnn_graph_new(d);           NULL: no cuDNN
 *     int x = tti_dnn_tensor(g, type, 4, dim, stride), w = ..., y = ...;
 *     tti_dnn_conv(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, &conv, x, w, y);
 *     if (!tti_dnn_build(g, &opts)) ...                  tti_dnn_why(g) has the reason
 *     ... tti_dnn_workspace(g) bytes are asked for in prepare(); in the kernel:
 *     TT_TRY(tti_dnn_run(g, l, 3, (int[]){x, w, y}, (void *[]){...}, workspace));
 *
 * Kept in a recipe, whose drop function calls tti_dnn_graph_free(). Without cuDNN's headers, and in
 * the emulation, TTI_HAS_CUDNN is 0 and there is nothing here.
 */
#ifndef TUTTI_CUDA_DNN_H
#define TUTTI_CUDA_DNN_H

#include "cuda/cuda.h"

#ifndef TTI_HAS_CUDNN
#if !defined(TTI_EMU) && defined(__has_include)
#if __has_include(<cudnn_graph.h>)
#define TTI_HAS_CUDNN 1
#endif
#endif
#endif
#ifndef TTI_HAS_CUDNN
#define TTI_HAS_CUDNN 0
#endif

// 91900 is 9.19.0; 0 with the reason in *why, if why is given: no cuDNN.
int tti_dnn_version(const char **why);

#if TTI_HAS_CUDNN
#include <cudnn_graph.h>

typedef struct tti_dnn_graph tti_dnn_graph;

// NULL without cuDNN or memory; nothing is recorded as an error.
tti_dnn_graph *tti_dnn_graph_new(tti_cuda_device *d);
void tti_dnn_graph_free(tti_dnn_graph *g); // NULL is fine

cudnnDataType_t tti_dnn_type(tt_dtype t); // f32, bf16, f16, i32, bool

// ---- tensors: strides are in elements; NULL: dense, the last axis fastest ---------------------

int tti_dnn_tensor(tti_dnn_graph *g, cudnnDataType_t type, int rank, const int64_t *dim,
                   const int64_t *stride);
// Never in memory: passed from one operation to the next.
int tti_dnn_virtual(tti_dnn_graph *g, cudnnDataType_t type, int rank, const int64_t *dim,
                    const int64_t *stride);
// A number of type float, the same in every run.
int tti_dnn_scalar(tti_dnn_graph *g, int rank, float value);

// ---- operations ------------------------------------------------------------------------------

// y = mode(x, b), or of x alone with b 0; for CUDNN_POINTWISE_BINARY_SELECT y = t ? x : b. axis is
// read by CUDNN_POINTWISE_GEN_INDEX alone.
void tti_dnn_pointwise(tti_dnn_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int x,
                       int b, int t, int y, int axis);
void tti_dnn_matmul(tti_dnn_graph *g, int a, int b, int c); // computes in float
void tti_dnn_reduce(tti_dnn_graph *g, cudnnReduceTensorOp_t op, int x, int y);
void tti_dnn_reshape(tti_dnn_graph *g, int x, int y);

#define TTI_DNN_SPATIAL 3
typedef struct tti_dnn_conv_opts {
    int spatial;                                             // axes
    int64_t before[TTI_DNN_SPATIAL], after[TTI_DNN_SPATIAL]; // padding
    int64_t stride[TTI_DNN_SPATIAL], dilation[TTI_DNN_SPATIAL];
    cudnnDataType_t compute;
} tti_dnn_conv_opts;
// kind is CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_, _BACKWARD_DATA_ or
// _BACKWARD_FILTER_DESCRIPTOR; x, w and y stand for dx, dw and dy where they are the gradients.
void tti_dnn_conv(tti_dnn_graph *g, cudnnBackendDescriptorType_t kind, const tti_dnn_conv_opts *o,
                  int x, int w, int y);

// ---- plans -----------------------------------------------------------------------------------

// An engine with its knobs: what a plan of another batch size must have so that bits stay the same.
#define TTI_DNN_KNOBS 24
typedef struct tti_dnn_choice {
    int64_t engine;
    int n_knobs;
    cudnnBackendKnobType_t knob[TTI_DNN_KNOBS];
    int64_t value[TTI_DNN_KNOBS];
} tti_dnn_choice;

#define TTI_DNN_NOTE(n) (1u << CUDNN_NUMERICAL_NOTE_##n)
// Engines whose bits may change from run to run, or that round what they were not asked to round.
#define TTI_DNN_LOOSE                                                     \
    (TTI_DNN_NOTE(NONDETERMINISTIC) | TTI_DNN_NOTE(DOWN_CONVERT_INPUTS) | \
     TTI_DNN_NOTE(REDUCED_PRECISION_REDUCTION) | TTI_DNN_NOTE(WINOGRAD) | TTI_DNN_NOTE(FFT))

typedef struct tti_dnn_opts {
    unsigned refuse;              // notes that an engine must not have
    size_t most_workspace;        // bytes; 0: any
    int nth;                      // of the engines that fit, by the heuristics' order; 0: the first
    const tti_dnn_choice *choice; // exactly this one; NULL: by the heuristics
} tti_dnn_opts;

// Builds the plan: slow where cuDNN compiles. False: there is none.
bool tti_dnn_build(tti_dnn_graph *g, const tti_dnn_opts *opts);
const char *tti_dnn_why(const tti_dnn_graph *g);
size_t tti_dnn_workspace(const tti_dnn_graph *g);
const tti_dnn_choice *tti_dnn_chosen(const tti_dnn_graph *g);

// Enqueues the plan on l->stream. tensor[i] lies at data[i]; workspace is aligned to 256 bytes.
tt_status tti_dnn_run(tti_dnn_graph *g, const tt_launch *l, int n, const int *tensor,
                      void *const *data, void *workspace);

#endif
#endif
