/*
 * images_list.c - which files a source of images has, and their classes: from folders, or from a
 * CSV file.
 */
#include "base/file.h"
#include "data/csv_own.h"
#include "data/images.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 8 // folders below that of a class

tt_status tti_list_add(tt_ctx *ctx, tti_image_list *l, const char *name, int label)
{
    if (!tti_grow(ctx, &l->names, &l->cap, l->n + 1, sizeof(*l->names)) ||
        !tti_grow(ctx, &l->labels, &l->cap_labels, l->n + 1, sizeof(*l->labels)) ||
        (l->names[l->n] = tti_strdup(ctx, name)) == NULL)
        return TT_ENOMEM;
    l->labels[l->n++] = label;
    return TT_OK;
}

void tti_list_free(tt_ctx *ctx, tti_image_list *l)
{
    tti_names_free(ctx, l->names, l->n);
    tti_free(ctx, l->labels);
    tti_words_free(ctx, &l->words);
    *l = (tti_image_list){0};
}

// ---- folders ---------------------------------------------------------------------------------

static tt_status walk_names(tt_ctx *ctx, const char *dir, char *const *names, int64_t n, int label,
                            int depth, tti_image_list *l)
{
    char path[TTI_PATH_MAX];
    for (int64_t i = 0; i < n; i++) {
        if (names[i][0] == '.')
            continue;
        TT_TRY(tti_file_join(ctx, path, dir, names[i]));
        if (tti_folder_exists(path))
            TT_TRY(tti_list_walk(ctx, path, label, depth - 1, l));
        else if (tti_is_image_name(names[i]))
            TT_TRY(tti_list_add(ctx, l, path, label));
        else
            l->n_other++;
    }
    return TT_OK;
}

tt_status tti_list_walk(tt_ctx *ctx, const char *dir, int label, int depth, tti_image_list *l)
{
    char **names;
    int64_t n;
    if (depth < 0)
        return TT_FAIL(ctx, TT_EIO, "images: '%s' lies more than %d folders deep", dir, DEEPEST);
    TT_TRY(tti_folder_list(ctx, dir, &names, &n));
    tt_status st = walk_names(ctx, dir, names, n, label, depth, l);
    tti_names_free(ctx, names, n);
    return st;
}

static tt_status add_class(tt_ctx *ctx, const char *dir, const char *name, tti_image_list *l)
{
    char path[TTI_PATH_MAX];
    TT_TRY(tti_file_join(ctx, path, dir, name));
    if (!tti_folder_exists(path))
        return TT_OK;
    int64_t before = l->n;
    if (!l->fixed_words && tti_words_add(ctx, &l->words, name) != TT_OK)
        return TT_FAIL(ctx, TT_EINVAL, "images: '%s' has more than %d class folders", dir,
                       TTI_WORDS_MAX);
    int label = tti_words_find(&l->words, name);
    if (label < 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "images: folder '%s' is not one of the classes that are known (words, or "
                       "the folders of the training data)",
                       path);
    TT_TRY(tti_list_walk(ctx, path, label, DEEPEST, l));
    if (l->n == before)
        return TT_FAIL(ctx, TT_EIO,
                       "images: folder '%s' has no .jpg, .jpeg, .png or .webp files; a class needs "
                       "at least one: add images, or remove the folder",
                       path);
    return TT_OK;
}

tt_status tti_list_folder(tt_ctx *ctx, const char *dir, tti_image_list *l)
{
    char **names;
    int64_t n;
    TT_TRY(tti_folder_list(ctx, dir, &names, &n));
    tt_status st = TT_OK;
    for (int64_t i = 0; i < n && st == TT_OK; i++)
        if (names[i][0] != '.')
            st = add_class(ctx, dir, names[i], l);
    l->has_labels = l->n > 0;
    if (st == TT_OK && l->n == 0) // no folders: its own files, which have no class
        st = walk_names(ctx, dir, names, n, -1, 0, l);
    tti_names_free(ctx, names, n);
    return st;
}

// ---- a CSV file ------------------------------------------------------------------------------

typedef struct rows {
    const char *file, *dir;
    tti_csv_at at;
    bool is_first; // it may be a header
    int64_t n_columns;
} rows;

static bool is_header(const char *path)
{
    static const char *const names[] = {"path", "file", "filename", "file_name", "image", NULL};
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return false;
}

