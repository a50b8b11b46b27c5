/*
 * cuda_pointwise.c - the kernels of src/op/gpu/pointwise.cu, dropout.cu and random.cu alone: joined
 * nodes against their members one by one, and against the CPU's kernels where bits are to be the
 * same. The module is the one that TUTTI_CUDA_MODULE names, for a GPU or its emulation.
 */
#include "base/base.h"
#include "cuda_module.h"
#include "op/dropout.h"
#include "op/init.h"
#include "op/op.h"
#include "op/random.h"
#include "op/unary.h"
#include "plan/program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (1 << 20)

static size_t bytes_of(const tt_arg *a)
{
    return (size_t)a->count * tt_dtype_bytes(a->dtype);
}

static tt_arg arg_of(tt_dtype type, tt_shape shape, void *data)
{
    tt_arg a = test_arg(type, shape);
    a.data = data;
    return a;
}

// ---- calls -----------------------------------------------------------------------------------

static tt_node node_of(const tt_op *op, const void *attr)
{
    return (tt_node){.op = op, .name = op->name, .attr = attr, .key = 77};
}

// A kernel on copies of the launch's inputs; its output comes back to out[0].
static void run_gpu_key(tti_kernel_key key, tt_launch l, size_t skip)
{
    char name[TTI_KERNEL_TEXT];
    tti_kernel_key_text(&key, name);
    tt_arg in[8], out = l.out[0];
    void *to = out.data;
    for (int k = 0; k < l.n_in; k++) {
        in[k] = l.in[k];
        in[k].data = test_device_room(in[k].data, bytes_of(&in[k]), skip);
    }
    out.data = test_device_room(NULL, bytes_of(&out), skip);
    l.in = in;
    l.out = &out;
    l.n_out = 1;
    ck_assert_msg(test_device_run_key(key, l) == TT_OK, "%s: %s", name, test_device_reason());
    test_device_get(to, &out);
    test_device_clear();
}

static void run_gpu(const char *op, tt_launch l, size_t skip)
{
    run_gpu_key(tti_kernel_of_op(op), l, skip);
}

static void run_cpu(const tt_op *op, const tt_launch *host)
{
    tt_launch l = *host;
    l.begin = 0;
    l.end = l.out[0].count;
    l.n_threads = 1;
    unsigned saved = tti_fp_enter();
    CHECK_OK(op->kernel[TT_CPU].fn[TT_ISA_PLAIN](&l));
    tti_fp_leave(saved);
}

static const tt_op *op_of(tt_ctx *ctx, const char *name)
{
    const tt_op *op = tt_op_find(ctx, name);
    ck_assert_msg(op != NULL, "%s", name);
    return op;
}

