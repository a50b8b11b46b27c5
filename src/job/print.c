/*
 * print.c - a resolved tree as YAML that reads back to the same tree. A map of plain values that
 * fits a line is written in braces, a kind without options as its name.
 */
#include "job/tree.h"
#include "model/model.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 100
#define PATH  256

// Can a text stand without quotes and not be taken for anything but a text?
static bool is_plain_text(const char *s)
{
    static const char *const others[] = {"null", "true", "false", "yes", "no",
                                         "on",   "off",  "y",     "n",   NULL};
    for (int i = 0; others[i] != NULL; i++)
        if (strcasecmp(s, others[i]) == 0)
            return false;
    if (!isalpha((unsigned char)s[0]) && s[0] != '_' && s[0] != '/')
        return false;
    for (; *s != '\0'; s++)
        if ((unsigned char)*s >= 128 || (!isalnum((unsigned char)*s) && strchr("_-./", *s) == NULL))
            return false;
    return true;
}

static void print_scalar(tti_text *t, const tti_item *item)
{
    if (item->plain || is_plain_text(item->text))
        tti_text_put(t, item->text, strlen(item->text));
    else
        tti_text_json(t, item->text);
}

static void print_key(tti_text *t, const char *key)
{
    if (is_plain_text(key))
        tti_text_put(t, key, strlen(key));
    else
        tti_text_json(t, key);
}

// A pattern means plain values only: what a user has given a name is no key.
static bool is_skipped(const tti_item *item, const char *path, const char *const *skip)
{
    for (; skip != NULL && *skip != NULL; skip++)
        if (strcmp(path, *skip) == 0 || (item->kind == TTI_SCALAR && tti_match(*skip, path)))
            return true;
    return false;
}

static void join_path(char out[PATH], const char *path, const char *key)
{
    snprintf(out, PATH, "%.120s%s%.100s", path, path[0] != '\0' ? "." : "", key);
}

static bool is_flat(const tti_item *map)
{
    for (const tti_item *c = map->first; c != NULL; c = c->next)
        if (c->kind != TTI_SCALAR)
            return false;
    return map->kind == TTI_MAP;
}

// {a: 1, b: x}, if it fits the room that is left in the line.
static bool print_braces(tti_text *t, const tti_item *map, const char *path, int column,
                         const char *const *skip)
{
    int64_t start = t->n;
    bool first = true;
    tti_text_put(t, "{", 1);
    for (const tti_item *c = map->first; c != NULL; c = c->next) {
        char below[PATH];
        join_path(below, path, c->key);
        if (is_skipped(c, below, skip))
            continue;
        if (!first)
            tti_text_put(t, ", ", 2);
        first = false;
        print_key(t, c->key);
        tti_text_put(t, ": ", 2);
        print_scalar(t, c);
    }
    tti_text_put(t, "}\n", 2);
    if (t->failed || column + (t->n - start) <= WIDTH)
        return true;
    t->n = start;
    return false;
}

static void print_item(tti_text *t, const tti_item *item, const char *path, int indent, int column,
                       const char *const *skip);

static void print_map(tti_text *t, const tti_item *map, const char *path, int indent, bool in_list,
                      const char *const *skip)
{
    bool first = in_list; // its first key stands behind the dash
    for (const tti_item *c = map->first; c != NULL; c = c->next) {
        char below[PATH];
        join_path(below, path, c->key);
        if (is_skipped(c, below, skip))
            continue;
        if (!first)
            tti_text_add(t, "%*s", indent, "");
        first = false;
        print_key(t, c->key);
        tti_text_put(t, ":", 1);
        print_item(t, c, below, indent, indent + (int)strlen(c->key) + 1, skip);
    }
}

static void print_list(tti_text *t, const tti_item *list, const char *path, int indent,
                       const char *const *skip)
{
    for (const tti_item *c = list->first; c != NULL; c = c->next) {
        tti_text_add(t, "%*s-", indent, "");
        if (c->kind == TTI_MAP && c->n == 1 && c->first->kind == TTI_MAP && c->first->n == 0) {
            tti_text_add(t, " %s\n", c->first->key);
        } else if (c->kind == TTI_MAP && c->n > 0 && !is_flat(c)) {
            tti_text_put(t, " ", 1);
            print_map(t, c, path, indent + 2, true, skip);
        } else {
            print_item(t, c, path, indent, indent + 1, skip);
        }
    }
}

// What stands behind a key's colon or a dash; column is where the line has come to.
static void print_item(tti_text *t, const tti_item *item, const char *path, int indent, int column,
                       const char *const *skip)
{
    if (item->kind == TTI_SCALAR) {
        tti_text_put(t, " ", 1);
        print_scalar(t, item);
        tti_text_put(t, "\n", 1);
    } else if (item->n == 0) {
        tti_text_add(t, " %s\n", item->kind == TTI_LIST ? "[]" : "{}");
    } else if (item->kind == TTI_LIST) {
        tti_text_put(t, "\n", 1);
        print_list(t, item, path, indent + 2, skip);
    } else if (item->n == 1 && item->first->kind == TTI_MAP && item->first->n == 0) {
        tti_text_add(t, " %s\n", item->first->key);
    } else {
        tti_text_put(t, " ", 1);
        if (is_flat(item) && print_braces(t, item, path, column + 1, skip))
            return;
        t->n -= !t->failed; // the space
        tti_text_put(t, "\n", 1);
        print_map(t, item, path, indent + 2, false, skip);
    }
}

void tti_tree_print(tti_text *t, const tti_item *root, const char *const *skip)
{
    print_map(t, root, "", 0, false, skip);
}
