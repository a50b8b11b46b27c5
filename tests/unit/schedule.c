/*
 * schedule.c - factors of the learning rate at edges and between, and the functions below them.
 */
#include "test.h"
#include "train/optimizer.h"
#include "train/scalar.h"
#include <float.h>
#include <math.h>

static double at(const tt_schedule *s, int64_t step, int64_t total)
{
    return tt_schedule_at(s, step, total);
}

TEST(scalar_functions_are_close_to_libm)
{
    for (int i = 0; i <= 4000; i++) {
        double x = i / 4000.0, want = cos(acos(-1.0) * x);
        CHECK_NEAR(tti_scalar_cos_pi(x), want, 4e-16);
    }
    CHECK(tti_scalar_cos_pi(0) == 1 && tti_scalar_cos_pi(0.5) == 0 && tti_scalar_cos_pi(1) == -1);
    for (double x = -690; x < 709; x += 0.37) {
        double want = exp(x);
        ck_assert_msg(fabs(tti_scalar_exp(x) - want) <= 4 * DBL_EPSILON * want, "exp %g", x);
    }
    CHECK(tti_scalar_exp(0) == 1 && tti_scalar_exp(-800) == 0 && isinf(tti_scalar_exp(710)));
    CHECK(isnan(tti_scalar_exp(NAN)));
    for (double x = 1e-320; x < 1e308; x *= 1.37) {
        double want = log(x);
        ck_assert_msg(fabs(tti_scalar_log(x) - want) <= 4 * DBL_EPSILON * fabs(want) + 1e-17,
                      "log %g", x);
    }
    CHECK(tti_scalar_log(1) == 0 && isnan(tti_scalar_log(0)) && isnan(tti_scalar_log(-1)));
    CHECK(tti_scalar_power(0.5, 10) == 1.0 / 1024 && tti_scalar_power(7, 0) == 1);
}

TEST(warm_up_rises_to_one_before_any_schedule)
{
    for (int kind = 0; kind <= TT_LR_LINEAR; kind++) {
        tt_schedule *s = tt_schedule(.kind = (tt_schedule_kind)kind, .warmup = 4);
        for (int i = 0; i < 4; i++)
            CHECK(at(s, i, 100) == (i + 1) / 5.0);
        CHECK(at(s, 4, 100) == 1);
        CHECK(at(s, -3, 100) == 0.2);
    }
    CHECK(at(tt_schedule(.warmup = 4), 1000, 0) == 1);
    CHECK(tt_schedule_at(NULL, 5, 10) == 1);
    CHECK(isnan(tt_schedule_at(&(tt_schedule){.warmup = 4}, 5, 10))); // without its size
}

TEST(constant_and_steps)
{
    CHECK(at(tt_schedule(), 0, 10) == 1 && at(tt_schedule(), 1 << 30, 10) == 1);
    tt_schedule *s = tt_step_decay(.factor = 0.5, .every = 10, .warmup = 2);
    CHECK(at(s, 2, 100) == 1 && at(s, 11, 100) == 1 && at(s, 12, 100) == 0.5);
    CHECK(at(s, 22, 100) == 0.25 && at(s, 2 + 40, 100) == 0.0625);
    CHECK(at(tt_step_decay(.factor = 0), 999, 0) == 1); // every 1000 by 0.1
    CHECK(at(tt_step_decay(.factor = 0), 2000, 0) == 0.1 * 0.1);
}

TEST(exponential_is_smooth)
{
    tt_schedule *s = tt_exponential(.factor = 0.9, .every = 7);
    for (int64_t i = 0; i < 500; i += 3) {
        double want = pow(0.9, (double)i / 7);
        CHECK_NEAR(at(s, i, 0) / want, 1, 1e-13);
    }
    CHECK(at(s, 7, 0) == 0.9 && at(s, 0, 0) == 1);
    CHECK_NEAR(at(tt_exponential(.factor = 0), 500, 0), sqrt(0.95), 1e-15);
}

TEST(cosine_and_line_end_where_they_should)
{
    tt_schedule *c = tt_cosine(.final = 0.1), *l = tt_linear(.final = 0.1);
    CHECK(at(c, 0, 100) == 1 && at(l, 0, 100) == 1);
    CHECK(at(c, 100, 100) == 0.1 && at(l, 100, 100) == 0.1);
    CHECK(at(c, 1 << 20, 100) == 0.1 && at(l, 1 << 20, 100) == 0.1);
    CHECK_NEAR(at(c, 50, 100), 0.55, 1e-15);
    CHECK_NEAR(at(l, 25, 100), 0.775, 1e-15);
    for (int i = 0; i < 100; i++) {
        CHECK(at(c, i + 1, 100) < at(c, i, 100) && at(l, i + 1, 100) < at(l, i, 100));
        CHECK_NEAR(at(c, i, 100), 0.1 + 0.45 * (1 + cos(acos(-1.0) * i / 100)), 1e-15);
    }
    c->steps = 20;
    c->warmup = 10;
    CHECK(at(c, 20, 1000) == 0.1 && at(c, 10, 1000) == 1);
    CHECK_NEAR(at(c, 15, 1000), 0.55, 1e-15);
    c->steps = 5; // all warm-up: the schedule is over when it begins
    CHECK(at(c, 9, 1000) == 10.0 / 11 && at(c, 10, 1000) == 0.1);
    CHECK(at(tt_cosine(.warmup = 0), 0, 0) == 0); // no steps at all
}

