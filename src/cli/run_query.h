/*
 * run_query.h - what run_index.c, which keeps the index, and run_query.c, which asks it, share.
 */
#ifndef TUTTI_CLI_RUN_QUERY_H
#define TUTTI_CLI_RUN_QUERY_H

#include "cli/run_index.h"

#ifdef TUTTI_HAVE_SQLITE
#include <sqlite3.h>

typedef struct cli_index {
    tt_ctx *ctx;
    sqlite3 *db;
    const char *root;
} cli_index;

tt_status cli_index_failed(const cli_index *x); // records what SQLite says
tt_status cli_index_run(const cli_index *x, const char *sql) TTI_CHECKED;
// The rows of an index that is up to date.
tt_status cli_index_answer(const cli_index *x, const cli_query *q, cli_row **out,
                           int64_t *n) TTI_CHECKED;
#endif
#endif
