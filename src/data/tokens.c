/*
 * tokens.c - flat files of tokens, little-endian u16 or u32, as one long row; and the windows that
 * texts share.
 */
#include "data/data.h"
#include "data/window.h"
#include <stddef.h>

#define CHUNK 4096

// ---- windows ---------------------------------------------------------------------------------

tt_status tti_window_init(tt_ctx *ctx, const char *who, int64_t total, double from, double to,
                          int64_t context, int64_t stride, tti_window *out)
{
    tti_window w = {.context = context, .stride = stride == 0 ? context : stride};
    if (context < 1 || context > INT32_MAX / 2)
        return TT_FAIL(ctx, TT_EINVAL, "%s: context must be given and at least 1", who);
    if (w.stride < 1)
        return TT_FAIL(ctx, TT_EINVAL, "%s: stride is %lld; it must be at least 1", who,
                       (long long)stride);
    if (!(from >= 0 && from < to && to <= 1))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: from is %g and to is %g; 0 <= from < to <= 1 is required", who, from,
                       to);
    w.first = (int64_t)(from * (double)total);
    int64_t end = to == 1 ? total : (int64_t)(to * (double)total), n = end - w.first;
    if (n < context + 1)
        return TT_FAIL(ctx, TT_EIO,
                       "%s: has only %lld tokens from token %lld on; a record of context %lld "
                       "needs one more than its context",
                       who, (long long)n, (long long)w.first, (long long)context);
    w.count = (n - context - 1) / w.stride + 1;
    *out = w;
    return TT_OK;
}

tt_source tti_window_source(const tti_window *w, int64_t classes)
{
    tt_source s = {.count = w->count, .n_fields = 2};
    for (int f = 0; f < 2; f++)
        s.fields[f] = (tt_field){.name = {f == 0 ? 'x' : 'y'},
                                 .dtype = TT_I32,
                                 .shape = TT_SHAPE(w->context),
                                 .classes = classes};
    return s;
}

// ---- tokens ----------------------------------------------------------------------------------

typedef struct tokens {
    tti_files files;
    tti_window window;
    int64_t bytes; // of a token
    int64_t vocab;
} tokens;

static int64_t token_at(const unsigned char *p, int64_t bytes)
{
    int64_t v = p[0] | p[1] << 8;
    return bytes == 2 ? v : v | (int64_t)p[2] << 16 | (int64_t)p[3] << 24;
}

static tt_status bad_token(tt_ctx *ctx, const tokens *t, int64_t i, int64_t at, int64_t v)
{
    int64_t f = tti_files_find(&t->files, at * t->bytes);
    return TT_FAIL(ctx, TT_EPARSE,
                   "%s: record %lld: token %lld, at byte %lld, must be below %lld (vocab)",
                   t->files.file[f].path, (long long)i, (long long)v,
                   (long long)(at * t->bytes - t->files.start[f]), (long long)t->vocab);
}

static tt_status tokens_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const tokens *t = self;
    unsigned char raw[CHUNK];
    int64_t at = tti_window_at(&t->window, i), n = t->window.context + 1, per = CHUNK / t->bytes;
    for (int64_t done = 0; done < n; done += per) {
        int64_t some = TTI_MIN(n - done, per);
        TT_TRY(
            tti_files_read(ctx, &t->files, (at + done) * t->bytes, (size_t)(some * t->bytes), raw));
        for (int64_t k = 0; k < some; k++) {
            int64_t v = token_at(raw + k * t->bytes, t->bytes);
            if (v >= t->vocab)
                return bad_token(ctx, t, i, at + done + k, v);
            tti_window_put(&t->window, out, done + k, (int32_t)v);
        }
    }
    return TT_OK;
}

static void tokens_close(tt_ctx *ctx, void *self)
{
    tokens *t = self;
    tti_files_close(ctx, &t->files);
    tti_free(ctx, t);
}

static tt_status tokens_init(tt_ctx *ctx, const tt_tokens_opts *o, tokens *t)
{
    if (o->bits != 16 && o->bits != 32)
        return TT_FAIL(ctx, TT_EINVAL, "tokens: bits is %d; use 16 or 32", o->bits);
    if (o->vocab < 1 || o->vocab > INT32_MAX)
        return TT_FAIL(ctx, TT_EINVAL, "tokens: vocab must be given, from 1 to 2147483647");
    t->bytes = o->bits / 8;
    t->vocab = o->vocab;
    TT_TRY(tti_files_open(ctx, "tokens", o->file, &t->files));
    for (int64_t f = 0; f < t->files.n; f++)
        if (t->files.file[f].n % t->bytes != 0)
            return TT_FAIL(ctx, TT_EIO,
                           "%s: has %lld bytes, which is not a multiple of a token of %d bits",
                           t->files.file[f].path, (long long)t->files.file[f].n, o->bits);
    return tti_window_init(ctx, "tokens", t->files.start[t->files.n] / t->bytes, o->from, o->to,
                           o->context, o->stride, &t->window);
}

static tt_status tokens_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    tokens *t = tti_calloc(ctx, 1, sizeof(*t));
    if (t == NULL)
        return TT_ENOMEM;
    tt_status st = tokens_init(ctx, options, t);
    if (st != TT_OK) {
        tokens_close(ctx, t);
        return st;
    }
    *out = tti_window_source(&t->window, t->vocab);
    out->self = t;
    out->read = tokens_read;
    out->close = tokens_close;
    return TT_OK;
}

// clang-format off
static const tt_option tokens_options[] = {
    {"file", TT_OPT_TEXT, NULL, "token files or patterns: \"a.bin, b*.bin\"",
     offsetof(tt_tokens_opts, file), 0, 0, NULL},
    {"bits", TT_OPT_INT32, "16", "bits per token in the file: 16 or 32",
     offsetof(tt_tokens_opts, bits), 16, 32, NULL},
    TTI_WINDOW_ROWS(tt_tokens_opts),
    {"vocab", TT_OPT_INT, NULL, "vocabulary size; every token must be below it",
     offsetof(tt_tokens_opts, vocab), 1, INT32_MAX, NULL},
    TTI_WINDOW_PART_ROWS(tt_tokens_opts, "tokens"),
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_tokens = {
    .name = "tokens",
    .help = "files of u16 or u32 tokens without a header; the target is the next token",
    .options = tokens_options,
    .options_size = sizeof(tt_tokens_opts),
    .main = "file",
    .open = tokens_open,
};
