/*
 * angle.h - x = q pi/2 + r for large x, by whole numbers alone, for CPUs and GPUs alike.
 *
 * x is m 2^e with m of 24 bits. Of 2/pi the bits that count are taken: from the first that does not
 * make a multiple of four with 2^e, 96 of them. Their product with m, modulo 2^96, has the quadrant
 * in its first two bits; of the others 62 are kept, so r is right to 2^-61 whatever x is (Payne and
 * Hanek). No float is nearer to a multiple of pi/2 than 2^-31.
 */
#ifndef TUTTI_OP_ANGLE_H
#define TUTTI_OP_ANGLE_H

#include <stdint.h>

#if defined(__CUDACC__)
#define TTI_ANGLE_FN __device__ static inline
#else
#define TTI_ANGLE_FN static inline
#endif

#define TTI_ANGLE_FAR 524288.0f // below it three parts of pi/2 are enough (vmath.h)

// bits: of a finite float of at least TTI_ANGLE_FAR.
TTI_ANGLE_FN float tti_angle_far(uint32_t bits, uint32_t *quadrant)
{
    static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                           0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    uint64_t m = (bits & 0x7fffffu) | 0x800000u;
    uint32_t at = (bits >> 23) - 150 - 2 + 32; // in bits; the first word of zeros is for small e
    uint32_t i = at / 32, shift = at % 32;
    uint32_t w[3];
    for (uint32_t k = 0; k < 3; k++)
        w[k] = (uint32_t)(((uint64_t)two_over_pi[i + k] << 32 | two_over_pi[i + k + 1]) >>
                          (32 - shift));
    uint64_t p = m * w[1] + (m * w[2] >> 32);
    p += m * w[0] << 32;
    uint32_t q = (uint32_t)(p >> 62);
    int64_t part = (int64_t)(p << 2) >> 2; // of a quadrant, from -1/2 on
    *quadrant = q + (part < 0);
    return (float)((double)part * 0x1.921fb54442d18p-62);
}

#endif
