/*
 * row.c - items against option rows: a value checked and printed as its row does; rows from the
 * environment, and a resolved record put into a struct.
 */
#include "base/hints.h"
#include "base/value.h"
#include "job/schema.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void tti_path_join(char out[TTI_KEY_MAX], const char *path, const char *part)
{
    snprintf(out, TTI_KEY_MAX, "%.150s%s%.100s", path, path[0] != '\0' ? "." : "", part);
}

static bool is_text(const tt_option *row)
{
    return row->type == TT_OPT_TEXT || row->type == TT_OPT_STRING;
}

static const char *wanted(const tt_option *row)
{
    static const char *const words[] = {
        [TT_OPT_BOOL] = "true or false",
        [TT_OPT_INT] = "an integer",
        [TT_OPT_FLOAT] = "a number",
        [TT_OPT_STRING] = "a text",
        [TT_OPT_ENUM] = "a word",
        [TT_OPT_INTS] = "a list of integers",
        [TT_OPT_SIZE] = "a size",
        [TT_OPT_DTYPE] = "an element type",
        [TT_OPT_SHAPE] = "a list of integers",
        [TT_OPT_INT32] = "an integer",
        [TT_OPT_TEXT] = "a text or a list of texts",
        [TT_OPT_PAIR] = "an integer or a pair of integers",
    };
    return words[row->type];
}

static bool takes_list(const tt_option *row)
{
    return row->type == TT_OPT_TEXT || row->type == TT_OPT_INTS || row->type == TT_OPT_SHAPE ||
           row->type == TT_OPT_PAIR;
}

// A list as the row's text form: "a, b" or "[1, 2]".
static tt_status list_text(tti_tree *t, const tt_option *row, const char *path,
                           const tti_item *list, char **out)
{
    tti_text s = {.ctx = t->ctx};
    bool text = is_text(row);
    tt_status st = TT_OK;
    tti_text_add(&s, "%s", text ? "" : "[");
    for (const tti_item *c = list->first; c != NULL && st == TT_OK; c = c->next) {
        if (c->kind != TTI_SCALAR || tti_item_is_null(c))
            st = tti_fail_at(t->ctx, TT_EINVAL, c->at, path, "an item is %s, but must be %s",
                             tti_item_word(c), text ? "a text" : "an integer");
        else if (text && strchr(c->text, ',') != NULL)
            st = tti_fail_at(t->ctx, TT_EINVAL, c->at, path,
                             "'%.64s': an item must not contain a comma", c->text);
        else
            tti_text_add(&s, "%s%s", c == list->first ? "" : ", ", c->text);
    }
    tti_text_add(&s, "%s", text ? "" : "]");
    *out = tti_text_take(&s);
    if (st == TT_OK && *out == NULL)
        st = TT_ENOMEM;
    if (st != TT_OK)
        tti_free(t->ctx, *out);
    return st;
}

// The item of a value, printed as the row prints it.
tt_status tti_value_item(tti_tree *t, const tt_option *row, const char *path, const char *text,
                         tti_place at, tti_item **out)
{
    tti_value v;
    char why[TTI_WHY_MAX];
    if (!tti_value_parse(row, text, &v, why))
        return tti_fail_at(t->ctx, TT_EINVAL, at, path, "'%.64s' %s", text, why);
    if (row->type == TT_OPT_FLOAT && isnan(v.f))
        return tti_fail_at(t->ctx, TT_EINVAL, at, path, "'%.64s' is not a number", text);
    tti_text s = {.ctx = t->ctx};
    tti_value_print(&s, row, &v);
    char *printed = tti_text_take(&s);
    if (printed == NULL)
        return TT_ENOMEM;
    *out = tti_scalar_new(t, printed, !is_text(row), at);
    tti_free(t->ctx, printed);
    return *out == NULL ? tt_status_of(t->ctx) : TT_OK;
}

// {budget: 4GiB} of a text row that names such words is the text "budget 4GiB".
static bool is_word_map(const tt_option *row, const tti_item *in)
{
    if (in->kind != TTI_MAP || row->type != TT_OPT_TEXT || row->names == NULL || in->n != 1 ||
        in->first->kind != TTI_SCALAR || tti_item_is_null(in->first))
        return false;
    for (int i = 0; row->names[i] != NULL; i++)
        if (strcmp(in->first->key, row->names[i]) == 0)
            return true;
    return false;
}

