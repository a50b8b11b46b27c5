/*
 * cli_tokenize.c - byte-level BPE: words, merges by hand, every text comes back, files that are
 * refused; from a text to a language model that writes. The tokenizers package agrees, where
 * TUTTI_ONNX_PYTHON names a Python that has it.
 */
#include "../command.h"
#include "data/bpe.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// The words of a text, with | between them.
static const char *words(const char *text)
{
    static char out[400];
    size_t n = strlen(text), at = 0, to = 0;
    while (at < n) {
        size_t length = tti_bpe_word(text + at, n - at);
        CHECK(length > 0 && length <= n - at);
        memcpy(out + to, text + at, length);
        at += length;
        to += length;
        out[to++] = '|';
    }
    out[to] = '\0';
    return out;
}

TEST(bpe_words_are_those_of_gpt2)
{
    ck_assert_str_eq(words("I'll go, don't"), "I|'ll| go|,| don|'t|");
    ck_assert_str_eq(words("a  b   c "), "a| | b|  | c| |");
    ck_assert_str_eq(words("x1y 23.5!?"), "x|1|y| 23|.|5|!?|");
    ck_assert_str_eq(words("\n\n  if\t(x)"), "\n\n | if|\t|(|x|)|");
    ck_assert_str_eq(words("Grüße 日本 ½ 'S"), "Grüße| 日本| ½| '|S|");
    ck_assert_str_eq(words("\xff\xfe \xff"), "\xff\xfe| \xff|");
    ck_assert_str_eq(words("  "), "  |");
}

TEST(bpe_bytes_have_characters)
{
    bool seen[1024] = {false};
    for (int i = 0; i < 256; i++) {
        uint32_t c = tti_bpe_char(i);
        CHECK(c < 1024 && !seen[c] && tti_bpe_byte(c) == i);
        seen[c] = true;
    }
    CHECK(tti_bpe_char(' ') == 0x120 && tti_bpe_char('\n') == 0x10a && tti_bpe_byte(' ') == -1);
}

static void learn(tt_ctx *ctx, const char *text, int64_t vocab, tti_bpe *t)
{
    tti_bpe_words *w = tti_bpe_words_new(ctx);
    CHECK_OK(tti_bpe_count(w, text, strlen(text)));
    CHECK_OK(tti_bpe_learn(w, vocab, t));
    tti_bpe_words_free(w);
}

static const char *token(const tti_bpe *t, int64_t id)
{
    static char out[100];
    snprintf(out, sizeof(out), "%.*s", (int)(t->at[id + 1] - t->at[id]), t->pool + t->at[id]);
    return out;
}

// ab occurs 3 times; then " ab" and "abc" twice each: the space is the lower token.
TEST(bpe_learns_the_most_frequent_pair)
{
    tt_ctx *ctx = test_ctx();
    tti_bpe t;
    learn(ctx, "ab abc abc", 300, &t);
    ck_assert_int_eq(t.n, 259);
    ck_assert_str_eq(token(&t, 256), "ab");
    ck_assert_str_eq(token(&t, 257), " ab");
    ck_assert_str_eq(token(&t, 258), " abc");
    tti_bpe_free(&t);
    CHECK_OK(tt_close(ctx));
}

TEST(bpe_gives_every_text_back)
{
    tt_ctx *ctx = test_ctx();
    tti_bpe t;
    char text[3000];
    for (int i = 0; i < 2999; i++) { // words of all lengths, also over 64 bytes
        tti_philox r = tti_philox4(5, (uint64_t)i, 0);
        const char three[] = {(char)('a' + r.v[0] % 3), (char)(r.v[0] % 255 + 1),
                              " xyz"[r.v[0] % 4]};
        text[i] = three[i / 1000];
    }
    text[2999] = '\0';
    learn(ctx, text, 400, &t);
    for (int round = 0; round < 2; round++) {
        int32_t *ids = NULL;
        int64_t n = 0, cap = 0;
        tti_text back = {.ctx = ctx};
        char path[600];
        CHECK_OK(tti_bpe_encode(&t, text, 2999, &ids, &n, &cap));
        CHECK(n < 2999 / 2 + 700);
        tti_bpe_decode(&t, ids, n, &back);
        CHECK(back.n == 2999 && memcmp(back.s, text, 2999) == 0);
        tti_text_free(&back);
        tti_free(ctx, ids);
        snprintf(path, sizeof(path), "%s/t.json", test_folder()); // and from a file
        if (round == 0) {
            CHECK_OK(tti_bpe_write(&t, path));
            tti_bpe_free(&t);
            CHECK_OK(tti_bpe_read(ctx, path, &t));
        }
    }
    tti_bpe_free(&t);
    CHECK_OK(tt_close(ctx));
}

