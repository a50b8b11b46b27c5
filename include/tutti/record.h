/*
 * record.h - run folders: what a context's training does, written down as it happens, as tutti
 * train does it. `tutti runs` lists, filters and compares them, `tutti plot` and TensorBoard draw
 * them.
 */
#ifndef TUTTI_RECORD_H
#define TUTTI_RECORD_H

#include <tutti/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tt_recorder tt_recorder;

typedef struct tt_record_opts {
    size_t opts_size;
    const char *dir;  // the folder; default: a new one, "<root>/<name>-<nnn>"
    const char *root; // default "runs"
    const char *name; // default "run"
    const char *job;  // YAML or JSON that describes the run, kept as job.yaml: tutti runs finds and
                      // compares runs by its keys; default: only the name
    bool no_tensorboard;
} tt_record_opts;

/*
 * Records the events of ctx from here on: events.jsonl, TensorBoard's files and job.yaml. While it
 * does, the folder is locked: tutti runs shows it as training. A folder that has a run is added to.
 * One recorder per run; in a job of several processes the first one records. Owned by ctx; NULL on
 * failure. TT_EIO: another process records there.
 */
TT_API tt_recorder *tt_record_with(tt_ctx *ctx, const tt_record_opts *opts);
#define tt_record(...) TT_CALL1(tt_record, __VA_ARGS__, )
TT_API const char *tt_recorder_folder(const tt_recorder *r); // valid until it ends; "" for NULL
TT_API void tt_recorder_end(tt_recorder *r);                 // NULL is fine

#ifdef __cplusplus
}
#endif
#endif
