/*
 * help.c - tutti help: verbs, ops and other topics. Ops explain themselves by their records.
 */
#include "base/hints.h"
#include "cli/cli.h"
#include "job/job.h"
#include "model/model.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAX_TOPICS 1024

void cli_print_flags(const cli_verb *verb)
{
    cli_flag f;
    for (int i = 0; cli_flag_at(i, &f); i++) {
        char left[64];
        if (!cli_takes(verb, f.name))
            continue;
        snprintf(left, sizeof(left), "--%s %s", f.name, f.value != NULL ? f.value : "");
        printf("  %-18s %s\n", left, f.help);
    }
}

static const struct {
    const char *name, *summary, *text;
} topics[] = {
    {"exit", "exit codes",
     "0    success (diff, reproduce: the runs are equal; audit: nothing is wrong)\n"
     "1    an error, described on standard error (diff, reproduce: also if the runs differ; "
     "audit:\n"
     "     also if something is wrong)\n"
     "2    wrong command line; standard error says what to change\n"
     "3    an error in the job file, its data or its model, or in the environment variables that\n"
     "     describe the job's processes (tutti help env), or the job needs more memory than there\n"
     "     is: running it again does not help\n"
     "4    the loss, a gradient or a weight was NaN or infinite (train.nan: stop), or training\n"
     "     diverged (train.divergence); the last checkpoint is from before that\n"
     "76   another process of the job was lost, did not start or is stuck, or a device is stuck;\n"
     "     standard error names it on every rank. Run again with --resume, on any number of\n"
     "     processes\n"
     "85   stopped by SIGTERM or SIGHUP after saving what there was. Run again with --resume\n"
     "130  stopped by Ctrl-C: after saving, or immediately by a second Ctrl-C\n"
     "\n"
     "tutti run exits with the code of the process that failed first, or with 76 if a signal\n"
     "killed it; a process that only lost another one counts last. After Ctrl-C it exits with 85: "
     "all processes have saved.\n"},
    {"graph", "text format of graphs",
     "The text form of a graph has one line per node. tt_graph_print() writes it,\n"
     "tt_graph_parse() reads it:\n"
     "\n"
     "  tutti graph 1\n"
     "  # a comment\n"
     "  %x = feed {shape=[b, 784]}\n"
     "  %w = variable {shape=[784, 10], init=glorot_uniform}\n"
     "  %c = const {shape=[3]} data [1, 0.5, -2]\n"
     "  %y = matmul(%x, %w) {act=relu} @cpu:0 : f32[b, 10]\n"
     "  %z = mul(%y, %y) colocate(0)\n"
     "  after %z: %c\n"
     "\n"
     "A line gives a node's name, its op, its inputs (%name, or %name:1 for output 1), the\n"
     "attributes that differ from their defaults (tutti help op NAME), its placement, and the\n"
     "types of its outputs, which are optional. In a shape, b is the batch size and 64b is 64\n"
     "entries per row of the batch. Data is a list, all VALUE, or base64 BYTES. Names with\n"
     "characters other than letters, digits and _./- are quoted. 'after %z: %c' makes %z wait\n"
     "for %c. A graph text cannot run code or open files.\n"},
    {"environment", "environment variables",
     "TUTTI_ISA             instruction set, like --isa: plain, fma, avx2, avx512 (same bits)\n"
     "TUTTI_DATA_DIR        folder that holds the data sets mnist/ and cifar10/\n"
     "TUTTI_CUDA_MODULE     path of the GPU module (default: libtutti-cuda.so next to the\n"
     "                      library or the program)\n"
     "TUTTI_CUDA_LIBRARIES  more folders in which to look for cuBLASLt, cuDNN and NCCL\n"
     "TUTTI_CUDA_CHECK=1    wait after every GPU kernel, so that an error names its op\n"
     "TUTTI_CUDA_OWN=1      use Tutti's own GPU kernels instead of those libraries (different "
     "bits)\n"
     "TUTTI_TF32=1          round f32 products on GPUs to TF32: faster, different bits\n"
     "TUTTI_CAPTURE=off     enqueue every GPU step separately instead of using CUDA graphs\n"
     "TUTTI_TRAIN_BATCH     overrides the key train.batch of a job; every other key likewise.\n"
     "                      Stronger than the job file, weaker than --set\n"
     "MLFLOW_TRACKING_TOKEN, TUTTI_HTTP_TOKEN  tokens for output.mlflow and output.http\n"
     "\n"
     "TUTTI_HOSTS, TUTTI_RANK, TUTTI_CLUSTER, TF_CONFIG, RANK, WORLD_SIZE and other variables\n"
     "of launchers: see tutti help env\n"},
};

