/*
 * conv_dnn.cu - convolutions by cuDNN, and those that are a plain product by cuBLASLt.
 *
 * Bits. cuDNN's heuristics change the engine with the batch, so the engine and its knobs are
 * chosen once, for the images of the whole batch, and every other number of images gets a plan of
 * exactly that one. Engines that say they are not deterministic, or that round what they were not
 * asked to, are never taken. cuDNN does not promise that an image's y and dx do not depend on the
 * images beside it: on an H200 they were equal for the shapes of ResNet-50 wherever two batch
 * sizes had one engine, and tests of ops on a GPU compare them again. An engine that refuses a
 * number of images is given up for the op as a whole, and so are libraries where images would not
 * all begin at multiples of 16 bytes: the kernels are then those of conv.cu.
 *
 * Layout. Engines that use the matrix units want filters as [c_out, kh, kw, c_in]; ours are [kh,
 * kw, c_in, c_out] and are turned on the way, which is little beside the images. A 1x1 convolution
 * of stride 1 is a product of matrices as it lies, and its dw one product for each lane. Any other
 * dw is conv_dw.cu's: cuDNN would round the sums of lanes, or take several times as long.
 */
#include "cuda/blas.h"
#include "cuda/dnn.h"
#include "op/gpu/act.cuh"
#include "op/gpu/conv_dnn.h"

#define SIZES     8                 // numbers of images that the lanes of a node may have
#define RUN       64                // lanes that one call does at most
#define WORKSPACE ((size_t)1 << 28) // bytes that an engine may ask for

// All that decides how a convolution runs; what decides its engine comes first.
struct conv_key {
    char tag[8];
    tti_conv_dims d;      // batch 0
    int64_t below, right; // padding
    int64_t full;         // images of the whole batch
    int32_t kind, dtype, has_bias;
    // of a node:
    int32_t n; // sizes
    int64_t images[SIZES];
    int64_t run[SIZES]; // dw: so many lanes of the size lie side by side
};
#define ENGINE_KEY offsetof(conv_key, n)

struct one_size {
    int64_t images;
    int64_t run;
    const tti_blas_plan *product, *products; // products: of a run of lanes
#if TTI_HAS_CUDNN
    tti_dnn_graph *graph;
    int x, w, y, bias; // its tensors
#endif
};

struct tti_conv_dnn {
    conv_key key;
    bool usable, is_product;
    size_t w_bytes, workspace;
    one_size size[SIZES];
};

static bool is_product(const conv_key *k)
{
    const tti_conv_dims *d = &k->d;
    int64_t unit = k->dtype == TT_F32 ? 4 : 8;
    return d->kh == 1 && d->kw == 1 && d->sh == 1 && d->sw == 1 && d->oh == d->h && d->ow == d->w &&
           d->c_in % unit == 0 && d->c_out % unit == 0;
}

// ---- products --------------------------------------------------------------------------------

static const tti_blas_plan *find_product(tti_cuda_device *dev, const conv_key *k, int64_t images,
                                         int64_t lanes)
{
    const tti_conv_dims *d = &k->d;
    const int64_t pixels = d->h * d->w, ci = d->c_in, co = d->c_out;
    tti_blas_product p;
    memset(&p, 0, sizeof(p));
    p.in = p.out = k->dtype;
    p.batch = 1;
    if (k->kind == TTI_CONV_DW) { // x' dy
        p.open = TTI_BLAS_LANES;
        p.m = ci;
        p.n = co;
        p.k = images * pixels;
        p.trans_a = 1;
        p.lda = ci;
        p.ldb = p.ldc = co;
        p.batch = lanes;
        p.step_a = p.k * ci;
        p.step_b = p.k * co;
        p.step_c = ci * co;
        p.out = TT_F32;
    } else { // x w, dy w'
        bool dx = k->kind == TTI_CONV_DX;
        p.open = TTI_BLAS_ROWS;
        p.m = images * pixels;
        p.n = p.ldc = dx ? ci : co;
        p.k = p.lda = dx ? co : ci;
        p.ldb = co;
        p.trans_b = dx;
        p.end = k->has_bias ? TTI_BLAS_BIAS : 0;
    }
    return tti_blas_find(dev, &p);
}

