/*
 * reduction.c - combining values element by element: which addends in which order, and the
 * arithmetic.
 *
 * The addends of a sum over lanes are the partial sums of all members in the order of their lanes;
 * a stack adds the two topmost while they are siblings (lane_tree.h). A block of elements goes
 * through the whole program before the next, so the stack stays in the cache and each addend is
 * read once.
 */
#include "comm/reduction.h"
#include "comm/comm.h"
#include "comm/fold.h"
#include "comm/nontemporal.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK 256 // elements

#if defined(__x86_64__)
static const tti_fold_set *const sets[] = {&tti_fold_plain, &tti_fold_fma, &tti_fold_avx2,
                                           &tti_fold_avx512};
#else
static const tti_fold_set *const sets[] = {&tti_fold_plain};
#endif

const tti_fold_set *tti_fold_set_of(int isa)
{
    return sets[isa >= 0 && isa < TTI_COUNT(sets) ? isa : 0];
}

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
    bool in_order = true;
    *n = 0;
    for (int i = 0; i < call->n; i++) {
        const tt_member *m = &call->members[i];
        if (m->n_lanes < 0 || m->first_lane < 0 || m->first_lane > total ||
            m->n_lanes > total - m->first_lane)
            return TT_FAIL(ctx, TT_EINVAL, "%s: member %d: %d lanes from lane %d on are not in %d",
                           call->name, i, m->n_lanes, m->first_lane, total);
        if (m->n_lanes == 0)
            continue;
        in_order = in_order && (*n == 0 || out[*n - 1].first <= m->first_lane);
        out[(*n)++] = (holder){i, m->first_lane, m->first_lane + m->n_lanes};
    }
    if (!in_order)
        qsort(out, (size_t)*n, sizeof(*out), by_lane);
    for (int i = 0, next = 0; i <= *n; i++) {
        int first = i < *n ? out[i].first : total;
        if (first > next)
            return TT_FAIL(ctx, TT_EINVAL, "%s: no member holds lane %d of %d", call->name, next,
                           total);
        if (first < next)
            return TT_FAIL(ctx, TT_EINVAL, "%s: lane %d is held by member %d and by member %d",
                           call->name, first, out[i - 1].member, out[i].member);
        next = i < *n ? out[i].last : total;
    }
    return TT_OK;
}

static void push(const tti_comm_call *call, tti_reduction *r, tti_lane_stack *stack, int member,
                 int part, tti_part lanes)
{
    size_t bytes = (size_t)r->count * tt_dtype_bytes(r->from);
    const char *in = call->members[member].in;
    const char *data = in == NULL ? NULL : in + (size_t)part * bytes;
    r->addend[r->n++] = (tti_addend){data, tti_lane_push(stack, lanes), member, part, false};
}

