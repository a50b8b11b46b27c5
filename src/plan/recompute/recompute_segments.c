/*
 * recompute_segments.c - which activations to keep so that the others, computed again segment by
 * segment, need the least memory.
 *
 * When the backward part has come to a segment, the borders up to its beginning are held, and all
 * that is inside. For a bound on that sum the fewest bytes of borders up to every cut are found by
 * dynamic programming (fewer is always better for what follows); the bound is then halved in.
 */
#include "plan/recompute/recompute.h"
#include <string.h>

#define ROUNDS 24

typedef struct segment_chooser {
    const tti_candidate *c;
    int n;
    double *borders; // by cut: the fewest bytes of borders up to it; below 0: cannot be reached
    int *from;       // by cut: the one before
    int last;        // the cut that the last segment begins at
} segment_chooser;

// The best way to every cut under a bound. A cut k stands before candidate k.
static bool fits(segment_chooser *x, double bound)
{
    x->borders[0] = 0;
    x->last = -1;
    for (int k = 1; k <= x->n; k++) {
        double inside = 0, crossing = 0;
        x->borders[k] = -1;
        for (int a = k - 1; a >= 0 && inside <= bound; a--) {
            if (x->c[a].last >= k)
                crossing += (double)x->c[a].bytes;
            else
                inside += (double)x->c[a].bytes;
            if (x->borders[a] < 0 || x->borders[a] + inside > bound)
                continue;
            double total = x->borders[a] + crossing;
            if (x->borders[k] >= 0 && x->borders[k] <= total)
                continue;
            x->borders[k] = total;
            x->from[k] = a;
        }
    }
    if (x->borders[x->n] < 0)
        return false;
    x->last = x->from[x->n];
    return true;
}

static void set_again(segment_chooser *x, tti_candidate *c)
{
    for (int i = 0; i < x->n; i++)
        c[i].is_recomputed = i < x->last;
    for (int k = x->last; k > 0; k = x->from[k])
        for (int i = x->from[k]; i < k; i++)
            if (c[i].last >= k)
                c[i].is_recomputed = false;
}

tt_status tti_segments_choose(tt_ctx *ctx, tti_candidate *c, int n)
{
    segment_chooser x = {.c = c, .n = n};
    double low = 0, high = 0;
    for (int i = 0; i < n; i++)
        high += (double)c[i].bytes;
    x.borders = tti_calloc(ctx, (size_t)n + 1, sizeof(*x.borders));
    x.from = tti_calloc(ctx, (size_t)n + 1, sizeof(*x.from));
    tt_status st = x.borders == NULL || x.from == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < ROUNDS; i++) {
        double bound = (low + high) / 2;
        if (fits(&x, bound))
            high = bound;
        else
            low = bound;
    }
    if (st == TT_OK && n > 0 && fits(&x, high))
        set_again(&x, c);
    tti_free(ctx, x.borders);
    tti_free(ctx, x.from);
    return st;
}
