/*
 * conv.cu - conv2d and its gradient at x on a GPU: ops of conv.c; conv_dw.cu has the one at w.
 *
 * The kernels here take any shape; bf16 and f16 images of few channels have their own (conv_few.h),
 * f32 runs on the matrix units (conv_tf32.h), and where cuDNN has a deterministic engine it is used
 * for the others (conv_dnn.h). Forward and dx are one computation (conv_gather.cuh). A block has a
 * tile of pixels by channels and walks taps and channels in order, so an output is one chain of
 * fused multiply-adds whatever the batch: rows are free.
 */
#include "cuda/blas.h"
#include "op/gpu/conv_dnn.h"
#include "op/gpu/conv_few.h"
#include "op/gpu/conv_gather.cuh"
#include "op/gpu/conv_tf32.h"

#define TILE    TTI_CONV_TILE
#define DEPTH   TTI_CONV_DEPTH
#define THREADS TTI_CONV_THREADS
#define EACH    TTI_CONV_EACH

// ---- forward and dx --------------------------------------------------------------------------

template <class T>
__device__ static inline void load_tiles(const tti_conv_gather &q, const T *pixel, const T *w,
                                         int64_t c0, int64_t n0, tti_conv_tiles *s)
{
    const int t = (int)threadIdx.x;
    for (int e = 0; e < EACH; e++) {
        int k = t % 4 * EACH + e;
        s->a[k][t / 4] = pixel != NULL && c0 + k < q.c ? tti_get(pixel[c0 + k]) : 0.0f;
        // neighbours read neighbours: w is [c_in, c_out], and dx sums over c_out
        int term = q.is_dx ? t % DEPTH : t / (TILE / EACH);
        int col = (q.is_dx ? t / DEPTH : t % (TILE / EACH)) * EACH + e;
        int64_t at = q.is_dx ? (n0 + col) * q.c + c0 + term : (c0 + term) * q.n + n0 + col;
        s->b[term][col] = c0 + term < q.c && n0 + col < q.n ? tti_get(w[at]) : 0.0f;
    }
}

// A pixel's place in the source at tap 0 of its phase.
struct source {
    int64_t image, row, col;
    bool there; // the tile may reach past the last pixel
};
template <class T>
__device__ static inline const T *source_at(const tti_conv_gather &q, const source &p, int64_t u,
                                            int64_t v)
{
    int64_t r = q.is_dx ? p.row - u : p.row + u, c = q.is_dx ? p.col - v : p.col + v;
    if (!p.there || r < 0 || r >= q.src_h || c < 0 || c >= q.src_w)
        return NULL;
    return (const T *)q.src + ((p.image * q.src_h + r) * q.src_w + c) * q.c;
}

// As load_tiles() for few channels: terms k0 on of the sum over taps and channels as one.
template <class T>
__device__ static inline void load_mixed(const tti_conv_gather &q, const tti_conv_axis &ph,
                                         const tti_conv_axis &pw, const source &p, int64_t k0,
                                         int64_t n0, tti_conv_tiles *s)
{
    const int t = (int)threadIdx.x;
    const int64_t terms = ph.taps * pw.taps * q.c;
    for (int e = 0; e < EACH; e++) {
        int k = t % 4 * EACH + e;
        int64_t tap = (k0 + k) / q.c, ch = (k0 + k) % q.c;
        const T *pixel = NULL;
        if (k0 + k < terms)
            pixel = source_at<T>(q, p, tap / pw.taps, tap % pw.taps);
        s->a[k][t / 4] = pixel != NULL ? tti_get(pixel[ch]) : 0.0f;
        k = t / (TILE / EACH);
        int col = t % (TILE / EACH) * EACH + e;
        tap = (k0 + k) / q.c, ch = (k0 + k) % q.c;
        int64_t u = ph.tap + tap / pw.taps * ph.step, v = pw.tap + tap % pw.taps * pw.step;
        int64_t w = (u * q.d.kw + v) * q.d.c_in * q.d.c_out;
        w += q.is_dx ? (n0 + col) * q.c + ch : ch * q.n + n0 + col;
        bool in = k0 + k < terms && n0 + col < q.n;
        s->b[k][col] = in ? tti_get(((const T *)q.w)[w]) : 0.0f;
    }
}

