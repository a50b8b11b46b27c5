/*
 * streams.cpp - streams that run as late as they may, events, captures.
 *
 * Work waits in its stream's queue until somebody waits for the stream or for an event behind it;
 * then just that much is run, other streams only as far as events demand. A wait that was forgotten
 * so gives old values. Likewise a captured graph runs its nodes in the order that is furthest from
 * the one they were captured in. A host function runs its stream at once: nobody would ask for it.
 *
 * A piece of work that cannot end is stuck: it stays the first of its queue, and whoever waits for
 * it is stuck, too. Streams that meet wait for each other; a circle of such waits loses the cards.
 */
#include "emu.h"
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <stdio.h>
#include <unistd.h>
#include <vector>

struct meeting {
    size_t n;
    std::function<bool()> gather;
};
struct node {
    std::function<void()> fn;
    std::vector<int> after;
    std::shared_ptr<meeting> with; // NULL: alone
};
struct CUgraph_st {
    std::vector<node> nodes;
    bool has_host; // calls a host function
};
struct CUgraphExec_st {
    CUgraph_st graph;
};
struct capture {
    uint64_t id;
    cudaStream_t origin;
    cudaGraph_t graph;
    bool is_broken;
};
struct CUstream_st {
    int card;
    std::deque<std::function<bool()>> queue; // false: stuck
    uint64_t n_pushed, n_run;
    bool is_running;
    capture *on; // NULL: none
    std::vector<int> tail;
};
struct CUevent_st {
    cudaStream_t stream; // NULL: never recorded
    uint64_t at;         // run once n_run of the stream has reached it
    uint64_t on;         // the capture it was recorded in; 0: none
    std::vector<int> tail;
    double time;
};

static std::set<cudaStream_t> streams;
static std::map<uint64_t, capture *> captures; // those that are on
static uint64_t n_captures;
static thread_local capture *mine; // the one this thread began
static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

int emu_card_of(cudaStream_t s)
{
    EMU_LOCK;
    return streams.count(s) ? s->card : -1;
}

