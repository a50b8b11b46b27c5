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
 * Past the end it stays as it is there. All in f64 by our own functions (scalar.h).
 */
#include "train/optimizer.h"
#include "train/scalar.h"
#include <math.h>
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

static const tti_schedule_def schedules[] = {
    {"constant", "constant learning rate", TT_LR_CONSTANT, constant_options},
    {"step", "multiply by factor every N steps", TT_LR_STEP, step_options},
    {"exponential", "exponential decay: by factor per N steps, continuously", TT_LR_EXPONENTIAL,
     exponential_options},
    {"cosine", "cosine decay to final", TT_LR_COSINE, line_options},
    {"linear", "linear decay to final", TT_LR_LINEAR, line_options},
    {"one_cycle", "one cycle: from 1/25 of lr up to lr and down to final, both by cosine",
     TT_LR_ONE_CYCLE, cycle_options},
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
