/*
 * async.cuh - copies from a card's memory into shared memory that go on while a thread does other
 * things: what must be on its way to keep the memory busy is more than registers hold. A thread
 * that reads only what it has itself copied needs no barrier.
 */
#ifndef TUTTI_CUDA_ASYNC_CUH
#define TUTTI_CUDA_ASYNC_CUH

#include "cuda/kernel.cuh"

// Starts to copy n of N bytes (4, 8 or 16), the others become 0; n is 0: from is not read.
// PAST: past the first cache, for N = 16.
template <int N, bool PAST>
__device__ static inline void tti_async_bytes(void *to, const void *from, int n)
{
#ifdef __CUDA_ARCH__
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    if (PAST)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(n)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(N),
                     "r"(n)
                     : "memory");
#else
    for (int i = 0; i < N; i++)
        ((char *)to)[i] = i < n ? ((const char *)from)[i] : (char)0;
#endif
}

// Starts to copy a pack; zeros if it is not there, from being any address that can be read.
template <class T>
__device__ static inline void tti_async_copy(tti_pack<T> *to, const T *from, bool is_there)
{
    tti_async_bytes<16, true>(to, from, is_there ? 16 : 0);
}

// What was started since the last call is a group.
__device__ static inline void tti_async_group(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all groups but the last N are done.
template <int N> __device__ static inline void tti_async_wait(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

__device__ static inline void tti_async_wait_all(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#endif
