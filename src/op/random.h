/*
 * random.h - first values of variables.
 */
#ifndef TUTTI_OP_RANDOM_H
#define TUTTI_OP_RANDOM_H

#include "base/base.h"
#include <tutti/extend.h>

/*
 * Elements [begin, end) of a variable's first value, written to out[0..end - begin). Each depends
 * on seed, key (the hash of the variable's name) and its place only, so any piece can be made
 * alone. isa (TT_ISA_...) chooses the code, not the bits; TT_ISA_F64 means TT_ISA_PLAIN.
 */
tt_status tti_init_values(tt_ctx *ctx, int isa, const tt_init *init, const tt_shape *shape,
                          tt_dtype dtype, uint64_t seed, uint64_t key, int64_t begin, int64_t end,
                          void *out);

// The same in one instruction set, without checks: it cannot fail.
typedef void tti_init_fn(const tt_init *init, const tt_shape *shape, tt_dtype dtype, uint64_t seed,
                         uint64_t key, int64_t begin, int64_t end, void *out);
tti_init_fn tti_init_fill_plain, tti_init_fill_fma, tti_init_fill_avx2, tti_init_fill_avx512;
// The parts of tti_init_values(), for callers who divide the elements among threads.
tt_status tti_init_check(tt_ctx *ctx, const tt_init *init, tt_dtype dtype) TTI_CHECKED;
tti_init_fn *tti_init_kernel(int isa);

#endif
