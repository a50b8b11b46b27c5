/*
 * compare_runs.c - tutti runs show: all that is known of a run; tutti runs compare: what differs
 * between two. Equal hashes of weights are a proof that one run repeated the other.
 */
#include "cli/compare_runs.h"
#include "cli/report.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    cli_fact_kind kind;
    const char *name, *title;
} groups[] = {{CLI_FACT_RUN, "run", "run"},
              {CLI_FACT_NOTE, "notes", "tags and note"},
              {CLI_FACT_METRIC, "metrics", "metrics, last values"},
              {CLI_FACT_PLACE, "place", "where it ran"},
              {CLI_FACT_JOB, "job", "job"}};

static const char *name_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash != NULL ? slash + 1 : folder;
}

// ---- show ------------------------------------------------------------------------------------

static void show_text(tti_text *t, const cli_facts *f)
{
    for (int g = 0; g < TTI_COUNT(groups); g++) {
        int width = 0;
        for (int64_t i = 0; i < f->n; i++)
            if (f->v[i].kind == groups[g].kind)
                width = TTI_MAX(width, (int)strlen(f->v[i].key));
        if (width > 0)
            tti_text_add(t, "%s\n", groups[g].title);
        for (int64_t i = 0; i < f->n; i++)
            if (f->v[i].kind == groups[g].kind && strcmp(f->v[i].key, "time") != 0)
                tti_text_add(t, "  %-*s  %s\n", width, f->v[i].key, f->v[i].value);
    }
    if (f->info.why[0] != '\0')
        tti_text_add(t, "why  %s\n", f->info.why);
}

// An object per group; tags are a list.
static void show_json(tti_text *t, const cli_facts *f)
{
    tti_text_add(t, "{");
    for (int g = 0; g < TTI_COUNT(groups); g++) {
        const char *comma = "";
        tti_text_add(t, "%s\"%s\": {", g > 0 ? ",\n " : "", groups[g].name);
        for (int64_t i = 0; i < f->n; i++) {
            if (f->v[i].kind != groups[g].kind || strcmp(f->v[i].key, "tag") == 0)
                continue;
            tti_text_add(t, "%s", comma);
            tti_text_json(t, f->v[i].key);
            tti_text_add(t, ": ");
            if (isnan(f->v[i].number) || strcmp(f->v[i].key, "hash") == 0)
                tti_text_json(t, f->v[i].value);
            else
                cli_json_number(t, f->v[i].number);
            comma = ", ";
        }
        tti_text_add(t, "}");
    }
    tti_text_add(t, ",\n \"tags\": [");
    const char *comma = "";
    for (int64_t i = 0; i < f->n; i++)
        if (strcmp(f->v[i].key, "tag") == 0) {
            tti_text_add(t, "%s", comma);
            tti_text_json(t, f->v[i].value);
            comma = ", ";
        }
    tti_text_add(t, "]}\n");
}

tt_status cli_runs_show(tt_ctx *ctx, const cli_args *args, const char *folder)
{
    cli_facts f;
    tti_text t = {.ctx = ctx};
    TT_TRY(cli_facts_read(ctx, folder, &f));
    if (args->json)
        show_json(&t, &f);
    else
        show_text(&t, &f);
    cli_facts_free(&f);
    return cli_print_text(&t) ? TT_OK : TT_ENOMEM;
}

// ---- compare ---------------------------------------------------------------------------------

typedef struct pair {
    tt_ctx *ctx;
    const cli_args *args;
    const char *folder[2];
    cli_facts f[2];
    tti_text t;
} pair;

static const char *value_in(const cli_facts *f, const cli_fact *like)
{
    const cli_fact *x = cli_fact_find(f, like->key);
    return x != NULL && x->kind == like->kind ? x->value : "-";
}

// Calls fn for each fact of a kind whose values differ, those of the first run first.
static void each_difference(pair *p, cli_fact_kind kind,
                            void (*fn)(pair *p, const char *key, const char *a, const char *b))
{
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < p->f[side].n; i++) {
            const cli_fact *x = &p->f[side].v[i];
            const char *other = value_in(&p->f[1 - side], x);
            bool is_new = side == 0 || strcmp(other, "-") == 0;
            if (x->kind == kind && is_new && strcmp(other, x->value) != 0)
                fn(p, x->key, side == 0 ? x->value : "-", side == 0 ? other : x->value);
        }
}

static void add_line(pair *p, const char *key, const char *a, const char *b)
{
    tti_text_add(&p->t, "  %-32s  %-20s  %s\n", key, a, b);
}

static void add_object(pair *p, const char *key, const char *a, const char *b)
{
    tti_text_add(&p->t, "%s{\"key\": ", p->t.n > 0 && p->t.s[p->t.n - 1] == '}' ? ",\n  " : "");
    tti_text_json(&p->t, key);
    tti_text_add(&p->t, ", \"a\": ");
    tti_text_json(&p->t, a);
    tti_text_add(&p->t, ", \"b\": ");
    tti_text_json(&p->t, b);
    tti_text_add(&p->t, "}");
}

