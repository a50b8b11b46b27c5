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

// ---- records ---------------------------------------------------------------------------------

// A cell that is not a number, and what to do about it.
tt_status tti_csv_not_a_number(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                               int64_t column, const tti_cell *cell)
{
    char what[TTI_CSV_HINT];
    float v;
    bool is_word = !tti_float_parse(cell->text, &v); // "nan", "1e39" and the like are none
    const char *advice =
        c->no_header && record == 0 && is_word ? "; if the first line names the columns, remove "
                                                 "no_header"
        : c->y[column] >= 0 ? "; if the column has class names, set classes: true"
                            : "; leave the column out (skip, or x with the inputs), list it in "
                              "categories (words) or dates, or write numbers in its place";
    if (cell->n == 0)
        snprintf(what, sizeof(what),
                 "is empty; fill it in, remove the record, leave the column out (skip), or set "
                 "missing: nan and add the transform fill_missing");
    else
        snprintf(what, sizeof(what), "is not a number that f32 can hold%s", is_word ? advice : "");
    return tti_csv_bad_cell(ctx, c, record, line, column, cell, what);
}

static int32_t class_of(const tti_csv *c, const char *word)
{
    return c->has_numbers ? tti_words_number(word) : tti_words_find(&c->words, word);
}

// What a cell is in its record: to x, to y, or to neither; both may be NULL.
static tt_status use_cell(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                          int64_t column, const tti_cell *cell, float *x, void *y)
{
    bool is_x = c->x[column] >= 0, is_y = c->y[column] >= 0;
    float v = 0;
    if (!is_x && !is_y)
        return TT_OK;
    if (cell->is_long)
        return tti_csv_bad_cell(ctx, c, record, line, column, cell, "is too long");
    if (is_x)
        TT_TRY(tti_csv_value(ctx, c, record, line, column, cell, x));
    if (is_y && !c->has_classes && !tti_csv_parse(c, cell->text, &v))
        return tti_csv_not_a_number(ctx, c, record, line, column, cell);
    if (!is_y || y == NULL)
        return TT_OK;
    if (!c->has_classes) {
        ((float *)y)[c->y[column]] = v;
        return TT_OK;
    }
    *(int32_t *)y = class_of(c, cell->text);
    if (*(int32_t *)y < 0)
        return tti_csv_bad_cell(ctx, c, record, line, column, cell, "is not a class number");
    return TT_OK;
}

static tt_status learn_class(tt_ctx *ctx, tti_csv *c, int64_t record, int64_t line, int64_t column,
                             const tti_cell *cell)
{
    if (c->x[column] >= 0 && c->kind[column] == TTI_CSV_WORD)
        TT_TRY(tti_csv_learn(ctx, c, column, cell));
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
                       tti_csv_path(c, record), c->names[column], TTI_WORDS_MAX);
    return st;
}

/*
 * Reads one row: cells go to x and y, or, where they are NULL, are looked at for the first time.
 * *more is false at the end of the file; an empty line is no record and gives *n = 0 columns.
 */
static tt_status read_cells(tt_ctx *ctx, tti_csv *learn, const tti_csv *c, tti_csv_at *at,
                            int64_t record, float *x, void *y, int64_t *n, bool *more)
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
            TT_TRY(use_cell(ctx, c, record, line, *n, &cell, x, y));
        }
        ++*n;
    }
    *more = true;
    return TT_OK;
}

