/*
 * add.h - the addition that trees over lanes are made of, in the widest vectors there are.
 */
#ifndef TUTTI_OP_ADD_H
#define TUTTI_OP_ADD_H

#include <tutti/extend.h>

// to[i] = a[i] + b[i] + 0 for n numbers; to may be a or b.
typedef void tti_add_fn(float *to, const float *a, const float *b, int64_t n);
tti_add_fn *tti_add_f32(int isa);

#endif
