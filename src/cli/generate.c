/*
 * generate.c - text that a trained model writes: one symbol after another, each drawn by the
 * probabilities that the model gives for what comes next.
 *
 * Draws are made by counter from the seed, and their arithmetic is our own, so a prompt and a seed
 * give the same text on every machine.
 */
#include "cli/generate.h"
#include "cli/report.h"
#include "data/bpe.h"
#include "data/text.h"
#include "model/model.h"
#include "train/sampling.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct writer {
    cli_model *m;
    const cli_args *args;
    tti_sampling sampling;
    tti_vocab vocab;
    tti_bpe bpe; // instead, if there is a tokenizer
    bool has_bpe;
    uint32_t *points; // its characters
    int64_t context;  // symbols the model sees
    int64_t n_prompt, room;
    int n_texts;
    int32_t *symbols; // [texts, room]: of the prompt, then those that were drawn
    int64_t *n;       // of each text
    bool *is_over;    // a stop word came
    int32_t *window;  // [texts, context]
    float *scores;    // [texts, context, vocab]
    int32_t *order;   // [vocab]
} writer;

static int32_t *text_at(const writer *w, int i)
{
    return w->symbols + i * w->room;
}

// The next symbol of every text. A row of scores depends on the symbols up to it, so what stands
// behind is free; texts are rows of a batch, so that each is as if it were alone.
static tt_status next(writer *w, int64_t step)
{
    memset(w->window, 0, sizeof(*w->window) * (size_t)(w->context * w->n_texts));
    for (int i = 0; i < w->n_texts; i++) {
        int64_t seen = TTI_MIN(w->n[i], w->context);
        memcpy(w->window + i * w->context, text_at(w, i) + w->n[i] - seen,
               sizeof(*w->window) * (size_t)seen);
    }
    TT_TRY(tt_predict(w->m->model, w->window, w->n_texts, w->scores));
    for (int i = 0; i < w->n_texts; i++) {
        int64_t seen = TTI_MIN(w->n[i], w->context);
        tti_philox r = tti_philox4((uint64_t)w->args->seed, (uint64_t)step, (uint64_t)i);
        double u = (double)((uint64_t)r.v[0] << 21 ^ r.v[1] >> 11) * 0x1p-53;
        float *scores = w->scores + (i * w->context + seen - 1) * w->vocab.n;
        int32_t drawn =
            tti_sample(&w->sampling, scores, w->vocab.n, text_at(w, i), w->n[i], u, w->order);
        if (!w->is_over[i])
            text_at(w, i)[w->n[i]++] = drawn;
    }
    return TT_OK;
}

static tt_status read_symbols(writer *w, const char *prompt, int32_t **out)
{
    tt_ctx *ctx = w->m->j.ctx;
    int64_t cap = 0;
    if (!w->has_bpe)
        return tti_vocab_symbols(ctx, &w->vocab, prompt, strlen(prompt), out, &w->n_prompt);
    *out = NULL;
    if (!tti_grow(ctx, out, &cap, 8, sizeof(**out)))
        return TT_ENOMEM;
    tt_status st = tti_bpe_encode(&w->bpe, prompt, strlen(prompt), out, &w->n_prompt, &cap);
    if (st != TT_OK)
        tti_free(ctx, *out);
    return st;
}

// The prompt as symbols, the same for every text; without one a line begins.
static tt_status read_prompt(writer *w)
{
    const char *prompt = w->args->prompt != NULL ? w->args->prompt : "";
    tt_ctx *ctx = w->m->j.ctx;
    int32_t *symbols;
    TT_TRY(read_symbols(w, prompt, &symbols));
    if (w->n_prompt == 0) {
        int32_t newline = w->has_bpe ? w->bpe.byte['\n'] : tti_vocab_find(&w->vocab, '\n');
        symbols[w->n_prompt++] = newline >= 0 ? newline : 0; // it has room for one more
    }
    w->room = w->n_prompt + w->args->length + 1;
    w->symbols = tti_calloc(ctx, (size_t)w->n_texts, sizeof(*symbols) * (size_t)w->room);
    w->n = tti_calloc(ctx, (size_t)w->n_texts, sizeof(*w->n));
    w->is_over = tti_calloc(ctx, (size_t)w->n_texts, sizeof(*w->is_over));
    bool ok = w->symbols != NULL && w->n != NULL && w->is_over != NULL;
    for (int i = 0; ok && i < w->n_texts; i++) {
        memcpy(text_at(w, i), symbols, sizeof(*symbols) * (size_t)w->n_prompt);
        w->n[i] = w->n_prompt;
    }
    tti_free(ctx, symbols);
    return ok ? TT_OK : TT_ENOMEM;
}

