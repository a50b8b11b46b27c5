/*
 * pickle_machine.h - the machine that runs a pickle. Values are numbered; a container lists the
 * numbers of its items. Every operation makes at most one value, so memory is bounded by the
 * pickle's size.
 */
#ifndef TUTTI_SAVE_PICKLE_MACHINE_H
#define TUTTI_SAVE_PICKLE_MACHINE_H

#include "base/base.h"

typedef enum tti_pk_kind {
    TTI_PK_NONE,
    TTI_PK_INT,
    TTI_PK_TEXT,
    TTI_PK_TUPLE, // and lists
    TTI_PK_DICT,  // keys and values in turn
    TTI_PK_NAME,  // module and name of something in Python
    TTI_PK_STORAGE,
    TTI_PK_TENSOR,
    TTI_PK_MARK,
} tti_pk_kind;

typedef struct tti_pk_value {
    tti_pk_kind kind;
    int64_t number;   // of an integer; of a storage its elements; of a tensor its offset
    const char *text; // of a text, a storage's key, a name "module name"
    size_t length;    // of the text
    int64_t first, n; // items, in the machine's list
    int64_t a, b, c;  // tensor: storage, shape, stride; storage: its type
} tti_pk_value;

// The item lists of dictionaries grow as items are set: each is a chain of pieces.
typedef struct tti_pk_piece {
    int64_t key, value, next; // next -1: the last
} tti_pk_piece;

typedef struct tti_pk_machine {
    tt_ctx *ctx;
    const char *file;
    const unsigned char *p, *end;
    size_t bytes;
    tti_pk_value *values;
    int64_t n, cap;
    int64_t *items; // of tuples
    int64_t n_items, cap_items;
    tti_pk_piece *pieces; // of dictionaries
    int64_t n_pieces, cap_pieces;
    int64_t *stack;
    int64_t n_stack, cap_stack;
    int64_t *memo;
    int64_t n_memo, cap_memo;
} tti_pk_machine;

// Fails with TT_EPARSE: the pickle is damaged, and how.
tt_status tti_pk_damaged(const tti_pk_machine *m, const char *what) TTI_CHECKED;
// Runs one operation, whose operands are at m->p; *over: it was the last.
tt_status tti_pk_operation(tti_pk_machine *m, int op, bool *over) TTI_CHECKED;
tti_pk_value *tti_pk_top(tti_pk_machine *m); // of the stack; NULL: it is empty
// Item i of a tuple; NULL: there is none.
tti_pk_value *tti_pk_item(tti_pk_machine *m, const tti_pk_value *t, int64_t i);
const char *tti_pk_storage_type(const tti_pk_value *storage); // "FloatStorage"

#endif
