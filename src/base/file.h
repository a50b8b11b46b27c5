/*
 * file.h - whole files in, durable files and folders out. Every failure names the path.
 *
 * What is replaced is written beside the old one, synced, renamed, and the folder synced: after a
 * crash at any instant there is the old or the new, never a mix.
 */
#ifndef TUTTI_BASE_FILE_H
#define TUTTI_BASE_FILE_H

#include "base/base.h"

// All of a file, at most max bytes (0: any size), with a zero byte behind it; free with tti_free().
tt_status tti_file_read(tt_ctx *ctx, const char *path, size_t max, char **out,
                        size_t *bytes) TTI_CHECKED;
// Replaces a file durably.
tt_status tti_file_replace(tt_ctx *ctx, const char *path, const void *data,
                           size_t bytes) TTI_CHECKED;
// Makes a folder and those above it; one that is there is fine.
tt_status tti_folder_make(tt_ctx *ctx, const char *path) TTI_CHECKED;
// Removes a folder and everything in it; one that is not there is fine. Follows no link.
tt_status tti_folder_remove(tt_ctx *ctx, const char *path) TTI_CHECKED;
// Syncs a folder, so that names made in it last.
tt_status tti_folder_sync(tt_ctx *ctx, const char *path) TTI_CHECKED;
bool tti_file_exists(const char *path);

#endif
