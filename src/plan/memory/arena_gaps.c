/*
 * arena_gaps.c - blocks of an arena by offset, on shelves of a few dozen: a search goes through all
 * of them, comparing times of a whole shelf at once, and looks closer only at blocks that it shares
 * time with.
 */
#include "plan/memory/arena_gaps.h"
#include <limits.h>
#include <string.h>

#define SHELF 64

struct tti_shelf {
    int n;
    int min_first, max_last; // of all its blocks
    size_t max_end;
    int first[SHELF], last[SHELF];   // beyond n: such that no time is shared
    size_t begin[SHELF], end[SHELF]; // ascending by begin; end: where another may begin
};

tt_status tti_gaps_open(tt_ctx *ctx, int n, size_t align, tti_gaps *out)
{
    *out = (tti_gaps){.ctx = ctx, .align = align};
    out->n_most = 2 * n / SHELF + 2; // a shelf that is cut in two leaves both half full
    out->shelves = tti_alloc(ctx, sizeof(*out->shelves) * (size_t)out->n_most);
    out->order = tti_alloc(ctx, sizeof(int) * (size_t)out->n_most);
    if (out->shelves == NULL || out->order == NULL) {
        tti_gaps_close(out);
        return TT_ENOMEM;
    }
    tti_gaps_clear(out);
    return TT_OK;
}

void tti_gaps_close(tti_gaps *g)
{
    tti_free(g->ctx, g->shelves);
    tti_free(g->ctx, g->order);
    *g = (tti_gaps){0};
}

static void leave_empty(struct tti_shelf *s, int from)
{
    s->n = from;
    for (int i = from; i < SHELF; i++) {
        s->first[i] = INT_MAX;
        s->last[i] = -1;
    }
    s->min_first = INT_MAX;
    s->max_last = -1;
    s->max_end = 0;
    for (int i = 0; i < from; i++) {
        s->max_end = TTI_MAX(s->max_end, s->end[i]);
        s->min_first = TTI_MIN(s->min_first, s->first[i]);
        s->max_last = TTI_MAX(s->max_last, s->last[i]);
    }
}

void tti_gaps_clear(tti_gaps *g)
{
    g->n = 1;
    g->total = 0;
    g->order[0] = 0;
    leave_empty(&g->shelves[0], 0);
}

// ---- searching -------------------------------------------------------------------------------

typedef struct search {
    size_t bytes;
    size_t at; // behind all blocks so far that it shares time with
    size_t best, gap;
} search;

static void pass(search *s, size_t begin, size_t end)
{
    if (begin >= s->at + s->bytes && begin - s->at < s->gap) {
        s->best = s->at;
        s->gap = begin - s->at;
    }
    s->at = TTI_MAX(s->at, end);
}

static void look_at(const struct tti_shelf *shelf, int first, int last, search *s)
{
    uint8_t shares[SHELF];
    uint64_t eight;
    for (int i = 0; i < SHELF; i++)
        shares[i] = (uint8_t)((shelf->last[i] >= first) & (shelf->first[i] <= last));
    for (int i = 0; i < SHELF; i += 8) {
        memcpy(&eight, shares + i, sizeof(eight));
        for (; eight != 0; eight &= eight - 1) {
            int k = i + __builtin_ctzll(eight) / 8;
            pass(s, shelf->begin[k], shelf->end[k]);
        }
    }
}

// ---- putting ---------------------------------------------------------------------------------

// The last shelf that begins at or before offset, among those in order; the first if none does.
static int shelf_of(const tti_gaps *g, size_t offset)
{
    int low = 0, high = g->n - 1;
    while (low < high) {
        int middle = high - (high - low) / 2;
        if (g->shelves[g->order[middle]].begin[0] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// Cuts a full shelf in two.
static void cut(tti_gaps *g, int at)
{
    struct tti_shelf *from = &g->shelves[g->order[at]], *to = &g->shelves[g->n];
    int half = SHELF / 2;
    memmove(&g->order[at + 2], &g->order[at + 1], sizeof(int) * (size_t)(g->n - at - 1));
    g->order[at + 1] = g->n++;
    memcpy(to->first, from->first + half, sizeof(int) * (SHELF - half));
    memcpy(to->last, from->last + half, sizeof(int) * (SHELF - half));
    memcpy(to->begin, from->begin + half, sizeof(size_t) * (SHELF - half));
    memcpy(to->end, from->end + half, sizeof(size_t) * (SHELF - half));
    leave_empty(to, SHELF - half);
    leave_empty(from, half);
}

static void insert(tti_gaps *g, const tti_arena_block *b)
{
    int at = shelf_of(g, b->offset);
    if (g->shelves[g->order[at]].n == SHELF) {
        cut(g, at);
        at = shelf_of(g, b->offset);
    }
    struct tti_shelf *s = &g->shelves[g->order[at]];
    int i = s->n++;
    for (; i > 0 && s->begin[i - 1] > b->offset; i--) {
        s->first[i] = s->first[i - 1];
        s->last[i] = s->last[i - 1];
        s->begin[i] = s->begin[i - 1];
        s->end[i] = s->end[i - 1];
    }
    s->first[i] = b->first;
    s->last[i] = b->last;
    s->begin[i] = b->offset;
    s->end[i] = (b->offset + b->bytes + g->align - 1) & ~(g->align - 1);
    s->max_end = TTI_MAX(s->max_end, s->end[i]);
    s->min_first = TTI_MIN(s->min_first, b->first);
    s->max_last = TTI_MAX(s->max_last, b->last);
}

void tti_gaps_put(tti_gaps *g, tti_arena_block *b)
{
    search s = {.bytes = b->bytes, .best = SIZE_MAX, .gap = SIZE_MAX};
    for (int i = 0; i < g->n && s.gap != b->bytes; i++) { // no gap is smaller than that
        const struct tti_shelf *shelf = &g->shelves[g->order[i]];
        // What ends before a block that is in the way anyway leaves no gap.
        if (shelf->max_last >= b->first && shelf->min_first <= b->last && shelf->max_end > s.at)
            look_at(shelf, b->first, b->last, &s);
    }
    b->offset = s.best != SIZE_MAX ? s.best : s.at;
    g->total = TTI_MAX(g->total, b->offset + b->bytes);
    insert(g, b);
}
