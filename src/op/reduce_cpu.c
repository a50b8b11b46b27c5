/*
 * reduce_cpu.c - kernels of reduce.c. With a tail each output is computed by itself, its rows 16
 * wide; without one, outputs are columns, 16 side by side, and rows are added to them in order. The
 * sums of blocks wait on a stack for their neighbours in the tree: below the one that was begun
 * last there is one for each bit of the number of blocks that are done.
 */
#include "op/lanes.h"
#include "op/reduce.h"

#define NARROW 4 // vectors of columns that stay in registers
#define ROWS   8 // of long rows in a pass

typedef enum fold {
    SUM,
    MAX,
    MIN
} fold;

static inline __attribute__((always_inline)) real fold_start(fold f)
{
    real inf = (real)__builtin_inf();
    return f == SUM ? 0 : f == MAX ? -inf : inf;
}
static inline __attribute__((always_inline)) v16 fold_one(fold f, v16 a, v16 x)
{
    return f == SUM ? v16_add(a, x) : f == MAX ? v16_max_nan(x, a) : v16_min_nan(x, a);
}
static inline __attribute__((always_inline)) real fold_real(fold f, real a, real x)
{
    return f == SUM ? a + x : f == MAX ? r_max_nan(a, x) : r_min_nan(a, x);
}

// The maximum or minimum of a row, in any order. NaNs are looked for two vectors at a time.
static inline __attribute__((always_inline)) real fold_order(fold f, const real *x, int64_t n)
{
    v16 a = v16_set1(fold_start(f)), b = a;
    m16 nan = m16_first(0);
    int64_t j = 0;
    for (; j + 32 <= n; j += 32) {
        v16 u = v16_load(x + j), v = v16_load(x + j + 16);
        nan = m16_or(nan, v16_unordered(u, v));
        a = f == MAX ? v16_max(u, a) : v16_min(u, a);
        b = f == MAX ? v16_max(v, b) : v16_min(v, b);
    }
    for (; j < n; j += 16) {
        int left = n - j < 16 ? (int)(n - j) : 16;
        v16 v = v16_load_n(x + j, left);
        nan = m16_or(nan, v16_unordered(v, v));
        a = v16_if(m16_first(left), f == MAX ? v16_max(v, a) : v16_min(v, a), a);
    }
    if (m16_any(nan))
        return (real)__builtin_nan("");
    a = f == MAX ? v16_max(a, b) : v16_neg(v16_min(a, b));
    return f == MAX ? v16_max_of(a) : r_end(-v16_max_of(a));
}

// A block of a sum: element j to partial j mod 16, then 8, 4, 2, 1 apart.
static inline __attribute__((always_inline)) real sum_block(const real *x, int64_t n)
{
    v16 a = v16_zero();
    int64_t j = 0;
    for (; j + 16 <= n; j += 16)
        a = v16_add(a, v16_load(x + j));
    if (j < n) {
        v16 last = v16_load_n(x + j, (int)(n - j));
        a = v16_if(m16_first((int)(n - j)), v16_add(a, last), a);
    }
    return v16_sum(a);
}

// Sums pending in a tree. The next is put at value[n] before it is added.
typedef struct tree {
    real value[TTI_SUM_LEVELS];
    int n;
    int64_t done; // blocks
} tree;

// What precedes block number `done` in the tree and is whole with it: one for each of its low ones.
#define MERGES(done) __builtin_ctzll(~(uint64_t)(done))

static inline void tree_add(tree *t, real v)
{
    t->value[t->n++] = v;
    for (int m = MERGES(t->done++); m > 0; m--, t->n--)
        t->value[t->n - 2] = t->value[t->n - 2] + t->value[t->n - 1];
}

static inline real tree_end(tree *t)
{
    for (; t->n > 1; t->n--)
        t->value[t->n - 2] = t->value[t->n - 2] + t->value[t->n - 1];
    return t->n == 0 ? 0 : t->value[0];
}

