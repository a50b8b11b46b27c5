/*
 * child.h - other programs that the command runs: git, a build, itself.
 */
#ifndef TUTTI_CLI_CHILD_H
#define TUTTI_CLI_CHILD_H

#include "cli/cli.h"

typedef struct cli_child {
    const char *const *words; // the program and its arguments, NULL at the end
    const char *folder;       // where it runs; NULL: here
    const char *log;          // file for standard output and error; NULL: see out
    tti_text *out;            // gets standard output; NULL: it is dropped, with standard error
    int timeout_ms;           // it is killed then; 0: never
} cli_child;

// Gives its exit code; 128 and more: a signal ended it; -1: it could not be run or took too long.
int cli_child_run(const cli_child *c);
// The path of this program, for children of its own kind.
const char *cli_self(char path[TTI_PATH_MAX]);

#endif
