/*
 * layer_lambda.c - lambda: an expression of ops as a layer, "x * sigmoid(1.7 * x)".
 *
 *   expression  sum of terms by + and -, terms by * and /, a power by ^, - in front, brackets
 *   names       x, of further inputs x2, x3, ...; numbers; functions of ops.h
 *
 * A value is a tensor or a number. Functions over the last axis keep it, so that x / sum(x) works.
 */
#include "base/value.h"
#include "model/layer.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <tutti/models.h>

#define MAX_DEPTH 32 // of brackets in each other
#define MAX_ARGS  3

typedef struct value {
    tt_tensor *tensor; // NULL: a number
    double number;
} value;

typedef struct parser {
    tt_build *b;
    tt_tensor *const *in;
    int n_in, depth;
    const char *text, *at;
} parser;

// ---- functions -------------------------------------------------------------------------------

typedef tt_tensor *(*unary_fn)(tt_graph *g, tt_tensor *x);
typedef tt_tensor *(*binary_fn)(tt_graph *g, tt_tensor *a, tt_tensor *b);

#define OVER_LAST(name)                                        \
    static tt_tensor *name##_last(tt_graph *g, tt_tensor *x)   \
    {                                                          \
        return tt_##name(g, x, .axis = -1, .keep_dims = true); \
    }
OVER_LAST(sum)
OVER_LAST(mean)
OVER_LAST(max)
OVER_LAST(min)
OVER_LAST(logsumexp)

typedef struct function {
    const char *name;
    unary_fn one;
    binary_fn two;
    bool is_bool; // its result becomes 0 or 1
} function;

#define UNARY(n)  {#n, tt_##n, NULL, false},
#define REDUCE(n) {#n, n##_last, NULL, false},
static const function functions[] = {
    // clang-format off
    UNARY(neg) UNARY(abs) UNARY(sqrt) UNARY(rsqrt) UNARY(exp) UNARY(log) UNARY(sin) UNARY(cos)
    UNARY(tanh) UNARY(sigmoid) UNARY(relu) UNARY(gelu) UNARY(gelu_erf) UNARY(silu) UNARY(softplus)
    UNARY(selu) UNARY(relu6) UNARY(mish) UNARY(hard_sigmoid) UNARY(hard_swish) UNARY(softsign)
    UNARY(square) UNARY(erf) UNARY(sign) UNARY(softmax) UNARY(log_softmax) UNARY(stop_gradient)
    REDUCE(sum) REDUCE(mean) REDUCE(max) REDUCE(min) REDUCE(logsumexp)
    // clang-format on
    {"pow", NULL, tt_pow, false},
    {"minimum", NULL, tt_minimum, false},
    {"maximum", NULL, tt_maximum, false},
    {"less", NULL, tt_less, true},
    {"greater", NULL, tt_greater, true},
    {"equal", NULL, tt_equal, true},
    {"where", NULL, NULL, false}, // of three
};

// ---- values ----------------------------------------------------------------------------------

static tt_graph *graph_of(const parser *p)
{
    return p->b->graph;
}

static tt_tensor *tensor_of(const parser *p, value v)
{
    return v.tensor != NULL ? v.tensor : tt_fill(graph_of(p), p->in[0]->dtype, TT_SCALAR, v.number);
}

static bool fail(const parser *p, const char *what)
{
    (void)TT_FAIL(p->b->model->ctx, TT_EINVAL, "expr '%s', character %d: %s", p->text,
                  (int)(p->at - p->text) + 1, what);
    return false;
}

static bool done(value *out, tt_tensor *t)
{
    *out = (value){.tensor = t};
    return t != NULL;
}

static bool combine(const parser *p, char sign, value a, value b, value *out)
{
    tt_graph *g = graph_of(p);
    if (a.tensor == NULL && b.tensor == NULL && sign != '^') {
        *out = (value){NULL, sign == '+'   ? a.number + b.number
                             : sign == '-' ? a.number - b.number
                             : sign == '*' ? a.number * b.number
                                           : a.number / b.number};
        return true;
    }
    if (sign == '^' && a.tensor != NULL && b.tensor == NULL && b.number == 2)
        return done(out, tt_square(g, a.tensor)); // without a logarithm
    binary_fn fn = sign == '+'   ? tt_add
                   : sign == '-' ? tt_sub
                   : sign == '*' ? tt_mul
                   : sign == '/' ? tt_div
                                 : tt_pow;
    return done(out, fn(g, tensor_of(p, a), tensor_of(p, b)));
}

