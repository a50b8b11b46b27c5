/*
 * checkpoint.c - writes and reads checkpoint folders, and finds the newest and the best of several.
 */
#include "save/checkpoint.h"
#include "save/card.h"
#include "save/manifest.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- writing ---------------------------------------------------------------------------------

// Is name one of a checkpoint's own files? What a system hides there does not matter.
static bool is_own(const char *name)
{
    bool own = name[0] == '.' || strcmp(name, TTI_MANIFEST) == 0;
    for (int i = 0; i < TTI_N_FILES; i++)
        own = own || strcmp(name, tti_checkpoint_files[i]) == 0;
    return own;
}

// The first name in the folder that is not a checkpoint's, or "".
static tt_status find_strange(tt_ctx *ctx, const char *path, char out[256])
{
    char **names;
    int64_t n;
    TT_TRY(tti_folder_list(ctx, path, &names, &n));
    out[0] = '\0';
    for (int64_t i = 0; i < n && out[0] == '\0'; i++)
        if (!is_own(names[i]))
            snprintf(out, 256, "%s", names[i]);
    tti_names_free(ctx, names, n);
    return TT_OK;
}

// Nothing but a checkpoint is replaced by one.
static tt_status check_place(tt_ctx *ctx, const char *path)
{
    struct stat st;
    char strange[256];
    if (lstat(path, &st) != 0) {
        if (errno == ENOENT)
            return TT_OK;
        return TT_FAIL(ctx, TT_EIO, "cannot save to '%s': %s", path, strerror(errno));
    }
    if (!S_ISDIR(st.st_mode))
        return TT_FAIL(ctx, TT_EIO, "cannot save to '%s': it exists and is not a folder", path);
    TT_TRY(find_strange(ctx, path, strange));
    if (strange[0] != '\0')
        return TT_FAIL(ctx, TT_EIO, "cannot save to '%s': it is not a checkpoint, it holds '%s'",
                       path, strange);
    char damage[TTI_DAMAGE];
    switch (tti_checkpoint_look(NULL, path, false, damage)) { // damaged ones may go
    case TT_OK:
        return TT_OK;
    case TT_ENOMEM:
        return TT_FAIL(ctx, TT_ENOMEM, "cannot save to '%s': out of memory", path);
    case TT_EUNSUPPORTED:
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "cannot save to '%s': it holds a checkpoint of another version of Tutti, "
                       "which is not replaced",
                       path);
    default:
        return TT_FAIL(ctx, TT_EIO,
                       "cannot save to '%s': the checkpoint that it holds cannot be read, so it is "
                       "not replaced",
                       path);
    }
}

// What was written must be what is read, before it takes anything's place.
static tt_status read_back(tt_ctx *ctx, const char *written, const char *path)
{
    char damage[TTI_DAMAGE];
    TT_TRY(tti_checkpoint_look(ctx, written, true, damage));
    if (damage[0] == '\0')
        return TT_OK;
    return TT_FAIL(ctx, TT_EIO, "'%s' was written, but reading it back finds damage: %s", path,
                   damage);
}

static tt_status write_file(tt_ctx *ctx, const char *folder, int file, const tti_named *tensors,
                            int64_t n, const char *card, tti_file_sum *sum)
{
    const char *const metadata[] = {"format", "tutti", card != NULL ? TTI_CARD : NULL, card, NULL};
    char path[TTI_PATH_MAX];
    tti_writer w;
    TT_TRY(tti_file_join(ctx, path, folder, tti_checkpoint_files[file]));
    TT_TRY(tti_writer_open(ctx, path, false, &w));
    tt_status st = tti_safetensors_put(&w, tensors, n, metadata);
    if (st != TT_OK) {
        tti_writer_drop(&w);
        return st;
    }
    sum->bytes = w.bytes;
    return tti_writer_close(&w, &sum->hash);
}

static tt_status write_manifest(tt_ctx *ctx, const char *folder, const tti_manifest *m)
{
    char path[TTI_PATH_MAX];
    tti_writer w;
    tt_hash hash;
    TT_TRY(tti_file_join(ctx, path, folder, TTI_MANIFEST));
    char *text = tti_manifest_print(ctx, m);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = tti_writer_open(ctx, path, false, &w);
    if (st == TT_OK) {
        st = tti_writer_add(&w, text, strlen(text));
        if (st == TT_OK)
            st = tti_writer_close(&w, &hash);
        else
            tti_writer_drop(&w);
    }
    tti_free(ctx, text);
    return st;
}

