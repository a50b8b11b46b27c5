/*
 * attention_cpu.c - kernels of attention.c; compiled once per instruction set.
 *
 * Everything runs in blocks of 64 queries by 64 keys that stay in cache. Scores are kept
 * transposed, [key][query], so that vectors run over queries: maxima, sums and weights of the
 * online softmax are then plain vectors, and no step adds across one. All six products are chains()
 * of attention_product.h.
 */
#include "op/attention.h"
#include "op/cpu/attention_product.h"
#include "op/cpu/gemm_pack.h"
#include "op/cpu/softexp.h"
#include "op/rows.h"

#define QB TTI_ATT_QUERIES
#define KB TTI_ATT_KEYS

#if defined(TTI_SET_F64)
#define LOWEST (-DBL_MAX)
#else
#define LOWEST (-FLT_MAX)
#endif

// ---- blocks ----------------------------------------------------------------------------------

// One call: where things lie, and the thread's own blocks.
typedef struct work {
    tti_attention_size s;
    const tti_attention_attr *attr;
    const real *q, *k, *v;
    const uint8_t *mask; // NULL: none
    int64_t mask_batch;  // elements from one batch row's mask to the next
    int64_t wide;        // D rounded up to vectors
    real scale;
    // of the thread
    real *qt, *dyt, *ot; // [D][QB]: q', dy, and o or dq, transposed
    real *kb, *vb;       // [KB][D]: copies, so that rows lie side by side
    real *p, *ds;        // [KB][QB]: p and ds, transposed
    real *seen;          // [KB][QB]: 1 where a key is seen, 0 where it is masked
    real *qr, *dyr;      // [QB][wide]: rows of q' and dy
    real *dkb, *dvb;     // [KB][wide]
    real *m, *l;         // [QB]
} work;

// A block of queries of one head, and of keys.
typedef struct block {
    int64_t b, h, kvh;
    int64_t i0, j0;
    int qn, kn, nv; // queries, keys, vectors of queries
    int masked;     // some keys are not seen
} block;

static real *take(real **at, int64_t n)
{
    real *p = *at;
    *at += (n + 15) / 16 * 16;
    return p;
}

static work open_work(const tt_launch *l, int backward)
{
    const tti_attention_attr *a = l->attr;
    work w = {.s = tti_attention_sizes(a, l->in), .attr = a};
    const tti_attention_size *s = &w.s;
    w.q = l->in[0].data;
    w.k = a->packed ? w.q + s->heads * s->d : l->in[1].data;
    w.v = a->packed ? w.k + s->kv_heads * s->d : l->in[2].data;
    if (a->has_mask) {
        const tt_arg *m = &l->in[a->packed ? 1 : 3];
        w.mask = m->data;
        w.mask_batch = m->shape.rank == 3 ? s->tq * s->tk : 0;
    }
    w.wide = (s->d + 15) / 16 * 16;
    w.scale = a->scale != 0 ? (real)a->scale : 1 / r_sqrt((real)s->d);
    real *at = (real *)(((uintptr_t)l->local + 63) / 64 * 64);
    w.qt = take(&at, s->d * QB);
    w.ot = take(&at, s->d * QB);
    w.kb = take(&at, KB * s->d);
    w.vb = take(&at, KB * s->d);
    w.p = take(&at, KB * QB);
    w.seen = take(&at, KB * QB);
    w.m = take(&at, QB);
    w.l = take(&at, QB);
    if (backward) {
        w.dyt = take(&at, s->d * QB);
        w.ds = take(&at, KB * QB);
        w.qr = take(&at, QB * w.wide);
        w.dyr = take(&at, QB * w.wide);
        w.dkb = take(&at, KB * w.wide);
        w.dvb = take(&at, KB * w.wide);
    }
    return w;
}

static block query_block(const work *w, int64_t b, int64_t h, int64_t i0)
{
    block k = {.b = b, .h = h, .kvh = h / (w->s.heads / w->s.kv_heads), .i0 = i0};
    k.qn = w->s.tq - i0 < QB ? (int)(w->s.tq - i0) : QB;
    k.nv = (k.qn + 15) / 16;
    return k;
}

