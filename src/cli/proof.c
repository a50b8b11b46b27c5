/*
 * proof.c - begins the chain of a run: which steps it hashes, what it is bound to, what signs it.
 */
#include "cli/proof.h"
#include "cli/ranks.h"
#include "cli/run_facts.h"
#include "cluster/cluster.h"
#include "data/data.h"
#include "device/device.h"
#include "job/job.h"
#include "save/share.h"
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_FILES 1000 // of a data set that are named one by one

tt_status cli_key_read(tt_ctx *ctx, const cli_args *args, uint8_t out[TTI_CHAIN_KEY], bool *has)
{
    char *text = NULL;
    size_t n = 0;
    struct stat st;
    *has = args->key != NULL;
    if (!*has)
        return TT_OK;
    TT_TRY(tti_file_read(ctx, args->key, 4096, &text, &n));
    bool is_open = stat(args->key, &st) == 0 && (st.st_mode & 077) != 0;
    bool is_key = tti_secret_parse(text, n, out);
    explicit_bzero(text, n);
    tti_free(ctx, text);
    if (is_open)
        return TT_FAIL(ctx, TT_EINVAL,
                       "--key %s can be read by others (mode %04o); make it private with chmod 600",
                       args->key, (unsigned)st.st_mode & 07777);
    if (!is_key)
        return TT_FAIL(ctx, TT_EINVAL, "--key %s does not hold a key; make one with tutti key new",
                       args->key);
    return TT_OK;
}

const char *const cli_bit_keys[CLI_N_BIT_KEYS] = {"distribute.lanes", "distribute.reduce",
                                                  "distribute.wire"};

// ---- what it is bound to ---------------------------------------------------------------------

static void add_file(tti_text *t, int *n, const char *path, int64_t bytes, uint64_t hash)
{
    tti_text_add(t, "%s{\"path\": ", (*n)++ > 0 ? ", " : "");
    tti_text_json(t, path);
    tti_text_add(t, ", \"bytes\": %lld, \"hash\": \"%016llx\"}", (long long)bytes,
                 (unsigned long long)hash);
}