TEST(one_cycle_goes_up_and_down)
{
    tt_schedule *s = tt_one_cycle(.warmup = 0);
    CHECK_NEAR(at(s, 0, 100), 0.04, 1e-16);
    CHECK(at(s, 30, 100) == 1);
    CHECK_NEAR(at(s, 15, 100), 0.52, 1e-15);
    CHECK(at(s, 100, 100) == 1e-4 && at(s, 200, 100) == 1e-4);
    for (int i = 0; i < 100; i++)
        CHECK(i < 30 ? at(s, i + 1, 100) > at(s, i, 100) : at(s, i + 1, 100) < at(s, i, 100));
    s->peak = 1;
    CHECK(at(s, 100, 100) == 1);
}

TEST(learning_rates_are_rounded_once)
{
    tt_optimizer *o = tt_adam(.lr = 1e-3, .schedule = tt_cosine(.final = 0));
    for (int i = 0; i < 100; i++) {
        double want = 1e-3 * tt_schedule_at(o->schedule, i, 100) * 0.3;
        CHECK(tti_learning_rate(o, i, 100, 0.3) == (float)want);
    }
    CHECK(tti_learning_rate(o, 0, 100, 1) == 1e-3f);
}

TEST(schedules_are_found_by_name)
{
    for (int i = 0; tti_schedule_at(i) != NULL; i++) {
        CHECK(tti_schedule_find(tti_schedule_at(i)->name) == tti_schedule_at(i));
        CHECK_INT((int)tti_schedule_at(i)->kind,
                  i < TT_LR_CUSTOM ? i : i + 1); // no job names custom
    }
    CHECK(tti_schedule_find("sawtooth") == NULL && tti_schedule_find(NULL) == NULL);
    CHECK(tti_schedule_at(-1) == NULL);
}

// ---- as Keras and PyTorch have them ----------------------------------------------------------

TEST(pieces_hold_from_their_step_on)
{
    tt_schedule *s = tt_piecewise(.pieces = "3=0.5, 10 = 0.25,12=2", .warmup = 2);
    const double want[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 2, 2};
    CHECK(at(s, 0, 0) == 1.0 / 3 && at(s, 1, 0) == 2.0 / 3);
    for (int i = 0; i < TTI_COUNT(want); i++)
        CHECK(at(s, i + 2, 5) == want[i]);
    CHECK(at(s, 1 << 30, 5) == 2);
    CHECK(at(tt_piecewise(.pieces = "0=0.5"), 0, 5) == 0.5);
}

TEST(pieces_that_cannot_be_read_are_refused)
{
    static const char *const bad[][2] = {
        {NULL, "piecewise: pieces must be given, as in pieces: [1000=0.5, 2000=0.1]"},
        {" , ", "piecewise: pieces must be given"},
        {"100", "pieces: '100' is not a step and a factor, as in 1000=0.5"},
        {"1=0.5, x=2", "pieces: 'x=2' is not a step and a factor"},
        {"1=0.5, 2=half", "pieces: '2=half' is not a step and a factor"},
        {"5=0.5, 5=0.1", "pieces: '5=0.1': the steps must rise, from 0 on"},
        {"-1=0.5", "pieces: '-1=0.5': the steps must rise, from 0 on"},
        {"1=-2", "pieces: '1=-2': the factor must be 0 to 1e30"},
        {"1=nan", "pieces: '1=nan': the factor must be 0 to 1e30"}};
    for (int i = 0; i < TTI_COUNT(bad); i++) {
        tt_ctx *ctx = test_ctx();
        tti_rule rule;
        CHECK_OK(tti_rule_read(ctx, tt_sgd(.schedule = tt_piecewise(.pieces = bad[i][0])), &rule));
        CHECK(tti_rule_fill(ctx, &rule) == TT_EINVAL);
        CHECK_MESSAGE(ctx, bad[i][1]);
        CHECK(tt_close(ctx) == TT_EINVAL);
    }
}

TEST(polynomial_and_inverse_time)
{
    tt_schedule *p = tt_polynomial(.power = 2.5, .final = 0.01),
                *line = tt_polynomial(.final = 0.1);
    tt_schedule *t = tt_inverse_time(.factor = 0.5, .every = 7);
    for (int i = 0; i <= 100; i++) {
        CHECK_NEAR(at(p, i, 100), 0.01 + 0.99 * pow(1 - i / 100.0, 2.5), 1e-14);
        CHECK(at(line, i, 100) == at(tt_linear(.final = 0.1), i, 100));
        CHECK_NEAR(at(t, i, 0), 1 / (1 + 0.5 * i / 7), 1e-15);
    }
    CHECK(at(p, 1 << 30, 100) == 0.01 && at(tt_inverse_time(.warmup = 0), 1000, 0) == 0.5);
}

