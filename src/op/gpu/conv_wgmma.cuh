/*
 * conv_wgmma.cuh - instructions of compute capability 9.0 alone: barriers that count bytes, boxes
 * of images copied to shared memory, products of matrices that lie there.
 */
#ifndef TUTTI_OP_CONV_WGMMA_CUH
#define TUTTI_OP_CONV_WGMMA_CUH

#include "cuda/kernel.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ static inline uint32_t tti_shared_at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

// ---- barriers --------------------------------------------------------------------------------

__device__ static inline void tti_barrier_init(uint64_t *b, int arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(tti_shared_at(b)), "r"(arrivals)
                 : "memory");
}
// Barriers are seen by the copies that will arrive at them.
__device__ static inline void tti_barriers_made(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ static inline void tti_barrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(tti_shared_at(b)) : "memory");
}
// Arrives, and so many bytes are to come as well.
__device__ static inline void tti_barrier_expect(uint64_t *b, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(tti_shared_at(b)),
                 "r"(bytes)
                 : "memory");
}
__device__ static inline void tti_barrier_wait(uint64_t *b, uint32_t parity)
{
    uint32_t done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(tti_shared_at(b)), "r"(parity)
                     : "memory");
    } while (!done);
}

// ---- copies ----------------------------------------------------------------------------------

// The box of images n at row y, column x and channel c on; its bytes arrive at b.
__device__ static inline void tti_box_copy(void *to, const void *map, int c, int x, int y, int n,
                                           uint64_t *b)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(tti_shared_at(to)),
                 "l"(map), "r"(tti_shared_at(b)), "r"(c), "r"(x), "r"(y), "r"(n)
                 : "memory");
}
// What threads wrote to shared memory is seen by copies and products.
__device__ static inline void tti_shared_written(void)
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

// ---- products --------------------------------------------------------------------------------

/*
 * A matrix in shared memory: rows of 128 bytes, chunks of 16 bytes permuted by the address's bits 7
 * to 9, so that it may begin at any row; eight rows on is 1024 bytes, the next 64 columns lie step
 * bytes on.
 */
__device__ static inline uint64_t tti_wgmma_matrix(uint32_t at, uint32_t step)
{
    const uint64_t eight = 1024, permuted = 1;
    return (at & 0x3ffff) >> 4 | (uint64_t)(step >> 4) << 16 | eight >> 4 << 32 | permuted << 62;
}
__device__ static inline void tti_wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// All products that were begun are done.
__device__ static inline void tti_wgmma_wait(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// The first 32, 64 and 96 operands, as text and as elements of d.
// clang-format off
#define WGMMA_32                               \
    "%0, %1, %2, %3, %4, %5, %6, %7"           \
    ", %8, %9, %10, %11, %12, %13, %14, %15"   \
    ", %16, %17, %18, %19, %20, %21, %22, %23" \
    ", %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_64                               \
    WGMMA_32                                   \
    ", %32, %33, %34, %35, %36, %37, %38, %39" \
    ", %40, %41, %42, %43, %44, %45, %46, %47" \
    ", %48, %49, %50, %51, %52, %53, %54, %55" \
    ", %56, %57, %58, %59, %60, %61, %62, %63"
#define WGMMA_96                               \
    WGMMA_64                                   \
    ", %64, %65, %66, %67, %68, %69, %70, %71" \
    ", %72, %73, %74, %75, %76, %77, %78, %79" \
    ", %80, %81, %82, %83, %84, %85, %86, %87" \
    ", %88, %89, %90, %91, %92, %93, %94, %95"
#define WGMMA_D8(i)                                                                        \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define WGMMA_D32(i) WGMMA_D8(i), WGMMA_D8(i + 8), WGMMA_D8(i + 16), WGMMA_D8(i + 24)
// clang-format on

// d [64, n] += a' b, of 16 rows of a [16, 64] and b [16, n].
#define WGMMA(type, name, n, text, a_text, b_text, ...)                                          \
    __device__ static __forceinline__ void tti_wgmma_##n(float *d, uint64_t a, uint64_t b, type) \
    {                                                                                            \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name " {" text   \
                     "}, " a_text ", " b_text ", 1, 1, 1, 1, 1;"                                 \
                     : __VA_ARGS__                                                               \
                     : "l"(a), "l"(b));                                                          \
    }
#define WGMMA_TYPE(type, name)                                                  \
    WGMMA(type, name, 64, WGMMA_32, "%32", "%33", WGMMA_D32(0))                 \
    WGMMA(type, name, 128, WGMMA_64, "%64", "%65", WGMMA_D32(0), WGMMA_D32(32)) \
    WGMMA(type, name, 192, WGMMA_96, "%96", "%97", WGMMA_D32(0), WGMMA_D32(32), WGMMA_D32(64))
WGMMA_TYPE(tti_bf16, "bf16")
WGMMA_TYPE(tti_f16, "f16")
#undef WGMMA_TYPE
#undef WGMMA

#endif
#endif
