/*
 * blas_algorithm.cu - which of cuBLASLt's algorithms does a product.
 *
 * What rows or lanes a call happens to have must not show in its bits. So the heuristics are asked
 * about a canonical product, the same for all calls of an op, and the first of their algorithms
 * that can do it with few rows as well as with many is the algorithm of all these calls. What it
 * can do is found out by trials: the call is recorded on a stream that is being captured and never
 * runs, with matrices as badly aligned as rows of their width can be and again well aligned. (The
 * library's own check knows nothing of addresses, and passes calls that fail afterwards.)
 */
#include "cuda/blas_own.h"
#include <stdio.h>
#include <string.h>

#ifdef TTI_HAS_BLAS

#define CANDIDATES 32

// Constants of the arithmetic: another number may mean another algorithm and so other bits.
#define LARGE      ((int64_t)1 << 18) // numbers of a weight from which on a sum of lanes is large
#define ROWS_LARGE 32768              // canonical rows: of half numbers
#define ROWS_SMALL 1024               // of f32
#define LANE_LARGE 4096               // canonical k of a lane
#define LANE_SMALL 256
#define LANES      8
#define MANY       64 // canonical batch

// ---- trials ----------------------------------------------------------------------------------

// Whether the library takes the call; skew: with matrices at odd places.
static bool is_taken(const tti_blas_plan *t, bool skew)
{
    const tti_blas_state *s = t->state;
    cudaGraph_t graph = NULL;
    char *m = s->memory;
    tti_blas_addresses at = {m + (skew ? t->align_a : 0), m + (skew ? t->align_b : 0), m,
                             m + (skew ? t->align_c : 0), m + (skew ? t->align_c : 0), m};
    if (!s->has_trials)
        return true;
    if (cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeRelaxed) != cudaSuccess)
        return false;
    cublasStatus_t st = tti_blas_enqueue(t, &at, s->stream);
    cudaError_t e = cudaStreamEndCapture(s->stream, &graph);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    if (st == CUBLAS_STATUS_SUCCESS && e == cudaSuccess)
        return true;
    cudaGetLastError(); // dealt with here
    return false;
}

// Whether the plan's algorithm does the plan's product; sets the workspace it needs.
static bool works(tti_blas_plan *t)
{
    cublasLtMatmulHeuristicResult_t r;
    memset(&r, 0, sizeof(r));
    if (tti_blas_library()->cublasLtMatmulAlgoCheck_(t->state->handle, &t->desc, &t->b, &t->a,
                                                     &t->c, &t->c, &t->algo,
                                                     &r) != CUBLAS_STATUS_SUCCESS)
        return false;
    t->workspace = r.workspaceSize;
    return is_taken(t, false) && is_taken(t, true);
}

// The same for a product that is not t's; with and without what the epilogue stores.
static bool works_for(const tti_blas_plan *t, const tti_blas_product *p)
{
    tti_blas_product q = *p;
    for (int i = 0; i < 2; i++) {
        tti_blas_plan probe;
        memset(&probe, 0, sizeof(probe));
        probe.state = t->state;
        probe.algo = t->algo;
        if (!tti_blas_describe(&probe, &q) || !works(&probe))
            return false;
        if (!(q.end & TTI_BLAS_AUX))
            return true;
        q.end &= ~TTI_BLAS_AUX;
    }
    return true;
}

// ---- the canonical product -------------------------------------------------------------------

// p with so many rows, k of a lane and lanes, or products, whichever are open.
static tti_blas_product resized(const tti_blas_product *p, int64_t open, int64_t batch)
{
    tti_blas_product q = *p;
    if (p->open == TTI_BLAS_ROWS) {
        q.m = open;
        q.batch = 1;
        q.step_a = q.step_b = q.step_c = 0;
    } else if (p->open == TTI_BLAS_LANES) {
        q.m = p->lda; // a call may do a piece of the rows
        q.k = open;
        q.batch = batch;
        q.step_a = open * p->lda;
        q.step_b = open * p->ldb;
        q.step_c = q.m * p->ldc;
    } else if (p->open == TTI_BLAS_MANY) {
        q.batch = open;
        q.step_a = p->m * p->k; // also where one matrix serves all, or there is one product
        q.step_b = p->k * p->n;
        q.step_c = p->m * p->n;
    }
    return q;
}