// Rows of x, times factor, to out [D][QB]; queries that are not there are as the last one.
static void transpose_in(const work *w, const block *k, const real *x, int64_t row, real factor,
                         real *out)
{
    for (int i = 0; i < k->qn; i += 16)
        gemm_turn_all(x + i * row, row, k->qn - i < 16 ? k->qn - i : 16, w->s.d, out + i, QB);
    for (int64_t d = 0; factor != 1 && d < w->s.d; d++)
        for (real *at = out + d * QB; at < out + d * QB + 16 * k->nv; at += 16)
            v16_store(at, v16_mul(v16_load(at), v16_set1(factor)));
}

static void copy_rows(const real *x, int64_t row, int n, int64_t d, real *out, int64_t out_row)
{
    for (int i = 0; i < n; i++)
        memcpy(out + i * out_row, x + i * row, sizeof(real) * (size_t)d);
}

// Fills seen for the block; false when it holds no key at all that is seen.
static int find_seen(const work *w, block *k)
{
    const tti_attention_size *s = &w->s;
    int64_t i_last = k->i0 + k->qn - 1, j_last = k->j0 + k->kn - 1;
    int64_t near = w->attr->window > 0 ? w->attr->window : s->tq + s->tk; // |i - j| below it: seen
    int causal = w->attr->causal && j_last > k->i0;
    int window = j_last - k->i0 >= near || i_last - k->j0 >= near;
    if (w->attr->causal && k->j0 > i_last)
        return 0;
    if (k->j0 - i_last >= near || k->i0 - j_last >= near)
        return 0;
    k->masked = causal || window || w->mask != NULL;
    if (!k->masked)
        return 1;
    int any = 0;
    for (int j = 0; j < k->kn; j++) {
        real *out = w->seen + j * QB;
        for (int i = 0; i < 16 * k->nv; i++)
            out[i] = i < k->qn && (!causal || k->j0 + j <= k->i0 + i);
        for (int i = 0; window && i < k->qn; i++) {
            int64_t far = k->i0 + i - (k->j0 + j);
            out[i] = far < near && -far < near ? out[i] : 0;
        }
        const uint8_t *m = w->mask;
        if (m != NULL)
            m += k->b * w->mask_batch + k->i0 * s->tk + k->j0 + j;
        for (int i = 0; m != NULL && i < k->qn; i++)
            out[i] = m[i * s->tk] != 0 ? out[i] : 0;
        for (int i = 0; i < k->qn; i++)
            any |= out[i] != 0;
    }
    return any;
}

// Goes to the keys from j0 on: copies k and v, finds the mask. False: nothing to do there.
static int key_block(const work *w, block *k, int64_t j0)
{
    const tti_attention_size *s = &w->s;
    k->j0 = j0;
    k->kn = s->tk - j0 < KB ? (int)(s->tk - j0) : KB;
    if (!find_seen(w, k))
        return 0;
    int64_t at = (k->b * s->tk + j0) * s->kv_row + k->kvh * s->d;
    copy_rows(w->k + at, s->kv_row, k->kn, s->d, w->kb, s->d);
    copy_rows(w->v + at, s->kv_row, k->kn, s->d, w->vb, s->d);
    return 1;
}

// a's rows [key][D] times b [D][query], to out [key][query].
static void by_key(const work *w, const block *k, const real *a, const real *b, real *out)
{
    chains(&(product){.a = a,
                      .a_row = w->s.d,
                      .a_k = 1,
                      .b = b,
                      .b_row = QB,
                      .out = out,
                      .out_row = QB,
                      .k = w->s.d},
           k->kn, k->nv);
}

// Scores of the block, [key][query]: k q', less the slope times the distance.
static void score(const work *w, const block *k)
{
    by_key(w, k, w->kb, w->qt, w->p);
    if (!w->attr->alibi)
        return;
    real slope = (real)tti_attention_slope(w->s.heads, k->h);
    for (int j = 0; j < k->kn; j++) {
        real *s = w->p + j * QB;
        for (int i = 0; i < 16 * k->nv; i++) {
            int64_t far = k->i0 + i - (k->j0 + j);
            s[i] = s[i] - slope * (real)(far < 0 ? -far : far);
        }
    }
}

