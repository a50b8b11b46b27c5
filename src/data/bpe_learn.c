/*
 * bpe_learn.c - learning a byte-level BPE: words are counted, then the most frequent pair of
 * neighbours becomes a token, again and again.
 *
 * Each pair has its count and a list of the words that had it. A heap holds pairs by count; a count
 * may have fallen since, then the pair is put back. So a merge touches only words that have the
 * pair. The order, and so the result, depends on the counts alone.
 */
#include "base/ctx.h"
#include "data/bpe.h"
#include <stdlib.h>
#include <string.h>

typedef struct word {
    int64_t at, n; // in ids
    int64_t count;
} word;

typedef struct pair {
    int32_t a, b;
    int64_t count;
    int32_t *words; // may name a word twice, or one that has lost it
    int64_t n, cap;
} pair;

struct tti_bpe_words {
    tt_ctx *ctx;
    char *pool; // bytes of the words that differ
    int64_t n_pool, cap_pool;
    word *words;
    int64_t n, cap;
    int64_t *table; // of words: number + 1
    int64_t table_size;
    int32_t *ids;
    pair *pairs;
    int64_t n_pairs, cap_pairs;
    int64_t *pair_table; // number + 1
    int64_t pair_table_size;
    int64_t *heap; // numbers of pairs; key: heap_count
    int64_t *heap_count;
    int64_t n_heap, cap_heap, cap_heap_count;
};

tti_bpe_words *tti_bpe_words_new(tt_ctx *ctx)
{
    tti_bpe_words *w = tti_calloc(ctx, 1, sizeof(*w));
    if (w != NULL)
        w->ctx = ctx;
    return w;
}

void tti_bpe_words_free(tti_bpe_words *w)
{
    if (w == NULL)
        return;
    for (int64_t i = 0; i < w->n_pairs; i++)
        tti_free(w->ctx, w->pairs[i].words);
    void *all[] = {w->pool,       w->words, w->table,      w->ids, w->pairs,
                   w->pair_table, w->heap,  w->heap_count, w};
    tt_ctx *ctx = w->ctx;
    for (int i = 0; i < TTI_COUNT(all); i++)
        tti_free(ctx, all[i]);
}

// ---- counting words --------------------------------------------------------------------------

static tt_status grow_table(tti_bpe_words *w)
{
    int64_t size = TTI_MAX(1024, 2 * w->table_size);
    int64_t *table = tti_calloc(w->ctx, (size_t)size, sizeof(*table));
    if (table == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < w->n; i++) {
        uint64_t at = tti_hash64(w->pool + w->words[i].at, (size_t)w->words[i].n, 0);
        while (table[at & (uint64_t)(size - 1)] != 0)
            at++;
        table[at & (uint64_t)(size - 1)] = i + 1;
    }
    tti_free(w->ctx, w->table);
    w->table = table;
    w->table_size = size;
    return TT_OK;
}

static tt_status count_word(tti_bpe_words *w, const char *s, size_t n)
{
    if (2 * (w->n + 1) > w->table_size)
        TT_TRY(grow_table(w));
    uint64_t at = tti_hash64(s, n, 0);
    for (int64_t i; (i = w->table[at & (uint64_t)(w->table_size - 1)]) != 0; at++) {
        word *x = &w->words[i - 1];
        if (x->n == (int64_t)n && memcmp(w->pool + x->at, s, n) == 0) {
            x->count++;
            return TT_OK;
        }
    }
    if (!tti_grow(w->ctx, &w->pool, &w->cap_pool, w->n_pool + (int64_t)n, 1) ||
        !tti_grow(w->ctx, &w->words, &w->cap, w->n + 1, sizeof(*w->words)))
        return TT_ENOMEM;
    memcpy(w->pool + w->n_pool, s, n);
    w->words[w->n++] = (word){w->n_pool, (int64_t)n, 1};
    w->n_pool += (int64_t)n;
    w->table[at & (uint64_t)(w->table_size - 1)] = w->n;
    return w->n < INT32_MAX ? TT_OK : TT_FAIL(w->ctx, TT_EUNSUPPORTED, "tokenize: too many words");
}

tt_status tti_bpe_count(tti_bpe_words *w, const char *text, size_t bytes)
{
    for (size_t n; bytes > 0; text += n, bytes -= n) {
        n = tti_bpe_word(text, bytes);
        TT_TRY(count_word(w, text, n));
    }
    return TT_OK;
}

// ---- pairs -----------------------------------------------------------------------------------

