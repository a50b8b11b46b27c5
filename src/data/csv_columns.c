/*
 * csv_columns.c - the columns of a CSV file: which are inputs and targets, what may be wrong with
 * them, where a value is, and cells of columns that are neither.
 */
#include "data/csv_own.h"
#include <stdio.h>
#include <string.h>

#define COLUMNS_SHOWN 12
#define NEAREST       500

static int64_t part_of(const tti_csv *c, int64_t at)
{
    int64_t k = c->n_parts - 1;
    while (k > 0 && c->part[k].base > at)
        k--;
    return k;
}

void tti_csv_begin(const tti_csv *c, int64_t from, int64_t to, tti_csv_at *at)
{
    const tti_csv_part *p = &c->part[part_of(c, from)];
    tti_scan_begin(&at->scan, &p->bytes, from - p->base, TTI_MIN(to - p->base, p->bytes.n));
    at->comma = c->comma;
    at->quote = c->quote;
    at->line = p->line;
}

const char *tti_csv_path(const tti_csv *c, int64_t record)
{
    int64_t i = record - c->first;
    int64_t k = i >= 0 && i < c->rows ? part_of(c, c->start[i]) : c->now;
    return c->part[k].bytes.path;
}

tt_status tti_csv_bad_cell(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                           int64_t column, const tti_cell *cell, const char *what)
{
    char where[48] = "";
    if (line > 0)
        snprintf(where, sizeof(where), ", line %lld", (long long)line);
    return TT_FAIL(ctx, TT_EIO, "%s: record %lld%s, column '%s': '%.40s'%s %s",
                   tti_csv_path(c, record), (long long)record, where, c->names[column], cell->text,
                   cell->n > 40 ? "..." : "", what);
}

// ---- which they are --------------------------------------------------------------------------

const char *tti_csv_hint(const tti_csv *c, char out[TTI_CSV_HINT])
{
    static const char others[] = ";\t|,";
    out[0] = '\0';
    bool numbers = !c->no_header;
    float v;
    for (int64_t i = 0; numbers && i < c->n; i++)
        numbers = tti_csv_number(c->names[i], &v);
    for (const char *s = others; c->n == 1 && *s != '\0'; s++)
        if (*s != c->comma && strchr(c->names[0], *s) != NULL) {
            snprintf(out, TTI_CSV_HINT, "; the line looks separated by '%.1s': set comma: %s", s,
                     *s == '\t'  ? "tab"
                     : *s == ';' ? "\";\""
                     : *s == '|' ? "\"|\""
                                 : "\",\"");
            return out;
        }
    if (numbers)
        snprintf(out, TTI_CSV_HINT,
                 "; the first line has only numbers: if the file has no header line, set "
                 "no_header: true, and columns are called c0, c1, ...");
    return out;
}

// "; its columns are a, b"
static tt_status no_column(tt_ctx *ctx, const tti_csv *c, const char *name)
{
    char more[TTI_CSV_HINT];
    tti_text list = {.ctx = ctx};
    const char *names[NEAREST + 1];
    int64_t n = TTI_MIN(c->n, NEAREST);
    for (int64_t i = 0; i < n; i++)
        names[i] = c->names[i];
    names[n] = NULL;
    const char *near = tti_nearest(name, names);
    for (int64_t i = 0; i < c->n && i < COLUMNS_SHOWN; i++)
        tti_text_add(&list, "%s'%.60s'", i > 0 ? ", " : "", c->names[i]);
    if (c->n > COLUMNS_SHOWN)
        tti_text_add(&list, ", ... '%.60s'", c->names[c->n - 1]);
    tt_status st = TT_FAIL(ctx, TT_EINVAL, "%s: has no column '%s'%s%s%s; its columns are %s%s",
                           c->part[c->now].bytes.path, name, near != NULL ? "; did you mean '" : "",
                           near != NULL ? near : "", near != NULL ? "'?" : "",
                           list.s != NULL ? list.s : "", tti_csv_hint(c, more));
    tti_text_free(&list);
    return st;
}

