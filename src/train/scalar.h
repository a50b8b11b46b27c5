/*
 * scalar.h - a few functions of one double, from + - * / alone: the same bits on every machine.
 * Numbers that reach weights (schedules) or decide about training (metrics) come from these, never
 * from libm. Errors are a few units of the last place.
 */
#ifndef TUTTI_TRAIN_SCALAR_H
#define TUTTI_TRAIN_SCALAR_H

#include <stdint.h>

double tti_scalar_cos_pi(double x); // cos(pi x), x from 0 to 1; 1, 0 and -1 exactly where it is
double tti_scalar_exp(double x);    // 0 below -700, infinite above 709
double tti_scalar_log(double x);    // x above 0; otherwise NaN
double tti_scalar_power(double base, int64_t n); // n not below 0, by squaring

#endif
