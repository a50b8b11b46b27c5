/*
 * kernel_key.h - what a kernel of a backend is asked for by.
 *
 * A kernel does the work of one op, of several ops that a plan has made one call of, or of a kind
 * of plan node. Ops are named, as the module of a backend does not see the library's records.
 */
#ifndef TUTTI_DEVICE_KERNEL_KEY_H
#define TUTTI_DEVICE_KERNEL_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef enum tti_kernel_form {
    TTI_KERNEL_OP = 0,      // op[0]
    TTI_KERNEL_BATCHED = 1, // several calls of op[0] at once (op/batched_calls.h)
    TTI_KERNEL_CHAIN = 2,   // the ops, each reading those before (plan/program.h)
    TTI_KERNEL_INIT = 3,    // the first values of a variable (op/init.h)
    TTI_KERNEL_FUSED = 4,   // several pointwise nodes; this and the following: plan/program.h
    TTI_KERNEL_TREE = 5,    // sums of all shards, by the tree over lanes
    TTI_KERNEL_WIDEN = 6,   // the same, of sums that were narrowed
    TTI_KERNEL_NARROW = 7,  // a sum rounded to the type it is sent in
    TTI_KERNEL_GATHER = 8,  // the rows of all shards
    TTI_KERNEL_MOMENTS = 9, // the statistics of all shards
    TTI_KERNEL_COLLECT = 10 // the pieces of all replicas
} tti_kernel_form;

#define TTI_KERNEL_OPS 3 // of a chain, at most

typedef struct tti_kernel_key {
    tti_kernel_form form;
    const char *op[TTI_KERNEL_OPS]; // names; NULL: no more
} tti_kernel_key;

static inline tti_kernel_key tti_kernel_of_op(const char *op)
{
    tti_kernel_key k = {TTI_KERNEL_OP, {op, NULL, NULL}};
    return k;
}

static inline tti_kernel_key tti_kernel_of_form(tti_kernel_form form)
{
    tti_kernel_key k = {form, {NULL, NULL, NULL}};
    return k;
}

static inline bool tti_kernel_key_equal(const tti_kernel_key *a, const tti_kernel_key *b)
{
    if (a->form != b->form)
        return false;
    for (int i = 0; i < TTI_KERNEL_OPS; i++) {
        const char *x = a->op[i], *y = b->op[i];
        if (x == NULL || y == NULL)
            return x == y;
        if (strcmp(x, y) != 0)
            return false;
    }
    return true;
}

#define TTI_KERNEL_TEXT 160 // "batched square_sum", "chain add+layer_norm", "tree"
void tti_kernel_key_text(const tti_kernel_key *k, char out[TTI_KERNEL_TEXT]);

#endif