// The first epoch in which a curve differs, from 1; 0: it is equal as far as both go.
static tt_status first_difference(pair *p, const char *name, int64_t *at, int64_t n[2], double v[2])
{
    double *curve[2] = {NULL, NULL};
    tt_status st = TT_OK;
    for (int i = 0; i < 2 && st == TT_OK; i++)
        st = cli_curve_read(p->ctx, p->folder[i], name, &curve[i], &n[i]);
    *at = 0;
    for (int64_t i = 0; st == TT_OK && i < TTI_MIN(n[0], n[1]) && *at == 0; i++)
        if (curve[0][i] != curve[1][i]) {
            *at = i + 1;
            v[0] = curve[0][i];
            v[1] = curve[1][i];
        }
    tti_free(p->ctx, curve[0]);
    tti_free(p->ctx, curve[1]);
    return st;
}

static tt_status compare_text(pair *p)
{
    static const cli_fact_kind kinds[] = {CLI_FACT_JOB, CLI_FACT_PLACE, CLI_FACT_METRIC,
                                          CLI_FACT_NOTE};
    static const char *const titles[] = {"job", "where it ran", "metrics, last values",
                                         "tags and note"};
    int64_t at, n[2];
    double v[2];
    add_line(p, "", name_of(p->folder[0]), name_of(p->folder[1]));
    for (int i = 0; i < TTI_COUNT(kinds); i++) {
        tti_text_add(&p->t, "%s\n", titles[i]);
        int64_t before = p->t.n;
        each_difference(p, kinds[i], add_line);
        if (p->t.n == before)
            tti_text_add(&p->t, "  the same\n");
    }
    TT_TRY(first_difference(p, "loss", &at, n, v));
    if (at > 0)
        tti_text_add(&p->t, "loss     differs from epoch %lld on: %.9g and %.9g\n", (long long)at,
                     v[0], v[1]);
    else
        tti_text_add(&p->t, "loss     equal in all %lld epochs that both have\n",
                     (long long)TTI_MIN(n[0], n[1]));
    const char *a = p->f[0].info.hash, *b = p->f[1].info.hash;
    if (a[0] == '\0' || b[0] == '\0')
        tti_text_add(&p->t, "weights  not known: a run that has not ended has no hash\n");
    else if (strcmp(a, b) == 0)
        tti_text_add(&p->t, "weights  equal, bit for bit: %s\n", a);
    else
        tti_text_add(&p->t, "weights  differ: %s and %s\n", a, b);
    return TT_OK;
}

static tt_status compare_json(pair *p)
{
    int64_t at, n[2];
    double v[2] = {NAN, NAN};
    static const cli_fact_kind kinds[] = {CLI_FACT_JOB, CLI_FACT_PLACE, CLI_FACT_METRIC,
                                          CLI_FACT_NOTE};
    static const char *const names[] = {"job", "place", "metrics", "notes"};
    tti_text_add(&p->t, "{\"a\": ");
    tti_text_json(&p->t, p->folder[0]);
    tti_text_add(&p->t, ", \"b\": ");
    tti_text_json(&p->t, p->folder[1]);
    for (int i = 0; i < TTI_COUNT(kinds); i++) {
        tti_text_add(&p->t, ",\n \"%s\": [", names[i]);
        each_difference(p, kinds[i], add_object);
        tti_text_add(&p->t, "]");
    }
    TT_TRY(first_difference(p, "loss", &at, n, v));
    const char *a = p->f[0].info.hash, *b = p->f[1].info.hash;
    bool is_known = a[0] != '\0' && b[0] != '\0';
    tti_text_add(&p->t, ",\n \"first_epoch_that_differs\": ");
    tti_text_add(&p->t, at > 0 ? "%lld" : "null", (long long)at);
    tti_text_add(&p->t, ", \"weights_equal\": %s}\n",
                 !is_known           ? "null"
                 : strcmp(a, b) == 0 ? "true"
                                     : "false");
    return TT_OK;
}

tt_status cli_runs_compare(tt_ctx *ctx, const cli_args *args, const char *a, const char *b)
{
    pair p = {.ctx = ctx, .args = args, .folder = {a, b}, .t = {.ctx = ctx}};
    tt_status st = cli_facts_read(ctx, a, &p.f[0]);
    if (st == TT_OK)
        st = cli_facts_read(ctx, b, &p.f[1]);
    if (st == TT_OK)
        st = args->json ? compare_json(&p) : compare_text(&p);
    cli_facts_free(&p.f[0]);
    if (p.f[1].ctx != NULL)
        cli_facts_free(&p.f[1]);
    if (st != TT_OK) {
        tti_text_free(&p.t);
        return st;
    }
    return cli_print_text(&p.t) ? TT_OK : TT_ENOMEM;
}