// One contiguous row. Only sums depend on the blocks.
static inline __attribute__((always_inline)) real fold_row(fold f, const real *x, int64_t n)
{
    if (f != SUM)
        return fold_order(f, x, n);
    if (n <= TTI_SUM_ROW)
        return sum_block(x, n);
    tree t;
    t.n = 0;
    t.done = 0;
    for (int64_t j = 0; j < n; j += TTI_SUM_ROW)
        tree_add(&t, sum_block(x + j, n - j < TTI_SUM_ROW ? n - j : TTI_SUM_ROW));
    return tree_end(&t);
}

// The reduced axes but the tail, in row-major order; one of them from low up to high only.
typedef struct odometer {
    const tti_axis_list *l;
    int64_t i[TT_MAX_RANK], low[TT_MAX_RANK], high[TT_MAX_RANK];
    int64_t at; // offset of the row in x
    bool done;
} odometer;

static void odometer_start(odometer *o, const tti_axis_list *l, int special, int64_t low,
                           int64_t high)
{
    o->l = l;
    o->at = 0;
    o->done = false;
    for (int k = 0; k < l->n; k++) {
        o->low[k] = k == special ? low : 0;
        o->high[k] = k == special ? high : l->dim[k];
        o->i[k] = o->low[k];
        o->at += o->low[k] * l->stride[k];
        o->done |= o->low[k] >= o->high[k];
    }
}

static inline void odometer_skip(odometer *o, int64_t run)
{
    for (int k = 0; k < o->l->n; k++, run = 1) {
        o->at += run * o->l->stride[k];
        o->i[k] += run;
        if (o->i[k] < o->high[k])
            return;
        o->at -= (o->high[k] - o->low[k]) * o->l->stride[k];
        o->i[k] = o->low[k];
    }
    o->done = true;
}

static inline void odometer_next(odometer *o)
{
    odometer_skip(o, 1);
}

// Rows from here on, at most `most`, that lie one stride apart; 0 when it is done.
static inline int64_t odometer_run(const odometer *o, int64_t most, int64_t *stride)
{
    if (o->done || o->l->n == 0) {
        *stride = 0;
        return o->done ? 0 : 1;
    }
    *stride = o->l->stride[0];
    return o->high[0] - o->i[0] < most ? o->high[0] - o->i[0] : most;
}

// Offset in x of output (or first column) number i of the kept axes.
static inline int64_t kept_offset(const tti_axis_list *l, int64_t i)
{
    int64_t at = 0;
    for (int k = 0; k < l->n; k++) {
        at += i % l->dim[k] * l->stride[k];
        i /= l->dim[k];
    }
    return at;
}

// Sums of 16 m columns that are whole: to the stack, and added to those they end.
static inline __attribute__((always_inline)) void narrow_push(v16 stack[][NARROW], int *n,
                                                              int64_t done, const v16 *a, int m)
{
    int merges = MERGES(done);
    for (int k = 0; k < m; k++) {
        v16 sum = a[k];
        for (int i = 1; i <= merges; i++)
            sum = v16_add(stack[*n - i][k], sum);
        stack[*n - merges][k] = sum;
    }
    *n += 1 - merges;
}

// Adds up to `most` rows to a.
static inline __attribute__((always_inline)) void narrow_rows(fold f, const real *x, odometer *o,
                                                              int64_t most, v16 *a, int m, int left)
{
    int64_t run, stride;
    for (; most > 0 && (run = odometer_run(o, most, &stride)) > 0; most -= run) {
        const real *p = x + o->at;
        for (int64_t r = 0; r < run; r++, p += stride) {
            for (int k = 0; k < m - 1; k++)
                a[k] = fold_one(f, a[k], v16_load(p + 16 * k));
            a[m - 1] = fold_one(f, a[m - 1], v16_load_n(p + 16 * (m - 1), left));
        }
        odometer_skip(o, run);
    }
}

