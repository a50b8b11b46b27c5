/*
 * data_text.c - tokens and text: windows, parts, several files, vocabularies, bad bytes.
 */
#include "data/text.h"
#include "data_test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// ---- tokens ----------------------------------------------------------------------------------

static tt_tokens_opts options; // of open_tokens(), file apart

static tt_data *open_tokens(tt_ctx *ctx)
{
    static char list[900];
    tt_tokens_opts o = options;
    o.opts_size = sizeof(o);
    o.no_shuffle = true;
    snprintf(list, sizeof(list), " %s , %s", data_path("a.bin"), data_path("b.bin"));
    o.file = list;
    return tt_tokens_with(ctx, &o);
}

// 60 and 41 tokens: 0, 1, ..., 100.
static void write_tokens(int bytes)
{
    for (int f = 0; f < 2; f++) {
        uint8_t raw[500];
        size_t n = 0;
        for (int v = f * 60; v < (f == 0 ? 60 : 101); v++)
            for (int k = 0; k < bytes; k++)
                raw[n++] = k == 0 ? (uint8_t)v : 0;
        data_write(f == 0 ? "a.bin" : "b.bin", raw, n);
    }
}

TEST(tokens_windows)
{
    tt_ctx *ctx = test_ctx();
    for (int bits = 16; bits <= 32; bits += 16) {
        write_tokens(bits / 8);
        for (int context = 1; context <= 100; context += 9) {
            for (int stride = 0; stride <= 12; stride += 4) {
                options = (tt_tokens_opts){
                    .context = context, .stride = stride, .vocab = 101, .bits = bits};
                tt_data *d = open_tokens(ctx);
                tt_field f[TT_MAX_FIELDS];
                tt_batch_data b = data_all(d);
                tt_data_fields(d, f);
                CHECK(f[0].shape.dim[0] == context && f[1].classes == 101);
                int step = stride == 0 ? context : stride;
                CHECK_INT(b.rows, (101 - context - 1) / step + 1);
                for (int i = 0; i < b.rows; i++)
                    for (int k = 0; k < context; k++) {
                        CHECK_INT(((const int32_t *)b.fields[0])[i * context + k], i * step + k);
                        CHECK_INT(((const int32_t *)b.fields[1])[i * context + k],
                                  i * step + k + 1);
                    }
                tt_data_free(d);
            }
        }
    }
    CHECK_OK(tt_close(ctx));
}

// Parts of a text share no symbol but the one that ends the first part's last target.
TEST(tokens_parts)
{
    tt_ctx *ctx = test_ctx();
    write_tokens(2);
    options = (tt_tokens_opts){.context = 10, .vocab = 101, .to = 0.5};
    tt_batch_data b = data_all(open_tokens(ctx));
    CHECK_INT(b.rows, 4); // 50 tokens
    options = (tt_tokens_opts){.context = 10, .vocab = 101, .from = 0.5};
    b = data_all(open_tokens(ctx));
    CHECK_INT(b.rows, 5); // 51
    CHECK_INT(((const int32_t *)b.fields[0])[0], 50);
    CHECK_OK(tt_close(ctx));
}

