/*
 * op_ways.c - the ways one case is tried: values, types, gradient, bits, rows, parts (op_test.h).
 */
#include "op_trial.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN_LIMIT 0.1 // seconds: above it "fma", the same source, stands for "plain"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool op_is_near(double a, double b, double tol)
{
    if (isnan(b) || isinf(b))
        return isnan(b) ? isnan(a) : a == b;
    return fabs(a - b) <= tol * (1 + fabs(b));
}

// "y" or "dx of input 2".
const char *op_out_name(int i)
{
    static char text[32];
    if (i == 0)
        return "y";
    snprintf(text, sizeof(text), "gradient of input %d", i - 1);
    return text;
}

bool op_is_float(tt_dtype t)
{
    return (TT_TYPES_FLOAT >> t & 1) != 0;
}

bool op_has_gradient(const op_case *c)
{
    return (c->skip & OP_NO_GRAD) == 0;
}

// Element i of a and j of b have the same bits; a NaN is only a NaN.
bool op_same_bits(const op_out *a, int64_t i, const op_out *b, int64_t j)
{
    size_t bytes = tt_dtype_bytes(a->dtype);
    if (memcmp((char *)a->data + (size_t)i * bytes, (char *)b->data + (size_t)j * bytes, bytes) ==
        0)
        return true;
    return op_is_float(a->dtype) && isnan(op_decode(a->dtype, a->data, i)) &&
           isnan(op_decode(b->dtype, b->data, j));
}

void op_fail_bits(const op_test *t, int out, const op_out *a, int64_t i, const op_out *b, int64_t j)
{
    op_fail(t, "%s: element %lld is %a where the reference has %a", op_out_name(out), (long long)i,
            op_decode(a->dtype, a->data, i), op_decode(b->dtype, b->data, j));
}

void op_check_same(const op_test *t, const op_result *r, const op_result *want)
{
    for (int i = 0; i < r->n; i++) {
        const op_out *a = &r->out[i], *b = &want->out[i];
        if (a->tensor == NULL || b->tensor == NULL)
            continue;
        for (int64_t k = 0; k < b->count; k++)
            if (!op_same_bits(a, k, b, k))
                op_fail_bits(t, i, a, k, b, k);
    }
}

// ---- values ----------------------------------------------------------------------------------

static void try_values(const char *family, const op_case *c)
{
    op_test t;
    op_result r;
    op_open(&t, family, c, "values", (op_how){.dtype = TT_F32, .values = TT_F32});
    op_run(&t, NULL, &r);
    if (c->oracle != NULL && (c->skip & OP_NO_ORACLE) == 0) {
        double *want = calloc((size_t)r.out[0].count + 1, sizeof(double));
        c->oracle(&t, want);
        for (int64_t i = 0; i < r.out[0].count; i++) {
            double got = op_decode(r.out[0].dtype, r.out[0].data, i);
            if (!op_is_near(got, want[i], c->tol > 0 ? c->tol : 1e-5))
                op_fail(&t, "element %lld of %lld is %.9g, the oracle has %.9g", (long long)i,
                        (long long)r.out[0].count, got, want[i]);
        }
        free(want);
    }
    op_result_free(&r);
    op_close(&t);
}

// ---- types -----------------------------------------------------------------------------------

// True if y is one node on inputs, so that rounding happens once.
static bool is_one_node(const tt_tensor *y)
{
    for (int i = 0; i < y->node->n_in; i++)
        if ((y->node->in[i]->node->op->flags & TT_OP_SOURCE) == 0)
            return false;
    return true;
}

