/*
 * failure.c - what happens when memory runs out, and that a step after the first asks for none.
 *
 * Each loop makes the k-th allocation fail, k = 1, 2, ..., until the operation succeeds. Every
 * failure before that is TT_ENOMEM; what existed before works as it did; tt_close() finds no leak.
 */
#include "model.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MANY 20000 // allocations: an operation that takes more is not failing where it should

static void expect_nomem(tt_ctx *ctx, int k)
{
    ck_assert_msg(tt_status_of(ctx) == TT_ENOMEM, "allocation %d: %s, '%s'", k,
                  tt_status_name(tt_status_of(ctx)), tt_last_error(ctx).message);
    tti_fail_alloc_at(ctx, 0);
    tt_clear_error(ctx);
}

static void end_of(tt_ctx *ctx, int k)
{
    tt_status st = tt_close(ctx);
    ck_assert_msg(st == TT_OK, "allocation %d: tt_close gives %s", k, tt_status_name(st));
}

TEST(open_without_memory)
{
    int k = 1;
    for (; k < MANY; k++) {
        tt_ctx *ctx = tti_open_failing(TT_OPTS(tt_open_opts, .devices = "cpu:0*2",
                                               .level = TT_ERROR, .on_event = test_ignore_event),
                                       k);
        if (ctx == NULL)
            continue;
        tt_status st = tt_status_of(ctx);
        CHECK(st == TT_OK || st == TT_ENOMEM);
        tti_fail_alloc_at(ctx, 0);
        tt_clear_error(ctx);
        end_of(ctx, k);
        if (st == TT_OK)
            break;
    }
    CHECK(k > 1 && k < MANY);
}

TEST(building_without_memory)
{
    int k = 1;
    for (; k < MANY; k++) {
        tt_ctx *ctx = test_ctx();
        test_model m, again;
        tti_fail_alloc_at(ctx, k);
        bool ok = test_model_build(&m, ctx, NULL, NULL, NULL);
        if (ok) {
            tti_fail_alloc_at(ctx, 0);
            end_of(ctx, k);
            break;
        }
        expect_nomem(ctx, k);
        // What was built is whole, and the context builds on.
        if (m.g != NULL) {
            char *text = tt_graph_print(m.g);
            CHECK(text != NULL);
            CHECK(tt_graph_parse(ctx, text, strlen(text)) != NULL);
            tt_string_free(ctx, text);
        }
        CHECK(test_model_build(&again, ctx, NULL, NULL, NULL));
        end_of(ctx, k);
    }
    CHECK(k > 50 && k < MANY);
}

// A failed first run changes nothing: the same steps then give the same weights.
static void run_without_memory(const char *devices, const char *other)
{
    tt_hash want = {0, 0}, got;
    int k = 0;
    for (; k < MANY; k++) {
        tt_ctx *ctx = test_ctx_on(devices, NULL, 2);
        test_model m;
        CHECK(test_model_build(&m, ctx, NULL, other, NULL));
        tt_session *s = NULL;
        bool failed = false;
        if (k > 0) { // the first time without a failure, to know the hash
            tti_fail_alloc_at(ctx, k);
            s = tt_session_new(m.g);
            double loss = s == NULL ? NAN : test_model_step(&m, s, 0, 11);
            failed = isnan(loss);
            if (failed)
                expect_nomem(ctx, k);
            tti_fail_alloc_at(ctx, 0);
        }
        if (s == NULL)
            s = tt_session_new(m.g);
        if (k == 0 || failed)
            ck_assert_msg(!isnan(test_model_step(&m, s, 0, 11)), "allocation %d: %s", k,
                          tt_last_error(ctx).message);
        CHECK(!isnan(test_model_step(&m, s, 1, 11)));
        CHECK_OK(tt_weight_hash(s, &got));
        if (k == 0)
            want = got;
        ck_assert_msg(got.low == want.low && got.high == want.high,
                      "allocation %d: the weights differ after a failed run", k);
        end_of(ctx, k);
        if (k > 0 && !failed)
            break;
    }
    CHECK(k > 20 && k < MANY);
}

TEST(running_without_memory)
{
    run_without_memory("cpu:0", NULL);
}

TEST(running_on_two_devices_without_memory)
{
    run_without_memory("cpu:0*2", "cpu:1");
}

// The smaller calls: printing, parsing, planning as text, immediate mode, variables.
static bool use_all(tt_ctx *ctx, test_model *m, tt_session *s, const char *text)
{
    float y[4];
    char *copy = tt_graph_print(m->g);
    tt_string_free(ctx, copy);
    tt_graph *g = tt_graph_parse(ctx, text, strlen(text));
    char *plan = tt_plan_print(s, .rows = 3);
    tt_string_free(ctx, plan);
    plan = tt_plan_print(s, .rows = 3, .form = TT_PLAN_JSON);
    tt_string_free(ctx, plan);
    tt_eval(m->g, tt_exp(m->g, test_uniform(m->g, 3, TT_SHAPE(4))), y, 4);
    tt_graph_free(g);
    return tt_status_of(ctx) == TT_OK;
}

