/*
 * sampling.c - drawing the next token (sampling.h).
 */
#include "train/sampling.h"
#include "train/scalar.h"
#include <stdlib.h>

// A score above zero is divided, one below multiplied, once per token, as PyTorch libraries do.
static void lower_seen(float *scores, int64_t n, const int32_t *text, int64_t length, double by,
                       int32_t *mark)
{
    for (int64_t i = 0; i < n; i++)
        mark[i] = 0;
    for (int64_t i = 0; i < length; i++) {
        int32_t t = text[i];
        if (t < 0 || t >= n || mark[t] != 0)
            continue;
        mark[t] = 1;
        scores[t] = (float)(scores[t] > 0 ? scores[t] / by : scores[t] * by);
    }
}

static _Thread_local const float *sorted_by;

static int higher_first(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    float x = sorted_by[i], y = sorted_by[k];
    return x > y ? -1 : x < y ? 1 : (i > k) - (i < k);
}

static int lower_first(const void *a, const void *b)
{
    return (*(const int32_t *)a > *(const int32_t *)b) -
           (*(const int32_t *)a < *(const int32_t *)b);
}

static double weight_of(const tti_sampling *s, const float *scores, int32_t i, int32_t best)
{
    return tti_scalar_exp(((double)scores[i] - scores[best]) / s->temperature);
}

// The tokens that are left, ascending, in order; gives how many.
static int64_t choose(const tti_sampling *s, const float *scores, int64_t n, int32_t best,
                      int32_t *order)
{
    int64_t left = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    bool cuts = s->top_p > 0 && s->top_p < 1;
    if (left == n && !cuts)
        return n;
    sorted_by = scores;
    qsort(order, (size_t)n, sizeof(*order), higher_first);
    double sum = 0, at = 0;
    for (int64_t i = 0; cuts && i < left; i++)
        sum += weight_of(s, scores, order[i], best);
    for (int64_t i = 0; cuts && i < left; i++) {
        at += weight_of(s, scores, order[i], best);
        if (at >= s->top_p * sum)
            left = i + 1;
    }
    qsort(order, (size_t)left, sizeof(*order), lower_first);
    return left;
}

int32_t tti_sample(const tti_sampling *s, float *scores, int64_t n, const int32_t *text,
                   int64_t length, double u, int32_t *order)
{
    int32_t best = 0;
    double sum = 0, at = 0;
    if (s->penalty > 0 && s->penalty != 1)
        lower_seen(scores, n, text, length, s->penalty, order);
    for (int64_t i = 1; i < n; i++)
        if (scores[i] > scores[best])
            best = (int32_t)i;
    if (s->temperature == 0)
        return best;
    int64_t left = choose(s, scores, n, best, order);
    for (int64_t i = 0; i < left; i++)
        sum += weight_of(s, scores, order[i], best);
    for (int64_t i = 0; i < left; i++) {
        at += weight_of(s, scores, order[i], best);
        if (at > u * sum)
            return order[i];
    }
    return best;
}
