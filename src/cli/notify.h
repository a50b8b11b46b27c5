/*
 * notify.h - a run tells others how it goes: when it has ended, failed, diverged, or stands still,
 * the command of the job's output.notify runs, and the address of output.webhook gets a message.
 */
#ifndef TUTTI_CLI_NOTIFY_H
#define TUTTI_CLI_NOTIFY_H

#include "cli/job.h"
#include "net/http.h"
#include <pthread.h>

typedef struct cli_notify {
    char *command; // NULL: there is none
    bool has_webhook;
    tti_url webhook;
    int64_t stall_ns;
    char run[TTI_RUN_PATH];
    tt_ctx *ctx; // whose events are watched; NULL: none
    tti_observer observer;
    pthread_t thread;
    pthread_mutex_t mu; // guards what follows
    pthread_cond_t changed;
    bool has_thread, is_over, has_stalled;
    int64_t last_ns, step; // of the last event
} cli_notify;

// What the job says; nothing runs yet. Fails if an address in section output is none.
tt_status cli_notify_init(cli_notify *n, const cli_job *j) TTI_CHECKED;
// A fit begins in the folder of a run: from here on it is watched.
void cli_notify_watch(cli_notify *n, tt_ctx *ctx, const char *run);
void cli_notify_unwatch(cli_notify *n); // the context ends
// The run is over with this exit code; message: its error, or "".
void cli_notify_end(cli_notify *n, int rc, const char *message);

#endif
