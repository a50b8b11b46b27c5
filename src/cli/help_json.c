/*
 * help_json.c - tutti help --json: the catalogue of the library, and the commands and flags.
 */
#include "cli/cli.h"
#include "job/catalog.h"

static void add_flags(tti_text *t)
{
    cli_flag f;
    tti_text_add(t, ",\n\"flags\": [");
    for (int i = 0; cli_flag_at(i, &f); i++) {
        tti_text_add(t, "%s\n  {\"name\": \"%s\", \"type\": \"%s\", \"value\": ", i > 0 ? "," : "",
                     f.name, f.type);
        if (f.value != NULL)
            tti_text_json(t, f.value);
        else
            tti_text_add(t, "null");
        tti_text_add(t, ", \"repeats\": %s, \"min\": ", f.repeats ? "true" : "false");
        if (f.has_bounds)
            tti_text_add(t, "%lld, \"max\": %lld", (long long)f.min, (long long)f.max);
        else
            tti_text_add(t, "null, \"max\": null");
        tti_text_add(t, ", \"help\": ");
        tti_text_json(t, f.help);
        tti_text_add(t, "}");
    }
    tti_text_add(t, "]");
}

static void add_command(tti_text *t, const cli_verb *v)
{
    cli_flag f;
    const char *comma = "";
    tti_text_add(t, "\n  {\"name\": \"%s\", \"summary\": ", v->name);
    tti_text_json(t, v->summary);
    tti_text_add(t, ", \"arguments\": ");
    tti_text_json(t, v->words != NULL ? v->words : "");
    tti_text_add(t, ", \"min_arguments\": %d, \"max_arguments\": %d, \"help\": ", v->min_words,
                 v->max_words);
    tti_text_json(t, v->help != NULL ? v->help : "");
    tti_text_add(t, ", \"flags\": [");
    for (int i = 0; cli_flag_at(i, &f); i++) {
        if (!cli_takes(v, f.name))
            continue;
        tti_text_add(t, "%s\"%s\"", comma, f.name);
        comma = ", ";
    }
    tti_text_add(t, "]}");
}

int cli_help_json(const cli_args *args)
{
    if (args->n_words > 0)
        return cli_usage("tutti help --json prints all topics; remove '%s'", args->words[0]);
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tti_text t = {.ctx = ctx};
    tti_catalog_json(ctx, &t);
    tti_text_add(&t, ",\n\"commands\": [");
    for (int i = 0; cli_verbs[i] != NULL; i++) {
        tti_text_add(&t, "%s", i > 0 ? "," : "");
        add_command(&t, cli_verbs[i]);
    }
    tti_text_add(&t, "]");
    add_flags(&t);
    tti_text_add(&t, "\n}\n");
    bool is_printed = cli_print_text(&t);
    int closed = cli_close(ctx, NULL);
    return is_printed ? closed : CLI_FAILED;
}
