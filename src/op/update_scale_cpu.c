/*
 * update_scale_cpu.c - kernel of update_scale.c: a few numbers, in f64 whatever the set.
 */
#include "op/simd.h"
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

tt_status TTI_ISA(update_scale)(const tt_launch *l)
{
    const tti_update_scale_attr *a = l->attr;
    double loss = number(&l->in[0]), count = number(&l->in[1]), p = number(&l->in[2]);
    double *squares = (double *)l->scratch;
    for (int i = 3; i < l->n_in; i++)
        squares[i - 3] = *(const double *)l->in[i].data;
    double s = count == 0 ? 0 : p / count;
    double norm = __builtin_sqrt(tti_tree_sum(squares, l->n_in - 3)) * s;
    bool stop = a->guard != 0 && !(is_finite(loss) && is_finite(norm));
    double scale = a->clip > 0 && norm > a->clip ? s * (a->clip / norm) : s;
    float y = stop ? __builtin_nanf("") : (float)scale;
    *(float *)l->out[0].data = y;
    *(float *)l->out[1].data = (float)norm;
    *(float *)l->out[2].data = y == y ? 1.0f : y;
    return TT_OK;
}
