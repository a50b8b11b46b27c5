/*
 * record.h - run folders: what a context's training does, written down as it happens, as tutti
 * train does it. `tutti runs` lists, filters and compares them, `tutti plot` and TensorBoard draw
 * them.
 */
#ifndef TUTTI_RECORD_H
#define TUTTI_RECORD_H

#include <tutti/data.h>

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
    const char *mlflow; // also send the run to this MLflow tracking server, "http://host:5000"
    const char *http;   // also send events as JSON to this address; "$NAME" in either: the value of
                        // that variable of the environment
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

/*
 * Records where the run comes from, as tutti train does: versions, arithmetic, machine,
 * environment, fingerprints of the data, and what the program knows of its own commit.
 */
typedef struct tt_record_origin_opts {
    size_t opts_size;
    const char *commit; // of the program's folder; default: not recorded
    bool changed;       // files differ from that commit
    tt_data *train, *validate, *test;
} tt_record_origin_opts;
TT_API tt_status tt_record_origin_with(tt_recorder *r, const tt_record_origin_opts *opts);
#define tt_record_origin(...) TT_CALL1(tt_record_origin, __VA_ARGS__, )

/*
 * For TensorBoard's pages of histograms and images, beside what is recorded anyway. tag is the name
 * there; the same tag at several steps is one slider. They return TT_OK where the run is recorded
 * without TensorBoard.
 */
typedef struct tt_record_histogram_opts {
    size_t opts_size;
    int64_t step;
    const float *values;
    int64_t count; // of values; those that are not finite are left out
} tt_record_histogram_opts;
TT_API tt_status tt_record_histogram_with(tt_recorder *r, const char *tag,
                                          const tt_record_histogram_opts *opts);
#define tt_record_histogram(...) TT_CALL2(tt_record_histogram, __VA_ARGS__, )

typedef struct tt_record_image_opts {
    size_t opts_size;
    int64_t step;
    const unsigned char *pixels; // rows from the top, the channels of a pixel side by side
    int height, width;           // at most 4096 each
    int channels;                // 1: grey (default), 3: red, green and blue, 4: with opacity
} tt_record_image_opts;
TT_API tt_status tt_record_image_with(tt_recorder *r, const char *tag,
                                      const tt_record_image_opts *opts);
#define tt_record_image(...) TT_CALL2(tt_record_image, __VA_ARGS__, )

// A confusion matrix as an image: a row per class, a column per prediction. tt_evaluate_table() has
// the counts of the metric confusion.
typedef struct tt_record_confusion_opts {
    size_t opts_size;
    int64_t step;
    const double *counts; // [classes, classes]
    int classes;          // at most 640
} tt_record_confusion_opts;
TT_API tt_status tt_record_confusion_with(tt_recorder *r, const char *tag,
                                          const tt_record_confusion_opts *opts);
#define tt_record_confusion(...) TT_CALL2(tt_record_confusion, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