// Keras: CosineDecayRestarts(first_decay_steps, t_mul, m_mul, alpha).
static double keras_restarts(double first, double t_mul, double m_mul, double alpha, int step)
{
    double done = step / first, i = floor(log(1 - done * (1 - t_mul)) / log(t_mul));
    double sum = (1 - pow(t_mul, i)) / (1 - t_mul);
    done = (done - sum) / pow(t_mul, i);
    return (1 - alpha) * 0.5 * pow(m_mul, i) * (1 + cos(acos(-1.0) * done)) + alpha;
}

TEST(cosine_restarts_begin_again)
{
    tt_schedule *same = tt_cosine_restarts(.every = 10, .final = 0.1, .factor = 0.5);
    tt_schedule *longer = tt_cosine_restarts(.every = 10, .grow = 2, .factor = 0.9, .final = 0.05);
    for (int i = 0; i < 200; i++) {
        double one = 0.1 + 0.9 * pow(0.5, i / 10) * (1 + cos(acos(-1.0) * (i % 10) / 10)) / 2;
        CHECK_NEAR(at(same, i, 50), one, 1e-15);
        if (i != 10 && i != 30 && i != 70 && i != 150) // where their logarithm rounds either way
            CHECK_NEAR(at(longer, i, 50), keras_restarts(10, 2, 0.9, 0.05, i), 1e-13);
    }
    CHECK_NEAR(at(longer, 70, 0), 0.05 + 0.95 * 0.729, 1e-15);
    CHECK(at(same, 9, 0) < 0.2 && at(same, 10, 0) == 0.1 + 0.9 * 0.5);
    CHECK(isfinite(at(same, INT64_MAX - 1, 0)) && isfinite(at(longer, INT64_MAX - 1, 0)));
}

TEST(warmup_stable_decay)
{
    tt_schedule *s = tt_wsd(.warmup = 10, .steps = 110, .final = 0.1);
    CHECK_NEAR(at(s, 4, 0), 5 / 11.0, 1e-15);
    CHECK(at(s, 10, 0) == 1 && at(s, 90, 0) == 1 && at(s, 110, 0) == 0.1 && at(s, 999, 0) == 0.1);
    for (int i = 0; i <= 20; i++) {
        double y = i / 20.0;
        s->shape = TT_DECAY_LINEAR;
        CHECK_NEAR(at(s, 90 + i, 0), 0.1 + 0.9 * (1 - y), 1e-13);
        s->shape = TT_DECAY_COSINE;
        CHECK_NEAR(at(s, 90 + i, 0), 0.1 + 0.45 * (1 + cos(acos(-1.0) * y)), 1e-13);
        s->shape = TT_DECAY_SQRT;
        CHECK_NEAR(at(s, 90 + i, 0), 0.1 + 0.9 * (1 - sqrt(y)), 2e-8);
    }
    CHECK_NEAR(at(tt_wsd(.decay = 0.5), 75, 100), 0.5, 1e-15);
}

static double fifth(void *user, int64_t step, int64_t steps)
{
    (*(int *)user)++;
    return steps > 0 ? (double)step / (double)steps : 0.2;
}

TEST(a_schedule_of_the_program_counts_behind_the_warmup)
{
    int calls = 0;
    tt_schedule *s = tt_schedule(.kind = TT_LR_CUSTOM, .warmup = 4, .fn = fifth, .user = &calls);
    CHECK(at(s, 0, 14) == 0.2 && at(s, 3, 14) == 0.8 && calls == 0);
    CHECK(at(s, 4, 14) == 0 && at(s, 9, 14) == 0.5 && calls == 2);
    CHECK(at(s, 4, 0) == 0.2); // not known how many
}

TEST(a_schedule_of_the_program_needs_its_function)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {2});
    tt_layer_dense(m, .units = 1);
    CHECK(tt_compile(m, .loss = TT_MSE,
                     .optimizer = tt_sgd(.schedule = tt_schedule(.kind = TT_LR_CUSTOM))) ==
          TT_EINVAL);
    ck_assert_str_eq(tt_last_error(ctx).message,
                     "schedule: kind TT_LR_CUSTOM needs a function: fn is NULL");
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(a_fit_follows_a_schedule_of_the_program)
{
    int calls = 0;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    tt_ctx *ctx = test_ctx();
    tt_data *d = tt_memory(ctx, .x = x, .y = x, .x_shape = TT_SHAPE(1), .y_shape = TT_SHAPE(1),
                           .count = 8, .batch = 2);
    tt_model *m = tt_sequential(ctx, .input = {1});
    tt_layer_dense(m, .units = 1);
    CHECK_OK(tt_compile(
        m, .loss = TT_MSE,
        .optimizer = tt_sgd(.lr = 0.01, .schedule = tt_schedule(.kind = TT_LR_CUSTOM, .fn = fifth,
                                                                .user = &calls))));
    CHECK_OK(tt_fit(m, d, .epochs = 1));
    tt_fit_report r;
    CHECK_OK(tt_fit_report_get(m, &r));
    CHECK(r.last->lr == (float)(0.01 * 0.75));
    CHECK(calls >= 4);
    CHECK_OK(tt_close(ctx));
}
