/*
 * predictions.c - how predictions are written (predictions.h). A file is written beside its place
 * and takes its name at the end, so that what has the name is whole.
 */
#include "cli/predictions.h"
#include "base/file.h"
#include "cli/report.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define NAME_MOST  24
#define NPY_HEADER 128

int cli_predictions_form(const cli_args *args, cli_shown *out)
{
    const char *dot = args->output != NULL ? strrchr(args->output, '.') : NULL;
    *out = args->json ? CLI_AS_JSON : CLI_AS_TEXT;
    if (args->output == NULL)
        return CLI_OK;
    if (dot != NULL && strcasecmp(dot, ".csv") == 0)
        *out = CLI_AS_CSV;
    else if (dot != NULL && (strcasecmp(dot, ".jsonl") == 0 || strcasecmp(dot, ".json") == 0))
        *out = CLI_AS_JSON;
    else if (dot != NULL && strcasecmp(dot, ".npy") == 0)
        *out = CLI_AS_NPY;
    else
        return cli_usage("--output: the format of '%s' cannot be written; use .csv, .jsonl or .npy",
                         args->output);
    return CLI_OK;
}

// ---- classes ---------------------------------------------------------------------------------

// A class by its name, or its number where it has none.
static const char *class_text(const cli_predictions *p, int output, int64_t i, char room[32])
{
    const char *name = tt_model_class(p->model, output, i);
    if (name != NULL)
        return name;
    snprintf(room, 32, "%lld", (long long)i);
    return room;
}

// The k-th likeliest class: after those in taken.
static int64_t next_best(const float *y, int64_t n, const int64_t *taken, int64_t k)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        bool is_free = true;
        for (int64_t t = 0; t < k; t++)
            is_free = is_free && taken[t] != i;
        if (is_free && (best < 0 || y[i] > y[best]))
            best = i;
    }
    return best;
}

static int64_t shown_of(const cli_predictions *p, int i)
{
    return TTI_MIN(p->shown, p->width[i]);
}

// ---- text ------------------------------------------------------------------------------------

static void text_header(const cli_predictions *p)
{
    bool classes = p->n_outputs == 1 && p->outputs[0].meaning == TT_MEANS_CLASSES;
    if (!classes || p->args->all)
        return;
    fprintf(p->out, "%-8s ", "record");
    for (int64_t k = 0; k < shown_of(p, 0); k++)
        fprintf(p->out, "%-*s %-11s ", p->class_width, "class", "probability");
    fprintf(p->out, "%s%s%s\n", p->has_label ? "label" : "",
            p->has_label && p->has_files ? " " : "", p->has_files ? "file" : "");
}

static void text_classes(const cli_predictions *p, int i, const float *y, const int64_t *label)
{
    char room[32];
    int64_t best = next_best(y, p->width[i], NULL, 0), taken[64];
    for (int64_t k = 0; p->args->all && k < p->width[i]; k++)
        fprintf(p->out, "%s%s %.4f", k > 0 ? "  " : "", class_text(p, i, k, room), (double)y[k]);
    for (int64_t k = 0; !p->args->all && k < TTI_MIN(shown_of(p, i), 64); k++) {
        taken[k] = next_best(y, p->width[i], taken, k);
        fprintf(p->out, "%s%-*s %-11.4f", k > 0 ? " " : "", p->class_width,
                class_text(p, i, taken[k], room), (double)y[taken[k]]);
    }
    if (label != NULL)
        fprintf(p->out, " %s%s", class_text(p, i, *label, room), *label == best ? "" : "  wrong");
}

