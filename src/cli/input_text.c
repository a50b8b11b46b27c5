/*
 * input_text.c - a text as data to evaluate on: symbols by the vocabulary of the model, in records
 * of as many as it takes, the target of each symbol being the next.
 */
#include "base/file.h"
#include "cli/input.h"
#include "data/text.h"
#include <string.h>

typedef struct text {
    int32_t *symbols;
    int64_t context;
} text;

static tt_status read_window(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    const text *t = self;
    size_t bytes = (size_t)t->context * sizeof(*t->symbols);
    (void)ctx;
    memcpy(out[0], t->symbols + i * t->context, bytes);
    memcpy(out[1], t->symbols + i * t->context + 1, bytes);
    return TT_OK;
}

static void close_text(tt_ctx *ctx, void *self)
{
    text *t = self;
    tti_free(ctx, t->symbols);
    tti_free(ctx, t);
}

static tt_status symbols_of(tt_ctx *ctx, const char *file, const json_t *vocabulary, text *t,
                            int64_t *n)
{
    char *bytes = NULL;
    size_t size = 0, count = json_array_size(vocabulary);
    uint32_t *points = tti_calloc(ctx, count + 1, sizeof(*points));
    tt_status st = points == NULL ? TT_ENOMEM : tti_file_read(ctx, file, 0, &bytes, &size);
    for (size_t i = 0; st == TT_OK && i < count; i++)
        points[i] = (uint32_t)json_integer_value(json_array_get(vocabulary, i));
    tti_vocab v = {.is_bytes = json_is_string(vocabulary), .n = (int64_t)count, .points = points};
    if (v.is_bytes)
        v.n = 256;
    if (st == TT_OK)
        st = tti_vocab_symbols(ctx, &v, bytes, size, &t->symbols, n);
    tti_free(ctx, bytes);
    tti_free(ctx, points);
    return st;
}

tt_status cli_input_text(cli_model *m, const char *file, const json_t *vocabulary, tt_data **out)
{
    tt_ctx *ctx = m->j.ctx;
    tt_port in;
    int64_t n = 0;
    TT_TRY(tt_model_input(m->model, 0, &in));
    text *t = tti_calloc(ctx, 1, sizeof(*t));
    if (t == NULL)
        return TT_ENOMEM;
    t->context = tt_shape_count(&in.shape);
    tt_status st = symbols_of(ctx, file, vocabulary, t, &n);
    if (st == TT_OK && n <= t->context)
        st = TT_FAIL(ctx, TT_EINVAL, "%s: has %lld tokens; the model needs %lld and one more", file,
                     (long long)n, (long long)t->context);
    if (st != TT_OK) {
        close_text(ctx, t);
        return st;
    }
    tt_source s = {.count = (n - 1) / t->context,
                   .n_fields = 2,
                   .self = t,
                   .read = read_window,
                   .close = close_text};
    for (int i = 0; i < 2; i++)
        s.fields[i] = (tt_field){
            .name = {i == 0 ? 'x' : 'y'}, .dtype = TT_I32, .shape = TT_SHAPE(t->context)};
    *out = tt_data_new(ctx, &s, .no_shuffle = true);
    return *out != NULL ? TT_OK : tt_status_of(ctx);
}
