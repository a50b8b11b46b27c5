/*
 * secure.h - memory for secrets: in no core dump, and not swapped out where the system allows that.
 */
#ifndef TUTTI_BASE_SECURE_H
#define TUTTI_BASE_SECURE_H

#include "base/base.h"

// Zeroed; NULL after recording an error.
void *tti_secure_new(tt_ctx *ctx, size_t bytes);
void tti_secure_free(void *p, size_t bytes); // wiped; NULL is fine

#endif
