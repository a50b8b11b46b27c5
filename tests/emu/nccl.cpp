/*
 * nccl.cpp - an emulation of NCCL as far as our sources call it, for communicators whose ranks are
 * all of this process and thread: there if TUTTI_EMU_NCCL is its version (22803).
 *
 * Calls wait for the end of their group; there the k-th call of every rank must be the same, or the
 * group is refused where the real one would hang. Sums are added from another rank on in every
 * block of elements, as a ring does: in no order of ours, but always in the same.
 *
 * TUTTI_EMU_NCCL_FAIL="AllReduce 3": the third call of ncclAllReduce fails. "Group 2": so does the
 * end of the second group with calls in it; "Async 2": it ends well, but an error is told later;
 * "Hang 2": it never ends, until it is aborted. They are counted from when this is set.
 */
#include "emu.h"
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <vector>

enum {
    SUCCESS,
    CUDA_ERROR,
    SYSTEM_ERROR,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    INVALID_USAGE,
    REMOTE_ERROR
};

#define BYTES_OF_COMM 100000 // of each card's memory
#define RING          64     // elements of a block of the ring

struct clique {
    std::vector<struct ncclComm *> ranks;
    bool is_aborted;
    int async; // an error to be told
};
struct ncclComm {
    std::shared_ptr<clique> of;
    int rank, card;
    void *memory;
};

struct call {
    const char *name;
    ncclComm *comm;
    const char *from;
    char *to;
    size_t count; // of the rank's own part
    int type, root;
    cudaStream_t stream;
};

static thread_local int depth;
static thread_local std::vector<call> calls; // of the group
static thread_local char last[256];
static long n_groups;

static int complain(int result, const char *text)
{
    snprintf(last, sizeof(last), "%s", text);
    return result;
}

// The n of "NAME n" in the environment, if the name is that; 0: none.
static long planned(const char *name)
{
    const char *s = getenv("TUTTI_EMU_NCCL_FAIL");
    size_t n = strlen(name);
    return s != nullptr && strncmp(s, name, n) == 0 && s[n] == ' ' ? strtol(s + n, nullptr, 10) : 0;
}

static bool fails(const char *name)
{
    static long n;
    return planned(name) > 0 && ++n == planned(name);
}

// Is it this group's turn?
static bool is_now(const char *name)
{
    return n_groups > 0 && planned(name) == n_groups;
}

static size_t item(int type)
{
    static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return bytes[type];
}

// ---- communicators ---------------------------------------------------------------------------

extern "C" {

static int ncclGetVersion(int *out)
{
    *out = (int)emu_number("TUTTI_EMU_NCCL", 0);
    return SUCCESS;
}

static const char *ncclGetErrorString(int result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error"};
    return texts[result];
}

static const char *ncclGetLastError(ncclComm *)
{
    return last;
}

static int ncclCommInitAll(ncclComm **out, int n, const int *cards)
{
    EMU_LOCK;
    int before = emu_current_card();
    if (fails("CommInitAll"))
        return complain(SYSTEM_ERROR, "socketStartConnect: connection refused\n");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (cards[i] == cards[k])
                return complain(INVALID_USAGE, "Duplicate GPU detected");
    auto all = std::make_shared<clique>(clique{{}, false, SUCCESS});
    for (int i = 0; i < n; i++) {
        out[i] = new ncclComm{all, i, cards[i], nullptr};
        all->ranks.push_back(out[i]);
        if (cudaSetDevice(cards[i]) != cudaSuccess ||
            cudaMalloc(&out[i]->memory, BYTES_OF_COMM) != cudaSuccess)
            return complain(CUDA_ERROR, "out of memory");
    }
    (void)cudaSetDevice(before);
    return SUCCESS;
}

static int ncclCommDestroy(ncclComm *c)
{
    EMU_LOCK;
    int before = emu_current_card();
    (void)cudaSetDevice(c->card);
    (void)cudaFree(c->memory);
    (void)cudaSetDevice(before);
    delete c;
    return SUCCESS;
}

static int ncclCommAbort(ncclComm *c)
{
    EMU_LOCK;
    c->of->is_aborted = true;
    return ncclCommDestroy(c);
}

static int ncclCommGetAsyncError(ncclComm *c, int *out)
{
    *out = c->of->async;
    return SUCCESS;
}

// ---- groups ----------------------------------------------------------------------------------

static int ncclGroupStart(void)
{
    depth++;
    return SUCCESS;
}
}

