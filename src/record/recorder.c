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
    char folder[TTI_RUN_PATH];
};

static void recorder_free(void *owner)
{
    tt_recorder *r = owner;
    tti_disown(r->ctx, &r->owned);
    tti_recorder_close(r->events);
    if (r->lock >= 0)
        close(r->lock);
    tti_free(r->ctx, r);
}

static tt_status make_folder(tt_recorder *r, const tt_record_opts *o)
{
    const char *name = o->name != NULL ? o->name : "run",
               *root = o->root != NULL ? o->root : "runs";
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
    tti_text t = {.ctx = r->ctx};
    TT_TRY(tti_file_join(r->ctx, path, r->folder, "job.yaml"));
    if (o->job == NULL && tti_file_exists(path))
        return TT_OK;
    if (o->job != NULL) {
        tti_text_add(&t, "%s", o->job);
    } else {
        tti_text_add(&t, "name: ");
        tti_text_json(&t, o->name != NULL ? o->name : "run");
        tti_text_add(&t, "\n");
    }
    char *text = tti_text_take(&t);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = tti_file_replace(r->ctx, path, text, strlen(text));
    tti_free(r->ctx, text);
    return st;
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
    char *about = tti_text_take(&t);
    if (about == NULL)
        return TT_ENOMEM;
    tt_status st = tti_recorder_chain(r->events, r->folder, &(tti_chain_opts){.about = about});
    tti_free(r->ctx, about);
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
