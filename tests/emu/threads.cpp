/*
 * threads.cpp - the threads of a block, as fibers on one thread of the host.
 *
 * A fiber takes thread after thread of the block and runs each to its end; only a thread that has
 * to wait (a barrier, a shuffle) keeps its fiber, and another fiber goes on with the next threads.
 * So a kernel that waits for nothing runs as a loop. The last thread to come to a meeting point
 * releases the others. If nobody can go on and some still wait, the kernel is wrong: the card is
 * lost, as it would hang.
 */
#include "emu.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

uint3 emu_thread, emu_block;
dim3 emu_block_dim, emu_grid_dim;
char *emu_dynamic;

#define STACK ((size_t)256 << 10)

// ---- switching -------------------------------------------------------------------------------

#if defined(__x86_64__)
struct context {
    void *sp;
};
extern "C" void emu_switch(void **save, void *to);
__asm__(".text\n.type emu_switch,@function\n.local emu_switch\nemu_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size emu_switch,.-emu_switch\n");
static void context_make(context *c, char *stack, void (*fn)())
{
    // Six registers, then where to return to; the stack is aligned as after a call.
    void **sp = (void **)(stack + STACK - 128);
    sp[6] = (void *)fn;
    c->sp = sp;
}
static void context_swap(context *from, context *to)
{
    emu_switch(&from->sp, to->sp);
}
#else
struct context {
    ucontext_t u;
};
static void context_make(context *c, char *stack, void (*fn)())
{
    getcontext(&c->u);
    c->u.uc_stack.ss_sp = stack;
    c->u.uc_stack.ss_size = STACK;
    makecontext(&c->u, fn, 0);
}
static void context_swap(context *from, context *to)
{
    swapcontext(&from->u, &to->u);
}
#endif

// ---- the block that runs ---------------------------------------------------------------------

struct fiber {
    context at;
};
struct thread {
    fiber *on; // while it waits
    uint3 index;
    bool is_done, waits;
    emu_kind kind;
    unsigned mask;
    uint64_t value;    // brought to the meeting point
    uint64_t *all;     // where to write what the others brought
    unsigned *present; //
    int any, every, count;
};
struct warp {
    unsigned alive, waits; // lanes that have not ended; lanes at a meeting point of lanes
};
struct state {
    const std::function<void()> *body;
    int n;       // threads of the block
    int next;    // first that has not begun
    int n_done;  //
    int n_waits; // at the barrier of the block
    int now;     // the thread that runs
    fiber *running;
    context caller;
    std::vector<thread> threads;
    std::vector<warp> warps;
    std::vector<fiber *> idle;
    std::vector<int> ready; // a queue
    size_t first_ready;
    const char *error;
};
static state &B = *new state(); // never destroyed: what it holds is no leak when a program ends

static void run_threads();

static fiber *fiber_take()
{
    if (!B.idle.empty()) {
        fiber *f = B.idle.back();
        B.idle.pop_back();
        return f;
    }
    fiber *f = new fiber; // kept for the kernels to come
    void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    context_make(&f->at, (char *)stack, run_threads);
    return f;
}

static void set_now(int t)
{
    B.now = t;
    emu_thread = B.threads[(size_t)t].index;
}

// Leaves the running fiber for whatever can go on; back when its thread is released.
static void leave(context *from)
{
    if (B.first_ready < B.ready.size()) {
        int t = B.ready[B.first_ready++];
        set_now(t);
        B.running = B.threads[(size_t)t].on;
    } else if (B.next < B.n && B.error == nullptr) {
        B.running = fiber_take();
    } else {
        context_swap(from, &B.caller);
        return;
    }
    fiber *to = B.running;
    if (&to->at != from)
        context_swap(from, &to->at);
}

static void release(int t)
{
    B.threads[(size_t)t].waits = false;
    B.ready.push_back(t);
}

static void finish_barrier(int but)
{
    int count = 0;
    for (int t = 0; t < B.n; t++)
        count += B.threads[(size_t)t].waits && B.threads[(size_t)t].kind == EMU_BLOCK &&
                 B.threads[(size_t)t].value;
    for (int t = 0; t < B.n; t++) {
        thread &h = B.threads[(size_t)t];
        if (!h.waits || h.kind != EMU_BLOCK)
            continue;
        h.any = count > 0;
        h.every = count == B.n_waits;
        h.count = count;
        h.waits = false;
        if (t != but)
            release(t);
    }
    B.n_waits = 0;
}

// Have all lanes of the meeting point of thread t come? Lanes that ended count as come.
static bool try_warp(int t, int but)
{
    int base = t & ~31;
    warp &w = B.warps[(size_t)(t / 32)];
    const thread &me = B.threads[(size_t)t];
    unsigned present = 0, mask = me.mask;
    emu_kind kind = me.kind;
    uint64_t all[32] = {};
    if ((mask & w.alive & ~w.waits) != 0) // most often: some have still to come
        return false;
    for (int i = 0; i < 32; i++) {
        if (!((mask & w.alive) >> i & 1))
            continue;
        const thread &h = B.threads[(size_t)(base + i)];
        if (!h.waits || h.kind != kind || h.mask != mask)
            return false;
        present |= 1u << i;
        all[i] = h.value;
    }
    w.waits &= ~present;
    for (int i = 0; i < 32; i++) {
        if (!(present >> i & 1))
            continue;
        thread &h = B.threads[(size_t)(base + i)];
        memcpy(h.all, all, sizeof(all));
        *h.present = present;
        h.waits = false;
        if (base + i != but)
            release(base + i);
    }
    return true;
}

