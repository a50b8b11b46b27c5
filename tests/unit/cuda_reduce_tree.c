/*
 * cuda_reduce_tree.c - the kernels of src/plan/emit/reduce_tree.cu alone, called as a plan calls
 * them: against the arithmetic of join.c, to the bit.
 */
#include "base/base.h"
#include "comm/lane_tree.h"
#include "comm/reduction.h"
#include "cuda_module.h"
#include "plan/emit/reduce_tree.h"
#include <math.h>

#define MAX_ARGS 64

static void call(tti_kernel_form form, const tt_arg *in, int n_in, const tt_arg *out, int n_out,
                 const void *tune)
{
    tt_launch l = {.in = in, .n_in = n_in, .out = out, .n_out = n_out, .tune = tune};
    tt_status st = test_device_run_key(tti_kernel_of_form(form), l);
    ck_assert_msg(st == TT_OK, "kernel %d: %s", (int)form, test_device_reason());
}

// ---- programs --------------------------------------------------------------------------------

// n lanes of total dealt to replicas, one input each, as tti_tree_make() does it.
typedef struct setup {
    tti_tree_program prog;
    tti_push push[TT_MAX_LANES];
    int parts[MAX_ARGS];
} setup;

static void set_up(setup *s, int replicas, int n, int total)
{
    tti_lane_stack stack = {.depth = 0};
    memset(s, 0, sizeof(*s));
    s->prog.push = s->push;
    for (int r = 0; r < replicas; r++) {
        tti_part parts[TTI_MAX_PARTS];
        s->parts[r] = tti_lane_range_parts(r * n / replicas, (r + 1) * n / replicas, total, parts);
        for (int i = 0; i < s->parts[r]; i++) {
            tti_push *p = &s->push[s->prog.n++];
            *p = (tti_push){
                .input = (int16_t)r, .part = (int16_t)i, .rows = (parts[i].first * 7 + 3) % 5};
            p->merges = (int16_t)tti_lane_push(&stack, parts[i]);
        }
    }
    tti_push *last = &s->push[s->prog.n - 1];
    if (n == total)
        last->merges = (int16_t)(last->merges + tti_lane_finish(&stack));
    s->prog.n_out = stack.depth;
}

// Which elements of the partials are added.
static void set_range(setup *s, int64_t count, int64_t begin)
{
    s->prog.count = count;
    s->prog.begin = begin;
    for (int i = 0; i < s->prog.n; i++)
        s->push[i].skip = s->push[i].part * count + begin;
}

// Lanes here, of how many; on how many replicas.
static const int deals[][3] = {{1, 1, 1},    {3, 3, 2},   {8, 8, 2},   {8, 8, 3},
                               {8, 8, 8},    {7, 8, 3},   {16, 16, 5}, {40, 40, 3},
                               {40, 40, 40}, {39, 40, 4}, {15, 16, 1}};
// Elements of a partial, and the range that is added; every kind of alignment.
static const int64_t ranges[][3] = {{1, 0, 1},          {3, 0, 3},          {1023, 0, 1023},
                                    {4096, 1024, 2048}, {4101, 1024, 3077}, {4100, 3, 5}};
#define N_DEALS  (int)(sizeof(deals) / sizeof(deals[0]))
#define N_RANGES (int)(sizeof(ranges) / sizeof(ranges[0]))

static float parts_data[MAX_ARGS][TTI_MAX_PARTS * 4101];

static int make_inputs(const setup *s, int replicas, tt_arg *in, size_t skip)
{
    for (int r = 0; r < replicas; r++) {
        int64_t n = s->parts[r] * s->prog.count;
        test_fill(parts_data[r], n, (uint64_t)(r + 1), -9, 9);
        in[r] = test_device_arg(TT_F32, n, parts_data[r], skip);
    }
    return replicas;
}

static float part_value(const setup *s, int push, int64_t i)
{
    const tti_push *p = &s->push[push];
    return parts_data[p->input][p->part * s->prog.count + s->prog.begin + i];
}

// ---- tests -----------------------------------------------------------------------------------