template <class T>
__device__ static inline void gather_put(const tti_conv_gather &q, int64_t pixel, int64_t n0,
                                         const float acc[EACH])
{
    const int tx = (int)threadIdx.x % (TILE / EACH);
    for (int j = 0; j < EACH; j++) {
        int64_t n = n0 + tx * EACH + j;
        if (n >= q.n)
            break;
        float z = acc[j] + 0.0f;
        if (q.bias != NULL)
            z = z + tti_get(((const T *)q.bias)[n]);
        if (q.z != NULL)
            tti_put(((T *)q.z)[pixel * q.n + n], z);
        tti_put(((T *)q.y)[pixel * q.n + n], tti_act(q.act, z));
    }
}

// Blocks are tiles of pixels by tiles of output channels by phases.
template <class T> static __global__ void __launch_bounds__(THREADS) gather(tti_conv_gather q)
{
    __shared__ tti_conv_tiles s;
    const int64_t a = (q.phase + blockIdx.z) / q.phase_w, b = (q.phase + blockIdx.z) % q.phase_w;
    const tti_conv_axis ph = tti_conv_axis_of(q.is_dx, a, q.out_h, q.d.kh, q.d.sh, q.d.pt);
    const tti_conv_axis pw = tti_conv_axis_of(q.is_dx, b, q.out_w, q.d.kw, q.d.sw, q.d.pl);
    const int64_t m0 = (int64_t)blockIdx.x * TILE, n0 = (int64_t)blockIdx.y * TILE;
    const int64_t image_pixels = ph.n * pw.n, total = q.d.batch * image_pixels;
    if (m0 >= total) // of the whole block
        return;
    const int64_t m = m0 + threadIdx.x / 4, image = m / image_pixels, in = m % image_pixels;
    const source from = {image, in / pw.n * ph.src_step + ph.src, in % pw.n * pw.src_step + pw.src,
                         m < total};
    const int64_t taps = ph.taps * pw.taps, mixed = q.c < DEPTH ? taps * q.c : 0;
    float acc[EACH][EACH] = {};
    for (int64_t k = 0; k < mixed; k += DEPTH) {
        load_mixed<T>(q, ph, pw, from, k, n0, &s);
        __syncthreads();
        tti_conv_multiply(s, mixed - k < DEPTH ? (int)(mixed - k) : DEPTH, acc);
        __syncthreads();
    }
    for (int64_t i = 0; mixed == 0 && i < taps; i++) {
        int64_t u = i / pw.taps, v = i % pw.taps;
        int64_t tap = (ph.tap + u * ph.step) * q.d.kw + pw.tap + v * pw.step;
        const T *pixel = source_at<T>(q, from, u, v);
        const T *w = (const T *)q.w + tap * q.d.c_in * q.d.c_out;
        for (int64_t k = 0; k < q.c; k += DEPTH) {
            load_tiles<T>(q, pixel, w, k, n0, &s);
            __syncthreads();
            tti_conv_multiply(s, q.c - k < DEPTH ? (int)(q.c - k) : DEPTH, acc);
            __syncthreads();
        }
    }
    for (int i = 0; i < EACH; i++) {
        int64_t o = m0 + threadIdx.x / (TILE / EACH) * EACH + i, at = o % image_pixels;
        if (o >= total)
            break;
        int64_t row = a + at / pw.n * ph.step, col = b + at % pw.n * pw.step;
        gather_put<T>(q, (o / image_pixels * q.out_h + row) * q.out_w + col, n0, acc[i]);
    }
}

static tt_status run_gather(const tt_launch *l, tti_conv_gather q)
{
    int64_t m = (q.d.batch * tti_conv_phase_pixels(&q) + TILE - 1) / TILE;
    int64_t n = (q.n + TILE - 1) / TILE;
    if (m == 0)
        return TT_OK;
    for (; q.phase < q.phase_h * q.phase_w; q.phase += TTI_CONV_PHASES) {
        int64_t left = q.phase_h * q.phase_w - q.phase;
        dim3 grid((unsigned)m, (unsigned)n,
                  (unsigned)(left < TTI_CONV_PHASES ? left : TTI_CONV_PHASES));
        TTI_FLOATS(l->out[0].dtype, T, { TTI_LAUNCH(l, grid, THREADS, 0, (gather<T>), q); })
    }
    return tti_cuda_launched(l);
}

