/*
 * matmul_program.cuh - how a product is done on a GPU: a list of calls, made once for a shape.
 *
 * A call is a product or a batch of products at equal distances. Where k is the open axis its lanes
 * are cut into strands (strands.cuh), which is all that lanes are here, and a call covers a run of
 * them with equally many terms, an entry for each. What needs much scratch goes in
 * pieces of rows of the result. No cut changes a bit: elements are independent of each other.
 *
 * Whether the library or our kernel does a product is decided by the shapes of its weights and its
 * types, never by rows, for a row's bits depend on it.
 */
#ifndef TUTTI_OP_MATMUL_PROGRAM_CUH
#define TUTTI_OP_MATMUL_PROGRAM_CUH

#include "cuda/blas.h"
#include "cuda/strands.cuh"
#include "op/gemm.h"
#include "op/gpu/gemm_tf32.cuh"
#include <stddef.h>
#include <string.h>
#include <tutti/ops.h>

#define MOST_SCRATCH ((int64_t)512 << 20) // bytes of f32 sums, beyond which rows go in pieces
#define PIECE        256                  // rows of a piece are a multiple of this
#define TREE_K       512                  // up to so long lanes are summed by one kernel of ours,
#define TREE_LANES   16                   // up to so many

// Weights of fewer numbers are ours to multiply. Constants of the arithmetic, as is STRAND.
#define SMALL_F32  ((int64_t)1 << 19)
#define SMALL_ODD  ((int64_t)1 << 18) // of bf16 and f16 whose rows are not whole 16 bytes
#define SMALL_EVEN ((int64_t)1 << 12) // of any others
#define STRAND     8192               // terms

// ---- what is to be multiplied ----------------------------------------------------------------

typedef struct product {
    char tag[16]; // in recipes' keys
    int64_t m, n, k, batch;
    int32_t open;     // TTI_BLAS_ROWS ...
    int32_t is_own;   // our kernel does it
    int32_t by_units; // the one on the matrix units (gemm_tf32.cuh)
    int32_t lead;
    int32_t dim[TTI_GEMM_LEAD], step_a[TTI_GEMM_LEAD], step_b[TTI_GEMM_LEAD]; // in matrices
    int32_t in, out, act, has_bias, has_z;
    int32_t trans_a, trans_b, has_lanes;
    int32_t n_lanes;
    int64_t bound[TT_MAX_LANES + 1]; // along k; the key ends with the last of them
} product;

static size_t key_bytes(const product *q)
{
    int n = q->has_lanes ? q->n_lanes + 1 : 0;
    return offsetof(product, bound) + sizeof(int64_t) * (size_t)n;
}

static int64_t lead_dim(const tt_shape *s, int i)
{
    return i < s->rank - 2 ? s->dim[s->rank - 3 - i] : 1;
}

static void find_lead(product *q, const tt_shape *a, const tt_shape *b)
{
    int32_t step_a = 1, step_b = 1;
    for (int i = 0; i < q->lead; i++) { // from the last leading axis on
        int64_t da = lead_dim(a, i), db = lead_dim(b, i);
        int at = q->lead - 1 - i;
        q->dim[at] = (int32_t)(da == 1 ? db : da);
        q->step_a[at] = da == 1 ? 0 : step_a;
        q->step_b[at] = db == 1 ? 0 : step_b;
        step_a *= (int32_t)da;
        step_b *= (int32_t)db;
        q->batch *= q->dim[at];
    }
}

static bool is_small(const product *q)
{
    int64_t bytes = q->in == TT_F32 ? 4 : 2, out = q->out == TT_F32 ? 4 : 2;
    int64_t width_a = q->trans_a ? q->m : q->k, width_b = q->trans_b ? q->k : q->n;
    int64_t size = q->n * q->k; // of the weights, or the largest of three
    if (q->open == TTI_BLAS_LANES)
        size = q->m * q->n;
    bool has_weights = q->open == TTI_BLAS_LANES || q->open == TTI_BLAS_ROWS;
    if (!has_weights && q->m * q->k > size)
        size = q->m * q->k;
    if (!has_weights && q->m * q->n > size)
        size = q->m * q->n;
    if (q->in == TT_F32 && has_weights && !tti_blas_tf32())
        return size < SMALL_F32;
    bool is_even = width_a * bytes % 16 == 0 && width_b * bytes % 16 == 0 && q->n * out % 16 == 0;
    return size < (is_even || q->in == TT_F32 ? SMALL_EVEN : SMALL_ODD);
}

