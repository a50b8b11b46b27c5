/*
 * attention_dnn.cuh - attention as a graph of cuDNN: bf16 and f16, heads of 8 to 128 columns.
 *
 * cuDNN knows attention by the shape of the graph, operation by operation, so what follows is the
 * arithmetic of attention.c written out, with every tensor [batch, heads, queries, keys or
 * columns]. The gradient's dq goes straight to its place: that is how the deterministic engine is
 * asked for; it holds ds as a whole in its workspace, so the batch goes through it in parts.
 */
#ifndef TUTTI_OP_ATTENTION_DNN_CUH
#define TUTTI_OP_ATTENTION_DNN_CUH

#include "cuda/dnn.h"
#include "op/attention.h"
#include <float.h>
#include <stdio.h>
#include <string.h>

#if TTI_HAS_CUDNN

// All that decides a graph; a recipe's key, so it starts as zeros.
typedef struct att_key {
    char tag[16];
    int64_t batch, heads, kv_heads, tq, tk, d, q_row, kv_row;
    double scale;
    int32_t type, causal, backward, pinned;
} att_key;

typedef struct att_plan {
    tti_dnn_graph *graph; // NULL: cuDNN cannot
    int q, k, v, y, lse;  // tensors
    int dy, delta, dq, dk, dv;
} att_plan;

// While a graph is made: its sizes, and what the mask is made with.
typedef struct att_maker {
    tti_dnn_graph *g;
    const att_key *key;
    cudnnDataType_t io, index; // of q; in which indices are computed
    int scale;
} att_maker;

static inline int att_square(const att_maker *m, cudnnDataType_t type)
{
    int64_t dim[4] = {m->key->batch, m->key->heads, m->key->tq, m->key->tk};
    return tti_dnn_virtual(m->g, type, 4, dim, NULL);
}

static inline int att_column(const att_maker *m)
{
    int64_t dim[4] = {m->key->batch, m->key->heads, m->key->tq, 1};
    return tti_dnn_virtual(m->g, CUDNN_DATA_FLOAT, 4, dim, NULL);
}

// q, dq, y, dy: heads of width d in rows of the given length.
static inline int att_rows(const att_maker *m, int64_t heads, int64_t t, int64_t row, bool turned)
{
    int64_t d = m->key->d;
    int64_t dim[4] = {m->key->batch, heads, t, d}, stride[4] = {t * row, d, row, 1};
    int64_t turned_dim[4] = {dim[0], dim[1], d, t}, turned_stride[4] = {t * row, d, 1, row};
    return tti_dnn_tensor(m->g, m->io, 4, turned ? turned_dim : dim,
                          turned ? turned_stride : stride);
}

static inline int att_lse(const att_maker *m)
{
    int64_t dim[4] = {m->key->batch, m->key->heads, m->key->tq, 1};
    return tti_dnn_tensor(m->g, CUDNN_DATA_FLOAT, 4, dim, NULL);
}

static inline int att_two(const att_maker *m, cudnnPointwiseMode_t mode, int x, int b, int y)
{
    tti_dnn_pointwise(m->g, mode, CUDNN_DATA_FLOAT, x, b, 0, y, 0);
    return y;
}

// Scores of keys beyond the query become as low as can be.
static inline int att_causal(const att_maker *m, int s)
{
    int row = att_square(m, CUDNN_DATA_INT32), col = att_square(m, CUDNN_DATA_INT32);
    int sees = att_square(m, CUDNN_DATA_BOOLEAN), out = att_square(m, CUDNN_DATA_FLOAT);
    int low = tti_dnn_scalar(m->g, 4, -FLT_MAX);
    tti_dnn_pointwise(m->g, CUDNN_POINTWISE_GEN_INDEX, m->index, s, 0, 0, row, 2);
    tti_dnn_pointwise(m->g, CUDNN_POINTWISE_GEN_INDEX, m->index, s, 0, 0, col, 3);
    tti_dnn_pointwise(m->g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, col, 0, sees, 0);
    tti_dnn_pointwise(m->g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, s, low, sees, out, 0);
    return out;
}

static inline int att_scores(const att_maker *m, int q, int k_turned)
{
    int raw = att_square(m, CUDNN_DATA_FLOAT);
    tti_dnn_matmul(m->g, q, k_turned, raw);
    return att_two(m, CUDNN_POINTWISE_MUL, raw, m->scale, att_square(m, CUDNN_DATA_FLOAT));
}