static tti_blas_product canonical(const tti_blas_product *p)
{
    bool is_fast = p->in != TT_F32 || tti_blas_tf32();
    if (p->open == TTI_BLAS_LANES)
        return resized(p, p->lda * p->n >= LARGE ? LANE_LARGE : LANE_SMALL, LANES);
    if (p->open == TTI_BLAS_ROWS)
        return resized(p, is_fast ? ROWS_LARGE : ROWS_SMALL, 1);
    return resized(p, MANY, 1);
}

// Whether an algorithm does calls of all sizes, as far as some of them tell.
static bool works_for_all(const tti_blas_plan *t, const tti_blas_product *p)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 17, 64, 1000};
    if (!works_for(t, p))
        return false;
    if (p->open == TTI_BLAS_FIXED)
        return true;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        tti_blas_product one = resized(p, sizes[i], 1), two = resized(p, sizes[i], 2);
        if (!works_for(t, &one) || (p->open == TTI_BLAS_LANES && !works_for(t, &two)))
            return false;
    }
    return true;
}

// ---- the choice ------------------------------------------------------------------------------

static bool prefer(cublasLtMatmulPreferenceOpaque_t *pref, const tti_cuda_device *d,
                   const tti_blas_plan *t)
{
    const tti_blas_functions *f = tti_blas_library();
    uint64_t most = d->major >= 9 ? (uint64_t)32 << 20 : (uint64_t)4 << 20;
    uint32_t no_split = CUBLASLT_REDUCTION_SCHEME_NONE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        int bytes;
    } aligned[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, t->align_b}, // its a is our b
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, t->align_a},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, t->align_c},
                   {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, t->align_c}};
    bool ok =
        f->cublasLtMatmulPreferenceInit_internal_(pref, sizeof(*pref)) == CUBLAS_STATUS_SUCCESS &&
        f->cublasLtMatmulPreferenceSetAttribute_(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &most, sizeof(most)) == CUBLAS_STATUS_SUCCESS &&
        f->cublasLtMatmulPreferenceSetAttribute_(pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                 &no_split,
                                                 sizeof(no_split)) == CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < 4 && ok; i++) {
        uint32_t bytes = (uint32_t)aligned[i].bytes;
        ok = f->cublasLtMatmulPreferenceSetAttribute_(pref, aligned[i].name, &bytes,
                                                      sizeof(bytes)) == CUBLAS_STATUS_SUCCESS;
    }
    return ok;
}

static int config(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t name)
{
    int32_t value = 0;
    size_t got = 0;
    if (tti_blas_library()->cublasLtMatmulAlgoConfigGetAttribute_(algo, name, &value, sizeof(value),
                                                                  &got) != CUBLAS_STATUS_SUCCESS)
        return 0;
    return value;
}

