/*
 * arena_gaps.c - the blocks of an arena by when they are alive.
 *
 * Time is cut into slices. A slice knows which stretches of the arena are in use at some time in
 * it: few, since blocks are put close to each other. So does every group of slices, and every group
 * of groups. What is in the way of a block in slices that it lives through is thus known as a
 * handful of stretches; only in the first and last slice of its life are blocks looked at one by
 * one.
 */
#include "plan/memory/arena_gaps.h"
#include <string.h>

#define PARTIAL 64  // blocks that begin in a slice, about
#define MOST    512 // slices
#define GROUP   4   // slices in a group, groups in the next

// Bytes [begin, end) of the arena.
typedef struct stretch {
    size_t begin, end;
} stretch;

typedef struct stretches {
    stretch *v; // ascending, none touches the next
    int64_t n, cap;
} stretches;

// A block that begins or ends in a slice.
typedef struct partial {
    stretch is;
    int first, last;
} partial;

struct tti_slice {
    stretches any;  // in use by a block that is alive at some time in it
    stretches full; // in use by one that is alive throughout; groups have none
    partial *some;  // the other blocks, ascending by begin; groups have none
    int64_t n_some, cap_some;
};

struct tti_search {
    stretches busy, next; // what is in the way; the same with more of it
    stretches some;
};

tt_status tti_gaps_open(tt_ctx *ctx, int n, int last, size_t align, tti_gaps *out)
{
    int most = TTI_MIN(TTI_MAX(n / PARTIAL, 1), MOST), width = last / most + 1;
    *out = (tti_gaps){.ctx = ctx, .align = align, .width = width};
    out->search = tti_calloc(ctx, 1, sizeof(*out->search));
    tt_status st = out->search == NULL ? TT_ENOMEM : TT_OK;
    for (int slices = last / width + 1; st == TT_OK; slices = (slices + GROUP - 1) / GROUP) {
        int l = out->n_levels++;
        out->n[l] = slices;
        out->level[l] = tti_calloc(ctx, (size_t)slices, sizeof(struct tti_slice));
        st = out->level[l] == NULL ? TT_ENOMEM : TT_OK;
        if (slices == 1)
            break;
    }
    if (st != TT_OK)
        tti_gaps_close(out);
    return st;
}

void tti_gaps_close(tti_gaps *g)
{
    for (int l = 0; l < g->n_levels; l++) {
        for (int i = 0; i < g->n[l] && g->level[l] != NULL; i++) {
            tti_free(g->ctx, g->level[l][i].any.v);
            tti_free(g->ctx, g->level[l][i].full.v);
            tti_free(g->ctx, g->level[l][i].some);
        }
        tti_free(g->ctx, g->level[l]);
    }
    if (g->search != NULL) {
        tti_free(g->ctx, g->search->busy.v);
        tti_free(g->ctx, g->search->next.v);
        tti_free(g->ctx, g->search->some.v);
    }
    tti_free(g->ctx, g->search);
    *g = (tti_gaps){0};
}

// ---- searching -------------------------------------------------------------------------------

// The smallest gap so far, what is in the way being passed by ascending begin.
typedef struct gap {
    size_t bytes; // that it has to hold
    size_t at;    // the end of all that was passed
    size_t best, size;
} gap;

static inline void pass(gap *s, stretch busy)
{
    if (busy.begin >= s->at + s->bytes && busy.begin - s->at < s->size) {
        s->best = s->at;
        s->size = busy.begin - s->at;
    }
    s->at = TTI_MAX(s->at, busy.end);
}

// Puts one at the end, or into the last one, behind whose begin it begins; there is room.
static inline void append(stretches *to, stretch s)
{
    if (to->n > 0 && s.begin <= to->v[to->n - 1].end)
        to->v[to->n - 1].end = TTI_MAX(to->v[to->n - 1].end, s.end);
    else
        to->v[to->n++] = s;
}

// Adds others to what is in the way.
static tt_status block_all(tti_gaps *g, const stretches *more)
{
    struct tti_search *s = g->search;
    const stretch *a = s->busy.v, *b = more->v;
    const stretch *a_end = a + s->busy.n, *b_end = b + more->n;
    if (more->n == 0)
        return TT_OK;
    if (!tti_grow(g->ctx, &s->next.v, &s->next.cap, s->busy.n + more->n, sizeof(stretch)))
        return TT_ENOMEM;
    s->next.n = 0;
    while (a < a_end && b < b_end)
        append(&s->next, a->begin < b->begin ? *a++ : *b++);
    while (a < a_end)
        append(&s->next, *a++);
    while (b < b_end)
        append(&s->next, *b++);
    stretches old = s->busy;
    s->busy = s->next;
    s->next = old;
    return TT_OK;
}

