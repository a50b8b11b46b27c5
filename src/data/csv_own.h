/*
 * csv_own.h - an open CSV file, for csv.c and csv_columns.c.
 */
#ifndef TUTTI_DATA_CSV_OWN_H
#define TUTTI_DATA_CSV_OWN_H

#include "data/csv.h"
#include "data/data.h"

#define TTI_CSV_HINT 256

// One of its files: places in all of them are counted on.
typedef struct tti_csv_part {
    tti_bytes bytes;
    int64_t base; // place of its first byte
    int64_t body; // where in it records begin,
    int64_t line; // and in which line
} tti_csv_part;

// What an input column is made of.
typedef enum tti_csv_kind {
    TTI_CSV_NUMBER,
    TTI_CSV_WORD, // a category
    TTI_CSV_DATE,
} tti_csv_kind;
#define TTI_DATE_PARTS 5

typedef struct tti_csv {
    tti_csv_part *part;
    int64_t n_parts, now; // now: the one that is being looked at when opening
    char comma, quote, decimal;
    char **names; // of columns
    int64_t n, cap;
    int32_t *x, *y; // by column: place among the inputs or targets, -1: none
    int64_t n_x, n_y;
    int32_t *at;       // by column: where in x its values begin
    uint8_t *kind;     // by column: tti_csv_kind
    tti_words *tables; // by column: words of a category
    int64_t wide;      // values of x in a row
    int hash;          // categories have as many columns; 0: one for each word
    bool fixed_tables; // all words of categories were given
    bool has_categories, keeps_missing, zeros_unseen;
    bool has_classes, has_numbers; // classes; and these say their numbers themselves
    bool fixed_words;              // all classes were given
    bool no_header;
    int64_t window, horizon, stride; // window 0: records are rows
    tti_words words;
    int64_t first;  // records before it are left out
    int64_t *start; // of the others, in all files
    int64_t rows, cap_start;
    int64_t count;
} tti_csv;

// ---- first lines (csv_header.c) --------------------------------------------------------------

tt_status tti_csv_separator(tt_ctx *ctx, const char *text, char *out) TTI_CHECKED;
// Names of columns from the first file; those of the others must be the same.
tt_status tti_csv_header(tt_ctx *ctx, tti_csv *c, tti_csv_part *p, bool no_header) TTI_CHECKED;
tt_status tti_csv_promise(tt_ctx *ctx, const tti_bytes *head,
                          int64_t *size) TTI_CHECKED; // for gzip

// ---- values (csv_values.c) -------------------------------------------------------------------

// Which inputs are categories and dates, and words of them that are given.
tt_status tti_csv_kinds(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o) TTI_CHECKED;
// Once all words are known: sorts them, and gives every input its place in x.
tt_status tti_csv_lay_out(tt_ctx *ctx, tti_csv *c) TTI_CHECKED;
// A cell of an input, which is looked at for the first time (x NULL), or written to x.
tt_status tti_csv_value(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line, int64_t column,
                        const tti_cell *cell, float *x) TTI_CHECKED;
tt_status tti_csv_learn(tt_ctx *ctx, tti_csv *c, int64_t column, const tti_cell *cell) TTI_CHECKED;
bool tti_csv_parse(const tti_csv *c, const char *text, float *out); // with its decimal mark
// Days since 1970-01-01, month, day, weekday (0: Monday), hour.
bool tti_date_parse(const char *text, double out[TTI_DATE_PARTS]);

// ---- the rest --------------------------------------------------------------------------------

tt_status tti_csv_not_a_number(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                               int64_t column, const tti_cell *cell) TTI_CHECKED;
const char *tti_csv_path(const tti_csv *c, int64_t record); // the file that has it
// Cells of one file, [from, to) of all, as far as that file goes.
void tti_csv_begin(const tti_csv *c, int64_t from, int64_t to, tti_csv_at *at);
tt_status tti_csv_column(tt_ctx *ctx, const tti_csv *c, const char *name, int64_t *out) TTI_CHECKED;
// Which columns are inputs and which targets.
tt_status tti_csv_choose(tt_ctx *ctx, tti_csv *c, const tt_csv_opts *o) TTI_CHECKED;
// The next name of "a, b"; *more is false at the end.
tt_status tti_csv_next_name(tt_ctx *ctx, const char **list, char name[TTI_CELL_MAX],
                            bool *more) TTI_CHECKED;
// What may be wrong with a file whose columns are not those that are asked for; "": nothing.
const char *tti_csv_hint(const tti_csv *c, char out[TTI_CSV_HINT]);
// line below 1: not known any more, as the file has changed since it was opened.
tt_status tti_csv_bad_cell(tt_ctx *ctx, const tti_csv *c, int64_t record, int64_t line,
                           int64_t column, const tti_cell *cell, const char *what) TTI_CHECKED;
bool tti_csv_is(const tt_data *d); // is it the data set of a CSV file?

#endif
