/*
 * scalar.c - cos, exp and log by reduction to a short range and a Taylor series.
 */
#include "train/scalar.h"
#include <string.h>

#define PI 3.14159265358979323846
// ln 2 in two parts; the first has 32 bits, so that times an exponent it is exact.
#define LN2_HI 6.93147180369123816490e-01
#define LN2_LO 1.90821492927058770002e-10

// 1 - x^2/2! + x^4/4! - ..., |x| up to pi/4
static double cos_series(double x)
{
    double x2 = x * x, y = 0;
    for (int n = 18; n >= 2; n -= 2)
        y = (1 - y) * x2 / (double)(n * (n - 1));
    return 1 - y;
}

// x - x^3/3! + ..., |x| up to pi/4
static double sin_series(double x)
{
    double x2 = x * x, y = 0;
    for (int n = 19; n >= 3; n -= 2)
        y = (1 - y) * x2 / (double)(n * (n - 1));
    return x * (1 - y);
}

double tti_scalar_cos_pi(double x)
{
    if (x > 0.5)
        return -tti_scalar_cos_pi(1 - x);
    return x <= 0.25 ? cos_series(PI * x) : sin_series(PI * (0.5 - x));
}

// 2^n for n from -1022 to 1023
static double power_of_two(int64_t n)
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double y;
    memcpy(&y, &bits, sizeof(y));
    return y;
}

double tti_scalar_exp(double x)
{
    if (!(x > -700))
        return x <= -700 ? 0 : x;
    if (x > 709)
        return __builtin_inf();
    double k = x / LN2_HI;
    int64_t n = (int64_t)(k < 0 ? k - 0.5 : k + 0.5);
    double r = (x - (double)n * LN2_HI) - (double)n * LN2_LO, y = 0;
    for (int i = 16; i >= 1; i--) // e^r = 1 + r (1 + r/2 (1 + r/3 ...))
        y = (1 + y) * r / i;
    return n > 1023 ? (1 + y) * power_of_two(1023) * 2 : (1 + y) * power_of_two(n);
}

double tti_scalar_log(double x)
{
    uint64_t bits;
    if (!(x > 0) || x - x != 0)
        return x > 0 ? x : __builtin_nan("");
    int64_t e = 0;
    if (x < 0x1p-1022) { // subnormal
        x *= 0x1p54;
        e = -54;
    }
    memcpy(&bits, &x, sizeof(bits));
    e += (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffff) | (uint64_t)1023 << 52;
    double m;
    memcpy(&m, &bits, sizeof(m));
    if (m > 1.41421356237309504880) {
        m /= 2;
        e++;
    }
    double s = (m - 1) / (m + 1), s2 = s * s, y = 0; // log m = 2 (s + s^3/3 + s^5/5 + ...)
    for (int i = 25; i >= 3; i -= 2)
        y = s2 * (1.0 / i + y);
    return (double)e * LN2_HI + (2 * s * (1 + y) + (double)e * LN2_LO);
}

double tti_scalar_power(double base, int64_t n)
{
    double y = 1;
    for (; n > 0; n /= 2, base *= base)
        if (n & 1)
            y *= base;
    return y;
}
