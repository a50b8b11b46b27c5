/*
 * ranks.h - the command in several processes with environments of their own, as launchers other
 * than ours start them; and what is left of them afterwards.
 */
#ifndef TUTTI_TEST_RANKS_H
#define TUTTI_TEST_RANKS_H

#include "command.h"

#define RANKS_MOST 5

typedef struct ranks {
    int n;
    pid_t pid[RANKS_MOST];
    int code[RANKS_MOST]; // exit code, or minus the signal
    double seconds;       // until the last one ended
    char out[RANKS_MOST][1 << 16], err[RANKS_MOST][1 << 14];
} ranks;

// Ends the test as skipped where processes cannot meet.
void ranks_need(void);
// Starts one more: line as of command_run(); env is "NAME=value" texts, NULL at the end, and no
// other variable that tells of processes is set.
void ranks_start(ranks *r, const char *line, const char *const *env);
// Waits for all; those that take longer are killed and fail the test.
void ranks_join(ranks *r, double seconds);
int ranks_port(void); // one that is free now
// No process in the test's folder, no shared memory, no file of a socket.
void ranks_nothing_left(void);
double ranks_now(void);
// Starts tutti run and waits until it is at that step, or has ended; pids of its children by rank.
pid_t ranks_launch(const char *line, const char *run, int64_t steps, pid_t *child, int n);

#endif
