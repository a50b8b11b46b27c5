/*
 * reduce_cpu.c - kernels of reduce.c. With a tail each output is computed by itself, its rows 16
 * wide; without one, outputs are columns, 16 side by side, and rows are added to them in order. The
 * sums of blocks wait on a stack for their neighbours in the tree: below the one that was begun
 * last there is one for each bit of the number of blocks that are done.
 */
#include "op/cpu/lanes.h"
#include "op/cpu/reduce_walk.h"

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
#if defined(TTI_SET_AVX512) || defined(TTI_SET_AVX2)
    switch (m) { // registers need a constant
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
#else
    if (m >= 1 && m <= NARROW) {
        fold_narrow(f, x, o, y, m, left);
        return;
    }
#endif
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
// With a tail a unit is an output.
static inline __attribute__((always_inline)) void fold_tails(fold f, const tti_reduction *r,
                                                             const real *x, real *y, int64_t begin,
                                                             int64_t end, int64_t low, int64_t high)
{
    odometer o;
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
}

// Without one a unit is 16 columns.
static inline __attribute__((always_inline)) void fold_groups(fold f, const tti_reduction *r,
                                                              const real *x, real *y, real *room,
                                                              int64_t begin, int64_t end,
                                                              int64_t low, int64_t high)
{
    odometer o;
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

// Two callers share this code, which takes the compiler seconds.
static __attribute__((noinline)) void sum_groups(const tti_reduction *r, const real *x, real *y,
                                                 real *room, int64_t begin, int64_t end,
                                                 int64_t low, int64_t high)
{
    fold_groups(SUM, r, x, y, room, begin, end, low, high);
}

tt_status TTI_ISA(tti_reduce_sum)(const tt_launch *l)
{
    const real *x = l->in[0].data;
    real *y = l->out[0].data, *room = (real *)l->local;
    tti_reduction r = tti_reduction_of(l->attr, &l->in[0]);
    if (!tti_by_lanes(&r)) {
        if (r.has_tail)
            fold_tails(SUM, &r, x, y, l->begin, l->end, 0, 0);
        else
            sum_groups(&r, x, y, room, l->begin, l->end, 0, 0);
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
        int64_t low = l->lanes->bound[lane], high = l->lanes->bound[lane + 1];
        if (r.has_tail)
            fold_tails(SUM, &r, x, to + lane * r.count, from, from + n, low, high);
        else
            sum_groups(&r, x, to + lane * r.count, room, from, from + n, low, high);
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
    if (r.has_tail)
        fold_tails(f, &r, l->in[0].data, l->out[0].data, l->begin, l->end, 0, 0);
    else
        fold_groups(f, &r, l->in[0].data, l->out[0].data, NULL, l->begin, l->end, 0, 0);
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