static void check_tree(const setup *s, const tt_arg *out, int64_t len)
{
    static char got[TTI_MAX_PARTS * 4101 * 4], want[TTI_MAX_PARTS * 4101 * 4];
    tt_arg at = *out;
    at.data = want;
    for (int64_t i = 0; i < len; i++) {
        float stack[TTI_MAX_PARTS + 2];
        int depth = 0;
        for (int k = 0; k < s->prog.n; k++) {
            stack[depth++] = part_value(s, k, i);
            for (int m = s->push[k].merges; m > 0; m--, depth--)
                tti_add_pair(0, TT_F32, &stack[depth - 2], &stack[depth - 2], &stack[depth - 1], 1);
        }
        CHECK_INT(depth, s->prog.n_out);
        for (int k = 0; k < depth; k++)
            tti_tree_store(&at, k * len + i, TT_F32, &stack[k], 1);
    }
    test_device_get(got, out);
    CHECK(memcmp(got, want, (size_t)out->count * tt_dtype_bytes(out->dtype)) == 0);
}

TEST(cuda_tree_adds_as_the_cpu_does)
{
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};
    static setup s;
    tt_arg in[MAX_ARGS];
    test_device_open();
    for (int d = 0; d < N_DEALS; d++)
        for (int r = 0; r < N_RANGES; r++) {
            set_up(&s, deals[d][2], deals[d][0], deals[d][1]);
            set_range(&s, ranges[r][0], ranges[r][1]);
            int n = make_inputs(&s, deals[d][2], in, (size_t)(d % 2));
            tt_arg out = test_device_arg(types[(d + r) % 3], s.prog.n_out * ranges[r][2], NULL, 0);
            call(TTI_KERNEL_TREE, in, n, &out, 1, &s.prog);
            check_tree(&s, &out, ranges[r][2]);
            test_device_clear();
        }
    test_device_close();
}

TEST(cuda_narrow_sums_keep_what_rounding_takes)
{
    static setup s;
    static float left[4101], rest[4101], wide[4101];
    static uint16_t sent[4101];
    tt_arg in[MAX_ARGS];
    test_device_open();
    for (int d = 0; d < N_DEALS; d++)
        for (int r = 0; r < 2 * N_RANGES; r++) {
            bool is_f16 = r % 2 == 1;
            set_up(&s, deals[d][2], deals[d][0], deals[d][1]);
            int64_t count = ranges[r / 2][0];
            set_range(&s, count, 0);
            int n = make_inputs(&s, deals[d][2], in, (size_t)(d % 2));
            test_fill(left, count, 99, -1e-3, 1e-3);
            left[0] = 1e6f; // more than f16 has
            in[n++] = test_device_arg(TT_F32, count, left, 0);
            tt_arg out = test_device_arg(is_f16 ? TT_F16 : TT_BF16, count, NULL, 0);
            call(TTI_KERNEL_NARROW, in, n, &out, 1, &s.prog);
            test_device_get(sent, &out);
            test_device_get(rest, &in[n - 1]);
            for (int64_t i = 0; i < count; i++) {
                float sum = left[i];
                for (int k = 0; k < s.prog.n; k++)
                    sum += part_value(&s, k, i);
                float most = is_f16 && sum > 65504.0f ? 65504.0f : sum;
                uint16_t want = is_f16 ? tti_to_f16(most) : tti_to_bf16(most);
                float back = is_f16 ? tti_from_f16(want) : tti_from_bf16(want);
                CHECK_INT(sent[i], want);
                CHECK(rest[i] == sum - back);
            }
            s.prog.begin = ranges[r / 2][1];
            for (int k = 0; k < 3; k++)
                s.push[k].skip = s.prog.begin;
            tt_arg from[3] = {out, out, out},
                   to = test_device_arg(TT_F32, ranges[r / 2][2], NULL, 0);
            call(TTI_KERNEL_WIDEN, from, 3, &to, 1, &s.prog);
            test_device_get(wide, &to);
            for (int64_t i = 0; i < to.count; i++) {
                uint16_t h = sent[s.prog.begin + i];
                float x = is_f16 ? tti_from_f16(h) : tti_from_bf16(h);
                CHECK(wide[i] == x + x + x + 0.0f);
            }
            test_device_clear();
        }
    test_device_close();
}