// Finds the rows of one file; *record counts those of all.
static tt_status index_part(tt_ctx *ctx, tti_csv *c, int64_t count, int64_t *record)
{
    const tti_csv_part *p = &c->part[c->now];
    tti_csv_at at;
    tti_csv_begin(c, p->base + p->body, INT64_MAX / 2, &at);
    for (;;) {
        int64_t start = tti_scan_at(&at.scan), line = at.line, n;
        bool more;
        TT_TRY(read_cells(ctx, c, c, &at, *record, NULL, NULL, &n, &more));
        if (!more)
            return TT_OK;
        if (n == 0)
            continue;
        if (n != c->n)
            return TT_FAIL(ctx, TT_EIO, "%s: record %lld, line %lld: %lld columns instead of %lld",
                           p->bytes.path, (long long)*record, (long long)line, (long long)n,
                           (long long)c->n);
        if (*record >= c->first && (count == 0 || *record - c->first < count)) {
            if (!tti_grow(ctx, &c->start, &c->cap_start, c->rows + 1, sizeof(*c->start)))
                return TT_ENOMEM;
            c->start[c->rows++] = p->base + start;
        }
        ++*record;
    }
}

static tt_status index_records(tt_ctx *ctx, tti_csv *c, int64_t count)
{
    int64_t record = 0;
    for (c->now = 0; c->now < c->n_parts; c->now++)
        TT_TRY(index_part(ctx, c, count, &record));
    c->now = 0;
    return TT_OK;
}

static tt_status read_row(tt_ctx *ctx, const tti_csv *c, int64_t row, float *x, void *y)
{
    tti_csv_at at;
    int64_t n, end = row + 1 < c->rows ? c->start[row + 1] : INT64_MAX / 2;
    bool more;
    tti_csv_begin(c, c->start[row], end, &at);
    at.line = INT64_MIN / 2;
    TT_TRY(read_cells(ctx, NULL, c, &at, c->first + row, x, y, &n, &more));
    if (n != c->n)
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld has changed since the file was opened",
                       tti_csv_path(c, c->first + row), (long long)(c->first + row));
    return TT_OK;
}

static tt_status csv_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const tti_csv *c = self;
    if (c->window == 0)
        return read_row(ctx, c, i, out[0], c->n_y > 0 ? out[1] : NULL);
    int64_t row = i * c->stride;
    for (int64_t k = 0; k < c->window; k++)
        TT_TRY(read_row(ctx, c, row + k, (float *)out[0] + k * c->wide, NULL));
    if (c->n_y == 0)
        return TT_OK;
    return read_row(ctx, c, row + c->window - 1 + c->horizon, NULL, out[1]);
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
    for (int64_t i = 0; c->tables != NULL && i < c->n; i++)
        tti_words_free(ctx, &c->tables[i]);
    tti_free(ctx, c->tables);
    tti_free(ctx, c->kind);
    tti_free(ctx, c->at);
    for (int64_t i = 0; i < c->n_parts; i++)
        tti_bytes_close(ctx, &c->part[i].bytes);
    tti_free(ctx, c->part);
    tti_free(ctx, c);
}

// Takes the file over.
static tt_status add_part(tt_ctx *ctx, tti_csv *c, tti_bytes *b)
{
    int64_t cap = c->n_parts; // exact: it grows by one
    if (!tti_grow(ctx, &c->part, &cap, c->n_parts + 1, sizeof(*c->part))) {
        tti_bytes_close(ctx, b);
        return TT_ENOMEM;
    }
    tti_csv_part *p = &c->part[c->n_parts];
    *p = (tti_csv_part){.bytes = *b, .line = 1};
    if (c->n_parts > 0)
        p->base = p[-1].base + p[-1].bytes.n + 1;
    *b = (tti_bytes){.fd = -1};
    c->n_parts++;
    return TT_OK;
}

static tt_status read_classes(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o)
{
    char word[TTI_CELL_MAX];
    const char *words = o->words;
    c->has_classes = o->classes || words[0] != '\0';
    if (c->has_classes && c->n_y != 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s: classes need one target column, not %lld",
                       c->part[0].bytes.path, (long long)c->n_y);
    for (bool more;;) {
        TT_TRY(tti_csv_next_name(ctx, &words, word, &more));
        if (!more)
            break;
        c->fixed_words = true;
        if (tti_words_add(ctx, &c->words, word) != TT_OK)
            return TT_FAIL(ctx, TT_EINVAL, "csv: words has more than %d entries", TTI_WORDS_MAX);
    }
    c->has_numbers = c->has_classes && !c->fixed_words;
    return TT_OK;
}

