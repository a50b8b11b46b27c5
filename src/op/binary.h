/*
 * binary.h - the kernels of binary.c, by list.
 */
#ifndef TUTTI_OP_BINARY_H
#define TUTTI_OP_BINARY_H

#include <tutti/extend.h>
#include <tutti/ops.h>

#define TTI_BINARY_DECLARE(n) TT_CPU_DECLARE(tti_binary_##n);
TT_BINARY_LIST(TTI_BINARY_DECLARE)
TTI_BINARY_DECLARE(where)
TTI_BINARY_DECLARE(broadcast)

#endif
