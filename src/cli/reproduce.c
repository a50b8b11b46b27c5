/*
 * reproduce.c - tutti reproduce: trains a run again, here, on any devices, and compares the chains
 * of hashes. Where they differ, the steps around the difference are done twice with a hash of every
 * node: on the run's own devices, and on those that were asked for.
 */
#include "cli/child.h"
#include "cli/proof.h"
#include "cli/replay.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct repeat {
    cli_past past;
    char folder[TTI_RUN_PATH];
    cli_chain_diff diff;
    tti_text notes; // what else differs: versions, data
    char *node;     // what tutti diff says; NULL: not looked for
    const char *why;
} repeat;

// "runs/digits-001-repeat-001", or --run.
static tt_status choose_folder(repeat *r)
{
    tt_ctx *ctx = r->past.ctx;
    char root[TTI_PATH_MAX], name[256], repeated[300];
    if (r->past.args->run != NULL) {
        if (strlen(r->past.args->run) >= sizeof(r->folder))
            return TT_FAIL(ctx, TT_EINVAL, "--run '%.200s...': the path is too long",
                           r->past.args->run);
        snprintf(r->folder, sizeof(r->folder), "%s", r->past.args->run);
        if (cli_is_run(r->folder))
            return TT_FAIL(ctx, TT_EINVAL, "'%s' already holds a run; use another folder",
                           r->folder);
        return tti_folder_make(ctx, r->folder);
    }
    TT_TRY(tti_file_split(ctx, r->past.run, root, name));
    snprintf(repeated, sizeof(repeated), "%s-repeat", name);
    return tti_run_folder_new(ctx, root, repeated, r->folder);
}

// ---- what else differs -----------------------------------------------------------------------

