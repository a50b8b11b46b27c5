/*
 * data.c - making and freeing data sets.
 */
#include "data/data.h"
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// clang-format off
const tt_option tti_data_options[] = {
    {"batch", TT_OPT_INT32, "32", "batch size",
     offsetof(tt_data_opts, batch), 1, 1 << 30, NULL},
    {"no_shuffle", TT_OPT_BOOL, "false", "read records in file order instead of shuffling",
     offsetof(tt_data_opts, no_shuffle), 0, 0, NULL},
    {"seed", TT_OPT_INT, "0", "random seed for shuffling and transforms; 0: the run's seed",
     offsetof(tt_data_opts, seed), 0, 0, NULL},
    {"workers", TT_OPT_INT32, "1", "number of threads that load data in the background; -1: none",
     offsetof(tt_data_opts, workers), -1, 64, NULL},
    {"prefetch", TT_OPT_INT32, "0",
     "number of batches to load ahead; 0: as many as fit in 1 MiB, between 4 and 64",
     offsetof(tt_data_opts, prefetch), 0, 4096, NULL},
    {"compare_all", TT_OPT_BOOL, "false",
     "compare every record between processes at the start, instead of a sample",
     offsetof(tt_data_opts, compare_all), 0, 0, NULL},
    TT_OPTION_END,
};
// clang-format on

const char *tti_data_name(const tt_data *d)
{
    return d->def != NULL ? d->def->name : "data";
}

size_t tti_field_bytes(const tt_field *f)
{
    return (size_t)tt_shape_count(&f->shape) * tt_dtype_bytes(f->dtype);
}

// A field of a source: name, type and a shape whose size in bytes is far from overflow.
static tt_status check_field(tt_ctx *ctx, const char *who, const tt_field *f)
{
    int64_t n = 1;
    char shape[TT_SHAPE_TEXT];
    if (memchr(f->name, '\0', sizeof(f->name)) == NULL || f->name[0] == '\0')
        return TT_FAIL(ctx, TT_EINVAL, "%s: a field has no name", who);
    if (tt_dtype_bytes(f->dtype) == 0)
        return TT_FAIL(ctx, TT_EDTYPE, "%s: field '%s' has type %d, which does not exist", who,
                       f->name, (int)f->dtype);
    bool ok = f->shape.rank >= 0 && f->shape.rank < TT_MAX_RANK && f->classes >= 0;
    for (int i = 0; ok && i < f->shape.rank; i++)
        ok = f->shape.dim[i] > 0 && tti_mul_i64(n, f->shape.dim[i], &n) && n <= INT32_MAX;
    if (!ok)
        return TT_FAIL(ctx, TT_ESHAPE, "%s: field '%s': a record cannot have the shape %s", who,
                       f->name, tt_shape_text(&f->shape, shape));
    return TT_OK;
}

static tt_status check_source(tt_ctx *ctx, const char *who, const tt_source *s)
{
    if (s->read == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the source has no read()", who);
    if (s->count < 1 || s->count > INT64_MAX / 4)
        return TT_FAIL(ctx, TT_EINVAL, "%s: %s", who,
                       s->count < 1 ? "there are no records" : "there are too many records");
    if (s->n_fields < 1 || s->n_fields > TT_MAX_FIELDS)
        return TT_FAIL(ctx, TT_EINVAL, "%s: has %d fields; 1 to %d are allowed", who, s->n_fields,
                       TT_MAX_FIELDS);
    for (int i = 0; i < s->n_fields; i++) {
        TT_TRY(check_field(ctx, who, &s->fields[i]));
        for (int j = 0; j < i; j++)
            if (strcmp(s->fields[i].name, s->fields[j].name) == 0)
                return TT_FAIL(ctx, TT_EINVAL, "%s: two fields have the name '%s'", who,
                               s->fields[i].name);
    }
    return TT_OK;
}

static void free_data(void *owner)
{
    tt_data_free(owner);
}

// Takes the source over: it is closed when this fails.
static tt_data *make(tt_ctx *ctx, const tt_source_def *def, tt_source *source,
                     const tt_data_opts *opts)
{
    const char *who = def != NULL ? def->name : "data";
    tt_data_opts o = {0};
    tt_data *d = NULL;
    if ((opts == NULL || TTI_OPTS_COPY(ctx, who, opts, &o) == TT_OK) &&
        check_source(ctx, who, source) == TT_OK &&
        tti_options_fill(ctx, tti_data_options, &o, who) == TT_OK)
        d = tti_calloc(ctx, 1, sizeof(*d));
    if (d == NULL) {
        if (source->close != NULL)
            source->close(ctx, source->self);
        return NULL;
    }
    d->ctx = ctx;
    d->def = def;
    d->source = *source;
    d->count = source->count;
    d->opts = o;
    if (o.seed == 0)
        d->opts.seed = (int64_t)ctx->seed;
    memcpy(d->fields, source->fields, sizeof(d->fields));
    tti_own(ctx, &d->owned, d, free_data);
    if (tti_lanes_build(d) != TT_OK) {
        tt_data_free(d);
        return NULL;
    }
    return d;
}

tt_data *tt_data_new_with(tt_ctx *ctx, const tt_source *source, const tt_data_opts *opts)
{
    if (ctx != NULL && source == NULL)
        (void)TT_FAIL(ctx, TT_EINVAL, "data: the source is NULL");
    if (ctx == NULL || source == NULL)
        return NULL;
    tt_source copy = *source;
    if (tti_is_stuck(ctx)) {
        if (copy.close != NULL)
            copy.close(ctx, copy.self);
        return NULL;
    }
    return make(ctx, NULL, &copy, opts);
}

/*
 * A copy of a kind's options in which no text is NULL: what was not given is the default, and what
 * must be given is missed here. Free with tti_free().
 */
static void *copy_options(tt_ctx *ctx, const tt_source_def *def, const void *options)
{
    char *copy = tti_calloc(ctx, 1, TTI_MAX(def->options_size, 1));
    if (copy == NULL)
        return NULL;
    if (def->options_size > 0)
        memcpy(copy, options, def->options_size);
    for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
        const char *text = "given";
        if (row->type == TT_OPT_TEXT)
            memcpy(&text, copy + row->offset, sizeof(text));
        if (text == NULL && row->value == NULL) {
            (void)TT_FAIL(ctx, TT_EINVAL, "%s: %s must be given", def->name, row->name);
            tti_free(ctx, copy);
            return NULL;
        }
        if (text == NULL)
            memcpy(copy + row->offset, &row->value, sizeof(row->value));
    }
    return copy;
}

