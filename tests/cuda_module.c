/*
 * cuda_module.c - kernels of the CUDA module called alone (cuda_module.h).
 */
#include "cuda_module.h"
#include "cuda/load.h"
#include <stdlib.h>

static const tti_cuda_module *module;
static tt_ctx *ctx; // has the errors and the memory of the device's state
static void *device;
static void *held[512]; // given back by test_device_clear()
static int n_held;

void test_device_open(void)
{
    char why[256] = "";
    if (getenv("TUTTI_CUDA_MODULE") == NULL)
        test_skip("TUTTI_CUDA_MODULE is not set");
    module = tti_cuda_load(why, sizeof(why));
    ck_assert_msg(module != NULL, "%s", why);
    if (module->count(why, sizeof(why)) == 0)
        test_skip(why);
    ctx = test_ctx();
    ck_assert_msg(module->open(ctx, "gpu:0", 0, &device) == TT_OK, "%s", test_device_reason());
}

void test_device_clear(void)
{
    while (n_held > 0)
        module->free(device, held[--n_held]);
}

static void *on_device(const void *data, size_t bytes, size_t skip)
{
    void *p;
    CHECK(n_held < (int)(sizeof(held) / sizeof(held[0])));
    ck_assert_msg(module->alloc(device, bytes + skip + 16, &p) == TT_OK, "%s",
                  test_device_reason());
    held[n_held++] = p;
    if (data != NULL && bytes > 0)
        ck_assert_msg(module->copy_now(device, (char *)p + skip, NULL, data, bytes) == TT_OK, "%s",
                      test_device_reason());
    return (char *)p + skip;
}

void test_device_get(void *to, const tt_arg *a)
{
    size_t bytes = (size_t)a->count * tt_dtype_bytes(a->dtype);
    ck_assert_msg(module->copy_now(NULL, to, device, a->data, bytes) == TT_OK, "%s",
                  test_device_reason());
}

tt_arg test_device_arg(tt_dtype t, int64_t count, const void *data, size_t skip)
{
    size_t item = tt_dtype_bytes(t);
    return (tt_arg){.data = on_device(data, (size_t)count * item, skip * item),
                    .dtype = t,
                    .shape = {1, {count}},
                    .count = count,
                    .rows = 1,
                    .cols = count,
                    .open = -1};
}

void test_device_close(void)
{
    test_device_clear();
    module->close(device);
    tt_clear_error(ctx); // the test has looked at it
    CHECK_OK(tt_close(ctx));
}

const tti_cuda_module *test_device_module(void)
{
    return module;
}

void *test_device_state(void)
{
    return device;
}

const char *test_device_reason(void)
{
    return tt_last_error(ctx).message;
}

tt_status test_device_run(const char *name, tt_launch l)
{
    const tt_kernel *k = module->kernel(name);
    tt_clear_error(ctx);
    ck_assert_msg(k != NULL, "the module has no %s", name);
    tt_op op = {.name = name};
    tt_node node = {.op = &op, .name = "alone"};
    tt_prep p = {.node = &node,
                 .attr = l.attr,
                 .in = l.in,
                 .out_args = l.out,
                 .n_in = l.n_in,
                 .n_out = l.n_out,
                 .lanes = l.lanes,
                 .device = device};
    l.node = &node;
    l.device = device;
    l.stream = module->stream(device);
    if (k->prepare != NULL) {
        TT_TRY(k->prepare(&p));
        l.tune = p.tune;
        l.scratch = on_device(NULL, p.scratch_bytes, 0);
    }
    tt_status st = k->fn[0](&l), synced = module->sync(device, 60000);
    return st != TT_OK ? st : synced;
}