// At most 64 columns in m registers, the last of which holds `left` numbers.
static inline __attribute__((always_inline)) void fold_narrow(fold f, const real *x, odometer *o,
                                                              real *y, int m, int left)
{
    v16 a[NARROW], stack[TTI_SUM_LEVELS][NARROW];
    int n = 0;
    int64_t done = 0;
    do {
        for (int k = 0; k < m; k++)
            a[k] = v16_set1(fold_start(f));
        narrow_rows(f, x, o, f == SUM ? TTI_SUM_ROWS : INT64_MAX, a, m, left);
        if (f == SUM && !(o->done && done == 0))
            narrow_push(stack, &n, done++, a, m);
    } while (!o->done);
    for (int k = 0; k < m; k++) {
        if (n > 0)
            a[k] = stack[n - 1][k];
        for (int i = n - 2; i >= 0; i--)
            a[k] = v16_add(stack[i][k], a[k]);
        v16_store_n(y + 16 * k, v16_end(a[k]), k < m - 1 ? 16 : left);
    }
}

// Adds rows to the sums y of n columns, or begins these, the rows side by side.
static inline __attribute__((always_inline)) void
add_rows(fold f, const real *const *row, int n_rows, bool begin, real *y, int64_t n)
{
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
        v16 a = begin ? v16_set1(fold_start(f)) : v16_load(y + j);
#pragma GCC unroll 8
        for (int k = 0; k < n_rows; k++)
            a = fold_one(f, a, v16_load(row[k] + j));
        v16_store(y + j, a);
    }
    if (j < n) {
        int left = (int)(n - j);
        v16 a = begin ? v16_set1(fold_start(f)) : v16_load_n(y + j, left);
        for (int k = 0; k < n_rows; k++)
            a = fold_one(f, a, v16_load_n(row[k] + j, left));
        v16_store_n(y + j, a, left);
    }
}

// Long rows: several in a pass over few columns are best (21 against 13 GB/s).
static inline __attribute__((always_inline)) void long_rows(fold f, const real *x, odometer *o,
                                                            int64_t most, real *y, int64_t n)
{
    const real *row[ROWS];
    int rows = 0;
    for (bool begin = true; most > 0 && !o->done;) {
        row[rows++] = x + o->at;
        odometer_next(o);
        if (--most > 0 && !o->done && rows < ROWS)
            continue;
        if (rows == ROWS && begin)
            add_rows(f, row, ROWS, true, y, n);
        else if (rows == ROWS)
            add_rows(f, row, ROWS, false, y, n);
        else
            add_rows(f, row, rows, begin, y, n);
        begin = false;
        rows = 0;
    }
}

// Rows whose sums stay in L1 are read from end to end: several in one pass would confuse the memory
// prefetcher (11 against 30 GB/s).
static inline __attribute__((always_inline)) void whole_rows(fold f, const real *x, odometer *o,
                                                             int64_t most, real *y, int64_t n)
{
    const real *p = x + o->at;
    int64_t run, stride;
    add_rows(f, &p, 1, true, y, n);
    odometer_next(o);
    for (most--; most > 0 && (run = odometer_run(o, most, &stride)) > 0; most -= run) {
        p = x + o->at;
        for (int64_t r = 0; r < run; r++, p += stride)
            add_rows(f, &p, 1, false, y, n);
        odometer_skip(o, run);
    }
}

// y = a + b, n columns; a may be y.
static inline void add_sums(const real *a, const real *b, real *y, int64_t n)
{
    int64_t j = 0;
    for (; j + 16 <= n; j += 16)
        v16_store(y + j, v16_add(v16_load(a + j), v16_load(b + j)));
    for (; j < n; j++)
        y[j] = a[j] + b[j];
}

/*
 * n columns of one outer index; rows come from the odometer. The lowest sum of the stack is in y,
 * the others are in room.
 */