// ---- parser ----------------------------------------------------------------------------------

static bool parse_sum(parser *p, value *out);

static char next(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
        p->at++;
    return *p->at;
}

static bool expect(parser *p, char c)
{
    char what[32];
    if (next(p) == c) {
        p->at++;
        return true;
    }
    snprintf(what, sizeof(what), "'%c' is missing", c);
    return fail(p, what);
}

static bool call(parser *p, const function *f, value *out)
{
    value args[MAX_ARGS];
    tt_graph *g = graph_of(p);
    int want = f->one != NULL ? 1 : f->two != NULL ? 2 : 3;
    if (!expect(p, '('))
        return false;
    for (int i = 0; i < want; i++)
        if ((i > 0 && !expect(p, ',')) || !parse_sum(p, &args[i]))
            return false;
    if (!expect(p, ')'))
        return false;
    tt_tensor *a = tensor_of(p, args[0]);
    if (want == 1)
        return done(out, f->one(g, a));
    tt_tensor *b = tensor_of(p, args[1]);
    if (want == 3) {
        tt_tensor *zero = tt_fill(g, p->in[0]->dtype, TT_SCALAR, 0);
        return done(out, tt_where(g, tt_not_equal(g, a, zero), b, tensor_of(p, args[2])));
    }
    tt_tensor *y = f->two(g, a, b);
    return done(out, f->is_bool ? tt_cast(g, y, p->in[0]->dtype) : y);
}

static bool unknown(parser *p, const char *name)
{
    const char *names[TTI_COUNT(functions) + 2];
    char what[160];
    int n = 0;
    names[n++] = "x";
    for (int i = 0; i < TTI_COUNT(functions); i++)
        names[n++] = functions[i].name;
    names[n] = NULL;
    const char *near = tti_nearest(name, names);
    snprintf(what, sizeof(what),
             near != NULL ? "unknown name '%s'; did you mean '%s'?"
                          : "unknown name '%s'; inputs are x, x2, ..., functions those of "
                            "docs/models.md",
             name, near);
    p->at -= strlen(name);
    return fail(p, what);
}