static uint64_t hash_of(int32_t a, int32_t b)
{
    uint64_t x = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static tt_status grow_pairs(tti_bpe_words *w)
{
    int64_t size = TTI_MAX(4096, 2 * w->pair_table_size);
    int64_t *table = tti_calloc(w->ctx, (size_t)size, sizeof(*table));
    if (table == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < w->n_pairs; i++) {
        uint64_t at = hash_of(w->pairs[i].a, w->pairs[i].b);
        while (table[at & (uint64_t)(size - 1)] != 0)
            at++;
        table[at & (uint64_t)(size - 1)] = i + 1;
    }
    tti_free(w->ctx, w->pair_table);
    w->pair_table = table;
    w->pair_table_size = size;
    return TT_OK;
}

static tt_status pair_of(tti_bpe_words *w, int32_t a, int32_t b, int64_t *out)
{
    if (2 * (w->n_pairs + 1) > w->pair_table_size)
        TT_TRY(grow_pairs(w));
    uint64_t at = hash_of(a, b), mask = (uint64_t)(w->pair_table_size - 1);
    for (int64_t i; (i = w->pair_table[at & mask]) != 0; at++)
        if (w->pairs[i - 1].a == a && w->pairs[i - 1].b == b) {
            *out = i - 1;
            return TT_OK;
        }
    if (!tti_grow(w->ctx, &w->pairs, &w->cap_pairs, w->n_pairs + 1, sizeof(*w->pairs)))
        return TT_ENOMEM;
    w->pairs[w->n_pairs] = (pair){.a = a, .b = b};
    w->pair_table[at & mask] = w->n_pairs + 1;
    *out = w->n_pairs++;
    return TT_OK;
}

// A pair of word i comes or goes.
static tt_status change(tti_bpe_words *w, int32_t a, int32_t b, int64_t i, int64_t by)
{
    int64_t k;
    TT_TRY(pair_of(w, a, b, &k));
    pair *p = &w->pairs[k];
    p->count += by;
    if (by < 0 || (p->n > 0 && p->words[p->n - 1] == (int32_t)i))
        return TT_OK;
    if (!tti_grow(w->ctx, &p->words, &p->cap, p->n + 1, sizeof(*p->words)))
        return TT_ENOMEM;
    p->words[p->n++] = (int32_t)i;
    return TT_OK;
}

// ---- the heap --------------------------------------------------------------------------------

static bool comes_first(const tti_bpe_words *w, int64_t ca, int64_t a, int64_t cb, int64_t b)
{
    const pair *x = &w->pairs[a], *y = &w->pairs[b];
    return ca != cb ? ca > cb : x->a != y->a ? x->a < y->a : x->b < y->b;
}

static tt_status push(tti_bpe_words *w, int64_t k)
{
    int64_t count = w->pairs[k].count, i = w->n_heap;
    if (count < 2)
        return TT_OK;
    if (!tti_grow(w->ctx, &w->heap, &w->cap_heap, i + 1, sizeof(*w->heap)) ||
        !tti_grow(w->ctx, &w->heap_count, &w->cap_heap_count, i + 1, sizeof(*w->heap_count)))
        return TT_ENOMEM;
    w->n_heap++;
    for (; i > 0; i = (i - 1) / 2) {
        int64_t up = (i - 1) / 2;
        if (!comes_first(w, count, k, w->heap_count[up], w->heap[up]))
            break;
        w->heap[i] = w->heap[up];
        w->heap_count[i] = w->heap_count[up];
    }
    w->heap[i] = k;
    w->heap_count[i] = count;
    return TT_OK;
}

static int64_t pop(tti_bpe_words *w, int64_t *count)
{
    int64_t top = w->heap[0], n = --w->n_heap, last = w->heap[n], c = w->heap_count[n], i = 0;
    *count = w->heap_count[0];
    for (int64_t k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n &&
            comes_first(w, w->heap_count[k + 1], w->heap[k + 1], w->heap_count[k], w->heap[k]))
            k++;
        if (!comes_first(w, w->heap_count[k], w->heap[k], c, last))
            break;
        w->heap[i] = w->heap[k];
        w->heap_count[i] = w->heap_count[k];
    }
    w->heap[i] = last;
    w->heap_count[i] = c;
    return top;
}

// ---- learning --------------------------------------------------------------------------------

static tt_status change_all(tti_bpe_words *w, int64_t i, int64_t by)
{
    const word *x = &w->words[i];
    for (int64_t k = 0; k + 1 < x->n; k++)
        TT_TRY(change(w, w->ids[x->at + k], w->ids[x->at + k + 1], i, by * x->count));
    return TT_OK;
}

// Merges a pair in word i; its pairs are counted anew, and those that came are put on the heap.
static tt_status merge_in(tti_bpe_words *w, int64_t i, int32_t a, int32_t b, int32_t made)
{
    word *x = &w->words[i];
    int32_t *id = w->ids + x->at;
    bool has = false;
    for (int64_t k = 0; k + 1 < x->n && !has; k++)
        has = id[k] == a && id[k + 1] == b;
    if (!has)
        return TT_OK;
    TT_TRY(change_all(w, i, -1));
    int64_t n = 0;
    for (int64_t k = 0; k < x->n; n++) {
        bool here = k + 1 < x->n && id[k] == a && id[k + 1] == b;
        id[n] = here ? made : id[k];
        k += here ? 2 : 1;
    }
    x->n = n;
    return change_all(w, i, 1);
}