// Files of a list or glob, "a.txt, b/*.txt", as sources read it.
static void add_list(tti_text *t, int *n, const char *list)
{
    for (const char *s = list; *s != '\0';) {
        char item[TTI_PATH_MAX];
        size_t length = strcspn(s, ",");
        int skip = (int)strspn(s, " \t");
        snprintf(item, sizeof(item), "%.*s", TTI_MAX((int)length - skip, 0), s + skip);
        for (size_t k = strlen(item); k > 0 && (item[k - 1] == ' ' || item[k - 1] == '\t'); k--)
            item[k - 1] = '\0';
        s += length + (s[length] == ',');
        glob_t found = {0};
        if (item[0] != '\0' && glob(item, 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc && *n < MOST_FILES; i++) {
                struct stat st;
                bool is_there = stat(found.gl_pathv[i], &st) == 0;
                add_file(t, n, found.gl_pathv[i], is_there ? (int64_t)st.st_size : -1,
                         tti_file_print(found.gl_pathv[i]));
            }
        globfree(&found);
    }
}

// The value of the key file of a source: of {text: {file: ...}}.
static const char *file_of(const cli_job *j, const char *name)
{
    const tti_item *source = tti_item_get(tti_item_get(j->job->root, "data"), name);
    const tti_item *options = source != NULL ? source->first : NULL;
    const tti_item *file = options != NULL ? tti_item_get(options, "file") : NULL;
    return file != NULL && file->kind == TTI_SCALAR ? file->text : "";
}

static tt_status add_data(const cli_job *j, tti_text *t, const char *name, tt_data *d)
{
    tti_data_print p;
    int n = 0;
    if (d == NULL)
        return TT_OK;
    TT_TRY(tti_data_print_make(d, &p));
    tti_text_add(t,
                 "%s\"%s\": {\"records\": %lld, \"fields\": \"%016llx\", \"values\": "
                 "\"%016llx\", \"files\": [",
                 strcmp(name, "train") == 0 ? "" : ", ", name, (long long)p.count,
                 (unsigned long long)p.fields, (unsigned long long)p.records);
    for (int i = 0; i < p.n_files; i++)
        add_file(t, &n, p.file[i].path, p.file[i].bytes, p.file[i].hash);
    if (p.n_files == 0)
        add_list(t, &n, file_of(j, name));
    tti_text_add(t, "]}");
    return TT_OK;
}

// The file that the first weights are read from.
static void add_init(tti_text *t, cli_job *j)
{
    const char *file = tt_job_get(j->job, "init.file");
    if (file == NULL || file[0] == '\0')
        return;
    tti_text_add(t, ", \"init\": {\"path\": ");
    tti_text_json(t, file);
    tti_text_add(t, ", \"hash\": \"%016llx\"}", (unsigned long long)tti_file_print(file));
}

char *cli_about(cli_job *j)
{
    tti_text t = {.ctx = j->ctx};
    char bits[TTI_BITS_TEXT];
    tti_bits_of(j->ctx, bits);
    tti_text_add(&t, "\"version\": \"" TT_VERSION "\", \"arithmetic\": %d, \"gpu\": ",
                 tti_arithmetic_of(j->ctx));
    tti_text_json(&t, bits);
    for (int i = 0; i < TTI_COUNT(cli_bit_keys); i++) {
        const char *v = tt_job_get(j->job, cli_bit_keys[i]);
        tti_text_add(&t, ", \"%s\": ", cli_bit_keys[i]);
        tti_text_json(&t, v != NULL ? v : "");
    }
    tti_text_add(&t, ", \"job\": ");
    tti_text_json(&t, j->job->core);
    tti_text_add(&t, ", \"data\": {");
    tt_status st = add_data(j, &t, "train", j->parts.train);
    if (st == TT_OK)
        st = add_data(j, &t, "validate", j->parts.validate);
    if (st == TT_OK)
        st = add_data(j, &t, "test", j->parts.test);
    tti_text_add(&t, "}");
    add_init(&t, j);
    if (st == TT_OK)
        return tti_text_take(&t);
    tti_text_free(&t);
    return NULL;
}

// ---- which steps -----------------------------------------------------------------------------

static tt_status choose_steps(cli_proof *p, tt_ctx *ctx, const char *word, bool *is_off)
{
    char *end = NULL;
    *is_off = word != NULL && strcmp(word, "off") == 0;
    ctx->hashing = (tti_hashing){0};
    if (word == NULL || strcmp(word, "auto") == 0 || *is_off)
        return TT_OK;
    if (strncmp(word, "as:", 3) == 0)
        return tti_links_steps(ctx, word + 3, &p->steps);
    errno = 0;
    long long n = strtoll(word, &end, 10);
    if (end == word || *end != '\0' || n < 1 || errno != 0)
        return TT_FAIL(ctx, TT_EINVAL, "--chain '%s' is not a number of steps, auto, off or as:RUN",
                       word);
    ctx->hashing.every = n;
    return TT_OK;
}

static tt_status open_chain(cli_job *j, const cli_args *args, tti_recorder *recorder,
                            const char *folder)
{
    uint8_t key[TTI_CHAIN_KEY];
    bool has_key = false;
    tt_status st = cli_key_read(j->ctx, args, key, &has_key);
    char *about = st == TT_OK ? cli_about(j) : NULL;
    if (st == TT_OK && about == NULL)
        st = tt_status_of(j->ctx) != TT_OK ? tt_status_of(j->ctx) : TT_ENOMEM;
    if (st == TT_OK)
        st = tti_recorder_chain(recorder, folder,
                                &(tti_chain_opts){.about = about, .key = has_key ? key : NULL});
    explicit_bzero(key, sizeof(key));
    tti_free(j->ctx, about);
    return st;
}

// Keys of the job that people compare runs by.
static tt_status tell_keys(tt_ctx *ctx, tti_recorder *recorder, const char *folder)
{
    static const char *const heads[] = {"train.", "model.", "seed", "data.train."};
    cli_facts f;
    tt_pair pairs[512];
    int n = 0;
    TT_TRY(cli_facts_read(ctx, folder, &f));
    for (int64_t i = 0; i < f.n && n < TTI_COUNT(pairs); i++)
        for (int k = 0; k < TTI_COUNT(heads) && f.v[i].kind == CLI_FACT_JOB; k++)
            if (strncmp(f.v[i].key, heads[k], strlen(heads[k])) == 0 && n < TTI_COUNT(pairs))
                pairs[n++] = (tt_pair){f.v[i].key, f.v[i].number,
                                       isnan(f.v[i].number) ? f.v[i].value : NULL};
    tti_recorder_keys(recorder, pairs, n);
    cli_facts_free(&f);
    return TT_OK;
}

static tt_status track(cli_job *j, tti_recorder *recorder, const char *folder)
{
    return tti_recorder_track(recorder, folder,
                              &(tti_track_opts){.http = tt_job_get(j->job, "output.http"),
                                                .mlflow = tt_job_get(j->job, "output.mlflow"),
                                                .name = tt_job_name(j->job)});
}

tt_status cli_proof_begin(cli_proof *p, cli_job *j, const cli_args *args, tti_recorder *recorder,
                          const char *folder)
{
    bool is_off = false;
    tt_status st = choose_steps(p, j->ctx, args->chain, &is_off);
    if (st == TT_OK && recorder != NULL)
        st = track(j, recorder, folder);
    if (st == TT_OK && recorder != NULL)
        st = cli_record_tell(j);
    if (st == TT_OK && recorder != NULL)
        st = tell_keys(j->ctx, recorder, folder);
    if (st == TT_OK && recorder != NULL && !is_off)
        st = open_chain(j, args, recorder, folder);
    return tti_ranks_wait(j->ctx, st, "the record of the run"); // what the first cannot, none does
}

void cli_proof_end(cli_proof *p, tt_ctx *ctx)
{
    ctx->hashing = (tti_hashing){0};
    tti_free(ctx, p->steps);
    p->steps = NULL;
}
