/*
 * tracker.h - the events of a run, sent to a server as they come: MLflow's tracking server, by its
 * REST interface, or any that takes JSON over HTTP.
 *
 * Training never waits for it: events go to a buffer of fixed size, and a thread sends what is
 * there about once a second. What does not fit is dropped and counted. A server that cannot be
 * reached is told once, as a warning, and tried again later; at the end of a run it has CLOSE_MS
 * to take what is left.
 */
#ifndef TUTTI_RECORD_TRACKER_H
#define TUTTI_RECORD_TRACKER_H

#include "base/thread.h"
#include "net/http.h"
#include "record/record.h"
#include <jansson.h>

#define TTI_TRACKER_ROOM ((size_t)1 << 18) // bytes of events that wait

typedef enum tti_tracker_kind {
    TTI_TRACKER_JSON,
    TTI_TRACKER_MLFLOW,
} tti_tracker_kind;

typedef struct tti_tracker {
    tt_ctx *ctx;
    tti_tracker_kind kind;
    const char *key; // the option that asked for it, for messages
    tti_url url;
    char folder[TTI_RUN_PATH], run[256],
        name[256]; // the run's folder, its last part, the job's name
    tti_thread thread;
    _Atomic int64_t until_ns; // when sending ends at the latest

    pthread_mutex_t mu; // guards what follows; nothing is logged under it
    pthread_cond_t changed;
    bool is_over;
    int64_t dropped; // events
    size_t n;
    char *waiting; // lines of JSON, TTI_TRACKER_ROOM bytes

    // The thread's own.
    char *taken;
    bool is_warned;
    bool is_refused; // the server answered the last request, and does not want it
    // MLflow
    char id[80], status[16]; // of the run, there
    int64_t step;            // the last one whose values were sent
} tti_tracker;

/*
 * name: the job's, under which a server gathers runs. The first failure to reach the server is no
 * failure of this.
 */
tt_status tti_tracker_open(tt_ctx *ctx, tti_tracker_kind kind, const char *url, const char *folder,
                           const char *name, tti_tracker **out) TTI_CHECKED;
// An event as JSON, without its first brace: added to what waits, or dropped.
void tti_tracker_add(tti_tracker *t, double time, const char *object);
void tti_tracker_keys(tti_tracker *t, double time, const tt_pair *pairs, int n);
void tti_tracker_close(tti_tracker *t); // NULL is fine

// tracker_mlflow.c: sends lines; false: the server did not take them, and why says so.
bool tti_mlflow_send(tti_tracker *t, json_t *events, char why[TTI_HTTP_WHY]);
bool tti_mlflow_end(tti_tracker *t, char why[TTI_HTTP_WHY]);
// Says why, as a warning, once.
void tti_tracker_warn(tti_tracker *t, const char *why);
// A request: its status, or 0 if there is no answer. *answer, if asked for: to be freed, or NULL.
int tti_tracker_ask(tti_tracker *t, const char *path, json_t *body, json_t **answer,
                    char why[TTI_HTTP_WHY]);

#endif
