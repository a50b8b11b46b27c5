/*
 * files.c - the files that --input names: one, those of a folder, those of a pattern, or what comes
 * by standard input, which is kept in a file that has no name any more once it is open.
 */
#include "base/file.h"
#include "cli/input.h"
#include "data/images.h"
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tt_status add(tt_ctx *ctx, cli_files *f, const char *name)
{
    if (!tti_grow(ctx, &f->names, &f->cap, f->n + 1, sizeof(*f->names)) ||
        (f->names[f->n] = tti_strdup(ctx, name)) == NULL)
        return TT_ENOMEM;
    f->n++;
    return TT_OK;
}

static tt_status from_folder(tt_ctx *ctx, const char *word, cli_files *f)
{
    char **names, path[TTI_PATH_MAX];
    int64_t n;
    TT_TRY(tti_folder_list(ctx, word, &names, &n));
    tt_status st = TT_OK;
    for (int64_t i = 0; i < n && st == TT_OK; i++) {
        if (names[i][0] == '.')
            continue;
        st = tti_file_join(ctx, path, word, names[i]);
        if (st == TT_OK && !tti_folder_exists(path))
            st = add(ctx, f, path);
    }
    tti_names_free(ctx, names, n);
    if (st == TT_OK && f->n == 0)
        st = TT_FAIL(ctx, TT_EIO, "--input: folder '%s' is empty", word);
    return st;
}

static tt_status from_pattern(tt_ctx *ctx, const char *word, cli_files *f)
{
    glob_t g = {0};
    int rc = glob(word, 0, NULL, &g);
    tt_status st = rc == 0 ? TT_OK : TT_FAIL(ctx, TT_EIO, "--input: no file matches '%s'", word);
    for (size_t i = 0; i < g.gl_pathc && st == TT_OK; i++)
        st = add(ctx, f, g.gl_pathv[i]);
    globfree(&g);
    return st;
}

static tt_status from_stdin(tt_ctx *ctx, cli_files *f)
{
    const char *dir = tti_env("TMPDIR");
    char path[64], chunk[1 << 16];
    if (snprintf(path, sizeof(path), "%s/tutti-XXXXXX", dir != NULL ? dir : "/tmp") >=
        (int)sizeof(path))
        snprintf(path, sizeof(path), "/tmp/tutti-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0)
        return TT_FAIL(ctx, TT_EIO, "--input -: cannot make '%s': %s", path, strerror(errno));
    memcpy(f->spool, path, sizeof(path));
    tt_status st = TT_OK;
    for (ssize_t n; st == TT_OK && (n = read(STDIN_FILENO, chunk, sizeof(chunk))) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || write(fd, chunk, (size_t)n) != n)
            st = TT_FAIL(ctx, TT_EIO, "--input -: %s", strerror(errno));
    }
    close(fd);
    return st == TT_OK ? add(ctx, f, path) : st;
}

// All images below a folder.
static tt_status from_images(tt_ctx *ctx, const char *word, cli_files *f)
{
    tti_image_list l = {0};
    tt_status st = tti_list_walk(ctx, word, -1, 8, &l);
    for (int64_t i = 0; i < l.n && st == TT_OK; i++)
        st = add(ctx, f, l.names[i]);
    if (st == TT_OK && l.n == 0)
        st = TT_FAIL(ctx, TT_EIO,
                     "folder '%s' has no .jpg, .jpeg, .png or .webp files (%lld other files)", word,
                     (long long)l.n_other);
    tti_list_free(ctx, &l);
    return st;
}

tt_status cli_files_find(tt_ctx *ctx, const char *word, bool images, cli_files *f)
{
    if (strcmp(word, "-") == 0)
        return from_stdin(ctx, f);
    if (images && tti_folder_exists(word))
        return from_images(ctx, word, f);
    if (tti_folder_exists(word))
        return from_folder(ctx, word, f);
    if (!tti_file_exists(word) && strpbrk(word, "*?[") != NULL)
        return from_pattern(ctx, word, f);
    return add(ctx, f, word);
}

void cli_files_free(tt_ctx *ctx, cli_files *f)
{
    if (f->spool[0] != '\0')
        (void)unlink(f->spool);
    for (int64_t i = 0; i < f->n; i++)
        tti_free(ctx, f->names[i]);
    tti_free(ctx, f->names);
    *f = (cli_files){0};
}
