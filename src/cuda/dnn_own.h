/*
 * dnn_own.h - what the files of dnn.h share: cuDNN's functions and the graph itself.
 */
#ifndef TUTTI_CUDA_DNN_OWN_H
#define TUTTI_CUDA_DNN_OWN_H

#include "cuda/dnn.h"
#include <stdio.h>
#include <string.h>

#if TTI_HAS_CUDNN

#define MOST_TENSORS 96
#define MOST_DESCS   384
#define MOST_OPS     64
#define MOST_CONFIGS 32
#define WHY_BYTES    320

#define FUNCTIONS(X)                 \
    X(cudnnGetVersion)               \
    X(cudnnCreate)                   \
    X(cudnnDestroy)                  \
    X(cudnnSetStream)                \
    X(cudnnGetErrorString)           \
    X(cudnnGetLastErrorString)       \
    X(cudnnBackendCreateDescriptor)  \
    X(cudnnBackendDestroyDescriptor) \
    X(cudnnBackendFinalize)          \
    X(cudnnBackendSetAttribute)      \
    X(cudnnBackendGetAttribute)      \
    X(cudnnBackendExecute)

struct tti_dnn_functions {
#define X(name) decltype(&name) name##_;
    FUNCTIONS(X)
#undef X
    const char *why; // NULL: all were found
};

struct tti_dnn_graph {
    tti_cuda_device *device;
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t desc[MOST_DESCS]; // all of them, in the order they were made
    int n_desc;
    cudnnBackendDescriptor_t tensor[MOST_TENSORS + 1];
    int n_tensors;
    cudnnBackendDescriptor_t op[MOST_OPS];
    int n_ops;
    int scalar[8]; // tensors that are numbers
    float value[8];
    int n_scalars;
    cudnnBackendDescriptor_t plan;
    int64_t workspace;
    tti_dnn_choice chosen;
    bool failed;
    char why[WHY_BYTES];
};

// Found once, when first asked for.
const tti_dnn_functions *tti_dnn_library(void);

void tti_dnn_failed(tti_dnn_graph *g, const char *what, cudnnStatus_t st);
// A descriptor of the graph; NULL once the graph has failed.
cudnnBackendDescriptor_t tti_dnn_make(tti_dnn_graph *g, cudnnBackendDescriptorType_t type);
void tti_dnn_put(tti_dnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, int64_t n, const void *values);
void tti_dnn_finalize(tti_dnn_graph *g, cudnnBackendDescriptor_t d, const char *what);

#endif
#endif
