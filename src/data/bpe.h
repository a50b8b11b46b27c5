/*
 * bpe.h - byte-level BPE: text to tokens and back, learned here or read from a tokenizer.json of
 * Hugging Face's tokenizers.
 *
 * A text is cut into words by the rule of GPT-2 (contractions, letters, numbers, other signs, each
 * with one space before it; runs of spaces). A word is its bytes; pairs of neighbours become one
 * token, by the order in which they were learned. Every text has tokens, and they give it back.
 */
#ifndef TUTTI_DATA_BPE_H
#define TUTTI_DATA_BPE_H

#include "base/base.h"

#define TTI_BPE_MAX (1 << 20) // tokens

typedef struct tti_bpe_merge {
    int32_t a, b;
} tti_bpe_merge;

typedef struct tti_bpe_special {
    char *text;
    size_t bytes;
    int32_t id;
} tti_bpe_special;

typedef struct tti_bpe {
    tt_ctx *ctx;
    int64_t n;         // tokens
    char *pool;        // bytes of all tokens
    int64_t *at;       // of token i: from at[i] up to at[i + 1]
    int32_t byte[256]; // the token of a single byte
    tti_bpe_merge *merges;
    int32_t *made; // the token that merge i makes
    int64_t n_merges;
    int32_t *table; // of pairs: number of the merge + 1
    int64_t table_size;
    tti_bpe_special *specials; // found in text before words are
    int n_specials;
    bool space_first; // a text that begins with no space gets one
} tti_bpe;

void tti_bpe_free(tti_bpe *t);
// Reads a tokenizer.json; what it asks for and is not known here is refused by name.
tt_status tti_bpe_read(tt_ctx *ctx, const char *path, tti_bpe *out) TTI_CHECKED;
// The same of a text in memory; path is for messages.
tt_status tti_bpe_parse(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                        tti_bpe *out) TTI_CHECKED;
tt_status tti_bpe_write(const tti_bpe *t, const char *path) TTI_CHECKED;
/*
 * Learns vocab tokens, 256 of them bytes, from texts that are given one by one with
 * tti_bpe_count(). The most frequent pair is merged first; of equals the one of lower tokens. Fewer
 * are learned when no pair occurs twice.
 */
typedef struct tti_bpe_words tti_bpe_words;
tti_bpe_words *tti_bpe_words_new(tt_ctx *ctx);
void tti_bpe_words_free(tti_bpe_words *w);
tt_status tti_bpe_count(tti_bpe_words *w, const char *text, size_t bytes) TTI_CHECKED;
tt_status tti_bpe_learn(tti_bpe_words *w, int64_t vocab, tti_bpe *out) TTI_CHECKED;

// Tokens of a text, appended to *out, which grows; *n of *cap are used.
tt_status tti_bpe_encode(const tti_bpe *t, const char *text, size_t bytes, int32_t **out,
                         int64_t *n, int64_t *cap) TTI_CHECKED;
void tti_bpe_decode(const tti_bpe *t, const int32_t *ids, int64_t n, tti_text *out);

// bpe_split.c: bytes of the word that text begins with; 0: there is no text.
size_t tti_bpe_word(const char *text, size_t bytes);
// The character that stands for a byte in a tokenizer.json, and back; -1: it stands for none.
uint32_t tti_bpe_char(int byte);
int tti_bpe_byte(uint32_t point);
// Makes table of merges; the rest is filled in.
tt_status tti_bpe_index(tti_bpe *t) TTI_CHECKED;
int64_t tti_bpe_find(const tti_bpe *t, int32_t a, int32_t b); // the merge of a pair; -1: none

#endif
