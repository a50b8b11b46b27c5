/*
 * program.h - what the kernels of plan nodes that are no ops find in launch.tune: plain structs,
 * read by kernels of every backend.
 */
#ifndef TUTTI_PLAN_PROGRAM_H
#define TUTTI_PLAN_PROGRAM_H

#include "device/kernel_key.h"
#include <tutti/extend.h>

// The tree over partial sums as a program for a stack (TTI_KERNEL_TREE, MOMENTS, NARROW
// and WIDEN).
typedef struct tti_push {
    int16_t input, part, merges;
    int64_t rows; // of the part
    int64_t skip; // elements of the input before the first that is added
} tti_push;
typedef struct tti_tree_program {
    int n, n_out;    // pushes; partials left in the end
    int64_t count;   // elements of a partial
    int64_t begin;   // the first that this node adds
    int64_t per_row; // statistics: entries of a channel in a row of the batch
    tti_push *push;
} tti_tree_program;

// Where the pieces of a collect begin, by input; those below first are already there
// (TTI_KERNEL_COLLECT).
typedef struct tti_collect_program {
    int first;
    int64_t *begin;
} tti_collect_program;

// Several pointwise nodes as one (TTI_KERNEL_FUSED).
#define TTI_FUSE_MAX 16
#define TTI_FUSE_IN  4
#define TTI_FUSE_OF  1000 // in[]: TTI_FUSE_OF + member whose output it is
typedef struct tti_fused_member {
    tt_kernel_fn fn; // CPU
    const tt_node *node;
    int n_in;
    int in[TTI_FUSE_IN]; // argument of the launch, or TTI_FUSE_OF + member
    tt_arg out;          // type of its output
    bool is_last;        // its output is the node's
    bool is_wide;        // CPU: its kernel takes and gives f32 in place of a half type
} tti_fused_member;
typedef struct tti_fused {
    int n;
    bool has_wide;
    tt_kernel_fn cast; // CPU
    tti_fused_member members[TTI_FUSE_MAX];
} tti_fused;

/*
 * Nodes of which each reads those before (TTI_KERNEL_CHAIN and their ops), on devices with streams.
 * Inputs of the launch are what comes from outside, each once; outputs are those of all members, in
 * order, of which some are not written: they have no memory. Output 0 of a member may lie where an
 * input of its shape does that the op of some member that reads it lets its output 0 take over.
 * tune begins with a pointer to this. prepare() does not fail: where it leaves n_phases 0 it
 * declines, and the nodes stay apart.
 */
#define TTI_CHAIN_MAX TTI_KERNEL_OPS
#define TTI_CHAIN_IN  8
typedef struct tti_chain_member {
    const tt_node *node;
    int n_in, n_out;
    int in[TTI_CHAIN_IN]; // argument of the launch, or TTI_FUSE_OF + its output
    int out;              // its first output of the launch
} tti_chain_member;
typedef struct tti_chain {
    int n;
    unsigned kept; // bit i: output i of the launch is written
    tti_chain_member members[TTI_CHAIN_MAX];
} tti_chain;

#endif
