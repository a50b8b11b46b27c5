/*
 * blas.cu - see blas.h. cuBLASLt counts by columns: c = a b is asked for as c^T = b^T a^T, which is
 * the same memory. So its m is our n, and its bias along rows is ours along columns.
 */
#include "cuda/blas_own.h"
#include <stdio.h>
#include <string.h>

bool tti_blas_tf32(void)
{
    const char *tf32 = tti_cuda_host_api->env("TUTTI_TF32");
    return tf32 != NULL && tf32[0] == '1';
}

#ifndef TTI_HAS_BLAS

int tti_blas_version(const char **why)
{
    if (why != NULL)
        *why = "built without cuBLASLt's header";
    return 0;
}

const tti_blas_plan *tti_blas_find(tti_cuda_device *, const tti_blas_product *)
{
    return NULL;
}

size_t tti_blas_workspace(const tti_blas_plan *)
{
    return 0;
}

bool tti_blas_takes(const tti_blas_plan *, const void *, const void *, const void *, const void *,
                    const void *)
{
    return false;
}

tt_status tti_blas_run(const tti_blas_plan *, const tt_launch *l, const void *, const void *,
                       void *, const void *, void *, void *)
{
    return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "matmul: built without cuBLASLt");
}

#else

#define MEMORY ((size_t)64 << 10)

// ---- the library -----------------------------------------------------------------------------

static tti_blas_functions find_functions(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    tti_blas_functions f = {};
    const char *own = tti_cuda_host_api->env("TUTTI_CUDA_OWN");
    if (own != NULL && own[0] == '1') { // for comparisons with our own kernels
        f.why = "TUTTI_CUDA_OWN=1";
        return f;
    }
    void *lib = tti_cuda_library(names, &f.why);
    if (lib == NULL) {
        f.why = f.why != NULL ? f.why : "libcublasLt.so: not found";
        return f;
    }
    f.why = NULL;
#define X(name)                                               \
    f.name##_ = (decltype(&name))tti_cuda_symbol(lib, #name); \
    if (f.name##_ == NULL)                                    \
        f.why = "libcublasLt.so: has no " #name;
    TTI_BLAS_FUNCTIONS(X)
#undef X
    return f;
}

const tti_blas_functions *tti_blas_library(void)
{
    static const tti_blas_functions f = find_functions(); // found once, then never changed
    return &f;
}

int tti_blas_version(const char **why)
{
    const tti_blas_functions *f = tti_blas_library();
    if (why != NULL)
        *why = f->why;
    return f->why == NULL ? (int)f->cublasLtGetVersion_() : 0;
}

static void drop_state(void *recipe)
{
    tti_blas_state *s = (tti_blas_state *)recipe;
    if (s->stream != NULL)
        cudaStreamDestroy(s->stream);
    if (s->memory != NULL)
        cudaFree(s->memory);
    if (s->handle != NULL)
        tti_blas_library()->cublasLtDestroy_(s->handle);
}

// The device's handle and what belongs to it; it goes with the device's recipes.
static const tti_blas_state *state_of(tti_cuda_device *d)
{
    static const char key[] = "cublasLt handle";
    if (d->blas != NULL || tti_blas_library()->why != NULL)
        return (const tti_blas_state *)d->blas;
    bool is_new = false;
    tti_blas_state *s =
        (tti_blas_state *)tti_recipe_get(d, key, sizeof(key), sizeof(*s), drop_state, &is_new);
    if (s == NULL || !is_new)
        return NULL;
    cublasStatus_t st = cudaSetDevice(d->physical) != cudaSuccess
                            ? CUBLAS_STATUS_NOT_INITIALIZED
                            : tti_blas_library()->cublasLtCreate_(&s->handle);
    if (st != CUBLAS_STATUS_SUCCESS) {
        char text[256];
        snprintf(text, sizeof(text),
                 "%s: cuBLASLt is installed but cannot be used (%s): Tutti's own kernels compute "
                 "matrix products, with different bits",
                 d->name, tti_blas_library()->cublasLtGetStatusString_(st));
        tti_cuda_host_api->log(d->ctx, TT_WARN, text);
        s->handle = NULL;
        return NULL;
    }
    if (cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking) == cudaSuccess &&
        cudaMalloc((void **)&s->memory, MEMORY) == cudaSuccess)
        s->has_trials = tti_blas_trials_work(d, s);
    if (!s->has_trials) {
        cudaGetLastError(); // dealt with
        tti_cuda_host_api->log(d->ctx, TT_WARN,
                               "cuBLASLt: its calls cannot be tried before they are needed");
    }
    d->blas = s;
    return s;
}

