/*
 * op_test.c - tries one case of an op in every way that op_test.h names.
 *
 * A trial is one context with the case's graph in it: built with an element type, an instruction
 * set, a number of threads and a way for the inputs to enter. Input values are kept in double and
 * rounded to the type under test, so that every trial of a case sees the same numbers. Running a
 * trial on some rows gives results: y first, then the gradient of sum(y * w) by each input.
 */
#include "op_trial.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// ---- what cases call -------------------------------------------------------------------------

static tt_shape bind(tt_shape s, int64_t rows)
{
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] < 0)
            s.dim[i] = -s.dim[i] * rows;
    return s;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// In [0, 1), by input and element.
static double number(int input, int64_t i)
{
    return (double)(mix((uint64_t)(input + 1) * 0x9e3779b97f4a7c15u + (uint64_t)i) >> 11) * 0x1p-53;
}

// x as the trial has it; a factor of zero keeps its sign.
static double scaled(const op_test *t, bool is_dy, double x)
{
    return op_round(t->how.values, t->how.times == NULL ? x : x * t->how.times[is_dy]);
}

static tt_tensor *enter(op_test *t, op_in *in)
{
    bool open = tt_open_axis(&in->shape) >= 0;
    if (open && t->c->rows <= 0)
        ck_abort_msg("%s/%s: an open input needs .rows", t->family, t->c->label);
    if (t->how.form == OP_AS_CONSTANTS && !open) {
        void *data = op_encode(in->dtype, in->value, in->count);
        tt_tensor *x = tt_const(t->g, in->dtype, in->bound, data);
        free(data);
        return x;
    }
    if (t->how.form == OP_AS_VARIABLES && !open && !in->indices)
        return tt_variable(t->g, .dtype = in->dtype, .shape = in->shape);
    in->is_fed = true;
    return tt_feed(t->g, .dtype = in->dtype, .shape = in->shape);
}

static op_in *new_input(op_test *t, tt_dtype dtype, tt_shape shape)
{
    ck_assert_msg(t->n_in < OP_MAX_INPUTS, "%s: too many inputs", t->family);
    op_in *in = &t->in[t->n_in++];
    *in = (op_in){.dtype = dtype, .shape = shape, .bound = bind(shape, t->c->rows)};
    in->count = tt_shape_count(&in->bound);
    in->value = malloc(sizeof(double) * (size_t)(in->count + 1));
    return in;
}

tt_tensor *op_input(op_test *t, tt_shape shape, double low, double high)
{
    int n = t->n_in;
    op_in *in = new_input(t, t->how.dtype, shape);
    for (int64_t i = 0; i < in->count; i++)
        in->value[i] = scaled(t, false, low + (high - low) * number(n, i));
    return in->tensor = enter(t, in);
}

tt_tensor *op_indices(op_test *t, tt_dtype dtype, tt_shape shape, int64_t limit)
{
    int n = t->n_in;
    op_in *in = new_input(t, dtype, shape);
    in->indices = true;
    for (int64_t i = 0; i < in->count; i++)
        in->value[i] = floor(number(n, i) * (double)limit);
    return in->tensor = enter(t, in);
}

tt_graph *op_graph(op_test *t)
{
    return t->g;
}

tt_dtype op_dtype(const op_test *t)
{
    return t->how.dtype;
}

const op_case *op_case_of(const op_test *t)
{
    return t->c;
}

const double *op_value(const op_test *t, int i)
{
    ck_assert_msg(i < t->n_in, "%s/%s: there is no input %d", t->family, t->c->label, i);
    return t->in[i].value;
}

tt_shape op_shape(const op_test *t, int i)
{
    ck_assert_msg(i < t->n_in, "%s/%s: there is no input %d", t->family, t->c->label, i);
    return t->in[i].bound;
}

tt_shape op_out_shape(const op_test *t)
{
    return bind(tt_tensor_shape(t->y), t->c->rows);
}

int64_t op_count(const op_test *t)
{
    tt_shape s = op_out_shape(t);
    return tt_shape_count(&s);
}

