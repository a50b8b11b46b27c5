/*
 * matmul.cu - products of matrices on GPUs: f32 by weights on the matrix units (gemm_tf32.cuh),
 * others by cuBLASLt where it is there, else by gemm.cuh.
 *
 * prepare() finds the program of calls (matmul_program.cuh), kept in a recipe. Sums of lanes, or of
 * the strands of long ones, are f32 in scratch and then added along the tree. Bias and activation
 * are done by the library's epilogue, or by a kernel after it: from f32 sums, or, where only relu
 * is left, in place.
 */
#include "op/gpu/gemm_after.cuh"
#include "op/gpu/matmul_program.cuh"

typedef struct tune {
    program *g; // NULL: nothing to do
    int64_t m, n, batch, per;
} tune;

static tt_status matmul_prepare(tt_prep *p)
{
    tti_cuda_device *d = (tti_cuda_device *)p->device;
    product q;
    tune t = {};
    find_product(p, &q);
    t.m = q.m;
    t.n = q.n;
    t.batch = q.batch;
    t.per = p->in[0].per;
    p->units[0] = 1;
    memcpy(p->tune, &t, sizeof(t));
    if (q.batch * q.m * q.n == 0)
        return TT_OK;
    t.g = find_program(d, &q);
    if (t.g == NULL)
        return TT_ENOMEM;
    memcpy(p->tune, &t, sizeof(t));
    p->scratch_bytes = (size_t)((t.g->workspace + 255) / 256 * 256 + t.g->slices);
    p->ns = 2e-5 * (double)q.batch * (double)q.m * (double)q.n * (double)q.k;
    return TT_OK;
}

// ---- launch ----------------------------------------------------------------------------------

typedef struct operands {
    const void *a, *b, *bias;
    char *y, *z, *sums, *workspace;
    tt_dtype in, out;
    int act;
} operands;

static char *at(const void *p, tt_dtype t, int64_t i)
{
    return p == NULL ? NULL : (char *)p + i * (t == TT_F32 ? 4 : 2);
}

// On the matrix units: g's place says what of.
static void run_units(const tt_launch *l, const tune *t, gemm_args *m)
{
    const program *g = t->g;
    tf32_args u = {};
    if (g->to == TO_STRANDS) {
        int64_t k = m->k, len = tf32_strand(k, m->n);
        m->batch = tf32_strands(k, m->n);
        m->k = len;
        m->step_a = len * m->a_k;
        m->step_b = len * m->b_k;
        m->step_c = g->piece * m->n;
        u.last = k - (m->batch - 1) * len;
    } else {
        u.last = m->k;
    }
    u.g = *m;
    if (g->to == TO_FOREST) {
        tti_strands s;
        cut_lanes(&s, l->lanes, t->per, t->batch * t->m * t->n);
        u.ln = tti_lanes_by_value<TF32_LANES>(&s.ln);
        u.part = m->m * m->n;
        u.is_balanced = s.ln.n == TF32_LANES && tree_is_balanced(&s.ln);
        tf32_tree_launch(l, &u);
    } else if (g->to == TO_LANES) {
        tf32_lanes_launch(l, &u);
    } else {
        tf32_rows_launch(l, &u);
    }
}

