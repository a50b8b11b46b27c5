/*
 * lane_program.c - the lanes of a run: row bounds and the program that combines their sums
 * (comm/lanes.h). A run with all lanes ends with one sum, a part of the lanes with one per maximal
 * sub-tree.
 */
#include "plan/plan.h"

static tt_status lane_range(tti_plan *p, const tt_batch *b, int64_t rows, int total, int *first,
                            int *last)
{
    int64_t global = b->global_rows;
    int64_t end = b->first_row + rows;
    tti_lanes_of_rows(b, rows, total, first, last);
    if (tti_lane_row(*first, global, total) != b->first_row ||
        tti_lane_row(*last, global, total) != end)
        return TT_FAIL(p->ctx, TT_EINVAL,
                       "batch: rows %lld to %lld of %lld are not a whole number of the %d lanes",
                       (long long)b->first_row, (long long)end, (long long)global, total);
    return TT_OK;
}

// How often to merge after each lane; fills what is left on the stack at the end.
static void merge_program(tt_lanes *ln, uint8_t *merges)
{
    tti_lane_stack stack = {.depth = 0};
    for (int i = 0; i < ln->n; i++) {
        ln->depth = TTI_MAX(ln->depth, stack.depth + 1);
        merges[i] = (uint8_t)tti_lane_push(&stack, (tti_part){ln->first + i, 1});
    }
    if (ln->n == ln->total && ln->n > 0)
        merges[ln->n - 1] = (uint8_t)(merges[ln->n - 1] + tti_lane_finish(&stack));
    ln->n_parts = TTI_MAX(stack.depth, 1);
}

int64_t tti_part_rows(const tt_lanes *ln, tti_part part)
{
    int64_t end = TTI_MIN(part.first + part.size, ln->total);
    return tti_lane_row(end, ln->global_rows, ln->total) -
           tti_lane_row(part.first, ln->global_rows, ln->total);
}

tt_status tti_lanes_make(tti_plan *p, const tti_plan_request *req, tt_lanes *out)
{
    tt_batch b = req->batch;
    int total = b.lanes > 0 ? b.lanes : p->top->lanes;
    if (b.lanes == 0 && p->top->spread.reduce == TT_REDUCE_FAST && p->mesh.n_stages == 0)
        total = TTI_MIN((tti_mesh_size(&p->mesh, TTI_AXIS_DATA) - p->mesh.n_without_lanes) *
                            TTI_MAX(req->micro, 1),
                        TT_MAX_LANES); // one per micro-batch
#ifdef TUTTI_BREAK_LANES
    total = p->top->n_devices; // a rule broken on purpose: lanes from devices
#endif
    if (b.global_rows == 0) {
        b.first_row = 0;
        b.global_rows = req->rows;
    }
    if (total < 1 || total > TT_MAX_LANES)
        return TT_FAIL(p->ctx, TT_EINVAL, "batch: %d lanes; 1 to %d are allowed", total,
                       TT_MAX_LANES);
    if (b.first_row < 0 || req->rows < 0 || b.first_row + req->rows > b.global_rows)
        return TT_FAIL(
            p->ctx, TT_EINVAL, "batch: rows %lld to %lld are outside a batch of %lld rows",
            (long long)b.first_row, (long long)(b.first_row + req->rows), (long long)b.global_rows);
    int first = 0, last = total;
    TT_TRY(lane_range(p, &b, req->rows, total, &first, &last));
    int n = last - first;
    int64_t *bound = tti_plan_alloc(p, sizeof(*bound) * (size_t)(n + 1));
    uint8_t *merges = tti_plan_alloc(p, (size_t)n + 1);
    if (bound == NULL || merges == NULL)
        return TT_ENOMEM;
    for (int i = 0; i <= n; i++)
        bound[i] = tti_lane_row(first + i, b.global_rows, total) - b.first_row;
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
