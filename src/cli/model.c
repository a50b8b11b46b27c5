/*
 * model.c - opens trained models. A checkpoint of an older version has no card: the model is then
 * built as the job says, which opens the job's data.
 */
#include "cli/model.h"
#include "base/file.h"
#include "cli/ranks.h"
#include "data/csv.h"
#include "job/job.h"
#include "net/world.h"
#include "save/card.h"
#include "save/manifest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_log(void *user, const tt_event *ev)
{
    (void)user;
    if (strcmp(ev->kind, "log") == 0 && ev->level != TT_ERROR)
        cli_log_line(ev);
}

// A checkpoint's folder, or a file that is no job's.
static bool is_weights(const char *word)
{
    char manifest[TTI_PATH_MAX];
    if (cli_is_folder(word))
        return snprintf(manifest, sizeof(manifest), "%s/%s", word, TTI_MANIFEST) <
                   (int)sizeof(manifest) &&
               tti_file_exists(manifest);
    return tti_file_exists(word) && !cli_is_job_file(word);
}

bool cli_model_is_trained(const cli_args *args, const char *word)
{
    char run[TTI_RUN_PATH];
    if (is_weights(word))
        return true;
    tt_ctx *ctx = cli_is_job_file(word) ? NULL : tt_open(.devices = "cpu:0", .on_event = on_log);
    bool found = ctx != NULL && cli_run_find(ctx, args, word, CLI_CHECKPOINT, run) == TT_OK &&
                 cli_has_checkpoint(run);
    tt_clear_error(ctx); // what is wrong is told by who reads it
    (void)tt_close(ctx);
    return found;
}

// ---- the card --------------------------------------------------------------------------------

// The first process reads it; all get its text. *text NULL: there is none.
static tt_status share_card(tt_ctx *ctx, const json_t *card, char **text)
{
    int64_t sizes[TT_MAX_TASKS], size = 0;
    char *own = card != NULL ? json_dumps(card, 0) : NULL;
    *text = own;
    if (cli_ranks(ctx) == 1)
        return card != NULL && own == NULL ? TT_ENOMEM : TT_OK;
    size = own != NULL ? (int64_t)strlen(own) + 1 : 0;
    TT_TRY(tti_world_exchange(ctx->world, "the model", &size, sizeof(size), sizes, 0));
    if (sizes[0] <= 0 || sizes[0] > TTI_HEADER_MAX)
        return TT_OK;
    char *mine = tti_calloc(ctx, 1, (size_t)sizes[0]),
         *all = tti_calloc(ctx, (size_t)cli_ranks(ctx), (size_t)sizes[0]);
    tt_status st = mine == NULL || all == NULL ? TT_ENOMEM : TT_OK;
    if (st == TT_OK && own != NULL)
        memcpy(mine, own, (size_t)size);
    if (st == TT_OK)
        st = tti_world_exchange(ctx->world, "the model", mine, (size_t)sizes[0], all, 0);
    if (st == TT_OK && own == NULL) {
        all[sizes[0] - 1] = '\0';
        *text = strdup(all);
    }
    tti_free(ctx, mine);
    tti_free(ctx, all);
    return st;
}

// ---- building --------------------------------------------------------------------------------

static tt_status compile(cli_model *m)
{
    tt_compile_opts known;
    tt_loss losses[TT_MAX_LOSSES];
    bool trains = m->j.job != NULL && tt_job_get(m->j.job, "train.batch") != NULL;
    const tti_use *u = tti_use_get(m->model);
    if (u == NULL)
        return tt_status_of(m->j.ctx);
    int64_t batch = json_integer_value(json_object_get(u->train, "batch")),
            accumulate = json_integer_value(json_object_get(u->train, "accumulate"));
    if (!trains) {
        m->j.own_fit = (tt_fit_opts){.opts_size = sizeof(tt_fit_opts), .batch = batch};
        m->j.own_fit.accumulate = accumulate;
        m->j.parts.fit = &m->j.own_fit;
        return tt_model_compile(m->model);
    }
    TT_TRY(tti_use_compile_opts(m->model, &known, losses));
    return tti_job_compile(m->j.job, m->j.ctx, &known, &m->j.parts);
}

// As the job says, from its data: a checkpoint without a card.
static tt_status build_of_job(cli_model *m)
{
    cli_job *j = &m->j;
    tti_job_build_opts o = {.runs = j->runs, .no_init = true};
    if (j->job == NULL)
        return TT_FAIL(j->ctx, TT_EUNSUPPORTED,
                       "%s holds only weights, not a model; give the run or the job", m->weights);
    m->is_of_job = true;
    TT_TRY(tti_job_build(j->job, j->ctx, &o, &j->parts));
    m->model = j->parts.model;
    return j->parts.train != NULL ? tti_note_data(m->model, j->parts.train) : TT_OK;
}

static tt_status build(cli_model *m, const cli_args *args, bool compiled)
{
    cli_job *j = &m->j;
    char file[TTI_PATH_MAX], *text = NULL;
    json_t *card = NULL;
    tt_status st = TT_OK;
    if (!cli_is_first(j->ctx))
        snprintf(m->weights, sizeof(m->weights), "-"); // the first process finds and reads them
    else if (m->weights[0] == '\0')
        st = cli_job_weights(j, args, m->weights);
    if (st == TT_OK && cli_is_first(j->ctx))
        st = tti_card_read(j->ctx, m->weights, file, &card);
    if (st != TT_OK && cli_ranks(j->ctx) > 1)
        tti_world_fail_with(j->ctx, st);
    if (st == TT_OK)
        st = share_card(j->ctx, card, &text);
    json_decref(card);
    card = NULL;
    TT_TRY(st);
    if (text != NULL)
        st = tti_card_parse(j->ctx, m->weights, text, &card);
    if (st == TT_OK)
        st =
            card != NULL ? tti_model_of_card(j->ctx, m->weights, card, &m->model) : build_of_job(m);
    free(text);
    j->parts.model = m->model;
    if (st == TT_OK && card != NULL && compiled)
        st = compile(m);
    json_decref(card);
    return st == TT_OK ? tt_load(m->model, m->weights) : st;
}

