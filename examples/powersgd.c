/*
 * powersgd.c - gradients sent between replicas as products of two thin matrices (PowerSGD, Vogels
 * et al. 2019), by a hook on each bucket of gradients. What that leaves out of a step is added to
 * the gradient of the next one. Between processes the hook is the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

enum {
    RANK = 4,
    REPLICAS = 4,
    BUCKETS = 8,
    EACH = 8
};
typedef struct
    low_rank { // of one weight [rows, cols], per replica: M is about p q', error the rest
    float *p[REPLICAS], *q[REPLICAS], *error[REPLICAS];
} low_rank;
static low_rank state[BUCKETS][EACH];
static double sent, whole; // numbers sent, and without the hook

static tt_status sum(const tt_bucket *b, float *const *data, int64_t count)
{
    tt_member m[REPLICAS];
    for (int r = 0; r < b->n_replicas; r++)
        m[r] = (tt_member){.in = data[r], .out = data[r], .count = count};
    sent += (double)count;
    return tt_all_reduce(b->comm, m, .fast = true);
}

// out[i][k] = sum over j of a[i][j] x[j][k]; a is [n, m], or [m, n] if it is transposed.
static void multiply(const float *a, const float *x, float *out, int64_t n, int64_t m,
                     int transposed)
{
    memset(out, 0, sizeof(float) * (size_t)(n * RANK));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++)
            for (int k = 0; k < RANK; k++)
                out[i * RANK + k] += (transposed ? a[j * n + i] : a[i * m + j]) * x[j * RANK + k];
}

static void orthogonalize(float *p, int64_t n) // Gram-Schmidt over its columns
{
    for (int k = 0; k < RANK; k++) {
        for (int other = 0; other <= k; other++) { // the last pass, with itself, is its length
            double dot = 1e-20;
            for (int64_t i = 0; i < n; i++)
                dot += (double)p[i * RANK + k] * p[i * RANK + other];
            for (int64_t i = 0; i < n; i++)
                p[i * RANK + k] = other < k ? p[i * RANK + k] - (float)dot * p[i * RANK + other]
                                            : p[i * RANK + k] / (float)__builtin_sqrt(dot);
        }
    }
}

static tt_status compress(const tt_bucket *b, int at, low_rank *s)
{
    int64_t n = b->gradients[at].shape.dim[0], m = b->gradients[at].count / n;
    for (int r = 0; r < b->n_replicas; r++) {
        float *g = b->gradients[r * b->n_gradients + at].data;
        if (s->p[r] == NULL) {
            s->p[r] = calloc((size_t)(n * RANK), sizeof(float));
            s->q[r] = calloc((size_t)(m * RANK), sizeof(float));
            s->error[r] = calloc((size_t)(n * m), sizeof(float));
            for (int64_t i = 0; i < m * RANK; i++) // any start, the same everywhere
                s->q[r][i] = (float)((i * 7919 + 13) % 1009) / 1009 - 0.5f;
        }
        for (int64_t i = 0; i < n * m; i++)
            g[i] += s->error[r][i];
        multiply(g, s->q[r], s->p[r], n, m, 0);
    }
    tt_status st = sum(b, s->p, n * RANK);
    for (int r = 0; r < b->n_replicas; r++) {
        orthogonalize(s->p[r], n);
        multiply(b->gradients[r * b->n_gradients + at].data, s->p[r], s->q[r], m, n, 1);
    }
    for (int pass = 0; st == TT_OK && pass < 2; pass++) { // what this replica leaves out; the sum
        for (int r = 0; r < b->n_replicas; r++)
            for (int64_t i = 0; i < n * m; i++) {
                float *g = &b->gradients[r * b->n_gradients + at].data[i], near = 0;
                for (int k = 0; k < RANK; k++)
                    near += s->p[r][i / m * RANK + k] * s->q[r][i % m * RANK + k];
                s->error[r][i] = pass == 0 ? *g - near : s->error[r][i];
                *g = pass == 0 ? *g : near;
            }
        st = pass == 0 ? sum(b, s->q, m * RANK) : st;
    }
    return st;
}

static tt_status hook(void *user, const tt_bucket *b)
{
    tt_status st = TT_OK;
    (void)user;
    for (int i = 0; st == TT_OK && i < b->n_gradients; i++) {
        const tt_gradient *g = &b->gradients[i];
        float *data[REPLICAS];
        for (int r = 0; r < b->n_replicas; r++)
            data[r] = g[r * b->n_gradients].data;
        int64_t n = g->shape.dim[0], m = g->count / n;
        whole += (double)g->count;
        st = 2 * RANK * (n + m) < n * m ? compress(b, i, &state[b->index][i])
                                        : sum(b, data, g->count);
    }
    return st;
}

int main(void)
{
    tt_ctx *ctx = tt_open(.strategy = "mirrored", .devices = "cpu:0*4", .seed = 1,
                          .spread = tt_spread(.reduce = TT_REDUCE_FAST));
    tt_data *digits = tt_digits(ctx, .count = 3200, .batch = 32);
    tt_data *unseen = tt_digits(ctx, .count = 1000, .first = 3200, .batch = 32);
    tt_model *model = tt_sequential(ctx, .input = {28, 28, 1});
    tt_layer_flatten(model);
    tt_layer_dense(model, .units = 128, .act = TT_RELU);
    tt_layer_dense(model, .units = 10);
    tt_compile(model, .loss = TT_CROSS_ENTROPY, .optimizer = tt_sgd(.lr = 0.1, .momentum = 0.9),
               .metrics = TT_ACCURACY, .bucket_hook = hook);
    tt_fit(model, digits, .epochs = 2);
    tt_evaluation e = {0};
    tt_evaluate(model, unseen, &e);
    printf("accuracy %.3f; sent %.1f%% of the gradients\n", e.metrics[0], 100 * sent / whole);
    return tt_close(ctx) == TT_OK && e.metrics[0] > 0.9 && sent < whole / 4 ? 0 : 1;
}
