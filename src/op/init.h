/*
 * init.h - how the first values of a variable are drawn: what kernels of every backend share.
 */
#ifndef TUTTI_OP_INIT_H
#define TUTTI_OP_INIT_H

#include <tutti/extend.h>

// Attributes of TTI_KERNEL_INIT, which fills output 0 with elements from `first` on of a variable.
typedef struct tti_init_attr {
    tt_init init;
    tt_shape shape; // of the whole variable
    uint64_t seed;
    uint64_t key; // hash of the variable's name
    int64_t first;
} tti_init_attr;

#define TTI_INIT_DRAWS 64 // of a truncated normal; never all used: 0.0455^64

typedef struct tti_draw {
    tt_init_kind kind; // constant, uniform, normal or truncated normal
    float a, b;
} tti_draw;

// Where no numbers are given.
#define TTI_INIT_BOUND     0.05 // of a uniform, on both sides
#define TTI_INIT_DEVIATION 0.02 // of a normal

// in and out: how many inputs an output is a sum of, and how many outputs an input goes to.
static inline tti_draw tti_draw_fans(const tt_init *init, double in, double out)
{
    tti_draw d = {init->kind, (float)init->a, (float)init->b};
    bool glorot = d.kind == TT_INIT_GLOROT_UNIFORM || d.kind == TT_INIT_GLOROT_NORMAL;
    bool lecun = d.kind == TT_INIT_LECUN_UNIFORM || d.kind == TT_INIT_LECUN_NORMAL;
    bool normal = d.kind == TT_INIT_NORMAL || d.kind == TT_INIT_TRUNCATED_NORMAL;
    double fan = glorot ? in + out : in;
    if (!(fan >= 1))
        fan = 1;
    double part = lecun ? 1 : 2; // variance times fan
    if (d.kind == TT_INIT_GLOROT_UNIFORM || d.kind == TT_INIT_HE_UNIFORM ||
        d.kind == TT_INIT_LECUN_UNIFORM) {
        d.kind = TT_INIT_UNIFORM;
        d.b = __builtin_sqrtf((float)(3 * part / fan));
        d.a = -d.b;
    } else if (d.kind == TT_INIT_GLOROT_NORMAL || d.kind == TT_INIT_HE_NORMAL ||
               d.kind == TT_INIT_LECUN_NORMAL) {
        d.kind = TT_INIT_NORMAL;
        d.a = 0;
        d.b = __builtin_sqrtf((float)(part / fan));
    } else if (d.kind == TT_INIT_UNIFORM && init->a == 0 && init->b == 0) {
        d.b = (float)TTI_INIT_BOUND;
        d.a = -d.b;
    } else if (normal && init->b == 0) {
        d.b = (float)TTI_INIT_DEVIATION;
    } else if (d.kind == TT_INIT_ZEROS) {
        d.kind = TT_INIT_CONSTANT;
        d.a = d.b = 0;
    }
    return d;
}

static inline tti_draw tti_draw_of(const tt_init *init, const tt_shape *shape)
{
    double in = 1, out = 1, window = 1;
    for (int i = 0; i + 2 < shape->rank; i++)
        window *= (double)shape->dim[i];
    if (shape->rank > 0)
        in = out = (double)shape->dim[shape->rank - 1];
    if (shape->rank > 1)
        in = (double)shape->dim[shape->rank - 2];
    return tti_draw_fans(init, in * window, out * window);
}

#endif
