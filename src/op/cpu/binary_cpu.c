/*
 * binary_cpu.c - kernels of two operands, where, and broadcast.
 *
 * An op is a table of loops by element type, each over contiguous operands; the driver brings every
 * operand into that form: what does not advance is repeated in a tile, bf16 and f16 are widened in
 * a tile and rounded after it. The loops are plain C, which compilers turn into vectors; none
 * rounds differently in a vector. Integers wrap.
 */
#include "op/binary.h"
#include "op/cpu/half.h"
#include "op/cpu/vmath.h"
#include "op/walk.h"

#define TILE 512

typedef void (*loop_fn)(const void *const *in, void *out, int64_t n);

#if defined(TTI_SET_F64)
#define REAL_TYPE TT_F64
#else
#define REAL_TYPE TT_F32
#endif

static inline bool is_half(tt_dtype t)
{
    return t == TT_BF16 || t == TT_F16;
}

// n copies of the element at x.
static void repeat(void *y, const void *x, size_t bytes, int64_t n)
{
    uint64_t v = 0;
    memcpy(&v, x, bytes);
    switch (bytes) {
    case 1:
        memset(y, (int)v, (size_t)n);
        return;
    case 2:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)y)[i] = (uint16_t)v;
        return;
    case 4:
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)y)[i] = (uint32_t)v;
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)y)[i] = v;
    }
}

static void widen(tt_dtype t, const uint16_t *x, real *y, int64_t n)
{
    if (t == TT_BF16)
        tti_widen_bf16(x, y, n);
    else
        tti_widen_f16(x, y, n);
}

typedef struct driver {
    const loop_fn *loops; // by element type
    int n_in;
    bool bits;    // where: elements are moved, never widened
    loop_fn loop; // the one in use
    size_t size[TTI_WALK_MAX];
    const char *in[TTI_WALK_MAX];
    _Alignas(64) char tile[TTI_WALK_MAX + 1][TILE * 8];
} driver;

// Operand k from element `at` on, n of them, contiguous and of the loop's type.
static const void *operand(driver *d, const tt_launch *l, int k, int64_t at, bool moves, int64_t n)
{
    const char *p = d->in[k] + at * (int64_t)d->size[k];
    bool half = !d->bits && is_half(l->in[k].dtype);
    if (!half && moves)
        return p;
    if (half)
        widen(l->in[k].dtype, (const uint16_t *)p, (real *)d->tile[k], moves ? n : 1);
    if (!moves) {
        char one[8];
        memcpy(one, half ? d->tile[k] : p, half ? sizeof(real) : d->size[k]);
        repeat(d->tile[k], one, half ? sizeof(real) : d->size[k], n);
    }
    return d->tile[k];
}

static void run_tiles(driver *d, const tt_launch *l, const tti_run *r)
{
    const tt_arg *out = &l->out[0];
    size_t size = tt_dtype_bytes(out->dtype);
    bool half_out = !d->bits && is_half(out->dtype), tiled = half_out;
    for (int k = 0; k < d->n_in; k++)
        tiled |= !r->moves[k] || (!d->bits && is_half(l->in[k].dtype));
    int64_t step = tiled ? TILE : r->n;
    const void *in[TTI_WALK_MAX] = {NULL};
    for (int64_t i = 0; i < r->n; i += step) {
        int64_t n = r->n - i < step ? r->n - i : step;
        char *y = (char *)out->data + (r->out + i) * (int64_t)size;
        for (int k = 0; k < d->n_in; k++)
            if (r->moves[k] || i == 0)
                in[k] = operand(d, l, k, r->at[k] + (r->moves[k] ? i : 0), r->moves[k], n);
        d->loop(in, half_out ? (void *)d->tile[TTI_WALK_MAX] : y, n);
        if (half_out && out->dtype == TT_BF16)
            tti_round_bf16((real *)d->tile[TTI_WALK_MAX], (uint16_t *)y, n);
        else if (half_out)
            tti_round_f16((real *)d->tile[TTI_WALK_MAX], (uint16_t *)y, n);
    }
}

// Repeats [c] so that a run over [rows, c] spans many rows; buf has room for TILE elements of each.
static void repeat_rows(driver *d, tti_walk *w, char (*buf)[TILE * 8])
{
    int64_t times = tti_walk_repeats(w, TILE);
    for (int k = 0; times > 0 && k < d->n_in; k++) {
        if (w->stride[k][0] == 1 && w->stride[k][1] == 0) {
            size_t bytes = (size_t)w->dim[0] * d->size[k];
            for (int64_t t = 0; t < times; t++)
                memcpy(buf[k] + (size_t)t * bytes, d->in[k], bytes);
            d->in[k] = buf[k];
        } else {
            w->stride[k][1] *= times;
        }
    }
    if (times > 0)
        w->dim[0] *= times;
}