static inline void att_make_forward(const att_maker *m, att_plan *p)
{
    const att_key *key = m->key;
    p->q = att_rows(m, key->heads, key->tq, key->q_row, false);
    p->k = att_rows(m, key->kv_heads, key->tk, key->kv_row, true);
    p->v = att_rows(m, key->kv_heads, key->tk, key->kv_row, false);
    p->y = att_rows(m, key->heads, key->tq, key->heads * key->d, false);
    p->lse = att_lse(m);
    int s = att_scores(m, p->q, p->k);
    if (key->causal)
        s = att_causal(m, s);
    int max = att_column(m), sum = att_column(m), log = att_column(m);
    tti_dnn_reduce(m->g, CUDNN_REDUCE_TENSOR_MAX, s, max);
    int less = att_two(m, CUDNN_POINTWISE_SUB, s, max, att_square(m, CUDNN_DATA_FLOAT));
    int e = att_two(m, CUDNN_POINTWISE_EXP, less, 0, att_square(m, CUDNN_DATA_FLOAT));
    tti_dnn_reduce(m->g, CUDNN_REDUCE_TENSOR_ADD, e, sum);
    att_two(m, CUDNN_POINTWISE_LOG, sum, 0, log);
    att_two(m, CUDNN_POINTWISE_ADD, max, log, p->lse);
    int w = att_two(m, CUDNN_POINTWISE_DIV, e, sum, att_square(m, m->io));
    tti_dnn_matmul(m->g, w, p->v, p->y);
}

// [queries, keys] as [keys, queries], rounded to the type of q.
static inline int att_turn(const att_maker *m, int x)
{
    const att_key *key = m->key;
    int64_t all = key->tq * key->tk;
    int64_t dim[4] = {key->batch, key->heads, key->tk, key->tq};
    int64_t stride[4] = {key->heads * all, all, 1, key->tk};
    int y = tti_dnn_virtual(m->g, m->io, 4, dim, stride);
    tti_dnn_reshape(m->g, x, y);
    return y;
}

// dk or dv: weights, turned, times rows of the queries; summed over the heads that share a key.
static inline void att_by_key(const att_maker *m, int w, int x, int out)
{
    const att_key *key = m->key;
    int64_t dim[4] = {key->batch, key->heads, key->tk, key->d};
    if (key->heads == key->kv_heads) {
        tti_dnn_matmul(m->g, w, x, out);
        return;
    }
    int each = tti_dnn_virtual(m->g, m->io, 4, dim, NULL);
    tti_dnn_matmul(m->g, w, x, each);
    tti_dnn_reduce(m->g, CUDNN_REDUCE_TENSOR_ADD, each, out);
}

static inline void att_make_delta(const att_maker *m, att_plan *p)
{
    const att_key *key = m->key;
    int64_t dim[4] = {key->batch, key->heads, key->tq, key->d};
    int64_t stride[4] = {key->heads * key->tq * key->d, key->tq * key->d, key->heads * key->d, 1};
    int one = tti_dnn_scalar(m->g, 4, 1), raw = att_column(m);
    int each = tti_dnn_virtual(m->g, CUDNN_DATA_FLOAT, 4, dim, stride);
    p->delta = att_lse(m);
    att_two(m, CUDNN_POINTWISE_MUL, p->dy, p->y, each);
    tti_dnn_reduce(m->g, CUDNN_REDUCE_TENSOR_ADD, each, raw);
    att_two(m, CUDNN_POINTWISE_MUL, raw, one, p->delta);
}

