/*
 * blas.cu - see blas.h. cuBLASLt counts by columns: c = a b is asked for as c^T = b^T a^T, which is
 * the same memory. So its m is our n, and its bias along rows is ours along columns.
 */
#include "cuda/blas.h"
#include <stdio.h>
#include <string.h>

#if !defined(TTI_EMU) && defined(__has_include)
#if __has_include(<cublasLt.h>)
#define HAS_BLAS 1
#endif
#endif

#ifndef HAS_BLAS

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

tt_status tti_blas_run(const tti_blas_plan *, const tt_launch *l, const void *, const void *,
                       void *, const void *, void *, void *)
{
    return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "matmul: built without cuBLASLt");
}

#else

#include <cublasLt.h>

#define CANDIDATES 16

// ---- the library -----------------------------------------------------------------------------

#define FUNCTIONS(X)                         \
    X(cublasLtCreate)                        \
    X(cublasLtDestroy)                       \
    X(cublasLtGetVersion)                    \
    X(cublasLtGetStatusString)               \
    X(cublasLtMatrixLayoutInit_internal)     \
    X(cublasLtMatrixLayoutSetAttribute)      \
    X(cublasLtMatmulDescInit_internal)       \
    X(cublasLtMatmulDescSetAttribute)        \
    X(cublasLtMatmulPreferenceInit_internal) \
    X(cublasLtMatmulPreferenceSetAttribute)  \
    X(cublasLtMatmulAlgoGetHeuristic)        \
    X(cublasLtMatmulAlgoCheck)               \
    X(cublasLtMatmulAlgoConfigGetAttribute)  \
    X(cublasLtMatmul)

struct functions {
#define X(name) decltype(&name) name##_;
    FUNCTIONS(X)
#undef X
    const char *why; // NULL: all were found
};

static functions find_functions(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    functions f = {};
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
    FUNCTIONS(X)
#undef X
    return f;
}

static const functions *library(void)
{
    static const functions f = find_functions(); // found once, then never changed
    return &f;
}

int tti_blas_version(const char **why)
{
    const functions *f = library();
    if (why != NULL)
        *why = f->why;
    return f->why == NULL ? (int)f->cublasLtGetVersion_() : 0;
}

static void drop_handle(void *recipe)
{
    cublasLtHandle_t h = *(cublasLtHandle_t *)recipe;
    if (h != NULL)
        library()->cublasLtDestroy_(h);
}

// The device's handle; it goes with the device's recipes.
static cublasLtHandle_t handle_of(tti_cuda_device *d)
{
    static const char key[] = "cublasLt handle";
    if (d->blas != NULL || library()->why != NULL)
        return (cublasLtHandle_t)d->blas;
    bool is_new = false;
    cublasLtHandle_t *h =
        (cublasLtHandle_t *)tti_recipe_get(d, key, sizeof(key), sizeof(*h), drop_handle, &is_new);
    if (h == NULL || !is_new)
        return NULL;
    if (cudaSetDevice(d->physical) != cudaSuccess ||
        library()->cublasLtCreate_(h) != CUBLAS_STATUS_SUCCESS)
        *h = NULL;
    d->blas = *h;
    return *h;
}

// ---- plans -----------------------------------------------------------------------------------

struct tti_blas_plan {
    bool is_good;
    int end;
    cublasLtHandle_t handle;
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c; // of our a, b and c
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
};

static cudaDataType_t type_of(int32_t t)
{
    return t == TT_BF16 ? CUDA_R_16BF : t == TT_F16 ? CUDA_R_16F : CUDA_R_32F;
}

// A row-major matrix of rows by cols, as cuBLASLt sees it.
static bool lay_out(cublasLtMatrixLayoutOpaque_t *out, int32_t type, int64_t rows, int64_t cols,
                    int64_t ld, int64_t batch, int64_t step)
{
    const functions *f = library();
    int32_t count = (int32_t)batch;
    return f->cublasLtMatrixLayoutInit_internal_(out, sizeof(*out), type_of(type), (uint64_t)cols,
                                                 (uint64_t)rows, ld) == CUBLAS_STATUS_SUCCESS &&
           f->cublasLtMatrixLayoutSetAttribute_(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof(count)) == CUBLAS_STATUS_SUCCESS &&
           f->cublasLtMatrixLayoutSetAttribute_(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &step, sizeof(step)) == CUBLAS_STATUS_SUCCESS;
}

