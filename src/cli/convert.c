/*
 * convert.c - tutti convert: weights of a checkpoint or a safetensors file into one plain
 * safetensors file, under other names if wanted; a model into an ONNX file.
 */
#include "cli/convert_torch.h"
#include "model/model.h"
#include "save/card.h"
#include "save/onnx.h"
#include "save/rename.h"
#include "save/source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct result {
    tti_named *tensors; // with new names
    int64_t n, left_out;
    tt_hash hash;
} result;

static tt_status choose(tt_ctx *ctx, const cli_args *args, const tti_source *src, result *r)
{
    char name[TTI_RENAME_MAX];
    TT_TRY(tti_rename_check(ctx, args->map));
    for (int64_t i = 0; i < src->n; i++) {
        TT_TRY(tti_rename(ctx, args->map, src->tensors[i].name, name));
        bool wanted = args->only == NULL || tti_match(args->only, name);
        bool foreign = (int)src->tensors[i].dtype == TT_N_DTYPES;
        if (!wanted || (foreign && args->partial)) {
            r->left_out++;
            continue;
        }
        TT_TRY(foreign ? tti_safetensors_usable(&src->table, i) : TT_OK);
        tti_named *t = &r->tensors[r->n];
        *t = src->tensors[i];
        t->name = tti_strdup(ctx, name);
        if (t->name == NULL)
            return TT_ENOMEM;
        r->n++;
    }
    if (r->n == 0 && src->n > 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: none of its %lld tensors is left", src->file,
                       (long long)src->n);
    return TT_OK;
}

static bool ends_with(const char *s, const char *ending)
{
    size_t n = strlen(s), k = strlen(ending);
    return n >= k && strcasecmp(s + n - k, ending) == 0;
}

// How a checkpoint's training went, as JSON.
static char *training_of(tt_ctx *ctx, const tti_train_state *s)
{
    tti_text t = {.ctx = ctx};
    tti_text_add(&t, "{\"steps\": %lld, \"records\": %lld", (long long)s->step,
                 (long long)s->cursor);
    if (s->count > 0)
        tti_text_add(&t, ", \"epochs\": %.6g, \"records_of_an_epoch\": %lld",
                     (double)s->cursor / (double)s->count, (long long)s->count);
    if (s->batch > 0)
        tti_text_add(&t, ", \"batch\": %lld", (long long)(s->batch * s->accumulate));
    if (s->best.has_best)
        tti_text_add(&t, ", \"best\": %.9g", s->best.best);
    tti_text_add(&t, ", \"seed\": %llu, \"arithmetic\": %d}", (unsigned long long)s->seed,
                 s->arithmetic);
    return tti_text_take(&t);
}

#define MAX_METADATA 64

/*
 * What the file says of itself: what its source says, and the model's card, unless tensors have
 * other names now or are missing.
 */
static tt_status write_file(tt_ctx *ctx, const cli_args *args, const tti_source *src, result *r)
{
    const char *out[2 * MAX_METADATA + 8] = {"format", "tutti"};
    char file[TTI_PATH_MAX], *card_text = NULL, *training = NULL;
    json_t *card = NULL;
    bool whole = args->map == NULL && r->left_out == 0;
    int n = 2;
    TT_TRY(tti_card_read(ctx, src->file, file, &card));
    if (card != NULL && whole)
        card_text = json_dumps(card, 0);
    json_decref(card);
    if (!whole || card_text == NULL) {
        if (ends_with(args->words[1], ".tutti")) {
            free(card_text);
            return TT_FAIL(ctx, TT_EUNSUPPORTED,
                           "'%s': a model needs %s; write a .safetensors file", args->words[1],
                           whole ? "a description of its layers, which the weights do not have"
                                 : "all its tensors under their names");
        }
    }
    if (!src->is_checkpoint)
        n = 0;
    for (char **m = src->is_checkpoint ? NULL : src->table.metadata;
         m != NULL && *m != NULL && n < 2 * MAX_METADATA; m += 2) {
        if (strcmp(m[0], TTI_CARD) == 0)
            continue;
        out[n++] = m[0];
        out[n++] = m[1];
    }
    if (src->is_checkpoint && src->snapshot.state.step > 0 &&
        (training = training_of(ctx, &src->snapshot.state)) != NULL) {
        out[n++] = TTI_CARD_TRAINING;
        out[n++] = training;
    }
    if (card_text != NULL) {
        out[n++] = TTI_CARD;
        out[n++] = card_text;
    }
    out[n] = NULL;
    tt_status st = tti_safetensors_write(ctx, args->words[1], r->tensors, r->n, out, &r->hash);
    free(card_text);
    tti_free(ctx, training);
    return st;
}

static tt_status convert(tt_ctx *ctx, const cli_args *args, const tti_source *src, result *r)
{
    r->tensors = tti_calloc(ctx, (size_t)src->n + 1, sizeof(*r->tensors));
    if (r->tensors == NULL)
        return TT_ENOMEM;
    tt_status st = choose(ctx, args, src, r);
    if (st == TT_OK)
        st = write_file(ctx, args, src, r);
    for (int64_t i = 0; i < r->n; i++)
        tti_free(ctx, (char *)r->tensors[i].name);
    tti_free(ctx, r->tensors);
    return st;
}