#define GATHER(T)                      \
    for (int64_t i = 0; i < r->n; i++) \
    ((T *)to)[i] = ((const T *)x)[r->moves[k] ? i : 0]

// Short runs that do not repeat: TILE elements of every operand are brought together in buf.
static tti_run gather(driver *d, const tti_walk *w, tti_cursor *c, int64_t end,
                      char (*buf)[TILE * 8])
{
    tti_run all = {.out = c->out, .moves = {true, true, true}};
    end = end - c->out < TILE ? end : c->out + TILE;
    while (c->out < end) {
        tti_run one = tti_walk_run(w, c, end), *r = &one;
        for (int k = 0; k < d->n_in; k++) {
            char *to = buf[k] + all.n * (int64_t)d->size[k];
            const char *x = d->in[k] + r->at[k] * (int64_t)d->size[k];
            switch (d->size[k]) {
            case 1:
                GATHER(uint8_t);
                break;
            case 2:
                GATHER(uint16_t);
                break;
            case 4:
                GATHER(uint32_t);
                break;
            default:
                GATHER(uint64_t);
            }
        }
        all.n += r->n;
    }
    return all;
}

#define SHORT 64 // runs below this are gathered

// Elements [begin, end) of the output.
static tt_status drive(driver *d, const tt_launch *l, tt_dtype type)
{
    tti_walk w;
    _Alignas(64) char buf[TTI_WALK_MAX][TILE * 8];
    d->loop = d->loops[!d->bits && is_half(type) ? REAL_TYPE : type];
    if (d->loop == NULL)
        return TT_EUNSUPPORTED;
    tti_walk_make(&w, &l->out[0], l->in, d->n_in);
    for (int k = 0; k < d->n_in; k++) {
        d->in[k] = l->in[k].data;
        d->size[k] = tt_dtype_bytes(l->in[k].dtype);
    }
    repeat_rows(d, &w, buf);
    tti_cursor c = tti_walk_start(&w, l->begin);
    if (w.rank == 1 || w.dim[0] >= SHORT) {
        while (c.out < l->end) {
            tti_run r = tti_walk_run(&w, &c, l->end);
            run_tiles(d, l, &r);
        }
        return TT_OK;
    }
    driver direct = *d;
    for (int k = 0; k < d->n_in; k++)
        d->in[k] = buf[k];
    while (c.out < l->end) {
        tti_run r = gather(&direct, &w, &c, l->end, buf);
        run_tiles(d, l, &r);
    }
    return TT_OK;
}

// ---- loops -----------------------------------------------------------------------------------

#define LOOP(name_, T, R, expr_)                                   \
    static void name_(const void *const *in, void *out, int64_t n) \
    {                                                              \
        const T *pa = in[0], *pb = in[1];                          \
        R *py = out;                                               \
        TTI_IVDEP for (int64_t i = 0; i < n; i++)                  \
        {                                                          \
            T a = pa[i], b = pb[i];                                \
            py[i] = (R)(expr_);                                    \
        }                                                          \
    }