static bool lay_out_all(tti_blas_plan *t, const tti_blas_product *p, int64_t m, int64_t n,
                        int64_t batch)
{
    // With other sizes rows may be longer; a row that holds just what it must stays so.
    int64_t lda = p->trans_a && p->lda == p->m ? m : p->lda;
    int64_t ldb = !p->trans_b && p->ldb == p->n ? n : p->ldb;
    int64_t ldc = p->ldc == p->n ? n : p->ldc;
    int64_t am = p->trans_a ? p->k : m, ak = p->trans_a ? m : p->k;
    int64_t bk = p->trans_b ? n : p->k, bn = p->trans_b ? p->k : n;
    return lay_out(&t->a, p->in, am, ak, lda, batch, p->step_a) &&
           lay_out(&t->b, p->in, bk, bn, ldb, batch, p->step_b) &&
           lay_out(&t->c, p->out, m, n, ldc, batch, p->step_c);
}

static bool set(tti_blas_plan *t, cublasLtMatmulDescAttributes_t name, const void *value,
                size_t bytes)
{
    return library()->cublasLtMatmulDescSetAttribute_(&t->desc, name, value, bytes) ==
           CUBLAS_STATUS_SUCCESS;
}

static cublasLtEpilogue_t epilogue_of(int end)
{
    int e = CUBLASLT_EPILOGUE_DEFAULT;
    if (end & TTI_BLAS_GELU)
        e = end & TTI_BLAS_AUX ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU;
    else if (end & TTI_BLAS_RELU)
        e = CUBLASLT_EPILOGUE_RELU;
    if (end & TTI_BLAS_BIAS)
        e = e == CUBLASLT_EPILOGUE_DEFAULT ? CUBLASLT_EPILOGUE_BIAS : e | CUBLASLT_EPILOGUE_BIAS;
    return (cublasLtEpilogue_t)e;
}

