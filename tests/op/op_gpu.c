/*
 * op_gpu.c - the way "gpu" of op_test.h: a case on gpu:0, a real one or the emulation.
 *
 * The context has that one device: an op without a kernel there fails, it never moves to the CPU.
 * Results are held against the CPU's within the bounds of one table, and against each other to the
 * bit: run again, captured, without fusion, with inputs as variables, by rows and by parts.
 */
#include "op_trial.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DEVICE "gpu:0"

// ---- how far from the CPU --------------------------------------------------------------------

/*
 * |gpu - cpu| <= bound (1 + |cpu|), by type. An op that is not here gives the CPU's bits: moves,
 * integers, comparisons, random numbers, and what IEEE rounds in one way only. Half types are
 * computed in f32 and rounded once by both, so a result may fall to the other side of a rounding
 * border: one step, 2^-8 or 2^-11 of it; what then goes through further nodes adds a few more.
 */
typedef struct bound {
    const char *ops; // names, with a space on both sides
    double f32, bf16, f16;
    const char *why;
} bound;

static const bound bounds[] = {
    {" rsqrt exp log sin cos tanh erf sigmoid gelu gelu_erf silu softplus elu selu mish "
     "hard_sigmoid "
     "hard_swish softsign gaussian_noise pow ",
     4e-6, 8e-3, 1e-3, "the device's own functions are within a few units of the last place"},
    {" gelu_grad gelu_erf_grad silu_grad sigmoid_grad tanh_grad softplus_grad elu_grad selu_grad "
     "mish_grad hard_sigmoid_grad hard_swish_grad softsign_grad ",
     8e-6, 1.6e-2, 2e-3, "products of such functions"},
    {" sum max_grad avg_pool2d avg_pool2d_grad embedding_grad scatter_add slice_grad square_sum ",
     1e-5, 1.6e-2, 2e-3, "sums in another order"},
    {" matmul conv2d conv2d_dx conv2d_dw depthwise_conv2d depthwise_conv2d_dx "
     "depthwise_conv2d_dw ",
     2e-5, 1.6e-2, 2e-3, "products of rows: a library's order, fma or not"},
    {" softmax softmax_grad log_softmax log_softmax_grad cross_entropy cross_entropy_grad "
     "label_rank ",
     1e-5, 1.6e-2, 2e-3, "exponentials and their sums"},
    {" layer_norm layer_norm_grad rms_norm rms_norm_grad residual ", 2e-5, 3e-2, 4e-3,
     "a mean of squares, and a difference of values near each other in the gradient"},
    {" batch_norm_stats batch_norm_apply batch_norm_sums batch_norm_dx batch_norm_running "
     "batch_norm_lane batch_norm_lane_grad ",
     5e-5, 4e-2, 5e-3, "as norms, and sums over all rows in the gradient"},
    {" recurrent recurrent_grad ", 2e-5, 3e-2, 4e-3, "products and exponentials, step after step"},
    {" attention attention_grad ", 5e-5, 4e-2, 6e-3,
     "a library may keep the probabilities in the type of its inputs"},
    {" update_sgd update_adam update_adamw update_rmsprop update_adagrad update_lion update_ema "
     "update_adadelta update_adamax update_nadam update_amsgrad update_ftrl update_moment "
     "lamb_direction update_scale update_loss_scale ",
     4e-6, 8e-3, 1e-3, "square roots, powers and products joined to fma or not"},
};

// Ops that only the CPU has.
static const struct {
    const char *op, *why;
} cpu_only[] = {
    {"print", "writes to the host's log"},
    {"assert", "tells the host"},
};

static double bound_of(const char *op, tt_dtype dtype)
{
    char word[64];
    snprintf(word, sizeof(word), " %s ", op);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        if (strstr(bounds[i].ops, word) != NULL)
            return dtype == TT_BF16  ? bounds[i].bf16
                   : dtype == TT_F16 ? bounds[i].f16
                                     : bounds[i].f32;
    return 0;
}

// The largest of all nodes that x comes from.
static double bound_above(const tt_node *n, tt_dtype dtype, uint8_t *seen)
{
    if (seen[n->id])
        return 0;
    seen[n->id] = 1;
    double most = bound_of(n->op->name, dtype);
    for (int i = 0; i < n->n_in; i++) {
        double other = bound_above(n->in[i]->node, dtype, seen);
        most = other > most ? other : most;
    }
    return most;
}

// ---- comparisons -----------------------------------------------------------------------------

static void check_near(const op_test *t, const op_result *got, const op_result *cpu)
{
    for (int i = 0; i < got->n; i++) {
        const op_out *a = &got->out[i], *b = &cpu->out[i];
        if (a->tensor == NULL)
            continue;
        uint8_t *seen = calloc((size_t)a->tensor->node->id + 1, 1);
        double tol = bound_above(a->tensor->node, t->how.dtype, seen);
        free(seen);
        for (int64_t k = 0; k < a->count; k++) {
            double x = op_decode(a->dtype, a->data, k), y = op_decode(b->dtype, b->data, k);
            if (tol == 0 || !op_is_float(a->dtype) ? !op_same_bits(a, k, b, k)
                                                   : !op_is_near(x, y, tol))
                op_fail(t, "%s: element %lld of %lld is %.9g (%a), on the CPU %.9g (%a); bound %g",
                        op_out_name(i), (long long)k, (long long)a->count, x, x, y, y, tol);
        }
    }
}

// The first run walks the plan, the second captures it, the third launches what was captured: on
// the emulation it is what the second did.
static void check_again(op_test *t, const op_result *first)
{
    op_result r;
    t->way = "gpu, captured";
    for (int i = 0; i < (test_gpu_is_emulated() ? 1 : 2); i++) {
        op_run(t, NULL, &r);
        op_check_same(t, &r, first);
        op_result_free(&r);
    }
}