// Blocks that share time with b in a slice of which it has a part.
static tt_status block_partial(tti_gaps *g, const struct tti_slice *in, const tti_arena_block *b)
{
    stretches *some = &g->search->some;
    if (!tti_grow(g->ctx, &some->v, &some->cap, in->n_some + 1, sizeof(stretch)))
        return TT_ENOMEM;
    some->n = 0;
    for (int64_t i = 0; i < in->n_some; i++)
        if (in->some[i].last >= b->first && in->some[i].first <= b->last)
            append(some, in->some[i].is);
    TT_TRY(block_all(g, &in->full));
    return block_all(g, some);
}

// All blocks of slices [from, to): in groups as large as there are.
static tt_status block_slices(tti_gaps *g, int from, int to)
{
    while (from < to) {
        int l = 0, size = 1;
        while (l + 1 < g->n_levels && from % (size * GROUP) == 0 && from + size * GROUP <= to) {
            size *= GROUP;
            l++;
        }
        TT_TRY(block_all(g, &g->level[l][from / size].any));
        from += size;
    }
    return TT_OK;
}

// A block that is alive in several slices.
static tt_status search_slices(tti_gaps *g, gap *s, const tti_arena_block *b)
{
    // Slices that it has the whole of.
    int from = b->first / g->width, to = (b->last + 1) / g->width;
    const stretches *busy = &g->search->busy;
    g->search->busy.n = 0;
    if (b->first % g->width != 0)
        TT_TRY(block_partial(g, &g->level[0][from++], b));
    TT_TRY(block_slices(g, from, to));
    if ((b->last + 1) % g->width != 0)
        TT_TRY(block_partial(g, &g->level[0][to], b));
    for (int64_t i = 0; i < busy->n; i++)
        pass(s, busy->v[i]);
    return TT_OK;
}

// A block that is alive in one alone.
static void search_slice(const struct tti_slice *in, gap *s, const tti_arena_block *b)
{
    const stretch *full = in->full.v, *end = full + in->full.n;
    for (int64_t i = 0; i < in->n_some; i++) {
        const partial *p = &in->some[i];
        if (p->last < b->first || p->first > b->last)
            continue;
        for (; full < end && full->begin < p->is.begin; full++)
            pass(s, *full);
        pass(s, p->is);
    }
    for (; full < end; full++)
        pass(s, *full);
}

// ---- putting ---------------------------------------------------------------------------------

// Adds one, which may overlap others.
static tt_status add(tt_ctx *ctx, stretches *to, stretch s)
{
    int64_t low = 0, high = to->n;
    while (low < high) { // the first that ends at its begin or behind
        int64_t middle = (low + high) / 2;
        if (to->v[middle].end < s.begin)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t end = low; // and the first that begins behind its end
    for (; end < to->n && to->v[end].begin <= s.end; end++) {
        s.begin = TTI_MIN(s.begin, to->v[end].begin);
        s.end = TTI_MAX(s.end, to->v[end].end);
    }
    if (end == low && !tti_grow(ctx, &to->v, &to->cap, to->n + 1, sizeof(s)))
        return TT_ENOMEM;
    if (end != low + 1)
        memmove(&to->v[low + 1], &to->v[end], sizeof(s) * (size_t)(to->n - end));
    to->v[low] = s;
    to->n += 1 - (end - low);
    return TT_OK;
}

static tt_status add_some(tt_ctx *ctx, struct tti_slice *in, const partial *p)
{
    if (!tti_grow(ctx, &in->some, &in->cap_some, in->n_some + 1, sizeof(*p)))
        return TT_ENOMEM;
    int64_t i = in->n_some++;
    for (; i > 0 && in->some[i - 1].is.begin > p->is.begin; i--)
        in->some[i] = in->some[i - 1];
    in->some[i] = *p;
    return TT_OK;
}

static tt_status add_block(tti_gaps *g, const tti_arena_block *b)
{
    size_t end = (b->offset + b->bytes + g->align - 1) & ~(g->align - 1);
    partial p = {{b->offset, end}, b->first, b->last};
    int first = b->first / g->width, last = b->last / g->width;
    for (int i = first; i <= last; i++) {
        struct tti_slice *in = &g->level[0][i];
        bool is_full = b->first <= i * g->width && b->last >= i * g->width + g->width - 1;
        TT_TRY(is_full ? add(g->ctx, &in->full, p.is) : add_some(g->ctx, in, &p));
    }
    for (int l = 0; l < g->n_levels; l++, first /= GROUP, last /= GROUP)
        for (int i = first; i <= last; i++)
            TT_TRY(add(g->ctx, &g->level[l][i].any, p.is));
    return TT_OK;
}

tt_status tti_gaps_put(tti_gaps *g, tti_arena_block *b)
{
    gap s = {.bytes = b->bytes, .best = SIZE_MAX, .size = SIZE_MAX};
    int slice = b->first / g->width;
    if (b->last / g->width == slice)
        search_slice(&g->level[0][slice], &s, b);
    else
        TT_TRY(search_slices(g, &s, b));
    b->offset = s.best != SIZE_MAX ? s.best : s.at;
    g->total = TTI_MAX(g->total, b->offset + b->bytes);
    return add_block(g, b);
}
