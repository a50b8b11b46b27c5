/*
 * option_json.c - options and shapes as JSON. What is read comes from files: everything is checked.
 */
#include "base/option_json.h"

void tti_options_json(tti_text *t, const tt_option *rows, const void *from)
{
    const char *comma = "";
    tti_text_add(t, "{");
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        tti_text value = {.ctx = t->ctx};
        tti_option_print(&value, row, from);
        char *s = tti_text_take(&value);
        t->failed |= s == NULL;
        tti_text_add(t, "%s\"%s\": ", comma, row->name);
        tti_text_json(t, s != NULL ? s : "");
        tti_free(t->ctx, s);
        comma = ", ";
    }
    tti_text_add(t, "}");
}

tt_status tti_options_of_json(tt_ctx *ctx, const char *file, const char *where,
                              const tt_option *rows, const json_t *o, void *out)
{
    const char *key;
    json_t *value;
    TT_TRY(tti_options_default(ctx, rows, out));
    json_object_foreach((json_t *)o, key, value)
    {
        const char *text = json_string_value(value);
        if (text == NULL)
            return TT_FAIL(ctx, TT_EPARSE, "%s: %.64s: option '%.64s' is not a string", file, where,
                           key);
        TT_TRY(tti_option_set(ctx, rows, out, where, key, text));
    }
    return TT_OK;
}

void tti_shape_json(tti_text *t, const tt_shape *s)
{
    tti_text_add(t, "[");
    for (int i = 0; i < s->rank; i++)
        tti_text_add(t, "%s%lld", i > 0 ? ", " : "", (long long)s->dim[i]);
    tti_text_add(t, "]");
}

bool tti_shape_of_json(const json_t *list, tt_shape *out)
{
    int64_t all = 1;
    *out = (tt_shape){0};
    if (!json_is_array(list) || json_array_size(list) >= TT_MAX_RANK)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        int64_t n = json_integer_value(v);
        if (!json_is_integer(v) || n < 1 || !tti_mul_i64(all, n, &all) || all > INT32_MAX)
            return false;
        out->dim[out->rank++] = n;
    }
    return true;
}
