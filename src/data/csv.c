/*
 * csv.c - columns of a CSV file as a source.
 *
 * Opening reads the file once: where records begin is kept, every record must have all columns, and
 * every cell that is used must be a number, or a class. After that record i is read where it lies.
 */
#include "base/value.h"
#include "data/csv_own.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX 1000000

// ---- columns ---------------------------------------------------------------------------------

// Text has no size in front, but no zero bytes either: what begins with them is not inflated.
static tt_status promise(tt_ctx *ctx, const tti_bytes *head, int64_t *size)
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

// The first line: names of columns, or only how many there are.
static tt_status read_header(tt_ctx *ctx, tti_csv *c, bool no_header)
{
    tti_cell cell = {0};
    unsigned char mark[3];
    if (c->bytes.n >= 3) { // a byte order mark is no text
        TT_TRY(tti_bytes_read(ctx, &c->bytes, 0, 3, mark));
        c->body = memcmp(mark, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    }
    c->line = 1;
    tti_csv_at at;
    tti_csv_begin(c, c->body, c->bytes.n, &at);
    while (!cell.is_last) {
        bool more;
        char made[32];
        TT_TRY(tti_csv_cell(ctx, &at, &cell, &more));
        if (!more && c->n == 0)
            return TT_FAIL(ctx, TT_EIO, "%s: the file is empty", c->bytes.path);
        if (c->n == COLUMNS_MAX)
            return TT_FAIL(ctx, TT_EIO, "%s: has more than %d columns", c->bytes.path, COLUMNS_MAX);
        if (cell.is_last && cell.n == 0 && c->n == 0 && !cell.is_quoted) {
            cell.is_last = false; // an empty line
            continue;
        }
        if (cell.is_long && !no_header)
            return TT_FAIL(ctx, TT_EIO,
                           "%s: the name of column %lld, '%.40s...', is longer than %d bytes",
                           c->bytes.path, (long long)c->n, cell.text, TTI_CELL_MAX - 1);
        snprintf(made, sizeof(made), "c%lld", (long long)c->n);
        if (!tti_grow(ctx, &c->names, &c->cap, c->n + 1, sizeof(*c->names)) ||
            (c->names[c->n] = tti_strdup(ctx, no_header ? made : cell.text)) == NULL)
            return TT_ENOMEM;
        c->n++;
    }
    if (!no_header) {
        c->body = tti_scan_at(&at.scan);
        c->line = at.line;
    }
    return TT_OK;
}

// ---- records ---------------------------------------------------------------------------------

// A cell that is not a number, and what to do about it.
static tt_status not_a_number(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                              int64_t column, const tti_cell *cell)
{
    char what[TTI_CSV_HINT];
    float v;
    bool is_word = !tti_float_parse(cell->text, &v); // "nan", "1e39" and the like are none
    const char *advice =
        c->no_header && record == 0 && is_word ? "; if the first line names the columns, remove "
                                                 "no_header"
        : c->y[column] >= 0 ? "; if the column has class names, set classes: true"
                            : "; leave the column out (skip, or x with the inputs), or write "
                              "numbers in its place";
    if (cell->n == 0)
        snprintf(what, sizeof(what),
                 "is empty; fill it in, remove the record, or leave the column out (skip)");
    else
        snprintf(what, sizeof(what), "is not a number that f32 can hold%s", is_word ? advice : "");
    return tti_csv_bad_cell(ctx, c, record, line, column, cell, what);
}

static int32_t class_of(const tti_csv *c, const char *word)
{
    return c->has_numbers ? tti_words_number(word) : tti_words_find(&c->words, word);
}

// What a cell is in its record: to x, to y, or to neither; out may be NULL.
static tt_status use_cell(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                          int64_t column, const tti_cell *cell, void *const *out)
{
    bool is_x = c->x[column] >= 0, is_y = c->y[column] >= 0;
    float v = 0;
    if (!is_x && !is_y)
        return TT_OK;
    if (cell->is_long)
        return tti_csv_bad_cell(ctx, c, record, line, column, cell, "is too long");
    if ((is_x || !c->has_classes) && !tti_csv_number(cell->text, &v))
        return not_a_number(ctx, c, record, line, column, cell);
    if (out == NULL)
        return TT_OK;
    if (is_x)
        ((float *)out[0])[c->x[column]] = v;
    if (is_y && !c->has_classes)
        ((float *)out[1])[c->y[column]] = v;
    if (is_y && c->has_classes) {
        *(int32_t *)out[1] = class_of(c, cell->text);
        if (*(int32_t *)out[1] < 0)
            return tti_csv_bad_cell(ctx, c, record, line, column, cell, "is not a class number");
    }
    return TT_OK;
}

static tt_status learn_class(tt_ctx *ctx, tti_csv *c, int64_t record, int64_t line, int64_t column,
                             const tti_cell *cell)
{
    if (!c->has_classes || c->y[column] < 0)
        return TT_OK;
    if (c->fixed_words)
        return tti_words_find(&c->words, cell->text) >= 0
                   ? TT_OK
                   : tti_csv_bad_cell(ctx, c, record, line, column, cell,
                                      "is not one of words, the classes that are known");
    if (cell->n == 0)
        return tti_csv_bad_cell(ctx, c, record, line, column, cell, "is empty");
    c->has_numbers &= tti_words_number(cell->text) >= 0;
    tt_status st = tti_words_add(ctx, &c->words, cell->text);
    if (st == TT_EINVAL)
        return TT_FAIL(ctx, TT_EIO, "%s: column '%s' has more than %d different words",
                       c->bytes.path, c->names[column], TTI_WORDS_MAX);
    return st;
}

/*
 * Reads one record: cells go to out, or, where that is NULL, are looked at for the first time.
 * *more is false at the end of the file; an empty line is no record and gives *n = 0 columns.
 */
static tt_status read_cells(tt_ctx *ctx, tti_csv *learn, const tti_csv *c, tti_csv_at *at,
                            int64_t record, void *const *out, int64_t *n, bool *more)
{
    tti_cell cell = {0};
    *n = 0;
    while (!cell.is_last) {
        int64_t line = at->line;
        TT_TRY(tti_csv_cell(ctx, at, &cell, more));
        if (*n == 0 && cell.is_last && cell.n == 0 && !cell.is_quoted)
            return TT_OK;
        if (*n < c->n) {
            if (learn != NULL)
                TT_TRY(learn_class(ctx, learn, record, line, *n, &cell));
            TT_TRY(use_cell(ctx, c, record, line, *n, &cell, out));
        }
        ++*n;
    }
    *more = true;
    return TT_OK;
}

static tt_status index_records(tt_ctx *ctx, tti_csv *c, int64_t count)
{
    tti_csv_at at;
    tti_csv_begin(c, c->body, c->bytes.n, &at);
    for (int64_t record = 0;;) {
        int64_t start = tti_scan_at(&at.scan), line = at.line, n;
        bool more;
        TT_TRY(read_cells(ctx, c, c, &at, record, NULL, &n, &more));
        if (!more)
            return TT_OK;
        if (n == 0)
            continue;
        if (n != c->n)
            return TT_FAIL(ctx, TT_EIO, "%s: record %lld, line %lld: %lld columns instead of %lld",
                           c->bytes.path, (long long)record, (long long)line, (long long)n,
                           (long long)c->n);
        if (record >= c->first && (count == 0 || record - c->first < count)) {
            if (!tti_grow(ctx, &c->start, &c->cap_start, c->count + 1, sizeof(*c->start)))
                return TT_ENOMEM;
            c->start[c->count++] = start;
        }
        record++;
    }
}

static tt_status csv_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const tti_csv *c = self;
    tti_csv_at at;
    int64_t n, end = i + 1 < c->count ? c->start[i + 1] : c->bytes.n;
    bool more;
    tti_csv_begin(c, c->start[i], end, &at);
    at.line = INT64_MIN / 2;
    TT_TRY(read_cells(ctx, NULL, c, &at, c->first + i, out, &n, &more));
    if (n != c->n)
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld has changed since the file was opened",
                       c->bytes.path, (long long)(c->first + i));
    return TT_OK;
}

