/*
 * chance.h - random choices and elementary functions of transforms. Only additions, products,
 * quotients and square roots of doubles, which IEEE rounds in one way, and no function of libm: the
 * same bits on every machine.
 */
#ifndef TUTTI_DATA_CHANCE_H
#define TUTTI_DATA_CHANCE_H

#include "base/base.h"
#include <string.h>

// Random words of one transform of one record, as many as are asked for.
typedef struct tti_chance {
    tti_philox key, now;
    int used;   // of now
    uint64_t n; // draws of four
} tti_chance;

static inline tti_chance tti_chance_begin(const tti_philox *random)
{
    return (tti_chance){.key = *random, .now = *random};
}

static inline uint32_t tti_chance_word(tti_chance *c)
{
    if (c->used == 4) {
        c->now = tti_philox4((uint64_t)c->key.v[0] << 32 | c->key.v[1],
                             (uint64_t)c->key.v[2] << 32 | c->key.v[3], ++c->n);
        c->used = 0;
    }
    return c->now.v[c->used++];
}

// In [0, 1), with 32 bits.
static inline double tti_chance_unit(tti_chance *c)
{
    return (double)tti_chance_word(c) * 0x1p-32;
}

static inline double tti_chance_in(tti_chance *c, double from, double to)
{
    return from + (to - from) * tti_chance_unit(c);
}

// Below n.
static inline int64_t tti_chance_below(tti_chance *c, int64_t n)
{
    return (int64_t)((uint64_t)tti_chance_word(c) * (uint64_t)n >> 32);
}

// e to the x, for |x| below 700.
static inline double tti_exp_exact(double x)
{
    int64_t k = (int64_t)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    double r = x - (double)k * 0.6931471805599453, term = 1, sum = 1;
    for (int i = 1; i < 18; i++) {
        term = term * r / i;
        sum += term;
    }
    uint64_t bits = (uint64_t)(1023 + k) << 52;
    double power;
    memcpy(&power, &bits, sizeof(power));
    return sum * power;
}

// The natural logarithm of a normal positive number.
static inline double tti_log_exact(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    int64_t e = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
    memcpy(&x, &bits, sizeof(x));
    if (x > 1.4142135623730951) {
        x *= 0.5;
        e++;
    }
    double s = (x - 1) / (x + 1), square = s * s, power = s, sum = 0;
    for (int i = 1; i < 30; i += 2) {
        sum += power / i;
        power *= square;
    }
    return 2 * sum + (double)e * 0.6931471805599453;
}

// Sine and cosine of an angle from -pi to pi.
static inline void tti_sincos_exact(double x, double *sine, double *cosine)
{
    double term = 1, s = 0, c = 1;
    for (int i = 1; i < 30; i++) {
        term = term * x / i;
        if (i % 2 != 0)
            s += i % 4 == 1 ? term : -term;
        else
            c += i % 4 == 0 ? term : -term;
    }
    *sine = s;
    *cosine = c;
}

// Of the beta distribution with both parameters alpha, above 0 and at most 1 (Johnk).
static inline double tti_chance_beta(tti_chance *c, double alpha)
{
    for (int i = 0; i < 64; i++) {
        double u = tti_log_exact((tti_chance_unit(c) + 0x1p-33)) / alpha;
        double v = tti_log_exact((tti_chance_unit(c) + 0x1p-33)) / alpha;
        double most = u > v ? u : v; // both may be tiny: scaled by the larger
        double a = u - most < -600 ? 0 : tti_exp_exact(u - most);
        double b = v - most < -600 ? 0 : tti_exp_exact(v - most);
        double log_sum = most + tti_log_exact(a + b);
        if (log_sum <= 0)
            return a / (a + b);
    }
    return 0.5;
}

#endif