// ---- plans -----------------------------------------------------------------------------------

static cudaDataType_t type_of(int32_t t)
{
    return t == TT_BF16 ? CUDA_R_16BF : t == TT_F16 ? CUDA_R_16F : CUDA_R_32F;
}

// A row-major matrix of rows by cols, as cuBLASLt sees it.
static bool lay_out(cublasLtMatrixLayoutOpaque_t *out, int32_t type, int64_t rows, int64_t cols,
                    int64_t ld, int64_t batch, int64_t step)
{
    const tti_blas_functions *f = tti_blas_library();
    int32_t count = (int32_t)batch;
    if (f->cublasLtMatrixLayoutInit_internal_(out, sizeof(*out), type_of(type), (uint64_t)cols,
                                              (uint64_t)rows, ld) != CUBLAS_STATUS_SUCCESS)
        return false;
    return batch == 1 || // nothing to say
           (f->cublasLtMatrixLayoutSetAttribute_(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                 sizeof(count)) == CUBLAS_STATUS_SUCCESS &&
            f->cublasLtMatrixLayoutSetAttribute_(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                 &step, sizeof(step)) == CUBLAS_STATUS_SUCCESS);
}

static bool set(tti_blas_plan *t, cublasLtMatmulDescAttributes_t name, const void *value,
                size_t bytes)
{
    return tti_blas_library()->cublasLtMatmulDescSetAttribute_(&t->desc, name, value, bytes) ==
           CUBLAS_STATUS_SUCCESS;
}

static cublasLtEpilogue_t epilogue_of(int end)
{
    int e = CUBLASLT_EPILOGUE_DEFAULT;
    if (end & TTI_BLAS_GELU)
        e = end & TTI_BLAS_AUX ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU;
    if (end & TTI_BLAS_BIAS)
        e = e == CUBLASLT_EPILOGUE_DEFAULT ? CUBLASLT_EPILOGUE_BIAS : e | CUBLASLT_EPILOGUE_BIAS;
    return (cublasLtEpilogue_t)e;
}

static bool describe_end(tti_blas_plan *t, const tti_blas_product *p)
{
    cublasLtEpilogue_t e = epilogue_of(p->end);
    void *some = (void *)256; // heuristics look at the alignment; runs give the address
    int64_t ld = p->ldc, step = p->step_c, none = 0;
    bool is_many = p->batch > 1;
    if (!set(t, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof(e)))
        return false;
    if ((p->end & TTI_BLAS_BIAS) &&
        (!set(t, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &some, sizeof(some)) ||
         (is_many && !set(t, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &none, sizeof(none)))))
        return false;
    return !(p->end & TTI_BLAS_AUX) ||
           (set(t, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &some, sizeof(some)) &&
            set(t, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof(ld)) &&
            (!is_many ||
             set(t, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &step, sizeof(step))));
}

// Every row of a width has at least this: the largest power of two in it, to 16 bytes.
static int alignment(int64_t ld, int32_t type)
{
    int64_t bytes = ld * (type == TT_F32 ? 4 : 2), low = bytes & -bytes;
    return low < 16 ? (int)low : 16;
}

