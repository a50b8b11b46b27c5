/*
 * reduce.c - combining values element by element: which addends in which order, and the arithmetic.
 *
 * The addends of a sum over lanes are the partial sums of all members in the order of their lanes;
 * a stack adds the two topmost while they are siblings (lanes.h). A block of elements goes through
 * the whole program before the next, so the stack stays in the cache and each addend is read once.
 */
#include "comm/comm.h"
#include "comm/fold.h"
#include "comm/pass.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK 256 // elements

#if defined(__x86_64__)
static const tti_fold_set *const sets[] = {&tti_fold_plain, &tti_fold_fma, &tti_fold_avx2,
                                           &tti_fold_avx512};
#else
static const tti_fold_set *const sets[] = {&tti_fold_plain};
#endif

// ---- the program -----------------------------------------------------------------------------

int tti_member_parts(const tti_comm_call *call, int member)
{
    const tt_member *m = &call->members[member];
    tti_part parts[TTI_MAX_PARTS];
    if (!call->has_lanes)
        return 1;
    return tti_lane_range_parts(m->first_lane, m->first_lane + m->n_lanes, call->opts.lanes, parts);
}

typedef struct holder {
    int member, first, last; // lanes [first, last)
} holder;

static int by_lane(const void *a, const void *b)
{
    const holder *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : x->member - y->member;
}

// Members that hold lanes, lowest lane first; every lane is held once.
static tt_status order_holders(tt_ctx *ctx, const tti_comm_call *call, int total, holder *out,
                               int *n)
{
    *n = 0;
    for (int i = 0; i < call->n; i++) {
        const tt_member *m = &call->members[i];
        if (m->n_lanes < 0 || m->first_lane < 0 || m->first_lane > total ||
            m->n_lanes > total - m->first_lane)
            return TT_FAIL(ctx, TT_EINVAL, "%s: member %d: %d lanes from lane %d on are not in %d",
                           call->name, i, m->n_lanes, m->first_lane, total);
        if (m->n_lanes > 0)
            out[(*n)++] = (holder){i, m->first_lane, m->first_lane + m->n_lanes};
    }
    qsort(out, (size_t)*n, sizeof(*out), by_lane);
    for (int i = 0, next = 0; i <= *n; i++) {
        int first = i < *n ? out[i].first : total;
        if (first > next)
            return TT_FAIL(ctx, TT_EINVAL, "%s: lane %d of %d is held by no member", call->name,
                           next, total);
        if (first < next)
            return TT_FAIL(ctx, TT_EINVAL, "%s: lane %d is held by member %d and by member %d",
                           call->name, first, out[i - 1].member, out[i].member);
        next = i < *n ? out[i].last : total;
    }
    return TT_OK;
}

static void push(tti_reduction *r, tti_lane_stack *stack, int member, int part, tti_part lanes)
{
    size_t bytes = (size_t)r->count * tt_dtype_bytes(r->from);
    const char *in = r->members[member].in;
    const char *data = in == NULL ? NULL : in + (size_t)part * bytes;
    r->addend[r->n++] = (tti_addend){data, tti_lane_push(stack, lanes), member, part, false};
}

static tt_status push_all(tt_ctx *ctx, const tti_comm_call *call, tti_reduction *r,
                          tti_lane_stack *stack)
{
    if (!call->has_lanes) {
        for (int i = 0; i < call->n; i++)
            push(r, stack, i, 0, (tti_part){i, 1});
        return TT_OK;
    }
    if (call->opts.combine != TT_COMBINE_SUM)
        return TT_FAIL(ctx, TT_EINVAL, "%s: lanes are of sums; a maximum or minimum has none",
                       call->name);
    int total = call->opts.lanes, n;
    holder holders[TT_MAX_MEMBERS];
    TT_TRY(order_holders(ctx, call, total, holders, &n));
    for (int i = 0; i < n; i++) {
        tti_part parts[TTI_MAX_PARTS];
        int n_parts = tti_lane_range_parts(holders[i].first, holders[i].last, total, parts);
        for (int k = 0; k < n_parts; k++)
            push(r, stack, holders[i].member, k, parts[k]);
    }
    return TT_OK;
}

