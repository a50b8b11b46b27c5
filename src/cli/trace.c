/*
 * trace.c - tutti trace: the trace of a run, for Perfetto.
 */
#include "base/file.h"
#include "cli/cli.h"
#include "record/record.h"
#include <stdio.h>
#include <string.h>

static tt_status copy(tt_ctx *ctx, const cli_args *args)
{
    char run[TTI_RUN_PATH], path[TTI_RUN_PATH + 16];
    char *text;
    size_t bytes;
    TT_TRY(cli_run_find(ctx, args, args->words[0], CLI_NOTHING, run));
    snprintf(path, sizeof(path), "%s/trace.json", run);
    if (!tti_file_exists(path))
        return TT_FAIL(
            ctx, TT_EIO,
            "'%s' has no trace; record the first 20 steps with tutti train JOB --trace 20", run);
    if (args->n_words < 2) {
        if (!args->quiet)
            cli_printf("%s opens in https://ui.perfetto.dev\n", path);
        return TT_OK;
    }
    TT_TRY(tti_file_read(ctx, path, 0, &text, &bytes));
    tt_status st = TT_OK;
    if (strcmp(args->words[1], "-") == 0)
        fwrite(text, 1, bytes, stdout);
    else
        st = tti_file_replace(ctx, args->words[1], text, bytes);
    if (st == TT_OK && strcmp(args->words[1], "-") != 0)
        cli_wrote(args, args->words[1], "trace", run);
    tti_free(ctx, text);
    return st;
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    (void)copy(ctx, args);
    return cli_close(ctx, NULL);
}

const cli_verb cli_trace = {
    .name = "trace",
    .words = "RUN [OUT]",
    .summary = "show where the trace of a run is, for viewing in Perfetto",
    .help =
        "tutti train JOB --trace N records the trace. Prints its path, or copies it to OUT (- is\n"
        "standard output). Open it in Perfetto (ui.perfetto.dev) or chrome://tracing.\n",
    .flags = "quiet runs",
    .min_words = 1,
    .max_words = 2,
    .run = run,
};
