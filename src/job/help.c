/*
 * help.c - help of a job's keys: name, type, default, help, from the tables.
 */
#include "base/value.h"
#include "job/schema.h"
#include <stdio.h>
#include <string.h>

#define MAX_NAMES 512
#define NO_BOUND  1e9 // a bound that no one will meet

typedef struct columns {
    int name, type, value;
} columns;

static const char *default_word(const tti_schema *s, const tt_option *row)
{
    const char *value = tti_schema_default(s, row);
    if (value != NULL)
        return value[0] != '\0' ? value : "\"\"";
    return s->later != NULL && strcmp(s->later, row->name) == 0 ? "from the data" : "required";
}

bool tti_schema_hides(const tti_schema *s, const tt_option *row)
{
    return s->takes != NULL && !s->takes(s->name, row->name);
}

static void widen(const tti_schema *s, const tt_option *rows, columns *c)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        if (tti_schema_hides(s, row))
            continue;
        c->name = TTI_MAX(c->name, (int)strlen(row->name));
        c->type = TTI_MAX(c->type, (int)strlen(tti_option_type(row->type)));
        c->value = TTI_MAX(c->value, (int)strlen(default_word(s, row)));
    }
}

static void print_rows(tti_text *t, const tti_schema *s, const tt_option *rows, const columns *c,
                       int indent)
{
    char low[TTI_DOUBLE_TEXT], high[TTI_DOUBLE_TEXT];
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        if (tti_schema_hides(s, row))
            continue;
        const char *semicolon = row->help != NULL && row->help[0] != '\0' ? "; " : "";
        tti_text_add(t, "%*s%-*s  %-*s  %-*s  %s", indent, "", c->name, row->name, c->type,
                     tti_option_type(row->type), c->value, default_word(s, row),
                     row->help != NULL ? row->help : "");
        for (int i = 0; row->type == TT_OPT_ENUM && row->names[i] != NULL; i++)
            tti_text_add(t, "%s%s", i == 0 ? ": " : ", ", row->names[i]);
        if (row->max >= NO_BOUND)
            tti_text_add(t, "%sat least %s", semicolon, tti_double_text(row->min, low));
        else if (row->min != 0 || row->max != 0)
            tti_text_add(t, "%sfrom %s to %s", semicolon, tti_double_text(row->min, low),
                         tti_double_text(row->max, high));
        tti_text_put(t, "\n", 1);
    }
}

static const char *form_word(const tti_schema *s)
{
    static const char *const words[] = {"map", "one of", "list", "map"};
    return words[s->form];
}

static void print_keys(tti_text *t, const tti_schema *s, const columns *c, int indent)
{
    for (const tti_key *k = s->keys; k != NULL && k->name != NULL; k++) {
        const char *value = k->value == NULL ? "none" : k->value[0] == '\0' ? "" : k->value;
        tti_text_add(t, "%*s%-*s  %-*s  %-*s  %s\n", indent, "", c->name, k->name, c->type,
                     form_word(k->schema), c->value, value,
                     k->schema->help != NULL ? k->schema->help : "");
    }
}

static void print_record(tti_text *t, const tti_schema *s, int indent)
{
    columns c = {.name = 3, .type = 4, .value = 7};
    widen(s, s->rows, &c);
    widen(s, s->more, &c);
    for (const tti_key *k = s->keys; k != NULL && k->name != NULL; k++) {
        c.name = TTI_MAX(c.name, (int)strlen(k->name));
        c.type = TTI_MAX(c.type, (int)strlen(form_word(k->schema)));
    }
    tti_text_add(t, "%*s%-*s  %-*s  %-*s  meaning\n", indent, "", c.name, "key", c.type, "type",
                 c.value, "default");
    print_rows(t, s, s->rows, &c, indent);
    print_rows(t, s, s->more, &c, indent);
    print_keys(t, s, &c, indent);
    if (s->main != NULL)
        tti_text_add(t, "%*sA plain value sets %s.\n", indent, "", s->main);
}

static void print_choice(tt_ctx *ctx, tti_text *t, const tti_schema *s)
{
    tti_schema kind;
    int width = 4;
    for (int i = 0; s->at(ctx, i, &kind); i++)
        width = TTI_MAX(width, (int)strlen(kind.name));
    for (int i = 0; s->at(ctx, i, &kind); i++)
        tti_text_add(t, "  %-*s  %s\n", width, kind.name, kind.help != NULL ? kind.help : "");
}

static void print_schema(tt_ctx *ctx, tti_text *t, const tti_schema *s)
{
    switch (s->form) {
    case TTI_RECORD:
        print_record(t, s, 2);
        break;
    case TTI_CHOICE:
        tti_text_add(t, "Choose one %s:\n", s->name);
        print_choice(ctx, t, s);
        break;
    case TTI_LIST_OF:
        tti_text_add(t, "A list; each item:\n");
        print_schema(ctx, t, s->item);
        if (s->alt != NULL) {
            tti_text_add(t, "\nOr a map:\n");
            print_record(t, s->alt, 2);
        }
        break;
    case TTI_NAMED:
        tti_text_add(t, "A map from names that you choose to:\n");
        print_schema(ctx, t, s->item);
        break;
    }
}

