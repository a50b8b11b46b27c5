/*
 * launch_own.h - the inside of a launch: its processes, and which of them are members of the job.
 */
#ifndef TUTTI_CLI_LAUNCH_OWN_H
#define TUTTI_CLI_LAUNCH_OWN_H

#include "cli/launch.h"
#include <sys/types.h>

#define CLI_MAX_SEEN 1024
#define CLI_MAX_LINE 4352 // of a process to the launcher

typedef enum cli_member_state {
    CLI_STARTING, // has not said that it is ready
    CLI_READY,    // waits to become a member
    CLI_MEMBER,
    CLI_OUT, // the others have gone on without it, or it has left
} cli_member_state;

typedef struct cli_child {
    pid_t pid; // 0: ended, and waited for
    int slot;  // which of the processes it runs
    int in, err;
    int status;
    char *said; // by ranks other than the first
    size_t n_said;
    char tail[4]; // of the first rank: a character that is not whole yet
    size_t n_tail;

    // Of an elastic job: members.c
    cli_member_state state;
    int rank;    // in the last membership it was in; -1: none
    int64_t age; // of its state
    int port;
    int64_t pinged_ns, alive_ns; // it was asked whether it is alive, and has answered
    char line[CLI_MAX_LINE];     // that it is telling
    size_t n_line;
    bool is_telling;
} cli_child;

typedef struct cli_launching {
    const cli_launch *l;
    cli_child *child;
    int n, room; // started so far, and at most
    int n_alive;
    int first; // the first that failed, of a cause of its own if any did; -1: none
    int64_t failed_ns, ended_ns, termed_ns; // when; 0: not yet
    int64_t meet_ms; // before they have met they wait that long, and name who is missing
    bool is_killed;
    int leader; // whose words are shown as they come; -1: nobody's
    const void *mask;
    uint64_t seen[CLI_MAX_SEEN]; // lines that were shown
    int n_seen;
    struct cli_members *members; // NULL: they are the same from the first step to the last
} cli_launching;

// Starts another process of a slot; its number, or -1 with errno.
int cli_launch_start(cli_launching *a, int slot);

// members.c: the membership of an elastic job; NULL: out of memory.
struct cli_members *cli_members_new(cli_launching *a);
void cli_members_free(struct cli_members *m);
// Bytes of a child's standard error: takes out what is for the launcher; gives how many are left.
size_t cli_members_hear(struct cli_members *m, int i, char *s, size_t n);
// A child has ended. true: the job goes on.
bool cli_members_ended(struct cli_members *m, int i);
void cli_members_tick(struct cli_members *m); // a few times a second, and after all of the above

#endif