// ---- opening ---------------------------------------------------------------------------------

// Slices of the batch, which sums of an evaluation follow.
static int lanes_of(cli_model *m, const cli_args *args)
{
    char file[TTI_PATH_MAX];
    json_t *card = NULL;
    if (args->lanes > 0)
        return (int)args->lanes;
    if (tti_card_read(m->j.reader, m->weights, file, &card) != TT_OK || card == NULL)
        return 0;
    int lanes = (int)json_integer_value(json_object_get(card, "lanes"));
    json_decref(card);
    return lanes;
}

// A context for a file, which says nothing of devices.
static int open_plain(cli_model *m, const cli_args *args)
{
    int lanes = lanes_of(m, args);
    if (tt_status_of(m->j.reader) != TT_OK)
        return CLI_FAILED;
    m->j.ctx = tt_open(.devices = args->devices != NULL ? args->devices : "cpu:0",
                       .strategy = args->strategy, .lanes = lanes, .threads = (int)args->threads,
                       .isa = args->isa, .level = cli_level(args), .on_event = on_log);
    if (m->j.ctx == NULL)
        return cli_error("out of memory");
    return tt_status_of(m->j.ctx) == TT_OK ? CLI_OK : cli_open_code(args, m->j.ctx);
}

// A run may have been trained on devices that are not here; any device predicts.
static int open_job(cli_model *m, const cli_args *args)
{
    int rc = cli_job_open(&m->j, args, NULL, NULL);
    if (rc == CLI_OK || m->j.ctx == NULL || args->devices != NULL || args->strategy != NULL ||
        tt_status_of(m->j.ctx) != TT_EDEVICE)
        return rc;
    char why[512];
    snprintf(why, sizeof(why), "%s", tt_last_error(m->j.ctx).message);
    tt_clear_error(m->j.ctx);
    (void)cli_close(m->j.ctx, NULL);
    m->j.ctx = NULL;
    TT_LOG(m->j.reader, TT_WARN, "%s; cpu:0 is used", why);
    m->j.ctx = tt_open(.devices = "cpu:0", .lanes = tt_job_open_opts(m->j.job)->lanes,
                       .threads = (int)args->threads, .isa = args->isa, .level = cli_level(args),
                       .on_event = on_log);
    return m->j.ctx != NULL && tt_status_of(m->j.ctx) == TT_OK ? CLI_OK : rc;
}

int cli_model_open(const cli_args *args, const char *word, bool compiled, cli_model *m)
{
    int rc = CLI_OK;
    memset(m, 0, sizeof(*m));
    if (is_weights(word)) {
        if (args->sets.n > 0)
            return cli_usage("--set: '%s' is not a job", word);
        m->j.reader =
            tt_open(.devices = "cpu:0", .threads = 1, .level = cli_level(args), .on_event = on_log);
        if (m->j.reader == NULL)
            return cli_error("out of memory");
        if (snprintf(m->weights, sizeof(m->weights), "%s", word) >= (int)sizeof(m->weights))
            return cli_usage("'%.60s...': the path is longer than %d bytes", word,
                             (int)sizeof(m->weights) - 1);
        snprintf(m->j.file, sizeof(m->j.file), "%s", word);
        rc = cli_alone(args);
        if (rc == CLI_OK)
            rc = open_plain(m, args);
    } else {
        rc = cli_job_read(args, word, CLI_CHECKPOINT, &m->j);
        if (rc == CLI_OK)
            rc = open_job(m, args);
        if (rc == CLI_OK && m->j.is_beside)
            return rc;
    }
    if (rc != CLI_OK)
        return rc;
    tt_status st = build(m, args, compiled);
    if (st != TT_OK) // data that cannot be opened is the job's mistake too
        return st == TT_EIO && m->model == NULL && m->is_of_job ? CLI_BAD_JOB : cli_code(st);
    return CLI_OK;
}

int cli_model_close(cli_model *m, int rc)
{
    return cli_job_close(&m->j, rc);
}

// ---- the job's own test data -----------------------------------------------------------------

static tt_status open_part(cli_model *m, const char *part, tt_data **out)
{
    const tti_use *u = tti_use_get(m->model);
    tti_text words = {.ctx = m->j.ctx};
    if (u == NULL)
        return tt_status_of(m->j.ctx);
    for (int i = 0; i < u->n_fields; i++)
        for (size_t k = 0; k < json_array_size(u->fields[i].words); k++) {
            const char *word = json_string_value(json_array_get(u->fields[i].words, k));
            tti_csv_list(&words, word != NULL ? word : "");
        }
    m->j.job->words = words.s;
    tt_status st = tti_job_open_part(m->j.job, m->j.ctx, part, m->model, out);
    m->j.job->words = NULL;
    tti_text_free(&words);
    return st;
}

tt_status cli_model_test_data(cli_model *m, const char **what, tt_data **out)
{
    const tt_job_parts *p = &m->j.parts;
    *out = p->test != NULL ? p->test : p->validate; // built of the job
    *what = p->test == NULL && p->validate != NULL ? "validation" : "test";
    if (*out != NULL || m->j.job == NULL)
        return TT_OK;
    TT_TRY(open_part(m, "test", out));
    if (*out != NULL)
        return TT_OK;
    *what = "validation";
    return open_part(m, "validate", out);
}