// out [D][query] goes on with the columns of a [key][D] times b [key][query].
static void by_column(const work *w, const block *k, const real *a, const real *b, real *out)
{
    chains(&(product){.a = a,
                      .a_row = 1,
                      .a_k = w->s.d,
                      .b = b,
                      .b_row = QB,
                      .out = out,
                      .out_row = QB,
                      .k = k->kn,
                      .go_on = 1},
           w->s.d, k->nv);
}

// out [key][wide] goes on with a [key][query] times the rows b [query][wide].
static void by_query(const work *w, const block *k, const real *a, const real *b, real *out)
{
    chains(&(product){.a = a,
                      .a_row = QB,
                      .a_k = 1,
                      .b = b,
                      .b_row = w->wide,
                      .out = out,
                      .out_row = w->wide,
                      .k = k->qn,
                      .go_on = 1},
           k->kn, w->wide / 16);
}

// Columns [0, qn) of x [D][QB], times factor, to rows of out.
static void transpose_out(const work *w, const block *k, const real *x, real factor, real *out,
                          int64_t row)
{
    for (int i = 0; i < k->qn; i++)
        for (int64_t d = 0; d < w->s.d; d++)
            out[i * row + d] = r_end(x[d * QB + i] * factor);
}

static void clear(real *p, int64_t n)
{
    memset(p, 0, sizeof(real) * (size_t)n);
}

// ---- forward ---------------------------------------------------------------------------------

// Scores to weights for one vector of queries; m, l and o take the block's part.
TTI_INLINE void soften(const work *w, const block *k, int v, int masked)
{
    real *s = w->p + 16 * v, *seen = w->seen + 16 * v;
    v16 old = v16_load(w->m + 16 * v), low = v16_set1(LOWEST), max = old, sum = v16_zero();
    for (int j = 0; j < k->kn; j++) {
        v16 x = v16_load(s + j * QB);
        if (masked)
            x = v16_if(v16_gt(v16_load(seen + j * QB), v16_zero()), x, low);
        max = v16_max(max, x);
    }
    for (int j = 0; j < k->kn; j++) {
        v16 e = v16_softexp(v16_sub(v16_load(s + j * QB), max));
        if (masked)
            e = v16_if(v16_gt(v16_load(seen + j * QB), v16_zero()), e, v16_zero());
        sum = v16_add(sum, e);
        v16_store(s + j * QB, e);
    }
    v16 keep = v16_softexp(v16_sub(old, max));
    v16_store(w->m + 16 * v, max);
    v16_store(w->l + 16 * v, v16_fma(v16_load(w->l + 16 * v), keep, sum));
    for (int64_t d = 0; d < w->s.d; d++)
        v16_store(w->ot + d * QB + 16 * v, v16_mul(v16_load(w->ot + d * QB + 16 * v), keep));
}

// y = o / l, in place; lse to m. A query that saw no key has l = 0.
static void finish(const work *w, const block *k)
{
    for (int v = 0; v < k->nv; v++) {
        v16 l = v16_load(w->l + 16 * v), one = v16_set1(1);
        m16 any = m16_not(v16_eq(l, v16_zero())); // a NaN goes on to y
        l = v16_if(any, l, one);
        for (int64_t d = 0; d < w->s.d; d++) {
            real *o = w->ot + d * QB + 16 * v;
            v16_store(o, v16_if(any, v16_div(v16_load(o), l), v16_zero()));
        }
        v16 lse = v16_add(v16_load(w->m + 16 * v), v16_log(l));
        v16_store(w->m + 16 * v, v16_end(v16_if(any, lse, v16_zero())));
    }
}

