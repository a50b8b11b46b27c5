/*
 * diff.c - tutti diff: compares the hashes of two runs.
 */
#include "cli/cli.h"

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    bool same = false;
    char *report = NULL;
    tt_status st = tt_hashes_diff(ctx, args->words[0], args->words[1], &same, &report);
    if (st == TT_OK && args->json) {
        tti_text t = {.ctx = ctx};
        tti_text_add(&t, "{\"same\": %s, \"report\": ", same ? "true" : "false");
        tti_text_json(&t, report != NULL ? report : "");
        tti_text_add(&t, "}\n");
        cli_print_text(&t);
    } else if (st == TT_OK) {
        cli_print(report);
    }
    tt_string_free(ctx, report);
    int rc = cli_close(ctx, NULL);
    return rc == CLI_OK && !same ? CLI_FAILED : rc;
}

const cli_verb cli_diff = {
    .name = "diff",
    .words = "A B",
    .summary = "find the first value that differs between two runs",
    .help =
        "A and B are hash files, written by tutti train --hashes FILE or by a program with\n"
        "tt_hashes_write(). Prints the first step, node and lane that differ, in graph order.\n"
        "The exit code is 0 if the runs are equal, and 1 if they differ or an error occurred.\n",
    .flags = "json",
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
