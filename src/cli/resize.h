/*
 * resize.h - how tutti resize tells the launcher of an elastic job what it wants: by a file in the
 * run's folder, which the launcher takes away, and another one if it refuses.
 */
#ifndef TUTTI_CLI_RESIZE_H
#define TUTTI_CLI_RESIZE_H

#include <stdbool.h>

// The launcher's side: is there a request? *wanted is how many there are to be; the number that it
// has been is given.
bool cli_resize_take(const char *run, int *wanted);
void cli_resize_answer(const char *run, const char *refused); // "": it is done

#endif
