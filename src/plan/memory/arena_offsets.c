/*
 * arena_offsets.c - the place of every value in its arena.
 *
 * Largest first, each at the smallest gap that holds it among those it shares time with; once
 * sorted by size, once by size times lifetime, and the smaller arena is kept.
 */
#include "device/device.h"
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>

#define ALIGN      64
#define ALIGN_CARD 256 // on devices with streams: libraries want their workspace so

typedef struct arena_block {
    int value;
    int first, last;
    size_t bytes, offset;
} arena_block;

static size_t aligned(size_t bytes, size_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

static int by_size(const void *a, const void *b)
{
    const arena_block *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->value - y->value;
}

static int by_area(const void *a, const void *b)
{
    const arena_block *x = a, *y = b;
    double ax = (double)x->bytes * (x->last - x->first + 1);
    double ay = (double)y->bytes * (y->last - y->first + 1);
    if (ax != ay)
        return ax > ay ? -1 : 1;
    return x->value - y->value;
}

static int by_offset(const void *a, const void *b)
{
    const arena_block *x = *(arena_block *const *)a, *y = *(arena_block *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->value - y->value;
}

/*
 * Blocks that have their offset, by time: positions in the order are cut into equal parts, and each
 * has a list of the blocks that are alive in it.
 */
typedef struct calendar {
    int n_parts, width;  // positions of a part
    int *head;           // by part: its last link; -1
    int *block, *before; // links: a block, and the link before it
    int64_t n, cap_block, cap_before;
    int *seen; // by block: the block that it was last looked at for, plus 1
    arena_block **near;
} calendar;

static tt_status calendar_open(tt_ctx *ctx, int n, int n_order, calendar *c)
{
    *c = (calendar){.n_parts = TTI_MIN(TTI_MAX(n / 16, 1), 512)};
    c->width = n_order / c->n_parts + 1;
    c->head = tti_alloc(ctx, sizeof(int) * (size_t)c->n_parts);
    c->seen = tti_alloc(ctx, sizeof(int) * (size_t)n);
    c->near = tti_alloc(ctx, sizeof(arena_block *) * (size_t)n);
    return c->head == NULL || c->seen == NULL || c->near == NULL ? TT_ENOMEM : TT_OK;
}

static void calendar_clear(calendar *c, int n)
{
    for (int i = 0; i < c->n_parts; i++)
        c->head[i] = -1;
    memset(c->seen, 0, sizeof(int) * (size_t)n);
    c->n = 0;
}

static void calendar_close(tt_ctx *ctx, calendar *c)
{
    tti_free(ctx, c->head);
    tti_free(ctx, c->block);
    tti_free(ctx, c->before);
    tti_free(ctx, c->seen);
    tti_free(ctx, c->near);
}

static tt_status calendar_add(tt_ctx *ctx, calendar *c, const arena_block *b, int i)
{
    for (int part = b->first / c->width; part <= b->last / c->width; part++) {
        if (!tti_grow(ctx, &c->block, &c->cap_block, c->n + 1, sizeof(int)) ||
            !tti_grow(ctx, &c->before, &c->cap_before, c->n + 1, sizeof(int)))
            return TT_ENOMEM;
        c->block[c->n] = i;
        c->before[c->n] = c->head[part];
        c->head[part] = (int)c->n++;
    }
    return TT_OK;
}

// Those that share time with block i, by offset, in c->near; how many.
static int calendar_find(calendar *c, arena_block *blocks, int i)
{
    const arena_block *b = &blocks[i];
    int n = 0;
    for (int part = b->first / c->width; part <= b->last / c->width; part++) {
        for (int at = c->head[part]; at >= 0; at = c->before[at]) {
            arena_block *o = &blocks[c->block[at]];
            if (c->seen[c->block[at]] == i + 1 || o->last < b->first || o->first > b->last)
                continue;
            c->seen[c->block[at]] = i + 1;
            c->near[n++] = o;
        }
    }
    qsort(c->near, (size_t)n, sizeof(*c->near), by_offset);
    return n;
}

// Gives every block an offset in the order they stand; *total becomes the arena's size.
static tt_status assign(tt_ctx *ctx, calendar *c, arena_block *blocks, int n, size_t align,
                        size_t *total)
{
    *total = 0;
    calendar_clear(c, n);
    for (int i = 0; i < n; i++) {
        arena_block *b = &blocks[i];
        size_t at = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
        int busy = calendar_find(c, blocks, i);
        for (int k = 0; k < busy; k++) {
            const arena_block *o = c->near[k];
            if (o->offset >= at + b->bytes && o->offset - at < best_gap) {
                best = at;
                best_gap = o->offset - at;
            }
            at = TTI_MAX(at, aligned(o->offset + o->bytes, align));
        }
        b->offset = best != SIZE_MAX ? best : at;
        *total = TTI_MAX(*total, b->offset + b->bytes);
        TT_TRY(calendar_add(ctx, c, b, i));
    }
    return TT_OK;
}

static size_t most_alive(const arena_block *blocks, int n, int n_order, int64_t *change)
{
    memset(change, 0, sizeof(*change) * (size_t)(n_order + 2));
    for (int i = 0; i < n; i++) {
        change[blocks[i].first] += (int64_t)blocks[i].bytes;
        change[blocks[i].last + 1] -= (int64_t)blocks[i].bytes;
    }
    int64_t alive = 0, most = 0;
    for (int i = 0; i <= n_order; i++) {
        alive += change[i];
        most = TTI_MAX(most, alive);
    }
    return (size_t)most;
}

tt_status tti_plan_arena(tti_plan *p, int arena)
{
    const int *list = p->arena_values + p->arena_start[arena];
    int n = 0, max = p->arena_start[arena + 1] - p->arena_start[arena], device = arena / 2;
    if (max == 0)
        return TT_OK;
    size_t align = tti_has_streams(p->top->devices[device]) ? ALIGN_CARD : ALIGN;
    size_t size_a = 0, size_b = 0;
    calendar c = {.n_parts = 0};
    arena_block *a = tti_alloc(p->ctx, sizeof(*a) * 2 * (size_t)max), *b = a + max;
    int64_t *change = tti_alloc(p->ctx, sizeof(*change) * (size_t)(p->n_order + 2));
    tt_status st =
        a == NULL || change == NULL ? TT_ENOMEM : calendar_open(p->ctx, max, p->n_order, &c);
    for (int i = 0; st == TT_OK && i < max; i++) {
        const tti_value *v = &p->values[list[i]];
        if (v->bytes > 0)
            a[n++] = (arena_block){list[i], v->first, v->last, v->bytes, 0};
    }
    if (st == TT_OK) {
        memcpy(b, a, sizeof(*a) * (size_t)n);
        qsort(a, (size_t)n, sizeof(*a), by_size);
        qsort(b, (size_t)n, sizeof(*b), by_area);
        st = assign(p->ctx, &c, a, n, align, &size_a);
    }
    if (st == TT_OK)
        st = assign(p->ctx, &c, b, n, align, &size_b);
    if (st == TT_OK) {
        const arena_block *best = size_b < size_a ? b : a;
        for (int i = 0; i < n; i++)
            p->values[best[i].value].offset = best[i].offset;
        p->devices[device].mapped_bytes += arena % 2 != 0 ? TTI_MIN(size_a, size_b) : 0;
        p->devices[device].arena_bytes += TTI_MIN(size_a, size_b);
        p->devices[device].lower_bound += most_alive(a, n, p->n_order, change);
    }
    calendar_close(p->ctx, &c);
    tti_free(p->ctx, a);
    tti_free(p->ctx, change);
    return st;
}
