/*
 * job.h - job files: data, model and training described in YAML. Every key has a type, a default
 * and a help text; errors name file, line and column.
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
    const char *const
        *sets; // "train.batch=256"; override the environment and the file; the last wins
    int n_sets;
    bool no_env; // do not read TUTTI_* variables
} tt_job_opts;
typedef tt_job_opts tt_job_read_opts;

/*
 * Reads and checks a job file. Precedence: sets, then TUTTI_SECTION_KEY of the environment, then
 * the file, then defaults. The job is owned by ctx, which only holds its errors and memory; it runs
 * in another context, opened with tt_job_open_opts().
 */
TT_API tt_job *tt_job_read_with(tt_ctx *ctx, const char *path, const tt_job_opts *opts);
#define tt_job_read(...) TT_CALL2(tt_job_read, __VA_ARGS__, )
// The same from a string, without the environment; name is used as the file name in messages.
TT_API tt_job *tt_job_parse(tt_ctx *ctx, const char *text, size_t bytes, const char *name);
TT_API void tt_job_free(tt_job *j);

TT_API const char *tt_job_name(const tt_job *j);
// The resolved job as YAML: every key with its value. Free with tt_string_free().
TT_API char *tt_job_print(tt_job *j);
/*
 * The same without the keys that only say where the job runs (name, distribute, output,
 * data.workers, data.prefetch, data.compare_all). It is equal for runs with equal results and
 * stored in checkpoints.
 */
TT_API char *tt_job_core_print(tt_job *j);
// The value of a key ("output.dir") as text, valid as long as the job; NULL: no such key.
TT_API const char *tt_job_get(const tt_job *j, const char *key);
// Options with which to open a context for the job, owned by the job; NULL for NULL.
TT_API const tt_open_opts *tt_job_open_opts(const tt_job *j);

// The parts of a job, built in ctx (opened with tt_job_open_opts()) and owned by it.
typedef struct tt_job_parts {
    tt_data *train, *validate, *test; // NULL if the job has none
    tt_model *model;                  // compiled if the job has a train section
    tt_fit_opts *fit; // complete but for callbacks and folders, which may be set here; owned by
                      // the job and made anew by the next build
} tt_job_parts;
TT_API tt_status tt_job_build_sized(tt_job *j, tt_ctx *ctx, tt_job_parts *out, size_t size);
#define tt_job_build(j, ctx, out) tt_job_build_sized((j), (ctx), (out), sizeof(tt_job_parts))

// Help on a key: "train.optimizer.adam", "model.dense", "" for all. Free with tt_string_free().
TT_API char *tt_job_help(tt_ctx *ctx, const char *key);

#ifdef __cplusplus
}
#endif
#endif
