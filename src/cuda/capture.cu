/*
 * capture.cu - a step gathered once and run many times, over one stream or several.
 *
 * The capture begins on the first device's stream; the others join it by an event and come back by
 * one at the end, so one graph holds the work of all of them. Its launch does the same around the
 * graph: it is in the order of every device it covers.
 */
#include "cuda/nccl.h"

// The other devices go on after what the first has enqueued; and the first after what they have.
static tt_status fork_from(tti_cuda_device *first, tti_cuda_device *const *d, int n)
{
    if (n < 2)
        return TT_OK;
    TT_TRY(tti_cuda_enter(first));
    TTI_CUDA(first, NULL, cudaEventRecord(first->parts->fork, first->stream));
    for (int i = 0; i < n; i++) {
        if (d[i] == first)
            continue;
        TT_TRY(tti_cuda_enter(d[i]));
        TTI_CUDA(d[i], NULL, cudaStreamWaitEvent(d[i]->stream, first->parts->fork, 0));
    }
    return TT_OK;
}
static tt_status join_to(tti_cuda_device *first, tti_cuda_device *const *d, int n)
{
    for (int i = 0; i < n; i++) {
        if (d[i] == first)
            continue;
        TT_TRY(tti_cuda_enter(d[i]));
        TTI_CUDA(d[i], NULL, cudaEventRecord(d[i]->parts->fork, d[i]->stream));
        TT_TRY(tti_cuda_enter(first));
        TTI_CUDA(first, NULL, cudaStreamWaitEvent(first->stream, d[i]->parts->fork, 0));
    }
    return TT_OK;
}

static void set_capturing(tti_cuda_device *const *d, int n, bool on)
{
    for (int i = 0; i < n; i++)
        d[i]->parts->is_capturing = on;
}

// Ends a capture whatever its state, without a graph.
static void give_up(tti_cuda_device *first)
{
    cudaGraph_t graph = NULL;
    if (tti_cuda_enter_quietly(first) &&
        cudaStreamEndCapture(first->stream, &graph) == cudaSuccess && graph != NULL)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
}

tt_status tti_cuda_capture_begin(struct tti_device *const *of, int n)
{
    tti_cuda_device *room[TTI_MAX_GROUP], *const *d = tti_cuda_all(of, n, room);
    TT_TRY(tti_cuda_enter(d[0]));
    TTI_CUDA(d[0], NULL, cudaStreamBeginCapture(d[0]->stream, cudaStreamCaptureModeThreadLocal));
    set_capturing(d, n, true);
    tt_status st = fork_from(d[0], d, n);
    if (st != TT_OK) {
        set_capturing(d, n, false);
        give_up(d[0]);
    }
    return st;
}

// Notes of the capture belong to exec from now on; without one they are free again.
static void settle_notes(tti_cuda_device *const *d, int n, const void *from, void *exec)
{
    for (int i = 0; i < n; i++) {
        for (tti_note *t = d[i]->parts->notes; t != NULL; t = t->next) {
            if (!t->is_captured || t->exec != from)
                continue;
            t->exec = exec;
            if (exec == NULL) {
                t->is_captured = false;
                __atomic_store_n(&t->is_busy, 0, __ATOMIC_RELEASE);
            }
        }
    }
}

static tt_status instantiate(tti_cuda_device *const *d, int n, cudaGraph_t graph, tti_exec **out)
{
    size_t bytes = sizeof(tti_exec) + (size_t)n * sizeof(void *);
    tti_exec *x = (tti_exec *)tti_cuda_host_api->alloc(d[0]->ctx, bytes);
    if (x == NULL)
        return TT_ENOMEM;
    cudaError_t e = cudaGraphInstantiate(&x->graph, graph, 0);
    if (e != cudaSuccess) {
        tti_cuda_host_api->free(d[0]->ctx, x);
        return tti_cuda_fail(d[0], NULL, e, "cudaGraphInstantiate", __FILE__, __LINE__);
    }
    x->n = n;
    for (int i = 0; i < n; i++)
        x->devices[i] = d[i];
    *out = x;
    return TT_OK;
}

tt_status tti_cuda_capture_end(struct tti_device *const *of, int n, bool keep, void **exec)
{
    tti_cuda_device *room[TTI_MAX_GROUP], *const *d = tti_cuda_all(of, n, room);
    cudaGraph_t graph = NULL;
    tti_exec *x = NULL;
    set_capturing(d, n, false);
    tt_status st = TT_OK;
    if (keep)
        st = join_to(d[0], d, n);
    if (!keep || st != TT_OK) {
        give_up(d[0]);
    } else {
        cudaError_t e = cudaStreamEndCapture(d[0]->stream, &graph);
        st = e != cudaSuccess
                 ? tti_cuda_fail(d[0], NULL, e, "cudaStreamEndCapture", __FILE__, __LINE__)
                 : instantiate(d, n, graph, &x);
        if (graph != NULL)
            (void)cudaGraphDestroy(graph);
    }
    settle_notes(d, n, NULL, x);
    if (x != NULL)
        *exec = x;
    return st;
}

tt_status tti_cuda_launch(struct tti_device *of, void *exec)
{
    tti_cuda_device *d = tti_cuda_of(of);
    tti_exec *x = (tti_exec *)exec;
    for (int i = 0; i < x->n; i++)
        TT_TRY(tti_gangs_check(x->devices[i])); // it may hold work of one that is lost
    TT_TRY(join_to(d, x->devices, x->n));
    TT_TRY(tti_cuda_enter(d));
    TTI_CUDA(d, NULL, cudaGraphLaunch(x->graph, d->stream));
    return fork_from(d, x->devices, x->n);
}

void tti_cuda_drop_exec(struct tti_device *of, void *exec)
{
    tti_cuda_device *d = tti_cuda_of(of);
    tti_exec *x = (tti_exec *)exec;
    if (x == NULL)
        return;
    if (tti_cuda_enter_quietly(d)) {
        (void)cudaStreamSynchronize(d->stream); // its last launch
        (void)cudaGraphExecDestroy(x->graph);
    }
    (void)cudaGetLastError();
    settle_notes(x->devices, x->n, x, NULL);
    tti_cuda_host_api->free(d->ctx, x);
}