static void forward(const work *w, block *k, real *y, real *lse)
{
    const tti_attention_size *s = &w->s;
    transpose_in(w, k, w->q + (k->b * s->tq + k->i0) * s->q_row + k->h * s->d, s->q_row, w->scale,
                 w->qt);
    clear(w->ot, s->d * QB);
    for (int i = 0; i < QB; i++) {
        w->m[i] = LOWEST;
        w->l[i] = 0;
    }
    for (int64_t j0 = 0; j0 < s->tk; j0 += KB) {
        if (!key_block(w, k, j0))
            continue;
        score(w, k);
        for (int v = 0; v < k->nv; v++) {
            if (k->masked)
                soften(w, k, v, 1);
            else
                soften(w, k, v, 0);
        }
        by_column(w, k, w->vb, w->p, w->ot);
    }
    finish(w, k);
    int64_t row = s->heads * s->d;
    transpose_out(w, k, w->ot, 1, y + (k->b * s->tq + k->i0) * row + k->h * s->d, row);
    memcpy(lse + (k->b * s->heads + k->h) * s->tq + k->i0, w->m, sizeof(real) * (size_t)k->qn);
}

tt_status TTI_ISA(attention)(const tt_launch *l)
{
    work w = open_work(l, 0);
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t bh = u / w.s.q_blocks;
        block k = query_block(&w, bh / w.s.heads, bh % w.s.heads, u % w.s.q_blocks * QB);
        forward(&w, &k, l->out[0].data, l->out[1].data);
    }
    return TT_OK;
}

// ---- backward --------------------------------------------------------------------------------

typedef struct grads {
    const real *y, *lse, *dy;
    real *dq, *dk, *dv;
} grads;

// q' and dy of the block, both ways; lse to m, delta to l.
static void load_queries(const work *w, const block *k, const grads *g)
{
    const tti_attention_size *s = &w->s;
    int64_t t = k->b * s->tq + k->i0, row = s->heads * s->d, at = t * row + k->h * s->d;
    const real *q = w->q + t * s->q_row + k->h * s->d;
    transpose_in(w, k, q, s->q_row, w->scale, w->qt);
    transpose_in(w, k, g->dy + at, row, 1, w->dyt);
    for (int i = 0; i < QB; i++)
        w->m[i] = w->l[i] = 0;
    memcpy(w->m, g->lse + (k->b * s->heads + k->h) * s->tq + k->i0, sizeof(real) * (size_t)k->qn);
    for (int i = 0; i < k->qn; i++) {
        const real *dy = g->dy + at + i * row;
        for (int64_t d = 0; d < w->wide; d += 16) {
            int n = s->d - d < 16 ? (int)(s->d - d) : 16;
            v16_store(w->dyr + i * w->wide + d, v16_load_n(dy + d, n));
            v16_store(w->qr + i * w->wide + d,
                      v16_mul(v16_load_n(q + i * s->q_row + d, n), v16_set1(w->scale)));
        }
    }
    // The chain that makes dp of v: where y is the v of a query's only key, dp - delta is 0.
    real *yt = w->ot; // dq is not begun yet
    transpose_in(w, k, g->y + at, row, 1, yt);
    for (int v = 0; v < k->nv; v++) {
        v16 sum = v16_zero();
        for (int64_t at_d = 16 * v; at_d < s->d * QB; at_d += QB)
            sum = v16_fma(v16_load(yt + at_d), v16_load(w->dyt + at_d), sum);
        v16_store(w->l + 16 * v, v16_end(sum));
    }
}

// p and ds of the block.
static void score_grads(const work *w, const block *k)
{
    score(w, k);
    by_key(w, k, w->vb, w->dyt, w->ds);
    for (int v = 0; v < k->nv; v++) {
        v16 lse = v16_load(w->m + 16 * v), delta = v16_load(w->l + 16 * v);
        for (int j = 0; j < k->kn; j++) {
            int64_t at = j * QB + 16 * v;
            v16 p = v16_softexp(v16_sub(v16_load(w->p + at), lse));
            if (k->masked)
                p = v16_if(v16_gt(v16_load(w->seen + at), v16_zero()), p, v16_zero());
            v16_store(w->p + at, p);
            v16_store(w->ds + at, v16_mul(p, v16_sub(v16_load(w->ds + at), delta)));
        }
    }
}