static int overview(void)
{
    printf("Tutti trains neural networks with bit-identical results on any number of devices.\n"
           "\n"
           "usage: tutti COMMAND [FLAGS] [ARGUMENTS]\n"
           "\n");
    for (int i = 0; cli_verbs[i] != NULL; i++)
        printf("  %-12s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    printf("\n"
           "tutti help COMMAND shows more. Other topics:\n");
    printf(
        "  %-12s keys of job files; one key: tutti help model, tutti help train.optimizer.adam\n",
        "job [KEY]");
    printf("  %-12s list of all ops\n"
           "  %-12s inputs and attributes of one op\n",
           "ops", "op NAME");
    for (int i = 0; i < TTI_COUNT(topics); i++)
        printf("  %-12s %s\n", topics[i].name, topics[i].summary);
    return CLI_OK;
}

// Is the word a section of job files? "train" is, and a verb too.
static bool is_section(const char *word)
{
    return tti_schema_key(&tti_job_schema, word) != NULL;
}

static int verb_help(const cli_verb *v)
{
    printf("usage: tutti %s%s%s [FLAGS]\n\n", v->name, v->words != NULL ? " " : "",
           v->words != NULL ? v->words : "");
    printf("%s%s\nFlags:\n", v->help != NULL ? v->help : v->summary, v->help != NULL ? "" : "\n");
    cli_print_flags(v);
    if (is_section(v->name))
        printf("\n"
               "For the keys of section %s of a job file, see: tutti help job %s\n",
               v->name, v->name);
    return CLI_OK;
}

static void op_inputs(const tt_op *op)
{
    if (op->max_inputs == 0)
        printf("inputs: %d\n", op->inputs);
    else if (op->max_inputs < 0)
        printf("inputs: %d or more\n", op->inputs);
    else
        printf("inputs: %d to %d\n", op->inputs, op->max_inputs);
    if (op->outputs > 1)
        printf("outputs: %d\n", op->outputs);
    printf("types:");
    for (int i = 0; i < TT_N_DTYPES; i++)
        if ((op->types == 0 ? TT_TYPES_FLOAT : op->types) & 1u << i)
            printf(" %s", tt_dtype_name((tt_dtype)i));
    printf("\ngradient: %s\n", op->grad != NULL ? "yes" : "no");
}

static void op_flags(const tt_op *op)
{
    static const struct {
        unsigned flag;
        const char *text;
    } flags[] = {
        {TT_OP_VIEW, "view: shares the memory of input 0"},
        {TT_OP_RANDOM, "random: the numbers depend on the node's name, the step and the row"},
        {TT_OP_UPDATE, "writes the variable that is input 0"},
        {TT_OP_EFFECT, "has side effects: never merged or folded"},
        {TT_OP_POINTWISE, "elementwise: may be fused with neighbouring ops"},
        {TT_OP_ROW_FREE, "the bits of a row do not depend on the other rows"},
    };
    for (int i = 0; i < TTI_COUNT(flags); i++)
        if (op->flags & flags[i].flag)
            printf("%s\n", flags[i].text);
}

static int op_help(const tt_op *op)
{
    printf("%s: %s\n\n", op->name, op->help != NULL ? op->help : "");
    op_inputs(op);
    op_flags(op);
    if (op->attrs == NULL || op->attrs[0].type == TT_OPT_END)
        return CLI_OK;
    tti_text t = {0};
    tti_options_help(&t, op->attrs);
    printf("\nAttributes:\n");
    cli_print_text(&t);
    return CLI_OK;
}

static int ops_help(tt_ctx *ctx)
{
    const tt_op *op;
    for (int i = 0; (op = tt_op_at(ctx, i)) != NULL; i++)
        printf("%-22s %s\n", op->name, op->help != NULL ? op->help : "");
    return CLI_OK;
}

// A key of job files: "train.optimizer.adam", "" for all.
static int job_help(tt_ctx *ctx, const char *key)
{
    char *s = tt_job_help(ctx, key);
    cli_print(s);
    tt_string_free(ctx, s);
    return s != NULL ? CLI_OK : CLI_USAGE; // the context has the message
}

