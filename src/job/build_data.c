/*
 * build_data.c - the data sets of a job: a kind's options, file names under data.dir, splits,
 * transforms.
 */
#include "base/ctx.h"
#include "base/file.h"
#include "data/csv.h"
#include "data/data.h"
#include "data/describe.h"
#include "job/job.h"
#include <stdio.h>
#include <string.h>
#include <tutti/use.h>

// ---- file names ------------------------------------------------------------------------------

// Which texts are file names: file and dir of all kinds; of these kinds x and y too.
static bool is_path(const char *kind, const tti_item *record, const char *row)
{
    if (strcmp(row, "file") == 0)
        return true;
    const tti_item *file = tti_item_get(record, "file");
    bool arrays = strcmp(kind, "idx") == 0 || strcmp(kind, "npy") == 0;
    bool in_file = file != NULL && file->text[0] != '\0'; // names in an archive
    return arrays && !in_file && (strcmp(row, "x") == 0 || strcmp(row, "y") == 0);
}

// Every name of "a, b" below dir; "/a" and "./a" stay.
static char *below_dir(tt_ctx *ctx, const char *dir, const char *names)
{
    tti_text t = {.ctx = ctx};
    while (*names != '\0') {
        names += strspn(names, " ,");
        size_t n = strcspn(names, ",");
        bool stays = names[0] == '/' || names[0] == '.';
        if (n > 0)
            tti_text_add(&t, "%s%s%s%.*s", t.n > 0 ? ", " : "", stays ? "" : dir, stays ? "" : "/",
                         (int)n, names);
        names += n;
    }
    return tti_text_take(&t);
}

// A kind's own folder: the one of its name below dir, or dir itself.
static char *folder_of(tt_ctx *ctx, const char *dir, const char *kind)
{
    char *below = below_dir(ctx, dir, kind);
    if (below == NULL || tti_folder_exists(below))
        return below;
    tti_free(ctx, below);
    return tti_strdup(ctx, dir);
}

typedef struct paths {
    char *text[TT_MAX_FIELDS + 1];
    int n;
} paths;

static tt_status set_path(tt_ctx *ctx, const tt_option *row, char *text, void *options, paths *p)
{
    if (text == NULL)
        return TT_ENOMEM;
    if (p->n == TTI_COUNT(p->text)) {
        tti_free(ctx, text);
        return TT_OK;
    }
    p->text[p->n++] = text;
    memcpy((char *)options + row->offset, &text, sizeof(text));
    return TT_OK;
}

static tt_status place_files(tt_ctx *ctx, const tt_source_def *def, const tti_item *record,
                             const char *dir, void *options, paths *p)
{
    for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
        const tti_item *value = tti_item_get(record, row->name);
        if (dir == NULL || row->type != TT_OPT_TEXT || value == NULL)
            continue;
        if (strcmp(row->name, "dir") == 0 && value->text[0] == '\0')
            TT_TRY(set_path(ctx, row, folder_of(ctx, dir, def->name), options, p));
        else if (value->text[0] != '\0' && is_path(def->name, record, row->name))
            TT_TRY(set_path(ctx, row, below_dir(ctx, dir, value->text), options, p));
    }
    return TT_OK;
}

// ---- opening ---------------------------------------------------------------------------------

// Classes have the numbers that they have in the training data.
static void give_words(const tt_job *j, const tt_source_def *def, void *options)
{
    if (def == &tti_source_csv && j->tables != NULL) {
        tt_csv_opts *o = options;
        if (o->tables == NULL || o->tables[0] == '\0')
            o->tables = j->tables;
    }
    if (j->words == NULL)
        return;
    if (def == &tti_source_csv) {
        tt_csv_opts *o = options;
        if (o->classes && (o->words == NULL || o->words[0] == '\0'))
            o->words = j->words;
        return;
    }
    for (const tt_option *row = def->options; row != NULL && row->type != TT_OPT_END; row++) {
        const char *words;
        if (row->type != TT_OPT_TEXT || strcmp(row->name, "words") != 0)
            continue;
        memcpy(&words, (char *)options + row->offset, sizeof(words));
        if (words == NULL || words[0] == '\0')
            memcpy((char *)options + row->offset, &j->words, sizeof(j->words));
    }
}

