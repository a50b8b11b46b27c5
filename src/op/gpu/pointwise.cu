/*
 * pointwise.cu - the kernel that runs the programs of pointwise.h, and programs of ops that stand
 * alone, with or without broadcasting.
 */
#include "op/gpu/pointwise.cuh"

#define THREADS 256

// ---- loads and stores ------------------------------------------------------------------------

struct alignas(8) two_words {
    uint32_t w[2];
};
typedef tti_pack<uint32_t> four_words;

// E elements, aligned to 16 bytes or to all of them.
template <int E> __device__ static inline void load(const char *p, int bytes, tti_pw_raw<E> &r)
{
    if (E == 1) {
        switch (bytes) {
        case 1:
            r.w[0] = *(const uint8_t *)p;
            return;
        case 2:
            r.w[0] = *(const uint16_t *)p;
            return;
        case 4:
            r.w[0] = *(const uint32_t *)p;
            return;
        default: {
            two_words t = *(const two_words *)p;
            r.w[0] = t.w[0], r.w[1] = t.w[1];
            return;
        }
        }
    }
    if (bytes == 1) {
        two_words t = *(const two_words *)p;
        r.w[0] = t.w[0], r.w[1] = t.w[1];
        return;
    }
    four_words t = *(const four_words *)p;
#pragma unroll
    for (int k = 0; k < 4; k++)
        r.w[k % E] = t.v[k];
    if (bytes == 2)
        return;
    t = ((const four_words *)p)[1];
#pragma unroll
    for (int k = 0; k < 4; k++)
        r.w[(k + 4) % E] = t.v[k];
}

template <int E> __device__ static inline void store(char *p, int bytes, const tti_pw_raw<E> &r)
{
    if (E == 1) {
        switch (bytes) {
        case 1:
            *(uint8_t *)p = (uint8_t)r.w[0];
            return;
        case 2:
            *(uint16_t *)p = (uint16_t)r.w[0];
            return;
        case 4:
            *(uint32_t *)p = r.w[0];
            return;
        default:
            *(two_words *)p = two_words{{r.w[0], r.w[1]}};
            return;
        }
    }
    if (bytes == 1) {
        *(two_words *)p = two_words{{r.w[0], r.w[1]}};
        return;
    }
    *(four_words *)p = four_words{{r.w[0], r.w[1], r.w[2 % E], r.w[3 % E]}};
    if (bytes == 4)
        ((four_words *)p)[1] = four_words{{r.w[4 % E], r.w[5 % E], r.w[6 % E], r.w[7 % E]}};
}

// Types are constants in each case, so that registers are not gathered from all of them.
template <class W, int E>
__device__ static inline void write(const tti_pw_program &p, char *to, const W (&x)[E])
{
    tti_pw_raw<E> r;
#define CASE(type, bytes)                \
    case type:                           \
        tti_pw_pack<W, E>((type), x, r); \
        store<E>(to, (bytes), r);        \
        return;
    switch (p.type) {
        CASE(TT_BF16, 2)
        CASE(TT_F16, 2)
        CASE(TTI_PW_BITS16, 2)
        CASE(TT_U8, 1)
        CASE(TT_BOOL, 1)
        CASE(TT_I64, 8)
    default:
        tti_pw_pack<W, E>(TT_F32, x, r);
        store<E>(to, 4, r);
    }
#undef CASE
}

// One element, E times.
template <int E> __device__ static inline void load_same(const char *p, int bytes, tti_pw_raw<E> &r)
{
    tti_pw_raw<1> one;
    load<1>(p, bytes, one);
    if (E > 1 && bytes == 1)
        one.w[0] *= 0x01010101u;
    if (E > 1 && bytes == 2)
        one.w[0] *= 0x00010001u;
    r.w[1] = one.w[1];
#pragma unroll
    for (int e = 0; e < E; e++)
        r.w[e] = one.w[0];
}

// Where the operand's element for element i of the output is.
__device__ static inline int64_t walk_to(const tti_pw_program &p, int k, int64_t i)
{
    int64_t at = 0;
#pragma unroll 1
    for (int a = 0; a + 1 < p.rank; a++) {
        const tti_pw_axis &x = p.axis[a];
        int64_t q =
            p.is_big ? i / x.dim : (__umulhi((uint32_t)i, x.factor) + (uint32_t)i) >> x.shift;
        at += (i - q * x.dim) * x.stride[k];
        i = q;
    }
    return at + i * p.axis[p.rank - 1].stride[k];
}

// ---- the kernel ------------------------------------------------------------------------------

