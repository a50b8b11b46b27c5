/*
 * own_op.h - parts of the ops that tests define: one output like input 0, split as that is, made by
 * one unit of work.
 */
#ifndef TUTTI_TEST_OWN_OP_H
#define TUTTI_TEST_OWN_OP_H

#include "test.h"

tt_status own_op_as_input(tt_infer *q);
tt_status own_op_split_as_input(const tt_split_query *q);
tt_status own_op_one_unit(tt_prep *p);

#endif
