/*
 * dropout.h - what dropout.c and dropout_cpu.c share.
 */
#ifndef TUTTI_OP_DROPOUT_H
#define TUTTI_OP_DROPOUT_H

#include <tutti/extend.h>

typedef struct tti_dropout_attr {
    double rate;
    int64_t key; // of the node whose mask is meant; 0: its own
} tti_dropout_attr;

TT_CPU_DECLARE(dropout);

/*
 * x is [outer, rows, run]: a row of the batch is `outer` runs. Units are groups of 64 elements of a
 * row's stream; `groups` is how many a run can touch.
 */
typedef struct tti_dropout_plan {
    int64_t rows, run, groups;
} tti_dropout_plan;
tt_status tti_dropout_prep(tt_prep *p); // for any op whose words are assigned this way

#endif
