/*
 * gpu_products.c - how fast and how right matmul and attention of the CUDA module are at the sizes
 * of GPT-2 124M, batch 64, 1024 tokens, bf16. Skipped where no GPU opens.
 *
 *   gpu_products [FILE]                     times; writes the results of attention to FILE
 *   TUTTI_CUDA_OWN=1 gpu_products FILE      the same by our own kernels; compares with FILE
 *
 * The kernels of our own are slow and checked by the test suite: attention by cuDNN must agree with
 * them within the rounding of bf16. The module is that of TUTTI_CUDA_MODULE, else the one built
 * with this program. PRODUCTS_BATCH sets another batch size.
 */
#include "base/base.h"
#include "cuda/load.h"
#include "op/attention.h"
#include "op/gemm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

#define LANES 8
#define TIMES 10

static const tti_cuda_module *module;
static tti_device device; // its head alone
static FILE *results;
static bool is_second; // results are read, not written

static void die(const char *what)
{
    fprintf(stderr, "products: %s\n", what);
    exit(1);
}

static void *room(size_t bytes)
{
    void *p;
    if (module->alloc(&device, bytes + 256, &p) != TT_OK)
        die("no memory");
    return p;
}

// Random bf16 on the device, of about the size that activations and weights have.
static tt_arg make(tt_dtype t, tt_shape s, uint32_t seed, float size)
{
    tt_arg a = {.dtype = t, .shape = s, .count = 1, .rows = 1, .open = -1};
    for (int i = 0; i < s.rank; i++)
        a.count *= s.dim[i];
    a.cols = s.dim[s.rank - 1];
    a.rows = a.count / a.cols;
    a.data = room((size_t)a.count * tt_dtype_bytes(t));
    if (seed == 0)
        return a;
    uint16_t *x = malloc((size_t)a.count * 2);
    if (x == NULL)
        die("no memory on the host");
    for (int64_t i = 0; i < a.count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = tti_to_bf16(((float)(seed >> 8) * 0x1p-23f - 1) * size);
    }
    if (module->copy_now(&device, a.data, NULL, x, (size_t)a.count * 2) != TT_OK)
        die("copy");
    free(x);
    return a;
}

static double call(const char *name, const void *attr, const tt_arg *in, int n_in,
                   const tt_arg *out, int n_out, const tt_lanes *lanes)
{
    const tt_kernel *k = module->kernel(tti_kernel_of_op(name));
    tt_prep p = {.attr = attr,
                 .in = in,
                 .out_args = out,
                 .n_in = n_in,
                 .n_out = n_out,
                 .lanes = lanes,
                 .device = device.state,
                 .n_phases = 1};
    void *first = NULL, *last = NULL, *stream = module->streams.stream(&device);
    if (k == NULL || k->prepare(&p) != TT_OK)
        die("prepare");
    void *scratch = room(p.scratch_bytes);
    tt_launch l = {.attr = attr,
                   .in = in,
                   .n_in = n_in,
                   .out = out,
                   .n_out = n_out,
                   .lanes = lanes,
                   .tune = p.tune,
                   .scratch = scratch,
                   .device = device.state,
                   .stream = stream};
    if (k->fn[0](&l) != TT_OK || module->streams.sync(&device, tti_deadline(600000)) != TT_OK)
        die(name);
    if (module->streams.record(&device, &first) != TT_OK)
        die("record");
    for (int i = 0; i < TIMES; i++)
        if (k->fn[0](&l) != TT_OK)
            die(name);
    if (module->streams.record(&device, &last) != TT_OK ||
        module->streams.sync(&device, tti_deadline(600000)) != TT_OK)
        die(name);
    double s = module->streams.elapsed(&device, first, last) / TIMES;
    module->streams.drop_event(&device, first);
    module->streams.drop_event(&device, last);
    module->free(&device, scratch);
    return s;
}

static float widen(const tt_arg *a, const char *raw, int64_t i)
{
    float f;
    uint16_t h;
    memcpy(&h, raw + 2 * i, 2);
    if (a->dtype == TT_BF16)
        return tti_from_bf16(h);
    memcpy(&f, raw + 4 * i, 4);
    return f;
}

// Writes a result, or says how far it is from the first run's.
static void keep(const char *what, const tt_arg *a)
{
    size_t bytes = (size_t)a->count * tt_dtype_bytes(a->dtype);
    char *mine = malloc(bytes), *other = malloc(bytes);
    double worst = 0, size = 0;
    if (mine == NULL || other == NULL ||
        module->copy_now(NULL, mine, &device, a->data, bytes) != TT_OK)
        die("keep");
    if (!is_second) {
        if (results != NULL && fwrite(mine, 1, bytes, results) != bytes)
            die("cannot write the results");
    } else if (fread(other, 1, bytes, results) == bytes) {
        int64_t differ = 0;
        for (int64_t i = 0; i < a->count; i++) {
            double x = (double)widen(a, mine, i), y = (double)widen(a, other, i);
            worst = fabs(x - y) > worst || isnan(x - y) ? fabs(x - y) : worst;
            size += x * x;
            differ += x != y;
        }
        printf("    %-6s farthest %.3g, root mean square %.3g, %lld of %lld differ\n", what, worst,
               sqrt(size / (double)a->count), (long long)differ, (long long)a->count);
    }
    free(mine);
    free(other);
}