// What rows of the batch decide. Where they decide the width of stored rows, which a library's
// choice depends on, the product is ours.
static void find_open(product *q, const tt_prep *p, int ma, int nb)
{
    bool is_wide = p->in[1].open == nb; // n is open
    if (q->has_lanes) {
        q->open = TTI_BLAS_LANES;
        q->is_own = q->batch > 1 || !q->trans_a || q->trans_b;
    } else if (q->batch == 1 && q->lead == 0 && !q->trans_a) {
        q->open = TTI_BLAS_ROWS;
        q->is_own = is_wide;
    } else if (p->in[0].open >= 0 || p->in[1].open >= 0) {
        q->open = TTI_BLAS_MANY;
        q->is_own = is_wide || p->in[0].open == ma;
    }
    q->is_own = q->is_own || is_small(q);
    bool has_weights = q->open == TTI_BLAS_LANES || q->open == TTI_BLAS_ROWS;
    int64_t wide = q->open == TTI_BLAS_LANES ? q->m : q->k; // weights are [wide, n]
    bool fits = wide < TTI_TF32_LD && q->n < TTI_TF32_LD;
    q->by_units = !q->is_own && has_weights && fits && q->in == TT_F32 && q->out == TT_F32 &&
                  !tti_blas_tf32() && ((const tti_cuda_device *)p->device)->major >= 8;
}

// The strands of ln, whose rows are per terms each, for results of so many numbers.
static void cut_lanes(tti_strands *s, const tt_lanes *ln, int64_t per, int64_t count)
{
    tti_strands_cut(s, ln, per, {1, STRAND, count});
}

static void find_product(const tt_prep *p, product *q)
{
    const tti_matmul_attr *at = (const tti_matmul_attr *)p->attr;
    const tt_shape *a = &p->in[0].shape, *b = &p->in[1].shape;
    int ka = a->rank - (at->transpose_a ? 2 : 1), kb = b->rank - (at->transpose_b ? 1 : 2);
    int ma = 2 * a->rank - 3 - ka, nb = 2 * b->rank - 3 - kb;
    memset(q, 0, sizeof(*q));
    memcpy(q->tag, "matmul", 6);
    q->trans_a = at->transpose_a;
    q->trans_b = at->transpose_b;
    q->act = at->act;
    q->k = a->dim[ka];
    q->m = a->dim[ma];
    q->n = b->dim[nb];
    q->batch = 1;
    // Bias and activation come after the sum of all rows: no lanes then (matmul.c's split rule).
    q->has_lanes = p->in[0].open == ka && p->n_in == 2 && at->act == TT_LINEAR;
    q->in = p->in[0].dtype;
    q->out = p->out_args[0].dtype;
    q->has_bias = p->n_in > 2;
    q->has_z = p->n_out > 1;
    q->lead = (a->rank > b->rank ? a->rank : b->rank) - 2;
    if (b->rank == 2 && !q->trans_a) { // all rows of a as one matrix
        for (int i = 0; i < q->lead; i++)
            q->m *= a->dim[i];
        q->lead = 0;
    }
    find_lead(q, a, b);
    if (q->has_lanes) {
        tti_strands s;
        cut_lanes(&s, p->lanes, p->in[0].per, q->batch * q->m * q->n);
        q->n_lanes = s.ln.n;
        memcpy(q->bound, s.bound, sizeof(int64_t) * (size_t)(q->n_lanes + 1));
    }
    find_open(q, p, ma, nb);
}

// ---- the program -----------------------------------------------------------------------------

typedef enum place {
    TO_Y = 0,        // as it is, or with the library's epilogue
    TO_Y_FINISH = 1, // f32, finished where it is
    TO_SCRATCH = 2,  // f32, finished from there
    TO_LANES = 3,    // f32, a slice for each lane, then the tree
    TO_Y_ACT = 4,    // with the library's epilogue, then the activation where it is
    TO_TREE = 5,     // lanes and their tree by one kernel of ours
    TO_UNITS = 6,    // by the matrix units as it is, with bias and activation,
    TO_STRANDS = 7,  // f32, a slice for each strand of a long k, then their sum,
    TO_FOREST = 8,   // or lanes and their tree
} place;

typedef struct call {
    tti_blas_product p;
    const tti_blas_plan *plan[2]; // [with z]; NULL: gemm.cuh
    int64_t a, b, c;              // elements from the first
} call;

typedef struct program {
    place to;
    int64_t pieces, piece;     // rows of the result are cut into pieces of so many
    int64_t calls;             // for each piece
    int64_t inner, outer;      // of the batch: done by one call, and by calls of their own
    int64_t workspace, slices; // bytes of scratch: the library's, then the sums
    bool by_library, by_units;
    call list[1];
} program;

