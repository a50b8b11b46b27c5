/*
 * schema.h - what a job may say: tables of option rows, joined to a tree of forms.
 *
 * Checking, printing, help and the environment all walk these tables; no code knows a key by name
 * that is not about its meaning. Kinds (optimizers, layers, sources, ...) come from their own
 * tables by a function that gives the i-th.
 */
#ifndef TUTTI_JOB_SCHEMA_H
#define TUTTI_JOB_SCHEMA_H

#include "job/tree.h"

typedef enum tti_form {
    TTI_RECORD,  // a map of known keys
    TTI_CHOICE,  // one of several kinds, each a record: adam, or {adam: {lr: 0.1}}
    TTI_LIST_OF, // a list; what is no list stands for a list of one
    TTI_NAMED,   // a map with keys of the user's own
} tti_form;

typedef struct tti_schema tti_schema;

// A key with more than a value below it.
typedef struct tti_key {
    const char *name;
    const tti_schema *schema;
    const char *value; // what a missing one is: NULL nothing, "" the defaults, else a kind's name
} tti_key;

struct tti_schema {
    tti_form form;
    const char *name; // of a kind; of anything else what it is in messages: "optimizer"
    const char *help;
    // A record: rows, more rows, keys.
    const tt_option *rows, *more;
    const tti_key *keys;  // NULL name at the end
    const char *main;     // the row or key that a bare value sets; NULL: none
    const char *later;    // a row that must be given, if the data does not say it
    const char *other[2]; // a row and its default here, if not that of the row
    bool (*takes)(const char *kind, const char *row); // NULL: all rows; others are not in help
    // A choice.
    bool (*at)(tt_ctx *ctx, int i, tti_schema *out); // false past the end
    const char *const *beside; // keys of a kind that may also stand beside its name
    // A list or named map.
    const tti_schema *item;
    const tti_schema *alt; // a list: a map with any of this record's keys is one instead
};

extern const tti_schema tti_job_schema; // sections.c: the whole job

// Makes the resolved item: every key has its value, in the order of the tables. in NULL: missing.
tt_status tti_resolve(tti_tree *t, const tti_schema *schema, const char *path, const tti_item *in,
                      tti_item **out) TTI_CHECKED;
// Puts TUTTI_<SECTION>_<KEY> of the environment into the tree, for rows of records below root.
tt_status tti_environment(tti_tree *t, const tti_schema *schema, tti_item *root) TTI_CHECKED;

// The default of a record's row as text; NULL: it must be given.
const char *tti_schema_default(const tti_schema *record, const tt_option *row);
// Options of another kind are in its rows too, where all kinds have one struct: not in help.
bool tti_schema_hides(const tti_schema *record, const tt_option *row);

#define TTI_KEY_MAX 256
void tti_path_join(char out[TTI_KEY_MAX], const char *path, const char *part); // "train.batch"
// A row's value, checked, as an item: from an item that was given, or from text. above and path
// are the section's and the row's own.
tt_status tti_row_item(tti_tree *t, const tt_option *row, const char *above, const tti_item *in,
                       tti_item **out) TTI_CHECKED;
tt_status tti_value_item(tti_tree *t, const tt_option *row, const char *path, const char *text,
                         tti_place at, tti_item **out) TTI_CHECKED;
// The section of a job that alone has a key of this name, "train" of "epochs"; NULL: there is none.
const char *tti_section_with(const char *name);
// The kind of a choice by name; false: there is none.
bool tti_kind_find(tt_ctx *ctx, const tti_schema *choice, const char *name, tti_schema *out);
const tt_option *tti_schema_row(const tti_schema *record, const char *name);
const tti_key *tti_schema_key(const tti_schema *record, const char *name);

// ---- resolved items into structs -------------------------------------------------------------

// Defaults, then the values of a resolved record; texts are borrowed from the tree.
tt_status tti_bind(tt_ctx *ctx, const tt_option *rows, const tti_item *record,
                   void *out) TTI_CHECKED;
// The one kind of a resolved choice: its key is the name, it is the record.
const tti_item *tti_chosen(const tti_item *choice);

// ---- help ------------------------------------------------------------------------------------

// What stands at a dotted path of a job, "train.optimizer.*.groups"; "*" is any kind or name, lists
// and choices add no part of their own. False: nothing does.
bool tti_schema_at(tt_ctx *ctx, const char *path, tti_schema *out);
// Help of a dotted path below root.
tt_status tti_schema_help(tt_ctx *ctx, tti_text *t, const tti_schema *root,
                          const char *path) TTI_CHECKED;

#endif
