/*
 * csv_header.c - the first line of CSV files: separators, names of columns, the same in all files.
 */
#include "data/csv_own.h"
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX 1000000

// Text has no size in front, but no zero bytes either: what begins with them is not inflated.
tt_status tti_csv_promise(tt_ctx *ctx, const tti_bytes *head, int64_t *size)
{
    (void)size;
    const unsigned char *zero = memchr(head->data, 0, (size_t)head->n);
    if (zero == NULL)
        return TT_OK;
    int64_t line = 1, column = 1;
    for (const unsigned char *s = head->data; s < zero; s++, column++)
        if (*s == '\n') {
            line++;
            column = 0;
        }
    return tti_csv_zero(ctx, head->path, line, column);
}

static tt_status add_column(tt_ctx *ctx, tti_csv *c, const char *name)
{
    if (!tti_grow(ctx, &c->names, &c->cap, c->n + 1, sizeof(*c->names)) ||
        (c->names[c->n] = tti_strdup(ctx, name)) == NULL)
        return TT_ENOMEM;
    c->n++;
    return TT_OK;
}

// A column of a later file, which must be that of the first.
static tt_status same_column(tt_ctx *ctx, const tti_csv *c, const tti_csv_part *p, int64_t i,
                             const char *name)
{
    if (i < c->n && (c->no_header || strcmp(c->names[i], name) == 0))
        return TT_OK;
    return TT_FAIL(ctx, TT_EIO,
                   "%s: column %lld is '%s', but in %s it is '%s'; all files need the "
                   "same columns in the same order",
                   p->bytes.path, (long long)i, name, c->part[0].bytes.path,
                   i < c->n ? c->names[i] : "missing");
}

// The first line: names of columns, or only how many there are.
tt_status tti_csv_header(tt_ctx *ctx, tti_csv *c, tti_csv_part *p, bool no_header)
{
    tti_cell cell = {0};
    unsigned char mark[3];
    int64_t n = 0;
    if (p->bytes.n >= 3) { // a byte order mark is no text
        TT_TRY(tti_bytes_read(ctx, &p->bytes, 0, 3, mark));
        p->body = memcmp(mark, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    }
    p->line = 1;
    tti_csv_at at;
    tti_csv_begin(c, p->base + p->body, INT64_MAX / 2, &at);
    while (!cell.is_last) {
        bool more;
        char made[32];
        TT_TRY(tti_csv_cell(ctx, &at, &cell, &more));
        if (!more && n == 0)
            return TT_FAIL(ctx, TT_EIO, "%s: the file is empty", p->bytes.path);
        if (n == COLUMNS_MAX)
            return TT_FAIL(ctx, TT_EIO, "%s: has more than %d columns", p->bytes.path, COLUMNS_MAX);
        if (cell.is_last && cell.n == 0 && n == 0 && !cell.is_quoted) {
            cell.is_last = false; // an empty line
            continue;
        }
        if (cell.is_long && !no_header)
            return TT_FAIL(ctx, TT_EIO,
                           "%s: the name of column %lld, '%.40s...', is longer than %d bytes",
                           p->bytes.path, (long long)n, cell.text, TTI_CELL_MAX - 1);
        snprintf(made, sizeof(made), "c%lld", (long long)n);
        const char *name = no_header ? made : cell.text;
        TT_TRY(p == c->part ? add_column(ctx, c, name) : same_column(ctx, c, p, n, name));
        n++;
    }
    if (n < c->n)
        return same_column(ctx, c, p, c->n, "missing");
    if (!no_header) {
        p->body = tti_scan_at(&at.scan);
        p->line = at.line;
    }
    return TT_OK;
}

tt_status tti_csv_separator(tt_ctx *ctx, const char *text, char *out)
{
    *out = strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0 ? '\t' : text[0];
    bool one = text[0] != '\0' && text[1] == '\0';
    if ((!one && *out != '\t') || strchr(" \"\r\n", *out) != NULL)
        return TT_FAIL(ctx, TT_EINVAL,
                       "csv: comma is '%.16s'; use one character other than a blank or a quote, or "
                       "the word tab",
                       text);
    return TT_OK;
}

void tti_columns_free(tt_ctx *ctx, tti_columns *c)
{
    for (int64_t i = 0; i < c->n; i++)
        tti_free(ctx, c->names[i]);
    tti_free(ctx, c->names);
    tti_free(ctx, c->x);
    tti_free(ctx, c->y);
}

tt_status tti_csv_columns(tt_ctx *ctx, const tt_csv_opts *o, tti_columns *out)
{
    tti_csv_part p = {.bytes = {.fd = -1}, .line = 1};
    tti_csv c = {.part = &p, .n_parts = 1, .quote = '"'};
    *out = (tti_columns){0};
    TT_TRY(tti_csv_separator(ctx, o->comma, &c.comma));
    TT_TRY(tti_bytes_open_as(ctx, o->file, 0, tti_csv_promise, &p.bytes));
    tt_status st = tti_csv_header(ctx, &c, &p, o->no_header);
    if (st == TT_OK)
        st = tti_csv_choose(ctx, &c, o);
    tti_bytes_close(ctx, &p.bytes);
    *out = (tti_columns){c.names, c.n, c.x, c.y, c.n_x, c.n_y};
    if (st != TT_OK) {
        tti_columns_free(ctx, out);
        *out = (tti_columns){0};
    }
    return st;
}