static tt_status write_files(tt_ctx *ctx, const char *folder, const tti_snapshot *s)
{
    tti_manifest *m = tti_calloc(ctx, 1, sizeof(*m));
    if (m == NULL)
        return TT_ENOMEM;
    m->state = s->state;
    tt_status st = write_file(ctx, folder, TTI_FILE_WEIGHTS, s->tensors, s->n_weights, s->card,
                              &m->files[TTI_FILE_WEIGHTS]);
    if (st == TT_OK)
        st = write_file(ctx, folder, TTI_FILE_OPTIMIZER, s->tensors + s->n_weights,
                        s->n - s->n_weights, NULL, &m->files[TTI_FILE_OPTIMIZER]);
    if (st == TT_OK)
        st = write_manifest(ctx, folder, m);
    tti_free(ctx, m);
    return st;
}

tt_status tti_checkpoint_write(tt_ctx *ctx, const char *path, const tti_snapshot *s)
{
    tti_fresh f;
    TT_TRY(check_place(ctx, path));
    TT_TRY(tti_fresh_begin(ctx, path, &f));
    tt_status st = write_files(ctx, f.tmp, s);
    if (st == TT_OK)
        st = read_back(ctx, f.tmp, f.path);
    if (st != TT_OK) {
        tti_fresh_drop(ctx, &f);
        return st;
    }
    return tti_fresh_commit(ctx, &f);
}

// ---- reading ---------------------------------------------------------------------------------

void tti_snapshot_free(tt_ctx *ctx, tti_snapshot *s)
{
    tti_free(ctx, s->tensors);
    tti_free(ctx, s->state.job);
    tti_free(ctx, s->path);
    tti_free(ctx, s->card);
    for (int i = 0; i < TTI_N_FILES; i++) {
        tti_free(ctx, s->memory[i]);
        tti_free(ctx, s->names[i]);
        s->memory[i] = s->names[i] = NULL;
    }
    s->tensors = NULL;
    s->state.job = s->path = s->card = NULL;
    s->n = s->n_weights = 0;
}

tt_status tti_manifest_of(tt_ctx *ctx, const char *folder, tti_manifest *m)
{
    char path[TTI_PATH_MAX], *text;
    size_t bytes;
    TT_TRY(tti_file_join(ctx, path, folder, TTI_MANIFEST));
    TT_TRY(tti_file_read(ctx, path, TTI_MANIFEST_MAX, &text, &bytes));
    tt_status st = tti_manifest_read(ctx, path, text, bytes, m);
    tti_free(ctx, text);
    return st;
}

// A file of the checkpoint as a whole, its size and checksum compared.
static tt_status read_bytes(tt_ctx *ctx, const char *path, const tti_file_sum *sum, char **out)
{
    int fd;
    uint64_t bytes;
    TT_TRY(tti_file_open(ctx, path, &fd, &bytes));
    tt_status st = TT_OK;
    char *data = NULL;
    if (bytes != sum->bytes)
        st = TT_FAIL(ctx, TT_EIO, "%s has %llu bytes, but its manifest says %llu: it is damaged",
                     path, (unsigned long long)bytes, (unsigned long long)sum->bytes);
    else if ((data = tti_alloc(ctx, (size_t)bytes)) == NULL)
        st = TT_ENOMEM;
    else
        st = tti_file_pread(ctx, path, fd, data, (size_t)bytes, 0);
    close(fd);
    if (st == TT_OK) {
        tt_hash hash = tti_hash128(data, (size_t)bytes);
        if (hash.low != sum->hash.low || hash.high != sum->hash.high)
            st = TT_FAIL(ctx, TT_EIO, "%s: its checksum is wrong: it is damaged", path);
    }
    if (st == TT_OK)
        *out = data;
    else
        tti_free(ctx, data);
    return st;
}

