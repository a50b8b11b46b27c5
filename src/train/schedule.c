/*
 * schedule.c - factors of the learning rate from step to step.
 *
 * A step below `warmup` has the factor (step + 1) / (warmup + 1): the whole rate comes first at
 * step `warmup`, where the schedule begins. With x the part of it that is over, from 0 there to 1
 * at `steps` (the fit's, unless given):
 *   constant     1
 *   step         factor^floor(t / every), t steps after the warm-up
 *   exponential  factor^(t / every)
 *   cosine       final + (1 - final) (1 + cos(pi x)) / 2
 *   linear       final + (1 - final) (1 - x)
 *   one_cycle    from 1/25 to 1 at x = peak, and on to final at 1, both by half a cosine
 *   custom       fn(t, n), n the steps after the warm-up
 *   piecewise    the factor of the last piece that begins at t or before; 1 before the first
 *   polynomial   final + (1 - final) (1 - x)^power
 *   inverse_time 1 / (1 + factor t / every)
 *   cosine_restarts  periods of every, every grow, every grow^2 ... steps; in period k, with y the
 *                part of it that is over, final + (1 - final) factor^k (1 + cos(pi y)) / 2
 *   wsd          1 up to x = 1 - decay, then, y the part of the rest that is over, final +
 *                (1 - final) s(y), s(y) = 1 - y, (1 + cos(pi y)) / 2 or 1 - sqrt(y)
 * Past the end it stays as it is there. All in f64 by our own functions (scalar.h).
 */
#include "train/optimizer.h"
#include "train/scalar.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_OF_CYCLE 0.04

#define ROW(name_, type_, value_, help_, low_, high_)                                 \
    {                                                                                 \
#name_, type_, value_, help_, offsetof(tt_schedule, name_), low_, high_, NULL \
    }
#define WARMUP                                                                                     \
    ROW(warmup, TT_OPT_INT, "0", "number of steps of linear warmup before the schedule begins", 0, \
        1e15)
#define STEPS                                                                                    \
    ROW(steps, TT_OPT_INT, "0", "step at which the schedule ends; 0: the last step of training", \
        0, 1e15)
#define EVERY \
    ROW(every, TT_OPT_INT, "1000", "number of steps between two applications of factor", 1, 1e15)
#define FINAL(value_) \
    ROW(final, TT_OPT_FLOAT, value_, "learning rate at the end, as a fraction of lr", 0, 1)

static const tt_option constant_options[] = {WARMUP, TT_OPTION_END};
static const tt_option step_options[] = {
    WARMUP, ROW(factor, TT_OPT_FLOAT, "0.1", "factor on the learning rate", 1e-30, 1e30), EVERY,
    TT_OPTION_END};
static const tt_option exponential_options[] = {
    WARMUP, ROW(factor, TT_OPT_FLOAT, "0.95", "factor on the learning rate", 1e-30, 1e30), EVERY,
    TT_OPTION_END};
static const tt_option line_options[] = {WARMUP, STEPS, FINAL("0"), TT_OPTION_END};
static const tt_option cycle_options[] = {
    WARMUP, STEPS, FINAL("1e-4"),
    ROW(peak, TT_OPT_FLOAT, "0.3", "fraction of the steps at which the learning rate peaks", 1e-9,
        1),
    TT_OPTION_END};
static const tt_option piece_options[] = {
    WARMUP,
    ROW(pieces, TT_OPT_TEXT, NULL,
        "factors on the learning rate from a step on, counted after the warmup: [1000=0.5, "
        "2000=0.1]",
        0, 0),
    TT_OPTION_END};
static const tt_option polynomial_options[] = {
    WARMUP, STEPS, FINAL("0"),
    ROW(power, TT_OPT_FLOAT, "1", "power of the polynomial; 1: as linear", 1e-9, 1e9),
    TT_OPTION_END};
static const tt_option inverse_options[] = {
    WARMUP,
    ROW(factor, TT_OPT_FLOAT, "1", "the rate is divided by 1 + factor t / every at step t", 0,
        1e30),
    ROW(every, TT_OPT_INT, "1000", "number of steps by which t is divided", 1, 1e15),
    TT_OPTION_END};
static const tt_option restart_options[] = {
    WARMUP,
    ROW(every, TT_OPT_INT, "1000", "number of steps of the first period", 1, 1e15),
    ROW(grow, TT_OPT_FLOAT, "1", "each period has this many times the steps of the one before", 1,
        1e9),
    ROW(factor, TT_OPT_FLOAT, "1", "factor on the learning rate at each restart", 1e-30, 1),
    FINAL("0"),
    TT_OPTION_END};