static void text_record(const cli_predictions *p, const char *file, int64_t record,
                        const float *const *values, const int64_t *label)
{
    fprintf(p->out, "%-8lld", (long long)record);
    for (int i = 0; i < p->n_outputs; i++) {
        bool classes = p->outputs[i].meaning == TT_MEANS_CLASSES;
        if (p->n_outputs > 1)
            fprintf(p->out, " %s:", p->outputs[i].name);
        if (classes) {
            fprintf(p->out, " ");
            text_classes(p, i, values[i], i == 0 ? label : NULL);
            continue;
        }
        for (int64_t k = 0; k < p->width[i]; k++)
            fprintf(p->out, k > 0 || p->n_outputs > 1 ? " %.6g" : "%.6g", (double)values[i][k]);
    }
    fprintf(p->out, "%s%s\n", p->has_files ? "  " : "", p->has_files ? file : "");
}

// ---- JSON lines ------------------------------------------------------------------------------

static void json_class(const cli_predictions *p, tti_text *t, int i, int64_t k)
{
    const char *name = tt_model_class(p->model, i, k);
    if (name != NULL)
        tti_text_json(t, name);
    else
        tti_text_add(t, "%lld", (long long)k);
}

static void json_classes(const cli_predictions *p, tti_text *t, int i, const float *y)
{
    int64_t n = p->args->all ? p->width[i] : shown_of(p, i), taken[64];
    taken[0] = next_best(y, p->width[i], NULL, 0);
    tti_text_add(t, "\"class\": ");
    json_class(p, t, i, taken[0]);
    tti_text_add(t, ", \"probability\": %.6f", (double)y[taken[0]]);
    if (n < 2)
        return;
    tti_text_add(t, ", \"%s\": [", p->args->all ? "all" : "top");
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k;
        if (!p->args->all) {
            at = taken[TTI_MIN(k, 63)] = next_best(y, p->width[i], taken, TTI_MIN(k, 63));
        }
        tti_text_add(t, "%s{\"class\": ", k > 0 ? ", " : "");
        json_class(p, t, i, at);
        tti_text_add(t, ", \"probability\": %.6f}", (double)y[at]);
    }
    tti_text_add(t, "]");
}

static void json_values(const cli_predictions *p, tti_text *t, int i, const float *y)
{
    tti_text_add(t, "[");
    for (int64_t k = 0; k < p->width[i]; k++) {
        tti_text_add(t, "%s", k > 0 ? ", " : "");
        cli_json_number(t, (double)y[k]);
    }
    tti_text_add(t, "]");
}

static void json_record(const cli_predictions *p, const char *file, int64_t record,
                        const float *const *values, const int64_t *label)
{
    tti_text t = {.ctx = p->ctx};
    tti_text_add(&t, "{");
    if (p->has_files) {
        tti_text_add(&t, "\"file\": ");
        tti_text_json(&t, file);
        tti_text_add(&t, ", ");
    }
    tti_text_add(&t, "\"record\": %lld", (long long)record);
    for (int i = 0; i < p->n_outputs; i++) {
        bool classes = p->outputs[i].meaning == TT_MEANS_CLASSES, many = p->n_outputs > 1;
        tti_text_add(&t, ", ");
        if (many || !classes) {
            tti_text_json(&t, many ? p->outputs[i].name : "output");
            tti_text_add(&t, ": %s", classes ? "{" : "");
        }
        (classes ? json_classes : json_values)(p, &t, i, values[i]);
        tti_text_add(&t, "%s", many && classes ? "}" : "");
    }
    if (label != NULL) {
        tti_text_add(&t, ", \"label\": ");
        json_class(p, &t, 0, *label);
    }
    tti_text_add(&t, "}\n");
    fputs(t.s != NULL ? t.s : "", p->out);
    tti_text_free(&t);
}

// ---- CSV -------------------------------------------------------------------------------------

static void csv_text(FILE *out, const char *s)
{
    bool quoted = s[strcspn(s, ",\"\r\n")] != '\0';
    fputs(quoted ? "\"" : "", out);
    for (; *s != '\0'; s++)
        fprintf(out, *s == '"' ? "\"\"" : "%c", *s);
    fputs(quoted ? "\"" : "", out);
}

