/*
 * job.h (internal) - a job: the resolved tree, and its plain sections as structs.
 */
#ifndef TUTTI_JOB_INTERNAL_H
#define TUTTI_JOB_INTERNAL_H

#include "job/schema.h"
#include "strategy/strategy.h"
#include "train/optimizer.h"
#include <tutti/job.h>

typedef struct tti_job_top {
    const char *name;
    int64_t seed;
} tti_job_top;

typedef struct tti_job_data {
    const char *dir;
    bool shuffle;
    int workers, prefetch;
    bool compare_all;
    bool balance;
} tti_job_data;

typedef struct tti_job_train {
    tt_fit_opts fit;
    tt_compile_opts compile;
    // What they point to.
    tt_watch early_stop, plateau, best;
    tt_loss losses[TT_MAX_LOSSES];
    int n_losses;
    tti_rule rule;
} tti_job_train;

typedef struct tti_job_init {
    const char *file;
    tt_load_opts load;
} tti_job_init;

typedef struct tti_job_checkpoint {
    int64_t every;
    int keep;
    const char *best;
} tti_job_checkpoint;

typedef struct tti_job_output {
    const char *dir;
    bool tensorboard, histograms, trial;
    int images;
    const char *notify, *webhook;
    double stall;
    const char *mlflow, *http;
} tti_job_output;

// Its rows are its own, and tti_spread_rows.
typedef struct tti_job_distribute {
    tt_spread spread;
    int strategy;
    const char *devices, *workers;
    int lanes, threads;
    int64_t deadline_ms;
} tti_job_distribute;

// What stands beside a layer's own options.
typedef struct tti_job_layer {
    const char *name, *from, *share, *device;
} tti_job_layer;

typedef struct tti_job_residual {
    int act;
    const char *name, *from, *device;
} tti_job_residual;

struct tt_job {
    tt_ctx *ctx;
    struct tti_hooks owned;
    tti_tree tree;
    tti_item *root; // resolved
    char *core;     // tt_job_core_print(), for checkpoints
    tti_job_top top;
    tt_open_opts open;
    tt_spread spread;    // what open points to
    tti_job_train train; // of the last build
    const char *words;   // of CSV classes that a source does not name itself; NULL: none
    const char *tables;  // words of categories, likewise
    bool no_pins;        // models are built as if the job had none: one device, to compare with
};

// ---- rows.c, sections.c ----------------------------------------------------------------------

extern const tt_option tti_job_top_rows[], tti_job_data_rows[], tti_job_train_rows[],
    tti_job_early_stop_rows[], tti_job_plateau_rows[], tti_job_init_rows[],
    tti_job_checkpoint_rows[], tti_job_distribute_rows[], tti_job_output_rows[],
    tti_job_layer_rows[], tti_job_group_rows[], tti_job_input_rows[], tti_job_residual_rows[],
    tti_job_outputs_rows[], tti_job_pin_rows[];
extern const char *const tti_job_strategies[];

// The path of a key that stands in one section only, by its name: "train.epochs" of "epochs", also
// of the whole job. False: there is none.
bool tti_job_key_path(const char *name, char path[TTI_KEY_MAX]);

// leave_out.c: resets what does not go with a strategy or device that is not the file's own.
tt_status tti_job_leave_out(tt_job *j, const char *file, tti_job_distribute *d) TTI_CHECKED;

// ---- building --------------------------------------------------------------------------------

// Rows of the job's own; a text that is empty becomes NULL, as in a program.
tt_status tti_bind_own(tt_ctx *ctx, const tt_option *rows, const tti_item *record,
                       void *out) TTI_CHECKED;
void tti_texts_or_null(const tt_option *rows, void *out);
// Puts "file:line:column: path: " in front of messages until tti_fail_where(ctx, NULL).
void tti_fail_item(tt_ctx *ctx, const tti_item *item, const char *path, char buf[TTI_PLACE_MAX]);

/*
 * tt_job_build() as the command calls it. no_init: weights are not loaded, since a checkpoint's
 * will be, and the file of init need not be there any more.
 */
typedef struct tti_job_build_opts {
    const char *runs; // where runs are looked for by name; NULL: output.dir
    bool no_init;
} tti_job_build_opts;
tt_status tti_job_build(tt_job *j, tt_ctx *ctx, const tti_job_build_opts *o,
                        tt_job_parts *out) TTI_CHECKED;
/*
 * Compiles a model that is no part of the job as its section train says, where there is one; what
 * the targets are is known from it. Fills p->fit.
 */
tt_status tti_job_compile(tt_job *j, tt_ctx *ctx, const tt_compile_opts *known,
                          tt_job_parts *p) TTI_CHECKED;
// Loads the weights that init names, if it names any.
tt_status tti_job_init_weights(tt_job *j, tt_ctx *ctx, const char *runs, tt_model *m) TTI_CHECKED;

#define TTI_JOB_SPLIT "split" // in place of a source: a part of the training data
// Opens data.train, data.validate and data.test; those that the job lacks stay NULL.
tt_status tti_job_open_data(tt_job *j, tt_ctx *ctx, tt_job_parts *p) TTI_CHECKED;
/*
 * One of "validate" and "test", for a model that is trained: what was fitted on the training data
 * is known from it. *out stays NULL if the job has none.
 */
tt_status tti_job_open_part(tt_job *j, tt_ctx *ctx, const char *part, tt_model *m,
                            tt_data **out) TTI_CHECKED;
// The model; fields are of the data, n_fields 0 if there is none.
tt_status tti_job_build_model(tt_job *j, tt_ctx *ctx, const tt_field *fields, int n_fields,
                              tt_model **out) TTI_CHECKED;

#endif
