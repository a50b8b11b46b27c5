/*
 * residual.h - gradients sent in a narrower type: see residual.c.
 */
#ifndef TUTTI_OP_RESIDUAL_H
#define TUTTI_OP_RESIDUAL_H

#include "op/square_sum.h"

#define TTI_RESIDUAL_BLOCK TTI_SQUARE_BLOCK // elements a replica's row is padded to

extern const tt_op tti_op_residual;
// A node that makes the plan send grad narrower; it must be among a run's targets.
tt_tensor *tti_residual(tt_graph *g, tt_tensor *grad, int replicas, const char *name);

#endif
