/*
 * bpe.c - byte-level BPE: text to tokens and back (bpe.h).
 */
#include "data/bpe.h"
#include "base/ctx.h"
#include <string.h>

void tti_bpe_free(tti_bpe *t)
{
    for (int i = 0; i < t->n_specials; i++)
        tti_free(t->ctx, t->specials[i].text);
    tti_free(t->ctx, t->specials);
    tti_free(t->ctx, t->pool);
    tti_free(t->ctx, t->at);
    tti_free(t->ctx, t->merges);
    tti_free(t->ctx, t->made);
    tti_free(t->ctx, t->table);
    *t = (tti_bpe){0};
}

// ---- pairs -----------------------------------------------------------------------------------

static uint64_t hash_of(int32_t a, int32_t b)
{
    uint64_t x = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

tt_status tti_bpe_index(tti_bpe *t)
{
    t->table_size = 64;
    while (t->table_size < 2 * t->n_merges)
        t->table_size *= 2;
    t->table = tti_calloc(t->ctx, (size_t)t->table_size, sizeof(*t->table));
    if (t->table == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < t->n_merges; i++) {
        uint64_t at = hash_of(t->merges[i].a, t->merges[i].b);
        if (tti_bpe_find(t, t->merges[i].a, t->merges[i].b) >= 0)
            continue; // the first counts
        while (t->table[at & (uint64_t)(t->table_size - 1)] != 0)
            at++;
        t->table[at & (uint64_t)(t->table_size - 1)] = (int32_t)i + 1;
    }
    return TT_OK;
}

int64_t tti_bpe_find(const tti_bpe *t, int32_t a, int32_t b)
{
    for (uint64_t at = hash_of(a, b);; at++) {
        int32_t i = t->table[at & (uint64_t)(t->table_size - 1)];
        if (i == 0)
            return -1;
        if (t->merges[i - 1].a == a && t->merges[i - 1].b == b)
            return i - 1;
    }
}

// ---- a word ----------------------------------------------------------------------------------

/*
 * A word as a list: parts are linked, so that merging two costs nothing, and pairs that can be
 * merged wait in a heap by (merge, place). An entry whose parts have changed since is passed over.
 */
typedef struct entry {
    int64_t merge;
    int32_t at;
} entry;

typedef struct word {
    const tti_bpe *t;
    int32_t *id, *next, *prev;
    entry *heap;
    int64_t n_heap;
} word;

static bool before(const entry *a, const entry *b)
{
    return a->merge != b->merge ? a->merge < b->merge : a->at < b->at;
}

static void heap_push(word *w, entry e)
{
    int64_t i = w->n_heap++;
    for (; i > 0 && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
}

static entry heap_pop(word *w)
{
    entry top = w->heap[0], e = w->heap[--w->n_heap];
    int64_t i = 0;
    for (int64_t k; (k = 2 * i + 1) < w->n_heap; i = k) {
        if (k + 1 < w->n_heap && before(&w->heap[k + 1], &w->heap[k]))
            k++;
        if (!before(&w->heap[k], &e))
            break;
        w->heap[i] = w->heap[k];
    }
    w->heap[i] = e;
    return top;
}

static void look(word *w, int32_t at)
{
    if (at < 0 || w->next[at] < 0)
        return;
    int64_t m = tti_bpe_find(w->t, w->id[at], w->id[w->next[at]]);
    if (m >= 0)
        heap_push(w, (entry){m, at});
}

static void merge_all(word *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        w->next[i] = i + 1 < n ? (int32_t)i + 1 : -1;
        w->prev[i] = (int32_t)i - 1;
    }
    w->n_heap = 0;
    for (int64_t i = 0; i + 1 < n; i++)
        look(w, (int32_t)i);
    while (w->n_heap > 0) {
        entry e = heap_pop(w);
        const tti_bpe_merge *m = &w->t->merges[e.merge];
        int32_t b = w->id[e.at] == m->a ? w->next[e.at] : -1;
        if (b < 0 || w->id[b] != m->b)
            continue; // one of them is part of another token by now
        w->id[e.at] = w->t->made[e.merge];
        w->id[b] = -1;
        w->next[e.at] = w->next[b];
        if (w->next[b] >= 0)
            w->prev[w->next[b]] = e.at;
        look(w, w->prev[e.at]);
        look(w, e.at);
    }
}

static tt_status encode_word(const tti_bpe *t, const char *s, size_t bytes, int32_t *out,
                             int64_t *n)
{
    int32_t room[4 * 64];
    entry heap[3 * 64];
    word w = {.t = t, .id = room, .next = room + 64, .prev = room + 128, .heap = heap};
    char *own = NULL;
    if (bytes > INT32_MAX / 2)
        return TT_FAIL(t->ctx, TT_EUNSUPPORTED, "tokenize: a word of %zu bytes", bytes);
    if (bytes > 64) {
        own = tti_alloc(t->ctx, bytes * (3 * sizeof(int32_t) + 3 * sizeof(entry)) + 64);
        if (own == NULL)
            return TT_ENOMEM;
        w.heap = (entry *)(void *)own;
        w.id = (int32_t *)(void *)(own + 3 * bytes * sizeof(entry));
        w.next = w.id + bytes;
        w.prev = w.next + bytes;
    }
    for (size_t i = 0; i < bytes; i++)
        w.id[i] = t->byte[(unsigned char)s[i]];
    merge_all(&w, (int64_t)bytes);
    for (int32_t i = 0; i >= 0; i = w.next[i])
        out[(*n)++] = w.id[i];
    tti_free(t->ctx, own);
    return TT_OK;
}

// ---- texts -----------------------------------------------------------------------------------

static tt_status encode_plain(const tti_bpe *t, const char *s, size_t bytes, int32_t **out,
                              int64_t *n, int64_t *cap)
{
    char first[2] = " ";
    bool joins = t->space_first && bytes > 0 && s[0] != ' ';
    if (!tti_grow(t->ctx, out, cap, *n + (int64_t)bytes + 8, sizeof(**out)))
        return TT_ENOMEM;
    while (bytes > 0) {
        size_t length = tti_bpe_word(s, bytes);
        if (joins) { // the space that the text lacks is part of its first word
            char *own = tti_alloc(t->ctx, bytes + 2);
            if (own == NULL)
                return TT_ENOMEM;
            memcpy(own, first, 1);
            memcpy(own + 1, s, bytes);
            length = tti_bpe_word(own, bytes + 1);
            tt_status st = encode_word(t, own, length, *out, n);
            tti_free(t->ctx, own);
            TT_TRY(st);
            length--;
            joins = false;
        } else {
            TT_TRY(encode_word(t, s, length, *out, n));
        }
        s += length;
        bytes -= length;
    }
    return TT_OK;
}

// Where special token i comes next, from at on; bytes: nowhere.
static size_t place_of(const tti_bpe *t, int i, const char *s, size_t bytes, size_t at)
{
    const char *found = memmem(s + at, bytes - at, t->specials[i].text, t->specials[i].bytes);
    return found != NULL ? (size_t)(found - s) : bytes;
}

// The one that comes first, the longest of those at one place; -1: there is none. places are kept,
// so that the text is searched once for each.
static int find_special(const tti_bpe *t, const char *s, size_t bytes, size_t at, size_t *places)
{
    int best = -1;
    for (int i = 0; i < t->n_specials; i++) {
        if (places[i] < at)
            places[i] = place_of(t, i, s, bytes, at);
        if (places[i] < bytes &&
            (best < 0 || places[i] < places[best] ||
             (places[i] == places[best] && t->specials[i].bytes > t->specials[best].bytes)))
            best = i;
    }
    return best;
}

tt_status tti_bpe_encode(const tti_bpe *t, const char *text, size_t bytes, int32_t **out,
                         int64_t *n, int64_t *cap)
{
    size_t *places = tti_calloc(t->ctx, (size_t)t->n_specials + 1, sizeof(*places));
    tt_status st = places == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < t->n_specials; i++)
        places[i] = place_of(t, i, text, bytes, 0);
    for (size_t at = 0; st == TT_OK && at < bytes;) {
        int x = find_special(t, text, bytes, at, places);
        size_t end = x < 0 ? bytes : places[x];
        st = encode_plain(t, text + at, end - at, out, n, cap);
        at = end;
        if (st != TT_OK || x < 0)
            continue;
        if (!tti_grow(t->ctx, out, cap, *n + 1, sizeof(**out)))
            st = TT_ENOMEM;
        else
            (*out)[(*n)++] = t->specials[x].id;
        at += t->specials[x].bytes;
    }
    tti_free(t->ctx, places);
    return st;
}

void tti_bpe_decode(const tti_bpe *t, const int32_t *ids, int64_t n, tti_text *out)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] >= 0 && ids[i] < t->n)
            tti_text_put(out, t->pool + t->at[ids[i]], (size_t)(t->at[ids[i] + 1] - t->at[ids[i]]));
}