tt_status tti_reduction_make(tt_ctx *ctx, const tti_comm_call *call, tti_reduction *r)
{
    const tt_comm_opts *o = &call->opts;
    r->from = r->wide = r->to = o->dtype;
    if (o->dtype == TT_BF16 || o->dtype == TT_F16)
        r->wide = TT_F32;
    if (o->round != TT_F32)
        r->to = o->round;
    r->combine = o->combine;
    r->factor = o->factor;
    r->count = call->members[0].count;
    r->members = call->members;
    r->n_members = call->n;
    r->is_scattered = call->kind == TTI_REDUCE_SCATTER;
    r->passes = r->is_partial = false;
    r->n = 0;
    r->set = sets[ctx->isa >= 0 && ctx->isa < TTI_COUNT(sets) ? ctx->isa : 0];
    tti_lane_stack stack = {.depth = 0};
    TT_TRY(push_all(ctx, call, r, &stack));
    r->addend[r->n - 1].merges += tti_lane_finish(&stack);
    for (int i = 0; o->fast && i < r->n; i++) // one after another: the shortest program
        r->addend[i].merges = i > 0;
    return TT_OK;
}

// ---- arithmetic ------------------------------------------------------------------------------

// Elements [at, at + n) of an addend in the type of the sums: where they are, or widened into room.
static const void *load(const tti_reduction *r, const tti_addend *a, int64_t at, int64_t n,
                        void *room)
{
    size_t item = tt_dtype_bytes(a->is_wide ? r->wide : r->from);
    const char *from = a->data + (size_t)at * item;
    if (a->is_wide || r->from == r->wide)
        return from;
    const uint16_t *h = (const void *)from;
    float *f = room;
    if (r->from == TT_BF16)
        for (int64_t i = 0; i < n; i++)
            f[i] = tti_from_bf16(h[i]);
    else
        for (int64_t i = 0; i < n; i++)
            f[i] = tti_from_f16(h[i]);
    return room;
}

// The end of a sum: no -0, times the factor, and for half types one rounding, in place.
static void finish(const tti_reduction *r, void *sum, int64_t n)
{
    if (r->wide == TT_F32)
        r->set->finish_f32(sum, r->factor, n);
    if (r->wide == TT_F64)
        r->set->finish_f64(sum, r->factor, n);
    for (int64_t i = 0; r->to != r->wide && i < n; i++) {
        float v;
        memcpy(&v, (char *)sum + (size_t)i * sizeof(v), sizeof(v));
        uint16_t h = r->to == TT_BF16 ? tti_to_bf16(v) : tti_to_f16(v);
        memcpy((char *)sum + (size_t)i * sizeof(h), &h, sizeof(h));
    }
}

static void store(const tti_reduction *r, const void *sum, int64_t at, int64_t n)
{
    size_t item = tt_dtype_bytes(r->to);
    for (int i = 0; i < r->n_members; i++) {
        int64_t begin = at, end = at + n, first = 0;
        if (r->is_scattered) {
            first = tti_share_begin(r->count, i, r->n_members);
            begin = TTI_MAX(begin, first);
            end = TTI_MIN(end, tti_share_begin(r->count, i + 1, r->n_members));
        }
        if (begin >= end || r->members[i].out == NULL)
            continue;
        char *to = (char *)r->members[i].out + (size_t)(begin - first) * item;
        const char *from = (const char *)sum + (size_t)(begin - at) * item;
        if (r->passes)
            tti_pass_some(to, from, (size_t)(end - begin) * item);
        else
            memcpy(to, from, (size_t)(end - begin) * item);
    }
}

void tti_reduction_run(const tti_reduction *r, int64_t begin, int64_t end)
{
    _Alignas(64) char stack[TTI_MAX_PARTS + 2][BLOCK * sizeof(double)];
    _Alignas(64) char room[BLOCK * sizeof(float)];
    tti_fold_fn fold = r->set->fold[r->combine][r->wide];
    size_t item = tt_dtype_bytes(r->wide);
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = TTI_MIN((int64_t)BLOCK, end - at);
        int depth = 0;
        for (int i = 0; i < r->n; i++) {
            const void *value = load(r, &r->addend[i], at, n, room);
            int merges = r->addend[i].merges;
            if (merges > 0) { // the first one takes the addend where it is
                fold(stack[depth - 1], value, n);
                merges--;
            } else {
                memcpy(stack[depth++], value, (size_t)n * item);
            }
            for (; merges > 0; merges--, depth--)
                fold(stack[depth - 2], stack[depth - 1], n);
        }
        if (!r->is_partial)
            finish(r, stack[0], n);
        store(r, stack[0], at, n);
    }
    tti_pass_end();
}