static void check_other(const char *family, const op_case *c, const char *way, op_how how,
                        const op_result *want)
{
    op_test t;
    op_result r;
    op_open(&t, family, c, way, how);
    op_run(&t, NULL, &r);
    op_check_same(&t, &r, want);
    op_result_free(&r);
    op_close(&t);
}

// TEST_GPU=short: under tools that slow kernels down a hundred times.
static bool is_short(void)
{
    const char *text = getenv("TEST_GPU");
    return text != NULL && strcmp(text, "short") == 0;
}

static void try_dtype(const char *family, const op_case *c, tt_dtype dtype)
{
    op_test cpu, gpu;
    op_result want, got;
    op_how how = {.dtype = dtype, .values = dtype, .gradient = op_has_gradient(c)};
    op_open(&cpu, family, c, "gpu", how);
    op_run(&cpu, NULL, &want);
    how.device = DEVICE;
    op_open(&gpu, family, c, "gpu", how);
    op_run(&gpu, NULL, &got);
    check_near(&gpu, &got, &want);
    if (!is_short())
        check_again(&gpu, &got);
    op_close(&gpu);
    how.no_fuse = true;
    if (!is_short())
        check_other(family, c, "gpu, unfused", how, &got);
    if (dtype == TT_F32 && !is_short()) {
        how.no_fuse = false;
        how.form = OP_AS_VARIABLES;
        check_other(family, c, "gpu, variables", how, &got);
    }
    op_result_free(&want);
    op_result_free(&got);
    op_close(&cpu);
}

// ---- the case --------------------------------------------------------------------------------

static const char *missing; // why the case's ops cannot all run there

static void look_up(const char *op)
{
    for (size_t i = 0; i < sizeof(cpu_only) / sizeof(cpu_only[0]); i++)
        if (strcmp(op, cpu_only[i].op) == 0)
            missing = cpu_only[i].why;
}

/*
 * Sums that vanish: of zeros of both signs, and of numbers so small that sums and products of a few
 * are no number any more but a zero with a sign. Which zero it is must not depend on the spread.
 */
static void try_vanishing(const char *family, const op_case *c, op_how how)
{
    static const double times[][2] = {{0, 0}, {0x1p-63, 0x1p-63}, {0x1p-125, 1}, {1, 0x1p-125}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        if (i % 2 == 1 && test_gpu_is_emulated()) // it is slow
            continue;
        how.times = times[i];
        op_try_parts(family, c, "gpu, parts that vanish", how);
    }
}

void op_try_gpu(const char *family, const op_case *c)
{
    test_need_gpu();
    missing = NULL;
    op_case_ops(c, look_up);
    if (missing != NULL)
        test_skip(missing);
    if ((c->skip & OP_NO_GPU) != 0)
        test_skip("f64 is for CPUs alone");
    bool half = (c->skip & OP_NO_HALF) == 0;
    try_dtype(family, c, TT_F32);
    if (half) {
        try_dtype(family, c, TT_BF16);
        try_dtype(family, c, TT_F16);
    }
    op_how how = {
        .dtype = TT_F32, .values = TT_F32, .gradient = op_has_gradient(c), .device = DEVICE};
    if (!is_short())
        op_try_rows(family, c, "gpu, rows", how);
    op_try_parts(family, c, "gpu, parts", how);
    if (!is_short())
        try_vanishing(family, c, how);
    how.dtype = how.values = TT_BF16;
    if (half && !is_short())
        op_try_rows(family, c, "gpu, rows", how);
}

// Every name in the tables is an op's: a bound that is misspelt would never be looked at.
TEST(gpu_bounds_name_ops)
{
    tt_ctx *ctx = test_ctx();
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        char copy[512];
        snprintf(copy, sizeof(copy), "%s", bounds[i].ops);
        for (char *save, *op = strtok_r(copy, " ", &save); op != NULL;
             op = strtok_r(NULL, " ", &save))
            ck_assert_msg(tt_op_find(ctx, op) != NULL, "no op is called '%s'", op);
        CHECK(bounds[i].f32 > 0 && bounds[i].f16 > bounds[i].f32 && bounds[i].bf16 > bounds[i].f16);
    }
    for (size_t i = 0; i < sizeof(cpu_only) / sizeof(cpu_only[0]); i++)
        CHECK(tt_op_find(ctx, cpu_only[i].op) != NULL);
    CHECK_OK(tt_close(ctx));
}

// "| `sum` `max_grad` | 1e-05 | 0.016 | 0.002 | sums in another order |": the line of a bound.
static void bound_line(const bound *b, char *out, size_t room)
{
    char copy[512];
    size_t n = (size_t)snprintf(out, room, "|");
    snprintf(copy, sizeof(copy), "%s", b->ops);
    for (char *save, *op = strtok_r(copy, " ", &save); op != NULL; op = strtok_r(NULL, " ", &save))
        n += (size_t)snprintf(out + n, room - n, " `%s`", op);
    snprintf(out + n, room - n, " | %g | %g | %g | %s |\n", b->f32, b->bf16, b->f16, b->why);
}

// What is promised is what is tested.
TEST(gpu_bounds_are_those_of_the_documentation)
{
    static char text[1 << 18];
    char line[1024];
    FILE *f = fopen("docs/arithmetic.md", "r");
    if (f == NULL)
        test_skip("docs/ is not here");
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        bound_line(&bounds[i], line, sizeof(line));
        ck_assert_msg(strstr(text, line) != NULL, "docs/arithmetic.md lacks: %s", line);
    }
}