static tt_status run_call(const tt_launch *l, const tune *t, const operands *o, const call *c)
{
    const program *g = t->g;
    const tti_blas_product *p = &c->p;
    const void *a = at(o->a, o->in, c->a), *b = at(o->b, o->in, c->b);
    bool to_sums = g->to == TO_SCRATCH || g->to == TO_LANES || g->to == TO_STRANDS;
    bool is_whole = g->to == TO_Y || g->to == TO_UNITS; // with bias and activation
    char *y = at(to_sums ? o->sums : o->y, (tt_dtype)p->out, c->c);
    char *z = is_whole ? at(o->z, o->out, c->c) : NULL;
    if (g->by_library && p->k > 0 && tti_blas_takes(c->plan[z != NULL], a, b, y, o->bias, z))
        return tti_blas_run(c->plan[z != NULL], l, a, b, y, o->bias, z, o->workspace);
    gemm_args m = {};
    m.a = a;
    m.b = b;
    m.bias = is_whole || g->to == TO_Y_ACT ? o->bias : NULL;
    m.y = y;
    m.z = z;
    m.m = p->m;
    m.n = p->n;
    m.k = p->k;
    m.a_row = p->trans_a ? 1 : p->lda;
    m.a_k = p->trans_a ? p->lda : 1;
    m.b_k = p->trans_b ? 1 : p->ldb;
    m.b_col = p->trans_b ? p->ldb : 1;
    m.ldc = p->ldc;
    m.batch = p->batch;
    m.step_a = p->step_a;
    m.step_b = p->step_b;
    m.step_c = p->step_c;
    m.out = g->to == TO_TREE ? o->out : p->out;
    m.act = is_whole ? o->act : TT_LINEAR;
    if (g->by_units)
        run_units(l, t, &m);
    else if (g->to == TO_TREE)
        gemm_lanes_launch(l, o->in, &m, t->per);
    else
        gemm_launch(l, o->in, &m);
    return TT_OK;
}

// After the calls of a piece.
static void finish_piece(const tt_launch *l, const tune *t, const operands *o, int64_t piece)
{
    const program *g = t->g;
    int64_t row = piece * g->piece, left = t->m - row;
    int64_t rows = (left < g->piece ? left : g->piece) * t->batch; // pieces: of a batch of one
    if (g->to == TO_LANES) {
        tree_args a = {(const float *)o->sums,
                       at(o->y, o->out, row * t->n),
                       t->batch * g->piece * t->n,
                       t->batch * t->m * t->n,
                       rows * t->n,
                       o->out};
        tti_strands s;
        cut_lanes(&s, l->lanes, t->per, t->batch * t->m * t->n);
        tree_launch(l, &s.ln, &a);
    } else if (g->to == TO_STRANDS) {
        strands_args f = {};
        f.x = (const float *)o->sums;
        f.bias = (const float *)o->bias;
        f.y = (float *)at(o->y, o->out, row * t->n);
        f.z = (float *)at(o->z, o->out, row * t->n);
        f.step = g->piece * t->n;
        f.rows = rows;
        f.n = t->n;
        f.strands = (int)tf32_strands(g->list[0].p.k, t->n);
        f.act = o->act;
        strands_launch(l, &f);
    } else if (g->to == TO_Y_FINISH || g->to == TO_SCRATCH || g->to == TO_Y_ACT) {
        bool is_act = g->to == TO_Y_ACT; // of what is rounded: the same for relu
        finish_args f = {};
        f.y = at(o->y, o->out, row * t->n);
        f.z = at(o->z, o->out, row * t->n);
        f.x = g->to == TO_SCRATCH ? o->sums : f.y;
        f.x_type = is_act ? o->out : TT_F32;
        f.bias = is_act ? NULL : o->bias;
        f.rows = rows;
        f.n = t->n;
        f.in = o->in;
        f.out = o->out;
        f.act = o->act;
        finish_launch(l, &f);
    }
}

static tt_status matmul(const tt_launch *l)
{
    const tune *t = (const tune *)l->tune;
    const program *g = t->g;
    if (g == NULL)
        return TT_OK;
    operands o = {};
    o.a = l->in[0].data;
    o.b = l->in[1].data;
    o.bias = l->n_in > 2 ? l->in[2].data : NULL;
    o.y = (char *)l->out[0].data;
    o.z = l->n_out > 1 ? (char *)l->out[1].data : NULL;
    o.workspace = l->scratch;
    o.sums = l->scratch + (g->workspace + 255) / 256 * 256;
    o.in = l->in[0].dtype;
    o.out = l->out[0].dtype;
    o.act = ((const tti_matmul_attr *)l->attr)->act;
    for (int64_t i = 0; i < g->pieces; i++) {
        for (int64_t c = 0; c < g->calls; c++)
            TT_TRY(run_call(l, t, &o, &g->list[i * g->calls + c]));
        finish_piece(l, t, &o, i);
    }
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_matmul[] = {
    TTI_ROW_BY("matmul", matmul_prepare, matmul, TTI_BY_BLAS),
    TTI_ROWS_END,
};