// Adds the tensors of one file to the snapshot.
static tt_status read_tensors(tt_ctx *ctx, const char *folder, int file, const tti_file_sum *sum,
                              tti_snapshot *s)
{
    char path[TTI_PATH_MAX];
    tti_safetensors f;
    int64_t cap = s->n;
    TT_TRY(tti_file_join(ctx, path, folder, tti_checkpoint_files[file]));
    TT_TRY(read_bytes(ctx, path, sum, &s->memory[file]));
    TT_TRY(tti_safetensors_parse(ctx, path, s->memory[file], (size_t)sum->bytes, sum->bytes, &f));
    tt_status st = TT_OK;
    if (!tti_grow(ctx, &s->tensors, &cap, s->n + f.n + 1, sizeof(*s->tensors)))
        st = TT_ENOMEM;
    for (int64_t i = 0; i < f.n && st == TT_OK; i++) {
        st = tti_safetensors_usable(&f, i);
        s->tensors[s->n + i] = f.tensors[i];
        s->tensors[s->n + i].data = s->memory[file] + f.offsets[i];
    }
    if (st == TT_OK) {
        s->n += f.n;
        s->names[file] = f.names;
        f.names = NULL;
    }
    tti_safetensors_close(&f);
    return st;
}

static tt_status read_all(tt_ctx *ctx, const char *path, tti_manifest *m, tti_snapshot *s)
{
    char strange[256];
    s->path = tti_strdup(ctx, path);
    if (s->path == NULL)
        return TT_ENOMEM;
    TT_TRY(tti_manifest_of(ctx, path, m));
    s->state = m->state; // job is the snapshot's from here
    TT_TRY(find_strange(ctx, path, strange));
    if (strange[0] != '\0')
        return TT_FAIL(ctx, TT_EIO, "%s holds '%s', which is not part of a checkpoint", path,
                       strange);
    TT_TRY(read_tensors(ctx, path, TTI_FILE_WEIGHTS, &m->files[TTI_FILE_WEIGHTS], s));
    s->n_weights = s->n;
    return read_tensors(ctx, path, TTI_FILE_OPTIMIZER, &m->files[TTI_FILE_OPTIMIZER], s);
}

tt_status tti_checkpoint_read(tt_ctx *ctx, const char *path, tti_snapshot *out)
{
    TT_TRY(tti_fresh_recover(ctx, path));
    tti_snapshot *s = tti_calloc(ctx, 1, sizeof(*s));
    tti_manifest *m = s == NULL ? NULL : tti_calloc(ctx, 1, sizeof(*m));
    tt_status st = m == NULL ? TT_ENOMEM : read_all(ctx, path, m, s);
    if (st == TT_OK)
        *out = *s;
    else if (s != NULL)
        tti_snapshot_free(ctx, s);
    tti_free(ctx, m);
    tti_free(ctx, s);
    return st;
}

// ---- folders of checkpoints ------------------------------------------------------------------

int64_t tti_checkpoint_step(const char *name)
{
    int64_t v = 0;
    if (strncmp(name, "step-", 5) != 0 || name[5] == '\0' || (name[5] == '0' && name[6] != '\0'))
        return -1;
    for (const char *s = name + 5; *s != '\0'; s++)
        if (*s < '0' || *s > '9' || !tti_mul_i64(v, 10, &v) ||
            __builtin_add_overflow(v, *s - '0', &v))
            return -1;
    return v;
}

// Looks only: another process may be saving there. *n_damaged: how many were skipped.
static tt_status find_newest(tt_ctx *ctx, const char *folder, bool deep, char path[TTI_PATH_MAX],
                             int *n_damaged)
{
    char **names, name[32], damage[TTI_DAMAGE] = "";
    int64_t n, below = INT64_MAX;
    TT_TRY(tti_folder_list(ctx, folder, &names, &n));
    tt_status st = TT_OK;
    while (st == TT_OK) {
        int64_t newest = -1;
        for (int64_t i = 0; i < n; i++) {
            int64_t step = tti_checkpoint_step(names[i]);
            if (step > newest && step < below)
                newest = step;
        }
        if (newest < 0)
            break;
        snprintf(name, sizeof(name), "step-%lld", (long long)newest);
        st = tti_file_join(ctx, path, folder, name);
        if (st == TT_OK)
            st = tti_checkpoint_look(ctx, path, deep, damage);
        if (st != TT_OK || damage[0] == '\0')
            break;
        TT_LOG(ctx, TT_WARN, "%s/%s; the checkpoint is damaged and is skipped", path, damage);
        path[0] = '\0';
        ++*n_damaged;
        below = newest;
    }
    tti_names_free(ctx, names, n);
    return st;
}

tt_status tti_checkpoint_newest(tt_ctx *ctx, const char *folder, char path[TTI_PATH_MAX])
{
    path[0] = '\0';
    if (!tti_folder_exists(folder))
        return TT_OK;
    int n_damaged = 0;
    TT_TRY(tti_fresh_clean(ctx, folder));
    return find_newest(ctx, folder, false, path, &n_damaged);
}

