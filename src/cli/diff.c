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
    .summary = "the first value that differs between two runs",
    .help =
        "A and B are files of hashes: made with tutti train --hashes FILE, or by a program\n"
        "with tt_hashes_write(). Names the first step, node and lane that differ, in the order\n"
        "of the graph.\n"
        "Exit code 0: the same; 1: different, or an error.\n",
    .flags = "json",
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
