/*
 * state.c - tutti state: variables and queues of a server.
 */
#include "cli/cli.h"
#include <stdio.h>
#include <string.h>

static const char help[] =
    "  ls TARGET          lists variables and queues of a container (--all: of all)\n"
    "  save TARGET FILE   writes the variables of a container to a safetensors file here\n"
    "  load TARGET FILE   sets variables of a container from such a file\n"
    "  rm TARGET          removes a container with all that is in it (--all: all of them)\n"
    "\n"
    "Without --container NAME it is the default container. Sessions that are open on a container\n"
    "that is removed fail from then on, and calls that wait in its queues end.\n";

static void print_json(tti_text *t, const tt_state_entry *e)
{
    char shape[TT_SHAPE_TEXT];
    tti_text_add(t, "{\"container\": ");
    tti_text_json(t, e->container);
    tti_text_add(t, ", \"name\": ");
    tti_text_json(t, e->name);
    if (e->is_queue)
        tti_text_add(t, ", \"kind\": \"queue\", \"elements\": %lld", (long long)e->version);
    else
        tti_text_add(
            t, ", \"kind\": \"variable\", \"dtype\": \"%s\", \"shape\": %s, \"writes\": %lld",
            tt_dtype_name(e->dtype), tt_shape_text(&e->shape, shape), (long long)e->version);
    tti_text_add(t, ", \"bytes\": %zu}\n", e->bytes);
}

static void print_entry(tti_text *t, const tt_state_entry *e)
{
    char shape[TT_SHAPE_TEXT], what[TT_SHAPE_TEXT + 16], size[32];
    tti_size_text((double)e->bytes, size);
    if (e->is_queue)
        snprintf(what, sizeof(what), "queue of %lld", (long long)e->version);
    else
        snprintf(what, sizeof(what), "%s %s", tt_dtype_name(e->dtype),
                 tt_shape_text(&e->shape, shape));
    tti_text_add(t, "%-12s %-32s %-20s %10s", e->container[0] != '\0' ? e->container : "(default)",
                 e->name, what, size);
    if (!e->is_queue)
        tti_text_add(t, "  version %lld", (long long)e->version);
    tti_text_add(t, "\n");
}

static tt_status list(tt_ctx *ctx, const cli_args *args)
{
    tt_state_entry *e = NULL;
    int n = 0;
    TT_TRY(tt_state_list(ctx, args->words[1], &e, &n, .key = args->key, .all = args->all,
                         .container = args->container));
    tti_text t = {.ctx = ctx};
    for (int i = 0; i < n; i++)
        (args->json ? print_json : print_entry)(&t, &e[i]);
    if (n == 0 && !args->json)
        tti_text_add(&t, "nothing\n");
    tt_state_free(ctx, e);
    return cli_print_text(&t) ? TT_OK : TT_ENOMEM;
}

static tt_status act(tt_ctx *ctx, const cli_args *args)
{
    const char *word = args->words[0], *target = args->words[1], *file = args->words[2];
    int n = 0;
    tt_status st;
    if (strcmp(word, "ls") == 0)
        return list(ctx, args);
    if (strcmp(word, "save") == 0)
        st = tt_state_save(ctx, target, file, &n, .key = args->key, .container = args->container);
    else if (strcmp(word, "load") == 0)
        st = tt_state_load(ctx, target, file, &n, .key = args->key, .container = args->container);
    else
        st = tt_state_clear(ctx, target, &n, .key = args->key, .container = args->container,
                            .all = args->all);
    if (st == TT_OK && !args->quiet)
        cli_printf("%d %s%s %s%s%s\n", n, strcmp(word, "rm") == 0 ? "container" : "variable",
                   n == 1 ? "" : "s",
                   strcmp(word, "save") == 0   ? "saved to "
                   : strcmp(word, "load") == 0 ? "loaded from "
                                               : "removed from ",
                   strcmp(word, "rm") == 0 ? target : file, "");
    return st;
}

static int run(const cli_args *args)
{
    static const char *const words[] = {"ls", "save", "load", "rm", NULL};
    const char *word = args->words[0];
    int i = 0;
    while (words[i] != NULL && strcmp(words[i], word) != 0)
        i++;
    if (words[i] == NULL)
        return cli_usage("tutti state: '%s' is not one of ls, save, load, rm", word);
    bool has_file = i == 1 || i == 2;
    if (args->n_words != (has_file ? 3 : 2))
        return cli_usage("tutti state %s needs TARGET%s", word, has_file ? " FILE" : "");
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tt_status st = act(ctx, args);
    int closed = cli_close(ctx, NULL);
    return st != TT_OK ? cli_code(st) : closed;
}

const cli_verb cli_state = {
    .name = "state",
    .words = "ls|save|load|rm TARGET [FILE]",
    .summary = "list, save, load or remove variables and queues of a server",
    .help = help,
    .flags = "container all key json quiet",
    .min_words = 2,
    .max_words = 3,
    .run = run,
};