// A value of JSON, without what a line cannot show.
static void note_value(repeat *r, const char *key, const json_t *a, const json_t *b)
{
    char *x = json_dumps(a, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    char *y = json_dumps(b, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    bool is_long = x == NULL || y == NULL || strlen(x) > 60 || strlen(y) > 60;
    if (is_long)
        tti_text_add(&r->notes, "  %s is not what it was\n", key);
    else
        tti_text_add(&r->notes, "  %s was %s, is %s\n", key, x, y);
    free(x); // jansson's
    free(y);
}

// The two starts, key by key; data by data set.
static tt_status note_differences(repeat *r)
{
    tti_links l;
    const char *key;
    json_t *value, *part;
    TT_TRY(tti_links_read(r->past.ctx, r->folder, NULL, &l));
    r->notes.ctx = r->past.ctx;
    const json_t *then = r->past.start->o, *now = l.n > 0 ? l.v[0].o : NULL;
    json_object_foreach((json_t *)then, key, value)
    {
        const json_t *other = json_object_get(now, key);
        bool is_data = strcmp(key, "data") == 0;
        if (other == NULL || json_equal(value, (json_t *)other) || strcmp(key, "start") == 0 ||
            strncmp(key, "log", 3) == 0 || strcmp(key, "link") == 0 || strcmp(key, "sign") == 0)
            continue;
        if (!is_data) {
            note_value(r, key, value, other);
            continue;
        }
        const char *name;
        json_object_foreach(value, name, part)
        {
            char shown[64];
            snprintf(shown, sizeof(shown), "data.%s", name);
            if (!json_equal(part, json_object_get(other, name)))
                note_value(r, shown, part, json_object_get(other, name));
        }
    }
    tti_links_free(&l);
    return TT_OK;
}

// ---- the node --------------------------------------------------------------------------------

static bool is_elsewhere(const cli_args *a)
{
    return a->devices != NULL || a->strategy != NULL || a->processes > 1 || a->threads > 0 ||
           a->isa != NULL || a->sets.n > 0;
}

// The steps between the last equal hash and the first that differs, on both sides.
static tt_status find_node(repeat *r)
{
    cli_past *p = &r->past;
    char sides[2][TTI_PATH_MAX], hashes[2][TTI_PATH_MAX];
    int64_t from = 0;
    cli_chain_diff d;
    if (!is_elsewhere(p->args)) {
        r->why = "it was repeated on the devices of the run: what differs is the machine, the "
                 "program or the data";
        return TT_OK;
    }
    TT_TRY(cli_checkpoint_before(p, TTI_MAX(r->diff.last_equal, 0), &from));
    for (int i = 0; i < 2; i++) {
        TT_TRY(tti_file_join(p->ctx, sides[i], r->folder, i == 0 ? "as-recorded" : "as-asked"));
        TT_TRY(tti_file_join(p->ctx, hashes[i], r->folder,
                             i == 0 ? "recorded.hashes" : "asked.hashes"));
        TT_TRY(cli_replay_run(p, &(cli_replay){.folder = sides[i],
                                               .from = from,
                                               .until = r->diff.first,
                                               .chain = "1",
                                               .hashes = hashes[i],
                                               .as_recorded = i == 0}));
    }
    TT_TRY(cli_chain_compare(p, sides[0], from, r->diff.first, &d));
    if (d.first >= 0)
        r->why = "repeated on the devices of the run it differs as well: what differs is the "
                 "machine, the program or the data";
    bool same = false;
    return tt_hashes_diff(p->ctx, hashes[0], hashes[1], &same, &r->node);
}

// ---- programs --------------------------------------------------------------------------------

// The program decides where it runs; only how many processes and which instructions can be asked.
static tt_status check_flags(const repeat *r)
{
    const cli_args *a = r->past.args;
    if (a->devices == NULL && a->strategy == NULL && a->threads == 0 && a->sets.n == 0)
        return TT_OK;
    return TT_FAIL(r->past.ctx, TT_EINVAL,
                   "'%s' is the run of a program, which chooses its devices and options itself: of "
                   "the flags only --isa and -n can be given",
                   r->past.run);
}

// Runs the program as it was run, in the same folder; its recorder writes to ours.
static tt_status repeat_program(repeat *r)
{
    tt_ctx *ctx = r->past.ctx;
    const json_t *command = json_object_get(r->past.start->o, "command");
    const char *where = json_string_value(json_object_get(r->past.start->o, "folder"));
    size_t n = json_array_size(command);
    char self[TTI_PATH_MAX], log[TTI_PATH_MAX], path[TTI_PATH_MAX], text[4][TTI_PATH_MAX + 32];
    char *folder = realpath(r->folder, NULL), *run = realpath(r->past.run, NULL);
    const char **words = tti_calloc(ctx, n + 12, sizeof(*words));
    tt_status st = words == NULL || folder == NULL || run == NULL ? TT_ENOMEM : TT_OK;
    int k = 0;
    if (st == TT_OK)
        st = tti_file_join(ctx, log, folder, "program.log");
    if (st == TT_OK) {
        words[k++] = "env";
        snprintf(text[0], sizeof(text[0]), "TUTTI_REPEAT=%s", folder);
        snprintf(text[1], sizeof(text[1]), "TUTTI_REPEAT_RUN=%s", run);
        words[k++] = text[0];
        words[k++] = text[1];
        snprintf(text[2], sizeof(text[2]), "TUTTI_ISA=%s",
                 r->past.args->isa != NULL ? r->past.args->isa : "");
        if (r->past.args->isa != NULL)
            words[k++] = text[2];
        snprintf(text[3], sizeof(text[3]), "%lld", (long long)r->past.args->processes);
        if (r->past.args->processes > 1) {
            words[k++] = cli_self(self);
            words[k++] = "run";
            words[k++] = "-n";
            words[k++] = text[3];
        }
        for (size_t i = 0; i < n; i++)
            words[k++] = json_string_value(json_array_get(command, i));
        int rc = cli_child_run(&(cli_child){.words = words, .folder = where, .log = log});
        st = tti_file_join(ctx, path, folder, TTI_CHAIN);
        if (st == TT_OK && (rc != 0 || !tti_file_is_regular(path)))
            st = TT_FAIL(ctx, TT_EINVAL,
                         "the program did not repeat the run: it ended with exit code %d%s; its "
                         "output is in %s",
                         rc, rc == 0 ? " and recorded no run with this job.yaml" : "", log);
    }
    tti_free(ctx, (void *)words);
    free(folder); // realpath()'s
    free(run);
    return st;
}

static tt_status reproduce_program(repeat *r)
{
    const cli_past *p = &r->past;
    const json_t *command = json_object_get(p->start->o, "command");
    TT_TRY(check_flags(r));
    if (tti_env("TUTTI_REPEAT") != NULL)
        return TT_FAIL(p->ctx, TT_EINVAL,
                       "'%s' is not repeated by a program that is being repeated itself "
                       "(TUTTI_REPEAT is set)",
                       p->run);
    if (json_array_size(command) == 0)
        return TT_FAIL(p->ctx, TT_EINVAL,
                       "'%s' is the run of a program, and its chain does not name the command: "
                       "only the program can repeat it",
                       p->run);
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *word = json_string_value(json_array_get(command, i));
        if (word == NULL || strstr(word, "ipykernel") != NULL)
            return TT_FAIL(p->ctx, TT_EINVAL,
                           "'%s' is the run of a notebook: run its cells again, and compare with "
                           "tutti runs compare",
                           p->run);
    }
    TT_TRY(choose_folder(r));
    TT_TRY(repeat_program(r));
    TT_TRY(cli_chain_compare(p, r->folder, 0, cli_past_last(p), &r->diff));
    if (r->diff.first < 0 && r->diff.last_equal < cli_past_last(p))
        return TT_FAIL(
            p->ctx, TT_EINVAL,
            "the program did not repeat the whole run: '%s' has no hash after step %lld, "
            "'%s' one of step %lld",
            r->folder, (long long)r->diff.last_equal, p->run, (long long)cli_past_last(p));
    if (r->diff.first >= 0)
        r->why = "what differs is the program, its data or the machine";
    return note_differences(r);
}

// ---- telling ---------------------------------------------------------------------------------

static void tell_text(repeat *r)
{
    const cli_chain_diff *d = &r->diff;
    const cli_past *p = &r->past;
    char *notes = tti_text_take(&r->notes);
    cli_printf("run       %s\nrepeated  %s\n", p->run, r->folder);
    if (d->first < 0) {
        cli_printf("equal     all %lld hashes up to step %lld; weights %s\n", (long long)d->n,
                   (long long)d->last_equal, cli_past_weights(p, d->last_equal));
    } else {
        cli_printf("differs   first at step %lld: recorded %s, repeated %s\n", (long long)d->first,
                   d->recorded, d->repeated);
        if (d->last_equal > 0)
            cli_printf("          the last equal hash is of step %lld\n", (long long)d->last_equal);
    }
    if (r->node != NULL)
        cli_print(r->node);
    if (r->why != NULL)
        cli_printf("%s\n", r->why);
    if (notes != NULL && notes[0] != '\0')
        cli_printf("what else differs:\n%s", notes);
    tti_free(p->ctx, notes);
}

static void tell_json(repeat *r)
{
    const cli_chain_diff *d = &r->diff;
    char *notes = tti_text_take(&r->notes);
    tti_text t = {.ctx = r->past.ctx};
    tti_text_add(&t, "{\"equal\": %s, \"run\": ", d->first < 0 ? "true" : "false");
    tti_text_json(&t, r->past.run);
    tti_text_add(&t, ", \"repeated\": ");
    tti_text_json(&t, r->folder);
    tti_text_add(&t, ", \"compared\": %lld, \"last_equal\": %lld, \"first_difference\": ",
                 (long long)d->n, (long long)d->last_equal);
    if (d->first >= 0)
        tti_text_add(&t, "%lld", (long long)d->first);
    else
        tti_text_add(&t, "null");
    tti_text_add(&t, ", \"node\": ");
    tti_text_json(&t, r->node != NULL ? r->node : "");
    tti_text_add(&t, ", \"notes\": ");
    tti_text_json(&t, notes != NULL ? notes : "");
    tti_text_add(&t, "}\n");
    cli_print_text(&t);
    tti_free(r->past.ctx, notes);
}

static tt_status reproduce(repeat *r, tt_ctx *ctx, const cli_args *args)
{
    cli_past *p = &r->past;
    char chain[TTI_PATH_MAX + 8];
    TT_TRY(cli_past_open(p, ctx, args, NULL));
    if (p->links.broken > 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "'%s/" TTI_CHAIN "' is broken at line %d; tutti audit says what is wrong",
                       p->run, p->links.broken);
    int64_t last = cli_past_last(p);
    if (last == 0)
        return TT_FAIL(ctx, TT_EINVAL, "'%s' has no steps to repeat", p->run);
    if (p->is_program) {
        TT_TRY(reproduce_program(r));
    } else {
        TT_TRY(choose_folder(r));
        snprintf(chain, sizeof(chain), "as:%s", p->run);
        TT_TRY(
            cli_replay_run(p, &(cli_replay){.folder = r->folder, .until = last, .chain = chain}));
        TT_TRY(cli_chain_compare(p, r->folder, 0, last, &r->diff));
        TT_TRY(note_differences(r));
        if (r->diff.first >= 0)
            TT_TRY(find_node(r));
    }
    if (args->json)
        tell_json(r);
    else if (!args->quiet)
        tell_text(r);
    return TT_OK;
}

static int run(const cli_args *args)
{
    repeat r = {.why = NULL};
    cli_args plain = {.level = args->level};
    tt_ctx *ctx = cli_open(&plain, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tt_status st = reproduce(&r, ctx, args);
    tt_string_free(ctx, r.node);
    tti_text_free(&r.notes);
    cli_past_close(&r.past);
    int rc = cli_close(ctx, NULL);
    return st != TT_OK || rc != CLI_OK ? CLI_FAILED : r.diff.first >= 0 ? CLI_FAILED : CLI_OK;
}

const cli_verb cli_reproduce = {
    .name = "reproduce",
    .words = "RUN",
    .summary = "repeat a run and prove that the result is the same, bit for bit",
    .help =
        "Trains the job of RUN again in a folder of its own, RUN-repeat-NNN (--run: another), and\n"
        "compares the weights with the chain of hashes that RUN wrote, chain.jsonl. It may run on\n"
        "other devices, with other threads or in several processes:\n"
        "\n"
        "  tutti reproduce digits-001\n"
        "  tutti reproduce digits-001 --devices cpu:0*2\n"
        "  tutti reproduce digits-001 -n 2\n"
        "\n"
        "The run of a program (tt_record(), fit(run=...) in Python) is repeated by running the\n"
        "program again, as it was started; only --isa and -n can be given then.\n"
        "\n"
        "If a hash differs, prints the first step and, by tutti diff, the first node, and what\n"
        "else is not as it was: version, arithmetic, data. The exit code is 0 if all hashes are\n"
        "equal, and 1 if one differs or an error occurred.\n",
    .flags = "devices strategy threads isa set processes run runs json quiet",
    .min_words = 1,
    .max_words = 1,
    .alone = true,
    .run = run,
};
