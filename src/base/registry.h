/*
 * registry.h - records found by name: the library's own, a constant list, then those that a user
 * registered with the context. A record begins with its name.
 */
#ifndef TUTTI_BASE_REGISTRY_H
#define TUTTI_BASE_REGISTRY_H

#include "base/base.h"

typedef struct tti_registry {
    const void **at;
    int64_t n, room;
} tti_registry;

// The library's records of one kind, and what they are called in messages.
typedef struct tti_records {
    const char *what;  // "op"
    const char *needs; // "a name and a shape rule"
    const void *const *at;
    int n;
} tti_records;

// Record i of own and then of user's, which may be NULL; NULL beyond the last.
const void *tti_registry_at(const tti_records *own, const tti_registry *user, int i);
// NULL: there is none of that name, or name is NULL.
const void *tti_registry_find(const tti_records *own, const tti_registry *user, const char *name);
/*
 * Fails with TT_EINVAL if ctx is NULL, if the record is NULL, has no name or is not whole (it lacks
 * what the kind needs), and if there is one of that name.
 */
tt_status tti_registry_add(tt_ctx *ctx, const tti_records *own, tti_registry *user,
                           const void *record, bool is_whole) TTI_CHECKED;

#endif
