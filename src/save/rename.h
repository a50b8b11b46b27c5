/*
 * rename.h - maps of names, "old.*=new.*, head=classifier": the first rule whose left side a name
 * matches gives its new name; the * stands for the same characters on both sides.
 */
#ifndef TUTTI_SAVE_RENAME_H
#define TUTTI_SAVE_RENAME_H

#include "base/base.h"

#define TTI_RENAME_MAX 1024 // bytes of a new name, its zero counted

// Fails, naming the rule, if map is no such list. NULL is fine: it changes nothing.
tt_status tti_rename_check(tt_ctx *ctx, const char *map) TTI_CHECKED;
// The new name of a tensor; map was checked. Fails if it is too long.
tt_status tti_rename(tt_ctx *ctx, const char *map, const char *name,
                     char out[TTI_RENAME_MAX]) TTI_CHECKED;

// The other way: rules from their right side to their left.
tt_status tti_rename_back(tt_ctx *ctx, const char *map, const char *name,
                          char out[TTI_RENAME_MAX]) TTI_CHECKED;

#endif
