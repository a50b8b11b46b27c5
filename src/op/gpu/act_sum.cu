/*
 * act_sum.cu - gradients of activations, and sums and products of two tensors, with the sum over
 * rows of what they give, which is a bias's gradient: chains of plan/program.h. The values are
 * those of pointwise.cu, and are added in the order of reduce.cu, which is columns.cuh's.
 */
#include "cuda/chain.cuh"
#include "op/gpu/columns.cuh"
#include "op/gpu/pointwise.cuh"

// Rows of an operation's results, which are written on the way. OP < 0: it is known at run time.
template <class T, int TYPE, int OP> struct made_rows {
    static const int V = tti_pack<T>::n, in_flight = 4;
    static const bool last_first = true; // a product has made them last, they are in the cache
    struct raw {
        tti_pack<T> x, y;
    };
    const T *x, *y;
    T *to;
    int op;
    float a, b;

    __device__ raw load(int64_t at) const
    {
        return {*(const tti_pack<T> *)(x + at), *(const tti_pack<T> *)(y + at)};
    }
    __device__ void get(const raw &r, int64_t at, float (&v)[tti_pack<T>::n]) const
    {
        uint32_t xs[V], ys[V];
        tti_pw_raw<V> m;
        memcpy(m.w, &r.x, 16);
        tti_pw_unpack<uint32_t, V>(TYPE, m, xs);
        memcpy(m.w, &r.y, 16);
        tti_pw_unpack<uint32_t, V>(TYPE, m, ys);
        tti_pw_float_2<uint32_t, V>(OP < 0 ? op : OP, xs, ys, a, b);
        tti_pw_pack<uint32_t, V>(TYPE, xs, m);
        tti_pack<T> done;
        memcpy(&done, m.w, 16);
        *(tti_pack<T> *)(to + at) = done;
        tti_pw_unpack<uint32_t, V>(TYPE, m, xs);
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = tti_float(xs[k]);
    }
};

template <class T, int TYPE, int OP>
__global__ static void __launch_bounds__(WIDE *HIGH, 3)
    make_and_sum(const made_rows<T, TYPE, OP> src, const tti_reduction r, const tti_lane_group ln,
                 int64_t most, unsigned tiles, const tti_sums out)
{
    fold_chunk<tti_pack<T>::n>(src, r, ln, most, tiles, TTI_FOLD_SUM, out);
}

// ---- calls -----------------------------------------------------------------------------------

static tt_status prepare(tt_prep *p)
{
    const tti_chain *c = tti_chain_of(p->tune);
    const tt_arg *y = &p->out_args[0];
    reduce_plan plan;
    const tt_lanes *ln = plan_of(&plan, c->members[1].node->attr, y, p->lanes, true);
    int64_t V = y->dtype == TT_F32 ? 4 : 8;
    p->units[0] = y->count;
    p->scratch_bytes =
        is_direct(&plan, ln) ? 0 : tti_chunk_scratch(plan.chunking.most, ln, plan.r.count);
    unsigned tiles;
    dim3 grid;
    bool fits = tti_chain_link(c, 1) == 0 && (c->kept & 1u) != 0 && p->n_in == 2 &&
                tti_chain_same(&p->in[0], y) && tti_chain_same(&p->in[1], y) &&
                (y->dtype == TT_F32 || y->dtype == TT_BF16 || y->dtype == TT_F16);
    // Sums of columns that are whole packs.
    if (!fits || plan.r.has_tail || plan.r.cols % V != 0 || plan.r.outer != 1 ||
        !columns_grid(&plan, (int)V, tti_lane_group_at(ln, 0), &tiles, &grid))
        p->n_phases = 0;
    return TT_OK;
}

template <class T, int TYPE, int OP>
static void launch(const tt_launch *l, const tti_pw_program *p, const reduce_plan *plan,
                   const tti_lane_group &g, const tti_sums &to)
{
    made_rows<T, TYPE, OP> src = {(const T *)p->in[p->steps[0].src[0]].data,
                                  (const T *)p->in[p->steps[0].src[1]].data,
                                  (T *)l->out[0].data,
                                  p->steps[0].op,
                                  p->steps[0].a,
                                  p->steps[0].b};
    unsigned tiles;
    dim3 grid;
    (void)columns_grid(plan, tti_pack<T>::n, g, &tiles, &grid);
    TTI_LAUNCH(l, grid, WIDE * HIGH, 0, (make_and_sum<T, TYPE, OP>), src, plan->r, g,
               plan->chunking.most, tiles, to);
}

// What training runs most has kernels of its own.
static void launch_group(const tt_launch *l, const tti_pw_program *p, const reduce_plan *plan,
                         const tti_lane_group &g, const tti_sums &to)
{
    int op = p->steps[0].op, type = p->steps[0].type;
    if (type == TT_BF16 && op == TTI_PW_F_gelu_grad)
        launch<tti_bf16, TT_BF16, TTI_PW_F_gelu_grad>(l, p, plan, g, to);
    else if (type == TT_BF16 && op == TTI_PW_F_relu_grad)
        launch<tti_bf16, TT_BF16, TTI_PW_F_relu_grad>(l, p, plan, g, to);
    else if (type == TT_BF16)
        launch<tti_bf16, TT_BF16, -1>(l, p, plan, g, to);
    else if (type == TT_F16)
        launch<tti_f16, TT_F16, -1>(l, p, plan, g, to);
    else
        launch<float, TT_F32, -1>(l, p, plan, g, to);
}

// The operation as a program of one step, which knows its attributes.
static tt_status program_of(const tt_launch *l, tti_pw_program *p)
{
    tti_chain_part op;
    uint8_t src[2];
    memset(p, 0, sizeof(*p));
    tti_chain_take(l, 0, &op);
    for (int k = 0; k < 2; k++)
        TT_TRY(tti_pw_input_add(&op.l, p, &op.in[k], &src[k]));
    return tti_pw_step_add(&op.l, p, op.l.node, op.in[0].dtype, op.out[0].dtype, 2, src);
}

static tt_status act_sum(const tt_launch *l)
{
    tti_chain_part sum;
    tti_pw_program p;
    reduce_plan plan;
    tti_chain_take(l, 1, &sum);
    const tt_lanes *ln = plan_of(&plan, sum.l.attr, &l->out[0], l->lanes, true);
    int64_t count = plan.r.count;
    tti_sums out = {{sum.out[0].data, sum.out[0].data}, sum.out[0].dtype, count};
    tti_sums to = {{l->scratch, l->scratch}, TT_F32, count};
    if (is_direct(&plan, ln))
        to = out;
    TT_TRY(program_of(l, &p));
    for (int first = 0; count > 0 && first < ln->n; first += TTI_LANE_GROUP)
        launch_group(l, &p, &plan, tti_lane_group_at(ln, first), to);
    if (!is_direct(&plan, ln))
        tti_chunk_finish(l, ln, plan.chunking, count, TTI_FOLD_SUM, out);
    return tti_cuda_launched(l);
}

extern "C" const tti_cuda_row tti_cuda_act_sum[] = {
    TTI_ROW_CHAIN("gelu_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("relu_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("gelu_erf_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("silu_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("sigmoid_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("tanh_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("softplus_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("elu_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("leaky_relu_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("clip_grad", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("add", "sum", prepare, act_sum),
    TTI_ROW_CHAIN("mul", "sum", prepare, act_sum),
    TTI_ROWS_END,
};
