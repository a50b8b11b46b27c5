/*
 * conv_wgmma.cu - dw of 3x3 convolutions in bf16 and f16 where the matrix units read shared memory
 * (compute capability 9.0).
 *
 * dw [c_out, (tap, c_in)] = dy' X, X being x under the taps. An image is cut into bands of rows of
 * dy. A stage of shared memory has a band of dy as positions of 64 channels, in rows of a pitch
 * with zeros past the image, and the part of x under it with the same pitch and its padding: a tap
 * of X is then x some positions on, another place at which the same matrix begins. So x is copied
 * once for nine taps, by the card's own copies of boxes, which write zeros where an image ends. The
 * taps of a row lie one position apart, which makes them one matrix of 192 columns. With stride 2 x
 * comes in four boxes, of even and odd rows and columns, within which taps are shifts again.
 *
 * Where dy is zero past a row a shift may run into another row of x, which adds 0 x. So a number of
 * x that is not finite makes NaN of taps that do not meet it, and not only of those that do.
 *
 * Bits: an element of dw is one chain over the bands of its slice. Bands are a matter of the shape,
 * a slice's bands of the lane's images as well.
 */
#include "cuda/parts.h"
#include "op/gpu/conv_wgmma.h"

#ifdef TTI_EMU

void *tti_wgmma_maps_of(const tti_cuda_device *, const tti_conv_dims *, tt_dtype)
{
    return NULL;
}
tt_status tti_wgmma_run(void *, const tt_launch *, const tti_conv_dims *, const tti_dw_sum *,
                        const tti_dw_images &, float *)
{
    return TT_EUNSUPPORTED;
}

#else

#include "op/gpu/conv_wgmma.cuh"
#include <cuda.h>

#define TILE     TTI_WGMMA_TILE
#define POSITION (TILE * 2)           // bytes
#define GROUP    128                  // threads that multiply together: those of a row of taps
#define THREADS  (3 * GROUP + 32)     // the last warp copies
#define STAGES   8                    // at most
#define SHARED   ((size_t)225 * 1024) // for all of them
#define BOX      256                  // the longest side of a box, gaps included

// A box of x in a stage: where it begins, for the band at row 0; positions, of which those past its
// rows are zero.
struct x_box {
    int row, col, at, end;
};

// How images are cut, and what the kernel reads.
struct bands {
    int rows, n;           // of dy in a band; bands of an image
    int pitch;             // positions of a row
    int depth;             // positions of dy that are multiplied, a multiple of 16
    int n_boxes, box_rows; // of x
    int dy_at, stage;      // positions before dy, and of a stage
    int stages;
    int c_in, c_out;
    x_box box[4]; // by whether the first tap in it is 0 or 1: rows, columns
    int64_t slices;
    tti_dw_rule rule;
    float *part;
};

// ---- the cut ---------------------------------------------------------------------------------

