/*
 * set.c - changes to a tree by dotted path: --set train.batch=256, and the environment.
 */
#include "job/tree.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A scalar that has to become a map keeps what it said: as a key if that is the one asked for
// ("adam" and train.optimizer.adam.lr), else as the bare value.
static tt_status open_scalar(tti_tree *t, tti_item *item, const char *part)
{
    tti_item *kept = NULL;
    bool is_null = tti_item_is_null(item), same = strcmp(item->text, part) == 0;
    if (!is_null) {
        kept = tti_scalar_new(t, same ? "" : item->text, same || item->plain, item->at);
        if (kept == NULL)
            return tt_status_of(t->ctx);
    }
    const char *key = same ? item->text : "";
    item->kind = TTI_MAP;
    item->text = "";
    if (kept != NULL)
        tti_item_add(item, key, item->at, kept);
    return TT_OK;
}

static tt_status step_list(tti_tree *t, tti_item *list, const char *part, tti_place at,
                           tti_item **out)
{
    char *end;
    long i = strtol(part, &end, 10);
    if (part[0] < '0' || part[0] > '9' || *end != '\0')
        return tti_fail_at(t->ctx, TT_EINVAL, at, "",
                           "'%.64s' must be a number from 0 to %d: it is an index into a list",
                           part, list->n - 1);
    if (i >= list->n)
        return tti_fail_at(t->ctx, TT_EINVAL, at, "",
                           "there is no item %.20s: the list has length %d", part, list->n);
    tti_item *item = list->first;
    while (i-- > 0)
        item = item->next;
    *out = item;
    return TT_OK;
}

// The item below item that part names; made if a map lacks it.
static tt_status step(tti_tree *t, tti_item *item, const char *part, tti_place at, tti_item **out)
{
    if (part[0] == '\0')
        return tti_fail_at(t->ctx, TT_EINVAL, at, "", "the path has an empty part");
    if (item->kind == TTI_LIST)
        return step_list(t, item, part, at, out);
    if (item->kind == TTI_SCALAR)
        TT_TRY(open_scalar(t, item, part));
    *out = tti_item_get(item, part);
    if (*out != NULL)
        return TT_OK;
    const char *key = tti_tree_text(t, part, strlen(part));
    tti_item *made = key != NULL ? tti_scalar_new(t, "", true, at) : NULL;
    if (made == NULL)
        return tt_status_of(t->ctx);
    tti_item_add(item, key, at, made);
    *out = made;
    return TT_OK;
}

tt_status tti_tree_set(tti_tree *t, tti_item *root, const char *path, tti_item *value)
{
    tti_item *item = root;
    char part[128];
    for (int depth = 0;; depth++) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof(part) || depth >= TTI_MAX_DEPTH)
            return tti_fail_at(t->ctx, TT_EINVAL, value->at, "", "the path is too long");
        memcpy(part, path, n);
        part[n] = '\0';
        TT_TRY(step(t, item, part, value->at, &item));
        if (path[n] == '\0')
            break;
        path += n + 1;
    }
    tti_item *next = item->next;
    const char *key = item->key;
    *item = *value;
    item->key = key;
    item->key_at = value->at;
    item->next = next;
    return TT_OK;
}

tt_status tti_tree_assign(tti_tree *t, tti_item *root, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment)
        return TT_FAIL(t->ctx, TT_EINVAL, "--set '%.128s' must be KEY=VALUE", assignment);
    size_t n = (size_t)(equals - assignment);
    char source[160];
    snprintf(source, sizeof(source), "--set %.*s", (int)TTI_MIN(n, 140), assignment);
    const char *path = tti_tree_text(t, assignment, n);
    const char *kept = path != NULL ? tti_tree_text(t, source, strlen(source)) : NULL;
    if (kept == NULL)
        return TT_ENOMEM;
    tti_item *value = NULL;
    const char *text = equals + 1;
    if (text[0] != '\0' && strchr("[{\"'", text[0]) != NULL)
        TT_TRY(tti_yaml_read(t, kept, text, strlen(text), &value));
    else
        value = tti_scalar_new(t, text, text[0] != '\0', (tti_place){kept, 0, 0});
    if (value == NULL)
        return tt_status_of(t->ctx);
    return tti_tree_set(t, root, path, value);
}
