/*
 * op_rows.c - the ways "rows" and "parts" of op_test.h: a case on some of its rows.
 */
#include "op_trial.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

bool op_is_lane_sum(const tt_tensor *x)
{
    return x->layout.kind == TT_LAYOUT_PARTIAL;
}

/*
 * False if x cannot be had from some rows alone: a node mixes rows, or reads a sum over all rows
 * that would first have to be exchanged.
 */
static bool spreads(const tt_node *n, uint8_t *seen)
{
    if (seen[n->id])
        return true;
    seen[n->id] = 1;
    if (n->mixes_rows)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (op_is_lane_sum(n->in[i]) || n->in[i]->layout.kind == TT_LAYOUT_MOMENTS ||
            !spreads(n->in[i]->node, seen))
            return false;
    return true;
}

bool op_wanted(const tt_tensor *x, const op_rows *part)
{
    uint8_t *seen = calloc((size_t)x->node->id + 1, 1);
    bool wanted = spreads(x->node, seen);
    free(seen);
    tt_shape shape = tt_tensor_shape(x);
    return wanted && (tt_open_axis(&shape) >= 0 || (part->n_parts > 0 && op_is_lane_sum(x)));
}

// Every row of r, which begins at row first, has the bits it has in whole.
static void check_rows(const op_test *t, const op_result *r, const op_result *whole, int64_t first)
{
    for (int o = 0; o < r->n; o++) {
        const op_out *a = &r->out[o], *b = &whole->out[o];
        if (a->tensor == NULL)
            continue;
        tt_shape shape = tt_tensor_shape(a->tensor);
        int open = tt_open_axis(&shape);
        if (open < 0)
            continue;
        int64_t before = 1, after = 1, per = -shape.dim[open];
        for (int i = 0; i < shape.rank; i++)
            if (i != open)
                *(i < open ? &before : &after) *= shape.dim[i];
        int64_t n = a->shape.dim[open], all = b->shape.dim[open];
        for (int64_t i = 0; i < before; i++)
            for (int64_t j = 0; j < n * after; j++) {
                int64_t at_a = i * n * after + j, at_b = (i * all + first * per) * after + j;
                if (!op_same_bits(a, at_a, b, at_b))
                    op_fail_bits(t, o, a, at_a, b, at_b);
            }
    }
}

void op_try_rows(const char *family, const op_case *c, const char *way, op_how how)
{
    static const int64_t calls[] = {1, 3, 8};
    op_test t;
    op_result whole, r;
    if (c->rows <= 0 || (c->skip & OP_NO_ROWS) != 0)
        return;
    if ((c->skip & OP_BY_LANE) != 0)
        how.lanes = (int)c->rows;
    op_open(&t, family, c, way, how);
    op_run(&t, NULL, &whole);
    for (int k = 0; k < 3; k++)
        for (int64_t first = 0; first < c->rows; first += calls[k]) {
            if (first > 24 && first < c->rows - 24)
                continue; // the middle of a long batch is like its ends
            op_rows part = {.first = first, .rows = calls[k]};
            if (part.rows > c->rows - first)
                part.rows = c->rows - first;
            part.lanes = c->rows <= TT_MAX_LANES ? (int)c->rows : TT_MAX_LANES; // one row each
            if (c->rows > TT_MAX_LANES)
                continue;
            op_run(&t, &part, &r);
            check_rows(&t, &r, &whole, first);
            op_result_free(&r);
        }
    op_result_free(&whole);
    op_close(&t);
}

// The maximal sub-trees of lanes [a, b): aligned powers of two. Returns the end of the first.
static int subtree(int a, int b)
{
    int size = 1;
    while (a % (2 * size) == 0 && a + 2 * size <= b)
        size *= 2;
    return a + size;
}

static float flush(float x)
{
    return fabsf(x) < FLT_MIN ? 0.0f : x;
}

// Element k of the sum over lanes [a, b), a sub-tree: a part where there is one, else both halves.
static float tree_sum(const float *parts[][9], int a, int b, int64_t k)
{
    if (parts[a][b] != NULL)
        return parts[a][b][k];
    int mid = a + (b - a) / 2;
    return flush(tree_sum(parts, a, mid, k) + tree_sum(parts, mid, b, k)) + 0.0f;
}

// Cuts the lanes at the borders (ascending, 0 first, lanes last) and puts the sums together.
static void check_cut(op_test *t, const op_result *whole, int lanes, const int *border)
{
    op_result r[8];
    int n = 0;
    for (; border[n] < lanes; n++) {
        int a = border[n], b = border[n + 1];
        op_rows part = {.first = a * t->c->rows / lanes, .lanes = lanes};
        part.rows = b * t->c->rows / lanes - part.first;
        for (int l = a; l < b; l = subtree(l, b))
            part.n_parts++;
        op_run(t, &part, &r[n]);
        check_rows(t, &r[n], whole, part.first);
    }
    for (int o = 0; o < whole->n; o++) {
        const float *parts[8][9] = {{NULL}};
        if (r[0].out[o].tensor == NULL || !op_is_lane_sum(r[0].out[o].tensor) ||
            r[0].out[o].dtype != TT_F32)
            continue;
        int64_t count = whole->out[o].count;
        for (int i = 0; i < n; i++) {
            const float *at = r[i].out[o].data;
            for (int l = border[i]; l < border[i + 1]; at += count) {
                int end = subtree(l, border[i + 1]);
                parts[l][end] = at;
                l = end;
            }
        }
        for (int64_t k = 0; k < count; k++) {
            float sum = tree_sum(parts, 0, lanes, k);
            op_out got = {.dtype = TT_F32, .data = &sum};
            if (!op_same_bits(&got, 0, &whole->out[o], k))
                op_fail_bits(t, o, &got, 0, &whole->out[o], k);
        }
    }
    for (int i = 0; i < n; i++)
        op_result_free(&r[i]);
}

void op_try_parts(const char *family, const op_case *c, const char *way, op_how how)
{
    int lanes = 8;
    while (lanes > c->rows) // so that no lane is empty and borders are clear
        lanes /= 2;
    if (lanes < 2)
        return;
    op_test t;
    op_result whole;
    how.lanes = lanes;
    op_open(&t, family, c, way, how);
    op_run(&t, NULL, &whole);
    check_cut(&t, &whole, lanes, (int[]){0, 1, lanes});
    check_cut(&t, &whole, lanes, (int[]){0, lanes / 2, lanes});
    if (lanes == 8) {
        check_cut(&t, &whole, lanes, (int[]){0, 3, 8});
        check_cut(&t, &whole, lanes, (int[]){0, 1, 6, 8});
    }
    op_result_free(&whole);
    op_close(&t);
}