// ---- opening ---------------------------------------------------------------------------------

static void csv_close(tt_ctx *ctx, void *self)
{
    tti_csv *c = self;
    for (int64_t i = 0; i < c->n; i++)
        tti_free(ctx, c->names[i]);
    tti_free(ctx, c->names);
    tti_free(ctx, c->x);
    tti_free(ctx, c->y);
    tti_free(ctx, c->start);
    tti_words_free(ctx, &c->words);
    tti_bytes_close(ctx, &c->bytes);
    tti_free(ctx, c);
}

static tt_status read_separator(tt_ctx *ctx, const char *text, char *out)
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
    tti_csv c = {.bytes = {.fd = -1}};
    *out = (tti_columns){0};
    TT_TRY(read_separator(ctx, o->comma, &c.comma));
    TT_TRY(tti_bytes_open_as(ctx, o->file, 0, promise, &c.bytes));
    tt_status st = read_header(ctx, &c, o->no_header);
    if (st == TT_OK)
        st = tti_csv_choose(ctx, &c, o);
    tti_bytes_close(ctx, &c.bytes);
    *out = (tti_columns){c.names, c.n, c.x, c.y, c.n_x, c.n_y};
    if (st != TT_OK) {
        tti_columns_free(ctx, out);
        *out = (tti_columns){0};
    }
    return st;
}