// Numbers that round, of both signs, a few of them round or too large for integers.
static void make_values(tt_ctx *ctx, tt_dtype type, int64_t n, uint64_t seed, void *out)
{
    static const float odd[] = {0, -0.0f, 1, -1, 300, -5, 3e9f, -3e9f, 1e20f, 65519, 70000, 0.5f};
    float *f = malloc(sizeof(float) * (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        tti_philox r = tti_philox4(seed, (uint64_t)i, 0);
        f[i] = (float)(int32_t)r.v[0] * 0x1p-29f;
        if (r.v[1] % 8 == 0 && seed >= 100)
            f[i] = odd[r.v[2] % 12];
    }
    tt_arg x = arg_of(TT_F32, TT_SHAPE(n), f), y = arg_of(type, TT_SHAPE(n), out);
    run_cpu(op_of(ctx, "cast"), &(tt_launch){.ctx = ctx, .in = &x, .out = &y, .n_in = 1});
    free(f);
}

static char room[8][MAX_BYTES];

// ---- tests -----------------------------------------------------------------------------------

// (scale(gelu(a b)) + exp(c)) one, compared with d, picks one of the two: as one node and as nine.
static void try_joined(tt_ctx *ctx, tt_dtype type, int64_t n, size_t skip)
{
    static const tti_unary_attr scale = {1.25, 0.125};
    static const struct {
        const char *op;
        int n_in, in[3];
        bool is_bool;
    } rows[] = {
        {"mul", 2, {0, 1}, false},
        {"gelu", 1, {1000}, false},
        {"scale", 1, {1001}, false},
        {"exp", 1, {2}, false},
        {"add", 2, {1002, 1003}, false},
        {"mul", 2, {1004, 4}, false},
        {"less", 2, {3, 0}, true},
        {"sub", 2, {1, 2}, false},
        {"where", 3, {1006, 1005, 1007}, false},
    };
    tt_arg in[5], made[9], last;
    tt_node node[9];
    tti_fused f = {.n = 9};
    char *alone = malloc(9 * 8 * (size_t)n);
    for (int k = 0; k < 5; k++) {
        in[k] = arg_of(type, TT_SHAPE(k == 4 ? 1 : n), room[k]);
        make_values(ctx, type, in[k].count, (uint64_t)k, room[k]);
    }
    for (int m = 0; m < 9; m++) {
        tti_fused_member *mb = &f.members[m];
        node[m] = node_of(op_of(ctx, rows[m].op), strcmp(rows[m].op, "scale") == 0 ? &scale : NULL);
        made[m] = arg_of(rows[m].is_bool ? TT_BOOL : type, TT_SHAPE(n), alone + m * 8 * n);
        *mb = (tti_fused_member){.node = &node[m], .n_in = rows[m].n_in, .is_last = m == 8};
        mb->out = made[m];
        tt_arg x[3];
        for (int k = 0; k < mb->n_in; k++) {
            mb->in[k] = rows[m].in[k];
            x[k] = mb->in[k] >= TTI_FUSE_OF ? made[mb->in[k] - TTI_FUSE_OF] : in[mb->in[k]];
        }
        tt_launch l = {.node = &node[m], .attr = node[m].attr, .in = x, .out = &made[m]};
        l.n_in = mb->n_in;
        run_gpu(rows[m].op, l, skip);
    }
    last = arg_of(type, TT_SHAPE(n), room[6]);
    run_gpu_key(tti_kernel_of_form(TTI_KERNEL_FUSED),
                (tt_launch){.node = &node[8], .in = in, .n_in = 5, .out = &last, .tune = &f}, skip);
    ck_assert_msg(memcmp(made[8].data, last.data, bytes_of(&last)) == 0, "%s, %lld elements",
                  tt_dtype_name(type), (long long)n);
    free(alone);
}

TEST(cuda_joined_node_has_the_bits_of_its_members)
{
    static const int64_t counts[] = {2, 7, 8, 1000, 20003};
    tt_ctx *ctx = test_ctx();
    test_device_open();
    for (int i = 0; i < 5; i++) {
        try_joined(ctx, TT_F32, counts[i], 0);
        try_joined(ctx, TT_BF16, counts[i], 0);
        try_joined(ctx, TT_F16, counts[i], 4);
    }
    test_device_close();
    CHECK_OK(tt_close(ctx));
}

TEST(cuda_casts_are_those_of_the_cpu)
{
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16, TT_I32, TT_I64, TT_U8, TT_BOOL};
    tt_ctx *ctx = test_ctx();
    tt_node node = node_of(op_of(ctx, "cast"), NULL);
    test_device_open();
    for (int i = 0; i < 49; i++) {
        tt_arg x = arg_of(types[i / 7], TT_SHAPE(1001), room[0]);
        tt_arg want = arg_of(types[i % 7], TT_SHAPE(1001), room[1]), got = want;
        tt_launch l = {.ctx = ctx, .node = &node, .in = &x, .n_in = 1, .out = &want};
        got.data = room[2];
        make_values(ctx, x.dtype, x.count, 100 + (uint64_t)i, x.data);
        run_cpu(node.op, &l);
        l.out = &got;
        run_gpu("cast", l, 0);
        ck_assert_msg(memcmp(want.data, got.data, bytes_of(&want)) == 0, "%s to %s",
                      tt_dtype_name(x.dtype), tt_dtype_name(want.dtype));
    }
    test_device_close();
    CHECK_OK(tt_close(ctx));
}

