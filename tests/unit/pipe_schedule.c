/*
 * pipe_schedule.c - tables of pipeline schedules and cuts into stages: every slot once, after what
 * it needs, with the idle share and memory that the kind of schedule is known for.
 */
#include "plan/spread/pipe_schedule.h"
#include "test.h"
#include <math.h>

static int slot_at(const tti_schedule_query *q, const tti_schedule *s, int stage, int micro,
                   bool backward)
{
    return s->at[((int64_t)stage * q->n_micro + micro) * 2 + backward];
}

static void check_slot(const tti_schedule_query *q, const tti_schedule *s, int stage, int micro,
                       int *seen)
{
    int f = slot_at(q, s, stage, micro, false), b = slot_at(q, s, stage, micro, true);
    CHECK(f >= 0 && f < s->n);
    CHECK(s->slots[f].stage == stage && s->slots[f].micro == micro && !s->slots[f].backward);
    seen[f]++;
    if (stage > 0)
        CHECK(slot_at(q, s, stage - 1, micro, false) < f);
    if (q->forward_only) {
        CHECK_INT(b, -1);
        return;
    }
    CHECK(b > f && b < s->n);
    CHECK(s->slots[b].stage == stage && s->slots[b].micro == micro && s->slots[b].backward);
    seen[b]++;
    if (stage < q->n_stages - 1)
        CHECK(slot_at(q, s, stage + 1, micro, true) < b);
}

// Every slot once and after what it needs; most[] is what the order says.
static void check_table(const tti_schedule_query *q, const tti_schedule *s)
{
    static int seen[1 << 16];
    CHECK_INT(s->n, q->n_stages * q->n_micro * (q->forward_only ? 1 : 2));
    memset(seen, 0, sizeof(seen));
    for (int stage = 0; stage < q->n_stages; stage++)
        for (int micro = 0; micro < q->n_micro; micro++)
            check_slot(q, s, stage, micro, seen);
    for (int i = 0; i < s->n; i++)
        CHECK_INT(seen[i], 1);
    for (int stage = 0; stage < q->n_stages; stage++) {
        int now = 0, most = 0;
        for (int i = 0; i < s->n; i++) {
            if (s->slots[i].stage == stage)
                now += s->slots[i].backward ? -1 : 1;
            most = TTI_MAX(most, now);
        }
        CHECK_INT(s->most[stage], q->forward_only ? 1 : most);
    }
}

static void check_known(const tti_schedule_query *q, const tti_schedule *s)
{
    int p = q->n_devices, m = q->n_micro, chunks = q->n_stages / p;
    // A last round that is not full takes as long as a full one at most, on every device.
    int full = chunks == 1 ? m : (m + p - 1) / p * p;
    double known = 1 - (double)chunks * m / (chunks * full + p - 1);
    ck_assert_msg(m == full ? fabs(s->bubble - known) < 1e-12 : s->bubble <= known + 1e-12,
                  "kind %d, %d devices, %d chunks, %d micro-batches: bubble %g", q->kind, p, chunks,
                  m, s->bubble);
    for (int stage = 0; stage < q->n_stages; stage++) {
        if (q->kind == TT_PIPE_GPIPE)
            CHECK_INT(s->most[stage], q->forward_only ? 1 : m);
        else if (chunks == 1)
            CHECK(s->most[stage] <= TTI_MIN(p - stage + (stage < p - 1), m));
        else
            CHECK(s->most[stage] <= 2 * p);
    }
}

TEST(schedules_take_every_slot_once_in_order)
{
    tt_ctx *ctx = test_ctx();
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 16; m++)
            for (int kind = 0; kind < 4; kind++) {
                tti_schedule s;
                tti_schedule_query q = {.kind = kind & 1 ? TT_PIPE_GPIPE : TT_PIPE_1F1B,
                                        .n_devices = p,
                                        .n_stages = p,
                                        .n_micro = m,
                                        .forward_only = kind >= 2};
                CHECK_OK(tti_schedule_make(ctx, &q, &s));
                check_table(&q, &s);
                check_known(&q, &s);
                tti_schedule_free(ctx, &s);
            }
    CHECK_OK(tt_close(ctx));
}