cudaError_t emu_may_wait(void)
{
    if (mine == nullptr || mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    mine->is_broken = true;
    return emu_error(cudaErrorStreamCaptureUnsupported);
}

// ---- queues ----------------------------------------------------------------------------------

static bool run_until(cudaStream_t s, uint64_t at)
{
    if (s->n_run < at && s->is_running) {
        fprintf(stderr, "emulation: streams wait for each other in a circle\n");
        emu_lose(cudaErrorLaunchTimeout);
        return false;
    }
    while (s->n_run < at && !s->queue.empty()) {
        s->is_running = true;
        bool done = emu_lost() != cudaSuccess || s->queue.front()() || emu_lost() != cudaSuccess;
        s->is_running = false;
        if (!done)
            return false;
        s->queue.pop_front();
        s->n_run++;
    }
    return true;
}

void emu_drain_card(int card)
{
    for (cudaStream_t s : streams)
        if (s->card == card)
            (void)run_until(s, s->n_pushed);
}

static cudaError_t check_stream(cudaStream_t s)
{
    if (!streams.count(s))
        return emu_error(cudaErrorInvalidResourceHandle);
    return emu_lost();
}

static cudaError_t add_node(cudaStream_t s, node n)
{
    if (s->on->is_broken)
        return emu_error(cudaErrorStreamCaptureInvalidated);
    n.after = s->tail;
    s->on->graph->nodes.push_back(std::move(n));
    s->tail.assign(1, (int)s->on->graph->nodes.size() - 1);
    return cudaSuccess;
}

static void push(cudaStream_t s, std::function<bool()> fn)
{
    s->queue.push_back(std::move(fn));
    s->n_pushed++;
}

cudaError_t emu_submit(cudaStream_t s, std::function<void()> fn)
{
    EMU_LOCK;
    cudaError_t e = check_stream(s);
    if (e != cudaSuccess)
        return e;
    if (s->on != nullptr)
        return add_node(s, {std::move(fn), {}, nullptr});
    push(s, [fn]() {
        fn();
        return true;
    });
    if (emu_number("TUTTI_EMU_NOW", 0))
        (void)run_until(s, s->n_pushed);
    return cudaSuccess;
}

// ---- meetings --------------------------------------------------------------------------------

// Of streams that are not captured: before its part each runs the others up to theirs.
static void queue_meeting(const std::vector<cudaStream_t> &s, std::function<bool()> gather,
                          const std::vector<std::function<void()>> &parts)
{
    auto at = std::make_shared<std::vector<uint64_t>>();
    auto gathered = std::make_shared<bool>(false);
    for (cudaStream_t one : s)
        at->push_back(one->n_pushed);
    for (size_t i = 0; i < s.size(); i++) {
        std::function<void()> part = parts[i];
        push(s[i], [=]() {
            for (size_t k = 0; k < s.size() && !*gathered; k++)
                if (k != i && !run_until(s[k], (*at)[k]))
                    return false;
            if (!*gathered && !gather())
                return false;
            *gathered = true;
            part();
            return true;
        });
    }
    for (cudaStream_t one : s)
        if (emu_number("TUTTI_EMU_NOW", 0))
            (void)run_until(one, one->n_pushed);
}

cudaError_t emu_meet(const std::vector<cudaStream_t> &s, std::function<bool()> gather,
                     const std::vector<std::function<void()>> &parts)
{
    EMU_LOCK;
    for (cudaStream_t one : s) {
        cudaError_t e = check_stream(one);
        if (e != cudaSuccess)
            return e;
        if (one->on != s[0]->on)
            return emu_error(cudaErrorStreamCaptureUnsupported);
    }
    if (s[0]->on == nullptr) {
        queue_meeting(s, gather, parts);
        return cudaSuccess;
    }
    auto with = std::make_shared<meeting>(meeting{s.size(), gather});
    for (size_t i = 0; i < s.size(); i++) {
        cudaError_t e = add_node(s[i], {parts[i], {}, with});
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
}

// ---- streams ---------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    EMU_LOCK;
    (void)flags;
    cudaError_t e = emu_lost();
    if (e != cudaSuccess)
        return e;
    *out = new CUstream_st{emu_current_card(), {}, 0, 0, false, nullptr, {}};
    streams.insert(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    (void)priority;
    return cudaStreamCreateWithFlags(out, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    EMU_LOCK;
    if (!streams.count(s))
        return emu_error(cudaErrorInvalidResourceHandle);
    (void)run_until(s, s->n_pushed);
    streams.erase(s);
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    EMU_LOCK;
    cudaError_t e = check_stream(s);
    if (e != cudaSuccess)
        return e;
    if (s->on != nullptr) {
        s->on->is_broken = true;
        return emu_error(cudaErrorStreamCaptureUnsupported);
    }
    bool done = run_until(s, s->n_pushed);
    e = emu_lost();
    return e == cudaSuccess && !done ? cudaErrorNotReady : e;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    cudaError_t e = cudaStreamQuery(s);
    for (; e == cudaErrorNotReady; e = cudaStreamQuery(s))
        usleep(100);
    return e;
}

cudaError_t cudaDeviceSynchronize(void)
{
    EMU_LOCK;
    cudaError_t e = emu_may_wait();
    if (e != cudaSuccess)
        return e;
    emu_drain_card(emu_current_card());
    return emu_lost();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
    EMU_LOCK;
    cudaError_t e = emu_submit(s, [=]() { fn(arg); });
    if (e == cudaSuccess && s->on == nullptr)
        run_until(s, s->n_pushed);
    else if (e == cudaSuccess)
        s->on->graph->has_host = true;
    return e;
}

// ---- events ----------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    (void)flags;
    *out = new CUevent_st{nullptr, 0, 0, {}, 0};
    return emu_lost();
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, 0);
}

// What is queued may still name it: events are few and stay.
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    EMU_LOCK;
    if (e->stream != nullptr && streams.count(e->stream))
        run_until(e->stream, e->at);
    delete e;
    return emu_lost();
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    EMU_LOCK;
    cudaError_t err = check_stream(s);
    if (err != cudaSuccess)
        return err;
    e->on = s->on == nullptr ? 0 : s->on->id;
    if (s->on != nullptr) {
        e->tail = s->tail;
        return cudaSuccess;
    }
    err = emu_submit(s, [e]() {
        e->time = std::chrono::duration<double, std::milli>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count();
    });
    e->stream = s;
    e->at = s->n_pushed;
    return err;
}

static cudaError_t join_capture(cudaStream_t s, cudaEvent_t e)
{
    auto found = captures.find(e->on);
    if (found == captures.end())
        return emu_error(cudaErrorCapturedEvent);
    if (s->on != nullptr && s->on != found->second)
        return emu_error(cudaErrorStreamCaptureUnsupported);
    if (s->on == nullptr) {
        s->on = found->second;
        s->tail.clear();
    }
    s->tail.insert(s->tail.end(), e->tail.begin(), e->tail.end());
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    EMU_LOCK;
    (void)flags;
    cudaError_t err = check_stream(s);
    if (err != cudaSuccess)
        return err;
    if (e->on != 0)
        return join_capture(s, e);
    if (s->on != nullptr) { // an event from outside says nothing in a capture
        s->on->is_broken = true;
        return emu_error(cudaErrorStreamCaptureUnsupported);
    }
    if (e->stream == nullptr)
        return cudaSuccess;
    cudaStream_t other = e->stream;
    uint64_t at = e->at;
    push(s, [=]() { return !streams.count(other) || other == s || run_until(other, at); });
    if (emu_number("TUTTI_EMU_NOW", 0))
        (void)run_until(s, s->n_pushed);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    EMU_LOCK;
    if (e->on != 0)
        return emu_error(cudaErrorCapturedEvent);
    if (e->stream != nullptr && streams.count(e->stream))
        run_until(e->stream, e->at);
    return emu_lost();
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    return cudaEventSynchronize(e);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t first, cudaEvent_t last)
{
    EMU_LOCK;
    if (first->stream == nullptr || last->stream == nullptr ||
        first->stream->card != last->stream->card)
        return emu_error(cudaErrorInvalidResourceHandle);
    if (first->stream->n_run < first->at || last->stream->n_run < last->at)
        return cudaErrorNotReady;
    *ms = (float)(last->time - first->time);
    return emu_lost();
}

