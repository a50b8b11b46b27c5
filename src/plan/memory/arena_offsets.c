/*
 * arena_offsets.c - the place of every value in its arena.
 *
 * Largest first, each at the smallest gap that holds it among those it shares time with
 * (arena_gaps.c); once sorted by size, once by size times lifetime, and the smaller arena is kept.
 *
 * Replicas do the same work at other times, so their arenas are often alike: the same sizes in the
 * same order, of which the same ones share time. What was found for one such list is remembered and
 * taken for the others.
 */
#include "device/device.h"
#include "plan/memory/arena_gaps.h"
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>

#define ALIGN      64
#define ALIGN_CARD 256 // on devices with streams: libraries want their workspace so

typedef tti_arena_block block;

static int by_size(const void *a, const void *b)
{
    const block *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->value - y->value;
}

static int by_area(const void *a, const void *b)
{
    const block *x = a, *y = b;
    double ax = (double)x->bytes * (x->last - x->first + 1);
    double ay = (double)y->bytes * (y->last - y->first + 1);
    if (ax != ay)
        return ax > ay ? -1 : 1;
    return x->value - y->value;
}

static int by_first(const void *a, const void *b)
{
    const block *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_last(const void *a, const void *b)
{
    const block *x = a, *y = b;
    return (x->last > y->last) - (x->last < y->last);
}

size_t tti_most_alive(block *starts, block *ends, int n, int *position)
{
    size_t alive = 0, most = 0;
    memcpy(ends, starts, sizeof(*ends) * (size_t)n);
    qsort(starts, (size_t)n, sizeof(*starts), by_first);
    qsort(ends, (size_t)n, sizeof(*ends), by_last);
    *position = 0;
    for (int i = 0, ended = 0; i < n;) {
        int now = starts[i].first;
        for (; ends[ended].last < now; ended++) // at most i have ended: all of them began
            alive -= ends[ended].bytes;
        for (; i < n && starts[i].first == now; i++)
            alive += starts[i].bytes;
        if (alive > most) {
            most = alive;
            *position = now;
        }
    }
    return most;
}

// ---- lists that were laid out ----------------------------------------------------------------

// A block of a list, its times numbered within the list.
typedef struct item {
    size_t bytes;
    int first, last;
} item;

typedef struct laid_list {
    uint64_t hash;
    int n;
    item *items;
    size_t *offsets;
    size_t total; // at least that, if it was given up
    bool is_whole;
} laid_list;

#define KEPT 64 // lists; the oldest gives way

typedef struct layouter {
    tti_plan *p;
    block *blocks; // two lists of the largest arena
    item *items;   // of one list
    int *times;    // of one arena, each once
    size_t *alive; // bytes that begin at each of them, less those that ended
    laid_list kept[KEPT];
    int n_kept;
} layouter;

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int number_of(const int *times, int n, int time)
{
    int low = 0;
    while (n > 1) {
        int half = n / 2;
        low = times[low + half] <= time ? low + half : low;
        n -= half;
    }
    return low;
}

// The times of an arena's blocks in order, each once; how many.
static int list_times(const block *blocks, int n, int *times)
{
    int all = 0;
    for (int i = 0; i < n; i++) {
        times[2 * i] = blocks[i].first;
        times[2 * i + 1] = blocks[i].last;
    }
    qsort(times, 2 * (size_t)n, sizeof(*times), by_number);
    for (int i = 0; i < 2 * n; i++)
        if (i == 0 || times[i] != times[all - 1])
            times[all++] = times[i];
    return all;
}

// The most bytes of an arena that are alive at once.
static size_t most_alive(const layouter *l, const block *blocks, int n, int n_times)
{
    size_t alive = 0, most = 0;
    memset(l->alive, 0, sizeof(*l->alive) * ((size_t)n_times + 1));
    for (int i = 0; i < n; i++) {
        l->alive[number_of(l->times, n_times, blocks[i].first)] += blocks[i].bytes;
        l->alive[number_of(l->times, n_times, blocks[i].last) + 1] -= blocks[i].bytes;
    }
    for (int i = 0; i < n_times; i++) {
        alive += l->alive[i];
        most = TTI_MAX(most, alive);
    }
    return most;
}

static laid_list *find_list(layouter *l, int n, uint64_t hash)
{
    for (int i = 0; i < TTI_MIN(l->n_kept, KEPT); i++)
        if (l->kept[i].hash == hash && l->kept[i].n == n &&
            memcmp(l->kept[i].items, l->items, sizeof(*l->items) * (size_t)n) == 0)
            return &l->kept[i];
    return NULL;
}

static void drop_list(tt_ctx *ctx, laid_list *k)
{
    tti_free(ctx, k->items);
    *k = (laid_list){0};
}

// Remembers how a list was laid out.
static tt_status keep_list(layouter *l, const block *blocks, int n, uint64_t hash, size_t total,
                           bool is_whole)
{
    tt_ctx *ctx = l->p->ctx;
    laid_list *k = &l->kept[l->n_kept++ % KEPT];
    drop_list(ctx, k);
    k->items = tti_alloc(ctx, (sizeof(item) + sizeof(size_t)) * (size_t)n);
    if (k->items == NULL)
        return TT_ENOMEM;
    k->offsets = (size_t *)(void *)(k->items + n);
    memcpy(k->items, l->items, sizeof(item) * (size_t)n);
    for (int i = 0; i < n; i++)
        k->offsets[i] = blocks[i].offset;
    k->hash = hash;
    k->n = n;
    k->total = total;
    k->is_whole = is_whole;
    return TT_OK;
}

/*
 * Gives every block an offset in the order they stand; *total becomes the arena's size. It is given
 * up, with *total at least limit, once it cannot become smaller than that.
 */
static tt_status assign(layouter *l, block *blocks, int n, int n_times, size_t align, size_t limit,
                        size_t *total)
{
    for (int i = 0; i < n; i++)
        l->items[i] = (item){.bytes = blocks[i].bytes,
                             .first = number_of(l->times, n_times, blocks[i].first),
                             .last = number_of(l->times, n_times, blocks[i].last)};
    uint64_t hash = tti_hash64(l->items, sizeof(*l->items) * (size_t)n, align);
    const laid_list *known = find_list(l, n, hash);
    if (known != NULL && (known->is_whole || known->total >= limit)) {
        for (int i = 0; i < n; i++)
            blocks[i].offset = known->offsets[i];
        *total = known->total;
        return TT_OK;
    }
    tti_gaps g;
    TT_TRY(tti_gaps_open(l->p->ctx, n, l->times[n_times - 1], align, &g));
    bool is_whole = true;
    tt_status st = TT_OK;
    for (int i = 0; i < n && is_whole && st == TT_OK; i++) {
        st = tti_gaps_put(&g, &blocks[i]);
        is_whole = g.total < limit;
    }
    *total = g.total;
    tti_gaps_close(&g);
    return st != TT_OK ? st : keep_list(l, blocks, n, hash, *total, is_whole);
}

// ---- arenas ----------------------------------------------------------------------------------

// Of the values of an arena, as arena_start numbers them.
static tt_status plan_arena(layouter *l, int arena)
{
    tti_plan *p = l->p;
    const int *list = p->arena_values + p->arena_start[arena];
    int n = 0, max = p->arena_start[arena + 1] - p->arena_start[arena], device = arena / 2;
    size_t align = tti_has_streams(p->top->devices[device]) ? ALIGN_CARD : ALIGN;
    size_t size_a = 0, size_b = 0;
    block *a = l->blocks, *b = a + max;
    for (int i = 0; i < max; i++) {
        const tti_value *v = &p->values[list[i]];
        if (v->bytes > 0)
            a[n++] = (block){list[i], v->first, v->last, v->bytes, 0};
    }
    if (n == 0)
        return TT_OK;
    memcpy(b, a, sizeof(*a) * (size_t)n);
    int n_times = list_times(a, n, l->times);
    size_t bound = most_alive(l, a, n, n_times);
    qsort(a, (size_t)n, sizeof(*a), by_size);
    TT_TRY(assign(l, a, n, n_times, align, SIZE_MAX, &size_a));
    if (size_a > bound) { // else nothing can be smaller
        qsort(b, (size_t)n, sizeof(*b), by_area);
        TT_TRY(assign(l, b, n, n_times, align, size_a, &size_b));
    }
    const block *best = size_a > bound && size_b < size_a ? b : a;
    size_t size = best == b ? size_b : size_a;
    for (int i = 0; i < n; i++)
        p->values[best[i].value].offset = best[i].offset;
    p->devices[device].mapped_bytes += arena % 2 != 0 ? size : 0;
    p->devices[device].arena_bytes += size;
    p->devices[device].lower_bound += bound;
    return TT_OK;
}

tt_status tti_plan_offsets(tti_plan *p)
{
    layouter l = {.p = p};
    size_t most = 1;
    for (int a = 0; a < 2 * p->top->n_devices; a++)
        most = TTI_MAX(most, (size_t)(p->arena_start[a + 1] - p->arena_start[a]));
    l.blocks = tti_alloc(p->ctx, sizeof(*l.blocks) * 2 * most);
    l.items = tti_alloc(p->ctx, sizeof(*l.items) * most);
    l.times = tti_alloc(p->ctx, sizeof(*l.times) * 2 * most);
    l.alive = tti_alloc(p->ctx, sizeof(*l.alive) * (2 * most + 1));
    bool is_ready = l.blocks != NULL && l.items != NULL && l.times != NULL && l.alive != NULL;
    tt_status st = is_ready ? TT_OK : TT_ENOMEM;
    for (int a = 0; st == TT_OK && a < 2 * p->top->n_devices; a++)
        st = plan_arena(&l, a);
    for (int i = 0; i < KEPT; i++)
        drop_list(p->ctx, &l.kept[i]);
    tti_free(p->ctx, l.blocks);
    tti_free(p->ctx, l.items);
    tti_free(p->ctx, l.times);
    tti_free(p->ctx, l.alive);
    return st;
}