static void print(const char *what, double s, double flops)
{
    printf("%-34s %8.3f ms %8.1f TFLOP/s\n", what, s * 1e3, flops / s * 1e-12);
}

static void time_product(const char *what, int64_t rows, int64_t k, int64_t n, int act, bool bias)
{
    tt_lanes whole = {.total = 1, .n_parts = 1};
    int64_t bound[LANES + 1];
    uint8_t merges[LANES] = {0, 1, 0, 2, 0, 1, 0, 3};
    tt_lanes lanes = {.total = LANES, .n = LANES, .n_parts = 1, .depth = 4, .bound = bound};
    double flops = 2.0 * (double)rows * (double)k * (double)n;
    char text[64];
    tt_arg x = make(TT_BF16, (tt_shape){2, {rows, k}}, 1, 1);
    tt_arg w = make(TT_BF16, (tt_shape){2, {k, n}}, 2, 0.05f);
    tt_arg b = make(TT_BF16, (tt_shape){1, {n}}, 3, 0.1f);
    tt_arg y[2] = {make(TT_BF16, (tt_shape){2, {rows, n}}, 0, 0),
                   make(TT_BF16, (tt_shape){2, {rows, n}}, 0, 0)};
    tt_arg dy = make(TT_BF16, (tt_shape){2, {rows, n}}, 4, 0.1f);
    tt_arg dx = make(TT_BF16, (tt_shape){2, {rows, k}}, 0, 0);
    tt_arg dw = make(TT_BF16, (tt_shape){2, {k, n}}, 0, 0);

    tti_matmul_attr forward = {false, false, act, false};
    snprintf(text, sizeof(text), "%s forward", what);
    print(text,
          call("matmul", &forward, (tt_arg[]){x, w, b}, bias ? 3 : 2, y, act == TT_GELU ? 2 : 1,
               &whole),
          flops);
    tti_matmul_attr to_dx = {false, true, TT_LINEAR, false};
    snprintf(text, sizeof(text), "%s dx", what);
    print(text, call("matmul", &to_dx, (tt_arg[]){dy, w}, 2, &dx, 1, &whole), flops);

    for (int i = 0; i <= LANES; i++)
        bound[i] = rows / LANES * i;
    lanes.merges = merges;
    lanes.global_rows = rows;
    x.open = dy.open = 0;
    x.per = dy.per = 1;
    tti_matmul_attr to_dw = {true, false, TT_LINEAR, false};
    snprintf(text, sizeof(text), "%s dw, %d lanes", what, LANES);
    print(text, call("matmul", &to_dw, (tt_arg[]){x, dy}, 2, &dw, 1, &lanes), flops);
    tt_arg all[] = {x, w, b, y[0], y[1], dy, dx, dw};
    for (int i = 0; i < (int)TTI_COUNT(all); i++)
        module->free(&device, all[i].data);
}

static void time_attention(int64_t batch, int64_t t, int64_t h, int64_t d)
{
    tt_lanes whole = {.total = 1, .n_parts = 1};
    tti_attention_attr attr = {.heads = h, .kv_heads = h, .causal = true, .packed = true};
    double flops = 2.0 * (double)(batch * h) * (double)t * (double)t * (double)d; // causal: half
    tt_arg in[4] = {make(TT_BF16, (tt_shape){3, {batch, t, 3 * h * d}}, 1, 1),
                    make(TT_BF16, (tt_shape){3, {batch, t, h * d}}, 0, 0),
                    make(TT_F32, (tt_shape){3, {batch, h, t}}, 0, 0),
                    make(TT_BF16, (tt_shape){3, {batch, t, h * d}}, 2, 1)};
    tt_arg dx = make(TT_BF16, (tt_shape){3, {batch, t, 3 * h * d}}, 0, 0);
    print("attention forward", call("attention", &attr, in, 1, &in[1], 2, &whole), flops);
    print("attention gradient", call("attention_grad", &attr, in, 4, &dx, 1, &whole), 2.5 * flops);
    keep("y", &in[1]);
    keep("lse", &in[2]);
    keep("dqkv", &dx);
}

int main(int argc, char **argv)
{
    char text[512] = "";
    module = tti_cuda_load(text, sizeof(text));
    if (module == NULL || module->count(text, sizeof(text)) == 0) {
        printf("gpu_products: skipped: %s\n", text);
        return 0;
    }
    module->versions(text, sizeof(text));
    printf("%s\n", text);
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .level = TT_DEBUG);
    if (module->open(ctx, "gpu:0", 0, &device.state) != TT_OK)
        die("cannot open gpu:0");
    results = argc > 1 ? fopen(argv[1], "rb") : NULL;
    is_second = results != NULL;
    if (!is_second && argc > 1)
        results = fopen(argv[1], "wb");
    const char *batch = getenv("PRODUCTS_BATCH");
    int64_t b = batch != NULL ? atoll(batch) : 64, rows = b * 1024;
    time_attention(b, 1024, 12, 64);
    time_product("768 to 2304", rows, 768, 2304, TT_LINEAR, true);
    time_product("768 to 768", rows, 768, 768, TT_LINEAR, true);
    time_product("768 to 3072, gelu", rows, 768, 3072, TT_GELU, true);
    time_product("3072 to 768", rows, 3072, 768, TT_LINEAR, true);
    time_product("768 to 50304", rows, 768, 50304, TT_LINEAR, false);
    if (results != NULL)
        fclose(results);
    module->close(&device);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