bool tti_blas_describe(tti_blas_plan *t, const tti_blas_product *p)
{
    cublasOperation_t of_a = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t of_b = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute =
        p->in == TT_F32 && tti_blas_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    t->end = p->end;
    t->align_a = alignment(p->lda, p->in);
    t->align_b = alignment(p->ldb, p->in);
    t->align_c = alignment(p->ldc, p->out);
    return tti_blas_library()->cublasLtMatmulDescInit_internal_(
               &t->desc, sizeof(t->desc), compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           set(t, CUBLASLT_MATMUL_DESC_TRANSA, &of_b, sizeof(of_b)) &&
           set(t, CUBLASLT_MATMUL_DESC_TRANSB, &of_a, sizeof(of_a)) && describe_end(t, p) &&
           lay_out(&t->a, p->in, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda,
                   p->batch, p->step_a) &&
           lay_out(&t->b, p->in, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb,
                   p->batch, p->step_b) &&
           lay_out(&t->c, p->out, p->m, p->n, p->ldc, p->batch, p->step_c);
}

const tti_blas_plan *tti_blas_find(tti_cuda_device *d, const tti_blas_product *p)
{
    const tti_blas_state *s = state_of(d);
    bool is_new = false;
    if (s == NULL || p->m == 0 || p->n == 0 || p->k == 0 || p->batch == 0 || p->batch > INT32_MAX)
        return NULL;
    tti_blas_plan *t = (tti_blas_plan *)tti_recipe_get(d, p, sizeof(*p), sizeof(*t), NULL, &is_new);
    if (t == NULL)
        return NULL;
    if (is_new) {
        t->state = s;
        t->is_good = cudaSetDevice(d->physical) == cudaSuccess && tti_blas_describe(t, p) &&
                     tti_blas_choose(d, t, p);
    }
    return t->is_good ? t : NULL;
}

size_t tti_blas_workspace(const tti_blas_plan *plan)
{
    return plan->workspace;
}

// ---- runs ------------------------------------------------------------------------------------

static bool is_aligned(const void *p, int bytes)
{
    return (uintptr_t)p % (uintptr_t)bytes == 0;
}

bool tti_blas_takes(const tti_blas_plan *plan, const void *a, const void *b, const void *c,
                    const void *bias, const void *aux)
{
    return is_aligned(a, plan->align_a) && is_aligned(b, plan->align_b) &&
           is_aligned(c, plan->align_c) && (!(plan->end & TTI_BLAS_BIAS) || is_aligned(bias, 16)) &&
           (!(plan->end & TTI_BLAS_AUX) || is_aligned(aux, plan->align_c));
}

cublasStatus_t tti_blas_enqueue(const tti_blas_plan *t, const tti_blas_addresses *at,
                                cudaStream_t stream)
{
    const tti_blas_functions *f = tti_blas_library();
    cublasLtMatmulDescOpaque_t desc = t->desc; // the plan is shared
    float one = 1, zero = 0;
    cublasStatus_t st = CUBLAS_STATUS_SUCCESS;
    if (t->end & TTI_BLAS_BIAS)
        st = f->cublasLtMatmulDescSetAttribute_(&desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at->bias,
                                                sizeof(at->bias));
    if (st == CUBLAS_STATUS_SUCCESS && (t->end & TTI_BLAS_AUX))
        st = f->cublasLtMatmulDescSetAttribute_(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                                                &at->aux, sizeof(at->aux));
    if (st != CUBLAS_STATUS_SUCCESS)
        return st;
    return f->cublasLtMatmul_(
        t->state->handle, &desc, &one, at->b, (cublasLtMatrixLayoutOpaque_t *)&t->b, at->a,
        (cublasLtMatrixLayoutOpaque_t *)&t->a, &zero, at->c, (cublasLtMatrixLayoutOpaque_t *)&t->c,
        at->c, (cublasLtMatrixLayoutOpaque_t *)&t->c, &t->algo,
        t->workspace > 0 ? at->workspace : NULL, t->workspace, stream);
}

tt_status tti_blas_run(const tti_blas_plan *plan, const tt_launch *l, const void *a, const void *b,
                       void *c, const void *bias, void *aux, void *workspace)
{
    tti_blas_addresses at = {a, b, bias, c, aux, workspace};
    cublasStatus_t st = tti_blas_enqueue(plan, &at, (cudaStream_t)l->stream);
    if (st == CUBLAS_STATUS_SUCCESS)
        return TT_OK;
    return TT_FAIL(l->ctx, TT_EDEVICE, "%s '%s' on %s: cuBLASLt: %s",
                   l->node != NULL ? l->node->op->name : "a product",
                   l->node != NULL ? l->node->name : "", ((const tti_cuda_device *)l->device)->name,
                   tti_blas_library()->cublasLtGetStatusString_(st));
}

#endif
