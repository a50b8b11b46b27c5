/*
 * conv.c - conv2d, conv2d_dx and conv2d_dw against oneDNN in its best layout (format any, reorders
 * outside the timing), f32, batch 32. Our side is the op's kernel as the executor runs it, weights
 * packed in the timing, dw over 8 lanes; theirs is the primitive.
 *
 *   build/release/bench/conv [threads]      default: 1, then all cores up to 2
 */
#include "op/conv.h"
#include "alone.h"

#define BATCH 32
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

// ---- ours ------------------------------------------------------------------------------------

typedef struct ours {
    alone_kernel kernel;
    tti_conv_attr attr;
} ours;

static tt_arg image(float *data, int64_t size, int64_t c)
{
    return (tt_arg){.data = data,
                    .shape = TT_SHAPE(BATCH, size, size, c),
                    .count = BATCH * size * size * c,
                    .per = 1};
}

// op: 0 forward, 1 dx, 2 dw; data is x, w, y.
static void ours_open(ours *o, tt_ctx *ctx, tti_team *team, int n_threads, int op, const shape *s,
                      float *data[3])
{
    int64_t out = out_size(s);
    tt_arg x = image(data[0], s->size, s->c_in), y = image(data[2], out, s->c_out);
    tt_arg w = {.data = data[1], .shape = TT_SHAPE(s->k, s->k, s->c_in, s->c_out), .open = -1};
    memset(o, 0, sizeof(*o));
    o->attr.stride = (tt_ints){.n = 2, .v = {s->stride, s->stride}};
    o->attr.pad = (tt_ints){.n = 4, .v = {s->pad, s->pad, s->pad, s->pad}};
    o->attr.size = (tt_ints){.n = 2, .v = {op == 1 ? s->size : s->k, op == 1 ? s->size : s->k}};
    o->kernel.attr = &o->attr;
    o->kernel.args[0] = op == 1 ? y : x;
    o->kernel.args[1] = op == 2 ? y : w;
    o->kernel.args[2] = op == 0 ? y : op == 1 ? x : w;
    alone_open(&o->kernel, ctx, op_names[op], BATCH, ALONE_LANES, team, n_threads, tti_best_isa());
}

// ---- oneDNN ----------------------------------------------------------------------------------

#ifdef TUTTI_HAVE_DNNL

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
    peer_start(p);
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
        DNN(dnnl_memory_desc_init_by_tag(&from, 4, dims[i], dnnl_f32, plain[i]));
        DNN(dnnl_memory_create(&m, &from, p->engine, data[i]));
        p->memory[i] = peer_pack(p, m, &from, md);
        dnnl_memory_destroy(m);
        p->args[i] = (dnnl_exec_arg_t){ids[op][i], p->memory[i]};
    }
    DNN(dnnl_primitive_create(&p->primitive, pd));
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_desc_destroy(hint);
}

static bool bench_one(tt_ctx *ctx, tti_team *team, int n_threads, int op, const shape *s)
{
    int64_t out = out_size(s);
    float *data[3] = {alone_numbers(BATCH * s->size * s->size * s->c_in, 1),
                      alone_numbers(s->k * s->k * s->c_in * s->c_out, 2),
                      alone_numbers(BATCH * out * out * s->c_out, 3)};
    ours o;
    peer p;
    ours_open(&o, ctx, team, n_threads, op, s, data);
    peer_open(&p, op, s, data);
    bench_side sides[] = {{.name = "ours", .fn = alone_run, .arg = &o.kernel},
                          {.name = "oneDNN", .fn = peer_run, .arg = &p}};
    bench_rounds(sides, 2, BENCH_ROUNDS, 10);
    char label[64];
    double flop = 2.0 * BATCH * (double)(out * out * s->k * s->k * s->c_in * s->c_out);
    snprintf(label, sizeof(label), "%-9s %-22s %4.0f", op_names[op], s->label,
             1e-9 * flop / bench_time(&sides[0]).median);
    bool met = bench_row(label, &sides[0], &sides[1], s->goal);
    alone_close(&o.kernel);
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
        tti_team *team;
        alone_check(tti_team_open(ctx, "bench", n, 20000, &team) == TT_OK, "team");
        snprintf(title, sizeof(title), "convolution against oneDNN, %d thread%s", n,
                 n > 1 ? "s" : "");
        bench_title(title);
        peer_threads(n);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            for (int op = 0; op < 3; op++)
                if (only == NULL || strstr(only, op_names[op]) != NULL ||
                    strstr(shapes[i].label, only) != NULL)
                    bench_one(ctx, team, n, op, &shapes[i]);
        tti_team_close(team);
    }
    tti_fp_leave(saved);
#else
    (void)argc;
    (void)argv;
    (void)ours_open;
    (void)shapes;
    printf("convolution: skipped, no oneDNN\n");
#endif
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
