/*
 * max_abs.h - what max_abs.c, its kernels and plans share.
 */
#ifndef TUTTI_OP_MAX_ABS_H
#define TUTTI_OP_MAX_ABS_H

#include <tutti/extend.h>

#define TTI_MAX_ABS_BLOCK 65536 // elements behind one number

TT_CPU_DECLARE(max_abs);

// Numbers that max_abs gives of count elements; of several tensors it is one.
static inline int64_t tti_max_abs_count(int64_t count)
{
    return count <= TTI_MAX_ABS_BLOCK ? 1 : (count - 1) / TTI_MAX_ABS_BLOCK + 1;
}

#endif
