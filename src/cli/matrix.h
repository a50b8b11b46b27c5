/*
 * matrix.h - the matrix of same bits: some models, and all the ways to spread them.
 *
 * Every model trained in every way must end with the same weights and the same loss. Both the
 * command (tutti bench same-bits) and the tests run these records.
 */
#ifndef TUTTI_CLI_MATRIX_H
#define TUTTI_CLI_MATRIX_H

#include "base/base.h"
#include <tutti/tutti.h>

#define MATRIX_MAX_LANES 16

struct matrix_way;
typedef struct matrix_model {
    const char *name, *optimizer;
    const tt_optimizer *rule;
    tt_model *(*build)(tt_ctx *ctx, const struct matrix_way *way);
    bool is_text;   // its data are symbols, not images
    bool is_joined; // needs the whole batch at once: batch norm over it
    tt_precision precision;
    // Its weights with the default lanes on any machine; changes only with TT_ARITHMETIC.
    const char *hash;
} matrix_model;

typedef enum matrix_group {
    MATRIX_SINGLE,
    MATRIX_MIRRORED,
    MATRIX_CENTRAL,
    MATRIX_PINS,
    MATRIX_REPLICAS, // of a model that lies on several devices
    MATRIX_PIPELINE,
    MATRIX_INTERLEAVED,
    MATRIX_PIPELINES, // replicas of a pipeline
    MATRIX_ACCUMULATE,
    MATRIX_RECOMPUTE,
    MATRIX_LANES_1,
    MATRIX_LANES_4,
    MATRIX_LANES_16,
    MATRIX_N_GROUPS,
} matrix_group;

typedef struct matrix_way {
    matrix_group group;
    const char *strategy;
    int devices;
    int lanes;      // 0: default
    int pins;       // the layers lie on so many devices, by scopes
    bool is_local;  // pins are relative to the replica
    int accumulate; // 0: 1
    const char *recompute, *isa;
    int threads;           // 0: 2
    tt_spread spread;      // without its size
    const char *device;    // what the devices are parts of; NULL: "cpu:0"
    const tt_tasks *tasks; // processes that share the devices, in order; NULL: this one has all
} matrix_way;

extern const matrix_model matrix_models[];
extern const matrix_way matrix_ways[];
int matrix_n_models(void);
int matrix_n_ways(void);

// The way that the others of these lanes are held against: one device.
matrix_way matrix_reference(int lanes);
// Its weights are the recorded ones: the CPU's, with the default lanes.
bool matrix_has_golden(const matrix_way *way);
// Is there such a combination? Batch norm over the batch cannot be had in parts.
bool matrix_has(const matrix_model *model, const matrix_way *way);
// What is set besides strategy and devices, "stages 2, gpipe"; "" if nothing.
void matrix_options(const matrix_way *way, char out[128]);
const char *matrix_strategy(const matrix_way *way); // "mirrored x pins", for example

// A context for the way; on_event gets nothing.
tt_ctx *matrix_open(const matrix_way *way);
// The compiled model in it, and count records of its data; NULL: the context has the error.
tt_model *matrix_build(tt_ctx *ctx, const matrix_model *model, const matrix_way *way);
tt_data *matrix_data(tt_ctx *ctx, const matrix_model *model, int64_t count);

typedef struct matrix_result {
    tt_hash weights;
    double loss, metric;
    double ms;   // of a step
    int working; // devices that had something to do
    tt_status status;
    char message[256]; // "" if it went well
} matrix_result;
// Trains a few steps; hashes of all nodes go to a file, if one is named.
void matrix_run(const matrix_model *model, const matrix_way *way, const char *hashes,
                matrix_result *out);
// Has it, trained in a way that has recorded weights, those?
bool matrix_is_golden(const matrix_model *model, const matrix_result *r);
bool matrix_same(const matrix_result *a, const matrix_result *b);

// ---- matrix_jobs.c: the same over processes --------------------------------------------------

#define MATRIX_MOST_TASKS 4
// Devices of process task, of n.
int matrix_share(const matrix_way *way, int n, int task);
/*
 * Trains in n processes that are forked for it and share the way's devices; transport as of
 * tt_tasks. What they end with must be equal, and is put out; else the first that failed.
 */
void matrix_run_job(const matrix_model *model, const matrix_way *way, int n, const char *transport,
                    matrix_result *out);

#endif
