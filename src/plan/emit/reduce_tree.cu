/*
 * reduce_tree.cu - CUDA: the kernels that put replicas together; see reduce_tree.c. Inputs may lie
 * in the memory of other devices.
 *
 * Each thread takes 16 bytes of every partial at the same place and adds them in the order of the
 * tree: the exact all-reduce reads every byte once. What the program says of a push, and where its
 * partial lies, goes to the kernel by value.
 */
#include "cuda/move.cuh"
#include "plan/program.h"

#define DEPTH 26 // sums pending at once: TTI_MAX_PARTS of comm/lanes.h and room

// Partials in the order they are pushed, N at most; each has at least one lane.
template <int N> struct parts {
    int n, n_out;
    const void *at[N];
    uint8_t merges[N];
};

template <int N> static parts<N> parts_of(const tt_launch *l, const tti_tree_program *prog)
{
    parts<N> v = {};
    v.n = prog->n;
    v.n_out = prog->n_out;
    for (int i = 0; i < prog->n; i++) {
        const tt_arg *in = &l->in[prog->push[i].input];
        v.at[i] = (const char *)in->data + prog->push[i].skip * tti_item(in->dtype);
        v.merges[i] = (uint8_t)prog->push[i].merges;
    }
    return v;
}

template <int N> static bool are_aligned(const parts<N> &v)
{
    uintptr_t bits = 0;
    for (int i = 0; i < v.n; i++)
        bits |= (uintptr_t)v.at[i];
    return (bits & 15) == 0;
}

// ---- tree ------------------------------------------------------------------------------------

__device__ static inline float add(float a, float b)
{
    return a + b + 0.0f;
}
__device__ static inline uint32_t add(uint32_t a, uint32_t b)
{
    return a + b;
}
__device__ static inline uint64_t add(uint64_t a, uint64_t b)
{
    return a + b;
}
__device__ static inline uint8_t add(uint8_t a, uint8_t b)
{
    return (uint8_t)(a + b);
}

template <class T, int V> struct alignas(sizeof(T) * V) some {
    T v[V];
};

// V sums of type T to element i of y, whose type is T's or a half one.
template <class T, int V>
__device__ static inline void store(void *y, tt_dtype to, int64_t i, some<T, V> x)
{
    if (to == TT_BF16) {
        some<tti_bf16, V> h;
        for (int k = 0; k < V; k++)
            tti_put(h.v[k], (float)x.v[k]);
        *(some<tti_bf16, V> *)((tti_bf16 *)y + i) = h;
    } else if (to == TT_F16) {
        some<tti_f16, V> h;
        for (int k = 0; k < V; k++)
            tti_put(h.v[k], (float)x.v[k]);
        *(some<tti_f16, V> *)((tti_f16 *)y + i) = h;
    } else {
        *(some<T, V> *)((T *)y + i) = x;
    }
}

/*
 * Elements [0, n) of the results, which lie count apart. A push that merges adds to what is on top,
 * so that a tree over replicas with one part each needs few places of the stack.
 */
template <class T, int V, int N>
__global__ static void tree(parts<N> p, void *y, tt_dtype to, int64_t n, int64_t count)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    for (; i < n; i += (int64_t)gridDim.x * blockDim.x * V) {
        some<T, V> stack[DEPTH], top = {};
        int below = 0; // sums under the top
        for (int k = 0; k < p.n; k++) {
            some<T, V> x = *(const some<T, V> *)((const T *)p.at[k] + i);
            int merges = p.merges[k];
            if (k > 0 && merges == 0)
                stack[below++] = top;
            if (merges > 0) {
                for (int c = 0; c < V; c++)
                    x.v[c] = add(top.v[c], x.v[c]);
                merges--;
            }
            for (; merges > 0; merges--) {
                below--;
                for (int c = 0; c < V; c++)
                    x.v[c] = add(stack[below].v[c], x.v[c]);
            }
            top = x;
        }
        for (int k = 0; k < below; k++)
            store<T, V>(y, to, k * count + i, stack[k]);
        store<T, V>(y, to, below * count + i, top);
    }
}

