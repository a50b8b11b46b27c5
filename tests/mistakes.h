/*
 * mistakes.h - typical mistakes, made with the real command: each answer must name the culprit and
 * what to do.
 */
#ifndef TUTTI_TEST_MISTAKES_H
#define TUTTI_TEST_MISTAKES_H

#include "command.h"

typedef struct mistake {
    const char *what;           // the mistake, in words
    const char *line;           // of the shell; $TUTTI is the command, $J a job that is right
    int code;                   // exit code
    const char *culprit, *hint; // both are in what is printed; hint NULL: the culprit says it
    const char *setup;          // of the shell, before; NULL: nothing
} mistake;

/*
 * Makes every mistake in a folder of its own, which has small.yaml (command_small_job), job.yaml,
 * the lines that a row may want to change one of, and nothing else. Standard error must have the
 * words, no name of a C function, and one error at most.
 */
void mistakes_make(const mistake *rows, int n);

#endif
