/*
 * pointwise_straight.cu - programs of pointwise.h that training runs most, each as a kernel of its
 * own: what pointwise.cu would do, with operations and types known to the compiler.
 *
 * A thread first reads AHEAD pieces of each operand, so that enough of them are on their way to
 * keep the memory busy, and only then computes. A block has one tile and ends.
 */
#include "op/gpu/pointwise.cuh"

#define THREADS 128
#define AHEAD   4

// N words that are moved at once.
template <int N> struct alignas(4 * N) words {
    uint32_t w[N];
};

struct straight_args {
    const void *in[3];
    void *out;
    int64_t n; // pieces
    float a, b;
};

// Operands of OP; a chain has one more.
__host__ __device__ constexpr int operands(int op)
{
    return op >= TTI_PW_F_relu_grad && op < TTI_PW_INTS ? 2 : 1;
}
__host__ __device__ constexpr int bytes_of(int type)
{
    return type == TT_F32 ? 4 : 2;
}
// Elements of a piece: 16 bytes of the wider type.
__host__ __device__ constexpr int piece(int from, int to)
{
    return from == TT_F32 || to == TT_F32 ? 4 : 8;
}

template <int E, int N>
__device__ static inline void get(int type, const words<N> &m, uint32_t (&x)[E])
{
    tti_pw_raw<E> r = {};
#pragma unroll
    for (int k = 0; k < N; k++)
        r.w[k] = m.w[k];
    tti_pw_unpack<uint32_t, E>(type, r, x);
}

// OP of one operand, or of two; where THEN is an operation, it follows with x, the third operand,
// and y, what OP gave. THEN < 0: there is none.
template <int FROM, int TO, int OP, int THEN, int E, int N>
__device__ static inline void compute(const straight_args &p, const words<N> *in, uint32_t (&x)[E])
{
    get<E, N>(FROM, in[0], x);
    if (operands(OP) == 1) {
        tti_pw_float_1<uint32_t, E>(OP, x, p.a, p.b);
        return;
    }
    uint32_t y[E];
    get<E, N>(FROM, in[1], y);
    tti_pw_float_2<uint32_t, E>(OP, x, y, p.a, p.b);
    if (THEN < 0)
        return;
    tti_pw_round<uint32_t, E>(TO, x);
    TTI_PW_EACH(y[e] = x[e])
    get<E, N>(FROM, in[THEN < 0 ? 0 : 2], x);
    tti_pw_float_2<uint32_t, E>(THEN, x, y, p.a, p.b);
}

template <int FROM, int TO, int OP, int THEN>
static __global__ void __launch_bounds__(THREADS) straight(const straight_args p)
{
    const int E = piece(FROM, TO), N = E * bytes_of(FROM) / 4, M = E * bytes_of(TO) / 4;
    const int n_in = operands(OP) + (THEN >= 0);
    int64_t first = (int64_t)blockIdx.x * (THREADS * AHEAD) + threadIdx.x;
    words<N> in[AHEAD][n_in];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
#pragma unroll
        for (int k = 0; k < n_in; k++)
            if (first + u * THREADS < p.n)
                in[u][k] = ((const words<N> *)p.in[k])[first + u * THREADS];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
        if (first + u * THREADS >= p.n)
            return;
        uint32_t x[E];
        compute<FROM, TO, OP, THEN, E, N>(p, in[u], x);
        tti_pw_raw<E> r;
        tti_pw_pack<uint32_t, E>(TO, x, r);
        words<M> y;
#pragma unroll
        for (int k = 0; k < M; k++)
            y.w[k] = r.w[k];
        ((words<M> *)p.out)[first + u * THREADS] = y;
    }
}

// ---- which program is which ------------------------------------------------------------------

template <int FROM, int TO, int OP, int THEN>
static void launch(const tt_launch *l, const straight_args *args, int64_t elements)
{
    straight_args p = *args;
    p.n = elements / piece(FROM, TO);
    TTI_LAUNCH(l, (unsigned)((p.n + THREADS * AHEAD - 1) / (THREADS * AHEAD)), THREADS, 0,
               (straight<FROM, TO, OP, THEN>), p);
}

typedef struct straight_row {
    int from, to, op, then;
    void (*launch)(const tt_launch *l, const straight_args *args, int64_t elements);
} straight_row;

#define ROW(from, to, op, then)                        \
    {                                                  \
        from, to, op, then, launch<from, to, op, then> \
    }
#define HOT(type)                                                                         \
    ROW(type, type, TTI_PW_F_add, -1), ROW(type, type, TTI_PW_F_mul, -1),                 \
        ROW(type, type, TTI_PW_F_relu, -1), ROW(type, type, TTI_PW_F_gelu, -1),           \
        ROW(type, type, TTI_PW_F_relu_grad, -1), ROW(type, type, TTI_PW_F_gelu_grad, -1), \
        ROW(type, type, TTI_PW_F_add, TTI_PW_F_relu_grad)
static const straight_row rows[] = {
    HOT(TT_F32),
    HOT(TT_BF16),
    ROW(TT_F32, TT_BF16, TTI_PW_keep, -1),
    ROW(TT_BF16, TT_F32, TTI_PW_keep, -1),
};

// A second step takes the first one's result for y, and an input of the same type for x.
static bool is_chain(const tti_pw_program *p)
{
    const tti_pw_step *first = &p->steps[0], *then = &p->steps[1];
    return p->n_steps == 2 && then->n_in == 2 && then->src[0] < TTI_PW_STACK &&
           then->src[1] == TTI_PW_STACK && first->type == then->type;
}

bool tti_pw_straight(const tt_launch *l, const tti_pw_program *p)
{
    const tti_pw_step *s = &p->steps[0];
    int then = is_chain(p) ? p->steps[1].op : -1, from = p->in[s->src[0]].type;
    straight_args args = {};
    if (p->n_flat != p->n_in || p->begin != 0 || s->n_in > 2 || (p->n_steps == 2 && then < 0) ||
        p->n_steps > 2)
        return false;
    for (int k = 0; k < p->n_in; k++)
        if (p->in[k].type != from)
            return false;
    for (int k = 0; k < s->n_in; k++)
        args.in[k] = p->in[s->src[k]].data;
    if (then >= 0)
        args.in[s->n_in] = p->in[p->steps[1].src[0]].data;
    args.out = p->out;
    args.a = s->a;
    args.b = s->b;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const straight_row *r = &rows[i];
        if (r->from == from && r->to == s->type && r->op == s->op && r->then == then) {
            r->launch(l, &args, p->end);
            return true;
        }
    }
    return false;
}