// Where a part of the path leads; choices and lists add no part of their own.
static bool descend(tt_ctx *ctx, const tti_schema *s, const char *part, tti_schema *out)
{
    const tti_key *key;
    switch (s->form) {
    case TTI_RECORD:
        key = tti_schema_key(s, part);
        if (key == NULL)
            return false;
        *out = *key->schema;
        return true;
    case TTI_CHOICE:
        return strcmp(part, "*") == 0 ? s->at(ctx, 0, out) : tti_kind_find(ctx, s, part, out);
    case TTI_LIST_OF:
        if (strspn(part, "0123456789") == strlen(part)) {
            *out = *s->item;
            return true;
        }
        return descend(ctx, s->item, part, out) ||
               (s->alt != NULL && descend(ctx, s->alt, part, out));
    case TTI_NAMED:
        *out = *s->item;
        return true;
    }
    return false;
}

bool tti_schema_at(tt_ctx *ctx, const char *path, tti_schema *out)
{
    tti_schema here = tti_job_schema, below;
    char part[128];
    for (const char *rest = path; *rest != '\0'; here = below) {
        size_t n = strcspn(rest, ".");
        snprintf(part, sizeof(part), "%.*s", (int)n, rest);
        rest += n + (rest[n] == '.');
        if (!descend(ctx, &here, part, &below))
            return false;
    }
    *out = here;
    return true;
}

static int names_of(tt_ctx *ctx, const tti_schema *s, const char **names, int n)
{
    tti_schema kind;
    if (s == NULL)
        return n;
    for (const tti_key *k = s->keys; k != NULL && k->name != NULL && n < MAX_NAMES - 1; k++)
        names[n++] = k->name;
    for (int i = 0; s->at != NULL && n < MAX_NAMES - 1 && s->at(ctx, i, &kind); i++)
        names[n++] = kind.name;
    for (const tt_option *r = s->rows; r != NULL && r->type != TT_OPT_END && n < MAX_NAMES - 1; r++)
        names[n++] = r->name;
    n = names_of(ctx, s->item, names, n);
    return names_of(ctx, s->alt, names, n);
}

static tt_status unknown(tt_ctx *ctx, const tti_schema *s, const char *above, const char *part)
{
    const char *names[MAX_NAMES];
    names[names_of(ctx, s, names, 0)] = NULL;
    const char *near = tti_nearest(part, names);
    const char *where = above[0] != '\0' ? above : "a job";
    if (near != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s has no key '%.64s'; did you mean '%s'?", where, part,
                       near);
    return TT_FAIL(ctx, TT_EINVAL, "%s has no key '%.64s'", where, part);
}

// One row, as "train.batch" asks for it.
static bool print_one(tti_text *t, const tti_schema *s, const char *part)
{
    const tt_option *row = s->form == TTI_RECORD ? tti_schema_row(s, part) : NULL;
    if (row == NULL && s->alt != NULL)
        row = tti_schema_row(s->alt, part);
    if (row == NULL)
        return false;
    tt_option one[2] = {*row, TT_OPTION_END};
    tti_schema only = {
        .form = TTI_RECORD, .rows = one, .later = s->later, .other = {s->other[0], s->other[1]}};
    print_record(t, &only, 2);
    return true;
}

static void print_all(tt_ctx *ctx, tti_text *t, const tti_schema *root)
{
    tti_text_add(t, "%s\n\n", root->help);
    print_record(t, root, 2);
    for (const tti_key *k = root->keys; k != NULL && k->name != NULL; k++) {
        tti_text_add(t, "\n%s: %s\n", k->name, k->schema->help);
        print_schema(ctx, t, k->schema);
    }
}

tt_status tti_schema_help(tt_ctx *ctx, tti_text *t, const tti_schema *root, const char *path)
{
    tti_schema here = *root, below;
    char part[128], above[TTI_KEY_MAX] = "";
    const char *rest = path;
    if (path[0] == '\0') {
        print_all(ctx, t, root);
        return TT_OK;
    }
    for (bool more = true; more;) {
        size_t n = strcspn(rest, ".");
        snprintf(part, sizeof(part), "%.*s", (int)TTI_MIN(n, sizeof(part) - 1), rest);
        more = rest[n] == '.';
        rest += n + more;
        if (descend(ctx, &here, part, &below)) {
            here = below;
        } else {
            tti_text_add(t, "%s\n", path);
            return !more && print_one(t, &here, part) ? TT_OK : unknown(ctx, &here, above, part);
        }
        char joined[TTI_KEY_MAX];
        tti_path_join(joined, above, part);
        strcpy(above, joined);
    }
    tti_text_add(t, "%s%s%s\n", path, here.help != NULL ? ": " : "",
                 here.help != NULL ? here.help : "");
    print_schema(ctx, t, &here);
    return TT_OK;
}
