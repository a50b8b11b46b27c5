/*
 * resolve.c - a tree against the tables: unknown keys, wrong forms and bad values are errors that
 * say where; what is missing gets its default. The result is a tree of the same kind, canonical:
 * every value as its row prints it, every choice as {kind: {...}}.
 */
#include "base/hints.h"
#include "job/schema.h"
#include <stdio.h>
#include <string.h>

#define MAX_NAMES 512

static tt_status lost(tti_tree *t)
{
    return tt_status_of(t->ctx); // of an allocation that failed, or too many items
}

// ---- records ---------------------------------------------------------------------------------

static const tt_option *find_row(const tt_option *rows, const char *name)
{
    for (; rows != NULL && rows->type != TT_OPT_END; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

const tt_option *tti_schema_row(const tti_schema *record, const char *name)
{
    const tt_option *row = find_row(record->rows, name);
    return row != NULL ? row : find_row(record->more, name);
}

const tti_key *tti_schema_key(const tti_schema *record, const char *name)
{
    for (const tti_key *k = record->keys; k != NULL && k->name != NULL; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

const char *tti_schema_default(const tti_schema *record, const tt_option *row)
{
    bool other = record->other[0] != NULL && strcmp(record->other[0], row->name) == 0;
    return other ? record->other[1] : row->value;
}

static int key_names(const tti_schema *s, const char *names[MAX_NAMES])
{
    const tt_option *const both[] = {s->rows, s->more};
    int n = 0;
    for (int i = 0; i < 2; i++)
        for (const tt_option *r = both[i]; r != NULL && r->type != TT_OPT_END; r++)
            if (n < MAX_NAMES - 1)
                names[n++] = r->name;
    for (const tti_key *k = s->keys; k != NULL && k->name != NULL && n < MAX_NAMES - 1; k++)
        names[n++] = k->name;
    names[n] = NULL;
    return n;
}

static const char *name_among(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return *names;
    return NULL;
}

const char *tti_section_with(const char *name)
{
    const char *found = NULL;
    for (const tti_key *k = tti_job_schema.keys; k->name != NULL; k++) {
        if (k->schema->form != TTI_RECORD ||
            (tti_schema_row(k->schema, name) == NULL && tti_schema_key(k->schema, name) == NULL))
            continue;
        if (found != NULL)
            return NULL;
        found = k->name;
    }
    return found;
}

/*
 * What an unknown word may have been meant to be, as the end of a sentence with its sign in front:
 * one of names in another spelling, a word of another framework, the nearest of names, a key of
 * another section. "": nothing is known.
 */
static void guess(const char *kind, const char *path, const char *word, const char *const *names,
                  char out[TTI_HINT_MAX + 64])
{
    char text[TTI_HINT_MAX];
    bool is_key = strcmp(kind, "key") == 0;
    const tti_hint *h = tti_hint_find(kind, is_key ? path : NULL, word);
    const char *near = tti_meant(word, names);
    const char *section = is_key ? tti_section_with(word) : NULL;
    if (h != NULL && h->where != NULL && h->ours != NULL && name_among(h->ours, names) == NULL)
        h = NULL; // of another part of that section
    out[0] = '\0';
    if (tti_hint_helps(h, word, near))
        snprintf(out, TTI_HINT_MAX + 64, "; %s", tti_hint_text(h, text));
    else if (near != NULL)
        snprintf(out, TTI_HINT_MAX + 64, "; did you mean '%s'?", near);
    else if (section != NULL)
        snprintf(out, TTI_HINT_MAX + 64, "; it belongs to section %s: use %s.%.64s", section,
                 section, word);
}

// Fails with the guess and all names there are.
static tt_status unknown_word(tti_tree *t, tti_place at, const char *path, const char *what,
                              const char *word, const char *const *names, int n)
{
    char meant[TTI_HINT_MAX + 64];
    tti_text list = {.ctx = t->ctx};
    guess(what, path, word, names, meant);
    tti_text_names(&list, names, n, 12); // on lines of its own
    char *text = tti_text_take(&list);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = tti_fail_at(t->ctx, TT_EINVAL, at, path, "unknown %s '%.64s'%s\n  possible: %s",
                               what, word, meant, text);
    tti_free(t->ctx, text);
    return st;
}

static tt_status unknown_key(tti_tree *t, const tti_schema *s, const char *path, const tti_item *c)
{
    const char *names[MAX_NAMES];
    int n = key_names(s, names);
    if (n == 0)
        return tti_fail_at(t->ctx, TT_EINVAL, c->key_at, path,
                           "unknown key '%.64s'; it has no keys", c->key);
    return unknown_word(t, c->key_at, path, "key", c->key, names, n);
}

// What is given for a key: by its name, or as the bare value.
static const tti_item *given(const tti_schema *s, const tti_item *in, const char *name)
{
    if (in == NULL)
        return NULL;
    bool is_main = s->main != NULL && strcmp(s->main, name) == 0;
    if (in->kind != TTI_MAP)
        return is_main && !tti_item_is_null(in) ? in : NULL;
    const tti_item *c = tti_item_get(in, name);
    return c != NULL || !is_main ? c : tti_item_get(in, "");
}

static tt_status check_form(tti_tree *t, const tti_schema *s, const char *path, const tti_item *in)
{
    if (in == NULL || tti_item_is_null(in) || (in->kind != TTI_MAP && s->main != NULL))
        return TT_OK;
    const tti_item *bare = in->kind != TTI_MAP ? in : tti_item_get(in, "");
    if (bare != NULL && s->main == NULL)
        return tti_fail_at(t->ctx, TT_EINVAL, bare->at, path, "is %s, but must be a map",
                           tti_item_word(bare));
    for (const tti_item *c = in->first; c != NULL; c = c->next)
        if (c->key[0] != '\0' && tti_schema_row(s, c->key) == NULL &&
            tti_schema_key(s, c->key) == NULL)
            return unknown_key(t, s, path, c);
    return TT_OK;
}

// A row "has_ignore" that is not given is true where "ignore" is.
static const char *default_of(const tti_schema *s, const tt_option *row, const tti_item *in)
{
    bool is_mark = row->type == TT_OPT_BOOL && strncmp(row->name, "has_", 4) == 0;
    return is_mark && given(s, in, row->name + 4) != NULL ? "true" : tti_schema_default(s, row);
}

static tt_status resolve_rows(tti_tree *t, const tti_schema *s, const tt_option *rows,
                              const char *path, const tti_item *in, tti_item *out)
{
    for (const tt_option *row = rows; row != NULL && row->type != TT_OPT_END; row++) {
        const tti_item *value = given(s, in, row->name);
        tti_item *made = NULL;
        if (value != NULL)
            TT_TRY(tti_row_item(t, row, path, value, &made));
        else if (default_of(s, row, in) != NULL)
            TT_TRY(tti_value_item(t, row, path, default_of(s, row, in), out->at, &made));
        else if (s->later == NULL || strcmp(s->later, row->name) != 0)
            return tti_fail_at(t->ctx, TT_EINVAL, out->at, path, "%s must be given", row->name);
        if (made != NULL)
            tti_item_add(out, row->name, value != NULL ? value->key_at : out->at, made);
    }
    return TT_OK;
}

static tt_status resolve_record(tti_tree *t, const tti_schema *s, const char *path,
                                const tti_item *in, tti_place at, tti_item **out)
{
    TT_TRY(check_form(t, s, path, in));
    tti_item *record = tti_item_new(t, TTI_MAP, in != NULL ? in->at : at);
    if (record == NULL)
        return lost(t);
    TT_TRY(resolve_rows(t, s, s->rows, path, in, record));
    TT_TRY(resolve_rows(t, s, s->more, path, in, record));
    for (const tti_key *k = s->keys; k != NULL && k->name != NULL; k++) {
        const tti_item *value = given(s, in, k->name);
        tti_item *made = NULL;
        char below[TTI_KEY_MAX];
        tti_path_join(below, path, k->name);
        if (value == NULL && k->value == NULL)
            continue;
        if (value == NULL) {
            made = tti_scalar_new(t, k->value, true, record->at);
            if (made == NULL)
                return lost(t);
            value = made;
        }
        TT_TRY(tti_resolve(t, k->schema, below, value, &made));
        tti_item_add(record, k->name, value->key != NULL ? value->key_at : record->at, made);
    }
    *out = record;
    return TT_OK;
}

// ---- choices ---------------------------------------------------------------------------------

bool tti_kind_find(tt_ctx *ctx, const tti_schema *choice, const char *name, tti_schema *out)
{
    for (int i = 0; choice->at(ctx, i, out); i++)
        if (strcmp(out->name, name) == 0)
            return true;
    return false;
}

static tt_status unknown_kind(tti_tree *t, const tti_schema *s, const char *path, const char *name,
                              tti_place at)
{
    const char *names[MAX_NAMES];
    tti_schema kind;
    int n = 0;
    for (int i = 0; n < MAX_NAMES - 1 && s->at(t->ctx, i, &kind); i++)
        names[n++] = kind.name;
    names[n] = NULL;
    return unknown_word(t, at, path, s->name, name, names, n);
}

static bool stands_beside(const tti_schema *s, const char *key)
{
    for (int i = 0; s->beside != NULL && s->beside[i] != NULL; i++)
        if (strcmp(s->beside[i], key) == 0)
            return true;
    return false;
}

// Options of a kind that stand beside its name, or two kinds.
static tt_status two_kinds(tti_tree *t, const tti_schema *s, const char *path, const tti_item *a,
                           const tti_item *b)
{
    char place[TTI_PLACE_MAX], text[TTI_HINT_MAX];
    tti_schema kind = {0};
    for (int i = 0; i < 2; i++) {
        const tti_item *name = i == 0 ? a : b, *option = i == 0 ? b : a;
        const char *word = name->key[0] != '\0' ? name->key : name->text;
        const tti_hint *h = tti_hint_find(s->name, NULL, name->key);
        if (tti_kind_find(t->ctx, s, word, &kind) &&
            (tti_schema_row(&kind, option->key) != NULL || tti_schema_key(&kind, option->key)))
            return tti_fail_at(t->ctx, TT_EINVAL, option->key_at, path,
                               "'%.64s' is a key of %s: write it below, as in %s: {%.64s: ...}",
                               option->key, word, word, option->key);
        if (h != NULL && h->ours == NULL)
            return tti_fail_at(t->ctx, TT_EINVAL, name->key_at, path, "unknown %s '%.64s'; %s",
                               s->name, name->key, tti_hint_text(h, text));
    }
    return tti_fail_at(t->ctx, TT_EINVAL, b->key_at, path,
                       "'%.64s' and '%.64s' (%s) are both given; only one %s is allowed",
                       b->key[0] != '\0' ? b->key : b->text, a->key[0] != '\0' ? a->key : a->text,
                       tti_place_text(a->key_at, place), s->name);
}

// The one key of a choice's map that names the kind; for a scalar it is the scalar itself.
static tt_status find_chosen(tti_tree *t, const tti_schema *s, const char *path, const tti_item *in,
                             const tti_item **out)
{
    const tti_item *found = NULL;
    for (const tti_item *c = in->first; c != NULL; c = c->next) {
        if (stands_beside(s, c->key))
            continue;
        if (found != NULL)
            return two_kinds(t, s, path, found, c);
        found = c;
    }
    if (found == NULL)
        return tti_fail_at(t->ctx, TT_EINVAL, in->at, path, "must name one %s", s->name);
    *out = found;
    return TT_OK;
}

// The kind's options together with what stands beside its name.
static tt_status gather(tti_tree *t, const tti_schema *s, const tti_schema *kind, const char *path,
                        const tti_item *map, const tti_item *chosen, tti_item **out)
{
    bool bare = chosen->key[0] == '\0'; // the scalar is the kind's name
    tti_item *all;
    if (bare || chosen->kind != TTI_MAP) {
        all = tti_item_new(t, TTI_MAP, chosen->at);
        tti_item *main = bare || tti_item_is_null(chosen) ? NULL : tti_item_copy(t, chosen);
        if (all == NULL || lost(t) != TT_OK)
            return lost(t);
        if (main != NULL)
            tti_item_add(all, "", chosen->at, main);
    } else {
        all = tti_item_copy(t, chosen);
        if (all == NULL)
            return lost(t);
    }
    for (const tti_item *c = map->first; c != NULL; c = c->next) {
        if (c == chosen || !stands_beside(s, c->key))
            continue;
        if (tti_schema_row(kind, c->key) == NULL && tti_schema_key(kind, c->key) == NULL)
            return unknown_key(t, kind, path, c);
        if (tti_item_get(all, c->key) != NULL)
            return tti_fail_at(t->ctx, TT_EINVAL, c->key_at, path, "'%.64s' is given twice",
                               c->key);
        tti_item *copy = tti_item_copy(t, c);
        if (copy == NULL)
            return lost(t);
        tti_item_add(all, c->key, c->key_at, copy);
    }
    *out = all;
    return TT_OK;
}

static tt_status resolve_choice(tti_tree *t, const tti_schema *s, const char *path,
                                const tti_item *in, tti_item **out)
{
    const tti_item *chosen = NULL, *options = NULL;
    tti_schema kind = {0};
    char below[TTI_KEY_MAX];
    tti_item *gathered = NULL, *record, *choice;
    if (in->kind == TTI_LIST || tti_item_is_null(in))
        return tti_fail_at(t->ctx, TT_EINVAL, in->at, path, "is %s, but must name one %s",
                           tti_item_word(in), s->name);
    if (in->kind == TTI_MAP)
        TT_TRY(find_chosen(t, s, path, in, &chosen));
    bool bare = chosen == NULL || chosen->key[0] == '\0';
    const tti_item *named = chosen != NULL ? chosen : in;
    const char *name = bare ? named->text : chosen->key;
    tti_place at = bare ? named->at : chosen->key_at;
    if (!tti_kind_find(t->ctx, s, name, &kind))
        return unknown_kind(t, s, path, name, at);
    tti_path_join(below, path, kind.name);
    if (in->kind == TTI_MAP && in->n > 1) {
        TT_TRY(gather(t, s, &kind, below, in, chosen, &gathered));
        options = gathered;
    } else if (!bare && !tti_item_is_null(chosen)) {
        options = chosen;
    }
    TT_TRY(resolve_record(t, &kind, below, options, at, &record));
    choice = tti_item_new(t, TTI_MAP, at);
    if (choice == NULL)
        return lost(t);
    tti_item_add(choice, kind.name, at, record);
    *out = choice;
    return TT_OK;
}

// ---- lists and named maps --------------------------------------------------------------------

static bool has_key_of(const tti_item *map, const tti_schema *record)
{
    for (const tti_item *c = map->first; c != NULL; c = c->next)
        if (tti_schema_row(record, c->key) != NULL || tti_schema_key(record, c->key) != NULL)
            return true;
    return false;
}

static tt_status resolve_list(tti_tree *t, const tti_schema *s, const char *path,
                              const tti_item *in, tti_item **out)
{
    if (s->alt != NULL && in->kind == TTI_MAP && has_key_of(in, s->alt))
        return tti_resolve(t, s->alt, path, in, out);
    tti_item *list = tti_item_new(t, TTI_LIST, in->at);
    if (list == NULL)
        return lost(t);
    *out = list;
    if (tti_item_is_null(in))
        return TT_OK;
    int i = 0;
    for (const tti_item *c = in->kind == TTI_LIST ? in->first : in; c != NULL; i++) {
        char below[TTI_KEY_MAX], number[16];
        tti_item *made;
        snprintf(number, sizeof(number), "%d", i);
        tti_path_join(below, path, number);
        TT_TRY(tti_resolve(t, s->item, in->kind == TTI_LIST ? below : path, c, &made));
        tti_item_add(list, NULL, c->at, made);
        c = in->kind == TTI_LIST ? c->next : NULL;
    }
    return TT_OK;
}

static tt_status resolve_named(tti_tree *t, const tti_schema *s, const char *path,
                               const tti_item *in, tti_item **out)
{
    tti_item *map = tti_item_new(t, TTI_MAP, in->at);
    if (map == NULL)
        return lost(t);
    *out = map;
    if (tti_item_is_null(in))
        return TT_OK;
    const tti_item *c = in->kind == TTI_SCALAR ? in : in->first;
    while (c != NULL) {
        bool word = in->kind != TTI_MAP; // a name alone
        const char *name = word ? c->text : c->key;
        tti_place at = word ? c->at : c->key_at;
        char below[TTI_KEY_MAX];
        tti_item *made;
        if (word && (c->kind != TTI_SCALAR || name[0] == '\0'))
            return tti_fail_at(t->ctx, TT_EINVAL, c->at, path, "an item is %s, but must be a name",
                               tti_item_word(c));
        if (tti_item_get(map, name) != NULL)
            return tti_fail_at(t->ctx, TT_EINVAL, at, path, "'%.64s' is given twice", name);
        tti_path_join(below, path, name);
        TT_TRY(resolve_record(t, s->item, below, word ? NULL : c, at, &made));
        tti_item_add(map, name, at, made);
        c = in->kind == TTI_SCALAR ? NULL : c->next;
    }
    return TT_OK;
}

tt_status tti_resolve(tti_tree *t, const tti_schema *schema, const char *path, const tti_item *in,
                      tti_item **out)
{
    switch (schema->form) {
    case TTI_RECORD:
        return resolve_record(t, schema, path, in, in->at, out);
    case TTI_CHOICE:
        return resolve_choice(t, schema, path, in, out);
    case TTI_LIST_OF:
        return resolve_list(t, schema, path, in, out);
    case TTI_NAMED:
        return resolve_named(t, schema, path, in, out);
    }
    return TT_EINVAL;
}
