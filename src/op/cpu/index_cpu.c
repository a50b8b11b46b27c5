/*
 * index_cpu.c - gather, scatter_add, one_hot. Compiled once per instruction set; see index.c.
 *
 * scatter_add sorts the positions by id once (phase 0). Then each place of the output knows its
 * positions (phase 1): a place with none is zeroed, the others, the touched rows, are summed per
 * lane in registers and merged by the lanes' program. So the cost is that of the pieces added and
 * of zeroing the output, whatever the number of lanes. touched_rows lists the touched rows instead,
 * one for each of the parts of the lanes, and zeroes nothing.
 */
#include "op/cpu/lanes.h"
#include "op/index.h"
#include "op/sparse_rows.h"

static int64_t id_at(const tt_arg *ids, int64_t i)
{
    return ids->dtype == TT_I32 ? ((const int32_t *)ids->data)[i] : ((const int64_t *)ids->data)[i];
}

static tt_status out_of_range(const tt_launch *l, int64_t id, int64_t at, int64_t n)
{
    return TT_FAIL(l->ctx, TT_EINVAL, "%s '%s': id %lld at position %lld is %s %lld",
                   l->node->op->name, l->node->name, (long long)id, (long long)at,
                   id < 0 ? "below" : "not below", id < 0 ? 0ll : (long long)n);
}

// Units are pieces of y: [outer, ids].
tt_status TTI_ISA(gather)(const tt_launch *l)
{
    const tt_arg *x = &l->in[0], *ids = &l->in[1];
    int axis = (int)((const tti_gather_attr *)l->attr)->axis;
    int64_t n = x->shape.dim[axis];
    size_t piece = tt_dtype_bytes(x->dtype);
    for (int i = axis + 1; i < x->shape.rank; i++)
        piece *= (size_t)x->shape.dim[i];
    char *y = (char *)l->out[0].data + (size_t)l->begin * piece;
    for (int64_t u = l->begin; u < l->end; u++, y += piece) {
        int64_t at = u % ids->count, id = id_at(ids, at);
        if (id < 0 || id >= n)
            return out_of_range(l, id, at, n);
        const char *from = (const char *)x->data + (size_t)(u / ids->count * n + id) * piece;
        if (piece == 4)
            memcpy(y, from, 4);
        else
            memcpy(y, from, piece);
    }
    return TT_OK;
}

// ---- scatter_add -----------------------------------------------------------------------------

// How ids lie: pieces of `whole` positions, in each of which lane i has [bound[i], bound[i+1]) *
// row. Lanes are [first, lanes).
typedef struct layout {
    int first, lanes, parts;
    int64_t whole, row;
} layout;

static layout layout_of(const tt_launch *l, const tti_scatter_plan *t)
{
    const tt_arg *ids = &l->in[1];
    layout y = {0, 1, 1, ids->count, 0};
    if (t->lanes) {
        y = (layout){0, l->lanes->n, l->lanes->n_parts, 1, ids->per};
        for (int i = ids->open; i < ids->shape.rank; i++)
            y.whole *= ids->shape.dim[i];
        for (int i = ids->open + 1; i < ids->shape.rank; i++)
            y.row *= ids->shape.dim[i];
    }
    return y;
}

// Where lane i ends within each piece.
static int64_t lane_end(const tt_launch *l, const layout *y, int i)
{
    return y->row == 0 ? y->whole : l->lanes->bound[i + 1] * y->row;
}

/*
 * Afterwards end[i] is where the positions of id i end in sorted; those of id 0 begin at 0, the
 * others where the id before ends. The sort is stable, so they are in order within a lane.
 */
static tt_status sort_ids(const tt_launch *l, const tti_scatter_plan *t, int32_t *end,
                          int32_t *sorted)
{
    const tt_arg *ids = &l->in[1];
    memset(end, 0, sizeof(*end) * (size_t)(t->n + 1));
    for (int64_t at = 0; at < ids->count; at++) {
        int64_t id = id_at(ids, at);
        if (id < 0 || id >= t->n)
            return out_of_range(l, id, at, t->n);
        end[id + 1]++;
    }
    for (int64_t i = 0; i < t->n; i++)
        end[i + 1] += end[i]; // end[i]: where id i begins

    layout y = layout_of(l, t);
    for (int i = 0; i < y.lanes; i++) {
        int64_t from = i == 0 ? 0 : lane_end(l, &y, i - 1), to = lane_end(l, &y, i);
        for (int64_t piece = 0; y.whole > 0 && piece < ids->count; piece += y.whole)
            for (int64_t at = piece + from; at < piece + to; at++)
                sorted[end[id_at(ids, at)]++] = (int32_t)at;
    }
    return TT_OK;
}

#define BLOCK_VECTORS (TTI_SCATTER_BLOCK / 16)
typedef struct block {
    v16 v[BLOCK_VECTORS];
} block;