static const char *const shape_words[] = {"linear", "cosine", "sqrt", NULL};
static const tt_option wsd_options[] = {
    WARMUP,
    STEPS,
    FINAL("0"),
    ROW(decay, TT_OPT_FLOAT, "0.2", "fraction of the steps, at the end, over which it decays", 1e-9,
        1),
    {"shape", TT_OPT_ENUM, "linear", "how it decays; sqrt: 1 - sqrt(y)",
     offsetof(tt_schedule, shape), 0, 0, shape_words},
    TT_OPTION_END};

static const tti_schedule_def schedules[] = {
    {"constant", "constant learning rate", TT_LR_CONSTANT, constant_options},
    {"step", "multiply by factor every N steps", TT_LR_STEP, step_options},
    {"exponential", "exponential decay: by factor per N steps, continuously", TT_LR_EXPONENTIAL,
     exponential_options},
    {"cosine", "cosine decay to final", TT_LR_COSINE, line_options},
    {"linear", "linear decay to final", TT_LR_LINEAR, line_options},
    {"one_cycle", "one cycle: from 1/25 of lr up to lr and down to final, both by cosine",
     TT_LR_ONE_CYCLE, cycle_options},
    {"piecewise", "constant pieces: a factor from each of several steps on", TT_LR_PIECEWISE,
     piece_options},
    {"polynomial", "polynomial decay to final", TT_LR_POLYNOMIAL, polynomial_options},
    {"inverse_time", "inverse time decay: lr / (1 + factor t / every)", TT_LR_INVERSE_TIME,
     inverse_options},
    {"cosine_restarts", "cosine decay to final, again and again (warm restarts)",
     TT_LR_COSINE_RESTARTS, restart_options},
    {"wsd", "warmup, stable, decay: constant, then down to final over the last steps", TT_LR_WSD,
     wsd_options},
};

const tti_schedule_def *tti_schedule_at(int i)
{
    return i >= 0 && i < TTI_COUNT(schedules) ? &schedules[i] : NULL;
}

const tti_schedule_def *tti_schedule_find(const char *name)
{
    for (int i = 0; name != NULL && i < TTI_COUNT(schedules); i++)
        if (strcmp(schedules[i].name, name) == 0)
            return &schedules[i];
    return NULL;
}

// From a at x = 0 to b at x = 1.
static double by_cosine(double a, double b, double x)
{
    return b + (a - b) * ((1 + tti_scalar_cos_pi(x)) / 2);
}

// base^(t / every)
static double power_of_ratio(double base, int64_t t, int64_t every)
{
    double part = (double)(t % every) / (double)every;
    double y = tti_scalar_power(base, t / every);
    return part == 0 ? y : y * tti_scalar_exp(part * tti_scalar_log(base));
}

static double one_cycle(double x, double peak, double final)
{
    if (x < peak)
        return by_cosine(FIRST_OF_CYCLE, 1, x / peak);
    return peak < 1 ? by_cosine(1, final, (x - peak) / (1 - peak)) : 1;
}

// Reads "step=factor" and what follows it; NULL: there is none, or it is not one.
static const char *next_piece(const char *s, int64_t *step, double *factor)
{
    char *end;
    s += strspn(s, " ,");
    if (*s == '\0')
        return NULL;
    *step = strtoll(s, &end, 10);
    end += strspn(end, " ");
    if (end == s || *end != '=')
        return NULL;
    const char *value = end + 1 + strspn(end + 1, " ");
    *factor = strtod(value, &end);
    bool good = end != value && (*end == '\0' || *end == ',' || *end == ' ');
    return good ? end : NULL;
}

tt_status tti_schedule_check_pieces(tt_ctx *ctx, const tt_schedule *s)
{
    const char *at = s->pieces != NULL ? s->pieces : "";
    int64_t step, last = -1;
    double factor;
    if (at[strspn(at, " ,")] == '\0')
        return TT_FAIL(ctx, TT_EINVAL,
                       "piecewise: pieces must be given, as in pieces: [1000=0.5, 2000=0.1]");
    while (at[strspn(at, " ,")] != '\0') {
        const char *piece = at + strspn(at, " ,");
        int n = (int)strcspn(piece, ",");
        at = next_piece(at, &step, &factor);
        if (at == NULL)
            return TT_FAIL(ctx, TT_EINVAL,
                           "piecewise: pieces: '%.*s' is not a step and a factor, as in 1000=0.5",
                           n, piece);
        if (step <= last)
            return TT_FAIL(ctx, TT_EINVAL,
                           "piecewise: pieces: '%.*s': the steps must rise, from 0 on", n, piece);
        if (!(factor >= 0) || factor > 1e30)
            return TT_FAIL(ctx, TT_EINVAL,
                           "piecewise: pieces: '%.*s': the factor must be 0 to 1e30", n, piece);
        last = step;
    }
    return TT_OK;
}

