/*
 * update.cu - updates of variables on a GPU; see update.c. The formulas are those of update_cpu.c.
 *
 * Bound by memory: one pass, four elements a thread at a time, the next four being read meanwhile.
 * The step's scalars are computed in f64 by two threads of each block while the others wait for
 * their first elements; so there are no more blocks than fit on the card.
 */
#include "op/gpu/batched_calls.cuh"
#include "op/gpu/update.cuh"

#define THREADS 256
#define PER_SM  4 // blocks

// ---- kernels ---------------------------------------------------------------------------------

struct update_args {
    float *w, *s, *b;
    const float *g, *scale;
    const tt_step *step;
    int64_t n;
    int64_t packs; // of four, where all addresses are aligned; else 0
};

typedef tti_pack<float> pack;

// Elements that are no part of a pack, all or at most three, from `at` on by `by`.
template <class R>
__device__ static inline void update_rest(const update_args &p, const scalars &c, int64_t at,
                                          int64_t by)
{
    for (int64_t i = p.packs * 4 + at; i < p.n; i += by) {
        float s = R::n_state > 0 ? p.s[i] : 0, b = R::n_state > 1 ? p.b[i] : 0;
        p.w[i] = R::step(c, p.w[i], p.g[i], s, b);
        if (R::n_state > 0)
            p.s[i] = s;
        if (R::n_state > 1)
            p.b[i] = b;
    }
}

// Four elements of the variable, the gradient and the state.
template <class R> struct four {
    pack w, g, s, b;

    __device__ void load(const update_args &p, int64_t i)
    {
        w = ((const pack *)p.w)[i];
        g = ((const pack *)p.g)[i];
        if (R::n_state > 0)
            s = ((const pack *)p.s)[i];
        if (R::n_state > 1)
            b = ((const pack *)p.b)[i];
    }
    __device__ void step(const update_args &p, const scalars &c, int64_t i)
    {
        for (int k = 0; k < 4; k++)
            w.v[k] = R::step(c, w.v[k], g.v[k], s.v[k], b.v[k]);
        ((pack *)p.w)[i] = w;
        if (R::n_state > 0)
            ((pack *)p.s)[i] = s;
        if (R::n_state > 1)
            ((pack *)p.b)[i] = b;
    }
};

// The part of block number `block` of `blocks`.
template <class R>
__device__ static inline void update_part(const update_args &p, const tti_update_attr &a,
                                          unsigned block, unsigned blocks)
{
    __shared__ scalars shared;
    int64_t at = (int64_t)block * THREADS + threadIdx.x, by = (int64_t)blocks * THREADS;
    four<R> now = {}, next = {};
    if (at < p.packs) // on their way while the scalars are made
        now.load(p, at);
    if (threadIdx.x == 0)
        scalars_of(&shared, a, p.step, p.scale, R::is_adam != 0);
    if (threadIdx.x == 32)
        shared.fix2 = R::is_adam != 0 ? (float)(1 / (1 - power(a.beta2, count_of(p.step)))) : 1.0f;
    __syncthreads();
    const scalars c = shared;
    if (!c.go)
        return;
    for (int64_t i = at; i < p.packs; i += by) {
        if (i + by < p.packs)
            next.load(p, i + by);
        now.step(p, c, i);
        now = next;
    }
    update_rest<R>(p, c, at, by);
}

template <class R>
__global__ static void __launch_bounds__(THREADS, PER_SM)
    update_each(const update_args p, const tti_update_attr a)
{
    update_part<R>(p, a, blockIdx.x, gridDim.x);
}

// Several variables in one launch: its arguments have at most 4 KiB.
#define LIST_VARIABLES  64
#define LIST_ATTRIBUTES 4
struct update_item {
    float *w, *s, *b;
    const float *g;
    int64_t n;
    unsigned first; // block
    uint8_t attr, in_packs;
};
struct update_list {
    int n, n_attr;
    const float *scale;
    const tt_step *step;
    tti_update_attr attr[LIST_ATTRIBUTES];
    update_item item[LIST_VARIABLES];
};