static tt_status csv_init(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o)
{
    char word[TTI_CELL_MAX];
    const char *words = o->words;
    TT_TRY(read_separator(ctx, o->comma, &c->comma));
    if (o->first < 0 || o->count < 0)
        return TT_FAIL(ctx, TT_EINVAL, "csv: cannot use %lld records from record %lld on",
                       (long long)o->count, (long long)o->first);
    c->no_header = o->no_header;
    TT_TRY(read_header(ctx, c, o->no_header));
    TT_TRY(tti_csv_choose(ctx, c, o));
    c->has_classes = o->classes || words[0] != '\0';
    if (c->has_classes && c->n_y != 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s: classes need one target column, not %lld",
                       c->bytes.path, (long long)c->n_y);
    for (bool more;;) {
        TT_TRY(tti_csv_next_name(ctx, &words, word, &more));
        if (!more)
            break;
        c->fixed_words = true;
        if (tti_words_add(ctx, &c->words, word) != TT_OK)
            return TT_FAIL(ctx, TT_EINVAL, "csv: words has more than %d entries", TTI_WORDS_MAX);
    }
    c->has_numbers = c->has_classes && !c->fixed_words;
    c->first = o->first;
    char more[TTI_CSV_HINT];
    if (c->n > 1 && tti_csv_hint(c, more)[0] != '\0')
        TT_LOG(ctx, TT_WARN, "%s%s", c->bytes.path, more);
    TT_TRY(index_records(ctx, c, o->count));
    if (c->count == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records%s", c->bytes.path,
                       o->first > 0 ? " there" : "");
    return TT_OK;
}

static int64_t count_classes(const tti_csv *c)
{
    int32_t most = 0;
    if (!c->has_numbers)
        return c->words.n;
    for (int64_t i = 0; i < c->words.n; i++)
        most = TTI_MAX(most, tti_words_number(c->words.words[i]));
    return (int64_t)most + 1;
}

