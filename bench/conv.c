/*
 * conv.c - conv2d, conv2d_dx and conv2d_dw against oneDNN in its best layout (format any, reorders
 * outside the timing), f32, batch 32. Our side is the op's kernel as the executor runs it, weights
 * packed in the timing, dw over 8 lanes; theirs is the primitive.
 *
 *   build/release/bench/conv [threads]      default: 1, then all cores up to 2
 */
#include "op/conv.h"
#include "bench.h"
#include "device/device.h"
#include <dlfcn.h>
#include <tutti/tutti.h>
#ifdef TUTTI_HAVE_DNNL
#include <dnnl.h>
#endif

#define BATCH 32
#define LANES 8
#define GOAL  0.85

typedef struct shape {
    const char *label;
    int64_t size, c_in, c_out, k, pad, stride;
    double goal; // 0: shown only
} shape;

static const shape shapes[] = {
    {"3x3 64->64 at 56", 56, 64, 64, 3, 1, 1, GOAL},
    {"3x3 256->256 at 14", 14, 256, 256, 3, 1, 1, GOAL},
    {"1x1 256->64 at 56", 56, 256, 64, 1, 0, 1, GOAL},
    {"3x3 1->32 at 28", 28, 1, 32, 3, 0, 1, GOAL},
    {"3x3 32->64 at 26", 26, 32, 64, 3, 0, 1, 0},
    {"3x3 512->512 at 7", 7, 512, 512, 3, 1, 1, 0},
    {"3x3 512->512 at 4", 4, 512, 512, 3, 1, 1, 0},
    {"3x3 128->128 at 28, stride 2", 28, 128, 128, 3, 1, 2, 0},
    {"7x7 3->64 at 112, stride 2", 112, 3, 64, 7, 3, 2, 0},
};

static int64_t out_size(const shape *s)
{
    return (s->size + 2 * s->pad - s->k) / s->stride + 1;
}

static const char *const op_names[3] = {"conv2d", "conv2d_dx", "conv2d_dw"};

static void check(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench/conv: %s failed\n", what);
        exit(1);
    }
}