static void tell(tt_ctx *ctx, const cli_args *args, const result *r)
{
    if (cli_is_stdout(args->words[1]))
        return; // nothing behind the data
    if (!args->json) {
        cli_printf("%s: %lld tensor%s", args->words[1], (long long)r->n, r->n == 1 ? "" : "s");
        if (r->left_out > 0)
            printf(", %lld left out", (long long)r->left_out);
        printf("\n");
        return;
    }
    tti_text t = {.ctx = ctx};
    tti_text_add(&t, "{\"path\": ");
    tti_text_json(&t, args->words[1]);
    tti_text_add(&t, ", \"tensors\": %lld, \"left_out\": %lld, \"xxh3_128\": \"%016llx%016llx\"}\n",
                 (long long)r->n, (long long)r->left_out, (unsigned long long)r->hash.high,
                 (unsigned long long)r->hash.low);
    cli_print_text(&t);
}

// A name that promises another format is refused: who reads it would find safetensors in it.
static int check_name(const char *out)
{
    const char *slash = strrchr(out, '/'), *dot = strrchr(slash != NULL ? slash : out, '.');
    if (dot == NULL || cli_is_stdout(out) || strcasecmp(dot, ".safetensors") == 0 ||
        strcasecmp(dot, ".tutti") == 0 || strcasecmp(dot, ".onnx") == 0)
        return CLI_OK;
    return cli_usage("tutti convert: '%s': the format '%s' cannot be written; use .tutti (a whole "
                     "model), .safetensors (weights, read by PyTorch, Hugging Face and others) or "
                     ".onnx (ONNX Runtime and others)",
                     out, dot);
}

// Flags that say something of a file of weights, or of an ONNX file alone.
static int check_flags(const cli_args *args, bool is_onnx)
{
    const char *weights = args->map != NULL    ? "--map"
                          : args->only != NULL ? "--only"
                          : args->to != NULL   ? "--to"
                          : args->partial      ? "--partial"
                                               : NULL;
    if (is_onnx && weights != NULL)
        return cli_usage("%s does not go with an .onnx file, which holds a whole model", weights);
    if (!is_onnx && args->plain)
        return cli_usage("--plain is for .onnx files, not for '%s'", args->words[1]);
    return CLI_OK;
}

static int to_onnx(tt_ctx *ctx, const cli_args *args)
{
    char path[TTI_PATH_MAX];
    const char *out = args->words[1];
    tt_model *m = NULL;
    if (cli_weights_find(ctx, args, args->words[0], path) == TT_OK)
        m = tt_model_load(ctx, path);
    if (m != NULL && tt_export_onnx(m, out, .raw = !args->plain) == TT_OK) {
        tti_text t = {.ctx = ctx};
        if (args->json) {
            tti_text_add(&t, "{\"path\": ");
            tti_text_json(&t, out);
            tti_text_add(&t, ", \"format\": \"onnx\", \"opset\": %d, \"ir\": %d, \"plain\": %s}\n",
                         TTI_ONNX_OPSET, TTI_ONNX_IR, args->plain ? "true" : "false");
            cli_print_text(&t);
        } else if (!cli_is_stdout(out)) {
            cli_printf("%s: ONNX, opset %d, %s\n", out, TTI_ONNX_OPSET,
                       args->plain ? "without preprocessing" : "takes and gives what predict does");
        }
    }
    tt_model_free(m);
    return cli_close(ctx, NULL);
}

static int run(const cli_args *args)
{
    char path[TTI_PATH_MAX];
    bool is_onnx = ends_with(args->words[1], ".onnx");
    if (check_name(args->words[1]) != CLI_OK || check_flags(args, is_onnx) != CLI_OK)
        return CLI_USAGE;
    if (args->to != NULL && strcmp(args->to, "torch") != 0)
        return cli_usage("--to: '%s' cannot be written; use torch", args->to);
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    if (is_onnx)
        return to_onnx(ctx, args);
    if (args->to != NULL) {
        result r = {0};
        if (cli_weights_find(ctx, args, args->words[0], path) == TT_OK &&
            cli_convert_to_torch(ctx, args, path, &r.n, &r.hash) == TT_OK)
            tell(ctx, args, &r);
        return cli_close(ctx, NULL);
    }
    tti_source *src = tti_calloc(ctx, 1, sizeof(*src));
    if (src != NULL && cli_weights_find(ctx, args, args->words[0], path) == TT_OK &&
        tti_source_open(ctx, path, src) == TT_OK) {
        result r = {0};
        if (convert(ctx, args, src, &r) == TT_OK)
            tell(ctx, args, &r);
        tti_source_close(ctx, src);
    }
    tti_free(ctx, src);
    return cli_close(ctx, NULL);
}

const cli_verb cli_convert = {
    .name = "convert",
    .words = "IN OUT",
    .summary = "write a trained model, or its weights, to one file",
    .help =
        "IN is a checkpoint, a safetensors file, a .pt file, or a run (its folder or name, or the\n"
        "name or file of a job): then its newest checkpoint. OUT is written atomically.\n"
        "NAME.tutti is a model for tutti predict and tt_model_load(), with its layers,\n"
        "preprocessing and class names; NAME.safetensors is the same file for other programs,\n"
        "which read its weights; NAME.onnx is the model for ONNX Runtime and others: it takes\n"
        "records and gives results as tutti predict does, or with --plain as the model does.\n"
        "Other formats are refused. --map renames tensors: the first rule that matches applies,\n"
        "and * stands for the same text on both sides.\n"
        "\n"
        "  tutti convert runs/digits-001 digits.safetensors --map \"dense_1.*=fc.*\"\n"
        "\n"
        "To load such a file into a job, use the key init.\n"
        "\n"
        "--to torch writes matrices, kernels and names in PyTorch's layout, for\n"
        "model.load_state_dict(safetensors.torch.load_file(OUT)); --map huggingface_gpt2 gives\n"
        "a GPT the names of Hugging Face's GPT-2. From a .pt file only tensors are read; code in\n"
        "it never runs.\n",
    .flags = "json runs map only partial to plain",
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