// ---- element types ---------------------------------------------------------------------------

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

static uint16_t to_bf16(float x)
{
    uint32_t u = bits_of(x);
    if (isnan(x))
        return 0x7fc0;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// Nearest even, by the spacing of f16 at x.
static uint16_t to_f16(float x)
{
    uint16_t sign = (uint16_t)(bits_of(x) >> 31 << 15);
    double a = fabs((double)x);
    if (isnan(x))
        return sign | 0x7e00;
    if (a >= 65520)
        return sign | 0x7c00;
    if (a == 0)
        return sign;
    int e;
    frexp(a, &e); // a = m 2^e, m in [0.5, 1)
    int step = e - 11 < -24 ? -24 : e - 11;
    double units = nearbyint(ldexp(a, -step));
    if (step == -24) // subnormal, or the smallest normal ones
        return sign | (uint16_t)units;
    if (units == 2048)
        units = 1024, step++;
    return sign | (uint16_t)((step + 25) << 10 | ((int)units - 1024));
}

static float from_f16(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double a =
        e == 31 ? (m != 0 ? NAN : INFINITY) : ldexp(e == 0 ? m : m + 1024, e == 0 ? -24 : e - 25);
    return (float)(h >> 15 ? -a : a);
}

double op_round(tt_dtype dtype, double x)
{
    switch (dtype) {
    case TT_F32:
        return (float)x;
    case TT_BF16:
        return float_of((uint32_t)to_bf16((float)x) << 16);
    case TT_F16:
        return from_f16(to_f16((float)x));
    default:
        return x;
    }
}

void *op_encode(tt_dtype dtype, const double *x, int64_t n)
{
    char *data = malloc(tt_dtype_bytes(dtype) * (size_t)n + 8);
    for (int64_t i = 0; i < n; i++) {
        switch (dtype) {
        case TT_F32:
            ((float *)data)[i] = (float)x[i];
            break;
        case TT_F64:
            ((double *)data)[i] = x[i];
            break;
        case TT_BF16:
            ((uint16_t *)data)[i] = to_bf16((float)x[i]);
            break;
        case TT_F16:
            ((uint16_t *)data)[i] = to_f16((float)x[i]);
            break;
        case TT_I32:
            ((int32_t *)data)[i] = (int32_t)x[i];
            break;
        case TT_I64:
            ((int64_t *)data)[i] = (int64_t)x[i];
            break;
        case TT_U8:
        case TT_BOOL:
            ((uint8_t *)data)[i] = (uint8_t)x[i];
            break;
        }
    }
    return data;
}

double op_decode(tt_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case TT_F32:
        return ((const float *)data)[i];
    case TT_F64:
        return ((const double *)data)[i];
    case TT_BF16:
        return float_of((uint32_t)((const uint16_t *)data)[i] << 16);
    case TT_F16:
        return from_f16(((const uint16_t *)data)[i]);
    case TT_I32:
        return ((const int32_t *)data)[i];
    case TT_I64:
        return (double)((const int64_t *)data)[i];
    case TT_U8:
    case TT_BOOL:
        return ((const uint8_t *)data)[i];
    }
    return NAN;
}

// ---- trials ----------------------------------------------------------------------------------

void op_fail(const op_test *t, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ck_abort_msg("%s/%s: %s (%s, %s, %s, %d threads): %s", t->family, t->c->label, t->way,
                 t->how.device == NULL ? "cpu:0" : t->how.device, tt_dtype_name(t->how.dtype),
                 t->how.isa == NULL ? "best set" : t->how.isa, t->how.threads, text);
}

/*
 * w of sum(y * w), as a feed where y is open. Feeds are open in front; an open axis elsewhere is
 * brought to its place by a transpose.
 */
