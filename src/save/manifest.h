/*
 * manifest.h - manifest.json of a checkpoint: the state of the run, and the size and checksum of
 * each file. Its last member is the checksum of all bytes before it.
 */
#ifndef TUTTI_SAVE_MANIFEST_H
#define TUTTI_SAVE_MANIFEST_H

#include "save/checkpoint.h"

#define TTI_MANIFEST         "manifest.json"
#define TTI_MANIFEST_MAX     ((size_t)16 << 20)
#define TTI_MANIFEST_FORMAT  "tutti checkpoint"
#define TTI_MANIFEST_VERSION 1

typedef struct tti_file_sum {
    uint64_t bytes;
    tt_hash hash;
} tti_file_sum;

enum {
    TTI_FILE_WEIGHTS,
    TTI_FILE_OPTIMIZER,
    TTI_N_FILES
};
extern const char *const tti_checkpoint_files[TTI_N_FILES];

typedef struct tti_manifest {
    char tutti[32]; // version that wrote it
    tti_train_state state;
    tti_file_sum files[TTI_N_FILES];
} tti_manifest;

#define TTI_HASH_TEXT 33
const char *tti_hash_text(tt_hash h, char out[TTI_HASH_TEXT]); // as xxhsum -H2 prints it

// Reads and checks that of a checkpoint folder.
tt_status tti_manifest_of(tt_ctx *ctx, const char *folder, tti_manifest *out) TTI_CHECKED;
// The text of a manifest; NULL: out of memory. Free with tti_free().
char *tti_manifest_print(tt_ctx *ctx, const tti_manifest *m);
// Checks the checksum and reads; path is for messages. state.job is freed by the caller.
tt_status tti_manifest_read(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                            tti_manifest *out) TTI_CHECKED;
// Does the text end with the checksum of what is before it?
bool tti_manifest_is_sealed(const char *text, size_t bytes);
// TT_EUNSUPPORTED, recorded, if the text says that it is of another version of the format, whatever
// else is in it; TT_OK otherwise.
tt_status tti_manifest_version(tt_ctx *ctx, const char *path, const char *text,
                               size_t bytes) TTI_CHECKED;
// The same, believing the checksum: what the fuzzer calls.
tt_status tti_manifest_parse(tt_ctx *ctx, const char *path, const char *text, size_t bytes,
                             tti_manifest *out) TTI_CHECKED;

#endif
