/*
 * alone.h - one kernel of the CPU as the executor runs it, with a team of threads, and a primitive
 * of oneDNN to be held against it.
 */
#ifndef TUTTI_BENCH_ALONE_H
#define TUTTI_BENCH_ALONE_H

#include "bench.h"
#include "device/device.h"
#include <tutti/tutti.h>
#ifdef TUTTI_HAVE_DNNL
#include <dlfcn.h>
#include <dnnl.h>
#endif

#define ALONE_LANES 8

static inline void alone_check(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench: %s failed\n", what);
        exit(1);
    }
}

// n numbers between -1 and 1; freed by the caller.
static inline float *alone_numbers(int64_t n, uint64_t seed)
{
    float *x = aligned_alloc(64, ((size_t)n * sizeof(float) + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    return x;
}

// ---- ours ------------------------------------------------------------------------------------

typedef struct alone_kernel {
    tt_arg args[3]; // two inputs and the output; set before alone_open(), as is attr
    const void *attr;
    tti_team *team;
    tt_kernel_fn fn;
    tt_prep prep;
    tt_launch launch;
    int64_t chunk[TT_MAX_PHASES];
    tt_lanes lanes;
    int64_t bound[ALONE_LANES + 1];
} alone_kernel;

static inline void alone_run(void *arg)
{
    alone_kernel *k = arg;
    for (int i = 0; i < k->prep.n_phases; i++)
        alone_check(tti_team_run(k->team, k->fn, &k->launch, i, k->prep.units[i], k->chunk[i],
                                 (k->prep.local_bytes + 63) / 64 * 64) == TT_OK,
                    "kernel");
}

// The kernel of an op on rows that lie in n lanes, 1 or ALONE_LANES.
static inline void alone_open(alone_kernel *k, tt_ctx *ctx, const char *op, int64_t rows, int n,
                              tti_team *team, int n_threads, int isa)
{
    static const uint8_t merges[ALONE_LANES] = {0, 1, 0, 2, 0, 1, 0, 3};
    for (int i = 0; i <= n; i++)
        k->bound[i] = rows * i / n;
    k->lanes = (tt_lanes){.total = n,
                          .n = n,
                          .n_parts = 1,
                          .depth = n == 1 ? 1 : 4,
                          .global_rows = rows,
                          .bound = k->bound,
                          .merges = merges};
    const tt_kernel *kernel = &tt_op_find(ctx, op)->kernel[TT_CPU];
    k->team = team;
    k->fn = kernel->fn[isa];
    k->prep = (tt_prep){.ctx = ctx,
                        .attr = k->attr,
                        .in = k->args,
                        .out_args = &k->args[2],
                        .n_in = 2,
                        .n_out = 1,
                        .lanes = &k->lanes,
                        .n_threads = n_threads,
                        .isa = isa,
                        .n_phases = 1};
    alone_check(kernel->prepare(&k->prep) == TT_OK, "prepare");
    for (int i = 0; i < k->prep.n_phases; i++) {
        int64_t grain = TTI_MAX(k->prep.grain[i], 1), parts = 4 * (int64_t)n_threads;
        int64_t chunk = (k->prep.units[i] + parts - 1) / parts;
        k->chunk[i] = n_threads == 1 ? k->prep.units[i] : (chunk + grain - 1) / grain * grain;
    }
    size_t local = (k->prep.local_bytes + 63) / 64 * 64 * (size_t)n_threads;
    k->launch = (tt_launch){.ctx = ctx,
                            .attr = k->attr,
                            .in = k->args,
                            .out = &k->args[2],
                            .n_in = 2,
                            .n_out = 1,
                            .lanes = &k->lanes,
                            .tune = k->prep.tune};
    k->launch.scratch = aligned_alloc(64, (k->prep.scratch_bytes + 127) / 64 * 64);
    k->launch.local = aligned_alloc(64, local + 64);
}

static inline void alone_close(alone_kernel *k)
{
    free(k->launch.scratch);
    free(k->launch.local);
}

// ---- oneDNN ----------------------------------------------------------------------------------

#ifdef TUTTI_HAVE_DNNL

#define DNN(call) alone_check((call) == dnnl_success, #call)

typedef struct peer {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
    dnnl_exec_arg_t args[3];
} peer;

static inline void peer_start(peer *p)
{
    DNN(dnnl_engine_create(&p->engine, dnnl_cpu, 0));
    DNN(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags));
}

static inline void peer_run(void *arg)
{
    peer *p = arg;
    DNN(dnnl_primitive_execute(p->primitive, p->stream, 3, p->args));
    DNN(dnnl_stream_wait(p->stream));
}

// A copy of m, described by from, that lies as to says; the caller destroys both.
static inline dnnl_memory_t peer_pack(peer *p, dnnl_memory_t m, const dnnl_memory_desc_t *from,
                                      const dnnl_memory_desc_t *to)
{
    dnnl_memory_t packed;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t reorder;
    DNN(dnnl_memory_create(&packed, to, p->engine, DNNL_MEMORY_ALLOCATE));
    DNN(dnnl_reorder_primitive_desc_create(&pd, from, p->engine, to, p->engine, NULL));
    DNN(dnnl_primitive_create(&reorder, pd));
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, m}, {DNNL_ARG_TO, packed}};
    DNN(dnnl_primitive_execute(reorder, p->stream, 2, args));
    DNN(dnnl_stream_wait(p->stream));
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(pd);
    return packed;
}

static inline void peer_close(peer *p)
{
    dnnl_primitive_destroy(p->primitive);
    for (int i = 0; i < 3; i++)
        dnnl_memory_destroy(p->memory[i]);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
}

static inline void peer_threads(int n)
{
    void (*set)(int) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads"); // oneDNN brings OpenMP along
    memcpy(&set, &symbol, sizeof(set));
    if (set != NULL)
        set(n);
}

#endif
#endif
