/*
 * recorder.c - run folders for programs (tutti/record.h): the folder, its lock, job.yaml, and the
 * recorder that the command uses too.
 */
#include "base/ctx.h"
#include "record/chain.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <tutti/record.h>
#include <unistd.h>

struct tt_recorder {
    tt_ctx *ctx;
    struct tti_hooks owned;
    tti_recorder *events;
    int lock;
    int64_t *steps; // of the run that this one repeats; NULL: none
    char folder[TTI_RUN_PATH];
};

static void recorder_free(void *owner)
{
    tt_recorder *r = owner;
    tti_disown(r->ctx, &r->owned);
    tti_recorder_close(r->events);
    if (r->lock >= 0)
        close(r->lock);
    tti_free(r->ctx, r->steps);
    tti_free(r->ctx, r);
}

// What is kept as job.yaml; free with tti_free().
static char *job_text(tt_ctx *ctx, const tt_record_opts *o)
{
    tti_text t = {.ctx = ctx};
    if (o->job != NULL) {
        tti_text_add(&t, "%s", o->job);
    } else {
        tti_text_add(&t, "name: ");
        tti_text_json(&t, o->name != NULL ? o->name : "run");
        tti_text_add(&t, "\n");
    }
    return tti_text_take(&t);
}

/*
 * tutti reproduce runs the program of a run again: of what it records, the run with the same
 * job.yaml goes to the folder TUTTI_REPEAT, with hashes at the steps of the run TUTTI_REPEAT_RUN;
 * other runs go to folders beside it.
 */
static tt_status repeat_folder(tt_recorder *r, const tt_record_opts *o, const char *folder)
{
    const char *run = tti_env("TUTTI_REPEAT_RUN");
    char path[TTI_PATH_MAX], other[TTI_RUN_PATH], *then = NULL, *now;
    size_t n = 0;
    TT_TRY(tti_file_join(r->ctx, path, run != NULL ? run : folder, "job.yaml"));
    TT_TRY(tti_file_read(r->ctx, path, 0, &then, &n));
    now = job_text(r->ctx, o);
    TT_TRY(tti_file_join(r->ctx, path, folder, "job.yaml"));
    bool is_it = now != NULL && strcmp(then, now) == 0 && !tti_file_exists(path);
    tti_free(r->ctx, then);
    tti_free(r->ctx, now);
    if (snprintf(other, sizeof(other), "%s", folder) >= (int)sizeof(other) - 16)
        return TT_FAIL(r->ctx, TT_EINVAL, "record: the path in TUTTI_REPEAT is too long");
    if (!is_it) {
        strcat(other, "/others");
        return tti_run_folder_new(r->ctx, other, o->name != NULL ? o->name : "run", r->folder);
    }
    memcpy(r->folder, other, sizeof(r->folder));
    TT_TRY(tti_folder_make(r->ctx, r->folder));
    // The others of several processes would have to know the steps, too.
    return run != NULL && r->ctx->world == NULL ? tti_links_steps(r->ctx, run, &r->steps) : TT_OK;
}

static tt_status make_folder(tt_recorder *r, const tt_record_opts *o)
{
    const char *name = o->name != NULL ? o->name : "run",
               *root = o->root != NULL ? o->root : "runs", *repeat = tti_env("TUTTI_REPEAT");
    if (repeat != NULL && repeat[0] != '\0')
        return repeat_folder(r, o, repeat);
    if (o->dir == NULL)
        return tti_run_folder_new(r->ctx, root, name, r->folder);
    if (snprintf(r->folder, sizeof(r->folder), "%s", o->dir) >= (int)sizeof(r->folder))
        return TT_FAIL(r->ctx, TT_EINVAL, "record: the path has more than %zu bytes",
                       sizeof(r->folder) - 1);
    return tti_folder_make(r->ctx, r->folder);
}

