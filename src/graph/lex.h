/*
 * lex.h - reading words and numbers from bytes of known length, with messages that name line and
 * column. Functions give false after recording why.
 */
#ifndef TUTTI_GRAPH_LEX_H
#define TUTTI_GRAPH_LEX_H

#include "base/base.h"

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

#endif