TEST(tokenizer_files_are_refused_by_name)
{
    static const struct {
        const char *sed, *words;
    } bad[] = {
        {"s/\"type\": \"BPE\"/\"type\": \"WordPiece\"/", "model.type is 'WordPiece'"},
        {"s/\"normalizer\": null/\"normalizer\": {\"type\": \"NFC\"}/", "normalizer.type is 'NFC'"},
        {"s/\"pre_tokenizer\": {\"type\": \"ByteLevel\"/\"pre_tokenizer\": {\"type\": "
         "\"Sequence\"/",
         "pre_tokenizer.type is 'Sequence'"},
        {"s/\"byte_fallback\": false/\"byte_fallback\": true/", "byte_fallback is 'set'"},
        {"s/^\"ab\": 256/\"qq\": 256/", "merge 0 makes 'ab', which the vocabulary lacks"},
        {"s/^\"!\": 0/\"!!\": 0/", "no token for byte 33, '!'"},
        {"s/: 257/: 256/", "no valid vocabulary"},
        {"$d", "line "},
    };
    command_write("t.txt", "ab abc abc");
    command_ok("tokenize t.txt --train 300 --tokenizer good.json --output t.bin");
    CHECK_HAS(command_out, "good.json: 259 tokens learned\n");
    CHECK_HAS(command_out, "t.bin: 3 tokens of 16 bits, 3.33 bytes each; vocabulary 259\n");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char line[600];
        snprintf(line, sizeof(line), "sed '%s' good.json > bad.json; ! cmp -s good.json bad.json",
                 bad[i].sed);
        CHECK(command_shell(line) == 0);
        CHECK(command_run("tokenize t.txt --tokenizer bad.json --output no.bin") != 0);
        CHECK_HAS(command_err, bad[i].words);
        CHECK(!command_left("no.bin"));
    }
    CHECK(command_run("tokenize t.txt --output no.bin") == 2);
    CHECK(command_run("tokenize t.txt --tokenizer good.json") == 2);
    CHECK(command_run("tokenize none.txt --tokenizer good.json --output no.bin") != 0);
    CHECK_HAS(command_err, "none.txt");
}

TEST(tokens_train_a_model_that_writes)
{
    char text[2000] = "";
    for (int i = 0; i < 60; i++)
        strcat(text, "the cat sat on the mat\n");
    command_write("t.txt", text);
    command_ok("tokenize t.txt --train 270 --tokenizer t.json --output t.bin");
    command_write("lm.yaml",
                  "data: {train: {tokens: {file: t.bin, bits: 16, vocab: 270, context: 8}}}\n"
                  "model: {gpt: {layers: 1, heads: 2, width: 16}}\n"
                  "train: {epochs: 40, batch: 8, loss: cross_entropy, optimizer: {adam: {lr: "
                  "1e-2}}}\n");
    command_ok("train lm.yaml --quiet");
    command_ok("generate lm --tokenizer t.json --prompt the --length 20 --temperature 0");
    CHECK_HAS(command_out, "the cat sat on the mat\nthe cat");
    CHECK(command_run("generate lm --prompt the") == 2);
    CHECK_HAS(command_err, "--tokenizer");
}

TEST(tokenizers_package_agrees)
{
    static char log[1 << 14];
    char line[2000];
    const char *exe = getenv("TUTTI_ONNX_PYTHON"), *script = "tests/python/tokenizers_test";
    if (exe == NULL || access(exe, X_OK) != 0 || access(script, R_OK) != 0)
        test_skip("no Python with tokenizers (TUTTI_ONNX_PYTHON)");
    snprintf(line, sizeof(line), "'%s' '%s' '%s' '%s' >'%s/python.log' 2>&1", exe, script,
             command_path(), test_folder(), test_folder());
    int rc = system(line);
    if (WEXITSTATUS(rc) == 77)
        test_skip("TUTTI_ONNX_PYTHON has no tokenizers");
    command_read("python.log", log, sizeof(log));
    ck_assert_msg(rc == 0, "%s", log);
}
