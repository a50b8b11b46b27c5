/*
 * option.c - option rows. A row says name, type, default, bounds and help once; defaults, settings
 * from text, the environment and help all come from it. The only file that reads the environment.
 */
#include "base/hints.h"
#include "base/value.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 256 // for suggestions

static void store(const tt_option *row, void *out, const tti_value *v)
{
    memcpy((char *)out + row->offset, v, tti_value_bytes(row->type));
}

static void load(const tt_option *row, const void *from, tti_value *v)
{
    memset(v, 0, sizeof(*v));
    memcpy(v, (const char *)from + row->offset, tti_value_bytes(row->type));
}

// The value's own bytes: what lies between fields, past a rank, a count or a text's end is zero.
static void tidy(tt_opt_type type, tti_value *v)
{
    tti_value x = *v;
    memset(v, 0, sizeof(*v));
    if (type == TT_OPT_STRING) {
        memcpy(v->s, x.s, strnlen(x.s, sizeof(x.s) - 1));
    } else if (type == TT_OPT_SHAPE) {
        v->shape.rank = x.shape.rank;
        for (int i = 0; i < x.shape.rank && i < TT_MAX_RANK; i++)
            v->shape.dim[i] = x.shape.dim[i];
    } else if (type == TT_OPT_INTS) {
        v->ints.n = x.ints.n;
        for (int i = 0; i < x.ints.n && i < TTI_COUNT(x.ints.v); i++)
            v->ints.v[i] = x.ints.v[i];
    } else {
        memcpy(v, &x, tti_value_bytes(type));
    }
}

void tti_options_copy(const tt_option *rows, void *to, const void *from)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        tti_value v;
        load(row, from, &v);
        tidy(row->type, &v);
        store(row, to, &v);
    }
}

tt_status tti_options_default(tt_ctx *ctx, const tt_option *rows, void *out)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        tti_value v = {0};
        char why[TTI_WHY_MAX];
        if (row->value != NULL && !tti_value_parse(row, row->value, &v, why))
            return TT_FAIL(ctx, TT_EINVAL, "option %s: its default '%s' %s", row->name, row->value,
                           why);
        store(row, out, &v);
    }
    return TT_OK;
}

// Zero means default, in options that a program filled; then bounds are checked.
tt_status tti_options_fill(tt_ctx *ctx, const tt_option *rows, void *opts, const char *where)
{
    static const char zero[sizeof(tti_value)];
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        tti_value v, standard = {0};
        char why[TTI_WHY_MAX];
        size_t n = tti_value_bytes(row->type);
        load(row, opts, &v);
        if (memcmp(&v, zero, n) == 0) {
            if (row->value == NULL)
                return TT_FAIL(ctx, TT_EINVAL, "%s: %s must be given", where, row->name);
            if (!tti_value_parse(row, row->value, &standard, why))
                return TT_FAIL(ctx, TT_EINVAL, "%s: the default of %s, '%s', %s", where, row->name,
                               row->value, why);
            store(row, opts, &standard);
        } else if (!tti_value_check(row, &v, why)) {
            return TT_FAIL(ctx, TT_EINVAL, "%s: %s %s", where, row->name, why);
        }
    }
    return TT_OK;
}

void tti_options_zeros(const tt_option *rows, void *opts, bool is_given)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        tti_value v, standard = {0};
        char why[TTI_WHY_MAX];
        if (row->type != TT_OPT_FLOAT)
            continue;
        load(row, opts, &v);
        bool other = row->value == NULL ||
                     (tti_value_parse(row, row->value, &standard, why) && standard.f != 0);
        if (v.f == 0 && other)
            v.f = is_given ? TT_ZERO : 0;
        store(row, opts, &v);
    }
}

tt_status tti_options_check(tt_ctx *ctx, const tt_option *rows, const void *opts, const char *where)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        tti_value v;
        char why[TTI_WHY_MAX];
        load(row, opts, &v);
        if (!tti_value_check(row, &v, why))
            return TT_FAIL(ctx, TT_EINVAL, "%s: %s %s", where, row->name, why);
    }
    return TT_OK;
}

