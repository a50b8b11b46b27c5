/*
 * text.c - text as a source: windows of bytes, or of characters.
 *
 * Characters take one to four bytes, so a text's characters are counted once, and where each block
 * of them begins is kept: eight bytes for every 256 characters. The text itself stays on disk.
 */
#include "data/text.h"
#include "data/data.h"
#include "data/window.h"
#include <stddef.h>
#include <string.h>

#define CHUNK  4096
#define BLOCK  256 // characters between two places that are known
#define POINTS 0x110000

typedef struct text {
    tti_files files;
    tti_window window;
    bool is_bytes;
    int64_t n;       // characters of all files
    uint32_t *vocab; // characters that occur, rising
    int64_t n_vocab;
    int32_t ascii[128]; // symbols of the first characters
    int64_t *blocks;    // byte at which character k * BLOCK begins; NULL: character k is at byte k
    int64_t n_blocks, cap_blocks;
} text;

static tti_vocab vocab_of(const text *t)
{
    return (tti_vocab){
        .is_bytes = t->is_bytes, .n = t->is_bytes ? 256 : t->n_vocab, .points = t->vocab};
}

// ---- reading ---------------------------------------------------------------------------------

static tt_status read_bytes(tt_ctx *ctx, const text *t, int64_t i, void *const *out)
{
    unsigned char raw[CHUNK];
    int64_t at = tti_window_at(&t->window, i), n = t->window.context + 1;
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t some = TTI_MIN(n - done, CHUNK);
        TT_TRY(tti_files_read(ctx, &t->files, at + done, (size_t)some, raw));
        for (int64_t k = 0; k < some; k++)
            tti_window_put(&t->window, out, done + k, raw[k]);
    }
    return TT_OK;
}

static tt_status changed(tt_ctx *ctx, const text *t, int64_t at)
{
    int64_t f = tti_files_find(&t->files, at);
    return TT_FAIL(ctx, TT_EIO, "%s: byte %lld has changed since the file was opened",
                   t->files.file[f].path, (long long)(at - t->files.start[f]));
}

static int32_t symbol_of(const text *t, uint32_t point)
{
    tti_vocab v = vocab_of(t);
    return point < 128 ? t->ascii[point] : tti_vocab_find(&v, point);
}

static tt_status read_chars(tt_ctx *ctx, const text *t, int64_t i, void *const *out)
{
    unsigned char raw[CHUNK];
    int64_t first = tti_window_at(&t->window, i), n = t->window.context + 1;
    int64_t j = t->blocks != NULL ? -(first % BLOCK) : 0; // characters before the record
    int64_t at = t->blocks != NULL ? t->blocks[first / BLOCK] : first;
    int64_t end = t->files.start[t->files.n];
    while (j < n) {
        size_t some = (size_t)TTI_MIN(end - at, CHUNK), k = 0;
        TT_TRY(tti_files_read(ctx, &t->files, at, some, raw));
        while (j < n && k < some) {
            uint32_t point;
            int len = tti_utf8_get(raw + k, some - k, &point);
            int32_t symbol = len > 0 ? symbol_of(t, point) : -1;
            if (len == 0 && k > 0)
                break; // the rest of it comes with the next piece
            if (symbol < 0)
                return changed(ctx, t, at + (int64_t)k);
            if (j >= 0)
                tti_window_put(&t->window, out, j, symbol);
            j++;
            k += (size_t)len;
        }
        if (k == 0)
            return changed(ctx, t, at);
        at += (int64_t)k;
    }
    return TT_OK;
}

static tt_status text_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const text *t = self;
    return t->is_bytes ? read_bytes(ctx, t, i, out) : read_chars(ctx, t, i, out);
}

// ---- counting characters ---------------------------------------------------------------------

static tt_status not_utf8(tt_ctx *ctx, const tti_bytes *b, int64_t at)
{
    return TT_FAIL(ctx, TT_EIO, "%s: byte %lld is not valid UTF-8; level: byte accepts any file",
                   b->path, (long long)at);
}