static tt_tensor *make_seed(op_test *t)
{
    tt_shape shape = tt_tensor_shape(t->y), front = shape;
    int open = tt_open_axis(&shape);
    if (open > 0) {
        front.dim[0] = shape.dim[open];
        for (int i = 0; i < open; i++)
            front.dim[i + 1] = shape.dim[i];
    }
    int n = t->n_in;
    op_in *w = new_input(t, tt_tensor_dtype(t->y), front);
    t->n_in--; // not an input of the case
    for (int64_t i = 0; i < w->count; i++)
        w->value[i] = scaled(t, true, 2 * number(n + 100, i) - 1);
    t->w = *w;
    t->w.is_fed = true;
    t->w.tensor = tt_feed(t->g, .dtype = t->w.dtype, .shape = front);
    if (open <= 0)
        return t->w.tensor;
    tt_axes order = {.n = shape.rank};
    for (int i = 0; i < shape.rank; i++)
        order.axis[i] = i < open ? i + 1 : i == open ? 0 : i;
    return tt_transpose(t->g, t->w.tensor, order);
}

void op_open(op_test *t, const char *family, const op_case *c, const char *way, op_how how)
{
    *t = (op_test){.family = family, .c = c, .way = way, .how = how};
    t->ctx = tt_open(.devices = how.device == NULL ? "cpu:0" : how.device, .isa = how.isa,
                     .threads = how.threads, .on_event = test_ignore_event, .lanes = how.lanes,
                     .seed = 7);
    if (tt_status_of(t->ctx) != TT_OK)
        op_fail(t, "tt_open: %s", tt_last_error(t->ctx).message);
    t->g = tt_graph_new(t->ctx);
    t->y = c->build(t);
    if (t->y == NULL)
        op_fail(t, "build: %s", tt_last_error(t->ctx).message);
    if (how.gradient) {
        tt_tensor *xs[OP_MAX_INPUTS], *dx[OP_MAX_INPUTS] = {NULL};
        int n = 0, which[OP_MAX_INPUTS];
        for (int i = 0; i < t->n_in; i++)
            if (!t->in[i].indices)
                which[n] = i, xs[n++] = t->in[i].tensor;
        tt_tensor *seed = make_seed(t);
        if (tt_grad(t->g, t->y, seed, n, xs, dx) != TT_OK)
            op_fail(t, "tt_grad: %s", tt_last_error(t->ctx).message);
        for (int i = 0; i < n; i++)
            t->dx[which[i]] = dx[i];
    }
    t->s = tt_session_new(t->g, .no_fuse = how.no_fuse, .no_fold = how.no_fuse);
    for (int i = 0; i < t->n_in; i++) {
        op_in *in = &t->in[i];
        if (in->is_fed || how.form != OP_AS_VARIABLES || in->indices)
            continue;
        void *data = op_encode(in->dtype, in->value, in->count);
        if (tt_set_variable(t->s, in->tensor, data,
                            tt_dtype_bytes(in->dtype) * (size_t)in->count) != TT_OK)
            op_fail(t, "tt_set_variable: %s", tt_last_error(t->ctx).message);
        free(data);
    }
}

static void add_feed(const op_in *in, int64_t first, int64_t rows, tt_feed_value *feed)
{
    tt_shape shape = bind(in->shape, rows);
    int64_t from = 0;
    if (tt_open_axis(&in->shape) == 0)
        from = -tt_shape_count(&in->shape) * first; // minus the elements per row
    *feed = (tt_feed_value){
        .tensor = in->tensor,
        .data = op_encode(in->dtype, in->value + from, tt_shape_count(&shape)),
        .shape = shape,
        .dtype = in->dtype,
    };
}

