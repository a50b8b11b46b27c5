/*
 * dnn.cu - see dnn.h. cuDNN is opened at run time; its backend interface is plain C: descriptors
 * are made, given attributes by number, finalized, and named by the next ones.
 */
#include "cuda/dnn_own.h"
#include <initializer_list>

#if !TTI_HAS_CUDNN

int tti_dnn_version(const char **why)
{
    if (why != NULL)
        *why = "built without cuDNN's headers";
    return 0;
}

#else

// ---- the library -----------------------------------------------------------------------------

static tti_dnn_functions find_functions(void)
{
    tti_dnn_functions f = {};
    static const char *const names[] = {"libcudnn.so.9", "libcudnn.so", NULL};
    // What cuDNN itself opens by name is found if it is loaded already.
    static const char *const needs[][4] = {
        {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL},
        {"libcublasLt.so.13", "libcublasLt.so.12", NULL, NULL}};
    const char *why = NULL, *own = tti_cuda_host_api->env("TUTTI_CUDA_OWN");
    if (own != NULL && own[0] == '1') { // for comparisons with our own kernels
        f.why = "TUTTI_CUDA_OWN=1";
        return f;
    }
    for (int i = 0; i < 2; i++)
        (void)tti_cuda_library(needs[i], &why);
    void *lib = tti_cuda_library(names, &f.why);
    if (lib == NULL) {
        f.why = f.why != NULL ? f.why : "libcudnn.so.9: not found";
        return f;
    }
    f.why = NULL;
#define X(name)                                               \
    f.name##_ = (decltype(&name))tti_cuda_symbol(lib, #name); \
    if (f.name##_ == NULL)                                    \
        f.why = "libcudnn.so.9: has no " #name;
    FUNCTIONS(X)
#undef X
    if (f.why == NULL && f.cudnnGetVersion_() < 90000)
        f.why = "libcudnn.so.9: older than 9.0";
    return f;
}

const tti_dnn_functions *tti_dnn_library(void)
{
    static const tti_dnn_functions f = find_functions(); // found once, then never changed
    return &f;
}

int tti_dnn_version(const char **why)
{
    const tti_dnn_functions *f = tti_dnn_library();
    if (why != NULL)
        *why = f->why;
    return f->why == NULL ? (int)f->cudnnGetVersion_() : 0;
}

static void drop_handle(void *recipe)
{
    cudnnHandle_t h = *(cudnnHandle_t *)recipe;
    if (h != NULL)
        tti_dnn_library()->cudnnDestroy_(h);
}

// The device's handle; it goes with the device's recipes.
static cudnnHandle_t handle_of(tti_cuda_device *d)
{
    static const char key[] = "cudnn handle";
    if (d->dnn != NULL || tti_dnn_library()->why != NULL)
        return (cudnnHandle_t)d->dnn;
    bool is_new = false;
    cudnnHandle_t *h =
        (cudnnHandle_t *)tti_recipe_get(d, key, sizeof(key), sizeof(*h), drop_handle, &is_new);
    if (h == NULL || !is_new)
        return NULL;
    cudnnStatus_t st = tti_dnn_library()->cudnnCreate_(h);
    if (st != CUDNN_STATUS_SUCCESS) {
        char text[256];
        snprintf(text, sizeof(text),
                 "%s: cuDNN is installed but cannot be used (%s): Tutti's own kernels are used, "
                 "with different bits",
                 d->name, tti_dnn_library()->cudnnGetErrorString_(st));
        tti_cuda_host_api->log(d->ctx, TT_WARN, text);
        *h = NULL;
    }
    d->dnn = *h;
    return *h;
}

// ---- the graph -------------------------------------------------------------------------------

void tti_dnn_failed(tti_dnn_graph *g, const char *what, cudnnStatus_t st)
{
    if (g->failed)
        return;
    g->failed = true;
    char last[160] = "";
    tti_dnn_library()->cudnnGetLastErrorString_(last, sizeof(last));
    snprintf(g->why, sizeof(g->why), "%s: %s%s%s", what,
             tti_dnn_library()->cudnnGetErrorString_(st), last[0] != 0 ? ": " : "", last);
}

static void full(tti_dnn_graph *g, const char *what)
{
    if (!g->failed)
        snprintf(g->why, sizeof(g->why), "too many %s in a graph", what);
    g->failed = true;
}

cudnnBackendDescriptor_t tti_dnn_make(tti_dnn_graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;
    if (g->failed)
        return NULL;
    if (g->n_desc == MOST_DESCS) {
        full(g, "descriptors");
        return NULL;
    }
    cudnnStatus_t st = tti_dnn_library()->cudnnBackendCreateDescriptor_(type, &d);
    if (st != CUDNN_STATUS_SUCCESS) {
        tti_dnn_failed(g, "a descriptor", st);
        return NULL;
    }
    g->desc[g->n_desc++] = d;
    return d;
}

void tti_dnn_put(tti_dnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (g->failed)
        return;
    cudnnStatus_t st = tti_dnn_library()->cudnnBackendSetAttribute_(d, name, type, n, values);
    char what[40];
    snprintf(what, sizeof(what), "attribute %d", (int)name);
    if (st != CUDNN_STATUS_SUCCESS)
        tti_dnn_failed(g, what, st);
}

void tti_dnn_finalize(tti_dnn_graph *g, cudnnBackendDescriptor_t d, const char *what)
{
    if (g->failed)
        return;
    cudnnStatus_t st = tti_dnn_library()->cudnnBackendFinalize_(d);
    if (st != CUDNN_STATUS_SUCCESS)
        tti_dnn_failed(g, what, st);
}

tti_dnn_graph *tti_dnn_graph_new(tti_cuda_device *d)
{
    cudnnHandle_t h = handle_of(d);
    if (h == NULL)
        return NULL;
    tti_dnn_graph *g = (tti_dnn_graph *)tti_cuda_host_api->alloc(d->ctx, sizeof(*g));
    if (g == NULL)
        return NULL;
    g->device = d;
    g->handle = h;
    return g;
}

void tti_dnn_graph_free(tti_dnn_graph *g)
{
    if (g == NULL)
        return;
    for (int i = g->n_desc - 1; i >= 0; i--)
        tti_dnn_library()->cudnnBackendDestroyDescriptor_(g->desc[i]);
    tti_cuda_host_api->free(g->device->ctx, g);
}

cudnnDataType_t tti_dnn_type(tt_dtype t)
{
    switch (t) {
    case TT_BF16:
        return CUDNN_DATA_BFLOAT16;
    case TT_F16:
        return CUDNN_DATA_HALF;
    case TT_I32:
        return CUDNN_DATA_INT32;
    case TT_BOOL:
        return CUDNN_DATA_BOOLEAN;
    default:
        return CUDNN_DATA_FLOAT;
    }
}

// ---- tensors ---------------------------------------------------------------------------------

static int add_tensor(tti_dnn_graph *g, cudnnDataType_t type, int rank, const int64_t *dim,
                      const int64_t *stride, bool is_virtual, bool by_value)
{
    int64_t dense[TT_MAX_RANK], align = 16;
    int64_t uid = g->n_tensors + 1;
    dense[rank - 1] = 1;
    for (int i = rank - 2; i >= 0; i--)
        dense[i] = dense[i + 1] * dim[i + 1];
    if (g->n_tensors == MOST_TENSORS)
        full(g, "tensors");
    cudnnBackendDescriptor_t d = tti_dnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tti_dnn_put(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    tti_dnn_put(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim);
    tti_dnn_put(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank,
                stride != NULL ? stride : dense);
    tti_dnn_put(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    tti_dnn_put(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    tti_dnn_put(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    tti_dnn_put(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    tti_dnn_finalize(g, d, "a tensor");
    if (g->failed)
        return 0;
    g->tensor[++g->n_tensors] = d;
    return g->n_tensors;
}

int tti_dnn_tensor(tti_dnn_graph *g, cudnnDataType_t type, int rank, const int64_t *dim,
                   const int64_t *stride)
{
    return add_tensor(g, type, rank, dim, stride, false, false);
}

int tti_dnn_virtual(tti_dnn_graph *g, cudnnDataType_t type, int rank, const int64_t *dim,
                    const int64_t *stride)
{
    return add_tensor(g, type, rank, dim, stride, true, false);
}

int tti_dnn_scalar(tti_dnn_graph *g, int rank, float value)
{
    int64_t one[TT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        one[i] = 1;
    if (g->n_scalars == 8)
        full(g, "numbers");
    int t = add_tensor(g, CUDNN_DATA_FLOAT, rank, one, one, false, true);
    if (t == 0)
        return 0;
    g->scalar[g->n_scalars] = t;
    g->value[g->n_scalars++] = value;
    return t;
}

// ---- operations ------------------------------------------------------------------------------

struct port {
    cudnnBackendAttributeName_t name;
    int tensor; // 0: none
};

// Adds the operation op, with tensors at its ports and parameters, unless they are NULL, at name.
static void add_operation(tti_dnn_graph *g, cudnnBackendDescriptor_t op,
                          cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t parameters,
                          std::initializer_list<port> ports)
{
    if (parameters != NULL) {
        tti_dnn_finalize(g, parameters, "parameters of an operation");
        tti_dnn_put(g, op, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &parameters);
    }
    for (const port &p : ports)
        if (p.tensor != 0)
            tti_dnn_put(g, op, p.name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->tensor[p.tensor]);
    tti_dnn_finalize(g, op, "an operation");
    if (!g->failed && g->n_ops == MOST_OPS)
        full(g, "operations");
    if (!g->failed)
        g->op[g->n_ops++] = op;
}

void tti_dnn_pointwise(tti_dnn_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int x,
                       int b, int t, int y, int axis)
{
    int64_t at = axis;
    cudnnBackendDescriptor_t parameters = tti_dnn_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    tti_dnn_put(g, parameters, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    tti_dnn_put(g, parameters, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
        tti_dnn_put(g, parameters, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &at);
    add_operation(g, tti_dnn_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR),
                  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parameters,
                  {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                   {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                   {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t},
                   {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
}

void tti_dnn_matmul(tti_dnn_graph *g, int a, int b, int c)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t parameters = tti_dnn_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    tti_dnn_put(g, parameters, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    add_operation(g, tti_dnn_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR),
                  CUDNN_ATTR_OPERATION_MATMUL_DESC, parameters,
                  {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                   {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                   {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
}

void tti_dnn_reduce(tti_dnn_graph *g, cudnnReduceTensorOp_t op, int x, int y)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t parameters = tti_dnn_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    tti_dnn_put(g, parameters, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
                &op);
    tti_dnn_put(g, parameters, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    add_operation(
        g, tti_dnn_make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR),
        CUDNN_ATTR_OPERATION_REDUCTION_DESC, parameters,
        {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}});
}

void tti_dnn_reshape(tti_dnn_graph *g, int x, int y)
{
    add_operation(
        g, tti_dnn_make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR),
        CUDNN_ATTR_OPERATION_RESHAPE_XDESC, NULL,
        {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}});
}

static cudnnBackendDescriptor_t conv_parameters(tti_dnn_graph *g, const tti_dnn_conv_opts *o)
{
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t n = o->spatial;
    cudnnBackendDescriptor_t parameters = tti_dnn_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    tti_dnn_put(g, parameters, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
                &o->compute);
    tti_dnn_put(g, parameters, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1,
                &mode);
    tti_dnn_put(g, parameters, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
    tti_dnn_put(g, parameters, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, o->before);
    tti_dnn_put(g, parameters, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, o->after);
    tti_dnn_put(g, parameters, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n,
                o->stride);
    tti_dnn_put(g, parameters, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, o->dilation);
    return parameters;
}

void tti_dnn_conv(tti_dnn_graph *g, cudnnBackendDescriptorType_t kind, const tti_dnn_conv_opts *o,
                  int x, int w, int y)
{
    // alpha, beta, parameters, x, w, y
    static const cudnnBackendAttributeName_t names[3][6] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
    const cudnnBackendAttributeName_t *n =
        names[kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 0
              : kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 1
                                                                                     : 2];
    float one = 1, zero = 0;
    cudnnBackendDescriptor_t conv = conv_parameters(g, o);
    cudnnBackendDescriptor_t op = tti_dnn_make(g, kind);
    tti_dnn_put(g, op, n[0], CUDNN_TYPE_FLOAT, 1, &one);
    tti_dnn_put(g, op, n[1], CUDNN_TYPE_FLOAT, 1, &zero);
    add_operation(g, op, n[2], conv, {{n[3], x}, {n[4], w}, {n[5], y}});
}

#endif
