/*
 * effect.h - what the print and assert kernels call; compiled once.
 */
#ifndef TUTTI_OP_EFFECT_H
#define TUTTI_OP_EFFECT_H

#include <tutti/extend.h>

typedef struct tti_effect_attr {
    char text[TT_OPT_STRING_MAX];
} tti_effect_attr;

tt_status tti_effect_print(const tt_launch *l);
tt_status tti_effect_assert(const tt_launch *l);

#endif