// Notes the characters of file f in seen, a bit each, and where blocks begin.
static tt_status count_file(tt_ctx *ctx, text *t, int64_t f, uint64_t *seen)
{
    const tti_bytes *b = &t->files.file[f];
    unsigned char raw[CHUNK];
    for (int64_t at = 0; at < b->n;) {
        size_t some = (size_t)TTI_MIN(b->n - at, CHUNK), k = 0;
        TT_TRY(tti_bytes_read(ctx, b, at, some, raw));
        while (k < some) {
            uint32_t point;
            int len = tti_utf8_get(raw + k, some - k, &point);
            if (len < 0 || (len == 0 && at + (int64_t)some == b->n))
                return not_utf8(ctx, b, at + (int64_t)k);
            if (len == 0)
                break;
            if (t->n % BLOCK == 0) {
                if (!tti_grow(ctx, &t->blocks, &t->cap_blocks, t->n_blocks + 1, sizeof(*t->blocks)))
                    return TT_ENOMEM;
                t->blocks[t->n_blocks++] = t->files.start[f] + at + (int64_t)k;
            }
            seen[point / 64] |= (uint64_t)1 << point % 64;
            t->n++;
            k += (size_t)len;
        }
        at += (int64_t)k;
    }
    return TT_OK;
}

static tt_status make_vocab(tt_ctx *ctx, text *t, const uint64_t *seen)
{
    for (int i = 0; i < POINTS / 64; i++)
        t->n_vocab += __builtin_popcountll(seen[i]);
    t->vocab = tti_calloc(ctx, (size_t)t->n_vocab + 1, sizeof(*t->vocab));
    if (t->vocab == NULL)
        return TT_ENOMEM;
    int64_t n = 0;
    memset(t->ascii, -1, sizeof(t->ascii));
    for (uint32_t p = 0; p < POINTS; p++) {
        if ((seen[p / 64] >> p % 64 & 1) == 0)
            continue;
        if (p < 128)
            t->ascii[p] = (int32_t)n;
        t->vocab[n++] = p;
    }
    if (t->n == t->files.start[t->files.n]) { // one byte each: no places are needed
        tti_free(ctx, t->blocks);
        t->blocks = NULL;
    }
    return TT_OK;
}

static tt_status count_chars(tt_ctx *ctx, text *t)
{
    uint64_t *seen = tti_calloc(ctx, POINTS / 64, sizeof(*seen));
    tt_status st = seen != NULL ? TT_OK : TT_ENOMEM;
    for (int64_t f = 0; f < t->files.n && st == TT_OK; f++)
        st = count_file(ctx, t, f, seen);
    if (st == TT_OK)
        st = make_vocab(ctx, t, seen);
    tti_free(ctx, seen);
    return st;
}

// ---- opening ---------------------------------------------------------------------------------

static void text_close(tt_ctx *ctx, void *self)
{
    text *t = self;
    tti_files_close(ctx, &t->files);
    tti_free(ctx, t->vocab);
    tti_free(ctx, t->blocks);
    tti_free(ctx, t);
}

static tt_status text_init(tt_ctx *ctx, const tt_text_opts *o, text *t)
{
    t->is_bytes = strcmp(o->level, "byte") == 0;
    if (!t->is_bytes && strcmp(o->level, "char") != 0)
        return TT_FAIL(ctx, TT_EINVAL, "text: level is '%s'; use 'char' or 'byte'", o->level);
    TT_TRY(tti_files_open(ctx, "text", o->file, &t->files));
    if (t->is_bytes)
        t->n = t->files.start[t->files.n];
    else
        TT_TRY(count_chars(ctx, t));
    return tti_window_init(ctx, "text", t->n, o->from, o->to, o->context, o->stride, &t->window);
}

static tt_status text_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    text *t = tti_calloc(ctx, 1, sizeof(*t));
    if (t == NULL)
        return TT_ENOMEM;
    tt_status st = text_init(ctx, options, t);
    if (st != TT_OK) {
        text_close(ctx, t);
        return st;
    }
    *out = tti_window_source(&t->window, vocab_of(t).n);
    out->self = t;
    out->read = text_read;
    out->close = text_close;
    return TT_OK;
}

bool tti_text_vocab(const tt_data *d, tti_vocab *out)
{
    if (d == NULL || d->def != &tti_source_text)
        return false;
    *out = vocab_of(d->source.self);
    return true;
}

// clang-format off
static const tt_option text_options[] = {
    {"file", TT_OPT_TEXT, NULL, "text files or patterns: \"a.txt, docs/*.md\"",
     offsetof(tt_text_opts, file), 0, 0, NULL},
    {"level", TT_OPT_TEXT, "char",
     "char: one token per character, the vocabulary is the characters of the text; byte: one "
     "token per byte, a vocabulary of 256",
     offsetof(tt_text_opts, level), 0, 0, NULL},
    TTI_WINDOW_ROWS(tt_text_opts),
    TTI_WINDOW_PART_ROWS(tt_text_opts, "text"),
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_text = {
    .name = "text",
    .help = "text files, split into characters or bytes; the target is the next token",
    .options = text_options,
    .options_size = sizeof(tt_text_opts),
    .main = "file",
    .open = text_open,
};