// Held until the recorder ends, or the process.
static tt_status lock_folder(tt_recorder *r)
{
    r->lock = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->lock < 0)
        return TT_FAIL(r->ctx, TT_EIO, "record: cannot open '%s': %s", r->folder, strerror(errno));
    if (flock(r->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return TT_FAIL(r->ctx, TT_EIO, "record: another process is training in '%s'", r->folder);
    return TT_OK;
}

static tt_status write_job(tt_recorder *r, const tt_record_opts *o)
{
    char path[TTI_PATH_MAX];
    TT_TRY(tti_file_join(r->ctx, path, r->folder, "job.yaml"));
    if (o->job == NULL && tti_file_exists(path))
        return TT_OK;
    char *text = job_text(r->ctx, o);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = tti_file_replace(r->ctx, path, text, strlen(text));
    tti_free(r->ctx, text);
    return st;
}

// How the program was started: its words and its folder, so that it can be again.
static void add_command(tti_text *t)
{
    char words[1 << 14], where[TTI_PATH_MAX];
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t n = f != NULL ? fread(words, 1, sizeof(words) - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    words[n] = '\0';
    if (n == 0 || n == sizeof(words) - 1 || getcwd(where, sizeof(where)) == NULL)
        return;
    tti_text_add(t, ", \"folder\": ");
    tti_text_json(t, where);
    tti_text_add(t, ", \"command\": [");
    for (size_t i = 0; i < n; i += strlen(words + i) + 1) {
        tti_text_add(t, i > 0 ? ", " : "");
        tti_text_json(t, words + i);
    }
    tti_text_add(t, "]");
}

// The chain is bound to job.yaml as it is.
static tt_status open_chain(tt_recorder *r)
{
    char path[TTI_PATH_MAX], *job = NULL;
    size_t bytes = 0;
    tti_text t = {.ctx = r->ctx};
    TT_TRY(tti_file_join(r->ctx, path, r->folder, "job.yaml"));
    TT_TRY(tti_file_read(r->ctx, path, 0, &job, &bytes));
    tti_text_add(&t, "\"version\": \"" TT_VERSION "\", \"file\": ");
    tti_text_json(&t, job);
    tti_free(r->ctx, job);
    add_command(&t);
    char *about = tti_text_take(&t);
    if (about == NULL)
        return TT_ENOMEM;
    tt_status st = tti_recorder_chain(r->events, r->folder, &(tti_chain_opts){.about = about});
    tti_free(r->ctx, about);
    return st;
}

// ---- keys ------------------------------------------------------------------------------------

#define MOST_KEYS 512

typedef struct key_list {
    int n;
    tt_pair pairs[MOST_KEYS];
    char names[MOST_KEYS][128];
} key_list;

// Values by the keys that lead to them, "train.optimizer.adam.lr".
static void add_keys(key_list *l, const char *path, json_t *value)
{
    char name[128];
    const char *key;
    json_t *member;
    size_t i;
    json_object_foreach(value, key, member)
    {
        snprintf(name, sizeof(name), "%.60s%s%.60s", path, path[0] != '\0' ? "." : "", key);
        add_keys(l, name, member);
    }
    json_array_foreach(value, i, member)
    {
        snprintf(name, sizeof(name), "%.100s%s%zu", path, path[0] != '\0' ? "." : "", i);
        add_keys(l, name, member);
    }
    if (json_is_object(value) || json_is_array(value) || json_is_null(value) || l->n == MOST_KEYS)
        return;
    const char *text = json_is_true(value)    ? "true"
                       : json_is_false(value) ? "false"
                                              : json_string_value(value);
    snprintf(l->names[l->n], sizeof(l->names[0]), "%s", path);
    l->pairs[l->n] = (tt_pair){l->names[l->n], json_number_value(value), text};
    l->n++;
}

// Hyper-parameters, of a job.yaml that is JSON, as programs in Python write it.
static tt_status tell_keys(tt_recorder *r)
{
    char path[TTI_PATH_MAX];
    TT_TRY(tti_file_join(r->ctx, path, r->folder, "job.yaml"));
    json_t *job = json_load_file(path, 0, NULL);
    key_list *l = job != NULL ? tti_calloc(r->ctx, 1, sizeof(*l)) : NULL;
    tt_status st = job != NULL && l == NULL ? TT_ENOMEM : TT_OK;
    if (l != NULL) {
        add_keys(l, "", job);
        tti_recorder_keys(r->events, l->pairs, l->n);
    }
    tti_free(r->ctx, l);
    json_decref(job);
    return st;
}

tt_recorder *tt_record_with(tt_ctx *ctx, const tt_record_opts *opts)
{
    tt_record_opts o;
    if (tti_is_stuck(ctx) || TTI_OPTS_COPY(ctx, "record", opts, &o) != TT_OK)
        return NULL;
    tt_recorder *r = tti_calloc(ctx, 1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->ctx = ctx;
    r->lock = -1;
    tti_own(ctx, &r->owned, r, recorder_free);
    tt_status st = make_folder(r, &o);
    if (st == TT_OK)
        st = lock_folder(r);
    if (st == TT_OK)
        st = write_job(r, &o);
    if (st == TT_OK)
        st = tti_recorder_open(ctx, r->folder, !o.no_tensorboard, &r->events);
    if (st == TT_OK && tti_env("TUTTI_REPEAT") == NULL) // what is repeated is told to nobody
        st = tti_recorder_track(r->events, r->folder,
                                &(tti_track_opts){.http = o.http,
                                                  .mlflow = o.mlflow,
                                                  .name = o.name != NULL ? o.name : "run"});
    if (st == TT_OK)
        st = tell_keys(r);
    if (st == TT_OK)
        st = open_chain(r);
    if (st != TT_OK) {
        recorder_free(r);
        return NULL;
    }
    return r;
}

const char *tt_recorder_folder(const tt_recorder *r)
{
    return r != NULL ? r->folder : "";
}

void tt_recorder_end(tt_recorder *r)
{
    if (r != NULL)
        recorder_free(r);
}

tt_status tt_record_origin_with(tt_recorder *r, const tt_record_origin_opts *opts)
{
    tt_record_origin_opts o;
    if (r == NULL || tti_is_stuck(r->ctx))
        return TT_EINVAL;
    TT_TRY(TTI_OPTS_COPY(r->ctx, "record: origin", opts, &o));
    bool has_commit = o.commit != NULL && o.commit[0] != '\0';
    return tti_run_origin_tell(r->ctx, &(tti_run_origin){.commit = o.commit,
                                                         .changed = !has_commit ? ""
                                                                    : o.changed ? "yes"
                                                                                : "no",
                                                         .train = o.train,
                                                         .validate = o.validate,
                                                         .test = o.test});
}

// ---- for TensorBoard -------------------------------------------------------------------------

// What is wrong with a call, if anything.
static tt_status check(tt_recorder *r, const char *what, const char *tag)
{
    if (r == NULL || tti_is_stuck(r->ctx))
        return TT_EINVAL;
    if (tag == NULL || tag[0] == '\0' || strlen(tag) > TTI_BOARD_TAG)
        return TT_FAIL(r->ctx, TT_EINVAL, "record: the tag of %s must have 1 to %d bytes", what,
                       TTI_BOARD_TAG);
    return TT_OK;
}

tt_status tt_record_histogram_with(tt_recorder *r, const char *tag,
                                   const tt_record_histogram_opts *opts)
{
    tt_record_histogram_opts o;
    TT_TRY(check(r, "a histogram", tag));
    TT_TRY(TTI_OPTS_COPY(r->ctx, "record: histogram", opts, &o));
    if (o.values == NULL || o.count < 1)
        return TT_FAIL(r->ctx, TT_EINVAL, "record: histogram '%s' has no values", tag);
    tti_recorder_histogram(r->events, tag, o.step, o.values, o.count);
    return TT_OK;
}

tt_status tt_record_image_with(tt_recorder *r, const char *tag, const tt_record_image_opts *opts)
{
    tt_record_image_opts o;
    TT_TRY(check(r, "an image", tag));
    TT_TRY(TTI_OPTS_COPY(r->ctx, "record: image", opts, &o));
    if (o.channels == 0)
        o.channels = 1;
    if (o.pixels == NULL)
        return TT_FAIL(r->ctx, TT_EINVAL, "record: image '%s' has no pixels", tag);
    if (o.height < 1 || o.width < 1 || o.height > TTI_PICTURE_SIDE || o.width > TTI_PICTURE_SIDE)
        return TT_FAIL(r->ctx, TT_EINVAL,
                       "record: image '%s' is %d x %d; 1 to %d pixels are allowed", tag, o.height,
                       o.width, TTI_PICTURE_SIDE);
    if (o.channels != 1 && o.channels != 3 && o.channels != 4)
        return TT_FAIL(r->ctx, TT_EINVAL,
                       "record: image '%s' has %d channels; 1, 3 or 4 are allowed", tag,
                       o.channels);
    tti_recorder_image(r->events, tag, o.step,
                       &(tti_picture){(uint8_t *)o.pixels, o.height, o.width, o.channels});
    return TT_OK;
}

tt_status tt_record_confusion_with(tt_recorder *r, const char *tag,
                                   const tt_record_confusion_opts *opts)
{
    tt_record_confusion_opts o;
    TT_TRY(check(r, "a confusion matrix", tag));
    TT_TRY(TTI_OPTS_COPY(r->ctx, "record: confusion", opts, &o));
    if (o.counts == NULL || o.classes < 1 || o.classes > TTI_CLASSES)
        return TT_FAIL(r->ctx, TT_EINVAL,
                       "record: confusion matrix '%s' has %d classes%s; 1 to %d are allowed", tag,
                       o.classes, o.counts == NULL ? " and no counts" : "", TTI_CLASSES);
    tti_picture p = tti_picture_confusion(r->ctx, o.counts, o.classes);
    if (p.pixels == NULL)
        return TT_ENOMEM;
    tti_recorder_image(r->events, tag, o.step, &p);
    tti_free(r->ctx, p.pixels);
    return TT_OK;
}