// Algorithms that do not split k, the heuristics' best first.
static int candidates(tti_cuda_device *d, const tti_blas_plan *t, cublasLtMatmulAlgo_t *algos)
{
    cublasLtMatmulPreferenceOpaque_t pref;
    cublasLtMatmulHeuristicResult_t r[CANDIDATES];
    int n = 0, found = 0;
    if (!prefer(&pref, d, t) ||
        tti_blas_library()->cublasLtMatmulAlgoGetHeuristic_(
            t->state->handle, (cublasLtMatmulDescOpaque_t *)&t->desc,
            (cublasLtMatrixLayoutOpaque_t *)&t->b, (cublasLtMatrixLayoutOpaque_t *)&t->a,
            (cublasLtMatrixLayoutOpaque_t *)&t->c, (cublasLtMatrixLayoutOpaque_t *)&t->c, &pref,
            CANDIDATES, r, &n) != CUBLAS_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < n; i++)
        if (r[i].state == CUBLAS_STATUS_SUCCESS &&
            config(&r[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) <= 1)
            algos[found++] = r[i].algo;
    return found;
}

typedef struct choice {
    bool is_good;
    cublasLtMatmulAlgo_t algo;
} choice;

static void tell(const tti_cuda_device *d, const tti_blas_product *p, const choice *c, int tried,
                 int n)
{
    char text[256];
    int at = snprintf(text, sizeof(text),
                      "cuBLASLt: [%lld, %lld] by [%lld, %lld], batch of %lld, turned %d%d, types "
                      "%d %d, end %d: ",
                      (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n,
                      (long long)p->batch, p->trans_a, p->trans_b, p->in, p->out, p->end);
    if (c->is_good)
        snprintf(text + at, sizeof(text) - (size_t)at,
                 "algorithm %d, tile %d, stages %d, number %d of %d",
                 config(&c->algo, CUBLASLT_ALGO_CONFIG_ID),
                 config(&c->algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
                 config(&c->algo, CUBLASLT_ALGO_CONFIG_STAGES_ID), tried, n);
    else
        snprintf(text + at, sizeof(text) - (size_t)at, "none of %d algorithms", n);
    tti_cuda_host_api->log(d->ctx, TT_DEBUG, text);
}

static void choose(tti_cuda_device *d, const tti_blas_state *s, const tti_blas_product *p,
                   choice *c)
{
    cublasLtMatmulAlgo_t algos[CANDIDATES];
    tti_blas_plan t;
    int n = 0, i = 0;
    memset(&t, 0, sizeof(t));
    t.state = s;
    if (tti_blas_describe(&t, p))
        n = candidates(d, &t, algos);
    for (; i < n && !c->is_good; i++) {
        t.algo = algos[i];
        c->is_good = works_for_all(&t, p);
        c->algo = algos[i];
    }
    tell(d, p, c, i, n);
}

bool tti_blas_choose(tti_cuda_device *d, tti_blas_plan *t, const tti_blas_product *p)
{
    struct {
        char tag[16];
        tti_blas_product p;
    } key;
    bool is_new = false;
    memset(&key, 0, sizeof(key));
    memcpy(key.tag, "cublasLt choice", 16);
    key.p = canonical(p);
    choice *c = (choice *)tti_recipe_get(d, &key, sizeof(key), sizeof(*c), NULL, &is_new);
    if (c == NULL)
        return false;
    if (is_new)
        choose(d, t->state, &key.p, c);
    t->algo = c->algo;
    if (!c->is_good || works(t))
        return c->is_good;
    char text[256];
    snprintf(
        text, sizeof(text),
        "%s: cuBLASLt does not support [%lld, %lld] by [%lld, %lld], batch of %lld, as it does "
        "other sizes: Tutti's own kernel is used, so bits may depend on the rows per device",
        d->name, (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n,
        (long long)p->batch);
    tti_cuda_host_api->log(d->ctx, TT_WARN, text);
    return false;
}

bool tti_blas_trials_work(tti_cuda_device *d, tti_blas_state *s)
{
    cublasLtMatmulAlgo_t algos[CANDIDATES];
    tti_blas_product p;
    tti_blas_plan t;
    memset(&p, 0, sizeof(p));
    memset(&t, 0, sizeof(t));
    p.m = p.n = p.k = p.lda = p.ldb = p.ldc = 1024;
    p.batch = 1;
    p.in = p.out = TT_BF16;
    t.state = s;
    if (!tti_blas_describe(&t, &p) || candidates(d, &t, algos) == 0)
        return false;
    t.algo = algos[0];
    s->has_trials = true;
    return works(&t);
}

#endif
