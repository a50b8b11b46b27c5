/*
 * async.cuh - copies from a card's memory into shared memory that go on while a thread does other
 * things: what must be on its way to keep the memory busy is more than registers hold. A thread
 * reads only what it has itself copied, so no barrier is needed.
 */
#ifndef TUTTI_CUDA_ASYNC_CUH
#define TUTTI_CUDA_ASYNC_CUH

#include "cuda/kernel.cuh"

// Starts to copy a pack; zeros if it is not there, from being any address that can be read.
template <class T>
__device__ static inline void tti_async_copy(tti_pack<T> *to, const T *from, bool is_there)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(is_there ? 16 : 0)
                 : "memory");
#else
    *to = is_there ? *(const tti_pack<T> *)from : tti_pack<T>{};
#endif
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

#endif