static inline __attribute__((always_inline)) void
fold_columns(fold f, const real *x, odometer *o, real *y, int64_t n, bool is_long, real *room)
{
    int m = (int)((n + 15) / 16), left = (int)(n - 16 * (m - 1));
    switch (m) {
    case 1:
        fold_narrow(f, x, o, y, 1, left);
        return;
    case 2:
        fold_narrow(f, x, o, y, 2, left);
        return;
    case 3:
        fold_narrow(f, x, o, y, 3, left);
        return;
    case 4:
        fold_narrow(f, x, o, y, 4, left);
        return;
    }
    int64_t done = 0, width = 16 * (int64_t)m;
    int depth = 0;
#define LEVEL(i) ((i) == 0 ? y : room + ((i)-1) * width)
    for (int64_t j = 0; o->done && j < n; j++)
        y[j] = fold_start(f);
    while (!o->done) {
        int64_t most = f == SUM ? TTI_SUM_ROWS : INT64_MAX;
        if (is_long)
            long_rows(f, x, o, most, LEVEL(depth), n);
        else
            whole_rows(f, x, o, most, LEVEL(depth), n);
        depth++;
        for (int merges = MERGES(done++); merges > 0; merges--, depth--)
            add_sums(LEVEL(depth - 2), LEVEL(depth - 1), LEVEL(depth - 2), n);
    }
    for (; depth > 1; depth--)
        add_sums(LEVEL(depth - 2), LEVEL(depth - 1), LEVEL(depth - 2), n);
#undef LEVEL
    for (int64_t j = 0; j < n; j++)
        y[j] = r_end(y[j]);
}

// Units [begin, end) of one lane, whose part of the open axis is rows low to high; y is the lane's.
static inline __attribute__((always_inline)) void fold_units(fold f, const tti_reduction *r,
                                                             const real *x, real *y, real *room,
                                                             int64_t begin, int64_t end,
                                                             int64_t low, int64_t high)
{
    odometer o;
    if (r->has_tail) {
        int64_t from = r->lane_tail ? low * r->lane_step : 0;
        int64_t n = r->lane_tail ? (high - low) * r->lane_step : r->tail;
        for (int64_t u = begin; u < end; u++) {
            const real *p = x + kept_offset(&r->keep, u) + from;
            odometer_start(&o, &r->sum, r->lane_sum, low * r->lane_step, high * r->lane_step);
            real a = fold_start(f);
            tree t;
            t.n = 0;
            t.done = 0;
            for (int64_t i = 1; !o.done; odometer_next(&o), i++) {
                a = fold_real(f, a, fold_row(f, p + o.at, n));
                if (f == SUM && i % TTI_SUM_ROWS == 0) {
                    tree_add(&t, a);
                    a = 0;
                }
            }
            if (t.n > 0) {
                tree_add(&t, a);
                a = tree_end(&t);
            }
            y[u] = r_end(a);
        }
        return;
    }
    int64_t groups = (r->cols + 15) / 16;
    bool is_long = r->cols > TTI_SUM_LONG;
    for (int64_t u = begin; u < end;) {
        int64_t outer = u / groups, first = u % groups;
        int64_t n = groups - first < end - u ? groups - first : end - u;
        if (is_long && n > TTI_SUM_COLUMNS / 16)
            n = TTI_SUM_COLUMNS / 16;
        int64_t j = first * 16;
        int64_t cols = j + n * 16 < r->cols ? n * 16 : r->cols - j;
        odometer_start(&o, &r->sum, r->lane_sum, low * r->lane_step, high * r->lane_step);
        fold_columns(f, x + kept_offset(&r->keep, outer) + j, &o, y + outer * r->cols + j, cols,
                     is_long, room);
        u += n;
    }
}

