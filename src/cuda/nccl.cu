/*
 * nccl.cu - sums over several cards by NCCL, which is found at run time. Its header is not needed:
 * types, numbers and functions are as its documentation has them.
 *
 * A gang is a communicator for each device of a set, made once and kept until one of them closes.
 * One thread makes the calls of all its devices, between the two of a group, on a stream that each
 * device has for them beside its own. A gang that failed is ended, which lets go what waits on its
 * cards, and is of no use any more.
 */
#include "cuda/nccl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---- the library -----------------------------------------------------------------------------

#define NEED 21800 // 2.18: what captures need of it is old by then

enum {
    SUCCESS = 0,
    IN_PROGRESS = 7,
    SUM = 0
};
static const char *const result_names[] = {
    "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
    "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};

typedef struct ncclComm *comm;
#define FUNCTIONS(X)                                                                        \
    X(int, ncclGetVersion, (int *))                                                         \
    X(const char *, ncclGetErrorString, (int))                                              \
    X(const char *, ncclGetLastError, (comm))                                               \
    X(int, ncclCommInitAll, (comm *, int, const int *))                                     \
    X(int, ncclCommDestroy, (comm))                                                         \
    X(int, ncclCommAbort, (comm))                                                           \
    X(int, ncclCommGetAsyncError, (comm, int *))                                            \
    X(int, ncclGroupStart, (void))                                                          \
    X(int, ncclGroupEnd, (void))                                                            \
    X(int, ncclAllReduce, (const void *, void *, size_t, int, int, comm, cudaStream_t))     \
    X(int, ncclReduceScatter, (const void *, void *, size_t, int, int, comm, cudaStream_t)) \
    X(int, ncclAllGather, (const void *, void *, size_t, int, comm, cudaStream_t))          \
    X(int, ncclReduce, (const void *, void *, size_t, int, int, int, comm, cudaStream_t))   \
    X(int, ncclBroadcast, (const void *, void *, size_t, int, int, comm, cudaStream_t))

typedef struct functions {
#define X(type, name, args) type(*name) args;
    FUNCTIONS(X)
#undef X
    char words[160]; // "NCCL 2.28.3", or why there is none
    bool is_there;
} functions;

static functions find_functions(void)
{
    static const char *const names[] = {"libnccl.so.2", NULL};
    functions f = {};
    const char *why = NULL, *set = tti_cuda_host_api->env("TUTTI_NCCL");
    if (set != NULL && strcmp(set, "off") == 0) {
        snprintf(f.words, sizeof(f.words), "TUTTI_NCCL=off");
        return f;
    }
    void *lib = tti_cuda_library(names, &why);
    if (lib == NULL) {
        snprintf(f.words, sizeof(f.words), "%s", why);
        return f;
    }
#define X(type, name, args)                                          \
    f.name = (type(*) args)tti_cuda_symbol(lib, #name);              \
    if (f.name == NULL) {                                            \
        snprintf(f.words, sizeof(f.words), "NCCL has no %s", #name); \
        return f;                                                    \
    }
    FUNCTIONS(X)
#undef X
    int v = 0;
    f.is_there = f.ncclGetVersion(&v) == SUCCESS && v >= NEED;
    snprintf(f.words, sizeof(f.words), "NCCL %d.%d.%d%s", v / 10000, v / 100 % 100, v % 100,
             f.is_there ? "" : " is older than 2.18");
    return f;
}

static const functions *nccl(void)
{
    static const functions f = find_functions(); // found once, then never changed
    return &f;
}

// NCCL's number of a type, and bytes of an element.
typedef struct type {
    int number;
    size_t bytes;
} type;
static type type_of(tt_dtype t)
{
    switch (t) {
    case TT_F32:
        return {7, 4};
    case TT_F64:
        return {8, 8};
    case TT_F16:
        return {6, 2};
    case TT_BF16:
        return {9, 2};
    case TT_I32:
        return {2, 4};
    case TT_I64:
        return {4, 8};
    default:
        return {1, 1};
    }
}
#define AS_BYTES 1

// ---- gangs -----------------------------------------------------------------------------------

typedef struct tti_gang {
    int n;
    tti_cuda_device *devices[TTI_MAX_CARDS];
    comm comms[TTI_MAX_CARDS];
    tti_gang_link links[TTI_MAX_CARDS]; // in the lists of the devices
    char lost[TTI_CAUSE];               // why it is of no use any more; "": it works
    pthread_t ender;                    // once lost: ends what waits on the cards
    bool has_ender;
} gang;

/*
 * All ranks are told to end before any of them is waited for; a communicator that a captured step
 * still has a use for is waited for until that is gone, so this has a thread of its own.
 */
static void *end_comms(void *arg)
{
    gang *g = (gang *)arg;
    (void)nccl()->ncclGroupStart();
    for (int i = 0; i < g->n; i++)
        (void)nccl()->ncclCommAbort(g->comms[i]);
    (void)nccl()->ncclGroupEnd();
    return NULL;
}

static void lose(gang *g, const char *why)
{
    if (g->lost[0] != '\0')
        return;
    snprintf(g->lost, sizeof(g->lost), "%.255s", why);
    g->has_ender = pthread_create(&g->ender, NULL, end_comms, g) == 0;
}

static const char *const kind_names[] = {"all_reduce", "reduce_scatter", "all_gather"};

// What NCCL said, in one line without an end.
static void put_cause(const gang *g, int rank, int result, char *out, size_t n)
{
    const char *last = nccl()->ncclGetLastError(g == NULL ? NULL : g->comms[rank]);
    int known = (int)(sizeof(result_names) / sizeof(result_names[0]));
    int at = snprintf(out, n, "NCCL: %s (%s)%s%s", nccl()->ncclGetErrorString(result),
                      result >= 0 && result < known ? result_names[result] : "unknown",
                      last != NULL && last[0] != '\0' ? ": " : "", last != NULL ? last : "");
    int end = at < (int)n ? at : (int)n - 1;
    for (int i = 0; i < end; i++)
        out[i] = out[i] == '\n' ? ' ' : out[i];
    while (end > 0 && out[end - 1] == ' ')
        out[--end] = '\0';
}

// Of rank's device; j is what was asked for, NULL: nothing in particular. The gang is lost.
static tt_status fail(gang *g, int rank, const tti_library_call *j, int others, int result)
{
    const tti_cuda_device *d = g->devices[rank];
    char cause[TTI_CAUSE], what[160] = "", more[32] = "", text[2 * TTI_CAUSE];
    put_cause(g, rank, result, cause, sizeof(cause));
    if (others > 0)
        snprintf(more, sizeof(more), " and %d more", others);
    if (j != NULL && j->node != NULL)
        snprintf(what, sizeof(what), "%s of %s '%.64s'%s: ", kind_names[j->what.kind],
                 j->node->op->name, j->node->name, more);
    else if (j != NULL)
        snprintf(what, sizeof(what), "%s%s: ", kind_names[j->what.kind], more);
    snprintf(text, sizeof(text), "%s: %s%s", d->name, what, cause);
    lose(g, text);
    return TT_FAIL(d->ctx, TT_EDEVICE, "%s (set TUTTI_NCCL=off to run without NCCL)", text);
}

bool tti_nccl_joins(struct tti_device *const *of, int n, char *words, size_t size)
{
    tti_cuda_device *room[TTI_MAX_GROUP], *const *d = tti_cuda_all(of, n, room);
    for (int i = 0; i < n; i++) {
        if (d[i] == NULL) {
            snprintf(words, size, "%s is not a GPU of this process",
                     ((const tti_device_head *)of[i])->name);
            return false;
        }
        for (int k = 0; k < i; k++) {
            if (d[i]->physical != d[k]->physical)
                continue;
            snprintf(words, size, "%s and %s are parts of one GPU", d[k]->name, d[i]->name);
            return false;
        }
    }
    snprintf(words, size, "%s", nccl()->words);
    return nccl()->is_there;
}

// ---- making and closing ----------------------------------------------------------------------

// What this process alone needs, unless the user says otherwise: no port but to itself; and steps
// that were captured and those that were not never run at the same time.
static void set_defaults(void)
{
    (void)setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    (void)setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 0);
}

static tt_status make_stream(tti_cuda_device *d)
{
    int least = 0, greatest = 0;
    TT_TRY(tti_cuda_enter(d));
    if (d->parts->joint != NULL)
        return TT_OK;
    TTI_CUDA(d, NULL, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    TTI_CUDA(d, NULL,
             cudaStreamCreateWithPriority(&d->parts->joint, cudaStreamNonBlocking, greatest));
    TTI_CUDA(d, NULL, cudaEventCreateWithFlags(&d->parts->forked, cudaEventDisableTiming));
    return TT_OK;
}

static tt_status init(gang *g)
{
    int cards[TTI_MAX_CARDS];
    for (int i = 0; i < g->n; i++) {
        TT_TRY(make_stream(g->devices[i]));
        cards[i] = g->devices[i]->physical;
    }
    set_defaults();
    int result = nccl()->ncclCommInitAll(g->comms, g->n, cards);
    if (result == SUCCESS)
        return TT_OK;
    char cause[TTI_CAUSE];
    put_cause(NULL, 0, result, cause, sizeof(cause));
    return TT_FAIL(g->devices[0]->ctx, TT_EDEVICE,
                   "%s to %s: no communicator: %s (set TUTTI_NCCL=off to run without NCCL)",
                   g->devices[0]->name, g->devices[g->n - 1]->name, cause);
}

static bool is_of(const gang *g, tti_cuda_device *const *d, int n)
{
    return g->n == n && memcmp(g->devices, d, sizeof(*d) * (size_t)n) == 0;
}

tt_status tti_nccl_gang(struct tti_device *const *of, int n, void **out)
{
    tti_cuda_device *room[TTI_MAX_GROUP], *const *d = tti_cuda_all(of, n, room);
    char words[TTI_CAUSE];
    if (n < 1 || n > TTI_MAX_CARDS || !tti_nccl_joins(of, n, words, sizeof(words)))
        return TT_FAIL(d[0]->ctx, TT_EUNSUPPORTED, "%s: no communicator: %s", d[0]->name, words);
    for (tti_gang_link *l = d[0]->parts->gangs; l != NULL; l = l->next) {
        *out = l->gang;
        if (is_of(l->gang, d, n))
            return TT_OK;
    }
    gang *g = (gang *)tti_cuda_host_api->alloc(d[0]->ctx, sizeof(*g));
    if (g == NULL)
        return TT_ENOMEM;
    g->n = n;
    memcpy(g->devices, d, sizeof(*d) * (size_t)n);
    tt_status st = init(g);
    if (st != TT_OK) {
        tti_cuda_host_api->free(d[0]->ctx, g);
        return st;
    }
    for (int i = 0; i < n; i++) {
        g->links[i] = {g, d[i]->parts->gangs};
        d[i]->parts->gangs = &g->links[i];
    }
    *out = g;
    return TT_OK;
}

static void unlink_from(tti_cuda_device *d, const gang *g)
{
    tti_gang_link **at = &d->parts->gangs;
    while ((*at)->gang != g)
        at = &(*at)->next;
    *at = (*at)->next;
}

#define END_SECONDS 10

// Captured steps are gone by now. Of a lost card nothing can be asked: that goes with the process.
static void close_gang(gang *g)
{
    bool works = true;
    for (int i = 0; i < g->n; i++) {
        works &= tti_cuda_enter_quietly(g->devices[i]);
        unlink_from(g->devices[i], g);
    }
    for (int i = 0; i < g->n && works && g->lost[0] == '\0'; i++)
        (void)nccl()->ncclCommDestroy(g->comms[i]);
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_SECONDS;
    bool ended = !g->has_ender || pthread_timedjoin_np(g->ender, NULL, &until) == 0;
    tt_ctx *ctx = g->devices[0]->ctx;
    if (ended) {
        tti_cuda_host_api->free(ctx, g);
        return;
    }
    (void)pthread_detach(g->ender); // it still looks at g, which stays
    tti_cuda_host_api->log(ctx, TT_WARN, "NCCL: a communicator did not end in 10 s");
}

void tti_gangs_drop(tti_cuda_device *d)
{
    while (d->parts->gangs != NULL)
        close_gang(d->parts->gangs->gang);
    (void)tti_cuda_enter_quietly(d);
}

// ---- what goes wrong later -------------------------------------------------------------------

tt_status tti_gangs_check(const tti_cuda_device *d)
{
    for (tti_gang_link *l = d->parts->gangs; l != NULL; l = l->next) {
        gang *g = l->gang;
        int rank = (int)(l - g->links), result = SUCCESS;
        if (g->lost[0] != '\0')
            return TT_FAIL(d->ctx, TT_EDEVICE, "%s: lost before: %s", d->name, g->lost);
        int asked = nccl()->ncclCommGetAsyncError(g->comms[rank], &result);
        if (asked != SUCCESS || (result != SUCCESS && result != IN_PROGRESS))
            return fail(g, rank, NULL, 0, asked != SUCCESS ? asked : result);
    }
    return TT_OK;
}

void tti_gangs_end(const tti_cuda_device *d, const char *why)
{
    for (tti_gang_link *l = d->parts->gangs; l != NULL; l = l->next)
        lose(l->gang, why);
}

// ---- calls -----------------------------------------------------------------------------------

// Have all devices as many elements?
static bool is_even(const tti_library_call *j, int n)
{
    for (int i = 0; i < n; i++)
        if (j->what.begin[i + 1] - j->what.begin[i] != j->what.begin[1] - j->what.begin[0])
            return false;
    return true;
}

// Piece after piece: each is summed to its device, or sent from it.
static int call_uneven(const gang *g, const tti_library_call *j, int rank)
{
    type t = type_of(j->what.dtype);
    int result = SUCCESS;
    for (int to = 0; to < g->n && result == SUCCESS; to++) {
        size_t count = (size_t)(j->what.begin[to + 1] - j->what.begin[to]);
        char *at = (char *)j->data[rank] + (size_t)j->what.begin[to] * t.bytes;
        cudaStream_t s = g->devices[rank]->parts->joint;
        if (count == 0)
            continue;
        if (j->what.kind == TTI_REDUCE_SCATTER)
            result = nccl()->ncclReduce(at, at, count, t.number, SUM, to, g->comms[rank], s);
        else
            result =
                nccl()->ncclBroadcast(at, at, count * t.bytes, AS_BYTES, to, g->comms[rank], s);
    }
    return result;
}

static int call(const gang *g, const tti_library_call *j, int rank)
{
    type t = type_of(j->what.dtype);
    size_t count = (size_t)j->what.begin[g->n];
    char *data = (char *)j->data[rank], *piece = data + (size_t)j->what.begin[rank] * t.bytes;
    cudaStream_t s = g->devices[rank]->parts->joint;
    if (count == 0)
        return SUCCESS;
    if (j->what.kind == TTI_ALL_REDUCE)
        return nccl()->ncclAllReduce(data, data, count, t.number, SUM, g->comms[rank], s);
    if (!is_even(j, g->n))
        return call_uneven(g, j, rank);
    count /= (size_t)g->n;
    if (j->what.kind == TTI_REDUCE_SCATTER)
        return nccl()->ncclReduceScatter(data, piece, count, t.number, SUM, g->comms[rank], s);
    return nccl()->ncclAllGather(piece, data, count * t.bytes, AS_BYTES, g->comms[rank], s);
}

tt_status tti_nccl_together(void *state, const tti_library_call *list, int n)
{
    gang *g = (gang *)state;
    if (g->lost[0] != '\0')
        return TT_FAIL(g->devices[0]->ctx, TT_EDEVICE, "%s: lost before: %s", g->devices[0]->name,
                       g->lost);
    for (int i = 0; i < g->n; i++) {
        tti_cuda_device *d = g->devices[i];
        TT_TRY(tti_cuda_enter(d));
        TTI_CUDA(d, NULL, cudaEventRecord(d->parts->forked, d->stream));
        TTI_CUDA(d, NULL, cudaStreamWaitEvent(d->parts->joint, d->parts->forked, 0));
    }
    int result = nccl()->ncclGroupStart(), at = 0, rank = 0;
    if (result != SUCCESS)
        return fail(g, 0, list, n - 1, result);
    for (int i = 0; i < n && result == SUCCESS; i++) {
        for (int r = 0; r < g->n && result == SUCCESS; r++) {
            result = call(g, &list[i], r);
            at = i;
            rank = r;
        }
    }
    int ended = nccl()->ncclGroupEnd();
    if (result != SUCCESS)
        return fail(g, rank, &list[at], 0, result);
    return ended == SUCCESS || ended == IN_PROGRESS ? TT_OK : fail(g, 0, list, n - 1, ended);
}

tt_status tti_nccl_mark(struct tti_device *of, void **event)
{
    tti_cuda_device *d = tti_cuda_of(of);
    return tti_cuda_record_on(d, d->parts->joint, event);
}