// The chain over n positions of `width` columns of x.
static inline void sum_positions(block *sum, const real *x, int64_t inner, const int32_t *at,
                                 int64_t n, int width)
{
    if (width == TTI_SCATTER_BLOCK) {
        v16 s[BLOCK_VECTORS];
        for (int v = 0; v < BLOCK_VECTORS; v++)
            s[v] = v16_zero();
        for (int64_t k = 0; k < n; k++) {
            const real *from = x + at[k] * inner;
            for (int v = 0; v < BLOCK_VECTORS; v++)
                s[v] = v16_add(s[v], v16_load(from + 16 * v));
        }
        for (int v = 0; v < BLOCK_VECTORS; v++)
            sum->v[v] = v16_end(s[v]);
        return;
    }
    for (int v = 0; 16 * v < width; v++) {
        int w = width - 16 * v < 16 ? width - 16 * v : 16;
        v16 s = v16_zero();
        for (int64_t k = 0; k < n; k++)
            s = v16_add(s, v16_load_n(x + at[k] * inner + 16 * v, w));
        sum->v[v] = v16_end(s);
    }
}

// Stores a sum, or zeros.
static inline void put_block(real *y, const block *sum, int width)
{
    int v = 0;
    for (; 16 * v + 16 <= width; v++)
        v16_store(y + 16 * v, sum == NULL ? v16_zero() : v16_end(sum->v[v]));
    if (16 * v < width)
        v16_store_n(y + 16 * v, sum == NULL ? v16_zero() : v16_end(sum->v[v]), width - 16 * v);
}

/*
 * One touched row: n positions, lane by lane, and the lanes merged as their program says. A lane
 * without a position is zeros; adding those changes nothing and is skipped.
 */
static void touched_row(const tt_launch *l, const layout *lay, const real *x, int64_t inner,
                        const int32_t *at, int64_t n, int width, real *y, int64_t part)
{
    block stack[TTI_LANE_DEPTH];
    if (n == 1 && lay->parts == 1) { // most rows of a large table
        sum_positions(&stack[0], x, inner, at, 1, width);
        put_block(y, &stack[0], width);
        return;
    }
    int has[TTI_LANE_DEPTH], depth = 0, n_v = (width + 15) / 16;
    int64_t k = 0;
    for (int i = lay->first; i < lay->lanes; i++) {
        int64_t first = k, end = lane_end(l, lay, i);
        while (k < n && (at[k] < lay->whole ? at[k] : at[k] % lay->whole) < end)
            k++;
        has[depth] = k > first;
        if (k > first)
            sum_positions(&stack[depth], x, inner, at + first, k - first, width);
        depth++;
        for (int m = lay->row == 0 ? 0 : l->lanes->merges[i]; m > 0; m--) {
            depth--;
            block *low = &stack[depth - 1], *high = &stack[depth];
            if (has[depth] && has[depth - 1])
                for (int v = 0; v < n_v; v++)
                    low->v[v] = v16_add(low->v[v], high->v[v]);
            else if (has[depth])
                *low = *high;
            has[depth - 1] |= has[depth];
        }
    }
    for (int p = 0; p < depth; p++)
        put_block(y + p * part, has[p] ? &stack[p] : NULL, width);
}

// Units of phase 1 are blocks of columns of [outer, n] rows; rows nobody names are zeroed in runs.
tt_status TTI_ISA(scatter_add)(const tt_launch *l)
{
    const tti_scatter_plan *t = l->tune;
    int32_t *end = (int32_t *)l->scratch, *sorted = end + t->n + 1;
    if (l->phase == 0)
        return l->begin < l->end ? sort_ids(l, t, end, sorted) : TT_OK;
    if (l->begin >= l->end)
        return TT_OK;

    layout lay = layout_of(l, t);
    int64_t part = t->outer * t->n * t->inner, zero_from = -1;
    real *y = l->out[0].data;
    for (int64_t u = l->begin;; u++) {
        int64_t row = u / t->blocks, col = u % t->blocks * TTI_SCATTER_BLOCK;
        int64_t id = row % t->n, first = id == 0 ? 0 : end[id - 1], to = row * t->inner + col;
        bool touched = u < l->end && end[id] > first;
        if (zero_from >= 0 && (touched || u == l->end)) {
            for (int p = 0; p < lay.parts; p++)
                memset(y + p * part + zero_from, 0, sizeof(real) * (size_t)(to - zero_from));
            zero_from = -1;
        }
        if (u == l->end)
            return TT_OK;
        if (touched) {
            const real *x =
                (const real *)l->in[0].data + row / t->n * l->in[1].count * t->inner + col;
            int64_t width = t->inner - col;
            // The pieces of rows soon to come lie anywhere in x.
            for (int64_t k = end[id] + 4; k < end[id] + 8 && k < l->in[1].count; k++)
                for (int c = 0; c < TTI_SCATTER_BLOCK; c += 16)
                    __builtin_prefetch(x + sorted[k] * t->inner + c);
            touched_row(l, &lay, x, t->inner, sorted + first, end[id] - first,
                        width < TTI_SCATTER_BLOCK ? (int)width : TTI_SCATTER_BLOCK, y + to, part);
        } else if (zero_from < 0) {
            zero_from = to;
        }
    }
}