TEST(interleaved_schedules_idle_less)
{
    tt_ctx *ctx = test_ctx();
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 16; m++)
            for (int chunks = 1; chunks <= 4; chunks++) {
                tti_schedule s, forward;
                tti_schedule_query q = {.kind = TT_PIPE_INTERLEAVED,
                                        .n_devices = p,
                                        .n_stages = p * chunks,
                                        .n_micro = m};
                CHECK_OK(tti_schedule_make(ctx, &q, &s));
                check_table(&q, &s);
                check_known(&q, &s);
                tti_schedule_free(ctx, &s);
                q.forward_only = true;
                CHECK_OK(tti_schedule_make(ctx, &q, &forward));
                check_table(&q, &forward);
                check_known(&q, &forward);
                tti_schedule_free(ctx, &forward);
            }
    CHECK_OK(tt_close(ctx));
}

// With unequal costs the order still holds; the slow stage sets the pace.
TEST(schedules_follow_costs)
{
    tt_ctx *ctx = test_ctx();
    const double forward[] = {1, 5, 0, 2}, backward[] = {2, 9, 0, 3};
    for (int kind = 0; kind < 2; kind++) {
        tti_schedule s;
        tti_schedule_query q = {.kind = kind == 0 ? TT_PIPE_1F1B : TT_PIPE_GPIPE,
                                .n_devices = 4,
                                .n_stages = 4,
                                .n_micro = 7,
                                .forward = forward,
                                .backward = backward};
        CHECK_OK(tti_schedule_make(ctx, &q, &s));
        check_table(&q, &s);
        // Stage 1 is never idle between its first and last slot: 1 before, 2 after.
        double end = 1 + 7 * 14 + 2, work = 7 * (3 + 14 + 0 + 5);
        if (kind == 1)
            CHECK_NEAR(s.bubble, 1 - work / (4 * (end + 5)), 1e-12); // drains, then turns round
        CHECK(s.bubble >= 1 - work / (4 * end) - 1e-12);
        tti_schedule_free(ctx, &s);
    }
    const double nothing[] = {0, 0, 0, 0};
    tti_schedule s;
    tti_schedule_query q = {
        .n_devices = 4, .n_stages = 4, .n_micro = 3, .forward = nothing, .backward = nothing};
    CHECK_OK(tti_schedule_make(ctx, &q, &s));
    check_table(&q, &s);
    CHECK(s.bubble == 0);
    tti_schedule_free(ctx, &s);
    CHECK_OK(tt_close(ctx));
}

static void refuse(tti_schedule_query q, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tti_schedule s;
    CHECK(tti_schedule_make(ctx, &q, &s) == TT_EINVAL);
    CHECK(s.slots == NULL && s.at == NULL);
    CHECK_MESSAGE(ctx, words);
    CHECK(tt_close(ctx) == TT_EINVAL);
}

TEST(schedules_refuse_bad_numbers)
{
    const double bad[] = {1, -1}, worse[] = {NAN, 1};
    refuse((tti_schedule_query){.n_stages = 1, .n_micro = 1}, "0 devices; 1 to 1024");
    refuse((tti_schedule_query){.n_devices = 1025, .n_stages = 1025, .n_micro = 1}, "1025 devices");
    refuse((tti_schedule_query){.n_devices = 2, .n_stages = 2}, "0 micro-batches; 1 to");
    refuse((tti_schedule_query){.n_devices = 2, .n_stages = 2, .n_micro = -3}, "-3 micro-batches");
    refuse((tti_schedule_query){.n_devices = 2, .n_stages = 2, .n_micro = 1 << 30}, "1073741824");
    refuse((tti_schedule_query){.n_devices = 2, .n_stages = 4, .n_micro = 2},
           "schedule 1f1b: 4 stages on 2 devices, but each device has one stage");
    refuse((tti_schedule_query){.kind = TT_PIPE_INTERLEAVED, 4, 6, 4}, "use 8 stages");
    refuse((tti_schedule_query){.kind = TT_PIPE_INTERLEAVED, 4, 0, 4}, "use 4 stages");
    refuse((tti_schedule_query){.kind = TT_PIPE_INTERLEAVED, 2, 18, 4}, "9 stages per device");
    refuse((tti_schedule_query){.kind = (tt_pipe)7, 1, 1, 1}, "no pipeline schedule 7");
    refuse((tti_schedule_query){.n_devices = 2, .n_stages = 2, .n_micro = 1, .forward = bad},
           "stage 1 costs -1 forward");
    refuse((tti_schedule_query){.n_devices = 2, .n_stages = 2, .n_micro = 1, .backward = worse},
           "stage 0 costs nan backward");
}

