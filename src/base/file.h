/*
 * file.h - whole files in, durable files and folders out. Every failure names the path.
 *
 * What is replaced is written beside the old one, synced, renamed, and the folder synced: after a
 * crash at any instant there is the old or the new, never a mix. A file whose sync failed is lost:
 * it is removed, never synced again.
 */
#ifndef TUTTI_BASE_FILE_H
#define TUTTI_BASE_FILE_H

#include "base/base.h"

#define TTI_PATH_MAX 4096
#define TTI_TMP      ".tmp-" // begins the names of what is being written

// ---- paths -----------------------------------------------------------------------------------

// "<folder>/<name>", or a message that it is too long.
tt_status tti_file_join(tt_ctx *ctx, char out[TTI_PATH_MAX], const char *folder,
                        const char *name) TTI_CHECKED;
// The folder that path is in ("." for a bare name), and what it is called there. Fails for what has
// no name of its own: "", "/", ".", "a/..".
tt_status tti_file_split(tt_ctx *ctx, const char *path, char folder[TTI_PATH_MAX],
                         char name[256]) TTI_CHECKED;

// ---- files -----------------------------------------------------------------------------------

// All of a regular file, at most max bytes (0: any size), with a zero byte behind it; free with
// tti_free(). A pipe, device or socket is refused: reading it might never end.
tt_status tti_file_read(tt_ctx *ctx, const char *path, size_t max, char **out,
                        size_t *bytes) TTI_CHECKED;
// The same of anything that has an end, for files that people name: a pipe, /dev/stdin.
tt_status tti_stream_read(tt_ctx *ctx, const char *path, size_t max, char **out,
                          size_t *bytes) TTI_CHECKED;
// Replaces a file durably, through a tti_writer.
tt_status tti_file_replace(tt_ctx *ctx, const char *path, const void *data,
                           size_t bytes) TTI_CHECKED;
bool tti_file_exists(const char *path);
bool tti_file_is_regular(const char *path); // links are followed
bool tti_folder_exists(const char *path);
// Opens a regular file for tti_file_pread().
tt_status tti_file_open(tt_ctx *ctx, const char *path, int *fd, uint64_t *bytes) TTI_CHECKED;
// Exactly so many bytes from an offset; a file that ends before is an error.
tt_status tti_file_pread(tt_ctx *ctx, const char *path, int fd, void *out, size_t bytes,
                         uint64_t offset) TTI_CHECKED;

/*
 * A file that is written piece by piece, hashed as it goes. With replace it takes its name, and the
 * place of what had it, when it is closed; without, the name must be free. A link stays: what it
 * leads to is replaced. A device or pipe cannot be replaced and is written to as it stands.
 */
typedef struct tti_writer {
    tt_ctx *ctx;
    int fd;
    bool replace;
    bool direct;             // to what is no regular file
    char path[TTI_PATH_MAX]; // as it was asked for, for messages
    char target[TTI_PATH_MAX], tmp[TTI_PATH_MAX];
    char *buffer;
    size_t n;
    uint64_t bytes; // given so far
    tti_hasher *hash;
} tti_writer;
tt_status tti_writer_open(tt_ctx *ctx, const char *path, bool replace, tti_writer *w) TTI_CHECKED;
tt_status tti_writer_add(tti_writer *w, const void *data, size_t bytes) TTI_CHECKED;
// Flushes, syncs, names; *hash is that of all bytes. After a failure the file is gone.
tt_status tti_writer_close(tti_writer *w, tt_hash *hash) TTI_CHECKED;
void tti_writer_drop(tti_writer *w); // instead of closing: nothing was written

// ---- folders ---------------------------------------------------------------------------------

// Makes a folder and those above it; one that is there is fine.
tt_status tti_folder_make(tt_ctx *ctx, const char *path) TTI_CHECKED;
// Removes a folder and everything in it; one that is not there is fine. Follows no link.
tt_status tti_folder_remove(tt_ctx *ctx, const char *path) TTI_CHECKED;
// The same where failing is no error of the caller: a warning is logged.
void tti_folder_discard(tt_ctx *ctx, const char *path);
// Syncs a folder, so that names made in it last.
tt_status tti_folder_sync(tt_ctx *ctx, const char *path) TTI_CHECKED;
// Names in a folder, sorted, without "." and ".."; free with tti_names_free().
tt_status tti_folder_list(tt_ctx *ctx, const char *path, char ***names, int64_t *n) TTI_CHECKED;
void tti_names_free(tt_ctx *ctx, char **names, int64_t n);

/*
 * A folder that is written as a whole. begin() makes "<parent>/.tmp-<name>", throwing away what a
 * save that was cut off left there; a lock tells it from one that is being written by another
 * process. commit() syncs it and puts it in the place of path, then removes what was there.
 */
typedef struct tti_fresh {
    char path[TTI_PATH_MAX], tmp[TTI_PATH_MAX], parent[TTI_PATH_MAX];
    int lock;
} tti_fresh;
tt_status tti_fresh_begin(tt_ctx *ctx, const char *path, tti_fresh *f) TTI_CHECKED;
tt_status tti_fresh_commit(tt_ctx *ctx, tti_fresh *f) TTI_CHECKED;
void tti_fresh_drop(tt_ctx *ctx, tti_fresh *f); // removes it
/*
 * Of a job whose processes change (ctx->epoch): only the newest membership publishes. raise() says
 * that a new one has begun, then removes all that is being written in folder, locked or not: what
 * an older one had begun finds no place any more. check() fails in an older one.
 */
tt_status tti_fence_raise(tt_ctx *ctx, const char *folder) TTI_CHECKED;
tt_status tti_fence_check(tt_ctx *ctx, const char *path) TTI_CHECKED;
// Removes a folder that had a place: it loses its name first, so that nobody finds half of it.
void tti_fresh_retire(tt_ctx *ctx, const char *path);
// Removes what cut-off saves and writers left in a folder; what is being written is locked, and
// stays.
tt_status tti_fresh_clean(tt_ctx *ctx, const char *folder) TTI_CHECKED;
// Where a file system cannot exchange two names, commit() moves the old folder aside first; this
// puts it back if the process ended just then. Fine if there is nothing to do.
tt_status tti_fresh_recover(tt_ctx *ctx, const char *path) TTI_CHECKED;

#endif