tt_status tti_csv_source(tt_ctx *ctx, tti_bytes *b, const tt_csv_opts *o, tt_source *out)
{
    tti_csv *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL) {
        tti_bytes_close(ctx, b);
        return TT_ENOMEM;
    }
    c->bytes = *b;
    *b = (tti_bytes){.fd = -1};
    tt_status st = csv_init(ctx, c, o);
    if (st != TT_OK) {
        csv_close(ctx, c);
        return st;
    }
    *out = (tt_source){.count = c->count,
                       .n_fields = c->n_y > 0 ? 2 : 1,
                       .self = c,
                       .read = csv_read,
                       .close = csv_close};
    out->fields[0] = (tt_field){.name = "x", .shape = TT_SHAPE(c->n_x)};
    out->fields[1] = (tt_field){.name = "y", .shape = TT_SHAPE(c->n_y)};
    if (c->has_classes)
        out->fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .classes = count_classes(c)};
    return TT_OK;
}

bool tti_csv_is(const tt_data *d)
{
    return d->source.close == csv_close;
}

bool tti_csv_about_of(const tt_data *d, tti_csv_about *out)
{
    if (d == NULL || !tti_csv_is(d))
        return false;
    const tti_csv *c = d->source.self;
    bool has_words = c->has_classes && !c->has_numbers;
    *out = (tti_csv_about){.names = c->names,
                           .n = c->n,
                           .x = c->x,
                           .y = c->y,
                           .n_x = c->n_x,
                           .n_y = c->n_y,
                           .words = has_words ? c->words.words : NULL,
                           .n_words = has_words ? c->words.n : 0,
                           .comma = c->comma,
                           .no_header = c->no_header};
    return true;
}

static tt_status csv_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_csv_opts *o = options;
    tti_bytes b = {.fd = -1};
    if (o->file[0] == '\0')
        return TT_FAIL(ctx, TT_EINVAL, "csv: file must be given");
    TT_TRY(tti_bytes_open_as(ctx, o->file, 0, promise, &b));
    return tti_csv_source(ctx, &b, o, out);
}

// clang-format off
static const tt_option csv_options[] = {
    {"file", TT_OPT_TEXT, NULL, "the CSV file; may be compressed (.gz)",
     offsetof(tt_csv_opts, file), 0, 0, NULL},
    {"y", TT_OPT_TEXT, "",
     "target columns: \"price\" or \"a, b\"; default: the last column; -: no target",
     offsetof(tt_csv_opts, y), 0, 0, NULL},
    {"x", TT_OPT_TEXT, "", "input columns; default: all but the targets",
     offsetof(tt_csv_opts, x), 0, 0, NULL},
    {"classes", TT_OPT_BOOL, "false", "y is a class label, a number or a word, instead of a value",
     offsetof(tt_csv_opts, classes), 0, 0, NULL},
    {"words", TT_OPT_TEXT, "",
     "class names in order: \"cat, dog\"; default: in order of appearance",
     offsetof(tt_csv_opts, words), 0, 0, NULL},
    {"no_header", TT_OPT_BOOL, "false",
     "the file has no header line; columns are called c0, c1, ...",
     offsetof(tt_csv_opts, no_header), 0, 0, NULL},
    {"comma", TT_OPT_TEXT, ",", "the column separator, one character or the word tab",
     offsetof(tt_csv_opts, comma), 0, 0, NULL},
    {"first", TT_OPT_INT, "0", "number of records to skip at the start",
     offsetof(tt_csv_opts, first), 0, 1e18, NULL},
    {"count", TT_OPT_INT, "0", "number of records to use; 0: all",
     offsetof(tt_csv_opts, count), 0, 1e18, NULL},
    {"skip", TT_OPT_TEXT, "", "columns that are not inputs: \"id, name\"",
     offsetof(tt_csv_opts, skip), 0, 0, NULL},
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_csv = {
    .name = "csv",
    .help = "a CSV file",
    .options = csv_options,
    .options_size = sizeof(tt_csv_opts),
    .main = "file",
    .open = csv_open,
};
