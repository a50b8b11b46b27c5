/*
 * recurrent.cu - recurrent and its gradient: a block of threads takes a row of the batch through
 * all steps, its state in shared memory. Products are chains over k, neighbouring threads reading
 * neighbouring columns of w (the gradient: of its transpose, made before).
 */
#include "op/gpu/act.cuh"
#include "op/recurrent.h"

#define THREADS 256
#define ROOM    (48 * 1024) // of shared memory

struct walk {
    int64_t t, h, wide, kept;
    int kind, reverse;
};

template <class T>
static __global__ void __launch_bounds__(THREADS)
    forward(walk d, const T *z, const T *w, const T *bias, T *y, T *kept)
{
    TTI_SHARED(float, state); // h, then c, then the gates
    float *c = state + d.h, *q = c + d.h;
    int64_t row = blockIdx.x;
    for (int64_t i = threadIdx.x; i < d.h; i += THREADS)
        state[i] = c[i] = 0.0f;
    __syncthreads();
    for (int64_t s = 0; s < d.t; s++) {
        int64_t at = row * d.t + (d.reverse ? d.t - 1 - s : s);
        for (int64_t j = threadIdx.x; j < d.wide; j += THREADS) {
            float sum = 0.0f;
            for (int64_t k = 0; s > 0 && k < d.h; k++)
                sum = fmaf(state[k], tti_get(w[k * d.wide + j]), sum);
            q[j] = sum + 0.0f + (bias == NULL ? 0.0f : tti_get(bias[j]));
        }
        __syncthreads();
        const T *zs = z + at * d.wide;
        T *ks = kept + at * d.kept * d.h;
        for (int64_t i = threadIdx.x; i < d.h; i += THREADS) {
            if (d.kind == TT_RNN) {
                state[i] = tanhf(tti_get(zs[i]) + q[i]);
            } else if (d.kind == TT_GRU) {
                float r = tti_sigmoid(tti_get(zs[i]) + q[i]);
                float u = tti_sigmoid(tti_get(zs[d.h + i]) + q[d.h + i]);
                float hn = q[2 * d.h + i], n = tanhf(fmaf(r, hn, tti_get(zs[2 * d.h + i])));
                state[i] = fmaf(u, state[i] - n, n);
                tti_put(ks[i], r);
                tti_put(ks[d.h + i], u);
                tti_put(ks[2 * d.h + i], n);
                tti_put(ks[3 * d.h + i], hn);
            } else {
                float in = tti_sigmoid(tti_get(zs[i]) + q[i]);
                float f = tti_sigmoid(tti_get(zs[d.h + i]) + q[d.h + i]);
                float g = tanhf(tti_get(zs[2 * d.h + i]) + q[2 * d.h + i]);
                float o = tti_sigmoid(tti_get(zs[3 * d.h + i]) + q[3 * d.h + i]);
                c[i] = fmaf(f, c[i], in * g);
                state[i] = o * tanhf(c[i]);
                tti_put(ks[i], in);
                tti_put(ks[d.h + i], f);
                tti_put(ks[2 * d.h + i], g);
                tti_put(ks[3 * d.h + i], o);
                tti_put(ks[4 * d.h + i], c[i]);
            }
            tti_put(y[at * d.h + i], state[i]);
        }
        __syncthreads();
    }
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    turn(int64_t h, int64_t wide, const T *w, float *out)
{
    int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t u = (int64_t)blockIdx.x * THREADS + threadIdx.x; u < h * wide; u += stride)
        out[u] = tti_get(w[u % h * wide + u / h]);
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    backward(walk d, const T *dy, const T *y, const float *turned, const T *kept, T *dz, T *dq)
{
    TTI_SHARED(float, dh); // then dc, then dq of this step
    float *dc = dh + d.h, *q = dc + d.h;
    int64_t row = blockIdx.x, h = d.h;
    for (int64_t i = threadIdx.x; i < h; i += THREADS)
        dh[i] = dc[i] = 0.0f;
    __syncthreads();
    for (int64_t s = d.t - 1; s >= 0; s--) {
        int64_t at = row * d.t + (d.reverse ? d.t - 1 - s : s), was = d.reverse ? at + 1 : at - 1;
        const T *ks = kept + at * d.kept * h;
        T *zs = dz + at * d.wide;
        for (int64_t i = threadIdx.x; i < h; i += THREADS) {
            float g = dh[i] + tti_get(dy[at * h + i]);
            if (d.kind == TT_RNN) {
                float v = tti_get(y[at * h + i]);
                q[i] = g * fmaf(-v, v, 1.0f);
                tti_put(zs[i], q[i]);
                dh[i] = 0.0f;
            } else if (d.kind == TT_GRU) {
                float r = tti_get(ks[i]), u = tti_get(ks[h + i]), n = tti_get(ks[2 * h + i]);
                float hn = tti_get(ks[3 * h + i]), old = s == 0 ? 0.0f : tti_get(y[was * h + i]);
                float dn = g * (1.0f - u) * fmaf(-n, n, 1.0f);
                q[i] = dn * hn * (r * (1.0f - r));
                q[h + i] = g * (old - n) * (u * (1.0f - u));
                q[2 * h + i] = dn * r;
                tti_put(zs[i], q[i]);
                tti_put(zs[h + i], q[h + i]);
                tti_put(zs[2 * h + i], dn);
                for (int k = 0; k < 3; k++)
                    tti_put(dq[at * d.wide + k * h + i], q[k * h + i]);
                dh[i] = g * u;
            } else {
                float in = tti_get(ks[i]), f = tti_get(ks[h + i]), c = tti_get(ks[2 * h + i]);
                float o = tti_get(ks[3 * h + i]), v = tanhf(tti_get(ks[4 * h + i]));
                float old = s == 0 ? 0.0f : tti_get(kept[was * d.kept * h + 4 * h + i]);
                float all = fmaf(g * o, fmaf(-v, v, 1.0f), dc[i]);
                q[i] = all * c * (in * (1.0f - in));
                q[h + i] = all * old * (f * (1.0f - f));
                q[2 * h + i] = all * in * fmaf(-c, c, 1.0f);
                q[3 * h + i] = g * v * (o * (1.0f - o));
                for (int k = 0; k < 4; k++)
                    tti_put(zs[k * h + i], q[k * h + i]);
                dc[i] = all * f;
                dh[i] = 0.0f;
            }
        }
        __syncthreads();
        for (int64_t j = threadIdx.x; s > 0 && j < h; j += THREADS) {
            float sum = 0.0f;
            for (int64_t k = 0; k < d.wide; k++)
                sum = fmaf(q[k], turned[k * h + j], sum);
            dh[j] += sum;
        }
        __syncthreads();
    }
}

static size_t room_of(const tti_recurrent_dims *d)
{
    return (size_t)((2 + d->gates) * d->h) * sizeof(float);
}

static tt_status prepare_with(tt_prep *p, const tt_shape *y, bool turns)
{
    int kind = ((const tti_recurrent_attr *)p->attr)->kind;
    tti_recurrent_dims d = tti_recurrent_dims_of(kind, y);
    if (room_of(&d) > ROOM)
        return TT_FAIL(p->ctx, TT_EUNSUPPORTED,
                       "recurrent: %lld units; on GPUs at most %lld fit into shared memory. Use "
                       "fewer units or the CPU",
                       (long long)d.h, (long long)(ROOM / 4 / (2 + d.gates)));
    p->n_phases = 1;
    p->units[0] = d.b;
    p->scratch_bytes = turns ? (size_t)(d.gates * d.h * d.h) * sizeof(float) : 0;
    return TT_OK;
}
static tt_status prepare(tt_prep *p)
{
    return prepare_with(p, &p->out_args[0].shape, false);
}
static tt_status prepare_grad(tt_prep *p)
{
    return prepare_with(p, &p->in[1].shape, true);
}

static walk walk_of(const tti_recurrent_attr *a, const tti_recurrent_dims *d)
{
    walk w = {d->t, d->h, d->gates * d->h, d->kept, a->kind, a->reverse};
    return w;
}

static tt_status recurrent(const tt_launch *l)
{
    const tti_recurrent_attr *a = (const tti_recurrent_attr *)l->attr;
    tti_recurrent_dims d = tti_recurrent_dims_of(a->kind, &l->out[0].shape);
    if (d.b == 0)
        return TT_OK;
    TTI_FLOATS(l->in[0].dtype, T, {
        TTI_LAUNCH(l, (unsigned)d.b, THREADS, room_of(&d), (forward<T>), walk_of(a, &d),
                   (const T *)l->in[0].data, (const T *)l->in[1].data,
                   l->n_in > 2 ? (const T *)l->in[2].data : (const T *)NULL, (T *)l->out[0].data,
                   l->n_out > 1 ? (T *)l->out[1].data : (T *)NULL);
    })
    return tti_cuda_launched(l);
}

static tt_status recurrent_grad(const tt_launch *l)
{
    const tti_recurrent_attr *a = (const tti_recurrent_attr *)l->attr;
    tti_recurrent_dims d = tti_recurrent_dims_of(a->kind, &l->in[1].shape);
    if (d.b == 0)
        return TT_OK;
    int64_t wide = d.gates * d.h;
    TTI_FLOATS(l->in[0].dtype, T, {
        TTI_LAUNCH(l, tti_blocks(l, d.h * wide, THREADS), THREADS, 0, (turn<T>), d.h, wide,
                   (const T *)l->in[2].data, (float *)l->scratch);
        TTI_LAUNCH(l, (unsigned)d.b, THREADS, room_of(&d), (backward<T>), walk_of(a, &d),
                   (const T *)l->in[0].data, (const T *)l->in[1].data, (const float *)l->scratch,
                   l->n_in > 3 ? (const T *)l->in[3].data : (const T *)NULL, (T *)l->out[0].data,
                   (T *)l->out[l->n_out - 1].data);
    })
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_recurrent[] = {
    TTI_ROW("recurrent", prepare, recurrent),
    TTI_ROW("recurrent_grad", prepare_grad, recurrent_grad),
    TTI_ROWS_END,
};
