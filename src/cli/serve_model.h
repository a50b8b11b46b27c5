/*
 * serve_model.h - tutti serve-model: a trained model behind HTTP.
 *
 *   server thread   reads requests, parses them, puts them into a bounded queue, sends answers
 *   worker thread   takes what waits, runs the model once on all of it, wakes the server
 *   main thread     waits for signals
 *
 * Rows of a batch do not depend on each other, so an answer has the bits of tutti predict whatever
 * else was in its batch. The context belongs to the worker while the service runs.
 */
#ifndef TUTTI_CLI_SERVE_MODEL_H
#define TUTTI_CLI_SERVE_MODEL_H

#include "base/thread.h"
#include "cli/model.h"

// An inference request, from its headers to its answer.
typedef struct cli_request {
    char *body; // as far as it has come
    size_t n, cap;
    char id[128]; // as the client calls it; "": it does not
    int64_t rows;
    char *inputs[TTI_MAX_INPUTS];  // rows records each
    char *outputs[TTI_MAX_INPUTS]; // NULL: not asked for
    bool asked[TTI_MAX_INPUTS];
    int code; // of HTTP; 200 once answered, 0 before
    char error[1024];
    int64_t begin_ns;
    _Atomic bool is_done; // the worker has finished it
    void *connection;
} cli_request;
void cli_request_free(cli_request *r);
// Notes an error to be answered; gives false.
bool cli_request_fail(cli_request *r, int code, const char *fmt, ...) TT_PRINTF(3, 4);

#define CLI_SERVE_BUCKETS 12

// Counters of /metrics.
typedef struct cli_serve_stats {
    int64_t ok, client_errors, server_errors, refused; // requests; refused: the queue was full
    int64_t records, batches, padded;
    int64_t buckets[CLI_SERVE_BUCKETS]; // requests by seconds, each bound includes those below
    double seconds;
} cli_serve_stats;
extern const double cli_serve_bounds[CLI_SERVE_BUCKETS];

typedef struct cli_service {
    cli_model *m;
    char name[128];
    int n_inputs, n_outputs;
    tt_port inputs[TTI_MAX_INPUTS], outputs[TTI_MAX_INPUTS];
    size_t in_bytes[TTI_MAX_INPUTS], out_bytes[TTI_MAX_INPUTS]; // of a record
    int64_t gather;                                             // most records of a run
    int64_t queue_size;                                         // most requests that wait
    size_t body_max;
    int timeout_s;
    char token[260]; // "": none is needed
    char url[300];
    tti_queue queue;
    tti_thread worker;
    char *batch_in[TTI_MAX_INPUTS], *batch_out[TTI_MAX_INPUTS]; // gather records
    cli_request *held;                                          // taken, for the next run
    _Atomic bool is_ready, is_draining, is_lost;
    _Atomic int64_t in_flight; // requests whose headers have come, not yet answered
    pthread_mutex_t mu;        // guards stats
    cli_serve_stats stats;
    void *daemon; // of the HTTP library
    void (*wake)(cli_request *r);
} cli_service;

// serve_batch.c: the worker. start() runs every size of batch once, so that all are planned.
tt_status cli_serve_start(cli_service *s) TTI_CHECKED;
void cli_serve_stop(cli_service *s); // finishes what waits
// Counts an answer.
void cli_serve_count(cli_service *s, const cli_request *r);

// serve_json.c
bool cli_serve_parse(const cli_service *s, cli_request *r); // the body; false: failed
void cli_serve_print(const cli_service *s, const cli_request *r, tti_text *t);
void cli_serve_describe(const cli_service *s, tti_text *t);
void cli_serve_metrics(cli_service *s, tti_text *t);

// serve_http.c: false after telling why not.
bool cli_http_start(cli_service *s, const char *listen);
void cli_http_drain(cli_service *s); // accepts no more, answers what has come
void cli_http_stop(cli_service *s);

#endif
