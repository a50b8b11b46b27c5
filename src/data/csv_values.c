/*
 * csv_values.c - what cells of a CSV file are as numbers: numbers, categories (one column per word,
 * or per hash), dates, and missing values; and what a model keeps of it.
 */
#include "data/csv_own.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- which columns they are ------------------------------------------------------------------

static tt_status mark(tt_ctx *ctx, tti_csv *c, const char *list, tti_csv_kind kind)
{
    char name[TTI_CELL_MAX];
    for (bool more;;) {
        int64_t column = 0;
        TT_TRY(tti_csv_next_name(ctx, &list, name, &more));
        if (!more)
            return TT_OK;
        TT_TRY(tti_csv_column(ctx, c, name, &column));
        if (c->kind[column] != TTI_CSV_NUMBER)
            return TT_FAIL(ctx, TT_EINVAL, "%s: column '%s' is named twice in categories and dates",
                           c->part[0].bytes.path, name);
        if (c->x[column] < 0)
            return TT_FAIL(ctx, TT_EINVAL,
                           "%s: column '%s' is listed in %s, but is not an input: remove it there, "
                           "or add it to x",
                           c->part[0].bytes.path, name,
                           kind == TTI_CSV_DATE ? "dates" : "categories");
        c->kind[column] = (uint8_t)kind;
        c->has_categories |= kind == TTI_CSV_WORD;
    }
}

// The words of every category, in order of columns: how many, then each.
static tt_status read_tables(tt_ctx *ctx, tti_csv *c, const char *list)
{
    char word[TTI_CELL_MAX];
    bool more = list[0] != '\0';
    c->fixed_tables = more;
    for (int64_t i = 0; more && i < c->n; i++) {
        if (c->kind[i] != TTI_CSV_WORD)
            continue;
        TT_TRY(tti_csv_next_name(ctx, &list, word, &more));
        long n = more ? strtol(word, NULL, 10) : -1;
        for (long k = 0; k < n && more; k++) {
            TT_TRY(tti_csv_next_name(ctx, &list, word, &more));
            if (more && tti_words_add(ctx, &c->tables[i], word) != TT_OK)
                return TT_FAIL(ctx, TT_EINVAL, "csv: tables has too many words");
        }
        if (n < 0 || c->tables[i].n != n)
            return TT_FAIL(ctx, TT_EINVAL, "csv: tables does not have the words of column '%s'",
                           c->names[i]);
    }
    return TT_OK;
}

tt_status tti_csv_kinds(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o)
{
    c->kind = tti_calloc(ctx, (size_t)c->n, sizeof(*c->kind));
    c->tables = tti_calloc(ctx, (size_t)c->n, sizeof(*c->tables));
    c->at = tti_calloc(ctx, (size_t)c->n, sizeof(*c->at));
    if (c->kind == NULL || c->tables == NULL || c->at == NULL)
        return TT_ENOMEM;
    TT_TRY(mark(ctx, c, o->categories != NULL ? o->categories : "", TTI_CSV_WORD));
    TT_TRY(mark(ctx, c, o->dates != NULL ? o->dates : "", TTI_CSV_DATE));
    c->hash = o->hash;
    c->keeps_missing = o->missing == TT_MISSING_NAN;
    c->zeros_unseen = o->unseen == TT_UNSEEN_ZEROS;
    if (c->hash > 0 && !c->has_categories)
        return TT_FAIL(ctx, TT_EINVAL,
                       "csv: hash is for categories, but no column is listed there");
    return c->hash > 0 ? TT_OK : read_tables(ctx, c, o->tables != NULL ? o->tables : "");
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// In order of their bytes, so that the order of records does not matter.
static tt_status sort_words(tt_ctx *ctx, tti_words *w)
{
    tti_words sorted = {0};
    tt_status st = TT_OK;
    qsort(w->words, (size_t)w->n, sizeof(*w->words), compare);
    for (int64_t i = 0; i < w->n && st == TT_OK; i++)
        st = tti_words_add(ctx, &sorted, w->words[i]);
    tti_words_free(ctx, w);
    *w = sorted;
    return st;
}

static int64_t width_of(const tti_csv *c, int64_t column)
{
    if (c->kind[column] == TTI_CSV_NUMBER)
        return 1;
    if (c->kind[column] == TTI_CSV_DATE)
        return TTI_DATE_PARTS;
    return c->hash > 0 ? c->hash : c->tables[column].n;
}

tt_status tti_csv_lay_out(tt_ctx *ctx, tti_csv *c)
{
    for (int64_t i = 0; i < c->n && !c->fixed_tables; i++)
        if (c->tables[i].n > 0)
            TT_TRY(sort_words(ctx, &c->tables[i]));
    int32_t *by_place = tti_calloc(ctx, (size_t)c->n_x, sizeof(*by_place));
    if (by_place == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < c->n; i++)
        if (c->x[i] >= 0)
            by_place[c->x[i]] = (int32_t)i;
    c->wide = 0;
    for (int64_t p = 0; p < c->n_x && c->wide < INT32_MAX / 2; p++) {
        c->at[by_place[p]] = (int32_t)c->wide;
        c->wide += width_of(c, by_place[p]);
    }
    tti_free(ctx, by_place);
    if (c->wide < 1 || c->wide >= INT32_MAX / 2)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the inputs make %lld values per record",
                       c->part[0].bytes.path, (long long)c->wide);
    return TT_OK;
}

