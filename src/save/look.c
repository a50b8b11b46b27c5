/*
 * look.c - is a checkpoint whole? Damage is only what can be proven: a file that is missing or has
 * another size or checksum than the manifest says, a manifest that does not match its own checksum.
 * A checkpoint of another version, or one that cannot be read, is not damaged: nobody may skip it,
 * replace it or remove it.
 */
#include "save/manifest.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER ((size_t)1 << 20)

// Is there a regular file? *damage says if it is missing; any other reason is an error.
static tt_status find_file(tt_ctx *ctx, const char *folder, const char *name,
                           char path[TTI_PATH_MAX], uint64_t *bytes, char damage[TTI_DAMAGE])
{
    struct stat st;
    TT_TRY(tti_file_join(ctx, path, folder, name));
    if (stat(path, &st) != 0) {
        if (errno != ENOENT)
            return TT_FAIL(ctx, TT_EIO, "cannot open '%s': %s", path, strerror(errno));
        struct stat link;
        if (lstat(path, &link) == 0)
            return TT_FAIL(ctx, TT_EIO, "cannot open '%s': it is a dangling link", path);
        snprintf(damage, TTI_DAMAGE, "%s is missing", name);
        return TT_OK;
    }
    if (!S_ISREG(st.st_mode))
        return TT_FAIL(ctx, TT_EIO, "cannot read '%s': it is not a regular file", path);
    *bytes = (uint64_t)st.st_size;
    return TT_OK;
}

static tt_status look_at_manifest(tt_ctx *ctx, const char *folder, tti_manifest *m,
                                  char damage[TTI_DAMAGE])
{
    char path[TTI_PATH_MAX], *text;
    size_t n;
    uint64_t bytes = 0;
    TT_TRY(find_file(ctx, folder, TTI_MANIFEST, path, &bytes, damage));
    if (damage[0] != '\0')
        return TT_OK;
    if (bytes > TTI_MANIFEST_MAX) {
        snprintf(damage, TTI_DAMAGE, TTI_MANIFEST " has %llu bytes", (unsigned long long)bytes);
        return TT_OK;
    }
    TT_TRY(tti_file_read(ctx, path, TTI_MANIFEST_MAX, &text, &n));
    tt_status st = TT_OK;
    if (tti_manifest_is_sealed(text, n))
        st = tti_manifest_parse(ctx, path, text, n, m);
    else
        st = tti_manifest_version(ctx, path, text, n); // of others the checksum may be elsewhere
    if (st == TT_OK && !tti_manifest_is_sealed(text, n))
        snprintf(damage, TTI_DAMAGE, TTI_MANIFEST ": its checksum is wrong");
    tti_free(ctx, text);
    return st;
}

static tt_status hash_file(tt_ctx *ctx, const char *path, uint64_t bytes, tt_hash *out)
{
    int fd;
    uint64_t there;
    TT_TRY(tti_file_open(ctx, path, &fd, &there));
    char *buffer = tti_alloc(ctx, BUFFER);
    tti_hasher *h = buffer == NULL ? NULL : tti_hash_begin(ctx);
    tt_status st = h == NULL ? TT_ENOMEM : TT_OK;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); // from the disk, not from what was written
    for (uint64_t at = 0; at < bytes && st == TT_OK; at += BUFFER) {
        size_t n = (size_t)TTI_MIN(bytes - at, (uint64_t)BUFFER);
        st = tti_file_pread(ctx, path, fd, buffer, n, at);
        if (st == TT_OK)
            tti_hash_add(h, buffer, n);
    }
    close(fd);
    if (h != NULL)
        *out = tti_hash_end(ctx, h);
    tti_free(ctx, buffer);
    return st;
}

static tt_status look_at_file(tt_ctx *ctx, const char *folder, int file, const tti_file_sum *sum,
                              bool deep, char damage[TTI_DAMAGE])
{
    char path[TTI_PATH_MAX];
    uint64_t bytes = 0;
    tt_hash hash;
    const char *name = tti_checkpoint_files[file];
    TT_TRY(find_file(ctx, folder, name, path, &bytes, damage));
    if (damage[0] != '\0')
        return TT_OK;
    if (bytes != sum->bytes) {
        snprintf(damage, TTI_DAMAGE, "%s has %llu bytes, but its manifest says %llu", name,
                 (unsigned long long)bytes, (unsigned long long)sum->bytes);
        return TT_OK;
    }
    if (!deep)
        return TT_OK;
    TT_TRY(hash_file(ctx, path, bytes, &hash));
    if (hash.low != sum->hash.low || hash.high != sum->hash.high)
        snprintf(damage, TTI_DAMAGE, "%s: its checksum is wrong", name);
    return TT_OK;
}

tt_status tti_checkpoint_look(tt_ctx *ctx, const char *path, bool deep, char damage[TTI_DAMAGE])
{
    tti_manifest *m = tti_calloc(ctx, 1, sizeof(*m));
    damage[0] = '\0';
    if (m == NULL)
        return TT_ENOMEM;
    tt_status st = look_at_manifest(ctx, path, m, damage);
    for (int i = 0; i < TTI_N_FILES && st == TT_OK && damage[0] == '\0'; i++)
        st = look_at_file(ctx, path, i, &m->files[i], deep, damage);
    tti_free(ctx, m->state.job);
    tti_free(ctx, m);
    return st;
}