void op_run(op_test *t, const op_rows *part, op_result *r)
{
    tt_feed_value feeds[OP_MAX_INPUTS + 1];
    tt_fetch fetches[OP_MAX_INPUTS + 1];
    int n_feeds = 0, n_fetches = 0;
    int64_t rows = part == NULL ? t->c->rows : part->rows;

    for (int i = 0; i < t->n_in; i++)
        if (t->in[i].is_fed)
            add_feed(&t->in[i], part == NULL ? 0 : part->first, rows, &feeds[n_feeds++]);
    if (t->how.gradient)
        add_feed(&t->w, part == NULL ? 0 : part->first, rows, &feeds[n_feeds++]);

    *r = (op_result){.n = 1 + t->n_in};
    for (int i = 0; i < r->n; i++) {
        tt_tensor *x = i == 0 ? t->y : t->dx[i - 1];
        op_out *o = &r->out[i];
        if (x == NULL || (part != NULL && !op_wanted(x, part)))
            continue;
        o->tensor = x;
        o->dtype = tt_tensor_dtype(x);
        o->shape = bind(tt_tensor_shape(x), rows);
        o->count = tt_shape_count(&o->shape);
        o->n_parts = part != NULL && op_is_lane_sum(x) ? part->n_parts : 1;
        size_t bytes = tt_dtype_bytes(o->dtype) * (size_t)(o->count * o->n_parts);
        o->data = malloc(bytes + 8);
        memset(o->data, 0xee, bytes + 8);
        fetches[n_fetches++] = (tt_fetch){x, o->data, bytes};
    }
    tt_batch batch = {0};
    if (part != NULL)
        batch = (tt_batch){part->first, t->c->rows, part->lanes};
    if (n_fetches > 0 && tt_run(t->s, .feeds = feeds, .n_feeds = n_feeds, .fetches = fetches,
                                .n_fetches = n_fetches, .batch = batch, .step = 3) != TT_OK)
        op_fail(t, "tt_run on %lld rows: %s", (long long)rows, tt_last_error(t->ctx).message);
    for (int i = 0; i < n_feeds; i++)
        free((void *)feeds[i].data);
}

void op_result_free(op_result *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->out[i].data);
    *r = (op_result){0};
}

void op_close(op_test *t)
{
    for (int i = 0; i < t->n_in; i++)
        free(t->in[i].value);
    free(t->w.value);
    tt_status st = tt_close(t->ctx);
    if (st != TT_OK)
        op_fail(t, "tt_close gives %s", tt_status_name(st));
}

// ---- cases as tests --------------------------------------------------------------------------

typedef struct family_case {
    const char *family;
    const op_case *c;
} family_case;

static void run_entry(const test_entry *e)
{
    const family_case *f = e->arg;
    op_run_case(f->family, f->c);
}

static void run_gpu_entry(const test_entry *e)
{
    const family_case *f = e->arg;
    op_try_gpu(f->family, f->c);
}

static const char *case_name(const char *prefix, const char *family, const op_case *cases, size_t i)
{
    size_t room = strlen(prefix) + strlen(family) + 80;
    char *name = malloc(room);
    if (cases[i].label != NULL)
        snprintf(name, room, "%s%s/%.60s", prefix, family, cases[i].label);
    else
        snprintf(name, room, "%s%s/%zu", prefix, family, i);
    return name;
}

void op_register(const char *file, const char *family, const op_case *cases, test_entry *entries,
                 size_t n)
{
    test_entry *gpu = calloc(n, sizeof(*gpu));
    family_case *f = malloc(n * sizeof(*f));
    for (size_t i = 0; i < n; i++) {
        f[i] = (family_case){family, &cases[i]};
        entries[i] = (test_entry){.file = file, .run = run_entry, .arg = &f[i]};
        entries[i].name = case_name("", family, cases, i);
        test_register(&entries[i]);
    }
    for (size_t i = 0; i < n; i++) {
        gpu[i] = (test_entry){.file = file, .run = run_gpu_entry, .arg = &f[i]};
        gpu[i].name = case_name("gpu/", family, cases, i);
        test_register(&gpu[i]);
    }
}

const op_case *op_case_of_entry(const test_entry *e)
{
    bool is_case = e->run == run_entry || e->run == run_gpu_entry;
    return is_case ? ((const family_case *)e->arg)->c : NULL;
}

static const char *tested[256];
static size_t n_tested;

void op_tested(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n && n_tested < sizeof(tested) / sizeof(tested[0]); i++)
        tested[n_tested++] = names[i];
}

bool op_is_tested(const char *name)
{
    for (size_t i = 0; i < n_tested; i++)
        if (strcmp(tested[i], name) == 0)
            return true;
    return false;
}