// What of a program is the same; false: nothing is.
static bool c_name(const tti_hint *h, char out[TTI_HINT_MAX])
{
    if (h->ours == NULL || strcmp(h->ours, "residual") == 0)
        return false;
    const char *prefix = strcmp(h->kind, "layer") == 0 ? "tt_layer_" : "tt_";
    bool is_constant = strcmp(h->kind, "loss") == 0;
    if (!is_constant && strcmp(h->kind, "layer") != 0 && strcmp(h->kind, "optimizer") != 0)
        return false;
    snprintf(out, TTI_HINT_MAX, is_constant ? "TT_%s" : "%s%s()", is_constant ? h->ours : prefix,
             h->ours);
    for (char *c = out; is_constant && *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    return true;
}

/*
 * A word of another framework: what Tutti calls it, in a job file and in C. near: the topic that it
 * may mean; one that differs only in case is not meant to be looked up here.
 */
static bool hint_help(const char *word, const char *near)
{
    char text[TTI_HINT_MAX];
    bool found = false;
    for (int i = 0; tti_hint_at(i) != NULL; i++) {
        const tti_hint *h = tti_hint_at(i);
        if (tti_hint_find(h->kind, h->where, word) != h || strcmp(h->kind, "list") == 0)
            continue;
        cli_printf("%s as %s %s%s%s: %s\n", word, strchr("aeio", h->kind[0]) ? "an" : "a", h->kind,
                   h->where != NULL ? " in " : "", h->where != NULL ? h->where : "",
                   tti_hint_text(h, text));
        if (c_name(h, text))
            cli_printf("  in C: %s\n", text);
        found = true;
    }
    if (found && near != NULL)
        cli_printf("There is also the topic %s: tutti help %s\n", near, near);
    return found;
}

// Says that there is no such topic, and which one is near.
static int unknown(tt_ctx *ctx, const char *word, bool only_ops)
{
    const char *names[MAX_TOPICS + 1];
    const tt_op *op;
    int n = 0;
    for (int i = 0; !only_ops && cli_verbs[i] != NULL; i++)
        names[n++] = cli_verbs[i]->name;
    for (int i = 0; !only_ops && i < TTI_COUNT(topics); i++)
        names[n++] = topics[i].name;
    for (const tti_key *k = tti_job_schema.keys; !only_ops && k->name != NULL; k++)
        names[n++] = k->name;
    for (int i = 0; n < MAX_TOPICS && (op = tt_op_at(ctx, i)) != NULL; i++)
        names[n++] = op->name;
    names[n] = NULL;
    const char *near = tti_meant(word, names), *what = only_ops ? "op" : "topic";
    if (!only_ops && hint_help(word, near))
        return CLI_OK;
    if (near != NULL)
        return cli_usage("tutti help: unknown %s '%s'; did you mean '%s'?", what, word, near);
    return cli_usage("tutti help: unknown %s '%s'; tutti help lists %s", what, word,
                     only_ops ? "how to list all ops" : "them");
}

static int topic(tt_ctx *ctx, const cli_args *args)
{
    const char *word = args->words[0];
    bool two = args->n_words == 2, only_ops = two && strcmp(word, "op") == 0;
    if (strcmp(word, "job") == 0 || strchr(word, '.') != NULL)
        return job_help(ctx, two ? args->words[1] : strcmp(word, "job") == 0 ? "" : word);
    if (two && strcmp(word, "data") == 0 && strcmp(args->words[1], "show") == 0)
        return verb_help(&cli_data);
    if (two && !only_ops)
        return cli_usage("tutti help: unexpected argument '%s'", args->words[1]);
    word = only_ops ? args->words[1] : word;
    if (!only_ops) {
        if (strcmp(word, "ops") == 0 || strcmp(word, "op") == 0)
            return ops_help(ctx);
        const cli_verb *verb = cli_find(word);
        if (verb == &cli_data) // its section is asked for more
            verb = NULL;
        int rc = verb != NULL ? verb_help(verb) : CLI_OK;
        if (verb != NULL && strcmp(word, "graph") != 0) // a command and a topic
            return rc;
        if (verb != NULL)
            cli_print("\n");
        for (int i = 0; i < TTI_COUNT(topics); i++) {
            if (strcmp(topics[i].name, word) == 0) {
                cli_print(topics[i].text);
                return CLI_OK;
            }
        }
        if (is_section(word))
            return job_help(ctx, word);
    }
    const tt_op *op = tt_op_find(ctx, word);
    if (op == NULL && !only_ops && tti_layer_find(word) != NULL) {
        char path[TTI_NAME_MAX];
        snprintf(path, sizeof(path), "model.%s", word);
        return job_help(ctx, path);
    }
    return op != NULL ? op_help(op) : unknown(ctx, word, only_ops);
}

static int run(const cli_args *args)
{
    if (args->json)
        return cli_help_json(args);
    if (args->n_words == 0)
        return overview();
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    int rc = topic(ctx, args);
    int closed = cli_close(ctx, NULL);
    return rc != CLI_OK ? rc : closed;
}

const cli_verb cli_help = {
    .name = "help",
    .words = "[TOPIC]",
    .summary = "show help on a command, a key of job files, an op or another topic",
    .help =
        "A topic is a command, a section or key of job files (model, train.optimizer.adam, or job\n"
        "KEY), an op (op NAME), or one of the topics that tutti help lists. With --json and no\n"
        "topic it prints all commands, flags, sections of job files, sources, transforms, layers,\n"
        "losses, metrics, optimizers, schedules, strategies and ops with their options, for\n"
        "programs that generate bindings or editors.\n",
    .flags = "json",
    .max_words = 2,
    .run = run,
};
