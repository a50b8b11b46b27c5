/*
 * generate.c - text that a trained model writes: one symbol after another, each drawn by the
 * probabilities that the model gives for what comes next.
 *
 * Draws are made by counter from the seed, and their arithmetic is our own, so a prompt and a seed
 * give the same text on every machine.
 */
#include "cli/generate.h"
#include "cli/report.h"
#include "data/text.h"
#include "model/model.h"
#include "train/scalar.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct writer {
    cli_model *m;
    const cli_args *args;
    tti_vocab vocab;
    uint32_t *points; // its characters
    int64_t context;  // symbols the model sees
    int32_t *symbols; // of the prompt, then those that were drawn
    int64_t n, n_prompt;
    int32_t *window; // [context]
    float *scores;   // [context, vocab]
} writer;

// The symbol that a draw u in [0, 1) means.
static int32_t draw(const float *scores, int64_t n, double temperature, double u)
{
    int64_t best = 0;
    double sum = 0, at = 0;
    for (int64_t i = 1; i < n; i++)
        if (scores[i] > scores[best])
            best = i;
    if (temperature == 0)
        return (int32_t)best;
    for (int64_t i = 0; i < n; i++)
        sum += tti_scalar_exp(((double)scores[i] - scores[best]) / temperature);
    for (int64_t i = 0; i < n; i++) {
        at += tti_scalar_exp(((double)scores[i] - scores[best]) / temperature);
        if (at > u * sum)
            return (int32_t)i;
    }
    return (int32_t)best;
}

// The next symbol. A row of scores depends on the symbols up to it, so what stands behind is free.
static tt_status next(writer *w, int64_t step, int32_t *out)
{
    int64_t seen = TTI_MIN(w->n, w->context);
    memset(w->window, 0, sizeof(*w->window) * (size_t)w->context);
    memcpy(w->window, w->symbols + w->n - seen, sizeof(*w->window) * (size_t)seen);
    TT_TRY(tt_predict(w->m->model, w->window, 1, w->scores));
    tti_philox r = tti_philox4((uint64_t)w->args->seed, (uint64_t)step, 0);
    double u = (double)((uint64_t)r.v[0] << 21 ^ r.v[1] >> 11) * 0x1p-53;
    *out = draw(w->scores + (seen - 1) * w->vocab.n, w->vocab.n, w->args->temperature, u);
    return TT_OK;
}

// The prompt as symbols; without one a line begins.
static tt_status read_prompt(writer *w)
{
    const char *prompt = w->args->prompt != NULL ? w->args->prompt : "";
    int32_t *symbols;
    TT_TRY(tti_vocab_symbols(w->m->j.ctx, &w->vocab, prompt, strlen(prompt), &symbols, &w->n));
    w->n_prompt = w->n;
    w->symbols = tti_calloc(w->m->j.ctx, (size_t)(w->n + w->args->length + 1), sizeof(*symbols));
    if (w->symbols != NULL)
        memcpy(w->symbols, symbols, sizeof(*symbols) * (size_t)w->n);
    tti_free(w->m->j.ctx, symbols);
    if (w->symbols == NULL)
        return TT_ENOMEM;
    if (w->n == 0) {
        int32_t newline = tti_vocab_find(&w->vocab, '\n');
        w->symbols[w->n++] = newline >= 0 ? newline : 0;
        w->n_prompt = 1;
    }
    return TT_OK;
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
    if (tt_tensor_dtype(m->inputs[0]->out) != TT_I32 ||
        tt_tensor_dtype(outputs[0].tensor) != TT_F32 ||
        -tt_shape_count(&out) != w->context * w->vocab.n)
        return TT_FAIL(ctx, TT_ESHAPE,
                       "the model returns %lld values for %lld tokens; text generation needs %lld "
                       "values per token",
                       (long long)-tt_shape_count(&out), (long long)w->context,
                       (long long)w->vocab.n);
    w->window = tti_calloc(ctx, (size_t)w->context, sizeof(*w->window));
    w->scores = tti_calloc(ctx, (size_t)(w->context * w->vocab.n), sizeof(*w->scores));
    return w->window != NULL && w->scores != NULL ? TT_OK : TT_ENOMEM;
}

// Byte by byte, as a symbol may be a part of a character: to a file as it is written, to a terminal
// without control characters.
static void print_symbols(const writer *w, int64_t first, int64_t n)
{
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    tti_text t = {.ctx = w->m->j.ctx};
    tti_vocab_put(&w->vocab, w->symbols + first, n, &t);
    char *s = tti_text_take(&t);
    for (const char *c = s; c != NULL && *c != '\0'; c++) {
        bool is_control = ((unsigned char)*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7F;
        if (is_terminal && is_control)
            printf("\\x%02x", (unsigned char)*c);
        else
            putchar(*c);
    }
    tti_free(w->m->j.ctx, s);
    fflush(stdout);
}

static void print_json(const writer *w)
{
    tti_text written = {.ctx = w->m->j.ctx}, t = {.ctx = w->m->j.ctx};
    tti_vocab_put(&w->vocab, w->symbols + w->n_prompt, w->n - w->n_prompt, &written);
    char *s = tti_text_take(&written);
    tti_text_add(&t, "{\"prompt\": ");
    tti_text_json(&t, w->args->prompt != NULL ? w->args->prompt : "");
    tti_text_add(&t, ", \"text\": ");
    tti_text_json(&t, s != NULL ? s : "");
    tti_text_add(&t, ", \"temperature\": %.9g, \"seed\": %lld}\n", w->args->temperature,
                 (long long)w->args->seed);
    tti_free(w->m->j.ctx, s);
    cli_print_text(&t);
}

static tt_status write_text(writer *w)
{
    TT_TRY(check_model(w));
    TT_TRY(read_prompt(w));
    if (!w->args->json && w->args->prompt != NULL)
        print_symbols(w, 0, w->n_prompt);
    for (int64_t i = 0; i < w->args->length; i++) {
        TT_TRY(next(w, i, &w->symbols[w->n]));
        w->n++;
        if (!w->args->json)
            print_symbols(w, w->n - 1, 1);
    }
    if (w->args->json)
        print_json(w);
    else
        cli_print("\n");
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
    writer w = {.m = m, .args = args};
    tt_status st = read_vocabulary(&w);
    if (st == TT_OK)
        st = write_text(&w);
    tti_free(m->j.ctx, w.points);
    tti_free(m->j.ctx, w.symbols);
    tti_free(m->j.ctx, w.window);
    tti_free(m->j.ctx, w.scores);
    return st;
}