static bool parse_name(parser *p, value *out)
{
    char name[32];
    size_t n = 0;
    while (isalnum((unsigned char)*p->at) || *p->at == '_') {
        if (n + 1 == sizeof(name))
            return fail(p, "a name of more than 31 characters");
        name[n++] = *p->at++;
    }
    name[n] = '\0';
    if (strcmp(name, "x") == 0)
        return done(out, p->in[0]);
    if (name[0] == 'x' && name[1] >= '2' && name[1] <= '9' && name[2] == '\0') {
        int i = name[1] - '1';
        return i < p->n_in ? done(out, p->in[i]) : fail(p, "the layer has fewer inputs");
    }
    for (int i = 0; i < TTI_COUNT(functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            return call(p, &functions[i], out);
    return unknown(p, name);
}

static bool parse_number(parser *p, value *out)
{
    char text[40];
    size_t n = 0;
    for (; isdigit((unsigned char)*p->at) || *p->at == '.' || *p->at == 'e' ||
           ((*p->at == '-' || *p->at == '+') && n > 0 && p->at[-1] == 'e');
         p->at++) {
        if (n + 1 == sizeof(text))
            return fail(p, "a number of more than 39 characters");
        text[n++] = *p->at;
    }
    text[n] = '\0';
    out->tensor = NULL;
    return tti_double_parse(text, &out->number) ? true : fail(p, "not a number");
}

static bool parse_atom(parser *p, value *out)
{
    char c = next(p);
    if (c == '(') {
        p->at++;
        return parse_sum(p, out) && expect(p, ')');
    }
    if (isdigit((unsigned char)c) || c == '.')
        return parse_number(p, out);
    if (isalpha((unsigned char)c))
        return parse_name(p, out);
    return fail(p, c == '\0' ? "the expression ends here" : "a name, a number or '(' must follow");
}

// A power binds tighter than a sign in front: -x^2 is -(x^2).
static bool parse_power(parser *p, value *out)
{
    value exponent;
    if (next(p) == '-') {
        p->at++;
        if (p->depth++ == MAX_DEPTH)
            return fail(p, "too many brackets or signs in each other");
        bool ok = parse_power(p, out) && combine(p, '*', *out, (value){NULL, -1}, out);
        p->depth--;
        return ok;
    }
    if (!parse_atom(p, out))
        return false;
    if (next(p) != '^')
        return true;
    p->at++;
    if (p->depth++ == MAX_DEPTH)
        return fail(p, "too many brackets or signs in each other");
    bool ok = parse_power(p, &exponent) && combine(p, '^', *out, exponent, out);
    p->depth--;
    return ok;
}

static bool parse_product(parser *p, value *out)
{
    value right;
    if (!parse_power(p, out))
        return false;
    for (char c = next(p); c == '*' || c == '/'; c = next(p)) {
        p->at++;
        if (!parse_power(p, &right) || !combine(p, c, *out, right, out))
            return false;
    }
    return true;
}

static bool parse_sum(parser *p, value *out)
{
    value right;
    if (p->depth++ == MAX_DEPTH)
        return fail(p, "too many brackets or signs in each other");
    if (!parse_product(p, out))
        return false;
    for (char c = next(p); c == '+' || c == '-'; c = next(p)) {
        p->at++;
        if (!parse_product(p, &right) || !combine(p, c, *out, right, out))
            return false;
    }
    p->depth--;
    return true;
}

// ---- layer -----------------------------------------------------------------------------------

static const tt_option options[] = {
    {"expr", TT_OPT_STRING, NULL,
     "expression of x (further inputs: x2, x3, ...), numbers, + - * / ^ and functions, of at most "
     "127 characters",
     offsetof(tt_layer_lambda_opts, expr), 0, 0, NULL},
    TT_OPTION_END,
};

static tt_tensor *build(tt_build *b, const void *opts, tt_tensor *const *in, int n_in)
{
    const tt_layer_lambda_opts *o = opts;
    char text[TT_SHAPE_TEXT];
    parser p = {.b = b, .in = in, .n_in = n_in, .text = o->expr, .at = o->expr};
    value y = {NULL, 0};
    for (int i = 0; i < n_in; i++)
        if (!tti_x_check(b, in[i], 1, "[batch, ...]"))
            return NULL;
    if (o->expr[0] == '\0') {
        (void)TT_FAIL(b->model->ctx, TT_EINVAL, "expr must be given, as in lambda: x * sigmoid(x)");
        return NULL;
    }
    if (!parse_sum(&p, &y))
        return NULL;
    if (next(&p) != '\0') {
        (void)fail(&p, "an operator must follow");
        return NULL;
    }
    if (y.tensor == NULL || y.tensor->shape.rank < 1 || y.tensor->shape.dim[0] >= 0) {
        (void)TT_FAIL(b->model->ctx, TT_ESHAPE, "expr '%s' is %s, the same for all records; use x",
                      o->expr,
                      y.tensor == NULL ? "a number" : tt_shape_text(&y.tensor->shape, text));
        return NULL;
    }
    return y.tensor;
}

const tti_layer_def tti_kind_lambda = {
    .name = "lambda",
    .help = "an expression of ops",
    .options = options,
    .size = sizeof(tt_layer_lambda_opts),
    .common = offsetof(tt_layer_lambda_opts, name),
    .main = "expr",
    .min_in = 1,
    .max_in = TT_MAX_FROM,
    .build = build,
};

tt_tensor *tt_layer_lambda_with(tt_model *m, const tt_layer_lambda_opts *opts)
{
    return tti_layer_call(m, &tti_kind_lambda, opts);
}
