/*
 * index_ids.cuh - ids as kernels read them: of either type, and checked.
 */
#ifndef TUTTI_OP_INDEX_IDS_CUH
#define TUTTI_OP_INDEX_IDS_CUH

#include "cuda/move.cuh"
#include "cuda/trouble.h"

// Ids of either type.
struct ids_of {
    const void *data;
    int is_wide;
    int64_t n;
    tti_trouble *trouble;
    const tt_node *node;
};
static ids_of ids_by_value(const tt_launch *l, const tt_arg *a)
{
    return {a->data, a->dtype == TT_I64, a->count, tti_device_of(l)->trouble, l->node};
}

// Id at i; limit if it is not in [0, limit), which is told.
__device__ static inline int64_t id_at(const ids_of &ids, int64_t i, int64_t limit, bool is_first)
{
    int64_t id = ids.is_wide ? ((const int64_t *)ids.data)[i] : ((const int32_t *)ids.data)[i];
    if (id >= 0 && id < limit)
        return id;
    if (is_first)
        tti_bad_id(ids.trouble, ids.node, id, i, limit);
    return limit;
}

#endif
