/*
 * file.c - reading whole files and writing durable ones.
 */
#include "base/file.h"
#include "base/disk.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40                // one behind another, as the system has it
#define BUFFER    ((size_t)1 << 16) // of a writer; larger pieces pass it by
#define LONG_NAME 230

// ---- paths -----------------------------------------------------------------------------------

tt_status tti_file_join(tt_ctx *ctx, char out[TTI_PATH_MAX], const char *folder, const char *name)
{
    size_t n = strlen(folder);
    const char *slash = n == 0 || folder[n - 1] == '/' ? "" : "/";
    int length = snprintf(out, TTI_PATH_MAX, "%s%s%s", folder, slash, name);
    if (length < 0 || length >= TTI_PATH_MAX)
        return TT_FAIL(ctx, TT_EINVAL, "%.200s...: the path is longer than %d bytes", folder,
                       TTI_PATH_MAX - 1);
    return TT_OK;
}

tt_status tti_file_split(tt_ctx *ctx, const char *path, char folder[TTI_PATH_MAX], char name[256])
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    size_t length = n - begin, parent = begin;
    while (parent > 1 && path[parent - 1] == '/')
        parent--;
    if (length == 0 || length > 255 || parent >= TTI_PATH_MAX)
        return TT_FAIL(ctx, TT_EINVAL, "'%.200s' is not the name of a file or folder", path);
    memcpy(name, path + begin, length);
    name[length] = '\0';
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return TT_FAIL(ctx, TT_EINVAL, "'%.200s' does not end in the name of a file or folder",
                       path);
    memcpy(folder, path, parent);
    folder[parent] = '\0';
    if (parent == 0)
        memcpy(folder, ".", 2);
    return TT_OK;
}

// ---- reading ---------------------------------------------------------------------------------

static tt_status fail(tt_ctx *ctx, const char *what, const char *path)
{
    int error = errno;
    return TT_FAIL(ctx, error == ENOMEM ? TT_ENOMEM : TT_EIO, "cannot %s '%s': %s", what, path,
                   strerror(error));
}

bool tti_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

bool tti_file_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool tti_folder_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe, not a regular file"
           : S_ISSOCK(mode) ? "a socket, not a regular file"
                            : "a device, not a regular file";
}

// Reads fd to its end; a pipe has one too.
static tt_status read_all(tt_ctx *ctx, const char *path, int fd, size_t max, tti_text *t)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail(ctx, "read", path);
    if (S_ISDIR(st.st_mode))
        return TT_FAIL(ctx, TT_EIO, "cannot read '%s': it is a folder", path);
    int64_t step = st.st_size > 0 && st.st_size < INT32_MAX ? st.st_size + 1 : (int64_t)BUFFER;
    for (;;) {
        if (!tti_grow(ctx, &t->s, &t->cap, t->n + step + 1, 1))
            return TT_ENOMEM;
        ssize_t got = tti_sys_read(ctx, fd, t->s + t->n, (size_t)(t->cap - t->n - 1));
        if (got < 0)
            return fail(ctx, "read", path);
        t->n += got;
        t->s[t->n] = '\0';
        if (got == 0)
            return TT_OK;
        if (max > 0 && (uint64_t)t->n > max)
            return TT_FAIL(ctx, TT_EIO, "'%s' is larger than the limit of %zu bytes", path, max);
        step = TTI_MIN(step, t->cap - t->n) < 2 ? (int64_t)BUFFER : 1;
    }
}

static tt_status read_from(tt_ctx *ctx, const char *path, int fd, size_t max, char **out,
                           size_t *bytes)
{
    tti_text t = {.ctx = ctx};
    tt_status st = read_all(ctx, path, fd, max, &t);
    close(fd);
    if (st != TT_OK) {
        tti_text_free(&t);
        return st;
    }
    *out = t.s;
    *bytes = (size_t)t.n;
    return TT_OK;
}

tt_status tti_file_read(tt_ctx *ctx, const char *path, size_t max, char **out, size_t *bytes)
{
    int fd;
    uint64_t size;
    TT_TRY(tti_file_open(ctx, path, &fd, &size));
    return read_from(ctx, path, fd, max, out, bytes);
}

tt_status tti_stream_read(tt_ctx *ctx, const char *path, size_t max, char **out, size_t *bytes)
{
    int fd = tti_sys_open(ctx, path, O_RDONLY);
    if (fd < 0)
        return fail(ctx, "open", path);
    return read_from(ctx, path, fd, max, out, bytes);
}

