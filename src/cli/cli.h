/*
 * cli.h - the tutti command: one file per verb, one record each. Only this folder prints to stdout
 * or decides exit codes.
 */
#ifndef TUTTI_CLI_CLI_H
#define TUTTI_CLI_CLI_H

#include "base/base.h"
#include <tutti/tutti.h>

// Exit codes; `tutti help exit` prints them.
enum {
    CLI_OK = 0,
    CLI_FAILED = 1, // an error, or a difference found by diff
    CLI_USAGE = 2,  // the command line is wrong
};

#define CLI_MAX_TARGETS 256
#define CLI_MAX_WORDS   64

// What flags and words of the command line say.
typedef struct cli_args {
    bool json, dot, help;
    const char *devices, *isa, *svg, *level;
    int64_t rows, threads, lanes;
    const char *targets[CLI_MAX_TARGETS];
    int n_targets;
    const char *words[CLI_MAX_WORDS]; // what is no flag
    int n_words;
} cli_args;

typedef struct cli_verb {
    const char *name;
    const char *words;   // "FILE", for the usage line
    const char *summary; // one line
    const char *help;    // more lines
    const char *flags;   // names of the flags it takes, with spaces between
    int min_words, max_words;
    int (*run)(const cli_args *args);
} cli_verb;

extern const cli_verb cli_devices, cli_kernels, cli_plan, cli_diff, cli_version, cli_help;
extern const cli_verb *const cli_verbs[]; // NULL at the end

// args.c: reads the words after the verb; CLI_USAGE after telling what is wrong.
int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *out);
void cli_print_flags(const cli_verb *verb); // as help shows them

// main.c
const cli_verb *cli_find(const char *name);
// Tells what is wrong with the command line on stderr; gives CLI_USAGE.
int cli_usage(const char *fmt, ...) TT_PRINTF(1, 2);
// A context with the devices and settings of the flags; NULL after telling why not.
tt_ctx *cli_open(const cli_args *args, const char *devices);
// Closes it and tells its error, if any, with what (a file name, or NULL) in front.
int cli_close(tt_ctx *ctx, const char *what);
// Prints a text that may be NULL.
void cli_print(const char *s);

#endif
