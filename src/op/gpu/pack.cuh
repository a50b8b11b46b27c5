/*
 * pack.cuh - packs of 16 bytes for kernels that walk channels: few registers, one access.
 */
#ifndef TUTTI_OP_PACK_CUH
#define TUTTI_OP_PACK_CUH

#include "cuda/kernel.cuh"

/*
 * V elements in registers as they lie in memory: 16 bytes, or one element. get() leaves flushing
 * denormals of bf16 to the arithmetic that follows.
 */
template <class T, int V> struct alignas(16) tti_regs {
    uint32_t w[4];
    __device__ float get(int i) const
    {
        return get(i, T());
    }
    __device__ void put(int i, float x)
    {
        T t;
        tti_put(t, x);
        set(i, t);
    }
    // All V at once: half the instructions where two make a word.
    __device__ void put_all(const float *x)
    {
        tti_pack<T> p;
        tti_repack(p, x);
        memcpy(w, &p, sizeof(w));
    }
    // By one access, which an assignment is not always.
    __device__ void store(void *to) const
    {
#ifdef __CUDA_ARCH__
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                     : "memory");
#else
        memcpy(to, w, sizeof(w));
#endif
    }

  private:
    __device__ float get(int i, float) const
    {
        return tti_float(w[i]);
    }
    __device__ float get(int i, tti_bf16) const
    {
        return tti_float(i & 1 ? w[i / 2] & 0xffff0000u : w[i / 2] << 16);
    }
    __device__ float get(int i, tti_f16) const
    {
        tti_f16 h = {(uint16_t)(w[i / 2] >> 16 * (i & 1))};
        return tti_get(h);
    }
    __device__ void set(int i, float t)
    {
        w[i] = tti_bits(t);
    }
    template <class H> __device__ void set(int i, H t)
    {
        uint32_t other = w[i / 2] & (i & 1 ? 0xffffu : 0xffff0000u);
        w[i / 2] = other | (uint32_t)t.bits << 16 * (i & 1);
    }
};
template <class T> struct tti_regs<T, 1> {
    T v;
    __device__ float get(int) const
    {
        return tti_get(v);
    }
    __device__ void put(int, float x)
    {
        tti_put(v, x);
    }
    __device__ void put_all(const float *x)
    {
        tti_put(v, *x);
    }
    __device__ void store(void *to) const
    {
        *(T *)to = v;
    }
};

#endif
