/*
 * matmul.c - products against oneDNN's matmul primitive, f32: weights as they lie (plain), and
 * packed ahead outside the timing. Sizes are m x n x k: y [m, n] = x [m, k] w [k, n]; dx = dy w^T
 * and dw = x^T dy are of the same sizes. Our side is the op's kernel as the executor runs it; dw
 * goes by 8 lanes; small ones go by one lane against oneDNN and by 8 lanes against one.
 *
 *   build/release/bench/matmul [threads] [avx2|avx512]     default: 1, then 2; the best set
 */
#include "alone.h"
#include "op/gemm.h"

typedef struct shape {
    int64_t m, n, k;
    bool is_small; // goals differ
} shape;

static const shape shapes[] = {
    {512, 512, 512, false},   {2048, 1536, 384, false}, {2048, 384, 1536, false},
    {256, 4096, 4096, false}, {64, 64, 64, true},       {32, 128, 784, true},
};

enum {
    FORWARD,
    DX,
    DW,
    N_FORMS
};
static const char *const form_names[N_FORMS] = {"y", "dx", "dw"};

// A product c [m, n] = a b over k, in one of the three forms.
typedef struct problem {
    int64_t m, n, k;
    bool trans_a, trans_b;
    float *a, *b, *c;
} problem;

// data: x, w, y.
static problem problem_of(const shape *s, int form, float *const data[3])
{
    if (form == DX)
        return (problem){s->m, s->k, s->n, false, true, data[2], data[1], data[0]};
    if (form == DW)
        return (problem){s->k, s->n, s->m, true, false, data[0], data[2], data[1]};
    return (problem){s->m, s->n, s->k, false, false, data[0], data[1], data[2]};
}

// ---- ours ------------------------------------------------------------------------------------

typedef struct ours {
    alone_kernel kernel;
    tti_matmul_attr attr;
} ours;

static tt_arg matrix(float *data, int64_t rows, int64_t cols, int open)
{
    return (tt_arg){.data = data, .shape = TT_SHAPE(rows, cols), .open = open, .per = 1};
}

// lanes 0: k is not open.
static void ours_open(ours *o, tt_ctx *ctx, tti_team *team, int n_threads, int isa,
                      const problem *p, int lanes)
{
    memset(o, 0, sizeof(*o));
    o->attr = (tti_matmul_attr){p->trans_a, p->trans_b, TT_LINEAR, false};
    int open_a = lanes == 0 ? -1 : p->trans_a ? 0 : 1, open_b = lanes == 0 ? -1 : p->trans_b;
    o->kernel.attr = &o->attr;
    o->kernel.args[0] = matrix(p->a, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, open_a);
    o->kernel.args[1] = matrix(p->b, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, open_b);
    o->kernel.args[2] = matrix(p->c, p->m, p->n, -1);
    alone_open(&o->kernel, ctx, "matmul", p->k, lanes == 0 ? 1 : lanes, team, n_threads, isa);
}

// dw over 8 lanes against one lane, 784x128: most that it may cost.
static void bench_lanes(tt_ctx *ctx, tti_team *team, int n_threads, int isa)
{
    static const int64_t rows[] = {32, 256};
    static const double goals[] = {1 / 1.35, 1 / 1.08};
    for (int i = 0; i < 2; i++) {
        shape s = {rows[i], 128, 784, true};
        float *data[3] = {alone_numbers(s.m * s.k, 1), alone_numbers(s.k * s.n, 2),
                          alone_numbers(s.m * s.n, 3)};
        problem p = problem_of(&s, DW, data);
        ours one, eight;
        ours_open(&one, ctx, team, n_threads, isa, &p, 0);
        ours_open(&eight, ctx, team, n_threads, isa, &p, ALONE_LANES);
        bench_side sides[] = {{.name = "8 lanes", .fn = alone_run, .arg = &eight.kernel},
                              {.name = "1 lane", .fn = alone_run, .arg = &one.kernel}};
        bench_rounds(sides, 2, BENCH_ROUNDS, 10);
        char label[64];
        snprintf(label, sizeof(label), "dw 784x128, %d rows: 8 lanes, 1 lane", (int)rows[i]);
        bench_row(label, &sides[0], &sides[1], goals[i]);
        alone_close(&one.kernel);
        alone_close(&eight.kernel);
        for (int j = 0; j < 3; j++)
            free(data[j]);
    }
}

// ---- oneDNN ----------------------------------------------------------------------------------

#ifdef TUTTI_HAVE_DNNL