static int64_t bytes_in(const char *path)
{
    struct stat st;
    int64_t sum = 0;
    if (stat(path, &st) != 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            sum += (int64_t)st.st_size;
    if (dir != NULL)
        closedir(dir);
    return sum;
}

// The options that name something that is there are its files.
static void note_files(tt_data *d, const char *options)
{
    for (const tt_option *row = d->def->options; row != NULL && row->type != TT_OPT_END; row++) {
        const char *text = NULL;
        if (row->type == TT_OPT_TEXT)
            memcpy(&text, options + row->offset, sizeof(text));
        bool is_default = text != NULL && row->value != NULL && strcmp(text, row->value) == 0;
        int64_t bytes = text != NULL && text[0] != '\0' && !is_default ? bytes_in(text) : -1;
        if (bytes < 0 || d->n_files == TTI_DATA_FILES)
            continue;
        tti_data_file *f = &d->files[d->n_files++];
        size_t n = strlen(text), most = sizeof(f->path) - 1;
        snprintf(f->path, sizeof(f->path), "%s", text + (n > most ? n - most : 0));
        f->bytes = bytes;
    }
}

tt_data *tt_data_open(tt_ctx *ctx, const tt_source_def *def, const void *options,
                      const tt_data_opts *opts)
{
    tt_source source = {0};
    if (tti_is_stuck(ctx))
        return NULL;
    if (def == NULL || def->open == NULL || (options == NULL && def->options_size > 0)) {
        (void)TT_FAIL(ctx, TT_EINVAL, "data: %s",
                      def == NULL ? "the source type is NULL" : "the options are NULL");
        return NULL;
    }
    void *copy = copy_options(ctx, def, options);
    if (copy == NULL)
        return NULL;
    tt_data *d = NULL;
    if (def->open(ctx, copy, &source) == TT_OK)
        d = make(ctx, def, &source, opts);
    if (d != NULL)
        note_files(d, copy);
    tti_free(ctx, copy);
    return d;
}

void tt_data_free(tt_data *d)
{
    if (d == NULL)
        return;
    tt_ctx *ctx = d->ctx;
    tt_data_stop(d);
    tti_disown(ctx, &d->owned);
    tti_ring_free(d);
    for (int i = 0; i < d->n_transforms; i++) {
        tti_free(ctx, d->transforms[i].table);
        tti_free(ctx, d->transforms[i].about);
    }
    tti_free(ctx, d->lane_first);
    tti_free(ctx, d->lane_records);
    tti_free(ctx, d->subset);
    bool is_last = d->n_users == NULL || --*d->n_users == 0;
    if (is_last && d->source.close != NULL)
        d->source.close(ctx, d->source.self);
    if (is_last)
        tti_free(ctx, d->n_users);
    tti_free(ctx, d);
}

int64_t tt_data_count(const tt_data *d)
{
    return d == NULL ? 0 : d->count;
}

int tt_data_fields(const tt_data *d, tt_field out[TT_MAX_FIELDS])
{
    if (d == NULL)
        return 0;
    if (out != NULL)
        memcpy(out, d->fields, sizeof(d->fields[0]) * (size_t)d->source.n_fields);
    return d->source.n_fields;
}
