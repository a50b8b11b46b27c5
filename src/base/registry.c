/*
 * registry.c - records found by name (registry.h).
 */
#include "base/registry.h"
#include <string.h>

static const char *name_of(const void *record)
{
    const char *name;
    memcpy(&name, record, sizeof(name)); // what every record begins with
    return name;
}

const void *tti_registry_at(const tti_records *own, const tti_registry *user, int i)
{
    if (i < 0)
        return NULL;
    if (i < own->n)
        return own->at[i];
    return user != NULL && i - own->n < user->n ? user->at[i - own->n] : NULL;
}

const void *tti_registry_find(const tti_records *own, const tti_registry *user, const char *name)
{
    const void *record;
    for (int i = 0; name != NULL && (record = tti_registry_at(own, user, i)) != NULL; i++)
        if (strcmp(name_of(record), name) == 0)
            return record;
    return NULL;
}

tt_status tti_registry_add(tt_ctx *ctx, const tti_records *own, tti_registry *user,
                           const void *record, bool is_whole)
{
    if (ctx == NULL)
        return TT_EINVAL;
    if (record == NULL || name_of(record) == NULL || !is_whole)
        return TT_FAIL(ctx, TT_EINVAL, "%s: the record needs %s", own->what, own->needs);
    if (tti_registry_find(own, user, name_of(record)) != NULL)
        return TT_FAIL(ctx, TT_EINVAL, "%s '%s' is already registered", own->what, name_of(record));
    if (!tti_grow(ctx, &user->at, &user->room, user->n + 1, sizeof(*user->at)))
        return TT_ENOMEM;
    user->at[user->n++] = record;
    return TT_OK;
}
