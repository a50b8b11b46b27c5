/*
 * testing.h - for tests: allocations that fail.
 */
#ifndef TUTTI_BASE_TESTING_H
#define TUTTI_BASE_TESTING_H

#include <tutti/base.h>

// The n-th host allocation of ctx from now fails with TT_ENOMEM; 0 switches this off.
void tti_fail_alloc_at(tt_ctx *ctx, int64_t n);

#endif