tt_status TTI_ISA(tti_reduce_sum)(const tt_launch *l)
{
    const real *x = l->in[0].data;
    real *y = l->out[0].data, *room = (real *)l->local;
    tti_reduction r = tti_reduction_of(l->attr, &l->in[0]);
    if (!tti_by_lanes(&r)) {
        fold_units(SUM, &r, x, y, room, l->begin, l->end, 0, 0);
        return TT_OK;
    }
    if (l->phase == 1) {
        tti_lane_tree(l->lanes, (const real *)l->scratch, r.count, y, r.count, l->begin, l->end);
        return TT_OK;
    }
    // One lane is its own tree.
    real *to = l->lanes->n == 1 ? y : (real *)l->scratch;
    int64_t units = tti_reduce_units(&r);
    for (int64_t u = l->begin; u < l->end;) {
        int64_t lane = u / units, from = u % units;
        int64_t n = units - from < l->end - u ? units - from : l->end - u;
        fold_units(SUM, &r, x, to + lane * r.count, room, from, from + n, l->lanes->bound[lane],
                   l->lanes->bound[lane + 1]);
        u += n;
    }
    return TT_OK;
}

// Over the open axis too: the whole of it, whatever the lanes.
static inline __attribute__((always_inline)) tt_status fold_whole(fold f, const tt_launch *l)
{
    tti_reduction r = tti_reduction_of(l->attr, &l->in[0]);
    r.lane_tail = false;
    r.lane_sum = -1;
    fold_units(f, &r, l->in[0].data, l->out[0].data, NULL, l->begin, l->end, 0, 0);
    return TT_OK;
}
tt_status TTI_ISA(tti_reduce_max)(const tt_launch *l)
{
    return fold_whole(MAX, l);
}
tt_status TTI_ISA(tti_reduce_min)(const tt_launch *l)
{
    return fold_whole(MIN, l);
}

// ---- which element it was --------------------------------------------------------------------

// Where v is the element that max or min chose: it equals y, or both are NaN.
static inline m16 is_chosen(v16 v, v16 y)
{
    return m16_or(v16_eq(v, y), m16_and(v16_unordered(v, v), v16_unordered(y, y)));
}

// dx = dy at the first element that was chosen, else 0; units as those of max.
tt_status TTI_ISA(tti_reduce_max_grad)(const tt_launch *l)
{
    const real *x = l->in[0].data, *y = l->in[1].data, *dy = l->in[2].data;
    real *dx = l->out[0].data;
    tti_reduction r = tti_reduction_of(l->attr, &l->in[0]);
    int64_t groups = r.has_tail ? 1 : (r.cols + 15) / 16;
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t outer = u / groups, j = u % groups * 16;
        int wide = r.has_tail ? 1 : r.cols - j < 16 ? (int)(r.cols - j) : 16; // outputs of the unit
        int64_t at = kept_offset(&r.keep, outer) + j, k = outer * r.cols + j;
        v16 want = r.has_tail ? v16_set1(y[k]) : v16_load_n(y + k, wide);
        v16 d = r.has_tail ? v16_zero() : v16_load_n(dy + k, wide);
        m16 open = m16_first(16);
        odometer o;
        for (odometer_start(&o, &r.sum, -1, 0, 0); !o.done; odometer_next(&o)) {
            const real *p = x + at + o.at;
            real *q = dx + at + o.at;
            if (!r.has_tail) { // columns side by side
                m16 here = m16_and(open, is_chosen(v16_load_n(p, wide), want));
                open = m16_and(open, m16_not(here));
                v16_store_n(q, v16_if(here, d, v16_zero()), wide);
                continue;
            }
            memset(q, 0, sizeof(real) * (size_t)r.tail);
            for (int64_t i = 0; i < r.tail && m16_any(open); i += 16) {
                int n = r.tail - i < 16 ? (int)(r.tail - i) : 16;
                m16 here = m16_and(m16_first(n), is_chosen(v16_load_n(p + i, n), want));
                if (!m16_any(here))
                    continue;
                q[i + __builtin_ctz(m16_bits(here))] = dy[k];
                open = m16_first(0);
            }
        }
    }
    return TT_OK;
}

// The first NaN of n elements, step apart; -1: there is none.
static int64_t first_nan(const real *x, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i * step] != x[i * step])
            return i;
    return -1;
}