template <class R>
__global__ static void __launch_bounds__(THREADS, PER_SM) update_all(const update_list l)
{
    int low = tti_item_of_block(l.item, l.n);
    const update_item &it = l.item[low];
    update_args p = {it.w, it.s, it.b, it.g, l.scale, l.step, it.n, it.in_packs ? it.n / 4 : 0};
    unsigned end = low + 1 < l.n ? l.item[low + 1].first : gridDim.x;
    update_part<R>(p, l.attr[it.attr], blockIdx.x - it.first, end - it.first);
}

// a = decay a + (1 - decay) value; at the first step that is applied a = value.
__global__ static void __launch_bounds__(THREADS)
    ema_each(const update_args p, float decay, float rest)
{
    float go = scale_of(p.scale);
    if (go - go != 0)
        return;
    bool first = p.step->step == p.step->unapplied;
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, by = (int64_t)gridDim.x * THREADS;
    for (int64_t i = at; i < p.packs; i += by) {
        pack a = ((const pack *)p.w)[i], x = ((const pack *)p.g)[i];
        for (int k = 0; k < 4; k++)
            a.v[k] = first ? x.v[k] : fmaf(decay, a.v[k], rest * x.v[k]);
        ((pack *)p.w)[i] = a;
    }
    for (int64_t i = p.packs * 4 + at; i < p.n; i += by)
        p.w[i] = first ? p.g[i] : fmaf(decay, p.w[i], rest * p.g[i]);
}

// ---- calls -----------------------------------------------------------------------------------

static update_args args_of(const tt_launch *l, int n_state, bool has_scale)
{
    update_args p = {};
    p.w = (float *)l->out[0].data; // input 0's own memory
    p.g = (const float *)l->in[1].data;
    p.s = n_state > 0 ? (float *)l->in[2].data : NULL;
    p.b = n_state > 1 ? (float *)l->in[3].data : NULL;
    p.scale = has_scale ? (const float *)l->in[l->n_in - 1].data : NULL;
    p.step = l->step;
    p.n = l->out[0].count;
    if (tti_is_aligned(p.w) && tti_is_aligned(p.g) && tti_is_aligned(p.s) && tti_is_aligned(p.b))
        p.packs = p.n / 4;
    return p;
}

// What the threads of a grid take one by one: packs, or elements.
static int64_t units_of(const update_args *p)
{
    return p->packs > 0 ? p->packs : p->n;
}
// How many of n units each thread of a grid that fits on the card at once has at most.
static int64_t units_each(const tt_launch *l, int64_t n)
{
    int64_t most = (int64_t)tti_device_of(l)->sms * PER_SM * THREADS;
    return (n + most - 1) / most;
}
static unsigned update_blocks(int64_t units, int64_t each)
{
    return (unsigned)((units + each * THREADS - 1) / (each * THREADS));
}

template <class R> static tt_status update(const tt_launch *l)
{
    const tti_update_attr *a = (const tti_update_attr *)l->attr;
    update_args p = args_of(l, R::n_state, a->has_scale != 0);
    if (p.n == 0)
        return TT_OK;
    int64_t units = units_of(&p);
    TTI_LAUNCH(l, update_blocks(units, units_each(l, units)), THREADS, 0, (update_each<R>), p, *a);
    return tti_cuda_launched(l);
}

// The list's place for attributes; -1: there is none left.
static int attribute_of(update_list *list, const tti_update_attr *a)
{
    for (int i = 0; i < list->n_attr; i++)
        if (memcmp(&list->attr[i], a, sizeof(*a)) == 0)
            return i;
    if (list->n_attr == LIST_ATTRIBUTES)
        return -1;
    list->attr[list->n_attr] = *a;
    return list->n_attr++;
}

template <class R> static void launch_list(const tt_launch *l, update_list *list)
{
    int64_t units = 0;
    unsigned blocks = 0;
    for (int i = 0; i < list->n; i++)
        units += list->item[i].in_packs ? list->item[i].n / 4 : list->item[i].n;
    int64_t each = units_each(l, units);
    for (int i = 0; i < list->n; i++) {
        update_item *it = &list->item[i];
        it->first = blocks;
        blocks += update_blocks(it->in_packs ? it->n / 4 : it->n, each);
    }
    if (list->n > 0)
        TTI_LAUNCH(l, blocks, THREADS, 0, (update_all<R>), *list);
    memset(list, 0, sizeof(*list));
}