TEST(tokens_refusals)
{
    write_tokens(2);
    static const struct {
        tt_tokens_opts o;
        const char *words;
    } bad[] = {
        {{.context = 101, .vocab = 101}, "has only 101 tokens from token 0 on"},
        {{.vocab = 101}, "context must be given"},
        {{.context = 4}, "vocab must be given"},
        {{.context = 4, .vocab = 101, .bits = 24}, "bits is 24"},
        {{.context = 4, .vocab = 101, .from = 0.5, .to = 0.5}, "from is 0.5 and to is 0.5"},
        {{.context = 4, .vocab = 101, .stride = -1}, "stride -1 is below 0"},
        {{.context = 4, .vocab = 101, .bits = 32}, "b.bin: has 82 bytes"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options = bad[i].o;
        data_refuses(open_tokens, bad[i].words);
    }
    tt_ctx *ctx = test_ctx();
    tt_batch_data b;
    options = (tt_tokens_opts){.context = 10, .vocab = 80, .batch = 1};
    tt_data *d = open_tokens(ctx);
    CHECK_OK(tt_data_start(d, 0, 0));
    for (int i = 0; i < 7; i++)
        CHECK_OK(tt_data_next(d, &b));
    CHECK(tt_data_next(d, &b) == TT_EPARSE); // tokens 70 to 80
    CHECK_MESSAGE(ctx, "b.bin: record 7: token 80, at byte 40, must be below 80 (vocab)");
    tt_clear_error(ctx);
    CHECK(tt_tokens(ctx, .file = data_path("c*.bin"), .context = 1, .vocab = 9) == NULL);
    CHECK_MESSAGE(ctx, "tokens: no file matches '");
    tt_clear_error(ctx);
    CHECK(tt_tokens(ctx, .file = " , ", .context = 1, .vocab = 9) == NULL);
    CHECK_MESSAGE(ctx, "file must be given");
    CHECK(tt_close(ctx) == TT_EINVAL);
    options = (tt_tokens_opts){.context = 10, .vocab = 101};
    data_no_memory(open_tokens);
}

// ---- text ------------------------------------------------------------------------------------

static const char *level;

static tt_data *open_text(tt_ctx *ctx)
{
    return tt_text(ctx, .file = data_path("*.txt"), .context = 3, .stride = 1, .level = level,
                   .no_shuffle = true);
}

static char *as_text(tt_data *d, const int32_t *symbols, int64_t n)
{
    static char out[20000];
    tti_vocab v;
    tti_text t = {0};
    CHECK(tti_text_vocab(d, &v));
    tti_vocab_put(&v, symbols, n, &t);
    char *s = tti_text_take(&t);
    CHECK(s != NULL && strlen(s) < sizeof(out));
    strcpy(out, s);
    tti_free(NULL, s);
    return out;
}

TEST(text_characters)
{
    tt_ctx *ctx = test_ctx();
    data_text("b.txt", "\u00e9 \U0001f600!");
    data_text("a.txt", "ab\u00e9");
    data_text("B.txt", "a");
    level = "char";
    tt_data *d = open_text(ctx); // B a b, by bytes: "a" "abé" "é 😀!"
    tti_vocab v;
    tt_field f[TT_MAX_FIELDS];
    CHECK(tti_text_vocab(d, &v));
    static const uint32_t points[] = {' ', '!', 'a', 'b', 0xe9, 0x1f600};
    CHECK_INT(v.n, 6);
    CHECK(!v.is_bytes && memcmp(v.points, points, sizeof(points)) == 0);
    tt_data_fields(d, f);
    CHECK(f[0].classes == 6 && f[1].classes == 6 && f[0].shape.dim[0] == 3);
    tt_batch_data b = data_all(d);
    CHECK_INT(b.rows, 5); // 8 characters
    CHECK_STR(as_text(d, b.fields[0], 3), "aab");
    CHECK_STR(as_text(d, (const int32_t *)b.fields[1] + 12, 3), " \U0001f600!");
    CHECK_STR(as_text(d, (int32_t[]){6, -1, 0}, 3), "\ufffd\ufffd ");

    int32_t *symbols;
    int64_t n;
    CHECK_OK(tti_vocab_symbols(ctx, &v, "\u00e9a\U0001f600", 7, &symbols, &n));
    CHECK(n == 3 && symbols[0] == 4 && symbols[1] == 2 && symbols[2] == 5);
    tti_free(ctx, symbols);
    CHECK(tti_vocab_symbols(ctx, &v, "az", 2, &symbols, &n) == TT_EINVAL);
    CHECK_MESSAGE(ctx, "character U+007A, at byte 1, is not in the vocabulary");
    tt_clear_error(ctx);

    level = "byte";
    d = open_text(ctx);
    tt_data_fields(d, f);
    b = data_all(d);
    CHECK(f[0].classes == 256 && b.rows == 13 - 3);
    CHECK(((const int32_t *)b.fields[0])[9] == 0xc3); // from é of a.txt on
    CHECK_STR(as_text(d, (const int32_t *)b.fields[0] + 9, 2), "\u00e9");
    CHECK_OK(tt_close(ctx));
}

// More characters than are read at once, in all lengths, against decoding by hand.
TEST(text_long)
{
    tt_ctx *ctx = test_ctx();
    static const uint32_t some[] = {'a', 'b', 0xe9, 0x20ac, 0x1f600, '\n'};
    static int want[9000];
    static char file[40000];
    size_t n = 0;
    uint64_t z = 7;
    for (int i = 0; i < 9000; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        want[i] = (int)(z >> 33) % 6;
        n += (size_t)tti_utf8_put(some[want[i]], file + n);
    }
    static const int order[] = {1, 2, 3, 4, 5, 0}; // symbol of each: '\n' comes first
    data_write("a.txt", file, n);
    for (int context = 1; context < 9000; context = context * 3 + 1) {
        tt_data *d = tt_text(ctx, .file = data_path("a.txt"), .context = context, .stride = 251,
                             .no_shuffle = true, .workers = 2);
        tt_batch_data b = data_all(d);
        for (int64_t i = 0; i < b.rows; i++)
            for (int k = 0; k < context; k++) {
                CHECK_INT(((const int32_t *)b.fields[0])[i * context + k],
                          order[want[i * 251 + k]]);
                CHECK_INT(((const int32_t *)b.fields[1])[i * context + k],
                          order[want[i * 251 + k + 1]]);
            }
        tt_data_free(d);
    }
    // Train and test parts have one vocabulary.
    tti_vocab v, w;
    tt_data *train = tt_text(ctx, .file = data_path("a.txt"), .context = 5, .to = 0.9);
    tt_data *test = tt_text(ctx, .file = data_path("a.txt"), .context = 5, .from = 0.9);
    CHECK(tti_text_vocab(train, &v) && tti_text_vocab(test, &w) && v.n == 6 && w.n == 6);
    CHECK(tt_data_count(train) == (8100 - 6) / 5 + 1 && tt_data_count(test) == (900 - 6) / 5 + 1);
    tt_data *digits = tt_digits(ctx);
    CHECK(!tti_text_vocab(digits, &v) && !tti_text_vocab(NULL, &v));
    CHECK_OK(tt_close(ctx));
}

TEST(text_bad_utf8)
{
    static const struct {
        const char *bytes;
        int n, at;
    } bad[] = {
        {"abc\xff", 4, 3},       {"ab\xc3", 3, 2},        {"\xc0\x80zz", 4, 0},
        {"a\xe0\x80\x80", 4, 1}, {"\xed\xa0\x80z", 4, 0}, {"\xf4\x90\x80\x80", 4, 0},
        {"abc\x80", 4, 3},       {"\xf0\x9f\x98", 3, 0},
    };
    level = "char";
    data_text("a.txt", "fine");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char words[64];
        data_write("b.txt", bad[i].bytes, (size_t)bad[i].n);
        snprintf(words, sizeof(words), "b.txt: byte %d is not valid UTF-8", bad[i].at);
        data_refuses(open_text, words);
    }
    level = "byte";
    tt_ctx *ctx = test_ctx();
    CHECK(open_text(ctx) != NULL);
    CHECK_OK(tt_close(ctx));
    level = "word";
    data_refuses(open_text, "level is 'word'");
}

TEST(text_packed_and_without_memory)
{
    tt_ctx *ctx = test_ctx();
    level = "char";
    data_gzip("a.txt", "hello w\u00f6rld", 12);
    tt_data *d = open_text(ctx);
    tt_batch_data b = data_all(d);
    CHECK_STR(as_text(d, (const int32_t *)b.fields[0] + 15, 3), " w\u00f6");
    CHECK_OK(tt_close(ctx));
    data_no_memory(open_text);
}

// A name that looks like a glob but is a file's.
TEST(text_name_with_brackets)
{
    tt_ctx *ctx = test_ctx();
    data_text("a[1].txt", "hello");
    CHECK(tt_text(ctx, .file = data_path("a[1].txt"), .context = 2) != NULL);
    CHECK_OK(tt_close(ctx));
}
