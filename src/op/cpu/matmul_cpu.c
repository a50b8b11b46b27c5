/*
 * matmul_cpu.c - products of matrices on CPUs; compiled once per instruction set.
 *
 * A unit is a block of rows by a block of columns of one product. It is swept in runs of k: the
 * block's part of A is packed once per run, then each panel of B (GEMM_NR columns) is packed and
 * all tiles of rows go over it while it is in the nearest cache. Chains that a run cuts are kept in
 * C itself. Small or well-lying operands are read where they are.
 *
 * Where C has no room for a whole vector (the last columns) and for pending sums of lanes there is
 * the stack: its levels are the slots of gemm_tile.h. What a tile leaves there, or in C without
 * bias and activation, is brought home by finish(). bf16 and f16 are widened by the packing and
 * rounded by finish(): their sums are all on the stack.
 */
#include "op/cpu/act.h"
#include "op/cpu/gemm_pack.h"
#include "op/cpu/gemm_tile.h"
#include "op/op.h"

tt_status TTI_ISA(tti_matmul)(const tt_launch *l);

typedef struct operands {
    const void *a, *b, *bias;
    void *y, *z;      // z: before the activation; NULL if not wanted
    tt_dtype in, out; // types of a, b and bias; of y and z
    int64_t lda, ldb; // row strides as stored
    int64_t part;     // elements between parts of the output
    int n_parts;      //
    int act;          //
    real *pa, *pb, *stack;
} operands;

typedef struct block {
    int64_t row, rows;     // of C
    int64_t tiles, low;    // rows are dealt evenly to them: low or low + 1
    int64_t panel, panels; // first panel and how many
    int64_t level;         // elements from one level of the stack to the next
} block;

static size_t item_of(tt_dtype t)
{
    return t == TT_BF16 || t == TT_F16 ? sizeof(uint16_t) : sizeof(real);
}

// Element i of numbers of type t.
static const void *from(const void *p, tt_dtype t, int64_t i)
{
    return (const char *)p + i * (int64_t)item_of(t);
}
static void *to(void *p, tt_dtype t, int64_t i)
{
    return (char *)p + i * (int64_t)item_of(t);
}

// Up to 16 numbers of any type.
static inline v16 load_any(const void *p, tt_dtype t, int n)
{
    if (item_of(t) == sizeof(real))
        return v16_load_n(p, n);
    real wide[16] = {0};
    gemm_widen(p, t, wide, n);
    return v16_load(wide);
}
static inline void store_any(void *p, tt_dtype t, v16 v, int n)
{
    if (item_of(t) == sizeof(real)) {
        v16_store_n(p, v, n);
        return;
    }
    real wide[16];
    v16_store(wide, v);
    if (t == TT_BF16)
        tti_round_bf16(wide, p, n);
    else
        tti_round_f16(wide, p, n);
}

// y = act(x + bias) for a tile, and z = x + bias where z is wanted. y may be x.
static void finish(const operands *o, const real *x, int64_t ldx, void *y, void *z, int64_t ld,
                   int64_t h, int64_t col, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += 16) {
        int n = cols - j < 16 ? (int)(cols - j) : 16;
        v16 bias = v16_zero();
        if (o->bias != NULL)
            bias = load_any(from(o->bias, o->in, col + j), o->in, n);
        for (int64_t i = 0; i < h; i++) {
            v16 v = v16_load_n(x + i * ldx + j, n);
            if (o->bias != NULL)
                v = v16_add(v, bias);
            if (z != NULL)
                store_any(to(z, o->out, i * ld + j), o->out, v, n);
            store_any(to(y, o->out, i * ld + j), o->out, v16_act(o->act, v), n);
        }
    }
}

/*
 * The next run of k after *g; false when all lanes are done. *g starts with n_lanes 0. A run is
 * whole lanes, or a piece of one lane alone.
 */
static bool next_run(const tti_gemm_plan *p, int n_lanes, gemm_run *g)
{
    if (g->is_cut) {
        g->has_begun = true;
    } else {
        for (int i = 0; i < g->n_lanes; i++, g->lane++)
            g->depth += 1 - g->merges[g->lane];
        g->has_begun = false;
    }
    if (g->lane == n_lanes)
        return false;
    g->k0 = g->k1;
    g->k1 = g->bound[g->lane + 1] * g->per;
    g->n_lanes = 1;
    g->is_cut = g->k1 - g->k0 > p->kc;
    if (g->is_cut) {
        g->k1 = g->k0 + p->kc;
        return true;
    }
    while (!g->has_begun && g->lane + g->n_lanes < n_lanes) {
        int64_t end = g->bound[g->lane + g->n_lanes + 1] * g->per;
        if (end - g->k0 > p->kc)
            break;
        g->k1 = end;
        g->n_lanes++;
    }
    return true;
}