// Two partials and one result, as between two devices: all loads of a thread go out at once.
template <int V>
__global__ static void tree_pair(const float *a, const float *b, float *y, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
#pragma unroll 2
    for (; i < n; i += (int64_t)gridDim.x * blockDim.x * V) {
        some<float, V> x = *(const some<float, V> *)(a + i), z = *(const some<float, V> *)(b + i);
        for (int c = 0; c < V; c++)
            x.v[c] = add(x.v[c], z.v[c]);
        *(some<float, V> *)(y + i) = x;
    }
}

template <class T, int N> static void launch_tree(const tt_launch *l, const parts<N> &p)
{
    const int V = 16 / (int)sizeof(T);
    const tt_arg *out = l->out;
    int64_t count = out->count / p.n_out, item = tti_item(out->dtype);
    // Results after the first begin where count says; halves are stored eight bytes at a time.
    bool fits =
        are_aligned(p) && tti_is_aligned(out->data) && (p.n_out == 1 || count * item % 16 == 0);
    int64_t body = fits ? count / V * V : 0;
    bool pair = p.n == 2 && p.n_out == 1 && out->dtype == TT_F32 && sizeof(T) == 4 &&
                l->in[0].dtype == TT_F32;
    if (body > 0 && pair)
        TTI_LAUNCH(l, tti_blocks(l, body / V, 256), 256, 0, (tree_pair<4>), (const float *)p.at[0],
                   (const float *)p.at[1], (float *)out->data, body);
    else if (body > 0)
        TTI_LAUNCH(l, tti_blocks(l, body / V, 256), 256, 0, (tree<T, V, N>), p, out->data,
                   out->dtype, body, count);
    if (body < count) {
        parts<N> rest = p;
        for (int i = 0; i < p.n; i++)
            rest.at[i] = (const T *)p.at[i] + body;
        TTI_LAUNCH(l, tti_blocks(l, count - body, 256), 256, 0, (tree<T, 1, N>), rest,
                   (char *)out->data + body * item, out->dtype, count - body, count);
    }
}

static tt_status tree_cuda(const tt_launch *l)
{
    const tti_tree_program *prog = (const tti_tree_program *)l->tune;
    if (l->out[0].count == 0 || prog->n == 0)
        return TT_OK;
    TTI_LANES_UP_TO(prog->n, N, {
        parts<N> p = parts_of<N>(l, prog);
        switch (l->in[0].dtype) {
        case TT_F32:
            launch_tree<float>(l, p);
            break;
        case TT_I32:
            launch_tree<uint32_t>(l, p);
            break;
        case TT_I64:
            launch_tree<uint64_t>(l, p);
            break;
        case TT_U8:
        case TT_BOOL:
            launch_tree<uint8_t>(l, p);
            break;
        default:
            return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "%s: partial sums of type %d on a GPU",
                           l->node == NULL ? "tree" : l->node->name, (int)l->in[0].dtype);
        }
    });
    return tti_cuda_launched(l);
}

// ---- statistics ------------------------------------------------------------------------------

template <int N> struct moments_of {
    parts<N> p; // means
    const float *m2[N];
    int64_t rows[N]; // entries of a channel
};

/*
 * One channel: mean and M2 merged by Chan's formula, with the roundings of the kernel that makes
 * them.
 */
template <int N>
__global__ static void moments(moments_of<N> v, float *mean_to, float *var_to, float *unbiased_to,
                               int64_t c)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; j < c; j += (int64_t)gridDim.x * blockDim.x) {
        float mean[DEPTH], m2[DEPTH];
        int64_t n[DEPTH];
        int depth = 0;
        for (int i = 0; i < v.p.n; i++) {
            n[depth] = v.rows[i];
            mean[depth] = ((const float *)v.p.at[i])[j];
            m2[depth++] = v.m2[i][j];
            for (int m = v.p.merges[i]; m > 0; m--) {
                int a = depth - 2, b = --depth;
                if (n[b] == 0)
                    continue;
                float w = (float)n[b] / (float)(n[a] + n[b]), d = mean[b] - mean[a];
                mean[a] = n[a] == 0 ? mean[b] : fmaf(d, w, mean[a]);
                m2[a] = n[a] == 0 ? m2[b] : fmaf(d * d, (float)n[a] * w, m2[a] + m2[b]);
                n[a] += n[b];
            }
        }
        mean_to[j] = mean[0] + 0.0f;
        var_to[j] = m2[0] / (float)(n[0] > 0 ? n[0] : 1) + 0.0f;
        unbiased_to[j] = m2[0] / (float)(n[0] > 1 ? n[0] - 1 : 1) + 0.0f;
    }
}