static tt_status open_kind(tt_job *j, tt_ctx *ctx, const tt_source_def *def, const tti_item *record,
                           const char *path, const tti_job_data *d, const tt_data_opts *opts,
                           tt_data **out)
{
    char buf[TTI_PLACE_MAX];
    paths p = {.n = 0};
    void *options = tti_calloc(ctx, 1, def->options_size + sizeof(size_t));
    if (options == NULL)
        return TT_ENOMEM;
    tt_status st = tti_bind(ctx, def->options, record, options);
    tti_options_zeros(def->options, options, false); // a source fills in nothing
    if (st == TT_OK)
        st = place_files(ctx, def, record, d->dir, options, &p);
    if (st == TT_OK) {
        give_words(j, def, options);
        tti_fail_item(ctx, record, path, buf);
        *out = tt_data_open(ctx, def, options, opts);
        st = *out == NULL ? tt_status_of(ctx) : TT_OK;
        tti_fail_where(ctx, NULL);
    }
    for (int i = 0; i < p.n; i++)
        tti_free(ctx, p.text[i]);
    tti_free(ctx, options);
    return st;
}

static tt_status bind_data_opts(tt_job *j, tt_ctx *ctx, bool training, tti_job_data *d,
                                tt_data_opts *out)
{
    const tti_item *train = tti_item_get(j->root, "train");
    TT_TRY(tti_bind_own(ctx, tti_job_data_rows, tti_item_get(j->root, "data"), d));
    *out = (tt_data_opts){.opts_size = sizeof(*out),
                          .no_shuffle = !training || !d->shuffle,
                          .workers = d->workers == 0 ? -1 : d->workers,
                          .prefetch = d->prefetch,
                          .compare_all = d->compare_all};
    if (train == NULL)
        return TT_OK;
    tti_job_train *t = tti_calloc(ctx, 1, sizeof(*t));
    if (t == NULL)
        return TT_ENOMEM;
    tt_status st = tti_bind(ctx, tti_job_train_rows, train, t);
    out->batch = (int)t->fit.batch;
    tti_free(ctx, t);
    return st;
}

static const tti_item *part_of(const tt_job *j, const char *part)
{
    const tti_item *choice = tti_item_get(tti_item_get(j->root, "data"), part);
    return choice != NULL ? tti_chosen(choice) : NULL;
}

static bool is_split(const tt_job *j, const char *part)
{
    const tti_item *record = part_of(j, part);
    return record != NULL && strcmp(record->key, TTI_JOB_SPLIT) == 0;
}

static const char *role_of(const char *part)
{
    return strcmp(part, "train") == 0  ? "training"
           : strcmp(part, "test") == 0 ? "test"
                                       : "validation";
}

// A part that has a source of its own, without transforms; *out stays NULL where there is none.
static tt_status open_source(tt_job *j, tt_ctx *ctx, const char *part, tt_data **out)
{
    const tti_item *record = part_of(j, part);
    tti_job_data d;
    tt_data_opts opts;
    char path[TTI_KEY_MAX];
    if (record == NULL || is_split(j, part))
        return TT_OK;
    TT_TRY(bind_data_opts(j, ctx, strcmp(part, "train") == 0, &d, &opts));
    snprintf(path, sizeof(path), "data.%s", part);
    const tt_source_def *def = tt_source_find(ctx, record->key);
    if (def == NULL)
        return tti_fail_at(ctx, TT_EINVAL, record->at, path,
                           "source '%.64s' is not registered with the context", record->key);
    TT_TRY(open_kind(j, ctx, def, record, path, &d, &opts, out));
    (*out)->role = role_of(part);
    return TT_OK;
}

// A part that is taken from the training data.
static tt_status take_part(tt_job *j, tt_ctx *ctx, const char *part, tt_data *train, tt_data **out)
{
    const tti_item *record = part_of(j, part);
    char path[TTI_KEY_MAX], buf[TTI_PLACE_MAX];
    tt_data_split_opts o = {.opts_size = sizeof(o)};
    if (!is_split(j, part))
        return TT_OK;
    snprintf(path, sizeof(path), "data.%s.%s", part, TTI_JOB_SPLIT);
    if (train == NULL)
        return tti_fail_at(ctx, TT_EINVAL, record->at, path,
                           "takes a part of the training data, but there is no data.train");
    TT_TRY(tti_bind_own(ctx, tti_split_options, record, &o));
    o.opts_size = sizeof(o);
    int64_t all = tt_data_count(train);
    tti_fail_item(ctx, record, path, buf);
    *out = tt_data_split_with(train, &o);
    tti_fail_where(ctx, NULL);
    if (*out == NULL)
        return tt_status_of(ctx);
    (*out)->role = role_of(part);
    TT_LOG(ctx, TT_INFO, "data.%s: %lld of %lld records of data.train", part,
           (long long)tt_data_count(*out), (long long)all);
    return TT_OK;
}

// The test part is taken first, so it does not depend on the validation part.
static tt_status take_parts(tt_job *j, tt_ctx *ctx, tt_job_parts *p)
{
    TT_TRY(take_part(j, ctx, "test", p->train, &p->test));
    return take_part(j, ctx, "validate", p->train, &p->validate);
}

