/*
 * csv.h - cells of CSV files, numbers in them, and words that are classes.
 */
#ifndef TUTTI_DATA_CSV_H
#define TUTTI_DATA_CSV_H

#include "data/bytes.h"
#include <tutti/data.h>

#define TTI_CELL_MAX 256

// A place in a CSV file.
typedef struct tti_csv_at {
    tti_scan scan;
    char comma;
    char quote;   // 0: quotes are text
    int64_t line; // number of the line that is being read, from 1
} tti_csv_at;

typedef struct tti_cell {
    char text[TTI_CELL_MAX]; // without quotes and the blanks around it
    int n;
    bool is_long;   // there was more than text holds
    bool is_quoted; //
    bool is_last;   // of its record
} tti_cell;

/*
 * The next cell. Quotes may enclose separators, line ends and doubled quotes. An error is recorded
 * when a quote is not closed, or at a zero byte. *more is false, and nothing was read, at the end
 * of the file.
 */
tt_status tti_csv_cell(tt_ctx *ctx, tti_csv_at *at, tti_cell *out, bool *more) TTI_CHECKED;
// Refuses a zero byte at this place.
tt_status tti_csv_zero(tt_ctx *ctx, const char *path, int64_t line, int64_t column) TTI_CHECKED;

// A decimal number, finite as f32, and nothing else.
bool tti_csv_number(const char *text, float *out) TTI_CHECKED;

// ---- classes ---------------------------------------------------------------------------------

// Words, numbered as they were added.
typedef struct tti_words {
    char **words;
    int64_t n, cap;
    int32_t *table; // open addressing: number + 1; 0 is free
    int64_t slots;  // a power of two; 0: no table yet
} tti_words;

#define TTI_WORDS_MAX 65536
int32_t tti_words_find(const tti_words *w, const char *word); // -1: none
// Adds a word if it is new; at most TTI_WORDS_MAX fit, then TT_EINVAL, not recorded.
tt_status tti_words_add(tt_ctx *ctx, tti_words *w, const char *word) TTI_CHECKED;
void tti_words_free(tt_ctx *ctx, tti_words *w);
// "0", "17": a class that says its number; -1 for other words.
int32_t tti_words_number(const char *word);

// ---- columns ---------------------------------------------------------------------------------

// Columns of a file, and what options make of them.
typedef struct tti_columns {
    char **names;
    int64_t n;
    int32_t *x, *y; // by column: place among the inputs or targets, -1: none
    int64_t n_x, n_y;
} tti_columns;
// Reads the first line alone. All texts of o are given: "" is a default, as in a job.
tt_status tti_csv_columns(tt_ctx *ctx, const tt_csv_opts *o, tti_columns *out) TTI_CHECKED;
void tti_columns_free(tt_ctx *ctx, tti_columns *c); // one that is all zero is fine

// Adds a name to a list of columns or words, in quotes.
void tti_csv_list(tti_text *t, const char *name);

// What a data set of a CSV file reads, borrowed from it; false for other data sets.
typedef struct tti_csv_about {
    char *const *names; // of all columns
    int64_t n;
    const int32_t *x, *y; // as in tti_columns
    int64_t n_x, n_y;
    char *const *words; // of classes, by number; NULL: there are none, or they are numbers
    int64_t n_words;
    char comma;
    bool no_header;
    const struct tti_csv *csv; // for describe.c: tti_csv_describe()
} tti_csv_about;
// Adds what else a model keeps of its columns: ', "categories": [...], ...'.
void tti_csv_describe(const tti_csv_about *c, tti_text *t);
// Words of the categories of a data set, as option tables; nothing for others.
void tti_csv_tables(const tt_data *d, tti_text *t);
bool tti_csv_about_of(const tt_data *d, tti_csv_about *out);
// Adds "record 3, line 5, column 'b'" of a record of the source; false for other data sets.
bool tti_csv_where(const tt_data *d, int64_t record, int field, int64_t element, tti_text *t);
bool tti_csv_has_column(const tt_data *d, const char *name); // false for other data sets
// Hashes of a column's cells, one for each of n records; NULL: the first n. It need not be used.
tt_status tti_csv_hash_column(const tt_data *d, const char *name, const int64_t *records, int64_t n,
                              uint64_t *out) TTI_CHECKED;

// A source of an open file, which it takes over: what the fuzzer calls.
tt_status tti_csv_source(tt_ctx *ctx, tti_bytes *b, const tt_csv_opts *o,
                         tt_source *out) TTI_CHECKED;

#endif