tt_status tti_checkpoint_resume(tt_ctx *ctx, const char *folder, char path[TTI_PATH_MAX])
{
    int n_damaged = 0;
    path[0] = '\0';
    if (!tti_folder_exists(folder))
        return TT_OK;
    TT_TRY(tti_fresh_clean(ctx, folder));
    TT_TRY(find_newest(ctx, folder, true, path, &n_damaged));
    if (path[0] != '\0' || n_damaged == 0)
        return TT_OK;
    return TT_FAIL(ctx, TT_EIO,
                   "no checkpoint of '%s' can be read: all %d are damaged; to restart at step 0 "
                   "and keep them aside, use tutti train --restart (in C .restart = true)",
                   folder, n_damaged);
}

tt_status tti_checkpoint_count(tt_ctx *ctx, const char *folder, int64_t *n)
{
    char **names;
    int64_t n_names;
    *n = 0;
    if (!tti_folder_exists(folder))
        return TT_OK;
    TT_TRY(tti_folder_list(ctx, folder, &names, &n_names));
    for (int64_t i = 0; i < n_names; i++)
        *n += tti_checkpoint_step(names[i]) >= 0;
    tti_names_free(ctx, names, n_names);
    return TT_OK;
}

tt_status tti_checkpoint_set_aside(tt_ctx *ctx, const char *folder, char moved[TTI_PATH_MAX])
{
    struct stat st;
    int64_t n;
    moved[0] = '\0';
    TT_TRY(tti_checkpoint_count(ctx, folder, &n));
    for (int k = 1; n > 0; k++) {
        if (snprintf(moved, TTI_PATH_MAX, "%s.old-%d", folder, k) >= TTI_PATH_MAX)
            return TT_FAIL(ctx, TT_EINVAL, "%.200s...: a path of more than %d bytes", folder,
                           TTI_PATH_MAX - 1);
        if (lstat(moved, &st) == 0)
            continue;
        if (rename(folder, moved) != 0)
            return TT_FAIL(ctx, TT_EIO, "cannot move '%s' to '%s': %s", folder, moved,
                           strerror(errno));
        break;
    }
    return TT_OK;
}

tt_status tti_checkpoint_best(tt_ctx *ctx, const char *folder, char path[TTI_PATH_MAX])
{
    char file[TTI_PATH_MAX], *text;
    size_t bytes;
    path[0] = '\0';
    TT_TRY(tti_file_join(ctx, file, folder, "best"));
    if (!tti_file_exists(file))
        return TT_OK;
    TT_TRY(tti_file_read(ctx, file, 64, &text, &bytes));
    text[strcspn(text, "\n")] = '\0';
    tt_status st = TT_OK;
    if (tti_checkpoint_step(text) >= 0)
        st = tti_file_join(ctx, path, folder, text);
    if (st == TT_OK && !tti_folder_exists(path)) { // cut off, or its checkpoint is gone
        TT_LOG(ctx, TT_WARN, "%s says '%.40s', which is not a checkpoint there; it is ignored",
               file, text);
        path[0] = '\0';
    }
    tti_free(ctx, text);
    return st;
}

tt_status tti_checkpoint_resolve(tt_ctx *ctx, const char *path, char out[TTI_PATH_MAX])
{
    char folder[TTI_PATH_MAX], newest[TTI_PATH_MAX] = "";
    TT_TRY(tti_fresh_recover(ctx, path));
    TT_TRY(tti_file_join(ctx, folder, path, TTI_MANIFEST));
    struct stat st; // a manifest that cannot be read is one: reading it says why
    if (tti_folder_exists(path) && lstat(folder, &st) != 0 && errno == ENOENT) {
        int n_damaged = 0;
        TT_TRY(find_newest(ctx, path, false, newest, &n_damaged));
        TT_TRY(tti_file_join(ctx, folder, path, "checkpoints"));
        if (newest[0] == '\0' && tti_folder_exists(folder))
            TT_TRY(find_newest(ctx, folder, false, newest, &n_damaged));
        if (newest[0] == '\0' && n_damaged > 0)
            return TT_FAIL(ctx, TT_EIO, "'%s': all %d checkpoints are damaged", path, n_damaged);
        if (newest[0] == '\0')
            return TT_FAIL(ctx, TT_EIO, "there is no checkpoint in '%s'", path);
    }
    const char *found = newest[0] != '\0' ? newest : path;
    memcpy(out, found, strlen(found) + 1);
    return TT_OK;
}
