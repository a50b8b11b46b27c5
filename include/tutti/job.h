/*
 * job.h - job files: the same parts as a C program, in YAML. Every key is an option row with a
 * type, a default and a help text; errors name file, line and column.
 */
#ifndef TUTTI_JOB_H
#define TUTTI_JOB_H

#include <tutti/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_job tt_job;

typedef struct tt_job_opts {
    size_t opts_size;
    const char *const *sets; // "train.batch=256", later ones win; over the environment and the file
    int n_sets;
    bool no_env; // leave TUTTI_* alone
} tt_job_opts;
typedef tt_job_opts tt_job_read_opts;

/*
 * Reads and checks a job file. Precedence: sets, then TUTTI_SECTION_KEY of the environment, then
 * the file, then defaults. Owned by ctx, which only keeps errors and memory: the job runs in a
 * context of its own.
 */
TT_API tt_job *tt_job_read_with(tt_ctx *ctx, const char *path, const tt_job_opts *opts);
#define tt_job_read(...) TT_CALL2(tt_job_read, __VA_ARGS__, )
// The same from text, without the environment; name stands for the file in messages.
TT_API tt_job *tt_job_parse(tt_ctx *ctx, const char *text, size_t bytes, const char *name);
TT_API void tt_job_free(tt_job *j);

TT_API const char *tt_job_name(const tt_job *j);
// The resolved job as YAML: every key with its value. Free with tt_string_free().
TT_API char *tt_job_print(tt_job *j);
/*
 * The same without what only says where it runs (name, distribute, output, data.workers,
 * data.prefetch): equal for runs that give equal results, and so what checkpoints keep.
 */
TT_API char *tt_job_core_print(tt_job *j);
// A resolved value as text by its dotted key, "output.dir"; NULL: no such key. Borrowed.
TT_API const char *tt_job_get(const tt_job *j, const char *key);
// What a context for the job is opened with; strings are borrowed from the job.
TT_API tt_open_opts tt_job_open_opts(const tt_job *j);

// What a job describes, built in ctx (opened with tt_job_open_opts()): owned by ctx.
typedef struct tt_job_parts {
    tt_data *train, *validate, *test; // NULL where the job has none
    tt_model *model;                  // compiled when the job has a train section
    tt_fit_opts fit;                  // with everything but callbacks and folders filled in
} tt_job_parts;
TT_API tt_status tt_job_build(tt_job *j, tt_ctx *ctx, tt_job_parts *out);

// Help of a key: "train.optimizer.adam", "model.dense", "" for all. Free with tt_string_free().
TT_API char *tt_job_help(tt_ctx *ctx, const char *key);

#ifdef __cplusplus
}
#endif
#endif
