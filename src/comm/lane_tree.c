/*
 * lane_tree.c - the tree over lane numbers (lane_tree.h). No sums here: only which are added, and
 * when.
 */
#include "comm/lane_tree.h"

int64_t tti_lane_row(int64_t l, int64_t n, int64_t lanes)
{
    return l * n / lanes; // both are small: TT_MAX_LANES times a row count
}

// An empty lane goes with the rows that follow it; at the end of the batch with the last part.
void tti_lanes_of_rows(const tt_batch *b, int64_t rows, int total, int *first, int *last)
{
    int64_t global = b->global_rows;
    int64_t end = b->first_row + rows;
    for (*first = 0; *first < total && tti_lane_row(*first, global, total) < b->first_row;)
        (*first)++;
    for (*last = *first; *last < total && tti_lane_row(*last, global, total) < end;)
        (*last)++;
    if (end == global)
        *last = total;
}

int tti_lane_parts(const tt_batch *b, int64_t rows, int total, tti_part out[TTI_MAX_PARTS])
{
    int first, last;
    tti_lanes_of_rows(b, rows, total, &first, &last);
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

int tti_lane_push(tti_lane_stack *s, tti_part part)
{
    int merges = 0;
    TTI_ASSERT(s->depth < TTI_COUNT(s->part));
    s->part[s->depth++] = part;
    while (s->depth > 1 && s->part[s->depth - 2].size == s->part[s->depth - 1].size &&
           s->part[s->depth - 2].first % (2 * s->part[s->depth - 1].size) == 0) {
        s->part[--s->depth - 1].size *= 2;
        merges++;
    }
    return merges;
}

int tti_lane_finish(tti_lane_stack *s)
{
    int merges = TTI_MAX(s->depth - 1, 0);
    s->depth -= merges;
    return merges;
}