/*
 * A thread's E elements: the first, P inputs read ahead of the steps (so that they are under way
 * together), and D results that wait.
 */
template <class W, int E, int D, int P> struct pw_thread {
    int64_t i;
    tti_pw_raw<E> ahead[P];
    W waiting[D][E];
};

template <class W, int E, int D, int P>
__device__ static inline void fetch(const tti_pw_program &p, const pw_thread<W, E, D, P> &t,
                                    int src, W (&x)[E])
{
    if (src >= TTI_PW_STACK) {
#pragma unroll
        for (int d = 0; d < D; d++)
            if (src == TTI_PW_STACK + d) {
                TTI_PW_EACH(x[e] = t.waiting[d][e])
            }
        return;
    }
    const tti_pw_input &in = p.in[src];
    const char *from = (const char *)in.data;
    tti_pw_raw<E> r;
    if (in.mode == TTI_PW_FLAT && src < P) {
#pragma unroll
        for (int k = 0; k < P; k++)
            if (k == src)
                r = t.ahead[k];
    } else if (in.mode == TTI_PW_FLAT) {
        load<E>(from + t.i * in.bytes, in.bytes, r);
    } else {
        if (in.mode == TTI_PW_WALK)
            from += walk_to(p, in.walk, t.i) * in.bytes;
        if (in.steps)
            load<E>(from, in.bytes, r);
        else
            load_same<E>(from, in.bytes, r);
    }
    tti_pw_unpack<W, E>(in.type, r, x);
}

// The stack gets the result x, having grown by `grows`.
template <class W, int E, int D, int P>
__device__ static inline void push(pw_thread<W, E, D, P> &t, int grows, const W (&x)[E])
{
    if (D > 1 && grows > 0) {
#pragma unroll
        for (int d = D - 1; d > 0; d--)
            TTI_PW_EACH(t.waiting[d][e] = t.waiting[d - 1][e])
    }
#pragma unroll 1
    for (; D > 1 && grows < 0; grows++) {
#pragma unroll
        for (int d = 1; d < D; d++)
            TTI_PW_EACH(t.waiting[d - 1][e] = t.waiting[d][e])
    }
    TTI_PW_EACH(t.waiting[0][e] = x[e])
}

// Starts to read what the steps on the elements from i on will want first.
template <class W, int E, int D, int P>
__device__ static inline void read_ahead(const tti_pw_program &p, pw_thread<W, E, D, P> &t,
                                         int64_t i)
{
    if (i >= p.end)
        return;
#pragma unroll
    for (int k = 0; k < P; k++)
        if (k < p.n_flat)
            load<E>((const char *)p.in[k].data + i * p.in[k].bytes, p.in[k].bytes, t.ahead[k]);
}

/*
 * x becomes the step's result. Once the last step has its operands, what the next elements want is
 * read: next is where they begin; else it is p.end.
 */
template <class W, int E, int D, int P>
__device__ static inline void run_step(const tti_pw_program &p, pw_thread<W, E, D, P> &t,
                                       const tti_pw_step &s, int64_t next, W (&x)[E])
{
    fetch<W, E, D, P>(p, t, s.src[0], x);
    if (s.n_in == 1) {
        read_ahead<W, E, D, P>(p, t, next);
        if (s.op < TTI_PW_INTS)
            tti_pw_float_1<W, E>(s.op, x, s.a, s.b);
        else
            tti_pw_int_1<W, E>(s.op, s.type, x);
        return;
    }
    W y[E];
    fetch<W, E, D, P>(p, t, s.src[1], y);
    if (s.op == TTI_PW_where) {
        W z[E];
        fetch<W, E, D, P>(p, t, s.src[2], z);
        read_ahead<W, E, D, P>(p, t, next);
        TTI_PW_EACH(x[e] = x[e] != 0 ? y[e] : z[e])
        return;
    }
    read_ahead<W, E, D, P>(p, t, next);
    if (s.op < TTI_PW_INTS)
        tti_pw_float_2<W, E>(s.op, x, y, s.a, s.b);
    else
        tti_pw_int_2<W, E>(s.op, x, y);
}