// Products of the last axes of the batch that lie at equal distances in both operands.
static int64_t find_inner(const product *q, int64_t *step_a, int64_t *step_b)
{
    int64_t n = 1;
    *step_a = *step_b = 0;
    for (int i = q->lead - 1; i >= 0; i--) {
        if (q->dim[i] == 1)
            continue;
        if (n == 1) {
            *step_a = q->step_a[i];
            *step_b = q->step_b[i];
        } else if (q->step_a[i] != *step_a * n || q->step_b[i] != *step_b * n) {
            return n;
        }
        n *= q->dim[i];
    }
    return n;
}

// Matrices of a and b for product at of the batch.
static void find_matrices(const product *q, int64_t at, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = q->lead - 1; i >= 0; i--) {
        *a += at % q->dim[i] * q->step_a[i];
        *b += at % q->dim[i] * q->step_b[i];
        at /= q->dim[i];
    }
}

// Lanes from i on with equally many terms that one call does.
static int run_of_lanes(const product *q, int i, bool many)
{
    int64_t rows = q->bound[i + 1] - q->bound[i];
    int n = 1;
    while (many && i + n < q->n_lanes && q->bound[i + n + 1] - q->bound[i + n] == rows)
        n++;
    return n;
}

static void find_plans(tti_cuda_device *d, program *g, call *c)
{
    int end = c->p.end;
    for (int with_z = 0; with_z < 2; with_z++) {
        c->p.end = with_z ? end : end & ~TTI_BLAS_AUX;
        c->plan[with_z] = tti_blas_find(d, &c->p);
        g->by_library = g->by_library && (c->plan[with_z] != NULL || c->p.k == 0);
        if (c->plan[with_z] == NULL)
            continue;
        int64_t bytes = (int64_t)tti_blas_workspace(c->plan[with_z]);
        g->workspace = bytes > g->workspace ? bytes : g->workspace;
    }
    c->p.end = end;
}

// What the library does after the product, where it means the same as the op.
static int epilogue(const product *q, bool *is_all)
{
    int end = q->has_bias ? TTI_BLAS_BIAS : 0;
    if (q->act == TT_GELU)
        end |= TTI_BLAS_GELU | (q->has_z ? TTI_BLAS_AUX : 0);
    *is_all = q->act == TT_LINEAR || q->act == TT_RELU || q->act == TT_GELU;
    if (end != 0 && q->in != q->out)
        *is_all = false;
    return *is_all ? end : 0;
}

// The product of one piece of rows, one element of the outer batch and a run of lanes.
static void fill_call(const product *q, const program *g, call *c, int64_t row, int64_t rows,
                      int64_t outer, int lane, int lanes, int end)
{
    int64_t step_a, step_b, at_a, at_b, k0 = 0, k = q->k;
    find_inner(q, &step_a, &step_b);
    find_matrices(q, outer * g->inner, &at_a, &at_b);
    if (q->has_lanes && q->n_lanes > 0 && g->to != TO_TREE && g->to != TO_FOREST) {
        k0 = q->bound[lane];
        k = q->bound[lane + 1] - k0;
    }
    memset(&c->p, 0, sizeof(c->p));
    c->p.m = rows;
    c->p.n = q->n;
    c->p.k = k;
    c->p.lda = q->trans_a ? q->m : q->k;
    c->p.ldb = q->trans_b ? q->k : q->n;
    c->p.ldc = q->n;
    c->p.batch = g->inner;
    if (g->inner > 1) {
        c->p.step_a = step_a * q->m * q->k;
        c->p.step_b = step_b * q->k * q->n;
        c->p.step_c = q->m * q->n;
    }
    c->a = at_a * q->m * q->k + (q->trans_a ? row + k0 * q->m : row * q->k + k0);
    c->b = at_b * q->k * q->n + (q->trans_b ? k0 : k0 * q->n);
    c->c = outer * g->inner * q->m * q->n;
    if (g->to == TO_LANES) {
        int64_t slice = q->batch * g->piece * q->n;
        c->c = (g->pieces == 1 ? c->c : 0) + lane * slice;
        if (lanes > 1) {
            c->p.batch = lanes;
            c->p.step_a = q->trans_a ? k * q->m : k;
            c->p.step_b = q->trans_b ? k : k * q->n;
            c->p.step_c = slice;
        }
    } else if (g->to == TO_SCRATCH || g->to == TO_STRANDS) {
        c->c = g->pieces == 1 ? c->c : 0;
    } else {
        c->c += row * q->n;
    }
    c->p.in = q->in;
    c->p.out = g->to == TO_Y || g->to == TO_Y_ACT ? q->out : TT_F32;
    c->p.end = end;
    c->p.open = q->open;
    c->p.trans_a = q->trans_a;
    c->p.trans_b = q->trans_b;
}