static tt_status check_model(writer *w)
{
    tt_model *m = w->m->model;
    tti_output outputs[TTI_MAX_INPUTS];
    tt_ctx *ctx = w->m->j.ctx;
    if (m->n_inputs != 1 || tti_model_outputs(m, outputs) < 1)
        return TT_FAIL(ctx, TT_EUNSUPPORTED,
                       "the model has %d inputs; text generation needs a model with one",
                       m->n_inputs);
    tt_shape in = tt_tensor_shape(m->inputs[0]->out), out = tt_tensor_shape(outputs[0].tensor);
    w->context = -tt_shape_count(&in);
    if (w->has_bpe)
        w->vocab.n = out.rank == 3 ? out.dim[2] : 0;
    if (w->has_bpe && w->vocab.n < w->bpe.n)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "the tokenizer has %lld tokens but the model %lld scores for each; use the "
                       "tokenizer that the model was trained with",
                       (long long)w->bpe.n, (long long)w->vocab.n);
    if (tt_tensor_dtype(m->inputs[0]->out) != TT_I32 ||
        tt_tensor_dtype(outputs[0].tensor) != TT_F32 ||
        -tt_shape_count(&out) != w->context * w->vocab.n)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "the model returns %lld values for %lld tokens; text generation needs %lld "
                       "values per token",
                       (long long)-tt_shape_count(&out), (long long)w->context,
                       (long long)w->vocab.n);
    size_t all = (size_t)w->n_texts * (size_t)w->context;
    w->window = tti_calloc(ctx, all, sizeof(*w->window));
    w->scores = tti_calloc(ctx, all, (size_t)w->vocab.n * sizeof(*w->scores));
    w->order = tti_calloc(ctx, (size_t)w->vocab.n, sizeof(*w->order));
    return w->window != NULL && w->scores != NULL && w->order != NULL ? TT_OK : TT_ENOMEM;
}

// ---- stop words ------------------------------------------------------------------------------

static char *text_of(const writer *w, int i, int64_t first)
{
    tti_text t = {.ctx = w->m->j.ctx};
    if (w->has_bpe)
        tti_bpe_decode(&w->bpe, text_at(w, i) + first, w->n[i] - first, &t);
    else
        tti_vocab_put(&w->vocab, text_at(w, i) + first, w->n[i] - first, &t);
    tti_text_put(&t, "", 0);
    return tti_text_take(&t);
}

// Where the first stop word begins in a text that was written; its end if there is none.
static size_t stop_at(const writer *w, const char *s)
{
    size_t best = strlen(s);
    for (int k = 0; k < w->args->stops.n; k++) {
        const char *at = w->args->stops.v[k][0] != '\0' ? strstr(s, w->args->stops.v[k]) : NULL;
        if (at != NULL && (size_t)(at - s) < best)
            best = (size_t)(at - s);
    }
    return best;
}

static tt_status look_for_stops(writer *w, bool *all)
{
    *all = w->args->stops.n > 0;
    for (int i = 0; i < w->n_texts && w->args->stops.n > 0; i++) {
        char *s = w->is_over[i] ? NULL : text_of(w, i, w->n_prompt);
        if (!w->is_over[i] && s == NULL)
            return TT_ENOMEM;
        w->is_over[i] |= s != NULL && stop_at(w, s) < strlen(s);
        *all &= w->is_over[i];
        tti_free(w->m->j.ctx, s);
    }
    return TT_OK;
}

// ---- out -------------------------------------------------------------------------------------

// Byte by byte, as a symbol may be a part of a character: to a file as it is written, to a terminal
// without control characters.
static void print_bytes(const char *s, size_t n)
{
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    for (size_t i = 0; s != NULL && i < n; i++) {
        bool is_control =
            ((unsigned char)s[i] < 0x20 && s[i] != '\n' && s[i] != '\t') || s[i] == 0x7F;
        if (is_terminal && is_control)
            printf("\\x%02x", (unsigned char)s[i]);
        else
            putchar(s[i]);
    }
    fflush(stdout);
}

static void print_from(const writer *w, int i, int64_t first)
{
    char *s = text_of(w, i, first);
    if (s != NULL)
        print_bytes(s, strlen(s));
    tti_free(w->m->j.ctx, s);
}

// A text that is whole, without its stop word.
static void print_text(const writer *w, int i)
{
    char *s = text_of(w, i, w->n_prompt);
    tti_text t = {.ctx = w->m->j.ctx};
    if (s == NULL)
        return;
    s[stop_at(w, s)] = '\0';
    if (!w->args->json) {
        if (w->args->prompt != NULL)
            print_bytes(w->args->prompt, strlen(w->args->prompt));
        print_bytes(s, strlen(s));
        cli_print(i + 1 < w->n_texts ? "\n---\n" : "\n");
    } else {
        tti_text_add(&t, "{\"prompt\": ");
        tti_text_json(&t, w->args->prompt != NULL ? w->args->prompt : "");
        tti_text_add(&t, ", \"text\": ");
        tti_text_json(&t, s);
        tti_text_add(&t, ", \"temperature\": %.9g, \"seed\": %lld", w->args->temperature,
                     (long long)w->args->seed);
        if (w->n_texts > 1)
            tti_text_add(&t, ", \"sample\": %d", i);
        if (w->args->stops.n > 0)
            tti_text_add(&t, ", \"finish\": \"%s\"", w->is_over[i] ? "stop" : "length");
        tti_text_add(&t, "}\n");
        cli_print_text(&t);
    }
    tti_free(w->m->j.ctx, s);
}