static int64_t up_to(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

// Bands of so many rows. False: too large for two stages, or for boxes.
static bool cut_by(const tti_conv_dims *d, int64_t rows, bands *q)
{
    const int64_t s = d->sw, right = d->ow + 2 - d->pl - d->w;
    int64_t pitch = d->ow + 1, at = 0;
    if (s == 1) { // the padding right of a row is the one left of the next
        pitch = d->w + (d->pl > right ? d->pl : right);
        pitch = pitch > d->ow ? pitch : d->ow;
    }
    const int64_t box_rows = rows + 2 / s, depth = up_to(rows * pitch, 16);
    if ((pitch - 1) * s >= BOX || (box_rows - 1) * s >= BOX)
        return false;
    q->n_boxes = (int)(s * s);
    for (int i = 0; i < q->n_boxes; i++) {
        const int64_t u = i / s, v = i % s, far = depth + (2 - u) / s * pitch + (2 - v) / s;
        const int64_t own = box_rows * pitch, end = at + up_to(far > own ? far : own, 8);
        q->box[i] = {(int)(u - d->pt), (int)(v - d->pl), (int)at, (int)end};
        at = end;
    }
    const int64_t stages = (int64_t)(SHARED / ((size_t)(at + depth) * POSITION));
    q->rows = (int)rows;
    q->n = (int)((d->oh + rows - 1) / rows);
    q->pitch = (int)pitch;
    q->depth = (int)depth;
    q->box_rows = (int)box_rows;
    q->dy_at = (int)at;
    q->stage = (int)(at + depth);
    q->stages = (int)(stages < STAGES ? stages : STAGES);
    return stages >= 2;
}

/*
 * The bands that take the least time. A band costs as much as 16 more positions, and copies hide
 * behind products less well in two stages than in three. False: none, or most of what would be
 * multiplied is zero.
 */
static bool cut(const tti_conv_dims *d, bands *q)
{
    int64_t best = INT64_MAX;
    bands b = {};
    for (int64_t rows = 1; rows <= d->oh && cut_by(d, rows, &b); rows++) {
        const int64_t cost = (int64_t)b.n * (b.depth + 16) * (b.stages == 2 ? 21 : 20);
        if (cost <= best) {
            best = cost;
            *q = b;
        }
    }
    return best != INT64_MAX && (int64_t)q->n * (q->depth + 16) <= 3 * d->oh * d->ow;
}

static bool fits(const tti_conv_dims *d, tt_dtype type)
{
    bands q;
    return (type == TT_BF16 || type == TT_F16) && d->kh == 3 && d->kw == 3 && d->sh == d->sw &&
           d->sh <= 2 && d->c_in % TILE == 0 && d->c_out % TILE == 0 && cut(d, &q);
}

// ---- the kernel ------------------------------------------------------------------------------

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A block's share: channels from c on of x and n on of dy, bands from to to of images first on.
struct share {
    int c, n, from, to, first;
    float *out;
};
// Blocks are tiles of c_in and c_out by slices by lanes. False: the lane has no such slice.
__device__ static inline bool share_of(const tti_dw_images &g, const bands &q, share *s)
{
    const int64_t first = g.bound[blockIdx.z], images = g.bound[blockIdx.z + 1] - first;
    const int64_t terms = images * q.rule.terms, slice = tti_dw_slice(terms, q.rule);
    const int64_t slices = (terms + slice - 1) / slice, all = images * q.n;
    const int tiles = q.c_out / TILE;
    if (blockIdx.y >= slices)
        return false;
    s->c = (int)blockIdx.x / tiles * TILE;
    s->n = (int)blockIdx.x % tiles * TILE;
    s->first = (int)first;
    s->from = (int)(all * blockIdx.y / slices);
    s->to = (int)(all * (blockIdx.y + 1) / slices);
    s->out = q.part + ((g.first + blockIdx.z) * q.slices + blockIdx.y) * 9 * q.c_in * q.c_out;
    return true;
}

// Stages in turn; the parity of a barrier changes with each turn.
struct turn {
    int stage;
    uint32_t parity;
    __device__ void next(int stages)
    {
        if (++stage == stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

__device__ static inline void zero(char *stage, int from, int to)
{
    for (int i = from * (POSITION / 16) + (int)threadIdx.x; i < to * (POSITION / 16); i += THREADS)
        ((uint4 *)stage)[i] = make_uint4(0, 0, 0, 0);
}
// What no box fills.
__device__ static inline void zero_ends(const bands &q, char *stages)
{
    for (int s = 0; s < q.stages; s++, stages += q.stage * POSITION) {
        for (int i = 0; i < q.n_boxes; i++)
            zero(stages, q.box[i].at + q.box_rows * q.pitch, q.box[i].end);
        zero(stages, q.dy_at + q.rows * q.pitch, q.stage);
    }
}

// By one thread.
__device__ static inline void copy_bands(const CUtensorMap *x, const CUtensorMap *dy,
                                         const bands &q, const share &s, int stride, char *stages,
                                         uint64_t *full, uint64_t *empty)
{
    const int bytes = (q.n_boxes * q.box_rows + q.rows) * q.pitch * POSITION;
    turn t = {0, 1}; // stages are empty at first
    for (int i = s.from; i < s.to; i++, t.next(q.stages)) {
        const int image = s.first + i / q.n, row = i % q.n * q.rows;
        char *to = stages + t.stage * q.stage * POSITION;
        uint64_t *arrived = &full[t.stage];
        tti_barrier_wait(&empty[t.stage], t.parity);
        tti_barrier_expect(arrived, (uint32_t)bytes);
        for (int k = 0; k < q.n_boxes; k++)
            tti_box_copy(to + q.box[k].at * POSITION, x, s.c, q.box[k].col,
                         row * stride + q.box[k].row, image, arrived);
        tti_box_copy(to + q.dy_at * POSITION, dy, s.n, 0, row, image, arrived);
    }
}

// acc [64 channels of dy, 3 taps of row u, 64 channels of x]; with stride 2 the taps are 0, 2, 1.
template <class T, int STRIDE>
__device__ static __forceinline__ void multiply_bands(const bands &q, const share &s, int u,
                                                      char *stages, uint64_t *full, uint64_t *empty,
                                                      float *acc)
{
    const x_box *box = &q.box[u % STRIDE * STRIDE];
    const int tap = u / STRIDE * q.pitch, left = box[0].at + tap, middle = box[STRIDE - 1].at + tap;
    const uint32_t base = tti_shared_at(stages);
    turn t = {0, 0};
    for (int i = s.from; i < s.to; i++, t.next(q.stages)) {
        const uint32_t x = base + t.stage * q.stage * POSITION;
        uint32_t a = x + q.dy_at * POSITION, b = x + left * POSITION, c = x + middle * POSITION;
        tti_barrier_wait(&full[t.stage], t.parity);
        tti_wgmma_fence(); // without it the compiler puts products one after the other
#pragma unroll 1
        for (int k = 0; k < q.depth; k += 16) {
            const uint64_t y = tti_wgmma_matrix(a, 16);
            tti_wgmma_fence();
            if (STRIDE == 1) {
                tti_wgmma_192(acc, y, tti_wgmma_matrix(b, POSITION), T());
            } else {
                tti_wgmma_128(acc, y, tti_wgmma_matrix(b, POSITION), T());
                tti_wgmma_64(acc + 64, y, tti_wgmma_matrix(c, 16), T());
            }
            a += 16 * POSITION;
            b += 16 * POSITION;
            c += 16 * POSITION;
        }
        tti_wgmma_wait();
        if (threadIdx.x % 32 == 0)
            tti_barrier_arrive(&empty[t.stage]);
    }
}

template <int STRIDE>
__device__ static __forceinline__ void put(const bands &q, const share &s, int u, const float *acc)
{
    const int warp = (int)threadIdx.x % GROUP / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 96; i++) {
        const int third = i / 32, v = STRIDE == 1 ? third : third * 2 % 3;
        const int c = s.c + i % 32 / 4 * 8 + lane % 4 * 2 + i % 2;
        const int n = s.n + warp * 16 + lane / 4 + i / 2 % 2 * 8;
        s.out[((int64_t)(u * 3 + v) * q.c_in + c) * q.c_out + n] = acc[i];
    }
}

#endif

// Empty where it cannot be: that it has barriers is how is_there() tells.
template <class T, int STRIDE>
static __global__ void __launch_bounds__(THREADS, 1)
    sum_bands(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap dy,
              const __grid_constant__ tti_dw_images g, const __grid_constant__ bands q)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    TTI_SHARED(char, raw);
    __shared__ uint64_t full[STAGES], empty[STAGES];
    char *stages = (char *)(((uintptr_t)raw + 1023) / 1024 * 1024);
    const int t = (int)threadIdx.x, u = t / GROUP;
    share s;
    if (!share_of(g, q, &s)) // of the whole block
        return;
    if (t == 0) {
        for (int i = 0; i < q.stages; i++) {
            tti_barrier_init(&full[i], 1);
            tti_barrier_init(&empty[i], 3 * GROUP / 32);
        }
        tti_barriers_made();
    }
    zero_ends(q, stages);
    tti_shared_written();
    __syncthreads();
    if (u == 3) {
        if (t % 32 == 0)
            copy_bands(&x, &dy, q, s, STRIDE, stages, full, empty);
        return;
    }
    float acc[96];
#pragma unroll
    for (int i = 0; i < 96; i++)
        acc[i] = 0.0f;
    multiply_bands<T, STRIDE>(q, s, u, stages, full, empty, acc);
    put<STRIDE>(q, s, u, acc);
#endif
}

// ---- runs ------------------------------------------------------------------------------------

typedef decltype(&cuTensorMapEncodeTiled) maps_fn;
typedef void (*kernel_fn)(CUtensorMap x, CUtensorMap dy, tti_dw_images g, bands q);

static kernel_fn kernel_of(const tti_conv_dims *d, tt_dtype type)
{
    if (type == TT_BF16)
        return d->sw == 1 ? sum_bands<tti_bf16, 1> : sum_bands<tti_bf16, 2>;
    return d->sw == 1 ? sum_bands<tti_f16, 1> : sum_bands<tti_f16, 2>;
}

// Whether this build has the kernel for the card, which takes more than code for its generation;
// and readies it, once and for all.
static bool is_there(const tti_cuda_device *dev, kernel_fn kernel)
{
    cudaFuncAttributes a = {};
    if (dev->major != 9 || dev->minor != 0 || !tti_cuda_enter_quietly(dev))
        return false;
    if (cudaFuncGetAttributes(&a, kernel) == cudaSuccess && a.sharedSizeBytes > 0 &&
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)(SHARED + 1024)) == cudaSuccess)
        return true;
    (void)cudaGetLastError();
    return false;
}

