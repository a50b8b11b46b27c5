/*
 * calls.h - sound values for every type of argument, for tests that call all public functions
 * (tools/null-calls writes the calls).
 */
#ifndef TUTTI_TEST_CALLS_H
#define TUTTI_TEST_CALLS_H

#include "test.h"

typedef struct calls_values {
    tt_ctx *ctx;
    tt_graph *graph;
    tt_tensor *tensor, *tensors[4];
    tt_model *model;
    tt_data *data;
    tt_session *session;
    tt_job *job;
    tt_comm *comm;
    tt_store *store;
    tt_recorder *recorder;
    const tt_op *op;
    tt_queue *queue; // closed: nothing waits
    tt_threads *threads;
    const void *opts; // what the calls of short_opts.inc get
} calls_values;
extern calls_values fx;

void *fx_room(void);                   // zeroed room for any result
void *fx_opts(size_t size);            // options with all defaults
void calls_open(void);                 // makes the values
void calls_open_for(const char *call); // only what a function of this name may take
void calls_close(void);

#endif