// ---- cells -----------------------------------------------------------------------------------

tt_status tti_csv_learn(tt_ctx *ctx, tti_csv *c, int64_t column, const tti_cell *cell)
{
    if (c->hash > 0 || c->fixed_tables || cell->n == 0 || cell->is_long)
        return TT_OK;
    tt_status st = tti_words_add(ctx, &c->tables[column], cell->text);
    if (st == TT_EINVAL)
        return TT_FAIL(ctx, TT_EIO,
                       "%s: column '%s' has more than %d different words; set hash: 1024, or leave "
                       "it out (skip)",
                       c->part[c->now].bytes.path, c->names[column], TTI_WORDS_MAX);
    return st;
}

bool tti_csv_parse(const tti_csv *c, const char *text, float *out)
{
    char swapped[TTI_CELL_MAX];
    if (c->decimal == '.')
        return tti_csv_number(text, out);
    size_t n = strlen(text);
    for (size_t i = 0; i <= n; i++)
        swapped[i] = text[i] == ',' ? '.' : text[i] == '.' ? '?' : text[i];
    return tti_csv_number(swapped, out);
}

static bool is_missing(const tti_cell *cell)
{
    static const char *const words[] = {"NA", "N/A", "NaN", "nan", "null", "NULL", "None", NULL};
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(cell->text, words[i]) == 0)
            return true;
    return cell->n == 0;
}

static tt_status put_word(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                          int64_t column, const tti_cell *cell, float *x)
{
    int64_t n = width_of(c, column), k;
    for (int64_t i = 0; i < n; i++)
        x[i] = 0;
    if (cell->n == 0)
        return TT_OK; // no category
    if (c->hash > 0)
        k = (int64_t)(tti_hash64(cell->text, (size_t)cell->n, 0) % (uint64_t)c->hash);
    else
        k = tti_words_find(&c->tables[column], cell->text);
    if (k >= 0)
        x[k] = 1;
    else if (!c->zeros_unseen)
        return tti_csv_bad_cell(ctx, c, record, line, column, cell,
                                "is a category that the training data does not have; set unseen: "
                                "zeros in the job to allow such words");
    return TT_OK;
}

tt_status tti_csv_value(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line, int64_t column,
                        const tti_cell *cell, float *x)
{
    double date[TTI_DATE_PARTS];
    float v = 0;
    switch ((tti_csv_kind)c->kind[column]) {
    case TTI_CSV_WORD:
        if (x != NULL)
            return put_word(ctx, c, record, line, column, cell, x + c->at[column]);
        if (c->fixed_tables && !c->zeros_unseen && cell->n > 0 &&
            tti_words_find(&c->tables[column], cell->text) < 0)
            return tti_csv_bad_cell(ctx, c, record, line, column, cell,
                                    "is a category that the training data does not have; set "
                                    "unseen: zeros in the job to allow such words");
        return TT_OK;
    case TTI_CSV_DATE:
        if (is_missing(cell) && c->keeps_missing)
            for (int i = 0; i < TTI_DATE_PARTS; i++)
                date[i] = NAN;
        else if (!tti_date_parse(cell->text, date))
            return tti_csv_bad_cell(ctx, c, record, line, column, cell,
                                    "is not a date; write 2024-01-31 or 2024-01-31 13:45:00");
        for (int i = 0; x != NULL && i < TTI_DATE_PARTS; i++)
            x[c->at[column] + i] = (float)date[i];
        return TT_OK;
    default:
        break;
    }
    if (c->keeps_missing && is_missing(cell))
        v = NAN;
    else if (!tti_csv_parse(c, cell->text, &v))
        return tti_csv_not_a_number(ctx, c, record, line, column, cell);
    if (x != NULL)
        x[c->at[column]] = v;
    return TT_OK;
}