static void try_type(const char *family, const op_case *c, tt_dtype dtype)
{
    op_test half, wide;
    op_result a, b;
    op_open(&half, family, c, "types",
            (op_how){.dtype = dtype, .values = dtype, .gradient = op_has_gradient(c)});
    op_open(&wide, family, c, "types", (op_how){.dtype = TT_F32, .values = dtype});
    op_run(&half, NULL, &a);
    op_run(&wide, NULL, &b);
    const op_out *y = &a.out[0];
    double tol = dtype == TT_BF16 ? 0.05 : 0.01;
    for (int64_t i = 0; i < y->count; i++) {
        double got = op_decode(y->dtype, y->data, i);
        double want = op_decode(b.out[0].dtype, b.out[0].data, i);
        bool once = is_one_node(half.y);
        if (once && op_is_float(y->dtype))
            want = op_round(y->dtype, want);
        if (once ? !(got == want || (isnan(got) && isnan(want))) : !op_is_near(got, want, tol))
            op_fail(&half, "element %lld is %.9g, the f32 op rounded gives %.9g", (long long)i, got,
                    want);
    }
    for (int i = 1; i < a.n; i++)
        for (int64_t k = 0; a.out[i].tensor != NULL && k < a.out[i].count; k++)
            if (!isfinite(op_decode(a.out[i].dtype, a.out[i].data, k)))
                op_fail(&half, "%s: element %lld is not finite", op_out_name(i), (long long)k);
    op_result_free(&a);
    op_result_free(&b);
    op_close(&half);
    op_close(&wide);
}

// ---- gradient --------------------------------------------------------------------------------

#define STEP 1e-6
// Elements of an input that are moved one by one; the rest together. The address sanitizer, under
// which kernels of f64 are slow, looks at accesses, which are the same every time.
#ifdef __SANITIZE_ADDRESS__
#define MAX_PER_ONE 4
#else
#define MAX_PER_ONE 48
#endif

// sum(y * w) for the inputs as they are now.
static double loss(op_test *t)
{
    op_result r;
    tt_tensor *dx[OP_MAX_INPUTS];
    memcpy(dx, t->dx, sizeof(dx));
    memset(t->dx, 0, sizeof(dx)); // y alone
    op_run(t, NULL, &r);
    memcpy(t->dx, dx, sizeof(dx));

    // w is open in front; y where its own open axis is.
    const tt_shape *s = &r.out[0].shape;
    tt_shape y_shape = tt_tensor_shape(t->y);
    int open = tt_open_axis(&y_shape);
    int64_t before = 1, at = 1, after = 1;
    for (int i = 0; i < s->rank; i++)
        *(open < 0 || i > open ? &after : i < open ? &before : &at) *= s->dim[i];
    double sum = 0;
    for (int64_t i = 0; i < before; i++)
        for (int64_t j = 0; j < at; j++)
            for (int64_t k = 0; k < after; k++)
                sum += op_decode(r.out[0].dtype, r.out[0].data, (i * at + j) * after + k) *
                       t->w.value[(j * before + i) * after + k];
    op_result_free(&r);
    return sum;
}

static void check_slope(op_test *t, int input, const char *what, double got, double up, double down)
{
    double want = (up - down) / (2 * STEP);
    double tol = t->c->grad_tol > 0 ? t->c->grad_tol : 1e-5;
    if (!op_is_near(got, want, tol))
        op_fail(t, "gradient of input %d, %s: %.12g, finite differences give %.12g", input, what,
                got, want);
}

static double slope_of(const op_result *r, int input, int64_t i)
{
    const op_out *o = &r->out[input + 1];
    return o->tensor == NULL ? 0 : op_decode(o->dtype, o->data, i);
}

static void check_input(op_test *t, const op_result *r, int input)
{
    op_in *in = &t->in[input];
    int64_t n = in->count < MAX_PER_ONE ? in->count : MAX_PER_ONE;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = in->count <= MAX_PER_ONE ? k : k * (in->count - 1) / (n - 1);
        double x = in->value[i];
        char what[40];
        snprintf(what, sizeof(what), "element %lld", (long long)i);
        in->value[i] = x + STEP;
        double up = loss(t);
        in->value[i] = x - STEP;
        double down = loss(t);
        in->value[i] = x;
        check_slope(t, input, what, slope_of(r, input, i), up, down);
    }
    if (n == in->count)
        return;
    double got = 0, *x = malloc(sizeof(double) * (size_t)in->count);
    memcpy(x, in->value, sizeof(double) * (size_t)in->count);
    double loss_at[2];
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < in->count; i++)
            in->value[i] = x[i] + (side ? -STEP : STEP) * sin(1.0 + (double)i);
        loss_at[side] = loss(t);
    }
    for (int64_t i = 0; i < in->count; i++)
        got += slope_of(r, input, i) * sin(1.0 + (double)i);
    memcpy(in->value, x, sizeof(double) * (size_t)in->count);
    free(x);
    check_slope(t, input, "along a direction", got, loss_at[0], loss_at[1]);
}