static void peer_open(peer *p, const problem *q, bool packed)
{
    const dnnl_dims_t a = {q->m, q->k}, b = {q->k, q->n}, c = {q->m, q->n};
    const dnnl_dims_t sa = {q->trans_a ? 1 : q->k, q->trans_a ? q->m : 1};
    const dnnl_dims_t sb = {q->trans_b ? 1 : q->n, q->trans_b ? q->k : 1};
    dnnl_memory_desc_t da, db, dc, any;
    dnnl_matmul_desc_t d;
    dnnl_primitive_desc_t pd;
    peer_start(p);
    DNN(dnnl_memory_desc_init_by_strides(&da, 2, a, dnnl_f32, sa));
    DNN(dnnl_memory_desc_init_by_strides(&db, 2, b, dnnl_f32, sb));
    DNN(dnnl_memory_desc_init_by_tag(&dc, 2, c, dnnl_f32, dnnl_ab));
    DNN(dnnl_memory_desc_init_by_tag(&any, 2, b, dnnl_f32, dnnl_format_tag_any));
    DNN(dnnl_matmul_desc_init(&d, &da, packed ? &any : &db, NULL, &dc));
    DNN(dnnl_primitive_desc_create(&pd, &d, NULL, p->engine, NULL));
    DNN(dnnl_primitive_create(&p->primitive, pd));
    DNN(dnnl_memory_create(&p->memory[0], &da, p->engine, q->a));
    DNN(dnnl_memory_create(&p->memory[1], &db, p->engine, q->b));
    DNN(dnnl_memory_create(&p->memory[2], &dc, p->engine, q->c));
    if (packed) {
        dnnl_memory_t plain = p->memory[1];
        p->memory[1] =
            peer_pack(p, plain, &db, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
        dnnl_memory_destroy(plain);
    }
    static const int ids[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    for (int i = 0; i < 3; i++)
        p->args[i] = (dnnl_exec_arg_t){ids[i], p->memory[i]};
    dnnl_primitive_desc_destroy(pd);
}

static void bench_one(tt_ctx *ctx, tti_team *team, int n_threads, int isa, const shape *s, int form)
{
    float *data[3] = {alone_numbers(s->m * s->k, 1), alone_numbers(s->k * s->n, 2),
                      alone_numbers(s->m * s->n, 3)};
    problem q = problem_of(s, form, data);
    ours o;
    peer plain, packed;
    int lanes = form == DW && !s->is_small ? ALONE_LANES : 0; // bench_lanes() has the small ones
    ours_open(&o, ctx, team, n_threads, isa, &q, lanes);
    peer_open(&plain, &q, false);
    peer_open(&packed, &q, true);
    bench_side sides[] = {{.name = "ours", .fn = alone_run, .arg = &o.kernel},
                          {.name = "oneDNN", .fn = peer_run, .arg = &plain},
                          {.name = "packed", .fn = peer_run, .arg = &packed}};
    int n_sides = form == DW || s->is_small ? 2 : 3; // dy of dw is new in every step
    bench_rounds(sides, n_sides, BENCH_ROUNDS, 20);
    double flop = 2.0 * (double)(s->m * s->n * s->k);
    double goal = s->is_small || isa == TT_ISA_AVX2 ? 0.85 : 0.95;
    for (int i = 1; i < n_sides; i++) {
        char label[64];
        snprintf(label, sizeof(label), "%-2s %dx%dx%d %s %4.0f GF/s", form_names[form], (int)s->m,
                 (int)s->n, (int)s->k, sides[i].name, 1e-9 * flop / bench_time(&sides[0]).median);
        bench_row(label, &sides[0], &sides[i], i == 1 ? goal : 0.85);
    }
    alone_close(&o.kernel);
    peer_close(&plain);
    peer_close(&packed);
    for (int i = 0; i < 3; i++)
        free(data[i]);
}

#endif

int main(int argc, char **argv)
{
    tt_ctx *ctx = tt_open(.threads = 1);
    int isa = tti_best_isa();
    if (argc > 2)
        alone_check(tti_find_isa(ctx, argv[2], &isa) == TT_OK, "instruction set");
    unsigned saved = tti_fp_enter();
#ifdef TUTTI_HAVE_DNNL
    if (isa == TT_ISA_AVX2)
        DNN(dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2));
    const char *only = getenv("BENCH_ONLY");
#endif
    for (int n = argc > 1 ? atoi(argv[1]) : 1; n <= (argc > 1 ? atoi(argv[1]) : 2); n++) {
        tti_team *team;
        char title[80];
        alone_check(tti_team_open(ctx, "bench", n, 20000, &team) == TT_OK, "team");
        snprintf(title, sizeof(title), "products (%s) against oneDNN, %d thread%s",
                 tti_isa_name(isa), n, n > 1 ? "s" : "");
        bench_title(title);
#ifdef TUTTI_HAVE_DNNL
        peer_threads(n);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            for (int form = 0; form < N_FORMS; form++)
                if (only == NULL || strcmp(only, form_names[form]) == 0)
                    bench_one(ctx, team, n, isa, &shapes[i], form);
#else
        printf("  skipped, no oneDNN\n");
        (void)shapes;
        (void)form_names;
#endif
        bench_lanes(ctx, team, n, isa);
        tti_team_close(team);
    }
    tti_fp_leave(saved);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
