/*
 * update_scale_cpu.c - kernel of update_scale.c: a few numbers, in f64 whatever the set.
 */
#include "op/cpu/simd.h"
#include "op/square_sum.h"
#include "op/update_scale.h"

static double number(const tt_arg *x)
{
    return x->dtype == TT_F64 ? *(const double *)x->data : (double)*(const float *)x->data;
}

static bool is_finite(double x)
{
    return x - x == 0;
}

// Of all magnitudes from input `from` on; NaN if one is.
static float largest(const tt_launch *l, int from)
{
    float most = 0;
    for (int i = from; i < l->n_in; i++) {
        const float *x = l->in[i].data;
        for (int64_t k = 0; k < l->in[i].count; k++)
            most = x[k] <= most ? most : x[k] == x[k] ? x[k] : __builtin_nanf("");
        if (most != most)
            break;
    }
    return most;
}

tt_status TTI_ISA(update_scale)(const tt_launch *l)
{
    const tti_update_scale_attr *a = l->attr;
    double loss = number(&l->in[0]), count = number(&l->in[1]), p = number(&l->in[2]);
    double *squares = (double *)l->scratch;
    int n = l->n_in - (int)a->n_largest;
    for (int i = 3; i < n; i++)
        squares[i - 3] = *(const double *)l->in[i].data;
    double s = count == 0 ? 0 : p / count;
    double norm = __builtin_sqrt(tti_tree_sum(squares, n - 3)) * s;
    bool stop = a->guard != 0 && !(is_finite(loss) && is_finite(norm));
    double scale = a->clip > 0 && norm > a->clip ? s * (a->clip / norm) : s;
    stop |= a->guard != 0 && n < l->n_in &&
            tti_update_overflows(a, largest(l, n), l->step->grad_scale, (float)scale, l->step->lr);
    float y = stop ? __builtin_nanf("") : (float)scale;
    *(float *)l->out[0].data = y;
    *(float *)l->out[1].data = (float)norm;
    *(float *)l->out[2].data = y == y ? 1.0f : y;
    return TT_OK;
}