static void try_gradient(const char *family, const op_case *c)
{
    op_test t;
    op_result r;
    op_open(&t, family, c, "gradient",
            (op_how){.dtype = TT_F64, .values = TT_F32, .gradient = true});
    if (!op_is_float(tt_tensor_dtype(t.y)))
        op_fail(&t, "an output of integers has no gradient: the case needs OP_NO_GRAD");
    op_run(&t, NULL, &r);
    for (int i = 0; i < t.n_in; i++)
        if (!t.in[i].indices)
            check_input(&t, &r, i);
    op_result_free(&r);
    op_close(&t);
}

// ---- bits ------------------------------------------------------------------------------------

static double run_as(const char *family, const op_case *c, op_how how, op_result *r, op_result *ref)
{
    op_test t;
    op_open(&t, family, c, "bits", how);
    double start = now();
    op_run(&t, NULL, r);
    double seconds = now() - start;
    if (ref != NULL) {
        op_check_same(&t, r, ref);
        op_result_free(r);
    }
    op_close(&t);
    return seconds;
}

static void try_bits(const char *family, const op_case *c)
{
    op_how how = {.dtype = TT_F32, .values = TT_F32, .gradient = op_has_gradient(c)};
    op_result ref, r;
    int n_sets = 0;
    while (test_isa(n_sets) != NULL)
        n_sets++;
    // The last is plain; the one before it, if any, is the same source.
    how.threads = 1;
    how.isa = test_isa(n_sets > 1 ? n_sets - 2 : 0);
    double seconds = run_as(family, c, how, &ref, NULL);
    for (int set = 0; set < n_sets; set++) {
        how.isa = test_isa(set);
        if (set == n_sets - 1 && n_sets > 1 && seconds > PLAIN_LIMIT)
            continue;
        for (how.threads = 1; how.threads <= 3; how.threads++)
            run_as(family, c, how, &r, &ref);
    }
    how.isa = NULL;
    how.threads = 2;
    how.no_fuse = true;
    run_as(family, c, how, &r, &ref);
    how.no_fuse = false;
    how.form = OP_AS_VARIABLES;
    run_as(family, c, how, &r, &ref);
    how.form = OP_AS_CONSTANTS;
    run_as(family, c, how, &r, &ref);
    op_result_free(&ref);
}

// ---- all -------------------------------------------------------------------------------------

void op_run_case(const char *family, const op_case *c)
{
    try_values(family, c);
    if ((c->skip & OP_NO_HALF) == 0) {
        try_type(family, c, TT_BF16);
        try_type(family, c, TT_F16);
    }
    if (op_has_gradient(c))
        try_gradient(family, c);
    try_bits(family, c);
    op_how how = {.dtype = TT_F32, .values = TT_F32, .gradient = op_has_gradient(c)};
    op_try_rows(family, c, "rows", how);
    op_try_parts(family, c, "parts", how);
}

void op_case_nodes(const op_case *c, void (*seen)(const tt_node *n, void *user), void *user)
{
    op_test t;
    op_open(&t, "coverage", c, "coverage",
            (op_how){.dtype = TT_F32, .values = TT_F32, .gradient = op_has_gradient(c)});
    // Every node made for the case, the last one included, is an ancestor of y or of a gradient.
    const tt_node *stack[4096];
    int depth = 0;
    uint8_t *done = calloc(1 << 16, 1);
    stack[depth++] = t.y->node;
    for (int i = 0; i < t.n_in; i++)
        if (t.dx[i] != NULL)
            stack[depth++] = t.dx[i]->node;
    while (depth > 0) {
        const tt_node *n = stack[--depth];
        if (n->id >= 1 << 16 || done[n->id])
            continue;
        done[n->id] = 1;
        seen(n, user);
        for (int i = 0; i < n->n_in && depth < 4096; i++)
            stack[depth++] = n->in[i]->node;
    }
    free(done);
    op_close(&t);
}

static void tell_op(const tt_node *n, void *user)
{
    (*(void (**)(const char *))user)(n->op->name);
}

void op_case_ops(const op_case *c, void (*seen)(const char *op))
{
    op_case_nodes(c, tell_op, &seen);
}
