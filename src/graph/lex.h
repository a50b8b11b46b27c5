/*
 * lex.h - reading words and numbers from bytes of known length, with messages that name line and
 * column. Functions give false after recording why.
 */
#ifndef TUTTI_GRAPH_LEX_H
#define TUTTI_GRAPH_LEX_H

#include "graph/graph.h"

typedef struct tti_lex {
    tt_ctx *ctx;
    const char *at, *end;
    const char *start; // of the line
    int line;
} tti_lex;

// Records TT_EPARSE "graph text line 12 column 5: ..." for the place at; gives false.
bool tti_lex_fail(const tti_lex *p, const char *at, const char *fmt, ...) TT_PRINTF(3, 4);

char tti_lex_peek(const tti_lex *p); // the next character; zero at the end of the text
void tti_lex_skip(tti_lex *p);       // spaces
bool tti_lex_end(tti_lex *p);        // skips spaces: is this the end of the line?
bool tti_lex_is(tti_lex *p, char c); // skips spaces: takes c if it is there
bool tti_lex_expect(tti_lex *p, char c, const char *after);

// Anything in quotes, at the opening one.
bool tti_lex_quoted(tti_lex *p, char *out, size_t size, const char *what);
// A bare word of name characters and those in more, or anything in quotes. Not empty.
bool tti_lex_word(tti_lex *p, const char *more, char *out, size_t size, const char *what);
// A whole number from 0 to max.
bool tti_lex_number(tti_lex *p, int max, int *out, const char *what);

// Bytes that the constants of a text may take.
typedef struct tti_data_room {
    size_t limit, left; // in all, and still
} tti_data_room;
/*
 * parse_data.c: what follows the word data, for a constant of this type and shape. *out is for
 * tti_free(), also after a failure; it is left alone if nothing was allocated.
 */
bool tti_parse_data(tti_lex *p, const tti_feed_attr *a, tti_data_room *room, char **out);

#endif