static tt_status conv2d(const tt_launch *l)
{
    const tti_conv_tune *t = (const tti_conv_tune *)l->tune;
    const tti_conv_attr *a = (const tti_conv_attr *)l->attr;
    if (tti_conv_by_library(t, l))
        return tti_conv_dnn_run(t->dnn, l, l->in[0].data, l->in[1].data, l->out[0].data,
                                l->scratch);
    if (t->by_few)
        return tti_few_run(l, &t->d);
    tti_conv_gather q = {};
    q.d = t->d;
    q.c = t->d.c_in;
    q.n = t->d.c_out;
    q.src_h = t->d.h;
    q.src_w = t->d.w;
    q.out_h = t->d.oh;
    q.out_w = t->d.ow;
    q.phase_h = q.phase_w = 1;
    q.src = l->in[0].data;
    q.w = l->in[1].data;
    q.bias = l->n_in > 2 ? l->in[2].data : NULL;
    q.y = l->out[0].data;
    q.z = l->n_out > 1 ? l->out[1].data : NULL;
    q.act = a->act;
    return t->by_tf32 ? tti_conv_tf32_run(l, q) : run_gather(l, q);
}

static tt_status conv2d_dx(const tt_launch *l)
{
    const tti_conv_tune *t = (const tti_conv_tune *)l->tune;
    if (tti_conv_by_library(t, l))
        return tti_conv_dnn_run(t->dnn, l, l->out[0].data, l->in[1].data, l->in[0].data,
                                l->scratch);
    tti_conv_gather q = {};
    q.d = t->d;
    q.is_dx = true;
    q.c = t->d.c_out;
    q.n = t->d.c_in;
    q.src_h = t->d.oh;
    q.src_w = t->d.ow;
    q.out_h = t->d.h;
    q.out_w = t->d.w;
    q.phase_h = t->d.sh < t->d.h ? t->d.sh : t->d.h;
    q.phase_w = t->d.sw < t->d.w ? t->d.sw : t->d.w;
    q.src = l->in[0].data;
    q.w = l->in[1].data;
    q.y = l->out[0].data;
    return t->by_tf32 ? tti_conv_tf32_run(l, q) : run_gather(l, q);
}

// ---- how they run ----------------------------------------------------------------------------

static tt_status prepare_as(tt_prep *p, int kind, const tti_conv_dims *d)
{
    tti_conv_tune t = {};
    tti_few f;
    t.d = *d;
    t.by_few = kind == TTI_CONV_Y && tti_few_of(d, p->in[0].dtype, false, &f);
    t.by_tf32 = tti_conv_tf32_takes((const tti_cuda_device *)p->device, d, p->in[0].dtype);
    if (!t.by_few && !t.by_tf32)
        TT_TRY(tti_conv_dnn_prepare(p, d, kind, NULL, &t.dnn, &t.workspace));
    p->scratch_bytes = t.workspace;
    memcpy(p->tune, &t, sizeof(t));
    return TT_OK;
}

static tt_status prepare(tt_prep *p)
{
    const tt_shape *w = &p->in[1].shape;
    tti_conv_dims d = tti_conv_dims_on((const tti_conv_attr *)p->attr, &p->in[0].shape, w->dim[0],
                                       w->dim[1], &p->out_args[0].shape);
    return prepare_as(p, TTI_CONV_Y, &d);
}

static tt_status prepare_dx(tt_prep *p)
{
    const tt_shape *w = &p->in[1].shape;
    tti_conv_dims d = tti_conv_dims_on((const tti_conv_attr *)p->attr, &p->out_args[0].shape,
                                       w->dim[0], w->dim[1], &p->in[0].shape);
    return prepare_as(p, TTI_CONV_DX, &d);
}

extern "C" const tti_cuda_row tti_cuda_conv[] = {
    TTI_ROW_BY("conv2d", prepare, conv2d, TTI_BY_DNN | TTI_BY_BLAS),
    TTI_ROW_BY("conv2d_dx", prepare_dx, conv2d_dx, TTI_BY_DNN | TTI_BY_BLAS),
    TTI_ROWS_END,
};