// Updates that follow each other and share no memory: as few launches as lists have room for.
template <class R> static tt_status update_many(const tt_launch *l)
{
    const tti_batched_calls *calls = (const tti_batched_calls *)l->tune;
    update_list list;
    memset(&list, 0, sizeof(list));
    for (int i = 0; i < calls->n; i++) {
        const tt_launch *one = calls->list[i];
        const tti_update_attr *a = (const tti_update_attr *)one->attr;
        update_args p = args_of(one, R::n_state, a->has_scale != 0);
        int attr = attribute_of(&list, a);
        bool other = list.n > 0 && (list.scale != p.scale || list.step != p.step);
        if (attr < 0 || other || list.n == LIST_VARIABLES) {
            launch_list<R>(l, &list);
            attr = attribute_of(&list, a);
        }
        if (p.n == 0)
            continue;
        list.scale = p.scale;
        list.step = p.step;
        list.item[list.n++] = {p.w, p.s, p.b, p.g, p.n, 0, (uint8_t)attr, p.packs > 0};
    }
    launch_list<R>(l, &list);
    return tti_cuda_launched(l);
}

// Inputs but for the scale.
static int n_inputs(const tt_launch *l)
{
    return l->n_in - (((const tti_update_attr *)l->attr)->has_scale != 0);
}

static tt_status update_sgd(const tt_launch *l)
{
    return n_inputs(l) == 2 ? update<sgd>(l) : update<sgd_momentum>(l);
}

static tt_status update_sgd_many(const tt_launch *l)
{
    return n_inputs(l) == 2 ? update_many<sgd>(l) : update_many<sgd_momentum>(l);
}

static tt_status update_rmsprop(const tt_launch *l)
{
    return n_inputs(l) == 3 ? update<rmsprop>(l) : update<rmsprop_momentum>(l);
}

static tt_status update_ema(const tt_launch *l)
{
    const tti_ema_attr *a = (const tti_ema_attr *)l->attr;
    update_args p = args_of(l, 0, a->has_scale != 0);
    if (p.n == 0)
        return TT_OK;
    int64_t units = units_of(&p);
    TTI_LAUNCH(l, update_blocks(units, units_each(l, units)), THREADS, 0, ema_each, p,
               (float)a->decay, (float)(1 - a->decay));
    return tti_cuda_launched(l);
}

static size_t bytes_of(tt_dtype t)
{
    return t == TT_F64 || t == TT_I64    ? 8
           : t == TT_F32 || t == TT_I32  ? 4
           : t == TT_BF16 || t == TT_F16 ? 2
                                         : 1;
}

static tt_status assign(const tt_launch *l)
{
    const tt_arg *y = &l->out[0];
    size_t bytes = (size_t)y->count * bytes_of(y->dtype);
    if (bytes > 0 && y->data != l->in[1].data)
        TTI_CUDA(tti_device_of(l), l->node,
                 cudaMemcpyAsync(y->data, l->in[1].data, bytes, cudaMemcpyDeviceToDevice,
                                 (cudaStream_t)l->stream));
    return TT_OK;
}

// Nothing is decided before the call.
static tt_status prepare(tt_prep *p)
{
    p->n_phases = 1;
    p->units[0] = p->in[0].count;
    return TT_OK;
}

extern "C" const tti_cuda_row tti_cuda_update[] = {
    TTI_ROW_TYPES("assign", prepare, assign, TT_TYPES_ALL),
    TTI_ROW("update_sgd", prepare, update_sgd),
    TTI_ROW("update_adam", prepare, update<adam>),
    TTI_ROW("update_adamw", prepare, update<adamw>),
    TTI_ROW("update_rmsprop", prepare, update_rmsprop),
    TTI_ROW("update_adagrad", prepare, update<adagrad>),
    TTI_ROW("update_lion", prepare, update<lion>),
    TTI_ROW("update_ema", prepare, update_ema),
    TTI_ROW_BATCHED("update_sgd", update_sgd_many),
    TTI_ROW_BATCHED("update_adam", update_many<adam>),
    TTI_ROW_BATCHED("update_adamw", update_many<adamw>),
    TTI_ROWS_END,
};
