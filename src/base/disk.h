/*
 * disk.h - the calls that touch files, so that tests can make the k-th of them fail.
 *
 * Each is the system's call of that name, made again after EINTR. They record no error: the caller
 * knows what the file is for.
 */
#ifndef TUTTI_BASE_DISK_H
#define TUTTI_BASE_DISK_H

#include "base/base.h"
#include <sys/types.h>

#define TTI_DISK_SHORT (-1) // instead of an error: one byte is read or written, others go well

#define TTI_DISK_FLIP (-2) // as short, and a byte that is written has another bit

// Tests: the n-th call from now gives this errno once; 0 ends that.
void tti_disk_fail_at(tt_ctx *ctx, int64_t n, int how);

int tti_sys_open(tt_ctx *ctx, const char *path, int flags); // close-on-exec; new ones by umask
ssize_t tti_sys_read(tt_ctx *ctx, int fd, void *data, size_t bytes);
ssize_t tti_sys_pread(tt_ctx *ctx, int fd, void *data, size_t bytes, uint64_t offset);
ssize_t tti_sys_write(tt_ctx *ctx, int fd, const void *data, size_t bytes);
int tti_sys_fsync(tt_ctx *ctx, int fd);
int tti_sys_rename(tt_ctx *ctx, const char *from, const char *to);
int tti_sys_exchange(tt_ctx *ctx, const char *a, const char *b); // two names, at one instant
int tti_sys_mkdir(tt_ctx *ctx, const char *path);
int tti_sys_unlinkat(tt_ctx *ctx, int dir, const char *name, int flags);

#endif