// ---- dates -----------------------------------------------------------------------------------

// Exactly n digits.
static bool take(const char **s, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++, ++*s) {
        if (**s < '0' || **s > '9')
            return false;
        *out = *out * 10 + (**s - '0');
    }
    return true;
}

static bool take_time(const char *s, int *hour, double *seconds)
{
    int minute, second = 0;
    double fraction = 0, unit = 0.1;
    if (!take(&s, 2, hour) || *s++ != ':' || !take(&s, 2, &minute))
        return false;
    if (*s == ':') {
        s++;
        if (!take(&s, 2, &second))
            return false;
        if (*s == '.')
            for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
                fraction += unit * (*s - '0');
    }
    if (*s == 'Z')
        s++;
    *seconds = *hour * 3600.0 + minute * 60.0 + second + fraction;
    return *s == '\0' && *hour < 24 && minute < 60 && second < 61;
}

bool tti_date_parse(const char *s, double out[TTI_DATE_PARTS])
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, hour = 0;
    double seconds = 0;
    if (!take(&s, 4, &year) || (*s != '-' && *s != '/'))
        return false;
    char mark = *s++;
    if (!take(&s, 2, &month) || *s++ != mark || !take(&s, 2, &day))
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (year < 1 || month < 1 || month > 12 || day < 1 ||
        day > days[month - 1] + (month == 2 && leap))
        return false;
    if ((*s == ' ' || *s == 'T') && !take_time(s + 1, &hour, &seconds))
        return false;
    if (*s != '\0' && *s != ' ' && *s != 'T')
        return false;
    // Days since 0000-03-01, where leap days are the last of a year.
    int64_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;
    int64_t all = y * 365 + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - 719468;
    out[0] = (double)all + seconds / 86400;
    out[1] = month;
    out[2] = day;
    out[3] = (double)(((all + 3) % 7 + 7) % 7); // 1970-01-01 was a Thursday
    out[4] = hour;
    return true;
}

// ---- what a model keeps ----------------------------------------------------------------------

static void put_kind(const tti_csv *c, tti_csv_kind kind, const char *key, tti_text *t)
{
    const char *comma = "";
    tti_text_add(t, ", \"%s\": [", key);
    for (int64_t i = 0; i < c->n; i++)
        if (c->x[i] >= 0 && c->kind[i] == kind) {
            tti_text_add(t, "%s", comma);
            tti_text_json(t, c->names[i]);
            comma = ", ";
        }
    tti_text_add(t, "]");
}

static void put_tables(const tti_csv *c, tti_text *t)
{
    for (int64_t i = 0; c->hash == 0 && i < c->n; i++) {
        char n[32];
        if (c->x[i] < 0 || c->kind[i] != TTI_CSV_WORD)
            continue;
        snprintf(n, sizeof(n), "%lld", (long long)c->tables[i].n);
        tti_csv_list(t, n);
        for (int64_t k = 0; k < c->tables[i].n; k++)
            tti_csv_list(t, c->tables[i].words[k]);
    }
}

void tti_csv_tables(const tt_data *d, tti_text *t)
{
    if (d != NULL && tti_csv_is(d))
        put_tables(d->source.self, t);
}

void tti_csv_describe(const tti_csv_about *about, tti_text *t)
{
    const tti_csv *c = about->csv;
    tti_text tables = {.ctx = t->ctx};
    put_kind(c, TTI_CSV_WORD, "categories", t);
    put_kind(c, TTI_CSV_DATE, "dates", t);
    put_tables(c, &tables);
    tti_text_add(t, ", \"tables\": ");
    tti_text_json(t, tables.s != NULL ? tables.s : "");
    tti_text_free(&tables);
    tti_text_add(t,
                 ", \"hash\": %d, \"missing\": %d, \"unseen\": %d, \"window\": %lld, \"stride\": "
                 "%lld, \"horizon\": %lld, \"decimal\": \"%c\", \"quote\": ",
                 c->hash, c->keeps_missing ? TT_MISSING_NAN : TT_MISSING_ERROR,
                 c->zeros_unseen ? TT_UNSEEN_ZEROS : TT_UNSEEN_ERROR, (long long)c->window,
                 (long long)c->stride, (long long)c->horizon, c->decimal);
    char quote[2] = {c->quote, '\0'};
    tti_text_json(t, c->quote != 0 ? quote : "none");
}