static int64_t tile_rows(const block *blk, int64_t t)
{
    return blk->low + (t < blk->rows - blk->low * blk->tiles);
}

// While tile t of a panel is computed, a part of the next panel of B comes nearer.
static void look_ahead(const tti_gemm_plan *p, const operands *o, const block *blk, gemm_run *g,
                       int64_t panel, int64_t t)
{
    int64_t k = g->k1 - g->k0, bytes = (int64_t)sizeof(real);
    int64_t col = (panel + 1) * GEMM_NR;
    g->ahead = (const char *)o->pa;
    g->ahead_step = g->ahead_two = 0;
    if (panel + 1 == blk->panel + blk->panels || p->half_in)
        return;
    const real *b = o->b;
    if (p->trans_b && 2 * t + 1 < GEMM_NR && col + 2 * t + 1 < p->n) { // columns 2 t and 2 t + 1
        g->ahead = (const char *)(b + (col + 2 * t) * o->ldb + g->k0);
        g->ahead_two = o->ldb * bytes;
        g->ahead_step = 4 * bytes;
    } else if (!p->trans_b && t < 4) { // a quarter of the rows
        g->ahead = (const char *)(b + (g->k0 + t * (k / 4)) * o->ldb + col);
        g->ahead_two = 16 * bytes;
        g->ahead_step = o->ldb * bytes;
    }
}

// One panel of columns of a block over the run g; done: the last run.
static void sweep_panel(const tti_gemm_plan *p, const operands *o, const block *blk, gemm_run *g,
                        int64_t panel, bool done)
{
    int64_t col = panel * GEMM_NR;
    int64_t cols = TTI_MIN(GEMM_NR, p->n - col);
    int nv = (int)((cols + 15) / 16);
    bool whole = cols == nv * 16;
    int64_t k = g->k1 - g->k0;

    const void *at_b = from(o->b, o->in, p->trans_b ? col * o->ldb + g->k0 : g->k0 * o->ldb + col);
    const real *b = at_b;
    int64_t bs = o->ldb;
    if (p->half_in)
        gemm_pack_half_b(at_b, o->in, o->ldb, p->trans_b, (int)cols, nv, k, o->pb);
    else if (p->pack_b || !whole)
        gemm_pack_b(b, o->ldb, p->trans_b, (int)cols, nv, k, o->pb);
    if (p->pack_b || !whole) {
        b = o->pb;
        bs = 16 * nv;
    }
    const gemm_tile_fn *tile = gemm_tile_of[nv - 1][p->way];
    bool single = p->k <= p->kc; // one run: a tile's stack is used at once
    bool linear = o->bias == NULL && o->act == TT_LINEAR;
    bool in_c = whole && !p->half_out; // C has room for whole vectors of sums
    bool straight = single && in_c && linear && o->n_parts == 1; // from registers to C
    bool needs_finish = done && !straight && !(in_c && linear && !single);
    real *out = p->half_out ? o->stack : o->z != NULL ? o->z : o->y;
    g->n_out = in_c && !single ? o->n_parts : 0;
    g->ld_out = p->n;
    g->ld_slot = GEMM_NR;

    int64_t h, r = 0;
    for (int64_t t = 0; t < blk->tiles; t++, r += h) {
        h = tile_rows(blk, t);
        int64_t at = (blk->row + r) * p->n + col;
        int64_t in_level = single ? 0 : r * GEMM_NR;
        if (!single && (p->has_lanes || p->half_out))
            in_level += (panel - blk->panel) * blk->rows * GEMM_NR;
        for (int d = 0; d < p->levels; d++)
            g->slot[d] =
                d < g->n_out ? out + d * o->part + at : o->stack + d * blk->level + in_level;

        g->last = straight ? out + at : NULL;

        const real *a = o->pa + r * k;
        int64_t as = h;
        if (!p->pack_a && p->half_in) {
            a = o->pa + (p->trans_a ? r : r * k);
            as = p->trans_a ? blk->rows : k;
        } else if (!p->pack_a) {
            a = (const real *)o->a +
                (p->trans_a ? g->k0 * o->lda + blk->row + r : (blk->row + r) * o->lda + g->k0);
            as = o->lda;
        }
        if (p->way == GEMM_BY_K) {
            g->next_c = p->half_out ? out : out + at + (t + 1 < blk->tiles ? h * p->n : 0);
            look_ahead(p, o, blk, g, panel, t);
        }
        tile[h - 1](g, a, as, b, bs);
        for (int d = 0; needs_finish && d < o->n_parts; d++)
            finish(o, g->slot[d], d < g->n_out ? g->ld_out : g->ld_slot,
                   to(o->y, o->out, d * o->part + at), o->z == NULL ? NULL : to(o->z, o->out, at),
                   p->n, h, col, cols);
    }
}

