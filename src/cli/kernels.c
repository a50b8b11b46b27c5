/*
 * kernels.c - tutti kernels: which op has kernels for which type on which kind of device.
 */
#include "cli/cli.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    char letter;
} backends[TT_N_BACKENDS] = {[TT_CPU] = {"cpu", 'c'}, [TT_CUDA] = {"cuda", 'g'}};

// Sources have no kernel and are there on every device.
static bool has(const tt_op *op, int backend, int type)
{
    const tt_kernel *k = &op->kernel[backend];
    unsigned types = op->types == 0 ? TT_TYPES_FLOAT : op->types;
    if ((types & 1u << type) == 0)
        return false;
    if ((op->flags & TT_OP_SOURCE) != 0)
        return backend == TT_CPU;
    return k->fn[type == TT_F64 ? TT_ISA_F64 : TT_ISA_PLAIN] != NULL;
}

static void print_text(tti_text *t, const tt_op *op)
{
    tti_text_add(t, "%-22s", op->name);
    for (int type = 0; type < TT_N_DTYPES; type++) {
        char cell[TT_N_BACKENDS + 1];
        int n = 0;
        for (int b = 0; b < TT_N_BACKENDS; b++)
            if (has(op, b, type))
                cell[n++] = backends[b].letter;
        cell[n] = '\0';
        tti_text_add(t, " %-4s", n > 0 ? cell : ".");
    }
    tti_text_add(t, "  %s\n", op->help != NULL ? op->help : "");
}

static void print_json(tti_text *t, const tt_op *op)
{
    tti_text_add(t, "{\"op\": ");
    tti_text_json(t, op->name);
    tti_text_add(t, ", \"kernels\": {");
    for (int b = 0; b < TT_N_BACKENDS; b++) {
        bool any = false;
        tti_text_add(t, "%s\"%s\": [", b > 0 ? ", " : "", backends[b].name);
        for (int type = 0; type < TT_N_DTYPES; type++) {
            if (!has(op, b, type))
                continue;
            tti_text_add(t, "%s\"%s\"", any ? ", " : "", tt_dtype_name((tt_dtype)type));
            any = true;
        }
        tti_text_add(t, "]");
    }
    tti_text_add(t, "}, \"gradient\": %s}", op->grad != NULL ? "true" : "false");
}

static void print_head(tti_text *t)
{
    tti_text_add(t, "%-22s", "op");
    for (int type = 0; type < TT_N_DTYPES; type++)
        tti_text_add(t, " %-4s", tt_dtype_name((tt_dtype)type));
    tti_text_add(t, "  c: cpu, g: cuda, .: none\n");
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return cli_open_code(args, CLI_FAILED);
    tti_text t = {.ctx = ctx};
    const tt_op *op;
    int shown = 0;
    if (!args->json)
        print_head(&t);
    for (int i = 0; (op = tt_op_at(ctx, i)) != NULL; i++) {
        bool wanted = args->n_words == 0;
        for (int k = 0; k < args->n_words; k++)
            wanted |= strstr(op->name, args->words[k]) != NULL;
        if (!wanted)
            continue;
        if (args->json) {
            tti_text_add(&t, shown == 0 ? "[" : ",\n ");
            print_json(&t, op);
        } else {
            print_text(&t, op);
        }
        shown++;
    }
    if (args->json)
        tti_text_add(&t, shown == 0 ? "[]\n" : "]\n");
    if (shown == 0 && !args->json)
        fprintf(stderr, "tutti: error: no op has '%s' in its name\n", args->words[0]);
    else
        cli_print_text(&t);
    tti_text_free(&t);
    int rc = cli_close(ctx, NULL);
    return shown == 0 ? CLI_FAILED : rc;
}

const cli_verb cli_kernels = {
    .name = "kernels",
    .words = "[WORD...]",
    .summary = "which op has kernels for which type on which kind of device",
    .help = "Shows all ops, or those with one of the words in their names. bf16 and f16 run the\n"
            "f32 kernels, widened before and rounded after. tutti help op NAME tells more.\n",
    .flags = "json",
    .max_words = CLI_MAX_WORDS,
    .run = run,
};