TEST(cuda_broadcasts_are_those_of_the_cpu)
{
    static const struct {
        tt_shape out, a, b;
    } rows[] = {
        {{2, {37, 64}}, {2, {37, 64}}, {1, {64}}},
        {{2, {37, 64}}, {2, {37, 1}}, {2, {1, 64}}},
        {{2, {65, 10}}, {2, {65, 10}}, {1, {10}}},
        {{4, {3, 5, 7, 16}}, {4, {3, 1, 7, 16}}, {3, {5, 1, 1}}},
        {{3, {4, 3, 9}}, {3, {4, 1, 9}}, {2, {3, 1}}},
        {{2, {3, 8}}, {0, {0}}, {2, {3, 8}}},
    };
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_I64, TT_U8};
    static const char *const names[] = {"add", "greater", "maximum", "broadcast"};
    tt_ctx *ctx = test_ctx();
    test_device_open();
    for (int i = 0; i < 6 * 4 * 4; i++) {
        tt_node node = node_of(op_of(ctx, names[i % 4]), NULL);
        tt_dtype type = types[i / 4 % 4], out = i % 4 == 1 ? TT_BOOL : type;
        tt_arg in[2] = {arg_of(type, rows[i / 16].a, room[0]),
                        arg_of(type, rows[i / 16].b, room[1])};
        tt_arg want = arg_of(out, rows[i / 16].out, room[2]), got = want;
        tt_launch l = {.ctx = ctx, .node = &node, .in = in, .n_in = 2, .out = &want};
        got.data = room[3];
        make_values(ctx, type, in[0].count, 5, room[0]);
        make_values(ctx, type, in[1].count, 6, room[1]);
        run_cpu(node.op, &l);
        l.out = &got;
        run_gpu(node.op->name, l, 0);
        ck_assert_msg(memcmp(want.data, got.data, bytes_of(&want)) == 0, "%s %s case %d",
                      node.op->name, tt_dtype_name(type), i / 16);
    }
    test_device_close();
    CHECK_OK(tt_close(ctx));
}

TEST(cuda_dropout_drops_what_the_cpu_drops)
{
    static const tt_shape shapes[] = {{2, {5, 128}},  {2, {9, 10}}, {3, {3, 4, 20}},
                                      {3, {2, 5, 7}}, {1, {1000}},  {2, {300, 72}}};
    static const int open[] = {0, 0, 1, 1, -1, 0};
    tt_ctx *ctx = test_ctx();
    tti_dropout_attr attr = {0.3, 0};
    tt_node node = node_of(op_of(ctx, "dropout"), &attr);
    tt_step step = {.step = 12345, .seed = 99};
    tt_lanes lanes = {.first_row = 40};
    test_device_open();
    for (int i = 0; i < 6; i++) {
        tt_arg x = arg_of(TT_F32, shapes[i], room[0]), want = x, got = x;
        x.open = open[i];
        x.per = 1;
        want.data = room[1];
        got.data = room[2];
        make_values(ctx, TT_F32, x.count, 3, x.data);
        tt_prep p = {.ctx = ctx, .node = &node, .attr = &attr, .in = &x, .out_args = &want};
        CHECK_OK(node.op->kernel[TT_CPU].prepare(&p));
        tt_launch l = {.ctx = ctx, .node = &node, .attr = &attr, .in = &x, .n_in = 1};
        l.out = &want;
        l.step = &step;
        l.lanes = &lanes;
        l.tune = p.tune;
        l.end = p.units[0];
        CHECK_OK(node.op->kernel[TT_CPU].fn[TT_ISA_PLAIN](&l));
        l.out = &got;
        run_gpu("dropout", l, 0);
        ck_assert_msg(memcmp(want.data, got.data, bytes_of(&want)) == 0, "case %d", i);
        run_gpu("dropout", l, 4);
        ck_assert_msg(memcmp(want.data, got.data, bytes_of(&want)) == 0, "case %d, unaligned", i);
    }
    test_device_close();
    CHECK_OK(tt_close(ctx));
}

TEST(cuda_first_values_are_those_of_the_cpu)
{
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16};
    tt_ctx *ctx = test_ctx();
    tt_node node = node_of(op_of(ctx, "variable"), NULL);
    test_device_open();
    for (int i = 0; i < 9 * 3 * 2; i++) {
        tt_init init = {(tt_init_kind)(i / 6), 0.25, 0.5};
        tt_shape shape = TT_SHAPE(3, 50, 31);
        int64_t first = i % 2 == 0 ? 0 : 1234, n = 3 * 50 * 31 - first;
        tti_init_attr attr = {init, shape, 11, 22, first};
        tt_arg want = arg_of(types[i / 2 % 3], TT_SHAPE(n), room[0]), got = want;
        got.data = room[1];
        CHECK_OK(tti_init_values(ctx, TT_ISA_PLAIN, &init, &shape, want.dtype, 11, 22, first,
                                 first + n, want.data));
        run_gpu_key(tti_kernel_of_form(TTI_KERNEL_INIT),
                    (tt_launch){.node = &node, .attr = &attr, .out = &got}, 0);
        ck_assert_msg(memcmp(want.data, got.data, bytes_of(&want)) == 0, "kind %d, %s from %lld",
                      i / 6, tt_dtype_name(want.dtype), (long long)first);
    }
    test_device_close();
    CHECK_OK(tt_close(ctx));
}
