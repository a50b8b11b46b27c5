/*
 * plot.c - tutti plot: the losses and metrics of a run, in the terminal or as a picture.
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

static tt_status plot(tt_ctx *ctx, const cli_args *args)
{
    char run[TTI_RUN_PATH], path[TTI_RUN_PATH + 32];
    tti_curves curves;
    TT_TRY(cli_run_find(ctx, args, args->words[0], CLI_STEPS, run));
    snprintf(path, sizeof(path), "%s/events.jsonl", run);
    TT_TRY(tti_curves_read(ctx, path, &curves));
    const char *slash = strrchr(run, '/');
    snprintf(curves.title, sizeof(curves.title), "%.63s", slash != NULL ? slash + 1 : run);
    tti_text_plot form = terminal_form();
    char *s = args->svg != NULL ? tti_curves_svg(&curves) : tti_curves_text(&curves, &form);
    tti_curves_free(&curves);
    tt_status st = s != NULL ? TT_OK : TT_ENOMEM;
    if (st == TT_OK && args->svg != NULL)
        st = tti_file_replace(ctx, args->svg, s, strlen(s));
    else if (!args->quiet)
        cli_write(stdout, s, strlen(s), form.colour);
    if (st == TT_OK && args->svg != NULL)
        cli_wrote(args, args->svg, "curves", run);
    tti_free(ctx, s);
    return st;
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    (void)plot(ctx, args);
    return cli_close(ctx, NULL);
}

const cli_verb cli_plot = {
    .name = "plot",
    .words = "RUN",
    .summary = "plot the losses and metrics of a run, in the terminal or as an image",
    .help =
        "RUN is a run's folder, its name (digits-003), or the name of a job: then its newest run.\n"
        "Works while the run is in progress. --svg writes an image file instead.\n",
    .flags = "svg quiet runs",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
