/*
 * run_index.h - an index over the run folders of a root, in SQLite: ROOT/.index.sqlite. It holds
 * nothing that the folders do not: whatever changed since is read again, a file that is damaged or
 * of another version is made anew, and it may be removed at any time.
 */
#ifndef TUTTI_CLI_RUN_INDEX_H
#define TUTTI_CLI_RUN_INDEX_H

#include "cli/run_facts.h"

#define CLI_INDEX ".index.sqlite"

// One run of an answer.
typedef struct cli_row {
    char path[TTI_RUN_PATH];
    tti_run_info info;
    double sorted;   // the value that was sorted by; NaN: a text, or none
    char shown[128]; // it as text
    char tags[128];  // "a, b"
} cli_row;

typedef struct cli_query {
    const char *root;
    const cli_texts *where; // "train.batch>=64"; all must hold
    const char *sort;       // a key; "-key": the highest first; NULL: the newest first
    int64_t most;           // rows; 0: all
} cli_query;

bool cli_index_is_built(void); // has this build SQLite?
// Brings the index up to date and answers; free *out with tti_free().
tt_status cli_index_ask(tt_ctx *ctx, const cli_query *q, cli_row **out, int64_t *n) TTI_CHECKED;

#endif
