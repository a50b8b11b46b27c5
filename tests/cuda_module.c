/*
 * cuda_module.c - kernels of the CUDA module called alone (cuda_module.h).
 */
#include "cuda_module.h"
#include "comm/lane_tree.h"
#include "cuda/load.h"
#include <stdlib.h>

static const tti_cuda_module *module;
static tt_ctx *ctx;       // has the errors and the memory of the device's state
static tti_device device; // its head alone
static void *held[512];   // given back by test_device_clear()
static int n_held;

typedef struct lane_set {
    tt_lanes ln; // first: what test_lanes() gives
    int64_t bound[TT_MAX_LANES + 1];
    uint8_t merges[TT_MAX_LANES];
    struct lane_set *next;
} lane_set;
static lane_set *lane_sets; // freed by test_device_clear()

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
    ck_assert_msg(module->open(ctx, "gpu:0", 0, &device.state) == TT_OK, "%s",
                  test_device_reason());
}

void test_device_clear(void)
{
    while (n_held > 0)
        module->free(&device, held[--n_held]);
    while (lane_sets != NULL) {
        lane_set *next = lane_sets->next;
        free(lane_sets);
        lane_sets = next;
    }
}

tt_arg test_arg(tt_dtype t, tt_shape shape)
{
    tt_arg a = {.dtype = t, .shape = shape, .count = 1, .rows = 1, .cols = 1, .open = -1};
    for (int i = 0; i + 1 < shape.rank; i++)
        a.rows *= shape.dim[i];
    if (shape.rank > 0)
        a.cols = shape.dim[shape.rank - 1];
    a.count = a.rows * a.cols;
    return a;
}

const tt_lanes *test_lanes(int first, int last, int total, int64_t rows)
{
    tti_lane_stack stack = {.depth = 0};
    lane_set *s = calloc(1, sizeof(*s));
    CHECK(s != NULL && last - first <= TT_MAX_LANES);
    s->next = lane_sets;
    lane_sets = s;
    s->ln = (tt_lanes){.total = total,
                       .first = first,
                       .n = last - first,
                       .global_rows = rows,
                       .first_row = tti_lane_row(first, rows, total),
                       .bound = s->bound,
                       .merges = s->merges};
    for (int i = first; i < last; i++) {
        s->bound[i - first + 1] = tti_lane_row(i + 1, rows, total) - s->ln.first_row;
        s->ln.depth = TTI_MAX(s->ln.depth, stack.depth + 1);
        s->merges[i - first] = (uint8_t)tti_lane_push(&stack, (tti_part){i, 1});
    }
    if (s->ln.n == total)
        s->merges[total - 1] = (uint8_t)(s->merges[total - 1] + tti_lane_finish(&stack));
    s->ln.n_parts = TTI_MAX(stack.depth, 1);
    return &s->ln;
}

void *test_device_room(const void *data, size_t bytes, size_t skip)
{
    void *p;
    CHECK(n_held < (int)(sizeof(held) / sizeof(held[0])));
    ck_assert_msg(module->alloc(&device, bytes + skip + 16, &p) == TT_OK, "%s",
                  test_device_reason());
    held[n_held++] = p;
    if (data != NULL && bytes > 0)
        ck_assert_msg(module->copy_now(&device, (char *)p + skip, NULL, data, bytes) == TT_OK, "%s",
                      test_device_reason());
    return (char *)p + skip;
}

void test_device_get(void *to, const tt_arg *a)
{
    size_t bytes = (size_t)a->count * tt_dtype_bytes(a->dtype);
    ck_assert_msg(module->copy_now(NULL, to, &device, a->data, bytes) == TT_OK, "%s",
                  test_device_reason());
}

tt_arg test_device_arg(tt_dtype t, int64_t count, const void *data, size_t skip)
{
    tt_arg a = test_arg(t, (tt_shape){1, {count}});
    size_t item = tt_dtype_bytes(t);
    a.data = test_device_room(data, (size_t)count * item, skip * item);
    return a;
}

void test_device_close(void)
{
    test_device_clear();
    module->close(&device);
    tt_clear_error(ctx); // the test has looked at it
    CHECK_OK(tt_close(ctx));
}

const char *test_device_reason(void)
{
    return tt_last_error(ctx).message;
}

tt_status test_device_run(const char *op, tt_launch l)
{
    return test_device_run_key(tti_kernel_of_op(op), l);
}

tt_status test_device_run_key(tti_kernel_key key, tt_launch l)
{
    const tt_kernel *k = module->kernel(key);
    char name[TTI_KERNEL_TEXT];
    tti_kernel_key_text(&key, name);
    tt_clear_error(ctx);
    ck_assert_msg(k != NULL, "the module has no %s", name);
    tt_op op = {.name = name};
    tt_node node = {.op = &op, .name = "alone"};
    if (l.node == NULL)
        l.node = &node;
    tt_prep p = {.node = l.node,
                 .attr = l.attr,
                 .in = l.in,
                 .out_args = l.out,
                 .n_in = l.n_in,
                 .n_out = l.n_out,
                 .lanes = l.lanes,
                 .device = device.state,
                 .n_phases = 1};
    l.device = device.state;
    l.stream = module->streams.stream(&device);
    if (l.step != NULL)
        l.step = test_device_room(l.step, sizeof(*l.step), 0);
    if (k->prepare != NULL) {
        TT_TRY(k->prepare(&p));
        l.tune = p.tune;
        l.scratch = test_device_room(NULL, p.scratch_bytes, 0);
    }
    tt_status st = k->fn[0](&l), synced = module->streams.sync(&device, tti_deadline(60000));
    return st != TT_OK ? st : synced;
}