static tt_status push_all(tt_ctx *ctx, const tti_comm_call *call, tti_reduction *r,
                          tti_lane_stack *stack)
{
    if (!call->has_lanes) {
        for (int i = 0; i < call->n; i++)
            push(call, r, stack, i, 0, (tti_part){i, 1});
        return TT_OK;
    }
    if (call->what.combine != TT_COMBINE_SUM)
        return TT_FAIL(ctx, TT_EINVAL, "%s: lanes apply to sums only, not to a maximum or minimum",
                       call->name);
    int total = call->opts.lanes, n;
    holder holders[TT_MAX_MEMBERS];
    TT_TRY(order_holders(ctx, call, total, holders, &n));
    for (int i = 0; i < n; i++) {
        tti_part parts[TTI_MAX_PARTS];
        int n_parts = tti_lane_range_parts(holders[i].first, holders[i].last, total, parts);
        for (int k = 0; k < n_parts; k++)
            push(call, r, stack, holders[i].member, k, parts[k]);
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
    bool has_root = call->is->flow == TTI_FLOW_TO_ROOT;
    r->members = call->members + (has_root ? o->root : 0);
    r->n_members = has_root ? 1 : call->n;
    r->is_scattered = call->what.kind == TTI_REDUCE_SCATTER;
    r->passes = r->copy_passes = r->is_partial = false;
    r->copy = NULL;
    r->n = 0;
    r->set = tti_fold_set_of(ctx->top.isa);
    tti_lane_stack stack = {.depth = 0};
    TT_TRY(push_all(ctx, call, r, &stack));
    r->addend[r->n - 1].merges += tti_lane_finish(&stack);
    for (int i = 0; call->what.is_fast && i < r->n; i++) // one after another: the shortest program
        r->addend[i].merges = i > 0;
    return TT_OK;
}

// ---- arithmetic ------------------------------------------------------------------------------

// Elements [at, at + n) of an addend in the type of the sums: where they are, or widened into room.
static inline const void *load(const tti_reduction *r, const tti_addend *a, int64_t at, int64_t n,
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

// The last two of a sum (or, without high, all of it) and its end: no -0, times the factor.
static inline void end(const tti_reduction *r, void *to, const void *low, const void *high,
                       int64_t n)
{
    bool ends = !r->is_partial && (r->wide == TT_F32 || r->wide == TT_F64);
    bool joint = ends && high != NULL && r->combine == TT_COMBINE_SUM;
    if (joint && r->wide == TT_F32)
        r->set->sum_end_f32(to, low, high, r->factor, n);
    else if (joint)
        r->set->sum_end_f64(to, low, high, r->factor, n);
    else if (high != NULL)
        r->set->fold[r->combine][r->wide](to, low, high, n);
    else if (!ends)
        memmove(to, low, (size_t)n * tt_dtype_bytes(r->wide));
    if (!ends || joint)
        return;
    if (r->wide == TT_F32)
        r->set->end_f32(to, high != NULL ? to : low, r->factor, n);
    else
        r->set->end_f64(to, high != NULL ? to : low, r->factor, n);
}

typedef char block[BLOCK * sizeof(double)];

typedef struct pile { // on the stack
    const void *at;
    bool is_sum; // of several
} pile;

/*
 * Combines elements [at, at + n) of all addends, each read where it is, but for the last `left`
 * combinations of the program; how many values that leaves.
 */
static inline int run_program(const tti_reduction *r, int64_t at, int64_t n, int left, block *stack,
                              pile *value)
{
    tti_fold_fn fold = r->set->fold[r->combine][r->wide];
    int depth = 0;
    for (int i = 0; i < r->n; i++) {
        value[depth] = (pile){load(r, &r->addend[i], at, n, stack[depth]), false};
        depth++;
        for (int m = r->addend[i].merges; m > (i == r->n - 1 ? left : 0); m--) {
            depth--;
            fold(stack[depth - 1], value[depth - 1].at, value[depth].at, n);
            value[depth - 1] = (pile){stack[depth - 1], true};
        }
    }
    return depth;
}

static void add_up(const tti_reduction *r, int64_t at, int64_t n, block *stack, void *to)
{
    pile value[TTI_MAX_PARTS + 2];
    int depth = run_program(r, at, n, 1, stack, value); // the last is combined with the sum's end
    end(r, to, value[0].at, depth > 1 ? value[1].at : NULL, n);
}

// One rounding, in place.
static void narrow(const tti_reduction *r, void *sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float v;
        memcpy(&v, (char *)sum + (size_t)i * sizeof(v), sizeof(v));
        uint16_t h = r->to == TT_BF16 ? tti_to_bf16(v) : tti_to_f16(v);
        memcpy((char *)sum + (size_t)i * sizeof(h), &h, sizeof(h));
    }
}

static void copy(void *to, const void *from, size_t bytes, bool passes)
{
    if (passes)
        tti_nontemporal_copy(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

// To the outs of all members from the first of them on.
static void store(const tti_reduction *r, int first_member, const void *sum, int64_t at, int64_t n)
{
    size_t item = tt_dtype_bytes(r->to);
    for (int i = first_member; i < r->n_members; i++) {
        int64_t begin = at, end = at + n, first = 0;
        if (r->is_scattered) {
            first = tti_share_begin(r->count, i, r->n_members);
            begin = TTI_MAX(begin, first);
            end = TTI_MIN(end, tti_share_begin(r->count, i + 1, r->n_members));
        }
        if (begin < end && r->members[i].out != NULL)
            copy((char *)r->members[i].out + (size_t)(begin - first) * item,
                 (const char *)sum + (size_t)(begin - at) * item, (size_t)(end - begin) * item,
                 r->passes);
    }
    if (r->copy != NULL)
        copy(r->copy + (size_t)at * item, sum, (size_t)n * item, r->copy_passes);
}

// Two addends of the sums' type: nothing is kept on the stack.
static bool is_pair(const tti_reduction *r)
{
    return r->n == 2 && r->addend[1].merges == 1 &&
           (r->from == r->wide || (r->addend[0].is_wide && r->addend[1].is_wide));
}

static void add_pair(const tti_reduction *r, int64_t at, int64_t n, void *to)
{
    size_t skip = (size_t)at * tt_dtype_bytes(r->wide);
    end(r, to, r->addend[0].data + skip, r->addend[1].data + skip, n);
}

void tti_reduction_run(const tti_reduction *r, int64_t begin, int64_t end)
{
    _Alignas(64) block stack[TTI_MAX_PARTS + 2];
    char *out = r->n_members > 0 ? r->members[0].out : NULL;
    size_t item = tt_dtype_bytes(r->to);
    bool direct = out != NULL && r->to == r->wide && !r->passes && !r->is_scattered;
    bool pair = is_pair(r);
    if (direct && pair && r->n_members == 1 && r->copy == NULL) {
        add_pair(r, begin, end - begin, out + (size_t)begin * item);
        return;
    }
    // What goes past the cache goes by whole lines, of what others read or of the first out.
    const char *lines = r->copy != NULL && r->copy_passes ? r->copy : r->passes ? out : NULL;
    int64_t skew = (int64_t)((((uintptr_t)lines + (size_t)begin * item) & 63) / item);
    for (int64_t at = begin, n; at < end; at += n, skew = 0) {
        n = TTI_MIN(BLOCK - skew, end - at);
        char *sum = direct ? out + (size_t)at * item : stack[0];
        if (pair)
            add_pair(r, at, n, sum);
        else
            add_up(r, at, n, stack, sum);
        if (r->to != r->wide)
            narrow(r, sum, n);
        store(r, direct, sum, at, n);
    }
    tti_nontemporal_end();
}

// ---- parts of a tree -------------------------------------------------------------------------

void tti_add_pair(int isa, tt_dtype t, void *out, const void *low, const void *high, int64_t n)
{
    const tti_fold_set *set = tti_fold_set_of(isa);
    if (t == TT_F32)
        set->sum_end_f32(out, low, high, 1, n);
    else if (t == TT_F64)
        set->sum_end_f64(out, low, high, 1, n);
    else
        set->fold[TT_COMBINE_SUM][t](out, low, high, n);
}

// A value that is left: a sum ends, an addend alone stays as it is.
static void keep(const tti_reduction *r, const pile *p, int64_t n, void *room, void *to)
{
    size_t bytes = (size_t)n * tt_dtype_bytes(r->to);
    void *sum = r->to == r->wide ? to : room;
    if (p->is_sum)
        end(r, sum, p->at, NULL, n);
    else
        memmove(sum, p->at, (size_t)n * tt_dtype_bytes(r->wide));
    if (r->to == r->wide)
        return;
    narrow(r, sum, n);
    memcpy(to, sum, bytes);
}

void tti_reduction_run_parts(const tti_reduction *r, int64_t begin, int64_t end, int n_out,
                             void *out, int64_t apart)
{
    _Alignas(64) block stack[TTI_MAX_PARTS + 2];
    pile value[TTI_MAX_PARTS + 2];
    size_t item = tt_dtype_bytes(r->to);
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = TTI_MIN((int64_t)BLOCK, end - at);
        (void)run_program(r, at, n, 0, stack, value);
        for (int k = 0; k < n_out; k++)
            keep(r, &value[k], n, stack[k], (char *)out + (size_t)(k * apart + at) * item);
    }
}
