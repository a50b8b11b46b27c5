/*
 * text.h - texts as symbols: the vocabulary, and the way between symbols and text.
 */
#ifndef TUTTI_DATA_TEXT_H
#define TUTTI_DATA_TEXT_H

#include "base/base.h"
#include <tutti/data.h>

// Symbol i is byte i, or the character points[i]; points are in rising order.
typedef struct tti_vocab {
    bool is_bytes;
    int64_t n;
    const uint32_t *points; // borrowed; NULL for bytes
} tti_vocab;

// The vocabulary of a data set of text, borrowed until that is freed; false for other data sets.
bool tti_text_vocab(const tt_data *d, tti_vocab *out);
// The symbol of a character; -1 if it is not in the vocabulary.
int32_t tti_vocab_find(const tti_vocab *v, uint32_t point);
// Appends symbols as text. A symbol that is none is the replacement character.
void tti_vocab_put(const tti_vocab *v, const int32_t *symbols, int64_t n, tti_text *out);
// Symbols of a text, free with tti_free(); a character that is not in the vocabulary is an error.
tt_status tti_vocab_symbols(tt_ctx *ctx, const tti_vocab *v, const char *text, size_t bytes,
                            int32_t **out, int64_t *n) TTI_CHECKED;

// The character at p: its length, 0 when n bytes are too few, -1 when it is no UTF-8.
int tti_utf8_get(const unsigned char *p, size_t n, uint32_t *point);
int tti_utf8_put(uint32_t point, char out[4]); // gives the length

#endif