// Calls of one piece; with c, fills them, piece after piece.
static int64_t list_calls(tti_cuda_device *d, const product *q, program *g, call *c, int end)
{
    int64_t n = 0;
    int n_lanes = g->to == TO_LANES ? q->n_lanes : 1;
    for (int64_t i = 0; i < (c == NULL ? 1 : g->pieces); i++)
        for (int64_t outer = 0; outer < g->outer; outer++)
            for (int lane = 0, lanes; lane < n_lanes; lane += lanes, n++) {
                lanes = g->to == TO_LANES ? run_of_lanes(q, lane, q->batch == 1) : 1;
                if (c == NULL)
                    continue;
                int64_t row = i * g->piece, rows = q->m - row < g->piece ? q->m - row : g->piece;
                fill_call(q, g, &c[n], row, rows, outer, lane, lanes, end);
                if (g->by_library)
                    find_plans(d, g, &c[n]);
            }
    return n;
}

// Where sums go and how many rows at a time.
static void find_place(const product *q, program *g, place to)
{
    int64_t step_a, step_b;
    g->to = to;
    g->inner = find_inner(q, &step_a, &step_b);
    g->outer = q->batch / g->inner;
    g->piece = q->m;
    g->pieces = 1;
    g->slices = 0;
    g->workspace = 0;
    if (to != TO_SCRATCH && to != TO_LANES && to != TO_STRANDS)
        return;
    int64_t slices = to == TO_LANES ? q->n_lanes : to == TO_STRANDS ? tf32_strands(q->k, q->n) : 1;
    int64_t row = slices * q->n * 4;
    if (q->batch == 1 && row * q->m > MOST_SCRATCH) {
        int64_t n = (row * q->m + MOST_SCRATCH - 1) / MOST_SCRATCH;
        g->piece = ((q->m + n - 1) / n + PIECE - 1) / PIECE * PIECE;
        g->pieces = (q->m + g->piece - 1) / g->piece;
    }
    g->slices = row * q->batch * g->piece;
}

// Finds or makes the program for one way; NULL: out of memory.
static program *make_program(tti_cuda_device *d, const product *q, place to, int end,
                             bool by_library)
{
    product key;
    program g = {};
    bool is_new;
    memcpy(&key, q, key_bytes(q));
    key.tag[8] = (char)('0' + to);
    key.tag[9] = (char)('0' + end);
    key.tag[10] = (char)('0' + by_library);
    find_place(q, &g, to);
    g.by_library = by_library;
    g.by_units = q->by_units && q->k > 0;
    g.calls = list_calls(d, q, &g, NULL, end);
    size_t bytes = sizeof(g) + sizeof(call) * (size_t)(g.calls * g.pieces);
    program *out = (program *)tti_recipe_get(d, &key, key_bytes(q), bytes, NULL, &is_new);
    if (out == NULL || !is_new)
        return out;
    *out = g;
    list_calls(d, q, out, out->list, end);
    return out;
}

// Where our kernel puts a sum over several lanes.
static place lanes_place(const product *q)
{
    bool is_short = q->batch == 1 && q->n_lanes <= TREE_LANES;
    for (int i = 0; i < q->n_lanes; i++)
        is_short = is_short && q->bound[i + 1] - q->bound[i] <= TREE_K;
    return is_short ? TO_TREE : TO_LANES;
}

static place units_place(const product *q)
{
    if (q->open == TTI_BLAS_LANES)
        return q->n_lanes <= TF32_LANES ? TO_FOREST : TO_LANES;
    return tf32_strands(q->k, q->n) > 1 ? TO_STRANDS : TO_UNITS;
}

// By the library with its epilogue, by it with our kernel after it, or by our kernel alone.
static program *find_program(tti_cuda_device *d, const product *q)
{
    bool is_all, has_tree = q->has_lanes && q->n_lanes > 1;
    int end = epilogue(q, &is_all);
    place after = q->out == TT_F32 ? TO_Y_FINISH : TO_SCRATCH;
    if (q->by_units && q->k > 0)
        return make_program(d, q, units_place(q), 0, false);
    if (tti_blas_version(NULL) != 0 && !q->is_own) {
        place to = has_tree ? TO_LANES : !is_all ? after : q->act == TT_RELU ? TO_Y_ACT : TO_Y;
        program *g = make_program(d, q, to, end, true);
        if (g != NULL && !g->by_library && end != 0)
            g = make_program(d, q, after, 0, true);
        if (g == NULL || g->by_library)
            return g;
    }
    return make_program(d, q, has_tree ? lanes_place(q) : TO_Y, 0, false);
}

#endif