tt_status tti_csv_column(tt_ctx *ctx, const tti_csv *c, const char *name, int64_t *out)
{
    int64_t found = -1;
    for (int64_t i = 0; i < c->n; i++) {
        if (strcmp(c->names[i], name) != 0)
            continue;
        if (found >= 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: two columns have the name '%s'",
                           c->part[c->now].bytes.path, name);
        found = i;
    }
    if (found < 0)
        return no_column(ctx, c, name);
    *out = found;
    return TT_OK;
}

// The name in quotes at s, "New York, NY"; two quotes are one. *n: its bytes, kept as far as there
// is room.
static const char *quoted_name(const char *s, char name[TTI_CELL_MAX], size_t *n)
{
    *n = 0;
    for (s++; *s != '\0' && (*s != '"' || s[1] == '"'); s++) {
        s += *s == '"';
        if (*n < TTI_CELL_MAX - 1)
            name[*n] = *s;
        ++*n;
    }
    name[TTI_MIN(*n, TTI_CELL_MAX - 1)] = '\0';
    return *s == '"' ? s + 1 : s;
}

static tt_status check_name(tt_ctx *ctx, const char *s, size_t len)
{
    if (len < TTI_CELL_MAX)
        return TT_OK;
    return TT_FAIL(ctx, TT_EINVAL, "csv: the name '%.40s...' has %zu bytes; at most %d are allowed",
                   s, len, TTI_CELL_MAX - 1);
}

tt_status tti_csv_next_name(tt_ctx *ctx, const char **list, char name[TTI_CELL_MAX], bool *more)
{
    const char *s = *list + strspn(*list, " \t,");
    size_t n = strcspn(s, ","), len = n;
    *more = n > 0;
    if (*s == '"') {
        *list = quoted_name(s, name, &len);
        return check_name(ctx, name, len);
    }
    *list = s + n;
    while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
        len--;
    TT_TRY(check_name(ctx, s, len));
    memcpy(name, s, len);
    name[len] = '\0';
    return TT_OK;
}

void tti_csv_list(tti_text *t, const char *name)
{
    tti_text_add(t, "%s\"", t->n > 0 ? ", " : "");
    for (const char *s = name; *s != '\0'; s++)
        tti_text_add(t, *s == '"' ? "\"\"" : "%c", *s);
    tti_text_add(t, "\"");
}

static tt_status place_columns(tt_ctx *ctx, const tti_csv *c, const char *list, int32_t *place,
                               int64_t *n)
{
    char name[TTI_CELL_MAX];
    for (bool more;;) {
        int64_t column = 0;
        TT_TRY(tti_csv_next_name(ctx, &list, name, &more));
        if (!more)
            return TT_OK;
        TT_TRY(tti_csv_column(ctx, c, name, &column));
        if (place[column] >= 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: column '%s' is named twice",
                           c->part[c->now].bytes.path, name);
        place[column] = (int32_t)(*n)++;
    }
}

// Inputs are all columns but the targets and those to skip.
static tt_status place_others(tt_ctx *ctx, tti_csv *c, const char *skip)
{
    int64_t n = 0;
    TT_TRY(place_columns(ctx, c, skip, c->x, &n)); // marked for a moment
    for (int64_t i = 0; i < c->n; i++) {
        bool is_left = c->x[i] < 0 && c->y[i] < 0;
        c->x[i] = is_left ? (int32_t)c->n_x++ : -1;
    }
    return TT_OK;
}

tt_status tti_csv_choose(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o)
{
    const char *skip = o->skip != NULL ? o->skip : "";
    c->x = tti_alloc(ctx, (size_t)c->n * sizeof(*c->x));
    c->y = tti_alloc(ctx, (size_t)c->n * sizeof(*c->y));
    if (c->x == NULL || c->y == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < c->n; i++)
        c->x[i] = c->y[i] = -1;
    if (o->y[0] == '\0')
        c->y[c->n - 1] = (int32_t)c->n_y++;
    else if (strcmp(o->y, "-") != 0)
        TT_TRY(place_columns(ctx, c, o->y, c->y, &c->n_y));
    if (o->x[0] != '\0' && skip[0] != '\0')
        return TT_FAIL(ctx, TT_EINVAL, "csv: give the inputs with x, or the others with skip");
    if (o->x[0] != '\0')
        TT_TRY(place_columns(ctx, c, o->x, c->x, &c->n_x));
    else
        TT_TRY(place_others(ctx, c, skip));
    char more[TTI_CSV_HINT];
    if (c->n_x == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: no column is left for x%s", c->part[c->now].bytes.path,
                       tti_csv_hint(c, more));
    return TT_OK;
}

