/*
 * files.c - several files as one (bytes.h), and where data lies by default.
 */
#include "data/bytes.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Small files are kept in memory, so that a thousand of them are not a thousand open files.
#define KEEP_FILE  ((int64_t)1 << 20)
#define KEEP_TOTAL ((int64_t)256 << 20)

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// What is done with each name.
typedef tt_status add_fn(tt_ctx *ctx, const char *path, void *to);

static tt_status add_name(tt_ctx *ctx, const char *path, void *to)
{
    tti_names *l = to;
    if (!tti_grow(ctx, &l->names, &l->cap, l->n + 1, sizeof(*l->names)) ||
        (l->names[l->n] = tti_strdup(ctx, path)) == NULL)
        return TT_ENOMEM;
    l->n++;
    return TT_OK;
}

static tt_status add_file(tt_ctx *ctx, const char *path, void *to)
{
    tti_files *f = to;
    if (!tti_grow(ctx, &f->file, &f->cap, f->n + 1, sizeof(*f->file)))
        return TT_ENOMEM;
    TT_TRY(tti_bytes_open(ctx, path, f->kept < KEEP_TOTAL ? KEEP_FILE : 0, &f->file[f->n]));
    f->kept += f->file[f->n].fd < 0 ? f->file[f->n].n : 0;
    f->n++;
    return TT_OK;
}

// One name or glob. A name that is a file's is that file, whatever characters it has.
static tt_status add_item(tt_ctx *ctx, const char *who, const char *item, add_fn *add, void *f)
{
    if (access(item, F_OK) == 0 || (add == add_name && strpbrk(item, "*?[") == NULL))
        return add(ctx, item, f); // opening it says what is wrong
    glob_t found = {0};
    int rc = glob(item, GLOB_NOSORT, NULL, &found); // sorts by the locale otherwise
    tt_status st = TT_OK;
    if (rc == GLOB_NOMATCH) {
        st = TT_FAIL(ctx, TT_EIO, "%s: no file matches '%s'", who, item);
    } else if (rc != 0) {
        st = TT_FAIL(ctx, rc == GLOB_NOSPACE ? TT_ENOMEM : TT_EIO, "%s: cannot search for '%s'",
                     who, item);
    } else {
        qsort(found.gl_pathv, found.gl_pathc, sizeof(char *), by_bytes);
        for (size_t i = 0; i < found.gl_pathc && st == TT_OK; i++)
            st = add(ctx, found.gl_pathv[i], f);
    }
    globfree(&found);
    return st;
}

static tt_status add_list(tt_ctx *ctx, const char *who, const char *list, add_fn *add, void *f)
{
    for (const char *s = list; *s != '\0';) {
        char item[TTI_PATH_MAX];
        size_t n = strcspn(s, ","), skip = strspn(s, " \t"), len = n > skip ? n - skip : 0;
        while (len > 0 && (s[skip + len - 1] == ' ' || s[skip + len - 1] == '\t'))
            len--;
        if (len >= sizeof(item))
            return TT_FAIL(ctx, TT_EINVAL, "%s: a file name has %zu bytes, which is too long", who,
                           len);
        memcpy(item, s + skip, len);
        item[len] = '\0';
        if (len > 0)
            TT_TRY(add_item(ctx, who, item, add, f));
        s += n + (s[n] == ',');
    }
    return TT_OK;
}

tt_status tti_names_find(tt_ctx *ctx, const char *who, const char *list, tti_names *out)
{
    *out = (tti_names){0};
    tt_status st = access(list, F_OK) == 0 ? add_name(ctx, list, out) // whatever its name has
                                           : add_list(ctx, who, list, add_name, out);
    if (st == TT_OK && out->n == 0)
        st = TT_FAIL(ctx, TT_EINVAL, "%s: file must be given", who);
    if (st != TT_OK)
        tti_names_close(ctx, out);
    return st;
}

void tti_names_close(tt_ctx *ctx, tti_names *l)
{
    for (int64_t i = 0; i < l->n; i++)
        tti_free(ctx, l->names[i]);
    tti_free(ctx, l->names);
    *l = (tti_names){0};
}

static tt_status add_up(tt_ctx *ctx, const char *who, tti_files *f)
{
    f->start = tti_calloc(ctx, (size_t)f->n + 1, sizeof(*f->start));
    if (f->start == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < f->n; i++)
        if (__builtin_add_overflow(f->start[i], f->file[i].n, &f->start[i + 1]))
            return TT_FAIL(ctx, TT_EIO, "%s: files are too large together", who);
    return TT_OK;
}

tt_status tti_files_of(tt_ctx *ctx, tti_bytes *b, tti_files *out)
{
    tti_files f = {.file = tti_calloc(ctx, 1, sizeof(*f.file)),
                   .start = tti_calloc(ctx, 2, sizeof(*f.start))};
    if (f.file == NULL || f.start == NULL) {
        tti_free(ctx, f.file);
        tti_free(ctx, f.start);
        tti_bytes_close(ctx, b);
        return TT_ENOMEM;
    }
    f.file[0] = *b;
    f.start[1] = b->n;
    f.n = 1;
    *b = (tti_bytes){.fd = -1};
    *out = f;
    return TT_OK;
}

tt_status tti_files_open(tt_ctx *ctx, const char *who, const char *list, tti_files *out)
{
    tti_files f = {0};
    tt_status st = add_list(ctx, who, list != NULL ? list : "", add_file, &f);
    if (st == TT_OK && f.n == 0)
        st = TT_FAIL(ctx, TT_EINVAL, "%s: file must be given", who);
    if (st == TT_OK)
        st = add_up(ctx, who, &f);
    if (st != TT_OK) {
        tti_files_close(ctx, &f);
        return st;
    }
    *out = f;
    return TT_OK;
}

void tti_files_close(tt_ctx *ctx, tti_files *f)
{
    for (int64_t i = 0; i < f->n; i++)
        tti_bytes_close(ctx, &f->file[i]);
    tti_free(ctx, f->file);
    tti_free(ctx, f->start);
    *f = (tti_files){0};
}

int64_t tti_files_find(const tti_files *f, int64_t at)
{
    int64_t low = 0, high = f->n - 1; // the last file that begins at or before at
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        if (f->start[mid] <= at)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

tt_status tti_files_read(tt_ctx *ctx, const tti_files *f, int64_t at, size_t n, void *out)
{
    for (int64_t i = tti_files_find(f, at); n > 0; i++) {
        if (i >= f->n)
            return TT_FAIL(ctx, TT_EIO, "%s: %zu bytes are missing at its end",
                           f->file[f->n - 1].path, n);
        int64_t in = at - f->start[i];
        size_t some = (size_t)TTI_MIN((int64_t)n, f->file[i].n - in);
        TT_TRY(tti_bytes_read(ctx, &f->file[i], in, some, out));
        out = (char *)out + some;
        at += (int64_t)some;
        n -= some;
    }
    return TT_OK;
}

tt_status tti_data_dir(tt_ctx *ctx, const char *dir, const char *name, char out[TTI_PATH_MAX])
{
    const char *root = tti_env("TUTTI_DATA_DIR");
    int n;
    if (dir != NULL && dir[0] != '\0')
        n = snprintf(out, TTI_PATH_MAX, "%s", dir);
    else
        n = snprintf(out, TTI_PATH_MAX, "%s/%s", root != NULL && root[0] != '\0' ? root : "data",
                     name);
    if (n < 0 || n >= TTI_PATH_MAX - 64) // room for a file's name
        return TT_FAIL(ctx, TT_EINVAL, "%s: the name of its folder is too long", name);
    return TT_OK;
}