static void end_thread()
{
    int t = B.now;
    B.threads[(size_t)t].is_done = true;
    B.warps[(size_t)(t / 32)].alive &= ~(1u << (t & 31));
    B.n_done++;
    if (B.n_waits > 0 && B.n_waits == B.n - B.n_done)
        finish_barrier(-1);
    for (int i = t & ~31; i < (t | 31) + 1 && i < B.n; i++)
        if (B.threads[(size_t)i].waits && B.threads[(size_t)i].kind != EMU_BLOCK)
            (void)try_warp(i, -1);
}

// What a fiber does for ever: begin threads; when there are none left it is idle.
static void run_threads()
{
    for (;;) {
        while (B.next < B.n && B.error == nullptr) {
            set_now(B.next++);
            (*B.body)();
            end_thread();
        }
        fiber *f = B.running;
        B.idle.push_back(f);
        leave(&f->at);
    }
}

static void wait_here()
{
    fiber *f = B.running;
    B.threads[(size_t)B.now].on = f;
    leave(&f->at);
}

int emu_lane(void)
{
    return B.now & 31;
}

void emu_block_wait(int *any, int *all, int *count, int predicate)
{
    thread &me = B.threads[(size_t)B.now];
    me.kind = EMU_BLOCK;
    me.value = predicate != 0;
    me.waits = true;
    B.n_waits++;
    if (B.n_waits == B.n - B.n_done)
        finish_barrier(B.now);
    else
        wait_here();
    if (any != nullptr)
        *any = me.any;
    if (all != nullptr)
        *all = me.every;
    if (count != nullptr)
        *count = me.count;
}

void emu_warp_wait(emu_kind kind, unsigned mask, uint64_t value, uint64_t all[32],
                   unsigned *present)
{
    thread &me = B.threads[(size_t)B.now];
    me.kind = kind;
    me.mask = mask;
    me.value = value;
    me.all = all;
    me.present = present;
    me.waits = true;
    B.warps[(size_t)(B.now / 32)].waits |= 1u << (B.now & 31);
    if (!(mask >> (B.now & 31) & 1))
        B.error = "a lane is not in the mask it waits with";
    if (!try_warp(B.now, B.now))
        wait_here();
}

// ---- grids -----------------------------------------------------------------------------------

static void run_block()
{
    B.next = B.n_done = B.n_waits = 0;
    B.ready.clear();
    B.first_ready = 0;
    B.error = nullptr;
    for (int t = 0; t < B.n; t++)
        B.threads[(size_t)t].is_done = B.threads[(size_t)t].waits = false;
    for (int t = 0; t < B.n; t += 32)
        B.warps[(size_t)(t / 32)] = {B.n - t < 32 ? (1u << (B.n - t)) - 1 : ~0u, 0};
    B.running = fiber_take();
    context_swap(&B.caller, &B.running->at);
    if (B.n_done == B.n)
        return;
    if (B.error == nullptr)
        B.error = "threads wait where the others never come";
    B.idle.clear(); // those that still wait are given up
}

static bool is_flat(dim3 d)
{
    return d.x > 0 && d.y > 0 && d.z > 0;
}

cudaError_t emu_run_grid(dim3 grid, dim3 block, size_t shared, const std::function<void()> &body)
{
    EMU_LOCK;
    if (!is_flat(grid) || !is_flat(block))
        return cudaErrorInvalidConfiguration;
    B.body = &body;
    B.n = (int)(block.x * block.y * block.z);
    B.error = nullptr;
    if (B.threads.size() < (size_t)B.n)
        B.threads.resize((size_t)B.n);
    if (B.warps.size() < ((size_t)B.n + 31) / 32)
        B.warps.resize(((size_t)B.n + 31) / 32);
    for (int t = 0; t < B.n; t++)
        B.threads[(size_t)t].index = {(unsigned)t % block.x, (unsigned)t / block.x % block.y,
                                      (unsigned)t / block.x / block.y};
    emu_block_dim = block;
    emu_grid_dim = grid;
    // Exactly the bytes asked for, so that a sanitizer sees what is beyond them.
    std::vector<char> memory(shared + 16);
    emu_dynamic = (char *)(((uintptr_t)memory.data() + 15) & ~(uintptr_t)15);
#if defined(__x86_64__)
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u); // as -ftz=true: no subnormals in or out
#endif
    for (unsigned z = 0; z < grid.z && B.error == nullptr; z++)
        for (unsigned y = 0; y < grid.y && B.error == nullptr; y++)
            for (unsigned x = 0; x < grid.x && B.error == nullptr; x++) {
                emu_block = {x, y, z};
                memset(emu_dynamic, 0xff, shared); // NaN: nothing is there yet
                run_block();
            }
#if defined(__x86_64__)
    _mm_setcsr(saved);
#endif
    emu_dynamic = nullptr;
    if (B.error == nullptr)
        return cudaSuccess;
    fprintf(stderr, "emulation: block (%u, %u, %u) of %d threads: %s\n", emu_block.x, emu_block.y,
            emu_block.z, B.n, B.error);
    emu_lose(cudaErrorLaunchFailure);
    return cudaErrorLaunchFailure;
}
