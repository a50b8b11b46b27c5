/*
 * launch.h - starting the processes of a job and seeing them to their end.
 */
#ifndef TUTTI_CLI_LAUNCH_H
#define TUTTI_CLI_LAUNCH_H

#include "cli/cli.h"

// One process to be: words is what is run, NULL at the end, env what is set for it.
typedef struct cli_process {
    char **words;
    char **sets; // "NAME=value", NULL at the end; set after all variables of a cluster are gone
    const char *host; // NULL: this machine; else for messages: words reach it
} cli_process;

typedef struct cli_launch {
    const cli_process *processes;
    int n;
    const char *secret; // as text; the first line of each one's standard input
    int64_t grace_s;
} cli_launch;

/*
 * Runs them all and gives the exit code of the job: 0, or that of the first one that failed; 76
 * where that was killed. One that failed because it lost another counts only if no other failed of
 * a cause of its own. Standard output is the first one's. Of standard error, the first one's is
 * shown as it comes, the others' at the end, if the job failed and the first one did not say it.
 */
int cli_launch_run(const cli_launch *l);

#endif
