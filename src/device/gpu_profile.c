/*
 * gpu_profile.c - plans for GPUs on a machine that has none.
 *
 * Where the module of GPUs cannot be asked, this backend answers from a table: which ops have
 * kernels (all but those of the CPU alone), and how much workspace a call takes. Workspaces are
 * bounds: for products and convolutions what the library is allowed, for reductions and gradients
 * the bytes of their arguments, which own kernels stay below. Chains of nodes that a kernel of the
 * module would do at once are not joined, so memory is a bound too. Nothing runs here.
 */
#include "device/gpu_profile.h"
#include <stdio.h>
#include <string.h>

static const tti_gpu_profile profiles[] = {
    {"h200", "NVIDIA H200", (size_t)143155 << 20, (size_t)32 << 20,
     "memory as tutti devices reports it; workspace that cuBLASLt is allowed from compute "
     "capability 9 on (cuda/blas_algorithm.cu)"},
};

const tti_gpu_profile *tti_gpu_profile_at(int i)
{
    return i >= 0 && i < TTI_COUNT(profiles) ? &profiles[i] : NULL;
}

const tti_gpu_profile *tti_gpu_profile_find(const char *name)
{
    for (int i = 0; i < TTI_COUNT(profiles); i++)
        if (name == NULL || strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    return NULL;
}

// ---- kernels ---------------------------------------------------------------------------------

static tt_status is_not_here(const tt_launch *l)
{
    return TT_FAIL(l->ctx, TT_EUNSUPPORTED, "%s '%s': this GPU is only planned for",
                   l->node->op->name, l->node->name);
}

static size_t bytes_of(const tt_arg *args, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (size_t)args[i].count * tt_dtype_bytes(args[i].dtype);
    return bytes;
}

// What the CPU's kernel estimates: stages of a pipeline are compared by it.
static tt_status prepare_cost(tt_prep *p)
{
    const tt_kernel *cpu = &p->node->op->kernel[TT_CPU];
    if (cpu->prepare != NULL)
        TT_TRY(cpu->prepare(p));
    else
        p->ns = (double)p->out_args->count;
    p->n_phases = 1;
    p->units[0] = p->grain[0] = 1;
    p->scratch_bytes = p->local_bytes = 0;
    return TT_OK;
}

static tt_status prepare_library(tt_prep *p)
{
    const tti_gpu_profile *profile = p->device;
    TT_TRY(prepare_cost(p));
    p->scratch_bytes = profile->workspace;
    return TT_OK;
}

static tt_status prepare_bound(tt_prep *p)
{
    TT_TRY(prepare_cost(p));
    p->scratch_bytes = bytes_of(p->in, p->n_in) + bytes_of(p->out_args, p->n_out);
    return TT_OK;
}

static const tt_kernel plain = {.fn = {is_not_here}, .prepare = prepare_cost};
static const tt_kernel by_library = {.fn = {is_not_here}, .prepare = prepare_library};
static const tt_kernel with_scratch = {.fn = {is_not_here}, .prepare = prepare_bound};
static const tt_kernel of_f64 = {
    .fn = {is_not_here}, .prepare = prepare_bound, .types = 1u << TT_F64};
static const tt_kernel of_f32_f64 = {
    .fn = {is_not_here}, .prepare = prepare_bound, .types = 1u << TT_F32 | 1u << TT_F64};
static const tt_kernel of_all = {
    .fn = {is_not_here}, .prepare = prepare_cost, .types = TT_TYPES_ALL};
static const tt_kernel of_plan = {.fn = {is_not_here}}; // of plan nodes that are no op

static const struct {
    const char *op;
    const tt_kernel *kernel; // NULL: it has none on GPUs
} rows[] = {
    {"matmul", &by_library},
    {"conv2d", &by_library},
    {"conv2d_dx", &by_library},
    {"conv2d_dw", &with_scratch},
    {"depthwise_conv2d_dw", &with_scratch},
    {"attention", &with_scratch},
    {"attention_grad", &with_scratch},
    {"sum", &with_scratch},
    {"layer_norm_grad", &with_scratch},
    {"rms_norm_grad", &with_scratch},
    {"batch_norm_stats", &with_scratch},
    {"batch_norm_sums", &with_scratch},
    {"batch_norm_lane", &with_scratch},
    {"batch_norm_lane_grad", &with_scratch},
    {"max_pool2d_grad", &with_scratch},
    {"embedding_grad", &with_scratch},
    {"scatter_add", &with_scratch},
    {"square_sum", &of_f64},
    {"update_scale", &of_f32_f64},
    {"count", &of_f32_f64},
    {"assign", &of_all},
    {"print", NULL},
};

static const tt_kernel *profile_kernel(const tti_device *d, tti_kernel_key key)
{
    (void)d;
    if (key.form == TTI_KERNEL_BATCHED || key.form == TTI_KERNEL_CHAIN)
        return NULL;
    if (key.form != TTI_KERNEL_OP)
        return &of_plan;
    for (int i = 0; i < TTI_COUNT(rows); i++)
        if (strcmp(rows[i].op, key.op[0]) == 0)
            return rows[i].kernel;
    return &plain;
}

// ---- the backend -----------------------------------------------------------------------------

static void *no_stream(tti_device *d)
{
    (void)d;
    return NULL;
}

static bool profile_joins(tti_device *const *d, int n, char *words, size_t size)
{
    (void)d, (void)n;
    snprintf(words, size, "NCCL");
    return true;
}

static const tti_streams profile_streams = {.stream = no_stream, .has_communicator = profile_joins};

static int profile_count(char *why, size_t n)
{
    snprintf(why, n, "it is only planned for");
    return 0;
}

static void profile_facts(int physical, tti_facts *out)
{
    (void)physical;
    *out = (tti_facts){.memory = profiles[0].memory};
    snprintf(out->model, sizeof(out->model), "%s", profiles[0].model);
}

static bool profile_can_read(const tti_device *d, const tti_device *other)
{
    return d->task == other->task; // of one process: directly, as GPUs with links do
}

const tti_backend tti_backend_gpu_profile = {
    .name = "gpu",
    .id = TT_CUDA,
    .bound = "kernels are not joined, and their workspaces are what they may take at most",
    .count = profile_count,
    .facts = profile_facts,
    .kernel = profile_kernel,
    .streams = &profile_streams,
    .can_read = profile_can_read,
};
