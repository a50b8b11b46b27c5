/*
 * test.h - thin names over Check. Each TEST is a process of its own with a timeout. Tests register
 * themselves by file, so adding a file edits no list.
 */
#ifndef TUTTI_TEST_H
#define TUTTI_TEST_H

#include "run/testing.h"
#include <check.h>
#include <stdint.h>
#include <string.h>
#include <tutti/extend.h>
#include <tutti/tutti.h>

typedef void (*test_fn)(void);
typedef struct test_entry {
    const char *file, *name;
    test_fn fn;
    struct test_entry *next;
    void (*run)(const struct test_entry *e); // instead of fn, with arg
    const void *arg;
    int order;
} test_entry;
void test_register(test_entry *e);
const test_entry *test_first(void); // all registered tests, in order of registration

#define TEST(name_)                                                                    \
    static void name_(void);                                                           \
    static test_entry name_##_entry = {.file = __FILE__, .name = #name_, .fn = name_}; \
    __attribute__((constructor)) static void name_##_register(void)                    \
    {                                                                                  \
        test_register(&name_##_entry);                                                 \
    }                                                                                  \
    static void name_(void)

// The same as two tests: on the CPU, and as "gpu/name" with test_ctx() on gpu:0.
#define TEST_BOTH(name_)                                                                 \
    static void name_(void);                                                             \
    static test_entry name_##_entries[2] = {                                             \
        {.file = __FILE__, .name = #name_, .fn = name_},                                 \
        {.file = __FILE__, .name = "gpu/" #name_, .fn = name_, .run = test_run_on_gpu}}; \
    __attribute__((constructor)) static void name_##_register(void)                      \
    {                                                                                    \
        test_register(&name_##_entries[0]);                                              \
        test_register(&name_##_entries[1]);                                              \
    }                                                                                    \
    static void name_(void)
void test_run_on_gpu(const test_entry *e);

// Check tells the runner of every check that passed, for the report of a crash: a system call each,
// which a loop over elements feels. Once for each line in a row says as much.
void test_mark(const char *file, int line);
#define _mark_point(file, line) test_mark((file), (line))

#define CHECK(cond)           ck_assert(cond)
#define CHECK_OK(call)        ck_assert_msg((call) == TT_OK, "%s failed", #call)
#define CHECK_INT(a, b)       ck_assert_int_eq((a), (b))
#define CHECK_STR(a, b)       ck_assert_str_eq((a), (b))
#define CHECK_NEAR(a, b, tol) ck_assert_double_eq_tol((a), (b), (tol))
// Fails unless the context's message contains the words.
#define CHECK_MESSAGE(ctx, words)                                                         \
    ck_assert_msg(strstr(tt_last_error(ctx).message, (words)) != NULL, "message is '%s'", \
                  tt_last_error(ctx).message)

// A context on "cpu:0" (a TEST_BOTH: or "gpu:0"), quiet; closed by the test, which then also fails
// on a leak.
tt_ctx *test_ctx(void);
const char *test_device(void); // where test_ctx() is: "cpu:0" or "gpu:0"
tt_ctx *test_ctx_on(const char *devices, const char *isa, int threads);
void test_ignore_event(void *user, const tt_event *ev);
// The best sets first: "avx512", "avx2", "fma", "plain"; NULL past what this machine has.
const char *test_isa(int i);
// Ends the test as skipped (counted and printed, never passed).
void test_skip(const char *why);
void test_need_yaml(void); // skips where the build cannot read jobs
/*
 * Ends the test as skipped where "gpu:0" cannot be opened; fails it there if TUTTI_CUDA_MODULE or
 * TEST_GPU says that it must be. Is it the emulation?
 */
void test_need_gpu(void);
bool test_gpu_is_emulated(void);
// A folder for this test's files, removed afterwards; borrowed.
const char *test_folder(void);

// Constants for tests: uniform numbers in [-1, 1) by a fixed generator; counting integers.
tt_tensor *test_uniform(tt_graph *g, uint64_t seed, tt_shape shape);
tt_tensor *test_iota_i32(tt_graph *g, int64_t n);
void test_fill(float *x, int64_t n, uint64_t seed, double low, double high);
// What an activation is, by the C library.
double test_act(tt_act act, double z);

#endif
