/*
 * by_hand.c - what a loop by hand needs to follow the rules of tt_fit().
 */
#include "train/compile.h"

tt_mean_factors tt_mean_factors_of(int64_t count)
{
    double p = tti_power_of_two((double)count);
    double terms = (float)count; // as an update gets it: rounded above 2^24
    return (tt_mean_factors){(float)(1 / p), count > 0 ? (float)(p / terms) : 0};
}