static tt_status unknown(tt_ctx *ctx, const tt_option *rows, const char *where, const char *name)
{
    const char *names[MAX_ROWS + 1];
    int n = 0;
    for (; rows != NULL && rows[n].type != TT_OPT_END && n < MAX_ROWS; n++)
        names[n] = rows[n].name;
    names[n] = NULL;
    if (n == 0)
        return TT_FAIL(ctx, TT_EINVAL, "%s: unknown option '%.64s'; it has no options", where,
                       name);
    const char *near = tti_meant(name, names);
    tti_text t = {.ctx = ctx};
    tti_text_names(&t, names, n, 12);
    char *list = tti_text_take(&t);
    if (list == NULL)
        return TT_ENOMEM;
    tt_status st = TT_FAIL(ctx, TT_EINVAL, "%s: unknown option '%.64s'%s%s%s\n  possible: %s",
                           where, name, near != NULL ? "; did you mean '" : "",
                           near != NULL ? near : "", near != NULL ? "'?" : "", list);
    tti_free(ctx, list);
    return st;
}

tt_status tti_option_set(tt_ctx *ctx, const tt_option *rows, void *out, const char *where,
                         const char *name, const char *value)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        if (strcmp(row->name, name) != 0)
            continue;
        tti_value v;
        char why[TTI_WHY_MAX];
        if (!tti_value_parse(row, value, &v, why))
            return TT_FAIL(ctx, TT_EINVAL, "%s: %s '%.64s' %s", where, name, value, why);
        store(row, out, &v);
        return TT_OK;
    }
    return unknown(ctx, rows, where, name);
}

const char *tti_env(const char *name)
{
    return getenv(name);
}

tt_status tti_options_env(tt_ctx *ctx, const tt_option *rows, void *out, const char *where)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        char name[128];
        snprintf(name, sizeof(name), "TUTTI_%s_%s", where, row->name);
        for (char *c = name; *c != '\0'; c++)
            *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
        const char *value = tti_env(name);
        if (value == NULL)
            continue;
        tti_value v;
        char why[TTI_WHY_MAX];
        if (!tti_value_parse(row, value, &v, why))
            return TT_FAIL(ctx, TT_EINVAL, "environment: %s '%.64s' %s", name, value, why);
        store(row, out, &v);
    }
    return TT_OK;
}

void tti_option_print(tti_text *t, const tt_option *row, const void *from)
{
    tti_value v;
    load(row, from, &v);
    tti_value_print(t, row, &v);
}

bool tti_option_is_default(const tt_option *row, const void *from)
{
    tti_value v, standard;
    char why[TTI_WHY_MAX];
    if (row->value == NULL || !tti_value_parse(row, row->value, &standard, why))
        return false;
    load(row, from, &v);
    return tti_value_equal(row, &v, &standard);
}

const char *tti_option_type(tt_opt_type type)
{
    static const char *const words[] = {
        [TT_OPT_END] = "",        [TT_OPT_BOOL] = "bool",   [TT_OPT_INT] = "int",
        [TT_OPT_FLOAT] = "float", [TT_OPT_STRING] = "text", [TT_OPT_ENUM] = "word",
        [TT_OPT_INTS] = "list",   [TT_OPT_SIZE] = "size",   [TT_OPT_DTYPE] = "dtype",
        [TT_OPT_SHAPE] = "shape", [TT_OPT_INT32] = "int",   [TT_OPT_TEXT] = "text",
        [TT_OPT_PAIR] = "pair"};
    return (unsigned)type < TTI_COUNT(words) ? words[type] : "";
}

void tti_options_help(tti_text *t, const tt_option *rows)
{
    char low[TTI_DOUBLE_TEXT], high[TTI_DOUBLE_TEXT];
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        tti_text_add(t, "  %-14s %-7s ", row->name, tti_option_type(row->type));
        tti_text_add(t, "%s", row->help != NULL ? row->help : "");
        if (row->type == TT_OPT_ENUM)
            for (int i = 0; row->names[i] != NULL; i++)
                tti_text_add(t, "%s%s", i == 0 ? ": " : ", ", row->names[i]);
        if (row->min != 0 || row->max != 0)
            tti_text_add(t, "; from %s to %s", tti_double_text(row->min, low),
                         tti_double_text(row->max, high));
        if (row->value == NULL)
            tti_text_add(t, "; required\n");
        else
            tti_text_add(t, " (default %s)\n", row->value[0] != '\0' ? row->value : "\"\"");
    }
}
