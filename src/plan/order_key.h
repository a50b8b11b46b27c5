/*
 * order_key.h - where a plan node would like to stand in the order.
 *
 * A key has named parts that are compared one after another: the slot, the rank within it, the
 * shift from that rank. Keys are derived from other keys by a named shift ("an update stands this
 * far after its gradient"), and shifts add up: a chain of scalars that is long enough passes nodes
 * of the next rank. Nodes with equal keys stand in the order of their numbers (node_order.c). All
 * parts are integers, so an order does not depend on rounding.
 */
#ifndef TUTTI_PLAN_ORDER_KEY_H
#define TUTTI_PLAN_ORDER_KEY_H

#include <limits.h>
#include <stdbool.h>

typedef struct tti_order_key {
    int slot; // the micro-batch, or the slot of a pipeline's schedule; work after all of them: more
    int rank; // id of the graph node that this is a copy of, or was made for
    int shift; // from that rank to the next, in [0, TTI_SHIFT_RANK)
} tti_order_key;

/*
 * How far a node stands from the one that its key is derived from, in parts of a rank. Equal
 * distances have one name; a receive may be seen from what it reads or from its reader.
 */
typedef enum tti_order_shift {
    TTI_SHIFT_RECOMPUTED = 1,    // a copy computed again: before its first backward reader
    TTI_SHIFT_SEND = 10000,      // a send to another process: after the value
    TTI_SHIFT_ASSEMBLE = 100000, // pieces put together by a library: after their update
    TTI_SHIFT_SCALAR = 125000,   // single numbers, and looks at gradients: after what they read
    TTI_SHIFT_PARTIAL = 200000,  // the sum of a replica or of two micro-batches: after the last
    TTI_SHIFT_RECEIVE = 250000, // before its first reader; also a sum narrowed to be sent: after it
    TTI_SHIFT_TREE = 300000,    // a sum over replicas: after the last gradient of its bucket
    TTI_SHIFT_UPDATE = 500000,  // an update: after its gradient
    TTI_SHIFT_RANK = 1000000,   // a whole rank
} tti_order_shift;

// Before every feed and computation: variables and constants.
#define TTI_KEY_START ((tti_order_key){.rank = -1})
// After all slots: what should run when everything else is done.
#define TTI_KEY_END ((tti_order_key){.slot = INT_MAX - 1})
// Not known yet: after every other key, so that the least of its readers' replaces it.
#define TTI_KEY_UNKNOWN ((tti_order_key){.slot = INT_MAX})

// Below 0: a comes first; 0: equal.
static inline int tti_key_compare(tti_order_key a, tti_order_key b)
{
    if (a.slot != b.slot)
        return a.slot < b.slot ? -1 : 1;
    if (a.rank != b.rank)
        return a.rank < b.rank ? -1 : 1;
    return (a.shift > b.shift) - (a.shift < b.shift);
}

static inline bool tti_key_before(tti_order_key a, tti_order_key b)
{
    return tti_key_compare(a, b) < 0;
}

static inline tti_order_key tti_key_earlier(tti_order_key a, tti_order_key b)
{
    return tti_key_before(b, a) ? b : a;
}

static inline tti_order_key tti_key_later(tti_order_key a, tti_order_key b)
{
    return tti_key_before(a, b) ? b : a;
}

// The key moved by a shift within its slot: TTI_SHIFT_..., or less that to stand before.
static inline tti_order_key tti_key_shift(tti_order_key k, int shift)
{
    k.shift += shift;
    int ranks = k.shift / TTI_SHIFT_RANK - (k.shift % TTI_SHIFT_RANK < 0); // rounded down
    k.rank += ranks;
    k.shift -= ranks * TTI_SHIFT_RANK;
    return k;
}

// The key moved by n slots; those at the end stay there.
static inline tti_order_key tti_key_slots(tti_order_key k, int n)
{
    k.slot = k.slot >= INT_MAX - 1 - n ? k.slot : k.slot + n;
    return k;
}

#endif