void *tti_wgmma_maps_of(const tti_cuda_device *dev, const tti_conv_dims *d, tt_dtype type)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    if (!fits(d, type) || !is_there(dev, kernel_of(d, type)))
        return NULL;
    return tti_cuda_symbol(tti_cuda_library(names, NULL), "cuTensorMapEncodeTiled");
}

// Images [n, h, w, c] at p, of which boxes of rows x cols entries are copied, stride apart.
struct images {
    void *p;
    int64_t n, h, w, c;
    int rows, cols, stride;
};
static tt_status map(void *maps, const tt_launch *l, const images &m, CUtensorMap *out)
{
    const cuuint64_t row = (cuuint64_t)(m.w * m.c) * 2, image = (cuuint64_t)m.h * row;
    const cuuint64_t size[] = {(cuuint64_t)m.c, (cuuint64_t)m.w, (cuuint64_t)m.h, (cuuint64_t)m.n};
    const cuuint64_t step[] = {(cuuint64_t)m.c * 2, row, image};
    const cuuint32_t stride = (cuuint32_t)m.stride, each[] = {1, stride, stride, 1};
    const cuuint32_t box[] = {TILE, (cuuint32_t)(m.cols - 1) * stride + 1,
                              (cuuint32_t)(m.rows - 1) * stride + 1, 1};
    const CUresult e = ((maps_fn)maps)(
        out,
        l->in[0].dtype == TT_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        4, m.p, size, step, box, each, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    const tti_cuda_device *dev = tti_device_of(l);
    if (e != CUDA_SUCCESS)
        return TT_FAIL(dev->ctx, TT_EDEVICE,
                       "%s: conv2d_dw: no map of images [%lld, %lld, %lld, %lld]: error %d",
                       dev->name, (long long)m.n, (long long)m.h, (long long)m.w, (long long)m.c,
                       (int)e);
    return TT_OK;
}

tt_status tti_wgmma_run(void *maps, const tt_launch *l, const tti_conv_dims *d,
                        const tti_dw_sum *sum, const tti_dw_images &g, float *part)
{
    bands q = {};
    CUtensorMap x, dy;
    if (g.bound[0] == g.bound[g.n])
        return TT_OK;
    (void)cut(d, &q);
    q.c_in = (int)d->c_in;
    q.c_out = (int)d->c_out;
    q.slices = sum->slices;
    q.rule = sum->rule;
    q.part = part;
    TT_TRY(map(maps, l,
               {l->in[0].data, d->batch, d->h, d->w, d->c_in, q.box_rows, q.pitch, (int)d->sw},
               &x));
    TT_TRY(
        map(maps, l, {l->in[1].data, d->batch, d->oh, d->ow, d->c_out, q.rows, q.pitch, 1}, &dy));
    const size_t shared = (size_t)(q.stages * q.stage) * POSITION + 1024; // to begin at 1024
    const dim3 grid((unsigned)(q.c_in / TILE * (q.c_out / TILE)), (unsigned)q.slices,
                    (unsigned)g.n);
    const kernel_fn kernel = kernel_of(d, l->in[0].dtype);
    TTI_LAUNCH(l, grid, THREADS, shared, kernel, x, dy, g, q);
    return tti_cuda_launched(l);
}

#endif
