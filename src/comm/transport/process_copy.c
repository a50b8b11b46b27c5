/*
 * process_copy.c - writing what other processes read next. A line that another core has in its
 * cache must be taken from there before it can be written: between cores that share a cache that
 * costs nothing, between others more than writing to memory past all caches does. Where the
 * processes run is the system's choice and changes, so now and then a little is written through the
 * cache, timed.
 */
#include "comm/nontemporal.h"
#include "comm/transport/process.h"
#include <stdatomic.h>
#include <string.h>

#define LEAST   ((size_t)2 << 10) // bytes; fewer go through the cache
#define OFTEN   64                // puts from one trial to the next
#define LINE_NS 12                // what a line may take

// Writes the first bytes through the cache; was that slow?
static bool is_slow(char *to, const char *from)
{
    int64_t start = tti_now_ns();
    memcpy(to, from, LEAST);
    atomic_thread_fence(memory_order_seq_cst); // the lines are written now
    return tti_now_ns() - start > (int64_t)(LEAST / 64 * LINE_NS);
}

void tti_process_put(tti_process *p, char *to, const char *from, size_t bytes)
{
    if (bytes < LEAST) {
        memcpy(to, from, bytes);
        return;
    }
    size_t done = 0;
    if (++p->n_puts % OFTEN == 0) {
        p->passes = is_slow(to, from);
        done = LEAST;
    }
    tti_copy(to + done, from + done, bytes - done, p->passes);
}
