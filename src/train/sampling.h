/*
 * sampling.h - which token comes next, by the scores that a model gives to all of them.
 *
 * In this order: scores of tokens that the text has are lowered by penalty, divided by temperature,
 * cut to the top_k highest, then to the most probable ones that have top_p of the probability
 * together. Of what is left one is drawn, in the order of tokens. Equal scores: the lower token
 * counts as higher. The arithmetic is our own, so a draw gives the same token on every machine.
 */
#ifndef TUTTI_TRAIN_SAMPLING_H
#define TUTTI_TRAIN_SAMPLING_H

#include "base/base.h"

typedef struct tti_sampling {
    double temperature; // 0: always the highest score
    double top_p;       // 0 or 1: all
    double penalty;     // 0 or 1: none
    int64_t top_k;      // 0: all
} tti_sampling;

// The token that a draw u in [0, 1) means. scores are changed; order has room for n numbers.
int32_t tti_sample(const tti_sampling *s, float *scores, int64_t n, const int32_t *text,
                   int64_t length, double u, int32_t *order);

#endif