// The block's part of dk and dv, which are kept in the outputs in between.
static void add_keys(const work *w, const block *k, real *dk, real *dv)
{
    const tti_attention_size *s = &w->s;
    int64_t at = (k->b * s->tk + k->j0) * s->kv_row + k->kvh * s->d;
    if (w->wide != s->d) {
        clear(w->dkb, KB * w->wide);
        clear(w->dvb, KB * w->wide);
    }
    copy_rows(dk + at, s->kv_row, k->kn, s->d, w->dkb, w->wide);
    copy_rows(dv + at, s->kv_row, k->kn, s->d, w->dvb, w->wide);
    by_query(w, k, w->ds, w->qr, w->dkb);
    by_query(w, k, w->p, w->dyr, w->dvb);
    copy_rows(w->dkb, w->wide, k->kn, s->d, dk + at, s->kv_row);
    copy_rows(w->dvb, w->wide, k->kn, s->d, dv + at, s->kv_row);
}

static void clear_keys(const work *w, const grads *g, int64_t b, int64_t kvh, int64_t j0,
                       int64_t j1)
{
    const tti_attention_size *s = &w->s;
    for (int64_t j = j0; j < j1; j++) {
        int64_t at = (b * s->tk + j) * s->kv_row + kvh * s->d;
        clear(g->dk + at, s->d);
        clear(g->dv + at, s->d);
    }
}

// One block of queries against the blocks of keys [j0, j1).
static void backward(const work *w, block *k, const grads *g, int64_t j0, int64_t j1, int with_q,
                     int with_k)
{
    const tti_attention_size *s = &w->s;
    if (w->attr->causal && j0 > k->i0 + k->qn - 1 && !with_q)
        return;
    load_queries(w, k, g);
    if (with_q)
        clear(w->ot, s->d * QB);
    for (int64_t j = j0; j < j1; j += KB) {
        if (!key_block(w, k, j))
            continue;
        score_grads(w, k);
        if (with_q)
            by_column(w, k, w->kb, w->ds, w->ot);
        if (with_k)
            add_keys(w, k, g->dk, g->dv);
    }
    if (with_q)
        transpose_out(w, k, w->ot, w->scale,
                      g->dq + (k->b * s->tq + k->i0) * s->q_row + k->h * s->d, s->q_row);
}

// All queries that read keys [j0, j1) of head kvh: heads, then rows, ascending.
static void backward_keys(const work *w, const grads *g, int64_t b, int64_t kvh, int64_t j0,
                          int64_t j1, int with_q)
{
    const tti_attention_size *s = &w->s;
    int64_t group = s->heads / s->kv_heads;
    clear_keys(w, g, b, kvh, j0, j1);
    for (int64_t h = kvh * group; h < (kvh + 1) * group; h++) {
        for (int64_t i0 = 0; i0 < s->tq; i0 += QB) {
            block k = query_block(w, b, h, i0);
            backward(w, &k, g, j0, j1, with_q, 1);
        }
    }
}

tt_status TTI_ISA(attention_grad)(const tt_launch *l)
{
    const tti_attention_tune *tune = l->tune;
    work w = open_work(l, 1);
    const tti_attention_size *s = &w.s;
    int n = l->n_in - 3;
    grads g = {.y = l->in[n].data, .lse = l->in[n + 1].data, .dy = l->in[n + 2].data};
    g.dq = l->out[0].data;
    g.dk = w.attr->packed ? g.dq + s->heads * s->d : l->out[1].data;
    g.dv = w.attr->packed ? g.dk + s->kv_heads * s->d : l->out[2].data;
    for (int64_t u = l->begin; u < l->end; u++) {
        if (tune->by_head) {
            backward_keys(&w, &g, u / s->kv_heads, u % s->kv_heads, 0, s->tk, 1);
        } else if (l->phase == 0) {
            int64_t bh = u / s->q_blocks;
            block k = query_block(&w, bh / s->heads, bh % s->heads, u % s->q_blocks * QB);
            backward(&w, &k, &g, 0, s->tk, 1, 0);
        } else {
            int64_t bh = u / s->k_blocks, j0 = u % s->k_blocks * KB;
            int64_t j1 = j0 + KB < s->tk ? j0 + KB : s->tk;
            backward_keys(&w, &g, bh / s->kv_heads, bh % s->kv_heads, j0, j1, 0);
        }
    }
    return TT_OK;
}
