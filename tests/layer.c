/*
 * layer.c - running models of a layer or two, and what they should give: see layer.h.
 */
#include "layer.h"
#include <math.h>
#include <stdlib.h>

// Blocks that live as long as the test, which is a process of its own.
typedef struct block {
    struct block *next;
    _Alignas(16) char data[];
} block;
static block *blocks;

void *test_zeros(size_t n, size_t bytes)
{
    block *b = calloc(1, sizeof(*b) + n * bytes + 16);
    CHECK(b != NULL);
    b->next = blocks;
    blocks = b;
    return b->data;
}

// The model's first output for rows records of each input, as doubles.
double *test_run_all(tt_model *m, const void *const *x, int64_t rows)
{
    tti_output out[TTI_MAX_INPUTS];
    ck_assert_msg(tti_model_outputs(m, out) > 0, "%s", tt_last_error(m->ctx).message);
    tt_feed_value feeds[TTI_MAX_INPUTS];
    for (int i = 0; i < m->n_inputs; i++) {
        tt_tensor *t = m->inputs[i]->out;
        feeds[i] = (tt_feed_value){t, x[i], t->shape, t->dtype};
        feeds[i].shape.dim[0] = rows;
    }
    int64_t n = -rows * tt_shape_count(&out[0].tensor->shape);
    float *y = calloc((size_t)n, sizeof(*y));
    tt_status st =
        tt_run(tti_model_session(m), .feeds = feeds, .n_feeds = m->n_inputs, .n_fetches = 1,
               .fetches = &(tt_fetch){out[0].tensor, y, (size_t)n * sizeof(*y)});
    ck_assert_msg(st == TT_OK, "%s", tt_last_error(m->ctx).message);
    double *d = test_zeros((size_t)n, sizeof(*d));
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)y[i];
    free(y);
    return d;
}

double *test_run(tt_model *m, const void *x)
{
    return test_run_all(m, &x, ROWS);
}

tti_weight *test_weight_find(tt_model *m, const char *name)
{
    for (int64_t i = 0; i < m->n_weights; i++)
        if (strcmp(m->weights[i].name, name) == 0)
            return &m->weights[i];
    ck_abort_msg("no weight '%s'", name);
}

// Fills a weight with numbers in [-0.9, 1.1), so that biases and norms are not trivial.
double *test_weight(tt_model *m, const char *name)
{
    tti_weight *w = test_weight_find(m, name);
    int64_t n = tt_shape_count(&w->var->shape);
    float *f = calloc((size_t)n, sizeof(*f));
    double *d = test_zeros((size_t)n, sizeof(*d));
    test_fill(f, n, tti_hash64(name, strlen(name), 7), -0.9, 1.1);
    for (int64_t i = 0; i < n; i++) {
        if (strstr(name, ".var") != NULL)
            f[i] = f[i] * f[i] + 0.5f;
        d[i] = (double)f[i];
    }
    CHECK_OK(tt_set_variable(tti_model_session(m), w->var, f, (size_t)n * sizeof(*f)));
    free(f);
    return d;
}

void test_near(const double *a, const double *b, int64_t n, double tol)
{
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(a[i] - b[i]) <= tol, "element %lld is %.9g, not %.9g", (long long)i,
                      a[i], b[i]);
}

float *test_input(int64_t n)
{
    float *x = test_zeros((size_t)n, sizeof(*x));
    test_fill(x, n, 99, -1, 1);
    return x;
}

void test_shape(const tt_tensor *t, tt_shape want)
{
    char a[TT_SHAPE_TEXT], b[TT_SHAPE_TEXT];
    tt_shape s = tt_tensor_shape(t);
    CHECK(t != NULL);
    CHECK_STR(tt_shape_text(&s, a), tt_shape_text(&want, b));
}

// y[r][o] = sum_i x[r][i] w[i][o] + b[o]
double *test_linear(const double *x, int64_t rows, int64_t in, const double *w, int64_t out,
                    const double *bias)
{
    double *y = test_zeros((size_t)(rows * out), sizeof(*y));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < out; o++) {
            double sum = bias == NULL ? 0 : bias[o];
            for (int64_t i = 0; i < in; i++)
                sum += x[r * in + i] * w[i * out + o];
            y[r * out + o] = sum;
        }
    return y;
}

double *test_doubles(const float *x, int64_t n)
{
    double *d = test_zeros((size_t)n, sizeof(*d));
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)x[i];
    return d;
}

double *test_norm(const double *x, int64_t rows, int64_t c, const double *gamma, const double *beta,
                  bool rms)
{
    double *y = test_zeros((size_t)(rows * c), sizeof(*y));
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, var = 0;
        for (int64_t i = 0; i < c && !rms; i++)
            mean += x[r * c + i] / (double)c;
        for (int64_t i = 0; i < c; i++)
            var += (x[r * c + i] - mean) * (x[r * c + i] - mean) / (double)c;
        for (int64_t i = 0; i < c; i++)
            y[r * c + i] =
                (x[r * c + i] - mean) / sqrt(var + 1e-5) * gamma[i] + (beta == NULL ? 0 : beta[i]);
    }
    return y;
}