static void csv_header(const cli_predictions *p)
{
    char room[32], name[200];
    fputs(p->has_files ? "file,record" : "record", p->out);
    for (int i = 0; i < p->n_outputs; i++) {
        const char *own = p->n_outputs > 1 ? p->outputs[i].name : "", *_ = *own != '\0' ? "_" : "";
        bool classes = p->outputs[i].meaning == TT_MEANS_CLASSES;
        for (int64_t k = 0; classes && !p->args->all && k < shown_of(p, i); k++) {
            if (k == 0)
                fprintf(p->out, ",%s%sclass,%s%sprobability", own, _, own, _);
            else
                fprintf(p->out, ",%s%sclass_%lld,%s%sprobability_%lld", own, _, (long long)k + 1,
                        own, _, (long long)k + 1);
        }
        for (int64_t k = 0; (!classes || p->args->all) && k < p->width[i]; k++) {
            if (classes)
                snprintf(name, sizeof(name), "%s%s%.150s", own, _, class_text(p, i, k, room));
            else if (p->width[i] == 1)
                snprintf(name, sizeof(name), "%s", p->outputs[i].name);
            else
                snprintf(name, sizeof(name), "%s_%lld", p->outputs[i].name, (long long)k);
            fputc(',', p->out);
            csv_text(p->out, name);
        }
    }
    fputs(p->has_label ? ",label\n" : "\n", p->out);
}

static void csv_record(const cli_predictions *p, const char *file, int64_t record,
                       const float *const *values, const int64_t *label)
{
    char room[32];
    int64_t taken[64];
    if (p->has_files) {
        csv_text(p->out, file);
        fputc(',', p->out);
    }
    fprintf(p->out, "%lld", (long long)record);
    for (int i = 0; i < p->n_outputs; i++) {
        bool classes = p->outputs[i].meaning == TT_MEANS_CLASSES;
        for (int64_t k = 0; classes && !p->args->all && k < TTI_MIN(shown_of(p, i), 64); k++) {
            taken[k] = next_best(values[i], p->width[i], taken, k);
            fputc(',', p->out);
            csv_text(p->out, class_text(p, i, taken[k], room));
            fprintf(p->out, ",%.6f", (double)values[i][taken[k]]);
        }
        for (int64_t k = 0; (!classes || p->args->all) && k < p->width[i]; k++)
            fprintf(p->out, ",%.9g", (double)values[i][k]);
    }
    if (p->has_label)
        fputc(',', p->out);
    if (label != NULL)
        csv_text(p->out, class_text(p, 0, *label, room));
    fputc('\n', p->out);
}

// ---- .npy ------------------------------------------------------------------------------------