// TUTTI_TF32=1 lets products of f32 round their inputs to 11 bits: several times the speed.
static cublasComputeType_t compute_of(const tti_blas_product *p)
{
    const char *tf32 = p->in == TT_F32 ? tti_cuda_host_api->env("TUTTI_TF32") : NULL;
    return tf32 != NULL && tf32[0] == '1' ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static bool describe(tti_blas_plan *t, const tti_blas_product *p)
{
    cublasOperation_t of_a = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t of_b = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t e = epilogue_of(p->end);
    void *some = (void *)256; // heuristics look at the alignment; runs give the address
    int64_t ld = p->ldc, step = p->step_c, none = 0;
    if (library()->cublasLtMatmulDescInit_internal_(&t->desc, sizeof(t->desc), compute_of(p),
                                                    CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
        !set(t, CUBLASLT_MATMUL_DESC_TRANSA, &of_b, sizeof(of_b)) ||
        !set(t, CUBLASLT_MATMUL_DESC_TRANSB, &of_a, sizeof(of_a)) ||
        !set(t, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof(e)))
        return false;
    if ((p->end & TTI_BLAS_BIAS) &&
        (!set(t, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &some, sizeof(some)) ||
         !set(t, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &none, sizeof(none))))
        return false;
    return !(p->end & TTI_BLAS_AUX) ||
           (set(t, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &some, sizeof(some)) &&
            set(t, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof(ld)) &&
            set(t, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &step, sizeof(step)));
}

static bool prefer(cublasLtMatmulPreferenceOpaque_t *pref, const tti_cuda_device *d,
                   const tti_blas_product *p)
{
    const functions *f = library();
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    uint64_t most = d->major >= 9 ? (uint64_t)32 << 20 : (uint64_t)4 << 20;
    uint32_t align = (uint32_t)p->align, no_split = CUBLASLT_REDUCTION_SCHEME_NONE;
    bool ok =
        f->cublasLtMatmulPreferenceInit_internal_(pref, sizeof(*pref)) == CUBLAS_STATUS_SUCCESS &&
        f->cublasLtMatmulPreferenceSetAttribute_(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &most, sizeof(most)) == CUBLAS_STATUS_SUCCESS &&
        f->cublasLtMatmulPreferenceSetAttribute_(pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                 &no_split,
                                                 sizeof(no_split)) == CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < 4 && ok; i++)
        ok = f->cublasLtMatmulPreferenceSetAttribute_(pref, aligned[i], &align, sizeof(align)) ==
             CUBLAS_STATUS_SUCCESS;
    return ok;
}

// The heuristics' first algorithm that does not split k.
static bool first_algorithm(tti_blas_plan *t, const cublasLtMatmulPreferenceOpaque_t *pref)
{
    const functions *f = library();
    cublasLtMatmulHeuristicResult_t r[CANDIDATES];
    int n = 0;
    if (f->cublasLtMatmulAlgoGetHeuristic_(t->handle, &t->desc, &t->b, &t->a, &t->c, &t->c,
                                           (cublasLtMatmulPreferenceOpaque_t *)pref, CANDIDATES, r,
                                           &n) != CUBLAS_STATUS_SUCCESS)
        return false;
    for (int i = 0; i < n; i++) {
        int32_t split = 1;
        size_t got = 0;
        if (r[i].state != CUBLAS_STATUS_SUCCESS)
            continue;
        if (f->cublasLtMatmulAlgoConfigGetAttribute_(&r[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                     &split, sizeof(split),
                                                     &got) == CUBLAS_STATUS_SUCCESS &&
            split > 1)
            continue;
        t->algo = r[i].algo;
        t->workspace = r[i].workspaceSize;
        return true;
    }
    return false;
}

static bool make_plan(tti_cuda_device *d, tti_blas_plan *t, const tti_blas_product *p)
{
    cublasLtMatmulPreferenceOpaque_t pref;
    bool is_whole = p->m == p->full_m && p->n == p->full_n && p->batch == p->full_batch;
    t->end = p->end;
    if (cudaSetDevice(d->physical) != cudaSuccess || !describe(t, p) || !prefer(&pref, d, p))
        return false;
    if (!is_whole && lay_out_all(t, p, p->full_m, p->full_n, p->full_batch) &&
        first_algorithm(t, &pref)) {
        cublasLtMatmulHeuristicResult_t r;
        if (lay_out_all(t, p, p->m, p->n, p->batch) &&
            library()->cublasLtMatmulAlgoCheck_(t->handle, &t->desc, &t->b, &t->a, &t->c, &t->c,
                                                &t->algo, &r) == CUBLAS_STATUS_SUCCESS) {
            t->workspace = r.workspaceSize;
            return true;
        }
    }
    return lay_out_all(t, p, p->m, p->n, p->batch) && first_algorithm(t, &pref);
}

const tti_blas_plan *tti_blas_find(tti_cuda_device *d, const tti_blas_product *p)
{
    cublasLtHandle_t h = handle_of(d);
    bool is_new = false;
    if (h == NULL || p->m == 0 || p->n == 0 || p->k == 0 || p->batch == 0 || p->batch > INT32_MAX ||
        p->full_batch > INT32_MAX)
        return NULL;
    tti_blas_plan *t = (tti_blas_plan *)tti_recipe_get(d, p, sizeof(*p), sizeof(*t), NULL, &is_new);
    if (t == NULL)
        return NULL;
    if (is_new) {
        t->handle = h;
        t->is_good = make_plan(d, t, p);
    }
    return t->is_good ? t : NULL;
}

size_t tti_blas_workspace(const tti_blas_plan *plan)
{
    return plan->workspace;
}

tt_status tti_blas_run(const tti_blas_plan *plan, const tt_launch *l, const void *a, const void *b,
                       void *c, const void *bias, void *aux, void *workspace)
{
    const functions *f = library();
    cublasLtMatmulDescOpaque_t desc = plan->desc; // the plan is shared
    float one = 1, zero = 0;
    cublasStatus_t st = CUBLAS_STATUS_SUCCESS;
    if (plan->end & TTI_BLAS_BIAS)
        st = f->cublasLtMatmulDescSetAttribute_(&desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                                sizeof(bias));
    if (st == CUBLAS_STATUS_SUCCESS && (plan->end & TTI_BLAS_AUX))
        st = f->cublasLtMatmulDescSetAttribute_(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                                                &aux, sizeof(aux));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = f->cublasLtMatmul_(
            plan->handle, &desc, &one, b, (cublasLtMatrixLayoutOpaque_t *)&plan->b, a,
            (cublasLtMatrixLayoutOpaque_t *)&plan->a, &zero, c,
            (cublasLtMatrixLayoutOpaque_t *)&plan->c, c, (cublasLtMatrixLayoutOpaque_t *)&plan->c,
            &plan->algo, workspace, plan->workspace, (cudaStream_t)l->stream);
    if (st == CUBLAS_STATUS_SUCCESS)
        return TT_OK;
    return TT_FAIL(l->ctx, TT_EDEVICE, "%s on %s: cuBLASLt: %s",
                   l->node != NULL ? l->node->name : "a product",
                   ((const tti_cuda_device *)l->device)->name, f->cublasLtGetStatusString_(st));
}

#endif