TEST(schedules_survive_missing_memory)
{
    tti_schedule_query q = {.n_devices = 3, .n_stages = 3, .n_micro = 5};
    int failed = 0;
    for (int64_t k = 1;; k++) {
        tt_ctx *ctx = test_ctx();
        tti_schedule s;
        tti_fail_alloc_at(ctx, k);
        tt_status st = tti_schedule_make(ctx, &q, &s);
        tti_fail_alloc_at(ctx, 0);
        if (st == TT_OK) {
            tti_schedule_free(ctx, &s);
            CHECK_OK(tt_close(ctx));
            break;
        }
        CHECK(st == TT_ENOMEM && s.slots == NULL && s.at == NULL);
        CHECK_INT(tt_alloc_stats_get(ctx).blocks >= 0, 1);
        CHECK(tt_close(ctx) == TT_ENOMEM);
        failed++;
    }
    CHECK(failed >= 4);
}

// ---- cuts ------------------------------------------------------------------------------------

static double most_of(int n, const double *cost, const int *stage)
{
    double most = 0, now = 0;
    for (int i = 0; i < n; i++) {
        now = i > 0 && stage[i] == stage[i - 1] ? now + cost[i] : cost[i];
        most = TTI_MAX(most, now);
    }
    return most;
}

// The least cost of the costliest of k parts of [from, n), by trying all.
static double best_of(int n, const double *cost, const uint8_t *can_cut, int from, int k)
{
    double now = 0, best = INFINITY;
    for (int i = from; i < n; i++) {
        if (k > 1 && i > from && can_cut[i])
            best = TTI_MIN(best, TTI_MAX(now, best_of(n, cost, can_cut, i, k - 1)));
        now += cost[i];
    }
    return k == 1 ? now : best;
}

TEST(balance_is_as_good_as_trying_all)
{
    int possible = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        double cost[11];
        uint8_t can_cut[11];
        int stage[11];
        int n = 1 + (int)(tti_philox4(seed, 0, 0).v[0] % 11);
        int k = 1 + (int)(tti_philox4(seed, 0, 0).v[1] % 5);
        for (int i = 0; i < n; i++) {
            tti_philox r = tti_philox4(seed, 1, (uint64_t)i);
            cost[i] = r.v[0] % 10; // whole numbers: sums are exact in any order
            can_cut[i] = r.v[1] % 4 != 0;
        }
        double want = best_of(n, cost, can_cut, 0, k);
        bool ok = tti_balance(n, cost, can_cut, k, stage);
        CHECK_INT(ok, isfinite(want));
        if (!ok)
            continue;
        possible++;
        CHECK(stage[0] == 0 && stage[n - 1] == k - 1);
        for (int i = 1; i < n; i++)
            CHECK(stage[i] == stage[i - 1] || (stage[i] == stage[i - 1] + 1 && can_cut[i]));
        ck_assert_msg(most_of(n, cost, stage) == want, "seed %d", (int)seed);
    }
    CHECK(possible > 100);
}

TEST(balance_shares_what_is_left_over)
{
    double cost[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, none[4] = {0}, odd[4] = {NAN, -1, 1, 1};
    uint8_t any[10];
    int stage[10], size[4] = {0};
    memset(any, 1, sizeof(any));
    CHECK(tti_balance(10, cost, any, 4, stage));
    for (int i = 0; i < 10; i++)
        size[stage[i]]++;
    CHECK(size[0] == 2 && size[1] == 2 && size[2] == 3 && size[3] == 3);
    CHECK(tti_balance(4, none, any, 4, stage));
    CHECK(stage[1] == 1 && stage[3] == 3);
    CHECK(tti_balance(4, odd, any, 2, stage));
    CHECK(stage[2] == 0 && stage[3] == 1);
    CHECK(!tti_balance(3, cost, any, 4, stage));
    CHECK(!tti_balance(0, cost, any, 1, stage));
    CHECK(!tti_balance(3, cost, any, 0, stage));
    CHECK(!tti_balance(3, cost, any, 100000, stage));
}
