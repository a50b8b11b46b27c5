/*
 * reduction.h - combining values element by element along a program: the arithmetic of every sum
 * between members, whether a call of tt_comm asks for it or a node of a plan.
 *
 * The program is one for a stack: each addend is pushed, then the two topmost are combined so many
 * times (lane_tree.h says when). Where the addends lie is a transport's business: in memory of this
 * process, in memory that another one shares, in a message that has come.
 */
#ifndef TUTTI_COMM_REDUCTION_H
#define TUTTI_COMM_REDUCTION_H

#include "base/base.h"
#include <tutti/comm.h>

// One value to be combined; after it the two topmost of the stack are combined so many times.
typedef struct tti_addend {
    const char *data; // NULL: of another process
    int merges;
    int member, part; // whose, and which of its parts
    bool is_wide;     // of the sums' type already
} tti_addend;

typedef struct tti_reduction {
    const struct tti_fold_set *set; // the arithmetic
    tt_dtype from, wide, to;        // of the addends, of the sums, of the result
    tt_combine combine;
    double factor;
    int64_t count;
    const tt_member *members; // results go to their outs; NULL: nowhere
    int n_members;
    bool is_scattered;
    bool passes;      // results go past the cache: they are many, and others read them
    char *copy;       // NULL, or where they go too, as if that began with element 0
    bool copy_passes; // past the cache
    bool is_partial;  // the result is an addend of another reduction: to is wide
    int n;
    tti_addend addend[TTI_MAX(TT_MAX_MEMBERS, TT_MAX_LANES)];
} tti_reduction;

// Elements [begin, end) of it, from all addends to all outs. The program leaves one value.
void tti_reduction_run(const tti_reduction *r, int64_t begin, int64_t end);
/*
 * The same where the program leaves n_out values, sums over a part of the lanes: they go to out,
 * `apart` elements after each other. An addend that nothing was added to stays as it is; the sign
 * of a zero, too.
 */
void tti_reduction_run_parts(const tti_reduction *r, int64_t begin, int64_t end, int n_out,
                             void *out, int64_t apart);

// The arithmetic of an instruction set (device.h); sums of one pair, ended: a + b + 0.
const struct tti_fold_set *tti_fold_set_of(int isa);
void tti_add_pair(int isa, tt_dtype t, void *out, const void *low, const void *high, int64_t n);

// First element of member i's share when n members share count elements.
static inline int64_t tti_share_begin(int64_t count, int i, int n)
{
    return count / n * i + count % n * i / n;
}

#endif