// What an element of the sum is: the ranks' in turn, from another one on in every block.
template <class T>
static void sum(const std::vector<std::vector<char>> &in, std::vector<char> &out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = in.size(), first = i / RING;
        T x = ((const T *)in[first % n].data())[i];
        for (size_t k = 1; k < n; k++)
            x = (T)(x + ((const T *)in[(first + k) % n].data())[i]);
        ((T *)out.data())[i] = x;
    }
}

static void sum_of(int type, const std::vector<std::vector<char>> &in, std::vector<char> &out,
                   size_t count)
{
    switch (type) {
    case 7:
        return sum<float>(in, out, count);
    case 8:
        return sum<double>(in, out, count);
    case 2:
        return sum<uint32_t>(in, out, count);
    case 4:
        return sum<uint64_t>(in, out, count);
    default:
        return sum<uint8_t>(in, out, count);
    }
}

// What a group of equal calls gets: the sum of all, or what all, or the root, have.
static std::vector<char> result_of(const std::vector<call> &ranks)
{
    const call &c = ranks[0];
    std::string name = c.name;
    size_t n = ranks.size(), bytes = c.count * item(c.type);
    size_t sent = name == "ReduceScatter" ? bytes * n : bytes;
    std::vector<std::vector<char>> in;
    for (const call &r : ranks)
        in.emplace_back(r.from, r.from + sent);
    if (name == "Broadcast")
        return in[(size_t)c.root];
    std::vector<char> out(sent);
    if (name == "AllGather") {
        out.clear();
        for (size_t r = 0; r < n; r++)
            out.insert(out.end(), in[r].begin(), in[r].end());
    } else {
        sum_of(c.type, in, out, sent / item(c.type));
    }
    return out;
}

static int meet(const std::vector<call> &ranks, bool hangs)
{
    auto out = std::make_shared<std::vector<char>>();
    std::shared_ptr<clique> of = ranks[0].comm->of;
    std::vector<cudaStream_t> streams;
    std::vector<std::function<void()>> parts;
    std::string name = ranks[0].name;
    for (size_t r = 0; r < ranks.size(); r++) {
        const call c = ranks[r];
        size_t bytes = c.count * item(c.type) * (name == "AllGather" ? ranks.size() : 1);
        size_t skip = name == "ReduceScatter" ? r * bytes : 0;
        bool gets = name != "Reduce" || c.root == (int)r;
        streams.push_back(c.stream);
        parts.push_back([=]() {
            if (gets && !of->is_aborted)
                memcpy(c.to, out->data() + skip, bytes);
        });
    }
    cudaError_t e = emu_meet(
        streams,
        [=]() {
            if (hangs && !of->is_aborted)
                return false;
            if (!of->is_aborted)
                *out = result_of(ranks);
            return true;
        },
        parts);
    return e == cudaSuccess ? SUCCESS : complain(CUDA_ERROR, cudaGetErrorString(e));
}

static bool is_same(const call &a, const call &b)
{
    return strcmp(a.name, b.name) == 0 && a.count == b.count && a.type == b.type &&
           a.root == b.root && a.comm->of == b.comm->of;
}

