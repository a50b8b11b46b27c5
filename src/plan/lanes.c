/*
 * lanes.c - the lanes of a run: row bounds and the program that combines their sums.
 *
 * The tree is the binary one over lane numbers, as if there were a power of two of them and the
 * missing ones were empty. A stack of partials, merged while the two topmost are siblings, yields
 * it; a run with all lanes ends with one sum, a part of the lanes with one per maximal sub-tree.
 */
#include "plan/plan.h"

// First row of lane l when lanes share n rows: floor(l n / lanes).
static int64_t lane_row(int64_t l, int64_t n, int64_t lanes)
{
    return l * n / lanes; // both are small: TT_MAX_LANES times a row count
}

// An empty lane goes with the rows that follow it; at the end of the batch with the last part.
static void lanes_of_rows(const tt_batch *b, int64_t rows, int total, int *first, int *last)
{
    int64_t global = b->global_rows;
    int64_t end = b->first_row + rows;
    for (*first = 0; *first < total && lane_row(*first, global, total) < b->first_row;)
        (*first)++;
    for (*last = *first; *last < total && lane_row(*last, global, total) < end;)
        (*last)++;
    if (end == global)
        *last = total;
}

static tt_status lane_range(tti_plan *p, const tt_batch *b, int64_t rows, int total, int *first,
                            int *last)
{
    int64_t global = b->global_rows;
    int64_t end = b->first_row + rows;
    lanes_of_rows(b, rows, total, first, last);
    if (lane_row(*first, global, total) != b->first_row || lane_row(*last, global, total) != end)
        return TT_FAIL(p->ctx, TT_EINVAL,
                       "batch: rows %lld to %lld of %lld are not whole lanes of %d",
                       (long long)b->first_row, (long long)end, (long long)global, total);
    return TT_OK;
}

// How often to merge after each lane; fills what is left on the stack at the end.
static void merge_program(tt_lanes *ln, uint8_t *merges)
{
    struct {
        int first, size;
    } stack[64];
    int depth = 0;
    for (int i = 0; i < ln->n; i++) {
        stack[depth].first = ln->first + i;
        stack[depth++].size = 1;
        ln->depth = TTI_MAX(ln->depth, depth);
        while (depth > 1 && stack[depth - 2].size == stack[depth - 1].size &&
               stack[depth - 2].first % (2 * stack[depth - 1].size) == 0) {
            stack[depth - 2].size *= 2;
            depth--;
            merges[i]++;
        }
    }
    if (ln->n == ln->total && ln->n > 0) { // the missing lanes are empty: what is left is one tree
        merges[ln->n - 1] = (uint8_t)(merges[ln->n - 1] + depth - 1);
        depth = 1;
    }
    ln->n_parts = TTI_MAX(depth, 1);
}

int tti_lane_parts(const tt_batch *b, int64_t rows, int total, tti_part out[TTI_MAX_PARTS])
{
    int first, last;
    lanes_of_rows(b, rows, total, &first, &last);
    return tti_lane_range_parts(first, last, total, out);
}

int tti_lane_range_parts(int first, int last, int total, tti_part out[TTI_MAX_PARTS])
{
    int n = 0;
    if (first == 0 && last == total) {
        out[0] = (tti_part){0, total};
        return 1;
    }
    for (int l = first; l < last; n++) {
        int size = 1;
        while (l % (2 * size) == 0 && l + 2 * size <= last)
            size *= 2;
        out[n] = (tti_part){l, size};
        l += size;
    }
    return n;
}

int64_t tti_part_rows(const tt_lanes *ln, tti_part part)
{
    int64_t end = TTI_MIN(part.first + part.size, ln->total);
    return lane_row(end, ln->global_rows, ln->total) -
           lane_row(part.first, ln->global_rows, ln->total);
}

tt_status tti_lanes_make(tti_plan *p, const tti_plan_request *req, tt_lanes *out)
{
    tt_batch b = req->batch;
    int total = b.lanes > 0 ? b.lanes : p->ctx->lanes;
#ifdef TUTTI_BREAK_LANES
    total = p->ctx->n_devices; // a rule broken on purpose: lanes from devices
#endif
    if (b.global_rows == 0) {
        b.first_row = 0;
        b.global_rows = req->rows;
    }
    if (total < 1 || total > TT_MAX_LANES)
        return TT_FAIL(p->ctx, TT_EINVAL, "batch: %d lanes; 1 to %d are possible", total,
                       TT_MAX_LANES);
    if (b.first_row < 0 || req->rows < 0 || b.first_row + req->rows > b.global_rows)
        return TT_FAIL(p->ctx, TT_EINVAL, "batch: rows %lld to %lld are not in a batch of %lld",
                       (long long)b.first_row, (long long)(b.first_row + req->rows),
                       (long long)b.global_rows);
    int first = 0, last = total;
    TT_TRY(lane_range(p, &b, req->rows, total, &first, &last));
    int n = last - first;
    int64_t *bound = tti_plan_alloc(p, sizeof(*bound) * (size_t)(n + 1));
    uint8_t *merges = tti_plan_alloc(p, (size_t)n + 1);
    if (bound == NULL || merges == NULL)
        return TT_ENOMEM;
    for (int i = 0; i <= n; i++)
        bound[i] = lane_row(first + i, b.global_rows, total) - b.first_row;
    *out = (tt_lanes){.total = total,
                      .first = first,
                      .n = n,
                      .global_rows = b.global_rows,
                      .first_row = b.first_row,
                      .bound = bound,
                      .merges = merges};
    merge_program(out, merges);
    return TT_OK;
}
