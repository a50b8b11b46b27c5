/*
 * dnn_plan.cu - from a graph to a plan of cuDNN, and its runs.
 *
 * Heuristics give configurations of engines, best first; the first that has no unwanted note, that
 * cuDNN can finalize and whose workspace is small enough is taken. An engine with its knobs can be
 * asked for by name, so that a graph of another batch size gets the same one.
 */
#include "cuda/dnn_own.h"

#if TTI_HAS_CUDNN

static void get(tti_dnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t most, int64_t *n, void *out)
{
    *n = 0;
    if (g->failed)
        return;
    cudnnStatus_t st = tti_dnn_library()->cudnnBackendGetAttribute_(d, name, type, most, n, out);
    char what[48];
    snprintf(what, sizeof(what), "reading attribute %d", (int)name);
    if (st != CUDNN_STATUS_SUCCESS)
        tti_dnn_failed(g, what, st);
}

// The engine of a configuration: its number and the notes about it, one bit each.
static unsigned read_engine(tti_dnn_graph *g, cudnnBackendDescriptor_t config, int64_t *number)
{
    cudnnBackendNumericalNote_t notes[32];
    unsigned bits = 0;
    int64_t n;
    cudnnBackendDescriptor_t engine = tti_dnn_make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    get(g, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    get(g, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, number);
    get(g, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 32, &n, notes);
    for (int64_t i = 0; i < n && i < 32; i++)
        bits |= 1u << (unsigned)notes[i];
    return bits;
}

static void read_knobs(tti_dnn_graph *g, cudnnBackendDescriptor_t config, tti_dnn_choice *out)
{
    cudnnBackendDescriptor_t knob[TTI_DNN_KNOBS];
    int64_t n = 0, one;
    for (int i = 0; i < TTI_DNN_KNOBS; i++)
        knob[i] = tti_dnn_make(g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    get(g, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, TTI_DNN_KNOBS,
        &n, knob);
    out->n_knobs = 0;
    for (int i = 0; i < n && i < TTI_DNN_KNOBS && !g->failed; i++) {
        get(g, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one,
            &out->knob[i]);
        get(g, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one,
            &out->value[i]);
        out->n_knobs = i + 1;
    }
}

// The plan of a configuration; false: cuDNN refuses it, or it wants too much memory.
static bool try_config(tti_dnn_graph *g, cudnnBackendDescriptor_t config, size_t most)
{
    int64_t n, bytes = 0;
    cudnnBackendDescriptor_t plan = tti_dnn_make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    tti_dnn_put(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    tti_dnn_put(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                &config);
    if (g->failed)
        return false;
    cudnnStatus_t st = tti_dnn_library()->cudnnBackendFinalize_(plan);
    if (st != CUDNN_STATUS_SUCCESS) {
        snprintf(g->why, sizeof(g->why), "a plan: %s", tti_dnn_library()->cudnnGetErrorString_(st));
        return false;
    }
    get(g, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes);
    if (g->failed)
        return false;
    if (most != 0 && (uint64_t)bytes > most) {
        snprintf(g->why, sizeof(g->why), "the plan takes %lld bytes of workspace",
                 (long long)bytes);
        return false;
    }
    g->plan = plan;
    g->workspace = bytes;
    return true;
}

// Descriptors made since mark go, but for those that a plan needs: configurations are many.
static void forget(tti_dnn_graph *g, int mark)
{
    while (g->n_desc > mark)
        tti_dnn_library()->cudnnBackendDestroyDescriptor_(g->desc[--g->n_desc]);
}

static bool by_heuristics(tti_dnn_graph *g, cudnnBackendDescriptor_t graph,
                          cudnnBackendHeurMode_t mode, const tti_dnn_opts *o, int *seen)
{
    cudnnBackendDescriptor_t config[MOST_CONFIGS];
    int64_t n = 0;
    cudnnBackendDescriptor_t heur = tti_dnn_make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    tti_dnn_put(g, heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                &graph);
    tti_dnn_put(g, heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    tti_dnn_finalize(g, heur, "the heuristics");
    for (int i = 0; i < MOST_CONFIGS; i++)
        config[i] = tti_dnn_make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    get(g, heur, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_CONFIGS, &n,
        config);
    for (int i = 0; i < n && i < MOST_CONFIGS && !g->failed; i++) {
        int mark = g->n_desc;
        tti_dnn_choice c = {};
        unsigned notes = read_engine(g, config[i], &c.engine);
        if ((notes & o->refuse) == 0 && try_config(g, config[i], o->most_workspace)) {
            if ((*seen)++ == o->nth) {
                int knobs = g->n_desc;
                read_knobs(g, config[i], &c);
                forget(g, knobs);
                g->chosen = c;
                return !g->failed;
            }
            g->plan = NULL;
        } else if ((notes & o->refuse) != 0) {
            snprintf(g->why, sizeof(g->why), "engine %lld has notes %#x", (long long)c.engine,
                     notes);
        }
        if (!g->failed)
            forget(g, mark);
    }
    return false;
}

static bool by_choice(tti_dnn_graph *g, cudnnBackendDescriptor_t graph, const tti_dnn_opts *o)
{
    const tti_dnn_choice *c = o->choice;
    cudnnBackendDescriptor_t knob[TTI_DNN_KNOBS];
    cudnnBackendDescriptor_t engine = tti_dnn_make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    tti_dnn_put(g, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                &graph);
    tti_dnn_put(g, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &c->engine);
    tti_dnn_finalize(g, engine, "the engine");
    for (int i = 0; i < c->n_knobs; i++) {
        knob[i] = tti_dnn_make(g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        tti_dnn_put(g, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                    &c->knob[i]);
        tti_dnn_put(g, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                    &c->value[i]);
        tti_dnn_finalize(g, knob[i], "a knob");
    }
    cudnnBackendDescriptor_t config = tti_dnn_make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    tti_dnn_put(g, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    if (c->n_knobs > 0)
        tti_dnn_put(g, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                    c->n_knobs, knob);
    tti_dnn_finalize(g, config, "the engine's configuration");
    g->chosen = *c;
    return try_config(g, config, o->most_workspace);
}

bool tti_dnn_build(tti_dnn_graph *g, const tti_dnn_opts *opts)
{
    int seen = 0;
    cudnnBackendDescriptor_t graph = tti_dnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    tti_dnn_put(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    tti_dnn_put(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops,
                g->op);
    tti_dnn_finalize(g, graph, "the graph");
    if (g->failed)
        return false;
    if (opts->choice != NULL)
        return by_choice(g, graph, opts);
    return by_heuristics(g, graph, CUDNN_HEUR_MODE_A, opts, &seen) ||
           by_heuristics(g, graph, CUDNN_HEUR_MODE_FALLBACK, opts, &seen);
}

const char *tti_dnn_why(const tti_dnn_graph *g)
{
    return g->why[0] != 0 ? g->why : "no engine";
}

size_t tti_dnn_workspace(const tti_dnn_graph *g)
{
    return (size_t)g->workspace;
}

const tti_dnn_choice *tti_dnn_chosen(const tti_dnn_graph *g)
{
    return &g->chosen;
}

static tt_status run_failed(const tt_launch *l, cudnnStatus_t st)
{
    char last[160] = "";
    tti_dnn_library()->cudnnGetLastErrorString_(last, sizeof(last));
    return TT_FAIL(l->ctx, TT_EDEVICE, "%s '%s' on %s: cuDNN: %s%s%s",
                   l->node != NULL ? l->node->op->name : "a kernel",
                   l->node != NULL ? l->node->name : "", ((tti_cuda_device *)l->device)->name,
                   tti_dnn_library()->cudnnGetErrorString_(st), last[0] != 0 ? ": " : "", last);
}

tt_status tti_dnn_run(tti_dnn_graph *g, const tt_launch *l, int n, const int *tensor,
                      void *const *data, void *workspace)
{
    const tti_dnn_functions *f = tti_dnn_library();
    int64_t uid[MOST_TENSORS];
    void *at[MOST_TENSORS];
    int64_t count = 0;
    for (int i = 0; i < n; i++, count++) {
        uid[count] = tensor[i];
        at[count] = data[i];
    }
    for (int i = 0; i < g->n_scalars; i++, count++) {
        uid[count] = g->scalar[i];
        at[count] = &g->value[i];
    }
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t st = f->cudnnSetStream_(g->handle, (cudaStream_t)l->stream);
    if (st == CUDNN_STATUS_SUCCESS)
        st = f->cudnnBackendCreateDescriptor_(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (st == CUDNN_STATUS_SUCCESS)
        st = f->cudnnBackendSetAttribute_(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                          CUDNN_TYPE_INT64, count, uid);
    if (st == CUDNN_STATUS_SUCCESS)
        st = f->cudnnBackendSetAttribute_(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                          CUDNN_TYPE_VOID_PTR, count, at);
    if (st == CUDNN_STATUS_SUCCESS)
        st = f->cudnnBackendSetAttribute_(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                          CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (st == CUDNN_STATUS_SUCCESS)
        st = f->cudnnBackendFinalize_(pack);
    if (st == CUDNN_STATUS_SUCCESS)
        st = f->cudnnBackendExecute_(g->handle, g->plan, pack);
    if (pack != NULL)
        f->cudnnBackendDestroyDescriptor_(pack);
    return st == CUDNN_STATUS_SUCCESS ? TT_OK : run_failed(l, st);
}

#endif
