/*
 * command.h - runs the built command as a user would: words, standard files, exit code. The command
 * is the one that TUTTI_COMMAND names, or the one beside this test's folder; it runs in the test's
 * own folder.
 */
#ifndef TUTTI_TEST_COMMAND_H
#define TUTTI_TEST_COMMAND_H

#include "test.h"
#include <jansson.h>
#include <sys/types.h>

// What the last command_run() or command_wait() found on standard output and error.
extern char command_out[1 << 20], command_err[1 << 16];

const char *command_path(void); // ends the test as skipped when it is not built
// Runs the command with these words (one space between two); standard input is the file "in" of the
// folder, if there is one. Gives its exit code; a signal that killed it fails the test.
int command_run(const char *line);
void command_ok(const char *line); // runs it; any exit code but 0 fails the test
// Runs a line of the shell in the folder; $TUTTI is the command. Gives the shell's exit code.
int command_shell(const char *line);
pid_t command_start(const char *line);
int command_wait(pid_t pid); // the exit code, or minus the signal that killed it
// Reads a file of the test's folder whole; "" if it is not there.
void command_read(const char *name, char *to, size_t room);
void command_write(const char *name, const char *text);
bool command_left(const char *name); // is there such a file or folder?

// Checks that every line is a JSON object; gives the last one, to be released.
json_t *command_last_object(const char *text, int *lines);
// The weights_hash of the last line of what was printed as JSON.
void command_hash(const char *text, char hash[64]);
int command_count(const char *text, const char *words); // how often they occur

// A job that trains in an instant: 3 epochs of 10 steps, and data for validation and test.
extern const char command_small_job[];

#define CHECK_HAS(text, words) \
    ck_assert_msg(strstr((text), (words)) != NULL, "no '%s' in '%.2000s'", (words), (text))

// An f32 array that counts up, in NumPy's format, in the test's folder; shape as "3, 28, 28, 1".
void command_npy(const char *name, const char *shape, int64_t n);

#endif
