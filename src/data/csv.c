/*
 * csv.c - columns of a CSV file as a source.
 *
 * Opening reads the file once: where records begin is kept, every record must have all columns, and
 * every cell that is used must be a number, or a class. After that record i is read where it lies.
 */
#include "data/csv.h"
#include "data/data.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX 1000000

typedef struct csv {
    tti_bytes bytes;
    char comma;
    char **names; // of columns
    int64_t n, cap;
    int32_t *x, *y; // by column: place among the inputs or targets, -1: none
    int64_t n_x, n_y;
    bool has_classes, has_numbers; // classes; and these say their numbers themselves
    bool fixed_words;              // all classes were given
    bool no_header;
    tti_words words;
    int64_t body;   // where records begin
    int64_t line;   // and in which line
    int64_t first;  // records before it are left out
    int64_t *start; // of the others
    int64_t count, cap_start;
} csv;

// ---- columns ---------------------------------------------------------------------------------

static void begin(const csv *c, int64_t from, int64_t to, tti_csv_at *at)
{
    tti_scan_begin(&at->scan, &c->bytes, from, to);
    at->comma = c->comma;
    at->line = c->line;
}

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
static tt_status read_header(tt_ctx *ctx, csv *c, bool no_header)
{
    tti_cell cell = {0};
    unsigned char mark[3];
    if (c->bytes.n >= 3) { // a byte order mark is no text
        TT_TRY(tti_bytes_read(ctx, &c->bytes, 0, 3, mark));
        c->body = memcmp(mark, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    }
    c->line = 1;
    tti_csv_at at;
    begin(c, c->body, c->bytes.n, &at);
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

static tt_status find_column(tt_ctx *ctx, const csv *c, const char *name, int64_t *out)
{
    int64_t found = -1;
    for (int64_t i = 0; i < c->n; i++) {
        if (strcmp(c->names[i], name) != 0)
            continue;
        if (found >= 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: two columns have the name '%s'", c->bytes.path,
                           name);
        found = i;
    }
    if (found < 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: has no column '%s'; the first column is '%s', the last is '%s'",
                       c->bytes.path, name, c->names[0], c->names[c->n - 1]);
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

// The next of "a, b"; *more is false at the end.
static tt_status next_name(tt_ctx *ctx, const char **list, char name[TTI_CELL_MAX], bool *more)
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

static tt_status place_columns(tt_ctx *ctx, const csv *c, const char *list, int32_t *place,
                               int64_t *n)
{
    char name[TTI_CELL_MAX];
    for (bool more;;) {
        int64_t column = 0;
        TT_TRY(next_name(ctx, &list, name, &more));
        if (!more)
            return TT_OK;
        TT_TRY(find_column(ctx, c, name, &column));
        if (place[column] >= 0)
            return TT_FAIL(ctx, TT_EINVAL, "%s: column '%s' is named twice", c->bytes.path, name);
        place[column] = (int32_t)(*n)++;
    }
}

static tt_status choose_columns(tt_ctx *ctx, csv *c, const tt_csv_opts *o)
{
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
    if (o->x[0] != '\0')
        TT_TRY(place_columns(ctx, c, o->x, c->x, &c->n_x));
    for (int64_t i = 0; i < c->n && o->x[0] == '\0'; i++)
        if (c->y[i] < 0)
            c->x[i] = (int32_t)c->n_x++;
    if (c->n_x == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: all columns are targets; no column is left for x",
                       c->bytes.path);
    return TT_OK;
}

// ---- records ---------------------------------------------------------------------------------

// line below 1: not known any more, as the file has changed since it was opened.
static tt_status bad_cell(tt_ctx *ctx, const csv *c, int64_t record, int64_t line, int64_t column,
                          const tti_cell *cell, const char *what)
{
    char where[48] = "";
    if (line > 0)
        snprintf(where, sizeof(where), ", line %lld", (long long)line);
    return TT_FAIL(ctx, TT_EIO, "%s: record %lld%s, column '%s': '%.40s'%s %s", c->bytes.path,
                   (long long)record, where, c->names[column], cell->text,
                   cell->n > 40 ? "..." : "", what);
}

static int32_t class_of(const csv *c, const char *word)
{
    return c->has_numbers ? tti_words_number(word) : tti_words_find(&c->words, word);
}

// What a cell is in its record: to x, to y, or to neither; out may be NULL.
static tt_status use_cell(tt_ctx *ctx, const csv *c, int64_t record, int64_t line, int64_t column,
                          const tti_cell *cell, void *const *out)
{
    bool is_x = c->x[column] >= 0, is_y = c->y[column] >= 0;
    float v = 0;
    if (!is_x && !is_y)
        return TT_OK;
    if (cell->is_long)
        return bad_cell(ctx, c, record, line, column, cell, "is too long");
    if ((is_x || !c->has_classes) && !tti_csv_number(cell->text, &v))
        return bad_cell(ctx, c, record, line, column, cell,
                        cell->n == 0 ? "is empty" : "is not a number that f32 can hold");
    if (out == NULL)
        return TT_OK;
    if (is_x)
        ((float *)out[0])[c->x[column]] = v;
    if (is_y && !c->has_classes)
        ((float *)out[1])[c->y[column]] = v;
    if (is_y && c->has_classes) {
        *(int32_t *)out[1] = class_of(c, cell->text);
        if (*(int32_t *)out[1] < 0)
            return bad_cell(ctx, c, record, line, column, cell, "is not a class number");
    }
    return TT_OK;
}

static tt_status learn_class(tt_ctx *ctx, csv *c, int64_t record, int64_t line, int64_t column,
                             const tti_cell *cell)
{
    if (!c->has_classes || c->y[column] < 0)
        return TT_OK;
    if (c->fixed_words)
        return tti_words_find(&c->words, cell->text) >= 0
                   ? TT_OK
                   : bad_cell(ctx, c, record, line, column, cell, "is not one of words");
    if (cell->n == 0)
        return bad_cell(ctx, c, record, line, column, cell, "is empty");
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
static tt_status read_cells(tt_ctx *ctx, csv *learn, const csv *c, tti_csv_at *at, int64_t record,
                            void *const *out, int64_t *n, bool *more)
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

static tt_status index_records(tt_ctx *ctx, csv *c, int64_t count)
{
    tti_csv_at at;
    begin(c, c->body, c->bytes.n, &at);
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
    const csv *c = self;
    tti_csv_at at;
    int64_t n, end = i + 1 < c->count ? c->start[i + 1] : c->bytes.n;
    bool more;
    begin(c, c->start[i], end, &at);
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
    csv *c = self;
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
    csv c = {.bytes = {.fd = -1}};
    *out = (tti_columns){0};
    TT_TRY(read_separator(ctx, o->comma, &c.comma));
    TT_TRY(tti_bytes_open_as(ctx, o->file, 0, promise, &c.bytes));
    tt_status st = read_header(ctx, &c, o->no_header);
    if (st == TT_OK)
        st = choose_columns(ctx, &c, o);
    tti_bytes_close(ctx, &c.bytes);
    *out = (tti_columns){c.names, c.n, c.x, c.y, c.n_x, c.n_y};
    if (st != TT_OK) {
        tti_columns_free(ctx, out);
        *out = (tti_columns){0};
    }
    return st;
}

static tt_status csv_init(tt_ctx *ctx, csv *c, const tt_csv_opts *o)
{
    char word[TTI_CELL_MAX];
    const char *words = o->words;
    TT_TRY(read_separator(ctx, o->comma, &c->comma));
    if (o->first < 0 || o->count < 0)
        return TT_FAIL(ctx, TT_EINVAL, "csv: cannot use %lld records from record %lld on",
                       (long long)o->count, (long long)o->first);
    c->no_header = o->no_header;
    TT_TRY(read_header(ctx, c, o->no_header));
    TT_TRY(choose_columns(ctx, c, o));
    c->has_classes = o->classes || words[0] != '\0';
    if (c->has_classes && c->n_y != 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s: classes need one target column, not %lld",
                       c->bytes.path, (long long)c->n_y);
    for (bool more;;) {
        TT_TRY(next_name(ctx, &words, word, &more));
        if (!more)
            break;
        c->fixed_words = true;
        if (tti_words_add(ctx, &c->words, word) != TT_OK)
            return TT_FAIL(ctx, TT_EINVAL, "csv: words has more than %d entries", TTI_WORDS_MAX);
    }
    c->has_numbers = c->has_classes && !c->fixed_words;
    c->first = o->first;
    TT_TRY(index_records(ctx, c, o->count));
    if (c->count == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records%s", c->bytes.path,
                       o->first > 0 ? " there" : "");
    return TT_OK;
}

static int64_t count_classes(const csv *c)
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
    csv *c = tti_calloc(ctx, 1, sizeof(*c));
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

bool tti_csv_about_of(const tt_data *d, tti_csv_about *out)
{
    if (d == NULL || d->source.close != csv_close)
        return false;
    const csv *c = d->source.self;
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