#define KERNEL(name_, ...)                                       \
    tt_status TTI_ISA(tti_binary_##name_)(const tt_launch *l)    \
    {                                                            \
        static const loop_fn loops[TT_N_DTYPES] = {__VA_ARGS__}; \
        driver d;                                                \
        d.loops = loops;                                         \
        d.n_in = 2;                                              \
        d.bits = false;                                          \
        return drive(&d, l, l->in[0].dtype);                     \
    }
#define NUMBERS(n_)                                                                     \
    [TT_F32] = n_##_f32, [TT_F64] = n_##_f64, [TT_I32] = n_##_i32, [TT_I64] = n_##_i64, \
    [TT_U8] = n_##_u8
#define FLOATS(name_, expr_)               \
    LOOP(name_##_f32, float, float, expr_) \
    LOOP(name_##_f64, double, double, expr_)

// Sums and products of integers are those of unsigned numbers, cut to size. Of bools: or, and.
#define ARITHMETIC(name_, expr_)                 \
    FLOATS(name_, expr_)                         \
    LOOP(name_##_i32, uint32_t, uint32_t, expr_) \
    LOOP(name_##_i64, uint64_t, uint64_t, expr_) \
    LOOP(name_##_u8, uint8_t, uint8_t, expr_)
#define ORDER(name_, expr_)                    \
    FLOATS(name_, a != a ? a : (expr_))        \
    LOOP(name_##_i32, int32_t, int32_t, expr_) \
    LOOP(name_##_i64, int64_t, int64_t, expr_) \
    LOOP(name_##_u8, uint8_t, uint8_t, expr_)
#define COMPARE(name_, expr_)                  \
    LOOP(name_##_f32, float, uint8_t, expr_)   \
    LOOP(name_##_f64, double, uint8_t, expr_)  \
    LOOP(name_##_i32, int32_t, uint8_t, expr_) \
    LOOP(name_##_i64, int64_t, uint8_t, expr_) \
    LOOP(name_##_u8, uint8_t, uint8_t, expr_)  \
    KERNEL(name_, NUMBERS(name_), [TT_BOOL] = name_##_u8)

// A NaN of either operand stays one.
ORDER(minimum, a < b ? a : b)
ORDER(maximum, a > b ? a : b)
ARITHMETIC(add, a + b)
ARITHMETIC(sub, a - b)
ARITHMETIC(mul, a *b)
FLOATS(div, a / b)
LOOP(logical_and_u8, uint8_t, uint8_t, a &b)
LOOP(logical_or_u8, uint8_t, uint8_t, a | b)

static void pow_real(const void *const *in, void *out, int64_t n)
{
    const real *a = in[0], *b = in[1];
    real *y = out;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store(y + i, v16_pow(v16_load(a + i), v16_load(b + i)));
    if (i < n) {
        int m = (int)(n - i);
        v16_store_n(y + i, v16_pow(v16_load_n(a + i, m), v16_load_n(b + i, m)), m);
    }
}

KERNEL(minimum, NUMBERS(minimum), [TT_BOOL] = minimum_u8)
KERNEL(maximum, NUMBERS(maximum), [TT_BOOL] = maximum_u8)
KERNEL(add, NUMBERS(add), [TT_BOOL] = logical_or_u8)
KERNEL(sub, NUMBERS(sub))
KERNEL(mul, NUMBERS(mul), [TT_BOOL] = logical_and_u8)
KERNEL(div, [TT_F32] = div_f32, [TT_F64] = div_f64)
KERNEL(pow, [REAL_TYPE] = pow_real)
KERNEL(logical_and, [TT_BOOL] = logical_and_u8)
KERNEL(logical_or, [TT_BOOL] = logical_or_u8)
COMPARE(equal, a == b)
COMPARE(not_equal, a != b)
COMPARE(less, a < b)
COMPARE(less_equal, a <= b)
COMPARE(greater, a > b)
COMPARE(greater_equal, a >= b)

// ---- where and broadcast: elements of 1, 2, 4 or 8 bytes -------------------------------------

#define PICK(name_, T)                                             \
    static void name_(const void *const *in, void *out, int64_t n) \
    {                                                              \
        const uint8_t *c = in[0];                                  \
        const T *a = in[1], *b = in[2];                            \
        T *y = out;                                                \
        TTI_IVDEP for (int64_t i = 0; i < n; i++)                  \
        {                                                          \
            T u = a[i], v = b[i];                                  \
            y[i] = c[i] ? u : v;                                   \
        }                                                          \
    }
PICK(pick_1, uint8_t)
PICK(pick_2, uint16_t)
PICK(pick_4, uint32_t)
PICK(pick_8, uint64_t)

tt_status TTI_ISA(tti_binary_where)(const tt_launch *l)
{
    static const loop_fn loops[TT_N_DTYPES] = {
        [TT_F32] = pick_4, [TT_F64] = pick_8, [TT_BF16] = pick_2, [TT_F16] = pick_2,
        [TT_I32] = pick_4, [TT_I64] = pick_8, [TT_U8] = pick_1,   [TT_BOOL] = pick_1};
    driver d;
    d.loops = loops;
    d.n_in = 3;
    d.bits = true;
    return drive(&d, l, l->out[0].dtype);
}

tt_status TTI_ISA(tti_binary_broadcast)(const tt_launch *l)
{
    size_t bytes = tt_dtype_bytes(l->out[0].dtype);
    tti_walk w;
    tti_walk_make(&w, &l->out[0], l->in, 1);
    tti_cursor c = tti_walk_start(&w, l->begin);
    while (c.out < l->end) {
        tti_run r = tti_walk_run(&w, &c, l->end);
        char *y = (char *)l->out[0].data + r.out * (int64_t)bytes;
        const char *x = (const char *)l->in[0].data + r.at[0] * (int64_t)bytes;
        if (r.moves[0])
            memcpy(y, x, (size_t)r.n * bytes);
        else
            repeat(y, x, bytes, r.n);
    }
    return TT_OK;
}