static tt_status moments_cuda(const tt_launch *l)
{
    const tti_tree_program *prog = (const tti_tree_program *)l->tune;
    int64_t c = l->out[0].count;
    if (c == 0 || prog->n == 0)
        return TT_OK;
    TTI_LANES_UP_TO(prog->n, N, {
        moments_of<N> v = {};
        v.p.n = prog->n;
        for (int i = 0; i < prog->n; i++) {
            const tti_push *push = &prog->push[i];
            v.p.at[i] = (const float *)l->in[push->input].data + push->part * c;
            v.m2[i] = (const float *)l->in[push->input + 1].data + push->part * c;
            v.p.merges[i] = (uint8_t)push->merges;
            v.rows[i] = push->rows * prog->per_row;
        }
        TTI_LAUNCH(l, tti_blocks(l, c, 64), 64, 0, (moments<N>), v, (float *)l->out[0].data,
                   (float *)l->out[1].data, (float *)l->out[2].data, c);
    });
    return tti_cuda_launched(l);
}

// ---- rows and pieces side by side ------------------------------------------------------------

static tt_status gather_cuda(const tt_launch *l)
{
    const tt_arg *out = l->out;
    int64_t inner = tti_item(out->dtype), outer = 1;
    for (int i = 0; i < out->open; i++)
        outer *= out->shape.dim[i];
    for (int i = out->open + 1; i < out->shape.rank; i++)
        inner *= out->shape.dim[i];
    int64_t row = out->shape.dim[out->open] * inner;
    char *y = (char *)out->data;
    tti_mover v = {};
    v.l = l;
    for (int k = 0; k < l->n_in; k++) {
        int64_t w = l->in[k].shape.dim[out->open] * inner;
        tti_mover_add(&v, {y, (const char *)l->in[k].data, row, w, w, outer, 1});
        y += w;
    }
    tti_mover_flush(&v);
    return tti_cuda_launched(l);
}

static tt_status collect_cuda(const tt_launch *l)
{
    const tti_collect_program *prog = (const tti_collect_program *)l->tune;
    int64_t item = tti_item(l->out[0].dtype);
    tti_mover v = {};
    v.l = l;
    for (int k = prog->first; k < l->n_in; k++) {
        int64_t bytes = l->in[k].count * item;
        tti_mover_add(&v, {(char *)l->out[0].data + prog->begin[k] * item,
                           (const char *)l->in[k].data, bytes, bytes, bytes, 1, 1});
    }
    tti_mover_flush(&v);
    return tti_cuda_launched(l);
}

// ---- sums sent in a narrower type ------------------------------------------------------------

__device__ static inline bool is_finite(float x)
{
    return (tti_bits(x) & 0x7f800000u) != 0x7f800000u;
}

__device__ static inline float narrowed(float x, tti_bf16 &sent)
{
    tti_put(sent, x);
    return tti_get(sent);
}
// What is too large stays in the residual.
__device__ static inline float narrowed(float x, tti_f16 &sent)
{
    if (is_finite(x))
        x = fminf(fmaxf(x, -65504.0f), 65504.0f);
    tti_put(sent, x);
    return tti_get(sent);
}