// The index of the greatest, the lowest of equals, or of the first NaN; one reduced axis. 16
// candidates side by side.
static int64_t argmax_row(const real *x, int64_t n)
{
    v16 best = v16_set1((real)-__builtin_inf());
    rbits first[16], step[16];
    for (int i = 0; i < 16; i++) {
        first[i] = i;
        step[i] = 16;
    }
    i16 index = i16_load(first), at = index, by = i16_load(step);
    m16 nan = m16_first(0);
    for (int64_t j = 0; j < n; j += 16, at = i16_add(at, by)) {
        int m = n - j < 16 ? (int)(n - j) : 16;
        v16 v = m == 16 ? v16_load(x + j) : v16_load_n(x + j, m);
        m16 more = v16_gt(v, best);
        nan = m16_or(nan, v16_unordered(v, v));
        if (m < 16)
            more = m16_and(more, m16_first(m));
        best = v16_if(more, v, best);
        index = v16_bits(v16_if(more, v16_from_bits(at), v16_from_bits(index)));
    }
    if (m16_any(nan))
        return first_nan(x, n, 1);
    real b[16];
    rbits k[16];
    v16_store(b, best);
    i16_store(k, index);
    int64_t y = -1;
    real top = 0;
    for (int i = 0; i < 16 && i < n; i++)
        if (y < 0 || b[i] > top || (b[i] == top && k[i] < y)) {
            top = b[i];
            y = k[i];
        }
    return y < 0 ? 0 : y;
}

tt_status TTI_ISA(tti_reduce_argmax)(const tt_launch *l)
{
    const real *x = l->in[0].data;
    int32_t *y = l->out[0].data;
    tti_reduction r = tti_reduction_of(l->attr, &l->in[0]);
    if (r.has_tail) {
        for (int64_t u = l->begin; u < l->end; u++)
            y[u] = (int32_t)argmax_row(x + kept_offset(&r.keep, u), r.tail);
        return TT_OK;
    }
    int64_t groups = (r.cols + 15) / 16;
    for (int64_t u = l->begin; u < l->end; u++) {
        int64_t outer = u / groups, j = u % groups * 16;
        int n = r.cols - j < 16 ? (int)(r.cols - j) : 16;
        const real *p = x + kept_offset(&r.keep, outer) + j;
        v16 best = v16_set1((real)-__builtin_inf());
        i16 index = i16_set1(0), at = index;
        m16 nan = m16_first(0);
        odometer o;
        for (odometer_start(&o, &r.sum, -1, 0, 0); !o.done; odometer_next(&o)) {
            v16 v = v16_load_n(p + o.at, n);
            m16 more = v16_gt(v, best);
            nan = m16_or(nan, v16_unordered(v, v));
            best = v16_if(more, v, best);
            index = v16_bits(v16_if(more, v16_from_bits(at), v16_from_bits(index)));
            at = i16_add(at, i16_set1(1));
        }
        rbits k[16];
        i16_store(k, index);
        for (int i = 0; i < n; i++) {
            bool has_nan = (m16_bits(nan) >> i & 1) != 0; // one axis is reduced
            y[outer * r.cols + j + i] =
                (int32_t)(has_nan ? first_nan(p + i, r.sum.dim[0], r.sum.stride[0]) : k[i]);
        }
    }
    return TT_OK;
}

tt_status TTI_ISA(tti_reduce_count)(const tt_launch *l)
{
    const tti_count_attr *a = l->attr;
    const tt_arg *x = &l->in[0];
    double n = 1;
    for (int i = 0; i < x->shape.rank; i++)
        if (tti_is_reduced(&a->reduce, i))
            n *= (double)(i == x->open ? l->lanes->global_rows * x->per : x->shape.dim[i]);
    if (l->out[0].dtype == TT_F64)
        *(double *)l->out[0].data = n;
    else
        *(float *)l->out[0].data = (float)n;
    return TT_OK;
}
