/*
 * tree.c - items and their memory: blocks that are only ever filled, freed together.
 */
#include "job/tree.h"
#include "base/ctx.h"
#include <stdio.h>
#include <string.h>

#define BLOCK 8192

struct tti_tree_block {
    struct tti_tree_block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

void tti_tree_free(tti_tree *t)
{
    while (t->blocks != NULL) {
        struct tti_tree_block *b = t->blocks;
        t->blocks = b->next;
        tti_free(t->ctx, b);
    }
}

static void *take(tti_tree *t, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct tti_tree_block *b = t->blocks;
    if (b == NULL || b->size - b->used < bytes) {
        size_t size = TTI_MAX(bytes, BLOCK);
        b = tti_alloc(t->ctx, sizeof(*b) + size);
        if (b == NULL)
            return NULL;
        *b = (struct tti_tree_block){.next = t->blocks, .size = size};
        t->blocks = b;
    }
    void *p = b->bytes + b->used;
    b->used += bytes;
    return p;
}

char *tti_tree_text(tti_tree *t, const char *s, size_t n)
{
    char *copy = take(t, n + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

tti_item *tti_item_new(tti_tree *t, tti_item_kind kind, tti_place at)
{
    if (t->n_items >= TTI_MAX_ITEMS) {
        (void)tti_fail_at(t->ctx, TT_EPARSE, at, "", "the job has more than %d items",
                          TTI_MAX_ITEMS);
        return NULL;
    }
    tti_item *item = take(t, sizeof(*item));
    if (item == NULL)
        return NULL;
    t->n_items++;
    *item = (tti_item){.kind = kind, .at = at, .plain = true, .text = ""};
    return item;
}

tti_item *tti_scalar_new(tti_tree *t, const char *text, bool plain, tti_place at)
{
    tti_item *item = tti_item_new(t, TTI_SCALAR, at);
    const char *copy = item != NULL ? tti_tree_text(t, text, strlen(text)) : NULL;
    if (copy == NULL)
        return NULL;
    item->text = copy;
    item->plain = plain;
    return item;
}

void tti_item_add(tti_item *parent, const char *key, tti_place key_at, tti_item *child)
{
    child->key = key;
    child->key_at = key_at;
    child->next = NULL;
    if (parent->last == NULL)
        parent->first = child;
    else
        parent->last->next = child;
    parent->last = child;
    parent->n++;
}

tti_item *tti_item_copy(tti_tree *t, const tti_item *from)
{
    tti_item *item = tti_item_new(t, from->kind, from->at);
    if (item == NULL)
        return NULL;
    item->plain = from->plain;
    item->text = from->text;
    for (const tti_item *c = from->first; c != NULL; c = c->next) {
        tti_item *copy = tti_item_copy(t, c);
        if (copy == NULL)
            return NULL;
        tti_item_add(item, c->key, c->key_at, copy);
    }
    return item;
}

tti_item *tti_item_get(const tti_item *map, const char *key)
{
    tti_item *c = map != NULL && map->kind == TTI_MAP ? map->first : NULL;
    while (c != NULL && strcmp(c->key, key) != 0)
        c = c->next;
    return c;
}

bool tti_item_is_null(const tti_item *item)
{
    return item->kind == TTI_SCALAR && item->plain &&
           (item->text[0] == '\0' || strcmp(item->text, "~") == 0 ||
            strcmp(item->text, "null") == 0);
}

const char *tti_item_word(const tti_item *item)
{
    return item->kind == TTI_LIST   ? "a list"
           : item->kind == TTI_MAP  ? "a map"
           : tti_item_is_null(item) ? "empty"
                                    : "a text";
}

const char *tti_place_text(tti_place at, char buf[TTI_PLACE_MAX])
{
    if (at.line > 0)
        snprintf(buf, TTI_PLACE_MAX, "%.256s:%d:%d", at.source, at.line, at.column);
    else
        snprintf(buf, TTI_PLACE_MAX, "%.256s", at.source);
    return buf;
}

tt_status tti_fail_at(tt_ctx *ctx, tt_status st, tti_place at, const char *path, const char *fmt,
                      ...)
{
    char place[TTI_PLACE_MAX], text[TTI_MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return TT_FAIL(ctx, st, "%s: %.128s%s%s", tti_place_text(at, place), path,
                   path[0] != '\0' ? ": " : "", text);
}