// Mean and variance over all entries, from those of parts, some of them without an entry.
TEST(cuda_moments_merge_parts)
{
    static setup s;
    static float got[3][37];
    tt_arg in[2 * MAX_ARGS], out[3];
    test_device_open();
    for (int d = 0; d < N_DEALS; d++) {
        if (deals[d][0] != deals[d][1])
            continue;
        set_up(&s, deals[d][2], deals[d][0], deals[d][1]);
        int64_t c = s.prog.count = 37;
        s.prog.per_row = 3;
        tt_arg means[MAX_ARGS];
        (void)make_inputs(&s, deals[d][2], means, 0);
        for (int r = 0; r < deals[d][2]; r++)
            in[2 * r] = in[2 * r + 1] = means[r]; // M2 is the same numbers: any will do
        for (int k = 0; k < s.prog.n; k++)
            s.push[k].input = (int16_t)(2 * s.push[k].input);
        for (int k = 0; k < 3; k++)
            out[k] = test_device_arg(TT_F32, c, NULL, 0);
        call(TTI_KERNEL_MOMENTS, in, 2 * deals[d][2], out, 3, &s.prog);
        for (int k = 0; k < 3; k++)
            test_device_get(got[k], &out[k]);
        for (int64_t j = 0; j < c; j++) {
            double n = 0, sum = 0, m2 = 0;
            for (int pass = 0; pass < 2; pass++)
                for (int k = 0; k < s.prog.n; k++) {
                    const tti_push *p = &s.push[k];
                    double x = parts_data[p->input / 2][p->part * c + j];
                    double entries = (double)p->rows * 3, away = x - sum / fmax(n, 1);
                    n += pass == 0 ? entries : 0;
                    sum += pass == 0 ? entries * x : 0;
                    m2 += pass == 1 && entries > 0 ? x + entries * away * away : 0;
                }
            CHECK_NEAR(got[0][j], sum / fmax(n, 1), 1e-4);
            CHECK_NEAR(got[1][j], m2 / fmax(n, 1), 1e-4 * (1 + fabs(m2)));
            CHECK_NEAR(got[2][j], m2 / fmax(n - 1, 1), 1e-4 * (1 + fabs(m2)));
        }
        test_device_clear();
    }
    test_device_close();
}

// Rows, or pieces, of several replicas side by side; the axis that is split need not be the first.
TEST(cuda_rows_and_pieces_come_side_by_side)
{
    static uint16_t data[40 * 3 * 5 * 7], got[40 * 3 * 5 * 7];
    test_device_open();
    for (int n = 1; n <= 40; n = n * 3 - n / 3) {
        tt_arg in[MAX_ARGS], out;
        int64_t begin[MAX_ARGS], rows = 0, total = 0;
        for (int k = 0; k < n; k++)
            rows += k % 4;
        out = test_device_arg(TT_BF16, 3 * rows * 35, NULL, 0);
        out.shape = (tt_shape){3, {3, rows, 35}};
        out.open = 1;
        for (int64_t i = 0; i < out.count; i++)
            data[i] = (uint16_t)(i * 40503u >> 3);
        for (int k = 0; k < n; k++) {
            int64_t count = 3 * (k % 4) * 35;
            in[k] = test_device_arg(TT_BF16, count, data + total, (size_t)(k % 3));
            in[k].shape = (tt_shape){3, {3, k % 4, 35}};
            begin[k] = total;
            total += count;
        }
        call(TTI_KERNEL_GATHER, in, n, &out, 1, NULL);
        test_device_get(got, &out);
        for (int64_t o = 0, at = 0; o < 3; o++)
            for (int k = 0; k < n; k++) {
                size_t width = (size_t)(k % 4) * 35;
                CHECK(memcmp(got + at, data + begin[k] + o * (int64_t)width, width * 2) == 0);
                at += (int64_t)width;
            }
        tti_collect_program prog = {n > 1, begin};
        call(TTI_KERNEL_COLLECT, in, n, &out, 1, &prog);
        test_device_get(got, &out); // the first input, where it is left out, has no elements
        CHECK(memcmp(got, data, (size_t)total * 2) == 0);
        test_device_clear();
    }
    // Whole blocks and an odd rest, as the pieces of a variable are.
    static const int64_t begin[] = {0, 1024, 3072};
    tt_arg in[] = {test_device_arg(TT_BF16, 1024, data, 0),
                   test_device_arg(TT_BF16, 2048, data + 1024, 0),
                   test_device_arg(TT_BF16, 333, data + 3072, 0)};
    tt_arg out = test_device_arg(TT_BF16, 3405, NULL, 0);
    tti_collect_program prog = {0, (int64_t *)begin};
    call(TTI_KERNEL_COLLECT, in, 3, &out, 1, &prog);
    test_device_get(got, &out);
    CHECK(memcmp(got, data, 3405 * 2) == 0);
    test_device_close();
}
