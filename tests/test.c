/*
 * test.c - contexts, constants and folders for tests.
 */
#include "test_main.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static test_entry *first, **last = &first;
static int n_registered;
static bool is_on_gpu; // the running test is the second of a TEST_BOTH

void test_register(test_entry *e)
{
    e->order = n_registered++;
    *last = e;
    last = &e->next;
}

const test_entry *test_first(void)
{
    return first;
}

void test_mark(const char *file, int line)
{
    static _Thread_local int marked;
    if (line != marked)
        (_mark_point)(file, line);
    marked = line;
}

void test_ignore_event(void *user, const tt_event *ev)
{
    (void)user, (void)ev;
}

const char *test_device(void)
{
    return is_on_gpu ? "gpu:0" : "cpu:0";
}

tt_ctx *test_ctx(void)
{
    return test_ctx_on("cpu:0", NULL, 0);
}

tt_ctx *test_ctx_on(const char *devices, const char *isa, int threads)
{
    if (strcmp(devices, "cpu:0") == 0)
        devices = test_device();
    tt_ctx *ctx = tt_open(.devices = devices, .isa = isa, .threads = threads,
                          .on_event = test_ignore_event, .soft = TT_SOFT_ON);
    ck_assert_ptr_nonnull(ctx);
    ck_assert_msg(tt_status_of(ctx) == TT_OK, "tt_open: %s", tt_last_error(ctx).message);
    return ctx;
}

const char *test_isa(int i)
{
    const char *sets[5];
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        sets[n++] = "avx512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        sets[n++] = "avx2";
    if (__builtin_cpu_supports("fma"))
        sets[n++] = "fma";
#endif
#ifdef __SANITIZE_ADDRESS__ // the loops of fma with calls of fmaf(): slow when checked
    if (n == 0)
#endif
        sets[n++] = "plain";
    return i < n ? sets[i] : NULL;
}

void test_skip(const char *why)
{
    test_note *note = test_note_get();
    if (note != NULL)
        snprintf(note->skipped, sizeof(note->skipped), "%s", why);
    fflush(NULL);
    test_leave();
}

void test_need_yaml(void)
{
#ifndef TUTTI_HAVE_YAML
    test_skip("this build has no libyaml");
#endif
}

bool test_gpu_is_emulated(void)
{
    const char *module = getenv("TUTTI_CUDA_MODULE");
    return module != NULL && strstr(module, "emu") != NULL;
}

void test_need_gpu(void)
{
    tt_ctx *ctx = tt_open(.devices = "gpu:0", .on_event = test_ignore_event);
    char why[200];
    snprintf(why, sizeof(why), "%s", tt_last_error(ctx).message);
    if (tt_close(ctx) == TT_OK)
        return;
    ck_assert_msg(getenv("TUTTI_CUDA_MODULE") == NULL && getenv("TEST_GPU") == NULL, "%s", why);
    test_skip(why);
}

const char *test_folder(void)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/%d", test_root(), test_number());
    mkdir(path, 0700);
    return path;
}

void test_run_on_gpu(const test_entry *e)
{
    test_need_gpu();
    is_on_gpu = true;
    e->fn();
    is_on_gpu = false;
}

// splitmix64: enough for test data, and independent of the library's own generator.
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void test_fill(float *x, int64_t n, uint64_t seed, double low, double high)
{
    uint64_t state = seed * 0xd1342543de82ef95u + 1;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(low + (high - low) * (double)(next_random(&state) >> 11) * 0x1p-53);
}

double test_act(tt_act act, double z)
{
    switch (act) {
    case TT_RELU:
        return z > 0 ? z : 0;
    case TT_GELU:
        return 0.5 * z * (1 + tanh(0.7978845608028654 * (z + 0.044715 * z * z * z)));
    case TT_GELU_ERF:
        return 0.5 * z * (1 + erf(z / sqrt(2.0)));
    case TT_SIGMOID:
        return 1 / (1 + exp(-z));
    case TT_TANH:
        return tanh(z);
    case TT_SILU:
        return z / (1 + exp(-z));
    case TT_ELU:
        return z > 0 ? z : expm1(z);
    case TT_LEAKY_RELU:
        return z > 0 ? z : 0.01 * z;
    case TT_SOFTPLUS:
        return log1p(exp(-fabs(z))) + (z > 0 ? z : 0);
    default:
        return z;
    }
}

tt_tensor *test_uniform(tt_graph *g, uint64_t seed, tt_shape shape)
{
    int64_t n = tt_shape_count(&shape);
    ck_assert_msg(n >= 0, "test_uniform: a constant has no open dimension");
    float *x = malloc(sizeof(float) * (size_t)(n + 1));
    test_fill(x, n, seed, -1, 1);
    tt_tensor *t = tt_const(g, TT_F32, shape, x);
    free(x);
    return t;
}

tt_tensor *test_iota_i32(tt_graph *g, int64_t n)
{
    int32_t *x = malloc(sizeof(int32_t) * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++)
        x[i] = (int32_t)i;
    tt_tensor *t = tt_const(g, TT_I32, TT_SHAPE(n), x);
    free(x);
    return t;
}