static tt_status add_row(tt_ctx *ctx, rows *r, const tti_cell *path, const tti_cell *label,
                         tti_image_list *l)
{
    char full[TTI_PATH_MAX];
    int number = -1;
    if (path->is_long)
        return TT_FAIL(ctx, TT_EIO, "%s: line %lld: the path is longer than %d bytes", r->file,
                       (long long)r->at.line, TTI_CELL_MAX - 1);
    if (path->text[0] == '/')
        snprintf(full, sizeof(full), "%s", path->text);
    else
        TT_TRY(tti_file_join(ctx, full, r->dir, path->text));
    if (label->n > 0) {
        if (!l->fixed_words && tti_words_add(ctx, &l->words, label->text) != TT_OK)
            return TT_FAIL(ctx, TT_EIO, "%s: has more than %d different labels", r->file,
                           TTI_WORDS_MAX);
        number = tti_words_find(&l->words, label->text);
        if (number < 0)
            return TT_FAIL(ctx, TT_EINVAL,
                           "%s: line %lld: label '%s' is not one of the classes that are known "
                           "(words, or those of the training data)",
                           r->file, (long long)r->at.line, label->text);
    } else if (l->has_labels || l->n == 0) {
        if (r->n_columns > 1)
            return TT_FAIL(ctx, TT_EIO, "%s: line %lld: the label is empty", r->file,
                           (long long)r->at.line);
    }
    l->has_labels |= number >= 0;
    return tti_list_add(ctx, l, full, number);
}

static tt_status read_row(tt_ctx *ctx, rows *r, tti_image_list *l, bool *more)
{
    tti_cell cell = {0}, path = {0}, label = {0};
    int64_t n = 0;
    while (!cell.is_last) {
        TT_TRY(tti_csv_cell(ctx, &r->at, &cell, more));
        if (!*more && n == 0)
            return TT_OK;
        if (n == 0)
            path = cell;
        if (n == 1)
            label = cell;
        n++;
    }
    *more = true;
    if (n == 1 && path.n == 0)
        return TT_OK; // an empty line
    bool first = r->is_first;
    r->is_first = false;
    if (first)
        r->n_columns = n;
    if (n != r->n_columns)
        return TT_FAIL(ctx, TT_EIO, "%s: line %lld: %lld columns instead of %lld", r->file,
                       (long long)r->at.line - 1, (long long)n, (long long)r->n_columns);
    return first && is_header(path.text) ? TT_OK : add_row(ctx, r, &path, &label, l);
}

// Labels by name: numbers that do not depend on which comes first in the file.
static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static tt_status sort_labels(tt_ctx *ctx, tti_image_list *l)
{
    tti_words sorted = {0};
    int64_t n = l->words.n;
    if (n == 0)
        return TT_OK;
    char **names = tti_calloc(ctx, (size_t)n + 1, sizeof(*names));
    if (names == NULL)
        return TT_ENOMEM;
    memcpy(names, l->words.words, (size_t)n * sizeof(*names));
    qsort(names, (size_t)n, sizeof(*names), compare_words);
    tt_status st = TT_OK;
    for (int64_t i = 0; i < n && st == TT_OK; i++)
        st = tti_words_add(ctx, &sorted, names[i]);
    for (int64_t i = 0; i < l->n && st == TT_OK; i++)
        if (l->labels[i] >= 0)
            l->labels[i] = tti_words_find(&sorted, l->words.words[l->labels[i]]);
    tti_free(ctx, names);
    tti_words_free(ctx, &l->words);
    l->words = sorted;
    return st;
}

static tt_status read_rows(tt_ctx *ctx, rows *r, tti_image_list *l)
{
    for (bool more = true; more;)
        TT_TRY(read_row(ctx, r, l, &more));
    if (l->n == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: names no files; a line is a path, a comma and a label",
                       r->file);
    return l->fixed_words ? TT_OK : sort_labels(ctx, l);
}

tt_status tti_list_csv(tt_ctx *ctx, const char *file, const char *dir, tti_image_list *l)
{
    tti_bytes b = {.fd = -1};
    char folder[TTI_PATH_MAX], name[256];
    rows *r = tti_calloc(ctx, 1, sizeof(*r));
    if (r == NULL)
        return TT_ENOMEM;
    tt_status st = tti_file_split(ctx, file, folder, name);
    if (st == TT_OK)
        st = tti_bytes_open(ctx, file, 0, &b);
    if (st == TT_OK) {
        *r = (rows){.file = file, .dir = dir[0] != '\0' ? dir : folder, .is_first = true};
        r->at.comma = ',';
        r->at.quote = '"';
        r->at.line = 1;
        tti_scan_begin(&r->at.scan, &b, 0, b.n);
        st = read_rows(ctx, r, l);
    }
    tti_bytes_close(ctx, &b);
    tti_free(ctx, r);
    return st;
}
