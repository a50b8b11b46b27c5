/*
 * walk.h - NumPy's broadcasting, as runs of contiguous elements.
 *
 * Axes that go on without a break in every operand are merged, so most walks have one axis, and
 * [rows, c] with [c] has two. A run is a stretch of the innermost axis: there each operand either
 * advances with the output or stays. An operand of one element, or of as many as the output, needs
 * no look at shapes: that is how the planner calls pointwise ops on tiles.
 */
#ifndef TUTTI_OP_WALK_H
#define TUTTI_OP_WALK_H

#include <stdbool.h>
#include <string.h>
#include <tutti/extend.h>

#define TTI_WALK_MAX 3

typedef struct tti_walk {
    int n_in, rank;           // axis 0 is the innermost
    int64_t dim[TT_MAX_RANK]; // merged axes of the output
    int64_t stride[TTI_WALK_MAX][TT_MAX_RANK];
} tti_walk;

// What a run gets: first element of each operand, whether it advances, first of the output.
typedef struct tti_run {
    int64_t at[TTI_WALK_MAX];
    bool moves[TTI_WALK_MAX];
    int64_t out, n;
} tti_run;

static inline void tti_walk_axis(tti_walk *w, int64_t dim, const int64_t *stride)
{
    int top = w->rank - 1;
    bool joins = top >= 0;
    for (int k = 0; joins && k < w->n_in; k++)
        joins = stride[k] == w->stride[k][top] * w->dim[top];
    if (joins) {
        w->dim[top] *= dim;
        return;
    }
    for (int k = 0; k < w->n_in; k++)
        w->stride[k][w->rank] = stride[k];
    w->dim[w->rank++] = dim;
}

static inline void tti_walk_make(tti_walk *w, const tt_arg *out, const tt_arg *in, int n_in)
{
    memset(w, 0, sizeof(*w));
    w->n_in = n_in;
    bool flat = true;
    int64_t stride[TTI_WALK_MAX], size[TTI_WALK_MAX];
    for (int k = 0; k < n_in; k++) {
        flat = flat && (in[k].count == out->count || in[k].count == 1);
        stride[k] = in[k].count == out->count;
        size[k] = 1;
    }
    if (flat) {
        tti_walk_axis(w, out->count, stride);
        return;
    }
    for (int i = 0; i < out->shape.rank; i++) {
        int64_t dim = out->shape.dim[out->shape.rank - 1 - i];
        for (int k = 0; k < n_in; k++) {
            int axis = in[k].shape.rank - 1 - i;
            int64_t d = axis >= 0 ? in[k].shape.dim[axis] : 1;
            stride[k] = d == 1 ? 0 : size[k];
            size[k] *= d;
        }
        if (dim != 1)
            tti_walk_axis(w, dim, stride);
    }
    if (w->rank == 0) { // one element
        memset(stride, 0, sizeof(stride));
        tti_walk_axis(w, 1, stride);
    }
}

/*
 * Rows too short for vectors, [rows, c] with [c] for a small c: how often [c] can be repeated in
 * room elements, so that a run spans many rows; 0: not such a walk.
 */
static inline int64_t tti_walk_repeats(const tti_walk *w, int64_t room)
{
    bool any = false;
    if (w->rank != 2 || w->dim[0] * 4 > room || w->dim[0] * w->dim[1] < 4 * room)
        return 0;
    for (int k = 0; k < w->n_in; k++) {
        int64_t s0 = w->stride[k][0], s1 = w->stride[k][1];
        bool repeats = s0 == 1 && s1 == 0, dense = s0 == 1 && s1 == w->dim[0];
        if (!repeats && !dense && (s0 != 0 || s1 != 0))
            return 0;
        any |= repeats;
    }
    return any ? room / w->dim[0] : 0;
}

// Where a walk stands: the index on each axis and the element of each operand.
typedef struct tti_cursor {
    int64_t index[TT_MAX_RANK];
    int64_t at[TTI_WALK_MAX];
    int64_t out;
} tti_cursor;

static inline tti_cursor tti_walk_start(const tti_walk *w, int64_t i)
{
    tti_cursor c;
    memset(&c, 0, sizeof(c));
    c.out = i;
    for (int a = 0; a < w->rank; a++) {
        c.index[a] = a == w->rank - 1 ? i : i % w->dim[a];
        i /= w->dim[a] > 0 ? w->dim[a] : 1;
        for (int k = 0; k < w->n_in; k++)
            c.at[k] += c.index[a] * w->stride[k][a];
    }
    return c;
}

// Steps over n elements; they end where the innermost axis does, or before.
static inline void tti_walk_step(const tti_walk *w, tti_cursor *c, int64_t n)
{
    c->out += n;
    c->index[0] += n;
    for (int k = 0; k < w->n_in; k++)
        c->at[k] += n * w->stride[k][0];
    for (int a = 0; a + 1 < w->rank && c->index[a] == w->dim[a]; a++) {
        c->index[a] = 0;
        c->index[a + 1]++;
        for (int k = 0; k < w->n_in; k++)
            c->at[k] += w->stride[k][a + 1] - w->dim[a] * w->stride[k][a];
    }
}

// The next run: to the end of the innermost axis, or to end.
static inline tti_run tti_walk_run(const tti_walk *w, tti_cursor *c, int64_t end)
{
    int64_t n = w->dim[0] - c->index[0] < end - c->out ? w->dim[0] - c->index[0] : end - c->out;
    tti_run r;
    memset(&r, 0, sizeof(r));
    r.out = c->out;
    r.n = n;
    for (int k = 0; k < w->n_in; k++) {
        r.at[k] = c->at[k];
        r.moves[k] = w->stride[k][0] != 0;
    }
    tti_walk_step(w, c, n);
    return r;
}

#endif
