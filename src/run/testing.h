/*
 * testing.h - for tests: failing allocations while a context opens, and which memory a plan uses.
 */
#ifndef TUTTI_RUN_TESTING_H
#define TUTTI_RUN_TESTING_H

#include "base/testing.h"
#include <tutti/run.h>

// tt_open_with(), in which the n-th host allocation fails.
tt_ctx *tti_open_failing(const tt_open_opts *opts, int64_t n);
// Fills the arenas with a byte; afterwards the highest byte that was written since, of those on
// CPUs, is known.
void tti_session_paint(tt_session *s, uint8_t byte);
size_t tti_session_touched(tt_session *s, int device);

#endif
