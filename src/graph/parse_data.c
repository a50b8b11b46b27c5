/*
 * parse_data.c - reads the elements of a constant from the text form of a graph: a list, one number
 * for all, or base64.
 */
#include "graph/lex.h"
#include "graph/text.h"
#include <string.h>

// One number into element i of the constant.
static bool element(tti_lex *lex, tt_dtype type, char *data, int64_t i)
{
    char text[64];
    tti_lex_skip(lex);
    const char *at = lex->at;
    if (!tti_lex_word(lex, "+", text, sizeof(text), "a number"))
        return false;
    if (!tti_element_parse(type, data, i, text))
        return tti_lex_fail(lex, at, "'%s' is not a value of type %s", text, tt_dtype_name(type));
    return true;
}

// How the elements of a constant are written.
enum {
    LIST,
    ALL,
    BASE64
};
static const char *const forms[] = {[ALL] = "all", [BASE64] = "base64"};

static bool elements(tti_lex *lex, tt_dtype type, int64_t count, int form, char *data)
{
    size_t size = tt_dtype_bytes(type), bytes = (size_t)count * size;
    if (form == BASE64) {
        tti_lex_skip(lex);
        int64_t n = tti_base64_parse(lex->at, (size_t)(lex->end - lex->at), data, bytes);
        if (n < 0)
            return tti_lex_fail(lex, lex->at, "this is not base64 of %zu bytes", bytes);
        lex->at += n;
        return true;
    }
    if (form == ALL) {
        if (count > 0 && !element(lex, type, data, 0))
            return false;
        for (int64_t i = 1; i < count; i++)
            memcpy(data + (size_t)i * size, data, size);
        return true;
    }
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && !tti_lex_expect(lex, ',', "a number"))
            return false;
        if (!element(lex, type, data, i))
            return false;
    }
    return tti_lex_expect(lex, ']', "the last element");
}

static bool data_form(tti_lex *lex, int *form)
{
    char text[16];
    tti_lex_skip(lex);
    const char *at = lex->at;
    *form = LIST;
    if (tti_lex_is(lex, '['))
        return true;
    if (!tti_lex_word(lex, "", text, sizeof(text), "'all', 'base64' or a list"))
        return false;
    for (*form = ALL; *form <= BASE64; ++*form)
        if (strcmp(text, forms[*form]) == 0)
            return true;
    return tti_lex_fail(lex, at, "data is 'all', 'base64' or a list in brackets, not '%s'", text);
}

bool tti_parse_data(tti_lex *lex, const tti_feed_attr *a, tti_data_room *room, char **out)
{
    int form;
    if (!data_form(lex, &form))
        return false;
    const char *at = lex->at;
    int64_t count = tt_shape_count(&a->shape);
    size_t left = (size_t)(lex->end - at), bytes;
    if (!tti_mul_size((size_t)count, tt_dtype_bytes(a->dtype), &bytes) || bytes > room->left)
        return tti_lex_fail(lex, at, "constants take more than %zu bytes", room->limit);
    if (form != ALL && (form == LIST ? (size_t)count : bytes) > left)
        return tti_lex_fail(lex, at, "the text ends before %lld elements", (long long)count);
    room->left -= bytes;
    *out = tti_calloc(lex->ctx, bytes + 1, 1);
    return *out != NULL && elements(lex, a->dtype, count, form, *out);
}
