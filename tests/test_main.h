/*
 * test_main.h - what the runner and test.c know of each other.
 */
#ifndef TUTTI_TEST_MAIN_H
#define TUTTI_TEST_MAIN_H

#include "test.h"

#define TEST_MAX 4096

// What a test's process tells the runner, in shared memory.
typedef struct test_note {
    double started, seconds, cpu;
    char skipped[240]; // why; "" if it was not
} test_note;

test_note *test_note_get(void); // of the running test
const char *test_root(void);    // a folder for all tests' files
int test_number(void);          // of the running test
void test_leave(void);          // ends the running test; returns never

#endif
