/*
 * tokenize.c - tutti tokenize: text files to a file of tokens, which the data source tokens reads.
 */
#include "base/file.h"
#include "cli/cli.h"
#include "data/bpe.h"
#include <string.h>

#define TEXT_MAX ((size_t)8 << 30) // of a file

typedef struct tokens {
    const cli_args *args;
    tt_ctx *ctx;
    tti_bpe bpe;
    tti_writer out;
    bool is_open;
    int32_t *ids;
    int64_t n, cap, all;
    uint64_t bytes;
} tokens;

static tt_status learn(tokens *t)
{
    tti_bpe_words *w = tti_bpe_words_new(t->ctx);
    tt_status st = w == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < t->args->n_words; i++) {
        char *text;
        size_t n;
        st = tti_stream_read(t->ctx, t->args->words[i], TEXT_MAX, &text, &n);
        if (st != TT_OK)
            break;
        st = tti_bpe_count(w, text, n);
        tti_free(t->ctx, text);
    }
    if (st == TT_OK)
        st = tti_bpe_learn(w, t->args->train, &t->bpe);
    tti_bpe_words_free(w);
    return st == TT_OK ? tti_bpe_write(&t->bpe, t->args->tokenizer) : st;
}

static int bits_of(const tokens *t)
{
    return t->bpe.n <= 65536 ? 16 : 32;
}

static tt_status put(tokens *t)
{
    char part[4096];
    size_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        uint32_t id = (uint32_t)t->ids[i];
        for (int k = 0; k < bits_of(t) / 8; k++)
            part[n++] = (char)(id >> 8 * k & 255);
        if (n + 4 > sizeof(part) || i + 1 == t->n) {
            TT_TRY(tti_writer_add(&t->out, part, n));
            n = 0;
        }
    }
    t->all += t->n;
    t->n = 0;
    return TT_OK;
}

static tt_status encode(tokens *t)
{
    tt_hash hash;
    TT_TRY(tti_writer_open(t->ctx, t->args->output, true, &t->out));
    t->is_open = true;
    for (int i = 0; i < t->args->n_words; i++) {
        char *text;
        size_t n;
        TT_TRY(tti_stream_read(t->ctx, t->args->words[i], TEXT_MAX, &text, &n));
        tt_status st = tti_bpe_encode(&t->bpe, text, n, &t->ids, &t->n, &t->cap);
        tti_free(t->ctx, text);
        TT_TRY(st);
        t->bytes += n;
        TT_TRY(put(t));
    }
    t->is_open = false;
    return tti_writer_close(&t->out, &hash);
}

static void tell(const tokens *t)
{
    const char *out = t->args->output;
    tti_text s = {.ctx = t->ctx};
    if (t->args->json) {
        tti_text_add(&s, "{\"tokenizer\": ");
        tti_text_json(&s, t->args->tokenizer);
        tti_text_add(&s, ", \"vocab\": %lld", (long long)t->bpe.n);
        if (out != NULL) {
            tti_text_add(&s, ", \"path\": ");
            tti_text_json(&s, out);
            tti_text_add(&s, ", \"bits\": %d, \"tokens\": %lld, \"bytes\": %llu", bits_of(t),
                         (long long)t->all, (unsigned long long)t->bytes);
        }
        tti_text_add(&s, "}\n");
        cli_print_text(&s);
        return;
    }
    if (t->args->train > 0)
        cli_printf("%s: %lld tokens learned\n", t->args->tokenizer, (long long)t->bpe.n);
    if (out != NULL)
        cli_printf("%s: %lld tokens of %d bits, %.2f bytes each; vocabulary %lld\n", out,
                   (long long)t->all, bits_of(t),
                   t->all > 0 ? (double)t->bytes / (double)t->all : 0, (long long)t->bpe.n);
}

static int run(const cli_args *args)
{
    if (args->tokenizer == NULL)
        return cli_usage("tokenize needs --tokenizer FILE: a tokenizer.json to read, or with "
                         "--train N to write");
    if (args->train == 0 && args->output == NULL)
        return cli_usage("tokenize needs --output FILE, or --train N to learn a tokenizer");
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return CLI_FAILED;
    tokens t = {.args = args, .ctx = ctx};
    tt_status st = args->train > 0 ? learn(&t) : tti_bpe_read(ctx, args->tokenizer, &t.bpe);
    if (st == TT_OK && args->output != NULL)
        st = encode(&t);
    if (t.is_open)
        tti_writer_drop(&t.out);
    if (st == TT_OK)
        tell(&t);
    tti_free(ctx, t.ids);
    tti_bpe_free(&t.bpe);
    return cli_close(ctx, NULL);
}

const cli_verb cli_tokenize = {
    .name = "tokenize",
    .words = "FILE...",
    .summary = "turn text into tokens, learn a tokenizer",
    .help =
        "Byte-level BPE: --tokenizer is a tokenizer.json of Hugging Face's tokenizers (GPT-2 and\n"
        "others with its word rule). --output is written for the data source tokens: u16, or u32\n"
        "for more than 65,536 tokens. With --train N the tokenizer is learned from the files and\n"
        "written, with N tokens; the tokenizers package can read it.\n"
        "\n"
        "  tutti tokenize books/*.txt --train 8000 --tokenizer books.json --output books.bin\n"
        "  tutti tokenize more.txt --tokenizer books.json --output more.bin\n",
    .flags = "json quiet tokenizer train output",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .run = run,
};