static bool make_products(tti_cuda_device *dev, tti_conv_dnn *c)
{
    for (int i = 0; i < c->key.n; i++) {
        one_size *s = &c->size[i];
        s->product = find_product(dev, &c->key, s->images, 1);
        if (s->run > 1)
            s->products = find_product(dev, &c->key, s->images, s->run);
        if (s->product == NULL)
            return false;
        size_t a = tti_blas_workspace(s->product);
        size_t b = s->products == NULL ? 0 : tti_blas_workspace(s->products);
        c->workspace = c->workspace > a ? c->workspace : a;
        c->workspace = c->workspace > b ? c->workspace : b;
    }
    c->is_product = true;
    return true;
}

// ---- engines ---------------------------------------------------------------------------------

#if TTI_HAS_CUDNN

// The engine of an op, whatever the rows of a call.
struct engine {
    bool usable;
    tti_dnn_choice choice;
};

static int image_tensor(tti_dnn_graph *g, cudnnDataType_t type, int64_t n, int64_t c, int64_t h,
                        int64_t w, bool in_memory)
{
    const int64_t dim[] = {n, c, h, w}, stride[] = {h * w * c, 1, w * c, c};
    return in_memory ? tti_dnn_tensor(g, type, 4, dim, stride)
                     : tti_dnn_virtual(g, type, 4, dim, stride);
}

static bool make_graph(tti_cuda_device *dev, const conv_key *k, int64_t images,
                       const tti_dnn_choice *choice, one_size *s)
{
    static const cudnnBackendDescriptorType_t kinds[] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR};
    const tti_conv_dims *d = &k->d;
    const cudnnDataType_t type = tti_dnn_type((tt_dtype)k->dtype);
    tti_dnn_graph *g = tti_dnn_graph_new(dev);
    s->images = images;
    s->graph = g;
    if (g == NULL)
        return false;
    tti_dnn_conv_opts o = {};
    o.spatial = 2;
    o.before[0] = d->pt;
    o.before[1] = d->pl;
    o.after[0] = k->below;
    o.after[1] = k->right;
    o.stride[0] = d->sh;
    o.stride[1] = d->sw;
    o.dilation[0] = o.dilation[1] = 1;
    o.compute = CUDNN_DATA_FLOAT;
    s->x = image_tensor(g, type, images, d->c_in, d->h, d->w, true);
    s->w = image_tensor(g, type, d->c_out, d->c_in, d->kh, d->kw, true);
    s->y = image_tensor(g, type, images, d->c_out, d->oh, d->ow, true);
    int to = s->y;
    if (k->has_bias)
        to = image_tensor(g, CUDNN_DATA_FLOAT, images, d->c_out, d->oh, d->ow, false);
    tti_dnn_conv(g, kinds[k->kind], &o, s->x, s->w, to);
    if (k->has_bias) {
        s->bias = image_tensor(g, type, 1, d->c_out, 1, 1, true);
        tti_dnn_pointwise(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, to, s->bias, 0, s->y, -1);
    }
    tti_dnn_opts opts = {};
    opts.refuse = TTI_DNN_LOOSE;
    if (k->dtype == TT_F32)
        opts.refuse |= TTI_DNN_NOTE(TENSOR_CORE); // would round to TF32
    opts.most_workspace = WORKSPACE;
    opts.choice = choice;
    return tti_dnn_build(g, &opts);
}

// Chooses the engine for the full number of images; first is the plan.
static bool choose(tti_cuda_device *dev, const conv_key *k, engine *e, one_size *first)
{
    if (make_graph(dev, k, k->full, NULL, first)) {
        e->usable = true;
        e->choice = *tti_dnn_chosen(first->graph);
        return true;
    }
    tti_dnn_graph_free(first->graph);
    first->graph = NULL;
    return false;
}

static bool make_plans(tti_cuda_device *dev, tti_conv_dnn *c)
{
    const conv_key *k = &c->key;
    bool is_new;
    one_size first = {};
    engine *e = (engine *)tti_recipe_get(dev, k, ENGINE_KEY, sizeof(engine), NULL, &is_new);
    if (e == NULL || (is_new && !choose(dev, k, e, &first)) || !e->usable)
        return false;
    for (int i = 0; i < k->n && e->usable; i++) {
        one_size *s = &c->size[i];
        if (first.graph != NULL && s->images == k->full) {
            *s = first;
            first.graph = NULL;
        } else {
            e->usable = make_graph(dev, k, s->images, &e->choice, s);
        }
        size_t bytes = e->usable ? tti_dnn_workspace(s->graph) : 0;
        c->workspace = c->workspace > bytes ? c->workspace : bytes;
    }
    tti_dnn_graph_free(first.graph);
    if (!e->usable)
        tti_cuda_host_api->log(dev->ctx, TT_WARN,
                               "cuDNN: an engine of a convolution supports the whole batch but not "
                               "a part of it; Tutti's own kernel is used, with different bits than "
                               "with the whole batch on one device");
    return e->usable;
}