// The block's part of A for the run g, as it lies.
static void widen_a(const tti_gemm_plan *p, const operands *o, const block *blk, const gemm_run *g,
                    const void *a)
{
    int64_t k = g->k1 - g->k0;
    int64_t lines = p->trans_a ? k : blk->rows, length = p->trans_a ? blk->rows : k;
    for (int64_t i = 0; i < lines; i++)
        gemm_widen(from(a, o->in, i * o->lda), o->in, o->pa + i * length, length);
}

// The block's rows of A for the run g, in the order of the tiles or only widened.
static void pack_a(const tti_gemm_plan *p, const operands *o, const block *blk, const gemm_run *g)
{
    int64_t k = g->k1 - g->k0, h, r = 0;
    const void *a =
        from(o->a, o->in, p->trans_a ? g->k0 * o->lda + blk->row : blk->row * o->lda + g->k0);
    if (!p->pack_a) {
        widen_a(p, o, blk, g, a);
        return;
    }
    for (int64_t t = 0; t < blk->tiles; t++, r += h) {
        h = tile_rows(blk, t);
        const void *row = from(a, o->in, p->trans_a ? r : r * o->lda);
        if (p->half_in)
            gemm_pack_half_a(row, o->in, o->lda, p->trans_a, (int)h, k, o->pa + r * k);
        else
            gemm_pack_a(row, o->lda, p->trans_a, (int)h, k, o->pa + r * k);
    }
}

static void sweep_block(const tti_gemm_plan *p, const operands *o, const block *blk,
                        const tt_lanes *lanes, int64_t per)
{
    const int64_t one_bound[2] = {0, p->k};
    const uint8_t one_merge = 0;
    gemm_run g = {.bound = one_bound, .merges = &one_merge, .per = 1};
    int n_lanes = 1;
    if (p->has_lanes) {
        g.bound = lanes->bound;
        g.merges = lanes->merges;
        g.per = per;
        n_lanes = lanes->n;
    }
    while (next_run(p, n_lanes, &g)) {
        if (p->pack_a || p->half_in)
            pack_a(p, o, blk, &g);
        bool done = !g.is_cut && g.lane + g.n_lanes == n_lanes;
        for (int64_t i = 0; i < blk->panels; i++)
            sweep_panel(p, o, blk, &g, blk->panel + i, done);
    }
}

tt_status TTI_ISA(tti_matmul)(const tt_launch *l)
{
    const tti_gemm_plan *p = l->tune;
    const int64_t all_panels = (p->n + GEMM_NR - 1) / GEMM_NR;
    operands o = {
        .bias = l->n_in > 2 ? l->in[2].data : NULL,
        .in = l->in[0].dtype,
        .out = l->out[0].dtype,
        .act = p->act,
        .lda = p->trans_a ? p->m : p->k,
        .ldb = p->trans_b ? p->k : p->n,
        .n_parts = p->has_lanes ? l->lanes->n_parts : 1,
        .part = p->batch * p->m * p->n,
        .pa = (real *)l->local,
        .pb = (real *)l->local + p->at_b,
        .stack = (real *)l->local + p->at_stack,
    };
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t product = u / (p->row_blocks * p->col_blocks);
        int64_t rb = u / p->col_blocks % p->row_blocks;
        int64_t cb = u % p->col_blocks;
        int64_t at_a = 0, at_b = 0, rest = product;
        for (int i = p->lead - 1; i >= 0; i--) {
            at_a += rest % p->dim[i] * p->step_a[i];
            at_b += rest % p->dim[i] * p->step_b[i];
            rest /= p->dim[i];
        }
        o.a = from(l->in[0].data, o.in, at_a * p->m * p->k);
        o.b = from(l->in[1].data, o.in, at_b * p->k * p->n);
        o.y = to(l->out[0].data, o.out, product * p->m * p->n);
        o.z = NULL;
        if (l->n_out > 1 && l->out[1].data != NULL)
            o.z = to(l->out[1].data, o.out, product * p->m * p->n);

        block blk = {.row = p->m * rb / p->row_blocks, .panel = all_panels * cb / p->col_blocks};
        blk.rows = p->m * (rb + 1) / p->row_blocks - blk.row;
        blk.panels = all_panels * (cb + 1) / p->col_blocks - blk.panel;
        blk.tiles = (blk.rows + p->tile_rows - 1) / p->tile_rows;
        blk.low = blk.rows / blk.tiles;
        blk.level = p->k <= p->kc
                        ? GEMM_MR * GEMM_NR
                        : blk.rows * GEMM_NR * (p->has_lanes || p->half_out ? blk.panels : 1);
        sweep_block(p, &o, &blk, l->lanes, p->has_lanes ? p->per : 1);
    }
    return TT_OK;
}
