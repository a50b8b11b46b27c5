/*
 * plot.c - tutti plot: the losses and metrics of runs, in the terminal or as a picture.
 */
#include "base/file.h"
#include "cli/progress.h"
#include "record/record.h"
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tti_text_plot terminal_form(void)
{
    setlocale(LC_CTYPE, "");
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    return (tti_text_plot){.width = TTI_MIN(cli_terminal_width(STDOUT_FILENO), 120),
                           .height = 16,
                           .plain = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
                           .colour = is_terminal && getenv("NO_COLOR") == NULL};
}

typedef struct plotted {
    char path[TTI_RUN_PATH];
    const char *label; // in path: its last part, or all of it where two have the same
    tti_curves curves;
} plotted;

static tt_status read_run(tt_ctx *ctx, const cli_args *args, const char *word, plotted *p)
{
    char path[TTI_RUN_PATH + 32];
    TT_TRY(cli_run_find(ctx, args, word, CLI_STEPS, p->path));
    snprintf(path, sizeof(path), "%s/events.jsonl", p->path);
    TT_TRY(tti_curves_read(ctx, path, &p->curves));
    const char *slash = strrchr(p->path, '/');
    p->label = slash != NULL ? slash + 1 : p->path;
    snprintf(p->curves.title, sizeof(p->curves.title), "%.63s", p->label);
    return TT_OK;
}

static void make_labels_differ(plotted *p, int n)
{
    bool is_twice[TTI_MAX_LINES] = {false};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            is_twice[i] |= k != i && strcmp(p[i].label, p[k].label) == 0;
    for (int i = 0; i < n; i++)
        if (is_twice[i])
            p[i].label = p[i].path;
}

// The picture of one run or of several; NULL: out of memory.
static char *draw(tt_ctx *ctx, const cli_args *args, const plotted *p, int n,
                  const tti_text_plot *form)
{
    const tti_curves *curves[TTI_MAX_LINES];
    const char *labels[TTI_MAX_LINES];
    if (n == 1)
        return args->svg != NULL ? tti_curves_svg(&p->curves) : tti_curves_text(&p->curves, form);
    tti_panel *panels = tti_calloc(ctx, TTI_MAX_PANELS, sizeof(*panels));
    if (panels == NULL)
        return NULL;
    tti_text title = {.ctx = ctx};
    for (int i = 0; i < n; i++) {
        curves[i] = &p[i].curves;
        labels[i] = p[i].label;
        tti_text_add(&title, "%s%s", i > 0 ? ", " : "", labels[i]);
    }
    char *name = tti_text_take(&title), *s = NULL;
    int n_panels = tti_panels_make(curves, labels, n, panels);
    if (name != NULL)
        s = args->svg != NULL ? tti_panels_svg(ctx, name, panels, n_panels)
                              : tti_panels_text(ctx, panels, n_panels, form);
    tti_free(ctx, name);
    tti_free(ctx, panels);
    return s;
}

static tt_status plot(tt_ctx *ctx, const cli_args *args, plotted *p)
{
    int n = args->n_words;
    for (int i = 0; i < n; i++)
        TT_TRY(read_run(ctx, args, args->words[i], &p[i]));
    make_labels_differ(p, n);
    tti_text_plot form = terminal_form();
    char *s = draw(ctx, args, p, n, &form);
    tt_status st = s != NULL ? TT_OK : TT_ENOMEM;
    if (st == TT_OK && args->svg != NULL)
        st = tti_file_replace(ctx, args->svg, s, strlen(s));
    else if (st == TT_OK && !args->quiet)
        cli_write(stdout, s, strlen(s), form.colour);
    if (st == TT_OK && args->svg != NULL)
        cli_wrote(args, args->svg, "curves", n == 1 ? p[0].path : "these runs");
    tti_free(ctx, s);
    return st;
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    plotted *p = tti_calloc(ctx, (size_t)args->n_words, sizeof(*p));
    if (p != NULL)
        (void)plot(ctx, args, p);
    for (int i = 0; p != NULL && i < args->n_words; i++)
        tti_curves_free(&p[i].curves);
    tti_free(ctx, p);
    return cli_close(ctx, NULL);
}

const cli_verb cli_plot = {
    .name = "plot",
    .words = "RUN [RUN...]",
    .summary = "plot the losses and metrics of a run, or compare several",
    .help =
        "RUN is a run's folder, its name (digits-003), or the name of a job: then its newest run.\n"
        "Works while the run is in progress. --svg writes an image file instead. Several runs are\n"
        "drawn over each other, one panel for each loss and metric.\n",
    .flags = "svg quiet runs",
    .min_words = 1,
    .max_words = TTI_MAX_LINES,
    .run = run,
};
