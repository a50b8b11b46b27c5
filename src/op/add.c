/*
 * add.c - picks the form of add_cpu.c by instruction set.
 */
#include "op/add.h"

tti_add_fn tti_add_plain;
#if defined(__x86_64__)
tti_add_fn tti_add_fma, tti_add_avx2, tti_add_avx512;
static tti_add_fn *const forms[] = {tti_add_plain, tti_add_fma, tti_add_avx2, tti_add_avx512};
#else
static tti_add_fn *const forms[] = {tti_add_plain};
#endif

tti_add_fn *tti_add_f32(int isa)
{
    return isa >= 0 && isa < (int)(sizeof(forms) / sizeof(forms[0])) ? forms[isa] : forms[0];
}