static inline void att_make_backward(const att_maker *m, att_plan *p)
{
    const att_key *key = m->key;
    cudnnDataType_t f = CUDNN_DATA_FLOAT;
    int64_t k_dim[4] = {key->batch, key->kv_heads, key->tk, key->d};
    int64_t k_stride[4] = {key->tk * key->kv_row, key->d, key->kv_row, 1};
    p->q = att_rows(m, key->heads, key->tq, key->q_row, false);
    p->k = att_rows(m, key->kv_heads, key->tk, key->kv_row, true);
    p->v = att_rows(m, key->kv_heads, key->tk, key->kv_row, true);
    p->y = att_rows(m, key->heads, key->tq, key->heads * key->d, false);
    p->dy = att_rows(m, key->heads, key->tq, key->heads * key->d, false);
    p->dq = att_rows(m, key->heads, key->tq, key->q_row, false);
    p->dk = att_rows(m, key->kv_heads, key->tk, key->kv_row, false);
    p->dv = att_rows(m, key->kv_heads, key->tk, key->kv_row, false);
    p->lse = att_lse(m);
    att_make_delta(m, p);

    int s = att_scores(m, p->q, p->k);
    s = att_two(m, CUDNN_POINTWISE_SUB, s, p->lse, att_square(m, f));
    if (key->causal)
        s = att_causal(m, s);
    int w = att_two(m, CUDNN_POINTWISE_EXP, s, 0, att_square(m, f));
    att_by_key(m, att_turn(m, w), p->dy, p->dv);

    int raw = att_square(m, f);
    tti_dnn_matmul(m->g, p->dy, p->v, raw);
    int ds = att_two(m, CUDNN_POINTWISE_SUB, raw, p->delta, att_square(m, f));
    ds = att_two(m, CUDNN_POINTWISE_MUL, ds, w, att_square(m, f));
    ds = att_two(m, CUDNN_POINTWISE_MUL, ds, m->scale, att_square(m, f));
    att_by_key(m, att_turn(m, ds), p->q, p->dk);

    int k = tti_dnn_virtual(m->g, f, 4, k_dim, k_stride);
    tti_dnn_reshape(m->g, p->k, k);
    tti_dnn_matmul(m->g, ds, k, p->dq);
}

// One try: indices computed in a type, engines without some notes, perhaps just one engine.
static inline bool att_try(tti_cuda_device *d, const att_key *key, att_plan *p,
                           cudnnDataType_t index, const tti_dnn_opts *opts, char why[320])
{
    att_maker m = {tti_dnn_graph_new(d), key, tti_dnn_type((tt_dtype)key->type), index, 0};
    if (m.g == NULL)
        return false;
    m.scale = tti_dnn_scalar(m.g, 4, (float)key->scale);
    if (key->backward)
        att_make_backward(&m, p);
    else
        att_make_forward(&m, p);
    if (tti_dnn_build(m.g, opts)) {
        p->graph = m.g;
        return true;
    }
    snprintf(why, 320, "%s", tti_dnn_why(m.g));
    tti_dnn_graph_free(m.g);
    return false;
}

static inline void att_drop(void *recipe)
{
    tti_dnn_graph_free(((att_plan *)recipe)->graph);
}

// The plan for a key, made when it is first asked for; NULL: there is none. choice may be NULL.
static inline att_plan *att_plan_find(tti_cuda_device *d, const att_key *key,
                                      const tti_dnn_choice *choice)
{
    static const cudnnDataType_t index[2] = {CUDNN_DATA_FLOAT, CUDNN_DATA_INT32};
    char why[320] = "";
    bool is_new, ok = false;
    att_plan *p = (att_plan *)tti_recipe_get(d, key, sizeof(*key), sizeof(*p), att_drop, &is_new);
    if (p == NULL || !is_new)
        return p != NULL && p->graph != NULL ? p : NULL;
    tti_dnn_opts opts = {};
    opts.choice = choice;
    for (int i = 0; i < 2 && choice != NULL && !ok; i++)
        ok = att_try(d, key, p, index[i], &opts, why);
    // The graph's form asks for what is deterministic; an engine that cannot be otherwise comes
    // first all the same.
    opts.choice = NULL;
    for (int i = 0; i < 4 && !ok; i++) {
        opts.refuse = i < 2 ? TTI_DNN_NOTE(NONDETERMINISTIC) : 0;
        ok = att_try(d, key, p, index[i % 2], &opts, why);
    }
    char text[480];
    snprintf(text, sizeof(text),
             ok ? "attention%s on %s: cuDNN's engine %lld, %zu bytes of workspace"
                : "attention%s on %s: our own kernel: cuDNN has no plan: ",
             key->backward ? " gradient" : "", d->name,
             ok ? (long long)tti_dnn_chosen(p->graph)->engine : 0,
             ok ? tti_dnn_workspace(p->graph) : 0);
    if (!ok)
        strncat(text, why, sizeof(text) - strlen(text) - 1);
    tti_cuda_host_api->log(d->ctx, ok ? TT_DEBUG : TT_INFO, text);
    return ok ? p : NULL;
}

#endif
#endif