static float *numbers(int64_t n, uint64_t seed)
{
    float *x = aligned_alloc(64, ((size_t)n * sizeof(float) + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    return x;
}

// ---- ours ------------------------------------------------------------------------------------

typedef struct ours {
    tti_team *team;
    tt_kernel_fn fn;
    tt_prep prep;
    tt_launch launch;
    int64_t chunk[TT_MAX_PHASES];
    tt_arg args[3];
    tti_conv_attr attr;
    tt_lanes lanes;
    int64_t bound[LANES + 1];
} ours;

static void run_ours(void *arg)
{
    ours *o = arg;
    for (int i = 0; i < o->prep.n_phases; i++)
        check(tti_team_run(o->team, o->fn, &o->launch, i, o->prep.units[i], o->chunk[i],
                           (o->prep.local_bytes + 63) / 64 * 64) == TT_OK,
              "kernel");
}

static tt_arg image(float *data, int64_t size, int64_t c)
{
    return (tt_arg){.data = data,
                    .shape = TT_SHAPE(BATCH, size, size, c),
                    .count = BATCH * size * size * c,
                    .per = 1};
}

// op: 0 forward, 1 dx, 2 dw; data is x, w, y.
static void ours_open(ours *o, tt_ctx *ctx, int n_threads, int op, const shape *s, float *data[3])
{
    static const uint8_t merges[LANES] = {0, 1, 0, 2, 0, 1, 0, 3};
    int64_t out = out_size(s);
    tt_arg x = image(data[0], s->size, s->c_in), y = image(data[2], out, s->c_out);
    tt_arg w = {.data = data[1], .shape = TT_SHAPE(s->k, s->k, s->c_in, s->c_out), .open = -1};
    int isa = tti_best_isa();
    memset(o, 0, sizeof(*o));
    o->attr.stride = (tt_ints){.n = 2, .v = {s->stride, s->stride}};
    o->attr.pad = (tt_ints){.n = 4, .v = {s->pad, s->pad, s->pad, s->pad}};
    o->attr.size = (tt_ints){.n = 2, .v = {op == 1 ? s->size : s->k, op == 1 ? s->size : s->k}};
    o->args[0] = op == 1 ? y : x;
    o->args[1] = op == 2 ? y : w;
    o->args[2] = op == 0 ? y : op == 1 ? x : w;
    for (int i = 0; i <= LANES; i++)
        o->bound[i] = BATCH * i / LANES;
    o->lanes = (tt_lanes){.total = LANES, .n = LANES, .n_parts = 1, .depth = 4};
    o->lanes.global_rows = BATCH;
    o->lanes.bound = o->bound;
    o->lanes.merges = merges;

    const tt_kernel *kernel = &tt_op_find(ctx, op_names[op])->kernel[TT_CPU];
    o->fn = kernel->fn[isa];
    o->prep = (tt_prep){.ctx = ctx,
                        .attr = &o->attr,
                        .in = o->args,
                        .out_args = &o->args[2],
                        .n_in = 2,
                        .n_out = 1,
                        .lanes = &o->lanes,
                        .n_threads = n_threads,
                        .isa = isa,
                        .n_phases = 1};
    check(kernel->prepare(&o->prep) == TT_OK, "prepare");
    for (int i = 0; i < o->prep.n_phases; i++) {
        int64_t grain = TTI_MAX(o->prep.grain[i], 1), parts = 4 * (int64_t)n_threads;
        int64_t chunk = (o->prep.units[i] + parts - 1) / parts;
        o->chunk[i] = n_threads == 1 ? o->prep.units[i] : (chunk + grain - 1) / grain * grain;
    }
    size_t local = (o->prep.local_bytes + 63) / 64 * 64 * (size_t)n_threads;
    o->launch = (tt_launch){.ctx = ctx,
                            .attr = &o->attr,
                            .in = o->args,
                            .out = &o->args[2],
                            .n_in = 2,
                            .n_out = 1,
                            .lanes = &o->lanes,
                            .tune = o->prep.tune};
    o->launch.scratch = aligned_alloc(64, (o->prep.scratch_bytes + 127) / 64 * 64);
    o->launch.local = aligned_alloc(64, local + 64);
    check(tti_team_open(ctx, "bench", n_threads, 20000, &o->team) == TT_OK, "team");
}

static void ours_close(ours *o)
{
    tti_team_close(o->team);
    free(o->launch.scratch);
    free(o->launch.local);
}

// ---- oneDNN ----------------------------------------------------------------------------------

#ifdef TUTTI_HAVE_DNNL

#define DNN(call) check((call) == dnnl_success, #call)

typedef struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
    dnnl_exec_arg_t args[3];
} peer;

static void run_peer(void *arg)
{
    peer *p = arg;
    DNN(dnnl_primitive_execute(p->primitive, p->stream, 3, p->args));
    DNN(dnnl_stream_wait(p->stream));
}

static void peer_open(peer *p, int op, const shape *s, float *data[3])
{
    int64_t out = out_size(s);
    const dnnl_dims_t dims[3] = {{BATCH, s->c_in, s->size, s->size},
                                 {s->c_out, s->c_in, s->k, s->k},
                                 {BATCH, s->c_out, out, out}};
    static const dnnl_format_tag_t plain[3] = {dnnl_nhwc, dnnl_hwio, dnnl_nhwc};
    const dnnl_dims_t stride = {s->stride, s->stride}, pad = {s->pad, s->pad};
    dnnl_memory_desc_t any[3];
    dnnl_convolution_desc_t d, f;
    dnnl_primitive_desc_t pd, hint = NULL;
    DNN(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    DNN(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
    for (int i = 0; i < 3; i++)
        DNN(dnnl_memory_desc_init_by_tag(&any[i], 4, dims[i], dnnl_f32, dnnl_format_tag_any));
    DNN(dnnl_convolution_forward_desc_init(&f, dnnl_forward_training, dnnl_convolution_direct,
                                           &any[0], &any[1], NULL, &any[2], stride, pad, pad));
    if (op == 1)
        DNN(dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &any[0], &any[1],
                                                     &any[2], stride, pad, pad));
    else if (op == 2)
        DNN(dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &any[0],
                                                        &any[1], NULL, &any[2], stride, pad, pad));
    DNN(dnnl_primitive_desc_create(&hint, &f, NULL, p->engine, NULL));
    DNN(dnnl_primitive_desc_create(&pd, op == 0 ? &f : &d, NULL, p->engine, hint));
    static const int ids[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                  {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                  {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    for (int i = 0; i < 3; i++) {
        const dnnl_memory_desc_t *md =
            dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, ids[op][i]);
        dnnl_memory_desc_t from;
        dnnl_memory_t m;
        dnnl_primitive_desc_t rpd;
        dnnl_primitive_t reorder;
        DNN(dnnl_memory_create(&p->memory[i], md, p->engine, DNNL_MEMORY_ALLOCATE));
        DNN(dnnl_memory_desc_init_by_tag(&from, 4, dims[i], dnnl_f32, plain[i]));
        DNN(dnnl_memory_create(&m, &from, p->engine, data[i]));
        DNN(dnnl_reorder_primitive_desc_create(&rpd, &from, p->engine, md, p->engine, NULL));
        DNN(dnnl_primitive_create(&reorder, rpd));
        dnnl_exec_arg_t ra[2] = {{DNNL_ARG_FROM, m}, {DNNL_ARG_TO, p->memory[i]}};
        DNN(dnnl_primitive_execute(reorder, p->stream, 2, ra));
        DNN(dnnl_stream_wait(p->stream));
        dnnl_primitive_destroy(reorder);
        dnnl_primitive_desc_destroy(rpd);
        dnnl_memory_destroy(m);
        p->args[i] = (dnnl_exec_arg_t){ids[op][i], p->memory[i]};
    }
    DNN(dnnl_primitive_create(&p->primitive, pd));
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint);
}

static void peer_close(peer *p)
{
    dnnl_primitive_destroy(p->primitive);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(p->memory[i]);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

static void peer_threads(int n)
{
    void (*set)(int) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads"); // oneDNN brings OpenMP along
    memcpy(&set, &symbol, sizeof(set));
    if (set != NULL)
        set(n);
}

static bool bench_one(tt_ctx *ctx, int n_threads, int op, const shape *s)
{
    int64_t out = out_size(s);
    float *data[3] = {numbers(BATCH * s->size * s->size * s->c_in, 1),
                      numbers(s->k * s->k * s->c_in * s->c_out, 2),
                      numbers(BATCH * out * out * s->c_out, 3)};
    ours o;
    peer p;
    ours_open(&o, ctx, n_threads, op, s, data);
    peer_open(&p, op, s, data);
    bench_side sides[] = {{.name = "ours", .fn = run_ours, .arg = &o},
                          {.name = "oneDNN", .fn = run_peer, .arg = &p}};
    bench_rounds(sides, 2, BENCH_ROUNDS, 10);
    char label[64];
    double flop = 2.0 * BATCH * (double)(out * out * s->k * s->k * s->c_in * s->c_out);
    snprintf(label, sizeof(label), "%-9s %-22s %4.0f", op_names[op], s->label,
             1e-9 * flop / bench_time(&sides[0]).median);
    bool met = bench_row(label, &sides[0], &sides[1], s->goal);
    ours_close(&o);
    peer_close(&p);
    for (int i = 0; i < 3; i++)
        free(data[i]);
    return met;
}

#endif

int main(int argc, char **argv)
{
    tt_ctx *ctx = tt_open(.threads = 1);
#ifdef TUTTI_HAVE_DNNL
    unsigned saved = tti_fp_enter();
    const char *only = getenv("BENCH_ONLY");
    for (int n = argc > 1 ? atoi(argv[1]) : 1; n <= (argc > 1 ? atoi(argv[1]) : 2); n++) {
        char title[64];
        snprintf(title, sizeof(title), "convolution against oneDNN, %d thread%s", n,
                 n > 1 ? "s" : "");
        bench_title(title);
        peer_threads(n);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            for (int op = 0; op < 3; op++)
                if (only == NULL || strstr(only, op_names[op]) != NULL ||
                    strstr(shapes[i].label, only) != NULL)
                    bench_one(ctx, n, op, &shapes[i]);
    }
    tti_fp_leave(saved);
#else
    (void)argc;
    (void)argv;
    (void)numbers;
    (void)ours_open;
    (void)ours_close;
    (void)run_ours;
    (void)shapes;
    printf("convolution: skipped, no oneDNN\n");
#endif
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