// The next call, with its like of all other ranks, which must be the next of theirs.
static int run_next(bool hangs)
{
    const call next = calls[0];
    std::vector<call> ranks;
    for (ncclComm *c : next.comm->of->ranks) {
        size_t at = 0;
        while (at < calls.size() && calls[at].comm != c)
            at++;
        if (at == calls.size() || !is_same(calls[at], next))
            return complain(INVALID_USAGE, "a rank does not take part: this would hang");
        ranks.push_back(calls[at]);
        calls.erase(calls.begin() + (long)at);
    }
    return meet(ranks, hangs);
}

static int end_group(void)
{
    EMU_LOCK;
    int result = SUCCESS;
    bool any = !calls.empty();
    n_groups += any && getenv("TUTTI_EMU_NCCL_FAIL") != nullptr;
    if (any && is_now("Group"))
        result = complain(SYSTEM_ERROR, "ncclShmOpen: no space left on device\n");
    if (any && is_now("Async"))
        calls[0].comm->of->async = REMOTE_ERROR;
    while (result == SUCCESS && !calls.empty())
        result = run_next(is_now("Hang"));
    calls.clear();
    return result;
}

static int add(const call &c)
{
    EMU_LOCK;
    size_t n = c.comm->of->ranks.size(), bytes = c.count * item(c.type);
    bool scatters = strcmp(c.name, "ReduceScatter") == 0,
         gathers = strcmp(c.name, "AllGather") == 0;
    if (fails(c.name))
        return complain(SYSTEM_ERROR, "");
    if (emu_card_of(c.stream) != c.comm->card || emu_card_at(c.from) != c.comm->card ||
        emu_card_at(c.to) != c.comm->card ||
        !emu_is_range(c.from, bytes * (scatters ? n : 1), false, true) ||
        !emu_is_range(c.to, bytes * (gathers ? n : 1), false, true))
        return complain(INVALID_ARGUMENT, "memory or stream of another card, or too little");
    calls.push_back(c);
    return depth > 0 ? SUCCESS : end_group();
}

extern "C" {

static int ncclGroupEnd(void)
{
    return --depth > 0 ? SUCCESS : end_group();
}

#define FROM_TO (const char *)from, (char *)to
static int ncclAllReduce(const void *from, void *to, size_t count, int type, int, ncclComm *c,
                         cudaStream_t s)
{
    return add({"AllReduce", c, FROM_TO, count, type, 0, s});
}

static int ncclReduceScatter(const void *from, void *to, size_t count, int type, int, ncclComm *c,
                             cudaStream_t s)
{
    return add({"ReduceScatter", c, FROM_TO, count, type, 0, s});
}

static int ncclAllGather(const void *from, void *to, size_t count, int type, ncclComm *c,
                         cudaStream_t s)
{
    return add({"AllGather", c, FROM_TO, count, type, 0, s});
}

static int ncclReduce(const void *from, void *to, size_t count, int type, int, int root,
                      ncclComm *c, cudaStream_t s)
{
    return add({"Reduce", c, FROM_TO, count, type, root, s});
}

static int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, ncclComm *c,
                         cudaStream_t s)
{
    return add({"Broadcast", c, FROM_TO, count, type, root, s});
}
}

// ---- in place of dlopen and dlsym ------------------------------------------------------------

void *emu_library(const char *const *names)
{
    static char here;
    return strcmp(names[0], "libnccl.so.2") == 0 && emu_number("TUTTI_EMU_NCCL", 0) > 0 ? &here
                                                                                        : nullptr;
}

void *emu_symbol(void *, const char *name)
{
    static const struct {
        const char *name;
        void *fn;
    } functions[] = {
#define X(name) {#name, (void *)name},
        X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclCommInitAll)
            X(ncclCommDestroy) X(ncclCommAbort) X(ncclCommGetAsyncError) X(ncclGroupStart)
                X(ncclGroupEnd) X(ncclAllReduce) X(ncclReduceScatter) X(ncclAllGather) X(ncclReduce)
                    X(ncclBroadcast)
#undef X
    };
    for (const auto &f : functions)
        if (strcmp(f.name, name) == 0)
            return f.fn;
    return nullptr;
}