tt_status tti_file_open(tt_ctx *ctx, const char *path, int *fd, uint64_t *bytes)
{
    struct stat st;
    int f = tti_sys_open(ctx, path, O_RDONLY | O_NONBLOCK); // a pipe must not make us wait
    if (f < 0 && errno == ENXIO)                            // a socket cannot be opened at all
        return TT_FAIL(ctx, TT_EIO,
                       "cannot read '%s': it is a socket, or a device that does not exist", path);
    if (f < 0)
        return fail(ctx, "open", path);
    if (fstat(f, &st) != 0) {
        close(f);
        return fail(ctx, "read", path);
    }
    if (!S_ISREG(st.st_mode)) {
        close(f);
        return TT_FAIL(ctx, TT_EIO, "cannot read '%s': it is %s", path, kind_of(st.st_mode));
    }
    *fd = f;
    *bytes = (uint64_t)st.st_size;
    return TT_OK;
}

tt_status tti_file_pread(tt_ctx *ctx, const char *path, int fd, void *out, size_t bytes,
                         uint64_t offset)
{
    char *at = out;
    while (bytes > 0) {
        ssize_t got = tti_sys_pread(ctx, fd, at, bytes, offset);
        if (got < 0)
            return fail(ctx, "read", path);
        if (got == 0)
            return TT_FAIL(ctx, TT_EIO,
                           "'%s' is too short: it ends at byte %llu, %zu bytes are missing", path,
                           (unsigned long long)offset, bytes);
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return TT_OK;
}

// ---- writing ---------------------------------------------------------------------------------

// Where links lead to, also if nothing is there yet.
static tt_status follow(tt_ctx *ctx, const char *path, char target[TTI_PATH_MAX])
{
    char folder[TTI_PATH_MAX], name[256], link[TTI_PATH_MAX];
    TT_TRY(tti_file_split(ctx, path, folder, name));
    TT_TRY(tti_file_join(ctx, target, folder, name));
    for (int i = 0; i < MAX_LINKS; i++) {
        ssize_t n = readlink(target, link, sizeof(link) - 1);
        if (n < 0)
            return TT_OK; // no link
        link[n] = '\0';
        TT_TRY(tti_file_split(ctx, target, folder, name));
        TT_TRY(tti_file_join(ctx, target, link[0] == '/' ? "" : folder, link));
    }
    errno = ELOOP;
    return fail(ctx, "write", path);
}

// Of this process, and no longer than a name may be: of a long one the beginning and a hash.
static void temporary_name(const char *name, char out[256])
{
    size_t n = strlen(name);
    if (n <= LONG_NAME)
        snprintf(out, 256, TTI_TMP "%s-%d", name, (int)getpid());
    else
        snprintf(out, 256, TTI_TMP "%.*s-%016llx-%d", LONG_NAME - 20, name,
                 (unsigned long long)tti_hash64(name, n, 0), (int)getpid());
}

/*
 * Locks a temporary file, so that tti_fresh_clean() knows it from one that was left behind. False:
 * somebody is removing it. A file system without locks is fine: nothing is cleaned there.
 */
static bool is_locked(int fd, const char *path)
{
    struct stat mine, there;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

// Opens a new file beside the target, or the target itself where that is a device or pipe.
static tt_status open_target(tti_writer *w)
{
    char folder[TTI_PATH_MAX], name[256], tmp[sizeof(name)];
    struct stat st;
    tt_ctx *ctx = w->ctx;
    w->direct =
        w->replace && stat(w->path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    if (w->direct) { // before links are followed: /dev/stdout leads to what has no name
        w->fd = tti_sys_open(ctx, w->path, O_WRONLY);
        return w->fd >= 0 ? TT_OK : fail(ctx, "write", w->path);
    }
    if (w->replace)
        TT_TRY(follow(ctx, w->path, w->target));
    TT_TRY(tti_file_split(ctx, w->replace ? w->target : w->path, folder, name));
    if (w->replace)
        temporary_name(name, tmp);
    else
        memcpy(tmp, name, sizeof(tmp));
    TT_TRY(tti_file_join(ctx, w->tmp, folder, tmp));
    // A second time if another process removed it as a leftover before it was locked.
    for (int i = 0; i < 2 && w->fd < 0; i++) {
        if (w->replace)
            tti_sys_unlinkat(ctx, AT_FDCWD, w->tmp, 0); // of an earlier process with our number
        w->fd = tti_sys_open(ctx, w->tmp, O_WRONLY | O_CREAT | O_EXCL);
        if (w->fd < 0)
            return fail(ctx, "create", w->path);
        if (w->replace && !is_locked(w->fd, w->tmp)) {
            close(w->fd);
            w->fd = -1;
            errno = EBUSY;
        }
    }
    return w->fd >= 0 ? TT_OK : fail(ctx, "create", w->path);
}

tt_status tti_writer_open(tt_ctx *ctx, const char *path, bool replace, tti_writer *w)
{
    *w = (tti_writer){.ctx = ctx, .fd = -1, .replace = replace};
    if (snprintf(w->path, sizeof(w->path), "%s", path) >= TTI_PATH_MAX)
        return TT_FAIL(ctx, TT_EINVAL, "%.200s...: the path is longer than %d bytes", path,
                       TTI_PATH_MAX - 1);
    w->buffer = tti_alloc(ctx, BUFFER);
    w->hash = w->buffer == NULL ? NULL : tti_hash_begin(ctx);
    if (w->hash == NULL) {
        tti_free(ctx, w->buffer);
        return TT_FAIL(ctx, TT_ENOMEM, "cannot write '%s': out of memory", path);
    }
    tt_status st = open_target(w);
    if (st != TT_OK) {
        tti_free(ctx, w->buffer);
        tti_hash_end(ctx, w->hash);
    }
    return st;
}

static tt_status put(tti_writer *w, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = tti_sys_write(w->ctx, w->fd, data, bytes);
        if (done == 0)
            errno = ENOSPC; // never seen for a regular file, and no reason to go on for ever
        if (done <= 0)
            return fail(w->ctx, "write", w->path);
        data += done;
        bytes -= (size_t)done;
    }
    return TT_OK;
}

static tt_status flush(tti_writer *w)
{
    size_t n = w->n;
    w->n = 0;
    return put(w, w->buffer, n);
}

tt_status tti_writer_add(tti_writer *w, const void *data, size_t bytes)
{
    if (bytes == 0)
        return TT_OK;
    tti_hash_add(w->hash, data, bytes);
    w->bytes += bytes;
    if (w->n + bytes > BUFFER)
        TT_TRY(flush(w));
    if (bytes > BUFFER)
        return put(w, data, bytes);
    memcpy(w->buffer + w->n, data, bytes);
    w->n += bytes;
    return TT_OK;
}

void tti_writer_drop(tti_writer *w)
{
    if (w->fd < 0)
        return;
    close(w->fd);
    w->fd = -1;
    if (!w->direct)
        tti_sys_unlinkat(w->ctx, AT_FDCWD, w->tmp, 0);
    tti_free(w->ctx, w->buffer);
    tti_hash_end(w->ctx, w->hash);
}

// On the disk, under its name.
static tt_status settle(tti_writer *w)
{
    TT_TRY(flush(w));
    if (w->direct) // not every device can be synced
        return TT_OK;
    if (tti_sys_fsync(w->ctx, w->fd) != 0)
        return fail(w->ctx, "sync", w->path);
    if (w->replace && tti_sys_rename(w->ctx, w->tmp, w->target) != 0)
        return fail(w->ctx, "replace", w->path);
    return TT_OK;
}

tt_status tti_writer_close(tti_writer *w, tt_hash *hash)
{
    char folder[TTI_PATH_MAX], name[256];
    tt_status st = settle(w);
    if (st != TT_OK) {
        tti_writer_drop(w);
        return st;
    }
    int closed = close(w->fd);
    w->fd = -1;
    tti_free(w->ctx, w->buffer);
    *hash = tti_hash_end(w->ctx, w->hash);
    if (closed != 0 && w->direct)
        return fail(w->ctx, "write", w->path);
    if (!w->replace || w->direct)
        return TT_OK;
    TT_TRY(tti_file_split(w->ctx, w->target, folder, name));
    return tti_folder_sync(w->ctx, folder);
}

tt_status tti_file_replace(tt_ctx *ctx, const char *path, const void *data, size_t bytes)
{
    tti_writer w;
    tt_hash hash;
    TT_TRY(tti_writer_open(ctx, path, true, &w));
    tt_status st = tti_writer_add(&w, data, bytes);
    if (st != TT_OK) {
        tti_writer_drop(&w);
        return st;
    }
    return tti_writer_close(&w, &hash);
}
