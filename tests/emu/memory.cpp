/*
 * memory.cpp - the cards of the emulation, their memory, errors.
 */
#include "emu.h"
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

std::recursive_mutex emu_mutex;

struct block {
    size_t bytes;
    int card; // -1: pinned memory of the host
};
static std::map<uintptr_t, block> blocks; // by address
static size_t held[64];
static bool has_peer[64][64];
static cudaError_t lost = cudaSuccess;
static thread_local cudaError_t last = cudaSuccess;
static thread_local int current = 0;

// ---- errors ----------------------------------------------------------------------------------

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
#define X(name, value, text) \
    case name:               \
        return text;
        EMU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
#define X(name, value, text) \
    case name:               \
        return #name;
        EMU_ERRORS(X)
#undef X
    }
    return "unrecognized error code";
}

cudaError_t emu_error(cudaError_t e)
{
    if (e != cudaSuccess && e != cudaErrorNotReady)
        last = e;
    return e;
}

cudaError_t emu_lost(void)
{
    return lost == cudaSuccess ? cudaSuccess : emu_error(lost);
}

void emu_lose(cudaError_t e)
{
    if (lost == cudaSuccess)
        lost = e;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last;
    last = lost; // what lost the card stays
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

// ---- cards -----------------------------------------------------------------------------------

long emu_number(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s == nullptr || *s == '\0' ? otherwise : strtol(s, nullptr, 10);
}

// What another process holds of every card.
static size_t taken(void)
{
    return (size_t)emu_number("TUTTI_EMU_TAKEN", 0);
}

static int cards(void)
{
    long n = emu_number("TUTTI_EMU_CARDS", 1);
    return n < 0 ? 0 : n > 64 ? 64 : (int)n;
}

static size_t card_memory(void)
{
    return (size_t)emu_number("TUTTI_EMU_MEMORY", 1L << 30);
}

// Of cards one after the other; the last number is that of all that follow.
static void capability(int card, int *major, int *minor)
{
    const char *s = getenv("TUTTI_EMU_CAPABILITY");
    for (const char *comma; s != nullptr && card > 0 && (comma = strchr(s, ',')) != nullptr; card--)
        s = comma + 1;
    if (s == nullptr || sscanf(s, "%d.%d", major, minor) != 2) {
        *major = 9;
        *minor = 0;
    }
}

cudaError_t cudaRuntimeGetVersion(int *out)
{
    *out = 13000;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out)
{
    *out = (int)emu_number("TUTTI_EMU_DRIVER", 13000);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *out)
{
    *out = 0;
    if (emu_number("TUTTI_EMU_DRIVER", 13000) < 13000)
        return emu_error(cudaErrorInsufficientDriver);
    *out = cards();
    return *out > 0 ? cudaSuccess : emu_error(cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int card)
{
    if (card < 0 || card >= cards())
        return emu_error(cudaErrorInvalidDevice);
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "emulated GPU");
    out->totalGlobalMem = card_memory();
    out->sharedMemPerBlock = EMU_SHARED_DEFAULT;
    out->sharedMemPerBlockOptin = EMU_SHARED_MAX;
    out->multiProcessorCount = 3;
    out->l2CacheSize = 1 << 20;
    capability(card, &out->major, &out->minor);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr what, int card)
{
    cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceProperties(&p, card);
    if (e != cudaSuccess)
        return e;
    switch (what) {
    case cudaDevAttrMaxThreadsPerBlock:
        *out = 1024;
        break;
    case cudaDevAttrMultiProcessorCount:
        *out = p.multiProcessorCount;
        break;
    case cudaDevAttrL2CacheSize:
        *out = p.l2CacheSize;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *out = p.major;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *out = p.minor;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        *out = EMU_SHARED_DEFAULT;
        break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *out = EMU_SHARED_MAX;
        break;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int n, int card)
{
    if (card < 0 || card >= cards())
        return emu_error(cudaErrorInvalidDevice);
    snprintf(out, (size_t)n, "0000:%02x:00.0", card + 1);
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int card)
{
    if (card < 0 || card >= cards())
        return emu_error(cudaErrorInvalidDevice);
    current = card;
    return emu_lost();
}

cudaError_t cudaGetDevice(int *out)
{
    *out = current;
    return cudaSuccess;
}

int emu_current_card(void)
{
    return current;
}

cudaError_t cudaDeviceCanAccessPeer(int *out, int card, int peer)
{
    *out = card != peer && emu_number("TUTTI_EMU_PEERS", 1) != 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    EMU_LOCK;
    (void)flags;
    int can = 0;
    (void)cudaDeviceCanAccessPeer(&can, current, peer);
    if (!can)
        return emu_error(cudaErrorPeerAccessUnsupported);
    if (has_peer[current][peer])
        return emu_error(cudaErrorPeerAccessAlreadyEnabled);
    has_peer[current][peer] = true;
    return cudaSuccess;
}

// ---- memory ----------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    EMU_LOCK;
    *total = card_memory();
    *free_bytes = *total > held[current] + taken() ? *total - held[current] - taken() : 0;
    return emu_lost();
}

bool emu_card_memory(const char *bus, size_t *free_bytes, size_t *total)
{
    unsigned number = 0;
    int before = current;
    if (sscanf(bus, "0000:%x", &number) != 1 || number < 1 || (int)number > cards())
        return false;
    current = (int)number - 1;
    bool known = cudaMemGetInfo(free_bytes, total) == cudaSuccess;
    current = before;
    return known;
}

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/*
 * Exactly the bytes asked for, so that a sanitizer sees what is beyond them; NaN all over. With
 * several cards whole pages, which can be taken from the others' kernels.
 */
static void *take(size_t bytes, int card)
{
    void *p = nullptr;
    bool paged = card >= 0 && cards() > 1;
    size_t room = paged ? whole_pages(bytes) : bytes;
    if (posix_memalign(&p, paged ? whole_pages(1) : 256, room) != 0)
        return nullptr;
    memset(p, 0xff, room);
    blocks[(uintptr_t)p] = {bytes, card};
    return p;
}

static cudaError_t give_back(void *p, bool pinned)
{
    auto b = blocks.find((uintptr_t)p);
    if (b == blocks.end() || (b->second.card < 0) != pinned)
        return emu_error(cudaErrorInvalidValue);
    if (!pinned)
        held[b->second.card] -= b->second.bytes;
    blocks.erase(b);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    EMU_LOCK;
    cudaError_t e = emu_lost();
    if (e == cudaSuccess)
        e = emu_may_wait();
    if (e != cudaSuccess)
        return e;
    *out = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    if (bytes > card_memory() || held[current] + taken() > card_memory() - bytes)
        return emu_error(cudaErrorMemoryAllocation);
    *out = take(bytes, current);
    if (*out == nullptr)
        return emu_error(cudaErrorMemoryAllocation);
    held[current] += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    EMU_LOCK;
    cudaError_t e = emu_lost();
    if (e == cudaSuccess)
        e = emu_may_wait();
    if (e != cudaSuccess || p == nullptr)
        return e;
    emu_drain_card(current); // freeing waits for the card
    return give_back(p, false);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    EMU_LOCK;
    (void)flags;
    cudaError_t e = emu_lost();
    if (e == cudaSuccess)
        e = emu_may_wait();
    if (e != cudaSuccess)
        return e;
    *out = take(bytes > 0 ? bytes : 1, -1);
    return *out != nullptr ? cudaSuccess : emu_error(cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return cudaHostAlloc(out, bytes, 0);
}

cudaError_t cudaFreeHost(void *p)
{
    EMU_LOCK;
    return p == nullptr ? cudaSuccess : give_back(p, true);
}

// The block that an address is in; NULL: none.
static const std::pair<const uintptr_t, block> *block_at(const void *p)
{
    auto b = blocks.upper_bound((uintptr_t)p);
    if (b == blocks.begin())
        return nullptr;
    --b;
    return (uintptr_t)p < b->first + b->second.bytes ? &*b : nullptr;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p)
{
    EMU_LOCK;
    auto b = block_at(p);
    out->type = b == nullptr         ? cudaMemoryTypeUnregistered
                : b->second.card < 0 ? cudaMemoryTypeHost
                                     : cudaMemoryTypeDevice;
    out->device = b == nullptr || b->second.card < 0 ? 0 : b->second.card;
    return cudaSuccess;
}

int emu_card_at(const void *p)
{
    EMU_LOCK;
    auto b = block_at(p);
    return b == nullptr ? -1 : b->second.card;
}

bool emu_reaches(int card, int other)
{
    return other < 0 || card == other || has_peer[card][other];
}

// A kernel that touches what is out of its reach ends the program, as it would lose the card.
void emu_fence(int card, bool on)
{
    for (auto &b : blocks)
        if (!emu_reaches(card, b.second.card))
            (void)mprotect((void *)b.first, whole_pages(b.second.bytes),
                           on ? PROT_NONE : PROT_READ | PROT_WRITE);
}

bool emu_is_range(const void *p, size_t bytes, bool may_host, bool may_device)
{
    EMU_LOCK;
    auto b = block_at(p);
    if (b == nullptr) // memory of the program; not one that runs into a block
        return may_host && (bytes == 0 || block_at((const char *)p + bytes - 1) == nullptr);
    return (b->second.card < 0 ? may_host : may_device) &&
           (uintptr_t)p + bytes <= b->first + b->second.bytes;
}
