/*
 * folder.c - folders: made, listed, synced, removed, and replaced as a whole.
 *
 * A folder being written is locked (flock) through a descriptor of itself. The lock goes when the
 * process does, however it ends, so whoever can take it knows that nobody is writing any more.
 */
#include "base/ctx.h"
#include "base/disk.h"
#include "base/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD       ".old-"
#define MAX_DEPTH 32 // of what is removed; a checkpoint has no folders in it at all

static tt_status fail(tt_ctx *ctx, const char *what, const char *path)
{
    int error = errno;
    return TT_FAIL(ctx, error == ENOMEM ? TT_ENOMEM : TT_EIO, "cannot %s '%s': %s", what, path,
                   strerror(error));
}

tt_status tti_folder_sync(tt_ctx *ctx, const char *path)
{
    int fd = tti_sys_open(ctx, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fail(ctx, "open", path);
    tt_status st = tti_sys_fsync(ctx, fd) == 0 ? TT_OK : fail(ctx, "sync", path);
    close(fd);
    return st;
}

tt_status tti_folder_make(tt_ctx *ctx, const char *path)
{
    char folder[TTI_PATH_MAX], parent[TTI_PATH_MAX], name[256];
    if (tti_folder_exists(path))
        return TT_OK;
    TT_TRY(tti_file_split(ctx, path, parent, name));
    if (!tti_folder_exists(parent))
        TT_TRY(tti_folder_make(ctx, parent));
    TT_TRY(tti_file_join(ctx, folder, parent, name));
    if (tti_sys_mkdir(ctx, folder) != 0 && (errno != EEXIST || !tti_folder_exists(folder)))
        return fail(ctx, "make folder", folder);
    return tti_folder_sync(ctx, parent);
}

// ---- listing ---------------------------------------------------------------------------------

void tti_names_free(tt_ctx *ctx, char **names, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        tti_free(ctx, names[i]);
    tti_free(ctx, names);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

tt_status tti_folder_list(tt_ctx *ctx, const char *path, char ***names, int64_t *n)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return fail(ctx, "open folder", path);
    char **list = NULL;
    int64_t count = 0, cap = 0;
    tt_status st = TT_OK;
    for (struct dirent *e; st == TT_OK && (errno = 0, e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (!tti_grow(ctx, &list, &cap, count + 1, sizeof(*list)) ||
            (list[count] = tti_strdup(ctx, e->d_name)) == NULL)
            st = TT_ENOMEM;
        else
            count++;
    }
    if (st == TT_OK && errno != 0)
        st = fail(ctx, "list folder", path);
    closedir(dir);
    if (st != TT_OK) {
        tti_names_free(ctx, list, count);
        return st;
    }
    if (count > 1)
        qsort(list, (size_t)count, sizeof(*list), by_name);
    *names = list;
    *n = count;
    return TT_OK;
}

// ---- removing --------------------------------------------------------------------------------

static int remove_tree(tt_ctx *ctx, int dir, const char *name, int depth);

// Removes all that the folder fd holds; 0 or an errno. fd is closed.
static int empty_folder(tt_ctx *ctx, int fd, int depth)
{
    DIR *inside = fd < 0 ? NULL : fdopendir(fd);
    if (inside == NULL) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    int error = 0;
    for (struct dirent *e; error == 0 && (errno = 0, e = readdir(inside)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            error = remove_tree(ctx, fd, e->d_name, depth + 1);
    if (error == 0)
        error = errno;
    closedir(inside);
    return error;
}

// Removes name in the folder dir, with all it holds; 0 or an errno.
static int remove_tree(tt_ctx *ctx, int dir, const char *name, int depth)
{
    if (tti_sys_unlinkat(ctx, dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return errno;
    if (depth == MAX_DEPTH)
        return ELOOP;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = empty_folder(ctx, fd, depth);
    if (error == 0 && tti_sys_unlinkat(ctx, dir, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        error = errno;
    return error;
}

tt_status tti_folder_remove(tt_ctx *ctx, const char *path)
{
    errno = remove_tree(ctx, AT_FDCWD, path, 0);
    return errno == 0 ? TT_OK : fail(ctx, "remove", path);
}

void tti_folder_discard(tt_ctx *ctx, const char *path)
{
    int error = remove_tree(ctx, AT_FDCWD, path, 0);
    if (error != 0)
        TT_LOG(ctx, TT_WARN, "cannot remove '%s': %s", path, strerror(error));
}

// ---- replacing -------------------------------------------------------------------------------

// Locks the folder at path: *fd, or -1 if another process has it or it is gone. 0 or an errno.
static int lock_folder(tt_ctx *ctx, const char *path, int *fd)
{
    struct stat mine, there;
    *fd = -1;
    int f = tti_sys_open(ctx, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (f < 0)
        return errno == ENOENT ? 0 : errno;
    int error = flock(f, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    // Whoever held the lock may have moved or removed it meanwhile: is the name still its own?
    bool same = error == 0 && fstat(f, &mine) == 0 && lstat(path, &there) == 0 &&
                mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
    if (same) {
        *fd = f;
        return 0;
    }
    close(f);
    return error == EWOULDBLOCK ? 0 : error;
}

// Whether a temporary file is a writer's, ".tmp-<name>-<process>", and nobody writes it: its lock
// can be taken, and is in *fd.
static bool is_left(tt_ctx *ctx, const char *path, int *fd)
{
    struct stat st;
    const char *dash = strrchr(path, '-');
    *fd = -1;
    if (dash[1] == '\0' || dash[1 + strspn(dash + 1, "0123456789")] != '\0' ||
        lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    int f = tti_sys_open(ctx, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (f < 0)
        return false;
    if (flock(f, LOCK_EX | LOCK_NB) != 0) {
        close(f);
        return false;
    }
    *fd = f;
    return true;
}

tt_status tti_fresh_clean(tt_ctx *ctx, const char *folder)
{
    char **names, path[TTI_PATH_MAX];
    int64_t n;
    TT_TRY(tti_folder_list(ctx, folder, &names, &n));
    tt_status st = TT_OK;
    for (int64_t i = 0; i < n && st == TT_OK; i++) {
        if (strncmp(names[i], TTI_TMP, strlen(TTI_TMP)) != 0)
            continue;
        st = tti_file_join(ctx, path, folder, names[i]);
        int lock = -1;
        if (st == TT_OK && tti_folder_exists(path)) {
            errno = lock_folder(ctx, path, &lock);
            if (errno != 0)
                st = fail(ctx, "open", path);
            else if (lock < 0)
                continue; // being written
        } else if (st == TT_OK && !is_left(ctx, path, &lock)) {
            continue;
        }
        if (st == TT_OK)
            st = tti_folder_remove(ctx, path);
        if (lock >= 0)
            close(lock);
    }
    tti_names_free(ctx, names, n);
    return st;
}

void tti_fresh_retire(tt_ctx *ctx, const char *path)
{
    char folder[TTI_PATH_MAX], tmp[TTI_PATH_MAX], name[256], hidden[sizeof(name) + sizeof(TTI_TMP)];
    if (tti_file_split(ctx, path, folder, name) != TT_OK)
        return;
    snprintf(hidden, sizeof(hidden), TTI_TMP "%s", name);
    if (tti_file_join(ctx, tmp, folder, hidden) != TT_OK)
        return;
    tti_folder_discard(ctx, tmp);
    if (tti_sys_rename(ctx, path, tmp) == 0)
        tti_folder_discard(ctx, tmp);
    else
        TT_LOG(ctx, TT_WARN, "cannot remove '%s': %s", path, strerror(errno));
}

static tt_status old_path(tt_ctx *ctx, const char *path, char out[TTI_PATH_MAX])
{
    char folder[TTI_PATH_MAX], name[256], old[sizeof(name) + sizeof(OLD)];
    TT_TRY(tti_file_split(ctx, path, folder, name));
    snprintf(old, sizeof(old), OLD "%s", name);
    return tti_file_join(ctx, out, folder, old);
}

tt_status tti_fresh_recover(tt_ctx *ctx, const char *path)
{
    char old[TTI_PATH_MAX];
    struct stat st;
    if (lstat(path, &st) == 0 || errno != ENOENT)
        return TT_OK;
    TT_TRY(old_path(ctx, path, old));
    if (tti_folder_exists(old) && tti_sys_rename(ctx, old, path) != 0)
        return fail(ctx, "move back", old);
    return TT_OK;
}

tt_status tti_fresh_begin(tt_ctx *ctx, const char *path, tti_fresh *f)
{
    char name[256], tmp[sizeof(name) + sizeof(TTI_TMP)];
    *f = (tti_fresh){.lock = -1};
    TT_TRY(tti_file_split(ctx, path, f->parent, name));
    TT_TRY(tti_file_join(ctx, f->path, f->parent, name));
    // Of each membership another one: who is out of it can spoil none of the others'.
    if (ctx != NULL && ctx->epoch > 0)
        snprintf(tmp, sizeof(tmp), TTI_TMP "%lld-%.200s", (long long)ctx->epoch, name);
    else
        snprintf(tmp, sizeof(tmp), TTI_TMP "%s", name);
    TT_TRY(tti_file_join(ctx, f->tmp, f->parent, tmp));
    TT_TRY(tti_folder_make(ctx, f->parent));
    TT_TRY(tti_fresh_recover(ctx, f->path));
    // A second time if another process removed it as a leftover before it was locked.
    for (int i = 0; i < 2 && f->lock < 0; i++) {
        if (tti_sys_mkdir(ctx, f->tmp) != 0 && errno != EEXIST)
            return fail(ctx, "make folder", f->tmp);
        errno = lock_folder(ctx, f->tmp, &f->lock);
        if (errno != 0) {
            tt_status st = fail(ctx, "open", f->tmp);
            tti_sys_unlinkat(ctx, AT_FDCWD, f->tmp, AT_REMOVEDIR); // if it is empty
            return st;
        }
    }
    if (f->lock < 0)
        return TT_FAIL(ctx, TT_EIO, "'%s' is being written by another process", f->path);
    errno = empty_folder(ctx, fcntl(f->lock, F_DUPFD_CLOEXEC, 0), 0);
    if (errno == 0)
        return TT_OK;
    tt_status st = fail(ctx, "empty", f->tmp);
    tti_fresh_drop(ctx, f);
    return st;
}

void tti_fresh_drop(tt_ctx *ctx, tti_fresh *f)
{
    if (f->lock < 0)
        return;
    tti_folder_discard(ctx, f->tmp);
    close(f->lock);
    f->lock = -1;
}

// Puts tmp in the place of path; *old: what was there is now at tmp.
static int put_in_place(tt_ctx *ctx, const tti_fresh *f, const char *aside, bool *old)
{
    struct stat st;
    *old = lstat(f->path, &st) == 0;
    if (!*old)
        return tti_sys_rename(ctx, f->tmp, f->path);
    if (tti_sys_exchange(ctx, f->tmp, f->path) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    // No exchange on this file system: see tti_fresh_recover().
    tti_folder_discard(ctx, aside);
    if (tti_sys_rename(ctx, f->path, aside) != 0)
        return -1;
    int rc = tti_sys_rename(ctx, f->tmp, f->path), error = errno;
    if (rc == 0)
        rc = tti_sys_rename(ctx, aside, f->tmp);
    else if (tti_sys_rename(ctx, aside, f->path) != 0)
        TT_LOG(ctx, TT_WARN, "cannot move '%s' back: %s", aside, strerror(errno));
    errno = error;
    return rc;
}

tt_status tti_fence_check(tt_ctx *ctx, const char *path)
{
    char *text;
    size_t bytes;
    if (ctx == NULL || ctx->epoch == 0 || !tti_file_exists(ctx->epoch_file))
        return TT_OK;
    TT_TRY(tti_file_read(ctx, ctx->epoch_file, 64, &text, &bytes));
    long long newest = strtoll(text, NULL, 10);
    tti_free(ctx, text);
    if (newest <= ctx->epoch)
        return TT_OK;
    return TT_FAIL(ctx, TT_EPEER,
                   "'%s' is not published: this process was in membership %lld of the job, which "
                   "has gone on without it (membership %lld)",
                   path, (long long)ctx->epoch, newest);
}

tt_status tti_fence_raise(tt_ctx *ctx, const char *folder)
{
    char text[32], **names, path[TTI_PATH_MAX];
    int64_t n;
    snprintf(text, sizeof(text), "%lld\n", (long long)ctx->epoch);
    TT_TRY(tti_file_replace(ctx, ctx->epoch_file, text, strlen(text)));
    if (!tti_folder_exists(folder))
        return TT_OK;
    TT_TRY(tti_folder_list(ctx, folder, &names, &n));
    tt_status st = TT_OK;
    for (int64_t i = 0; i < n && st == TT_OK; i++) {
        if (strncmp(names[i], TTI_TMP, strlen(TTI_TMP)) != 0)
            continue;
        st = tti_file_join(ctx, path, folder, names[i]);
        if (st == TT_OK)
            tti_fresh_retire(ctx, path);
    }
    tti_names_free(ctx, names, n);
    return st;
}

tt_status tti_fresh_commit(tt_ctx *ctx, tti_fresh *f)
{
    char aside[TTI_PATH_MAX];
    bool old = false;
    tt_status st = old_path(ctx, f->path, aside);
    if (st == TT_OK)
        st = tti_fence_check(ctx, f->path);
    if (st == TT_OK && tti_sys_fsync(ctx, f->lock) != 0)
        st = fail(ctx, "sync", f->tmp);
    if (st == TT_OK && put_in_place(ctx, f, aside, &old) != 0)
        st = fail(ctx, "put in place", f->path);
    if (st != TT_OK) {
        tti_fresh_drop(ctx, f);
        return st;
    }
    close(f->lock);
    f->lock = -1;
    TT_TRY(tti_folder_sync(ctx, f->parent));
    if (old)
        tti_folder_discard(ctx, f->tmp);
    return TT_OK;
}
