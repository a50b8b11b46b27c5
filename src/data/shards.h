/*
 * shards.h - sources of many records per file: JSON lines, TFRecord, WebDataset. Opening finds
 * where records begin; a record is read where it lies.
 */
#ifndef TUTTI_DATA_SHARDS_H
#define TUTTI_DATA_SHARDS_H

#include "data/images.h"

// The same as sources of open files, which they take over: what the fuzzers call.
tt_status tti_jsonl_source(tt_ctx *ctx, tti_bytes *b, const tt_jsonl_opts *o,
                           tt_source *out) TTI_CHECKED;
tt_status tti_tfrecord_source(tt_ctx *ctx, tti_bytes *b, const tt_tfrecord_opts *o,
                              tt_source *out) TTI_CHECKED;
tt_status tti_webdataset_source(tt_ctx *ctx, tti_bytes *b, const tt_webdataset_opts *o,
                                tt_source *out) TTI_CHECKED;

// What is done to the images of such a source; false for other data sets, and without images.
bool tti_tfrecord_about(const tt_data *d, tti_images_about *out);
bool tti_webdataset_about(const tt_data *d, tti_images_about *out);
// Class names, as tti_images_words().
char *const *tti_webdataset_words(const tt_data *d, int64_t *n);
char *const *tti_jsonl_words(const tt_data *d, int64_t *n);
void tti_tfrecord_describe(const tt_data *d, tti_text *t);
// Adds what a model keeps of the keys of JSON lines: ', "keys": {...}'; nothing for others.
void tti_jsonl_describe(const tt_data *d, tti_text *t);

// ---- TFRecord (tfrecord_example.c) -----------------------------------------------------------

// A feature of a tf.train.Example: where its values lie in the record.
typedef enum tti_feature_kind {
    TTI_FEATURE_NONE,
    TTI_FEATURE_BYTES,
    TTI_FEATURE_FLOATS,
    TTI_FEATURE_INTS,
} tti_feature_kind;
typedef struct tti_feature {
    tti_feature_kind kind;
    const unsigned char *list, *end; // the message of its list
    int64_t n;                       // values
} tti_feature;
// Finds a feature by name; false if the record is no Example. One that is absent has kind NONE.
bool tti_example_find(const unsigned char *p, size_t n, const char *name, tti_feature *out);
// The first of its byte strings.
bool tti_feature_bytes(const tti_feature *f, const unsigned char **p, size_t *n);
// As many values as there are; out has room for f->n.
bool tti_feature_floats(const tti_feature *f, float *out);
bool tti_feature_ints(const tti_feature *f, int64_t *out);
// Names of its features, for messages.
void tti_example_names(const unsigned char *p, size_t n, tti_text *t);
uint32_t tti_record_crc(const unsigned char *p, size_t n);

#endif