static void drop(void *recipe)
{
    tti_conv_dnn *c = (tti_conv_dnn *)recipe;
    for (int i = 0; i < SIZES; i++)
        tti_dnn_graph_free(c->size[i].graph);
}

#else

static bool make_plans(tti_cuda_device *, tti_conv_dnn *)
{
    return false;
}
static void drop(void *)
{
}

#endif

// ---- plans of a node -------------------------------------------------------------------------

// Whether every image of x and y begins where the first one does, to 16 bytes.
static bool is_aligned(const tti_conv_dims *d, int dtype)
{
    int64_t item = dtype == TT_F32 ? 4 : 2;
    return d->h * d->w * d->c_in * item % 16 == 0 && d->oh * d->ow * d->c_out * item % 16 == 0;
}

// The numbers of images that calls of a node have, each once; false: too many.
static bool get_sizes(const tti_conv_dims *d, const tt_lanes *ln, conv_key *k)
{
    if (ln == NULL) {
        k->n = 1;
        k->images[0] = d->batch;
        return d->batch > 0;
    }
    for (int i = 0, run; i < ln->n; i += run) {
        int64_t n = ln->bound[i + 1] - ln->bound[i];
        int j = 0;
        for (run = 1; i + run < ln->n && ln->bound[i + run + 1] - ln->bound[i + run] == n;)
            run++;
        while (j < k->n && k->images[j] != n)
            j++;
        if (n == 0)
            continue;
        if (j == SIZES)
            return false;
        k->n = j < k->n ? k->n : j + 1;
        k->images[j] = n;
        k->run[j] = run > RUN ? RUN : run > k->run[j] ? run : k->run[j];
    }
    return k->n > 0;
}

static void fill_key(const tt_prep *p, const tti_conv_dims *d, int kind, conv_key *k)
{
    const tti_conv_attr *a = (const tti_conv_attr *)p->attr;
    const tt_arg *x = &p->in[0];
    memset(k, 0, sizeof(*k));
    memcpy(k->tag, "conv", 5);
    k->d = *d;
    k->d.batch = 0;
    k->below = a->pad.v[1];
    k->right = a->pad.v[3];
    k->kind = kind;
    k->dtype = x->dtype;
    k->has_bias = kind == TTI_CONV_Y && p->n_in > 2;
    k->full = x->open >= 0 ? p->lanes->global_rows * x->per : d->batch;
}

tt_status tti_conv_dnn_prepare(tt_prep *p, const tti_conv_dims *d, int kind, const tt_lanes *images,
                               tti_conv_dnn **out, size_t *workspace)
{
    tti_cuda_device *dev = (tti_cuda_device *)p->device;
    conv_key k;
    bool is_new;
    *out = NULL;
    *workspace = 0;
    fill_key(p, d, kind, &k);
    if (!is_aligned(d, k.dtype) || !get_sizes(d, images, &k))
        return TT_OK;
    tti_conv_dnn *c = (tti_conv_dnn *)tti_recipe_get(dev, &k, sizeof(k), sizeof(*c), drop, &is_new);
    if (c == NULL)
        return TT_ENOMEM;
    if (is_new) {
        c->key = k;
        for (int i = 0; i < k.n; i++) {
            c->size[i].images = k.images[i];
            c->size[i].run = k.run[i];
        }
        c->usable =
            is_product(&k) ? make_products(dev, c) : kind != TTI_CONV_DW && make_plans(dev, c);
        c->workspace = (c->workspace + 255) / 256 * 256;
        if (!c->is_product)
            c->w_bytes = (size_t)(d->kh * d->kw * d->c_in * d->c_out) * (k.dtype == TT_F32 ? 4 : 2);
        c->w_bytes = (c->w_bytes + 255) / 256 * 256;
    }
    if (!c->usable)
        return TT_OK;
    *out = c;
    *workspace = c->w_bytes + c->workspace; // the turned filter first
    return TT_OK;
}

// ---- runs ------------------------------------------------------------------------------------

#define TURN 32

