/*
 * kernels.c - tutti kernels: which op has kernels for which type on which kind of device, and which
 * library does the work of a GPU's. Those of GPUs are the module's, if there is one.
 */
#include "cli/cli.h"
#include "cuda/load.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    char letter;
} backends[TT_N_BACKENDS] = {[TT_CPU] = {"cpu", 'c'}, [TT_CUDA] = {"cuda", 'g'}};

// The types that an op has on a kind of device, as a set of bits; module NULL: there are no GPUs.
// Sources have no kernel and are there on every device.
static unsigned types_on(const tt_op *op, int backend, const tti_cuda_module *module)
{
    const tt_kernel *k = &op->kernel[backend];
    unsigned types = op->types == 0 ? TT_TYPES_FLOAT : op->types;
    if (backend == TT_CUDA && module == NULL)
        return 0;
    if ((op->flags & TT_OP_SOURCE) != 0)
        return types;
    if (backend == TT_CUDA) {
        k = module->kernel(tti_kernel_of_op(op->name));
        return k == NULL || k->fn[0] == NULL ? 0 : types & tti_stream_types(op, k);
    }
    if (k->fn[TT_ISA_F64] == NULL)
        types &= ~(1u << TT_F64);
    return k->fn[TT_ISA_PLAIN] != NULL ? types : types & 1u << TT_F64;
}

// Who does an op's work on a GPU: "cuDNN, cuBLASLt", "ours", "" where nobody does.
static const char *done_by(const tt_op *op, const tti_cuda_module *module)
{
    static const char *const names[] = {"ours", "cuBLASLt", "cuDNN", "cuDNN, cuBLASLt"};
    if (module == NULL || module->kernel(tti_kernel_of_op(op->name)) == NULL)
        return "";
    return names[module->libraries(tti_kernel_of_op(op->name))];
}

static void print_text(tti_text *t, const tt_op *op, const tti_cuda_module *module)
{
    tti_text_add(t, "%-22s", op->name);
    for (int type = 0; type < TT_N_DTYPES; type++) {
        char cell[TT_N_BACKENDS + 1];
        int n = 0;
        for (int b = 0; b < TT_N_BACKENDS; b++)
            if ((types_on(op, b, module) >> type & 1u) != 0)
                cell[n++] = backends[b].letter;
        cell[n] = '\0';
        tti_text_add(t, " %-4s", n > 0 ? cell : ".");
    }
    if (module != NULL)
        tti_text_add(t, "  %-15s", done_by(op, module));
    tti_text_add(t, "  %s\n", op->help != NULL ? op->help : "");
}

static void print_json(tti_text *t, const tt_op *op, const tti_cuda_module *module)
{
    tti_text_add(t, "{\"op\": ");
    tti_text_json(t, op->name);
    tti_text_add(t, ", \"kernels\": {");
    for (int b = 0; b < TT_N_BACKENDS; b++) {
        bool any = false;
        tti_text_add(t, "%s\"%s\": [", b > 0 ? ", " : "", backends[b].name);
        for (int type = 0; type < TT_N_DTYPES; type++) {
            if ((types_on(op, b, module) >> type & 1u) == 0)
                continue;
            tti_text_add(t, "%s\"%s\"", any ? ", " : "", tt_dtype_name((tt_dtype)type));
            any = true;
        }
        tti_text_add(t, "]");
    }
    tti_text_add(t, "}, \"cuda_by\": ");
    tti_text_json(t, done_by(op, module));
    tti_text_add(t, ", \"gradient\": %s}", op->grad != NULL ? "true" : "false");
}

static void print_head(tti_text *t, const tti_cuda_module *module, const char *why)
{
    char versions[512] = "";
    if (module != NULL)
        module->versions(versions, sizeof(versions));
    if (module != NULL)
        tti_text_add(t,
                     "GPU kernels: %s\n"
                     "\n",
                     versions);
    else
        tti_text_add(t,
                     "no GPU kernels: %s\n"
                     "\n",
                     why);
    tti_text_add(t, "%-22s", "op");
    for (int type = 0; type < TT_N_DTYPES; type++)
        tti_text_add(t, " %-4s", tt_dtype_name((tt_dtype)type));
    if (module != NULL)
        tti_text_add(t, "  %-15s", "GPU library");
    tti_text_add(t, "  c: cpu, g: cuda, .: none\n");
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return cli_open_code(args, NULL);
    char why[256] = "";
    const tti_cuda_module *module = tti_cuda_load(why, sizeof(why));
    tti_text t = {.ctx = ctx};
    const tt_op *op;
    int shown = 0;
    if (!args->json)
        print_head(&t, module, why);
    for (int i = 0; (op = tt_op_at(ctx, i)) != NULL; i++) {
        bool wanted = args->n_words == 0;
        for (int k = 0; k < args->n_words; k++)
            wanted |= strstr(op->name, args->words[k]) != NULL;
        if (!wanted)
            continue;
        if (args->json) {
            tti_text_add(&t, shown == 0 ? "[" : ",\n ");
            print_json(&t, op, module);
        } else {
            print_text(&t, op, module);
        }
        shown++;
    }
    if (args->json)
        tti_text_add(&t, shown == 0 ? "[]\n" : "]\n");
    if (shown == 0 && !args->json)
        fprintf(stderr, "tutti: error: no op name contains '%s'\n", args->words[0]);
    else
        cli_print_text(&t);
    tti_text_free(&t);
    int rc = cli_close(ctx, NULL);
    return shown == 0 ? CLI_FAILED : rc;
}

const cli_verb cli_kernels = {
    .name = "kernels",
    .words = "[WORD...]",
    .summary = "list which ops have kernels for which element types and devices",
    .help =
        "Lists all ops, or those whose names contain one of the words. On a CPU, bf16 and f16 use\n"
        "the f32 kernels: inputs are widened and results are rounded. A library named in the "
        "table\n"
        "computes the op on a GPU if it supports the case; otherwise Tutti's own kernel does.\n"
        "tutti help op NAME describes an op.\n",
    .flags = "json",
    .max_words = CLI_MAX_WORDS,
    .run = run,
};