// Rows to records.
static tt_status count_records(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o)
{
    c->count = c->rows;
    if (c->rows == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records%s", c->part[0].bytes.path,
                       o->first > 0 ? " there" : "");
    if (o->window == 0)
        return TT_OK;
    c->window = o->window;
    c->horizon = o->horizon != 0 ? o->horizon : 1;
    c->stride = o->stride != 0 ? o->stride : 1;
    int64_t need = c->window + (c->n_y > 0 ? c->horizon : 0);
    if (c->rows < need)
        return TT_FAIL(ctx, TT_EINVAL, "%s: has %lld rows; window: %lld%s needs at least %lld",
                       c->part[0].bytes.path, (long long)c->rows, (long long)c->window,
                       c->n_y > 0 ? " with its horizon" : "", (long long)need);
    c->count = (c->rows - need) / c->stride + 1;
    return TT_OK;
}

static tt_status csv_init(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o)
{
    const char *quote = o->quote != NULL ? o->quote : "\"";
    TT_TRY(tti_csv_separator(ctx, o->comma, &c->comma));
    if (o->first < 0 || o->count < 0)
        return TT_FAIL(ctx, TT_EINVAL, "csv: cannot use %lld records from record %lld on",
                       (long long)o->count, (long long)o->first);
    c->quote = strcmp(quote, "none") == 0 ? 0 : quote[0];
    if (c->quote != 0 && (quote[1] != '\0' || c->quote == c->comma))
        return TT_FAIL(ctx, TT_EINVAL,
                       "csv: quote is '%.16s'; use one character other than the separator, or the "
                       "word none",
                       quote);
    c->decimal = o->decimal != NULL && o->decimal[0] != '\0' ? o->decimal[0] : '.';
    if ((c->decimal != '.' && c->decimal != ',') || (o->decimal != NULL && strlen(o->decimal) > 1))
        return TT_FAIL(ctx, TT_EINVAL, "csv: decimal is '%.16s'; use \".\" or \",\"", o->decimal);
    c->no_header = o->no_header;
    for (c->now = 0; c->now < c->n_parts; c->now++)
        TT_TRY(tti_csv_header(ctx, c, &c->part[c->now], o->no_header));
    c->now = 0;
    TT_TRY(tti_csv_choose(ctx, c, o));
    TT_TRY(tti_csv_kinds(ctx, c, o));
    TT_TRY(read_classes(ctx, c, o));
    c->first = o->first;
    char more[TTI_CSV_HINT];
    if (c->n > 1 && tti_csv_hint(c, more)[0] != '\0')
        TT_LOG(ctx, TT_WARN, "%s%s", c->part[0].bytes.path, more);
    TT_TRY(index_records(ctx, c, o->count));
    TT_TRY(tti_csv_lay_out(ctx, c));
    return count_records(ctx, c, o);
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

// With all its files; c is closed if this fails.
static tt_status open_parts(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o, tt_source *out)
{
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
    out->fields[0] = (tt_field){.name = "x", .shape = TT_SHAPE(c->wide)};
    if (c->window > 0)
        out->fields[0].shape = TT_SHAPE(c->window, c->wide);
    out->fields[1] = (tt_field){.name = "y", .shape = TT_SHAPE(c->n_y)};
    if (c->has_classes)
        out->fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .classes = count_classes(c)};
    return TT_OK;
}

tt_status tti_csv_source(tt_ctx *ctx, tti_bytes *b, const tt_csv_opts *o, tt_source *out)
{
    tti_csv *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL) {
        tti_bytes_close(ctx, b);
        return TT_ENOMEM;
    }
    tt_status st = add_part(ctx, c, b);
    return st == TT_OK ? open_parts(ctx, c, o, out) : (csv_close(ctx, c), st);
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
                           .no_header = c->no_header,
                           .csv = c};
    return true;
}

