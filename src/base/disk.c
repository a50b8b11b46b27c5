/*
 * disk.c - system calls on files, with a place for tests to break them.
 */
#include "base/disk.h"
#include "base/ctx.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 30) // of one read or write: Linux moves less than 2 GiB at once

void tti_disk_fail_at(tt_ctx *ctx, int64_t n, int how)
{
    atomic_store(&ctx->disk_fail_how, how);
    atomic_store(&ctx->disk_fail_in, n > 0 ? n : 0);
}

// What a test wants of this call: 0, an errno, TTI_DISK_SHORT or TTI_DISK_FLIP.
static int wish(tt_ctx *ctx)
{
    int64_t left = ctx == NULL ? 0 : atomic_load(&ctx->disk_fail_in);
    while (left > 0)
        if (atomic_compare_exchange_weak(&ctx->disk_fail_in, &left, left - 1))
            return left == 1 ? atomic_load(&ctx->disk_fail_how) : 0;
    return 0;
}

// Runs a call until it ends otherwise than by EINTR; rc is its result.
#define CALL(ctx, rc, call)            \
    do {                               \
        int how_ = wish(ctx);          \
        if (how_ > 0)                  \
            errno = how_;              \
        (rc) = how_ > 0 ? -1 : (call); \
    } while ((rc) < 0 && errno == EINTR)

int tti_sys_open(tt_ctx *ctx, const char *path, int flags)
{
    int rc;
    CALL(ctx, rc, open(path, flags | O_CLOEXEC, 0666));
    return rc;
}

ssize_t tti_sys_read(tt_ctx *ctx, int fd, void *data, size_t bytes)
{
    ssize_t rc;
    CALL(ctx, rc, read(fd, data, how_ < 0 ? TTI_MIN(bytes, 1) : TTI_MIN(bytes, CHUNK)));
    return rc;
}

ssize_t tti_sys_pread(tt_ctx *ctx, int fd, void *data, size_t bytes, uint64_t offset)
{
    ssize_t rc;
    CALL(ctx, rc,
         pread(fd, data, how_ < 0 ? TTI_MIN(bytes, 1) : TTI_MIN(bytes, CHUNK), (off_t)offset));
    return rc;
}

ssize_t tti_sys_write(tt_ctx *ctx, int fd, const void *data, size_t bytes)
{
    ssize_t rc;
    char flipped = (char)(bytes > 0 ? *(const char *)data ^ 1 : 0);
    CALL(ctx, rc,
         write(fd, how_ == TTI_DISK_FLIP ? &flipped : data,
               how_ < 0 ? TTI_MIN(bytes, 1) : TTI_MIN(bytes, CHUNK)));
    return rc;
}

int tti_sys_fsync(tt_ctx *ctx, int fd)
{
    int rc;
    CALL(ctx, rc, fsync(fd));
    return rc;
}

int tti_sys_rename(tt_ctx *ctx, const char *from, const char *to)
{
    int rc;
    CALL(ctx, rc, rename(from, to));
    return rc;
}

int tti_sys_exchange(tt_ctx *ctx, const char *a, const char *b)
{
    int rc;
    CALL(ctx, rc, renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
    return rc;
}

int tti_sys_mkdir(tt_ctx *ctx, const char *path)
{
    int rc;
    CALL(ctx, rc, mkdir(path, 0777));
    return rc;
}

int tti_sys_unlinkat(tt_ctx *ctx, int dir, const char *name, int flags)
{
    int rc;
    CALL(ctx, rc, unlinkat(dir, name, flags));
    return rc;
}