template <class W, int E, int D, int P, int BLOCKS>
static __global__ void __launch_bounds__(THREADS, BLOCKS) pointwise(const tti_pw_program p)
{
    int64_t stride = (int64_t)gridDim.x * THREADS * E;
    int64_t first = p.begin + ((int64_t)blockIdx.x * THREADS + threadIdx.x) * E;
    pw_thread<W, E, D, P> t;
    read_ahead<W, E, D, P>(p, t, first);
    for (t.i = first; t.i < p.end; t.i += stride) {
        W x[E];
#pragma unroll 1
        for (int s = 0;; s++) {
            bool is_last = s + 1 == p.n_steps;
            run_step<W, E, D, P>(p, t, p.steps[s], is_last ? t.i + stride : p.end, x);
            if (is_last)
                break; // packing it rounds
            tti_pw_round<W, E>(p.steps[s].type, x);
            push<W, E, D, P>(t, p.steps[s].grows, x);
        }
        write<W, E>(p, (char *)p.out + t.i * p.bytes, x);
    }
}

// ---- launches --------------------------------------------------------------------------------

// As many blocks as can be on the card at once, so that all of them end together.
static unsigned blocks_for(const tt_launch *l, const tti_pw_program *p, int per_thread, int per_sm)
{
    int64_t per = (int64_t)THREADS * per_thread, want = (p->end - p->begin + per - 1) / per;
    int64_t most = (int64_t)tti_device_of(l)->sms * per_sm;
    return (unsigned)(want < most ? want : most);
}

static void enqueue(const tt_launch *l, const tti_pw_program *p)
{
    if (!p->in_packs)
        TTI_LAUNCH(l, blocks_for(l, p, 1, 4), THREADS, 0,
                   (pointwise<uint64_t, 1, TTI_PW_DEPTH, 2, 4>), *p);
    else if (p->depth > 1)
        TTI_LAUNCH(l, blocks_for(l, p, TTI_PW_PACK, 2), THREADS, 0,
                   (pointwise<uint32_t, TTI_PW_PACK, TTI_PW_DEPTH, 3, 2>), *p);
    else
        TTI_LAUNCH(l, blocks_for(l, p, TTI_PW_PACK, 3), THREADS, 0,
                   (pointwise<uint32_t, TTI_PW_PACK, 1, 2, 3>), *p);
}

// Flat inputs come first, so that they can be read ahead.
static void order_inputs(tti_pw_program *p)
{
    tti_pw_input in[TTI_PW_IN];
    uint8_t to[TTI_PW_IN];
    int n = 0;
    for (int flat = 1; flat >= 0; flat--) {
        for (int k = 0; k < p->n_in; k++)
            if ((p->in[k].mode == TTI_PW_FLAT) == (flat == 1)) {
                in[n] = p->in[k];
                to[k] = (uint8_t)n++;
            }
        if (flat == 1)
            p->n_flat = (uint8_t)n;
    }
    memcpy(p->in, in, sizeof(in[0]) * (size_t)n);
    for (int s = 0; s < p->n_steps; s++)
        for (int k = 0; k < p->steps[s].n_in; k++)
            if (p->steps[s].src[k] < TTI_PW_STACK)
                p->steps[s].src[k] = to[p->steps[s].src[k]];
}

// Can packs be moved? All flat ones are aligned, none has 8 bytes, rows are whole packs.
static bool can_pack(const tti_pw_program *p)
{
    bool can = p->bytes != 8 && tti_is_aligned(p->out);
    for (int s = 0; s < p->n_steps; s++)
        can = can && p->steps[s].type != TT_I64;
    for (int k = 0; k < p->n_in; k++) {
        const tti_pw_input *in = &p->in[k];
        can = can && in->bytes != 8 && (in->mode == TTI_PW_ONE || tti_is_aligned(in->data));
        if (in->mode != TTI_PW_WALK)
            continue;
        can = can && p->axis[0].dim % TTI_PW_PACK == 0;
        for (int a = 1; a < p->rank; a++)
            can = can && (!in->steps || p->axis[a].stride[in->walk] % TTI_PW_PACK == 0);
    }
    return can;
}

tt_status tti_pw_run(const tt_launch *l, tti_pw_program *p)
{
    const tt_arg *y = &l->out[0];
    if (y->count == 0)
        return TT_OK;
    p->out = y->data;
    p->type = p->steps[p->n_steps - 1].type;
    p->bytes = (uint8_t)tti_pw_bytes(p->type);
    p->begin = 0;
    p->end = y->count;
    p->is_big = y->count > INT32_MAX;
    order_inputs(p);
    p->in_packs = can_pack(p);
    if (p->in_packs && y->count >= TTI_PW_PACK) {
        p->end = y->count - y->count % TTI_PW_PACK;
        if (!tti_pw_straight(l, p))
            enqueue(l, p);
        p->begin = p->end;
        p->end = y->count;
    }
    p->in_packs = false;
    if (p->begin < p->end)
        enqueue(l, p);
    return tti_cuda_launched(l);
}