static tt_status csv_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_csv_opts *o = options;
    tti_names names;
    if (o->file[0] == '\0')
        return TT_FAIL(ctx, TT_EINVAL, "csv: file must be given");
    TT_TRY(tti_names_find(ctx, "csv", o->file, &names));
    tti_csv *c = tti_calloc(ctx, 1, sizeof(*c));
    tt_status st = c != NULL ? TT_OK : TT_ENOMEM;
    for (int64_t i = 0; i < names.n && st == TT_OK; i++) {
        tti_bytes b = {.fd = -1};
        st = tti_bytes_open_as(ctx, names.names[i], 0, tti_csv_promise, &b);
        if (st == TT_OK)
            st = add_part(ctx, c, &b);
    }
    tti_names_close(ctx, &names);
    if (st == TT_OK)
        return open_parts(ctx, c, o, out);
    if (c != NULL)
        csv_close(ctx, c);
    return st;
}

static const char *const missing_words[] = {"error", "nan", NULL};
static const char *const unseen_words[] = {"error", "zeros", NULL};
// clang-format off
static const tt_option csv_options[] = {
    {"file", TT_OPT_TEXT, NULL,
     "CSV files: names or patterns, \"a.csv, b*.csv\"; may be compressed (.gz)",
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
    {"categories", TT_OPT_TEXT, "",
     "input columns of words: each becomes one column per word, 1 where it is that word, else 0",
     offsetof(tt_csv_opts, categories), 0, 0, NULL},
    {"hash", TT_OPT_INT32, "0",
     "categories become this many columns instead, chosen by the word's hash; 0: one per word",
     offsetof(tt_csv_opts, hash), 0, 1 << 20, NULL},
    {"dates", TT_OPT_TEXT, "",
     "input columns of dates (2024-01-31, 2024-01-31 13:45): each becomes days since 1970, month, "
     "day, weekday and hour",
     offsetof(tt_csv_opts, dates), 0, 0, NULL},
    {"missing", TT_OPT_ENUM, "error",
     "empty cells and NA in columns of numbers: error, or nan (then use fill_missing)",
     offsetof(tt_csv_opts, missing), 0, 0, missing_words},
    {"unseen", TT_OPT_ENUM, "error",
     "a word of a category that the training data lacks: error, or zeros in all its columns",
     offsetof(tt_csv_opts, unseen), 0, 0, unseen_words},
    {"quote", TT_OPT_TEXT, "\"", "the quotation mark, one character or the word none",
     offsetof(tt_csv_opts, quote), 0, 0, NULL},
    {"decimal", TT_OPT_TEXT, ".", "the decimal mark: a point or a comma",
     offsetof(tt_csv_opts, decimal), 0, 0, NULL},
    {"tables", TT_OPT_TEXT, "",
     "words of the categories, as a model keeps them; default: those of the file",
     offsetof(tt_csv_opts, tables), 0, 0, NULL},
    {"window", TT_OPT_INT32, "0",
     "rows per record, for files in order of time: x is [window, columns]; 0: single rows",
     offsetof(tt_csv_opts, window), 0, 1 << 20, NULL},
    {"horizon", TT_OPT_INT32, "1", "with window: y is that of the row so many rows later",
     offsetof(tt_csv_opts, horizon), 1, 1 << 20, NULL},
    {"stride", TT_OPT_INT32, "1", "with window: rows from one record to the next",
     offsetof(tt_csv_opts, stride), 1, 1 << 20, NULL},
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_csv = {
    .name = "csv",
    .help = "CSV files",
    .options = csv_options,
    .options_size = sizeof(tt_csv_opts),
    .main = "file",
    .open = csv_open,
};