// out [n, m] of in [m, n].
template <class T> static __global__ void turn(const T *in, T *out, int64_t m, int64_t n)
{
    __shared__ T tile[TURN][TURN + 1];
    const int64_t m0 = (int64_t)blockIdx.x * TURN, n0 = (int64_t)blockIdx.y * TURN;
    const int x = (int)threadIdx.x, y = (int)threadIdx.y;
    for (int i = y; i < TURN; i += 8)
        if (m0 + i < m && n0 + x < n)
            tile[i][x] = in[(m0 + i) * n + n0 + x];
    __syncthreads();
    for (int i = y; i < TURN; i += 8)
        if (n0 + i < n && m0 + x < m)
            out[(n0 + i) * m + m0 + x] = tile[x][i];
}

template <class T> static __global__ void activate(const T *z, T *y, int64_t n, int act)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        tti_put(y[i], tti_act(act, tti_get(z[i])));
}

static tt_status run_size(const tti_conv_dnn *c, const one_size *s, const tt_launch *l, void *x,
                          void *w, void *y, const void *bias, void *workspace)
{
    if (c->is_product) {
        const bool dx = c->key.kind == TTI_CONV_DX;
        return tti_blas_run(s->product, l, dx ? y : x, w, dx ? x : y, bias, NULL, workspace);
    }
#if TTI_HAS_CUDNN
    const int tensor[] = {s->x, s->w, s->y, s->bias};
    void *data[] = {x, w, y, (void *)bias};
    return tti_dnn_run(s->graph, l, bias != NULL ? 4 : 3, tensor, data, workspace);
#else
    return TT_OK;
#endif
}

tt_status tti_conv_dnn_run(tti_conv_dnn *c, const tt_launch *l, void *x, void *w, void *y,
                           void *workspace)
{
    const tti_conv_dims *d = &c->key.d;
    const bool is_y = c->key.kind == TTI_CONV_Y;
    const int act = is_y ? ((const tti_conv_attr *)l->attr)->act : (int)TT_LINEAR;
    const tt_arg *out = &l->out[0];
    void *z = is_y && l->n_out > 1 ? l->out[1].data : y;
    if (!c->is_product) {
        const int64_t m = d->kh * d->kw * d->c_in, n = d->c_out;
        dim3 grid((unsigned)((m + TURN - 1) / TURN), (unsigned)((n + TURN - 1) / TURN));
        TTI_FLOATS(l->in[1].dtype, T, {
            TTI_LAUNCH(l, grid, dim3(TURN, 8), 0, (turn<T>), (const T *)w, (T *)workspace, m, n);
        })
        w = workspace;
    }
    const void *bias = c->key.has_bias ? l->in[2].data : NULL;
    TT_TRY(run_size(c, &c->size[0], l, x, w, z, bias, (char *)workspace + c->w_bytes));
    if (act != TT_LINEAR || z != y)
        TTI_FLOATS(out->dtype, T, {
            TTI_LAUNCH(l, tti_blocks(l, out->count, 256), 256, 0, (activate<T>), (const T *)z,
                       (T *)y, out->count, act);
        })
    return tti_cuda_launched(l);
}

tt_status tti_conv_dnn_dw(tti_conv_dnn *c, const tt_launch *l, const tti_conv_dims *d, int n,
                          const int64_t *bound, float *part)
{
    const int64_t count = d->kh * d->kw * d->c_in * d->c_out;
    const size_t item = l->in[0].dtype == TT_F32 ? 4 : 2;
    char *x = (char *)l->in[0].data, *dy = (char *)l->in[1].data;
    const size_t x_step = item * (size_t)(d->h * d->w * d->c_in);
    const size_t y_step = item * (size_t)(d->oh * d->ow * d->c_out);
    void *workspace = l->scratch + c->w_bytes;
    for (int i = 0, done; i < n; i += done) {
        int64_t images = bound[i + 1] - bound[i];
        int j = 0, run = 1;
        while (j < c->key.n && c->size[j].images != images)
            j++;
        while (i + run < n && bound[i + run + 1] - bound[i + run] == images)
            run++;
        done = 1;
        if (j == c->key.n) // no images: nothing reads its sum
            continue;
        const one_size *s = &c->size[j];
        bool at_once = s->products != NULL && run >= s->run;
        done = at_once ? (int)s->run : 1;
        TT_TRY(tti_blas_run(at_once ? s->products : s->product, l, x + x_step * (size_t)bound[i],
                            dy + y_step * (size_t)bound[i], part + i * count, NULL, NULL,
                            workspace));
    }
    return tti_cuda_launched(l);
}
