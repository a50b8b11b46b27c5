/*
 * tree.h - a job as a tree of scalars, lists and maps, each knowing where it was written.
 *
 * The tree knows nothing of what keys mean: yaml.c makes it from a file, set.c changes it by --set
 * and the environment, resolve.c holds it against the tables and makes a second tree from it in
 * which every key has its value. Items and texts live in the tree's memory, freed as one.
 */
#ifndef TUTTI_JOB_TREE_H
#define TUTTI_JOB_TREE_H

#include "base/base.h"

#define TTI_MAX_JOB_BYTES (1 << 20)
#define TTI_MAX_ITEMS     20000
#define TTI_MAX_DEPTH     32
#define TTI_MAX_KEYS      256 // of one map

// Where something was written. A line of 0: source says it all ("--set train.batch").
typedef struct tti_place {
    const char *source;
    int line, column; // from 1
} tti_place;
#define TTI_PLACE_MAX 320
const char *tti_place_text(tti_place at, char buf[TTI_PLACE_MAX]); // "digits.yaml:12:9"

typedef enum tti_item_kind {
    TTI_SCALAR,
    TTI_LIST,
    TTI_MAP,
} tti_item_kind;

typedef struct tti_item tti_item;
struct tti_item {
    tti_item_kind kind;
    bool plain;       // scalar: without quotes; of the resolved tree: not free text
    const char *text; // scalar
    const char *key;  // in a map; NULL elsewhere
    tti_place at, key_at;
    tti_item *first, *last, *next; // of a list or map
    int n;
};

typedef struct tti_tree {
    tt_ctx *ctx;
    struct tti_tree_block *blocks;
    int n_items;
} tti_tree;

void tti_tree_free(tti_tree *t);
// NULL: recorded, as for all that follow; also when the tree has TTI_MAX_ITEMS items.
tti_item *tti_item_new(tti_tree *t, tti_item_kind kind, tti_place at);
tti_item *tti_scalar_new(tti_tree *t, const char *text, bool plain, tti_place at);
char *tti_tree_text(tti_tree *t, const char *s, size_t n); // a copy
// Appends child to a list (key NULL) or map; key is borrowed.
void tti_item_add(tti_item *parent, const char *key, tti_place key_at, tti_item *child);
tti_item *tti_item_copy(tti_tree *t, const tti_item *from); // with all below it, without key

tti_item *tti_item_get(const tti_item *map, const char *key); // NULL: no such key, or no map
bool tti_item_is_null(const tti_item *item);                  // nothing, ~ or null, unquoted
const char *tti_item_word(const tti_item *item);              // "a text", "a list", "a map"

// Reads YAML; file stands in front of messages. Aliases become copies.
tt_status tti_yaml_read(tti_tree *t, const char *file, const char *text, size_t bytes,
                        tti_item **out) TTI_CHECKED;
// Sets the value at a dotted path ("model.0.dense.units") below root. Missing maps are made; a
// scalar in the way becomes a map that keeps it under the key "" (resolve.c: the bare value).
tt_status tti_tree_set(tti_tree *t, tti_item *root, const char *path, tti_item *value) TTI_CHECKED;
// "train.batch=256". A value that begins with [ { " ' is YAML, any other the text as it is.
tt_status tti_tree_assign(tti_tree *t, tti_item *root, const char *assignment) TTI_CHECKED;

// Fails with "place: path: message"; an empty path is left out.
tt_status tti_fail_at(tt_ctx *ctx, tt_status st, tti_place at, const char *path, const char *fmt,
                      ...) TT_PRINTF(5, 6);

// YAML of a resolved tree, in the order of its keys; those in skip ("data.workers"; NULL at the
// end) are left out.
void tti_tree_print(tti_text *t, const tti_item *root, const char *const *skip);

#endif