// ---- transforms ------------------------------------------------------------------------------

/*
 * Transforms of training data; of other data those that are not random, with the numbers that were
 * fitted on the training data.
 */
static tt_status add_transforms(tt_job *j, tt_ctx *ctx, const tt_data *train, tt_data *d)
{
    const tti_item *list = tti_item_get(tti_item_get(j->root, "data"), "transform");
    int i = 0;
    for (const tti_item *c = d != NULL ? list->first : NULL; c != NULL; c = c->next, i++) {
        const tti_item *record = tti_chosen(c);
        const tti_transform_def *def = tti_transform_find(record->key);
        tt_transform_opts o = {.opts_size = sizeof(o)};
        char path[TTI_KEY_MAX], buf[TTI_PLACE_MAX];
        if (d != train && strncmp(def->name, "random_", 7) == 0)
            continue;
        TT_TRY(tti_bind_own(ctx, def->options, record, &o));
        snprintf(path, sizeof(path), "data.transform.%d", i);
        if (o.fit != TT_NORMALISE_GIVEN && train == NULL)
            return tti_fail_at(ctx, TT_EINVAL, record->at, path,
                               "fit takes its numbers from the training data, but there is no "
                               "data.train");
        o.like = d != train ? train : NULL;
        tti_fail_item(ctx, record, path, buf);
        tt_status st = tt_transform_with(d, def->name, &o);
        tti_fail_where(ctx, NULL);
        TT_TRY(st);
    }
    return TT_OK;
}

static bool has_fit(tt_job *j, tt_ctx *ctx)
{
    const tti_item *list = tti_item_get(tti_item_get(j->root, "data"), "transform");
    for (const tti_item *c = list->first; c != NULL; c = c->next) {
        const tti_item *record = tti_chosen(c);
        tt_transform_opts o = {.opts_size = sizeof(o)};
        if (tti_bind_own(ctx, tti_transform_find(record->key)->options, record, &o) == TT_OK &&
            o.fit != TT_NORMALISE_GIVEN)
            return true;
    }
    return false;
}

// ---- all parts, or one -----------------------------------------------------------------------

// Validation and test data, the words of whose classes are those of the training data.
static tt_status open_others(tt_job *j, tt_ctx *ctx, tt_job_parts *p)
{
    tti_text words = {.ctx = ctx}, tables = {.ctx = ctx};
    int64_t n;
    char *const *names = tti_data_words(p->train, &n);
    for (int64_t i = 0; i < n; i++)
        tti_csv_list(&words, names[i]);
    tti_csv_tables(p->train, &tables);
    j->words = words.s;
    j->tables = tables.s;
    tt_status st =
        words.failed || tables.failed ? TT_ENOMEM : open_source(j, ctx, "validate", &p->validate);
    if (st == TT_OK)
        st = open_source(j, ctx, "test", &p->test);
    j->words = j->tables = NULL;
    tti_text_free(&words);
    tti_text_free(&tables);
    return st;
}

tt_status tti_job_open_data(tt_job *j, tt_ctx *ctx, tt_job_parts *p)
{
    TT_TRY(open_source(j, ctx, "train", &p->train));
    TT_TRY(open_others(j, ctx, p));
    TT_TRY(take_parts(j, ctx, p));
    tti_job_data d;
    TT_TRY(tti_bind_own(ctx, tti_job_data_rows, tti_item_get(j->root, "data"), &d));
    if (d.balance && p->train != NULL)
        TT_TRY(tt_data_balance(p->train, NULL));
    TT_TRY(add_transforms(j, ctx, p->train, p->train));
    TT_TRY(add_transforms(j, ctx, p->train, p->validate));
    return add_transforms(j, ctx, p->train, p->test);
}

tt_status tti_job_open_part(tt_job *j, tt_ctx *ctx, const char *part, tt_model *m, tt_data **out)
{
    tt_job_parts p = {0};
    tt_status st;
    if (is_split(j, part)) {
        st = open_source(j, ctx, "train", &p.train);
        if (st == TT_OK)
            st = take_parts(j, ctx, &p);
        tt_data **which = strcmp(part, "test") == 0 ? &p.test : &p.validate;
        *out = *which;
        *which = NULL;
    } else {
        st = open_source(j, ctx, part, out);
    }
    if (st == TT_OK && *out != NULL)
        st = has_fit(j, ctx) ? tt_model_prepare(m, *out) : add_transforms(j, ctx, NULL, *out);
    tt_data_free(p.train);
    tt_data_free(p.validate);
    tt_data_free(p.test);
    if (st != TT_OK) {
        tt_data_free(*out);
        *out = NULL;
    }
    return st;
}