// ---- touched_rows ----------------------------------------------------------------------------

// end[i] is the lane after the last one of part i.
static void part_ends(const tt_launch *l, int end[TTI_LANE_DEPTH])
{
    int depth = 0;
    for (int i = 0; i < l->lanes->n; i++) {
        end[depth++] = i + 1;
        for (int m = l->lanes->merges[i]; m > 0; m--, depth--)
            end[depth - 2] = end[depth - 1];
    }
}

// The touches, and where the positions of each begin in sorted.
static void list_touches(const tt_launch *l, const layout *y, const int32_t *sorted, int32_t *first,
                         tti_sparse_row *list, int32_t *n)
{
    const tt_arg *ids = &l->in[1];
    int end[TTI_LANE_DEPTH], part = 0;
    int64_t before = -1;
    part_ends(l, end);
    *n = 0;
    for (int64_t k = 0; k < ids->count; k++) {
        int64_t id = id_at(ids, sorted[k]), at = sorted[k] % y->whole;
        bool is_new = id != before;
        part = is_new ? 0 : part;
        for (; at >= lane_end(l, y, end[part] - 1); part++)
            is_new = true;
        if (is_new) {
            first[*n] = (int32_t)k;
            list[(*n)++] = (tti_sparse_row){(int32_t)id, part};
        }
        before = id;
    }
    first[*n] = (int32_t)ids->count;
}

// Units of phase 1 are touches, of which there may be fewer.
tt_status TTI_ISA(touched_rows)(const tt_launch *l)
{
    const tti_scatter_plan *t = l->tune;
    int64_t most = l->in[1].count, inner = t->inner;
    int32_t *ends = (int32_t *)l->scratch, *sorted = ends + t->n + 1, *first = sorted + most;
    real *y = l->out[0].data;
    tti_sparse_row *list = tti_sparse_rows_list(y, most, inner, sizeof(real));
    int32_t *n = tti_sparse_rows_n(y, most, inner, sizeof(real));
    layout lay = layout_of(l, t);
    if (l->phase == 0) {
        if (l->begin >= l->end)
            return TT_OK;
        TT_TRY(sort_ids(l, t, ends, sorted));
        list_touches(l, &lay, sorted, first, list, n);
        return TT_OK;
    }
    int end[TTI_LANE_DEPTH];
    part_ends(l, end);
    lay.parts = 1;
    for (int64_t u = l->begin; u < l->end && u < *n; u++) {
        int part = list[u].part;
        lay.first = part == 0 ? 0 : end[part - 1];
        lay.lanes = end[part];
        for (int64_t col = 0; col < inner; col += TTI_SCATTER_BLOCK)
            touched_row(l, &lay, (const real *)l->in[0].data + col, inner, sorted + first[u],
                        first[u + 1] - first[u],
                        inner - col < TTI_SCATTER_BLOCK ? (int)(inner - col) : TTI_SCATTER_BLOCK,
                        y + u * inner + col, 0);
    }
    return TT_OK;
}

// ---- one_hot ---------------------------------------------------------------------------------

tt_status TTI_ISA(one_hot)(const tt_launch *l)
{
    static const uint16_t bf16_one = 0x3f80, f16_one = 0x3c00;
    static const float f32_one = 1;
    static const double f64_one = 1;
    static const int64_t int_one = 1; // little-endian: serves every width
    static const void *const one[TT_N_DTYPES] = {
        [TT_F32] = &f32_one, [TT_F64] = &f64_one, [TT_BF16] = &bf16_one, [TT_F16] = &f16_one,
        [TT_I32] = &int_one, [TT_I64] = &int_one, [TT_U8] = &int_one,    [TT_BOOL] = &int_one,
    };
    int64_t depth = ((const tti_one_hot_attr *)l->attr)->depth;
    size_t bytes = tt_dtype_bytes(l->out[0].dtype);
    for (int64_t r = l->begin; r < l->end; r++) {
        char *y = (char *)l->out[0].data + (size_t)(r * depth) * bytes;
        int64_t id = id_at(&l->in[0], r);
        if (id < 0 || id >= depth)
            return out_of_range(l, id, r, depth);
        memset(y, 0, (size_t)depth * bytes);
        memcpy(y + (size_t)id * bytes, one[l->out[0].dtype], bytes);
    }
    return TT_OK;
}
