/*
 * joint.h - work that devices do together, by a library: sums of what each of them has, or the
 * pieces of all put together. Plain structs, read by modules of backends.
 */
#ifndef TUTTI_DEVICE_LIBRARY_COLLECTIVE_H
#define TUTTI_DEVICE_LIBRARY_COLLECTIVE_H

#include <tutti/extend.h>

typedef enum tti_library_kind {
    TTI_LIBRARY_ALL_REDUCE = 0, // the sum, on every device
    TTI_LIBRARY_REDUCE_SCATTER =
        1, // the sum, of which each device gets its piece; the rest is undefined
    TTI_LIBRARY_ALL_GATHER = 2, // each device has its piece and gets the others'
} tti_library_kind;

// In place, over the n devices of a gang.
typedef struct tti_library_collective {
    tti_library_kind kind;
    tt_dtype dtype;
    const int64_t *begin; // n + 1: the piece of device r is elements [begin[r], begin[r + 1])
    void **data;          // by device: the first of all elements
    const tt_node *node;  // whose value it is, for messages; NULL: nobody's
} tti_library_collective;

#endif
