/*
 * attention.h - what attention.c and its kernels share.
 */
#ifndef TUTTI_OP_ATTENTION_H
#define TUTTI_OP_ATTENTION_H

#include <tutti/extend.h>

typedef struct tti_attention_attr {
    int64_t heads, kv_heads;
    bool causal;
    double scale;   // 0: 1 / sqrt(d)
    bool packed;    // q, k and v side by side in one input
    bool has_mask;  // the last input of the forward
    int64_t window; // query i sees keys i - window + 1 to i + window - 1; 0: all
    bool alibi;     // scores less slope |i - j|
} tti_attention_attr;

#define TTI_ATT_KEYS    64 // keys of a block: part of the arithmetic
#define TTI_ATT_QUERIES 64 // queries of a block: only a matter of speed

// Sizes of a problem, from the arguments and the attributes.
typedef struct tti_attention_size {
    int64_t batch, tq, tk, d, heads, kv_heads;
    int64_t q_row, kv_row; // elements from one time step to the next
    int64_t q_blocks, k_blocks;
} tti_attention_size;

static inline tti_attention_size tti_attention_sizes(const tti_attention_attr *a, const tt_arg *in)
{
    tti_attention_size s;
    const tt_arg *k = a->packed ? &in[0] : &in[1];
    s.heads = a->heads;
    s.kv_heads = a->kv_heads;
    s.batch = in[0].shape.dim[0];
    s.tq = in[0].shape.dim[1];
    s.tk = k->shape.dim[1];
    s.q_row = in[0].cols;
    s.kv_row = k->cols;
    s.d = in[0].cols / (a->packed ? a->heads + 2 * a->kv_heads : a->heads);
    s.q_blocks = (s.tq + TTI_ATT_QUERIES - 1) / TTI_ATT_QUERIES;
    s.k_blocks = (s.tk + TTI_ATT_KEYS - 1) / TTI_ATT_KEYS;
    return s;
}

/*
 * The slope of head h in ALiBi: 2^(-8 (h + 1) / n) for n heads, a power of two; else the heads past
 * the largest power of two below have every second slope of twice as many. Roots and products only,
 * which round the same everywhere.
 */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline double
    tti_attention_slope(int64_t heads, int64_t h)
{
    int64_t n = 1, power = h + 1;
    double base = 1.0 / 256, slope = 1;
    while (2 * n <= heads)
        n *= 2;
    if (h >= n) {
        power = 2 * (h - n) + 1;
        n *= 2;
    }
    for (; n > 1; n /= 2)
        base = __builtin_sqrt(base);
    for (; power > 0; power /= 2, base *= base)
        slope *= power % 2 != 0 ? base : 1;
    return slope;
}

// Numbers of local memory that a thread needs.
static inline int64_t tti_attention_local(int64_t d, bool backward)
{
    int64_t wide = d + 16, q = TTI_ATT_QUERIES, k = TTI_ATT_KEYS;
    return backward ? (3 * q + 2 * q + 4 * k) * wide + 3 * k * q + 4 * q + 64
                    : (2 * q + 2 * k) * wide + 2 * k * q + 4 * q + 64;
}

/*
 * How the gradient is divided. By head: a unit is a batch row and a head of k, and each score is
 * worked out once. By block: dq by blocks of queries, then dk and dv by blocks of keys, each
 * working out the scores anew; for when there are more threads than heads.
 */
typedef struct tti_attention_tune {
    bool by_head;
} tti_attention_tune;

TT_CPU_DECLARE(attention);
TT_CPU_DECLARE(attention_grad);

#endif
