/*
 * csv_own.h - an open CSV file, for csv.c and csv_columns.c.
 */
#ifndef TUTTI_DATA_CSV_OWN_H
#define TUTTI_DATA_CSV_OWN_H

#include "data/csv.h"
#include "data/data.h"

#define TTI_CSV_HINT 256

typedef struct tti_csv {
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
} tti_csv;

void tti_csv_begin(const tti_csv *c, int64_t from, int64_t to, tti_csv_at *at);
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