// ---- captures --------------------------------------------------------------------------------

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *m)
{
    std::swap(*m, mode);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *out)
{
    EMU_LOCK;
    *out = s->on == nullptr   ? cudaStreamCaptureStatusNone
           : s->on->is_broken ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode m)
{
    EMU_LOCK;
    cudaError_t e = check_stream(s);
    if (e != cudaSuccess)
        return e;
    if (s->on != nullptr)
        return emu_error(cudaErrorStreamCaptureUnsupported);
    s->on = new capture{++n_captures, s, new CUgraph_st{{}, false}, false};
    s->tail.clear();
    captures[s->on->id] = s->on;
    mine = s->on;
    mode = m;
    return cudaSuccess;
}

// Every stream's last node must be one that the first stream's end waits for.
static bool is_joined(const capture *c)
{
    std::vector<bool> seen(c->graph->nodes.size());
    std::vector<int> stack = c->origin->tail;
    while (!stack.empty()) {
        int i = stack.back();
        stack.pop_back();
        if (seen[(size_t)i])
            continue;
        seen[(size_t)i] = true;
        const std::vector<int> &after = c->graph->nodes[(size_t)i].after;
        stack.insert(stack.end(), after.begin(), after.end());
    }
    for (cudaStream_t s : streams)
        for (int i : s->on == c ? s->tail : std::vector<int>())
            if (!seen[(size_t)i])
                return false;
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out)
{
    EMU_LOCK;
    *out = nullptr;
    if (!streams.count(s) || s->on == nullptr || s->on->origin != s)
        return emu_error(cudaErrorInvalidValue);
    capture *c = s->on;
    cudaError_t e = c->is_broken   ? cudaErrorStreamCaptureInvalidated
                    : is_joined(c) ? cudaSuccess
                                   : cudaErrorStreamCaptureUnjoined;
    for (cudaStream_t other : streams)
        if (other->on == c)
            other->on = nullptr;
    if (e == cudaSuccess)
        *out = c->graph;
    else
        delete c->graph;
    captures.erase(c->id);
    if (mine == c) {
        mine = nullptr;
        mode = cudaStreamCaptureModeGlobal;
    }
    delete c;
    return emu_error(e);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags)
{
    (void)flags;
    *out = new CUgraphExec_st{*g};
    return emu_lost();
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x)
{
    EMU_LOCK;
    for (cudaStream_t s : streams)
        run_until(s, s->n_pushed); // launches of it may be queued
    delete x;
    return cudaSuccess;
}

// Of the nodes that may run, the one that was captured last; those that meet when all may.
static bool run_graph(const CUgraph_st *g)
{
    std::vector<int> missing(g->nodes.size());
    std::vector<std::vector<int>> then(g->nodes.size());
    std::priority_queue<int> ready;
    std::map<meeting *, std::vector<int>> come;
    size_t n_run = 0;
    for (size_t i = 0; i < g->nodes.size(); i++) {
        missing[i] = (int)g->nodes[i].after.size();
        for (int a : g->nodes[i].after)
            then[(size_t)a].push_back((int)i);
        if (missing[i] == 0)
            ready.push((int)i);
    }
    while (!ready.empty()) {
        std::vector<int> now(1, ready.top());
        meeting *with = g->nodes[(size_t)now[0]].with.get();
        ready.pop();
        if (with != nullptr) {
            come[with].push_back(now[0]);
            if (come[with].size() < with->n)
                continue;
            now = come[with];
        }
        if (emu_lost() != cudaSuccess)
            return true;
        if (with != nullptr && !with->gather())
            return false;
        for (int i : now)
            g->nodes[(size_t)i].fn();
        n_run += now.size();
        for (int i : now)
            for (int t : then[(size_t)i])
                if (--missing[(size_t)t] == 0)
                    ready.push(t);
    }
    if (n_run < g->nodes.size()) {
        fprintf(stderr, "emulation: nodes of a graph wait for each other in a circle\n");
        emu_lose(cudaErrorLaunchTimeout);
    }
    return true;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    EMU_LOCK;
    cudaError_t e = check_stream(s);
    if (e != cudaSuccess)
        return e;
    if (s->on != nullptr)
        return emu_error(cudaErrorNotSupported);
    push(s, [x]() { return run_graph(&x->graph); });
    if (x->graph.has_host || emu_number("TUTTI_EMU_NOW", 0))
        (void)run_until(s, s->n_pushed);
    return cudaSuccess;
}