TEST(small_calls_without_memory)
{
    int k = 1;
    for (; k < MANY; k++) {
        tt_ctx *ctx = test_ctx();
        test_model m;
        CHECK(test_model_build(&m, ctx, NULL, NULL, NULL));
        tt_session *s = tt_session_new(m.g);
        char *text = tt_graph_print(m.g);
        CHECK(text != NULL);
        tti_fail_alloc_at(ctx, k);
        bool ok = use_all(ctx, &m, s, text);
        if (!ok)
            expect_nomem(ctx, k);
        tti_fail_alloc_at(ctx, 0);
        CHECK(!isnan(test_model_step(&m, s, 0, 5)));
        tt_string_free(ctx, text);
        end_of(ctx, k);
        if (ok)
            break;
    }
    CHECK(k > 20 && k < MANY);
}

// ---- a step after the first allocates nothing ------------------------------------------------

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_COUNT 0
#else
#define CAN_COUNT 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static _Atomic int64_t n_allocations;

// In place of the C library's, for the whole test program and the libraries it uses.
void *malloc(size_t n)
{
    n_allocations++;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t bytes)
{
    n_allocations++;
    return __libc_calloc(n, bytes);
}
void *realloc(void *p, size_t n)
{
    n_allocations++;
    return __libc_realloc(p, n);
}
void *aligned_alloc(size_t align, size_t n)
{
    n_allocations++;
    return __libc_memalign(align, n);
}
void *memalign(size_t align, size_t n);
void *memalign(size_t align, size_t n)
{
    n_allocations++;
    return __libc_memalign(align, n);
}
int posix_memalign(void **p, size_t align, size_t n)
{
    n_allocations++;
    *p = __libc_memalign(align, n);
    return *p == NULL ? 12 : 0; // ENOMEM
}
#endif

static void count_steps(const char *devices, const char *other)
{
#if CAN_COUNT
    tt_ctx *ctx = test_ctx_on(devices, NULL, 2);
    test_model m;
    CHECK(test_model_build(&m, ctx, NULL, other, NULL));
    tt_session *s = tt_session_new(m.g);
    CHECK(!isnan(test_model_step(&m, s, 0, 13)));
    int64_t before = n_allocations, calls = tt_alloc_stats_get(ctx).calls;
    void *volatile probe = malloc(1); // the counter works
    CHECK(n_allocations == before + 1);
    free(probe);
    double loss = 0;
    before = n_allocations; // from here to the count nothing of Check's, which allocates itself
    for (int step = 1; step < 10; step++)
        loss += test_model_step(&m, s, step, 13);
    int64_t made = n_allocations - before;
    ck_assert_msg(!isnan(loss), "%s", tt_last_error(ctx).message);
    ck_assert_msg(made == 0, "nine steps made %lld allocations", (long long)made);
    CHECK_INT(tt_alloc_stats_get(ctx).calls, calls);
    CHECK_OK(tt_close(ctx));
#else
    (void)devices, (void)other;
    test_skip("a sanitizer owns malloc in this build");
#endif
}

TEST(a_step_allocates_nothing)
{
    count_steps("cpu:0", NULL);
}

TEST(a_step_on_three_devices_allocates_nothing)
{
    count_steps("cpu:0*3", "cpu:2");
}

// ---- memory is planned to the byte -----------------------------------------------------------

// The highest byte that either of two paints shows as written, per device.
static void check_touched(const char *devices, const char *strategy, const char *dense,
                          const char *conv, const char *recompute)
{
    tt_ctx *ctx = tt_open(.devices = devices, .strategy = strategy, .threads = 2,
                          .on_event = test_ignore_event);
    test_model m;
    CHECK(test_model_build(&m, ctx, dense, conv, NULL));
    tt_session *s = tt_session_new(m.g, .recompute = recompute);
    CHECK(!isnan(test_model_step(&m, s, 0, 13)));
    size_t touched[8] = {0};
    for (int round = 0; round < 2; round++) {
        tti_session_paint(s, round == 0 ? 0xA5 : 0x3C);
        CHECK(!isnan(test_model_step(&m, s, 1 + round, 13)));
        for (int d = 0; d < tt_device_count(ctx); d++) {
            size_t now = tti_session_touched(s, d);
            if (now > touched[d])
                touched[d] = now;
        }
    }
    for (int d = 0; d < tt_device_count(ctx); d++) {
        tt_plan_memory mem;
        CHECK_OK(tt_plan_memory_get(s, d, &mem));
        ck_assert_msg(touched[d] == mem.activations,
                      "device %d: the plan has %zu bytes, %zu were written", d, mem.activations,
                      touched[d]);
        CHECK(mem.lower_bound <= mem.activations);
        CHECK(mem.weights + mem.gradients + mem.optimizer + mem.kept + mem.workspace == mem.total);
        CHECK(mem.variables + mem.activations == mem.total);
    }
    CHECK_OK(tt_close(ctx));
}

TEST(the_arena_is_written_to_its_last_byte)
{
    check_touched("cpu:0", NULL, NULL, NULL, NULL);
    check_touched("cpu:0", NULL, NULL, NULL, "all");
}

TEST(the_arenas_of_two_devices_are_written_to_their_last_byte)
{
    check_touched("cpu:0*2", NULL, "cpu:0", "cpu:1", NULL);
}

TEST(the_arenas_of_mirrored_devices_are_written_to_their_last_byte)
{
    check_touched("cpu:0*3", "mirrored", NULL, NULL, NULL);
    check_touched("cpu:0*3", "mirrored", NULL, NULL, "all");
}
