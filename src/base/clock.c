/*
 * clock.c - what a thread asks of its processor: the time, and how it treats subnormal numbers.
 */
#include "base/base.h"
#include <time.h>

int64_t tti_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#if defined(__x86_64__)
#include <xmmintrin.h>

// Bits of MXCSR: 15 flushes results to zero, 6 reads subnormal operands as zero.
unsigned tti_fp_enter(void)
{
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040);
    return saved;
}

void tti_fp_leave(unsigned saved)
{
    _mm_setcsr(saved);
}

#elif defined(__aarch64__)

// Bit 24 of FPCR, FZ. The upper half of the register is not used.
unsigned tti_fp_enter(void)
{
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(saved | (uint64_t)1 << 24));
    return (unsigned)saved;
}

void tti_fp_leave(unsigned saved)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)saved));
}

#else

unsigned tti_fp_enter(void)
{
    return 0;
}

void tti_fp_leave(unsigned saved)
{
    (void)saved;
}

#endif
