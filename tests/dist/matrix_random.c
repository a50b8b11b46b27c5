/*
 * matrix_random.c - ways that nobody has listed: strategy, devices, lanes, rows, pins, schedules,
 * shares and the rest drawn at random. Whatever is not refused has the bits of one device.
 */
#include "cli/matrix.h"
#include "test.h"
#include <stdio.h>

static uint64_t state;

static int draw(int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)n);
}

typedef struct trial {
    const matrix_model *model;
    matrix_way way;
    int64_t batch, count;
    char share[64];
} trial;

static void draw_replicas(trial *t)
{
    matrix_way *w = &t->way;
    if (draw(3) == 0) {
        w->pins = 1 + draw(3);
        w->is_local = true;
        w->devices = w->pins * (1 + draw(3));
    }
    if (draw(3) == 0)
        w->spread.bucket = (size_t)1 << draw(20);
    if (strcmp(w->strategy, "mirrored") == 0)
        w->spread.update = (tt_update_where)draw(3);
    int n = w->devices / (w->pins > 0 ? w->pins : 1);
    for (int i = 0, use = draw(3) == 0; use && i < n; i++) {
        size_t at = strlen(t->share);
        snprintf(t->share + at, sizeof(t->share) - at, "%s%d", i > 0 ? "," : "", 1 + draw(5));
        w->spread.share = t->share;
    }
}

static void draw_pipeline(trial *t, int lanes)
{
    matrix_way *w = &t->way;
    int stages = 1 + draw(3);
    w->spread.replicas = 1 + draw(3);
    w->devices = stages * w->spread.replicas;
    w->spread.schedule = (tt_pipe)draw(3);
    w->spread.update = (tt_update_where)draw(3);
    if (draw(2) == 0)
        w->spread.micro = 1 + draw(lanes);
    if (w->spread.schedule == TT_PIPE_INTERLEAVED)
        w->spread.chunks = draw(4);
    if (draw(3) == 0) {
        w->pins = stages;
        w->is_local = true;
    }
}

static void draw_trial(trial *t, uint64_t seed)
{
    static const char *const strategies[] = {"single", "mirrored", "central", "pipeline"};
    static const char *const recompute[] = {NULL, NULL, "all", "*_1", "budget 8MiB"};
    static const int parts[] = {1, 1, 1, 2, 4};
    *t = (trial){.model = NULL};
    state = 0x9E3779B97F4A7C15u * (seed + 1);
    for (int i = 0; i < 8; i++)
        (void)draw(2);
    matrix_way *w = &t->way;
    t->model = &matrix_models[draw(matrix_n_models())];
    w->strategy = strategies[draw(4)];
    w->lanes = draw(3) > 0 ? 0 : 1 + draw(MATRIX_MAX_LANES);
    w->devices = 1 + draw(8);
    w->threads = 1 + draw(4);
    w->recompute = recompute[draw(5)];
    int lanes = w->lanes > 0 ? w->lanes : 8;
    if (strcmp(w->strategy, "pipeline") == 0)
        draw_pipeline(t, lanes);
    else if (strcmp(w->strategy, "single") == 0)
        w->pins = draw(2) * (1 + draw(w->devices));
    else
        draw_replicas(t);
    for (w->accumulate = parts[draw(5)]; lanes % w->accumulate != 0;)
        w->accumulate /= 2;
    t->batch = w->accumulate * (1 + draw(draw(3) == 0 ? 37 : 12));
    t->count = 1 + draw(50);
}

// False: refused, which must be for the caller's mistake.
static bool train(const trial *t, const matrix_way *way, matrix_result *out)
{
    tt_ctx *ctx = matrix_open(way);
    tt_model *m = matrix_build(ctx, t->model, way);
    int64_t parts = way->accumulate > 1 ? way->accumulate : 1;
    tt_fit_report r;
    *out = (matrix_result){.loss = 0};
    tt_status st = m == NULL ? tt_status_of(ctx) : TT_OK;
    if (st == TT_OK)
        st = tt_fit(m, matrix_data(ctx, t->model, t->count), .epochs = 2, .batch = t->batch / parts,
                    .accumulate = parts, .validate = matrix_data(ctx, t->model, t->count / 2 + 1));
    if (st == TT_OK) {
        CHECK_OK(tt_fit_report_get(m, &r));
        *out = (matrix_result){
            .weights = r.weights, .loss = r.last->loss, .metric = r.last->validation_loss};
    }
    snprintf(out->message, sizeof(out->message), "%s", tt_last_error(ctx).message);
    CHECK(tt_close(ctx) == st);
    ck_assert_msg(st == TT_OK || st == TT_EINVAL || st == TT_EUNSUPPORTED, "%s: %s",
                  tt_status_name(st), out->message);
    return st == TT_OK;
}

static void check_trials(uint64_t from, int n)
{
    int trained = 0;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    n /= 5;
#endif
    for (uint64_t seed = from; seed < from + (uint64_t)n; seed++) {
        trial t;
        matrix_result got, want;
        char options[128];
        draw_trial(&t, seed);
        matrix_way one = matrix_reference(t.way.lanes);
        if (!train(&t, &t.way, &got))
            continue;
        matrix_options(&t.way, options);
        CHECK(train(&t, &one, &want));
        ck_assert_msg(
            matrix_same(&got, &want),
            "seed %d: %s with %s, %s on %d, %d pins, %s, batch %d of %d records: loss %a, "
            "validation %a, on one device %a, %a",
            (int)seed, t.model->name, t.model->optimizer, matrix_strategy(&t.way), t.way.devices,
            t.way.pins, options, (int)t.batch, (int)t.count, got.loss, got.metric, want.loss,
            want.metric);
        trained++;
    }
    ck_assert_msg(trained > n / 2, "%d of %d were refused", n - trained, n);
}

TEST(matrix_random_ways)
{
    check_trials(0, 100);
}

TEST(matrix_more_random_ways)
{
    check_trials(1000, 100);
}
