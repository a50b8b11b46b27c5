/*
 * loss_weight.c - weights of records and of classes: each term is multiplied by its weight, and the
 * loss is divided by the sum of the weights, which is a lane sum as the count of labels is.
 */
#include "op/op.h"
#include "train/loss.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- "0=1, 3=2.5" ----------------------------------------------------------------------------

static const char *skip(const char *s)
{
    return s + strspn(s, " ,");
}

// Reads one pair; *length is that of its text. False: it is none.
static bool read_pair(const char *s, int *length, int64_t *at, double *value)
{
    char *end;
    *length = (int)strcspn(s, ",");
    *at = strtoll(s, &end, 10);
    end += strspn(end, " ");
    if (end == s || *end != '=')
        return false;
    const char *number = end + 1 + strspn(end + 1, " ");
    *value = strtod(number, &end);
    end += strspn(end, " ");
    return end != number && end == s + *length;
}

tt_status tti_class_weights(tt_ctx *ctx, const tt_loss *l, const char *output, int64_t n,
                            float *out)
{
    const char *kind = tti_loss_name(l->kind);
    for (int64_t i = 0; i < n; i++)
        out[i] = 1;
    for (const char *s = skip(l->class_weight); *s != '\0';) {
        int length;
        int64_t at;
        double value;
        if (!read_pair(s, &length, &at, &value))
            return TT_FAIL(ctx, TT_EINVAL,
                           "%s: class_weight: '%.*s' is not a class and its weight, as in 3=2.5",
                           kind, length, s);
        if (at < 0 || at >= n)
            return TT_FAIL(
                ctx, TT_EINVAL,
                "%s: class_weight: '%.*s': there is no class %lld; output '%.*s' has the "
                "classes 0 to %lld",
                kind, length, s, (long long)at, (int)strcspn(output, "/"), output,
                (long long)(n - 1));
        if (!(value >= 0 && value <= 1e30))
            return TT_FAIL(ctx, TT_EINVAL, "%s: class_weight: '%.*s': a weight must be 0 to 1e30",
                           kind, length, s);
        out[at] = (float)value;
        s = skip(s + length);
    }
    return TT_OK;
}

// ---- weights as tensors ----------------------------------------------------------------------

static bool is_binary(tt_loss_kind kind)
{
    return kind == TT_BINARY_CROSS_ENTROPY || kind == TT_BINARY_FOCAL || kind == TT_HINGE ||
           kind == TT_SQUARED_HINGE;
}

static tt_tensor *f32(tt_graph *g, tt_tensor *x)
{
    return x == NULL || x->dtype == TT_F64 ? x : tt_cast(g, x, TT_F32);
}

// The weight of each term by the class of its target; terms are like it.
static tt_status by_class(tt_graph *g, const tt_loss *l, const tt_tensor *z, tt_tensor *target,
                          const tt_tensor *terms, tt_tensor **out)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    bool binary = is_binary(l->kind);
    if (!binary && !tti_loss_has_labels(l->kind))
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s: class_weight is an option of losses of classes; use sample_weight",
                       tti_loss_name(l->kind));
    int64_t n = binary ? 2 : z->shape.dim[z->shape.rank - 1];
    float *list = tti_calloc(ctx, (size_t)n, sizeof(*list));
    if (list == NULL)
        return TT_ENOMEM;
    tt_status st = tti_class_weights(ctx, l, tt_tensor_name(z), n, list);
    tt_tensor *t = target;
    if (st == TT_OK && binary) { // a line from one weight to the other
        t = tt_scale(g, f32(g, t), (double)list[1] - (double)list[0], list[0]);
        if (t != NULL && t->shape.rank + 1 == terms->shape.rank)
            t = tt_expand_dims(g, t, -1);
    } else if (st == TT_OK) {
        tt_tensor *table = tt_const(g, TT_F32, TT_SHAPE(n), list);
        if (tti_is_float(t->dtype)) { // probabilities: the mean
            t = tt_sum(g, tt_mul(g, f32(g, t), tt_cast(g, table, f32(g, t)->dtype)), .axis = -1);
        } else {
            if (l->has_ignore) // an ignored label may be no class
                t = tt_where(g, tt_cast(g, tti_loss_mask(g, l, t), TT_BOOL), t,
                             tt_fill(g, t->dtype, TT_SCALAR, 0));
            t = tt_gather(g, table, t, 0);
        }
    }
    tti_free(ctx, list);
    *out = t;
    return st != TT_OK ? st : tt_status_of(ctx);
}

// [batch] as [batch, 1, ...], of the terms' rank.
static tt_tensor *of_records(tt_graph *g, tt_tensor *w, const tt_tensor *terms)
{
    while (w != NULL && w->shape.rank < terms->shape.rank)
        w = tt_expand_dims(g, w, -1);
    return w;
}

tt_status tti_loss_weigh(tt_graph *g, const tt_loss *l, const tt_tensor *z, tt_tensor *target,
                         tt_tensor *sample_weight, tt_tensor **terms, tt_tensor **count)
{
    tt_ctx *ctx = tt_graph_get_ctx(g);
    tt_tensor *w = NULL, *x = *terms = f32(g, *terms);
    if (x == NULL)
        return tt_status_of(ctx);
    if (l->class_weight != NULL)
        TT_TRY(by_class(g, l, z, target, x, &w));
    if (sample_weight != NULL) {
        tt_tensor *one = of_records(g, sample_weight, x);
        w = w == NULL ? one : tt_mul(g, w, one);
    }
    if (l->has_ignore) {
        tt_tensor *mask = tti_loss_mask(g, l, target);
        w = w == NULL ? mask : tt_mul(g, w, mask);
    }
    w = w == NULL ? NULL : tt_cast(g, w, x->dtype);
    if (w == NULL)
        return tt_status_of(ctx);
    *terms = tt_mul(g, x, w);
    *count = tt_sum(g, f32(g, tt_broadcast(g, w, x)));
    return tt_status_of(ctx);
}