// ---- where a value is ------------------------------------------------------------------------

// The line in which a record begins.
static int64_t line_of(const tti_csv *c, int64_t record)
{
    unsigned char chunk[4096];
    const tti_csv_part *p = &c->part[part_of(c, c->start[record])];
    int64_t line = p->line, end = c->start[record] - p->base;
    tt_ctx quiet = {0}; // the file may be gone by now: then the line is not known
    tti_ctx_init(&quiet);
    tti_attempt look;
    tti_attempt_begin(&quiet, &look);
    for (int64_t at = p->body, n; line > 0 && at < end; at += n) {
        n = TTI_MIN(end - at, (int64_t)sizeof(chunk));
        if (tti_bytes_read(&quiet, &p->bytes, at, (size_t)n, chunk) != TT_OK)
            line = 0;
        for (int64_t i = 0; line > 0 && i < n; i++)
            line += chunk[i] == '\n';
    }
    (void)tti_attempt_end(&quiet, &look);
    tti_ctx_deinit(&quiet);
    return line;
}

bool tti_csv_where(const tt_data *d, int64_t record, int field, int64_t element, tti_text *t)
{
    if (!tti_csv_is(d))
        return false;
    const tti_csv *c = d->source.self;
    if (c->window > 0)
        record = record * c->stride + (field == 0 && element >= 0 ? element / c->wide : 0);
    int64_t line = line_of(c, record);
    tti_text_add(t, "record %lld", (long long)(c->first + record));
    if (line > 0)
        tti_text_add(t, ", line %lld", (long long)line);
    if (field == 0 && element >= 0)
        element %= c->wide;
    for (int64_t i = 0, found = -1; i <= c->n; i++) {
        if (i == c->n && found >= 0)
            tti_text_add(t, ", column '%s'", c->names[found]);
        else if (i < c->n && field == 0 && c->x[i] >= 0 && c->at[i] <= element &&
                 (found < 0 || c->at[i] > c->at[found]))
            found = i;
        else if (i < c->n && field != 0 && c->y[i] >= 0 && c->y[i] == element)
            found = i;
    }
    return true;
}

bool tti_csv_has_column(const tt_data *d, const char *name)
{
    const tti_csv *c = tti_csv_is(d) ? d->source.self : NULL;
    for (int64_t i = 0; c != NULL && i < c->n; i++)
        if (strcmp(c->names[i], name) == 0)
            return true;
    return false;
}

tt_status tti_csv_hash_column(const tt_data *d, const char *name, const int64_t *records, int64_t n,
                              uint64_t *out)
{
    const tti_csv *c = d->source.self;
    int64_t column = 0;
    TT_TRY(tti_csv_column(d->ctx, c, name, &column));
    if (c->window > 0)
        return TT_FAIL(d->ctx, TT_EINVAL,
                       "csv: stratify and group need single rows; with window, use take: last");
    for (int64_t i = 0; i < n; i++) {
        int64_t r = records != NULL ? records[i] : i;
        tti_csv_at at;
        tti_cell cell = {0};
        bool more = true;
        tti_csv_begin(c, c->start[r], r + 1 < c->rows ? c->start[r + 1] : INT64_MAX / 2, &at);
        for (int64_t k = 0; k <= column && more && (k == 0 || !cell.is_last); k++)
            TT_TRY(tti_csv_cell(d->ctx, &at, &cell, &more));
        if (cell.is_long)
            return tti_csv_bad_cell(d->ctx, c, c->first + r, line_of(c, r), column, &cell,
                                    "is too long");
        out[i] = tti_hash64(cell.text, (size_t)cell.n, 0);
    }
    return TT_OK;
}
