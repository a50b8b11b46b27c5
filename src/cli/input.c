/*
 * input.c - a file of --input becomes the job's test data by a setting, so that the job's
 * transforms are applied.
 *
 * Where the job reads CSV files, the columns that the model was trained on are looked up in the
 * file by their names, wherever they stand; the target may be among them or not.
 */
#include "cli/input.h"
#include "data/csv.h"
#include <stdio.h>
#include <string.h>

// ---- the job's own columns -------------------------------------------------------------------

static const char *option(const cli_job *j, const char *part, const char *name)
{
    char key[64];
    snprintf(key, sizeof(key), "data.%s.csv.%s", part, name);
    const char *text = tt_job_get(j->job, key);
    return text != NULL ? text : "";
}

// Which of the job's data says what columns there are: what the model was trained on, if possible.
static const char *csv_part(const cli_job *j)
{
    static const char *const parts[] = {"train", "test", "validate"};
    for (int i = 0; i < TTI_COUNT(parts); i++)
        if (*option(j, parts[i], "file") != '\0')
            return parts[i];
    return NULL;
}

static bool has_dir(const cli_job *j)
{
    const char *dir = tt_job_get(j->job, "data.dir");
    return dir != NULL && *dir != '\0';
}

static tt_status job_columns(cli_job *j, const char *part, tti_columns *out)
{
    const char *file = option(j, part, "file");
    bool below = has_dir(j) && file[0] != '/' && file[0] != '.';
    tti_text path = {.ctx = j->reader};
    tti_text_add(&path, "%s%s%s", below ? tt_job_get(j->job, "data.dir") : "", below ? "/" : "",
                 file);
    tt_csv_opts o = {.file = path.s,
                     .y = option(j, part, "y"),
                     .x = option(j, part, "x"),
                     .comma = option(j, part, "comma"),
                     .no_header = strcmp(option(j, part, "no_header"), "true") == 0};
    tt_status st = path.s == NULL ? TT_ENOMEM : tti_csv_columns(j->reader, &o, out);
    tti_text_free(&path);
    return st;
}

// ---- the same in the file --------------------------------------------------------------------

static void add_quoted(tti_text *t, const char *s)
{
    for (; *s != '\0'; s++) // a quote in YAML's quotes is two
        tti_text_add(t, "%s%c", *s == '\'' ? "'" : "", *s);
}

/*
 * Without a first line of names columns are told by their places: the file has all of the job's, or
 * all but the targets.
 */
static tt_status check_places(tt_ctx *ctx, const char *file, const tti_columns *job, int64_t n)
{
    if (n == job->n || n == job->n - job->n_y)
        return TT_OK;
    return TT_FAIL(ctx, TT_EINVAL,
                   "%s: has %lld columns; the job's data has %lld, %lld of them targets", file,
                   (long long)n, (long long)job->n, (long long)job->n_y);
}

static tt_status add_name(tt_ctx *ctx, const tti_columns *job, int64_t column, bool no_header,
                          bool no_targets, tti_text *t)
{
    const char *name = job->names[column];
    char made[32];
    if (no_header) {
        int64_t before = 0;
        for (int64_t i = 0; i < column && no_targets; i++)
            before += job->y[i] >= 0;
        snprintf(made, sizeof(made), "c%lld", (long long)(column - before));
        name = made;
    }
    if (*name == '\0' || strpbrk(name, ",\n") != NULL)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "--input: column %lld of the job's data is called '%s': a name that is "
                       "empty or has a comma cannot be looked up in another file",
                       (long long)column, name);
    if (t->s[t->n - 1] != '\'')
        tti_text_add(t, ", ");
    add_quoted(t, name);
    return TT_OK;
}

// x: '...', the model's inputs in the order it knows.
static tt_status add_names(tt_ctx *ctx, const tti_columns *job, int64_t n, bool no_header,
                           tti_text *t)
{
    int64_t *order = tti_calloc(ctx, (size_t)job->n_x, sizeof(*order));
    tt_status st = order == NULL ? TT_ENOMEM : TT_OK;
    if (st != TT_OK)
        return st;
    for (int64_t i = 0; i < job->n; i++)
        if (job->x[i] >= 0)
            order[job->x[i]] = i;
    tti_text_add(t, ", x: '");
    for (int64_t i = 0; i < job->n_x && st == TT_OK; i++)
        st = add_name(ctx, job, order[i], no_header, n != job->n, t);
    tti_text_add(t, "'");
    tti_free(ctx, order);
    return st;
}

static tt_status add_columns(cli_job *j, const char *part, const char *file, tti_text *t)
{
    tt_ctx *ctx = j->reader;
    const char *comma = option(j, part, "comma");
    bool no_header = strcmp(option(j, part, "no_header"), "true") == 0;
    tt_csv_opts o = {.file = file, .y = "-", .x = "", .comma = comma, .no_header = no_header};
    tti_columns job, own;
    TT_TRY(tti_csv_columns(ctx, &o, &own));
    int64_t n = own.n;
    tti_columns_free(ctx, &own);
    TT_TRY(job_columns(j, part, &job));
    tt_status st = no_header ? check_places(ctx, file, &job, n) : TT_OK;
    if (st == TT_OK)
        st = add_names(ctx, &job, n, no_header, t);
    tti_columns_free(ctx, &job);
    tti_text_add(t, ", no_header: %s, comma: '", no_header ? "true" : "false");
    add_quoted(t, comma);
    tti_text_add(t, "'");
    return st;
}

// ---- the setting -----------------------------------------------------------------------------

static bool ends_with(const char *s, const char *ending)
{
    size_t n = strlen(s), m = strlen(ending);
    return n >= m && strcmp(s + n - m, ending) == 0;
}

tt_status cli_input_setting(cli_job *j, const char *file, char **out)
{
    const char *part = csv_part(j);
    bool is_npy = ends_with(file, ".npy"), is_npz = ends_with(file, ".npz");
    bool is_csv = !is_npy && !is_npz && (part != NULL || ends_with(file, ".csv"));
    tti_text t = {0}; // outlives the job's contexts
    tt_status st = TT_OK;
    tti_text_add(&t, "data.test={%s: {%s: '",
                 is_csv             ? "csv"
                 : is_npy || is_npz ? "npy"
                                    : "idx",
                 is_csv || is_npz ? "file" : "x");
    if (has_dir(j) && file[0] != '/' && file[0] != '.')
        tti_text_add(&t, "./"); // or it would be looked for in data.dir
    add_quoted(&t, file);
    tti_text_add(&t, "'%s", is_csv ? ", y: '-'" : "");
    if (is_csv && part != NULL)
        st = add_columns(j, part, file, &t);
    tti_text_add(&t, "}}");
    *out = tti_text_take(&t);
    return st == TT_OK && *out == NULL ? TT_ENOMEM : st;
}

void cli_input_blame(cli_job *j)
{
    tt_ctx *ctx = j->ctx != NULL ? j->ctx : j->reader;
    char message[1024];
    if (ctx == NULL || strncmp(tt_last_error(ctx).message, "--set data.test:", 16) != 0)
        return;
    tt_status st = tt_status_of(ctx);
    snprintf(message, sizeof(message), "%s", tt_last_error(ctx).message);
    const char *rest = strstr(message, ": data.test"); // "--set data.test:1:7: data.test: "
    rest = rest != NULL ? strstr(rest + 2, ": ") : NULL;
    if (rest == NULL)
        return;
    tt_clear_error(ctx);
    TT_FAIL(ctx, st, "%s", rest + 2);
}