static double piecewise(const char *pieces, int64_t t)
{
    double y = 1, factor;
    int64_t step;
    while (pieces != NULL && (pieces = next_piece(pieces, &step, &factor)) != NULL && step <= t)
        y = factor;
    return y;
}

// base^power, base from 0 to 1
static double real_power(double base, double power)
{
    return power == 1 ? base : base <= 0 ? 0 : tti_scalar_exp(power * tti_scalar_log(base));
}

static double restarts(const tt_schedule *s, int64_t t, int64_t every)
{
    double length = (double)every, begin = 0, high = 1, grow = tti_or_default(s->grow, 1);
    double factor = tti_or_default(s->factor, 1);
    if (grow == 1) {
        high = tti_scalar_power(factor, t / every);
        begin = (double)(t - t % every);
    }
    while (grow > 1 && (double)t >= begin + length) {
        begin += length;
        length *= grow;
        high *= factor;
    }
    return s->final + (1 - s->final) * high * by_cosine(1, 0, ((double)t - begin) / length);
}

// n: steps after the warm-up
static double stable_then_down(const tt_schedule *s, int64_t t, int64_t n)
{
    double last = (double)TTI_MAX(n, 0), begin = last - tti_or_default(s->decay, 0.2) * last;
    double y = t >= n ? 1 : ((double)t - begin) / (last - begin), left = 1 - y;
    if (y <= 0)
        return 1;
    if (s->shape == TT_DECAY_COSINE)
        left = by_cosine(1, 0, y);
    else if (s->shape == TT_DECAY_SQRT)
        left = 1 - sqrt(y);
    return s->final + (1 - s->final) * left;
}

static double factor_at(const tt_schedule *s, int64_t step, int64_t total)
{
    int64_t warmup = TTI_MAX(s->warmup, 0), t = TTI_MAX(step, 0) - warmup;
    if (t < 0)
        return (double)(t + warmup + 1) / (double)(warmup + 1);
    int64_t n = (s->steps > 0 ? s->steps : total) - warmup;
    int64_t every = s->every > 0 ? s->every : 1000;
    double x = t >= n ? 1 : (double)t / (double)n;
    switch (s->kind) {
    case TT_LR_CONSTANT:
        break;
    case TT_LR_STEP:
        return tti_scalar_power(tti_or_default(s->factor, 0.1), t / every);
    case TT_LR_EXPONENTIAL:
        return power_of_ratio(tti_or_default(s->factor, 0.95), t, every);
    case TT_LR_COSINE:
        return by_cosine(1, s->final, x);
    case TT_LR_LINEAR:
        return s->final + (1 - s->final) * (1 - x);
    case TT_LR_ONE_CYCLE:
        return one_cycle(x, tti_or_default(s->peak, 0.3), tti_or_default(s->final, 1e-4));
    case TT_LR_PIECEWISE:
        return piecewise(s->pieces, t);
    case TT_LR_POLYNOMIAL:
        return s->final + (1 - s->final) * real_power(1 - x, tti_or_default(s->power, 1));
    case TT_LR_INVERSE_TIME:
        return 1 / (1 + tti_or_default(s->factor, 1) * ((double)t / (double)every));
    case TT_LR_COSINE_RESTARTS:
        return restarts(s, t, every);
    case TT_LR_WSD:
        return stable_then_down(s, t, n);
    case TT_LR_CUSTOM:
        return s->fn != NULL ? s->fn(s->user, t, TTI_MAX(n, 0)) : 1;
    }
    return 1;
}

double tt_schedule_at(const tt_schedule *s, int64_t step, int64_t total)
{
    tt_schedule own;
    bool is_one = TTI_OPTS_PART(NULL, "schedule", s, &own) == TT_OK; // NULL: constant
    return is_one ? factor_at(&own, step, total) : NAN;
}

float tti_learning_rate(const tt_optimizer *o, int64_t step, int64_t total, double factor)
{
    return (float)(o->lr * factor_at(o->schedule, step, total) * factor);
}