// The replica's parts added to what was left before, rounded; the rest stays.
template <class T, int V, int N>
__global__ static void narrow(parts<N> p, T *y, float *left, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    for (; i < n; i += (int64_t)gridDim.x * blockDim.x * V) {
        some<float, V> sum = *(const some<float, V> *)(left + i);
        for (int k = 0; k < p.n; k++) {
            some<float, V> x = *(const some<float, V> *)((const float *)p.at[k] + i);
            for (int c = 0; c < V; c++)
                sum.v[c] = sum.v[c] + x.v[c];
        }
        some<T, V> sent;
        for (int c = 0; c < V; c++) {
            float rest = sum.v[c] - narrowed(sum.v[c], sent.v[c]);
            sum.v[c] = is_finite(rest) ? rest : 0.0f;
        }
        *(some<T, V> *)(y + i) = sent;
        *(some<float, V> *)(left + i) = sum;
    }
}

template <class T> static void launch_narrow(const tt_launch *l)
{
    const tti_tree_program *prog = (const tti_tree_program *)l->tune;
    T *y = (T *)l->out[0].data;
    float *left = (float *)l->in[l->n_in - 1].data;
    int64_t n = l->out[0].count;
    TTI_LANES_UP_TO(prog->n, N, {
        parts<N> p = parts_of<N>(l, prog);
        bool fits = are_aligned(p) && tti_is_aligned(y) && tti_is_aligned(left) && n % 4 == 0;
        if (fits)
            TTI_LAUNCH(l, tti_blocks(l, n / 4, 256), 256, 0, (narrow<T, 4, N>), p, y, left, n);
        else
            TTI_LAUNCH(l, tti_blocks(l, n, 256), 256, 0, (narrow<T, 1, N>), p, y, left, n);
    });
}

static tt_status narrow_cuda(const tt_launch *l)
{
    if (l->out[0].count == 0)
        return TT_OK;
    if (l->out[0].dtype == TT_F16)
        launch_narrow<tti_f16>(l);
    else
        launch_narrow<tti_bf16>(l);
    return tti_cuda_launched(l);
}

// What all replicas sent, added in their order.
template <class T, int V, int N> __global__ static void widen(parts<N> p, float *y, int64_t n)
{
    int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V;
    for (; i < n; i += (int64_t)gridDim.x * blockDim.x * V) {
        some<float, V> sum = {};
        for (int k = 0; k < p.n; k++) {
            some<T, V> x = *(const some<T, V> *)((const T *)p.at[k] + i);
            for (int c = 0; c < V; c++)
                sum.v[c] = sum.v[c] + tti_get(x.v[c]);
        }
        for (int c = 0; c < V; c++)
            sum.v[c] = sum.v[c] + 0.0f;
        *(some<float, V> *)(y + i) = sum;
    }
}

template <class T> static void launch_widen(const tt_launch *l)
{
    const tti_tree_program *prog = (const tti_tree_program *)l->tune;
    float *y = (float *)l->out[0].data;
    int64_t n = l->out[0].count;
    TTI_LANES_UP_TO(l->n_in, N, {
        parts<N> p = {};
        p.n = l->n_in;
        for (int k = 0; k < l->n_in; k++)
            p.at[k] = (const T *)l->in[k].data + prog->push[k].skip;
        if (are_aligned(p) && tti_is_aligned(y) && n % 4 == 0)
            TTI_LAUNCH(l, tti_blocks(l, n / 4, 256), 256, 0, (widen<T, 4, N>), p, y, n);
        else
            TTI_LAUNCH(l, tti_blocks(l, n, 256), 256, 0, (widen<T, 1, N>), p, y, n);
    });
}

static tt_status widen_cuda(const tt_launch *l)
{
    if (l->out[0].count == 0)
        return TT_OK;
    if (l->in[0].dtype == TT_F16)
        launch_widen<tti_f16>(l);
    else
        launch_widen<tti_bf16>(l);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_reduce_tree[] = {
    TTI_ROW_FORM(TTI_KERNEL_TREE, tree_cuda),
    TTI_ROW_FORM(TTI_KERNEL_GATHER, gather_cuda),
    TTI_ROW_FORM(TTI_KERNEL_MOMENTS, moments_cuda),
    TTI_ROW_FORM(TTI_KERNEL_COLLECT, collect_cuda),
    TTI_ROW_FORM(TTI_KERNEL_NARROW, narrow_cuda),
    TTI_ROW_FORM(TTI_KERNEL_WIDEN, widen_cuda),
    TTI_ROWS_END,
};