// The header has one size, so that it can be written again when the records are counted.
static void npy_header(const cli_predictions *p)
{
    char header[NPY_HEADER];
    tt_shape s = p->outputs[0].shape;
    memset(header, ' ', sizeof(header));
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    int n =
        10 + snprintf(header + 10, sizeof(header) - 10,
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld,", (long long)p->n);
    for (int i = 0; i < s.rank && n < NPY_HEADER - 24; i++)
        n += snprintf(header + n, sizeof(header) - (size_t)n, " %lld,", (long long)s.dim[i]);
    n += snprintf(header + n, sizeof(header) - (size_t)n, "), }");
    header[n] = ' ';
    header[NPY_HEADER - 1] = '\n';
    fwrite(header, 1, sizeof(header), p->out);
}

// ---- the whole -------------------------------------------------------------------------------

static tt_status look_at_outputs(cli_predictions *p)
{
    char room[32];
    p->n_outputs = TTI_MIN(tt_model_output_count(p->model), 8);
    p->shown = p->args->top > 0 ? TTI_MIN(p->args->top, 64) : 1;
    p->class_width = 6;
    for (int i = 0; i < p->n_outputs; i++) {
        TT_TRY(tt_model_output(p->model, i, &p->outputs[i]));
        p->width[i] = tt_shape_count(&p->outputs[i].shape);
        if (p->outputs[i].dtype != TT_F32 || p->width[i] < 1)
            return TT_FAIL(p->ctx, TT_EUNSUPPORTED, "output '%s' is %s; predict supports f32 only",
                           p->outputs[i].name, tt_dtype_name(p->outputs[i].dtype));
        for (int64_t k = 0; p->outputs[i].meaning == TT_MEANS_CLASSES && k < p->width[i]; k++) {
            int n = (int)strlen(class_text(p, i, k, room));
            p->class_width = TTI_MAX(p->class_width, TTI_MIN(n, NAME_MOST));
        }
    }
    if (p->form == CLI_AS_NPY && p->n_outputs != 1)
        return TT_FAIL(
            p->ctx, TT_EUNSUPPORTED,
            "--output %s: the model has %d outputs, but .npy holds one array; use .csv or .jsonl",
            p->args->output, p->n_outputs);
    return TT_OK;
}

static tt_status open_file(cli_predictions *p)
{
    const char *file = p->args->output;
    p->out = stdout;
    if (file == NULL)
        return TT_OK;
    if (cli_is_stdout(file) ||
        snprintf(p->tmp, sizeof(p->tmp), "%s.tmp-%d", file, getpid()) >= (int)sizeof(p->tmp))
        return TT_FAIL(p->ctx, TT_EINVAL, "--output: '%.100s' is not the name of a file", file);
    p->out = fopen(p->tmp, "wbe");
    if (p->out == NULL) {
        p->tmp[0] = '\0';
        return TT_FAIL(p->ctx, TT_EIO, "cannot write '%s': %s", file, strerror(errno));
    }
    return TT_OK;
}

tt_status cli_predictions_begin(cli_predictions *p, bool has_files, bool has_label)
{
    p->has_files = has_files;
    p->has_label = has_label;
    TT_TRY(look_at_outputs(p));
    TT_TRY(open_file(p));
    if (p->form == CLI_AS_TEXT)
        text_header(p);
    if (p->form == CLI_AS_CSV)
        csv_header(p);
    if (p->form == CLI_AS_NPY)
        npy_header(p);
    return TT_OK;
}

void cli_predictions_add(cli_predictions *p, const char *file, int64_t record,
                         const float *const *values, const int64_t *label)
{
    p->n++;
    switch (p->form) {
    case CLI_AS_TEXT:
        text_record(p, file, record, values, label);
        break;
    case CLI_AS_JSON:
        json_record(p, file, record, values, label);
        break;
    case CLI_AS_CSV:
        csv_record(p, file, record, values, label);
        break;
    case CLI_AS_NPY:
        fwrite(values[0], sizeof(float), (size_t)p->width[0], p->out);
        break;
    }
}

tt_status cli_predictions_end(cli_predictions *p, tt_status st)
{
    if (p->out == NULL || p->tmp[0] == '\0') {
        bool failed = p->out != NULL && (fflush(p->out) != 0 || ferror(p->out) != 0);
        bool ended = failed && cli_is_unread(); // | head: nobody wants more
        return st == TT_OK && failed && !ended
                   ? TT_FAIL(p->ctx, TT_EIO, "cannot write: %s", strerror(errno))
                   : st;
    }
    if (st == TT_OK && p->form == CLI_AS_NPY && fseek(p->out, 0, SEEK_SET) == 0)
        npy_header(p);
    bool failed = ferror(p->out) != 0;
    failed |= fclose(p->out) != 0;
    if (st == TT_OK && (failed || rename(p->tmp, p->args->output) != 0))
        st = TT_FAIL(p->ctx, TT_EIO, "cannot write '%s': %s", p->args->output, strerror(errno));
    if (st != TT_OK)
        (void)unlink(p->tmp);
    return st;
}