static tt_status merge_pair(tti_bpe_words *w, int64_t k, int32_t made)
{
    pair p = w->pairs[k];
    int64_t before = w->n_pairs;
    w->pairs[k].words = NULL; // its list is taken apart here
    w->pairs[k].n = w->pairs[k].cap = 0;
    tt_status st = TT_OK;
    for (int64_t i = 0; st == TT_OK && i < p.n; i++)
        st = merge_in(w, p.words[i], p.a, p.b, made);
    tti_free(w->ctx, p.words);
    for (int64_t i = before; st == TT_OK && i < w->n_pairs; i++) // all pairs with the new token
        st = push(w, i);
    return st;
}

static tt_status start(tti_bpe_words *w, const int32_t byte[256])
{
    w->ids = tti_calloc(w->ctx, (size_t)w->n_pool + 1, sizeof(*w->ids));
    if (w->ids == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < w->n_pool; i++)
        w->ids[i] = byte[(unsigned char)w->pool[i]];
    for (int64_t i = 0; i < w->n; i++)
        TT_TRY(change_all(w, i, 1));
    for (int64_t i = 0; i < w->n_pairs; i++)
        TT_TRY(push(w, i));
    return TT_OK;
}

// Bytes are tokens 0 to 255, in the order of the characters that stand for them.
static void order_bytes(int32_t byte[256])
{
    for (int i = 0; i < 256; i++) {
        byte[i] = 0;
        for (int k = 0; k < 256; k++)
            byte[i] += tti_bpe_char(k) < tti_bpe_char(i);
    }
}

static tt_status learn_merges(tti_bpe_words *w, int64_t vocab, tti_bpe *t)
{
    while (t->n < vocab && w->n_heap > 0) {
        int64_t count, k = pop(w, &count);
        if (count != w->pairs[k].count) { // it has fallen
            TT_TRY(push(w, k));
            continue;
        }
        t->merges[t->n_merges] = (tti_bpe_merge){w->pairs[k].a, w->pairs[k].b};
        t->made[t->n_merges++] = (int32_t)t->n;
        TT_TRY(merge_pair(w, k, (int32_t)t->n++));
    }
    return TT_OK;
}

// Texts of all tokens, from those that they were made of.
static tt_status spell(tti_bpe *t)
{
    tti_text pool = {.ctx = t->ctx};
    char *bytes = tti_alloc(t->ctx, 256);
    for (int i = 0; bytes != NULL && i < 256; i++)
        bytes[t->byte[i]] = (char)i;
    for (int64_t i = 0; bytes != NULL && i < t->n; i++) {
        t->at[i] = pool.n;
        if (i < 256) {
            tti_text_put(&pool, bytes + i, 1);
        } else {
            const tti_bpe_merge *m = &t->merges[i - 256];
            int64_t part[2] = {m->a, m->b};
            for (int k = 0; k < 2; k++) {
                tti_text s = {.ctx = t->ctx}; // the pool may move while it is read
                size_t n = (size_t)(t->at[part[k] + 1] - t->at[part[k]]);
                tti_text_put(&s, pool.s + t->at[part[k]], n);
                if (!s.failed && !pool.failed)
                    tti_text_put(&pool, s.s, n);
                pool.failed |= s.failed;
                tti_text_free(&s);
            }
        }
        t->at[i + 1] = pool.n;
    }
    tti_free(t->ctx, bytes);
    t->pool = pool.s;
    return bytes == NULL || pool.failed ? TT_ENOMEM : TT_OK;
}

tt_status tti_bpe_learn(tti_bpe_words *w, int64_t vocab, tti_bpe *out)
{
    if (vocab < 256 || vocab > TTI_BPE_MAX)
        return TT_FAIL(w->ctx, TT_EINVAL, "tokenize: a vocabulary of %lld; it must have 256 to %d",
                       (long long)vocab, TTI_BPE_MAX);
    *out = (tti_bpe){.ctx = w->ctx, .n = 256};
    order_bytes(out->byte);
    out->merges = tti_calloc(w->ctx, (size_t)vocab, sizeof(*out->merges));
    out->made = tti_calloc(w->ctx, (size_t)vocab, sizeof(*out->made));
    out->at = tti_calloc(w->ctx, (size_t)vocab + 1, sizeof(*out->at));
    tt_status st = out->merges == NULL || out->made == NULL || out->at == NULL ? TT_ENOMEM : TT_OK;
    if (st == TT_OK)
        st = start(w, out->byte);
    if (st == TT_OK)
        st = learn_merges(w, vocab, out);
    if (st == TT_OK)
        st = spell(out);
    if (st == TT_OK)
        st = tti_bpe_index(out);
    if (st != TT_OK)
        tti_bpe_free(out);
    return st;
}
