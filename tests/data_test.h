/*
 * data_test.h - files for tests of data sets: written, packed, cut short, opened without memory.
 */
#ifndef TUTTI_DATA_TEST_H
#define TUTTI_DATA_TEST_H

#include "test.h"

typedef tt_data *data_open_fn(tt_ctx *ctx);

// A name in the test's folder; borrowed for some calls.
const char *data_path(const char *name);
void data_write(const char *name, const void *bytes, size_t n);
void data_gzip(const char *name, const void *bytes, size_t n);
void data_text(const char *name, const char *text);

// Gives all records in order of the source, in one batch of count rows.
tt_batch_data data_all(tt_data *d);

/*
 * Writes every beginning of bytes to the file and opens it: each must fail and name the file, all
 * bytes must open.
 */
void data_cuts(const char *name, const void *bytes, size_t n, data_open_fn *open);
// Every allocation of opening, starting and reading fails once; nothing leaks.
void data_no_memory(data_open_fn *open);
// Opening fails with these words.
void data_refuses(data_open_fn *open, const char *words);

#endif