tt_status tti_row_item(tti_tree *t, const tt_option *row, const char *above, const tti_item *in,
                       tti_item **out)
{
    char path[TTI_KEY_MAX], *text;
    tti_path_join(path, above, row->name);
    if (in->kind == TTI_SCALAR) {
        if (tti_item_is_null(in))
            return tti_fail_at(t->ctx, TT_EINVAL, in->at, path, "is empty, but must be %s",
                               wanted(row));
        return tti_value_item(t, row, path, in->text, in->at, out);
    }
    if (is_word_map(row, in)) {
        tti_text both = {.ctx = t->ctx};
        tti_text_add(&both, "%s %s", in->first->key, in->first->text);
        text = tti_text_take(&both);
        tt_status st = text == NULL ? TT_ENOMEM : tti_value_item(t, row, path, text, in->at, out);
        tti_free(t->ctx, text);
        return st;
    }
    if (in->kind == TTI_MAP && row->type == TT_OPT_TEXT && row->names != NULL)
        return tti_fail_at(t->ctx, TT_EINVAL, in->at, path,
                           "a map here must have the single key '%s'", row->names[0]);
    if (in->kind == TTI_MAP || !takes_list(row)) {
        char hint[TTI_HINT_MAX];
        const tti_hint *h = in->kind == TTI_LIST ? tti_hint_find("list", NULL, row->name) : NULL;
        return tti_fail_at(t->ctx, TT_EINVAL, in->at, path, "is %s, but must be %s%s%s",
                           tti_item_word(in), wanted(row), h != NULL ? "; " : "",
                           h != NULL ? tti_hint_text(h, hint) : "");
    }
    TT_TRY(list_text(t, row, path, in, &text));
    tt_status st = tti_value_item(t, row, path, text, in->at, out);
    tti_free(t->ctx, text);
    return st;
}

// ---- the environment -------------------------------------------------------------------------

// TUTTI_TRAIN_BATCH of "train" and "batch".
static void variable_name(char out[TTI_KEY_MAX], const char *path, const char *name)
{
    snprintf(out, TTI_KEY_MAX, "TUTTI_%.120s_%.100s", path, name);
    for (char *c = out; *c != '\0'; c++)
        *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
}

static tt_status row_from_env(tti_tree *t, const tt_option *row, const char *path, tti_item *root)
{
    char name[TTI_KEY_MAX], source[TTI_KEY_MAX + 16], below[TTI_KEY_MAX];
    variable_name(name, path, row->name);
    const char *text = tti_env(name);
    if (text == NULL || text[0] == '\0')
        return TT_OK;
    snprintf(source, sizeof(source), "environment %s", name);
    const char *kept = tti_tree_text(t, source, strlen(source));
    tti_item *value = kept != NULL ? tti_scalar_new(t, text, false, (tti_place){kept, 0, 0}) : NULL;
    if (value == NULL)
        return tt_status_of(t->ctx);
    tti_path_join(below, path, row->name);
    return tti_tree_set(t, root, below, value);
}

static tt_status record_from_env(tti_tree *t, const tti_schema *s, const char *path,
                                 const tti_item *item, tti_item *root)
{
    // Rows of the whole job have no section and so no variable.
    const tt_option *const both[] = {s->rows, s->more};
    for (int i = 0; i < 2 && path[0] != '\0'; i++)
        for (const tt_option *row = both[i]; row != NULL && row->type != TT_OPT_END; row++)
            TT_TRY(row_from_env(t, row, path, root));
    for (const tti_key *k = s->keys; k != NULL && k->name != NULL; k++) {
        const tti_item *below = tti_item_get(item, k->name);
        char name[TTI_KEY_MAX];
        if (k->schema->form != TTI_RECORD || (below == NULL && k->value == NULL))
            continue; // what the job does not have is not made by a variable
        tti_path_join(name, path, k->name);
        TT_TRY(record_from_env(t, k->schema, name, below, root));
    }
    return TT_OK;
}

tt_status tti_environment(tti_tree *t, const tti_schema *schema, tti_item *root)
{
    return record_from_env(t, schema, "", root, root);
}

// ---- into structs ----------------------------------------------------------------------------

tt_status tti_bind(tt_ctx *ctx, const tt_option *rows, const tti_item *record, void *out)
{
    TT_TRY(tti_options_default(ctx, rows, out));
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        const tti_item *value = tti_item_get(record, row->name);
        if (value != NULL)
            TT_TRY(tti_option_set(ctx, rows, out, "job", row->name, value->text));
    }
    tti_options_zeros(rows, out, true); // every value is the job's own: zero means zero
    return TT_OK;
}

const tti_item *tti_chosen(const tti_item *choice)
{
    return choice->first;
}