static tt_status write_text(writer *w)
{
    bool flows = !w->args->json && w->n_texts == 1 && w->args->stops.n == 0, over = false;
    TT_TRY(check_model(w));
    TT_TRY(read_prompt(w));
    if (flows && w->args->prompt != NULL)
        print_from(w, 0, 0);
    for (int64_t i = 0; i < w->args->length && !over; i++) {
        TT_TRY(next(w, i));
        TT_TRY(look_for_stops(w, &over));
        if (flows)
            print_from(w, 0, w->n[0] - 1);
    }
    if (flows)
        cli_print("\n");
    for (int i = 0; !flows && i < w->n_texts; i++)
        print_text(w, i);
    return TT_OK;
}

static const json_t *vocabulary_of(const cli_model *m)
{
    const tti_use *u = tti_use_get(m->model);
    return u != NULL ? json_object_get(u->data, "vocabulary") : NULL;
}

bool cli_is_text(const cli_model *m)
{
    return vocabulary_of(m) != NULL;
}

static tt_status read_vocabulary(writer *w)
{
    const json_t *v = vocabulary_of(w->m);
    int64_t n = (int64_t)json_array_size(v);
    if (w->args->tokenizer != NULL) {
        TT_TRY(tti_bpe_read(w->m->j.ctx, w->args->tokenizer, &w->bpe));
        w->has_bpe = true;
        return TT_OK; // how many scores there are is the model's to say
    }
    w->vocab = (tti_vocab){.is_bytes = json_is_string(v), .n = json_is_string(v) ? 256 : n};
    if (w->vocab.is_bytes)
        return TT_OK;
    w->points = tti_calloc(w->m->j.ctx, (size_t)n + 1, sizeof(*w->points));
    if (w->points == NULL)
        return TT_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        w->points[i] = (uint32_t)json_integer_value(json_array_get(v, (size_t)i));
    w->vocab.points = w->points;
    return TT_OK;
}

tt_status cli_generate(cli_model *m, const cli_args *args)
{
    writer w = {.m = m,
                .args = args,
                .n_texts = args->samples > 0 ? (int)args->samples : 1,
                .sampling = {.temperature = args->temperature,
                             .top_k = args->top_k,
                             .top_p = args->top_p,
                             .penalty = args->penalty}};
    tt_status st = read_vocabulary(&w);
    if (st == TT_OK)
        st = write_text(&w);
    tti_free(m->j.ctx, w.points);
    tti_free(m->j.ctx, w.symbols);
    tti_free(m->j.ctx, w.window);
    tti_free(m->j.ctx, w.scores);
    tti_free(m->j.ctx, w.order);
    tti_bpe_free(&w.bpe);
    tti_free(m->j.ctx, w.n);
    tti_free(m->j.ctx, w.is_over);
    return st;
}

static int run(const cli_args *args)
{
    cli_model m = {0};
    int rc = cli_model_open(args, args->words[0], false, &m);
    if (rc == CLI_OK && m.model != NULL)
        rc = cli_is_text(&m) || args->tokenizer != NULL
                 ? cli_code(cli_generate(&m, args))
                 : cli_usage("generate needs a model trained on text, or the --tokenizer of one "
                             "trained on tokens; tutti predict runs others");
    return cli_model_close(&m, rc);
}

const cli_verb cli_generate_text = {
    .name = "generate",
    .words = "MODEL",
    .summary = "let a trained language model continue a text",
    .help =
        "MODEL is a run, a checkpoint or a file, as for tutti predict. Tokens are drawn one after\n"
        "another. Scores of tokens that the text already has are lowered by --penalty, divided by\n"
        "--temperature, cut to the --top-k highest and then to the most probable ones that have\n"
        "--top-p of the probability together. --samples texts are written at once, as rows of one\n"
        "batch: each is the one that it would be alone. A text ends at --length or before a "
        "--stop\n"
        "word. A model trained on the source tokens needs its --tokenizer. The same seed\n"
        "gives the same text on every machine.\n"
        "\n"
        "  tutti generate source_gpt --prompt \"static int \" --top-k 20 --penalty 1.1 --stop "
        "\";\"\n"
        "\n"
        "Every token runs the model on the whole context; there is no key/value cache.\n",
    .flags = "json quiet devices threads isa runs checkpoint prompt length temperature seed top-k "
             "top-p penalty stop samples tokenizer",
    .min_words = 1,
    .max_words = 1,
    .alone = true,
    .run = run,
};
